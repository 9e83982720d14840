/* onnx_write_reduce.c: over axes, and in order along one. */
#include <math.h>

#include "import/onnx/write/onnx_emit.h"

/* ---- reductions ---- */

/* The extreme of nothing is the end of the type it was computed in; of the narrow one here. */
static rlx_str within(struct emit *e, rlx_str y, rlx_dtype wide, rlx_dtype t)
{
    int bits = 8 * (int)rlx_dtype_size(t), sign = dtype_is(t, CLASS_I);

    return emit_3(e, "Clip", y, emit_number(e, wide, sign ? -ldexp(1, bits - 1) : 0),
                  emit_number(e, wide, ldexp(1, bits - sign) - 1));
}

/* ONNX's reductions lack 8- or 16-bit integers. */
void write_reduce(struct emit *e)
{
    static const char *const names[] = {[RLX_OP_reduce_sum] = "ReduceSum",
                                        [RLX_OP_reduce_mean] = "ReduceMean",
                                        [RLX_OP_reduce_max] = "ReduceMax",
                                        [RLX_OP_reduce_min] = "ReduceMin",
                                        [RLX_OP_reduce_prod] = "ReduceProd"};
    const struct attr_reduce *a = &e->n->attr.reduce;
    rlx_dtype t = e->n->type.dtype, wide = emit_wide(t);
    bool extreme = e->n->op == RLX_OP_reduce_max || e->n->op == RLX_OP_reduce_min;

    if (a->axes.count == 0) {
        emit_give(e, e->in[0]);
        return;
    }
    rlx_str axes = emit_i64s(e, a->axes.at, (size_t)a->axes.count);
    rlx_str y = emit_2(e, names[e->n->op], emit_cast(e, e->in[0], t, wide), axes);
    emit_int(e, "keepdims", a->keep_dim);
    if (extreme && wide != t)
        y = within(e, y, wide, t);
    emit_give(e, emit_cast(e, y, wide, t));
}

void write_softmax(struct emit *e)
{
    rlx_str y = emit_1(e, "Softmax", e->in[0]);

    emit_int(e, "axis", e->n->attr.softmax.axis);
    emit_give(e, y);
}

/* ---- order ---- */

void write_arg_extreme(struct emit *e)
{
    const struct attr_arg_extreme *a = &e->n->attr.arg_extreme;
    rlx_dtype t = emit_type(e, 0)->dtype;
    rlx_str x = t == RLX_DTYPE_bool ? emit_cast(e, e->in[0], t, RLX_DTYPE_u8) : e->in[0];
    rlx_str y = emit_1(e, e->n->op == RLX_OP_argmax ? "ArgMax" : "ArgMin", x);

    emit_int(e, "axis", a->axis);
    emit_int(e, "keepdims", a->keep_dim);
    emit_give(e, emit_cast(e, y, RLX_DTYPE_i64, e->n->type.dtype));
}

/* The first k in order, or where they were. */
static void write_order(struct emit *e, rlx_str k, int64_t axis, bool largest, bool indices)
{
    rlx_dtype t = emit_type(e, 0)->dtype, taken = t == RLX_DTYPE_bf16 ? RLX_DTYPE_f32 : t;
    rlx_str out[2];

    taken = t == RLX_DTYPE_bool ? RLX_DTYPE_u8 : taken;
    const rlx_str in[] = {emit_cast(e, e->in[0], t, taken), k};
    emit_outputs(e, "TopK", in, 2, out, 2, 3); /* neither may be left out */
    emit_int(e, "axis", axis);
    emit_int(e, "largest", largest);
    emit_give(e, indices ? emit_cast(e, out[1], RLX_DTYPE_i64, e->n->type.dtype)
                         : emit_cast(e, out[0], taken, t));
}

void write_topk(struct emit *e)
{
    const struct attr_topk *a = &e->n->attr.topk;
    bool indices = a->result == RLX_TOPK_RESULT_indices;

    write_order(e, emit_i64(e, a->k), a->axis, true, indices);
}

void write_sort(struct emit *e)
{
    const struct attr_sort *a = &e->n->attr.sort;

    write_order(e, emit_dim(e, e->n->type.dim[a->axis]), a->axis, a->descending, false);
}

void write_argsort(struct emit *e)
{
    const struct attr_argsort *a = &e->n->attr.argsort;

    write_order(e, emit_dim(e, e->n->type.dim[a->axis]), a->axis, a->descending, true);
}

/* ---- running ---- */

static void write_running_sum(struct emit *e, int64_t axis, bool exclusive, bool reverse)
{
    rlx_dtype t = e->n->type.dtype, wide = emit_wide(t);
    rlx_str x = emit_cast(e, e->in[0], t, wide);
    rlx_str y = emit_2(e, "CumSum", x, emit_number(e, RLX_DTYPE_i64, (double)axis));

    emit_int(e, "exclusive", exclusive);
    emit_int(e, "reverse", reverse);
    emit_give(e, emit_cast(e, y, wide, t));
}

void write_cumsum(struct emit *e)
{
    write_running_sum(e, e->n->attr.cumulative.axis, e->n->attr.cumulative.exclusive, false);
}

void write_cumsum_backward(struct emit *e)
{
    write_running_sum(e, e->n->attr.cumsum_backward.axis, e->n->attr.cumsum_backward.exclusive,
                      true);
}

/* One slice after the other: carried is what came before, `op` puts the next one to it. */
static void write_running(struct emit *e, const char *op, double start)
{
    const struct attr_cumulative *a = &e->n->attr.cumulative;
    struct ir_type x = *emit_type(e, 0), slice = {.dtype = emit_up_type(e), .rank = x.rank - 1};
    struct onnx_graph *body = emit_graph_new(e, "running");
    struct emit within = *e;
    int32_t k = 0;

    if (x.dim[a->axis] == 0) { /* a Scan of no rounds has no shape to give */
        emit_give(e, emit_1(e, "Identity", e->in[0]));
        return;
    }
    for (int32_t i = 0; i < x.rank; i++)
        if (i != a->axis)
            slice.dim[k++] = x.dim[i];
    if (!body)
        return;
    within.to = body;
    rlx_str before = emit_graph_input(e, body, "carried", &slice);
    rlx_str next = emit_graph_input(e, body, "slice", &slice);
    rlx_str after = emit_2(&within, op, before, next);
    emit_graph_output(e, body, after, &slice);
    emit_graph_output(e, body, a->exclusive ? before : after, &slice);

    rlx_list shape = rlx_list_of(slice.rank, slice.dim);
    const rlx_str in[] = {emit_expand(e, emit_number(e, slice.dtype, start), shape), emit_up(e, 0)};
    rlx_str out[2];
    emit_outputs(e, "Scan", in, 2, out, 2, 3);
    emit_graph(e, "body", body);
    emit_int(e, "num_scan_inputs", 1);
    emit_ints(e, "scan_input_axes", &a->axis, 1);
    emit_ints(e, "scan_output_axes", &a->axis, 1);
    emit_give_down(e, out[1]);
}

void write_cumprod(struct emit *e)
{
    write_running(e, "Mul", 1);
}

/* The least there is of the type. */
void write_cummax(struct emit *e)
{
    rlx_dtype t = e->n->type.dtype;
    int bits = 8 * (int)rlx_dtype_size(t);

    write_running(e, "Max",
                  dtype_is(t, CLASS_F)   ? -INFINITY
                  : dtype_is(t, CLASS_I) ? -ldexp(1, bits - 1)
                                         : 0);
}

/* ---- losses ---- */

/* Any label outside of the classes marks a row that costs nothing; ONNX has one such label. */
void write_cross_entropy_labels(struct emit *e)
{
    rlx_dtype t = RLX_DTYPE_i64;

    if (emit_type(e, 0)->dim[1] == 0) {
        emit_refuse(e, "there are no classes");
        return;
    }
    rlx_str label = emit_cast(e, e->in[1], emit_type(e, 1)->dtype, t), none = emit_number(e, t, -1);
    rlx_str below = emit_reshape(e, emit_dim(e, emit_type(e, 0)->dim[1]), RLX_EMPTY);
    rlx_str valid =
        emit_2(e, "And", emit_2(e, "Greater", label, none), emit_2(e, "Less", label, below));
    rlx_str y =
        emit_2(e, "SoftmaxCrossEntropyLoss", e->in[0], emit_3(e, "Where", valid, label, none));

    emit_text(e, "reduction", "none");
    emit_int(e, "ignore_index", -1);
    emit_give(e, y);
}

void write_cross_entropy(struct emit *e)
{
    rlx_str logs = emit_1(e, "LogSoftmax", emit_up(e, 0));

    emit_int(e, "axis", -1);
    rlx_str y = emit_2(e, "ReduceSum", emit_2(e, "Mul", emit_up(e, 1), logs), emit_i64(e, -1));
    emit_int(e, "keepdims", 0);
    emit_give_down(e, emit_1(e, "Neg", y));
}
