/* check_test.c: kernels made for one use, and what is refused. */
#include <stdio.h>
#include <string.h>

#include "source.h"

static void lists(struct test *t, const char *text, const char *defines, const char *part)
{
    struct source s;
    struct text out;

    text_init(&out, mem_default());
    if (expect_ok(t, source_open(&s, text, defines, &kc_least_features))) {
        kir_print(&s.kir, &out);
        expect_contains(t, out.at, part);
    } else {
        fail(t, "%s", s.diag.first.message);
    }
    text_free(&out);
    source_close(&s);
}

static void refuses(struct test *t, const char *text, const char *part)
{
    struct source s;

    expect(t, source_open(&s, text, "", &kc_least_features) != RLX_OK);
    expect_contains(t, s.diag.first.message, part);
    source_close(&s);
}

#define SOFTMAX                                                                                   \
    "use \"lib/reduce\"\n"                                                                        \
    "kernel k<T: float, WG: size = 256>(x: in [T], y: out [T], cols: u32) group(WG) {\n"          \
    "    shared part: [f32; WG]\n"                                                                \
    "    let base = group.x * cols\n"                                                             \
    "    let lane = local.x\n"                                                                    \
    "    var top = -inf\n"                                                                        \
    "    for i in lane..cols by WG { top = larger(top, f32(x[base + i])) }\n"                     \
    "    top = group_max(part, top)\n"                                                            \
    "    var sum = 0.0\n"                                                                         \
    "    for i in lane..cols by WG { sum += native_exp2(f32(x[base + i]) - top) }\n"              \
    "    sum = group_sum(part, sum)\n"                                                            \
    "    for i in lane..cols by WG { y[base + i] = T(native_exp2(f32(x[base + i]) - top) / sum) " \
    "}\n"                                                                                         \
    "}\n"

TEST(kernel, softmax_is_made_for_each_type)
{
    lists(t, SOFTMAX, "T=f32",
          "group(256, 1, 1)\nbuffer 0: x: in f32\nbuffer 1: y: out f32\n"
          "word 0: cols: u32\nvar 0: part: shared f32[256]\n");
    lists(t, SOFTMAX, "T=f16,WG=64", "var 0: part: shared f32[64]\n");
    lists(t, SOFTMAX, "T=bf16,WG=64", "BITS_OF");
}

TEST(kernel, functions_may_differ_by_type)
{
    static const char text[] = "fn f<T: type>(v: T) -> T {\n"
                               "    if T == f64 { return nonsense(v) } else { return v }\n}\n"
                               "kernel k(x: inout [f32]) group(1) { x[0] = f(x[1]) }\n";

    lists(t, text, "", "BUFFER_STORE");
    refuses(t, "kernel k(x: inout [f32]) group(1) { if x == f32 { x[0] = 1.0 } }\n",
            "x is not a value");
}

TEST(kernel, constants_choose_and_unroll)
{
    lists(t,
          "kernel k<BIAS: flag = false>(x: inout [f32]) group(1) {\n"
          "    if BIAS { nonsense() } else { x[0] = 1.5 * 2.0 }\n"
          "    unroll for i in 0..3 { x[i + 1] = f32(i) }\n}\n",
          "", "CONST 0x40400000: f32\n  BUFFER_STORE #0");
    lists(t, "const N = 4\nkernel k(x: out [u32]) group(N * 16) { x[local.x] = N << 2 }\n", "",
          "CONST 0x10: u32");
    lists(t,
          "const table: [i32; 4] = [1, -2, 3, 4]\n"
          "kernel k(x: out [i32]) group(4) { x[local.x] = table[local.x] }\n",
          "", "table i32[4]");
}

TEST(kernel, types_are_compared)
{
    lists(t,
          "kernel k<T: type>(x: out [u32]) group(1) {\n"
          "    if T == f16 { x[0] = 7 } else { x[0] = 8 }\n"
          "    if T != c64 { x[1] = 9 }\n}\n",
          "T=f32x2", "CONST 0x8: u32\n  BUFFER_STORE #0");
}

TEST(kernel, arrays_of_parameters_go_to_functions)
{
    lists(t,
          "fn last<N: size>(s: [u32; N]) -> u32 { return s[N - 1] }\n"
          "kernel k(x: out [u32], n: u32, s: [u32; 3]) group(1) { x[0] = last(s) }\n",
          "", "PARAM");
    refuses(t,
            "fn last<N: size>(s: [u32; N]) -> u32 { return s[N - 1] }\n"
            "kernel k(x: out [u32], n: u32) group(1) { x[0] = last(x) }\n",
            "the name of a parameter is expected");
}

TEST(kernel, shared_memory_holds_64_bits)
{
    lists(t,
          "kernel k<T: type>(x: inout [T]) group(4) {\n    shared part: [T; 4]\n"
          "    part[local.x] = x[local.x]\n    barrier()\n    x[local.x] = part[0]\n}\n",
          "T=i64", "shared i64[4]");
    refuses(t, "kernel k(x: out [u32]) group(1) { shared s: [i64; 2049]\n x[0] = 1 }\n",
            "16392 bytes of shared memory");
}

TEST(kernel, matrices_stand_in_arrays_and_multiply)
{
    static const char text[] = "kernel k(x: in [u32x4]) group(32) {\n"
                               "    var m: [matrix_acc<f32, 16, 16>; 2]\n"
                               "    m[0] = matrix_acc<f32, 16, 16>(1.0)\n"
                               "    coop_load(m[1], x[0], 0, true)\n    m[1] *= m[0]\n}\n";
    struct source s;

    expect_ok(t, source_open(&s, text, "", &source_all));
    expect(t, s.kir.uses_coop);
    source_close(&s);
    expect(t, source_open(&s, "kernel k(x: in [matrix_a<f16, 16, 16>]) group(32) { return }\n", "",
                          &source_all) != RLX_OK);
    expect_contains(t, s.diag.first.message, "matrices in a variable");
    source_close(&s);
}

TEST(kernel, functions_return_from_their_paths)
{
    lists(
        t,
        "fn f(x: f32) -> f32 {\n    if x < 0.0 { return -x }\n    let y = x * x\n    return y\n}\n"
        "kernel k(x: inout [f32]) group(1) { x[0] = f(x[0]) }\n",
        "", "ELSE");
    lists(t,
          "fn add_to<T: type>(to: var T, x: T) { to += x }\n"
          "kernel k(x: inout [f32]) group(1) {\n    var s = 0.0\n    add_to(s, x[0])\n    x[0] = "
          "s\n}\n",
          "", "ADD");
}

TEST(kernel, pairs_stand_for_64_bits)
{
    lists(t, "kernel k(x: inout [i64]) group(1) { x[0] = x[0] + i64(x[1] < x[2]) }\n", "",
          "BITCAST");
}

TEST(kernel, mistakes_are_shown_where_they_are)
{
    refuses(t, "kernel k(x: out [f32]) group(1) {\n    x[0] = y\n}\n",
            "test:2:12: nothing is called y\n    x[0] = y\n           ^");
    refuses(t, "kernel k(x: out [f32]) group(1) { x[0] = 1u }\n", "a number runs into a name");
    refuses(t, "kernel k(x: out [f32]) group(1) { x[0] = u32(1) }\n", "f32 is expected here");
    refuses(t, "kernel k(x: in [f32]) group(1) { x[0] = 1.0 }\n", "only read");
    refuses(t, "kernel k(x: out [f32]) group(1) { x[0] = x[1] }\n", "only written");
    refuses(t, "kernel k(x: out [f32]) group(512) { x[0] = 0.0 }\n", "groups of 512");
    refuses(t, "kernel k(x: out [f64]) group(1) { x[0] = f64(0.0) }\n", "no f64");
    refuses(t, "kernel k<T: type>(x: out [T]) group(1) { }\n", "T, a type, is not given");
    refuses(
        t, "fn f(x: u32) -> u32 { return f(x) }\nkernel k(x: out [u32]) group(1) { x[0] = f(1) }\n",
        "recursion");
    refuses(t, "kernel k(x: out [u32]) group(1) { return\n x[0] = 1 }\n", "never reached");
    refuses(t, "kernel k(x: out [u32]) group(1) { break }\n", "no loop");
    refuses(t, "kernel k(x: out [u32]) group(1) { let a = 4 b = 5 }\n", "the end of the line");
    refuses(t, "kernel k(x: out [u32]) group(1) { shared s: [f32; 8192]\n x[0] = 1 }\n",
            "32768 bytes of shared memory; the device has 16384");
    refuses(t, "kernel k(x: inout [u32]) group(1) { x[0] = group_value(x[1]) }\n",
            "an element of shared memory");
    refuses(t, "kernel k(x: out [u32]) group(1) { x[0] = ((((((1", "the file ends");
    refuses(t, "kernel k(x: out [u32]) group(1) { x[0] = subgroup_add(u32(1)) }\n", "no subgroups");
    refuses(t, "kernel k(x: out [f32]) group(1) { x[0] = f32(i8(1)) + i64(2) }\n", "expected here");
    refuses(t, "use \"lib/none\"\nkernel k() group(1) { }\n", "no kernel file called \"lib/none\"");
}

/* What comes to nothing takes time as well. */
TEST(kernel, making_one_comes_to_an_end)
{
    refuses(t,
            "kernel k(x: out [u32]) group(1) {\n"
            "    unroll for a in 0..1000 {\n        unroll for b in 0..1000 {\n"
            "            unroll for c in 0..1000 { const d = a + b * c }\n        }\n    }\n}\n",
            "more than 1048576 statements");
    refuses(t,
            "fn a(x: const u32) -> u32 { return x + 1 }\n"
            "fn b(x: const u32) -> u32 { return a(a(a(a(a(a(a(a(x)))))))) + a(a(a(a(x)))) }\n"
            "fn c(x: const u32) -> u32 { return b(b(b(b(b(b(b(b(x)))))))) + b(b(b(b(x)))) }\n"
            "fn d(x: const u32) -> u32 { return c(c(c(c(c(c(c(c(x)))))))) + c(c(c(c(x)))) }\n"
            "fn e(x: const u32) -> u32 { return d(d(d(d(d(d(d(d(x)))))))) + d(d(d(d(x)))) }\n"
            "fn f(x: const u32) -> u32 { return e(e(e(e(e(e(e(e(x)))))))) + e(e(e(e(x)))) }\n"
            "fn g(x: const u32) -> u32 { return f(f(f(f(f(f(f(f(x)))))))) + f(f(f(f(x)))) }\n"
            "kernel k(x: out [u32]) group(1) { x[0] = g(1) }\n",
            "more than 1048576 statements");
}

TEST(kernel, constants_of_any_size)
{
    lists(t, "const low = -inf\nkernel k(x: out [f32]) group(1) { x[0] = low }\n", "",
          "CONST 0xff800000");
    lists(t, "kernel k(x: out [i64]) group(1) { x[0] = i64(1e300) }\n", "", "CONST 0x7fffffff");
    lists(t, "kernel k(x: out [i64]) group(1) { x[0] = i64(nan) }\n", "", "CONST 0x0");
    lists(t, "kernel k(x: out [u64]) group(1) { x[0] = u64(-3.5) }\n", "", "CONST 0x0");
    lists(t, "kernel k(x: out [i32]) group(1) { x[0] = i32(nan) - i32(-1e30) }\n", "",
          "CONST 0x80000000");
}

/* ---- structs ---- */

#define ROWS "struct rows { rows: u32, scale: f32, shape: [u32; N] }\n"

/* Fields become words of their own, by the names of the parameter and of the field. */
TEST(kernel, structs_become_words)
{
    lists(
        t,
        "struct span { first: i32, count: u32 }\n" ROWS
        "kernel k<N: size = 3>(x: out [f32], r: rows, n: u32, s: span, t: span) group(1) {\n"
        "    x[r.shape[1] + n] = r.scale * f32(s.first + t.first)\n}\n",
        "",
        "word 0: r.rows: u32\nword 1: r.scale: f32\nword 2: r.shape: u32[3]\nword 5: n: u32\n"
        "word 6: s.first: i32\nword 7: s.count: u32\nword 8: t.first: i32\nword 9: t.count: u32\n");
    /* as x.y of a value that is in sight, not as a field, and not as group.x */
    lists(t,
          "struct s { x: u32 }\nkernel k(y: out [u32], group: s) group(1) {\n"
          "    let v = u32x2(1, 2)\n    y[0] = group.x + v.x\n}\n",
          "", "word 0: group.x: u32\n");
}

/* A function has a struct by name, of any size that its caller's has, and passes on its arrays. */
TEST(kernel, structs_are_given_to_functions)
{
    lists(t,
          ROWS
          "fn last<N: size>(s: [u32; N]) -> u32 { return s[N - 1] }\n"
          "fn place<N: size>(r: rows, i: u32) -> u32 { return r.rows * i + last(r.shape) + N }\n"
          "fn outer<N: size>(rows: rows) -> u32 { return place(rows, 2) }\n"
          "kernel k<N: size = 4>(x: out [u32], rows: rows) group(1) { x[0] = outer(rows) }\n",
          "", "word 2: rows.shape: u32[4]\n");
}

TEST(kernel, structs_are_refused_elsewhere)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"kernel k(x: out [f32], r: rows) group(1) { x[0] = r.size }\n",
         "test:2:52: rows has no field called size"},
        {"kernel k(x: out [f32], r: rows) group(1) { x[0] = r }\n",
         "r is a struct: name one of its fields, as r.rows"},
        {"kernel k(x: out [u32], r: rows) group(1) { x[0] = r[0] }\n", "r is a struct"},
        {"kernel k(x: out [u32], r: rows) group(1) { x[0] = r.shape }\n", "it needs an index"},
        {"kernel k(x: out [u32], r: rows) group(1) { r.rows = 2 }\n",
         "a variable or a buffer is expected"},
        {"kernel k(x: out [u32], r: rows) group(1) { let s = r }\n", "r is a struct"},
        {"kernel k(x: out [rows]) group(1) { }\n", "rows is a struct, which only a parameter can"},
        {"kernel k(x: out [u32]) group(1) { var r: rows }\n", "which only a parameter can be"},
        {"kernel k(x: out [u32]) group(1) { shared r: rows }\n", "which only a parameter can be"},
        {"kernel k(x: out [u32], r: [rows; 2]) group(1) { }\n", "which only a parameter can be"},
        {"kernel k(x: out [u32], r: in rows) group(1) { }\n", "which only a parameter can be"},
        {"kernel k(x: out [u32], r: const rows) group(1) { }\n", "a parameter without a mode"},
        {"kernel k<r: rows>(x: out [u32]) group(1) { }\n", "a constant is a type"},
        {"struct two { r: rows }\nkernel k(x: out [u32], t: two) group(1) { }\n", "not a struct"},
        {"struct two { r: [rows; 2] }\nkernel k(x: out [u32], t: two) group(1) { }\n",
         "which only a parameter can be"},
        {"struct two { t: two }\nkernel k(x: out [u32], t: two) group(1) { }\n", "not a struct"},
        {"struct half { h: f16 }\nkernel k(x: out [u32], h: half) group(1) { }\n",
         "an array of them, or a struct"},
        {"struct none { }\nkernel k(x: out [u32]) group(1) { }\n", "at least one field"},
        {"struct one { a: in [u32] }\nkernel k(x: out [u32]) group(1) { }\n",
         "a field is a u32, i32 or f32"},
        {"struct one { a: u32, b: u32, a: i32 }\nkernel k(x: out [u32]) group(1) { }\n",
         "test:2:30: the struct has another field of this name"},
        {"struct one { a: u32 b: u32 }\nkernel k(x: out [u32]) group(1) { }\n", "} is expected"},
        {"struct one { a: u32\n", "the file ends where } is expected"},
        {"struct big { a: [u32; 1000] }\nkernel k(x: out [u32], b: big, c: big) group(1) { }\n",
         "more than 1024 words"},
        {"struct one { rows: u32 }\nfn f(r: rows) { }\n"
         "kernel k(x: out [u32], r: one) group(1) { f(r) }\n",
         "the name of a parameter that is a struct rows is expected"},
        {"fn f(r: rows) { }\nkernel k(x: out [u32], r: u32) group(1) { f(r) }\n",
         "a struct rows is expected"},
        {"fn f(r: var rows) { }\nkernel k(x: out [u32], r: rows) group(1) { f(r) }\n",
         "a parameter without a mode"},
        {"fn f() -> rows { }\nkernel k(x: out [u32]) group(1) { f() }\n",
         "which only a parameter can be"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[400];
        test_note(t, "%s", rows[i].text);
        snprintf(text, sizeof text, "struct rows { rows: u32, shape: [u32; 2] }\n%s", rows[i].text);
        refuses(t, text, rows[i].says);
    }
}
