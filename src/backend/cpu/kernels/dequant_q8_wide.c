/* dequant_q8_wide.c: many rows of x times packed rows in blocks of 256, in the tiles of AMX
 * (dequant_q8.h).
 *
 * All scales of such a block are whole numbers times one number. So codes are multiplied with their
 * sub-block's whole number beforehand. The product takes up to 13 bits and is kept as two digits,
 * 256 high + low, each a byte: two products in tiles, over all of the block without a pause, and
 * still exact. The mins are a third product, of whole numbers in bf16, exact as well: the sum over
 * x of each sub-block as two parts of eight bits, times the min's whole number.
 *
 *     x   4 tiles of codes (64 elements each), a tile of sums, 16 scales
 *     w   4 tiles of low digits, 4 of high ones, a tile of mins, 16 d, 16 dmin
 *
 * Two panels of x are multiplied with one of w: four tiles of sums fill the registers. */
#include "backend/cpu/kernels/dequant_q8.h"

#ifdef GEMM_AMX

#include "backend/cpu/kernels/dequant_q8_transpose.h"
#include "rlx/graph.h"

enum { TILE = 1024, STEPS = 4, DOTS = 256 };
enum { X_SUMS = STEPS * TILE, X_SCALES = X_SUMS + TILE };
enum { W_HIGH = STEPS * TILE, W_MINS = 2 * STEPS * TILE, W_D = W_MINS + TILE, W_DMIN = W_D + 64 };

/* ---- packing x ----------------------------------------------------------------------------- */

/* A whole number of at most eight bits. */
static uint16_t bf16_of(int32_t v)
{
    return (uint16_t)(half_f32_bits((float)v) >> 16);
}

static void put_x(const int8_t *code, float scale, int64_t group, int64_t row, char *to)
{
    uint16_t *sums = (uint16_t *)(void *)(to + X_SUMS + 64 * row);

    for (int64_t i = 0; i < STEPS; i++)
        memcpy(to + i * TILE + 64 * row, code + 64 * i, 64);
    memset(sums, 0, 64);
    for (int64_t g = 0; g < 256 / group; g++) {
        int32_t sum = 0, low;
        for (int64_t i = 0; i < group; i++)
            sum += code[g * group + i];
        low = sum & 31;
        sums[2 * g] = bf16_of(sum - low);
        sums[2 * g + 1] = bf16_of(low);
    }
    ((float *)(void *)(to + X_SCALES))[row] = scale;
}

void q8_wide_pack_x(const struct q8_weight *w, const float *const *row, int64_t rows, char *to,
                    uint8_t *kind)
{
    int8_t code[256];

    for (int64_t r = 0; r < rows; r++) {
        enum q8_row_kind is = Q8_ROW_PLAIN;
        for (int64_t b = 0; b < w->blocks; b++) {
            float scale = q8_encode_256(row[r] + b * 256, code, &is);
            put_x(code, scale, w->group, r, to + b * Q8_WIDE_X);
        }
        kind[r] = (uint8_t)is;
    }
    memset(code, 0, sizeof code);
    for (int64_t r = rows; r < Q8_LINES; r++)
        for (int64_t b = 0; b < w->blocks; b++)
            put_x(code, 0, w->group, r, to + b * Q8_WIDE_X);
}

/* ---- packing w ----------------------------------------------------------------------------- */

struct columns {
    _Alignas(64) int8_t low[Q8_LINES][256];
    _Alignas(64) int8_t high[Q8_LINES][256];
    _Alignas(64) uint32_t min[Q8_LINES][16]; /* twice, in bf16 */
    float d[Q8_LINES], dmin[Q8_LINES];
};

/* Codes times their sub-block's scale, as digits. */
INLINE void digits(const int8_t *code, const int8_t *scale, int64_t group, int8_t *low,
                   int8_t *high)
{
    for (int64_t g = 0; g < 256 / group; g++)
        for (int64_t i = g * group; i < (g + 1) * group; i++) {
            int16_t v = (int16_t)(code[i] * scale[g]);
            low[i] = (int8_t)v;
            high[i] = (int8_t)((v - (int8_t)v) >> 8);
        }
}

static void read_column(const struct q8_weight *w, const uint8_t *block, struct columns *c,
                        int64_t i)
{
    struct q8_factors f;
    float scale[16], min[16];
    int8_t code[256];

    q8_codes_of(w->scheme)(block, 1, code, scale, min);
    q8_read_factors(w->scheme, block, &f);
    if (w->group == 32)
        digits(code, f.scale, 32, c->low[i], c->high[i]);
    else
        digits(code, f.scale, 16, c->low[i], c->high[i]);
    for (int64_t g = 0; g < 16; g++)
        c->min[i][g] = bf16_of(f.min[g]) * 0x10001u;
    c->d[i] = f.d;
    c->dmin[i] = f.dmin;
}

INLINE void put_tile(const void *rows, int64_t apart, char *to)
{
    __m512i word[16];

    transpose(rows, apart, word);
    for (int i = 0; i < 16; i++)
        _mm512_store_si512(to + 64 * i, word[i]);
}

/* Not with_high: no product has more than one digit. */
static bool has_high(int32_t scheme)
{
    return scheme != RLX_QUANT_SCHEME_q2_k && scheme != RLX_QUANT_SCHEME_q8_k;
}

void q8_wide_pack_w(const struct q8_weight *w, int64_t col, int64_t cols, char *to)
{
    struct columns c;

    memset(&c, 0, sizeof c); /* columns past the last stay so */
    for (int64_t b = 0; b < w->blocks; b++, to += Q8_WIDE_W) {
        for (int64_t i = 0; i < cols; i++)
            read_column(w, q8_row(w, col + i) + b * w->block_bytes, &c, i);
        for (int64_t i = 0; i < STEPS; i++)
            put_tile(&c.low[0][64 * i], 256, to + i * TILE);
        for (int64_t i = 0; i < STEPS && has_high(w->scheme); i++)
            put_tile(&c.high[0][64 * i], 256, to + W_HIGH + i * TILE);
        if (q8_has_min(w->scheme))
            put_tile(c.min, sizeof *c.min, to + W_MINS);
        memcpy(to + W_D, c.d, sizeof c.d);
        memcpy(to + W_DMIN, c.dmin, sizeof c.dmin);
    }
}

/* ---- products ------------------------------------------------------------------------------ */

#define USES_AMX __attribute__((target("amx-tile,amx-int8,amx-bf16")))
#define UNROLL _Pragma("GCC unroll 16")

#define TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t ::)
#define TILE_LOAD(t, from) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"(from), "r"((int64_t)64) : "memory")
#define TILE_STORE(t, to) \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(to), "r"((int64_t)64) : "memory")
#define TILE_I8(sum, a, b) __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)
#define TILE_BF16(sum, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)

/* What a block's tiles of sums hold, of two panels of x. */
struct dots {
    _Alignas(64) int32_t low[2][DOTS];
    int32_t high[2][DOTS];
    float min[2][DOTS];
};

INLINE void multiply(const char *x, const char *y, const char *w, bool with_high, bool with_min,
                     struct dots *to)
{
    TILE_ZERO(0);
    TILE_ZERO(1);
    if (with_high) {
        TILE_ZERO(2);
        TILE_ZERO(3);
    }
    UNROLL for (int i = 0; i < STEPS; i++)
    {
        TILE_LOAD(6, w + i * TILE);
        TILE_LOAD(4, x + i * TILE);
        TILE_I8(0, 4, 6);
        TILE_LOAD(5, y + i * TILE);
        TILE_I8(1, 5, 6);
        if (with_high) {
            TILE_LOAD(7, w + W_HIGH + i * TILE);
            TILE_I8(2, 4, 7);
            TILE_I8(3, 5, 7);
        }
    }
    if (with_min) {
        TILE_LOAD(6, w + W_MINS);
        TILE_LOAD(4, x + X_SUMS);
        TILE_LOAD(5, y + X_SUMS);
    }
    TILE_STORE(0, to->low[0]);
    TILE_STORE(1, to->low[1]);
    if (with_min) {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_BF16(0, 4, 6);
        TILE_BF16(1, 5, 6);
    }
    if (with_high) {
        TILE_STORE(2, to->high[0]);
        TILE_STORE(3, to->high[1]);
    }
    if (with_min) {
        TILE_STORE(0, to->min[0]);
        TILE_STORE(1, to->min[1]);
    }
}

/* Sums of one panel, scaled and added. */
INLINE void scale(const struct dots *dots, int which, const char *x, const char *w, bool with_high,
                  bool with_min, float *sum)
{
    const float *x_scale = (const float *)(const void *)(x + X_SCALES);
    __m512 d = _mm512_load_ps(w + W_D), dmin = _mm512_load_ps(w + W_DMIN);

    UNROLL for (int r = 0; r < Q8_LINES; r++)
    {
        __m512i dot = _mm512_load_si512(dots->low[which] + Q8_LINES * r);
        if (with_high)
            dot = _mm512_add_epi32(
                dot, _mm512_slli_epi32(_mm512_load_si512(dots->high[which] + Q8_LINES * r), 8));
        __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(dot), d);
        if (with_min)
            v = _mm512_fnmadd_ps(_mm512_load_ps(dots->min[which] + Q8_LINES * r), dmin, v);
        v = _mm512_fmadd_ps(v, _mm512_set1_ps(x_scale[r]), _mm512_load_ps(sum + Q8_LINES * r));
        _mm512_store_ps(sum + Q8_LINES * r, v);
    }
}

/* The last of an odd number of panels is multiplied twice, and used once. */
INLINE void run(const struct q8_weight *w, const char *x, int64_t panels, const char *panel,
                bool with_high, bool with_min, float *sum)
{
    int64_t bytes = w->blocks * Q8_WIDE_X;
    struct dots dots;

    memset(sum, 0, (size_t)panels * DOTS * sizeof *sum);
    for (int64_t b = 0; b < w->blocks; b++, x += Q8_WIDE_X, panel += Q8_WIDE_W)
        for (int64_t p = 0; p < panels; p += 2) {
            const char *a = x + p * bytes, *c = p + 1 < panels ? a + bytes : a;
            multiply(a, c, panel, with_high, with_min, &dots);
            scale(&dots, 0, a, panel, with_high, with_min, sum + p * DOTS);
            if (p + 1 < panels)
                scale(&dots, 1, c, panel, with_high, with_min, sum + (p + 1) * DOTS);
        }
}

USES_AMX void q8_wide_run(const struct q8_weight *w, const char *x, int64_t panels,
                          const char *panel, float *sum)
{
    if (has_high(w->scheme) && q8_has_min(w->scheme))
        run(w, x, panels, panel, true, true, sum);
    else if (has_high(w->scheme))
        run(w, x, panels, panel, true, false, sum);
    else if (q8_has_min(w->scheme))
        run(w, x, panels, panel, false, true, sum);
    else
        run(w, x, panels, panel, false, false, sum);
}

#else
typedef int dequant_q8_wide_is_not_here; /* a file must declare something */
#endif
