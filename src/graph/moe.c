/* moe.c: the choice of experts and a layer of them, built from ops (rlx/moe.h).
 *
 * Every row of x is repeated once per expert that it goes to; grouped_matmul gives each copy its
 * own matrix, and the copies' results are weighed and summed:
 *
 *     x [.., d] -> [m, d] -> [m, k, d] -> [m k, d] -> experts -> [m k, d] -> [m, k, d] -> [m, d] */
#include "rlx/moe.h"

#include <math.h>

#include "graph/builder.h"

/* What a sum of weights is divided by at least: the smallest normal f16. */
#define LEAST_SUM 6.1035e-5

static bool type_of(rlx_graph *g, rlx_value v, const char *what, rlx_dtype *dtype, rlx_list *shape)
{
    if (rlx_value_type(g, v, dtype, shape, NULL) != RLX_OK) {
        build_fail(g, RLX_ERROR_GRAPH, "%s is not a node of this graph", what);
        return false;
    }
    if (!dtype_is(*dtype, CLASS_F)) {
        build_fail(g, RLX_ERROR_DTYPE, "%s must be floats, not %s", what, rlx_dtype_name(*dtype));
        return false;
    }
    if (shape->count < 1) {
        build_fail(g, RLX_ERROR_SHAPE, "%s must have at least one axis", what);
        return false;
    }
    return true;
}

rlx_gate rlx_topk_gate(rlx_graph *g, rlx_value logits, int64_t k, bool normalise, float scale)
{
    rlx_gate gate = {RLX_NO_VALUE, RLX_NO_VALUE};
    rlx_dtype given;
    rlx_list shape;

    if (!g || !type_of(g, logits, "topk_gate: logits", &given, &shape))
        return gate;
    if (k < 1) {
        build_fail(g, RLX_ERROR_ATTRIBUTE, "topk_gate: k is %lld; it must be at least 1",
                   (long long)k);
        return gate;
    }
    if (!isfinite(scale)) {
        build_fail(g, RLX_ERROR_ATTRIBUTE, "topk_gate: scale is %g; it must be finite",
                   (double)scale);
        return gate;
    }
    rlx_dtype wide = given == RLX_DTYPE_f64 ? RLX_DTYPE_f64 : RLX_DTYPE_f32;
    rlx_value p = rlx_softmax(g, rlx_cast(g, logits, wide), -1);
    rlx_value ids = rlx_topk(g, p, k, -1, RLX_TOPK_RESULT_indices, RLX_DTYPE_i32);
    rlx_value w = rlx_topk(g, p, k, -1, RLX_TOPK_RESULT_values, RLX_DTYPE_i32);
    if (normalise) {
        rlx_value sum = rlx_reduce_sum(g, w, rlx_list_of(1, (const int64_t[]){-1}), true);
        w = rlx_div(g, w, rlx_max(g, sum, rlx_scalar(g, sum, LEAST_SUM)));
    }
    if (scale != 1)
        w = rlx_mul(g, w, rlx_scalar(g, w, (double)scale));
    if (ids != RLX_NO_VALUE && w != RLX_NO_VALUE)
        gate = (rlx_gate){ids, w};
    return gate;
}

rlx_value rlx_moe_ffn(rlx_graph *g, rlx_value x, rlx_gate gate, rlx_value w_gate, rlx_value w_up,
                      rlx_value w_down)
{
    rlx_dtype dtype, weight_dtype;
    rlx_list shape, weight_shape;

    if (!g || !type_of(g, x, "moe_ffn: x", &dtype, &shape) ||
        !type_of(g, gate.weights, "moe_ffn: the gate's weights", &weight_dtype, &weight_shape))
        return RLX_NO_VALUE;
    rlx_dim d = shape.at[shape.count - 1], k = weight_shape.at[weight_shape.count - 1];
    rlx_value row = rlx_reshape(g, x, RLX_LIST(RLX_DIM_INFER, 1, d));
    rlx_value each = rlx_expand(g, row, RLX_LIST(RLX_DIM_INFER, k, d));
    rlx_value in = rlx_reshape(g, each, RLX_LIST(RLX_DIM_INFER, d));
    rlx_value id = rlx_reshape(g, gate.ids, RLX_LIST(RLX_DIM_INFER));
    rlx_value weight = rlx_reshape(g, gate.weights, RLX_LIST(RLX_DIM_INFER, k, 1));

    rlx_value open = rlx_silu(g, rlx_grouped_matmul(g, in, w_gate, id));
    rlx_value hidden = rlx_mul(g, open, rlx_grouped_matmul(g, in, w_up, id));
    rlx_value out = rlx_grouped_matmul(g, hidden, w_down, id);
    rlx_value weighed = rlx_mul(g, rlx_reshape(g, out, RLX_LIST(RLX_DIM_INFER, k, d)), weight);
    rlx_value sum = rlx_reduce_sum(g, weighed, RLX_LIST(1), false);
    return rlx_reshape(g, rlx_cast(g, sum, dtype), shape);
}
