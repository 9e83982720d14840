/* solve.c: dense_solve, batched_dense_solve, cholesky, triangular_solve, det, logdet (ops-core.md
 * 10.4). Whatever the dtype, factors are f64 in scratch: the memory is small beside the work, and
 * f32 would lose what a solve amplifies. */
#include "backend/cpu/kernels/gemm/gemm.h"
#include "backend/cpu/kernels/linalg/factor.h"

/* Sizes of a and b; cholesky and det have no b, and r 0. */
struct sizes {
    int64_t items, n, r;
};

static struct sizes sizes_of(const struct cpu_call *c)
{
    const struct cpu_tensor *a = &c->in[0];
    struct sizes s = {.items = 1, .n = a->dim[a->rank - 1]};

    if (c->op == RLX_OP_batched_dense_solve)
        s.items = a->dim[0];
    if (c->in_count > 1)
        s.r = c->in[1].rank == a->rank ? c->in[1].dim[a->rank - 1] : 1;
    return s;
}

/* Scratch of one item: the matrix, then b, then the row exchanges. */
static int64_t item_doubles(const struct sizes *s)
{
    return gemm_up(s->n * (s->n + s->r + 1) + 1, 8);
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct sizes s = sizes_of(c);
    uint64_t copies = s.items > 1 ? (uint64_t)gemm_workers(c->pool) : 1;

    return copies * (uint64_t)item_doubles(&s) * sizeof(double);
}

static void load(const struct cpu_tensor *t, int64_t at, int64_t n, double *to)
{
    if (n > 0)
        cpu_load_f64(t->dtype, cpu_at(t, at), to, n);
}

static void store(const struct cpu_tensor *t, int64_t at, int64_t n, const double *from)
{
    if (n > 0)
        cpu_store_f64(t->dtype, from, cpu_at(t, at), n);
}

/* ---- dense_solve --------------------------------------------------------------------------- */

struct solve_job {
    const struct cpu_call *c;
};

static void solve_items(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct cpu_call *c = ((const struct solve_job *)ctx)->c;
    struct sizes s = sizes_of(c);
    double *a = (double *)c->scratch + worker * item_doubles(&s), *b = a + s.n * s.n;
    int64_t *swap = (int64_t *)(void *)(b + s.n * s.r);

    for (int64_t i = begin; i < end; i++) {
        load(&c->in[0], i * s.n * s.n, s.n * s.n, a);
        load(&c->in[1], i * s.n * s.r, s.n * s.r, b);
        if (factor_all_finite(a, s.n * (s.n + s.r))) { /* a, followed by b */
            factor_lu(a, s.n, swap, c->pool);
            factor_swap(b, s.r, swap, s.n);
            factor_solve(a, s.n, true, true, b, s.r, c->pool);
        } else {
            factor_eliminate(a, s.n, b, s.r, swap);
        }
        factor_solve(a, s.n, false, false, b, s.r, c->pool);
        store(c->out, i * s.n * s.r, s.n * s.r, b);
    }
}

/* One matrix is shared out inside, several are shared out whole. */
static void dense_solve(const struct cpu_call *c)
{
    struct sizes s = sizes_of(c);
    struct solve_job job = {c};

    if (c->out->count == 0)
        return;
    if (s.items == 1)
        solve_items(&job, 0, 1, 0);
    else
        cpu_for(c->pool, s.items, cpu_max_i64(1, 16384 / (s.n * s.n * s.n + 1)), solve_items, &job);
}

/* ---- the others ---------------------------------------------------------------------------- */

static void triangular_solve(const struct cpu_call *c)
{
    const struct attr_triangular_solve *attr = &c->attr->triangular_solve;
    struct sizes s = sizes_of(c);
    double *a = c->scratch, *b = a + s.n * s.n;

    if (c->out->count == 0)
        return;
    load(&c->in[0], 0, s.n * s.n, a);
    load(&c->in[1], 0, s.n * s.r, b);
    for (int64_t i = 0; i < s.n && attr->transpose; i++)
        for (int64_t j = 0; j < i; j++) {
            double t = a[i * s.n + j];
            a[i * s.n + j] = a[j * s.n + i];
            a[j * s.n + i] = t;
        }
    factor_solve(a, s.n, attr->lower != attr->transpose, false, b, s.r, c->pool);
    store(c->out, 0, s.n * s.r, b);
}

static void cholesky(const struct cpu_call *c)
{
    struct sizes s = sizes_of(c);
    double *a = c->scratch;

    if (c->out->count == 0)
        return;
    load(&c->in[0], 0, s.n * s.n, a);
    factor_cholesky(a, s.n, c->pool);
    for (int64_t i = 0; i < s.n; i++)
        for (int64_t j = i + 1; j < s.n; j++)
            a[i * s.n + j] = 0;
    store(c->out, 0, s.n * s.n, a);
}

/* Of an empty matrix: 1 and 0. */
static void det(const struct cpu_call *c)
{
    struct sizes s = sizes_of(c);
    double *a = c->scratch, value = 1, logarithm = 0;
    int64_t *swap = (int64_t *)(void *)(a + s.n * s.n);

    if (s.n > 0) {
        load(&c->in[0], 0, s.n * s.n, a);
        if (factor_all_finite(a, s.n * s.n))
            factor_lu(a, s.n, swap, c->pool);
        else
            factor_eliminate(a, s.n, NULL, 0, swap);
    }
    for (int64_t i = 0; i < s.n; i++) {
        double d = a[i * s.n + i];
        value *= swap[i] != i ? -d : d;
        logarithm += log(fabs(d));
    }
    store(c->out, 0, 1, c->op == RLX_OP_logdet ? &logarithm : &value);
}

extern const struct cpu_kernel CPU_NAME(cpu_dense_solve);
extern const struct cpu_kernel CPU_NAME(cpu_triangular_solve);
extern const struct cpu_kernel CPU_NAME(cpu_cholesky);
extern const struct cpu_kernel CPU_NAME(cpu_det);
const struct cpu_kernel CPU_NAME(cpu_dense_solve) = {.run = dense_solve, .scratch = scratch};
const struct cpu_kernel CPU_NAME(cpu_triangular_solve) = {.run = triangular_solve,
                                                          .scratch = scratch};
const struct cpu_kernel CPU_NAME(cpu_cholesky) = {.run = cholesky, .scratch = scratch};
const struct cpu_kernel CPU_NAME(cpu_det) = {.run = det, .scratch = scratch};
