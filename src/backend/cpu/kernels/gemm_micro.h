/* gemm_micro.h: the inner loop of gemm.c, for one kind of element. Included once per kind, with
 *
 *     MICRO        the function's name
 *     MICRO_T      a sum's type
 *     MICRO_V      a vector of MICRO_T
 *     MICRO_MADD   (a, b, c): c + a * b, on vectors
 *
 * One call makes GEMM_MR rows of GEMM_NV vectors of sums, which stay in registers over all of k:
 *
 *                   b: k rows of GEMM_NV vectors
 *     a: k columns  sums
 *     of GEMM_MR
 */

/* m rows and n columns of the sums go to c, or are added to what is there. */
static void MICRO(int64_t ks, const void *pa, const void *pb, void *pc, int64_t ld, bool add,
                  int64_t m, int64_t n)
{
    enum { LANES = sizeof(MICRO_V) / sizeof(MICRO_T), NR = LANES * GEMM_NV };
    typedef MICRO_V loose __attribute__((aligned(sizeof(MICRO_T)), may_alias));
    const MICRO_T *a = pa, *b = pb;
    MICRO_T *c = pc;
    MICRO_V sum[GEMM_MR][GEMM_NV];

    GEMM_UNROLL
    for (int i = 0; i < GEMM_MR; i++) {
        GEMM_UNROLL
        for (int v = 0; v < GEMM_NV; v++)
            sum[i][v] = (MICRO_V){0};
    }
    for (int64_t k = 0; k < ks; k++, a += GEMM_MR, b += NR) {
        MICRO_V bv[GEMM_NV];
        GEMM_UNROLL
        for (int v = 0; v < GEMM_NV; v++)
            bv[v] = ((const loose *)b)[v];
        GEMM_UNROLL
        for (int i = 0; i < GEMM_MR; i++) {
            MICRO_V av = a[i] - (MICRO_V){0}; /* in every lane; x - 0 is x, -0 too */
            GEMM_UNROLL
            for (int v = 0; v < GEMM_NV; v++)
                sum[i][v] = MICRO_MADD(av, bv[v], sum[i][v]);
        }
    }

    if (m == GEMM_MR && n == NR) {
        GEMM_UNROLL
        for (int i = 0; i < GEMM_MR; i++) {
            loose *row = (loose *)(c + i * ld);
            GEMM_UNROLL
            for (int v = 0; v < GEMM_NV; v++)
                row[v] = add ? (MICRO_V)row[v] + sum[i][v] : sum[i][v];
        }
        return;
    }
    MICRO_T part[GEMM_MR][NR];
    memcpy(part, sum, sizeof part);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * ld + j] = add ? c[i * ld + j] + part[i][j] : part[i][j];
}

#undef MICRO
#undef MICRO_T
#undef MICRO_V
#undef MICRO_MADD
