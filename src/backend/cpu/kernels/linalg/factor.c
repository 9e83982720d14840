/* factor.c: LU and Cholesky by blocks of columns, and triangular solves (factor.h).
 *
 * A block of columns is factored; then its effect on the rest is worked out, four rows and a few
 * vectors of columns at a time, whose sums stay in registers.
 *
 * Whether a pivot is 0 depends on the last bit. So every element sees the multiplications
 * and subtractions of the textbook's three loops, in their order, each rounded by itself. */
#include "backend/cpu/kernels/linalg/factor.h"

enum { BLOCK = 32, CHUNK = 64, ROW_WORK = 16384, LEAST_ROWS = 32 };

#if defined(__AVX512F__)
enum { VECTOR = 64 };
#elif defined(__AVX__)
enum { VECTOR = 32 };
#else
enum { VECTOR = 16 };
#endif
typedef double vector __attribute__((vector_size(VECTOR), aligned(8), may_alias));
enum { LANES = VECTOR / 8, TILE = 2 * LANES };

/* Rows per task, where one takes `work` multiplications: enough to share what is packed for them.
 */
static int64_t row_grain(int64_t work)
{
    return cpu_max_i64(LEAST_ROWS, ROW_WORK / (work + 1));
}

/* row[0 .. n-1] -= sum over k of f[k] * u[k][0 .. n-1] */
static void subtract(double *restrict row, const double *f, const double *restrict u, int64_t ld,
                     int64_t ks, int64_t n)
{
    int64_t k = 0;

    for (; k + 4 <= ks; k += 4) {
        double f0 = f[k], f1 = f[k + 1], f2 = f[k + 2], f3 = f[k + 3];
        const double *u0 = u + k * ld, *u1 = u0 + ld, *u2 = u1 + ld, *u3 = u2 + ld;
        for (int64_t j = 0; j < n; j++)
            row[j] = row[j] - f0 * u0[j] - f1 * u1[j] - f2 * u2[j] - f3 * u3[j];
    }
    for (; k < ks; k++)
        for (int64_t j = 0; j < n; j++)
            row[j] -= f[k] * u[k * ld + j];
}

/* The same for four rows, ldr apart, with factors ldf apart, and TILE columns. */
static inline void subtract_tile(double *row, int64_t ldr, const double *f, int64_t ldf,
                                 const double *u, int64_t ldu, int64_t ks)
{
    vector s[4][2];

    for (int i = 0; i < 4; i++) {
        s[i][0] = *(const vector *)(row + i * ldr);
        s[i][1] = *(const vector *)(row + i * ldr + LANES);
    }
    for (int64_t k = 0; k < ks; k++) {
        vector u0 = *(const vector *)(u + k * ldu), u1 = *(const vector *)(u + k * ldu + LANES);
        for (int i = 0; i < 4; i++) {
            s[i][0] -= f[i * ldf + k] * u0;
            s[i][1] -= f[i * ldf + k] * u1;
        }
    }
    for (int i = 0; i < 4; i++) {
        *(vector *)(row + i * ldr) = s[i][0];
        *(vector *)(row + i * ldr + LANES) = s[i][1];
    }
}

/* The same for any number of rows and columns; u is small, and stays in the first cache. */
static void subtract_panel(double *row, int64_t ldr, const double *f, int64_t ldf, const double *u,
                           int64_t ldu, int64_t ks, int64_t rows, int64_t n)
{
    int64_t tiled = n / TILE * TILE, i = 0;

    for (; i + 4 <= rows; i += 4)
        for (int64_t j = 0; j < tiled; j += TILE)
            subtract_tile(row + i * ldr + j, ldr, f + i * ldf, ldf, u + j, ldu, ks);
    for (int64_t r = 0; r < rows; r++) {
        int64_t done = r < i ? tiled : 0;
        if (done < n)
            subtract(row + r * ldr + done, f + r * ldf, u + done, ldu, ks, n - done);
    }
}

/* The same for a wide u of up to BLOCK rows. Its rows are often a power of two apart, where a cache
 * has room for few of them: a strip at a time is copied. */
static void subtract_rows(double *row, int64_t ldr, const double *f, int64_t ldf, const double *u,
                          int64_t ldu, int64_t ks, int64_t rows, int64_t n)
{
    _Alignas(64) double strip[BLOCK][BLOCK];

    for (int64_t j = 0; j < n; j += BLOCK) {
        int64_t width = cpu_min_i64(BLOCK, n - j);
        for (int64_t k = 0; k < ks; k++)
            memcpy(strip[k], u + k * ldu + j, (size_t)width * sizeof(double));
        subtract_panel(row + j, ldr, f, ldf, &strip[0][0], BLOCK, ks, rows, width);
    }
}

bool factor_all_finite(const double *x, int64_t n)
{
    int special = 0;

    for (int64_t i = 0; i < n; i++)
        special |= !(fabs(x[i]) < (double)INFINITY);
    return special == 0;
}

/* ---- LU ------------------------------------------------------------------------------------ */

static void swap_rows(double *a, double *b, int64_t n)
{
    for (int64_t j = 0; a != b && j < n; j++) {
        double t = a[j];
        a[j] = b[j];
        b[j] = t;
    }
}

/* The row, from row k on, with the largest element in column k. */
static int64_t find_pivot(const double *a, int64_t n, int64_t k)
{
    int64_t best = k;

    for (int64_t i = k + 1; i < n; i++)
        if (fabs(a[i * n + k]) > fabs(a[best * n + k]))
            best = i;
    return best;
}

/* Columns k .. end-1, all rows from k on. */
static void lu_columns(double *a, int64_t n, int64_t k, int64_t end, int64_t *swap)
{
    for (int64_t j = k; j < end; j++) {
        swap[j] = find_pivot(a, n, j);
        swap_rows(a + j * n, a + swap[j] * n, n);
        for (int64_t i = j + 1; i < n; i++) {
            double *row = a + i * n;
            if (row[j] == 0) /* as all are where there is no pivot */
                continue;
            row[j] /= a[j * n + j];
            subtract(row + j + 1, row + j, a + j * n + j + 1, n, 1, end - j - 1);
        }
    }
}

struct update {
    double *a;
    int64_t n, k, end; /* columns k .. end-1 are factored */
};

static void update_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct update *u = ctx;
    double *row = u->a + (u->end + begin) * u->n;

    (void)worker;
    subtract_rows(row + u->end, u->n, row + u->k, u->n, u->a + u->k * u->n + u->end, u->n,
                  u->end - u->k, end - begin, u->n - u->end);
}

void factor_lu(double *a, int64_t n, int64_t *swap, struct pool *pool)
{
    for (int64_t k = 0; k < n; k += BLOCK) {
        int64_t end = cpu_min_i64(n, k + BLOCK), rest = n - end;
        struct update u = {.a = a, .n = n, .k = k, .end = end};
        lu_columns(a, n, k, end, swap);
        for (int64_t i = k + 1; i < end; i++) /* the block's rows of U */
            subtract(a + i * n + end, a + i * n + k, a + k * n + end, n, i - k, rest);
        cpu_for(pool, rest, row_grain((end - k) * rest), update_rows, &u);
    }
}

void factor_eliminate(double *a, int64_t n, double *b, int64_t r, int64_t *swap)
{
    for (int64_t k = 0; k < n; k++) {
        swap[k] = find_pivot(a, n, k);
        swap_rows(a + k * n, a + swap[k] * n, n);
        if (b)
            swap_rows(b + k * r, b + swap[k] * r, r);
        for (int64_t i = k + 1; i < n; i++) {
            double f = a[i * n + k] / a[k * n + k];
            if (a[i * n + k] == 0)
                continue;
            subtract(a + i * n + k, &f, a + k * n + k, n, 1, n - k);
            if (b)
                subtract(b + i * r, &f, b + k * r, r, 1, r);
        }
    }
}

/* ---- Cholesky ------------------------------------------------------------------------------ */

/* Rows from k on: take away what the columns before k account for. The block's rows are needed as
 * columns; a chunk of them at a time is turned around. */
static void cholesky_before(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct update *u = ctx;
    double turned[CHUNK][BLOCK];
    int64_t n = u->n, width = u->end - u->k;

    (void)worker;
    for (int64_t from = 0; from < u->k; from += CHUNK) {
        int64_t ks = cpu_min_i64(CHUNK, u->k - from);
        for (int64_t j = 0; j < width; j++)
            for (int64_t k = 0; k < ks; k++)
                turned[k][j] = u->a[(u->k + j) * n + from + k];
        int64_t i = begin;
        for (; i < end && i + 1 < width; i++) { /* up to the diagonal */
            double *row = u->a + (u->k + i) * n;
            subtract(row + u->k, row + from, &turned[0][0], BLOCK, ks, i + 1);
        }
        double *row = u->a + (u->k + i) * n;
        subtract_panel(row + u->k, n, row + from, n, &turned[0][0], BLOCK, ks, end - i, width);
    }
}

/* Row i of columns k .. end-1, up to the diagonal. */
static void cholesky_row(const struct update *u, int64_t i)
{
    double *row = u->a + i * u->n;

    for (int64_t j = u->k; j < u->end && j <= i; j++) {
        const double *other = u->a + j * u->n;
        double s = row[j];
        for (int64_t k = u->k; k < j; k++)
            s -= row[k] * other[k];
        if (j < i)
            row[j] = s / other[j];
        else
            row[j] = s > 0 ? sqrt(s) : (double)NAN;
    }
}

static void cholesky_below(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        cholesky_row(ctx, ((const struct update *)ctx)->end + i);
}

void factor_cholesky(double *a, int64_t n, struct pool *pool)
{
    for (int64_t k = 0; k < n; k += BLOCK) {
        struct update u = {.n = n, .k = k, .end = cpu_min_i64(n, k + BLOCK)};
        u.a = a;
        cpu_for(pool, n - k, cpu_max_i64(BLOCK, row_grain(BLOCK * k)), cholesky_before, &u);
        for (int64_t i = k; i < u.end; i++)
            cholesky_row(&u, i);
        cpu_for(pool, n - u.end, row_grain(BLOCK * BLOCK), cholesky_below, &u);
    }
}

/* ---- solving ------------------------------------------------------------------------------- */

void factor_swap(double *b, int64_t r, const int64_t *swap, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        swap_rows(b + i * r, b + swap[i] * r, r);
}

struct solve {
    const double *a;
    int64_t n;
    bool lower, unit;
    double *b;
    int64_t r;
};

/* Rows from .. to-1, in the order in which they become known, columns begin .. begin+cols-1. */
static void solve_block(const struct solve *s, int64_t from, int64_t to, int64_t begin,
                        int64_t cols)
{
    for (int64_t at = from; at < to; at++) {
        int64_t i = s->lower ? at : to - 1 - (at - from);
        int64_t first = s->lower ? from : i + 1, known = at - from;
        double *row = s->b + i * s->r + begin;
        subtract(row, s->a + i * s->n + first, s->b + first * s->r + begin, s->r, known, cols);
        for (int64_t j = 0; j < cols && !s->unit; j++)
            row[j] /= s->a[i * s->n + i];
    }
}

/* Columns begin .. end-1 of b: a block of rows is solved, then taken out of those still to come. */
static void solve_columns(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct solve *s = ctx;
    int64_t n = s->n, r = s->r;

    (void)worker;
    for (int64_t done = 0; done < n; done += BLOCK) {
        int64_t size = cpu_min_i64(BLOCK, n - done), left = n - done - size;
        int64_t from = s->lower ? done : left, rest = s->lower ? done + size : 0;
        solve_block(s, from, from + size, begin, end - begin);
        subtract_rows(s->b + rest * r + begin, r, s->a + rest * n + from, n,
                      s->b + from * r + begin, r, size, left, end - begin);
    }
}

void factor_solve(const double *a, int64_t n, bool lower, bool unit, double *b, int64_t r,
                  struct pool *pool)
{
    struct solve s = {.a = a, .n = n, .lower = lower, .unit = unit, .r = r};

    s.b = b;
    cpu_for(pool, r, 64, solve_columns, &s);
}
