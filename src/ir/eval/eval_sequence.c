/* eval_sequence.c: state-space scans and linear attention, step by step (ops-special.md 3, and
 * mamba2 of ops-core.md 21). */
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

/* ---- selective_scan ------------------------------------------------------------------------ */

/* Channel ch of item b; h [n] is its state. */
static void scan_channel(struct eval_call *c, int64_t b, int64_t ch, double *h)
{
    const struct eval_cell *x = c->in[0]->at, *delta = c->in[1]->at, *a = c->in[2]->at;
    int64_t steps = c->in[0]->type.dim[1], channels = c->in[0]->type.dim[2];
    int64_t n = c->attr->selective_scan.state_size;

    clear(h, n);
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
    if (c->out->count == 0) /* whatever its dims are */
        return RLX_OK;
    double *h = zeros(c, c->attr->selective_scan.state_size);
    if (!h)
        return RLX_ERROR_MEMORY;
    for (int64_t b = 0; b < c->in[0]->type.dim[0]; b++)
        for (int64_t ch = 0; ch < c->in[0]->type.dim[2]; ch++)
            scan_channel(c, b, ch, h);
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
    int64_t n = c->attr->gated_delta_net.state_size, square = n * n;
    int64_t items = c->in[0]->type.dim[0], steps = c->in[0]->type.dim[1];
    int64_t heads = c->in[0]->type.dim[2];
    bool carry = c->attr->gated_delta_net.carry_state;

    if (c->out->count == 0) /* whatever its dims are */
        return RLX_OK;
    double *d = zeros(c, n), *all = zeros(c, items * heads * square);
    if (!d || !all)
        return RLX_ERROR_MEMORY;
    for (int64_t i = 0; carry && i < c->in[5]->count; i++)
        all[i] = c->in[5]->at[i].f;
    for (int64_t b = 0; b < items; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t t = 0; t < steps; t++)
                delta_step(c, (b * steps + t) * heads + h, all + (b * heads + h) * square, d);
    /* Only now: an operand may be the same leaf. */
    for (int64_t i = 0; carry && c->state && i < c->state->count; i++)
        c->state->at[i].f = all[i];
    return RLX_OK;
}

/* ---- mamba2 -------------------------------------------------------------------------------- */

/* Head h of item b; m [d,n] is its state. */
static void mamba_head(struct eval_call *c, int64_t b, int64_t h, double *m)
{
    int64_t width = c->attr->mamba2.head_dim, n = c->attr->mamba2.state_size;
    int64_t steps = c->in[0]->type.dim[1], heads = c->in[0]->type.dim[2];

    clear(m, width * n);
    for (int64_t t = 0; t < steps; t++) {
        int64_t at = (b * steps + t) * heads + h;
        const struct eval_cell *x = c->in[0]->at + at * width;
        const struct eval_cell *in = c->in[3]->at + at * n, *out = c->in[4]->at + at * n;
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
    size_t width = (size_t)c->attr->mamba2.head_dim, n = (size_t)c->attr->mamba2.state_size;

    if (c->out->count == 0) /* whatever its dims are */
        return RLX_OK;
    double *m = arena_alloc_array(c->arena, width, n * sizeof(double), _Alignof(double));
    if (!m)
        return diag_no_memory(c->diag, n * sizeof *m);
    for (int64_t b = 0; b < c->in[0]->type.dim[0]; b++)
        for (int64_t h = 0; h < c->in[0]->type.dim[2]; h++)
            mamba_head(c, b, h, m);
    return RLX_OK;
}
