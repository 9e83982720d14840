/* norm_backward.c: gradients of layer_norm, rms_norm, group_norm and ada_layer_norm (ops-core.md
 * 11).
 *
 * With h = dy gamma and xn = (x - mean) factor, all of them are
 *
 *     dx     = factor (h - mean(h) - xn mean(h xn))     rms norm: without mean(h)
 *     dgamma = sum of dy xn over what shares a gamma
 *     dbeta  = sum of dy
 *
 * Statistics of all sets come first and stay in scratch. From then on mean, factor and gamma are
 * operands that broadcast to x like any others, whatever the axis and the op, and everything is
 * computed in f64 tiles. */
#include "backend/cpu/kernels/rows/grad_sum.h"
#include "backend/cpu/kernels/rows/norm.h"

struct grad {
    const struct cpu_call *c;
    struct norm n;
    const struct cpu_tensor *x, *dy;
    const struct cpu_tensor *gamma; /* where dx is wanted */
    bool plus_one;                  /* gamma is what is added to 1 */
    double *mean, *factor;          /* [sets], in scratch */
    struct cpu_view mean_view, factor_view, gamma_view;
    int64_t width, parts; /* of columns */
};

/* ---- operands ------------------------------------------------------------------------------ */

/* Both statistics as operands in the shape of x. */
static void view_stats(struct grad *g)
{
    const struct norm *n = &g->n;
    const int64_t dim[3] = {n->outer, n->size, n->inner}, stride[3] = {n->inner, 0, 1};

    cpu_view_make(&g->mean_view, g->mean, RLX_DTYPE_f64, 3, dim, stride);
    cpu_view_make(&g->factor_view, g->factor, RLX_DTYPE_f64, 3, dim, stride);
}

/* gamma as an operand: one value per position on an axis, or broadcast to x as it is. */
static void view_gamma(struct grad *g, int64_t axis)
{
    int64_t stride[RLX_MAX_RANK] = {0};

    if (g->plus_one) {
        cpu_view_broadcast(&g->gamma_view, g->gamma, g->x);
    } else if (g->gamma) {
        stride[axis] = 1;
        cpu_view_make(&g->gamma_view, g->gamma->data, g->gamma->dtype, g->x->rank, g->x->dim,
                      stride);
    }
}

/* xn = (x - mean) factor for n elements from pos on. */
static void read_normal(const struct grad *g, int64_t pos, int64_t n, double *xn)
{
    CPU_TILE_OF(double, mean_tile);
    CPU_TILE_OF(double, factor_tile);
    int step;
    const double *factor = cpu_view_read(&g->factor_view, pos, n, factor_tile, &step);
    const double *mean = cpu_view_read(&g->mean_view, pos, n, mean_tile, &step); /* the same step */

    cpu_load_f64(g->x->dtype, cpu_at(g->x, pos), xn, n);
    if (step) {
        for (int64_t i = 0; i < n; i++)
            xn[i] = (xn[i] - mean[i]) * factor[i];
    } else {
        double m = mean[0], f = factor[0];
        for (int64_t i = 0; i < n; i++)
            xn[i] = (xn[i] - m) * f;
    }
}

/* h = dy gamma */
static void read_scaled(const struct grad *g, int64_t pos, int64_t n, double *h)
{
    CPU_TILE_ANY(buffer);
    CPU_TILE_OF(double, gamma);
    double offset = g->plus_one ? 1.0 : 0.0;
    int step;

    cpu_load_f64(g->dy->dtype, cpu_at(g->dy, pos), h, n);
    const void *p = cpu_view_read(&g->gamma_view, pos, n, buffer, &step);
    cpu_load_f64(g->gamma->dtype, p, gamma, step ? n : 1);
    if (step) {
        for (int64_t i = 0; i < n; i++)
            h[i] *= gamma[i] + offset;
    } else {
        double one = gamma[0] + offset;
        for (int64_t i = 0; i < n; i++)
            h[i] *= one;
    }
}

/* ---- dx ------------------------------------------------------------------------------------ */

/* dx for n elements from pos on; a and b: mean(h) and mean(h xn), of one set (step 0) or n. */
static void write_dx(const struct grad *g, int64_t pos, int64_t n, const double *a, const double *b,
                     int step)
{
    CPU_TILE_OF(double, h);
    CPU_TILE_OF(double, xn);
    CPU_TILE_OF(double, factor_tile);
    int factor_step;
    const double *f = cpu_view_read(&g->factor_view, pos, n, factor_tile, &factor_step);

    read_scaled(g, pos, n, h);
    read_normal(g, pos, n, xn);
    if (step && factor_step) {
        for (int64_t i = 0; i < n; i++)
            h[i] = f[i] * (h[i] - a[i] - xn[i] * b[i]);
    } else {
        double f0 = f[0], a0 = a[0], b0 = b[0];
        for (int64_t i = 0; i < n; i++)
            h[i] = f0 * (h[i] - a0 - xn[i] * b0);
    }
    cpu_store_f64(g->c->out->dtype, h, cpu_at(g->c->out, pos), n);
}

enum { LANES = 8 };

static void add_products(const double *h, const double *xn, int64_t n, double *sum, double *dot)
{
    double s[LANES] = {0}, d[LANES] = {0};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < LANES; l++) {
            s[l] += h[i + l];
            d[l] += h[i + l] * xn[i + l];
        }
    }
    for (int l = 0; i < n; i++, l++) {
        s[l] += h[i];
        d[l] += h[i] * xn[i];
    }
    for (int l = 0; l < LANES; l++) {
        *sum += s[l];
        *dot += d[l];
    }
}

/* Contiguous sets. */
static void dx_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct grad *g = ctx;
    int64_t size = g->n.size;
    CPU_TILE_OF(double, h);
    CPU_TILE_OF(double, xn);

    (void)worker;
    for (int64_t set = begin; set < end; set++) {
        double sum = 0, dot = 0;
        for (int64_t at = 0; at < size; at += CPU_TILE) {
            int64_t n = cpu_min_i64(CPU_TILE, size - at);
            read_scaled(g, set * size + at, n, h);
            read_normal(g, set * size + at, n, xn);
            add_products(h, xn, n, &sum, &dot);
        }
        sum = g->n.centred ? sum / (double)size : 0;
        dot /= (double)size;
        for (int64_t at = 0; at < size; at += CPU_TILE)
            write_dx(g, set * size + at, cpu_min_i64(CPU_TILE, size - at), &sum, &dot, 0);
    }
}

/* Sets side by side, some columns at a time. */
static void dx_columns(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct grad *g = ctx;
    const struct norm *n = &g->n;
    CPU_TILE_OF(double, h);
    CPU_TILE_OF(double, xn);
    CPU_TILE_OF(double, sum);
    CPU_TILE_OF(double, dot);

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t column = u % g->parts * g->width;
        int64_t width = cpu_min_i64(g->width, n->inner - column);
        int64_t first = u / g->parts * n->size * n->inner + column;
        for (int64_t i = 0; i < width; i++)
            sum[i] = dot[i] = 0;
        for (int64_t k = 0; k < n->size; k++) {
            read_scaled(g, first + k * n->inner, width, h);
            read_normal(g, first + k * n->inner, width, xn);
            for (int64_t i = 0; i < width; i++) {
                sum[i] += h[i];
                dot[i] += h[i] * xn[i];
            }
        }
        for (int64_t i = 0; i < width; i++) {
            sum[i] = n->centred ? sum[i] / (double)n->size : 0;
            dot[i] /= (double)n->size;
        }
        for (int64_t k = 0; k < n->size; k++)
            write_dx(g, first + k * n->inner, width, sum, dot, 1);
    }
}

static void run_dx(struct grad *g)
{
    const struct norm *n = &g->n;

    if (g->x->count == 0)
        return;
    if (n->inner == 1) {
        cpu_for(g->c->pool, n->outer, norm_grain(n->size), dx_rows, g);
        return;
    }
    g->width = norm_columns_width(n);
    g->parts = (n->inner + g->width - 1) / g->width;
    cpu_for(g->c->pool, n->outer * g->parts, norm_grain(n->size * g->width), dx_columns, g);
}

/* ---- sums ---------------------------------------------------------------------------------- */

static void gamma_term(const void *ctx, int64_t pos, int64_t n, double *out)
{
    const struct grad *g = ctx;
    CPU_TILE_OF(double, xn);

    read_normal(g, pos, n, xn);
    cpu_load_f64(g->dy->dtype, cpu_at(g->dy, pos), out, n);
    for (int64_t i = 0; i < n; i++)
        out[i] *= xn[i];
}

static void beta_term(const void *ctx, int64_t pos, int64_t n, double *out)
{
    const struct grad *g = ctx;
    cpu_load_f64(g->dy->dtype, cpu_at(g->dy, pos), out, n);
}

/* ---- scratch ------------------------------------------------------------------------------- */

/* Doubles: mean, factor, moments, then what the sums need. */
static uint64_t stats_doubles(const struct norm *n)
{
    uint64_t moments = n->inner == 1 ? 2 * (uint64_t)(n->outer * n->blocks) : 0;
    return 2 * (uint64_t)norm_sets(n) + moments;
}

static double *find_stats(struct grad *g)
{
    double *room = g->c->scratch, *moments;
    int64_t sets = norm_sets(&g->n);

    if (g->x->count == 0)
        return room;
    g->mean = room;
    g->factor = g->mean + sets;
    moments = g->factor + sets;
    norm_all(&g->n, g->c->pool, (struct norm_moments *)(void *)moments, g->mean, g->factor);
    view_stats(g);
    return room + stats_doubles(&g->n);
}

/* ---- layer_norm, rms_norm, group_norm ------------------------------------------------------ */

enum what { WANT_DX, WANT_DGAMMA, WANT_DBETA };

static enum what wanted(rlx_op op)
{
    switch (op) {
    case RLX_OP_layer_norm_backward_gamma:
    case RLX_OP_rms_norm_backward_gamma:
    case RLX_OP_group_norm_backward_gamma: return WANT_DGAMMA;
    case RLX_OP_rms_norm_backward_beta:
    case RLX_OP_group_norm_backward_beta: return WANT_DBETA;
    default: return WANT_DX;
    }
}

/* Returns the axis that gamma belongs to. */
static int64_t describe(const struct cpu_call *c, struct grad *g)
{
    const struct cpu_tensor *x = &c->in[0];
    const union ir_attr *a = c->attr;
    enum op_family family = op_info(c->op)->family;
    int64_t axis = 1;

    *g = (struct grad){.c = c, .x = x, .dy = &c->in[c->in_count - 1]};
    if (wanted(c->op) == WANT_DX)
        g->gamma = &c->in[1];
    if (family == FAMILY_group_norm_backward) {
        norm_groups(&g->n, x, a->group_norm_backward.num_groups, a->group_norm_backward.eps);
    } else if (family == FAMILY_layer_norm_backward) {
        axis = a->layer_norm_backward.axis;
        norm_along(&g->n, x, axis, true, a->layer_norm_backward.eps);
    } else {
        axis = a->rms_norm_backward.axis;
        norm_along(&g->n, x, axis, false, a->rms_norm_backward.eps);
    }
    return axis;
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct grad g;
    struct grad_sum sum;
    uint64_t doubles = 0;

    if (c->out->count == 0)
        return 0;
    int64_t axis = describe(c, &g);
    if (wanted(c->op) != WANT_DBETA)
        doubles += stats_doubles(&g.n);
    if (wanted(c->op) != WANT_DX) {
        grad_sum_axis(&sum, g.x, axis);
        doubles += grad_sum_scratch(&sum);
    }
    return doubles * sizeof(double);
}

static void run(const struct cpu_call *c)
{
    struct grad g;
    struct grad_sum sum;

    if (c->out->count == 0)
        return;
    enum what what = wanted(c->op);
    int64_t axis = describe(c, &g);
    double *room = what == WANT_DBETA ? c->scratch : find_stats(&g);
    if (what == WANT_DX) {
        view_gamma(&g, axis);
        run_dx(&g);
        return;
    }
    grad_sum_axis(&sum, g.x, axis);
    grad_sum_run(&sum, c->pool, what == WANT_DGAMMA ? gamma_term : beta_term, &g, room,
                 c->out->dtype, c->out->data);
}

/* ---- ada_layer_norm: dx, dscale and dshift one after another ------------------------------- */

static void describe_ada(const struct cpu_call *c, struct grad *g)
{
    const struct cpu_tensor *x = &c->in[0];
    const struct attr_ada_layer_norm_backward *a = &c->attr->ada_layer_norm_backward;

    *g = (struct grad){.c = c, .x = x, .dy = &c->in[3], .gamma = &c->in[1], .plus_one = true};
    norm_along(&g->n, x, x->rank - 1, a->norm == RLX_NORM_KIND_layer, a->eps);
}

/* The two sums take turns with their scratch. */
static uint64_t scratch_ada(const struct cpu_call *c)
{
    struct grad g;
    struct grad_sum scale, shift;

    if (c->out->count == 0)
        return 0;
    describe_ada(c, &g);
    grad_sum_like(&scale, g.x, &c->in[1]);
    grad_sum_like(&shift, g.x, &c->in[2]);
    uint64_t a = grad_sum_scratch(&scale), b = grad_sum_scratch(&shift);
    return (stats_doubles(&g.n) + (a > b ? a : b)) * sizeof(double);
}

static void run_ada(const struct cpu_call *c)
{
    struct grad g;
    struct grad_sum sum;

    if (c->out->count == 0)
        return;
    describe_ada(c, &g);
    double *room = find_stats(&g);
    if (g.x->count > 0) {
        view_gamma(&g, 0);
        run_dx(&g);
    }
    grad_sum_like(&sum, g.x, &c->in[1]);
    grad_sum_run(&sum, c->pool, gamma_term, &g, room, c->out->dtype, cpu_at(c->out, g.x->count));
    grad_sum_like(&sum, g.x, &c->in[2]);
    grad_sum_run(&sum, c->pool, beta_term, &g, room, c->out->dtype,
                 cpu_at(c->out, g.x->count + c->in[1].count));
}

extern const struct cpu_kernel CPU_NAME(cpu_layer_norm_backward);
extern const struct cpu_kernel CPU_NAME(cpu_rms_norm_backward);
extern const struct cpu_kernel CPU_NAME(cpu_group_norm_backward);
extern const struct cpu_kernel CPU_NAME(cpu_ada_layer_norm_backward);
const struct cpu_kernel CPU_NAME(cpu_layer_norm_backward) = {.run = run, .scratch = scratch};
const struct cpu_kernel CPU_NAME(cpu_rms_norm_backward) = {.run = run, .scratch = scratch};
const struct cpu_kernel CPU_NAME(cpu_group_norm_backward) = {.run = run, .scratch = scratch};
const struct cpu_kernel CPU_NAME(cpu_ada_layer_norm_backward) = {.run = run_ada,
                                                                 .scratch = scratch_ada};
