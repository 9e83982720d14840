/* eval_special_quant_test.c: packed weights: the worked vectors of ops-special.md 11.1 and 11.2,
 * what the products and lookups make of them, and codes that come back. */
#include "eval_special.h"
#include "ir/quant/quant_decode.h"
#include "ir/quant/quant_encode.h"
#include "ir/quant/quant_scheme.h"

/* ---- blocks -------------------------------------------------------------------------------- */

struct vector {
    int32_t scheme;
    int scale_at, offset_at; /* of f16 fields; -1: there is none */
    double sum;
    double sample[8]; /* five for blocks of 32 */
};

static const struct vector vectors[] = {
    {RLX_QUANT_SCHEME_q4_0, 0, -1, -1.3125, {-0.1875, 0.125, -0.5, -0.1875, 0}},
    {RLX_QUANT_SCHEME_iq4_nl, 0, -1, -16.0625, {-2.1875, 1.5625, -7.9375, -2.1875, 0.0625}},
    {RLX_QUANT_SCHEME_q4_1, 0, 2, 23.3125, {1.1875, 0.5, 0.875, 0.8125, 1}},
    {RLX_QUANT_SCHEME_q5_0, 0, -1, 0.9375, {0.5625, -0.125, -0.75, 0.875, 0.0625}},
    {RLX_QUANT_SCHEME_q5_1, 0, 2, 39.5625, {1.4375, 1.75, 2.125, 1.4375, 0.5625}},
    {RLX_QUANT_SCHEME_q8_0, 0, -1, -11, {5.3125, 7.625, -8, -5.6875, -3}},
    {RLX_QUANT_SCHEME_q8_1, 0, 2, -23, {-6.0625, -3.75, -3.375, -1.0625, 1.625}},
    {RLX_QUANT_SCHEME_q2_k,
     80,
     82,
     -238.8125,
     {2.0625, -0.75, -0.625, -1.125, -1.8125, -0.1875, -2.125, -0.375}},
    {RLX_QUANT_SCHEME_q3_k, 108, -1, 59.875, {5.0625, 8, -1.375, 0.625, 0, 0.125, 1.5625, 2.625}},
    {RLX_QUANT_SCHEME_q4_k,
     0,
     2,
     1554.5,
     {8.5625, -12.75, -4.75, -2.75, -1.5, 23.8125, 4.9375, -4.625}},
    {RLX_QUANT_SCHEME_q5_k,
     0,
     2,
     5415.5,
     {39.5625, -12.75, 1.75, -0.25, 7.25, 62.8125, 4.9375, -0.875}},
    {RLX_QUANT_SCHEME_q6_k,
     208,
     -1,
     288.25,
     {-89.4375, 32, 14.4375, -36.25, 157.6875, -21.9375, 68.0625, -3.75}},
    {RLX_QUANT_SCHEME_q8_k,
     -1,
     -1,
     -8,
     {-6.0625, 1.25, 3.9375, -4.375, 1.1875, 1.9375, -7.5625, 7.625}},
    {RLX_QUANT_SCHEME_iq4_xs,
     0,
     -1,
     -687.8125,
     {4.0625, 2.1875, 28.4375, -10.9375, 2.5, -36.5625, 71.25, -1}},
    {RLX_QUANT_SCHEME_tq1_0, 52, -1, -0.125, {-0.0625, 0, -0.0625, 0, 0.0625, 0, 0, -0.0625}},
    {RLX_QUANT_SCHEME_tq2_0,
     64,
     -1,
     8.0625,
     {0.125, -0.0625, 0.0625, 0, 0.0625, 0.125, 0, -0.0625}},
    {RLX_QUANT_SCHEME_mxfp4, -1, -1, 1.5625, {0, 0.375, -0.1875, 0.1875, 0.375}},
    {RLX_QUANT_SCHEME_nvfp4, -1, -1, -1.5625, {-0.75, 0.25, -0.125, 0.75, -0.25}},
};

/* How many bytes a block begins with that are its scales, where those are not f16. */
static int scale_bytes(int32_t scheme)
{
    switch (scheme) {
    case RLX_QUANT_SCHEME_mxfp4: return 1;
    case RLX_QUANT_SCHEME_q8_k:
    case RLX_QUANT_SCHEME_nvfp4: return 4;
    default: return 0;
    }
}

static void example_block(const struct vector *v, uint8_t *block)
{
    static const uint8_t f32_scale[4] = {0, 0, 0x80, 0x3d}; /* 0.0625 */

    for (int i = 0; i < quant_scheme(v->scheme)->block_bytes; i++)
        block[i] = (uint8_t)(37 * i + 11);
    if (v->scale_at >= 0) {
        block[v->scale_at] = 0;
        block[v->scale_at + 1] = 0x2c;
    }
    if (v->offset_at >= 0) {
        block[v->offset_at] = 0;
        block[v->offset_at + 1] = 0x34;
    }
    if (v->scheme == RLX_QUANT_SCHEME_q8_k)
        memcpy(block, f32_scale, sizeof f32_scale);
    if (v->scheme == RLX_QUANT_SCHEME_mxfp4)
        block[0] = 124; /* half of it, as codes are doubled */
    if (v->scheme == RLX_QUANT_SCHEME_nvfp4)
        memset(block, 0x20, 4);
}

TEST(quant, blocks_decode_as_the_manual_says)
{
    static const int at32[5] = {0, 1, 15, 16, 31};
    static const int at256[8] = {0, 17, 32, 63, 100, 128, 200, 255};

    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const struct vector *v = &vectors[i];
        int elems = quant_scheme(v->scheme)->block_elems;
        uint8_t block[QUANT_BLOCK_BYTES];
        float y[QUANT_BLOCK_ELEMS];
        double sum = 0;

        test_note(t, "%s", quant_scheme(v->scheme)->display);
        example_block(v, block);
        quant_decode_block(v->scheme, block, y);
        for (int k = 0; k < (elems == 256 ? 8 : 5); k++)
            expect_near(t, y[elems == 256 ? at256[k] : at32[k]], v->sample[k], 0);
        for (int k = 0; k < elems; k++)
            sum += (double)y[k];
        expect_near(t, sum, v->sum, 0);
    }
}

TEST(quant, any_bytes_decode)
{
    uint64_t state = 5;
    size_t formats = 0;

    for (int32_t scheme = 0; quant_scheme(scheme); scheme++) {
        const struct quant_scheme *s = quant_scheme(scheme);
        for (int round = 0; s->is_gguf && round < 50; round++) {
            /* of exactly the size, for the sanitizers to watch its end */
            uint8_t *block = malloc((size_t)s->block_bytes);
            float *y = malloc((size_t)s->block_elems * sizeof *y);
            require(t, block && y);
            for (int i = 0; i < s->block_bytes; i++)
                block[i] = (uint8_t)dice(&state);
            quant_decode_block(scheme, block, y);
            free(block);
            free(y);
        }
        formats += s->is_gguf;
    }
    expect_eq(t, formats, sizeof vectors / sizeof vectors[0]);
}

TEST(quant, a_scale_that_is_not_finite_propagates)
{
    uint8_t block[34] = {0x00, 0x7c, 1, 0xff, 0}; /* +Inf times 1, -1, 0 */
    float y[32];

    quant_decode_block(RLX_QUANT_SCHEME_q8_0, block, y);
    expect_near(t, y[0], INFINITY, 0);
    expect_near(t, y[1], -INFINITY, 0);
    expect(t, isnan(y[2]));
}

TEST(quant, rows_are_blocks_in_order)
{
    uint8_t row[2 * 34] = {0};
    float y[64] = {0};

    row[1] = 0x3c; /* 1 */
    row[2] = 5;
    row[34 + 1] = 0x40; /* 2 */
    row[34 + 2 + 31] = 0xfd;
    quant_decode_row(RLX_QUANT_SCHEME_q8_0, row, 64, y);
    expect_near(t, y[0], 5, 0);
    expect_near(t, y[63], -6, 0);
    quant_decode_row(RLX_QUANT_SCHEME_q8_0, row, 0, y);
    quant_decode_row(RLX_QUANT_SCHEME_int8_block, row, 64, y); /* no block format: nothing */
    expect_near(t, y[0], 5, 0);
}

TEST(quant, small_floats)
{
    expect_near(t, quant_e4m3(0x38), 1, 0);
    expect_near(t, quant_e4m3(0x40), 2, 0);
    expect_near(t, quant_e4m3(0xc0), -2, 0);
    expect_near(t, quant_e4m3(0x01), 0x1p-9, 0);
    expect_near(t, quant_e4m3(0x7e), 448, 0);
    expect_near(t, quant_e4m3(0x08), 0x1p-6, 0);
    expect_near(t, quant_e4m3(0x7f), 0, 0);
    expect(t, !signbit(quant_e4m3(0xff)));
    expect_near(t, quant_e5m2(0x3c), 1, 0);
    expect_near(t, quant_e5m2(0x40), 2, 0);
    expect_near(t, quant_e5m2(0xc4), -4, 0);
    expect_near(t, quant_e5m2(0x7b), 57344, 0);
    expect_near(t, quant_e5m2(0x01), 0x1p-16, 0);
    for (int c = 0x7c; c <= 0x7f; c++) {
        expect_near(t, quant_e5m2((uint8_t)c), 0, 0);
        expect_near(t, quant_e5m2((uint8_t)(c | 0x80)), 0, 0);
    }
    expect_near(t, quant_e2m1(7), 6, 0);
    expect_near(t, quant_e2m1(9), -0.5, 0);
    expect_near(t, quant_e2m1(0xf2), 1, 0); /* the low four bits count */
}

/* ---- codes --------------------------------------------------------------------------------- */

TEST(quant, eight_bit_codes_come_back)
{
    uint64_t state = 9;

    for (int round = 0; round < 200; round++) {
        float x[256], y[256], top = 0;
        uint8_t block[QUANT_BLOCK_BYTES];
        double range = round % 2 ? 0.06 : 900;

        for (int i = 0; i < 256; i++)
            x[i] = (float)real_between(&state, -range, range);
        require(t, quant_encode_q8_k(x, block));
        quant_decode_block(RLX_QUANT_SCHEME_q8_k, block, y);
        for (int i = 0; i < 256; i++)
            top = fmaxf(top, fabsf(x[i]));
        for (int i = 0; i < 256; i++)
            expect(t, fabsf(y[i] - x[i]) <= top / 250);
        for (int g = 0; g < 16; g++) {
            int sum = 0;
            for (int i = 0; i < 16; i++)
                sum += (int8_t)block[4 + 16 * g + i];
            expect_eq(t, (int16_t)(block[260 + 2 * g] | block[261 + 2 * g] << 8), sum);
        }
        require(t, quant_encode_q8_0(x, block));
        quant_decode_block(RLX_QUANT_SCHEME_q8_0, block, y);
        for (int i = 0, k; i < 32; i++) {
            for (k = 0, top = 0; k < 32; k++)
                top = fmaxf(top, fabsf(x[k]));
            expect(t, fabsf(y[i] - x[i]) <= top / 254 + top * 0x1p-10f);
        }
    }
}

TEST(quant, codes_round_as_told)
{
    float x[256] = {127, 2.5f, -2.5f, 3.5f, 0.5f, -0.5f};
    uint8_t block[QUANT_BLOCK_BYTES];

    require(t, quant_encode_q8_0(x, block)); /* d = 1: halves away from zero */
    expect_eq(t, block[1], 0x3c);
    expect_eq(t, (int8_t)block[3], 3);
    expect_eq(t, (int8_t)block[4], -3);
    expect_eq(t, (int8_t)block[7], -1);
    require(t, quant_encode_q8_k(x, block)); /* t = -1: halves to even */
    expect_eq(t, (int8_t)block[4], -127);
    expect_eq(t, (int8_t)block[5], -2);
    expect_eq(t, (int8_t)block[7], -4);
    expect_eq(t, (int8_t)block[8], 0);
    x[6] = -127; /* of equal magnitude: the first tells the sign */
    require(t, quant_encode_q8_k(x, block));
    expect_eq(t, (int8_t)block[4], -127);
    expect_eq(t, (int8_t)block[10], 127);
}

TEST(quant, codes_of_hostile_numbers)
{
    static const float odd[] = {0, 1e-45f, 1e-38f, -1e-37f, 1e-30f, 3e38f};
    uint8_t block[QUANT_BLOCK_BYTES];
    float x[256], y[256];

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        for (int k = 0; k < 256; k++)
            x[k] = k % 3 ? odd[i] : 0;
        expect(t, quant_encode_q8_0(x, block) && quant_encode_q8_k(x, block));
        quant_decode_block(RLX_QUANT_SCHEME_q8_k, block, y);
        expect(t, fabsf(y[1] - odd[i]) <= fabsf(odd[i]) && y[0] == 0);
    }
    x[31] = NAN;
    expect(t, !quant_encode_q8_0(x, block) && !quant_encode_q8_k(x, block));
    x[31] = -INFINITY;
    expect(t, !quant_encode_q8_0(x, block) && !quant_encode_q8_k(x, block));
}

/* ---- weights with scales beside them ------------------------------------------------------- */

#define EYE "%x = const f32[2,2] {1 0 0 1} "
#define SIDE "%s = const f32[1,2] {0.5 2} %z = const f32[1,2] {1 -1} "

TEST(quant, scales_beside_the_weight)
{
    evals(t, 0,
          EYE SIDE "%w = const u8[2,2] {1 255 128 127} "
                   "%a = dequant_matmul %x, %w, %s, %z scheme=int8_block block_size=2 k=2 "
                   "%b = dequant_matmul %x, %w, %s, %z scheme=int8_block_asym block_size=2 k=2 "
                   "return %a, %b",
          "0.5 -2 -64 254", "0 0 -64.5 256");
    evals(t, 0,
          EYE SIDE "%w = const u8[2] {241 120} "
                   "%a = dequant_matmul %x, %w, %s, %z scheme=int4_block block_size=2 k=2 n=2 "
                   "return %a",
          "0.5 -2 -4 14");
    evals(t, 0,
          EYE "%w = const u8[2,2] {56 64 192 1} %v = const u8[2,2] {60 127 196 124} "
              "%e = const f32[0] {} %o = const f32[1] {4} %c = const f32[1,2] {10 100} "
              "%a = dequant_matmul %x, %w, %e, %e scheme=fp8_e4m3 k=2 "
              "%b = dequant_matmul %x, %w, %o, %e scheme=fp8_e4m3 k=2 "
              "%d = dequant_matmul %x, %v, %c, %e scheme=fp8_e5m2 k=2 return %a, %b, %d",
          "1 2 -2 0.001953125", "4 8 -8 0.0078125", "10 0 -40 0");
    evals(t, 0,
          "%x = const f32[1] {1} %w = const u8[1] {146} %s = const u8[1,2] {56 56} "
          "%g = const f32[1] {2} "
          "%y = dequant_matmul %x, %w, %s, %g scheme=nvfp4_block k=1 n=2 return %y",
          "2 -1");
}

TEST(quant, partial_groups_and_odd_nibbles)
{
    /* k = 3 in groups of 2; three columns, nine nibbles, the tenth is padding */
    evals(t, 0,
          "%x = const f32[1,3] {1 10 100} %w = const u8[5] {33 67 101 7 241} "
          "%s = const f32[2,3] {1 1 1 2 2 2} %z = const f32[0] {} "
          "%y = dequant_matmul %x, %w, %s, %z scheme=int4_block block_size=2 k=3 n=3 return %y",
          "1441 52 263");
    evals(t, 0,
          "%x = const f32[2,0] {} %w = const u8[0,3] {} %s = const f32[0,3] {} "
          "%y = dequant_matmul %x, %w, %s, %s scheme=int8_block k=0 "
          "return %y",
          "0 0 0 0 0 0");
}

/* ---- products with packed rows ------------------------------------------------------------- */

static const char *word_of(int32_t scheme)
{
    return enum_word("quant_scheme", scheme);
}

/* Random rows whose scales are tame: what a block's first bytes say would else be anything. */
static void fill_packed(struct eval_tensor *w, int32_t scheme, uint64_t seed)
{
    const struct quant_scheme *s = quant_scheme(scheme);

    fill_bytes(w, seed);
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        for (int64_t b = 0; vectors[i].scheme == scheme && b < w->count; b += s->block_bytes) {
            uint8_t block[QUANT_BLOCK_BYTES];
            example_block(&vectors[i], block);
            for (int k = 0; k < 2 && vectors[i].scale_at >= 0; k++)
                w->at[b + vectors[i].scale_at + k].i = block[vectors[i].scale_at + k];
            for (int k = 0; k < 2 && vectors[i].offset_at >= 0; k++)
                w->at[b + vectors[i].offset_at + k].i = block[vectors[i].offset_at + k];
            for (int k = 0; k < scale_bytes(scheme); k++)
                w->at[b + k].i = block[k];
        }
}

/* Element j of packed row r. */
static double element_of(const struct eval_tensor *w, int32_t scheme, int64_t r, int64_t j)
{
    const struct quant_scheme *s = quant_scheme(scheme);
    const struct eval_cell *from = w->at + r * w->type.dim[w->type.rank - 1];
    uint8_t block[QUANT_BLOCK_BYTES];
    float y[QUANT_BLOCK_ELEMS];

    for (int i = 0; i < s->block_bytes; i++)
        block[i] = (uint8_t)from[j / s->block_elems * s->block_bytes + i].i;
    quant_decode_block(scheme, block, y);
    return (double)y[j % s->block_elems];
}

/* x after eight bits, by the rule itself. */
static double through_q8(const struct eval_tensor *x, int32_t scheme, int64_t k)
{
    int run = quant_scheme(scheme)->block_elems == 256 ? 256 : 32;
    int64_t base = k / run * run;
    double a = 0;

    for (int i = 0; i < run; i++)
        if (fabs(x->at[base + i].f) > fabs(a))
            a = x->at[base + i].f;
    if (a == 0)
        return 0;
    if (run == 32) {
        float d = (float)fabs(a) / 127, q = roundf((float)x->at[k].f * (1 / d));
        return eval_cell_round(RLX_DTYPE_f16, (struct eval_cell){.f = (double)d}).f * (double)q;
    }
    float s = -127 / (float)a;
    return (double)(1 / s) * (double)rintf(s * (float)x->at[k].f);
}

static void check_product(struct test *t, int32_t scheme, bool q8)
{
    const struct quant_scheme *q = quant_scheme(scheme);
    int64_t k = 2 * q->block_elems;
    char source[512];
    struct special s;

    test_note(t, "%s%s", q->display, q8 ? " q8" : "");
    snprintf(source, sizeof source,
             "rlx 1 graph (input %%x: f32[2,1,%d], param %%w: u8[3,%d]) { "
             "%%y = dequant_matmul %%x, %%w scheme=%s k=%d act=%s return %%y }",
             (int)k, 2 * q->block_bytes, word_of(scheme), (int)k, q8 ? "q8" : "exact");
    if (!special_open(t, &s, source))
        return;
    struct eval_tensor *x = special_leaf(t, &s, "x"), *w = special_leaf(t, &s, "w");
    fill_reals(x, 3, -2, 2);
    fill_packed(w, scheme, 4);
    if (special_run(t, &s))
        for (int64_t i = 0; i < 6; i++) {
            uint8_t row[2 * QUANT_BLOCK_BYTES];
            float b[2 * QUANT_BLOCK_ELEMS];
            double want = 0, size = 0;
            for (int64_t j = 0; j < 2 * q->block_bytes; j++)
                row[j] = (uint8_t)w->at[i % 3 * 2 * q->block_bytes + j].i;
            quant_decode_row(scheme, row, k, b);
            for (int64_t j = 0; j < k; j++) {
                double v = q8 ? through_q8(x, scheme, i / 3 * k + j) : x->at[i / 3 * k + j].f;
                want += v * (double)b[j];
                size += fabs(v * (double)b[j]);
            }
            expect_near(t, special_out(&s, 0, i), want, 1e-6 * size);
        }
    special_close(&s);
}

TEST(quant, products_equal_those_of_the_decoded_weight)
{
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        check_product(t, vectors[i].scheme, false);
        check_product(t, vectors[i].scheme, true);
    }
}

TEST(quant, q8_loses_and_exact_does_not)
{
    /* 127 makes the scale 1, and 0.4 is not an integer */
    struct special s;

    if (!special_open(t, &s,
                      "rlx 1 graph (input %x: f32[32], param %w: u8[1,34]) { "
                      "%e = dequant_matmul %x, %w scheme=q8_0 k=32 "
                      "%q = dequant_matmul %x, %w scheme=q8_0 k=32 act=q8 return %e, %q }"))
        return;
    struct eval_tensor *x = special_leaf(t, &s, "x"), *w = special_leaf(t, &s, "w");
    x->at[0].f = 127;
    x->at[1].f = (double)0.4f;
    w->at[1].i = 0x3c;
    w->at[3].i = 10;
    if (special_run(t, &s)) {
        expect_near(t, special_out(&s, 0, 0), 4, 1e-6);
        expect_near(t, special_out(&s, 1, 0), 0, 0);
    }
    x->at[1].f = INFINITY; /* has no code */
    if (special_run(t, &s)) {
        expect_near(t, special_out(&s, 0, 0), INFINITY, 0);
        expect(t, isnan(special_out(&s, 1, 0)));
    }
    special_close(&s);
}

TEST(quant, experts_and_lookups)
{
    struct special s;
    int32_t scheme = RLX_QUANT_SCHEME_q4_1;

    if (!special_open(t, &s,
                      "rlx 1 graph (input %x: f32[4,32], param %w: u8[3,2,20], input %e: i64[4], "
                      "input %i: f32[5], param %v: u8[4,20]) { "
                      "%y = dequant_grouped_matmul %x, %w, %e scheme=q4_1 k=32 "
                      "%q = dequant_grouped_matmul %x, %w, %e scheme=q4_1 k=32 act=q8 "
                      "%m = dequant_moe_weights %w scheme=q4_1 k=32 "
                      "%g = dequant_gather %v, %i scheme=q4_1 k=32 return %y, %q, %m, %g }"))
        return;
    struct eval_tensor *x = special_leaf(t, &s, "x"), *w = special_leaf(t, &s, "w");
    struct eval_tensor *e = special_leaf(t, &s, "e"), *i = special_leaf(t, &s, "i");
    struct eval_tensor *v = special_leaf(t, &s, "v");
    static const int64_t experts[4] = {2, 0, 2, 1};
    static const double indices[5] = {3, -7, 99, NAN, 1.9};
    static const int64_t reads[5] = {3, 0, 3, 0, 1};
    fill_reals(x, 1, -1, 1);
    fill_packed(w, scheme, 2);
    fill_packed(v, scheme, 3);
    for (int k = 0; k < 4; k++)
        e->at[k].i = experts[k];
    for (int k = 0; k < 5; k++)
        i->at[k].f = indices[k];
    require(t, special_run(t, &s));
    for (int64_t k = 0; k < 8; k++) {
        double exact = 0, q8 = 0;
        for (int64_t j = 0; j < 32; j++) {
            double b = element_of(w, scheme, experts[k / 2] * 2 + k % 2, j);
            exact += x->at[k / 2 * 32 + j].f * b;
            q8 += through_q8(x, scheme, k / 2 * 32 + j) * b;
        }
        expect_near(t, special_out(&s, 0, k), exact, 1e-5);
        expect_near(t, special_out(&s, 1, k), q8, 1e-5);
    }
    for (int64_t k = 0; k < 3 * 32 * 2; k++) /* [e,k,n] from [e,n,row] */
        expect_near(t, special_out(&s, 2, k), element_of(w, scheme, k / 64 * 2 + k % 2, k % 64 / 2),
                    0);
    for (int64_t k = 0; k < 5 * 32; k++)
        expect_near(t, special_out(&s, 3, k), element_of(v, scheme, reads[k / 32], k % 32), 0);
    e->at[1].i = 3;
    expect_status(t, run_graph(&s.run, s.leaf), RLX_ERROR_INDEX);
    expect_contains(t, s.run.diag.first.message, "row 1 names expert 3 of 3");
    special_close(&s);
}

TEST(quant, nothing_to_multiply)
{
    evals(t, 0,
          "%x = const f32[0,32] {} %w = const u8[0,18] {} %z = const f32[2,0] {} "
          "%v = const u8[2,0] {} %i = const i32[0] {} %e = const u8[1,0,18] {} "
          "%a = dequant_matmul %x, %w scheme=q4_0 k=32 "
          "%b = dequant_matmul %z, %v scheme=q4_0 k=0 act=q8 "
          "%c = dequant_gather %w, %i scheme=q4_0 k=32 "
          "%d = dequant_grouped_matmul %x, %e, %i scheme=q4_0 k=32 "
          "%f = dequant_moe_weights %e scheme=q4_0 k=32 return %a, %b, %c, %d, %f",
          "", "0 0 0 0", "", "", "");
}
