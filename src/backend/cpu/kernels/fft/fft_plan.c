/* fft_plan.c: which way a transform of n points is made, and what memory that takes. */
#include "backend/cpu/kernels/fft/fft.h"

/* ---- factors ------------------------------------------------------------------------------- */

/* The next radix of n, or 0: n has a larger prime. Eights but for two fours in place of eight and
 * two: powers of two need no 2. */
static int32_t next_radix(int64_t n)
{
    static const int32_t primes[] = {13, 11, 7, 5, 3};

    for (int i = 0; i < 5; i++)
        if (n % primes[i] == 0)
            return primes[i];
    if (n == 16)
        return 4;
    return n % 8 == 0 ? 8 : n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 0;
}

static bool is_smooth(int64_t n)
{
    for (int32_t r; n > 1; n /= r)
        if (!(r = next_radix(n)))
            return false;
    return true;
}

static int64_t power_from(int64_t n)
{
    int64_t p = 1;

    while (p < n && p < INT64_MAX / 2)
        p *= 2;
    return p;
}

/* The largest divisor that is not above the square root, nor so large that columns would leave the
 * caches. */
static int64_t best_divisor(int64_t n)
{
    int64_t d = cpu_min_i64((int64_t)sqrt((double)n), 1 << 16);

    while (d > 1 && (d > n / d || n % d != 0))
        d--;
    return cpu_max_i64(d, 1);
}

/* ---- plans --------------------------------------------------------------------------------- */

/* Takes room for its table at *at. */
static void plan_columns(struct fft_columns *c, int64_t n, int64_t *at)
{
    int64_t left = n;

    *c = (struct fft_columns){.n = n};
    while (left > 1) {
        int32_t r = next_radix(left);
        left /= r;
        c->radix[c->stages] = r;
        c->twiddle[c->stages++] = *at;
        if (left > 1)
            *at += 2 * (r - 1) * left;
    }
}

static int64_t take(int64_t *at, int64_t count)
{
    int64_t start = *at;

    *at += (count + 15) / 16 * 16; /* parts begin at whole vectors */
    return start;
}

void fft_plan_make(struct fft_plan *p, int64_t n, int64_t rows, int64_t size)
{
    int64_t at = 0, n1;

    *p = (struct fft_plan){.n = n, .rows = rows, .m = n, .lanes = GEMM_VEC / size};
    if (!is_smooth(n)) {
        p->is_chirp = true;
        p->m = power_from(2 * n - 1);
    }
    p->rows_are_lanes = p->m < 64 || (rows >= 4 * p->lanes && p->m <= FFT_ROWS_MOST);
    p->rows_apart = rows > 1 && p->m <= FFT_APART_MOST;
    n1 = p->rows_are_lanes ? p->m : best_divisor(p->m);
    p->n1 = n1;
    p->n2 = p->m / n1;
    if (!p->rows_are_lanes) {
        p->lane_twist = take(&at, 2 * n1 * p->lanes);
        p->block_twist = take(&at, 2 * n1 * fft_blocks(p->n2, p->lanes));
    }
    if (p->is_chirp) {
        p->chirp = take(&at, 2 * n);
        p->spectrum = take(&at, 2 * p->m);
    }
    plan_columns(&p->first, n1, &at);
    plan_columns(&p->second, p->n2, &at);
    p->table = at;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* For every n up to this one: columns of a matrix have at most 4 sqrt(m) points, because a number
 * whose primes are at most 13 has a divisor between sqrt(m / 13) and sqrt(m). */
struct most {
    int64_t m, side, lane_rows;
};

static struct most most_of(int64_t n)
{
    struct most b = {.m = power_from(2 * n), .side = 4};

    while (b.side * b.side < 16 * b.m && b.side < INT32_MAX)
        b.side *= 2;
    b.side = cpu_min_i64(b.side, b.m);
    b.lane_rows = cpu_min_i64(b.m, FFT_ROWS_MOST);
    return b;
}

uint64_t fft_table_bytes(int64_t n, int64_t rows, int64_t size, bool bounded)
{
    struct fft_plan p;
    int64_t lanes = GEMM_VEC / size;

    fft_plan_make(&p, n, rows, size);
    if (!bounded)
        return (uint64_t)p.table * (uint64_t)size;
    struct most b = most_of(n);
    int64_t columns = 4 * (b.side + b.side + b.lane_rows), twists = 2 * b.side * (lanes + 1);
    return (uint64_t)(columns + twists + 2 * b.m / lanes + 2 * n + 2 * b.m + 64) * (uint64_t)size;
}

uint64_t fft_scratch_bytes(int64_t n, int64_t rows, int64_t size, int threads, bool bounded)
{
    uint64_t pair = 2 * GEMM_VEC, t = (uint64_t)threads;
    struct fft_plan p;

    fft_plan_make(&p, n, rows, size);
    if (bounded) {
        struct most b = most_of(n);
        uint64_t lanes = (uint64_t)(GEMM_VEC / size), m = (uint64_t)b.m, side = (uint64_t)b.side;
        uint64_t apart = m < FFT_APART_MOST ? m : FFT_APART_MOST;
        uint64_t blocks = 2 * (uint64_t)cpu_max_i64(b.side, b.lane_rows);
        /* a matrix and a chirp's row per thread, or larger ones once */
        return pair * (t * blocks + (t * apart + m) * 2 / lanes + (t + 1) * (side + 1));
    }
    uint64_t longest = (uint64_t)cpu_max_i64(p.n1, p.n2);
    if (p.rows_are_lanes)
        return t * 2 * longest * pair;
    uint64_t matrix = (uint64_t)fft_blocks(p.n1, p.lanes) * (uint64_t)p.n2 * pair;
    uint64_t row = p.is_chirp ? (uint64_t)fft_blocks(p.m, p.lanes) * pair : 0;
    return t * 2 * longest * pair + (p.rows_apart ? t : 1) * (matrix + row);
}
