/* dequant_q8_wide.c: many rows of x times packed rows in blocks of 256, in the tiles of AMX
 * (dequant_q8.h).
 *
 * All scales of such a block are integers times one number. So codes are multiplied with their
 * sub-block's integer beforehand. The product takes up to 13 bits and is kept as two digits,
 * 256 high + low, each a byte: two products in tiles, over all of the block without a pause, and
 * still exact. The mins are a third product, of integers in bf16, exact as well: the sum over
 * x of each sub-block as two parts of eight bits, times the min's integer.
 *
 *     x   4 tiles of codes (64 elements each), a tile of sums, 16 scales
 *     w   4 tiles of low digits, 4 of high ones, a tile of mins, 16 d, 16 dmin
 *
 * Two panels of x are multiplied with one of w: four tiles of sums fill the registers. Sums are
 * [columns of w][rows of x]. */
#include "backend/cpu/kernels/dequant/dequant_q8.h"

#ifdef GEMM_AMX

#include "backend/cpu/kernels/dequant/dequant_q8_transpose.h"
#include "backend/cpu/kernels/gemm/amx_tiles.h"
#include "backend/cpu/kernels/gemm/gemm_vec.h"
#include "rlx/graph.h"

enum { TILE = 1024, STEPS = 4, DOTS = 256 };
enum { X_SUMS = STEPS * TILE, X_SCALES = X_SUMS + TILE };
enum { W_HIGH = STEPS * TILE, W_MINS = 2 * STEPS * TILE, W_D = W_MINS + TILE, W_DMIN = W_D + 64 };

/* ---- packing x ----------------------------------------------------------------------------- */

/* A block of sixteen rows. */
struct rows {
    _Alignas(64) int8_t code[Q8_LINES][256];
    _Alignas(64) uint16_t sum[Q8_LINES][32]; /* of each sub-block, in bf16: two parts */
};

/* Sums of eight codes each, 1024 too large. */
INLINE __m256i sums_of_8(const int8_t *code)
{
    __m512i all = _mm512_xor_si512(_mm512_loadu_si512(code), _mm512_set1_epi8((char)0x80));
    return _mm512_cvtepi64_epi32(_mm512_sad_epu8(all, _mm512_setzero_si512()));
}

/* Sums of neighbours: of a's, then of b's. */
INLINE __m512i add_pairs(__m512i a, __m512i b)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    return _mm512_add_epi32(_mm512_permutex2var_epi32(a, even, b),
                            _mm512_permutex2var_epi32(a, odd, b));
}

/* The sum over each sub-block, 16 or 8 of them, as two parts in bf16. */
INLINE void put_sums(const int8_t *code, int64_t group, uint16_t *to)
{
    __m512i a =
        _mm512_inserti64x4(_mm512_castsi256_si512(sums_of_8(code)), sums_of_8(code + 64), 1);
    __m512i b =
        _mm512_inserti64x4(_mm512_castsi256_si512(sums_of_8(code + 128)), sums_of_8(code + 192), 1);
    __m512i sum = _mm512_sub_epi32(add_pairs(a, b), _mm512_set1_epi32(2 * 1024));
    if (group == 32)
        sum = add_pairs(sum, _mm512_setzero_si512());
    __m512i low = _mm512_and_si512(sum, _mm512_set1_epi32(31));
    __m512i high = _mm512_castps_si512(_mm512_cvtepi32_ps(_mm512_sub_epi32(sum, low)));
    low = _mm512_castps_si512(_mm512_cvtepi32_ps(low));
    _mm512_storeu_si512(to, _mm512_or_si512(low, _mm512_srli_epi32(high, 16)));
}

/* Q4_K has its sub-blocks in another order (digits_q4_k). */
static void cross(int8_t *code)
{
    for (int64_t i = 0; i < 256; i += 128) {
        int8_t second[32];
        memcpy(second, code + i + 32, 32);
        memcpy(code + i + 32, code + i + 64, 32);
        memcpy(code + i + 64, second, 32);
    }
}

void q8_wide_pack_x(const struct q8_weight *w, const float *const *row, int64_t rows, char *to,
                    uint8_t *kind)
{
    struct rows all;

    memset(&all, 0, sizeof all);
    memset(kind, Q8_ROW_PLAIN, (size_t)rows);
    for (int64_t b = 0; b < w->blocks; b++, to += Q8_WIDE_X) {
        memset(to + X_SCALES, 0, 64);
        for (int64_t r = 0; r < rows; r++) {
            enum q8_row_kind is = (enum q8_row_kind)kind[r];
            if (b + 1 < w->blocks)
                cpu_prefetch(row[r] + (b + 1) * 256, 1024);
            ((float *)(void *)(to + X_SCALES))[r] =
                q8_encode_256(row[r] + b * 256, all.code[r], &is);
            kind[r] = (uint8_t)is;
            put_sums(all.code[r], w->group, all.sum[r]);
            if (w->scheme == RLX_QUANT_SCHEME_q4_k)
                cross(all.code[r]);
        }
        for (int64_t i = 0; i < STEPS; i++)
            put_tile(&all.code[0][64 * i], 256, to + i * TILE);
        put_tile(all.sum, sizeof *all.sum, to + X_SUMS);
    }
}

/* ---- packing w ----------------------------------------------------------------------------- */

/* Codes times their sub-block's scale, as digits: one row of each tile. */
INLINE void digits(const int8_t *code, const int8_t *scale, int64_t group, char *to)
{
    for (int64_t i = 0; i < 256; i += 32) {
        __m256i first = _mm256_set1_epi16(scale[i / group]);
        __m256i second = _mm256_set1_epi16(scale[(i + 16) / group]);
        __m512i by = _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
        __m512i v = _mm512_mullo_epi16(
            _mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)(code + i))), by);
        __m512i up = _mm512_srai_epi16(_mm512_add_epi16(v, _mm512_set1_epi16(128)), 8);
        char *at = to + i / 64 * TILE + i % 64;
        _mm256_store_si256((void *)at, _mm512_cvtepi16_epi8(v));
        _mm256_store_si256((void *)(at + W_HIGH), _mm512_cvtepi16_epi8(up));
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
INLINE __m512i two_tables(const uint8_t (*of)[16], uint64_t first, uint64_t second)
{
    __m512i a = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)of[first & 63]));
    return _mm512_mask_broadcast_i32x4(a, 0xff00, _mm_loadu_si128((const void *)of[second & 63]));
}

/* Q4_K: codes of four bits look their digits up. They stay in the order of their bytes:
 * sub-blocks 0 2, 1 3, 4 6, 5 7. scale: eight integers, one per byte. */
INLINE void digits_q4_k(const uint8_t *qs, uint64_t scale, char *to)
{
    const __m512i mask = _mm512_set1_epi8(15);

    GEMM_UNROLL
    for (int i = 0; i < 4; i++) {
        int a = i % 2 + i / 2 * 4;
        uint64_t first = scale >> 8 * a, second = first >> 16;
        __m512i both = _mm512_loadu_si512(qs + i / 2 * 64);
        __m512i q = _mm512_and_si512(i % 2 ? _mm512_srli_epi16(both, 4) : both, mask);
        _mm512_store_si512(to + i * TILE,
                           _mm512_shuffle_epi8(two_tables(low_of, first, second), q));
        _mm512_store_si512(to + W_HIGH + i * TILE,
                           _mm512_shuffle_epi8(two_tables(high_of, first, second), q));
    }
}

/* The mins of a row twice, in bf16. */
INLINE void put_mins(__m128i min, char *to)
{
    __m512i bits = _mm512_castps_si512(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(min)));

    /* the low half is zero */
    _mm512_store_si512(to, _mm512_or_si512(bits, _mm512_srli_epi32(bits, 16)));
}

INLINE void put_factors(float d, float dmin, int64_t i, char *to)
{
    ((float *)(void *)(to + W_D))[i] = d;
    ((float *)(void *)(to + W_DMIN))[i] = dmin;
}

/* Row i of every tile of a block of Q4_K. Its twelve bytes of scales and mins, as words a, b, c:
 * six bits of the first four of each in a and b, the last four in c and the two bits left. */
INLINE void pack_row_q4_k(const uint8_t *block, int64_t i, char *to)
{
    const uint32_t low = 0x0f0f0f0f, two = 0x30303030, six = 0x3f3f3f3f;
    uint32_t a, b, c;

    memcpy(&a, block + 4, 4);
    memcpy(&b, block + 8, 4);
    memcpy(&c, block + 12, 4);
    uint64_t scale = (uint64_t)((c & low) | (a >> 2 & two)) << 32 | (a & six);
    uint64_t min = (uint64_t)((c >> 4 & low) | (b >> 2 & two)) << 32 | (b & six);
    __m128 d = _mm_cvtph_ps(_mm_loadu_si128((const void *)block));
    digits_q4_k(block + 16, scale, to + 64 * i);
    put_mins(_mm_cvtsi64_si128((int64_t)min), to + W_MINS + 64 * i);
    put_factors(_mm_cvtss_f32(d), _mm_cvtss_f32(_mm_movehdup_ps(d)), i, to);
}

/* Row i of every tile of a block. */
static void pack_row(const struct q8_weight *w, const uint8_t *block, int64_t i, char *to)
{
    struct q8_factors f;
    float scale[16], min[16];
    int8_t code[256];

    q8_read_factors(w->scheme, block, &f);
    q8_codes_of(w->scheme)(block, 1, code, scale, min);
    if (w->group == 32)
        digits(code, f.scale, 32, to + 64 * i);
    else
        digits(code, f.scale, 16, to + 64 * i);
    put_mins(_mm_loadu_si128((const void *)f.min), to + W_MINS + 64 * i);
    put_factors(f.d, f.dmin, i, to);
}

/* Not so: no product has more than one digit. */
static bool has_high(int32_t scheme)
{
    return scheme != RLX_QUANT_SCHEME_q2_k && scheme != RLX_QUANT_SCHEME_q8_k;
}

void q8_wide_pack_w(const struct q8_weight *w, int64_t col, int64_t cols, int64_t b, char *to)
{
    if (cols < Q8_LINES)
        memset(to, 0, Q8_WIDE_W);
    for (int64_t i = 0; i < cols; i++) {
        const uint8_t *block = q8_row(w, col + i) + b * w->block_bytes;
        if (w->scheme == RLX_QUANT_SCHEME_q4_k)
            pack_row_q4_k(block, i, to);
        else
            pack_row(w, block, i, to);
    }
}

/* ---- products ------------------------------------------------------------------------------ */

/* What a block's tiles of sums hold, of two panels of x. */
struct dots {
    _Alignas(64) int32_t low[2][DOTS];
    int32_t high[2][DOTS];
    float min[2][2][DOTS]; /* of this unit and of the one before, by turns */
};

/* What two panels of x and one of w are multiplied into. */
struct unit {
    const char *x, *y, *w; /* y: x again, where there is no second panel */
    float *sum;
};

/* Unit i, in an order in which two panels of w stay in the first cache while x passes. */
INLINE struct unit unit_at(const struct q8_part *t, int64_t i)
{
    int64_t of_two = (t->x_panels + 1) / 2 * 2, first = i / of_two * 2, at = i % of_two;
    bool alone = first + 1 == t->w_panels;
    int64_t p = alone ? 2 * at : at / 2 * 2, n = first + (alone ? 0 : at % 2);
    const char *x = t->x + p * t->x_apart;

    return (struct unit){x, p + 1 < t->x_panels ? x + t->x_apart : x, t->w + n * Q8_WIDE_W,
                         t->sum + (n * t->x_panels + p) * DOTS};
}

/* Four rows of sums of a unit, scaled and added: q counts the fours of both panels of x. */
INLINE void scale(const struct unit *u, const struct dots *dots, int64_t turn, int q,
                  bool with_high, bool with_min)
{
    const float *d = (const float *)(const void *)(u->w + W_D);
    const float *dmin = (const float *)(const void *)(u->w + W_DMIN);
    int which = q / 4, first = q % 4 * 4;
    __m512 x_scale = _mm512_load_ps((which ? u->y : u->x) + X_SCALES);
    float *sum = u->sum + which * DOTS;

    if (which && u->y == u->x)
        return;
    GEMM_UNROLL
    for (int r = first; r < first + 4; r++) {
        __m512i dot = _mm512_load_si512(dots->low[which] + Q8_LINES * r);
        if (with_high)
            dot = _mm512_add_epi32(
                dot, _mm512_slli_epi32(_mm512_load_si512(dots->high[which] + Q8_LINES * r), 8));
        __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(dot), _mm512_set1_ps(d[r]));
        if (with_min)
            v = _mm512_fnmadd_ps(_mm512_load_ps(dots->min[turn][which] + Q8_LINES * r),
                                 _mm512_set1_ps(dmin[r]), v);
        v = _mm512_fmadd_ps(v, x_scale, _mm512_load_ps(sum + Q8_LINES * r));
        _mm512_store_ps(sum + Q8_LINES * r, v);
    }
}

/* A tile's sums go to memory, and new ones begin. A tile is stored only when it is needed again: by
 * then its sums are complete, and the store does not wait. */
#define RENEW(t, to)             \
    do {                         \
        TILE_STORE(t, (to), 64); \
        TILE_ZERO(t);            \
    } while (0)

/* What is scaled in the meantime: little by little, or vectors fill the queues of the core, and
 * tiles wait outside. */
#define SCALE(q)                                                                   \
    do {                                                                           \
        if (i >= 2 && before->x)                                                   \
            scale(before, dots, 1 - turn, 4 * (i - 2) + (q), with_high, with_min); \
    } while (0)

/* One unit; the sums of the one before go to `dots` and are scaled. Mins come first, in the tiles
 * of the high digits. */
INLINE void multiply(const struct unit *u, const struct unit *before, bool with_high, bool with_min,
                     int64_t turn, struct dots *dots)
{
    const char *x = u->x, *y = u->y, *w = u->w;

    if (with_min) {
        TILE_LOAD(6, w + W_MINS, 64);
        TILE_LOAD(4, x + X_SUMS, 64);
        TILE_LOAD(5, y + X_SUMS, 64);
        RENEW(2, dots->high[0]);
        TILE_BF16(2, 6, 4);
        RENEW(3, dots->high[1]);
        TILE_BF16(3, 6, 5);
    }
    TILE_LOAD(6, w, 64);
    TILE_LOAD(4, x, 64);
    RENEW(0, dots->low[0]);
    TILE_I8(0, 6, 4);
    TILE_LOAD(5, y, 64);
    RENEW(1, dots->low[1]);
    TILE_I8(1, 6, 5);
    if (with_high) {
        TILE_LOAD(7, w + W_HIGH, 64);
        RENEW(2, with_min ? dots->min[turn][0] : (float *)dots->high[0]);
        TILE_I8(2, 7, 4);
        RENEW(3, with_min ? dots->min[turn][1] : (float *)dots->high[1]);
        TILE_I8(3, 7, 5);
    }
    GEMM_UNROLL
    for (int i = 1; i < STEPS; i++) {
        TILE_LOAD(4, x + i * TILE, 64);
        TILE_LOAD(6, w + i * TILE, 64);
        if (with_high)
            TILE_LOAD(7, w + W_HIGH + i * TILE, 64);
        TILE_LOAD(5, y + i * TILE, 64);
        TILE_I8(0, 6, 4);
        SCALE(0);
        if (with_high)
            TILE_I8(2, 7, 4);
        SCALE(1);
        TILE_I8(1, 6, 5);
        SCALE(2);
        if (with_high)
            TILE_I8(3, 7, 5);
        SCALE(3);
    }
    if (with_min && !with_high) {
        TILE_STORE(2, dots->min[turn][0], 64);
        TILE_STORE(3, dots->min[turn][1], 64);
    }
}

/* The sums of the last one. */
INLINE void finish(bool with_high, struct dots *dots)
{
    TILE_STORE(0, dots->low[0], 64);
    TILE_STORE(1, dots->low[1], 64);
    if (with_high) {
        TILE_STORE(2, dots->high[0], 64);
        TILE_STORE(3, dots->high[1], 64);
    }
}

INLINE void run(const struct q8_part *t, bool with_high, bool with_min)
{
    int64_t units = (t->x_panels + 1) / 2 * t->w_panels;
    struct unit before = {0};
    struct dots dots;

    for (int64_t i = 0; i < units; i++) {
        struct unit u = unit_at(t, i);
        multiply(&u, &before, with_high, with_min, i % 2, &dots);
        before = u;
    }
    finish(with_high, &dots);
    for (int q = 0; q < 8; q++)
        scale(&before, &dots, 1 - units % 2, q, with_high, with_min);
}

USES_AMX void q8_wide_run(const struct q8_weight *w, const struct q8_part *t)
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
