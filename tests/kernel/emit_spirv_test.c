/* emit_spirv_test.c: kernels as SPIR-V, judged by spirv-val. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"

/* Leaves the test, with the reason, where there is none. */
#define NEED_VALIDATOR(t)                                    \
    if (system("spirv-val --version > /dev/null 2>&1") != 0) \
    skip(t, "spirv-val (package spirv-tools) is not installed")

/* Through spirv-val; what it says is the failure. */
static void validate(struct test *t, const uint32_t *words, size_t count, const char *what)
{
    const char *path = test_temp(t, "kernel.spv");
    char command[512], said[1024];

    if (!test_write(t, path, words, count * sizeof *words))
        return;
    snprintf(command, sizeof command, "spirv-val --target-env vulkan1.3 %s 2>&1", path);
    FILE *p = popen(command, "r");
    size_t len = p ? fread(said, 1, sizeof said - 1, p) : 0;
    said[len] = 0;
    bool fine = p && pclose(p) == 0;
    if (!fine && strstr(said, "Invalid capability operand"))
        skip(t, "this spirv-val does not know cooperative matrices");
    if (!fine)
        fail(t, "%s\n%s", said, what);
    else
        expect(t, p != NULL);
}

static void emits(struct test *t, const char *text, const char *defines,
                  const struct kc_features *f)
{
    struct kc_emit how = {.features = f};
    struct source s;
    uint32_t *words;
    size_t count;

    if (source_open(&s, text, defines, f) != RLX_OK ||
        kc_emit_spirv(&s.kir, &how, &s.arena, &words, &count, &s.diag) != RLX_OK)
        fail(t, "%s", s.diag.first.message);
    else
        validate(t, words, count, text);
    source_close(&s);
}

static const char softmax[] =
    "use \"lib/reduce\"\n"
    "kernel k<T: float, WG: size = 256>(x: in [T], y: out [T], cols: u32) group(WG) {\n"
    "    shared part: [f32; WG]\n"
    "    let base = group.x * cols\n"
    "    var top = -inf\n"
    "    for i in local.x..cols by WG { top = larger(top, f32(x[base + i])) }\n"
    "    top = group_max(part, top)\n"
    "    var sum = 0.0\n"
    "    for i in local.x..cols by WG { sum += native_exp2(f32(x[base + i]) - top) }\n"
    "    sum = group_sum(part, sum)\n"
    "    for i in local.x..cols by WG {\n"
    "        y[base + i] = T(native_exp2(f32(x[base + i]) - top) / sum)\n    }\n}\n";

static const char convert[] =
    "kernel k<A: type, B: type>(x: in [A], y: out [B], n: u32) group(64) {\n"
    "    let i = group.x * 64 + local.x\n    if i >= n { return }\n    y[i] = B(x[i])\n}\n";

TEST(spirv, softmax_is_valid)
{
    NEED_VALIDATOR(t);
    emits(t, softmax, "T=f32", &kc_least_features);
    emits(t, softmax, "T=f16", &kc_least_features);
    emits(t, softmax, "T=bf16,WG=64", &kc_least_features);
    emits(t, softmax, "T=f16", &source_all);
    emits(t, softmax, "T=f64,WG=32", &source_all);
}

TEST(spirv, every_conversion_is_valid)
{
    static const char *const types[] = {"f32", "i32", "u32", "bool", "f16", "bf16", "f64",
                                        "i64", "u64", "i8",  "u8",   "i16", "u16"};
    char defines[32];

    NEED_VALIDATOR(t);
    for (size_t a = 0; a < sizeof types / sizeof types[0]; a++)
        for (size_t b = 0; b < sizeof types / sizeof types[0]; b++) {
            bool wide = strcmp(types[a], "f64") == 0 || strcmp(types[b], "f64") == 0;
            snprintf(defines, sizeof defines, "A=%s,B=%s", types[a], types[b]);
            emits(t, convert, defines, &source_all);
            if (!wide && (a + b) % 3 == 0)
                emits(t, convert, defines, &kc_least_features);
        }
}

TEST(spirv, an_f16_of_bits_alone_is_valid)
{
    NEED_VALIDATOR(t);
    emits(t,
          "kernel k(x: in [u32], y: out [f32]) group(1) {\n"
          "    y[group.x] = f32(from_bits(f16, x[group.x] & 0xffff))\n}\n",
          "", &source_all);
}

TEST(spirv, control_flow_is_valid)
{
    NEED_VALIDATOR(t);
    emits(t,
          "const table: [i32; 4] = [1, -2, 3, 4]\n"
          "fn f(x: i32) -> i32 {\n    if x < 0 { return -x }\n    if x > 10 { return 10 }\n"
          "    return x * 2\n}\n"
          "kernel k(x: inout [i32], a: inout [atomic u32], n: u32, s: [f32; 40]) group(8, 4) {\n"
          "    shared c: [atomic u32; 4]\n"
          "    if local.index < 4 { c[local.index] = 0 }\n    barrier()\n"
          "    var i = local.x\n"
          "    while i < n {\n        if x[i] == 3 { i += 2\n            continue }\n"
          "        if x[i] > 7 && x[i + 1] > f(x[i]) { break }\n"
          "        x[i] = f(x[i]) + table[i & 3] + i32(s[i & 31])\n        i += 8\n    }\n"
          "    let old = atomic_add(c[i & 3], 1)\n    let seen = atomic_cas(a[i], old, 7)\n"
          "    barrier()\n    if seen == c[0] { a[0] = atomic_max(a[1], seen) }\n}\n",
          "", &kc_least_features);
    emits(t,
          "kernel k(x: in [f32x4], y: out [f16x4], z: out [f32], w: in [vec<i8, 4>]) group(32) {\n"
          "    var v = x[local.x] * 2.0\n    v.y = v[3] + v.x\n    y[local.x] = f16x4(v)\n"
          "    let b = vec<i32, 4>(w[local.x])\n"
          "    z[local.x] = subgroup_add(v.z) + f32(b.w) + f32(subgroup_lane)\n"
          "    if subgroup_any(v.x > 0.0) { z[0] = subgroup_xor(v.x, 1) }\n}\n",
          "", &source_all);
}

TEST(spirv, shared_f64_is_valid)
{
    NEED_VALIDATOR(t);
    emits(t,
          "kernel k(x: inout [f64]) group(32) {\n    shared part: [f64; 32]\n"
          "    part[local.x] = x[local.x]\n    barrier()\n    x[local.x] = part[31 - local.x]\n}\n",
          "", &source_all);
}

TEST(spirv, a_value_of_the_group_is_valid)
{
    NEED_VALIDATOR(t);
    emits(t,
          "kernel k(x: in [u32], y: out [u32]) group(64) {\n    shared n: [u32; 1]\n"
          "    if local.x == 0 { n[0] = x[0] }\n    let end = group_value(n[0])\n"
          "    for i in 0..end {\n        barrier()\n        y[i] = i\n    }\n}\n",
          "", &kc_least_features);
}

TEST(spirv, sixty_four_bits_are_valid)
{
    static const char arithmetic[] =
        "kernel k<T: integer>(x: inout [T]) group(1) {\n"
        "    let a = x[0]\n    let b = x[1]\n"
        "    x[2] = a + b * a - b\n    x[3] = a / b\n    x[4] = a % b\n    x[5] = (a & b) | (a ^ "
        "b)\n"
        "    x[6] = a << 3\n    x[7] = a >> 3\n    if a < b && a != b { x[8] = -T(5) }\n}\n";

    NEED_VALIDATOR(t);
    emits(t, arithmetic, "T=i64", &source_all);
    emits(t, arithmetic, "T=i64", &kc_least_features);
    emits(t, arithmetic, "T=u64", &kc_least_features);
    emits(t, arithmetic, "T=i32", &kc_least_features);
}

TEST(spirv, cooperative_matrices_are_valid)
{
    NEED_VALIDATOR(t);
    emits(t,
          "kernel k(a: in [f16], b: in [f16], y: out [f32], k: u32) group(32) {\n"
          "    var sum = matrix_acc<f32, 16, 16>(0.0)\n"
          "    var p: matrix_a<f16, 16, 16>\n    var q: matrix_b<f16, 16, 16>\n"
          "    for i in 0..k by 16 {\n"
          "        coop_load(p, a[i], k, false)\n        coop_load(q, b[i], k, true)\n"
          "        sum = coop_muladd(p, q, sum)\n    }\n"
          "    coop_store(sum, y[0], 16, false)\n}\n",
          "", &source_all);
    emits(t,
          "kernel k<T: type>(a: in [u32x4], y: out [u32x4]) group(32) {\n"
          "    shared room: [u32x4; 32]\n    var p: [matrix_a<T, 16, 16>; 2]\n"
          "    var q: matrix_b<T, 16, 16>\n    var sum = matrix_acc<f32, 16, 16>(1.0)\n"
          "    room[local.x] = a[local.x]\n    barrier()\n"
          "    unroll for i in 0..2 { coop_load(p[i], room[0], 2, false) }\n"
          "    coop_load(q, a[0], 2, true)\n"
          "    sum = coop_muladd(p[0], q, coop_muladd(p[1], q, sum)) * sum\n"
          "    var less = matrix_acc<T, 16, 16>(sum)\n"
          "    coop_store(less, y[0], 2, false)\n}\n",
          "T=bf16", &source_all);
}

#define ROWS                                                                        \
    "kernel k(y: out [f32], n: u32) group(32) {\n"                                  \
    "    var m = matrix_acc<f32, 16, 16>(1.0)\n"                                    \
    "    m = coop_between(m, -3, i32(n), n)\n"                                      \
    "    m = coop_exp2(m - coop_max(m, coop_row_max(m))) / coop_row_sum(m)\n"       \
    "    var p = matrix_a<f16, 16, 16>(matrix_acc<f16, 16, 16>(coop_row_max(m)))\n" \
    "    coop_store(m, y[0], 16, false)\n}\n"

static size_t count_of(const uint32_t *words, size_t count, uint32_t op)
{
    size_t found = 0;

    for (size_t at = 5; at < count && words[at] >> 16; at += words[at] >> 16)
        found += (words[at] & 0xffff) == op;
    return found;
}

TEST(spirv, rows_of_matrices_have_one_function_each)
{
    struct kc_emit how = {.features = &source_all};
    struct source s;
    uint32_t *words;
    size_t count;

    expect_ok(t, source_open(&s, ROWS, "", &source_all));
    expect_ok(t, kc_emit_spirv(&s.kir, &how, &s.arena, &words, &count, &s.diag));
    expect_eq(t, count_of(words, count, 5366), 3); /* reductions */
    expect_eq(t, count_of(words, count, 5369), 3); /* by element */
    expect_eq(t, count_of(words, count, 5293), 1); /* to another use */
    expect_eq(t, count_of(words, count, 54), 1 + 5);
    expect_eq(t, count_of(words, count, 33), 1 + 4); /* two of them have the same type */
    source_close(&s);
}

TEST(spirv, rows_of_matrices_need_a_device_that_has_them)
{
    struct kc_features f = source_all;
    struct source s;

    f.coop_rows = false;
    expect(t, source_open(&s, ROWS, "", &f) != RLX_OK);
    expect_contains(t, s.diag.first.message, "no functions of the rows of matrices");
    source_close(&s);
    expect(t, source_open(&s, "kernel k(y: out [f32]) group(32) { y[0] = coop_exp2(1.0) }\n", "",
                          &source_all) != RLX_OK);
    expect_contains(t, s.diag.first.message, "a matrix of sums of f32 is expected");
    source_close(&s);
}
