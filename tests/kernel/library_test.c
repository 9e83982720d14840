/* library_test.c: the functions of kernels/lib, run by the interpreter. */
#include <stdio.h>

#include "base/half.h"
#include "interpret.h"

TEST(library, every_f16_is_read_and_written)
{
    enum { N = 65536 };
    static uint16_t x[N], back[N];
    static float y[N];
    struct source s;

    for (uint32_t i = 0; i < N; i++)
        x[i] = (uint16_t)i;
    if (!open_kernel(
            t, &s,
            "kernel k(x: in [f16], y: out [f32], z: out [f16]) group(1) {\n"
            "    let v = f32(x[group.x])\n    y[group.x] = v\n    z[group.x] = f16(v)\n}\n",
            ""))
        return;
    interpret(&s, (void *const[]){x, y, back}, NULL, N);
    for (uint32_t i = 0; i < N; i++) {
        bool nan = (i & 0x7fff) > 0x7c00;
        uint32_t got = (uint32_t)of_f32(y[i]), want = (uint32_t)of_f32(f16_to_f32((uint16_t)i));
        if (!(nan ? (got & 0x7fffffff) > 0x7f800000 && (back[i] & 0x7fff) > 0x7c00
                  : got == want && back[i] == i)) {
            fail(t, "%04x is read as %08x and written as %04x", i, got, back[i]);
            break;
        }
    }
    expect(t, y[0x3c00] == 1);
    source_close(&s);
}

TEST(library, floats_are_rounded_to_even)
{
    enum { N = 20000 };
    static float x[N];
    static uint16_t half[N], brain[N];
    struct source s;
    uint64_t seed = 1;

    for (uint32_t i = 0; i < N; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1;
        uint32_t bits = (uint32_t)(seed >> 32);
        if (i % 2) /* about the range of f16, and halfway between two of them */
            bits = ((0x33000000 + bits % 0x15000000) & ~0xfffu) | (i % 4 == 1 ? 0x1000 : 0);
        x[i] = as_f32(bits);
    }
    if (!open_kernel(t, &s,
                     "kernel k(x: in [f32], y: out [f16], z: out [bf16]) group(1) {\n"
                     "    y[group.x] = f16(x[group.x])\n    z[group.x] = bf16(x[group.x])\n}\n",
                     ""))
        return;
    interpret(&s, (void *const[]){x, half, brain}, NULL, N);
    for (uint32_t i = 0; i < N; i++)
        if (!isnan(x[i]) && (half[i] != f32_to_f16(x[i]) || brain[i] != f32_to_bf16(x[i]))) {
            fail(t, "%a is %04x and %04x, wanted %04x and %04x", (double)x[i], half[i], brain[i],
                 f32_to_f16(x[i]), f32_to_bf16(x[i]));
            break;
        }
    expect(t, x[1] == x[1]);
    source_close(&s);
}

static const char arithmetic[] =
    "kernel k<T: integer>(a: in [T], b: in [T], y: out [T], f: out [f32]) group(1) {\n"
    "    let g = group.x\n    let x = a[g]\n    let z = b[g]\n    let o = g * 9\n"
    "    y[o] = x + z\n    y[o + 1] = x - z\n    y[o + 2] = x * z\n    y[o + 3] = x / z\n"
    "    y[o + 4] = x % z\n    y[o + 5] = x << (g & 63)\n    y[o + 6] = x >> (g & 63)\n"
    "    y[o + 7] = T(x < z) + T(x == z)\n    y[o + 8] = T(f32(x))\n    f[g] = f32(x)\n}\n";

TEST(library, pairs_count_like_64_bits)
{
    enum { N = 600 };
    static int64_t a[N], b[N], y[N * 9];
    static float f[N];
    struct source s;
    uint64_t seed = 5;

    for (uint32_t i = 0; i < N; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        a[i] = (int64_t)(seed ^ seed >> 29) >> (seed >> 58);
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        b[i] = (int64_t)(seed ^ seed >> 29) >> (seed >> 58);
        b[i] = b[i] == 0 || b[i] == -1 ? 7 : b[i];
    }
    if (!open_kernel(t, &s, arithmetic, "T=i64"))
        return;
    interpret(&s, (void *const[]){a, b, y, f}, NULL, N);
    for (uint32_t i = 0; i < N; i++) {
        uint64_t ua = (uint64_t)a[i], ub = (uint64_t)b[i];
        double back = (double)(float)a[i];
        const int64_t want[9] = {(int64_t)(ua + ub),
                                 (int64_t)(ua - ub),
                                 (int64_t)(ua * ub),
                                 a[i] / b[i],
                                 a[i] % b[i],
                                 (int64_t)(ua << (i & 63)),
                                 a[i] >> (i & 63),
                                 (a[i] < b[i]) + (a[i] == b[i]),
                                 back >= 0x1p63 ? INT64_MAX : (int64_t)back};
        for (int k = 0; k < 9; k++)
            if (y[i * 9 + (uint32_t)k] != want[k]) {
                fail(t, "%lld and %lld: result %d is %lld, wanted %lld", (long long)a[i],
                     (long long)b[i], k, (long long)y[i * 9 + (uint32_t)k], (long long)want[k]);
                source_close(&s);
                return;
            }
        expect(t, f[i] == (float)a[i]);
    }
    source_close(&s);
}

struct function {
    const char *name;
    double (*want)(double);
    double from, to;
};

static double sigmoid_of(double x)
{
    return 1 / (1 + exp(-x));
}

static double gelu_of(double x)
{
    return x * 0.5 * erfc(-x / sqrt(2));
}

static double softplus_of(double x)
{
    return log1p(exp(x));
}

TEST(library, functions_are_close)
{
    static const struct function functions[] = {{"exp", exp, -87, 88},
                                                {"log", log, 1e-38, 1e4},
                                                {"tanh", tanh, -12, 12},
                                                {"erf", erf, -6, 6},
                                                {"sigmoid", sigmoid_of, -80, 80},
                                                {"gelu", gelu_of, -8, 8},
                                                {"softplus", softplus_of, -60, 60}};
    enum { N = 4000 };
    static float x[N], y[N];
    char text[160];
    struct source s;

    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
        const struct function *fn = &functions[f];
        for (int i = 0; i < N; i++)
            x[i] = (float)(fn->from + (fn->to - fn->from) * i / N);
        snprintf(text, sizeof text,
                 "use \"lib/math\"\nkernel k(x: in [f32], y: out [f32]) group(1) {\n"
                 "    y[group.x] = %s(x[group.x])\n}\n",
                 fn->name);
        if (!open_kernel(t, &s, text, ""))
            return;
        interpret(&s, (void *const[]){x, y}, NULL, N);
        for (int i = 0; i < N; i++) {
            double want = fn->want((double)x[i]);
            if (!(fabs((double)y[i] - want) <= 1e-6 * fabs(want) + 2e-7)) {
                fail(t, "%s(%a) is %a, wanted %a", fn->name, (double)x[i], (double)y[i], want);
                break;
            }
        }
        source_close(&s);
    }
    expect(t, y[0] > 0);
}

TEST(library, functions_keep_nan_and_infinity)
{
    float x[] = {NAN, INFINITY, -INFINITY, 0, -1}, y[5];
    struct source s;

    if (!open_kernel(t, &s,
                     "use \"lib/math\"\nkernel k(x: in [f32], y: out [f32]) group(1) {\n"
                     "    y[group.x] = log(x[group.x])\n}\n",
                     ""))
        return;
    interpret(&s, (void *const[]){x, y}, NULL, 5);
    expect(t, isnan(y[0]) && isinf(y[1]) && isnan(y[2]) && y[3] == -INFINITY && isnan(y[4]));
    source_close(&s);
    if (!open_kernel(t, &s,
                     "use \"lib/math\"\nkernel k(x: in [f32], y: out [f32]) group(1) {\n"
                     "    y[group.x] = exp(x[group.x])\n}\n",
                     ""))
        return;
    interpret(&s, (void *const[]){x, y}, NULL, 5);
    expect(t, isnan(y[0]) && isinf(y[1]) && y[2] == 0 && y[3] == 1);
    source_close(&s);
}
