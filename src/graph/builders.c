/* builders.c: what rlx/ops.h declares; each gathers its arguments for build_node. */
/* Made by tools/gen-ops from src/ir/ops.def and src/ir/enums.def: edit those. */
#include "graph/builder.h"

rlx_value rlx_add(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_add, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_sub(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_sub, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_mul(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_mul, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_div(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_div, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_max(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_max, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_min(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_min, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_pow(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_pow, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_mod(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_mod, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_atan2(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_atan2, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_bit_and(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_bit_and, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_bit_or(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_bit_or, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_bit_xor(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_bit_xor, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_shl(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_shl, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_shr(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_shr, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_eq(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_eq, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_ne(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_ne, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_lt(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_lt, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_le(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_le, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_gt(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_gt, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_ge(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_ge, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_relu(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_relu, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_sigmoid(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_sigmoid, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_tanh(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_tanh, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_exp(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_exp, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_log(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_log, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_sqrt(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_sqrt, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_rsqrt(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_rsqrt, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_neg(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_neg, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_abs(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_abs, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_gelu(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_gelu, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_gelu_approx(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_gelu_approx, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_silu(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_silu, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_round(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_round, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_sin(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_sin, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_cos(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_cos, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_tan(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_tan, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_atan(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_atan, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_recip(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_recip, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_floor(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_floor, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_ceil(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_ceil, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_sign(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_sign, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_softplus(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_softplus, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_elu(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_elu, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_erf(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_erf, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_hard_swish(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_hard_swish, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_hard_sigmoid(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_hard_sigmoid, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_mish(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_mish, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_softsign(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_softsign, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_log_sigmoid(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_log_sigmoid, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_not(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_not, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_cast(rlx_graph *g, rlx_value x, rlx_dtype to)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_cast, &attr);
    attr.cast.to = to;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_cast, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_bitcast(rlx_graph *g, rlx_value x, rlx_dtype to)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_bitcast, &attr);
    attr.bitcast.to = to;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_bitcast, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_where(rlx_graph *g, rlx_value cond, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {cond, a, b};
    return build_node(g, RLX_OP_where, in, 3, 0u, NULL, 0, NULL);
}

rlx_value rlx_clamp(rlx_graph *g, rlx_value x, double min, double max)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_clamp, &attr);
    attr.clamp.min = min;
    attr.clamp.max = max;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_clamp, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_fma(rlx_graph *g, rlx_value a, rlx_value b, rlx_value c)
{
    const rlx_value in[] = {a, b, c};
    return build_node(g, RLX_OP_fma, in, 3, 0u, NULL, 0, NULL);
}

rlx_value rlx_stop_gradient(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_stop_gradient, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_complex_norm_sq(rlx_graph *g, rlx_value z)
{
    const rlx_value in[] = {z};
    return build_node(g, RLX_OP_complex_norm_sq, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_conjugate(rlx_graph *g, rlx_value z)
{
    const rlx_value in[] = {z};
    return build_node(g, RLX_OP_conjugate, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_reshape(rlx_graph *g, rlx_value x, rlx_list shape)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_reshape, &attr);
    attr.reshape.shape = shape;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_reshape, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_transpose(rlx_graph *g, rlx_value x, rlx_list perm)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_transpose, &attr);
    attr.transpose.perm = perm;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_transpose, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_narrow(rlx_graph *g, rlx_value x, int64_t axis, rlx_dim start, rlx_dim len)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_narrow, &attr);
    attr.narrow.axis = axis;
    attr.narrow.start = start;
    attr.narrow.len = len;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_narrow, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_concat(rlx_graph *g, const rlx_value *parts, size_t parts_count, int64_t axis)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_concat, &attr);
    attr.concat.axis = axis;
    return build_node(g, RLX_OP_concat, NULL, 0, 0u, parts, parts_count, &attr);
}

rlx_value rlx_expand(rlx_graph *g, rlx_value x, rlx_list shape)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_expand, &attr);
    attr.expand.shape = shape;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_expand, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_slice(rlx_graph *g, rlx_value x, int64_t axis, rlx_dim start, rlx_dim len,
                    int64_t step)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_slice, &attr);
    attr.slice.axis = axis;
    attr.slice.start = start;
    attr.slice.len = len;
    attr.slice.step = step;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_slice, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_reverse(rlx_graph *g, rlx_value x, rlx_list axes)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_reverse, &attr);
    attr.reverse.axes = axes;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_reverse, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_pad(rlx_graph *g, rlx_value x, rlx_list before, rlx_list after, rlx_pad_mode mode,
                  double value)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_pad, &attr);
    attr.pad.before = before;
    attr.pad.after = after;
    attr.pad.mode = (int32_t)mode;
    attr.pad.value = value;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_pad, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_tile(rlx_graph *g, rlx_value x, rlx_list reps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_tile, &attr);
    attr.tile.reps = reps;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_tile, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_trilu(rlx_graph *g, rlx_value x, bool upper, int64_t diagonal)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_trilu, &attr);
    attr.trilu.upper = upper;
    attr.trilu.diagonal = diagonal;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_trilu, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_resize_nearest_2x(rlx_graph *g, rlx_value x)
{
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_resize_nearest_2x, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_interpolate_3d(rlx_graph *g, rlx_value x, rlx_list size)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_interpolate_3d, &attr);
    attr.interpolate_3d.size = size;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_interpolate_3d, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_gather(rlx_graph *g, rlx_value table, rlx_value indices, int64_t axis)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_gather, &attr);
    attr.gather.axis = axis;
    const rlx_value in[] = {table, indices};
    return build_node(g, RLX_OP_gather, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_scatter_add(rlx_graph *g, rlx_value updates, rlx_value indices, rlx_dim out_dim)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_scatter_add, &attr);
    attr.scatter_add.out_dim = out_dim;
    const rlx_value in[] = {updates, indices};
    return build_node(g, RLX_OP_scatter_add, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_gather_elements(rlx_graph *g, rlx_value data, rlx_value indices, int64_t axis)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_gather_elements, &attr);
    attr.gather_elements.axis = axis;
    const rlx_value in[] = {data, indices};
    return build_node(g, RLX_OP_gather_elements, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_gather_nd(rlx_graph *g, rlx_value data, rlx_value indices, int64_t batch_dims)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_gather_nd, &attr);
    attr.gather_nd.batch_dims = batch_dims;
    const rlx_value in[] = {data, indices};
    return build_node(g, RLX_OP_gather_nd, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_scatter_elements(rlx_graph *g, rlx_value data, rlx_value indices, rlx_value updates,
                            int64_t axis, rlx_scatter_reduction reduction)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_scatter_elements, &attr);
    attr.scatter_elements.axis = axis;
    attr.scatter_elements.reduction = (int32_t)reduction;
    const rlx_value in[] = {data, indices, updates};
    return build_node(g, RLX_OP_scatter_elements, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_scatter_nd(rlx_graph *g, rlx_value data, rlx_value indices, rlx_value updates,
                         rlx_scatter_reduction reduction)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_scatter_nd, &attr);
    attr.scatter_nd.reduction = (int32_t)reduction;
    const rlx_value in[] = {data, indices, updates};
    return build_node(g, RLX_OP_scatter_nd, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_cache_append(rlx_graph *g, rlx_value state, rlx_value rows, rlx_value position,
                           int64_t axis)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_cache_append, &attr);
    attr.cache_append.axis = axis;
    const rlx_value in[] = {state, rows, position};
    return build_node(g, RLX_OP_cache_append, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_reduce_sum(rlx_graph *g, rlx_value x, rlx_list axes, bool keep_dim)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_reduce_sum, &attr);
    attr.reduce.axes = axes;
    attr.reduce.keep_dim = keep_dim;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_reduce_sum, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_reduce_mean(rlx_graph *g, rlx_value x, rlx_list axes, bool keep_dim)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_reduce_mean, &attr);
    attr.reduce.axes = axes;
    attr.reduce.keep_dim = keep_dim;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_reduce_mean, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_reduce_max(rlx_graph *g, rlx_value x, rlx_list axes, bool keep_dim)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_reduce_max, &attr);
    attr.reduce.axes = axes;
    attr.reduce.keep_dim = keep_dim;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_reduce_max, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_reduce_min(rlx_graph *g, rlx_value x, rlx_list axes, bool keep_dim)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_reduce_min, &attr);
    attr.reduce.axes = axes;
    attr.reduce.keep_dim = keep_dim;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_reduce_min, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_reduce_prod(rlx_graph *g, rlx_value x, rlx_list axes, bool keep_dim)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_reduce_prod, &attr);
    attr.reduce.axes = axes;
    attr.reduce.keep_dim = keep_dim;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_reduce_prod, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_argmax(rlx_graph *g, rlx_value x, int64_t axis, bool keep_dim, rlx_dtype index_dtype)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_argmax, &attr);
    attr.arg_extreme.axis = axis;
    attr.arg_extreme.keep_dim = keep_dim;
    attr.arg_extreme.index_dtype = index_dtype;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_argmax, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_argmin(rlx_graph *g, rlx_value x, int64_t axis, bool keep_dim, rlx_dtype index_dtype)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_argmin, &attr);
    attr.arg_extreme.axis = axis;
    attr.arg_extreme.keep_dim = keep_dim;
    attr.arg_extreme.index_dtype = index_dtype;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_argmin, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_topk(rlx_graph *g, rlx_value x, int64_t k, int64_t axis, rlx_topk_result result,
                   rlx_dtype index_dtype)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_topk, &attr);
    attr.topk.k = k;
    attr.topk.axis = axis;
    attr.topk.result = (int32_t)result;
    attr.topk.index_dtype = index_dtype;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_topk, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_sort(rlx_graph *g, rlx_value x, int64_t axis, bool descending)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_sort, &attr);
    attr.sort.axis = axis;
    attr.sort.descending = descending;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_sort, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_argsort(rlx_graph *g, rlx_value x, int64_t axis, bool descending,
                      rlx_dtype index_dtype)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_argsort, &attr);
    attr.argsort.axis = axis;
    attr.argsort.descending = descending;
    attr.argsort.index_dtype = index_dtype;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_argsort, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_softmax(rlx_graph *g, rlx_value x, int64_t axis)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_softmax, &attr);
    attr.softmax.axis = axis;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_softmax, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_cumsum(rlx_graph *g, rlx_value x, int64_t axis, bool exclusive)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_cumsum, &attr);
    attr.cumulative.axis = axis;
    attr.cumulative.exclusive = exclusive;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_cumsum, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_cumprod(rlx_graph *g, rlx_value x, int64_t axis, bool exclusive)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_cumprod, &attr);
    attr.cumulative.axis = axis;
    attr.cumulative.exclusive = exclusive;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_cumprod, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_cummax(rlx_graph *g, rlx_value x, int64_t axis, bool exclusive)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_cummax, &attr);
    attr.cumulative.axis = axis;
    attr.cumulative.exclusive = exclusive;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_cummax, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_sample(rlx_graph *g, rlx_value logits, rlx_value offset, const rlx_sample_desc *desc)
{
    rlx_sample_desc d = RLX_SAMPLE_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_sample_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_sample, &attr);
    attr.sample.top_k = d.top_k;
    attr.sample.top_p = d.top_p;
    attr.sample.min_p = d.min_p;
    attr.sample.temperature = d.temperature;
    attr.sample.seed = d.seed;
    attr.sample.index_dtype = d.index_dtype;
    const rlx_value in[] = {logits, offset};
    return build_node(g, RLX_OP_sample, in, 2, 2u, NULL, 0, &attr);
}

rlx_value rlx_rng_normal(rlx_graph *g, rlx_value offset, rlx_list shape, float mean, float scale,
                         uint64_t seed)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_rng_normal, &attr);
    attr.rng_normal.shape = shape;
    attr.rng_normal.mean = mean;
    attr.rng_normal.scale = scale;
    attr.rng_normal.seed = seed;
    const rlx_value in[] = {offset};
    return build_node(g, RLX_OP_rng_normal, in, 1, 1u, NULL, 0, &attr);
}

rlx_value rlx_rng_uniform(rlx_graph *g, rlx_value offset, rlx_list shape, float low, float high,
                          uint64_t seed)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_rng_uniform, &attr);
    attr.rng_uniform.shape = shape;
    attr.rng_uniform.low = low;
    attr.rng_uniform.high = high;
    attr.rng_uniform.seed = seed;
    const rlx_value in[] = {offset};
    return build_node(g, RLX_OP_rng_uniform, in, 1, 1u, NULL, 0, &attr);
}

rlx_value rlx_matmul(rlx_graph *g, rlx_value a, rlx_value b, bool transpose_a, bool transpose_b)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_matmul, &attr);
    attr.matmul.transpose_a = transpose_a;
    attr.matmul.transpose_b = transpose_b;
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_matmul, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_dot_general(rlx_graph *g, rlx_value a, rlx_value b, rlx_list lhs_contracting,
                          rlx_list rhs_contracting, rlx_list lhs_batch, rlx_list rhs_batch)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_dot_general, &attr);
    attr.dot_general.lhs_contracting = lhs_contracting;
    attr.dot_general.rhs_contracting = rhs_contracting;
    attr.dot_general.lhs_batch = lhs_batch;
    attr.dot_general.rhs_batch = rhs_batch;
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_dot_general, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_grouped_matmul(rlx_graph *g, rlx_value x, rlx_value w, rlx_value expert)
{
    const rlx_value in[] = {x, w, expert};
    return build_node(g, RLX_OP_grouped_matmul, in, 3, 0u, NULL, 0, NULL);
}

rlx_value rlx_lora_matmul(rlx_graph *g, rlx_value x, rlx_value w, rlx_value a, rlx_value b,
                          float scale)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_lora_matmul, &attr);
    attr.lora_matmul.scale = scale;
    const rlx_value in[] = {x, w, a, b};
    return build_node(g, RLX_OP_lora_matmul, in, 4, 0u, NULL, 0, &attr);
}

rlx_value rlx_dense_solve(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_dense_solve, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_batched_dense_solve(rlx_graph *g, rlx_value a, rlx_value b)
{
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_batched_dense_solve, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_cholesky(rlx_graph *g, rlx_value a)
{
    const rlx_value in[] = {a};
    return build_node(g, RLX_OP_cholesky, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_triangular_solve(rlx_graph *g, rlx_value a, rlx_value b, bool lower, bool transpose)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_triangular_solve, &attr);
    attr.triangular_solve.lower = lower;
    attr.triangular_solve.transpose = transpose;
    const rlx_value in[] = {a, b};
    return build_node(g, RLX_OP_triangular_solve, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_det(rlx_graph *g, rlx_value a)
{
    const rlx_value in[] = {a};
    return build_node(g, RLX_OP_det, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_logdet(rlx_graph *g, rlx_value a)
{
    const rlx_value in[] = {a};
    return build_node(g, RLX_OP_logdet, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_svd(rlx_graph *g, rlx_value a, rlx_svd_part part)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_svd, &attr);
    attr.svd.part = (int32_t)part;
    const rlx_value in[] = {a};
    return build_node(g, RLX_OP_svd, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_qr(rlx_graph *g, rlx_value a, rlx_qr_part part)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_qr, &attr);
    attr.qr.part = (int32_t)part;
    const rlx_value in[] = {a};
    return build_node(g, RLX_OP_qr, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_eigh(rlx_graph *g, rlx_value a)
{
    const rlx_value in[] = {a};
    return build_node(g, RLX_OP_eigh, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_eigh_batch(rlx_graph *g, rlx_value a)
{
    const rlx_value in[] = {a};
    return build_node(g, RLX_OP_eigh_batch, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_layer_norm(rlx_graph *g, rlx_value x, rlx_value gamma, rlx_value beta, int64_t axis,
                         float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_layer_norm, &attr);
    attr.layer_norm.axis = axis;
    attr.layer_norm.eps = eps;
    const rlx_value in[] = {x, gamma, beta};
    return build_node(g, RLX_OP_layer_norm, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_rms_norm(rlx_graph *g, rlx_value x, rlx_value gamma, rlx_value beta, int64_t axis,
                       float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_rms_norm, &attr);
    attr.rms_norm.axis = axis;
    attr.rms_norm.eps = eps;
    const rlx_value in[] = {x, gamma, beta};
    return build_node(g, RLX_OP_rms_norm, in, 3, 4u, NULL, 0, &attr);
}

rlx_value rlx_group_norm(rlx_graph *g, rlx_value x, rlx_value gamma, rlx_value beta,
                         int64_t num_groups, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_group_norm, &attr);
    attr.group_norm.num_groups = num_groups;
    attr.group_norm.eps = eps;
    const rlx_value in[] = {x, gamma, beta};
    return build_node(g, RLX_OP_group_norm, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_layer_norm_2d(rlx_graph *g, rlx_value x, rlx_value gamma, rlx_value beta, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_layer_norm_2d, &attr);
    attr.layer_norm_2d.eps = eps;
    const rlx_value in[] = {x, gamma, beta};
    return build_node(g, RLX_OP_layer_norm_2d, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_batch_norm_inference(rlx_graph *g, rlx_value x, rlx_value gamma, rlx_value beta,
                            rlx_value mean, rlx_value var, int64_t axis, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_batch_norm_inference, &attr);
    attr.batch_norm_inference.axis = axis;
    attr.batch_norm_inference.eps = eps;
    const rlx_value in[] = {x, gamma, beta, mean, var};
    return build_node(g, RLX_OP_batch_norm_inference, in, 5, 0u, NULL, 0, &attr);
}

rlx_value rlx_ada_layer_norm(rlx_graph *g, rlx_value x, rlx_value scale, rlx_value shift,
                            rlx_norm_kind norm, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_ada_layer_norm, &attr);
    attr.ada_layer_norm.norm = (int32_t)norm;
    attr.ada_layer_norm.eps = eps;
    const rlx_value in[] = {x, scale, shift};
    return build_node(g, RLX_OP_ada_layer_norm, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_gated_residual(rlx_graph *g, rlx_value x, rlx_value y, rlx_value gate)
{
    const rlx_value in[] = {x, y, gate};
    return build_node(g, RLX_OP_gated_residual, in, 3, 0u, NULL, 0, NULL);
}

rlx_value rlx_conv(rlx_graph *g, rlx_value x, rlx_value w, const rlx_conv_desc *desc)
{
    rlx_conv_desc d = RLX_CONV_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_conv_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_conv, &attr);
    attr.conv.kernel_size = d.kernel_size;
    attr.conv.stride = d.stride;
    attr.conv.padding = d.padding;
    attr.conv.dilation = d.dilation;
    attr.conv.groups = d.groups;
    const rlx_value in[] = {x, w};
    return build_node(g, RLX_OP_conv, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_conv_transpose(rlx_graph *g, rlx_value x, rlx_value w,
                            const rlx_conv_transpose_desc *desc)
{
    rlx_conv_transpose_desc d = RLX_CONV_TRANSPOSE_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_conv_transpose_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_conv_transpose, &attr);
    attr.conv_transpose.kernel_size = d.kernel_size;
    attr.conv_transpose.stride = d.stride;
    attr.conv_transpose.padding = d.padding;
    attr.conv_transpose.dilation = d.dilation;
    attr.conv_transpose.output_padding = d.output_padding;
    attr.conv_transpose.groups = d.groups;
    const rlx_value in[] = {x, w};
    return build_node(g, RLX_OP_conv_transpose, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_pool(rlx_graph *g, rlx_value x, const rlx_pool_desc *desc)
{
    rlx_pool_desc d = RLX_POOL_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_pool_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_pool, &attr);
    attr.pool.kind = (int32_t)d.kind;
    attr.pool.kernel_size = d.kernel_size;
    attr.pool.stride = d.stride;
    attr.pool.padding = d.padding;
    attr.pool.count_include_pad = d.count_include_pad;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_pool, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_im2col(rlx_graph *g, rlx_value x, rlx_list kernel_size, rlx_list stride,
                     rlx_list padding, rlx_list dilation)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_im2col, &attr);
    attr.im2col.kernel_size = kernel_size;
    attr.im2col.stride = stride;
    attr.im2col.padding = padding;
    attr.im2col.dilation = dilation;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_im2col, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_attention(rlx_graph *g, rlx_value q, rlx_value k, rlx_value v, rlx_value mask,
                        const rlx_attention_desc *desc)
{
    rlx_attention_desc d = RLX_ATTENTION_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_attention_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_attention, &attr);
    attr.attention.num_heads = d.num_heads;
    attr.attention.num_kv_heads = d.num_kv_heads;
    attr.attention.head_dim = d.head_dim;
    attr.attention.mask_kind = (int32_t)d.mask_kind;
    attr.attention.window = d.window;
    attr.attention.score_scale = d.score_scale;
    attr.attention.logit_softcap = d.logit_softcap;
    attr.attention.layout = (int32_t)d.layout;
    attr.attention.value_dim = d.value_dim;
    attr.attention.has_sinks = d.has_sinks;
    attr.attention.alibi_max_bias = d.alibi_max_bias;
    const rlx_value in[] = {q, k, v, mask};
    return build_node(g, RLX_OP_attention, in, 4, 8u, NULL, 0, &attr);
}

rlx_value rlx_attention_with_sinks(rlx_graph *g, rlx_value q, rlx_value k, rlx_value v,
                            rlx_value mask, rlx_value sinks, const rlx_attention_desc *desc)
{
    rlx_attention_desc d = RLX_ATTENTION_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_attention_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_attention, &attr);
    attr.attention.num_heads = d.num_heads;
    attr.attention.num_kv_heads = d.num_kv_heads;
    attr.attention.head_dim = d.head_dim;
    attr.attention.mask_kind = (int32_t)d.mask_kind;
    attr.attention.window = d.window;
    attr.attention.score_scale = d.score_scale;
    attr.attention.logit_softcap = d.logit_softcap;
    attr.attention.layout = (int32_t)d.layout;
    attr.attention.value_dim = d.value_dim;
    attr.attention.has_sinks = d.has_sinks;
    attr.attention.alibi_max_bias = d.alibi_max_bias;
    attr.attention.has_sinks = sinks != RLX_NO_VALUE;
    const rlx_value in[] = {q, k, v, mask, sinks};
    return build_node(g, RLX_OP_attention, in, 5, 24u, NULL, 0, &attr);
}

rlx_value rlx_rope(rlx_graph *g, rlx_value x, rlx_value cos, rlx_value sin, int64_t head_dim,
                   int64_t n_rot, rlx_rope_style style, int64_t seq_axis)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_rope, &attr);
    attr.rope.head_dim = head_dim;
    attr.rope.n_rot = n_rot;
    attr.rope.style = (int32_t)style;
    attr.rope.seq_axis = seq_axis;
    const rlx_value in[] = {x, cos, sin};
    return build_node(g, RLX_OP_rope, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_axial_rope_2d(rlx_graph *g, rlx_value x, const rlx_axial_rope_2d_desc *desc)
{
    rlx_axial_rope_2d_desc d = RLX_AXIAL_ROPE_2D_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_axial_rope_2d_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_axial_rope_2d, &attr);
    attr.axial_rope_2d.end_x = d.end_x;
    attr.axial_rope_2d.end_y = d.end_y;
    attr.axial_rope_2d.head_dim = d.head_dim;
    attr.axial_rope_2d.num_heads = d.num_heads;
    attr.axial_rope_2d.theta = d.theta;
    attr.axial_rope_2d.repeat_factor = d.repeat_factor;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_axial_rope_2d, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_selective_scan(rlx_graph *g, rlx_value x, rlx_value delta, rlx_value a, rlx_value b,
                            rlx_value c, rlx_value state, int64_t state_size, bool carry_state)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_selective_scan, &attr);
    attr.selective_scan.state_size = state_size;
    attr.selective_scan.carry_state = carry_state;
    const rlx_value in[] = {x, delta, a, b, c, state};
    return build_node(g, RLX_OP_selective_scan, in, 6, 32u, NULL, 0, &attr);
}

rlx_value rlx_gated_delta_net(rlx_graph *g, rlx_value q, rlx_value k, rlx_value v, rlx_value decay,
                            rlx_value beta, rlx_value state, int64_t state_size, bool carry_state)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_gated_delta_net, &attr);
    attr.gated_delta_net.state_size = state_size;
    attr.gated_delta_net.carry_state = carry_state;
    const rlx_value in[] = {q, k, v, decay, beta, state};
    return build_node(g, RLX_OP_gated_delta_net, in, 6, 32u, NULL, 0, &attr);
}

rlx_value rlx_mamba2(rlx_graph *g, rlx_value x, rlx_value dt, rlx_value a, rlx_value b, rlx_value c,
                     rlx_value state, int64_t head_dim, int64_t state_size, bool carry_state,
                     int64_t groups)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_mamba2, &attr);
    attr.mamba2.head_dim = head_dim;
    attr.mamba2.state_size = state_size;
    attr.mamba2.carry_state = carry_state;
    attr.mamba2.groups = groups;
    const rlx_value in[] = {x, dt, a, b, c, state};
    return build_node(g, RLX_OP_mamba2, in, 6, 32u, NULL, 0, &attr);
}

rlx_value rlx_causal_conv(rlx_graph *g, rlx_value x, rlx_value w, rlx_value state, rlx_value bias,
                          rlx_op activation, bool carry_state)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_causal_conv, &attr);
    attr.causal_conv.activation = activation;
    attr.causal_conv.carry_state = carry_state;
    const rlx_value in[] = {x, w, state, bias};
    return build_node(g, RLX_OP_causal_conv, in, 4, 12u, NULL, 0, &attr);
}

rlx_value rlx_lstm(rlx_graph *g, rlx_value x, rlx_value w_ih, rlx_value w_hh, rlx_value b_ih,
                   rlx_value b_hh, rlx_value h0, rlx_value c0, rlx_value lengths,
                   const rlx_recurrent_desc *desc)
{
    rlx_recurrent_desc d = RLX_RECURRENT_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_recurrent_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_lstm, &attr);
    attr.recurrent.hidden_size = d.hidden_size;
    attr.recurrent.bidirectional = d.bidirectional;
    attr.recurrent.activation = (int32_t)d.activation;
    attr.recurrent.has_state = d.has_state;
    attr.recurrent.has_lengths = d.has_lengths;
    attr.recurrent.result = (int32_t)d.result;
    const rlx_value in[] = {x, w_ih, w_hh, b_ih, b_hh, h0, c0, lengths};
    return build_node(g, RLX_OP_lstm, in, 8, 224u, NULL, 0, &attr);
}

rlx_value rlx_gru(rlx_graph *g, rlx_value x, rlx_value w_ih, rlx_value w_hh, rlx_value b_ih,
                  rlx_value b_hh, rlx_value h0, rlx_value lengths, const rlx_recurrent_desc *desc)
{
    rlx_recurrent_desc d = RLX_RECURRENT_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_recurrent_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_gru, &attr);
    attr.recurrent.hidden_size = d.hidden_size;
    attr.recurrent.bidirectional = d.bidirectional;
    attr.recurrent.activation = (int32_t)d.activation;
    attr.recurrent.has_state = d.has_state;
    attr.recurrent.has_lengths = d.has_lengths;
    attr.recurrent.result = (int32_t)d.result;
    const rlx_value in[] = {x, w_ih, w_hh, b_ih, b_hh, h0, lengths};
    return build_node(g, RLX_OP_gru, in, 7, 96u, NULL, 0, &attr);
}

rlx_value rlx_rnn(rlx_graph *g, rlx_value x, rlx_value w_ih, rlx_value w_hh, rlx_value b_ih,
                  rlx_value b_hh, rlx_value h0, rlx_value lengths, const rlx_recurrent_desc *desc)
{
    rlx_recurrent_desc d = RLX_RECURRENT_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_recurrent_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_rnn, &attr);
    attr.recurrent.hidden_size = d.hidden_size;
    attr.recurrent.bidirectional = d.bidirectional;
    attr.recurrent.activation = (int32_t)d.activation;
    attr.recurrent.has_state = d.has_state;
    attr.recurrent.has_lengths = d.has_lengths;
    attr.recurrent.result = (int32_t)d.result;
    const rlx_value in[] = {x, w_ih, w_hh, b_ih, b_hh, h0, lengths};
    return build_node(g, RLX_OP_rnn, in, 7, 96u, NULL, 0, &attr);
}

rlx_value rlx_fft(rlx_graph *g, rlx_value x, bool inverse, rlx_fft_norm norm)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_fft, &attr);
    attr.fft.inverse = inverse;
    attr.fft.norm = (int32_t)norm;
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_fft, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_log_mel(rlx_graph *g, rlx_value spec, rlx_value filt)
{
    const rlx_value in[] = {spec, filt};
    return build_node(g, RLX_OP_log_mel, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_welch_peaks(rlx_graph *g, rlx_value spec, int64_t k, int64_t n_segments)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_welch_peaks, &attr);
    attr.welch_peaks.k = k;
    attr.welch_peaks.n_segments = n_segments;
    const rlx_value in[] = {spec};
    return build_node(g, RLX_OP_welch_peaks, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_fused_matmul_bias_act(rlx_graph *g, rlx_value a, rlx_value b, rlx_value bias,
                            rlx_op activation, bool transpose_a, bool transpose_b)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_fused_matmul_bias_act, &attr);
    attr.fused_matmul_bias_act.activation = activation;
    attr.fused_matmul_bias_act.transpose_a = transpose_a;
    attr.fused_matmul_bias_act.transpose_b = transpose_b;
    const rlx_value in[] = {a, b, bias};
    return build_node(g, RLX_OP_fused_matmul_bias_act, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_fused_conv_bias_act(rlx_graph *g, rlx_value x, rlx_value w, rlx_value bias,
                            rlx_value residual, const rlx_fused_conv_bias_act_desc *desc)
{
    rlx_fused_conv_bias_act_desc d = RLX_FUSED_CONV_BIAS_ACT_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_fused_conv_bias_act_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_fused_conv_bias_act, &attr);
    attr.fused_conv_bias_act.kernel_size = d.kernel_size;
    attr.fused_conv_bias_act.stride = d.stride;
    attr.fused_conv_bias_act.padding = d.padding;
    attr.fused_conv_bias_act.dilation = d.dilation;
    attr.fused_conv_bias_act.groups = d.groups;
    attr.fused_conv_bias_act.activation = d.activation;
    attr.fused_conv_bias_act.has_residual = d.has_residual;
    const rlx_value in[] = {x, w, bias, residual};
    return build_node(g, RLX_OP_fused_conv_bias_act, in, 4, 8u, NULL, 0, &attr);
}

rlx_value rlx_fused_residual_ln(rlx_graph *g, rlx_value x, rlx_value residual, rlx_value bias,
                            rlx_value gamma, rlx_value beta, bool has_bias, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_fused_residual_ln, &attr);
    attr.fused_residual_norm.has_bias = has_bias;
    attr.fused_residual_norm.eps = eps;
    const rlx_value in[] = {x, residual, bias, gamma, beta};
    return build_node(g, RLX_OP_fused_residual_ln, in, 5, 4u, NULL, 0, &attr);
}

rlx_value rlx_fused_residual_rms_norm(rlx_graph *g, rlx_value x, rlx_value residual, rlx_value bias,
                            rlx_value gamma, rlx_value beta, bool has_bias, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_fused_residual_rms_norm, &attr);
    attr.fused_residual_norm.has_bias = has_bias;
    attr.fused_residual_norm.eps = eps;
    const rlx_value in[] = {x, residual, bias, gamma, beta};
    return build_node(g, RLX_OP_fused_residual_rms_norm, in, 5, 4u, NULL, 0, &attr);
}

rlx_value rlx_fused_swiglu(rlx_graph *g, rlx_value packed, bool gate_first, rlx_dtype cast_to)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_fused_swiglu, &attr);
    attr.fused_swiglu.gate_first = gate_first;
    attr.fused_swiglu.cast_to = cast_to;
    const rlx_value in[] = {packed};
    return build_node(g, RLX_OP_fused_swiglu, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_fused_attention_block(rlx_graph *g, rlx_value hidden, rlx_value qkv_w,
                            rlx_value out_w, rlx_value mask, rlx_value qkv_b, rlx_value out_b,
                            rlx_value cos, rlx_value sin,
                            const rlx_fused_attention_block_desc *desc)
{
    rlx_fused_attention_block_desc d = RLX_FUSED_ATTENTION_BLOCK_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_fused_attention_block_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_fused_attention_block, &attr);
    attr.fused_attention_block.num_heads = d.num_heads;
    attr.fused_attention_block.num_kv_heads = d.num_kv_heads;
    attr.fused_attention_block.head_dim = d.head_dim;
    attr.fused_attention_block.score_scale = d.score_scale;
    attr.fused_attention_block.logit_softcap = d.logit_softcap;
    attr.fused_attention_block.has_bias = d.has_bias;
    attr.fused_attention_block.has_rope = d.has_rope;
    const rlx_value in[] = {hidden, qkv_w, out_w, mask, qkv_b, out_b, cos, sin};
    return build_node(g, RLX_OP_fused_attention_block, in, 8, 240u, NULL, 0, &attr);
}

rlx_value rlx_fused_transformer_layer(rlx_graph *g, rlx_value hidden, rlx_value qkv_w,
                            rlx_value qkv_b, rlx_value out_w, rlx_value out_b, rlx_value ln1_g,
                            rlx_value ln1_b, rlx_value fc1_w, rlx_value fc1_b, rlx_value fc2_w,
                            rlx_value fc2_b, rlx_value ln2_g, rlx_value ln2_b, rlx_value mask,
                            const rlx_fused_transformer_layer_desc *desc)
{
    rlx_fused_transformer_layer_desc d = RLX_FUSED_TRANSFORMER_LAYER_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_fused_transformer_layer_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_fused_transformer_layer, &attr);
    attr.fused_transformer_layer.num_heads = d.num_heads;
    attr.fused_transformer_layer.head_dim = d.head_dim;
    attr.fused_transformer_layer.intermediate_size = d.intermediate_size;
    attr.fused_transformer_layer.eps1 = d.eps1;
    attr.fused_transformer_layer.eps2 = d.eps2;
    attr.fused_transformer_layer.activation = d.activation;
    attr.fused_transformer_layer.has_bias = d.has_bias;
    const rlx_value in[] = {hidden, qkv_w, qkv_b, out_w, out_b, ln1_g, ln1_b, fc1_w, fc1_b, fc2_w, fc2_b, ln2_g, ln2_b, mask};
    return build_node(g, RLX_OP_fused_transformer_layer, in, 14, 5460u, NULL, 0, &attr);
}

rlx_value rlx_elementwise_region(rlx_graph *g, const rlx_value *inputs, size_t inputs_count,
                            const rlx_chain_step *chain, size_t chain_count,
                            rlx_region_prologue prologue, int64_t prologue_input)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_elementwise_region, &attr);
    attr.elementwise_region.chain = (struct ir_blob){chain, chain_count};
    attr.elementwise_region.prologue = (int32_t)prologue;
    attr.elementwise_region.prologue_input = prologue_input;
    return build_node(g, RLX_OP_elementwise_region, NULL, 0, 0u, inputs, inputs_count, &attr);
}

rlx_value rlx_batch_elementwise_region(rlx_graph *g, const rlx_value *inputs, size_t inputs_count,
                            const rlx_chain_step *chain, size_t chain_count,
                            rlx_region_prologue prologue)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_batch_elementwise_region, &attr);
    attr.batch_elementwise_region.chain = (struct ir_blob){chain, chain_count};
    attr.batch_elementwise_region.prologue = (int32_t)prologue;
    return build_node(g, RLX_OP_batch_elementwise_region, NULL, 0, 0u, inputs, inputs_count, &attr);
}

rlx_value rlx_transform_region(rlx_graph *g, rlx_value x, const rlx_chain_step *chain,
                            size_t chain_count)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_transform_region, &attr);
    attr.transform_region.chain = (struct ir_blob){chain, chain_count};
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_transform_region, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_if(rlx_graph *g, rlx_value predicate, const rlx_value *captures,
                 size_t captures_count, const rlx_graph *then_graph, const rlx_graph *else_graph,
                 int64_t result)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_if, &attr);
    attr.if_.then_graph = build_graph_id(g, then_graph);
    attr.if_.else_graph = build_graph_id(g, else_graph);
    attr.if_.result = result;
    const rlx_value in[] = {predicate};
    return build_node(g, RLX_OP_if, in, 1, 0u, captures, captures_count, &attr);
}

rlx_value rlx_while(rlx_graph *g, const rlx_value *values, size_t values_count,
                    const rlx_graph *cond_graph, const rlx_graph *body_graph,
                    int64_t max_iterations, int64_t result)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_while, &attr);
    attr.while_.cond_graph = build_graph_id(g, cond_graph);
    attr.while_.body_graph = build_graph_id(g, body_graph);
    attr.while_.max_iterations = max_iterations;
    attr.while_.result = result;
    return build_node(g, RLX_OP_while, NULL, 0, 0u, values, values_count, &attr);
}

rlx_value rlx_scan(rlx_graph *g, rlx_value init, const rlx_value *bcasts_and_xs,
                   size_t bcasts_and_xs_count, const rlx_scan_desc *desc)
{
    rlx_scan_desc d = RLX_SCAN_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_scan_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_scan, &attr);
    attr.scan.body = build_graph_id(g, d.body);
    attr.scan.length = d.length;
    attr.scan.num_bcast = d.num_bcast;
    attr.scan.num_xs = d.num_xs;
    attr.scan.save_trajectory = d.save_trajectory;
    attr.scan.num_checkpoints = d.num_checkpoints;
    const rlx_value in[] = {init};
    return build_node(g, RLX_OP_scan, in, 1, 0u, bcasts_and_xs, bcasts_and_xs_count, &attr);
}

rlx_value rlx_custom(rlx_graph *g, const rlx_value *inputs, size_t inputs_count, const char *name,
                     const void *attrs, size_t attrs_count)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_custom, &attr);
    attr.custom.name = build_string(name);
    attr.custom.attrs = (struct ir_blob){attrs, attrs_count};
    return build_node(g, RLX_OP_custom, NULL, 0, 0u, inputs, inputs_count, &attr);
}

rlx_value rlx_custom_fn(rlx_graph *g, const rlx_value *inputs, size_t inputs_count,
                        const rlx_graph *fwd_graph, const rlx_graph *vjp_graph,
                        const rlx_graph *jvp_graph)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_custom_fn, &attr);
    attr.custom_fn.fwd_graph = build_graph_id(g, fwd_graph);
    attr.custom_fn.vjp_graph = build_graph_id(g, vjp_graph);
    attr.custom_fn.jvp_graph = build_graph_id(g, jvp_graph);
    return build_node(g, RLX_OP_custom_fn, NULL, 0, 0u, inputs, inputs_count, &attr);
}

rlx_value rlx_softmax_cross_entropy_with_logits(rlx_graph *g, rlx_value logits, rlx_value labels)
{
    const rlx_value in[] = {logits, labels};
    return build_node(g, RLX_OP_softmax_cross_entropy_with_logits, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_softmax_cross_entropy(rlx_graph *g, rlx_value logits, rlx_value targets)
{
    const rlx_value in[] = {logits, targets};
    return build_node(g, RLX_OP_softmax_cross_entropy, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_quantize(rlx_graph *g, rlx_value x, int64_t axis, const float *scales,
                       size_t scales_count, const float *zero_points, size_t zero_points_count)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_quantize, &attr);
    attr.quantize.axis = axis;
    attr.quantize.scales = (struct ir_blob){scales, scales_count};
    attr.quantize.zero_points = (struct ir_blob){zero_points, zero_points_count};
    const rlx_value in[] = {x};
    return build_node(g, RLX_OP_quantize, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_dequantize(rlx_graph *g, rlx_value q, int64_t axis, const float *scales,
                         size_t scales_count, const float *zero_points, size_t zero_points_count)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_dequantize, &attr);
    attr.quantize.axis = axis;
    attr.quantize.scales = (struct ir_blob){scales, scales_count};
    attr.quantize.zero_points = (struct ir_blob){zero_points, zero_points_count};
    const rlx_value in[] = {q};
    return build_node(g, RLX_OP_dequantize, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_fake_quantize(rlx_graph *g, rlx_value x, rlx_value scales,
                            const rlx_fake_quantize_desc *desc)
{
    rlx_fake_quantize_desc d = RLX_FAKE_QUANTIZE_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_fake_quantize_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_fake_quantize, &attr);
    attr.fake_quantize.bits = d.bits;
    attr.fake_quantize.axis = d.axis;
    attr.fake_quantize.ste = (int32_t)d.ste;
    attr.fake_quantize.scale_mode = (int32_t)d.scale_mode;
    attr.fake_quantize.decay = d.decay;
    const rlx_value in[] = {x, scales};
    return build_node(g, RLX_OP_fake_quantize, in, 2, 2u, NULL, 0, &attr);
}

rlx_value rlx_fake_quantize_lsq(rlx_graph *g, rlx_value x, rlx_value scale, int64_t bits,
                            int64_t axis)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_fake_quantize_lsq, &attr);
    attr.fake_quantize_lsq.bits = bits;
    attr.fake_quantize_lsq.axis = axis;
    const rlx_value in[] = {x, scale};
    return build_node(g, RLX_OP_fake_quantize_lsq, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_qmatmul(rlx_graph *g, rlx_value x, rlx_value w, rlx_value bias, int64_t x_zp,
                      int64_t w_zp, int64_t out_zp, float mult)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_qmatmul, &attr);
    attr.qmatmul.x_zp = x_zp;
    attr.qmatmul.w_zp = w_zp;
    attr.qmatmul.out_zp = out_zp;
    attr.qmatmul.mult = mult;
    const rlx_value in[] = {x, w, bias};
    return build_node(g, RLX_OP_qmatmul, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_qconv_2d(rlx_graph *g, rlx_value x, rlx_value w, rlx_value bias,
                       const rlx_qconv_2d_desc *desc)
{
    rlx_qconv_2d_desc d = RLX_QCONV_2D_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_qconv_2d_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_qconv_2d, &attr);
    attr.qconv_2d.kernel_size = d.kernel_size;
    attr.qconv_2d.stride = d.stride;
    attr.qconv_2d.padding = d.padding;
    attr.qconv_2d.dilation = d.dilation;
    attr.qconv_2d.groups = d.groups;
    attr.qconv_2d.x_zp = d.x_zp;
    attr.qconv_2d.w_zp = d.w_zp;
    attr.qconv_2d.out_zp = d.out_zp;
    attr.qconv_2d.mult = d.mult;
    const rlx_value in[] = {x, w, bias};
    return build_node(g, RLX_OP_qconv_2d, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_dequant_matmul(rlx_graph *g, rlx_value x, rlx_value w, rlx_value scale, rlx_value zp,
                            const rlx_dequant_matmul_desc *desc)
{
    rlx_dequant_matmul_desc d = RLX_DEQUANT_MATMUL_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_dequant_matmul_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_dequant_matmul, &attr);
    attr.dequant_matmul.scheme = (int32_t)d.scheme;
    attr.dequant_matmul.block_size = d.block_size;
    attr.dequant_matmul.k = d.k;
    attr.dequant_matmul.n = d.n;
    attr.dequant_matmul.act = (int32_t)d.act;
    const rlx_value in[] = {x, w, scale, zp};
    return build_node(g, RLX_OP_dequant_matmul, in, 4, 12u, NULL, 0, &attr);
}

rlx_value rlx_dequant_grouped_matmul(rlx_graph *g, rlx_value x, rlx_value w, rlx_value expert,
                            rlx_quant_scheme scheme, int64_t k, rlx_act_precision act)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_dequant_grouped_matmul, &attr);
    attr.dequant_grouped_matmul.scheme = (int32_t)scheme;
    attr.dequant_grouped_matmul.k = k;
    attr.dequant_grouped_matmul.act = (int32_t)act;
    const rlx_value in[] = {x, w, expert};
    return build_node(g, RLX_OP_dequant_grouped_matmul, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_dequant_moe_weights(rlx_graph *g, rlx_value w, rlx_quant_scheme scheme, int64_t k)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_dequant_moe_weights, &attr);
    attr.dequant_moe_weights.scheme = (int32_t)scheme;
    attr.dequant_moe_weights.k = k;
    const rlx_value in[] = {w};
    return build_node(g, RLX_OP_dequant_moe_weights, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_dequant_gather(rlx_graph *g, rlx_value table, rlx_value indices,
                            rlx_quant_scheme scheme, int64_t k)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_dequant_gather, &attr);
    attr.dequant_gather.scheme = (int32_t)scheme;
    attr.dequant_gather.k = k;
    const rlx_value in[] = {table, indices};
    return build_node(g, RLX_OP_dequant_gather, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_group_limited_gate(rlx_graph *g, rlx_value sig, rlx_value route, int64_t n_group,
                            int64_t topk_group, int64_t top_k, float scaling)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_group_limited_gate, &attr);
    attr.group_limited_gate.n_group = n_group;
    attr.group_limited_gate.topk_group = topk_group;
    attr.group_limited_gate.top_k = top_k;
    attr.group_limited_gate.scaling = scaling;
    const rlx_value in[] = {sig, route};
    return build_node(g, RLX_OP_group_limited_gate, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_knn(rlx_graph *g, rlx_value d, int64_t k)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_knn, &attr);
    attr.knn.k = k;
    const rlx_value in[] = {d};
    return build_node(g, RLX_OP_knn, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_gaussian_splat_render(rlx_graph *g, rlx_value positions, rlx_value scales,
                            rlx_value rotations, rlx_value opacities, rlx_value colors,
                            rlx_value sh_coeffs, rlx_value meta,
                            const rlx_gaussian_splat_desc *desc)
{
    rlx_gaussian_splat_desc d = RLX_GAUSSIAN_SPLAT_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_gaussian_splat_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_gaussian_splat_render, &attr);
    attr.gaussian_splat.width = d.width;
    attr.gaussian_splat.height = d.height;
    attr.gaussian_splat.tile_size = d.tile_size;
    attr.gaussian_splat.max_splat_steps = d.max_splat_steps;
    attr.gaussian_splat.max_list_entries = d.max_list_entries;
    attr.gaussian_splat.radius_scale = d.radius_scale;
    attr.gaussian_splat.alpha_cutoff = d.alpha_cutoff;
    attr.gaussian_splat.transmittance_threshold = d.transmittance_threshold;
    const rlx_value in[] = {positions, scales, rotations, opacities, colors, sh_coeffs, meta};
    return build_node(g, RLX_OP_gaussian_splat_render, in, 7, 0u, NULL, 0, &attr);
}

rlx_value rlx_gaussian_splat_prepare(rlx_graph *g, rlx_value positions, rlx_value scales,
                            rlx_value rotations, rlx_value opacities, rlx_value colors,
                            rlx_value sh_coeffs, rlx_value meta,
                            const rlx_gaussian_splat_desc *desc)
{
    rlx_gaussian_splat_desc d = RLX_GAUSSIAN_SPLAT_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_gaussian_splat_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_gaussian_splat_prepare, &attr);
    attr.gaussian_splat.width = d.width;
    attr.gaussian_splat.height = d.height;
    attr.gaussian_splat.tile_size = d.tile_size;
    attr.gaussian_splat.max_splat_steps = d.max_splat_steps;
    attr.gaussian_splat.max_list_entries = d.max_list_entries;
    attr.gaussian_splat.radius_scale = d.radius_scale;
    attr.gaussian_splat.alpha_cutoff = d.alpha_cutoff;
    attr.gaussian_splat.transmittance_threshold = d.transmittance_threshold;
    const rlx_value in[] = {positions, scales, rotations, opacities, colors, sh_coeffs, meta};
    return build_node(g, RLX_OP_gaussian_splat_prepare, in, 7, 0u, NULL, 0, &attr);
}

rlx_value rlx_gaussian_splat_rasterize(rlx_graph *g, rlx_value prep, rlx_value meta,
                            const rlx_gaussian_splat_rasterize_desc *desc)
{
    rlx_gaussian_splat_rasterize_desc d = RLX_GAUSSIAN_SPLAT_RASTERIZE_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_gaussian_splat_rasterize_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_gaussian_splat_rasterize, &attr);
    attr.gaussian_splat_rasterize.width = d.width;
    attr.gaussian_splat_rasterize.height = d.height;
    attr.gaussian_splat_rasterize.tile_size = d.tile_size;
    attr.gaussian_splat_rasterize.max_splat_steps = d.max_splat_steps;
    attr.gaussian_splat_rasterize.max_list_entries = d.max_list_entries;
    attr.gaussian_splat_rasterize.alpha_cutoff = d.alpha_cutoff;
    attr.gaussian_splat_rasterize.transmittance_threshold = d.transmittance_threshold;
    const rlx_value in[] = {prep, meta};
    return build_node(g, RLX_OP_gaussian_splat_rasterize, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_relu_backward(rlx_graph *g, rlx_value x, rlx_value dy)
{
    const rlx_value in[] = {x, dy};
    return build_node(g, RLX_OP_relu_backward, in, 2, 0u, NULL, 0, NULL);
}

rlx_value rlx_activation_backward(rlx_graph *g, rlx_value x, rlx_value dy, rlx_op kind)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_activation_backward, &attr);
    attr.activation_backward.kind = kind;
    const rlx_value in[] = {x, dy};
    return build_node(g, RLX_OP_activation_backward, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_complex_real(rlx_graph *g, rlx_value z)
{
    const rlx_value in[] = {z};
    return build_node(g, RLX_OP_complex_real, in, 1, 0u, NULL, 0, NULL);
}

rlx_value rlx_gather_backward(rlx_graph *g, rlx_value dy, rlx_value indices, int64_t axis,
                            rlx_dim table_dim)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_gather_backward, &attr);
    attr.gather_backward.axis = axis;
    attr.gather_backward.table_dim = table_dim;
    const rlx_value in[] = {dy, indices};
    return build_node(g, RLX_OP_gather_backward, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_cumsum_backward(rlx_graph *g, rlx_value dy, int64_t axis, bool exclusive)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_cumsum_backward, &attr);
    attr.cumsum_backward.axis = axis;
    attr.cumsum_backward.exclusive = exclusive;
    const rlx_value in[] = {dy};
    return build_node(g, RLX_OP_cumsum_backward, in, 1, 0u, NULL, 0, &attr);
}

rlx_value rlx_grouped_matmul_backward_weight(rlx_graph *g, rlx_value x, rlx_value dy,
                            rlx_value expert, rlx_dim experts)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_grouped_matmul_backward_weight, &attr);
    attr.grouped_matmul_backward_weight.experts = experts;
    const rlx_value in[] = {x, dy, expert};
    return build_node(g, RLX_OP_grouped_matmul_backward_weight, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_layer_norm_backward_input(rlx_graph *g, rlx_value x, rlx_value gamma, rlx_value dy,
                            int64_t axis, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_layer_norm_backward_input, &attr);
    attr.layer_norm_backward.axis = axis;
    attr.layer_norm_backward.eps = eps;
    const rlx_value in[] = {x, gamma, dy};
    return build_node(g, RLX_OP_layer_norm_backward_input, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_layer_norm_backward_gamma(rlx_graph *g, rlx_value x, rlx_value dy, int64_t axis,
                            float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_layer_norm_backward_gamma, &attr);
    attr.layer_norm_backward.axis = axis;
    attr.layer_norm_backward.eps = eps;
    const rlx_value in[] = {x, dy};
    return build_node(g, RLX_OP_layer_norm_backward_gamma, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_rms_norm_backward_input(rlx_graph *g, rlx_value x, rlx_value gamma, rlx_value beta,
                            rlx_value dy, int64_t axis, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_rms_norm_backward_input, &attr);
    attr.rms_norm_backward.axis = axis;
    attr.rms_norm_backward.eps = eps;
    const rlx_value in[] = {x, gamma, beta, dy};
    return build_node(g, RLX_OP_rms_norm_backward_input, in, 4, 4u, NULL, 0, &attr);
}

rlx_value rlx_rms_norm_backward_gamma(rlx_graph *g, rlx_value x, rlx_value gamma, rlx_value beta,
                            rlx_value dy, int64_t axis, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_rms_norm_backward_gamma, &attr);
    attr.rms_norm_backward.axis = axis;
    attr.rms_norm_backward.eps = eps;
    const rlx_value in[] = {x, gamma, beta, dy};
    return build_node(g, RLX_OP_rms_norm_backward_gamma, in, 4, 4u, NULL, 0, &attr);
}

rlx_value rlx_rms_norm_backward_beta(rlx_graph *g, rlx_value x, rlx_value gamma, rlx_value beta,
                            rlx_value dy, int64_t axis, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_rms_norm_backward_beta, &attr);
    attr.rms_norm_backward.axis = axis;
    attr.rms_norm_backward.eps = eps;
    const rlx_value in[] = {x, gamma, beta, dy};
    return build_node(g, RLX_OP_rms_norm_backward_beta, in, 4, 4u, NULL, 0, &attr);
}

rlx_value rlx_group_norm_backward_input(rlx_graph *g, rlx_value x, rlx_value gamma, rlx_value dy,
                            int64_t num_groups, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_group_norm_backward_input, &attr);
    attr.group_norm_backward.num_groups = num_groups;
    attr.group_norm_backward.eps = eps;
    const rlx_value in[] = {x, gamma, dy};
    return build_node(g, RLX_OP_group_norm_backward_input, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_group_norm_backward_gamma(rlx_graph *g, rlx_value x, rlx_value dy, int64_t num_groups,
                            float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_group_norm_backward_gamma, &attr);
    attr.group_norm_backward.num_groups = num_groups;
    attr.group_norm_backward.eps = eps;
    const rlx_value in[] = {x, dy};
    return build_node(g, RLX_OP_group_norm_backward_gamma, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_group_norm_backward_beta(rlx_graph *g, rlx_value x, rlx_value dy, int64_t num_groups,
                            float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_group_norm_backward_beta, &attr);
    attr.group_norm_backward.num_groups = num_groups;
    attr.group_norm_backward.eps = eps;
    const rlx_value in[] = {x, dy};
    return build_node(g, RLX_OP_group_norm_backward_beta, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_batch_norm_inference_backward_input(rlx_graph *g, rlx_value x, rlx_value gamma,
                            rlx_value mean, rlx_value var, rlx_value dy, int64_t axis, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_batch_norm_inference_backward_input, &attr);
    attr.batch_norm_inference_backward.axis = axis;
    attr.batch_norm_inference_backward.eps = eps;
    const rlx_value in[] = {x, gamma, mean, var, dy};
    return build_node(g, RLX_OP_batch_norm_inference_backward_input, in, 5, 0u, NULL, 0, &attr);
}

rlx_value rlx_batch_norm_inference_backward_gamma(rlx_graph *g, rlx_value x, rlx_value mean,
                            rlx_value var, rlx_value dy, int64_t axis, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_batch_norm_inference_backward_gamma, &attr);
    attr.batch_norm_inference_backward.axis = axis;
    attr.batch_norm_inference_backward.eps = eps;
    const rlx_value in[] = {x, mean, var, dy};
    return build_node(g, RLX_OP_batch_norm_inference_backward_gamma, in, 4, 0u, NULL, 0, &attr);
}

rlx_value rlx_batch_norm_inference_backward_beta(rlx_graph *g, rlx_value x, rlx_value dy,
                            int64_t axis, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_batch_norm_inference_backward_beta, &attr);
    attr.batch_norm_inference_backward.axis = axis;
    attr.batch_norm_inference_backward.eps = eps;
    const rlx_value in[] = {x, dy};
    return build_node(g, RLX_OP_batch_norm_inference_backward_beta, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_ada_layer_norm_backward(rlx_graph *g, rlx_value x, rlx_value scale, rlx_value shift,
                            rlx_value dy, rlx_norm_kind norm, float eps)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_ada_layer_norm_backward, &attr);
    attr.ada_layer_norm_backward.norm = (int32_t)norm;
    attr.ada_layer_norm_backward.eps = eps;
    const rlx_value in[] = {x, scale, shift, dy};
    return build_node(g, RLX_OP_ada_layer_norm_backward, in, 4, 0u, NULL, 0, &attr);
}

rlx_value rlx_gated_residual_backward(rlx_graph *g, rlx_value x, rlx_value y, rlx_value gate,
                            rlx_value dy)
{
    const rlx_value in[] = {x, y, gate, dy};
    return build_node(g, RLX_OP_gated_residual_backward, in, 4, 0u, NULL, 0, NULL);
}

rlx_value rlx_conv_backward_input(rlx_graph *g, rlx_value dy, rlx_value w,
                            const rlx_conv_backward_input_desc *desc)
{
    rlx_conv_backward_input_desc d = RLX_CONV_BACKWARD_INPUT_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_conv_backward_input_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_conv_backward_input, &attr);
    attr.conv_backward_input.kernel_size = d.kernel_size;
    attr.conv_backward_input.stride = d.stride;
    attr.conv_backward_input.padding = d.padding;
    attr.conv_backward_input.dilation = d.dilation;
    attr.conv_backward_input.groups = d.groups;
    attr.conv_backward_input.x_shape = d.x_shape;
    const rlx_value in[] = {dy, w};
    return build_node(g, RLX_OP_conv_backward_input, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_conv_backward_weight(rlx_graph *g, rlx_value x, rlx_value dy,
                            const rlx_conv_backward_weight_desc *desc)
{
    rlx_conv_backward_weight_desc d = RLX_CONV_BACKWARD_WEIGHT_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_conv_backward_weight_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_conv_backward_weight, &attr);
    attr.conv_backward_weight.kernel_size = d.kernel_size;
    attr.conv_backward_weight.stride = d.stride;
    attr.conv_backward_weight.padding = d.padding;
    attr.conv_backward_weight.dilation = d.dilation;
    attr.conv_backward_weight.groups = d.groups;
    const rlx_value in[] = {x, dy};
    return build_node(g, RLX_OP_conv_backward_weight, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_max_pool_backward(rlx_graph *g, rlx_value x, rlx_value dy, rlx_list kernel_size,
                            rlx_list stride, rlx_list padding)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_max_pool_backward, &attr);
    attr.max_pool_backward.kernel_size = kernel_size;
    attr.max_pool_backward.stride = stride;
    attr.max_pool_backward.padding = padding;
    const rlx_value in[] = {x, dy};
    return build_node(g, RLX_OP_max_pool_backward, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_attention_backward(rlx_graph *g, rlx_value q, rlx_value k, rlx_value v, rlx_value dy,
                            rlx_value mask, const rlx_attention_backward_desc *desc)
{
    rlx_attention_backward_desc d = RLX_ATTENTION_BACKWARD_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_attention_backward_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_attention_backward, &attr);
    attr.attention_backward.num_heads = d.num_heads;
    attr.attention_backward.num_kv_heads = d.num_kv_heads;
    attr.attention_backward.head_dim = d.head_dim;
    attr.attention_backward.mask_kind = (int32_t)d.mask_kind;
    attr.attention_backward.window = d.window;
    attr.attention_backward.score_scale = d.score_scale;
    attr.attention_backward.logit_softcap = d.logit_softcap;
    attr.attention_backward.layout = (int32_t)d.layout;
    attr.attention_backward.wrt = (int32_t)d.wrt;
    attr.attention_backward.value_dim = d.value_dim;
    attr.attention_backward.has_sinks = d.has_sinks;
    attr.attention_backward.alibi_max_bias = d.alibi_max_bias;
    const rlx_value in[] = {q, k, v, dy, mask};
    return build_node(g, RLX_OP_attention_backward, in, 5, 16u, NULL, 0, &attr);
}

rlx_value rlx_rope_backward(rlx_graph *g, rlx_value dy, rlx_value cos, rlx_value sin,
                            int64_t head_dim, int64_t n_rot, rlx_rope_style style, int64_t seq_axis)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_rope_backward, &attr);
    attr.rope_backward.head_dim = head_dim;
    attr.rope_backward.n_rot = n_rot;
    attr.rope_backward.style = (int32_t)style;
    attr.rope_backward.seq_axis = seq_axis;
    const rlx_value in[] = {dy, cos, sin};
    return build_node(g, RLX_OP_rope_backward, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_softmax_cross_entropy_backward(rlx_graph *g, rlx_value logits, rlx_value labels,
                            rlx_value dloss)
{
    const rlx_value in[] = {logits, labels, dloss};
    return build_node(g, RLX_OP_softmax_cross_entropy_backward, in, 3, 0u, NULL, 0, NULL);
}

rlx_value rlx_fake_quantize_backward(rlx_graph *g, rlx_value x, rlx_value scales, rlx_value dy,
                            int64_t bits, int64_t axis, rlx_ste_kind ste, rlx_scale_mode scale_mode)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_fake_quantize_backward, &attr);
    attr.fake_quantize_backward.bits = bits;
    attr.fake_quantize_backward.axis = axis;
    attr.fake_quantize_backward.ste = (int32_t)ste;
    attr.fake_quantize_backward.scale_mode = (int32_t)scale_mode;
    const rlx_value in[] = {x, scales, dy};
    return build_node(g, RLX_OP_fake_quantize_backward, in, 3, 2u, NULL, 0, &attr);
}

rlx_value rlx_fake_quantize_lsq_backward_x(rlx_graph *g, rlx_value x, rlx_value scale, rlx_value dy,
                            int64_t bits, int64_t axis)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_fake_quantize_lsq_backward_x, &attr);
    attr.fake_quantize_lsq_backward.bits = bits;
    attr.fake_quantize_lsq_backward.axis = axis;
    const rlx_value in[] = {x, scale, dy};
    return build_node(g, RLX_OP_fake_quantize_lsq_backward_x, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_fake_quantize_lsq_backward_scale(rlx_graph *g, rlx_value x, rlx_value scale,
                            rlx_value dy, int64_t bits, int64_t axis)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_fake_quantize_lsq_backward_scale, &attr);
    attr.fake_quantize_lsq_backward.bits = bits;
    attr.fake_quantize_lsq_backward.axis = axis;
    const rlx_value in[] = {x, scale, dy};
    return build_node(g, RLX_OP_fake_quantize_lsq_backward_scale, in, 3, 0u, NULL, 0, &attr);
}

rlx_value rlx_scan_backward(rlx_graph *g, rlx_value init, rlx_value trajectory, rlx_value upstream,
                            const rlx_value *xs, size_t xs_count,
                            const rlx_scan_backward_desc *desc)
{
    rlx_scan_backward_desc d = RLX_SCAN_BACKWARD_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_scan_backward_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_scan_backward, &attr);
    attr.scan_backward.body = build_graph_id(g, d.body);
    attr.scan_backward.body_vjp = build_graph_id(g, d.body_vjp);
    attr.scan_backward.length = d.length;
    attr.scan_backward.num_xs = d.num_xs;
    attr.scan_backward.save_trajectory = d.save_trajectory;
    attr.scan_backward.num_checkpoints = d.num_checkpoints;
    attr.scan_backward.xs_idx = d.xs_idx;
    const rlx_value in[] = {init, trajectory, upstream};
    return build_node(g, RLX_OP_scan_backward, in, 3, 0u, xs, xs_count, &attr);
}

rlx_value rlx_scan_backward_xs(rlx_graph *g, rlx_value init, rlx_value trajectory,
                            rlx_value upstream, const rlx_value *xs, size_t xs_count,
                            const rlx_scan_backward_desc *desc)
{
    rlx_scan_backward_desc d = RLX_SCAN_BACKWARD_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_scan_backward_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_scan_backward_xs, &attr);
    attr.scan_backward.body = build_graph_id(g, d.body);
    attr.scan_backward.body_vjp = build_graph_id(g, d.body_vjp);
    attr.scan_backward.length = d.length;
    attr.scan_backward.num_xs = d.num_xs;
    attr.scan_backward.save_trajectory = d.save_trajectory;
    attr.scan_backward.num_checkpoints = d.num_checkpoints;
    attr.scan_backward.xs_idx = d.xs_idx;
    const rlx_value in[] = {init, trajectory, upstream};
    return build_node(g, RLX_OP_scan_backward_xs, in, 3, 0u, xs, xs_count, &attr);
}

rlx_value rlx_selective_scan_backward(rlx_graph *g, rlx_value x, rlx_value delta, rlx_value a,
                            rlx_value b, rlx_value c, rlx_value dy, int64_t state_size)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_selective_scan_backward, &attr);
    attr.selective_scan_backward.state_size = state_size;
    const rlx_value in[] = {x, delta, a, b, c, dy};
    return build_node(g, RLX_OP_selective_scan_backward, in, 6, 0u, NULL, 0, &attr);
}

rlx_value rlx_gated_delta_net_backward(rlx_graph *g, rlx_value q, rlx_value k, rlx_value v,
                            rlx_value decay, rlx_value beta, rlx_value dy, int64_t state_size)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_gated_delta_net_backward, &attr);
    attr.gated_delta_net_backward.state_size = state_size;
    const rlx_value in[] = {q, k, v, decay, beta, dy};
    return build_node(g, RLX_OP_gated_delta_net_backward, in, 6, 0u, NULL, 0, &attr);
}

rlx_value rlx_log_mel_backward(rlx_graph *g, rlx_value spec, rlx_value filt, rlx_value dy)
{
    const rlx_value in[] = {spec, filt, dy};
    return build_node(g, RLX_OP_log_mel_backward, in, 3, 0u, NULL, 0, NULL);
}

rlx_value rlx_knn_backward(rlx_graph *g, rlx_value d, rlx_value dd, int64_t k)
{
    union ir_attr attr;
    attr_defaults(RLX_OP_knn_backward, &attr);
    attr.knn_backward.k = k;
    const rlx_value in[] = {d, dd};
    return build_node(g, RLX_OP_knn_backward, in, 2, 0u, NULL, 0, &attr);
}

rlx_value rlx_gaussian_splat_render_backward(rlx_graph *g, rlx_value positions, rlx_value scales,
                            rlx_value rotations, rlx_value opacities, rlx_value colors,
                            rlx_value sh_coeffs, rlx_value meta, rlx_value dl,
                            const rlx_gaussian_splat_render_backward_desc *desc)
{
    rlx_gaussian_splat_render_backward_desc d = RLX_GAUSSIAN_SPLAT_RENDER_BACKWARD_DESC_INIT;
    union ir_attr attr;

    if (!build_desc(g, &d, sizeof d, desc, "rlx_gaussian_splat_render_backward_desc"))
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_gaussian_splat_render_backward, &attr);
    attr.gaussian_splat_render_backward.width = d.width;
    attr.gaussian_splat_render_backward.height = d.height;
    attr.gaussian_splat_render_backward.tile_size = d.tile_size;
    attr.gaussian_splat_render_backward.max_splat_steps = d.max_splat_steps;
    attr.gaussian_splat_render_backward.max_list_entries = d.max_list_entries;
    attr.gaussian_splat_render_backward.radius_scale = d.radius_scale;
    attr.gaussian_splat_render_backward.alpha_cutoff = d.alpha_cutoff;
    attr.gaussian_splat_render_backward.transmittance_threshold = d.transmittance_threshold;
    attr.gaussian_splat_render_backward.loss_grad_clip = d.loss_grad_clip;
    attr.gaussian_splat_render_backward.sh_band = d.sh_band;
    attr.gaussian_splat_render_backward.max_anisotropy = d.max_anisotropy;
    const rlx_value in[] = {positions, scales, rotations, opacities, colors, sh_coeffs, meta, dl};
    return build_node(g, RLX_OP_gaussian_splat_render_backward, in, 8, 0u, NULL, 0, &attr);
}
