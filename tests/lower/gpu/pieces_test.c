/* pieces_test.c: operands of which not even all windows together show a kernel enough
 * (windows_test.c: those that do with them). They go in pieces, and the results are those of a
 * device without the limit. The limit is lowered to 1 KiB, so that 31 windows show half of the
 * weights. */
#include "limited.h"
#include "no_driver.h"

/* %w, 60 KiB of f32, as [240,64]. */
#define PARTS \
    "param %a: f32[60,64], param %b: f32[60,64], param %c: f32[60,64], param %d: f32[60,64]"
#define LARGE " %w = concat %a, %b, %c, %d axis=0 "

/* The depth is cut: sums are added up in another order. */
static const char *const depths[] = {
    "graph (input %x: f32[1,240], " PARTS ") {" LARGE "%y = matmul %x, %w return %y }",
    "graph (input %x: f32[3,240], " PARTS ") {" LARGE "%y = matmul %x, %w return %y }",
    "graph (input %x: f32[16,240], " PARTS ") {" LARGE "%y = matmul %x, %w return %y }",
    "graph (input %x: f32[240,5], " PARTS ") {" LARGE
    "%y = matmul %x, %w transpose_a=true return %y }",
    "graph (input %x: f32[60,9], " PARTS ") {" LARGE /* the large one comes first */
    "%t = reshape %w shape=[60,256] %y = matmul %t, %x transpose_a=true return %y }",
    "graph (input %x: f32[9,60], " PARTS ") {" LARGE
    "%t = reshape %w shape=[60,256] %y = matmul %t, %x transpose_a=true transpose_b=true"
    " return %y }",
    "graph (input %x: f32[3,240], " PARTS ", param %e: f32[64]) {" LARGE
    "%m = matmul %x, %w %s = add %m, %e %y = gelu %s return %y }",
    "graph (input %x: f32[3,240], " PARTS ", param %e: f32[3,64]) {" LARGE
    "%m = matmul %x, %w %s = add %m, %e %y = relu %s return %y }",
    "graph (input %x: f32[2,3,240], " PARTS ") {" LARGE "%y = matmul %x, %w return %y }",
};

/* A product whose thirds are stored one after another: it has the weight's columns third by third.
 */
static const char *const thirds[] = {
    "graph (input %x: f32[3,240], param %a: f32[60,63], param %b: f32[60,63], param %c: f32[60,63],"
    " param %d: f32[60,63]) { %w = concat %a, %b, %c, %d axis=0 %m = matmul %x, %w"
    " %q = narrow %m axis=1 start=0 len=21 %k = narrow %m axis=1 start=21 len=21"
    " %v = narrow %m axis=1 start=42 len=21 %p = mul %q, %k %y = add %p, %v return %y }",
};

/* Halves are rounded once, after the last piece; then they differ by one of their last bits where
 * sums in another order fall on another side. */
static const char *const halves[] = {
    "graph (input %x: f16[3,240], " PARTS ") {" LARGE
    "%h = cast %w to=f16 %y = matmul %x, %h return %y }",
    "graph (input %x: bf16[3,240], " PARTS ") {" LARGE
    "%h = cast %w to=bf16 %y = matmul %x, %h return %y }",
    "graph (input %x: f16[3,240], " PARTS ", param %e: f16[64]) {" LARGE
    "%h = cast %w to=f16 %m = matmul %x, %h %s = add %m, %e %y = silu %s return %y }",
};

/* Rows or columns are cut: fewer of them may be summed up by another kernel. */
static const char *const lines[] = {
    "graph (input %x: f32[1,64], " PARTS ") {" LARGE
    "%y = matmul %x, %w transpose_b=true return %y }",
    "graph (input %x: f32[5,64], " PARTS ") {" LARGE
    "%y = matmul %x, %w transpose_b=true return %y }",
    "graph (input %x: f32[64,5], " PARTS ") {" LARGE
    "%y = matmul %x, %w transpose_a=true transpose_b=true return %y }",
    "graph (input %x: f32[5,64], " PARTS ", param %e: f32[5,240]) {" LARGE
    "%m = matmul %x, %w transpose_b=true %s = add %m, %e %y = gelu %s return %y }",
    "graph (input %x: f32[2,240,2,2], " PARTS ") {" LARGE /* of one tap, for two images */
    "%k = reshape %w shape=[64,240,1,1] %y = conv %x, %k return %y }",
    "graph (input %x: f32[2,64,3], " PARTS ") {" LARGE
    "%k = reshape %w shape=[1,240,64] %y = matmul %k, %x return %y }",
};

/* The order of sums does not matter: the same bits. */
static const char *const exact[] = {
    "graph (input %x: i32[3,240], " PARTS ") {" LARGE
    "%i = cast %w to=i32 %y = matmul %x, %i return %y }",
    "graph (input %x: i64[3,240], " PARTS ") {" LARGE
    "%i = cast %w to=i64 %y = matmul %x, %i return %y }",
    "graph (input %x: i32[3,64], " PARTS ") {" LARGE
    "%i = cast %w to=i32 %y = matmul %x, %i transpose_b=true return %y }",
};

/* Experts take turns, and every row meets its own as ever. */
#define EXPERTS                                                                 \
    "param %a: f32[4,30,32], param %b: f32[4,30,32], param %c: f32[4,30,32]) {" \
    " %w = concat %a, %b, %c axis=0 %f = const i32[1] {5} %j = mul %i, %f"
#define PACKED                                                                                  \
    "input %a: u8[39,102], input %b: u8[39,102], input %c: u8[39,102], input %d: u8[39,102]) {" \
    " %p = concat %a, %b, %c, %d axis=0 %t = const f32[1] {10000}"
static const char *const experts[] = {
    "graph (input %x: f32[9,30], input %i: i32[9], " EXPERTS
    " %y = grouped_matmul %x, %w, %j return %y }",
    "graph (input %x: f32[50,30], input %i: i32[50], " EXPERTS /* sorted */
    " %y = grouped_matmul %x, %w, %j return %y }",
    "graph (input %x: f16[9,30], input %i: i32[9], " EXPERTS
    " %h = cast %w to=f16 %y = grouped_matmul %x, %h, %j return %y }",
    "graph (input %x: i64[9,30], input %i: i32[9], " EXPERTS
    " %h = cast %w to=i64 %y = grouped_matmul %x, %h, %j return %y }",
};

/* Above 16 KiB. */
static const char *const packed[] = {
    "graph (input %x: f32[1,96], " PACKED
    " %z = dequant_matmul %x, %p scheme=q8_0 k=96 %y = mul %z, %t return %y }",
    "graph (input %x: f32[3,96], " PACKED
    " %z = dequant_matmul %x, %p scheme=q8_0 k=96 %y = mul %z, %t return %y }",
    "graph (input %x: f32[3,96], " PACKED
    " %z = dequant_matmul %x, %p scheme=q8_0 k=96 act=q8 %y = mul %z, %t return %y }",
    "graph (input %x: f32[11,96], " PACKED
    " %z = dequant_matmul %x, %p scheme=q8_0 k=96 %y = mul %z, %t return %y }",
    "graph (input %x: f32[7,96], input %i: i32[7], " PACKED " %w = reshape %p shape=[12,13,102]"
    " %f = const i32[1] {5} %j = mul %i, %f %z = dequant_grouped_matmul %x, %w, %j scheme=q8_0 k=96"
    " %y = mul %z, %t return %y }",
    "graph (input %x: f32[7,96], input %i: i32[7], " PACKED " %w = reshape %p shape=[12,13,102]"
    " %f = const i32[1] {5} %j = mul %i, %f %z = dequant_grouped_matmul %x, %w, %j scheme=q8_0 k=96"
    " act=q8 %y = mul %z, %t return %y }",
};

/* Some heads after others, whose keys may be shared out among other groups; weights that are not
 * turned around. */
static const char *const heads[] = {
    "graph (input %q: f32[1,8,2,16], input %k: f32[1,4,60,16], input %v: f32[1,4,60,16]) { %y ="
    " attention %q, %k, %v num_heads=8 num_kv_heads=4 head_dim=16 layout=bhsd return %y }",
    "graph (input %q: f32[1,8,2,16], input %k: f32[1,4,60,16], input %v: f32[1,4,60,16]) { %y ="
    " attention %q, %k, %v num_heads=8 num_kv_heads=4 head_dim=16 layout=bhsd mask_kind=causal"
    " return %y }",
    "graph (input %q: f32[1,8,2,16], input %k: f32[1,4,60,16], input %v: f32[1,4,60,16],"
    " input %m: f32[1,8,2,60]) { %y = attention %q, %k, %v, %m num_heads=8 num_kv_heads=4"
    " head_dim=16 layout=bhsd mask_kind=bias return %y }",
    "graph (input %q: f32[8,2,16], input %k: f32[4,60,16], input %v: f32[4,60,16]) { %y ="
    " attention %q, %k, %v num_heads=8 num_kv_heads=4 head_dim=16 layout=folded return %y }",
    "graph (input %q: f32[8,2,16], input %k: f32[4,60,16], input %v: f32[4,60,16],"
    " input %m: f32[2,1,2,60]) { %y = attention %q, %k, %v, %m num_heads=4 num_kv_heads=2"
    " head_dim=16 layout=folded mask_kind=bias return %y }",
    "graph (input %q: f32[1,8,2,16], input %k: f32[1,4,60,16], input %v: f32[1,4,60,16],"
    " input %s: f32[8]) { %y = attention %q, %k, %v, %s num_heads=8 num_kv_heads=4 head_dim=16"
    " layout=bhsd has_sinks=true alibi_max_bias=8 return %y }",
    "graph (input %q: f32[8,2,16], input %k: f32[4,60,16], input %v: f32[4,60,10], input %s:"
    " f32[4]) { %y = attention %q, %k, %v, %s num_heads=4 num_kv_heads=2 head_dim=16 value_dim=10"
    " layout=folded mask_kind=chunked_window window=40 has_sinks=true return %y }",
    "graph (input %x: f32[1,9,3], param %w: f32[1,124,3], param %r: f32[1,124,31],"
    " param %b: f32[1,124], param %d: f32[1,124])"
    " { %y = lstm %x, %w, %r, %b, %d hidden_size=31 return %y }",
};

/* tolerance 0: the same bits. */
static void compare_at(struct test *t, const char *bytes, const char *const *graph, size_t count,
                       double tolerance)
{
    static struct sized a, b;
    struct place limited = {0}, plain = {0};

    if (open_limited(t, &limited, "GPU_MAX_BINDING", bytes) && open_limited(t, &plain, NULL, NULL))
        for (size_t i = 0; i < count; i++) {
            test_note(t, "%s", graph[i]);
            if (!run_one(t, &limited, graph[i], &a) || !run_one(t, &plain, graph[i], &b))
                continue;
            if (tolerance > 0)
                expect_close(t, a.y[0], b.y[0], sized_count(&b.shape[0]), tolerance, tolerance);
            else
                sized_same(t, &a, &b);
        }
    place_close(&limited);
    place_close(&plain);
}

static void compare(struct test *t, const char *const *graph, size_t count, double tolerance)
{
    compare_at(t, "1024", graph, count, tolerance);
}

TEST_GPUS(gpu_pieces, products_in_parts_of_the_depth)
{
    compare(t, depths, COUNT_OF(depths), 1e-5);
    compare(t, thirds, COUNT_OF(thirds), 1e-5);
}

TEST_GPUS(gpu_pieces, halves_are_rounded_once)
{
    compare(t, halves, COUNT_OF(halves), 1.0 / 128);
}

TEST_GPUS(gpu_pieces, products_in_rows_or_columns)
{
    compare(t, lines, COUNT_OF(lines), 1e-5);
}

TEST_GPUS(gpu_pieces, integers_are_the_same)
{
    compare(t, exact, COUNT_OF(exact), 0);
}

TEST_GPUS(gpu_pieces, experts_take_turns)
{
    compare(t, experts, COUNT_OF(experts), 0);
}

TEST_GPUS(gpu_pieces, packed_weights)
{
    compare_at(t, "512", packed, COUNT_OF(packed), 1e-5);
}

TEST_GPUS(gpu_pieces, heads_after_heads)
{
    compare(t, heads, COUNT_OF(heads), 1e-5);
}

/* ---- without a device ---- */

static void lower(struct test *t, struct place *p, const char *const *graph, size_t count)
{
    static struct sized r;

    for (size_t i = 0; i < count; i++) {
        test_note(t, "%s", graph[i]);
        run_one(t, p, graph[i], &r);
    }
}

/* As many bindings as the least of WebGPU adapters has. */
TEST(gpu_pieces, eight_bindings_are_enough)
{
    struct place p;

    if (!no_driver_open_small(t, &p, &kc_least_features, 4096, GPU_BUFFERS))
        return;
    lower(t, &p, depths, COUNT_OF(depths));
    lower(t, &p, lines, COUNT_OF(lines));
    lower(t, &p, exact, COUNT_OF(exact));
    lower(t, &p, experts, COUNT_OF(experts));
    lower(t, &p, heads, COUNT_OF(heads) - 1);
    no_driver_close(&p);
}
