/* gemm_few_core.h: the loops of gemm_few.c, for one type of sum. Included once per type, with
 *
 *     FEW(name)      the name of a function for this type
 *     FEW_T, FEW_V   a sum, a vector of sums
 *     FEW_MADD       (a, b, c): c + a * b on vectors; FEW_MADD_1 on elements
 *     FEW_LOAD       cpu_load_f32 or cpu_load_f64
 *     FEW_DTYPE      the dtype that FEW_T is */

typedef FEW_V FEW(loose) __attribute__((aligned(sizeof(FEW_T)), may_alias));

/* n elements, `stride` apart, as sums' type: where they lie if they are that already. */
static const FEW_T *FEW(read)(rlx_dtype dtype, const void *src, int64_t stride, int64_t n,
                              FEW_T *buffer)
{
    unsigned char dense[CHUNK_MOST * sizeof(FEW_T)] __attribute__((aligned(64)));

    if (stride == 1 && dtype == FEW_DTYPE)
        return src;
    if (stride != 1) {
        cpu_copy_strided(dense, src, (int32_t)cpu_size(dtype), n, stride);
        src = dense;
    }
    FEW_LOAD(dtype, src, buffer, n);
    return buffer;
}

/* Columns lie together: each sum's row += four elements of a times four rows of b. */
static void FEW(by_columns)(const struct gemm_few *f, const FEW_T *const *a, int64_t k, int64_t ks,
                            FEW_T *sum)
{
    FEW_T wide[4][COLUMNS_MOST], part[GEMM_FEW_SUMS];
    int64_t cols = f->cols, size = (int64_t)cpu_size(f->b.dtype);

    memset(part, 0, (size_t)(f->rows * cols) * sizeof *part);
    for (int64_t j = 0; j < ks; j += 4) {
        const FEW_T *b[4];
        FEW_T av[4] = {0};
        int64_t n = cpu_min_i64(4, ks - j);
        for (int64_t i = 0; i < n; i++)
            b[i] = FEW(read)(f->b.dtype, (const char *)f->b.data + (k + j + i) * f->b.k * size, 1,
                             cols, wide[i]);
        for (int64_t r = 0; r < f->rows; r++) {
            FEW_T *p = part + r * cols;
            for (int64_t i = 0; i < n; i++)
                av[i] = a[r][j + i];
            if (n == 4) {
                const FEW_T *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
                for (int64_t c = 0; c < cols; c++)
                    p[c] = FEW_MADD_1(
                        av[3], b3[c],
                        FEW_MADD_1(av[2], b2[c],
                                   FEW_MADD_1(av[1], b1[c], FEW_MADD_1(av[0], b0[c], p[c]))));
            } else {
                for (int64_t i = 0; i < n; i++)
                    for (int64_t c = 0; c < cols; c++)
                        p[c] = FEW_MADD_1(av[i], b[i][c], p[c]);
            }
        }
    }
    for (int64_t i = 0; i < f->rows * cols; i++)
        sum[i] += part[i];
}

static FEW_T FEW(add_lanes)(FEW_V v)
{
    enum { LANES = sizeof(FEW_V) / sizeof(FEW_T) };
    FEW_T lane[LANES];

    memcpy(lane, &v, sizeof lane);
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            lane[i] += lane[i + n];
    return lane[0];
}

/* Two rows of a with four columns of b, over ks of k. rows 1: a[1] and sum[1] are not used. */
static inline __attribute__((always_inline)) void
FEW(dots)(const FEW_T *const *a, const FEW_T *const *b, int64_t ks, int rows, FEW_T *const *sum)
{
    enum { LANES = sizeof(FEW_V) / sizeof(FEW_T) };
    FEW_V s[2][4] = {{{0}}};
    FEW_T tail[2][4] = {{0}};
    int64_t j = 0;

    for (; j + LANES <= ks; j += LANES) {
        GEMM_UNROLL
        for (int r = 0; r < rows; r++) {
            FEW_V av = *(const FEW(loose) *)(a[r] + j);
            GEMM_UNROLL
            for (int c = 0; c < 4; c++)
                s[r][c] = FEW_MADD(av, *(const FEW(loose) *)(b[c] + j), s[r][c]);
        }
    }
    for (; j < ks; j++)
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < 4; c++)
                tail[r][c] = FEW_MADD_1(a[r][j], b[c][j], tail[r][c]);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < 4; c++)
            sum[r][c] += FEW(add_lanes)(s[r][c]) + tail[r][c];
}

/* Each column's k lie together: dot products. */
static void FEW(by_k)(const struct gemm_few *f, const FEW_T *const *a, int64_t k, int64_t ks,
                      FEW_T *sum)
{
    FEW_T wide[4][CHUNK_MOST];
    int64_t size = (int64_t)cpu_size(f->b.dtype);

    for (int64_t c = 0; c < f->cols; c += 4) {
        int64_t n = cpu_min_i64(4, f->cols - c);
        const FEW_T *b[4];
        for (int64_t i = 0; i < 4; i++)
            b[i] = i < n ? FEW(read)(f->b.dtype,
                                     (const char *)f->b.data + ((c + i) * f->b.line + k) * size, 1,
                                     ks, wide[i])
                         : b[0];
        for (int64_t r = 0; r < f->rows; r += 2) {
            FEW_T got[2][4] = {{0}};
            FEW_T *const to[2] = {got[0], got[1]};
            int64_t pair = cpu_min_i64(2, f->rows - r);
            if (pair == 2)
                FEW(dots)(a + r, b, ks, 2, to);
            else
                FEW(dots)(a + r, b, ks, 1, to);
            for (int64_t i = 0; i < pair; i++)
                for (int64_t l = 0; l < n; l++)
                    sum[(r + i) * f->cols + c + l] += got[i][l];
        }
    }
}

static void FEW(run)(const struct gemm_few *f, FEW_T *sum)
{
    FEW_T wide[GEMM_FEW_SUMS];
    const FEW_T *a[GEMM_FEW];
    int64_t size = (int64_t)cpu_size(f->a_dtype), chunk = CHUNK_MOST;
    bool widen = f->a_dtype != FEW_DTYPE || f->a_k != 1;

    if (f->b.line == 1)
        chunk = CHUNK_LEAST; /* as far as one sum may run before it is added to the others */
    else if (widen)
        chunk = cpu_min_i64(chunk, GEMM_FEW_SUMS / f->rows);
    memset(sum, 0, (size_t)(f->rows * f->cols) * sizeof *sum);
    for (int64_t k = 0; k < f->k; k += chunk) {
        int64_t ks = cpu_min_i64(chunk, f->k - k);
        for (int64_t r = 0; r < f->rows; r++)
            a[r] = FEW(read)(f->a_dtype, (const char *)f->row[r] + k * f->a_k * size, f->a_k, ks,
                             wide + (widen ? r * chunk : 0));
        if (f->b.line == 1)
            FEW(by_columns)(f, a, k, ks, sum);
        else
            FEW(by_k)(f, a, k, ks, sum);
    }
}

#undef FEW
#undef FEW_T
#undef FEW_V
#undef FEW_MADD
#undef FEW_MADD_1
#undef FEW_LOAD
#undef FEW_DTYPE
