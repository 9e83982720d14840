/* dequant_q8_x.c: rows of x as codes (dequant_q8.h).
 *
 * Runs of 32 by the rule of Q8_0, runs of 256 by that of Q8_K (ops-special 1.5), bit for bit as
 * ir/quant_encode.c has them, in loops that become vector code. */
#include "backend/cpu/kernels/dequant_q8.h"

#include "rlx/graph.h"

/* ---- runs ---------------------------------------------------------------------------------- */

/* Bits of the largest magnitude: as integers, NaN and infinity are larger than all numbers. */
static uint32_t largest_bits(const float *x, int64_t n)
{
    uint32_t most = 0;

    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = half_f32_bits(x[i]) & 0x7fffffffu;
        most = bits > most ? bits : most;
    }
    return most;
}

static bool is_finite_bits(uint32_t bits)
{
    return bits < 0x7f800000u;
}

/* Halves go away from zero. What is added is the number below one half: with one half itself the
 * sum of the number below it would be rounded up to 1. */
static void codes_away(const float *x, float inverse, int8_t *code)
{
    for (int64_t i = 0; i < 32; i++) {
        float v = x[i] * inverse;
        float half = half_bits_f32(0x3effffffu | (half_f32_bits(v) & 0x80000000u));
        int32_t q = (int32_t)(v + half);
        code[i] = (int8_t)(q > 127 ? 127 : q < -127 ? -127 : q);
    }
}

/* Halves go to even: so does the last bit of a sum with 1.5 * 2^23. */
static void codes_even(const float *x, float t, int8_t *code)
{
    for (int64_t i = 0; i < 256; i++) {
        int32_t q = (int32_t)half_f32_bits(x[i] * t + 0x1.8p23f) - 0x4b400000;
        code[i] = (int8_t)(q > 127 ? 127 : q < -127 ? -127 : q);
    }
}

/* 32 codes and their scale, as f16 holds it. A scale of zero has codes of zero; one that is NaN
 * says that the run is not finite. */
static float encode_32(const float *x, int8_t *code)
{
    uint32_t most = largest_bits(x, 32);
    float d = half_bits_f32(most) / 127, scale = f16_to_f32(f32_to_f16(d));

    if (!is_finite_bits(most))
        scale = NAN;
    if (scale > 0)
        codes_away(x, 1 / d, code);
    else
        memset(code, 0, 32);
    return scale;
}

static float encode_256(const float *x, int8_t *code)
{
    uint32_t most = largest_bits(x, 256);
    float a = 0, t, scale;
    bool found = false;

    memset(code, 0, 256);
    if (!is_finite_bits(most))
        return NAN;
    if (most == 0)
        return 0;
    for (int64_t i = 0; i < 256 && !found; i++) {
        found = (half_f32_bits(x[i]) & 0x7fffffffu) == most;
        a = x[i];
    }
    t = -127 / a;
    scale = 1 / t;
    if (scale != 0)
        codes_even(x, t, code);
    return scale;
}

static int16_t sum_16(const int8_t *code)
{
    int32_t sum = 0;

    for (int i = 0; i < 16; i++)
        sum += code[i];
    return (int16_t)sum;
}

/* ---- what rows come to --------------------------------------------------------------------- */

/* Scales of f16 are far from vanishing. */
static enum q8_row_kind kind_of(float scale)
{
    if (scale != scale)
        return Q8_ROW_NAN;
    return scale != 0 && fabsf(scale) < 0x1p-60f ? Q8_ROW_TINY : Q8_ROW_PLAIN;
}

static enum q8_row_kind worse(enum q8_row_kind a, enum q8_row_kind b)
{
    return a == Q8_ROW_NAN || b == Q8_ROW_PLAIN ? a : b;
}

/* ---- rows, for few of them ----------------------------------------------------------------- */

enum q8_form q8_form_of(int32_t scheme, int64_t block_elems)
{
    (void)scheme;
#ifdef Q8_VNNI
    return block_elems == 32 ? Q8_FOURS : Q8_BLOCKS;
#else
    (void)block_elems;
    return Q8_LINEAR;
#endif
}

int64_t q8_form_bytes(const struct q8_weight *w)
{
    switch (q8_form_of(w->scheme, w->block_elems)) {
    case Q8_FOURS: return (w->blocks + 3) / 4 * (int64_t)sizeof(struct q8_four);
    case Q8_BLOCKS: return w->blocks * (int64_t)sizeof(struct q8_block);
    default: return gemm_up(w->k / 32 * (int64_t)sizeof(struct q8_run), 64);
    }
}

static enum q8_row_kind linear(const struct q8_weight *w, const float *x, struct q8_run *to)
{
    enum q8_row_kind kind = Q8_ROW_PLAIN;
    int64_t runs = w->block_elems / 32;
    int8_t code[256];

    for (int64_t b = 0; b < w->blocks; b++, x += w->block_elems) {
        float scale = runs == 1 ? encode_32(x, code) : encode_256(x, code);
        kind = worse(kind, kind_of(scale));
        for (int64_t j = 0; j < runs; j++, to++) {
            memcpy(to->code, code + 32 * j, 32);
            to->scale = scale;
            to->sum[0] = sum_16(to->code);
            to->sum[1] = sum_16(to->code + 16);
        }
    }
    return kind;
}

/* By how much w's codes are larger as unsigned bytes than as they are (dequant_q8_vnni.c). */
static int32_t offset_of(int32_t scheme)
{
    switch (scheme) {
    case RLX_QUANT_SCHEME_q3_k: return 4;
    case RLX_QUANT_SCHEME_q4_0: return 8;
    case RLX_QUANT_SCHEME_q5_0: return 16;
    case RLX_QUANT_SCHEME_q6_k: return 32;
    case RLX_QUANT_SCHEME_q8_0:
    case RLX_QUANT_SCHEME_q8_1:
    case RLX_QUANT_SCHEME_q8_k:
    case RLX_QUANT_SCHEME_iq4_nl:
    case RLX_QUANT_SCHEME_iq4_xs: return 128;
    default: return 0; /* they are unsigned */
    }
}

/* What that adds to the sixteen lanes of `vectors` vectors of 64 codes. */
static void lane_offsets(const int8_t *code, int64_t vectors, int32_t offset, int32_t *to)
{
    for (int64_t l = 0; l < 16; l++) {
        int32_t sum = 0;
        for (int64_t v = 0; v < vectors; v++)
            for (int64_t i = 0; i < 4; i++)
                sum += code[64 * v + 4 * l + i];
        to[l] = -offset * sum;
    }
}

static void pair_offsets(const int8_t *code, int32_t offset, int16_t *to)
{
    for (int64_t i = 0; i < 128; i++)
        to[i] = (int16_t)(-offset * (code[2 * i] + code[2 * i + 1]));
}

static enum q8_row_kind fours(const struct q8_weight *w, const float *x, struct q8_four *to)
{
    enum q8_row_kind kind = Q8_ROW_PLAIN;
    int8_t code[32];

    for (int64_t b = 0; b < w->blocks; b++, x += 32) {
        struct q8_four *f = to + b / 4;
        int64_t lane = b % 4;
        if (lane == 0)
            memset(f, 0, sizeof *f);
        float scale = encode_32(x, code);
        kind = worse(kind, kind_of(scale));
        memcpy(f->code + 16 * lane, code, 16);
        memcpy(f->code + 64 + 16 * lane, code + 16, 16);
        for (int64_t i = 0; i < 4; i++)
            f->scale[4 * lane + i] = scale;
        f->sum[4 * lane] = scale * (float)(sum_16(code) + sum_16(code + 16));
        if (lane == 3 || b == w->blocks - 1)
            lane_offsets(f->code, 2, offset_of(w->scheme), f->offset);
    }
    return kind;
}

/* Where in a block of w's codes, as they come out of its bytes, each 16 elements are. */
static const uint8_t *order_of(int32_t scheme)
{
    static const uint8_t straight[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static const uint8_t by_32[16] = {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15};
    static const uint8_t by_16[16] = {0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15};

    switch (scheme) {
    case RLX_QUANT_SCHEME_q4_k:
    case RLX_QUANT_SCHEME_q5_k: return by_32;
    case RLX_QUANT_SCHEME_iq4_xs: return by_16;
    default: return straight;
    }
}

/* Q8_K is summed over the block, IQ4_XS over halves of it, the others over pairs. */
static void block_offsets(int32_t scheme, struct q8_block *b)
{
    int32_t offset = offset_of(scheme);

    if (scheme == RLX_QUANT_SCHEME_q8_k) {
        lane_offsets(b->code, 4, offset, b->lane_offset);
    } else if (scheme == RLX_QUANT_SCHEME_iq4_xs) {
        lane_offsets(b->code, 2, offset, b->lane_offset);
        lane_offsets(b->code + 128, 2, offset, b->lane_offset + 16);
    } else {
        pair_offsets(b->code, offset, b->pair_offset);
    }
}

static enum q8_row_kind blocks(const struct q8_weight *w, const float *x, struct q8_block *to)
{
    enum q8_row_kind kind = Q8_ROW_PLAIN;
    const uint8_t *order = order_of(w->scheme);
    int8_t code[256];

    for (int64_t b = 0; b < w->blocks; b++, x += 256, to++) {
        to->scale = encode_256(x, code);
        kind = worse(kind, kind_of(to->scale));
        for (int64_t i = 0; i < 16; i++) {
            memcpy(to->code + 16 * order[i], code + 16 * i, 16);
            to->sum_16[i] = sum_16(code + 16 * i);
        }
        for (int64_t i = 0; i < 8; i++)
            to->sum_32[i] = (int16_t)(to->sum_16[2 * i] + to->sum_16[2 * i + 1]);
        block_offsets(w->scheme, to);
    }
    return kind;
}

enum q8_row_kind q8_encode_row(const struct q8_weight *w, const float *x, void *to)
{
    switch (q8_form_of(w->scheme, w->block_elems)) {
    case Q8_FOURS: return fours(w, x, to);
    case Q8_BLOCKS: return blocks(w, x, to);
    default: return linear(w, x, to);
    }
}

/* ---- panels of 16 rows --------------------------------------------------------------------- */

/* One row's groups of one block. NULL: of no row. */
static float pack_block(const struct q8_weight *w, const float *x, int64_t row, char *to)
{
    int64_t step = q8_x_step(w->group);
    int8_t code[256] = {0};
    float d = 0;

    if (x)
        d = w->block_elems == 32 ? encode_32(x, code) : encode_256(x, code);
    for (int64_t i = 0; i < w->block_elems; i += w->group, to += step) {
        float *scale = (float *)(void *)(to + Q8_LINES * w->group);
        int32_t *offset = (int32_t *)(void *)(scale + 2 * Q8_LINES);
        int32_t sum = sum_16(code + i) + (w->group == 32 ? sum_16(code + i + 16) : 0);
        memcpy(to + row * w->group, code + i, (size_t)w->group);
        scale[row] = d;
        scale[Q8_LINES + row] = d * (float)sum;
        offset[row] = -128 * sum;
    }
    return d;
}

void q8_pack_x(const struct q8_weight *w, const float *const *row, int64_t rows, char *to,
               uint8_t *kind)
{
    int64_t bytes = w->block_elems / w->group * q8_x_step(w->group);

    for (int64_t r = 0; r < Q8_LINES; r++) {
        enum q8_row_kind is = Q8_ROW_PLAIN;
        for (int64_t b = 0; b < w->blocks; b++) {
            const float *x = r < rows ? row[r] + b * w->block_elems : NULL;
            is = worse(is, kind_of(pack_block(w, x, r, to + b * bytes)));
        }
        if (r < rows)
            kind[r] = (uint8_t)is;
    }
}
