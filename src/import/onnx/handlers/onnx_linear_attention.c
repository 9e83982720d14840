/* onnx_linear_attention.c: LinearAttention of ONNX, and the convolution that models put before it.
 *
 *     S = e^g S;   d = beta (v - S^T k), or v;   S = S + k d^T;   o = scale S^T q       at each
 * step
 *
 * Few steps are written out one after the other. Many, or an unknown number, are one product of all
 * steps with all earlier ones, as in attention; what the delta rule takes off is then the solution
 * of a triangular system. With G the running sum of g, and D the rows d:
 *
 *     O = (Q K^T * M) D + e^G Q S0                  M_ij = e^(G_i - G_j) up to the diagonal, else 0
 *     (I + beta (K K^T * M below the diagonal)) D = beta (V - e^G K S0) */
#include <math.h>

#include "base/str.h"
#include "import/onnx/handlers/onnx_attention.h"

#define FEW_STEPS 16
#define MAX_STEPS 1024

enum input { QUERY, KEY, VALUE, PAST, DECAY, BETA };

struct recurrence {
    bool is_gated, is_delta;
    int64_t heads, group; /* of keys; queries to each */
    int64_t key_len, value_len;
    ir_dim batch, steps;
    ir_value q;     /* [B, H, G, T, dk], scaled */
    ir_value k, v;  /* [B, H, T, dk], [B, H, T, dv] */
    ir_value decay; /* [B, H, T, 1 or dk], a logarithm */
    ir_value beta;  /* [B, H or 1, T, 1] */
    ir_value state; /* [B, H, dk, dv]; RLX_NO_VALUE: zeros */
};

/* ---- inputs ---- */

/* Rows of that many heads, as [B, H, T, D], in the type that is computed in. */
static ir_value heads_of(struct onnx_call *c, size_t i, int64_t heads)
{
    if (onnx_type(c, i)->rank != 3)
        formula_fail(&c->f, RLX_ERROR_SHAPE, "input %zu has rank %d, not 3", i,
                     onnx_type(c, i)->rank);
    return formula_cast(&c->f, onnx_split_heads(c, onnx_in(c, i), heads), c->f.dtype);
}

static bool read_rule(struct onnx_call *c, struct recurrence *r)
{
    rlx_str rule = onnx_text(c, "update_rule", "gated_delta");

    r->is_gated = str_starts(rule, STR("gated"));
    r->is_delta = str_eq(rule, STR("delta")) || str_eq(rule, STR("gated_delta"));
    if (!r->is_delta && !str_eq(rule, STR("linear")) && !str_eq(rule, STR("gated")))
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "update_rule \"%.*s\"", STR_ARG(rule));
    else if (r->is_gated && !onnx_has(c, DECAY))
        formula_fail(&c->f, RLX_ERROR_FORMAT, "a gated rule without a decay");
    else if (r->is_delta && !onnx_has(c, BETA))
        formula_fail(&c->f, RLX_ERROR_FORMAT, "a delta rule without a beta");
    return !onnx_failed(c);
}

/* The optional inputs, whose last axis may be one for all of a head, or of all heads. */
static void read_gates(struct onnx_call *c, struct recurrence *r)
{
    struct formula *f = &c->f;

    r->decay = r->beta = r->state = RLX_NO_VALUE;
    if (r->is_gated) {
        r->decay = heads_of(c, DECAY, r->heads);
        ir_dim len = onnx_failed(c) ? 1 : formula_type(f, r->decay)->dim[3];
        if (len != 1 && len != r->key_len)
            formula_fail(f, RLX_ERROR_SHAPE, "a decay of %lld elements to a head of %lld keys",
                         (long long)len, (long long)r->key_len);
    }
    if (r->is_delta) {
        bool shared = onnx_type(c, BETA)->rank == 3 && onnx_type(c, BETA)->dim[2] == 1;
        r->beta = heads_of(c, BETA, shared ? 1 : r->heads);
        if (!onnx_failed(c) && formula_type(f, r->beta)->dim[3] != 1)
            formula_fail(f, RLX_ERROR_SHAPE, "a beta of several elements to a head");
    }
    if (onnx_has(c, PAST)) {
        struct ir_type t = {.dtype = onnx_type(c, PAST)->dtype,
                            .rank = 4,
                            .dim = {r->batch, r->heads, r->key_len, r->value_len}};
        if (!type_same(onnx_type(c, PAST), &t) && !onnx_failed(c))
            formula_fail(f, RLX_ERROR_SHAPE, "the past state is not [B, %lld, %lld, %lld]",
                         (long long)r->heads, (long long)r->key_len, (long long)r->value_len);
        r->state = formula_cast(f, onnx_in(c, PAST), f->dtype);
    }
}

static bool begin(struct onnx_call *c, struct recurrence *r)
{
    struct formula *f = &c->f;
    int64_t q_heads = onnx_int(c, "q_num_heads", 0);
    double scale = onnx_float(c, "scale", 0);

    *r = (struct recurrence){.heads = onnx_int(c, "kv_num_heads", 0)};
    f->dtype = formula_dtype(onnx_type(c, QUERY)->dtype);
    if (!read_rule(c, r))
        return false;
    struct onnx_heads h = {.q = heads_of(c, QUERY, q_heads),
                           .k = heads_of(c, KEY, r->heads),
                           .v = heads_of(c, VALUE, r->heads)};
    if (!onnx_measure_heads(c, &h))
        return false;
    const struct ir_type k = *formula_type(f, h.k), v = *formula_type(f, h.v);
    if (k.dim[3] != h.head || k.dim[2] != h.queries || v.dim[2] != h.queries || h.queries == 0) {
        formula_fail(f, RLX_ERROR_SHAPE,
                     "queries, keys and values differ in their steps or sizes, or have none");
        return false;
    }
    r->group = q_heads / r->heads;
    r->key_len = h.head;
    r->value_len = h.value_head;
    r->batch = h.batch;
    r->steps = h.queries;
    r->k = h.k;
    r->v = h.v;
    h.q = onnx_times(f, h.q, scale != 0 ? scale : 1 / sqrt((double)h.head));
    r->q = formula_reshape(f, h.q, RLX_LIST(h.batch, r->heads, r->group, h.queries, h.head));
    read_gates(c, r);
    return !onnx_failed(c);
}

/* ---- step after step ---- */

static ir_value at_step(struct formula *f, ir_value x, int64_t t)
{
    return formula_narrow(f, x, 2, t, 1);
}

static ir_value step(struct formula *f, struct recurrence *r, int64_t t)
{
    ir_value k = at_step(f, r->k, t), d = at_step(f, r->v, t);

    if (r->is_gated) { /* [B, H, 1, 1 or dk]: rows of the state are keys */
        ir_value g = formula_1(f, RLX_OP_exp, at_step(f, r->decay, t));
        r->state = formula_2(f, RLX_OP_mul, r->state, formula_swap(f, g));
    }
    if (r->is_delta) {
        d = formula_2(f, RLX_OP_sub, d, formula_matmul(f, k, r->state, false, false));
        d = formula_2(f, RLX_OP_mul, d, at_step(f, r->beta, t));
    }
    ir_value outer = formula_2(f, RLX_OP_mul, formula_swap(f, k), d);
    r->state = formula_2(f, RLX_OP_add, r->state, outer);
    ir_value q = formula_reshape(f, formula_narrow(f, r->q, 3, t, 1),
                                 RLX_LIST(r->batch, r->heads, r->group, r->key_len));
    return formula_reshape(f, formula_matmul(f, q, r->state, false, false),
                           RLX_LIST(r->batch, r->heads, r->group, 1, r->value_len));
}

static ir_value step_by_step(struct onnx_call *c, struct recurrence *r)
{
    struct formula *f = &c->f;
    ir_value part[MAX_STEPS];

    if (r->state == RLX_NO_VALUE) {
        struct ir_type t = {
            .dtype = f->dtype, .rank = 4, .dim = {r->batch, r->heads, r->key_len, r->value_len}};
        r->state = formula_fill(f, &t, 0);
    }
    for (int64_t t = 0; t < r->steps && !onnx_failed(c); t++)
        part[t] = step(f, r, t);
    return onnx_failed(c) ? RLX_NO_VALUE : formula_concat(f, part, (int32_t)r->steps, 3);
}

/* ---- all steps at once ---- */

/* M: what step i sees of step j, [B or 1, H or 1, T, T]; without the diagonal, if `below`. */
static ir_value seen(struct onnx_call *c, const struct recurrence *r, ir_value sum, bool below)
{
    struct formula *f = &c->f;
    ir_value n = onnx_iota(c, r->steps, RLX_DTYPE_i32);
    ir_value i = formula_reshape(f, n, RLX_LIST(1, 1, r->steps, 1));
    ir_value j = formula_reshape(f, n, RLX_LIST(1, 1, 1, r->steps));
    ir_value gap = sum == RLX_NO_VALUE ? formula_number(f, 0)
                                       : formula_2(f, RLX_OP_sub, sum, formula_swap(f, sum));

    gap = formula_where(f, formula_2(f, below ? RLX_OP_gt : RLX_OP_ge, i, j), gap,
                        formula_number(f, -INFINITY));
    return formula_1(f, RLX_OP_exp, gap);
}

/* x S0, decayed up to each step; x [.., T, dk]. */
static ir_value of_past(struct formula *f, ir_value x, ir_value state, ir_value sum)
{
    ir_value y = formula_matmul(f, x, state, false, false);

    return sum == RLX_NO_VALUE ? y : formula_2(f, RLX_OP_mul, y, formula_1(f, RLX_OP_exp, sum));
}

/* D, [B, H, T, dv] */
static ir_value solve_delta(struct onnx_call *c, const struct recurrence *r, ir_value sum)
{
    struct formula *f = &c->f;
    struct ir_type lead = {.rank = 2, .dim = {r->batch, r->heads}};
    ir_dim all = onnx_product(c, &lead, 0, 2);
    rlx_list square = RLX_LIST(r->batch, r->heads, r->steps, r->steps);
    ir_value rest = r->v;

    if (r->state != RLX_NO_VALUE)
        rest = formula_2(f, RLX_OP_sub, rest, of_past(f, r->k, r->state, sum));
    rest = formula_2(f, RLX_OP_mul, rest, r->beta);
    ir_value a = formula_matmul(f, r->k, r->k, false, true);
    a = formula_2(f, RLX_OP_mul, a, seen(c, r, sum, true));
    a = formula_expand(f, formula_2(f, RLX_OP_mul, a, r->beta), square);
    ir_value n = onnx_iota(c, r->steps, RLX_DTYPE_i32);
    ir_value one = formula_2(f, RLX_OP_eq, formula_reshape(f, n, RLX_LIST(r->steps, 1)), n);
    a = formula_2(f, RLX_OP_add, a, formula_cast(f, one, f->dtype));
    ir_value in[] = {formula_reshape(f, a, RLX_LIST(all, r->steps, r->steps)),
                     formula_reshape(f, rest, RLX_LIST(all, r->steps, r->value_len))};
    ir_value d = formula_node(f, RLX_OP_batched_dense_solve, in, 2, NULL);
    return formula_reshape(f, d, RLX_LIST(r->batch, r->heads, r->steps, r->value_len));
}

static ir_value all_at_once(struct onnx_call *c, struct recurrence *r)
{
    struct formula *f = &c->f;
    ir_value sum = RLX_NO_VALUE, last = RLX_NO_VALUE, k = r->k;
    rlx_list grouped = RLX_LIST(r->batch, r->heads, 1, r->steps, RLX_DIM_INFER);

    if (r->is_gated) {
        sum = onnx_cumsum_of(f, r->decay, 2, false);
        last = formula_reduce(f, RLX_OP_reduce_sum, r->decay, RLX_LIST(2), true);
    }
    ir_value d = r->is_delta ? solve_delta(c, r, sum) : r->v;
    ir_value m =
        formula_expand(f, seen(c, r, sum, false), RLX_LIST(r->batch, r->heads, r->steps, r->steps));
    ir_value a = formula_matmul(f, r->q, formula_reshape(f, k, grouped), false, true);
    a = formula_2(f, RLX_OP_mul, a, formula_reshape(f, m, grouped));
    ir_value y = formula_matmul(f, a, formula_reshape(f, d, grouped), false, false);
    if (r->state != RLX_NO_VALUE) {
        ir_value s =
            formula_reshape(f, r->state, RLX_LIST(r->batch, r->heads, 1, r->key_len, r->value_len));
        ir_value g = sum == RLX_NO_VALUE ? sum : formula_reshape(f, sum, grouped);
        y = formula_2(f, RLX_OP_add, y, of_past(f, r->q, s, g));
    }
    if (r->is_gated)
        k = formula_2(f, RLX_OP_mul, k,
                      formula_1(f, RLX_OP_exp, formula_2(f, RLX_OP_sub, last, sum)));
    ir_value state = formula_matmul(f, k, d, true, false);
    if (r->state != RLX_NO_VALUE) {
        ir_value kept = r->state;
        if (r->is_gated)
            kept = formula_2(f, RLX_OP_mul, kept, formula_1(f, RLX_OP_exp, last));
        state = formula_2(f, RLX_OP_add, state, kept);
    }
    r->state = state;
    return y;
}

void onnx_linear_attention(struct onnx_call *c)
{
    struct formula *f = &c->f;
    struct recurrence r;
    rlx_dtype type = onnx_type(c, QUERY)->dtype;

    if (!begin(c, &r))
        return;
    bool by_key = r.is_gated && formula_type(f, r.decay)->dim[3] != 1;
    if (by_key && (!dim_is_static(r.steps) || r.steps > MAX_STEPS)) {
        onnx_unsupported(c, "a decay of each key over an unknown number of steps, or over %d",
                         MAX_STEPS + 1);
        return;
    }
    bool few = by_key || (dim_is_static(r.steps) && r.steps <= FEW_STEPS);
    ir_value y = few ? step_by_step(c, &r) : all_at_once(c, &r);
    y = formula_transpose(f, y, RLX_LIST(0, 3, 1, 2, 4));
    y = formula_reshape(f, y, RLX_LIST(r.batch, r.steps, r.heads * r.group * r.value_len));
    onnx_give(c, 0, formula_cast(f, y, type));
    onnx_give(c, 1, formula_cast(f, r.state, onnx_has(c, PAST) ? onnx_type(c, PAST)->dtype : type));
}

/* ---- CausalConvWithState ---- */

/* x [B, C, L] after the k - 1 elements before it, [B, C, L + k - 1]. */
static ir_value with_past(struct onnx_call *c, const struct ir_type *x, int64_t before)
{
    struct ir_type t = *x;

    t.dim[2] = before;
    if (onnx_has(c, 3) && !type_same(onnx_type(c, 3), &t)) {
        formula_fail(&c->f, RLX_ERROR_SHAPE, "the past state is not [B, C, %lld]",
                     (long long)before);
        return RLX_NO_VALUE;
    }
    if (before == 0)
        return onnx_in(c, 0);
    ir_value past = onnx_has(c, 3) ? onnx_in(c, 3) : formula_fill(&c->f, &t, 0);
    return formula_concat(&c->f, (const ir_value[]){past, onnx_in(c, 0)}, 2, 2);
}

void onnx_causal_conv(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type x = *onnx_type(c, 0), w = *onnx_type(c, 1);
    rlx_str activation = onnx_text(c, "activation", "none");
    bool silu = str_eq(activation, STR("silu")) || str_eq(activation, STR("swish"));
    union ir_attr attr;

    if (!silu && !str_eq(activation, STR("none")))
        formula_fail(f, RLX_ERROR_ATTRIBUTE, "activation \"%.*s\"", STR_ARG(activation));
    if (x.rank != 3 || w.rank != 3 || !type_is_static(&w) || w.dim[0] != x.dim[1] ||
        w.dim[1] != 1 || w.dim[2] < 1)
        formula_fail(f, RLX_ERROR_SHAPE, "weights that are not [C, 1, k] to an input [B, C, L]");
    if (onnx_failed(c))
        return;
    int64_t before = w.dim[2] - 1;
    ir_value all = with_past(c, &x, before);
    attr_defaults(RLX_OP_conv, &attr);
    attr.conv.kernel_size = RLX_LIST(w.dim[2]);
    attr.conv.groups = w.dim[0];
    ir_value y = formula_node(f, RLX_OP_conv, (const ir_value[]){all, onnx_in(c, 1)}, 2, &attr);
    if (onnx_has(c, 2))
        y = formula_2(f, RLX_OP_add, y,
                      formula_reshape(f, onnx_in(c, 2), RLX_LIST(1, w.dim[0], 1)));
    onnx_give(c, 0, silu ? formula_1(f, RLX_OP_silu, y) : y);
    onnx_give(c, 1, formula_narrow(f, all, 2, x.dim[2], before));
}
