/* selftest_undecided.c: results that hang on comparisons which rounding may decide either way.
 *
 * Where a definition orders numbers or holds them against a limit, two numbers within rounding of
 * each other leave more than one right answer. The definition is then read in every way that
 * rounding allows, and of these answers the one nearest to the device's is what it is compared
 * with. Numbers further apart have one answer, whatever the reading:
 *
 *     splats        alpha against alpha_cutoff, by which also tiles get their lists, and what is
 *                   left of the light against transmittance_threshold
 *     welch_peaks   powers against each other */
#include <math.h>

#include "inspect/selftest/selftest.h"

/* ---- splats -------------------------------------------------------------------------------- */

enum { WAYS = 3 }; /* a limit, and a little below and above it */

/* Alpha is an exponential, and what is left of the light a product of such: what a GPU may be off
 * there (ops-core.md 22). A limit of 0 is out of reach, not near. */
static float moved(float limit, int way)
{
    return limit + (float)(way - 1) * (limit > 0 ? 1e-5f * limit + 1e-6f : 0);
}

static void vary_splats(struct ir_node *n, int variant)
{
    float *cutoff, *threshold;

    switch (op_info(n->op)->family) {
    case FAMILY_gaussian_splat:
        cutoff = &n->attr.gaussian_splat.alpha_cutoff;
        threshold = &n->attr.gaussian_splat.transmittance_threshold;
        break;
    case FAMILY_gaussian_splat_rasterize:
        cutoff = &n->attr.gaussian_splat_rasterize.alpha_cutoff;
        threshold = &n->attr.gaussian_splat_rasterize.transmittance_threshold;
        break;
    case FAMILY_gaussian_splat_render_backward:
        cutoff = &n->attr.gaussian_splat_render_backward.alpha_cutoff;
        threshold = &n->attr.gaussian_splat_render_backward.transmittance_threshold;
        break;
    default: return;
    }
    *cutoff = moved(*cutoff, variant % WAYS);
    *threshold = moved(*threshold, variant / WAYS);
}

static void take_nearer(struct eval_tensor *want, const struct eval_tensor *other,
                        const struct eval_tensor *got)
{
    for (int64_t k = 0; k < want->count; k++)
        if (fabs(other->at[k].f - got->at[k].f) < fabs(want->at[k].f - got->at[k].f))
            want->at[k].f = other->at[k].f;
}

/* ---- welch_peaks --------------------------------------------------------------------------- */

/* The powers of one signal. */
struct peaks {
    int64_t bins;
    double *power;
    bool *taken;
    double rounding; /* by how much of the larger two powers differ that rounding cannot swap */
};

/* Every bin, in place of the k strongest. */
static void vary_welch_peaks(struct ir_node *n, int64_t bins)
{
    n->attr.welch_peaks.k = bins;
    n->type.dim[1] = 2 * bins;
}

/* Does bin a come before bin b, however its power is rounded? */
static bool comes_before(const struct peaks *p, int64_t a, int64_t b)
{
    double x = p->power[a], y = p->power[b];

    if (isnan(x) || isnan(y))
        return isnan(y) && (!isnan(x) || a < b);
    if (x == y && (x == 0 || isinf(x))) /* nothing was rounded */
        return a < b;
    return isinf(x) || x - y > p->rounding * fmax(x, y);
}

/* May this bin be the next peak? */
static bool may_follow(const struct peaks *p, double bin)
{
    if (!(bin >= 0 && bin < (double)p->bins) || bin != floor(bin) || p->taken[(int64_t)bin])
        return false;
    for (int64_t j = 0; j < p->bins; j++)
        if (!p->taken[j] && comes_before(p, j, (int64_t)bin))
            return false;
    return true;
}

/* May these k pairs be the peaks, by their bins? */
static bool may_be_order(struct peaks *p, const struct eval_cell *pair, int64_t k)
{
    for (int64_t j = 0; j < p->bins; j++)
        p->taken[j] = false;
    for (int64_t i = 0; i < k; i++) {
        if (!may_follow(p, pair[2 * i].f))
            return false;
        p->taken[(int64_t)pair[2 * i].f] = true;
    }
    return true;
}

/* The device's order, where it may be one. all: every bin of each signal with its power. */
static rlx_status take_order(const struct ir_node *n, struct eval_tensor *want,
                             const struct eval_tensor *all, const struct eval_tensor *got,
                             struct arena *arena, struct diag *d)
{
    int64_t k = n->attr.welch_peaks.k, bins = all->type.dim[1] / 2;
    struct peaks p = {
        .bins = bins,
        .power = arena_array(arena, double, (size_t)bins),
        .taken = arena_array(arena, bool, (size_t)bins),
        /* Two squares, their sum, a product and a sum for each segment: of either power. */
        .rounding = (4 + (double)n->attr.welch_peaks.n_segments) * 0x1p-23,
    };

    if (!p.power || !p.taken)
        return diag_no_memory(d, (size_t)bins * sizeof *p.power);
    for (int64_t b = 0; b < want->type.dim[0]; b++) {
        const struct eval_cell *from = got->at + 2 * b * k;
        struct eval_cell *to = want->at + 2 * b * k;
        for (int64_t j = b * bins; j < (b + 1) * bins; j++)
            p.power[(int64_t)all->at[2 * j].f] = all->at[2 * j + 1].f;
        if (!may_be_order(&p, from, k))
            continue;
        for (int64_t i = 0; i < k; i++) {
            to[2 * i].f = from[2 * i].f;
            to[2 * i + 1].f = p.power[(int64_t)from[2 * i].f];
        }
    }
    return RLX_OK;
}

/* ---- any op -------------------------------------------------------------------------------- */

int selftest_variants(rlx_op op)
{
    switch (op_info(op)->family) {
    case FAMILY_gaussian_splat:
    case FAMILY_gaussian_splat_rasterize:
    case FAMILY_gaussian_splat_render_backward: return WAYS * WAYS;
    case FAMILY_welch_peaks: return 1;
    default: return 0;
    }
}

void selftest_vary(const struct ir_graph *g, struct ir_node *n, int variant)
{
    if (n->op == RLX_OP_welch_peaks)
        vary_welch_peaks(n, ir_type_of(g, n->in[0])->dim[1] / 4 + 1);
    else
        vary_splats(n, variant);
}

rlx_status selftest_settle(const struct ir_node *n, struct eval_tensor *want,
                           const struct eval_tensor *other, const struct eval_tensor *got,
                           struct arena *arena, struct diag *d)
{
    if (n->op == RLX_OP_welch_peaks)
        return take_order(n, want, other, got, arena, d);
    take_nearer(want, other, got);
    return RLX_OK;
}
