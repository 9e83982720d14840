/* qr.c: the thin QR factors of a matrix, one part (ops-core.md 21).
 *
 * Columns are reduced REFLECT_BLOCK at a time, laid out as rows: each is turned into a reflection
 * that acts on those after it, and the block then on the rest of the matrix. In f64 throughout.
 * Both parts need Q, whose signs decide those of R. */
#include "backend/cpu/kernels/linalg/decompose.h"

struct sizes {
    int64_t m, n, t;
};

static struct sizes sizes_of(const struct cpu_call *c)
{
    int64_t m = c->in[0].dim[0], n = c->in[0].dim[1];

    return (struct sizes){m, n, cpu_min_i64(m, n)};
}

/* The matrix, Q, the reflections' vectors and factors. */
static uint64_t scratch(const struct cpu_call *c)
{
    struct sizes s = sizes_of(c);

    return (uint64_t)(s.m * s.n + 2 * s.m * s.t + s.t) * sizeof(double);
}

/* Rows k .. end-1 of v hold those columns of the matrix, from element k on. */
static void reduce_block(struct reflections *q, int64_t k, int64_t end, double *a, int64_t n)
{
    for (int64_t j = k; j < end; j++) {
        double *v = q->v + j * q->ld;
        double diagonal = reflect_make(v + j, q->n - j, &q->tau[j]);
        for (int64_t i = j + 1; i < end; i++) {
            double *other = q->v + i * q->ld;
            double along = q->tau[j] * decompose_dot(v + j, other + j, q->n - j);
            for (int64_t l = j; l < q->n; l++)
                other[l] -= along * v[l];
        }
        for (int64_t i = k; i < j; i++) {
            a[i * n + j] = v[i];
            v[i] = 0;
        }
        a[j * n + j] = diagonal;
    }
}

/* The upper triangle of a becomes R; below the diagonal it is left as it was. */
static void factor(struct reflections *q, double *a, int64_t n, struct pool *pool)
{
    for (int64_t k = 0; k < q->count; k += REFLECT_BLOCK) {
        int64_t end = cpu_min_i64(q->count, k + REFLECT_BLOCK);
        for (int64_t i = k; i < q->n; i++)
            for (int64_t j = k; j < end; j++)
                q->v[j * q->ld + i] = a[i * n + j];
        reduce_block(q, k, end, a, n);
        reflect_block(q, k, end - k, true, a + end, n, n - end, pool);
    }
}

static void run(const struct cpu_call *c)
{
    struct sizes s = sizes_of(c);
    double *a = c->scratch, *x = a + s.m * s.n, *v = x + s.m * s.t;
    struct reflections q = {.v = v, .ld = s.m, .tau = v + s.m * s.t, .count = s.t, .n = s.m};
    bool wants_r = c->attr->qr.part == RLX_QR_PART_r;
    int exponent;

    if (c->out->count == 0)
        return;
    cpu_load_f64(c->in[0].dtype, c->in[0].data, a, s.m * s.n);
    if (!decompose_exponent(a, s.m * s.n, &exponent)) {
        for (int64_t i = 0; i < c->out->count; i++)
            cpu_set_f64(c->out->dtype, c->out->data, i, (double)NAN);
        return;
    }
    for (int64_t i = 0; i < s.m * s.n; i++)
        a[i] = ldexp(a[i], -exponent);
    factor(&q, a, s.n, c->pool);
    memset(x, 0, (size_t)(s.m * s.t) * sizeof *x);
    for (int64_t i = 0; i < s.t; i++)
        x[i * s.t + i] = 1;
    reflect_all(&q, x, s.t, s.t, true, c->pool);
    for (int64_t j = 0; j < s.t; j++) {
        double sign = decompose_points_down(x + j, s.m, s.t) ? -1 : 1;
        for (int64_t i = 0; i < s.m && !wants_r; i++)
            x[i * s.t + j] *= sign;
        for (int64_t i = 0; i < s.n && wants_r; i++)
            a[j * s.n + i] = i < j ? 0 : ldexp(sign * a[j * s.n + i], exponent);
    }
    cpu_store_f64(c->out->dtype, wants_r ? a : x, c->out->data, c->out->count);
}

extern const struct cpu_kernel CPU_NAME(cpu_qr);
const struct cpu_kernel CPU_NAME(cpu_qr) = {.run = run, .scratch = scratch};
