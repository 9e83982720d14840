/* reflect.c: Householder reflections, one to make and many to apply (decompose.h).
 *
 * A block of reflections is applied as one product: H_k H_(k+1) .. = I - V T V^T with a small
 * triangular T, so that a strip of columns is read once for all of them and not once for each. */
#include "backend/cpu/kernels/linalg/decompose.h"

enum { STRIP = 64 }; /* columns of x at a time: their products with V stay in the first cache */

/* ---- in common ----------------------------------------------------------------------------- */

typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));

/* Sixteen sums side by side, whatever the instruction set: the same bits on all. */
double decompose_dot(const double *a, const double *b, int64_t n)
{
    lanes s0 = {0}, s1 = {0};
    double sum = 0;
    int64_t i = 0;

    for (; i + 16 <= n; i += 16) {
        s0 += *(const lanes *)(a + i) * *(const lanes *)(b + i);
        s1 += *(const lanes *)(a + i + 8) * *(const lanes *)(b + i + 8);
    }
    for (; i < n; i++)
        sum += a[i] * b[i];
    s0 += s1;
    return sum + (((s0[0] + s0[1]) + (s0[2] + s0[3])) + ((s0[4] + s0[5]) + (s0[6] + s0[7])));
}

bool decompose_exponent(const double *x, int64_t n, int *exponent)
{
    double top = 0;
    int special = 0;

    for (int64_t i = 0; i < n; i++) {
        double v = fabs(x[i]);
        special |= !(v < (double)INFINITY);
        top = v > top ? v : top;
    }
    *exponent = 0;
    if (special)
        return false;
    if (top > 0)
        frexp(top, exponent);
    *exponent = *exponent < -1000 ? -1000 : *exponent > 1000 ? 1000 : *exponent;
    return true;
}

bool decompose_points_down(const double *x, int64_t n, int64_t step)
{
    double top = 0;

    for (int64_t i = 0; i < n; i++)
        top = cpu_max_f64(top, fabs(x[i * step]));
    for (int64_t i = 0; i < n; i++)
        if (fabs(x[i * step]) >= top * (1 - 1e-10))
            return x[i * step] < 0;
    return false;
}

void decompose_order(const double *value, int64_t n, bool descending, int64_t *order)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i;
        for (; at > 0; at--) {
            double before = value[order[at - 1]];
            if (descending ? !(value[i] > before) : !(value[i] < before))
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

/* ---- one reflection ------------------------------------------------------------------------ */

double reflect_make(double *x, int64_t n, double *tau)
{
    double top = 0, first = n > 0 ? x[0] : 0;

    *tau = 0;
    if (n > 0)
        x[0] = 1;
    for (int64_t i = 1; i < n; i++)
        top = cpu_max_f64(top, fabs(x[i]));
    if (top == 0)
        return first;
    top = cpu_max_f64(top, fabs(first));
    for (int64_t i = 1; i < n; i++) /* squares of what is left neither overflow nor all vanish */
        x[i] /= top;
    first /= top;

    /* Away from x[0], so that nothing cancels. */
    double length = sqrt(first * first + decompose_dot(x + 1, x + 1, n - 1));
    double to = first > 0 ? -length : length;
    for (int64_t i = 1; i < n; i++)
        x[i] /= first - to;
    *tau = (to - first) / to;
    return to * top;
}

/* ---- many ---------------------------------------------------------------------------------- */

struct block_job {
    const double *v; /* [count, n], rows ldv apart */
    int64_t ldv, count, n;
    bool transpose;
    double t[REFLECT_BLOCK][REFLECT_BLOCK]; /* upper triangle */
    double *x;
    int64_t ldx;
};

/* I - V T V^T is the product of the reflections. */
static void make_triangle(struct block_job *j, const double *tau)
{
    double dot[REFLECT_BLOCK];

    for (int64_t c = 0; c < j->count; c++) {
        for (int64_t r = 0; r < c; r++)
            dot[r] = decompose_dot(j->v + r * j->ldv + c, j->v + c * j->ldv + c, j->n - c);
        for (int64_t r = 0; r < c; r++) {
            double sum = 0;
            for (int64_t k = r; k < c; k++)
                sum += j->t[r][k] * dot[k];
            j->t[r][c] = -tau[c] * sum;
        }
        j->t[c][c] = tau[c];
    }
}

/* to += f[0] a[0] + f[1] a[1] + f[2] a[2] + f[3] a[3], rows of a being ld apart */
static inline void add_four(double *restrict to, const double *f, const double *restrict a,
                            int64_t ld, int64_t n)
{
    double f0 = f[0], f1 = f[1], f2 = f[2], f3 = f[3];

    for (int64_t c = 0; c < n; c++)
        to[c] += (f0 * a[c] + f1 * a[ld + c]) + (f2 * a[2 * ld + c] + f3 * a[3 * ld + c]);
}

static inline void add_one(double *restrict to, double f, const double *restrict a, int64_t n)
{
    for (int64_t c = 0; c < n; c++)
        to[c] += f * a[c];
}

/* w = V^T x */
static void project(const struct block_job *j, const double *x, int64_t columns, double *w)
{
    int64_t i = 0;

    memset(w, 0, (size_t)(j->count * STRIP) * sizeof *w);
    for (; i + 4 <= j->n; i += 4)
        for (int64_t r = 0; r < j->count; r++)
            add_four(w + r * STRIP, j->v + r * j->ldv + i, x + i * j->ldx, j->ldx, columns);
    for (; i < j->n; i++)
        for (int64_t r = 0; r < j->count; r++)
            add_one(w + r * STRIP, j->v[r * j->ldv + i], x + i * j->ldx, columns);
}

/* w = -T w, or -T^T w: from the side where what is overwritten is not needed any more. */
static void combine(const struct block_job *j, int64_t columns, double *w)
{
    for (int64_t at = 0; at < j->count; at++) {
        int64_t r = j->transpose ? j->count - 1 - at : at;
        double *to = w + r * STRIP, own = -j->t[r][r];
        for (int64_t c = 0; c < columns; c++)
            to[c] *= own;
        for (int64_t k = j->transpose ? 0 : r + 1; k < (j->transpose ? r : j->count); k++)
            add_one(to, -(j->transpose ? j->t[k][r] : j->t[r][k]), w + k * STRIP, columns);
    }
}

/* x += V w */
static void expand(const struct block_job *j, double *x, int64_t columns, const double *w)
{
    for (int64_t i = 0; i < j->n; i++) {
        double *row = x + i * j->ldx, f[REFLECT_BLOCK];
        int64_t r = 0;
        for (int64_t k = 0; k < j->count; k++)
            f[k] = j->v[k * j->ldv + i];
        for (; r + 4 <= j->count; r += 4)
            add_four(row, f + r, w + r * STRIP, STRIP, columns);
        for (; r < j->count; r++)
            add_one(row, f[r], w + r * STRIP, columns);
    }
}

static void block_strips(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct block_job *j = ctx;
    _Alignas(64) double w[REFLECT_BLOCK * STRIP];

    (void)worker;
    for (int64_t from = begin; from < end; from += STRIP) {
        int64_t columns = cpu_min_i64(end - from, STRIP);
        project(j, j->x + from, columns, w);
        combine(j, columns, w);
        expand(j, j->x + from, columns, w);
    }
}

void reflect_block(const struct reflections *q, int64_t k, int64_t count, bool transpose, double *x,
                   int64_t ld, int64_t columns, struct pool *pool)
{
    struct block_job j = {.v = q->v + k * q->ld + k,
                          .ldv = q->ld,
                          .count = count,
                          .n = q->n - k,
                          .transpose = transpose,
                          .ldx = ld};

    if (columns <= 0 || count <= 0)
        return;
    j.x = x + k * ld;
    make_triangle(&j, q->tau + k);
    cpu_for(pool, columns, STRIP, block_strips, &j);
}

void reflect_all(const struct reflections *q, double *x, int64_t ld, int64_t columns, bool identity,
                 struct pool *pool)
{
    int64_t last = q->count > 0 ? (q->count - 1) / REFLECT_BLOCK * REFLECT_BLOCK : -1;

    for (int64_t k = last; k >= 0; k -= REFLECT_BLOCK) {
        int64_t skip = identity ? k : 0; /* of these columns the rows from k on are zero */
        reflect_block(q, k, cpu_min_i64(REFLECT_BLOCK, q->count - k), false, x + skip, ld,
                      columns - skip, pool);
    }
}
