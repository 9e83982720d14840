/* products_test.c: the CPU kernels of contraction and windows, on the manual's examples, on odd
 * sizes against plain loops, and with different numbers of threads. */
#include "test.h"

#include "backend/cpu/cpu_kernel.h"

#include <math.h>
#include <string.h>

extern const struct cpu_kernel cpu_matmul_baseline, cpu_fused_matmul_bias_act_baseline,
    cpu_grouped_matmul_baseline, cpu_qmatmul_baseline, cpu_dense_solve_baseline,
    cpu_cholesky_baseline, cpu_det_baseline, cpu_conv_baseline, cpu_conv_transpose_baseline,
    cpu_conv_backward_weight_baseline, cpu_pool_baseline, cpu_im2col_baseline,
    cpu_max_pool_backward_baseline;

enum { MOST = 1 << 17 }; /* elements of the largest tensor here */

static struct cpu_tensor tensor(void *data, rlx_dtype dtype, rlx_list shape)
{
    struct cpu_tensor r = {.data = data, .dtype = dtype, .rank = shape.count, .count = 1};

    for (int32_t i = 0; i < shape.count; i++) {
        r.dim[i] = shape.at[i];
        r.count *= shape.at[i];
    }
    return r;
}

static struct cpu_tensor f32(void *data, rlx_list shape)
{
    return tensor(data, RLX_DTYPE_f32, shape);
}

/* Runs a kernel as a session would: scratch is asked for with no data at hand. */
static void run_on(struct test *t, struct pool *pool, const struct cpu_kernel *k, struct cpu_call c)
{
    struct cpu_tensor in[4], out = *c.out;
    struct cpu_call ask = c;

    for (int32_t i = 0; i < c.in_count; i++) {
        in[i] = c.in[i];
        in[i].data = NULL;
    }
    out.data = NULL;
    ask.in = in;
    ask.out = &out;
    ask.pool = c.pool = pool;
    size_t bytes = k->scratch ? (size_t)k->scratch(&ask) : 0;
    c.scratch = mem_alloc_aligned(mem_default(), bytes, 64);
    if (expect(t, bytes == 0 || c.scratch))
        k->run(&c);
    mem_free_aligned(mem_default(), c.scratch, bytes, 64);
}

/* With one thread, then with three; the bits must be the same. */
static void run(struct test *t, const struct cpu_kernel *k, struct cpu_call c)
{
    static unsigned char first[MOST * 8];
    struct diag d;
    struct pool *pool;
    size_t bytes = (size_t)c.out->count * rlx_dtype_size(c.out->dtype);

    diag_init(&d, NULL);
    require(t, bytes <= sizeof first);
    run_on(t, NULL, k, c);
    if (bytes > 0)
        memcpy(first, c.out->data, bytes);
    require_ok(t, pool_create(&pool, 3, mem_default(), &d));
    if (bytes > 0)
        memset(c.out->data, 0xa5, bytes);
    run_on(t, pool, k, c);
    if (bytes > 0)
        expect_bytes(t, c.out->data, first, bytes);
    pool_destroy(pool);
}

/* Numbers that f32 adds exactly. */
static void fill(float *x, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)(seed >> 28) - 8;
    }
}

static float a[MOST], b[MOST], y[MOST], want[MOST];

/* ---- contraction --------------------------------------------------------------------------- */

static void check_matmul(struct test *t, int64_t m, int64_t n, int64_t k, bool ta, bool tb)
{
    const union ir_attr attr = {.matmul = {ta, tb}};
    const struct cpu_tensor in[2] = {f32(a, ta ? RLX_LIST(k, m) : RLX_LIST(m, k)),
                                     f32(b, tb ? RLX_LIST(n, k) : RLX_LIST(k, n))};
    const struct cpu_tensor out = f32(y, RLX_LIST(m, n));

    test_note(t, "%d x %d x %d, transposed %d %d", (int)m, (int)n, (int)k, ta, tb);
    fill(a, m * k, 1);
    fill(b, k * n, 2);
    for (int64_t i = 0; i < m * n; i++) {
        want[i] = 0;
        for (int64_t j = 0; j < k; j++)
            want[i] +=
                a[ta ? j * m + i / n : i / n * k + j] * b[tb ? i % n * k + j : j * n + i % n];
    }
    run(t, &cpu_matmul_baseline,
        (struct cpu_call){
            .op = RLX_OP_matmul, .attr = &attr, .in_count = 2, .in = in, .out = &out});
    expect_close(t, y, want, (size_t)(m * n), 0, 0);
}

TEST(products, matmul_of_any_size)
{
    static const int64_t size[][3] = {{1, 1, 1},      {1, 300, 70},   {300, 1, 70},  {8, 9, 10},
                                      {9, 8, 1100},   {13, 47, 29},   {37, 53, 300}, {3, 4, 0},
                                      {65, 130, 257}, {10, 11, 3000}, {0, 3, 4}};

    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (int tr = 0; tr < 4; tr++)
            check_matmul(t, size[i][0], size[i][1], size[i][2], tr & 1, tr & 2);
}

TEST(products, matmul_broadcasts_its_batch)
{
    const union ir_attr attr = {.matmul = {false, false}};
    const struct cpu_tensor in[2] = {f32(a, RLX_LIST(2, 1, 4, 5)), f32(b, RLX_LIST(3, 5, 6))};
    const struct cpu_tensor out = f32(y, RLX_LIST(2, 3, 4, 6));

    fill(a, 40, 3);
    fill(b, 90, 4);
    for (int i = 0; i < 144; i++) {
        int col = i % 6, row = i / 6 % 4, p = i / 24 % 3, q = i / 72;
        want[i] = 0;
        for (int k = 0; k < 5; k++)
            want[i] += a[(q * 4 + row) * 5 + k] * b[(p * 5 + k) * 6 + col];
    }
    run(t, &cpu_matmul_baseline,
        (struct cpu_call){
            .op = RLX_OP_matmul, .attr = &attr, .in_count = 2, .in = in, .out = &out});
    expect_close(t, y, want, 144, 0, 0);
}

TEST(products, bias_and_activation_come_after_the_sum)
{
    const union ir_attr attr = {.fused_matmul_bias_act = {.activation = RLX_OP_relu}};
    float bias[40];
    const struct cpu_tensor in[3] = {f32(a, RLX_LIST(30, 20)), f32(b, RLX_LIST(20, 40)),
                                     f32(bias, RLX_LIST(40))};
    const struct cpu_tensor out = f32(y, RLX_LIST(30, 40));

    fill(a, 600, 5);
    fill(b, 800, 6);
    fill(bias, 40, 7);
    for (int i = 0; i < 1200; i++) {
        float sum = bias[i % 40];
        for (int k = 0; k < 20; k++)
            sum += a[i / 40 * 20 + k] * b[k * 40 + i % 40];
        want[i] = sum > 0 ? sum : 0;
    }
    run(t, &cpu_fused_matmul_bias_act_baseline,
        (struct cpu_call){.op = RLX_OP_fused_matmul_bias_act,
                          .attr = &attr,
                          .in_count = 3,
                          .in = in,
                          .out = &out});
    expect_close(t, y, want, 1200, 0, 0);
}

TEST(products, an_expert_that_is_not_there_is_a_zero_row_and_reported)
{
    int32_t expert[5] = {2, 0, 7, 2, -1};
    struct cpu_fault fault = {.position = INT64_MAX};
    const struct cpu_tensor in[3] = {f32(a, RLX_LIST(5, 4)), f32(b, RLX_LIST(3, 4, 6)),
                                     tensor(expert, RLX_DTYPE_i32, RLX_LIST(5))};
    const struct cpu_tensor out = f32(y, RLX_LIST(5, 6));

    fill(a, 20, 8);
    fill(b, 72, 9);
    for (int i = 0; i < 30; i++) {
        int32_t e = expert[i / 6];
        want[i] = 0;
        for (int k = 0; k < 4 && e >= 0 && e < 3; k++)
            want[i] += a[i / 6 * 4 + k] * b[(e * 4 + k) * 6 + i % 6];
    }
    run(t, &cpu_grouped_matmul_baseline,
        (struct cpu_call){
            .op = RLX_OP_grouped_matmul, .in_count = 3, .in = in, .out = &out, .fault = &fault});
    expect_close(t, y, want, 30, 0, 0);
    expect_eq(t, (int64_t)fault.position, 2);
    expect_eq(t, (int64_t)fault.value, 7);
}

TEST(products, qmatmul_rounds_to_even_and_saturates)
{
    int8_t x[6] = {1, 2, 3, 127, 127, 127}, w[6] = {1, 0, 1, 1, 127, 0}, q[4];
    int32_t bias[2] = {-2, 1};
    const union ir_attr attr = {.qmatmul = {.x_zp = 1, .w_zp = 0, .out_zp = -1, .mult = 0.5f}};
    const struct cpu_tensor in[3] = {tensor(x, RLX_DTYPE_i8, RLX_LIST(2, 3)),
                                     tensor(w, RLX_DTYPE_i8, RLX_LIST(3, 2)),
                                     tensor(bias, RLX_DTYPE_i32, RLX_LIST(2))};
    const struct cpu_tensor out = tensor(q, RLX_DTYPE_i8, RLX_LIST(2, 2));

    run(t, &cpu_qmatmul_baseline,
        (struct cpu_call){
            .op = RLX_OP_qmatmul, .attr = &attr, .in_count = 3, .in = in, .out = &out});
    expect_eq(t, q[0], 125); /* (0 + 1 + 2 * 127 - 2) / 2 = 126.5, to 126, and out_zp */
    expect_eq(t, q[1], 0);   /* (0 + 1 + 0 + 1) / 2 */
    expect_eq(t, q[2], 127); /* far beyond */
    expect_eq(t, q[3], 63);  /* (126 + 1) / 2 = 63.5, to 64 */
}

TEST(products, solving_needs_no_pivot_on_the_diagonal)
{
    double m[9] = {0, 2, 0, 1, 0, 0, 0, 0, 4}, rhs[3] = {6, 5, 8}, x[3], value;
    const struct cpu_tensor in[2] = {tensor(m, RLX_DTYPE_f64, RLX_LIST(3, 3)),
                                     tensor(rhs, RLX_DTYPE_f64, RLX_LIST(3))};
    const struct cpu_tensor out = tensor(x, RLX_DTYPE_f64, RLX_LIST(3));
    const struct cpu_tensor scalar = tensor(&value, RLX_DTYPE_f64, RLX_EMPTY);

    run(t, &cpu_dense_solve_baseline,
        (struct cpu_call){.op = RLX_OP_dense_solve, .in_count = 2, .in = in, .out = &out});
    expect_near(t, x[0], 5, 0);
    expect_near(t, x[1], 3, 0);
    expect_near(t, x[2], 2, 0);
    run(t, &cpu_det_baseline,
        (struct cpu_call){.op = RLX_OP_det, .in_count = 1, .in = in, .out = &scalar});
    expect_near(t, value, -8, 0);
    run(t, &cpu_det_baseline,
        (struct cpu_call){.op = RLX_OP_logdet, .in_count = 1, .in = in, .out = &scalar});
    expect_near(t, value, log(8), 1e-15);
}

TEST(products, cholesky_reads_one_half_and_says_nan)
{
    double m[4] = {4, NAN, 2, 10}, l[4];
    const struct cpu_tensor in = tensor(m, RLX_DTYPE_f64, RLX_LIST(2, 2));
    const struct cpu_tensor out = tensor(l, RLX_DTYPE_f64, RLX_LIST(2, 2));
    const struct cpu_call c = {.op = RLX_OP_cholesky, .in_count = 1, .in = &in, .out = &out};
    static const double lower[4] = {2, 0, 1, 3};

    run(t, &cpu_cholesky_baseline, c);
    expect_bytes(t, l, lower, sizeof lower);
    m[3] = -1;
    run(t, &cpu_cholesky_baseline, c);
    expect(t, isnan(l[3]));
    expect_near(t, l[2], 1, 0);
}

/* ---- windows ------------------------------------------------------------------------------- */

TEST(products, conv_of_the_manual)
{
    float x[5] = {1, 2, 3, 4, 5}, w[3] = {1, 0, -1}, out_data[3];
    const union ir_attr attr = {
        .conv = {RLX_LIST(3), RLX_LIST(2), RLX_LIST(1), RLX_LIST(1), .groups = 1}};
    const struct cpu_tensor in[2] = {f32(x, RLX_LIST(1, 1, 5)), f32(w, RLX_LIST(1, 1, 3))};
    const struct cpu_tensor out = f32(out_data, RLX_LIST(1, 1, 3));

    run(t, &cpu_conv_baseline,
        (struct cpu_call){.op = RLX_OP_conv, .attr = &attr, .in_count = 2, .in = in, .out = &out});
    expect_close(t, out_data, ((float[]){-2, -2, 4}), 3, 0, 0);
}

/* x [2,5,h,w], w [6,5,3,2], stride and padding as given. */
static float conv_at(const float *x, const float *w, int64_t h, int64_t wd, const int64_t *at,
                     int64_t stride, int64_t pad)
{
    float sum = 0;

    for (int64_t ch = 0; ch < 5; ch++)
        for (int64_t i = 0; i < 3; i++)
            for (int64_t j = 0; j < 2; j++) {
                int64_t p = at[2] * stride + i - pad, q = at[3] * stride + j - pad;
                if (p >= 0 && p < h && q >= 0 && q < wd)
                    sum += w[((at[1] * 5 + ch) * 3 + i) * 2 + j] *
                           x[((at[0] * 5 + ch) * h + p) * wd + q];
            }
    return sum;
}

static void check_conv(struct test *t, int64_t h, int64_t w, int64_t stride, int64_t pad)
{
    const union ir_attr attr = {.conv = {RLX_LIST(3, 2), RLX_LIST(stride, stride),
                                         RLX_LIST(pad, pad), RLX_LIST(1, 1), .groups = 1}};
    int64_t ho = (h + 2 * pad - 3) / stride + 1, wo = (w + 2 * pad - 2) / stride + 1;
    const struct cpu_tensor in[2] = {f32(a, RLX_LIST(2, 5, h, w)), f32(b, RLX_LIST(6, 5, 3, 2))};
    const struct cpu_tensor out = f32(y, RLX_LIST(2, 6, ho, wo));

    for (int64_t i = 0; i < out.count; i++) {
        int64_t at[4] = {i / (6 * ho * wo), i / (ho * wo) % 6, i / wo % ho, i % wo};
        want[i] = conv_at(a, b, h, w, at, stride, pad);
    }
    run(t, &cpu_conv_baseline,
        (struct cpu_call){.op = RLX_OP_conv, .attr = &attr, .in_count = 2, .in = in, .out = &out});
    expect_close(t, y, want, (size_t)out.count, 0, 0);
}

TEST(products, conv_of_any_size)
{
    fill(a, MOST, 10);
    fill(b, 180, 11);
    check_conv(t, 7, 9, 1, 1);
    check_conv(t, 11, 5, 2, 0);
    check_conv(t, 40, 33, 1, 2);
    check_conv(t, 3, 2, 3, 0);
}

TEST(products, an_infinite_weight_does_not_meet_the_padding)
{
    fill(a, 2 * 5 * 6 * 6, 12);
    fill(b, 180, 13);
    for (int64_t i = 0; i < 360; i++)
        a[i] += 9;   /* so that infinity times x is infinity */
    b[0] = INFINITY; /* tap (0,0): outside for the first row and column */
    check_conv(t, 6, 6, 1, 1);
}

/* The transposed convolution scatters; each element of x times all taps. */
TEST(products, conv_transpose_scatters)
{
    const union ir_attr attr = {.conv_transpose = {RLX_LIST(3, 3), RLX_LIST(2, 3), RLX_LIST(1, 0),
                                                   RLX_LIST(1, 2), RLX_LIST(1, 0), .groups = 1}};
    enum { H = 4, W = 5, HO = 3 * 2 - 2 + 2 + 1 + 1, WO = 4 * 3 + 4 + 1 };
    const struct cpu_tensor in[2] = {f32(a, RLX_LIST(1, 7, H, W)), f32(b, RLX_LIST(7, 5, 3, 3))};
    const struct cpu_tensor out = f32(y, RLX_LIST(1, 5, HO, WO));

    fill(a, 7 * H * W, 14);
    fill(b, 7 * 5 * 9, 15);
    memset(want, 0, 5 * HO * WO * sizeof *want);
    for (int e = 0; e < 7 * H * W * 5 * 9; e++) {
        int j = e % 3, i = e / 3 % 3, co = e / 9 % 5, q = e / 45 % W, p = e / (45 * W) % H;
        int ci = e / (45 * W * H), yo = p * 2 + i - 1, xo = q * 3 + j * 2;
        if (yo >= 0 && yo < HO && xo < WO)
            want[(co * HO + yo) * WO + xo] +=
                a[(ci * H + p) * W + q] * b[(ci * 5 + co) * 9 + i * 3 + j];
    }
    run(t, &cpu_conv_transpose_baseline,
        (struct cpu_call){
            .op = RLX_OP_conv_transpose, .attr = &attr, .in_count = 2, .in = in, .out = &out});
    expect_close(t, y, want, 5 * HO * WO, 0, 0);
}

TEST(products, weight_gradient_sums_over_images)
{
    const union ir_attr attr = {
        .conv_backward_weight = {RLX_LIST(3), RLX_LIST(1), RLX_LIST(1), RLX_LIST(1), .groups = 1}};
    enum { N = 3, C = 4, O = 5, L = 1000 };
    const struct cpu_tensor in[2] = {f32(a, RLX_LIST(N, C, L)), f32(b, RLX_LIST(N, O, L))};
    const struct cpu_tensor out = f32(y, RLX_LIST(O, C, 3));

    fill(a, N * C * L, 16);
    fill(b, N * O * L, 17);
    for (int e = 0; e < O * C * 3; e++) {
        want[e] = 0;
        for (int n = 0; n < N; n++)
            for (int o = 0; o < L; o++)
                if (o + e % 3 >= 1 && o + e % 3 <= L)
                    want[e] +=
                        a[(n * C + e / 3 % C) * L + o + e % 3 - 1] * b[(n * O + e / 12) * L + o];
    }
    run(t, &cpu_conv_backward_weight_baseline,
        (struct cpu_call){.op = RLX_OP_conv_backward_weight,
                          .attr = &attr,
                          .in_count = 2,
                          .in = in,
                          .out = &out});
    expect_close(t, y, want, O * C * 3, 0, 0);
}

static void pool_4(struct test *t, int32_t kind, bool count_pad, float *x, float *out)
{
    const union ir_attr attr = {.pool = {kind, RLX_LIST(3), RLX_LIST(2), RLX_LIST(1), count_pad}};
    const struct cpu_tensor in = f32(x, RLX_LIST(1, 1, 4)), to = f32(out, RLX_LIST(1, 1, 2));

    run(t, &cpu_pool_baseline,
        (struct cpu_call){.op = RLX_OP_pool, .attr = &attr, .in_count = 1, .in = &in, .out = &to});
}

TEST(products, pool_of_the_manual)
{
    float x[4] = {1, 2, 3, 4}, got[2];

    pool_4(t, RLX_POOL_KIND_mean, true, x, got);
    expect_close(t, got, ((float[]){1, 3}), 2, 0, 0);
    pool_4(t, RLX_POOL_KIND_mean, false, x, got);
    expect_close(t, got, ((float[]){1.5f, 3}), 2, 0, 0);
    pool_4(t, RLX_POOL_KIND_max, true, x, got);
    expect_close(t, got, ((float[]){2, 4}), 2, 0, 0);
    pool_4(t, RLX_POOL_KIND_prod, true, x, got);
    expect_close(t, got, ((float[]){2, 24}), 2, 0, 0);
    x[1] = NAN;
    pool_4(t, RLX_POOL_KIND_min, true, x, got);
    expect(t, isnan(got[0]) && isnan(got[1]));
}

TEST(products, max_pool_sends_a_tie_to_the_first_and_nan_wins)
{
    float x[5] = {2, 2, 1, NAN, 7}, dy[3] = {1, 10, 100}, dx[5];
    const union ir_attr attr = {.max_pool_backward = {RLX_LIST(3), RLX_LIST(1), RLX_LIST(0)}};
    const struct cpu_tensor in[2] = {f32(x, RLX_LIST(1, 1, 5)), f32(dy, RLX_LIST(1, 1, 3))};
    const struct cpu_tensor out = f32(dx, RLX_LIST(1, 1, 5));

    run(t, &cpu_max_pool_backward_baseline,
        (struct cpu_call){
            .op = RLX_OP_max_pool_backward, .attr = &attr, .in_count = 2, .in = in, .out = &out});
    expect_close(t, dx, ((float[]){1, 0, 0, 110, 0}), 5, 0, 0);
}

TEST(products, im2col_of_the_manual)
{
    float x[4] = {1, 2, 3, 4}, got[36];
    const union ir_attr attr = {
        .im2col = {RLX_LIST(2, 2), RLX_LIST(1, 1), RLX_LIST(1, 1), RLX_LIST(1, 1)}};
    const struct cpu_tensor in = f32(x, RLX_LIST(1, 1, 2, 2)), out = f32(got, RLX_LIST(9, 4));

    run(t, &cpu_im2col_baseline,
        (struct cpu_call){
            .op = RLX_OP_im2col, .attr = &attr, .in_count = 1, .in = &in, .out = &out});
    expect_close(t, got, ((float[]){0, 0, 0, 1}), 4, 0, 0);
    expect_close(t, got + 16, ((float[]){1, 2, 3, 4}), 4, 0, 0);
}
