/* index_order_test.c: indices of any type as integers, elements as keys in the same order, and
 * products that do not overflow: lib/index, lib/order and lib/product, run by the interpreter. */
#include <stdio.h>

#include "interpret.h"

/* Numbers of all sizes, and the special ones. */
static void fill_doubles(double *x, int n)
{
    static const double special[] = {0,       -0.0,     0.99,   -0.99,    1,          -1,
                                     0x1p31,  -0x1p31,  0x1p32, 0x1p52,   0x1p53 + 2, 0x1p62,
                                     0x1p63,  -0x1p63,  0x1p64, INFINITY, -INFINITY,  NAN,
                                     0x1p-60, -0x1p-60, 1e300,  -1e300,   5e-324,     -5e-324};
    uint64_t seed = 11;

    for (int i = 0; i < n; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        x[i] = ldexp((double)((int64_t)seed >> 11), (int)(seed >> 40 & 63) - 60);
        if (i < (int)(sizeof special / sizeof special[0]))
            x[i] = special[i];
    }
}

static int64_t index_of(double x)
{
    if (isnan(x) || x <= -0x1p63)
        return INT64_MIN;
    return x >= 0x1p63 ? INT64_MAX : (int64_t)x;
}

TEST(library, floats_are_indices_towards_zero)
{
    enum { N = 2000 };
    static double x[N];
    static float single[N];
    static int64_t y[N];
    static uint32_t z[N];
    static const char text[] =
        "use \"lib/index\"\n"
        "kernel k<I: type, IK: size>(x: in [I], y: out [u32x2], z: out [u32]) group(1) {\n"
        "    y[group.x] = index_of(x[group.x], IK)\n"
        "    z[group.x] = clamped_index(x[group.x], IK, 1000)\n}\n";
    struct source s;

    fill_doubles(x, N);
    for (int i = 0; i < N; i++)
        single[i] = (float)x[i];
    for (int wide = 0; wide < 2; wide++) {
        if (!open_kernel(t, &s, text, wide ? "I=u64,IK=5" : "I=f32,IK=4"))
            return;
        interpret(&s, (void *const[]){wide ? (void *)x : (void *)single, y, z}, NULL, N);
        source_close(&s);
        for (int i = 0; i < N; i++) {
            double from = wide ? x[i] : (double)single[i];
            int64_t want = index_of(from), near = want < 0 ? 0 : want > 999 ? 999 : want;
            if (y[i] != want || z[i] != near) {
                fail(t, "%a is %lld, read at %u", from, (long long)y[i], z[i]);
                break;
            }
        }
    }
    expect_eq(t, y[0], 0);
}

/* NaN is the largest, and zeros are equal. */
static int order_of(double a, double b)
{
    if (isnan(a) || isnan(b))
        return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
    return (a > b) - (a < b);
}

TEST(library, keys_are_in_the_order_of_elements)
{
    enum { N = 600 };
    static double x[N];
    static float single[N];
    static uint64_t y[N];
    static uint32_t z[N];
    struct source s;

    fill_doubles(x, N);
    for (int i = 0; i < N; i++)
        single[i] = (float)x[i];
    if (!open_kernel(t, &s,
                     "use \"lib/order\"\n"
                     "kernel k(x: in [u32x2], w: in [f32], y: out [u32x2], z: out [u32]) group(1) {"
                     "\n    y[group.x] = key_64(x[group.x], ORDER_FLOAT)\n"
                     "    z[group.x] = key_32(w[group.x], ORDER_FLOAT)\n}\n",
                     ""))
        return;
    interpret(&s, (void *const[]){x, single, y, z}, NULL, N);
    source_close(&s);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int wide = (y[i] > y[j]) - (y[i] < y[j]), narrow = (z[i] > z[j]) - (z[i] < z[j]);
            if (wide != order_of(x[i], x[j]) ||
                narrow != order_of((double)single[i], (double)single[j])) {
                fail(t, "%a and %a: orders %d and %d", x[i], x[j], wide, narrow);
                return;
            }
        }
    expect(t, y[17] == UINT64_MAX);
}

TEST(library, products_neither_overflow_nor_vanish)
{
    enum { N = 40 };
    static const char text[] =
        "use \"lib/product\"\n"
        "kernel k(x: in [f32], y: out [f32], n: u32) group(1) {\n"
        "    var run = f32x2(1.0, 0.0)\n"
        "    for i in 0..n {\n        run = scaled_product(run, scaled(x[i]))\n"
        "        y[i] = unscaled(run)\n    }\n}\n";
    static float x[N], y[N];
    struct source s;
    double product = 1;

    for (int i = 0; i < N; i++) /* up to 1e60 and down to 1e-60, by way of a subnormal */
        x[i] = i % 4 < 2 ? 3e30f : i == 2 ? 1e-40f : 1.1e-29f;
    x[N - 1] = -0.0f;
    if (!open_kernel(t, &s, text, ""))
        return;
    interpret(&s, (void *const[]){x, y}, (const uint32_t[]){N}, 1);
    source_close(&s);
    for (int i = 0; i < N; i++) {
        product *= (double)x[i];
        double want = (double)(float)product;
        if (!(y[i] == (float)product || fabs((double)y[i] - want) <= 4e-6 * fabs(want))) {
            fail(t, "product %d is %a, wanted %a", i, (double)y[i], want);
            break;
        }
    }
    expect(t, y[N - 1] == 0);
}
