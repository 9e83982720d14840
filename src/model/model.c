/* model.c: a graph and the values of its params, before and while it is opened on devices. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "graph/builder.h"
#include "import/npy.h"
#include "import/onnx/read/onnx.h"
#include "ir/text/text.h"
#include "model/dims.h"
#include "model/store.h"
#include "model/weights.h"
#include "run/convert.h"

static rlx_status lay_out_params(struct rlx_model *m, struct diag *d)
{
    const struct ir_graph *g = ir_entry(m->mod);
    size_t count = 0;

    IR_EACH(n, g)
        count += n->op == RLX_OP_param;
    m->param = arena_array(&m->arena, struct model_param, count);
    if (!m->param)
        return diag_no_memory(d, count * sizeof *m->param);
    IR_EACH(n, g) {
        struct model_param *p = &m->param[m->param_count];
        if (n->op != RLX_OP_param)
            continue;
        p->node = ir_id(g, n);
        p->name = ir_leaf_name(n);
        if (!type_bytes(&n->type, &p->bytes) ||
            __builtin_add_overflow(m->weight_bytes, p->bytes, &m->weight_bytes) ||
            m->weight_bytes > INT64_MAX - STORE_ALIGNMENT)
            return diag_fail(d, RLX_ERROR_LIMIT, "the params together overflow 64 bits");
        m->weight_bytes =
            (m->weight_bytes + STORE_ALIGNMENT - 1) / STORE_ALIGNMENT * STORE_ALIGNMENT;
        m->param_count++;
    }
    m->values = (struct param_values){.param = m->param, .count = m->param_count, .version = 1};
    return RLX_OK;
}

static rlx_status name_outputs(struct rlx_model *m, struct diag *d)
{
    const struct ir_graph *g = ir_entry(m->mod);

    m->output_count = g->output.len;
    m->output_name = arena_array(&m->arena, rlx_str, g->output.len);
    if (!m->output_name)
        return diag_no_memory(d, g->output.len * sizeof(rlx_str));
    for (size_t i = 0; i < g->output.len; i++) {
        const struct ir_node *n = ir_node(g, g->output.at[i]);
        rlx_str name = n->label.len ? n->label : ir_leaf_name(n);
        for (size_t k = 0; k < i; k++)
            if (str_eq(name, m->output_name[k]))
                name.len = 0; /* taken: fall back to its number */
        if (name.len == 0)
            name = rlx_cstr(arena_printf(&m->arena, "out%zu", i));
        if (!name.ptr)
            return diag_no_memory(d, 16);
        m->output_name[i] = name;
    }
    return RLX_OK;
}

/* A leaf is used when an output or a writer depends on it. */
static rlx_status mark_uses(struct rlx_model *m, struct diag *d)
{
    const struct ir_graph *g = ir_entry(m->mod);

    m->used = arena_array(&m->arena, bool, g->node.len);
    m->variance = arena_array(&m->arena, bool, g->node.len);
    if (!m->used || !m->variance)
        return diag_no_memory(d, g->node.len);
    for (size_t i = 0; i < g->output.len; i++)
        m->used[g->output.at[i]] = true;
    for (size_t i = g->node.len; i-- > 0;) {
        const struct ir_node *n = &g->node.at[i];
        if (op_is(n->op, OP_WRITES) && ir_written_state(g, n) != RLX_NO_VALUE)
            m->used[i] = true;
        for (int32_t k = 0; m->used[i] && k < n->in_count; k++) {
            m->used[n->in[k]] = true;
            m->variance[n->in[k]] |= op_input_role(n->op, k, n->in_count) == ROLE_VARIANCE;
        }
    }
    return RLX_OK;
}

/* Does a graph besides the first draw numbers? Whatever runs one of them is taken to. */
static bool sub_graphs_draw(const struct ir_module *mod)
{
    for (size_t i = 0; i < mod->graph.len; i++)
        if (mod->graph.at[i] != ir_entry(mod))
            IR_EACH(n, mod->graph.at[i]) {
                if (op_is(n->op, OP_RANDOM))
                    return true;
            }
    return false;
}

static rlx_status mark_random(struct rlx_model *m, struct diag *d)
{
    const struct ir_graph *g = ir_entry(m->mod);
    bool inside = sub_graphs_draw(m->mod);

    m->random = arena_array(&m->arena, bool, g->node.len);
    if (!m->random)
        return diag_no_memory(d, g->node.len);
    for (size_t i = 0; i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        m->random[i] =
            op_is(n->op, OP_RANDOM) || (inside && op_info(n->op)->category == CATEGORY_CONTROL);
        for (int32_t k = 0; k < n->in_count; k++)
            m->random[i] |= m->random[n->in[k]];
    }
    return RLX_OK;
}

static void destroy(struct rlx_model *m)
{
    rlx_context *ctx = m->ctx;
    const rlx_allocator *mem = &ctx->mem;

    stores_destroy(m);
    params_free(&m->values, mem);
    for (size_t i = 0; i < m->weights.len; i++)
        shared_weights_release(m->weights.at[i]);
    vec_free(mem, &m->weights);
    model_parts_destroy(m->parts); /* which have constants of mod */
    ir_module_destroy(m->mod);
    if (m->artefact)
        m->artefact_destroy(m->artefact);
    if (m->source)
        m->close_source(m->source);
    arena_free(&m->arena);
    pthread_mutex_destroy(&m->lock);
    rlx_model *origin = m->origin;
    mem_free(mem, m, sizeof *m);
    model_release(origin);
    context_release(ctx);
}

rlx_status model_from_module(rlx_context *ctx, struct ir_module *mod, rlx_model **out,
                             struct diag *d)
{
    struct rlx_model *m;

    TRY(ir_verify(mod, d));
    TRY(ir_check_unfolded(mod, d));
    m = mem_alloc(&ctx->mem, sizeof *m);
    if (!m)
        return diag_no_memory(d, sizeof *m);
    m->ctx = context_retain(ctx);
    m->mod = mod;
    m->is_static = ir_module_is_static(mod);
    atomic_init(&m->refs, 1);
    pthread_mutex_init(&m->lock, NULL);
    arena_init(&m->arena, &ctx->mem);
    rlx_status s = lay_out_params(m, d);
    if (s == RLX_OK)
        s = name_outputs(m, d);
    if (s == RLX_OK)
        s = mark_uses(m, d);
    if (s == RLX_OK)
        s = mark_random(m, d);
    if (s != RLX_OK) {
        m->mod = NULL;
        destroy(m);
        return s;
    }
    *out = m;
    return RLX_OK;
}

rlx_status model_from_copy(const rlx_model *m, struct ir_module *mod, rlx_model **out,
                           struct diag *d)
{
    TRY(model_is_whole(m, "be rewritten", d));
    TRY(model_from_module(m->ctx, mod, out, d));
    (*out)->origin = (struct rlx_model *)m;
    model_retain((*out)->origin);
    return RLX_OK;
}

rlx_status model_create(rlx_graph *g, rlx_model **out, struct diag *d)
{
    if (g->root != g)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "a sub-graph is not a model by itself");
    if (g->first.status != RLX_OK) {
        d->first = g->first;
        d->count = 1;
        return g->first.status;
    }
    TRY(model_from_module(g->ctx, g->mod, out, d));
    g->mod = NULL;
    graph_destroy(g);
    return RLX_OK;
}

rlx_status model_parse(rlx_context *ctx, rlx_str text, const struct text_parse_options *options,
                       rlx_model **out, struct diag *d)
{
    struct ir_module *mod;

    TRY(ir_parse(text, options, &ctx->mem, &mod, d));
    rlx_status s = model_from_module(ctx, mod, out, d);
    if (s != RLX_OK)
        ir_module_destroy(mod);
    return s;
}

struct beside {
    const char *path;
    unsigned mode;
    const rlx_allocator *mem;
};

/* `npy "file"` in a text file: beside it, and no further away unless the caller follows. */
static rlx_status load_npy(void *user, rlx_str name, struct arena *arena, struct ir_type *type,
                           const void **data, struct diag *d)
{
    const struct beside *b = user;
    struct file f;

    TRY(file_open_beside(&f, b->path, name, b->mode, b->mem, d));
    rlx_status s = npy_read(f.data, f.size, arena, type, data, d);
    file_close(&f);
    return s;
}

rlx_status model_load_text(rlx_context *ctx, const char *path, struct file *f,
                           const rlx_load_desc *desc, rlx_model **out, struct diag *d)
{
    bool follow = desc && desc->follow_external;
    struct beside b = {path, follow ? FILE_READ | FILE_FOLLOW : FILE_READ, &ctx->mem};
    struct text_parse_options options = {load_npy, &b, &ctx->customs};

    TRY(model_parse(ctx, (rlx_str){(const char *)f->data, f->size}, &options, out, d));
    file_close(f);
    return RLX_OK;
}

void model_retain(struct rlx_model *m)
{
    atomic_fetch_add(&m->refs, 1);
}

void model_release(struct rlx_model *m)
{
    if (m && atomic_fetch_sub(&m->refs, 1) == 1)
        destroy(m);
}

/* ---- what is in it ---- */

static const rlx_op leaf_ops[] = {
    [RLX_IO_INPUT] = RLX_OP_input, [RLX_IO_PARAM] = RLX_OP_param, [RLX_IO_STATE] = RLX_OP_state};

static bool is_leaf(const rlx_model *m, const struct ir_node *n, rlx_io_kind kind)
{
    return n->op == leaf_ops[kind] &&
           (kind != RLX_IO_INPUT || model_is_input(m, ir_id(ir_entry(m->mod), n)));
}

size_t model_io_count(const struct rlx_model *m, rlx_io_kind kind)
{
    size_t count = 0;

    if ((unsigned)kind > RLX_IO_OUTPUT)
        return 0;
    if (kind == RLX_IO_OUTPUT)
        return m->output_count;
    IR_EACH(n, ir_entry(m->mod))
        count += is_leaf(m, n, kind);
    return count;
}

static void describe(const struct rlx_model *m, ir_value v, rlx_io_kind kind, rlx_str name,
                     rlx_io_info *out)
{
    const struct ir_type *t = ir_type_of(ir_entry(m->mod), v);

    *out = (rlx_io_info){RLX_SIZED(rlx_io_info),
                         .kind = kind,
                         .name = name,
                         .dtype = t->dtype,
                         .rank = t->rank,
                         .used = m->used[v],
                         .variance = m->variance[v],
                         .random = kind == RLX_IO_OUTPUT && m->random[v]};
    for (int32_t i = 0; i < t->rank; i++)
        out->dim[i] = dim_is_static(t->dim[i]) ? t->dim[i] : -1;
}

rlx_status model_io(const struct rlx_model *m, rlx_io_kind kind, size_t i, rlx_io_info *out,
                    struct diag *d)
{
    size_t count = model_io_count(m, kind), k = 0;

    if (i >= count)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there are %zu of that kind, no number %zu", count,
                         i);
    if (kind == RLX_IO_OUTPUT) {
        describe(m, ir_entry(m->mod)->output.at[i], kind, m->output_name[i], out);
        return RLX_OK;
    }
    IR_EACH(n, ir_entry(m->mod)) {
        if (is_leaf(m, n, kind) && k++ == i)
            describe(m, ir_id(ir_entry(m->mod), n), kind, ir_leaf_name(n), out);
    }
    return RLX_OK;
}

static rlx_status input_shape(const rlx_model *m, size_t i, const rlx_dim_size *dims, size_t count,
                              int64_t *size, rlx_tensor *out, struct diag *d)
{
    size_t symbols = dim_symbol_count(m->mod->dims), symbol;
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    ir_value v = 0;

    for (size_t k = 0; k < symbols; k++)
        size[k] = -1;
    for (size_t k = 0; k < count; k++) {
        TRY(find_dim(m->mod->dims, dims[k].name, &symbol, d));
        size[symbol] = dims[k].size;
    }
    TRY(model_io(m, RLX_IO_INPUT, i, &info, d));
    ir_find_leaf(ir_entry(m->mod), info.name, &v);
    const struct ir_type *t = ir_type_of(ir_entry(m->mod), v);
    rlx_tensor shape = {.dtype = t->dtype, .rank = t->rank};
    for (int32_t a = 0; a < t->rank; a++) {
        const char *why = NULL;
        shape.dim[a] = dim_is_static(t->dim[a])
                           ? t->dim[a]
                           : dim_eval(m->mod->dims, t->dim[a], size, symbols, &why);
        if (shape.dim[a] < 0)
            return diag_fail(d, RLX_ERROR_UNBOUND_DIM, "input \"%.*s\": axis %d has no size yet",
                             STR_ARG(info.name), a);
    }
    size_t elements;
    if (!tensor_count(&shape, &elements))
        return diag_fail(d, RLX_ERROR_LIMIT, "input \"%.*s\" would be too large",
                         STR_ARG(info.name));
    shape.bytes = elements * rlx_dtype_size(shape.dtype);
    *out = shape;
    return RLX_OK;
}

rlx_status model_input_shape(const struct rlx_model *m, size_t i, const rlx_dim_size *dims,
                             size_t dim_count, rlx_tensor *out, struct diag *d)
{
    size_t bytes = dim_symbol_count(m->mod->dims) * sizeof(int64_t);
    int64_t *size = mem_alloc(&m->ctx->mem, bytes);

    if (!size)
        return diag_no_memory(d, bytes);
    rlx_status s = input_shape(m, i, dims, dim_count, size, out, d);
    mem_free(&m->ctx->mem, size, bytes);
    return s;
}

const char *leaf_names(const struct ir_graph *g, rlx_op op, char *out, size_t size)
{
    size_t len = 0;

    snprintf(out, size, "none");
    IR_EACH(n, g) {
        if (n->op == op && len + 1 < size)
            len += (size_t)snprintf(out + len, size - len, "%s%.*s", len ? ", " : "",
                                    STR_ARG(ir_leaf_name(n)));
    }
    if (len >= size && size > 4)
        memcpy(out + size - 4, "...", 4);
    return out;
}

/* ---- params ---- */

bool tensor_count(const rlx_tensor *t, size_t *count)
{
    struct ir_type type = {.dtype = t->dtype, .rank = t->rank};
    int64_t n;

    if (t->rank < 0 || t->rank > RLX_MAX_RANK || (unsigned)t->dtype >= RLX_DTYPE_count)
        return false;
    memcpy(type.dim, t->dim, sizeof type.dim);
    if (!type_count(&type, &n) || n > INT64_MAX / 16)
        return false;
    *count = (size_t)n;
    return true;
}

/* "f32[8,16]"; no symbols are left in it. */
static const char *type_text(rlx_dtype dtype, int32_t rank, const int64_t *dim, char out[224])
{
    size_t len = (size_t)snprintf(out, 224, "%s[", rlx_dtype_name(dtype));

    for (int32_t i = 0; i < rank; i++)
        len += (size_t)snprintf(out + len, 224 - len, "%s%lld", i ? "," : "", (long long)dim[i]);
    snprintf(out + len, 224 - len, "]");
    return out;
}

static rlx_status refuse_count(const rlx_tensor *t, const struct ir_type *type, const char *what,
                               rlx_str name, struct diag *d)
{
    char want[224], given[224];

    return diag_fail(d, RLX_ERROR_SIZE,
                     "%s \"%.*s\": %s is wanted, %s was given: another number "
                     "of elements",
                     what, STR_ARG(name), type_text(type->dtype, type->rank, type->dim, want),
                     type_text(t->dtype, t->rank, t->dim, given));
}

rlx_status tensor_check(const rlx_tensor *t, const struct ir_type *type, const char *what,
                        rlx_str name, struct diag *d)
{
    size_t count;
    int64_t want;

    if ((unsigned)t->dtype >= RLX_DTYPE_count)
        return diag_fail(d, RLX_ERROR_DTYPE, "%s \"%.*s\": there is no element type %d", what,
                         STR_ARG(name), (int)t->dtype);
    if (!convert_allowed(type->dtype, t->dtype))
        return diag_fail(d, RLX_ERROR_DTYPE, "%s \"%.*s\" is %s, %s cannot become that", what,
                         STR_ARG(name), rlx_dtype_name(type->dtype), rlx_dtype_name(t->dtype));
    if (!tensor_count(t, &count) || !type_count(type, &want))
        return diag_fail(d, RLX_ERROR_SIZE, "%s \"%.*s\": the tensor's rank or dims make no sense",
                         what, STR_ARG(name));
    if (count != (size_t)want)
        return refuse_count(t, type, what, name, d);
    if (t->bytes != count * rlx_dtype_size(t->dtype))
        return diag_fail(d, RLX_ERROR_SIZE, "%s \"%.*s\" needs %zu bytes of %s, %zu were given",
                         what, STR_ARG(name), count * rlx_dtype_size(t->dtype),
                         rlx_dtype_name(t->dtype), t->bytes);
    if (count && !t->data)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s \"%.*s\": data is NULL", what, STR_ARG(name));
    return RLX_OK;
}

rlx_status leaf_check(const struct rlx_model *m, const rlx_tensor *t, const struct ir_type *type,
                      const char *what, rlx_str name, struct diag *d)
{
    TRY(tensor_check(t, type, what, name, d));
    if (t->rank != type->rank || memcmp(t->dim, type->dim, (size_t)t->rank * sizeof *t->dim) != 0)
        return refuse_shape(m, what, name, type, t, d);
    return RLX_OK;
}

rlx_status model_find_param(const struct rlx_model *m, rlx_str name, size_t *out, struct diag *d)
{
    for (size_t i = 0; i < m->param_count; i++) {
        if (str_eq(m->param[i].name, name)) {
            *out = i;
            return RLX_OK;
        }
    }
    return refuse_leaf(m, "param", RLX_OP_param, name, d);
}

bool model_has_param(const struct rlx_model *m, rlx_str name)
{
    for (size_t i = 0; i < m->param_count; i++)
        if (str_eq(m->param[i].name, name))
            return m->param[i].changed != 0;
    return false;
}

rlx_status model_need_open(struct rlx_model *m, struct diag *d)
{
    pthread_mutex_lock(&m->lock);
    bool fixed = m->has_session;
    pthread_mutex_unlock(&m->lock);
    if (fixed)
        return diag_fail(d, RLX_ERROR_STATE,
                         "the model has a session; set params there from now on");
    return RLX_OK;
}

rlx_status model_get_param(rlx_model *m, const char *name, rlx_tensor *value, struct diag *d)
{
    size_t i = 0;

    TRY(model_find_param(m, rlx_cstr(name), &i, d));
    const struct model_param *p = &m->values.param[i];
    pthread_mutex_lock(&m->lock);
    rlx_status status =
        param_read(p, ir_type_of(ir_entry(m->mod), p->node), &m->ctx->mem, value, d);
    pthread_mutex_unlock(&m->lock);
    return status;
}

rlx_status model_set_param(rlx_model *m, const char *name, const rlx_tensor *value, struct diag *d)
{
    size_t i = 0, count;
    void *data;

    TRY(model_need_open(m, d));
    TRY(model_find_param(m, rlx_cstr(name), &i, d));
    const struct ir_type *type = ir_type_of(ir_entry(m->mod), m->param[i].node);
    TRY(leaf_check(m, value, type, "param", rlx_cstr(name), d));
    TRY(param_room(&m->param[i], &m->ctx->mem, &data, d));
    if (tensor_count(value, &count) && count)
        convert(type->dtype, data, value->dtype, value->data, count);
    param_take(&m->values, i, data, PARAM_OWN, &m->ctx->mem);
    return RLX_OK;
}
