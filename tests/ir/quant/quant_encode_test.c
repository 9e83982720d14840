/* quant_encode_test.c: numbers as packed blocks: how close they come back (ops-special.md 1.5),
 * codes that were worked out by hand, and numbers that are hard on an encoder. Blocks are read by
 * ir/quant_decode, which has the manual's worked vectors to itself (eval_special_quant_test.c). */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "ir/quant/quant_decode.h"
#include "ir/quant/quant_encode.h"
#include "ir/quant/quant_scheme.h"
#include "ir/quant/quant_side.h"
#include "rlx/graph.h"

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

/* N(0,1), by twelve of the others. */
static float normal(uint64_t *state)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += uniform(state);
    return (float)sum;
}

/* A block there and back. */
static bool through(struct test *t, int32_t scheme, const float *x, float *y)
{
    uint8_t block[QUANT_BLOCK_BYTES];
    bool ok = quant_encode_block(scheme, x, block);

    quant_decode_block(scheme, block, y);
    return expect(t, ok);
}

/* ---- how close numbers come back ----------------------------------------------------------- */

/* What the manual allows for a block whose largest magnitude is r and whose range is r2. */
static double bound(int32_t scheme, double r, double r2)
{
    switch (scheme) {
    case RLX_QUANT_SCHEME_q8_0: return r / 254 + r * 0x1p-10;
    case RLX_QUANT_SCHEME_q4_0: return r / 8 + r * 0x1p-10;
    case RLX_QUANT_SCHEME_q5_0: return r / 16 + r * 0x1p-10;
    case RLX_QUANT_SCHEME_q4_1: return r2 / 30 + r * 0x1p-9;
    case RLX_QUANT_SCHEME_q5_1: return r2 / 62 + r * 0x1p-9;
    default: return r / 250; /* q8_k */
    }
}

TEST(quant_encode, numbers_come_back_within_the_bounds)
{
    static const int32_t schemes[] = {RLX_QUANT_SCHEME_q8_0, RLX_QUANT_SCHEME_q4_0,
                                      RLX_QUANT_SCHEME_q5_0, RLX_QUANT_SCHEME_q4_1,
                                      RLX_QUANT_SCHEME_q5_1, RLX_QUANT_SCHEME_q8_k};
    static const double range[] = {0.05, 0.7, 31, 1000};
    uint64_t state = 7;

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        for (int round = 0; round < 400; round++) {
            int n = quant_scheme(schemes[i])->block_elems;
            double r = range[round % 4], low = 0, high = 0, worst = 0, shift = round % 8 < 4;
            float x[QUANT_BLOCK_ELEMS], y[QUANT_BLOCK_ELEMS];
            for (int k = 0; k < n; k++) /* half of the rounds on both sides of zero */
                x[k] = (float)(r * (shift > 0 ? uniform(&state) : 2 * uniform(&state) - 1));
            x[round % n] = (float)(round % 3 ? r : shift > 0 ? r : -r);
            low = high = (double)x[0];
            for (int k = 1; k < n; k++) {
                low = fmin(low, (double)x[k]);
                high = fmax(high, (double)x[k]);
            }
            test_note(t, "%s, round %d", quant_scheme(schemes[i])->display, round);
            if (!through(t, schemes[i], x, y))
                return;
            for (int k = 0; k < n; k++)
                worst = fmax(worst, fabs((double)y[k] - (double)x[k]));
            expect(t, worst <= bound(schemes[i], fmax(-low, high), high - low));
        }
}

TEST(quant_encode, normal_numbers_come_back_on_average)
{
    static const struct {
        int32_t scheme;
        double most;
    } rows[] = {
        {RLX_QUANT_SCHEME_q4_k, 0.10},   {RLX_QUANT_SCHEME_q5_k, 0.06},
        {RLX_QUANT_SCHEME_q6_k, 0.03},   {RLX_QUANT_SCHEME_q2_k, 0.45}, /* these six: ours */
        {RLX_QUANT_SCHEME_q3_k, 0.25},   {RLX_QUANT_SCHEME_iq4_nl, 0.12},
        {RLX_QUANT_SCHEME_iq4_xs, 0.12}, {RLX_QUANT_SCHEME_mxfp4, 0.13},
        {RLX_QUANT_SCHEME_nvfp4, 0.11}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int n = quant_scheme(rows[i].scheme)->block_elems;
        double error = 0, size = 0;
        uint64_t state = 11;
        for (int done = 0; done < 16384; done += n) {
            float x[QUANT_BLOCK_ELEMS], y[QUANT_BLOCK_ELEMS];
            for (int k = 0; k < n; k++)
                x[k] = normal(&state);
            through(t, rows[i].scheme, x, y);
            for (int k = 0; k < n; k++) {
                error += ((double)y[k] - (double)x[k]) * ((double)y[k] - (double)x[k]);
                size += (double)x[k] * (double)x[k];
            }
        }
        test_note(t, "%s: %.4f", quant_scheme(rows[i].scheme)->display, sqrt(error / size));
        expect(t, error > 0 && sqrt(error / size) <= rows[i].most);
    }
}

/* ---- codes worked out by hand -------------------------------------------------------------- */

TEST(quant_encode, codes_of_32)
{
    float x[32] = {-4, 3.9f, 1, -1.25f, 0.25f}; /* d = 0.5 */
    uint8_t b[QUANT_BLOCK_BYTES];

    require(t, quant_encode_block(RLX_QUANT_SCHEME_q4_0, x, b));
    expect_eq(t, b[0] | b[1] << 8, 0x3800);
    expect_eq(t, b[2], 0x80); /* -4: 0; the 16th is 0: 8 */
    expect_eq(t, b[3], 0x8f); /* 7.8 + 8.5 = 16.3: 15 */
    expect_eq(t, b[4], 0x8a);
    expect_eq(t, b[5], 0x86); /* -2.5 + 8.5 = 6 */
    expect_eq(t, b[6], 0x89); /* 0.5 + 8.5 = 9 */

    /* d = 0.25: codes 0, 31, 20, 11, 17, and 16 for zeros */
    require(t, quant_encode_block(RLX_QUANT_SCHEME_q5_0, x, b));
    expect_eq(t, b[0] | b[1] << 8, 0x3400);
    expect_eq(t, b[2], 0xf6);
    expect_eq(t, b[5], 0xff);
    expect_eq(t, b[6], 0x00);
    expect_eq(t, b[7], 0x0f);
    expect_eq(t, b[9], 0x0b);

    for (int i = 0; i < 32; i++) /* from -3 in steps of 0.5; d = 0.5 */
        x[i] = (float)(i % 16) * 0.5f - 3;
    require(t, quant_encode_block(RLX_QUANT_SCHEME_q4_1, x, b));
    expect_eq(t, b[0] | b[1] << 8, 0x3800);
    expect_eq(t, b[2] | b[3] << 8, 0xc200);
    for (int i = 0; i < 16; i++)
        expect_eq(t, b[4 + i], i * 17);
    x[31] = 12.5f; /* d = 0.5 of 31 */
    require(t, quant_encode_block(RLX_QUANT_SCHEME_q5_1, x, b));
    expect_eq(t, b[0] | b[1] << 8, 0x3800);
    expect_eq(t, b[7], 0x80); /* one code has a fifth bit */
    expect_eq(t, b[8 + 15], 0xff);
    expect_eq(t, b[8 + 3], 0x33);

    memset(x, 0, sizeof x); /* d = 1: the table's own numbers */
    x[0] = -127, x[1] = 113, x[2] = 18, x[3] = -56;
    require(t, quant_encode_block(RLX_QUANT_SCHEME_iq4_nl, x, b));
    expect_eq(t, b[0] | b[1] << 8, 0x3c00);
    expect_eq(t, b[2], 0x80);
    expect_eq(t, b[3], 0x8f);
    expect_eq(t, b[4], 0x89); /* 18 is nearer to 13 than to 25 */
    expect_eq(t, b[5], 0x84); /* -56: -49 is nearer than -65 */
}

TEST(quant_encode, codes_of_e2m1)
{
    float x[64] = {6, -0.5f, 2.6f, 1.25f, 5.1f}, y[64];
    uint8_t b[QUANT_BLOCK_BYTES];

    require(t, quant_encode_block(RLX_QUANT_SCHEME_mxfp4, x, b));
    expect_eq(t, b[0], 127); /* 2^0 */
    expect_eq(t, b[1], 0x07);
    expect_eq(t, b[2], 0x09);
    expect_eq(t, b[3], 0x05);
    expect_eq(t, b[4], 0x02); /* halfway between 1 and 1.5: even */
    expect_eq(t, b[5], 0x07);

    x[0] = x[1] = 7.9f; /* nearer to 8, with a scale of 2 */
    require(t, quant_encode_block(RLX_QUANT_SCHEME_mxfp4, x, b));
    expect_eq(t, b[0], 128);
    expect_eq(t, b[1], 0x06);
    expect_eq(t, b[5], 0x05); /* 5.1 is nearer to 6 than to 4 */

    memset(x, 0, sizeof x);
    x[0] = 0x1.fp127f, x[1] = 0x1p124f; /* a scale of 2^126 would overflow */
    through(t, RLX_QUANT_SCHEME_mxfp4, x, y);
    expect_near(t, y[0], 0x1.8p127f, 0);
    expect_near(t, y[1], 0x1p124f, 0);

    memset(x, 0, sizeof x);
    x[0] = -2688, x[9] = 224, x[16] = 0.75f, x[63] = 12;
    require(t, quant_encode_block(RLX_QUANT_SCHEME_nvfp4, x, b));
    expect_eq(t, b[0], 0x7e); /* 448 */
    expect_eq(t, b[1], 0x20); /* 2^-3 */
    expect_eq(t, b[2], 0);
    expect_eq(t, b[3], 0x40); /* 2 */
    expect_eq(t, b[4], 0x0f);
    expect_eq(t, b[5], 0x10); /* the tenth is a high half */
    expect_eq(t, b[12], 0x07);
    expect_eq(t, b[35], 0x70);
    quant_decode_block(RLX_QUANT_SCHEME_nvfp4, b, y);
    expect_close(t, y, x, 64, 0, 0);
    x[20] = 2689; /* its scale would be larger than 448 */
    expect(t, !quant_encode_block(RLX_QUANT_SCHEME_nvfp4, x, b));
}

TEST(quant_encode, codes_of_three)
{
    float x[256] = {0}, y[256];
    uint8_t b[QUANT_BLOCK_BYTES];

    x[0] = 0.5f, x[32] = -0.5f, x[96] = 0.24f, x[240] = -0.5f, x[251] = 0.3f;
    require(t, quant_encode_block(RLX_QUANT_SCHEME_tq2_0, x, b));
    expect_eq(t, b[64] | b[65] << 8, 0x3800);
    expect_eq(t, b[0], 2 | 0 << 2 | 1 << 4 | 1 << 6); /* 0.48 is rounded to 0 */
    expect_eq(t, b[1], 0x55);
    require(t, quant_encode_block(RLX_QUANT_SCHEME_tq1_0, x, b));
    expect_eq(t, b[52] | b[53] << 8, 0x3800);
    expect_eq(t, b[0], (256 * (2 * 81 + 0 * 27 + 1 * 9 + 1 * 3 + 1) + 242) / 243);
    expect_eq(t, b[48], (256 * (0 * 81 + 1 * 27 + 1 * 9 + 1 * 3) + 242) / 243);
    quant_decode_block(RLX_QUANT_SCHEME_tq1_0, b, y);
    x[96] = 0, x[251] = 0.5f;
    expect_close(t, y, x, 256, 0, 0);
    for (int i = 0; i < 256; i++) /* every number of five digits */
        x[i] = (float)((i < 160 ? i % 32 * 8 + i / 32 : i) * (i / 32 + 1) % 3 - 1) * 3;
    for (int32_t scheme = RLX_QUANT_SCHEME_tq1_0; scheme <= RLX_QUANT_SCHEME_tq2_0; scheme++) {
        through(t, scheme, x, y);
        expect_close(t, y, x, 256, 0, 0);
    }
}

/* A block whose numbers the format has exactly: 63 * 15 steps of 2^-6. */
TEST(quant_encode, codes_of_256)
{
    float x[256], y[256];
    uint8_t b[QUANT_BLOCK_BYTES];

    for (int i = 0; i < 256; i++) { /* sub-block j: scale 63 - j, offset 63 - 7 j */
        int j = i / 32, q = i % 16;
        x[i] = (float)((63 - j) * q) / 64 - (float)(63 - 7 * j) / 8;
    }
    require(t, quant_encode_block(RLX_QUANT_SCHEME_q4_k, x, b));
    expect_eq(t, b[0] | b[1] << 8, 0x2400); /* 2^-6 */
    expect_eq(t, b[2] | b[3] << 8, 0x3000); /* 2^-3 */
    expect_eq(t, b[4], 63 | (59 >> 4) << 6);
    expect_eq(t, b[8], 63 | (35 >> 4) << 6);
    expect_eq(t, b[12], (59 & 15) | (35 & 15) << 4);
    expect_eq(t, b[16 + 3], 0x33);
    quant_decode_block(RLX_QUANT_SCHEME_q4_k, b, y);
    expect_close(t, y, x, 256, 0, 0);

    for (int i = 0; i < 256; i++) { /* the same with codes up to 31 */
        int j = i / 32, q = i % 32;
        x[i] = (float)((63 - j) * q) / 64 - (float)(63 - 7 * j) / 8;
    }
    through(t, RLX_QUANT_SCHEME_q5_k, x, y);
    expect_close(t, y, x, 256, 0, 0);

    for (int i = 0; i < 256; i++) { /* scales of 15 - j, codes up to 3 */
        int j = i / 16 % 8, q = i % 4;
        x[i] = (float)((15 - j) * q) / 16 - (float)(15 - 2 * j) / 8;
    }
    through(t, RLX_QUANT_SCHEME_q2_k, x, y);
    expect_close(t, y, x, 256, 0, 0);

    for (int i = 0; i < 256; i++) { /* scales of -128 + 8 j, codes from -32 */
        int j = i / 16, q = i % 16 == 0 ? -32 : (i * 5) % 63 - 31;
        x[i] = (float)((8 * j - 128) * q) / 1024;
    }
    through(t, RLX_QUANT_SCHEME_q6_k, x, y);
    expect_close(t, y, x, 256, 0, 0);

    for (int i = 0; i < 256; i++) { /* scales of -32 + 2 j, codes from -4 */
        int j = i / 16, q = i % 8 == 0 ? -4 : (i * 5) % 7 - 3;
        x[i] = (float)((2 * j - 32) * q) / 64;
    }
    through(t, RLX_QUANT_SCHEME_q3_k, x, y);
    expect_close(t, y, x, 256, 0, 0);

    static const int8_t table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};
    for (int i = 0; i < 256; i++) /* scales of -32 + 4 j */
        x[i] = (float)((4 * (i / 32) - 32) * table[i % 16]) / 64;
    through(t, RLX_QUANT_SCHEME_iq4_xs, x, y);
    expect_close(t, y, x, 256, 0, 0);
}

/* ---- numbers that are hard ----------------------------------------------------------------- */

TEST(quant_encode, hostile_numbers)
{
    static const float odd[] = {0, 1e-45f, -1e-40f, 1e-30f, 1e-15f, -2e-15f, 1e-7f, -0.0f, 60000};
    size_t encoders = 0;

    for (int32_t scheme = 0; quant_scheme(scheme); scheme++) {
        const struct quant_scheme *s = quant_scheme(scheme);
        if (!quant_has_encoder(scheme))
            continue;
        encoders++;
        size_t count = sizeof odd / sizeof odd[0] - (scheme == RLX_QUANT_SCHEME_nvfp4);
        for (size_t i = 0; i < count; i++) /* NVFP4 does not reach to 60000 */
            for (int gap = 1; gap <= 40; gap += 13) {
                float *x = malloc((size_t)s->block_elems * sizeof *x), y[QUANT_BLOCK_ELEMS];
                uint8_t *block = malloc((size_t)s->block_bytes);
                require(t, x && block);
                for (int k = 0; k < s->block_elems; k++)
                    x[k] = k % gap ? 0 : odd[i];
                test_note(t, "%s: number %zu, every %d", s->display, i, gap);
                expect(t, quant_encode_block(scheme, x, block));
                quant_decode_block(scheme, block, y);
                for (int k = 0; k < s->block_elems; k++)
                    expect(t, fabsf(y[k] - x[k]) <= 0.4f * fabsf(odd[i]) ||
                                  (fabsf(odd[i]) < 1e-4f && fabsf(y[k]) <= 2 * fabsf(odd[i])));
                free(x);
                free(block);
            }
    }
    expect_eq(t, encoders, 17);
    expect(t, !quant_has_encoder(RLX_QUANT_SCHEME_q8_1));
    expect(t, !quant_has_encoder(RLX_QUANT_SCHEME_int8_block) && !quant_has_encoder(-1) &&
                  !quant_has_encoder(1000));
}

TEST(quant_encode, numbers_too_large_for_a_scale_are_told)
{
    for (int32_t scheme = 0; quant_scheme(scheme); scheme++) {
        float x[QUANT_BLOCK_ELEMS] = {3e38f, -3e38f};
        uint8_t block[QUANT_BLOCK_BYTES];
        if (!quant_has_encoder(scheme))
            continue;
        test_note(t, "%s", quant_scheme(scheme)->display);
        bool any = scheme == RLX_QUANT_SCHEME_q8_k || scheme == RLX_QUANT_SCHEME_mxfp4;
        expect_eq(t, quant_encode_block(scheme, x, block), any);
    }
}

TEST(quant_encode, the_first_number_that_is_not_finite)
{
    float x[4] = {1, 2, 3, 4};

    expect_eq(t, quant_first_not_finite(x, 4), -1);
    x[3] = NAN;
    expect_eq(t, quant_first_not_finite(x, 4), 3);
    x[1] = -INFINITY;
    expect_eq(t, quant_first_not_finite(x, 4), 1);
    expect_eq(t, quant_first_not_finite(x, 1), -1);
}

/* ---- small floats -------------------------------------------------------------------------- */

/* The nearest of all codes, and of two that are as near the even one. */
static int nearest(float v, float (*decode)(uint8_t), int codes)
{
    int best = 0;

    for (int c = 0; c < codes; c++) {
        double far = fabs(fabs((double)v) - (double)decode((uint8_t)c));
        double least = fabs(fabs((double)v) - (double)decode((uint8_t)best));
        if (far < least || (far == least && c % 2 == 0))
            best = c;
    }
    return best;
}

TEST(quant_encode, small_floats_are_the_nearest)
{
    uint64_t state = 3;

    for (int i = 0; i < 3000; i++) {
        float v = (float)exp2(24 * uniform(&state) - 14),
              w = (float)exp2(36 * uniform(&state) - 19);
        if (i < 1000) { /* halfway between neighbours */
            v = (quant_e4m3((uint8_t)(i % 126)) + quant_e4m3((uint8_t)(i % 126 + 1))) / 2;
            w = (quant_e5m2((uint8_t)(i % 123)) + quant_e5m2((uint8_t)(i % 123 + 1))) / 2;
        }
        test_note(t, "%g and %g", (double)v, (double)w);
        expect_eq(t, quant_to_e4m3(v), nearest(v, quant_e4m3, 127));
        expect_eq(t, quant_to_e4m3(-v), 0x80 | nearest(v, quant_e4m3, 127));
        expect_eq(t, quant_to_e5m2(-w), 0x80 | nearest(w, quant_e5m2, 124));
        float u = i < 14 ? (quant_e2m1((uint8_t)(i / 2)) + quant_e2m1((uint8_t)((i + 1) / 2))) / 2
                         : 8 * (float)uniform(&state);
        expect_eq(t, quant_to_e2m1(u), nearest(u, quant_e2m1, 8));
    }
    expect_eq(t, quant_to_e4m3(INFINITY), 0x7e);
    expect_eq(t, quant_to_e4m3(NAN), 0x7f);
    expect_eq(t, quant_to_e5m2(-INFINITY), 0xfb);
    expect_eq(t, quant_to_e5m2(1e-45f), 0);
    expect_eq(t, quant_to_e2m1(-1e30f), 15);
}
