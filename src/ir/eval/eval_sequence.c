/* eval_sequence.c: state-space scans and linear attention, step by step (ops-special.md 3, and
 * mamba2 of ops-core.md 21), and a convolution along time. */
#include <math.h>

#include "ir/eval/eval.h"

static double *zeros(struct eval_call *c, int64_t count)
{
    double *v = arena_array(c->arena, double, (size_t)count);

    if (!v)
        diag_no_memory(c->diag, (size_t)count * sizeof *v);
    return v;
}

static void clear(double *v, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        v[i] = 0;
}

/* States of `each` numbers, one for every head or channel of every item. */
struct states {
    double *at;
    int64_t each;
    bool carried; /* else there is room for one, which is every one's in turn */
};

/* operand: the state, or -1 where all begin with zeros. */
static rlx_status states_begin(struct eval_call *c, struct states *s, int32_t operand, int64_t rows,
                               int64_t cols)
{
    const struct eval_tensor *from = operand < 0 ? NULL : c->in[operand];
    size_t count = from ? (size_t)from->count : (size_t)rows;

    *s = (struct states){.each = rows * cols, .carried = from != NULL};
    s->at = arena_alloc_array(c->arena, count, (from ? 1 : (size_t)cols) * sizeof *s->at,
                              _Alignof(double));
    if (!s->at)
        return diag_no_memory(c->diag, count * sizeof *s->at);
    for (int64_t i = 0; from && i < from->count; i++)
        s->at[i] = from->at[i].f;
    return RLX_OK;
}

static double *state_of(const struct states *s, int64_t k)
{
    if (s->carried)
        return s->at + k * s->each;
    clear(s->at, s->each);
    return s->at;
}

/* Only now: an operand may be the same leaf. */
static void states_end(struct eval_call *c, const struct states *s)
{
    for (int64_t i = 0; s->carried && c->state && i < c->state->count; i++)
        c->state->at[i].f = s->at[i];
}

/* ---- selective_scan ------------------------------------------------------------------------ */

/* Channel ch of item b; h [n] is its state. */
static void scan_channel(struct eval_call *c, int64_t b, int64_t ch, double *h)
{
    const struct eval_cell *x = c->in[0]->at, *delta = c->in[1]->at, *a = c->in[2]->at;
    int64_t steps = c->in[0]->type.dim[1], channels = c->in[0]->type.dim[2];
    int64_t n = c->attr->selective_scan.state_size;

    for (int64_t t = 0; t < steps; t++) {
        int64_t row = b * steps + t, at = row * channels + ch;
        const struct eval_cell *in = c->in[3]->at + row * n, *out = c->in[4]->at + row * n;
        double y = 0;
        for (int64_t i = 0; i < n; i++) {
            h[i] = exp(delta[at].f * a[ch * n + i].f) * h[i] + delta[at].f * in[i].f * x[at].f;
            y += out[i].f * h[i];
        }
        c->out->at[at].f = y;
    }
}

rlx_status eval_selective_scan(struct eval_call *c)
{
    const struct attr_selective_scan *a = &c->attr->selective_scan;
    int64_t items = c->in[0]->type.dim[0], channels = c->in[0]->type.dim[2];
    struct states h;

    if (c->out->count == 0) /* whatever its dims are */
        return RLX_OK;
    TRY(states_begin(c, &h, a->carry_state ? 5 : -1, 1, a->state_size));
    for (int64_t k = 0; k < items * channels; k++)
        scan_channel(c, k / channels, k % channels, state_of(&h, k));
    states_end(c, &h);
    return RLX_OK;
}

/* ---- gated_delta_net ----------------------------------------------------------------------- */

/* One token of one head: s [n,n] by key and value index; d [n] is room. */
static void delta_step(struct eval_call *c, int64_t token, double *s, double *d)
{
    int64_t n = c->attr->gated_delta_net.state_size;
    const struct eval_cell *q = c->in[0]->at + token * n, *k = c->in[1]->at + token * n;
    const struct eval_cell *v = c->in[2]->at + token * n;
    double decay = exp(c->in[3]->at[token].f), beta = c->in[4]->at[token].f;

    for (int64_t i = 0; i < n * n; i++)
        s[i] *= decay;
    for (int64_t j = 0; j < n; j++) {
        double p = 0;
        for (int64_t i = 0; i < n; i++)
            p += s[i * n + j] * k[i].f;
        d[j] = (v[j].f - p) * beta;
    }
    for (int64_t i = 0; i < n * n; i++)
        s[i] += k[i / n].f * d[i % n];
    for (int64_t j = 0; j < n; j++) {
        double o = 0;
        for (int64_t i = 0; i < n; i++)
            o += s[i * n + j] * q[i].f;
        c->out->at[token * n + j].f = o / sqrt((double)n);
    }
}

rlx_status eval_gated_delta_net(struct eval_call *c)
{
    int64_t n = c->attr->gated_delta_net.state_size;
    int64_t items = c->in[0]->type.dim[0], steps = c->in[0]->type.dim[1];
    int64_t heads = c->in[0]->type.dim[2];
    struct states m;

    if (c->out->count == 0) /* whatever its dims are */
        return RLX_OK;
    double *d = zeros(c, n);
    if (!d)
        return RLX_ERROR_MEMORY;
    TRY(states_begin(c, &m, c->attr->gated_delta_net.carry_state ? 5 : -1, n, n));
    for (int64_t k = 0; k < items * heads; k++) {
        double *s = state_of(&m, k);
        for (int64_t t = 0; t < steps; t++)
            delta_step(c, (k / heads * steps + t) * heads + k % heads, s, d);
    }
    states_end(c, &m);
    return RLX_OK;
}

/* ---- mamba2 -------------------------------------------------------------------------------- */

/* Head h of item b; m [d,n] is its state. */
static void mamba_head(struct eval_call *c, int64_t b, int64_t h, double *m)
{
    int64_t width = c->attr->mamba2.head_dim, n = c->attr->mamba2.state_size;
    int64_t steps = c->in[0]->type.dim[1], heads = c->in[0]->type.dim[2];
    int64_t groups = c->in[3]->type.dim[2], group = h / (heads / groups);

    for (int64_t t = 0; t < steps; t++) {
        int64_t at = (b * steps + t) * heads + h, line = (b * steps + t) * groups + group;
        const struct eval_cell *x = c->in[0]->at + at * width;
        const struct eval_cell *in = c->in[3]->at + line * n, *out = c->in[4]->at + line * n;
        double dt = c->in[1]->at[at].f, decay = exp(dt * c->in[2]->at[h].f);
        for (int64_t i = 0; i < width; i++) {
            double y = 0;
            for (int64_t j = 0; j < n; j++) {
                m[i * n + j] = decay * m[i * n + j] + dt * x[i].f * in[j].f;
                y += m[i * n + j] * out[j].f;
            }
            c->out->at[at * width + i].f = y;
        }
    }
}

rlx_status eval_mamba2(struct eval_call *c)
{
    const struct attr_mamba2 *a = &c->attr->mamba2;
    int64_t items = c->in[0]->type.dim[0], heads = c->in[0]->type.dim[2];
    struct states m;

    if (c->out->count == 0) /* whatever its dims are */
        return RLX_OK;
    TRY(states_begin(c, &m, a->carry_state ? 5 : -1, a->head_dim, a->state_size));
    for (int64_t k = 0; k < items * heads; k++)
        mamba_head(c, k / heads, k % heads, state_of(&m, k));
    states_end(c, &m);
    return RLX_OK;
}

/* ---- causal_conv --------------------------------------------------------------------------- */

/* Row t of item b, channel ch: one of x, or one before the first, which is of the state or 0. */
static double conv_row(const struct eval_call *c, int64_t b, int64_t t, int64_t ch)
{
    int64_t steps = c->in[0]->type.dim[1], channels = c->in[0]->type.dim[2];
    int64_t held = c->in[1]->type.dim[1] - 1;

    if (t >= 0)
        return c->in[0]->at[(b * steps + t) * channels + ch].f;
    return c->attr->causal_conv.carry_state ? c->in[2]->at[(b * held + held + t) * channels + ch].f
                                            : 0;
}

/* The last rows, one fewer than there are taps, become the state. Those that stay come from further
 * up in it; those of x it may be itself. */
static void keep_rows(struct eval_call *c)
{
    int64_t items = c->in[0]->type.dim[0], steps = c->in[0]->type.dim[1];
    int64_t channels = c->in[0]->type.dim[2], held = c->in[1]->type.dim[1] - 1;

    for (int64_t k = 0; k < items * held * channels; k++) {
        int64_t row = k / channels % held, t = steps - held + row;
        c->state->at[k].f = conv_row(c, k / channels / held, t, k % channels);
    }
}

rlx_status eval_causal_conv(struct eval_call *c)
{
    const struct attr_causal_conv *a = &c->attr->causal_conv;
    int64_t steps = c->in[0]->type.dim[1], channels = c->in[0]->type.dim[2];
    int64_t taps = c->in[1]->type.dim[1];
    int32_t bias = a->carry_state ? 3 : 2;

    for (int64_t k = 0; k < c->out->count; k++) {
        int64_t ch = k % channels, t = k / channels % steps, b = k / channels / steps;
        double y = c->in_count > bias ? c->in[bias]->at[ch].f : 0;
        for (int64_t i = 0; i < taps; i++)
            y += c->in[1]->at[ch * taps + i].f * conv_row(c, b, t - (taps - 1) + i, ch);
        c->out->at[k].f = a->activation == RLX_OP_none ? y : eval_unary_value(a->activation, y);
    }
    if (c->state)
        keep_rows(c);
    return RLX_OK;
}
