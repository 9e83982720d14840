/* The f32 functions of the kernels against the C library in double, over all of f32. */
#define CPU_ISA baseline
#include "backend/cpu/kernels/elementwise/row.h"
#include "backend/cpu/kernels/math.h"
#include "test.h"

static double sigmoid(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double gelu(double x)
{
    return x == -INFINITY ? 0 : 0.5 * x * erfc(-x / sqrt(2));
}

static double gelu_approx(double x)
{
    return x == -INFINITY ? 0 : x * sigmoid(2 * 0.79788456080286536 * (x + 0.044715 * x * x * x));
}

static double silu(double x)
{
    return x == -INFINITY ? 0 : x * sigmoid(x);
}

static double softplus(double x)
{
    return x > 30 ? x : log1p(exp(x));
}

static double log_sigmoid(double x)
{
    return -softplus(-x);
}

static double elu(double x)
{
    return x > 0 ? x : expm1(x);
}

static double mish(double x)
{
    return x * tanh(softplus(x));
}

static double rsqrt(double x)
{
    return x == 0 ? INFINITY : 1 / sqrt(x);
}

static const struct {
    rlx_op op;
    double (*meaning)(double);
} functions[] = {
    {RLX_OP_exp, exp},           {RLX_OP_log, log},   {RLX_OP_tanh, tanh},
    {RLX_OP_sigmoid, sigmoid},   {RLX_OP_erf, erf},   {RLX_OP_gelu, gelu},
    {RLX_OP_silu, silu},         {RLX_OP_elu, elu},   {RLX_OP_gelu_approx, gelu_approx},
    {RLX_OP_softplus, softplus}, {RLX_OP_mish, mish}, {RLX_OP_log_sigmoid, log_sigmoid},
    {RLX_OP_rsqrt, rsqrt},       {RLX_OP_sqrt, sqrt}, {RLX_OP_round, rint},
    {RLX_OP_floor, floor},       {RLX_OP_ceil, ceil}, {RLX_OP_sin, sin},
    {RLX_OP_cos, cos},           {RLX_OP_tan, tan},   {RLX_OP_atan, atan},
};

/* NaN and infinities where they belong, else within the tolerance of ops-core.md 22. */
static bool agrees(rlx_op op, float x, float got, double want)
{
    bool circle = op == RLX_OP_sin || op == RLX_OP_cos || op == RLX_OP_tan;
    double tol = circle ? 1e-6 * (1 + fabs(want)) : 1e-6 * fabs(want) + 1e-7;

    if (want != want || got != got)
        return want != want && got != got;
    if (fabs(want) > (double)3.4028235e38f)
        return (double)fabsf(got) >= 3.4028e38 && (got > 0) == (want > 0);
    return (circle && fabsf(x) > 1000) || fabs((double)got - want) <= tol;
}

TEST(cpu_math, functions_keep_their_tolerance_over_all_of_f32)
{
    enum { N = 4096 };
    static float x[N], y[N];
    const uint32_t stride = test_full() ? 211 : 50021;

    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
        int64_t wrong = 0;
        for (uint64_t bits = 0; bits <= UINT32_MAX;) {
            int n = 0;
            for (; n < N && bits <= UINT32_MAX; bits += stride)
                x[n++] = half_bits_f32((uint32_t)bits);
            cpu_row_unary(functions[f].op, RLX_DTYPE_f32, x, y, n);
            for (int i = 0; i < n; i++) {
                bool ok = agrees(functions[f].op, x[i], y[i], functions[f].meaning((double)x[i]));
                if (!ok && wrong++ == 0)
                    test_note(t, "%s of %.9g is %.9g", op_info(functions[f].op)->name, (double)x[i],
                              (double)y[i]);
            }
        }
        expect_eq(t, wrong, 0);
        test_note(t, "%s", "");
    }
}

TEST(cpu_math, special_values)
{
    float x[5] = {INFINITY, -INFINITY, 0.0f, -0.0f, NAN}, y[5];

    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
        cpu_row_unary(functions[f].op, RLX_DTYPE_f32, x, y, 5);
        for (int i = 0; i < 5; i++) {
            test_note(t, "%s of %g", op_info(functions[f].op)->name, (double)x[i]);
            expect_near(t, y[i], functions[f].meaning((double)x[i]), 1e-7);
        }
    }
    expect(t, signbit(math_round(-0.5f)) != 0);
    expect(t, signbit(math_tanh(-0.0f)) != 0);
}

/* From ops-core.md 23, and the tail that 5.3 asks for. */
TEST(cpu_math, gelu_keeps_its_tail)
{
    const float x[4] = {-3.0f, -6.0f, -9.0f, -12.0f};
    float y[4];

    cpu_row_unary(RLX_OP_gelu, RLX_DTYPE_f32, x, y, 4);
    expect_near(t, y[0], -0.004049694, 1e-8);
    for (int i = 0; i < 4; i++)
        expect_near(t, (double)y[i] / gelu((double)x[i]), 1, 1e-5);
}
