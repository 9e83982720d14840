/* fft_core.h: an n-point transform in every lane of n vectors, for one type. Included once per
 * type, with
 *
 *     FFT(name)     the name of a function for this type
 *     FFT_T, FFT_V  an element, a vector of elements
 *     FFT_MADD      (a, b, c): c + a * b on vectors
 *
 * Decimation in time: the points j, j + r, j + 2r, ... make a transform of n/r points, for each
 * j < r; these lie one after the other in the output, where a pass of radix r turns them into the
 * whole, in place. It recurses, so that what fits a cache is finished in it. */

#define FFT_INLINE static inline __attribute__((always_inline))
#define FFT_SPLAT(s) ((s) - (FFT_V){0})
/* a - b c */
#define FFT_MSUB(b, c, a) FFT_MADD(-(b), c, a)

typedef FFT_T FFT(one);
typedef FFT_V FFT(vec);

struct FFT(pair) { /* complex numbers, one per lane */
    FFT_V re, im;
};

#define PAIR struct FFT(pair)

FFT_INLINE PAIR FFT(add)(PAIR a, PAIR b)
{
    return (PAIR){a.re + b.re, a.im + b.im};
}

FFT_INLINE PAIR FFT(sub)(PAIR a, PAIR b)
{
    return (PAIR){a.re - b.re, a.im - b.im};
}

FFT_INLINE PAIR FFT(mul)(PAIR a, FFT_V re, FFT_V im)
{
    return (PAIR){FFT_MSUB(a.im, im, a.re * re), FFT_MADD(a.im, re, a.re * im)};
}

FFT_INLINE PAIR FFT(minus_i)(PAIR a) /* -i a */
{
    return (PAIR){a.im, -a.re};
}

/* ---- butterflies: x[0 .. r) becomes its transform ------------------------------------------- */

FFT_INLINE void FFT(turn_2)(PAIR *x)
{
    PAIR a = x[0];

    x[0] = FFT(add)(a, x[1]);
    x[1] = FFT(sub)(a, x[1]);
}

FFT_INLINE void FFT(turn_4)(PAIR *x)
{
    PAIR a = FFT(add)(x[0], x[2]), b = FFT(sub)(x[0], x[2]);
    PAIR c = FFT(add)(x[1], x[3]), d = FFT(minus_i)(FFT(sub)(x[1], x[3]));

    x[0] = FFT(add)(a, c);
    x[1] = FFT(add)(b, d);
    x[2] = FFT(sub)(a, c);
    x[3] = FFT(sub)(b, d);
}

FFT_INLINE void FFT(turn_8)(PAIR *x)
{
    const FFT_V h = FFT_SPLAT((FFT_T)0.70710678118654752440);
    PAIR even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]}, t;

    FFT(turn_4)(even);
    FFT(turn_4)(odd);
    t = odd[1]; /* times (1 - i) / sqrt 2 */
    odd[1] = (PAIR){(t.re + t.im) * h, (t.im - t.re) * h};
    odd[2] = FFT(minus_i)(odd[2]);
    t = odd[3]; /* times (-1 - i) / sqrt 2 */
    odd[3] = (PAIR){(t.im - t.re) * h, -(t.re + t.im) * h};
    GEMM_UNROLL
    for (int k = 0; k < 4; k++) {
        x[k] = FFT(add)(even[k], odd[k]);
        x[k + 4] = FFT(sub)(even[k], odd[k]);
    }
}

/* An odd p. Points j and p-j share their cosines, and their sines but for the sign:
 * X[k] = a - i b and X[p-k] = a + i b. root: cos and sin of 2 pi j / p. */
FFT_INLINE void FFT(turn_odd)(PAIR *x, int p, const FFT_T (*root)[2])
{
    enum { HALF = FFT_LARGEST_PRIME / 2 };
    PAIR sum[HALF], dif[HALF], x0 = x[0];
    int half = p / 2;

    GEMM_UNROLL
    for (int j = 0; j < half; j++) {
        sum[j] = FFT(add)(x[j + 1], x[p - 1 - j]);
        dif[j] = FFT(sub)(x[j + 1], x[p - 1 - j]);
        x[0] = FFT(add)(x[0], sum[j]);
    }
    GEMM_UNROLL
    for (int k = 1; k <= half; k++) {
        PAIR a = x0, b = {{0}, {0}};
        GEMM_UNROLL
        for (int j = 0; j < half; j++) {
            FFT_V c = FFT_SPLAT(root[(j + 1) * k % p][0]), s = FFT_SPLAT(root[(j + 1) * k % p][1]);
            a = (PAIR){FFT_MADD(sum[j].re, c, a.re), FFT_MADD(sum[j].im, c, a.im)};
            b = (PAIR){FFT_MADD(dif[j].re, s, b.re), FFT_MADD(dif[j].im, s, b.im)};
        }
        x[k] = (PAIR){a.re + b.im, a.im - b.re};
        x[p - k] = (PAIR){a.re - b.im, a.im + b.re};
    }
}

#define TURN_ODD(p)                                      \
    FFT_INLINE void FFT(turn_##p)(PAIR * x)              \
    {                                                    \
        static const FFT_T root[p][2] = {FFT_ROOTS_##p}; \
        FFT(turn_odd)(x, p, root);                       \
    }
TURN_ODD(3)
TURN_ODD(5)
TURN_ODD(7)
TURN_ODD(11)
TURN_ODD(13)

/* ---- passes --------------------------------------------------------------------------------- */

/* last: r points, `step` apart, to a row. pass: r rows of m points to one, in place. */
#define PASS(r)                                                                                   \
    static void FFT(last_##r)(const PAIR *in, int64_t step, PAIR *out)                            \
    {                                                                                             \
        PAIR x[r];                                                                                \
        GEMM_UNROLL                                                                               \
        for (int q = 0; q < (r); q++)                                                             \
            x[q] = in[q * step];                                                                  \
        FFT(turn_##r)(x);                                                                         \
        GEMM_UNROLL                                                                               \
        for (int q = 0; q < (r); q++)                                                             \
            out[q] = x[q];                                                                        \
    }                                                                                             \
                                                                                                  \
    static void FFT(pass_##r)(PAIR * io, int64_t m, const FFT_T *w)                               \
    {                                                                                             \
        for (int64_t k = 0; k < m; k++, w += 2 * ((r)-1)) {                                       \
            PAIR x[r];                                                                            \
            x[0] = io[k];                                                                         \
            GEMM_UNROLL                                                                           \
            for (int q = 1; q < (r); q++)                                                         \
                x[q] = FFT(mul)(io[q * m + k], FFT_SPLAT(w[2 * q - 2]), FFT_SPLAT(w[2 * q - 1])); \
            FFT(turn_##r)(x);                                                                     \
            GEMM_UNROLL                                                                           \
            for (int q = 0; q < (r); q++)                                                         \
                io[q * m + k] = x[q];                                                             \
        }                                                                                         \
    }
PASS(2)
PASS(3)
PASS(4)
PASS(5)
PASS(7)
PASS(8)
PASS(11)
PASS(13)

static void FFT(last)(int32_t r, const PAIR *in, int64_t step, PAIR *out)
{
    switch (r) {
    case 2: FFT(last_2)(in, step, out); break;
    case 3: FFT(last_3)(in, step, out); break;
    case 4: FFT(last_4)(in, step, out); break;
    case 5: FFT(last_5)(in, step, out); break;
    case 7: FFT(last_7)(in, step, out); break;
    case 8: FFT(last_8)(in, step, out); break;
    case 11: FFT(last_11)(in, step, out); break;
    default: FFT(last_13)(in, step, out); break;
    }
}

static void FFT(pass)(int32_t r, PAIR *io, int64_t m, const FFT_T *w)
{
    switch (r) {
    case 2: FFT(pass_2)(io, m, w); break;
    case 3: FFT(pass_3)(io, m, w); break;
    case 4: FFT(pass_4)(io, m, w); break;
    case 5: FFT(pass_5)(io, m, w); break;
    case 7: FFT(pass_7)(io, m, w); break;
    case 8: FFT(pass_8)(io, m, w); break;
    case 11: FFT(pass_11)(io, m, w); break;
    default: FFT(pass_13)(io, m, w); break;
    }
}

/* n points from stage s on, `step` apart, to a row. */
static void FFT(stage)(const struct fft_columns *c, const FFT_T *table, int32_t s, int64_t n,
                       const PAIR *in, int64_t step, PAIR *out)
{
    int32_t r = c->radix[s];
    int64_t m = n / r;

    if (m == 1) {
        FFT(last)(r, in, step, out);
        return;
    }
    for (int32_t q = 0; q < r; q++)
        FFT(stage)(c, table, s + 1, m, in + q * step, step * r, out + q * m);
    FFT(pass)(r, out, m, table + c->twiddle[s]);
}

/* The transform of c->n vectors; in and out do not overlap. */
static void FFT(columns)(const struct fft_columns *c, const FFT_T *table, const PAIR *in, PAIR *out)
{
    if (c->n == 1)
        out[0] = in[0];
    else
        FFT(stage)(c, table, 0, c->n, in, 1, out);
}
