/* dequant_test.c: products, lookups and copies of packed weights, at every instruction set of this
 * CPU, against plain loops in double precision over what ir/quant_decode and ir/quant_side make of
 * the weight: all schemes, few rows and many, with one thread and three, and scales that are NaN.
 */
#include "base/half.h"
#include "ir/quant/quant_decode.h"
#include "ir/quant/quant_scheme.h"
#include "ir/quant/quant_side.h"
#include "levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_M = 41, N = 75, MOST_K = 768, EXPERTS = 5 };

static uint32_t dice(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void fill_numbers(float *x, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = ((float)dice(&seed) * 0x1p-24f - 0.5f) * 4;
}

/* Any codes, scales of 2^-6 or so. */
static void fill_blocks(uint8_t *b, int64_t bytes, int32_t scheme, uint32_t seed)
{
    const struct quant_scheme *s = quant_scheme(scheme);

    for (int64_t i = 0; i < bytes; i++)
        b[i] = (uint8_t)dice(&seed);
    for (int64_t i = 0; i < bytes; i += s->block_bytes) {
        if (scheme == RLX_QUANT_SCHEME_mxfp4)
            b[i] = (uint8_t)(120 + b[i] % 4);
        for (int64_t j = 0; j < 4 && scheme == RLX_QUANT_SCHEME_nvfp4; j++)
            b[i + j] &= 0x8f;
        if (s->scale_at < 0)
            continue;
        b[i + s->scale_at + 1] = (uint8_t)(0x24 | (b[i] & 0x83)); /* an f16's upper byte */
        if (s->offset_at)
            b[i + s->offset_at + 1] = (uint8_t)(0x24 | (b[i + 1] & 0x83));
        if (scheme == RLX_QUANT_SCHEME_q8_k)
            b[i + 2] = 0, b[i + 3] = 0x3c;
    }
}

static struct cpu_tensor tensor(void *data, rlx_dtype dtype, int32_t rank, int64_t a, int64_t b,
                                int64_t c)
{
    struct cpu_tensor r = {.data = data, .dtype = dtype, .rank = rank, .dim = {a, b, c}};

    r.count = a * (rank > 1 ? b : 1) * (rank > 2 ? c : 1);
    return r;
}

/* The tolerance of sums (ops-core.md 22), for one product of a row of x and a row or column of
 * w. */
static void expect_product(struct test *t, float got, const float *x, const float *w, int64_t step,
                           int64_t k)
{
    double want = 0, size = 0;

    for (int64_t j = 0; j < k; j++) {
        double term = (double)x[j] * (double)w[j * step];
        want += term;
        size += fabs(term);
    }
    expect_near(t, got, want, (4 + sqrt((double)k)) * 0x1p-22 * size);
}

/* ---- rows of blocks ------------------------------------------------------------------------ */

/* Room for the largest of everything here. */
struct world {
    float *x, *y, *w;
    uint8_t *packed;
};

static bool open_world(struct test *t, struct world *w)
{
    w->x = malloc(MOST_M * MOST_K * sizeof(float));
    w->y = malloc(EXPERTS * N * MOST_K * sizeof(float));
    w->w = malloc(EXPERTS * N * MOST_K * sizeof(float));
    w->packed = malloc(EXPERTS * N * MOST_K / QUANT_BLOCK_ELEMS * QUANT_BLOCK_BYTES * 2);
    return expect(t, w->x && w->y && w->w && w->packed);
}

static void close_world(struct world *w)
{
    free(w->x), free(w->y), free(w->w), free(w->packed);
}

/* `rows` packed rows of three blocks of 256 (of 32: 21 blocks), as bytes and as numbers. */
static int64_t make_rows(struct world *w, int32_t scheme, int64_t rows, int64_t *row)
{
    const struct quant_scheme *s = quant_scheme(scheme);
    int64_t k = s->block_elems == 32 ? 21 * 32 : 3 * 256;

    *row = k / s->block_elems * s->block_bytes;
    fill_blocks(w->packed, rows * *row, scheme, (uint32_t)scheme + 3);
    for (int64_t r = 0; r < rows; r++)
        quant_decode_row(scheme, w->packed + r * *row, k, w->w + r * k);
    return k;
}

static void check_matmul(struct test *t, struct world *w, const struct cpu_kernels *l,
                         int32_t scheme, int64_t m)
{
    int64_t row, k = make_rows(w, scheme, N, &row);
    const union ir_attr attr = {.dequant_matmul = {.scheme = scheme, .k = k, .block_size = 32}};
    struct cpu_tensor in[2] = {tensor(w->x, RLX_DTYPE_f32, 2, m, k, 1),
                               tensor(w->packed, RLX_DTYPE_u8, 2, N, row, 1)};
    struct cpu_tensor out = tensor(w->y, RLX_DTYPE_f32, 2, m, N, 1);

    test_note(t, "%s, %d rows, at %s", quant_scheme(scheme)->display, (int)m, l->isa);
    fill_numbers(w->x, m * k, 9);
    run_alike(
        t, l->family[FAMILY_dequant_matmul],
        (struct cpu_call){
            .op = RLX_OP_dequant_matmul, .attr = &attr, .in_count = 2, .in = in, .out = &out});
    for (int64_t i = 0; i < m * N; i++)
        expect_product(t, w->y[i], w->x + i / N * k, w->w + i % N * k, 1, k);
}

static void check_grouped(struct test *t, struct world *w, const struct cpu_kernels *l,
                          int32_t scheme)
{
    enum { COLUMNS = 19 };
    int64_t row, k = make_rows(w, scheme, EXPERTS * COLUMNS, &row);
    const union ir_attr attr = {.dequant_grouped_matmul = {.scheme = scheme, .k = k}};
    int32_t expert[MOST_M];
    struct cpu_tensor in[3] = {tensor(w->x, RLX_DTYPE_f32, 2, MOST_M, k, 1),
                               tensor(w->packed, RLX_DTYPE_u8, 3, EXPERTS, COLUMNS, row),
                               tensor(expert, RLX_DTYPE_i32, 1, MOST_M, 1, 1)};
    struct cpu_tensor out = tensor(w->y, RLX_DTYPE_f32, 2, MOST_M, COLUMNS, 1);

    for (int i = 0; i < MOST_M; i++) /* groups of 1, 0, few and many rows */
        expert[i] = i == 11 ? 4 : i % 9 == 2 ? 0 : i % 2 ? 2 : 3;
    test_note(t, "%s, grouped, at %s", quant_scheme(scheme)->display, l->isa);
    fill_numbers(w->x, MOST_M * k, 10);
    run_alike(t, l->family[FAMILY_dequant_grouped_matmul],
              (struct cpu_call){.op = RLX_OP_dequant_grouped_matmul,
                                .attr = &attr,
                                .in_count = 3,
                                .in = in,
                                .out = &out});
    for (int64_t i = 0; i < MOST_M * COLUMNS; i++) {
        int64_t r = i / COLUMNS, b = expert[r] * COLUMNS + i % COLUMNS;
        expect_product(t, w->y[i], w->x + r * k, w->w + b * k, 1, k);
    }
}

TEST(dequant, products_at_every_level)
{
    static const int64_t rows[] = {1, 3, 8, 9, MOST_M};
    struct world w;

    if (open_world(t, &w))
        for (int l = 0; l < LEVELS; l++)
            for (int32_t scheme = RLX_QUANT_SCHEME_q4_0; level(l) && quant_scheme(scheme);
                 scheme++) {
                for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
                    check_matmul(t, &w, level(l), scheme, rows[i]);
                check_grouped(t, &w, level(l), scheme);
            }
    close_world(&w);
}

/* Bit for bit, but for what a NaN looks like. */
static void expect_same(struct test *t, const float *got, const float *want, int64_t n)
{
    int64_t bad = 0;

    for (int64_t i = 0; i < n; i++)
        bad += isnan(want[i]) ? !isnan(got[i]) : memcmp(&got[i], &want[i], 4) != 0;
    expect_eq(t, bad, 0);
}

TEST(dequant, lookups_and_experts_of_any_bytes)
{
    static const float id[7] = {3, 0, -1, 74, 75, NAN, 12.9f};
    static const int entry[7] = {3, 0, 0, 74, 74, 0, 12};
    struct world w;

    require(t, open_world(t, &w));
    for (int l = 0; l < LEVELS; l++)
        for (int32_t scheme = RLX_QUANT_SCHEME_q4_0; level(l) && quant_scheme(scheme); scheme++) {
            const struct quant_scheme *s = quant_scheme(scheme);
            int64_t row, k = make_rows(&w, scheme, N, &row);
            const union ir_attr look = {.dequant_gather = {.scheme = scheme, .k = k}},
                                moe = {.dequant_moe_weights = {.scheme = scheme, .k = k}};
            uint32_t seed = 5;
            struct cpu_tensor table[2] = {tensor(w.packed, RLX_DTYPE_u8, 2, N, row, 1),
                                          tensor((void *)(uintptr_t)id, RLX_DTYPE_f32, 1, 7, 1, 1)};
            struct cpu_tensor packed = tensor(w.packed, RLX_DTYPE_u8, 3, 3, N / 3, row);
            struct cpu_tensor out = tensor(w.y, RLX_DTYPE_f32, 2, 7, k, 1);

            test_note(t, "%s at %s", s->display, level(l)->isa);
            for (int64_t i = 0; i < N * row; i++) /* scales of NaN, too */
                w.packed[i] = (uint8_t)dice(&seed);
            for (int64_t r = 0; r < N; r++)
                quant_decode_row(scheme, w.packed + r * row, k, w.w + r * k);
            run_alike(t, level(l)->family[FAMILY_dequant_gather],
                      (struct cpu_call){.op = RLX_OP_dequant_gather,
                                        .attr = &look,
                                        .in_count = 2,
                                        .in = table,
                                        .out = &out});
            for (int i = 0; i < 7; i++)
                expect_same(t, w.y + i * k, w.w + entry[i] * k, k);

            out = tensor(w.y, RLX_DTYPE_f32, 3, 3, k, N / 3);
            run_alike(t, level(l)->family[FAMILY_dequant_moe_weights],
                      (struct cpu_call){.op = RLX_OP_dequant_moe_weights,
                                        .attr = &moe,
                                        .in_count = 1,
                                        .in = &packed,
                                        .out = &out});
            for (int64_t r = 0; r < N; r++) {
                float line[MOST_K];
                for (int64_t j = 0; j < k; j++)
                    line[j] = w.y[(r / (N / 3) * k + j) * (N / 3) + r % (N / 3)];
                expect_same(t, line, w.w + r * k, k);
            }
        }
    close_world(&w);
}

/* A scale that is NaN spoils its own row's products, and no others. */
TEST(dequant, a_scale_of_nan_stays_in_its_column)
{
    static const int64_t rows[] = {1, 8, MOST_M};
    struct world w;

    require(t, open_world(t, &w));
    for (int l = 0; l < LEVELS; l++)
        for (size_t i = 0; level(l) && i < sizeof rows / sizeof rows[0]; i++) {
            int64_t row, k = make_rows(&w, RLX_QUANT_SCHEME_q6_k, N, &row);
            const union ir_attr attr = {
                .dequant_matmul = {.scheme = RLX_QUANT_SCHEME_q6_k, .k = k, .block_size = 32}};
            struct cpu_tensor in[2] = {tensor(w.x, RLX_DTYPE_f32, 2, rows[i], k, 1),
                                       tensor(w.packed, RLX_DTYPE_u8, 2, N, row, 1)};
            struct cpu_tensor out = tensor(w.y, RLX_DTYPE_f32, 2, rows[i], N, 1);
            w.packed[37 * row + 210 + 208] = 1; /* the second block of row 37 */
            w.packed[37 * row + 210 + 209] = 0x7e;
            fill_numbers(w.x, rows[i] * k, 9);
            test_note(t, "%d rows at %s", (int)rows[i], level(l)->isa);
            run_alike(t, level(l)->family[FAMILY_dequant_matmul],
                      (struct cpu_call){.op = RLX_OP_dequant_matmul,
                                        .attr = &attr,
                                        .in_count = 2,
                                        .in = in,
                                        .out = &out});
            for (int64_t e = 0; e < rows[i] * N; e++)
                expect_eq(t, isnan(w.y[e]) != 0, e % N == 37);
        }
    close_world(&w);
}

/* ---- scales beside the weight -------------------------------------------------------------- */

static void check_side(struct test *t, const struct cpu_kernels *l, int32_t scheme, int64_t m,
                       int64_t n, int64_t block)
{
    enum { K = 70, MOST_N = 300 };
    static float x[MOST_M * K], y[MOST_M * MOST_N], w[K * MOST_N], scale[K * MOST_N],
        zero[K * MOST_N];
    static uint8_t code[K * MOST_N], scale8[K * MOST_N];
    const struct quant_scheme *s = quant_scheme(scheme);
    bool fp8 = scheme == RLX_QUANT_SCHEME_fp8_e4m3 || scheme == RLX_QUANT_SCHEME_fp8_e5m2;
    const union ir_attr attr = {
        .dequant_matmul = {.scheme = scheme, .k = K, .block_size = block, .n = n}};
    struct quant_side_weight side = {.scheme = scheme,
                                     .block_size = block,
                                     .k = K,
                                     .n = n,
                                     .code = code,
                                     .scale = scale,
                                     .scale_code = scale8,
                                     .zero = zero,
                                     .all = zero,
                                     .scale_count = fp8 ? n : 0};
    int64_t groups = quant_side_groups(&side), codes;
    uint32_t seed = 77;

    for (int64_t i = 0; i < K * n; i++) {
        code[i] = (uint8_t)dice(&seed);
        scale8[i] = (uint8_t)(dice(&seed) & 0xbf);
        scale[i] = (float)dice(&seed) * 0x1p-26f;
        zero[i] = (float)(dice(&seed) % 17) - 8.5f;
    }
    quant_side_code_bytes(&side, &codes);
    for (int64_t i = 0; i < K * n; i++)
        w[i] = quant_side_value(&side, i / n, i % n);
    struct cpu_tensor in[4] = {tensor(x, RLX_DTYPE_f32, 2, m, K, 1),
                               s->nibbles ? tensor(code, RLX_DTYPE_u8, 1, codes, 1, 1)
                                          : tensor(code, RLX_DTYPE_u8, 2, K, n, 1),
                               tensor(scale, RLX_DTYPE_f32, 2, fp8 ? 1 : groups, n, 1),
                               tensor(zero, RLX_DTYPE_f32, 2, groups, n, 1)};
    if (s->scale_is_fp8)
        in[2] = tensor(scale8, RLX_DTYPE_u8, 2, groups, n, 1);
    struct cpu_tensor out = tensor(y, RLX_DTYPE_f32, 2, m, n, 1);
    fill_numbers(x, m * K, 13);
    test_note(t, "%s, %d rows, %d columns, block %d at %s", s->display, (int)m, (int)n, (int)block,
              l->isa);
    run_alike(
        t, l->family[FAMILY_dequant_matmul],
        (struct cpu_call){
            .op = RLX_OP_dequant_matmul, .attr = &attr, .in_count = 4, .in = in, .out = &out});
    for (int64_t i = 0; i < m * n; i++)
        expect_product(t, y[i], x + i / n * K, w + i % n, n, K);
}

TEST(dequant, products_with_scales_beside_at_every_level)
{
    static const int64_t rows[] = {1, 8, 9, MOST_M}, columns[] = {1, 33, 64, 300};

    for (int l = 0; l < LEVELS; l++)
        for (int32_t scheme = 0; level(l) && !quant_scheme(scheme)->is_gguf; scheme++)
            for (size_t i = 0; i < 4; i++)
                for (size_t j = 0; j < 4; j++)
                    check_side(t, level(l), scheme, rows[i], columns[j], (int64_t)(j ? 7 * j : 1));
}

/* ---- scratch ------------------------------------------------------------------------------- */

/* Smaller sizes never take more: one plan serves all sizes up to a bound. */
TEST(dequant, scratch_grows_with_rows)
{
    int64_t row = 144 * 4, k = 1024;
    const union ir_attr attr = {.dequant_matmul = {.scheme = RLX_QUANT_SCHEME_q4_k, .k = k}},
                        group = {
                            .dequant_grouped_matmul = {.scheme = RLX_QUANT_SCHEME_q4_k, .k = k}};

    for (int l = 0; l < LEVELS; l++)
        for (int grouped = 0; level(l) && grouped < 2; grouped++) {
            uint64_t before = 0;
            for (int64_t m = 0; m < 700; m += m < 40 ? 1 : 37) {
                struct cpu_tensor in[3] = {tensor(NULL, RLX_DTYPE_f32, 2, m, k, 1),
                                           tensor(NULL, RLX_DTYPE_u8, 2, 300, row, 1),
                                           tensor(NULL, RLX_DTYPE_i32, 1, m, 1, 1)};
                struct cpu_tensor out = tensor(NULL, RLX_DTYPE_f32, 2, m, 300, 1);
                struct cpu_call c = {.op = RLX_OP_dequant_matmul,
                                     .attr = grouped ? &group : &attr,
                                     .in_count = grouped ? 3 : 2,
                                     .in = in,
                                     .out = &out};
                if (grouped) {
                    c.op = RLX_OP_dequant_grouped_matmul;
                    in[1] = tensor(NULL, RLX_DTYPE_u8, 3, 30, 300, row);
                }
                uint64_t bytes = level(l)->family[FAMILY_dequant_matmul]->scratch(&c);
                expect(t, bytes >= before);
                before = bytes;
            }
        }
}
