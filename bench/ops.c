/* ops.c: single ops beside what the machine can do, measured in the same run.
 *
 * Ops that move data are set beside a plain copy by as many threads, in bytes read and written per
 * second; ops that multiply, beside a 1024^3 f32 matmul. Times are of the op's own step, the
 * fastest of many runs, without the copying of inputs and outputs.
 *
 *     ops [--threads N] [--ms N] [--device cpu:avx2] [WORD ..]    cases with a WORD in their name
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rlx/graph.h"
#include "rlx/session.h"

struct bench_case {
    const char *name;
    const char *spec; /* operands, weights with a *, then "= " and the node that takes them */
    int64_t flops;    /* 0: it moves data */
};

#define OUT(h, k, s, p) (((h) + 2 * (p) - (k)) / (s) + 1)
#define CONV(name, n, c, h, o, k, s, p)                                       \
    {                                                                         \
        "conv " name,                                                         \
            "f32[" #n "," #c "," #h "," #h "] *f32[" #o "," #c "," #k "," #k  \
            "] = conv %0, %1 stride=[" #s "," #s "] padding=[" #p "," #p "]", \
            (int64_t)2 * n *o *c *k *k *OUT(h, k, s, p) * OUT(h, k, s, p)     \
    }
#define ATTENTION(name, b, h, kv, q, s, d, mask, share)                                          \
    {                                                                                            \
        "attention " name,                                                                       \
            "f32[" #b "," #h "," #q "," #d "] f32[" #b "," #kv "," #s "," #d "] f32[" #b "," #kv \
            "," #s "," #d "] = attention %0, %1, %2 num_heads=" #h " num_kv_heads=" #kv          \
            " head_dim=" #d " mask_kind=" mask " layout=bhsd",                                   \
            (int64_t)4 * b *h *q *s *d / share                                                   \
    }

static const struct bench_case cases[] = {
    {"matmul 1024", "f32[1024,1024] f32[1024,1024] = matmul %0, %1",
     (int64_t)2 * 1024 * 1024 * 1024},
    CONV("3x3 64 56", 1, 64, 56, 64, 3, 1, 1),
    CONV("7x7/2 3-64 224", 1, 3, 224, 64, 7, 2, 3),
    CONV("1x1 64-64 56", 1, 64, 56, 64, 1, 1, 0),
    CONV("1x1 64-256 56", 1, 64, 56, 256, 1, 1, 0),
    CONV("1x1 256-64 56", 1, 256, 56, 64, 1, 1, 0),
    CONV("1x1 256-128 56", 1, 256, 56, 128, 1, 1, 0),
    CONV("3x3/2 128 56", 1, 128, 56, 128, 3, 2, 1),
    CONV("1x1/2 256-512 56", 1, 256, 56, 512, 1, 2, 0),
    CONV("1x1 128-512 28", 1, 128, 28, 512, 1, 1, 0),
    CONV("1x1 512-128 28", 1, 512, 28, 128, 1, 1, 0),
    CONV("3x3 128 28", 1, 128, 28, 128, 3, 1, 1),
    CONV("3x3/2 256 28", 1, 256, 28, 256, 3, 2, 1),
    CONV("1x1 256-1024 14", 1, 256, 14, 1024, 1, 1, 0),
    CONV("1x1 1024-256 14", 1, 1024, 14, 256, 1, 1, 0),
    CONV("3x3 256 14", 1, 256, 14, 256, 3, 1, 1),
    CONV("3x3/2 512 14", 1, 512, 14, 512, 3, 2, 1),
    CONV("1x1 512-2048 7", 1, 512, 7, 2048, 1, 1, 0),
    CONV("1x1 2048-512 7", 1, 2048, 7, 512, 1, 1, 0),
    CONV("3x3 512 7", 1, 512, 7, 512, 3, 1, 1),
    CONV("3x3 32 320", 1, 32, 320, 32, 3, 1, 1),
    CONV("3x3 16-3 256", 1, 16, 256, 3, 3, 1, 1),
    CONV("3x3 batch 8", 8, 64, 14, 64, 3, 1, 1),
    {"conv depthwise 3x3 128 56",
     "f32[1,128,56,56] *f32[128,1,3,3] = conv %0, %1 padding=[1,1] groups=128",
     2 * 128 * 56 * 56 * 9},
    {"conv_transpose 2x2/2 64 56",
     "f32[1,64,56,56] *f32[64,64,2,2] = conv_transpose %0, %1 stride=[2,2]",
     2 * 64 * 64 * 56 * 56 * 4},
    ATTENTION("8x1024x64", 1, 8, 8, 1024, 1024, 64, "none", 1),
    ATTENTION("causal 8x1024x64", 1, 8, 8, 1024, 1024, 64, "causal", 2),
    ATTENTION("gqa 32/8x512x64", 1, 32, 8, 512, 512, 64, "causal", 2),
    ATTENTION("bert 12x128x64", 1, 12, 12, 128, 128, 64, "none", 1),
    ATTENTION("decode 32/4 1x1024x64", 1, 32, 4, 1, 1024, 64, "none", 1),
    {"add 64 MB", "f32[16777216] f32[16777216] = add %0, %1", 0},
    {"relu 64 MB", "f32[16777216] = relu %0", 0},
    {"bias add 64 MB", "f32[16384,1024] f32[1024] = add %0, %1", 0},
    {"gelu 64 MB", "f32[16777216] = gelu %0", 0},
    {"silu 64 MB", "f32[16777216] = silu %0", 0},
    {"exp 64 MB", "f32[16777216] = exp %0", 0},
    {"region 4 ops, 2 inputs",
     "f32[16777216] f32[16777216] = elementwise_region %0, %1 "
     "chain=[[add,i0,i1],[relu,s0],[mul,s1,i0],[sub,s2,i1]]",
     0},
    {"region 8 ops",
     "f32[16777216] f32[1] = elementwise_region %0, %1 "
     "chain=[[add,i0,i1],[relu,s0],[mul,s1,i0],[sub,s2,i1],[abs,s3],[max,s4,i1],[mul,s5,s1],[neg,"
     "s6]]",
     0},
    {"region bias, residual",
     "f32[16384,1024] f32[1024] f32[16384,1024] = elementwise_region %0, %1, %2 "
     "chain=[[add,i0,i1],[add,s0,i2],[relu,s1]]",
     0},
    {"region bf16 4 ops",
     "bf16[33554432] bf16[33554432] = elementwise_region %0, %1 "
     "chain=[[add,i0,i1],[relu,s0],[mul,s1,i0],[sub,s2,i1]]",
     0},
    {"region silu, mul",
     "f32[16777216] f32[16777216] = elementwise_region %0, %1 chain=[[silu,i0],[mul,s0,i1]]", 0},
    {"softmax 16384x1024", "f32[16384,1024] = softmax %0", 0},
    {"softmax 64x262144", "f32[64,262144] = softmax %0", 0},
    {"softmax 4x4194304", "f32[4,4194304] = softmax %0", 0},
    {"softmax axis 0", "f32[1024,16384] = softmax %0 axis=0", 0},
    {"layer_norm 16384x1024", "f32[16384,1024] f32[1024] f32[1024] = layer_norm %0, %1, %2", 0},
    {"layer_norm 16x1048576", "f32[16,1048576] f32[1048576] f32[1048576] = layer_norm %0, %1, %2",
     0},
    {"rms_norm 16384x1024", "f32[16384,1024] f32[1024] = rms_norm %0, %1", 0},
    {"residual ln 16384x1024",
     "f32[16384,1024] f32[16384,1024] f32[1024] f32[1024] = fused_residual_ln %0, %1, %2, %3", 0},
    {"residual rms 16384x1024",
     "f32[16384,1024] f32[16384,1024] f32[1024] f32[1024] = fused_residual_rms_norm %0, %1, %2, %3",
     0},
    {"group_norm 8x64x128x256",
     "f32[8,64,128,256] f32[64] f32[64] = group_norm %0, %1, %2 num_groups=32", 0},
    {"batch_norm 8x64x128x256",
     "f32[8,64,128,256] f32[64] f32[64] f32[64] f32[64] = batch_norm_inference %0, %1, %2, %3, %4 "
     "axis=1",
     0},
    {"swiglu 8192x4096", "f32[8192,4096] = fused_swiglu %0", 0},
    {"reduce_sum rows", "f32[16384,1024] = reduce_sum %0 axes=[1]", 0},
    {"reduce_sum columns", "f32[16384,1024] = reduce_sum %0 axes=[0]", 0},
    {"reduce_mean hw", "f32[64,512,16,32] = reduce_mean %0 axes=[2,3]", 0},
    {"reduce_max rows", "f32[16384,1024] = reduce_max %0 axes=[1]", 0},
    {"max_pool 3x3/2 64x112",
     "f32[8,64,112,112] = pool %0 kind=max kernel_size=[3,3] stride=[2,2] padding=[1,1]", 0},
    {"avg_pool 2x2/2 64x112",
     "f32[8,64,112,112] = pool %0 kind=mean kernel_size=[2,2] stride=[2,2]", 0},
    {"global pool 7x7", "f32[32,2048,7,7] = pool %0 kind=mean kernel_size=[7,7]", 0},
    {"resize 2x", "f32[4,64,128,128] = resize_nearest_2x %0", 0},
    {"transpose 4096x4096", "f32[4096,4096] = transpose %0 perm=[1,0]", 0},
    {"transpose heads", "f32[8,1024,16,128] = transpose %0 perm=[0,2,1,3]", 0},
    {"transpose heads 64", "f32[8,1024,32,64] = transpose %0 perm=[0,2,1,3]", 0},
    {"transpose nchw-nhwc", "f32[8,64,128,256] = transpose %0 perm=[0,2,3,1]", 0},
    {"transpose f16 4096x8192", "f16[4096,8192] = transpose %0 perm=[1,0]", 0},
    {"concat axis 1", "f32[8192,1024] f32[8192,1024] = concat %0, %1 axis=1", 0},
    {"narrow rows", "f32[16384,2048] = narrow %0 axis=1 start=512 len=1024", 0},
    {"expand rows", "f32[1,4096] = expand %0 shape=[4096,4096]", 0},
    {"cast f32 f16", "f32[16777216] = cast %0 to=f16", 0},
    {"cast bf16 f32", "bf16[16777216] = cast %0 to=f32", 0},
    {"add f16", "f16[33554432] f16[33554432] = add %0, %1", 0},
    {"gelu bf16", "bf16[33554432] = gelu %0", 0},
    {"layer_norm bf16", "bf16[16384,2048] bf16[2048] bf16[2048] = layer_norm %0, %1, %2", 0},
    {"softmax f16", "f16[16384,2048] = softmax %0", 0},
};

static struct {
    int threads;
    double seconds;
    const char *device;
} opt = {.threads = 2, .seconds = 0.3, .device = "cpu"};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(rlx_status s, const char *what, const rlx_error *err)
{
    if (s == RLX_OK)
        return;
    fprintf(stderr, "ops: %s: %s\n", what, err->message);
    exit(1);
}

/* ---- copying ------------------------------------------------------------------------------- */

enum { COPY_BYTES = 64 << 20, MOST_THREADS = 64 };

struct copy {
    char *to;
    const char *from;
    size_t bytes;
};

static void *copy_part(void *ctx)
{
    struct copy *c = ctx;

    memcpy(c->to, c->from, c->bytes);
    return NULL;
}

/* Bytes read and written per second, by as many threads as the ops get. */
static double copy_rate(char *to, const char *from)
{
    pthread_t thread[MOST_THREADS] = {0};
    struct copy part[MOST_THREADS] = {{to, from, 0}};
    size_t each = COPY_BYTES / (size_t)opt.threads;
    double start = now();

    for (int i = 0; i < opt.threads; i++) {
        part[i] = (struct copy){to + (size_t)i * each, from + (size_t)i * each, each};
        if (i > 0 && pthread_create(&thread[i], NULL, copy_part, &part[i]) != 0) {
            fprintf(stderr, "ops: no thread to copy with\n");
            exit(1);
        }
    }
    copy_part(&part[0]);
    for (int i = 1; i < opt.threads; i++)
        pthread_join(thread[i], NULL);
    return 2.0 * COPY_BYTES / (now() - start);
}

static char *copy_to, *copy_from;

static bool make_copies(void)
{
    copy_to = malloc(COPY_BYTES);
    copy_from = malloc(COPY_BYTES);
    if (!copy_to || !copy_from)
        return false;
    memset(copy_to, 1, COPY_BYTES);
    memset(copy_from, 2, COPY_BYTES);
    return true;
}

/* ---- one case ------------------------------------------------------------------------------ */

/* "f32[4] *f32[4] = add %0, %1" as a graph of one node. */
static void write_graph(const char *spec, char *text, size_t size)
{
    const char *node = strstr(spec, "= ");
    size_t at = (size_t)snprintf(text, size, "rlx 1\ngraph (");
    int operand = 0;

    for (const char *p = spec; p < node;) {
        int n = (int)strcspn(p, " ");
        bool param = *p == '*';
        at += (size_t)snprintf(text + at, size - at, "%s%s %%x%d: %.*s", operand ? ", " : "",
                               param ? "param" : "input", operand, n - param, p + param);
        operand++;
        p += n + 1;
    }
    at += (size_t)snprintf(text + at, size - at, ") {\n    %%y = ");
    for (const char *p = node + 2; *p && at + 2 < size; p++) {
        text[at++] = *p;
        if (*p == '%')
            text[at++] = 'x';
    }
    snprintf(text + at, size - at, "\n    return %%y\n}\n");
}

/* The fastest of each step, added up; and what they move. */
enum { MOST_STEPS = 64 };
struct times {
    uint64_t ns[MOST_STEPS], bytes[MOST_STEPS];
};

static void note_step(void *user, const rlx_profile_event *e)
{
    struct times *t = user;

    if (e->index < 0 || e->index >= MOST_STEPS)
        return;
    if (!t->ns[e->index] || e->duration_ns < t->ns[e->index])
        t->ns[e->index] = e->duration_ns;
    t->bytes[e->index] = e->bytes_read + e->bytes_written;
}

/* Values between 0 and 1, whatever the float type. */
static void fill(rlx_tensor *t)
{
    uint32_t seed = 12345;
    size_t size = rlx_dtype_size(t->dtype), count = 1;

    for (int32_t i = 0; i < t->rank; i++)
        count *= (size_t)t->dim[i];
    t->bytes = count * size;
    t->data = malloc(t->bytes);
    if (!t->data) {
        fprintf(stderr, "ops: no memory for an operand\n");
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (size == 4)
            ((float *)t->data)[i] = (float)(seed >> 8) * 0x1p-24f;
        else
            ((uint16_t *)t->data)[i] = (uint16_t)(0x3800 + (seed >> 25)); /* some normal number */
    }
}

enum { MOST_OPERANDS = 8 };

/* Values for all inputs and params; how many inputs there are. */
static size_t fill_operands(rlx_model *m, rlx_binding *in, char (*name)[64])
{
    rlx_error err;
    size_t inputs = rlx_model_io_count(m, RLX_IO_INPUT),
           params = rlx_model_io_count(m, RLX_IO_PARAM);

    for (size_t i = 0; i < inputs + params; i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_tensor t = {0};
        bool param = i >= inputs;
        check(rlx_model_io(m, param ? RLX_IO_PARAM : RLX_IO_INPUT, param ? i - inputs : i, &info,
                           &err),
              "operand", &err);
        t.dtype = info.dtype;
        t.rank = info.rank;
        for (int32_t k = 0; k < t.rank; k++)
            t.dim[k] = info.dim[k];
        fill(&t);
        snprintf(name[i], 64, "%.*s", (int)info.name.len, info.name.ptr);
        if (param) {
            check(rlx_model_set_param(m, name[i], &t, &err), "param", &err);
            free(t.data);
        } else {
            in[i] = (rlx_binding){name[i], t};
        }
    }
    return inputs;
}

/* A case that is ready to run. */
struct running {
    const struct bench_case *c;
    rlx_model *model;
    rlx_session *session;
    char name[MOST_OPERANDS][64];
    rlx_binding in[MOST_OPERANDS];
    size_t inputs;
    struct times times;
};

static void open_case(rlx_context *ctx, rlx_device *dev, const struct bench_case *c,
                      struct running *r)
{
    char text[1024];
    rlx_error err;

    *r = (struct running){.c = c};
    write_graph(c->spec, text, sizeof text);
    check(rlx_model_parse(ctx, rlx_cstr(text), &r->model, &err), c->name, &err);
    r->inputs = fill_operands(r->model, r->in, r->name);
    check(rlx_session_create(r->model, dev, NULL, &r->session, &err), c->name, &err);
    rlx_session_set_profile(r->session, note_step, &r->times);
}

static void run_case(struct running *r)
{
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .inputs = r->in, .input_count = r->inputs};
    rlx_error err;

    check(rlx_session_run(r->session, &run, &err), r->c->name, &err);
}

static void close_case(struct running *r)
{
    for (size_t i = 0; i < r->inputs; i++)
        free(r->in[i].tensor.data);
    rlx_session_destroy(r->session);
    rlx_model_destroy(r->model);
}

/* Seconds of all steps, each at its fastest; and products or bytes per second. */
static double best_time(const struct running *r)
{
    double took = 0;

    for (int i = 0; i < MOST_STEPS; i++)
        took += (double)r->times.ns[i] * 1e-9;
    return took;
}

static double best_rate(const struct running *r)
{
    double bytes = 0;

    for (int i = 0; i < MOST_STEPS; i++)
        bytes += (double)r->times.bytes[i];
    return (r->c->flops > 0 ? (double)r->c->flops : bytes) / best_time(r);
}

/* The case and its measure take turns. */
static void bench(rlx_context *ctx, rlx_device *dev, const struct bench_case *c)
{
    struct running r, matmul;
    double copy = 0, end = now() + opt.seconds;

    open_case(ctx, dev, c, &r);
    open_case(ctx, dev, &cases[0], &matmul);
    for (int i = 0; i < 5 || now() < end; i++) {
        run_case(&r);
        if (c->flops > 0) {
            run_case(&matmul);
        } else if (i < 5 || r.times.bytes[0] > COPY_BYTES / 16) { /* small ones stay in the cache */
            double rate = copy_rate(copy_to, copy_from);
            copy = rate > copy ? rate : copy;
        }
    }
    double measure = c->flops > 0 ? best_rate(&matmul) : copy, rate = best_rate(&r);
    printf("%-30s %10.1f us %8.2f %-7s %6.1f%% of %s's %.1f\n", c->name, best_time(&r) * 1e6,
           rate / 1e9, c->flops > 0 ? "GFLOP/s" : "GB/s", 100 * rate / measure,
           c->flops > 0 ? "matmul" : "copy", measure / 1e9);
    fflush(stdout);
    close_case(&r);
    close_case(&matmul);
}

static bool is_wanted(const char *name, int words, char **word)
{
    for (int i = 0; i < words; i++)
        if (strstr(name, word[i]))
            return true;
    return words == 0;
}

static int parse_flags(int argc, char **argv)
{
    int at = 1;

    for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
        if (strcmp(argv[at], "--threads") == 0)
            opt.threads = atoi(argv[at + 1]);
        else if (strcmp(argv[at], "--ms") == 0)
            opt.seconds = atof(argv[at + 1]) * 1e-3;
        else if (strcmp(argv[at], "--device") == 0)
            opt.device = argv[at + 1];
        else
            break;
    }
    if ((at < argc && argv[at][0] == '-') || opt.threads < 1 || opt.threads > MOST_THREADS) {
        fprintf(stderr, "usage: ops [--threads 1..%d] [--ms N] [--device D] [WORD ..]\n",
                MOST_THREADS);
        exit(2);
    }
    return at;
}

int main(int argc, char **argv)
{
    rlx_context *ctx;
    rlx_device *dev;
    rlx_error err;
    int first = parse_flags(argc, argv);

    if (!make_copies()) {
        fprintf(stderr, "ops: no memory to copy\n");
        return 1;
    }
    check(rlx_context_create(
              RLX_VERSION, &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .threads = opt.threads},
              &ctx, &err),
          "context", &err);
    check(rlx_device_open(ctx, opt.device, &dev, &err), opt.device, &err);
    printf("%d threads on %s\n\n", opt.threads, opt.device);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (is_wanted(cases[i].name, argc - first, argv + first))
            bench(ctx, dev, &cases[i]);
    for (int i = first; i < argc; i++)
        if (strstr(argv[i], " = "))
            bench(ctx, dev, &(struct bench_case){argv[i], argv[i], 0});
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    free(copy_to);
    free(copy_from);
    return 0;
}
