/* dequant_q8_amx.c: many rows of x times packed rows in blocks of 32, in the tiles of AMX
 * (dequant_q8.h).
 *
 * Each group of 32 has scales of its own in x and in w, so the tiles' sums go to memory after every
 * group, and vectors scale them. Two panels of x are multiplied with two of w:
 *
 *                       x: tiles 6, 7
 *     w: tile 4         sums: tile 0, 1
 *        tile 5               tile 2, 3
 *
 * Sums start from 1.5 * 2^23 instead of 0: as bits, such a sum is the f32 of that number plus the
 * integer, and one multiply-add turns it into the integer times x's scale, rounded once:
 *
 *     (1.5 * 2^23 + sum) * scale - 1.5 * 2^23 * scale
 *
 * where the last product is exact: a scale has 11 bits.
 *
 * Four groups are a batch. First all of it is multiplied, then all of it is scaled: among
 * instructions on tiles, vectors of floats run at half their speed. And the sums of y are read and
 * written once in four groups. */
#include "backend/cpu/kernels/dequant/dequant_q8.h"

#ifdef GEMM_AMX

#include "backend/cpu/kernels/dequant/dequant_q8_transpose.h"
#include "backend/cpu/kernels/dequant/e2m1.h"
#include "backend/cpu/kernels/gemm/amx_tiles.h"
#include "backend/cpu/kernels/gemm/gemm_vec.h"
#include "rlx/graph.h"

enum { GROUP = 32, BATCH = Q8_AMX_BATCH, STEP = Q8_AMX_STEP, DOTS = Q8_LINES * Q8_LINES };
enum { SCALES = Q8_LINES * GROUP, ADDENDS = SCALES + 64 }; /* in a group of either panel */

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

/* ---- packing ------------------------------------------------------------------------------- */

INLINE float *floats(char *at)
{
    return (float *)(void *)at;
}

INLINE int32_t sum_32(const int8_t *code)
{
    __m256i all = _mm256_loadu_si256((const void *)code);
    __m256i four = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), all);
    __m128i two = _mm_add_epi32(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
    two = _mm_add_epi32(two, _mm_shuffle_epi32(two, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

/* Of the tile that is transposed, the second half of each row is not used. */
void q8_amx_pack_x(const struct q8_weight *w, const float *const *row, int64_t rows, char *to,
                   uint8_t *kind)
{
    _Alignas(64) int8_t code[Q8_LINES][2 * GROUP] = {{0}};
    _Alignas(64) char tile[2 * SCALES];

    memset(kind, Q8_ROW_PLAIN, (size_t)rows);
    memset(to, 0, (size_t)(gemm_up(w->blocks, BATCH) * STEP));
    for (int64_t b = 0; b < w->blocks; b++, to += STEP) {
        for (int64_t r = 0; r < rows; r++) {
            enum q8_row_kind is = (enum q8_row_kind)kind[r];
            float scale = q8_encode_32(row[r] + b * GROUP, code[r], &is);
            floats(to + SCALES)[r] = scale;
            floats(to + ADDENDS)[r] = scale * (float)sum_32(code[r]);
            kind[r] = (uint8_t)is;
        }
        put_tile(code, 2 * GROUP, tile);
        memcpy(to, tile, SCALES);
    }
}

/* Low halves of 16 bytes, then high halves. */
INLINE __m256i nibbles(const uint8_t *b)
{
    __m128i both = _mm_loadu_si128((const void *)b);
    __m256i all = _mm256_inserti128_si256(_mm256_castsi128_si256(both), _mm_srli_epi16(both, 4), 1);
    return _mm256_and_si256(all, _mm256_set1_epi8(15));
}

/* The fifth bits of 32 codes. */
INLINE __m256i fifth_bits(const uint8_t *b)
{
    uint32_t bits;

    memcpy(&bits, b, sizeof bits);
    return _mm256_maskz_set1_epi8(bits, 16);
}

INLINE __m256i look_up(const int8_t *table, __m256i code)
{
    __m128i value = _mm_loadu_si128((const void *)table);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(value), code);
}

INLINE __m256i codes_of(int32_t scheme, const uint8_t *b)
{
    switch (scheme) {
    case RLX_QUANT_SCHEME_q4_0: return _mm256_sub_epi8(nibbles(b + 2), _mm256_set1_epi8(8));
    case RLX_QUANT_SCHEME_q4_1: return nibbles(b + 4);
    case RLX_QUANT_SCHEME_q5_0:
        return _mm256_sub_epi8(_mm256_or_si256(nibbles(b + 6), fifth_bits(b + 2)),
                               _mm256_set1_epi8(16));
    case RLX_QUANT_SCHEME_q5_1: return _mm256_or_si256(nibbles(b + 8), fifth_bits(b + 4));
    case RLX_QUANT_SCHEME_q8_1: return _mm256_loadu_si256((const void *)(b + 4));
    case RLX_QUANT_SCHEME_iq4_nl: return look_up(q8_uneven, nibbles(b + 2));
    case RLX_QUANT_SCHEME_mxfp4: return look_up(e2m1_twice, nibbles(b + 1));
    default: return _mm256_loadu_si256((const void *)(b + 2)); /* Q8_0 */
    }
}

/* All formats begin with their scale, an f16 but for MXFP4; mins, where there are any, come next.
 */
INLINE void pack_w(const struct q8_weight *w, const uint8_t *from, int64_t cols, int64_t blocks,
                   int32_t scheme, char *to)
{
    for (int64_t g = 0; g < blocks; g++, from += w->block_bytes, to += STEP) {
        _Alignas(32) uint16_t scale[Q8_LINES], min[Q8_LINES];
        _Alignas(64) float power[Q8_LINES] = {0};
        const uint8_t *b = from;
        for (int64_t i = 0; i < cols; i++, b += w->row_bytes) {
            _mm256_store_si256((void *)(to + i * GROUP), codes_of(scheme, b));
            memcpy(&scale[i], b, 2);
            memcpy(&min[i], b + 2, 2);
            power[i] = scheme == RLX_QUANT_SCHEME_mxfp4 ? e2m1_finite_power(*b) : 0;
        }
        for (int64_t i = cols; i < Q8_LINES; i++) {
            _mm256_store_si256((void *)(to + i * GROUP), _mm256_setzero_si256());
            scale[i] = min[i] = 0;
        }
        if (scheme == RLX_QUANT_SCHEME_mxfp4)
            _mm512_store_ps(to + SCALES, _mm512_load_ps(power));
        else
            _mm512_store_ps(to + SCALES, _mm512_cvtph_ps(_mm256_load_si256((const void *)scale)));
        _mm512_store_ps(to + ADDENDS, _mm512_cvtph_ps(_mm256_load_si256((const void *)min)));
    }
}

void q8_amx_pack_w(const struct q8_weight *w, int64_t col, int64_t cols, int64_t first,
                   int64_t last, char *to)
{
    const uint8_t *from = q8_row(w, col) + first * w->block_bytes;
    int64_t blocks = last - first, more = gemm_up(blocks, BATCH) - blocks;

#define CASE(s) \
    case RLX_QUANT_SCHEME_##s: pack_w(w, from, cols, blocks, RLX_QUANT_SCHEME_##s, to); break
    switch (w->scheme) {
        CASE(q4_0);
        CASE(q4_1);
        CASE(q5_0);
        CASE(q5_1);
        CASE(q8_1);
        CASE(iq4_nl);
        CASE(mxfp4);
    default: pack_w(w, from, cols, blocks, RLX_QUANT_SCHEME_q8_0, to);
    }
#undef CASE
    memset(to + blocks * STEP, 0, (size_t)(more * STEP));
}

/* ---- products ------------------------------------------------------------------------------ */

#define BEGIN 0x1.8p23f
#define FOUR BEGIN, BEGIN, BEGIN, BEGIN
static const float begin[16] = {FOUR, FOUR, FOUR, FOUR};

/* One batch of two panels of either side; there may be but one. */
struct batch {
    const char *x[2], *w[2];
    float *sum[4]; /* NULL: there is no such panel */
};

/* One group of one tile of sums: [columns of w][rows of x]. */
INLINE void add_group(const float *dot, const char *x, const char *w, bool with_min, __m512 *sum)
{
    const float *w_scale = (const float *)(const void *)(w + SCALES);
    const float *w_min = (const float *)(const void *)(w + ADDENDS);
    __m512 by = _mm512_load_ps(x + SCALES), add = _mm512_load_ps(x + ADDENDS);
    __m512 less = _mm512_mul_ps(by, _mm512_set1_ps(-BEGIN));

    GEMM_UNROLL
    for (int r = 0; r < Q8_LINES; r++) {
        __m512 v = _mm512_fmadd_ps(_mm512_load_ps(dot + Q8_LINES * r), by, less);
        sum[r] = _mm512_fmadd_ps(v, _mm512_set1_ps(w_scale[r]), sum[r]);
    }
    if (!with_min)
        return;
    GEMM_UNROLL
    for (int r = 0; r < Q8_LINES; r++)
        sum[r] = _mm512_fmadd_ps(add, _mm512_set1_ps(w_min[r]), sum[r]);
}

INLINE void load_sums(const float *from, __m512 *sum)
{
    GEMM_UNROLL
    for (int r = 0; r < Q8_LINES; r++)
        sum[r] = _mm512_load_ps(from + Q8_LINES * r);
}

INLINE void store_sums(const __m512 *sum, float *to)
{
    GEMM_UNROLL
    for (int r = 0; r < Q8_LINES; r++)
        _mm512_store_ps(to + Q8_LINES * r, sum[r]);
}

/* Stores tile i of the previous group and starts multiplying into it again: by now it is complete,
 * so the store does not wait. */
#define TURN(i, a, b)                                        \
    do {                                                     \
        if (g > 0)                                           \
            TILE_STORE(i, to + (i)*BATCH * DOTS - DOTS, 64); \
        TILE_LOAD(i, begin, 0);                              \
        TILE_I8(i, a, b);                                    \
    } while (0)

/* The sums of a batch: [4 tiles][groups][DOTS]. */
INLINE void multiply(const struct batch *b, float *dot)
{
    float *to = dot;

    GEMM_UNROLL
    for (int g = 0; g < BATCH; g++, to += DOTS) {
        TILE_LOAD(6, b->x[0] + g * STEP, 64);
        TILE_LOAD(4, b->w[0] + g * STEP, GROUP);
        TURN(0, 4, 6);
        TILE_LOAD(7, b->x[1] + g * STEP, 64);
        TURN(1, 4, 7);
        TILE_LOAD(5, b->w[1] + g * STEP, GROUP);
        TURN(2, 5, 6);
        TURN(3, 5, 7);
    }
    TILE_STORE(0, to - DOTS, 64);
    TILE_STORE(1, to + (BATCH - 1) * DOTS, 64);
    TILE_STORE(2, to + (2 * BATCH - 1) * DOTS, 64);
    TILE_STORE(3, to + (3 * BATCH - 1) * DOTS, 64);
}

INLINE void add_up(const struct batch *b, const float *dot, bool with_min)
{
    for (int t = 0; t < 4; t++, dot += BATCH * DOTS) {
        const char *x = b->x[t % 2], *w = b->w[t / 2];
        __m512 sum[Q8_LINES];
        if (!b->sum[t])
            continue;
        load_sums(b->sum[t], sum);
        for (int g = 0; g < BATCH; g++)
            add_group(dot + g * DOTS, x + g * STEP, w + g * STEP, with_min, sum);
        store_sums(sum, b->sum[t]);
    }
}

INLINE struct batch batch_at(const struct q8_part *t, int64_t n, int64_t p)
{
    bool two_x = p + 1 < t->x_panels, two_w = n + 1 < t->w_panels;
    const char *x = t->x + p * t->x_apart, *w = t->w + n * t->w_apart;
    float *sum = t->sum + (n * t->x_panels + p) * DOTS, *next = sum + t->x_panels * DOTS;

    return (struct batch){
        {x, two_x ? x + t->x_apart : x},
        {w, two_w ? w + t->w_apart : w},
        {sum, two_x ? sum + DOTS : NULL, two_w ? next : NULL, two_x && two_w ? next + DOTS : NULL}};
}

INLINE void run(const struct q8_part *t, bool with_min)
{
    _Alignas(64) float dot[4 * BATCH * DOTS];

    for (int64_t n = 0; n < t->w_panels; n += 2)
        for (int64_t p = 0; p < t->x_panels; p += 2) {
            struct batch b = batch_at(t, n, p);
            for (int64_t g = 0; g < t->groups; g += BATCH) {
                multiply(&b, dot);
                add_up(&b, dot, with_min);
                for (int i = 0; i < 2; i++) {
                    b.x[i] += BATCH * STEP;
                    b.w[i] += BATCH * STEP;
                }
            }
        }
}

USES_AMX void q8_amx_run(const struct q8_weight *w, const struct q8_part *t)
{
    if (q8_has_min(w->scheme))
        run(t, true);
    else
        run(t, false);
}

#else
typedef int dequant_q8_amx_is_not_here; /* a file must declare something */
#endif
