/* gemm_micro.h: the inner loop of gemm, for one kind of element. Included once per kind, with
 *
 *     MICRO(name)  the name of a function for this kind
 *     MICRO_T      a sum's type
 *     MICRO_V      a vector of MICRO_T
 *     MICRO_MADD   (a, b, c): c + a * b, on vectors
 *     MICRO_B      what b's panels hold, and MICRO_READ (from, v): vector v of the row at `from`,
 *                  where that is not MICRO_T itself
 *
 * One call makes up to GEMM_MR rows of GEMM_NV vectors of sums, which stay in registers over all
 * of k:
 *
 *                   b: k rows of GEMM_NV vectors
 *     a: k columns  sums
 *     of `width`
 *
 * There is a copy of the loop for every number of rows, so that a product of few rows does no work
 * for rows that are not there. */

#ifndef MICRO_B
#define MICRO_B MICRO_T
#define MICRO_READ(from, v) (((const MICRO(loose) *)(from))[v])
#endif

typedef MICRO_V MICRO(loose) __attribute__((aligned(sizeof(MICRO_T)), may_alias));

/* Fewer columns than a row of sums has. */
static void MICRO(store_part)(const MICRO_T *sum, MICRO_T *c, int64_t ld, bool add, int64_t m,
                              int64_t n)
{
    enum { NR = sizeof(MICRO_V) / sizeof(MICRO_T) * GEMM_NV };

    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * ld + j] = add ? c[i * ld + j] + sum[i * NR + j] : sum[i * NR + j];
}

/* rows is a constant wherever this is used. */
static inline __attribute__((always_inline)) void MICRO(rows)(int rows, int64_t ks,
                                                              const MICRO_T *a, int64_t width,
                                                              const MICRO_B *b, MICRO_T *c,
                                                              int64_t ld, bool add, int64_t n)
{
    enum { NR = sizeof(MICRO_V) / sizeof(MICRO_T) * GEMM_NV };
    enum { AHEAD = 2048 / sizeof(MICRO_B), LINE = 64 / sizeof(MICRO_B) };
    MICRO_V sum[GEMM_MR][GEMM_NV];

    GEMM_UNROLL
    for (int i = 0; i < rows; i++) {
        GEMM_UNROLL
        for (int v = 0; v < GEMM_NV; v++)
            sum[i][v] = (MICRO_V){0};
    }
    GEMM_UNROLL
    for (int i = 0; i < rows; i++) {
        GEMM_UNROLL
        for (int v = 0; v < GEMM_ROW; v += 64)
            __builtin_prefetch((const char *)(c + i * ld) + v, 1);
    }
    for (int64_t k = 0; k < ks; k++, a += width, b += NR) {
        MICRO_V bv[GEMM_NV];
        GEMM_UNROLL
        for (int v = 0; v < GEMM_NV; v++)
            bv[v] = MICRO_READ(b, v);
        GEMM_UNROLL
        for (int v = 0; v < NR; v += LINE)
            __builtin_prefetch(b + AHEAD + v); /* far ahead of its use */
        GEMM_UNROLL
        for (int i = 0; i < rows; i++) {
            MICRO_V av = a[i] - (MICRO_V){0}; /* in every lane; x - 0 is x, -0 too */
            GEMM_UNROLL
            for (int v = 0; v < GEMM_NV; v++)
                sum[i][v] = MICRO_MADD(av, bv[v], sum[i][v]);
        }
    }

    if (n < NR) {
        MICRO_T part[GEMM_MR * NR];
        memcpy(part, sum, (size_t)rows * sizeof sum[0]);
        MICRO(store_part)(part, c, ld, add, rows, n);
        return;
    }
    GEMM_UNROLL
    for (int i = 0; i < rows; i++) {
        MICRO(loose) *row = (MICRO(loose) *)(c + i * ld);
        GEMM_UNROLL
        for (int v = 0; v < GEMM_NV; v++)
            row[v] = add ? (MICRO_V)row[v] + sum[i][v] : sum[i][v];
    }
}

static void MICRO(micro)(int64_t ks, const void *a, int64_t width, const void *b, void *c,
                         int64_t ld, bool add, int64_t m, int64_t n)
{
    switch (m) {
#define ROWS(count) \
    case count: MICRO(rows)(count, ks, a, width, b, c, ld, add, n); break;
        ROWS(1)
        ROWS(2)
        ROWS(3)
        ROWS(4)
        ROWS(5)
#if GEMM_MR_ROWS > 6
        ROWS(6)
        ROWS(7)
#endif
#if GEMM_MR_ROWS > 8
        ROWS(8)
        ROWS(9)
        ROWS(10)
        ROWS(11)
#endif
    default: MICRO(rows)(GEMM_MR, ks, a, GEMM_MR, b, c, ld, add, n); break;
#undef ROWS
    }
}

#undef MICRO
#undef MICRO_T
#undef MICRO_V
#undef MICRO_MADD
#undef MICRO_B
#undef MICRO_READ
