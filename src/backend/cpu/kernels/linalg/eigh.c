/* eigh.c: eigenvalues and eigenvectors of symmetric matrices: eigh, eigh_batch (ops-core.md 21).
 *
 * Reflections from both sides make a matrix tridiagonal, A = Q T Q^T; rotations with Wilkinson's
 * shift make that diagonal, T = Z D Z^T; then the vectors are Q Z. In f64 throughout, on a multiple
 * of the matrix whose largest entry is near 1. */
#include "backend/cpu/kernels/gemm/gemm.h"
#include "backend/cpu/kernels/linalg/decompose.h"

enum { SWEEPS_EACH = 40, ROW_WORK = 16384 }; /* two sweeps per eigenvalue are usual */

struct eigen {
    int64_t n;
    double *a;          /* [n, n]; the vectors at the end */
    double *v;          /* [n, n], vectors of the reflections, the one of column j in row j */
    double *z;          /* [n, n], row j the eigenvector of d[j] of the tridiagonal matrix */
    double *d, *e;      /* the diagonal, and what is beside it */
    double *tau, *side; /* of the reflections; n entries of work */
    double *angle;
    int64_t *order;
    struct pool *pool;
};

static uint64_t item_doubles(int64_t n)
{
    return (uint64_t)gemm_up(3 * n * n + 5 * n + 2 * TURNS_SWEEPS * n, 8);
}

static struct eigen eigen_in(void *memory, int64_t n, struct pool *pool)
{
    double *p = memory;
    struct eigen g = {.n = n, .a = p, .v = p + n * n, .z = p + 2 * n * n, .pool = pool};

    p += 3 * n * n;
    g.d = p;
    g.e = p + n;
    g.tau = p + 2 * n;
    g.side = p + 3 * n;
    g.order = (int64_t *)(void *)(p + 4 * n);
    g.angle = p + 5 * n;
    return g;
}

/* ---- to tridiagonal ------------------------------------------------------------------------ */

/* Rows and columns from `at` on, and the reflection that acts on them. */
struct rows_job {
    const struct eigen *g;
    int64_t at;
    const double *v;
    double tau;
};

/* side = tau A v */
static void multiply_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct rows_job *j = ctx;
    int64_t n = j->g->n;

    (void)worker;
    for (int64_t i = j->at + begin; i < j->at + end; i++)
        j->g->side[i] = j->tau * decompose_dot(j->g->a + i * n + j->at, j->v + j->at, n - j->at);
}

/* A -= v side^T + side v^T */
static void update_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct rows_job *j = ctx;
    const double *restrict v = j->v, *restrict side = j->g->side;
    int64_t n = j->g->n;

    (void)worker;
    for (int64_t i = j->at + begin; i < j->at + end; i++) {
        double *restrict row = j->g->a + i * n, f = v[i], s = side[i];
        for (int64_t k = j->at; k < n; k++)
            row[k] -= f * side[k] + s * v[k];
    }
}

static void make_tridiagonal(const struct eigen *g)
{
    int64_t n = g->n;

    for (int64_t j = 0; j < n; j++) {
        int64_t at = j + 1, left = n - at;
        double *v = g->v + j * n;
        struct rows_job job = {.g = g, .at = at, .v = v};
        g->d[j] = g->a[j * n + j];
        if (left == 0)
            break;
        memcpy(v, g->a + j * n, (size_t)n * sizeof *v);
        g->e[j] = reflect_make(v + at, left, &g->tau[j]);
        for (int64_t i = 0; i < at; i++)
            v[i] = 0;
        job.tau = g->tau[j];
        if (job.tau == 0)
            continue;
        int64_t grain = cpu_max_i64(1, ROW_WORK / left);
        cpu_for(g->pool, left, grain, multiply_rows, &job);
        double half = job.tau / 2 * decompose_dot(g->side + at, v + at, left);
        for (int64_t i = at; i < n; i++)
            g->side[i] -= half * v[i];
        cpu_for(g->pool, left, grain, update_rows, &job);
    }
}

/* ---- to diagonal --------------------------------------------------------------------------- */

/* The eigenvalue of [[a,e],[e,b]] that is closer to b; e is not 0. */
static double wilkinson_shift(double a, double b, double e)
{
    double half = (a - b) / 2, r = hypot(half, e);

    return b - e * (e / (half < 0 ? half - r : half + r));
}

/* One step on rows p .. q, none of which is cut off from the next. */
static void sweep(const struct eigen *g, int64_t p, int64_t q, double *angle)
{
    double *d = g->d, *e = g->e;
    double x = d[p] - wilkinson_shift(d[q - 1], d[q], e[q - 1]), y = e[p];

    for (int64_t k = p; k < q; k++) {
        double c, s, r = decompose_turn(x, y, &c, &s);
        if (k > p)
            e[k - 1] = r;
        double a = d[k], b = d[k + 1], m = e[k], part = s * (b - a) + 2 * c * m;
        d[k] = a + s * part;
        d[k + 1] = b - s * part;
        e[k] = c * part - m;
        x = e[k];
        if (k + 1 < q) {
            y = s * e[k + 1];
            e[k + 1] *= c;
        }
        if (angle) {
            angle[2 * (k - p)] = c;
            angle[2 * (k - p) + 1] = s;
        }
    }
}

/* Beside its neighbours, or beside the matrix, which is near 1. */
static bool is_small(const struct eigen *g, int64_t i)
{
    double e = fabs(g->e[i]);

    return !(e > 0x1p-53 * (fabs(g->d[i]) + fabs(g->d[i + 1])) && e > 0x1p-60);
}

/* false: it did not end, which no finite matrix is known to do. */
static bool make_diagonal(const struct eigen *g)
{
    struct turns turns = {.x = g->z, .n = g->n, .angle = g->angle, .pool = g->pool};
    int64_t q = g->n - 1, left = SWEEPS_EACH * g->n;

    while (q > 0) {
        int64_t p = q;
        while (p > 0 && !is_small(g, p - 1))
            p--;
        if (p == q) {
            q--;
            continue;
        }
        if (left-- == 0)
            return false;
        sweep(g, p, q, turns_add(&turns, p, q - p));
    }
    turns_end(&turns);
    return true;
}

/* ---- one matrix ---------------------------------------------------------------------------- */

/* Only the lower triangle is read. false: not finite. */
static bool load(const struct eigen *g, const struct cpu_tensor *from, int64_t item, int *exponent)
{
    int64_t n = g->n;

    cpu_load_f64(from->dtype, cpu_at(from, item * n * n), g->a, n * n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++)
            g->a[i * n + j] = g->a[j * n + i];
    if (!decompose_exponent(g->a, n * n, exponent))
        return false;
    for (int64_t i = 0; i < n * n; i++)
        g->a[i] = ldexp(g->a[i], -*exponent);
    return true;
}

/* Values in order into d, vectors as the columns of a. */
static bool decompose(const struct eigen *g)
{
    int64_t n = g->n;
    struct reflections q = {.v = g->v + 1, .ld = n, .tau = g->tau, .count = n - 1, .n = n - 1};

    make_tridiagonal(g);
    memset(g->z, 0, (size_t)(n * n) * sizeof *g->z);
    for (int64_t i = 0; i < n; i++)
        g->z[i * n + i] = 1;
    if (!make_diagonal(g))
        return false;
    decompose_order(g->d, n, false, g->order);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            g->a[i * n + j] = g->z[g->order[j] * n + i];
    for (int64_t j = 0; j < n; j++)
        g->side[j] = g->d[g->order[j]];
    reflect_all(&q, g->a + n, n, n, false, g->pool);
    return true;
}

static void run_item(const struct cpu_call *c, const struct eigen *g, int64_t item)
{
    int64_t n = g->n, at = item * (n + n * n);
    int exponent;

    if (!load(g, &c->in[0], item, &exponent) || !decompose(g)) {
        for (int64_t i = 0; i < n + n * n; i++)
            cpu_set_f64(c->out->dtype, c->out->data, at + i, (double)NAN);
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        g->side[j] = ldexp(g->side[j], exponent);
        if (decompose_points_down(g->a + j, n, n))
            for (int64_t i = 0; i < n; i++)
                g->a[i * n + j] = -g->a[i * n + j];
    }
    cpu_store_f64(c->out->dtype, g->side, cpu_at(c->out, at), n);
    cpu_store_f64(c->out->dtype, g->a, cpu_at(c->out, at + n), n * n);
}

/* ---- all of them --------------------------------------------------------------------------- */

static int64_t items_of(const struct cpu_call *c)
{
    return c->op == RLX_OP_eigh_batch ? c->in[0].dim[0] : 1;
}

static uint64_t scratch(const struct cpu_call *c)
{
    uint64_t copies = items_of(c) > 1 ? (uint64_t)gemm_workers(c->pool) : 1;

    return copies * item_doubles(c->in[0].dim[c->in[0].rank - 1]) * sizeof(double);
}

static void run_items(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct cpu_call *c = ctx;
    int64_t n = c->in[0].dim[c->in[0].rank - 1];
    struct eigen g =
        eigen_in((double *)c->scratch + (uint64_t)worker * item_doubles(n), n, c->pool);

    for (int64_t i = begin; i < end; i++)
        run_item(c, &g, i);
}

/* One matrix is shared out inside, several are shared out whole. */
static void run(const struct cpu_call *c)
{
    int64_t items = items_of(c), n = c->in[0].dim[c->in[0].rank - 1];
    struct cpu_call copy = *c;

    if (c->out->count == 0)
        return;
    if (items == 1)
        run_items(&copy, 0, 1, 0);
    else
        cpu_for(c->pool, items, cpu_max_i64(1, ROW_WORK / (n * n * n)), run_items, &copy);
}

extern const struct cpu_kernel CPU_NAME(cpu_eigh);
const struct cpu_kernel CPU_NAME(cpu_eigh) = {.run = run, .scratch = scratch};
