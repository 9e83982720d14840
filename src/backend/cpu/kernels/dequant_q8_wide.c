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

#include "backend/cpu/kernels/amx_tiles.h"
#include "backend/cpu/kernels/dequant_q8_transpose.h"
#include "backend/cpu/kernels/gemm_vec.h"
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

static void put_x(const struct q8_weight *w, const int8_t *code, float scale, int64_t row, char *to)
{
    static const uint8_t straight[8] = {0, 1, 2, 3, 4, 5, 6, 7},
                         crossed[8] = {0, 2, 1, 3, 4, 6, 5, 7};
    const uint8_t *order = w->scheme == RLX_QUANT_SCHEME_q4_k ? crossed : straight;
    uint16_t *sums = (uint16_t *)(void *)(to + X_SUMS + 64 * row);
    int64_t group = w->group;

    for (int64_t i = 0; i < 2 * STEPS; i++)
        memcpy(to + i / 2 * TILE + 64 * row + i % 2 * 32, code + 32 * order[i], 32);
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
            put_x(w, code, scale, r, to + b * Q8_WIDE_X);
        }
        kind[r] = (uint8_t)is;
    }
    memset(code, 0, sizeof code);
    for (int64_t r = rows; r < Q8_LINES; r++)
        for (int64_t b = 0; b < w->blocks; b++)
            put_x(w, code, 0, r, to + b * Q8_WIDE_X);
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
    for (int64_t i = 0; i < 256; i += 32) {
        __m256i first = _mm256_set1_epi16(scale[i / group]);
        __m256i second = _mm256_set1_epi16(scale[(i + 16) / group]);
        __m512i by = _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
        __m512i v = _mm512_mullo_epi16(
            _mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)(code + i))), by);
        __m512i up = _mm512_srai_epi16(_mm512_add_epi16(v, _mm512_set1_epi16(128)), 8);
        _mm256_store_si256((void *)(low + i), _mm512_cvtepi16_epi8(v));
        _mm256_store_si256((void *)(high + i), _mm512_cvtepi16_epi8(up));
    }
}

/* The digits of q * scale, for q = 0 .. 15, as bytes. */
#define LOW(v) (uint8_t)((v)&255)
#define HIGH(v) (uint8_t)(((v) + 128) >> 8)
#define PRODUCTS(digit, s)                                                                       \
    {                                                                                            \
        digit(0), digit(s), digit(2 * (s)), digit(3 * (s)), digit(4 * (s)), digit(5 * (s)),      \
            digit(6 * (s)), digit(7 * (s)), digit(8 * (s)), digit(9 * (s)), digit(10 * (s)),     \
            digit(11 * (s)), digit(12 * (s)), digit(13 * (s)), digit(14 * (s)), digit(15 * (s)), \
    }
#define FOUR(digit, s) \
    PRODUCTS(digit, s), PRODUCTS(digit, s + 1), PRODUCTS(digit, s + 2), PRODUCTS(digit, s + 3)
#define SIXTEEN(digit, s) \
    FOUR(digit, s), FOUR(digit, s + 4), FOUR(digit, s + 8), FOUR(digit, s + 12)
#define ALL(digit) SIXTEEN(digit, 0), SIXTEEN(digit, 16), SIXTEEN(digit, 32), SIXTEEN(digit, 48)
static const uint8_t low_of[64][16] = {ALL(LOW)}, high_of[64][16] = {ALL(HIGH)};

/* A table for the first half of a vector, another for the second. */
INLINE __m512i two_tables(const uint8_t *first, const uint8_t *second)
{
    __m256i a = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)first));
    __m256i b = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)second));
    return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}

/* Q4_K: codes of four bits look their digits up. They stay in the order of their bytes:
 * sub-blocks 0 2, 1 3, 4 6, 5 7. */
INLINE void digits_q4_k(const uint8_t *qs, const int8_t *scale, int8_t *low, int8_t *high)
{
    const __m512i mask = _mm512_set1_epi8(15);

    for (int i = 0; i < 4; i++) {
        int a = i % 2 + i / 2 * 4, b = a + 2;
        __m512i both = _mm512_loadu_si512(qs + i / 2 * 64);
        __m512i q = _mm512_and_si512(i % 2 ? _mm512_srli_epi16(both, 4) : both, mask);
        _mm512_store_si512(low + 64 * i,
                           _mm512_shuffle_epi8(two_tables(low_of[scale[a]], low_of[scale[b]]), q));
        _mm512_store_si512(high + 64 * i, _mm512_shuffle_epi8(
                                              two_tables(high_of[scale[a]], high_of[scale[b]]), q));
    }
}

static void read_column(const struct q8_weight *w, const uint8_t *block, struct columns *c,
                        int64_t i)
{
    struct q8_factors f;
    float scale[16], min[16];
    int8_t code[256];

    q8_read_factors(w->scheme, block, &f);
    if (w->scheme == RLX_QUANT_SCHEME_q4_k) {
        digits_q4_k(block + 16, f.scale, c->low[i], c->high[i]);
    } else {
        q8_codes_of(w->scheme)(block, 1, code, scale, min);
        if (w->group == 32)
            digits(code, f.scale, 32, c->low[i], c->high[i]);
        else
            digits(code, f.scale, 16, c->low[i], c->high[i]);
    }
    __m512 m = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)f.min)));
    __m512i bits = _mm512_castps_si512(m); /* the low half is zero */
    _mm512_store_si512(c->min[i], _mm512_or_si512(bits, _mm512_srli_epi32(bits, 16)));
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

/* Not so: no product has more than one digit. */
static bool has_high(int32_t scheme)
{
    return scheme != RLX_QUANT_SCHEME_q2_k && scheme != RLX_QUANT_SCHEME_q8_k;
}

void q8_wide_pack_w(const struct q8_weight *w, int64_t col, int64_t cols, int64_t b, char *to)
{
    struct columns c;

    if (cols < Q8_LINES)
        memset(&c, 0, sizeof c);
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

/* ---- products ------------------------------------------------------------------------------ */

/* What a block's tiles of sums hold, of two panels of x. */
struct dots {
    _Alignas(64) int32_t low[2][DOTS];
    int32_t high[2][DOTS];
    float min[2][DOTS];
};

/* One block of two panels of x and one of w. Sums that the tiles still hold go to `old` when their
 * tile is wanted again: by then they are complete, and nobody has waited. Mins are summed in tiles
 * 7 and 4, which hold operands before. */
INLINE void multiply(const char *x, const char *y, const char *w, bool with_high, bool with_min,
                     struct dots *old)
{
    TILE_LOAD(6, w, 64);
    TILE_LOAD(5, y, 64);
    TILE_STORE(1, old->low[1], 64);
    TILE_ZERO(1);
    TILE_I8(1, 5, 6);
    if (with_min)
        TILE_STORE(4, old->min[1], 64);
    TILE_LOAD(4, x, 64);
    TILE_STORE(0, old->low[0], 64);
    TILE_ZERO(0);
    TILE_I8(0, 4, 6);
    if (with_min)
        TILE_STORE(7, old->min[0], 64);
    if (with_high) {
        TILE_LOAD(7, w + W_HIGH, 64);
        TILE_STORE(3, old->high[1], 64);
        TILE_ZERO(3);
        TILE_I8(3, 5, 7);
        TILE_STORE(2, old->high[0], 64);
        TILE_ZERO(2);
        TILE_I8(2, 4, 7);
    }
    GEMM_UNROLL
    for (int i = 1; i < STEPS; i++) {
        TILE_LOAD(6, w + i * TILE, 64);
        TILE_LOAD(4, x + i * TILE, 64);
        TILE_I8(0, 4, 6);
        TILE_LOAD(5, y + i * TILE, 64);
        TILE_I8(1, 5, 6);
        if (with_high) {
            TILE_LOAD(7, w + W_HIGH + i * TILE, 64);
            TILE_I8(2, 4, 7);
            TILE_I8(3, 5, 7);
        }
    }
    if (with_min) {
        TILE_LOAD(6, w + W_MINS, 64);
        TILE_LOAD(4, x + X_SUMS, 64);
        TILE_ZERO(7);
        TILE_BF16(7, 4, 6);
        TILE_LOAD(5, y + X_SUMS, 64);
        TILE_ZERO(4);
        TILE_BF16(4, 5, 6);
    }
}

/* The sums of the last one. */
INLINE void finish(bool with_high, bool with_min, struct dots *old)
{
    TILE_STORE(0, old->low[0], 64);
    TILE_STORE(1, old->low[1], 64);
    if (with_high) {
        TILE_STORE(2, old->high[0], 64);
        TILE_STORE(3, old->high[1], 64);
    }
    if (with_min) {
        TILE_STORE(7, old->min[0], 64);
        TILE_STORE(4, old->min[1], 64);
    }
}

/* Sums of one panel, scaled and added. */
INLINE void scale(const struct dots *dots, int which, const char *x, const char *w, bool with_high,
                  bool with_min, float *sum)
{
    const float *x_scale = (const float *)(const void *)(x + X_SCALES);
    __m512 d = _mm512_load_ps(w + W_D), dmin = _mm512_load_ps(w + W_DMIN);

    GEMM_UNROLL
    for (int r = 0; r < Q8_LINES; r++) {
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

/* What two panels of x and one of w are multiplied into. */
struct unit {
    const char *x, *y, *w; /* y: x again, where there is no second panel */
    float *sum;
};

INLINE struct unit unit_at(const struct q8_wide *t, int64_t i)
{
    int64_t p = i / t->w_panels * 2, n = i % t->w_panels;
    const char *x = t->x + p * t->x_apart;

    return (struct unit){x, p + 1 < t->x_panels ? x + t->x_apart : x, t->w + n * Q8_WIDE_W,
                         t->sum + (n * t->x_panels + p) * DOTS};
}

INLINE void scale_unit(const struct unit *u, const struct dots *dots, bool with_high, bool with_min)
{
    scale(dots, 0, u->x, u->w, with_high, with_min, u->sum);
    if (u->y != u->x)
        scale(dots, 1, u->y, u->w, with_high, with_min, u->sum + DOTS);
}

INLINE void run(const struct q8_wide *t, bool with_high, bool with_min)
{
    int64_t units = (t->x_panels + 1) / 2 * t->w_panels;
    struct dots dots[2];
    struct unit before = {0};

    for (int64_t i = 0; i < units; i++) {
        struct unit u = unit_at(t, i);
        multiply(u.x, u.y, u.w, with_high, with_min, &dots[i % 2]);
        if (i > 0)
            scale_unit(&before, &dots[i % 2], with_high, with_min);
        before = u;
    }
    finish(with_high, with_min, &dots[0]);
    scale_unit(&before, &dots[0], with_high, with_min);
}

USES_AMX void q8_wide_run(const struct q8_weight *w, const struct q8_wide *t)
{
    if (has_high(w->scheme) && q8_has_min(w->scheme))
        run(t, true, true);
    else if (has_high(w->scheme))
        run(t, true, false);
    else if (q8_has_min(w->scheme))
        run(t, false, true);
    else
        run(t, false, false);
}

#else
typedef int dequant_q8_wide_is_not_here; /* a file must declare something */
#endif
