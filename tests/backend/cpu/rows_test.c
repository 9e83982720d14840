/* rows_test.c: ops on rows and elements where the sizes are large: results that go past the caches,
 * rows longer than a cache, ends that vectors do not divide. At every instruction set of this CPU,
 * against plain loops in double precision, with one thread and three, and in place. */
#include "base/half.h"
#include "levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct cpu_tensor matrix(void *data, rlx_dtype dtype, int64_t rows, int64_t n)
{
    return (struct cpu_tensor){
        .data = data, .dtype = dtype, .rank = 2, .dim = {rows, n}, .count = rows * n};
}

static struct cpu_tensor vector(void *data, rlx_dtype dtype, int64_t n)
{
    return (struct cpu_tensor){.data = data, .dtype = dtype, .rank = 1, .dim = {n}, .count = n};
}

static float *numbers(int64_t n, uint32_t seed)
{
    float *x = malloc((size_t)n * sizeof *x);

    for (int64_t i = 0; x && i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = ((float)(seed >> 8) * 0x1p-24f - 0.5f) * 8;
    }
    return x;
}

/* Room for n of them where results may go past the caches a vector at a time. */
static float *room(int64_t n)
{
    return aligned_alloc(64, ((size_t)n * sizeof(float) + 63) / 64 * 64);
}

/* In place of x: the same bits as elsewhere, which y holds. Changes x. */
static void run_in_place(struct test *t, const struct cpu_kernel *k, struct cpu_call c,
                         const void *y)
{
    struct cpu_tensor out = *c.out;

    out.data = c.in[0].data;
    c.out = &out;
    run_once(t, k, c, NULL);
    expect_bytes(t, out.data, y, (size_t)out.count * rlx_dtype_size(out.dtype));
}

/* ---- softmax ------------------------------------------------------------------------------- */

static void softmax_reference(const float *x, float *y, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        double top = -(double)INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++)
            top = (double)x[i] > top ? (double)x[i] : top;
        for (int64_t i = 0; i < n; i++)
            sum += exp((double)x[i] - top);
        for (int64_t i = 0; i < n; i++)
            y[i] = top == -(double)INFINITY ? 0 : (float)(exp((double)x[i] - top) / sum);
    }
}

TEST(rows, softmax_of_rows_of_any_length)
{
    static const int64_t size[][2] = {{40001, 107}, {4099, 1024}, {3, 40011},
                                      {9, 40000},   {2, 300007},  {17, 1},
                                      {5, 15},      {5, 64},      {1, 65}};
    const union ir_attr attr = {.softmax = {1}};

    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        int64_t rows = size[i][0], n = size[i][1], count = rows * n;
        float *x = numbers(count, 5), *y = room(count), *want = malloc((size_t)count * 4);
        float *copy = malloc((size_t)count * 4);
        require(t, x && y && want && copy);
        for (int64_t k = 0; k < n && rows > 2; k++) { /* a row of -Inf, and one with little else */
            x[n + k] = -INFINITY;
            x[2 * n + k] = k == n - 1 ? -1000.0f : -INFINITY;
        }
        softmax_reference(x, want, rows, n);
        for (int l = 0; l < LEVELS; l++) {
            if (!level(l))
                continue;
            memcpy(copy, x, (size_t)count * 4);
            const struct cpu_tensor in = matrix(copy, RLX_DTYPE_f32, rows, n);
            const struct cpu_tensor out = matrix(y, RLX_DTYPE_f32, rows, n);
            const struct cpu_call c = {
                .op = RLX_OP_softmax, .attr = &attr, .in_count = 1, .in = &in, .out = &out};
            test_note(t, "%d rows of %d at %s", (int)rows, (int)n, level(l)->isa);
            run_alike(t, level(l)->family[FAMILY_softmax], c);
            expect_close(t, y, want, (size_t)count, 1e-5, 2e-6);
            run_in_place(t, level(l)->family[FAMILY_softmax], c, y);
        }
        free(x), free(y), free(want), free(copy);
    }
}

TEST(rows, softmax_of_halves_and_bad_numbers)
{
    enum { ROWS = 4, N = 70001 };
    const union ir_attr attr = {.softmax = {1}};
    float *x = numbers(ROWS * N, 6), *want = malloc(ROWS * N * 4);
    uint16_t *h = malloc(ROWS * N * 2), *y = malloc(ROWS * N * 2);

    require(t, x && want && h && y);
    for (int64_t i = 0; i < ROWS * N; i++) {
        x[i] = i < N && i < 65536 ? -INFINITY : i / N == 3 && i % N == 777 ? NAN : x[i];
        x[i] = i < N && i >= 65536 ? x[i] - 300 : x[i]; /* far below 0, after blocks of -Inf */
        h[i] = f32_to_bf16(x[i]);
        x[i] = bf16_to_f32(h[i]);
    }
    softmax_reference(x, want, ROWS - 1, N);
    for (int l = 0; l < LEVELS; l++) {
        if (!level(l))
            continue;
        const struct cpu_tensor in = matrix(h, RLX_DTYPE_bf16, ROWS, N);
        const struct cpu_tensor out = matrix(y, RLX_DTYPE_bf16, ROWS, N);
        test_note(t, "at %s", level(l)->isa);
        run_alike(t, level(l)->family[FAMILY_softmax],
                  (struct cpu_call){
                      .op = RLX_OP_softmax, .attr = &attr, .in_count = 1, .in = &in, .out = &out});
        for (int64_t i = 0; i < (ROWS - 1) * N; i++)
            x[i] = bf16_to_f32(y[i]);
        expect_close(t, x, want, (ROWS - 1) * N, 1.0 / 128, 1e-30);
        for (int64_t i = 0; i < N; i += 1000)
            expect(t, isnan(bf16_to_f32(y[3 * N + i])));
    }
    free(x), free(want), free(h), free(y);
}

/* ---- norms --------------------------------------------------------------------------------- */

static void norm_reference(const float *x, const float *residual, const float *gamma,
                           const float *beta, float *y, int64_t rows, int64_t n, bool centred,
                           double eps)
{
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < n; i++)
            mean += (double)x[r * n + i] + (residual ? (double)residual[r * n + i] : 0);
        mean = centred ? mean / (double)n : 0;
        for (int64_t i = 0; i < n; i++) {
            double v = (double)x[r * n + i] + (residual ? (double)residual[r * n + i] : 0) - mean;
            squares += v * v;
        }
        for (int64_t i = 0; i < n; i++) {
            double v = (double)x[r * n + i] + (residual ? (double)residual[r * n + i] : 0) - mean;
            y[r * n + i] =
                (float)(v / sqrt(squares / (double)n + eps) * (double)gamma[i] + (double)beta[i]);
        }
    }
}

TEST(rows, norms_of_rows_of_any_length)
{
    static const int64_t size[][2] = {{40001, 107}, {4099, 1024}, {3, 40011},
                                      {20, 40000},  {2, 300007},  {17, 1}};

    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        int64_t rows = size[i][0], n = size[i][1], count = rows * n;
        float *x = numbers(count, 7), *residual = numbers(count, 8),
              *copy = malloc((size_t)count * 4);
        float *gamma = numbers(n, 9), *beta = numbers(n, 10);
        float *y = room(count), *want = malloc((size_t)count * 4);
        require(t, x && residual && gamma && beta && y && want && copy);
        for (int way = 0; way < 3; way++) {
            static const enum op_family family[] = {FAMILY_layer_norm, FAMILY_rms_norm,
                                                    FAMILY_fused_residual_norm};
            static const rlx_op op[] = {RLX_OP_layer_norm, RLX_OP_rms_norm,
                                        RLX_OP_fused_residual_ln};
            const union ir_attr attr[] = {{.layer_norm = {1, 1e-5f}},
                                          {.rms_norm = {1, 1e-5f}},
                                          {.fused_residual_norm = {false, 1e-5f}}};
            norm_reference(x, way == 2 ? residual : NULL, gamma, beta, want, rows, n, way != 1,
                           1e-5);
            for (int l = 0; l < LEVELS; l++) {
                if (!level(l))
                    continue;
                memcpy(copy, x, (size_t)count * 4);
                struct cpu_tensor in[4] = {matrix(copy, RLX_DTYPE_f32, rows, n)};
                const struct cpu_tensor out = matrix(y, RLX_DTYPE_f32, rows, n);
                int32_t at = 1;
                if (way == 2)
                    in[at++] = matrix(residual, RLX_DTYPE_f32, rows, n);
                in[at++] = vector(gamma, RLX_DTYPE_f32, n);
                in[at++] = vector(beta, RLX_DTYPE_f32, n);
                const struct cpu_call c = {
                    .op = op[way], .attr = &attr[way], .in_count = at, .in = in, .out = &out};
                test_note(t, "op %d, %d rows of %d at %s", way, (int)rows, (int)n, level(l)->isa);
                run_alike(t, level(l)->family[family[way]], c);
                expect_close(t, y, want, (size_t)count, 2e-5, 2e-5);
                run_in_place(t, level(l)->family[family[way]], c, y);
            }
        }
        free(x), free(residual), free(gamma), free(beta), free(y), free(want), free(copy);
    }
}

/* Squares that are not floats, and values close together. */
TEST(rows, norms_of_extreme_values)
{
    enum { ROWS = 6, N = 1000 };
    static const float scale[ROWS] = {1e-25f, 1, 1e18f, 1e25f, 0.25f, 0};
    static const float about[ROWS] = {0, 0, 0, 0, 1e6f, 3};
    const float eps = 1e-40f;
    const union ir_attr attr[] = {{.layer_norm = {1, eps}}, {.rms_norm = {1, eps}}};
    float *x = numbers(ROWS * N, 14), gamma[N], beta[N], y[ROWS * N], want[ROWS * N];

    require(t, x != NULL);
    for (int i = 0; i < N; i++)
        gamma[i] = 1 + (float)(i % 7), beta[i] = (float)(i % 5);
    for (int i = 0; i < ROWS * N; i++)
        x[i] = x[i] * scale[i / N] + about[i / N];
    for (int way = 0; way < 2; way++) {
        norm_reference(x, NULL, gamma, beta, want, ROWS, N, way == 0, (double)eps);
        for (int l = 0; l < LEVELS; l++) {
            if (!level(l))
                continue;
            const struct cpu_tensor in[3] = {matrix(x, RLX_DTYPE_f32, ROWS, N),
                                             vector(gamma, RLX_DTYPE_f32, N),
                                             vector(beta, RLX_DTYPE_f32, N)};
            const struct cpu_tensor out = matrix(y, RLX_DTYPE_f32, ROWS, N);
            test_note(t, "op %d at %s", way, level(l)->isa);
            run_alike(t, level(l)->family[way ? FAMILY_rms_norm : FAMILY_layer_norm],
                      (struct cpu_call){.op = way ? RLX_OP_rms_norm : RLX_OP_layer_norm,
                                        .attr = &attr[way],
                                        .in_count = 3,
                                        .in = in,
                                        .out = &out});
            expect_close(t, y, want, ROWS * N, 2e-6, 2e-6);
        }
    }
    free(x);
}

/* ---- elements ------------------------------------------------------------------------------ */

TEST(rows, large_results_of_elementwise_ops)
{
    enum { N = (16 << 18) + 77, AT = 3 }; /* 16 MB and some, from an odd address on */
    float *x = numbers(N, 11), *y = malloc((N + AT) * sizeof *y), *b = numbers(N, 12);

    require(t, x && y && b);
    for (int l = 0; l < LEVELS; l++) {
        if (!level(l))
            continue;
        const struct cpu_tensor in[2] = {vector(x, RLX_DTYPE_f32, N), vector(b, RLX_DTYPE_f32, N)};
        const struct cpu_tensor out = vector(y + AT, RLX_DTYPE_f32, N);
        int64_t wrong = 0;
        test_note(t, "at %s", level(l)->isa);
        run_alike(t, level(l)->family[FAMILY_unary],
                  (struct cpu_call){.op = RLX_OP_relu, .in_count = 1, .in = in, .out = &out});
        for (int64_t i = 0; i < N; i++)
            wrong += y[AT + i] != (x[i] < 0 ? 0 : x[i]);
        run_alike(t, level(l)->family[FAMILY_binary],
                  (struct cpu_call){.op = RLX_OP_add, .in_count = 2, .in = in, .out = &out});
        for (int64_t i = 0; i < N; i++)
            wrong += y[AT + i] != x[i] + b[i];
        expect_eq(t, wrong, 0);
    }
    free(x), free(y), free(b);
}

TEST(rows, large_results_of_chains)
{
    enum { ROWS = 4099, N = 1025 };
    const rlx_chain_step chain[3] = {
        {.op = RLX_OP_mul, .in = {RLX_CHAIN_INPUT(0), RLX_CHAIN_INPUT(1)}},
        {.op = RLX_OP_add, .in = {0, RLX_CHAIN_INPUT(2)}},
        {.op = RLX_OP_relu, .in = {1}},
    };
    const union ir_attr attr = {.elementwise_region = {.chain = {chain, 3}}};
    const float half = 0.5f;
    float *x = numbers(ROWS * N, 15), *row = numbers(N, 16), *y = room(ROWS * N);

    require(t, x && row && y);
    for (int l = 0; l < LEVELS; l++) {
        if (!level(l))
            continue;
        const struct cpu_tensor in[3] = {matrix(x, RLX_DTYPE_f32, ROWS, N),
                                         vector(row, RLX_DTYPE_f32, N),
                                         vector((void *)(uintptr_t)&half, RLX_DTYPE_f32, 1)};
        const struct cpu_tensor out = matrix(y, RLX_DTYPE_f32, ROWS, N);
        int64_t wrong = 0;
        test_note(t, "at %s", level(l)->isa);
        run_alike(t, level(l)->family[FAMILY_elementwise_region],
                  (struct cpu_call){.op = RLX_OP_elementwise_region,
                                    .attr = &attr,
                                    .in_count = 3,
                                    .in = in,
                                    .out = &out});
        for (int64_t i = 0; i < (int64_t)ROWS * N; i++) {
            float v = x[i] * row[i % N] + half;
            wrong += y[i] != (v < 0 ? 0 : v);
        }
        expect_eq(t, wrong, 0);
    }
    free(x), free(row), free(y);
}

/* ---- transposes ---------------------------------------------------------------------------- */

static void fill_bytes(unsigned char *x, size_t n)
{
    uint32_t seed = 13;

    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (unsigned char)(seed >> 24);
    }
}

TEST(rows, transposes_of_any_size)
{
    static const int64_t size[][2] = {{1, 70}, {63, 65}, {64, 256}, {130, 259}, {2051, 2053}};
    static const rlx_dtype types[] = {RLX_DTYPE_u8, RLX_DTYPE_f16, RLX_DTYPE_f32, RLX_DTYPE_f64};
    const union ir_attr attr = {.transpose = {.perm = {.count = 2, .at = {1, 0}}}};

    for (size_t i = 0; i < 20; i++) {
        rlx_dtype type = types[i % 4];
        int64_t rows = size[i / 4][0], n = size[i / 4][1];
        size_t one = rlx_dtype_size(type), bytes = (size_t)(rows * n) * one;
        unsigned char *x = malloc(bytes), *y = malloc(bytes);
        require(t, x && y);
        fill_bytes(x, bytes);
        for (int l = 0; l < LEVELS; l++) {
            if (!level(l))
                continue;
            const struct cpu_tensor in = matrix(x, type, rows, n), out = matrix(y, type, n, rows);
            int64_t wrong = 0;
            test_note(t, "%d x %d of %d bytes at %s", (int)rows, (int)n, (int)one, level(l)->isa);
            run_alike(
                t, level(l)->family[FAMILY_transpose],
                (struct cpu_call){
                    .op = RLX_OP_transpose, .attr = &attr, .in_count = 1, .in = &in, .out = &out});
            for (int64_t r = 0; r < rows; r++)
                for (int64_t k = 0; k < n; k++)
                    wrong += memcmp(y + (size_t)(k * rows + r) * one, x + (size_t)(r * n + k) * one,
                                    one) != 0;
            expect_eq(t, wrong, 0);
        }
        free(x), free(y);
    }
}
