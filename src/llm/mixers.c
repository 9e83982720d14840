/* mixers.c: what stands where attention would: layers that keep a state of fixed size instead of
 * all keys and values. docs/spec/llm-architectures.md 3.6 to 3.9 has the formulas. */
#include <stdio.h>

#include "llm/build.h"

/* ---- pieces ------------------------------------------------------------------------------- */

static rlx_value state(struct llm_build *b, int64_t layer, const char *which, rlx_list shape)
{
    char name[64];

    snprintf(name, sizeof name, "cache.%lld.%s", (long long)layer, which);
    return b->cached ? rlx_state(b->g, name, RLX_DTYPE_f32, shape) : RLX_NO_VALUE;
}

/* Each channel with its taps over the last rows. */
static rlx_value convolved(struct llm_build *b, int64_t layer, const char *part, rlx_value x,
                           int64_t channels, int64_t taps, rlx_op activation)
{
    char name[64];
    rlx_value bias = RLX_NO_VALUE;

    snprintf(name, sizeof name, "%s.weight", part);
    rlx_value w = llm_vector(b, layer, name, RLX_LIST(channels, taps));
    snprintf(name, sizeof name, "%s.bias", part);
    if (llm_has(b, layer, name))
        bias = llm_vector(b, layer, name, RLX_LIST(channels));
    return rlx_causal_conv(b->g, x, w,
                           state(b, layer, "rows", RLX_LIST(b->batch, taps - 1, channels)), bias,
                           activation, b->cached);
}

/* softplus(x + its bias): how far the state moves in a step. */
static rlx_value stride(struct llm_build *b, int64_t layer, rlx_value x, int64_t count)
{
    return rlx_softplus(b->g,
                        rlx_add(b->g, x, llm_vector(b, layer, "ssm_dt.bias", RLX_LIST(count))));
}

/* ---- Mamba -------------------------------------------------------------------------------- */

static rlx_value maybe_norm(struct llm_build *b, int64_t layer, const char *part, rlx_value x,
                            int64_t width)
{
    char name[64];

    snprintf(name, sizeof name, "%s.weight", part);
    if (llm_has(b, layer, name))
        return llm_norm(b, layer, part, x, width);
    return b->spec->ssm.inner_norms ? llm_bare_norm(b, x, width) : x;
}

rlx_value llm_mamba(struct llm_build *b, int64_t layer, rlx_value h)
{
    const struct llm_ssm *s = &b->spec->ssm;
    const int64_t inner = s->inner, n = s->state, rank = s->heads;
    rlx_value both = llm_linear(b, layer, "ssm_in", h, 2 * inner, b->spec->width);
    rlx_value x = convolved(b, layer, "ssm_conv1d", llm_columns(b, both, 0, inner), inner, s->taps,
                            RLX_OP_silu);
    rlx_value all = llm_linear(b, layer, "ssm_x", x, rank + 2 * n, inner);
    rlx_value dt = maybe_norm(b, layer, "ssm_dt_norm", llm_columns(b, all, 0, rank), rank);
    rlx_value in = maybe_norm(b, layer, "ssm_b_norm", llm_columns(b, all, rank, n), n);
    rlx_value out = maybe_norm(b, layer, "ssm_c_norm", llm_columns(b, all, rank + n, n), n);

    dt = rlx_softplus(b->g, llm_linear(b, layer, "ssm_dt", dt, inner, rank));
    rlx_value y =
        rlx_selective_scan(b->g, x, dt, llm_vector(b, layer, "ssm_a", RLX_LIST(inner, n)), in, out,
                           state(b, layer, "state", RLX_LIST(b->batch, inner, n)), n, b->cached);
    y = rlx_add(b->g, y, rlx_mul(b->g, x, llm_vector(b, layer, "ssm_d", RLX_LIST(inner))));
    y = rlx_mul(b->g, y, rlx_silu(b->g, llm_columns(b, both, inner, inner)));
    return llm_linear(b, layer, "ssm_out", y, b->spec->width, inner);
}

/* Over each group of channels, with a gain for every channel. */
static rlx_value group_norm(struct llm_build *b, int64_t layer, rlx_value y)
{
    const struct llm_ssm *s = &b->spec->ssm;
    const int64_t width = s->inner / s->groups;

    if (!llm_has(b, layer, "ssm_norm.weight"))
        return y;
    y = rlx_reshape(b->g, y, RLX_LIST(b->batch, b->rows, s->groups, width));
    y = rlx_mul(b->g, llm_bare_norm(b, y, width),
                llm_vector(b, layer, "ssm_norm.weight", RLX_LIST(s->groups, width)));
    return rlx_reshape(b->g, y, RLX_LIST(b->batch, b->rows, s->inner));
}

rlx_value llm_mamba2(struct llm_build *b, int64_t layer, rlx_value h)
{
    const struct llm_ssm *s = &b->spec->ssm;
    const int64_t heads = s->heads, dim = s->inner / heads, shared = s->groups * s->state;
    const rlx_list by_head = RLX_LIST(b->batch, b->rows, heads, dim);
    const rlx_list by_group = RLX_LIST(b->batch, b->rows, s->groups, s->state);
    rlx_value all =
        llm_linear(b, layer, "ssm_in", h, 2 * s->inner + 2 * shared + heads, b->spec->width);
    rlx_value x =
        convolved(b, layer, "ssm_conv1d", llm_columns(b, all, s->inner, s->inner + 2 * shared),
                  s->inner + 2 * shared, s->taps, RLX_OP_silu);
    rlx_value dt = stride(b, layer, llm_columns(b, all, 2 * s->inner + 2 * shared, heads), heads);
    rlx_value in = rlx_reshape(b->g, llm_columns(b, x, s->inner, shared), by_group);
    rlx_value out = rlx_reshape(b->g, llm_columns(b, x, s->inner + shared, shared), by_group);

    x = rlx_reshape(b->g, llm_columns(b, x, 0, s->inner), by_head);
    rlx_value a =
        rlx_reshape(b->g, llm_vector(b, layer, "ssm_a", RLX_LIST(heads, 1)), RLX_LIST(heads));
    rlx_value y = rlx_mamba2(b->g, x, dt, a, in, out,
                             state(b, layer, "state", RLX_LIST(b->batch, heads, dim, s->state)),
                             dim, s->state, b->cached, s->groups);
    y = rlx_add(b->g, y, rlx_mul(b->g, x, llm_vector(b, layer, "ssm_d", RLX_LIST(heads, 1))));
    y = rlx_reshape(b->g, y, RLX_LIST(b->batch, b->rows, s->inner));
    y = rlx_mul(b->g, y, rlx_silu(b->g, llm_columns(b, all, 0, s->inner)));
    return llm_linear(b, layer, "ssm_out", group_norm(b, layer, y), b->spec->width, s->inner);
}

/* ---- short convolutions ------------------------------------------------------------------- */

rlx_value llm_short_conv(struct llm_build *b, int64_t layer, rlx_value h)
{
    const int64_t width = b->spec->width;
    rlx_value all = llm_linear(b, layer, "shortconv.in_proj", h, 3 * width, width);
    rlx_value x =
        rlx_mul(b->g, llm_columns(b, all, 0, width), llm_columns(b, all, 2 * width, width));

    x = convolved(b, layer, "shortconv.conv", x, width, b->spec->ssm.taps, RLX_OP_none);
    x = rlx_mul(b->g, llm_columns(b, all, width, width), x);
    return llm_linear(b, layer, "shortconv.out_proj", x, width, width);
}

/* ---- the gated delta rule ----------------------------------------------------------------- */

/* x / max(its length, eps), head by head. */
static rlx_value unit(struct llm_build *b, rlx_value x, int64_t heads, int64_t dim)
{
    x = rlx_reshape(b->g, x, RLX_LIST(b->batch, b->rows, heads, dim));
    rlx_value length = rlx_reduce_sum(b->g, rlx_mul(b->g, x, x), RLX_LIST(-1), true);
    length = rlx_sqrt(b->g, length);
    return rlx_div(b->g, x, rlx_max(b->g, length, rlx_scalar(b->g, length, (double)b->spec->eps)));
}

/* A key's head serves several of values: neighbours, or each so many heads apart. */
static rlx_value for_values(struct llm_build *b, rlx_value x)
{
    const struct llm_ssm *s = &b->spec->ssm;
    const int64_t times = s->heads / s->groups;
    const rlx_list all = RLX_LIST(b->batch, b->rows, s->heads, s->state);

    if (times == 1)
        return x;
    if (!s->neighbours)
        return rlx_tile(b->g, x, RLX_LIST(1, 1, times, 1));
    x = rlx_reshape(b->g, x, RLX_LIST(b->batch, b->rows, s->groups, 1, s->state));
    x = rlx_expand(b->g, x, RLX_LIST(b->batch, b->rows, s->groups, times, s->state));
    return rlx_reshape(b->g, x, all);
}

/* What a step reads of a row: by head of keys, or all heads side by side. */
struct delta {
    rlx_value qkv, gate;   /* [batch, rows, keys + keys + values]; [batch, rows, values] */
    rlx_value beta, decay; /* [batch, rows, heads] */
};

/* Of x [batch, rows, groups, ..], some columns of each group, one group after another. */
static rlx_value of_groups(struct llm_build *b, rlx_value x, int64_t first, int64_t count)
{
    return rlx_reshape(b->g, llm_columns(b, x, first, count),
                       RLX_LIST(b->batch, b->rows, b->spec->ssm.groups * count));
}

/* One matrix, whose rows are those of one head of keys after another. */
static rlx_value grouped(struct llm_build *b, int64_t layer, const char *part, rlx_value h,
                         int64_t each)
{
    const int64_t groups = b->spec->ssm.groups;

    h = llm_linear(b, layer, part, h, groups * each, b->spec->width);
    return rlx_reshape(b->g, h, RLX_LIST(b->batch, b->rows, groups, each));
}

static struct delta delta_inputs(struct llm_build *b, int64_t layer, rlx_value h)
{
    const struct llm_ssm *s = &b->spec->ssm;
    const int64_t times = s->heads / s->groups, dim = s->state, wide = times * dim,
                  values = s->heads * dim, width = b->spec->width;
    struct delta x;

    if (llm_has(b, layer, "ssm_in.weight")) {
        rlx_value all = grouped(b, layer, "ssm_in", h, 2 * dim + 2 * wide);
        const rlx_value part[] = {of_groups(b, all, 0, dim), of_groups(b, all, dim, dim),
                                  of_groups(b, all, 2 * dim, wide)};
        x.qkv = rlx_concat(b->g, part, 3, -1);
        x.gate = of_groups(b, all, 2 * dim + wide, wide);
    } else {
        x.qkv = llm_linear(b, layer, "attn_qkv", h, 2 * s->groups * dim + values, width);
        x.gate = llm_linear(b, layer, "attn_gate", h, values, width);
    }
    if (llm_has(b, layer, "ssm_ba.weight")) {
        rlx_value both = grouped(b, layer, "ssm_ba", h, 2 * times);
        x.beta = of_groups(b, both, 0, times);
        x.decay = of_groups(b, both, times, times);
    } else {
        x.beta = llm_linear(b, layer, "ssm_beta", h, s->heads, width);
        x.decay = llm_linear(b, layer, "ssm_alpha", h, s->heads, width);
    }
    return x;
}

rlx_value llm_delta_net(struct llm_build *b, int64_t layer, rlx_value h)
{
    const struct llm_ssm *s = &b->spec->ssm;
    const int64_t dim = s->state, keys = s->groups * dim, values = s->heads * dim;
    const rlx_list by_head = RLX_LIST(b->batch, b->rows, s->heads, dim);
    struct delta in = delta_inputs(b, layer, h);
    rlx_value decay = rlx_mul(b->g, stride(b, layer, in.decay, s->heads),
                              llm_vector(b, layer, "ssm_a", RLX_LIST(s->heads)));
    rlx_value all =
        convolved(b, layer, "ssm_conv1d", in.qkv, 2 * keys + values, s->taps, RLX_OP_silu);
    rlx_value q = for_values(b, unit(b, llm_columns(b, all, 0, keys), s->groups, dim));
    rlx_value k = for_values(b, unit(b, llm_columns(b, all, keys, keys), s->groups, dim));
    rlx_value v = rlx_reshape(b->g, llm_columns(b, all, 2 * keys, values), by_head);
    rlx_value y = rlx_gated_delta_net(
        b->g, q, k, v, decay, rlx_sigmoid(b->g, in.beta),
        state(b, layer, "state", RLX_LIST(b->batch, s->heads, dim, dim)), dim, b->cached);
    y = llm_norm(b, layer, "ssm_norm", y, dim);
    y = rlx_mul(b->g, y, rlx_silu(b->g, rlx_reshape(b->g, in.gate, by_head)));
    y = rlx_reshape(b->g, y, RLX_LIST(b->batch, b->rows, values));
    return llm_linear(b, layer, "ssm_out", y, b->spec->width, values);
}
