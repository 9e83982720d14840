/* eval_sequence_backward.c: gradients of the selective scan and of the gated delta rule, by the
 * formulas of ops-special.md 3, from the last step to the first. All states are kept on the way
 * there. The gradients of all operands come one after another, flat. */
#include <math.h>

#include "ir/eval/eval.h"

/* rows x width zeros. */
static double *zeros(struct eval_call *c, int64_t rows, int64_t width)
{
    double *v =
        arena_alloc_array(c->arena, (size_t)rows, (size_t)width * sizeof(double), _Alignof(double));

    if (!v) {
        diag_no_memory(c->diag, (size_t)width * sizeof *v);
        return NULL;
    }
    for (int64_t i = 0; i < rows * width; i++)
        v[i] = 0;
    return v;
}

/* Where the gradient of operand i begins. */
static struct eval_cell *part(struct eval_call *c, int32_t i)
{
    struct eval_cell *at = c->out->at;

    for (int32_t k = 0; k < i; k++)
        at += c->in[k]->count;
    return at;
}

/* ---- selective_scan ------------------------------------------------------------------------ */

/* Channel ch of item b. h [steps + 1, n]: the states before each step and after the last; row 0 is
 * zero. gh [n] is the cotangent of the state. */
static void scan_channel(struct eval_call *c, int64_t b, int64_t ch, double *h, double *gh)
{
    int64_t steps = c->in[0]->type.dim[1], channels = c->in[0]->type.dim[2];
    int64_t n = c->attr->selective_scan_backward.state_size;
    const struct eval_cell *a = c->in[2]->at + ch * n;
    struct eval_cell *da = part(c, 2) + ch * n;

    for (int64_t t = 0; t < steps; t++) {
        int64_t row = b * steps + t, at = row * channels + ch;
        double x = c->in[0]->at[at].f, delta = c->in[1]->at[at].f;
        for (int64_t i = 0; i < n; i++)
            h[(t + 1) * n + i] =
                exp(delta * a[i].f) * h[t * n + i] + delta * c->in[3]->at[row * n + i].f * x;
    }
    for (int64_t i = 0; i < n; i++)
        gh[i] = 0;
    for (int64_t t = steps - 1; t >= 0; t--) {
        int64_t row = b * steps + t, at = row * channels + ch;
        double x = c->in[0]->at[at].f, delta = c->in[1]->at[at].f, dy = c->in[5]->at[at].f;
        for (int64_t i = 0; i < n; i++) {
            double in = c->in[3]->at[row * n + i].f, out = c->in[4]->at[row * n + i].f;
            double e = exp(delta * a[i].f), before = h[t * n + i];
            gh[i] += dy * out;
            part(c, 4)[row * n + i].f += dy * h[(t + 1) * n + i];
            part(c, 3)[row * n + i].f += gh[i] * delta * x;
            part(c, 0)[at].f += gh[i] * delta * in;
            part(c, 1)[at].f += gh[i] * (a[i].f * e * before + in * x);
            da[i].f += gh[i] * delta * e * before;
            gh[i] *= e;
        }
    }
}

rlx_status eval_selective_scan_backward(struct eval_call *c)
{
    int64_t n = c->attr->selective_scan_backward.state_size;

    if (c->in[0]->count == 0) /* whatever its dims are; there may be zeros for other operands */
        return RLX_OK;
    double *h = zeros(c, c->in[0]->type.dim[1] + 1, n), *gh = zeros(c, 1, n);
    if (!h || !gh)
        return RLX_ERROR_MEMORY;
    for (int64_t b = 0; b < c->in[0]->type.dim[0]; b++)
        for (int64_t ch = 0; ch < c->in[0]->type.dim[2]; ch++)
            scan_channel(c, b, ch, h, gh);
    return RLX_OK;
}

/* ---- gated_delta_net ----------------------------------------------------------------------- */

/* The backward pass of one head; matrices are [n,n] by key and value index. */
struct delta {
    struct eval_call *c;
    int64_t n;
    double *s;       /* [steps + 1, n, n]: states before each step and after the last */
    double *gs;      /* the cotangent of the state */
    double *s1;      /* the state after the decay */
    double *p, *d;   /* [n]: what the state holds for the key, and what is written */
    double *gd, *gp; /* [n]: their cotangents */
};

static double operand(const struct delta *w, int32_t i, int64_t token, int64_t k)
{
    return w->c->in[i]->at[token * w->n + k].f;
}

/* s1, p and d of a token, from the state before it. */
static void decay_and_read(struct delta *w, int64_t token, const double *before)
{
    int64_t n = w->n;
    double decay = exp(w->c->in[3]->at[token].f), beta = w->c->in[4]->at[token].f;

    for (int64_t i = 0; i < n * n; i++)
        w->s1[i] = before[i] * decay;
    for (int64_t j = 0; j < n; j++) {
        w->p[j] = 0;
        for (int64_t i = 0; i < n; i++)
            w->p[j] += w->s1[i * n + j] * operand(w, 1, token, i);
        w->d[j] = (operand(w, 2, token, j) - w->p[j]) * beta;
    }
}

static void step_back(struct delta *w, int64_t token, const double *after)
{
    int64_t n = w->n;
    double decay = exp(w->c->in[3]->at[token].f), beta = w->c->in[4]->at[token].f;
    double root = 1 / sqrt((double)n);
    struct eval_cell *dq = part(w->c, 0) + token * n, *dk = part(w->c, 1) + token * n;
    struct eval_cell *dv = part(w->c, 2) + token * n, *dg = part(w->c, 3) + token;
    struct eval_cell *dbeta = part(w->c, 4) + token;

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            w->gs[i * n + j] += operand(w, 0, token, i) * operand(w, 5, token, j) * root;
            dq[i].f += after[i * n + j] * operand(w, 5, token, j) * root;
        }
    for (int64_t j = 0; j < n; j++) {
        w->gd[j] = 0;
        for (int64_t i = 0; i < n; i++)
            w->gd[j] += w->gs[i * n + j] * operand(w, 1, token, i);
        w->gp[j] = -beta * w->gd[j];
        dv[j].f = beta * w->gd[j];
        dbeta->f += w->gd[j] * (operand(w, 2, token, j) - w->p[j]);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            dk[i].f += w->gs[i * n + j] * w->d[j] + w->s1[i * n + j] * w->gp[j];
            w->gs[i * n + j] += operand(w, 1, token, i) * w->gp[j];
            dg->f += w->gs[i * n + j] * w->s1[i * n + j];
            w->gs[i * n + j] *= decay;
        }
}

static void delta_head(struct delta *w, int64_t b, int64_t h)
{
    int64_t n = w->n, square = n * n;
    int64_t steps = w->c->in[0]->type.dim[1], heads = w->c->in[0]->type.dim[2];

    for (int64_t t = 0; t < steps; t++) {
        int64_t token = (b * steps + t) * heads + h;
        decay_and_read(w, token, w->s + t * square);
        for (int64_t i = 0; i < square; i++)
            w->s[(t + 1) * square + i] = w->s1[i] + operand(w, 1, token, i / n) * w->d[i % n];
    }
    for (int64_t i = 0; i < square; i++)
        w->gs[i] = 0;
    for (int64_t t = steps - 1; t >= 0; t--) {
        int64_t token = (b * steps + t) * heads + h;
        decay_and_read(w, token, w->s + t * square);
        step_back(w, token, w->s + (t + 1) * square);
    }
}

rlx_status eval_gated_delta_net_backward(struct eval_call *c)
{
    int64_t n = c->attr->gated_delta_net_backward.state_size;
    struct delta w = {.c = c, .n = n};

    if (c->in[0]->count == 0) /* whatever its dims are: all others are empty then, too */
        return RLX_OK;
    double *room = zeros(c, 2 * n + 4, n);
    w.s = zeros(c, c->in[0]->type.dim[1] + 1, n * n);
    if (!room || !w.s)
        return RLX_ERROR_MEMORY;
    w.gs = room;
    w.s1 = w.gs + n * n;
    w.p = w.s1 + n * n;
    w.d = w.p + n;
    w.gd = w.d + n;
    w.gp = w.gd + n;
    for (int64_t b = 0; b < c->in[0]->type.dim[0]; b++)
        for (int64_t h = 0; h < c->in[0]->type.dim[2]; h++)
            delta_head(&w, b, h);
    return RLX_OK;
}
