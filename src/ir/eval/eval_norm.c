/* eval_norm.c: norms and their gradients, two passes over each normalised set (ops-core.md 11). */
#include <math.h>

#include "ir/eval/eval.h"

/* One normalised set: where its elements lie, and which channel (of gamma, beta) each has. */
struct set {
    const struct eval_tensor *x;
    int64_t base, n, step; /* element i at base + i * step */
    int64_t per_channel;   /* elements i * .. of one channel lie together; 1: one each */
    int64_t first_channel;
    bool center;               /* layer norm; false: rms */
    double eps, mean, inverse; /* filled by measure */
};

static int64_t element(const struct set *s, int64_t i)
{
    return s->base + i * s->step;
}

static int64_t channel(const struct set *s, int64_t i)
{
    return s->first_channel + i / s->per_channel;
}

static void measure(struct set *s)
{
    double sum = 0, square = 0;

    for (int64_t i = 0; s->center && i < s->n; i++)
        sum += s->x->at[element(s, i)].f;
    s->mean = s->center ? sum / (double)s->n : 0;
    for (int64_t i = 0; i < s->n; i++) {
        double v = s->x->at[element(s, i)].f - s->mean;
        square += v * v;
    }
    s->inverse = 1 / sqrt(square / (double)s->n + s->eps);
}

static double normal(const struct set *s, int64_t i)
{
    return (s->x->at[element(s, i)].f - s->mean) * s->inverse;
}

/* The sets of x along an axis: each line is one. */
static struct set line_set(const struct eval_tensor *x, int64_t axis, int64_t o, int64_t j,
                           bool center, double eps)
{
    struct eval_lines l = eval_lines(x, axis);

    return (struct set){.x = x,
                        .base = eval_line_at(&l, o, j),
                        .n = l.n,
                        .step = l.inner,
                        .per_channel = 1,
                        .center = center,
                        .eps = eps};
}

/* Group g of item n of [N, C, *]: consecutive channels, all of their positions. */
static struct set group_set(const struct eval_tensor *x, int64_t groups, int64_t k, double eps)
{
    int64_t channels = x->type.dim[1] / groups, sets = x->type.dim[0] * groups;
    int64_t n = sets ? x->count / sets : 0;

    return (struct set){.x = x,
                        .base = k * n,
                        .n = n,
                        .step = 1,
                        .per_channel = channels ? n / channels : 1,
                        .first_channel = k % groups * channels,
                        .center = true,
                        .eps = eps};
}

static void forward(struct set *s, const struct eval_tensor *gamma, const struct eval_tensor *beta,
                    struct eval_tensor *out)
{
    measure(s);
    for (int64_t i = 0; i < s->n; i++)
        out->at[element(s, i)].f =
            normal(s, i) * gamma->at[channel(s, i)].f + (beta ? beta->at[channel(s, i)].f : 0);
}

static double factor(const struct eval_tensor *gamma, const struct set *s, int64_t i)
{
    return gamma->at[channel(s, i)].f;
}

/* layer: s (h - mean(h) - xh mean(h xh)); rms: r h - r^3 x mean(h x), which is the same without the
 * mean of h. */
static void backward_input(struct set *s, const struct eval_tensor *gamma,
                           const struct eval_tensor *dy, struct eval_tensor *out)
{
    double mean_h = 0, mean_hx = 0;

    measure(s);
    for (int64_t i = 0; i < s->n; i++) {
        double h = dy->at[element(s, i)].f * factor(gamma, s, i);
        mean_h += h / (double)s->n;
        mean_hx += h * normal(s, i) / (double)s->n;
    }
    for (int64_t i = 0; i < s->n; i++) {
        double h = dy->at[element(s, i)].f * factor(gamma, s, i);
        out->at[element(s, i)].f =
            s->inverse * (h - (s->center ? mean_h : 0) - normal(s, i) * mean_hx);
    }
}

static void backward_gamma(struct set *s, const struct eval_tensor *dy, struct eval_tensor *out)
{
    measure(s);
    for (int64_t i = 0; i < s->n; i++)
        out->at[channel(s, i)].f += dy->at[element(s, i)].f * normal(s, i);
}

static void backward_beta(const struct set *s, const struct eval_tensor *dy,
                          struct eval_tensor *out)
{
    for (int64_t i = 0; i < s->n; i++)
        out->at[channel(s, i)].f += dy->at[element(s, i)].f;
}

/* ---- along an axis ---- */

static rlx_status along_axis(struct eval_call *c, int64_t axis, bool center, double eps)
{
    struct eval_lines l = eval_lines(c->in[0], axis);

    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t j = 0; j < l.inner; j++) {
            struct set s = line_set(c->in[0], axis, o, j, center, eps);
            forward(&s, c->in[1], c->in_count > 2 ? c->in[2] : NULL, c->out);
        }
    return RLX_OK;
}

rlx_status eval_layer_norm(struct eval_call *c)
{
    return along_axis(c, c->attr->layer_norm.axis, true, (double)c->attr->layer_norm.eps);
}

rlx_status eval_layer_norm_2d(struct eval_call *c)
{
    return along_axis(c, 1, true, (double)c->attr->layer_norm_2d.eps);
}

rlx_status eval_rms_norm(struct eval_call *c)
{
    return along_axis(c, c->attr->rms_norm.axis, false, (double)c->attr->rms_norm.eps);
}

enum part { PART_INPUT, PART_GAMMA, PART_BETA };

static rlx_status axis_backward(struct eval_call *c, int64_t axis, bool center, double eps,
                                enum part part)
{
    const struct eval_tensor *dy = c->in[c->in_count - 1];
    struct eval_lines l = eval_lines(c->in[0], axis);

    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t j = 0; j < l.inner; j++) {
            struct set s = line_set(c->in[0], axis, o, j, center, eps);
            if (part == PART_INPUT)
                backward_input(&s, c->in[1], dy, c->out);
            else if (part == PART_GAMMA)
                backward_gamma(&s, dy, c->out);
            else
                backward_beta(&s, dy, c->out);
        }
    return RLX_OK;
}

rlx_status eval_layer_norm_backward(struct eval_call *c)
{
    return axis_backward(c, c->attr->layer_norm_backward.axis, true,
                         (double)c->attr->layer_norm_backward.eps,
                         c->op == RLX_OP_layer_norm_backward_input ? PART_INPUT : PART_GAMMA);
}

rlx_status eval_rms_norm_backward(struct eval_call *c)
{
    enum part part = c->op == RLX_OP_rms_norm_backward_input   ? PART_INPUT
                     : c->op == RLX_OP_rms_norm_backward_gamma ? PART_GAMMA
                                                               : PART_BETA;
    return axis_backward(c, c->attr->rms_norm_backward.axis, false,
                         (double)c->attr->rms_norm_backward.eps, part);
}

/* ---- over groups of channels ---- */

rlx_status eval_group_norm(struct eval_call *c)
{
    int64_t groups = c->attr->group_norm.num_groups;

    for (int64_t k = 0; c->out->count && k < c->in[0]->type.dim[0] * groups; k++) {
        struct set s = group_set(c->in[0], groups, k, (double)c->attr->group_norm.eps);
        forward(&s, c->in[1], c->in[2], c->out);
    }
    return RLX_OK;
}

rlx_status eval_group_norm_backward(struct eval_call *c)
{
    const struct eval_tensor *dy = c->in[c->in_count - 1];
    int64_t groups = c->attr->group_norm_backward.num_groups;

    for (int64_t k = 0; c->in[0]->count && k < c->in[0]->type.dim[0] * groups; k++) {
        struct set s = group_set(c->in[0], groups, k, (double)c->attr->group_norm_backward.eps);
        if (c->op == RLX_OP_group_norm_backward_input)
            backward_input(&s, c->in[1], dy, c->out);
        else if (c->op == RLX_OP_group_norm_backward_gamma)
            backward_gamma(&s, dy, c->out);
        else
            backward_beta(&s, dy, c->out);
    }
    return RLX_OK;
}

/* ---- with given statistics ---- */

static int64_t channel_of(const struct eval_tensor *x, int64_t axis, int64_t k)
{
    int64_t index[RLX_MAX_RANK];

    eval_unflatten(x, k, index);
    return index[axis];
}

rlx_status eval_batch_norm_inference(struct eval_call *c)
{
    const struct attr_batch_norm_inference *a = &c->attr->batch_norm_inference;

    for (int64_t k = 0; k < c->out->count; k++) {
        int64_t ch = channel_of(c->out, a->axis, k);
        double v =
            (c->in[0]->at[k].f - c->in[3]->at[ch].f) / sqrt(c->in[4]->at[ch].f + (double)a->eps);
        c->out->at[k].f = v * c->in[1]->at[ch].f + c->in[2]->at[ch].f;
    }
    return RLX_OK;
}

rlx_status eval_batch_norm_inference_backward(struct eval_call *c)
{
    const struct attr_batch_norm_inference_backward *a = &c->attr->batch_norm_inference_backward;
    const struct eval_tensor *x = c->in[0], *dy = c->in[c->in_count - 1];

    for (int64_t k = 0; k < x->count; k++) {
        int64_t ch = channel_of(x, a->axis, k);
        if (c->op == RLX_OP_batch_norm_inference_backward_input) /* x gamma mean var dy */
            c->out->at[k].f =
                dy->at[k].f * c->in[1]->at[ch].f / sqrt(c->in[3]->at[ch].f + (double)a->eps);
        else if (c->op == RLX_OP_batch_norm_inference_backward_gamma) /* x mean var dy */
            c->out->at[ch].f += dy->at[k].f * (x->at[k].f - c->in[1]->at[ch].f) /
                                sqrt(c->in[2]->at[ch].f + (double)a->eps);
        else
            c->out->at[ch].f += dy->at[k].f;
    }
    return RLX_OK;
}

/* ---- adaptive, gated ---- */

static struct set last_axis_set(const struct eval_tensor *x, int64_t row, int32_t norm, float eps)
{
    return line_set(x, x->type.rank - 1, row, 0, norm == RLX_NORM_KIND_layer, (double)eps);
}

rlx_status eval_ada_layer_norm(struct eval_call *c)
{
    const struct eval_tensor *x = c->in[0], *scale = c->in[1], *shift = c->in[2];
    int64_t width = x->type.dim[x->type.rank - 1];

    for (int64_t row = 0; width && row < x->count / width; row++) {
        struct set s =
            last_axis_set(x, row, c->attr->ada_layer_norm.norm, c->attr->ada_layer_norm.eps);
        measure(&s);
        for (int64_t i = 0; i < s.n; i++) {
            int64_t k = element(&s, i);
            c->out->at[k].f = normal(&s, i) * (1 + scale->at[eval_broadcast(scale, c->out, k)].f) +
                              shift->at[eval_broadcast(shift, c->out, k)].f;
        }
    }
    return RLX_OK;
}

rlx_status eval_ada_layer_norm_backward(struct eval_call *c)
{
    const struct attr_ada_layer_norm_backward *a = &c->attr->ada_layer_norm_backward;
    const struct eval_tensor *x = c->in[0], *scale = c->in[1], *shift = c->in[2], *dy = c->in[3];
    int64_t width = x->type.dim[x->type.rank - 1];
    struct eval_cell *dx = c->out->at, *dscale = dx + x->count, *dshift = dscale + scale->count;

    for (int64_t row = 0; width && row < x->count / width; row++) {
        struct set s = last_axis_set(x, row, a->norm, a->eps);
        double mean_h = 0, mean_hx = 0;
        measure(&s);
        for (int64_t i = 0; i < s.n; i++) {
            int64_t k = element(&s, i), at = eval_broadcast(scale, x, k);
            double h = dy->at[k].f * (1 + scale->at[at].f);
            mean_h += h / (double)s.n;
            mean_hx += h * normal(&s, i) / (double)s.n;
            dscale[at].f += dy->at[k].f * normal(&s, i);
            dshift[eval_broadcast(shift, x, k)].f += dy->at[k].f;
        }
        for (int64_t i = 0; i < s.n; i++) {
            int64_t k = element(&s, i);
            double h = dy->at[k].f * (1 + scale->at[eval_broadcast(scale, x, k)].f);
            dx[k].f = s.inverse * (h - (s.center ? mean_h : 0) - normal(&s, i) * mean_hx);
        }
    }
    return RLX_OK;
}

rlx_status eval_gated_residual(struct eval_call *c)
{
    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k].f = c->in[0]->at[eval_broadcast(c->in[0], c->out, k)].f +
                          c->in[2]->at[eval_broadcast(c->in[2], c->out, k)].f *
                              c->in[1]->at[eval_broadcast(c->in[1], c->out, k)].f;
    return RLX_OK;
}

rlx_status eval_gated_residual_backward(struct eval_call *c)
{
    const struct eval_tensor *x = c->in[0], *y = c->in[1], *gate = c->in[2], *g = c->in[3];
    struct eval_cell *dx = c->out->at, *dy = dx + x->count, *dgate = dy + y->count;

    for (int64_t k = 0; k < g->count; k++) {
        int64_t at_y = eval_broadcast(y, g, k), at_gate = eval_broadcast(gate, g, k);
        dx[eval_broadcast(x, g, k)].f += g->at[k].f;
        dy[at_y].f += g->at[k].f * gate->at[at_gate].f;
        dgate[at_gate].f += g->at[k].f * y->at[at_y].f;
    }
    return RLX_OK;
}
