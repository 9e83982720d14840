/* lower_scatter.c: updates combined into rows or elements picked by index, always in the same
 * order. */
#include "lower/gpu/gpu_index_check.h"
#include "lower/gpu/move/lower_move.h"
#include "lower/gpu/order/lower_sort.h"
#include "lower/gpu/rows/lower_combine.h"

#define MIN_PIECE 8 /* updates that an invocation combines */
#define MAX_PIECE 1024

/* updates [outer, picks, width] go to y [outer, rows, width]. */
struct scatter {
    rlx_op op; /* none: the last update stays */
    struct gpu_arg updates, keys;
    uint64_t outer, picks, rows, width;
};

/* As many updates in a piece as pieces that a place may have to be joined of. It depends on nothing
 * else, so that fewer updates never need more scratch. */
static uint64_t piece_length(uint64_t picks)
{
    uint64_t length = MIN_PIECE;

    while (length < MAX_PIECE && length * length < picks)
        length++;
    return length;
}

static void add_types(struct gpu_call *c, const struct gpu_acc *a)
{
    gpu_name(c, "T", a->element);
    gpu_name(c, "A", a->type);
    gpu_const(c, "OP", a->op);
}

/* How the updates are cut: an invocation for each piece of each place. */
struct pieces {
    uint64_t length, pieces, count;
};

static struct pieces cut(const struct scatter *s)
{
    struct pieces p = {.length = piece_length(s->picks)};

    p.pieces = gpu_ceil(s->picks, p.length);
    p.count = s->outer * p.pieces * s->width;
    return p;
}

static void add_pieces(struct gpu_call *c, const struct scatter *s, const struct pieces *p)
{
    gpu_u32(c, "count", p->count);
    gpu_u32(c, "pieces", p->pieces);
    gpu_u32(c, "length", p->length);
    gpu_u32(c, "picks", s->picks);
    gpu_u32(c, "rows", s->rows);
    gpu_u32(c, "width", s->width);
}

/* y holds what the updates are combined with. */
static void combine(struct gpu_call *c, const struct scatter *s)
{
    struct gpu_sort_rows keys = {s->keys, RLX_DTYPE_u32, 1, s->picks, 1, false, false};
    struct gpu_order order = gpu_order_rows(c, &keys, s->picks);
    struct gpu_acc acc = gpu_accumulator(c, s->op, c->out->dtype);
    struct pieces p = cut(s);
    struct gpu_arg part = gpu_temp(c, p.count * 2 * acc.bytes);

    gpu_kernel(c, "scatter", "pieces");
    add_types(c, &acc);
    gpu_flag(c, "WIDE", acc.wide);
    gpu_bind(c, order.keys);
    gpu_bind(c, order.ids);
    gpu_bind(c, s->updates);
    gpu_bind(c, gpu_out(c));
    gpu_bind(c, part);
    add_pieces(c, s, &p);
    gpu_u32(c, "low", acc.start[0]);
    gpu_u32(c, "high", acc.start[1]);
    gpu_invocations(c, p.count, GPU_GROUP);
    if (p.pieces == 1)
        return;
    gpu_kernel(c, "scatter", "join_pieces");
    add_types(c, &acc);
    gpu_bind(c, order.keys);
    gpu_bind(c, part);
    gpu_bind(c, gpu_out(c));
    add_pieces(c, s, &p);
    gpu_invocations(c, p.count, GPU_GROUP);
}

/* ---- where updates go ---- */

static struct gpu_arg row_keys(struct gpu_call *c, struct gpu_arg index, rlx_dtype t,
                               uint64_t picks, const int64_t *limit, int32_t parts)
{
    struct gpu_arg keys = gpu_temp(c, picks * sizeof(uint32_t));

    if (parts == 0) { /* all go to the only row */
        gpu_zero(c, keys, RLX_DTYPE_u32);
        return keys;
    }
    if (c->check_indices)
        gpu_check_coordinates(c, index, t, picks * (uint64_t)parts, limit, parts);
    gpu_kernel(c, "scatter", "row_keys");
    gpu_index_type(c, t);
    gpu_const(c, "PARTS", parts);
    gpu_bind(c, index);
    gpu_bind(c, keys);
    gpu_u32(c, "count", picks);
    gpu_dims(c, "n", limit, parts);
    gpu_invocations(c, picks, GPU_GROUP);
    return keys;
}

static struct gpu_arg element_keys(struct gpu_call *c, int64_t axis)
{
    const struct ir_type *data = &c->in[0], *indices = &c->in[1];
    uint64_t count = gpu_count(indices);
    struct gpu_arg keys = gpu_temp(c, count * sizeof(uint32_t));

    if (c->check_indices)
        gpu_check_indices(c, gpu_in(c, 1), indices->dtype, count, 0, data->dim[axis]);
    gpu_kernel(c, "scatter", "element_keys");
    gpu_index_type(c, indices->dtype);
    gpu_const(c, "RANK", data->rank);
    gpu_const(c, "AXIS", axis);
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, keys);
    gpu_u32(c, "count", count);
    gpu_dims(c, "size", indices->dim, data->rank);
    gpu_dims(c, "n", data->dim, data->rank);
    gpu_invocations(c, count, GPU_GROUP);
    return keys;
}

/* ---- the ops ---- */

static rlx_op op_of(int32_t reduction)
{
    switch (reduction) {
    case RLX_SCATTER_REDUCTION_add: return RLX_OP_add;
    case RLX_SCATTER_REDUCTION_mul: return RLX_OP_mul;
    case RLX_SCATTER_REDUCTION_max: return RLX_OP_max;
    case RLX_SCATTER_REDUCTION_min: return RLX_OP_min;
    default: return RLX_OP_none;
    }
}

/* updates [outer.., picks.., width..] summed into zeros [outer.., rows, width..]. */
static void sum_into_zeros(struct gpu_call *c, int64_t axis)
{
    struct scatter s = {
        .op = RLX_OP_add,
        .updates = gpu_in(c, 0),
        .outer = gpu_product(c->out, 0, axis),
        .picks = gpu_count(&c->in[1]),
        .rows = (uint64_t)c->out->dim[axis],
        .width = gpu_product(c->out, axis + 1, c->out->rank),
    };

    gpu_zero(c, gpu_out(c), c->out->dtype);
    if (gpu_count(&c->in[0]) == 0 || gpu_count(c->out) == 0)
        return;
    s.keys = row_keys(c, gpu_in(c, 1), c->in[1].dtype, s.picks, &c->out->dim[axis], 1);
    combine(c, &s);
}

void gpu_lower_scatter_add(struct gpu_call *c)
{
    sum_into_zeros(c, 0);
}

void gpu_lower_gather_backward(struct gpu_call *c)
{
    sum_into_zeros(c, c->attr->gather_backward.axis);
}

void gpu_lower_scatter_nd(struct gpu_call *c)
{
    const struct ir_type *indices = &c->in[1];
    int32_t parts = (int32_t)indices->dim[indices->rank - 1];
    struct scatter s = {
        .op = op_of(c->attr->scatter_nd.reduction),
        .updates = gpu_in(c, 2),
        .outer = 1,
        .picks = gpu_product(indices, 0, indices->rank - 1),
        .rows = gpu_product(c->out, 0, parts),
        .width = gpu_product(c->out, parts, c->out->rank),
    };

    if (gpu_count(c->out) == 0)
        return;
    gpu_copy(c, gpu_in(c, 0), gpu_out(c), c->out->dtype);
    if (gpu_count(&c->in[2]) == 0)
        return;
    s.keys = row_keys(c, gpu_in(c, 1), indices->dtype, s.picks, c->out->dim, parts);
    combine(c, &s);
}

void gpu_lower_scatter_elements(struct gpu_call *c)
{
    struct scatter s = {
        .op = op_of(c->attr->scatter_elements.reduction),
        .updates = gpu_in(c, 2),
        .outer = 1,
        .picks = gpu_count(&c->in[1]),
        .rows = gpu_count(c->out),
        .width = 1,
    };

    if (gpu_count(c->out) == 0)
        return;
    gpu_copy(c, gpu_in(c, 0), gpu_out(c), c->out->dtype);
    if (s.picks == 0)
        return;
    s.keys = element_keys(c, c->attr->scatter_elements.axis);
    combine(c, &s);
}
