/* peers_onednn.c: oneDNN 2.x through the few functions of its C interface that are needed.
 *
 * The declarations are ours, so that no header need be installed. Descriptors only ever pass by
 * pointer; they are bytes to us, with room for more than version 2 has ever used. Memory objects
 * are left to the library to allocate. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "peers_impl.h"

/* Numbers of dnnl_types.h that do not change within version 2. */
enum { CPU = 1, F32 = 3, FORMAT_ANY = 1, FORWARD_INFERENCE = 96, CONVOLUTION_AUTO = 3 };
enum { QUERY_SRC = 129, QUERY_WEIGHTS = 131, QUERY_DST = 133 };
enum { ARG_SRC = 1, ARG_DST = 17, ARG_WEIGHTS = 33 };
enum { STREAM_IN_ORDER = 1, MAX_DIMS = 12 };
#define LIBRARY_ALLOCATES ((void *)(size_t)-1)

typedef struct {
    _Alignas(16) unsigned char bytes[2048];
} desc; /* of memory: 696 bytes in 2.6 */
typedef struct {
    _Alignas(16) unsigned char bytes[16384];
} op_desc; /* of an operation: several of those */
typedef struct {
    int arg;
    void *memory;
} exec_arg;
typedef struct {
    int major, minor, patch;
} version; /* as far as it is read */

/* X(function, arguments); all answer a status, 0 if done */
#define ONEDNN(X)                                                                                \
    X(engine_create, (void **engine, int kind, size_t index))                                    \
    X(engine_destroy, (void *engine))                                                            \
    X(stream_create, (void **stream, void *engine, unsigned flags))                              \
    X(stream_wait, (void *stream))                                                               \
    X(stream_destroy, (void *stream))                                                            \
    X(memory_desc_init_by_strides,                                                               \
      (desc * d, int rank, const int64_t *dims, int type, const int64_t *strides))               \
    X(memory_desc_init_by_tag, (desc * d, int rank, const int64_t *dims, int type, int tag))     \
    X(memory_create, (void **memory, const desc *d, void *engine, void *handle))                 \
    X(memory_destroy, (void *memory))                                                            \
    X(matmul_desc_init,                                                                          \
      (op_desc * d, const desc *src, const desc *weights, const desc *bias, const desc *dst))    \
    X(convolution_forward_desc_init,                                                             \
      (op_desc * d, int propagation, int algorithm, const desc *src, const desc *weights,        \
       const desc *bias, const desc *dst, const int64_t *strides, const int64_t *padding_left,   \
       const int64_t *padding_right))                                                            \
    X(primitive_desc_create,                                                                     \
      (void **pd, const op_desc *d, const void *attr, void *engine, const void *hint))           \
    X(reorder_primitive_desc_create, (void **pd, const desc *src, void *src_engine,              \
                                      const desc *dst, void *dst_engine, const void *attr))      \
    X(primitive_desc_destroy, (void *pd))                                                        \
    X(primitive_create, (void **primitive, const void *pd))                                      \
    X(primitive_execute, (const void *primitive, void *stream, int count, const exec_arg *args)) \
    X(primitive_destroy, (void *primitive))

struct onednn {
    void *library, *engine, *stream;
    const desc *(*query_md)(const void *pd, int what, int index);
#define X(function, arguments) int(*function) arguments;
    ONEDNN(X)
#undef X
};

/* ---- the library ---- */

static bool find_functions(struct onednn *d)
{
    bool all = true;

    *(void **)&d->query_md = dlsym(d->library, "dnnl_primitive_desc_query_md");
#define X(function, arguments)                                     \
    *(void **)&d->function = dlsym(d->library, "dnnl_" #function); \
    all = all && d->function;
    ONEDNN(X)
#undef X
    return all && d->query_md;
}

void onednn_open(struct peers *p)
{
    const version *(*get_version)(void);
    struct onednn *d = calloc(1, sizeof *d);

    if (!d)
        give_up("out of memory");
    p->onednn = d;
    snprintf(p->onednn_name, sizeof p->onednn_name, "oneDNN");
    d->library = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!d->library) {
        snprintf(p->onednn_missing, sizeof p->onednn_missing, "%s", dlerror());
        return;
    }
    *(void **)&get_version = dlsym(d->library, "dnnl_version");
    if (!find_functions(d) || !get_version) {
        snprintf(p->onednn_missing, sizeof p->onednn_missing,
                 "libdnnl.so.2 lacks functions of oneDNN 2");
        return;
    }
    const version *v = get_version();
    snprintf(p->onednn_name, sizeof p->onednn_name, "oneDNN %d.%d.%d", v->major, v->minor,
             v->patch);
    if (d->engine_create(&d->engine, CPU, 0) != 0 ||
        d->stream_create(&d->stream, d->engine, STREAM_IN_ORDER) != 0)
        snprintf(p->onednn_missing, sizeof p->onednn_missing, "oneDNN does not open the CPU");
}

void onednn_close(struct peers *p)
{
    struct onednn *d = p->onednn;

    if (d->stream)
        d->stream_destroy(d->stream);
    if (d->engine)
        d->engine_destroy(d->engine);
    free(d);
}

/* ---- calls ---- */

enum { SRC, WEIGHTS, DST, OPERANDS };
struct onednn_call {
    struct peer_call base;
    struct onednn *dnn;
    void *pd, *primitive, *memory[OPERANDS];
    char name[80];
};

static void onednn_run(void *user)
{
    struct onednn_call *c = user;
    const exec_arg args[OPERANDS] = {
        {ARG_SRC, c->memory[SRC]}, {ARG_WEIGHTS, c->memory[WEIGHTS]}, {ARG_DST, c->memory[DST]}};

    if (c->dnn->primitive_execute(c->primitive, c->dnn->stream, OPERANDS, args) != 0 ||
        c->dnn->stream_wait(c->dnn->stream) != 0)
        give_up("oneDNN failed in %s", c->name);
}

static void onednn_call_close(struct peer_call *base)
{
    struct onednn_call *c = (struct onednn_call *)base;

    for (int i = 0; i < OPERANDS; i++)
        if (c->memory[i])
            c->dnn->memory_destroy(c->memory[i]);
    if (c->primitive)
        c->dnn->primitive_destroy(c->primitive);
    if (c->pd)
        c->dnn->primitive_desc_destroy(c->pd);
    free(c);
}

/* A memory object in the layout d, filled by way of a plain one: values in a blocked layout must
 * not be denormal or NaN by chance. */
static bool fill(struct onednn_call *c, const desc *d, const desc *plain, int64_t count,
                 void **memory)
{
    struct onednn *dnn = c->dnn;
    void *from = NULL, *pd = NULL, *reorder = NULL;
    float *values = peer_values(count);

    bool done =
        dnn->memory_create(memory, d, dnn->engine, LIBRARY_ALLOCATES) == 0 &&
        dnn->memory_create(&from, plain, dnn->engine, values) == 0 &&
        dnn->reorder_primitive_desc_create(&pd, plain, dnn->engine, d, dnn->engine, NULL) == 0 &&
        dnn->primitive_create(&reorder, pd) == 0;
    if (done) {
        const exec_arg args[] = {{ARG_SRC, from}, {ARG_DST, *memory}};
        done = dnn->primitive_execute(reorder, dnn->stream, 2, args) == 0 &&
               dnn->stream_wait(dnn->stream) == 0;
    }
    if (reorder)
        dnn->primitive_destroy(reorder);
    if (pd)
        dnn->primitive_desc_destroy(pd);
    if (from)
        dnn->memory_destroy(from);
    free(values);
    return done;
}

struct operand {
    int rank;
    int64_t dim[4];
    bool any; /* the layout is the library's to choose */
};

static int64_t elements(const struct operand *o)
{
    int64_t n = 1;

    for (int i = 0; i < o->rank; i++)
        n *= o->dim[i];
    return n;
}

static bool describe(const struct onednn *dnn, const struct operand *o, bool any, desc *out)
{
    int64_t dims[MAX_DIMS] = {0}, strides[MAX_DIMS] = {0}, step = 1;

    for (int i = o->rank - 1; i >= 0; i--) {
        dims[i] = o->dim[i];
        strides[i] = step;
        step *= o->dim[i];
    }
    if (any)
        return dnn->memory_desc_init_by_tag(out, o->rank, dims, F32, FORMAT_ANY) == 0;
    return dnn->memory_desc_init_by_strides(out, o->rank, dims, F32, strides) == 0;
}

static bool make(struct onednn_call *c, const op_desc *op, const struct operand *operand,
                 const desc *plain)
{
    static const int query[OPERANDS] = {QUERY_SRC, QUERY_WEIGHTS, QUERY_DST};

    if (c->dnn->primitive_desc_create(&c->pd, op, NULL, c->dnn->engine, NULL) != 0 ||
        c->dnn->primitive_create(&c->primitive, c->pd) != 0)
        return false;
    for (int i = 0; i < OPERANDS; i++) {
        const desc *chosen = c->dnn->query_md(c->pd, query[i], 0);
        if (!chosen || !fill(c, chosen, &plain[i], elements(&operand[i]), &c->memory[i]))
            return false;
    }
    return true;
}

/* A side from three operands; kernel 0: a matrix product, else a convolution. */
static struct side onednn_side(struct peers *p, const struct operand *operand, int64_t kernel,
                               const char *what)
{
    struct side side = {.name = p->onednn_name, .call = onednn_run};
    struct onednn *dnn = p->onednn;
    desc wanted[OPERANDS], plain[OPERANDS];
    op_desc op;
    bool good = true;

    if (p->onednn_missing[0]) {
        side.missing = p->onednn_missing;
        return side;
    }
    struct onednn_call *c = peer_call_new(p, sizeof *c, onednn_call_close);
    c->dnn = dnn;
    snprintf(c->name, sizeof c->name, "%.60s%s", p->onednn_name, what);
    for (int i = 0; i < OPERANDS; i++)
        good = good && describe(dnn, &operand[i], operand[i].any, &wanted[i]) &&
               describe(dnn, &operand[i], false, &plain[i]);
    const int64_t one[MAX_DIMS] = {1, 1}, pad[MAX_DIMS] = {kernel / 2, kernel / 2};
    if (kernel)
        good = good && dnn->convolution_forward_desc_init(&op, FORWARD_INFERENCE, CONVOLUTION_AUTO,
                                                          &wanted[SRC], &wanted[WEIGHTS], NULL,
                                                          &wanted[DST], one, pad, pad) == 0;
    else
        good = good &&
               dnn->matmul_desc_init(&op, &wanted[SRC], &wanted[WEIGHTS], NULL, &wanted[DST]) == 0;
    if (!good || !make(c, &op, operand, plain))
        side.missing = "oneDNN refuses these operands";
    side.name = c->name;
    side.user = c;
    return side;
}

struct side peer_onednn_matmul(struct peers *p, const struct matmul_shape *s, bool packed)
{
    const struct operand operand[OPERANDS] = {
        {2, {s->m, s->k}, false}, {2, {s->k, s->n}, packed}, {2, {s->m, s->n}, false}};

    return onednn_side(p, operand, 0, packed ? ", packed" : "");
}

struct side peer_onednn_conv(struct peers *p, const struct conv_shape *s, bool own_layout)
{
    const struct operand operand[OPERANDS] = {{4, {1, s->from, s->size, s->size}, own_layout},
                                              {4, {s->to, s->from, s->kernel, s->kernel}, true},
                                              {4, {1, s->to, s->size, s->size}, own_layout}};

    return onednn_side(p, operand, s->kernel, own_layout ? "" : ", NCHW");
}
