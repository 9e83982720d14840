/* eval.c: tensors of cells, and whole graphs run on them node by node. */
#include "ir/eval/eval.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

/* ---- elements ------------------------------------------------------------------------------ */

double eval_real(const struct eval_tensor *t, int64_t k)
{
    return eval_cell_real(t->type.dtype, t->at[k]);
}

bool eval_true(const struct eval_tensor *t, int64_t k)
{
    return eval_cell_true(t->type.dtype, t->at[k]);
}

int64_t eval_index(const struct eval_tensor *t, int64_t k)
{
    if (dtype_is(t->type.dtype, CLASS_F | CLASS_C))
        return isnan(t->at[k].f) ? INT64_MIN : eval_cell_of(RLX_DTYPE_i64, t->at[k].f).i;
    if (t->type.dtype == RLX_DTYPE_u64 && t->at[k].i < 0)
        return INT64_MAX;
    return t->at[k].i;
}

int64_t eval_clamp_index(int64_t index, int64_t n)
{
    return index < 0 ? 0 : index >= n ? n - 1 : index;
}

void eval_set(struct eval_tensor *t, int64_t k, double v)
{
    t->at[k] = eval_cell_of(t->type.dtype, v);
}

/* ---- positions ----------------------------------------------------------------------------- */

int64_t eval_at(const struct eval_tensor *t, const int64_t *index)
{
    int64_t k = 0;

    for (int32_t i = 0; i < t->type.rank; i++)
        k = k * t->type.dim[i] + index[i];
    return k;
}

void eval_unflatten(const struct eval_tensor *t, int64_t k, int64_t *index)
{
    for (int32_t i = t->type.rank; i-- > 0;) {
        index[i] = k % t->type.dim[i];
        k /= t->type.dim[i];
    }
}

int64_t eval_broadcast(const struct eval_tensor *operand, const struct eval_tensor *out, int64_t k)
{
    int64_t index[RLX_MAX_RANK];
    int32_t lead = out->type.rank - operand->type.rank;

    eval_unflatten(out, k, index);
    for (int32_t i = 0; i < operand->type.rank; i++)
        if (operand->type.dim[i] == 1)
            index[lead + i] = 0;
    return eval_at(operand, index + lead);
}

struct eval_lines eval_lines(const struct eval_tensor *t, int64_t axis)
{
    struct eval_lines l = {1, t->type.dim[axis], 1};

    if (t->count == 0)
        return (struct eval_lines){0, 0, 0};
    for (int32_t i = 0; i < axis; i++)
        l.outer *= t->type.dim[i];
    for (int32_t i = (int32_t)axis + 1; i < t->type.rank; i++)
        l.inner *= t->type.dim[i];
    return l;
}

/* ---- tensors ------------------------------------------------------------------------------- */

rlx_status eval_tensor_new(struct arena *a, const struct ir_type *type, struct eval_tensor *out,
                           struct diag *d)
{
    int64_t count;
    size_t bytes = SIZE_MAX;

    if (!type_is_static(type))
        return diag_fail(d, RLX_ERROR_UNBOUND_DIM, "a value of rank %d has a size not yet known",
                         type->rank);
    if (!type_count(type, &count) || (uint64_t)count > SIZE_MAX ||
        !size_mul((size_t)count, sizeof(struct eval_cell), &bytes))
        return diag_fail(d, RLX_ERROR_LIMIT, "a value of rank %d has too many elements to hold",
                         type->rank);
    struct eval_cell *at = arena_array(a, struct eval_cell, (size_t)count);
    if (!at)
        return diag_no_memory(d, bytes);
    *out = (struct eval_tensor){.type = *type, .count = count, .at = at};
    return RLX_OK;
}

void eval_round(struct eval_tensor *t)
{
    for (int64_t k = 0; k < t->count; k++)
        t->at[k] = eval_cell_round(t->type.dtype, t->at[k]);
}

void eval_copy(struct eval_tensor *to, const struct eval_tensor *from)
{
    for (int64_t k = 0; k < to->count; k++)
        to->at[k] = from->at[k];
}

static struct eval_cell load_float(rlx_dtype t, const unsigned char *from)
{
    uint16_t half;
    float single[2] = {0, 0};
    double wide;

    switch (t) {
    case RLX_DTYPE_f64: memcpy(&wide, from, sizeof wide); break;
    case RLX_DTYPE_f16:
    case RLX_DTYPE_bf16:
        memcpy(&half, from, sizeof half);
        wide = (double)(t == RLX_DTYPE_f16 ? f16_to_f32(half) : bf16_to_f32(half));
        break;
    default:
        memcpy(single, from, rlx_dtype_size(t));
        wide = (double)single[0];
        break;
    }
    return (struct eval_cell){.f = wide, .im = (double)single[1]};
}

void eval_load(struct eval_tensor *t, const void *bytes)
{
    const unsigned char *from = bytes;
    size_t size = rlx_dtype_size(t->type.dtype);

    for (int64_t k = 0; k < t->count; k++, from += size) {
        uint64_t bits = 0;
        if (dtype_is(t->type.dtype, CLASS_F | CLASS_C)) {
            t->at[k] = load_float(t->type.dtype, from);
            continue;
        }
        for (size_t i = size; i-- > 0;)
            bits = bits << 8 | from[i];
        t->at[k] = (struct eval_cell){.i = eval_wrap(t->type.dtype, bits)};
    }
}

static void store_float(rlx_dtype t, struct eval_cell x, unsigned char *to)
{
    uint16_t half = t == RLX_DTYPE_f16 ? f64_to_f16(x.f) : f64_to_bf16(x.f);
    float single[2] = {(float)x.f, (float)x.im};

    switch (t) {
    case RLX_DTYPE_f64: memcpy(to, &x.f, sizeof x.f); break;
    case RLX_DTYPE_f16:
    case RLX_DTYPE_bf16: memcpy(to, &half, sizeof half); break;
    default: memcpy(to, single, rlx_dtype_size(t)); break;
    }
}

void eval_store(const struct eval_tensor *t, void *bytes)
{
    unsigned char *to = bytes;
    size_t size = rlx_dtype_size(t->type.dtype);

    for (int64_t k = 0; k < t->count; k++, to += size) {
        if (dtype_is(t->type.dtype, CLASS_F | CLASS_C)) {
            store_float(t->type.dtype, t->at[k], to);
            continue;
        }
        uint64_t bits = (uint64_t)eval_wrap(t->type.dtype, (uint64_t)t->at[k].i);
        for (size_t i = 0; i < size; i++)
            to[i] = (unsigned char)(bits >> (8 * i));
    }
}

/* ---- nodes and graphs ---------------------------------------------------------------------- */

static const eval_fn eval_table[FAMILY_count] = {
#define FAMILY(name, ...) [FAMILY_##name] = eval_##name,
#include "ir/ops.def"
};

eval_fn eval_fn_of(enum op_family f)
{
    return (unsigned)f < FAMILY_count ? eval_table[f] : NULL;
}

rlx_status eval_leaf(struct eval_call *c)
{
    return diag_fail(c->diag, RLX_ERROR_INTERNAL, "%s: a leaf's value is given, not computed",
                     op_info(c->op)->name);
}

rlx_status eval_const_(struct eval_call *c)
{
    uint64_t bytes = 0;

    if (!type_bytes(&c->out->type, &bytes) || bytes != c->attr->const_.data.len)
        return diag_fail(c->diag, RLX_ERROR_SIZE, "const: %zu bytes are given, %llu are needed",
                         c->attr->const_.data.len, (unsigned long long)bytes);
    eval_load(c->out, c->attr->const_.data.ptr);
    return RLX_OK;
}

static rlx_status eval_one(const struct ir_graph *g, const struct ir_node *n,
                           const struct eval_tensor *const *in, struct eval_tensor *out,
                           struct eval_tensor *state, bool sizes, struct arena *arena,
                           struct diag *d)
{
    eval_fn fn = eval_fn_of(op_info(n->op)->family);
    struct eval_call c = {
        .graph = g,
        .node = n,
        .op = n->op,
        .attr = &n->attr,
        .in_count = n->in_count,
        .in = in,
        .out = out,
        .state = state,
        .sizes = sizes,
        .arena = arena,
        .diag = d,
    };

    if (!fn)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "%s: no reference evaluation is known",
                         op_info(n->op)->name);
    TRY(fn(&c));
    if (state)
        eval_round(state);
    return RLX_OK;
}

rlx_status eval_node(const struct ir_graph *g, const struct ir_node *n,
                     const struct eval_tensor *const *in, struct eval_tensor *out,
                     struct eval_tensor *state, struct arena *arena, struct diag *d)
{
    return eval_one(g, n, in, out, state, false, arena, d);
}

rlx_status eval_node_sizes(const struct ir_graph *g, const struct ir_node *n,
                           const struct eval_tensor *const *in, struct eval_tensor *out,
                           struct eval_tensor *state, struct arena *arena, struct diag *d)
{
    return eval_one(g, n, in, out, state, true, arena, d);
}

static rlx_status take_leaf(const struct ir_node *n, const struct eval_tensor *given,
                            struct eval_tensor *out, struct arena *arena, struct diag *d)
{
    rlx_str name = ir_leaf_name(n);

    if (!given && n->op == RLX_OP_state)
        return eval_tensor_new(arena, &n->type, out, d);
    if (!given) {
        *out = (struct eval_tensor){.type = n->type, .count = -1};
        return RLX_OK;
    }
    if (given->type.dtype != n->type.dtype)
        return diag_fail(d, RLX_ERROR_DTYPE, "%s: \"%.*s\" is declared %s, but %s is given",
                         op_info(n->op)->name, STR_ARG(name), rlx_dtype_name(n->type.dtype),
                         rlx_dtype_name(given->type.dtype));
    if (!type_same(&given->type, &n->type))
        return diag_fail(d, RLX_ERROR_SIZE,
                         "%s: the value of \"%.*s\" does not have the declared shape",
                         op_info(n->op)->name, STR_ARG(name));
    *out = *given;
    return RLX_OK;
}

static rlx_status need_value(const struct ir_graph *g, ir_value v, const struct eval_tensor *value,
                             struct diag *d)
{
    if (value->count >= 0)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_MISSING_INPUT, "%s: \"%.*s\" has no value",
                     op_info(ir_node(g, v)->op)->name, STR_ARG(ir_leaf_name(ir_node(g, v))));
}

/* Node v on the results so far; scratch ends with it. */
static rlx_status run_node(const struct ir_graph *g, ir_value v, struct eval_tensor *result,
                           struct arena *scratch, struct diag *d)
{
    const struct ir_node *n = ir_node(g, v);
    size_t in_count = (size_t)n->in_count;
    const struct eval_tensor **in = arena_array(scratch, const struct eval_tensor *, in_count);
    ir_value state = ir_written_state(g, n);

    if (!in)
        return diag_no_memory(d, in_count * sizeof *in);
    for (size_t i = 0; i < in_count; i++) {
        TRY(need_value(g, n->in[i], &result[n->in[i]], d));
        in[i] = &result[n->in[i]];
    }
    TRY(eval_node(g, n, in, &result[v], state == RLX_NO_VALUE ? NULL : &result[state], scratch, d));
    eval_round(&result[v]);
    return RLX_OK;
}

rlx_status eval_graph(const struct ir_graph *g, struct eval_tensor *const *leaf,
                      struct eval_tensor *result, struct arena *arena, struct diag *d)
{
    for (size_t i = 0; i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        struct arena scratch;

        diag_at(d, op_info(n->op)->name, (int32_t)i, n->label);
        if (op_info(n->op)->family == FAMILY_leaf) {
            TRY(take_leaf(n, leaf ? leaf[i] : NULL, &result[i], arena, d));
            continue;
        }
        TRY(eval_tensor_new(arena, &n->type, &result[i], d));
        arena_init(&scratch, arena->mem);
        rlx_status s = run_node(g, (ir_value)i, result, &scratch, d);
        arena_free(&scratch);
        TRY(s);
    }
    for (size_t i = 0; i < g->output.len; i++)
        TRY(need_value(g, g->output.at[i], &result[g->output.at[i]], d));
    return RLX_OK;
}
