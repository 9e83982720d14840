/* dequant_q8_amx.c: sixteen rows of x times sixteen columns of w in blocks of 32, in the tiles of
 * AMX (dequant_q8.h).
 *
 * Each group of 32 has scales of its own in x and in w, so the tile's sums go to memory after every
 * group, and vectors scale them. They start from 1.5 * 2^23 instead of 0: as bits, such a sum is
 * the f32 of that number plus the integer, and one multiply-add turns it into the integer times w's
 * scale, rounded once:
 *
 *     (1.5 * 2^23 + sum) * scale - 1.5 * 2^23 * scale
 *
 * where the last product is exact: a scale has 11 bits. */
#include "backend/cpu/kernels/dequant_q8.h"

#ifdef GEMM_AMX

#include "backend/cpu/kernels/gemm_vec.h"

#include "backend/cpu/kernels/amx_tiles.h"

#define INLINE static inline __attribute__((always_inline))

enum { GROUP = 32, DOTS = Q8_LINES * Q8_LINES };
enum { X_STEP = Q8_LINES * (GROUP + 12), W_STEP = Q8_LINES * (GROUP + 8) };

#define BEGIN 0x1.8p23f
#define FOUR BEGIN, BEGIN, BEGIN, BEGIN
static const float begin[16] = {FOUR, FOUR, FOUR, FOUR};

/* Sums in tiles 0 to 3, x in 4 and 5, w in 6 and 7. */
USES_AMX void q8_amx_enter(void)
{
    struct {
        uint8_t palette, start_row, unused[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } c = {.palette = 1};

    for (int i = 0; i < 8; i++) {
        c.row_bytes[i] = i == 4 || i == 5 ? GROUP : 64;
        c.rows[i] = i >= 6 ? GROUP / 4 : Q8_LINES;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(c));
}

INLINE void scale(const float *dot, const char *x, const char *w, bool with_min, __m512 *sum)
{
    const float *x_scale = (const float *)(const void *)(x + Q8_LINES * GROUP);
    __m512 by = _mm512_load_ps(w + Q8_LINES * GROUP);
    __m512 less = _mm512_mul_ps(by, _mm512_set1_ps(-BEGIN));

    GEMM_UNROLL
    for (int r = 0; r < Q8_LINES; r++) {
        __m512 v = _mm512_fmadd_ps(_mm512_load_ps(dot + Q8_LINES * r), by, less);
        sum[r] = _mm512_fmadd_ps(v, _mm512_set1_ps(x_scale[r]), sum[r]);
    }
    if (!with_min)
        return;
    __m512 min = _mm512_load_ps(w + Q8_LINES * (GROUP + 4));
    GEMM_UNROLL
    for (int r = 0; r < Q8_LINES; r++)
        sum[r] = _mm512_fmadd_ps(min, _mm512_set1_ps(x_scale[Q8_LINES + r]), sum[r]);
}

#define MULTIPLY(sum, a, b, x, w) \
    do {                          \
        TILE_LOAD(a, x, GROUP);   \
        TILE_LOAD(b, w, 64);      \
        TILE_LOAD(sum, begin, 0); \
        TILE_I8(sum, a, b);       \
    } while (0)

/* Group g is scaled, the sums of the next one are stored, the one after that is multiplied: nobody
 * waits for anybody. */
#define STAGE(next, a, b, done, slot)                         \
    if (g + 2 < t->groups)                                    \
        MULTIPLY(next, a, b, x + 2 * X_STEP, w + 2 * W_STEP); \
    if (g + 1 < t->groups)                                    \
        TILE_STORE(done, dot[(slot + 1) % 4], 64);            \
    scale(dot[slot], x, w, with_min, sum);                    \
    x += X_STEP;                                              \
    w += W_STEP;                                              \
    if (++g == t->groups)                                     \
        break;

INLINE void tile(const struct q8_tile *t, bool with_min)
{
    _Alignas(64) float dot[4][DOTS];
    const char *x = t->x, *w = t->w;
    __m512 sum[Q8_LINES];
    int64_t g = 0;

    GEMM_UNROLL
    for (int r = 0; r < Q8_LINES; r++)
        sum[r] = _mm512_setzero_ps();
    if (t->groups > 0) {
        MULTIPLY(0, 4, 6, x, w);
        TILE_STORE(0, dot[0], 64);
    }
    if (t->groups > 1)
        MULTIPLY(1, 5, 7, x + X_STEP, w + W_STEP);
    while (t->groups > 0) {
        STAGE(2, 4, 6, 1, 0)
        STAGE(3, 5, 7, 2, 1)
        STAGE(0, 4, 6, 3, 2)
        STAGE(1, 5, 7, 0, 3)
    }
    GEMM_UNROLL
    for (int r = 0; r < Q8_LINES; r++)
        _mm512_store_ps(t->sum + Q8_LINES * r, sum[r]);
}

USES_AMX void q8_tile_run_amx(const struct q8_tile *t)
{
    if (t->with_min)
        tile(t, true);
    else
        tile(t, false);
}

#else
typedef int dequant_q8_amx_is_not_here; /* a file must declare something */
#endif
