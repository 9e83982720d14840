/* optimiser.c: what an update does to one param, as PyTorch does it. With gradient G, rate r, decay
 * d and update number t:
 *
 *     AdamW   P -= r d P;   M = b1 M + (1 - b1) G;   V = b2 V + (1 - b2) G^2
 *             P -= r / (1 - b1^t) M / (sqrt(V / (1 - b2^t)) + eps)
 *     Adam    the same, with G + d P for G in place of the first step
 *     SGD     G += d P;   M = m M + G;   P -= r (M, or G + m M with nesterov)
 *     Lion    P -= r d P;   P -= r sign(b1 M + (1 - b1) G);   M = b2 M + (1 - b2) G
 *     Muon    P -= r d P;   M = m M + (1 - m) G;   P -= r sqrt(max(1, rows / columns))
 *             orthogonal(m M + (1 - m) G)
 *
 * Each new content is one elementwise chain over what is there, so that it becomes one step that
 * writes where it reads. What reads the old content of a state stands before its writer. */
#include "graph/builder.h"
#include "train/train.h"

static rlx_value times(rlx_graph *g, rlx_value x, double v)
{
    return rlx_mul(g, x, train_number(g, x, v));
}

/* a x + b y, of numbers */
static rlx_value mix(rlx_graph *g, double a, rlx_value x, double b, rlx_value y)
{
    return rlx_add(g, times(g, x, a), times(g, y, b));
}

/* The old content where there is no update. */
static rlx_value settled(const struct train *t, rlx_value now, rlx_value old)
{
    return rlx_where(t->g, t->now.apply, now, old);
}

/* c times the gradient as it is to be used. What is multiplied first are numbers, so that no two
 * chains have a product in common that would have to be kept. */
static rlx_value grad_by(const struct train *t, const struct train_param *p, rlx_value c)
{
    return rlx_mul(t->g, p->grad,
                   t->now.factor == RLX_NO_VALUE ? c : rlx_mul(t->g, c, t->now.factor));
}

static rlx_value grad_times(const struct train *t, const struct train_param *p, double c)
{
    return grad_by(t, p, train_number(t->g, t->now.rate, c));
}

static rlx_value wide(const struct train *t, const struct train_param *p)
{
    return rlx_cast(t->g, p->leaf, p->wide);
}

/* The param's new content is now, of the wide type. */
static void move(struct train *t, const struct train_param *p, rlx_value now)
{
    train_write(t, p->leaf, rlx_cast(t->g, settled(t, now, wide(t, p)), p->dtype));
}

static rlx_value keep(struct train *t, rlx_value state, rlx_value now)
{
    now = settled(t, now, state);
    train_write(t, state, now);
    return now;
}

/* P (1 - r d) */
static rlx_value decayed(const struct train *t, const struct train_param *p, rlx_value rate)
{
    rlx_value x = wide(t, p), left;

    if (!p->decays)
        return x;
    left = rlx_sub(t->g, train_number(t->g, rate, 1), times(t->g, rate, (double)t->desc->decay));
    return rlx_mul(t->g, x, left);
}

/* c (G + d P) */
static rlx_value drawn(const struct train *t, const struct train_param *p, double c)
{
    rlx_value grad = grad_times(t, p, c), x = wide(t, p);

    return p->decays ? rlx_add(t->g, grad, times(t->g, x, c * (double)t->desc->decay)) : grad;
}

/* c (G + d P)^2 */
static rlx_value drawn_square(const struct train *t, const struct train_param *p, double c)
{
    rlx_value one = drawn(t, p, 1), f = t->now.factor;

    if (p->decays)
        return rlx_mul(t->g, times(t->g, one, c), one);
    return rlx_mul(t->g, f == RLX_NO_VALUE ? grad_times(t, p, c) : grad_by(t, p, times(t->g, f, c)),
                   p->grad);
}

static void adam(struct train *t, struct train_param p, bool w)
{
    rlx_graph *g = t->g;
    double b1 = (double)t->desc->beta1, b2 = (double)t->desc->beta2;
    rlx_value rate = t->desc->optimiser == RLX_OPTIMISER_MUON ? t->now.plain_rate : t->now.rate;
    rlx_value m = train_state(t, w ? "adamw.m" : "adam.m", &p);
    rlx_value v = train_state(t, w ? "adamw.v" : "adam.v", &p);
    rlx_value x = w ? decayed(t, &p, rate) : wide(t, &p);

    p.decays &= !w;
    m = keep(t, m, rlx_add(g, times(g, m, b1), drawn(t, &p, 1 - b1)));
    v = keep(t, v, rlx_add(g, times(g, v, b2), drawn_square(t, &p, 1 - b2)));
    rlx_value size = rlx_mul(g, rlx_sqrt(g, v), rlx_rsqrt(g, t->now.unbias2));
    rlx_value step = rlx_div(g, m, rlx_add(g, size, train_number(g, size, (double)t->desc->eps)));
    move(t, &p, rlx_sub(g, x, rlx_mul(g, step, rlx_div(g, rate, t->now.unbias1))));
}

static void sgd(struct train *t, const struct train_param *p)
{
    rlx_graph *g = t->g;
    double momentum = (double)t->desc->momentum;
    rlx_value x = wide(t, p), rate = t->now.rate, m;

    if (momentum == 0) {
        move(t, p, rlx_sub(g, decayed(t, p, rate), grad_by(t, p, rate)));
        return;
    }
    m = train_state(t, "sgd.m", p);
    m = keep(t, m, rlx_add(g, times(g, m, momentum), drawn(t, p, 1)));
    if (t->desc->nesterov) { /* r (G + d P + m M) in another order */
        x = rlx_sub(g, decayed(t, p, rate), grad_by(t, p, rate));
        rate = times(g, rate, momentum);
    }
    move(t, p, rlx_sub(g, x, rlx_mul(g, m, rate)));
}

static void lion(struct train *t, const struct train_param *p)
{
    rlx_graph *g = t->g;
    double b1 = (double)t->desc->beta1, b2 = (double)t->desc->beta2;
    rlx_value m = train_state(t, "lion.m", p);
    rlx_value way = rlx_sign(g, rlx_add(g, times(g, m, b1), grad_times(t, p, 1 - b1)));

    move(t, p, rlx_sub(g, decayed(t, p, t->now.rate), rlx_mul(g, way, t->now.rate)));
    keep(t, m, rlx_add(g, times(g, m, b2), grad_times(t, p, 1 - b2)));
}

/* About the orthogonal matrix nearest to x: five steps of x = a x + (b y + c y^2) x, y = x x^T,
 * whose coefficients bring singular values from 0 to 1 near to 1 quickly. */
static rlx_value orthogonal(rlx_graph *g, rlx_value x, const rlx_list *shape)
{
    const double a = 3.4445, b = -4.7750, c = 2.0315;
    bool tall = shape->at[0] > shape->at[1];
    rlx_value sum, length;

    if (tall)
        x = rlx_transpose(g, x, RLX_LIST(1, 0));
    sum = rlx_reduce_sum(g, rlx_mul(g, x, x), RLX_LIST(0, 1), true);
    length = rlx_sqrt(g, sum);
    x = rlx_div(g, x, rlx_max(g, length, rlx_scalar(g, length, 1e-7)));
    for (int i = 0; i < 5; i++) {
        rlx_value y = rlx_matmul(g, x, x, false, true);
        rlx_value z = mix(g, b, y, c, rlx_matmul(g, y, y, false, false));
        x = rlx_add(g, times(g, x, a), rlx_matmul(g, z, x, false, false));
    }
    return tall ? rlx_transpose(g, x, RLX_LIST(1, 0)) : x;
}

static void muon(struct train *t, const struct train_param *p)
{
    rlx_graph *g = t->g;
    double momentum = (double)t->desc->momentum;
    double ratio = (double)p->shape.at[0] / (double)p->shape.at[1];
    rlx_value m = train_state(t, "muon.m", p), rest = grad_times(t, p, 1 - momentum);

    m = keep(t, m, rlx_add(g, times(g, m, momentum), rest));
    rlx_value way = orthogonal(g, rlx_add(g, times(g, m, momentum), rest), &p->shape);
    rlx_value rate = times(g, t->now.rate, __builtin_sqrt(ratio > 1 ? ratio : 1));
    move(t, p, rlx_sub(g, decayed(t, p, t->now.rate), rlx_mul(g, way, rate)));
}

rlx_status train_update(struct train *t, const struct train_param *p)
{
    rlx_error err;

    switch (p->by) {
    case RLX_OPTIMISER_ADAMW: adam(t, *p, true); break;
    case RLX_OPTIMISER_ADAM: adam(t, *p, false); break;
    case RLX_OPTIMISER_SGD: sgd(t, p); break;
    case RLX_OPTIMISER_LION: lion(t, p); break;
    case RLX_OPTIMISER_MUON: muon(t, p); break;
    default:
        return diag_fail(t->diag, RLX_ERROR_ARGUMENT, "there is no optimiser number %d",
                         (int)p->by);
    }
    if (rlx_graph_check(t->g, &err) != RLX_OK)
        return diag_again(t->diag, &err, err.status);
    return RLX_OK;
}
