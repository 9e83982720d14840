/* onnx_loss.c: losses of ONNX. */
#include "base/str.h"
#include "import/onnx/read/onnx_build.h"

static ir_value class_sum(struct onnx_call *c, ir_value x, rlx_op op)
{
    return formula_reduce(&c->f, op, x, RLX_LIST(1), true);
}

static ir_value log_softmax(struct onnx_call *c, ir_value x)
{
    struct formula *f = &c->f;
    ir_value centred = formula_2(f, RLX_OP_sub, x, class_sum(c, x, RLX_OP_reduce_max));
    ir_value sum = class_sum(c, formula_1(f, RLX_OP_exp, centred), RLX_OP_reduce_sum);

    return formula_2(f, RLX_OP_sub, centred, formula_1(f, RLX_OP_log, sum));
}

/* log_prob [N, C, ..], the classes wanted [N, ..] in input 1, their weights in input 2. */
static void likelihood_loss(struct onnx_call *c, ir_value log_prob)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    rlx_str reduction = onnx_text(c, "reduction", "mean");
    ir_value label = onnx_in(c, 1), zero = formula_number(f, 0);
    rlx_dtype index = onnx_type(c, 1)->dtype;
    rlx_list shape = formula_shape(onnx_type(c, 1));
    rlx_list column = formula_shape(&t);
    union ir_attr attr;

    if (t.rank < 2 || shape.count != t.rank - 1) {
        formula_fail(f, RLX_ERROR_SHAPE, "labels of rank %d for scores of rank %d", shape.count,
                     t.rank);
        return;
    }
    column.at[1] = 1;
    ir_value ignored = formula_number_of(f, index, (double)onnx_int(c, "ignore_index", -1));
    ir_value counts = onnx_attr(c, "ignore_index") ? formula_2(f, RLX_OP_ne, label, ignored)
                                                   : formula_2(f, RLX_OP_eq, label, label);
    ir_value safe = formula_where(f, counts, label, formula_number_of(f, index, 0));
    ir_value in[] = {log_prob, formula_reshape(f, safe, column)};
    attr_defaults(RLX_OP_gather_elements, &attr);
    attr.gather_elements.axis = 1;
    ir_value picked =
        formula_reshape(f, formula_node(f, RLX_OP_gather_elements, in, 2, &attr), shape);
    ir_value weight = formula_number(f, 1);
    if (onnx_has(c, 2))
        weight = formula_2(f, RLX_OP_gather, onnx_in(c, 2), safe);
    weight = formula_where(f, counts, weight, zero);
    ir_value loss = formula_1(f, RLX_OP_neg, formula_2(f, RLX_OP_mul, picked, weight));
    if (!str_eq(reduction, STR("none"))) {
        rlx_list all = onnx_all_axes(shape.count);
        loss = formula_reduce(f, RLX_OP_reduce_sum, loss, all, false);
        if (str_eq(reduction, STR("mean")))
            loss = formula_2(f, RLX_OP_div, loss,
                             formula_reduce(f, RLX_OP_reduce_sum, weight, all, false));
    }
    onnx_give(c, 0, loss);
}

void onnx_nll_loss(struct onnx_call *c)
{
    c->f.dtype = onnx_type(c, 0)->dtype;
    likelihood_loss(c, onnx_in(c, 0));
}

void onnx_softmax_cross_entropy(struct onnx_call *c)
{
    c->f.dtype = onnx_type(c, 0)->dtype;
    ir_value log_prob = log_softmax(c, onnx_in(c, 0));
    likelihood_loss(c, log_prob);
    onnx_give(c, 1, log_prob);
}
