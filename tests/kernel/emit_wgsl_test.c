/* emit_wgsl_test.c: kernels as WGSL. */
#include <string.h>

#include "source.h"

static void writes(struct test *t, const char *text, const char *defines, const struct kc_emit *how,
                   const char *want)
{
    struct source s;
    struct text out;

    text_init(&out, mem_default());
    if (source_open(&s, text, defines, how->features) != RLX_OK ||
        kc_emit_wgsl(&s.kir, how, &out, &s.diag) != RLX_OK)
        fail(t, "%s", s.diag.first.message);
    else
        expect_contains(t, out.at, want);
    text_free(&out);
    source_close(&s);
}

static const struct kc_emit least = {.features = &kc_least_features};

TEST(wgsl, a_kernel_reads_as_it_should)
{
    writes(t,
           "kernel k(x: in [f32], y: out [f32], n: u32) group(64) {\n"
           "    let i = group.x * 64 + local.x\n"
           "    if i < n { y[i] = x[i] * 0.5 }\n}\n",
           "", &least,
           "@group(0) @binding(0) var<storage, read> b0: array<f32>; // x\n"
           "@group(0) @binding(1) var<storage, read_write> b1: array<f32>; // y\n"
           "@group(0) @binding(2) var<uniform> params: array<vec4<u32>, 1>;\n");
    writes(t,
           "kernel k(x: in [f32], y: out [f32], n: u32) group(64) {\n"
           "    if local.x < n { y[local.x] = x[local.x] * 0.5 }\n}\n",
           "", &least,
           "    let v0 = local.x;\n    let v1 = (params[0][0]);\n    let v2 = v0 < v1;\n"
           "    if v2 {\n        let v4 = local.x;\n        let v5 = local.x;\n"
           "        let v6 = b0[v5];\n        let v8 = v6 * 0x800000p-24f;\n"
           "        b1[v4] = v8;\n    }\n");
}

TEST(wgsl, loops_and_infinity)
{
    writes(t,
           "kernel k(x: inout [f32], n: u32) group(1) {\n"
           "    for i in 0..n { x[i] = inf }\n}\n",
           "", &least, "bitcast<f32>(2139095040u ^ opaque)");
    writes(t,
           "kernel k(x: inout [f32], n: u32) group(1) {\n"
           "    for i in 0..n { x[i] = 1.0 }\n}\n",
           "", &least, "        continuing {\n");
}

TEST(wgsl, sums_that_must_round_are_hidden)
{
    writes(t, "kernel k(x: inout [f32]) group(1) { x[0] = (x[0] + 12582912.0) - 12582912.0 }\n", "",
           &least, " = bitcast<f32>(bitcast<u32>(v");
    writes(t, "kernel k(x: inout [f32]) group(1) { x[0] = x[0] + 1.0 }\n", "", &least,
           "opaque = params[0][0];\n");
}

TEST(wgsl, what_is_no_number_equals_nothing)
{
    writes(t, "kernel k(x: inout [f32]) group(1) { if x[0] != 1.0 { x[0] = 1.0 } }\n", "", &least,
           " = !(v");
}

TEST(wgsl, all_buffers_may_be_for_writing)
{
    const struct kc_emit how = {.features = &kc_least_features, .read_write = true};

    writes(t, "kernel k(x: in [f32], y: out [f32]) group(1) { y[0] = x[0] }\n", "", &how,
           "var<storage, read_write> b0: array<f32>; // x\n");
}

TEST(wgsl, a_value_of_the_group_is_uniform)
{
    writes(t,
           "kernel k(x: in [u32], y: out [u32]) group(64) {\n    shared n: [u32; 1]\n"
           "    if local.x == 0 { n[0] = x[0] }\n    let end = group_value(n[0])\n"
           "    for i in 0..end {\n        barrier()\n        y[i] = i\n    }\n}\n",
           "", &least, "workgroupUniformLoad(&m0[0u])");
}

TEST(wgsl, narrow_elements_share_words)
{
    writes(t, "kernel k(x: in [bf16], y: out [i8]) group(1) { y[0] = i8(f32(x[5])) }\n", "", &least,
           "b1: array<atomic<u32>>");
}

/* Said at the start of the module, also where elements are only declared; unless the compiler does
 * not know the line. */
TEST(wgsl, features_are_asked_for)
{
    const struct kc_features f = {
        .f16 = true, .subgroups = true, .subgroup_size = 8, .max_group = 256};
    const struct kc_emit some = {.features = &f}, plain = {.features = &f, .plain_subgroups = true};
    const char *const sums = "kernel k(x: inout [f32]) group(8) {\n"
                             "    x[local.x] = subgroup_xor(x[local.x], 1)\n}\n";

    writes(t, "kernel k(x: in [f16], y: out [u32]) group(1) { y[0] = 1 }\n", "", &some,
           "enable f16;\n@group(0) @binding(0) var<storage, read> b0: array<f16>;");
    writes(t, "kernel k(x: in [f16], y: out [u32]) group(1) { y[0] = u32(to_bits(x[0])) }\n", "",
           &some, "pack2x16float(vec2<f32>(f32(");
    writes(t, "kernel k(x: in [f16], y: out [u32]) group(1) { y[0] = 1 }\n", "", &least,
           "var<storage, read> b0: array<u32>;");
    writes(t, sums, "", &some, "enable subgroups;\n@group(0)");
    writes(t, sums, "", &plain, "subgroupShuffleXor(");
}

/* The place of an element is named by a number: i32 would be a type. */
TEST(wgsl, no_name_hides_a_type)
{
    struct source s;
    struct text out;

    text_init(&out, mem_default());
    expect_status(t,
                  source_open(&s,
                              "kernel k(x: in [u8], y: out [u32]) group(1) {\n"
                              "    unroll for i in 0..64 { y[i] = u32(x[i]) }\n}\n",
                              "", &kc_least_features),
                  RLX_OK);
    expect_status(t, kc_emit_wgsl(&s.kir, &least, &out, &s.diag), RLX_OK);
    expect(t, out.at && !strstr(out.at, "let i32 ") && !strstr(out.at, "let u32 "));
    expect_contains(t, out.at, "let at");
    text_free(&out);
    source_close(&s);
}
