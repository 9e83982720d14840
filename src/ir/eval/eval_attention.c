/* eval_attention.c: attention and rotary embedding, one query at a time (ops-core.md 13, 14). */
#include <math.h>

#include "ir/attention.h"
#include "ir/eval/eval.h"

/* The attributes of attention and of its gradient, which are the same but for `wrt`. */
struct geometry {
    int64_t heads, kv_heads, head_dim, value_dim, window;
    int32_t mask_kind, layout;
    double scale, cap; /* cap 0: none */
    int64_t batch, queries, keys;
    const struct eval_tensor *mask, *sinks; /* NULL: none */
    double max_bias;                        /* 0: no slopes */
};

/* Operands from `first` on are the mask and the sinks. */
static struct geometry geometry_of(const struct attr_attention *a, const struct eval_call *c,
                                   int32_t first)
{
    const int64_t *qd = c->in[0]->type.dim, *kd = c->in[1]->type.dim;
    int32_t mask = attention_mask_operand(a, first), sinks = attention_sinks_operand(a, first);
    struct geometry g = {.heads = a->num_heads,
                         .kv_heads = a->num_kv_heads,
                         .head_dim = a->head_dim,
                         .value_dim = attention_value_dim(a),
                         .window = a->window,
                         .mask_kind = a->mask_kind,
                         .layout = a->layout,
                         .mask = mask < 0 ? NULL : c->in[mask],
                         .sinks = sinks < 0 ? NULL : c->in[sinks],
                         .max_bias = isnan(a->alibi_max_bias) ? 0 : (double)a->alibi_max_bias};

    g.scale = isnan(a->score_scale) ? 1 / sqrt((double)a->head_dim) : (double)a->score_scale;
    g.cap = isnan(a->logit_softcap) ? 0 : (double)a->logit_softcap;
    switch (a->layout) {
    case RLX_ATTENTION_LAYOUT_bhsd: g.batch = qd[0], g.queries = qd[2], g.keys = kd[2]; break;
    case RLX_ATTENTION_LAYOUT_folded:
        g.batch = qd[0] / g.heads, g.queries = qd[1], g.keys = kd[1];
        break;
    default: g.batch = qd[0], g.queries = qd[1], g.keys = kd[1]; break;
    }
    return g;
}

/* Where element d of row s of a head lies; `heads`, `rows` and `dim` are of that operand. */
static int64_t at(const struct geometry *g, int64_t heads, int64_t rows, int64_t dim, int64_t b,
                  int64_t h, int64_t s, int64_t d)
{
    switch (g->layout) {
    case RLX_ATTENTION_LAYOUT_bhsd:
    case RLX_ATTENTION_LAYOUT_folded: return ((b * heads + h) * rows + s) * dim + d;
    default: return ((b * rows + s) * heads + h) * dim + d;
    }
}

static int64_t at_query(const struct geometry *g, int64_t b, int64_t h, int64_t i, int64_t d)
{
    return at(g, g->heads, g->queries, g->head_dim, b, h, i, d);
}

/* Of the result, and of its gradient. */
static int64_t at_result(const struct geometry *g, int64_t b, int64_t h, int64_t i, int64_t d)
{
    return at(g, g->heads, g->queries, g->value_dim, b, h, i, d);
}

static int64_t at_key(const struct geometry *g, int64_t b, int64_t h, int64_t j, int64_t d)
{
    return at(g, g->kv_heads, g->keys, g->head_dim, b, h * g->kv_heads / g->heads, j, d);
}

static int64_t at_value(const struct geometry *g, int64_t b, int64_t h, int64_t j, int64_t d)
{
    return at(g, g->kv_heads, g->keys, g->value_dim, b, h * g->kv_heads / g->heads, j, d);
}

/* The mask read as rank 4: [B,Sk] is [B,1,1,Sk], [B,Sq,Sk] is [B,1,Sq,Sk]; ones broadcast. */
static int64_t at_mask(const struct eval_tensor *m, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const int64_t *d = m->type.dim;
    int64_t shape[4] = {d[0], 1, 1, d[m->type.rank - 1]}, index[4] = {b, h, i, j}, k = 0;

    if (m->type.rank >= 3)
        shape[2] = d[m->type.rank - 2];
    if (m->type.rank == 4)
        shape[1] = d[1];
    for (int a = 0; a < 4; a++)
        k = k * shape[a] + (shape[a] == 1 ? 0 : index[a]);
    return k;
}

static bool is_allowed(const struct geometry *g, int64_t b, int64_t h, int64_t i, int64_t j)
{
    int64_t p = i + (g->keys > g->queries ? g->keys - g->queries : 0);

    switch (g->mask_kind) {
    case RLX_MASK_KIND_causal: return j <= p;
    case RLX_MASK_KIND_sliding_window: return j <= p && j >= p - g->window;
    case RLX_MASK_KIND_symmetric_window: return (j > p ? j - p : p - j) <= g->window;
    case RLX_MASK_KIND_chunked_window: return j <= p && j >= p / g->window * g->window;
    case RLX_MASK_KIND_custom:
        return g->mask && eval_real(g->mask, at_mask(g->mask, b, h, i, j)) >= 0.5;
    default: return true;
    }
}

/* ALiBi: half of the heads or more have powers of 2^(-max_bias / period), the others those of its
 * square root that are missing. */
static double slope(const struct geometry *g, int64_t h)
{
    double period = 1;

    while (period * 2 <= (double)g->heads)
        period *= 2;
    if ((double)h < period)
        return pow(2, -g->max_bias * (double)(h + 1) / period);
    return pow(2, -g->max_bias / 2 * (2 * ((double)h - period) + 1) / period);
}

static double distance(const struct geometry *g, int64_t i, int64_t j)
{
    int64_t p = i + (g->keys > g->queries ? g->keys - g->queries : 0);

    return fabs((double)(p - j));
}

/* Probabilities p, where the largest score was `top`, with a sink among those they are shares of:
 * e^(sink - top) more than the sum of the others, which is 1 / (the largest probability). */
static void sink_into(double *p, int64_t n, double top, double sink)
{
    double most = 0;

    for (int64_t j = 0; j < n; j++)
        most = p[j] > most || isnan(p[j]) ? p[j] : most;
    for (int64_t j = 0; j < n; j++)
        p[j] /= 1 + most * exp(sink - top);
}

/* The probabilities of one query, false if all are 0; capped[j] are the scores after the soft-cap,
 * before the bias. */
static bool probabilities(const struct geometry *g, const struct eval_tensor *q,
                          const struct eval_tensor *k, int64_t b, int64_t h, int64_t i, double *p,
                          double *capped)
{
    double top = -(double)INFINITY;

    for (int64_t j = 0; j < g->keys; j++) {
        double s = 0;
        p[j] = -(double)INFINITY;
        capped[j] = 0;
        if (!is_allowed(g, b, h, i, j))
            continue;
        for (int64_t d = 0; d < g->head_dim; d++)
            s += q->at[at_query(g, b, h, i, d)].f * k->at[at_key(g, b, h, j, d)].f;
        s *= g->scale;
        capped[j] = s = g->cap > 0 ? g->cap * tanh(s / g->cap) : s;
        if (g->max_bias > 0)
            s -= slope(g, h) * distance(g, i, j);
        p[j] = s + (g->mask && g->mask_kind == RLX_MASK_KIND_bias
                        ? g->mask->at[at_mask(g->mask, b, h, i, j)].f
                        : 0);
        top = fmax(top, p[j]);
    }
    eval_softmax_line(p, p, g->keys);
    if (g->sinks && top != -(double)INFINITY)
        sink_into(p, g->keys, top, g->sinks->at[h].f);
    for (int64_t j = 0; j < g->keys; j++)
        if (p[j] != 0)
            return true;
    return false;
}

rlx_status eval_attention(struct eval_call *c)
{
    struct geometry g = geometry_of(&c->attr->attention, c, 3);
    double *p = arena_array(c->arena, double, (size_t)g.keys);
    double *capped = arena_array(c->arena, double, (size_t)g.keys);

    if (!p || !capped)
        return diag_no_memory(c->diag, (size_t)g.keys * sizeof *p);
    for (int64_t b = 0; b < g.batch; b++)
        for (int64_t h = 0; h < g.heads; h++)
            for (int64_t i = 0; i < g.queries; i++) {
                if (!probabilities(&g, c->in[0], c->in[1], b, h, i, p, capped))
                    continue; /* zeros, whatever the values are */
                for (int64_t d = 0; d < g.value_dim; d++)
                    for (int64_t j = 0; j < g.keys; j++)
                        if (is_allowed(&g, b, h, i, j)) /* a masked value may be NaN */
                            c->out->at[at_result(&g, b, h, i, d)].f +=
                                p[j] * c->in[2]->at[at_value(&g, b, h, j, d)].f;
            }
    return RLX_OK;
}

/* ---- backward ---- */

static void add_row(struct eval_call *c, const struct geometry *g, int64_t b, int64_t h, int64_t i,
                    const double *p, const double *capped, const double *dp, double delta)
{
    const struct eval_tensor *q = c->in[0], *k = c->in[1], *dy = c->in[3];

    for (int64_t j = 0; j < g->keys; j++) {
        double dz = p[j] * (dp[j] - delta), ds;
        if (!is_allowed(g, b, h, i, j) || p[j] == 0)
            continue;
        ds = dz * g->scale * (g->cap > 0 ? 1 - capped[j] / g->cap * (capped[j] / g->cap) : 1);
        switch (c->attr->attention_backward.wrt) {
        case RLX_ATTENTION_WRT_bias: c->out->at[at_mask(c->out, b, h, i, j)].f += dz; break;
        case RLX_ATTENTION_WRT_query:
            for (int64_t d = 0; d < g->head_dim; d++)
                c->out->at[at_query(g, b, h, i, d)].f += ds * k->at[at_key(g, b, h, j, d)].f;
            break;
        case RLX_ATTENTION_WRT_key:
            for (int64_t d = 0; d < g->head_dim; d++)
                c->out->at[at_key(g, b, h, j, d)].f += ds * q->at[at_query(g, b, h, i, d)].f;
            break;
        default:
            for (int64_t d = 0; d < g->value_dim; d++)
                c->out->at[at_value(g, b, h, j, d)].f += p[j] * dy->at[at_result(g, b, h, i, d)].f;
            break;
        }
    }
}

rlx_status eval_attention_backward(struct eval_call *c)
{
    struct attr_attention forward;

    attention_of_backward(&c->attr->attention_backward, &forward);
    struct geometry g = geometry_of(&forward, c, 4);
    double *p = arena_array(c->arena, double, (size_t)g.keys);
    double *capped = arena_array(c->arena, double, (size_t)g.keys);
    double *dp = arena_array(c->arena, double, (size_t)g.keys);

    if (!p || !capped || !dp)
        return diag_no_memory(c->diag, (size_t)g.keys * sizeof *p);
    for (int64_t b = 0; b < g.batch; b++)
        for (int64_t h = 0; h < g.heads; h++)
            for (int64_t i = 0; i < g.queries; i++) {
                double delta = 0;
                probabilities(&g, c->in[0], c->in[1], b, h, i, p, capped);
                for (int64_t j = 0; j < g.keys; j++) {
                    dp[j] = 0;
                    if (!is_allowed(&g, b, h, i, j) || p[j] == 0)
                        continue;
                    for (int64_t d = 0; d < g.value_dim; d++)
                        dp[j] += c->in[3]->at[at_result(&g, b, h, i, d)].f *
                                 c->in[2]->at[at_value(&g, b, h, j, d)].f;
                    delta += p[j] * dp[j];
                }
                add_row(c, &g, b, h, i, p, capped, dp, delta);
            }
    return RLX_OK;
}

/* ---- rotary embedding ---- */

static rlx_status turn(struct eval_call *c, const struct attr_rope *a, double sign)
{
    const struct eval_tensor *x = c->in[0], *cos_t = c->in[1], *sin_t = c->in[2];
    int64_t width = cos_t->type.dim[cos_t->type.rank - 1], half = a->n_rot / 2;
    int64_t rows = cos_t->type.dim[cos_t->type.rank - 2];

    for (int64_t k = 0; k < x->count; k++) {
        int64_t index[RLX_MAX_RANK], pair, other;
        eval_unflatten(x, k, index);
        int64_t i = index[x->type.rank - 1] % a->head_dim;
        if (i >= a->n_rot) {
            c->out->at[k].f = x->at[k].f;
            continue;
        }
        bool second = a->style == RLX_ROPE_STYLE_half ? i >= half : i % 2;
        pair = a->style == RLX_ROPE_STYLE_half ? i % half : i / 2;
        other = a->style == RLX_ROPE_STYLE_half ? (second ? -half : half) : (second ? -1 : 1);
        int64_t row = (cos_t->type.rank == 3 ? index[0] * rows : 0) + index[a->seq_axis];
        double cosine = cos_t->at[row * width + pair].f,
               sine = sign * sin_t->at[row * width + pair].f;
        c->out->at[k].f = x->at[k].f * cosine + (second ? 1 : -1) * x->at[k + other].f * sine;
    }
    return RLX_OK;
}

rlx_status eval_rope(struct eval_call *c)
{
    return turn(c, &c->attr->rope, 1);
}

rlx_status eval_rope_backward(struct eval_call *c)
{
    const struct attr_rope_backward *b = &c->attr->rope_backward;
    const struct attr_rope a = {b->head_dim, b->n_rot, b->style, b->seq_axis};

    return turn(c, &a, -1);
}

rlx_status eval_axial_rope_2d(struct eval_call *c)
{
    const struct attr_axial_rope_2d *a = &c->attr->axial_rope_2d;
    const struct eval_tensor *x = c->in[0];
    int64_t width = x->type.dim[2];

    for (int64_t k = 0; k < x->count; k++) {
        int64_t token = k / width % x->type.dim[1], i = k % width % a->head_dim;
        int64_t pos = token / a->repeat_factor, half = a->head_dim / 2;
        int64_t place = i < half ? pos % a->end_x : pos / a->end_x;
        int64_t pair = i % half / 2;
        double angle =
            (double)place * pow((double)a->theta, -4.0 * (double)pair / (double)a->head_dim);
        c->out->at[k].f = i % 2 ? x->at[k].f * cos(angle) + x->at[k - 1].f * sin(angle)
                                : x->at[k].f * cos(angle) - x->at[k + 1].f * sin(angle);
    }
    return RLX_OK;
}
