/* quantise_weight_test.c: rlx/quant.h: weights there and back, the manual's vectors (ops-special.md
 * 11.2), and every refusal with its numbers. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "rlx/quant.h"

/* ---- blocks -------------------------------------------------------------------------------- */

TEST(quantise_weight, rows_there_and_back)
{
    enum { ROWS = 3, K = 512 };
    float x[ROWS * K], y[ROWS * K];
    uint8_t packed[ROWS * 2 * 292];
    size_t bytes = 0;
    rlx_error err;

    for (int i = 0; i < ROWS * K; i++)
        x[i] = (float)((i * 7919) % 1013 - 506) / 512;
    require_ok(t, rlx_quant_row_bytes(RLX_QUANT_SCHEME_q6_k, K, &bytes, &err));
    expect_eq(t, bytes, 420);
    require_ok(t, rlx_quantize_rows(RLX_QUANT_SCHEME_q6_k, x, ROWS, K, packed, ROWS * bytes, &err));
    require_ok(t,
               rlx_dequantize_rows(RLX_QUANT_SCHEME_q6_k, packed, ROWS * bytes, ROWS, K, y, &err));
    expect_close(t, y, x, ROWS * K, 0, 1.0 / 40);
    require_ok(t, rlx_quant_row_bytes(RLX_QUANT_SCHEME_q8_0, K, &bytes, NULL));
    expect_eq(t, bytes, 544);
    require_ok(t, rlx_quantize_rows(RLX_QUANT_SCHEME_q8_0, x, ROWS, K, packed, ROWS * bytes, &err));
    require_ok(t,
               rlx_dequantize_rows(RLX_QUANT_SCHEME_q8_0, packed, ROWS * bytes, ROWS, K, y, &err));
    expect_close(t, y, x, ROWS * K, 0, 1.0 / 200);
    /* the other rows are where they belong */
    require_ok(t, rlx_dequantize_rows(RLX_QUANT_SCHEME_q8_0, packed + bytes, bytes, 1, K, y, &err));
    expect_close(t, y, x + K, K, 0, 1.0 / 200);
}

TEST(quantise_weight, no_rows_are_fine)
{
    size_t bytes = 1;
    rlx_error err;

    expect_ok(t, rlx_quant_row_bytes(RLX_QUANT_SCHEME_q4_k, 0, &bytes, &err));
    expect_eq(t, bytes, 0);
    expect_ok(t, rlx_quantize_rows(RLX_QUANT_SCHEME_q4_k, NULL, 0, 256, NULL, 0, &err));
    expect_ok(t, rlx_quantize_rows(RLX_QUANT_SCHEME_q4_k, NULL, INT64_MAX, 0, NULL, 0, &err));
    expect_ok(t, rlx_dequantize_rows(RLX_QUANT_SCHEME_q4_k, NULL, 0, 5, 0, NULL, &err));
}

TEST(quantise_weight, rows_are_refused_with_their_numbers)
{
    float x[64] = {0};
    uint8_t packed[72];
    size_t bytes = 7;
    rlx_error err;

    rlx_quant_row_bytes(RLX_QUANT_SCHEME_q4_0, 33, &bytes, &err);
    expect_error(t, RLX_ERROR_SHAPE, "k 33 is not a multiple of the block of 32", &err);
    rlx_quant_row_bytes(RLX_QUANT_SCHEME_q4_0, -32, &bytes, &err);
    expect_error(t, RLX_ERROR_SHAPE, "k -32", &err);
    rlx_quant_row_bytes(RLX_QUANT_SCHEME_int8_block, 32, &bytes, &err);
    expect_error(t, RLX_ERROR_ATTRIBUTE, "int8_block is not a block format", &err);
    rlx_quant_row_bytes((rlx_quant_scheme)99, 32, &bytes, &err);
    expect_error(t, RLX_ERROR_ATTRIBUTE, "99", &err);
    rlx_quant_row_bytes(RLX_QUANT_SCHEME_q8_0, INT64_MAX / 32 * 32, &bytes, &err);
    expect_error(t, RLX_ERROR_LIMIT, "overflows", &err);
    expect_eq(t, bytes, 7);
    expect_status(t, rlx_quant_row_bytes(RLX_QUANT_SCHEME_q4_0, 32, NULL, NULL),
                  RLX_ERROR_ARGUMENT);

    rlx_quantize_rows(RLX_QUANT_SCHEME_q4_0, x, 2, 32, packed, 35, &err);
    expect_error(t, RLX_ERROR_SIZE, "2 rows of 32 elements take 36 bytes as q4_0, not 35", &err);
    rlx_dequantize_rows(RLX_QUANT_SCHEME_q4_0, packed, 37, 2, 32, x, &err);
    expect_error(t, RLX_ERROR_SIZE, "take 36 bytes as q4_0, not 37", &err);
    rlx_quantize_rows(RLX_QUANT_SCHEME_q4_0, x, 2, 31, packed, 36, &err);
    expect_error(t, RLX_ERROR_SHAPE, "k 31", &err);
    rlx_quantize_rows(RLX_QUANT_SCHEME_q8_1, x, 2, 32, packed, 72, &err);
    expect_error(t, RLX_ERROR_UNSUPPORTED, "q8_1 is only read", &err);
    expect_ok(t, rlx_dequantize_rows(RLX_QUANT_SCHEME_q8_1, packed, 72, 2, 32, x, &err));
    rlx_quantize_rows(RLX_QUANT_SCHEME_q4_0, NULL, 2, 32, packed, 36, &err);
    expect_error(t, RLX_ERROR_ARGUMENT, "NULL", &err);
    rlx_quantize_rows(RLX_QUANT_SCHEME_q4_0, x, -1, 32, packed, 36, &err);
    expect_error(t, RLX_ERROR_ARGUMENT, "-1 rows", &err);
    rlx_quantize_rows(RLX_QUANT_SCHEME_q4_0, x, INT64_MAX, 32, packed, 36, &err);
    expect_error(t, RLX_ERROR_LIMIT, "overflow", &err);

    memset(x, 0, sizeof x);
    x[40] = NAN;
    rlx_quantize_rows(RLX_QUANT_SCHEME_q4_0, x, 2, 32, packed, 36, &err);
    expect_error(t, RLX_ERROR_NUMERIC, "row 1, element 8 is NaN", &err);
    x[40] = -INFINITY;
    rlx_quantize_rows(RLX_QUANT_SCHEME_q4_0, x, 1, 64, packed, 36, &err);
    expect_error(t, RLX_ERROR_NUMERIC, "row 0, element 40 is -Inf", &err);
    x[40] = 1e30f;
    rlx_quantize_rows(RLX_QUANT_SCHEME_q4_0, x, 1, 64, packed, 36, &err);
    expect_error(t, RLX_ERROR_LIMIT, "row 0, elements 32 to 63: too large for the scales of q4_0",
                 &err);
}

/* ---- scales beside the weight -------------------------------------------------------------- */

TEST(quantise_weight, scales_beside_decode_as_the_manual_says)
{
    float scale[2] = {0.5f, 2}, zero[2] = {1, -1}, y[4];
    uint8_t bytes[4] = {0x01, 0xff, 0x80, 0x7f}, nibbles[2] = {0xf1, 0x78};
    uint8_t e4m3[4] = {0x38, 0x40, 0xc0, 0x7f}, e5m2[4] = {0x3c, 0x40, 0xc4, 0x7c};
    uint8_t e2m1[1] = {0x92}, scale8[2] = {0x38, 0x38};
    float all = 2, ten = 10;
    rlx_quant_weight w = {RLX_QUANT_SCHEME_int8_block, 2, 2, 2, bytes, 4, scale, 8, NULL, 0};
    rlx_error err;

    require_ok(t, rlx_dequantize_weight(&w, y, &err));
    expect_close(t, y, ((float[]){0.5f, -2, -64, 254}), 4, 0, 0);
    w.scheme = RLX_QUANT_SCHEME_int8_block_asym;
    w.zero_point = zero, w.zero_point_bytes = 8;
    require_ok(t, rlx_dequantize_weight(&w, y, &err));
    expect_close(t, y, ((float[]){0, 0, -64.5f, 256}), 4, 0, 0);
    w = (rlx_quant_weight){RLX_QUANT_SCHEME_int4_block, 2, 2, 2, nibbles, 2, scale, 8, NULL, 0};
    require_ok(t, rlx_dequantize_weight(&w, y, &err));
    expect_close(t, y, ((float[]){0.5f, -2, -4, 14}), 4, 0, 0);
    w = (rlx_quant_weight){RLX_QUANT_SCHEME_fp8_e4m3, 0, 2, 2, e4m3, 4, &ten, 4, NULL, 0};
    require_ok(t, rlx_dequantize_weight(&w, y, &err));
    expect_close(t, y, ((float[]){10, 20, -20, 0}), 4, 0, 0);
    w = (rlx_quant_weight){RLX_QUANT_SCHEME_fp8_e5m2, 0, 2, 2, e5m2, 4, scale, 8, NULL, 0};
    require_ok(t, rlx_dequantize_weight(&w, y, &err));
    expect_close(t, y, ((float[]){0.5f, 4, -2, 0}), 4, 0, 0);
    w = (rlx_quant_weight){RLX_QUANT_SCHEME_nvfp4_block, 0, 1, 2, e2m1, 1, scale8, 2, &all, 4};
    require_ok(t, rlx_dequantize_weight(&w, y, &err));
    expect_close(t, y, ((float[]){2, -1}), 2, 0, 0);
}

enum { K = 37, N = 5, MOST = 4 * K * N };

/* Room for any scheme's parts. */
struct parts {
    uint8_t code[K * N];
    float scale[K * N], zero[K * N];
};

/* Numbers there and back; what is allowed is `most` times the largest number of the matrix. */
static void check_weight(struct test *t, rlx_quant_scheme scheme, int64_t block, size_t scale_bytes,
                         double most)
{
    struct parts p;
    rlx_quant_weight w = {.scheme = scheme, .block_size = block, .k = K, .n = N};
    float x[K * N], y[K * N];
    rlx_error err;

    memset(&p, 0xa5, sizeof p);
    for (int i = 0; i < K * N; i++)
        x[i] = i % N == 3 ? 0 : (float)((i * 7919) % 1013 - 400) / 300; /* a column of zeros */
    require_ok(t, rlx_quant_weight_sizes(&w, &err));
    w.code = p.code, w.scale = p.scale, w.zero_point = p.zero;
    if (scale_bytes)
        w.scale_bytes = scale_bytes;
    test_note(t, "scheme %d, block %d", (int)scheme, (int)block);
    require_ok(t, rlx_quantize_weight(&w, x, &err));
    require_ok(t, rlx_dequantize_weight(&w, y, &err));
    expect_close(t, y, x, K * N, 0, most * 2.05);
    for (int j = 0; j < K; j++)
        expect_near(t, y[j * N + 3], 0, 0);
    for (size_t i = w.code_bytes; i < sizeof p.code; i++)
        expect_eq(t, p.code[i], 0xa5);
}

TEST(quantise_weight, scales_beside_there_and_back)
{
    check_weight(t, RLX_QUANT_SCHEME_int8_block, 16, 0, 0.51 / 127);
    check_weight(t, RLX_QUANT_SCHEME_int8_block, 1, 0, 1e-6);
    check_weight(t, RLX_QUANT_SCHEME_int8_block_asym, 32, 0, 1.02 / 127);
    check_weight(t, RLX_QUANT_SCHEME_int8_block_asym, 1000, 0, 1.02 / 127);
    check_weight(t, RLX_QUANT_SCHEME_int4_block, 8, 0, 0.51 / 7);
    check_weight(t, RLX_QUANT_SCHEME_fp8_e4m3, 0, 0, 1.0 / 16);
    check_weight(t, RLX_QUANT_SCHEME_fp8_e4m3, 0, 4, 1.0 / 16);
    check_weight(t, RLX_QUANT_SCHEME_fp8_e5m2, 0, 4 * N, 1.0 / 8);
    check_weight(t, RLX_QUANT_SCHEME_nvfp4_block, 0, 0, 1.0 / 5);
}

TEST(quantise_weight, sizes_of_the_parts)
{
    rlx_quant_weight w = {.scheme = RLX_QUANT_SCHEME_int4_block, .block_size = 2, .k = 7, .n = 5};
    rlx_error err;

    require_ok(t, rlx_quant_weight_sizes(&w, &err));
    expect_eq(t, w.code_bytes, 18);
    expect_eq(t, w.scale_bytes, 4 * 5 * 4);
    expect_eq(t, w.zero_point_bytes, 0);
    w.scheme = RLX_QUANT_SCHEME_nvfp4_block;
    w.k = 17;
    require_ok(t, rlx_quant_weight_sizes(&w, &err));
    expect_eq(t, w.code_bytes, 43);
    expect_eq(t, w.scale_bytes, 2 * 5);
    expect_eq(t, w.zero_point_bytes, 4);
    w.scheme = RLX_QUANT_SCHEME_int8_block_asym;
    require_ok(t, rlx_quant_weight_sizes(&w, &err));
    expect_eq(t, w.code_bytes, 85);
    expect_eq(t, w.zero_point_bytes, 9 * 5 * 4);
    w.scheme = RLX_QUANT_SCHEME_fp8_e5m2;
    require_ok(t, rlx_quant_weight_sizes(&w, &err));
    expect_eq(t, w.scale_bytes, 0);
}

TEST(quantise_weight, parts_are_refused_with_their_numbers)
{
    float x[6] = {1, 2, 3, 4, 5, 6}, scale[3], zero[3];
    uint8_t code[6];
    rlx_quant_weight good = {
        RLX_QUANT_SCHEME_int8_block_asym, 2, 2, 3, code, 6, scale, 12, zero, 12};
    rlx_quant_weight w = good;
    rlx_error err;

    require_ok(t, rlx_quantize_weight(&w, x, &err));
    w.code_bytes = 5;
    rlx_quantize_weight(&w, x, &err);
    expect_error(t, RLX_ERROR_SIZE, "code takes 6 bytes, not 5", &err);
    w = good, w.scale_bytes = 24;
    rlx_quantize_weight(&w, x, &err);
    expect_error(t, RLX_ERROR_SIZE, "scale takes 12 bytes, not 24", &err);
    w = good, w.zero_point_bytes = 0;
    rlx_dequantize_weight(&w, x, &err);
    expect_error(t, RLX_ERROR_SIZE, "zero_point takes 12 bytes, not 0", &err);
    w = good, w.scale = NULL;
    rlx_quantize_weight(&w, x, &err);
    expect_error(t, RLX_ERROR_ARGUMENT, "scale is NULL", &err);
    w = good, w.block_size = 0;
    rlx_quantize_weight(&w, x, &err);
    expect_error(t, RLX_ERROR_ATTRIBUTE, "block_size is 0", &err);
    w = good, w.scheme = RLX_QUANT_SCHEME_q4_0;
    rlx_quantize_weight(&w, x, &err);
    expect_error(t, RLX_ERROR_ATTRIBUTE, "scheme q4_0", &err);
    w = good, w.k = -1;
    rlx_quantize_weight(&w, x, &err);
    expect_error(t, RLX_ERROR_SHAPE, "-1 by 3", &err);
    w = good, w.k = INT64_MAX;
    rlx_quantize_weight(&w, x, &err);
    expect_error(t, RLX_ERROR_LIMIT, "overflows", &err);
    w = (rlx_quant_weight){RLX_QUANT_SCHEME_fp8_e4m3, 0, 2, 3, code, 6, scale, 8, NULL, 0};
    rlx_quantize_weight(&w, x, &err);
    expect_error(t, RLX_ERROR_SIZE, "scale takes 12 bytes, not 8", &err);
    x[4] = INFINITY;
    rlx_quantize_weight(&good, x, &err);
    expect_error(t, RLX_ERROR_NUMERIC, "element 1, 1 is Inf", &err);
    rlx_quantize_weight(&good, NULL, &err);
    expect_error(t, RLX_ERROR_ARGUMENT, "NULL", &err);
    expect_status(t, rlx_quantize_weight(NULL, x, NULL), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_quant_weight_sizes(NULL, NULL), RLX_ERROR_ARGUMENT);
}
