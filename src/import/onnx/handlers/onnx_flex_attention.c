/* onnx_flex_attention.c: FlexAttention of ONNX, whose scores and probabilities go through graphs of
 * the node.
 *
 *     Y = prob_mod(softmax(score_mod(scale Q K^T))) V
 *
 * Without these graphs it is our attention. */
#include <math.h>

#include "import/onnx/handlers/onnx_attention.h"
#include "import/onnx/read/onnx_scope.h"

/* x through the body of that name, which may change elements but no more; x where there is none. */
static ir_value through_body(struct onnx_call *c, const char *name, ir_value x)
{
    const struct onnx_attr *a = onnx_attr(c, name);
    struct onnx_value in = {.node = x}, out = {.node = RLX_NO_VALUE};

    if (!a || onnx_failed(c))
        return x;
    in.type = *formula_type(&c->f, x);
    if (!onnx_run_body(c, a->g, &in, 1, &out, 1))
        return RLX_NO_VALUE;
    if (out.failed) {
        onnx_unsupported(c, "%s has nodes that cannot be imported", name);
        return RLX_NO_VALUE;
    }
    if (out.is_sequence || out.is_absent || !type_same(&out.type, &in.type)) {
        formula_fail(&c->f, RLX_ERROR_SHAPE, "%s changes the type or shape", name);
        return RLX_NO_VALUE;
    }
    return onnx_node_of(c->im, c->scope, &c->f, &out);
}

static ir_value written_out(struct onnx_call *c, const struct onnx_heads *h, double scale,
                            rlx_dtype in)
{
    struct formula *f = &c->f;
    int64_t each = h->q_heads / h->kv_heads;
    union ir_attr attr;

    f->dtype = in;
    ir_value q = onnx_in_groups(c, formula_cast(f, h->q, in), h->kv_heads, each);
    ir_value k = onnx_in_groups(c, formula_cast(f, h->k, in), h->kv_heads, 1);
    ir_value v = onnx_in_groups(c, formula_cast(f, h->v, in), h->kv_heads, 1);
    ir_value s = onnx_times(f, formula_matmul(f, q, k, false, true), scale);
    s = formula_reshape(f, s, RLX_LIST(h->batch, h->q_heads, h->queries, h->keys));
    s = through_body(c, "score_mod", s);
    attr_defaults(RLX_OP_softmax, &attr);
    attr.softmax.axis = 3;
    s = through_body(c, "prob_mod", formula_node(f, RLX_OP_softmax, &s, 1, &attr));
    ir_value y = formula_matmul(f, onnx_in_groups(c, s, h->kv_heads, each), v, false, false);
    return formula_reshape(f, y, RLX_LIST(h->batch, h->q_heads, h->queries, h->value_head));
}

void onnx_flex_attention(struct onnx_call *c)
{
    rlx_dtype type = onnx_type(c, 0)->dtype, in = formula_dtype(type);
    int64_t precision = onnx_int(c, "softmax_precision", 0);
    struct onnx_heads h;

    for (size_t i = 0; i < 3; i++)
        if (onnx_type(c, i)->rank != 4)
            formula_fail(&c->f, RLX_ERROR_SHAPE, "input %zu has rank %d, not 4", i,
                         onnx_type(c, i)->rank);
    h = (struct onnx_heads){.q = onnx_in(c, 0), .k = onnx_in(c, 1), .v = onnx_in(c, 2)};
    if (!onnx_measure_heads(c, &h))
        return;
    if (precision && (!onnx_dtype(precision, &in) || !dtype_is(in, CLASS_F))) {
        onnx_unsupported(c, "softmax_precision %s", onnx_dtype_name(precision));
        return;
    }
    double scale = onnx_float(c, "scale", 1 / sqrt((double)h.head));
    bool plain = !onnx_attr(c, "score_mod") && !onnx_attr(c, "prob_mod") && !precision &&
                 h.head == h.value_head;
    ir_value y =
        plain ? onnx_attend(c, &h, scale, 0, false, RLX_NO_VALUE) : written_out(c, &h, scale, in);
    onnx_give(c, 0, formula_cast(&c->f, y, type));
}
