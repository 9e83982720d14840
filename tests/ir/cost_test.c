/* cost_test.c: arithmetic per node, against counts made by hand. */
#include "ir/cost.h"

#include "ir/text/text.h"
#include "test.h"

/* The flops of the last node of a graph with these leaves and that node. */
static uint64_t flops_of(struct test *t, const char *leaves, const char *node)
{
    struct ir_module *m;
    struct text text;
    struct diag d;
    uint64_t flops = 0;

    diag_init(&d, "test");
    text_init(&text, mem_default());
    text_addf(&text, "rlx 1\ngraph (%s) {\n    %%y = %s\n    return %%y\n}\n", leaves, node);
    if (expect_ok(t, ir_parse((rlx_str){text.at, text.len}, NULL, mem_default(), &m, &d))) {
        const struct ir_graph *g = ir_entry(m);
        flops = ir_node_flops(g, ir_node(g, g->output.at[0]));
        ir_module_destroy(m);
    } else
        fail(t, "%s: %s", node, d.first.message);
    text_free(&text);
    return flops;
}

TEST(cost, products_are_two_per_term)
{
    expect_eq(t, flops_of(t, "input %a: f32[3,4,8], input %b: f32[8,16]", "matmul %a, %b"),
              2 * 3 * 4 * 16 * 8);
    expect_eq(
        t, flops_of(t, "input %a: f32[8,4], input %b: f32[8,16]", "matmul %a, %b transpose_a=true"),
        2 * 4 * 16 * 8);
    expect_eq(t,
              flops_of(t, "input %a: f32[2,8,4], input %b: f32[4,8,5]",
                       "dot_general %a, %b lhs_contracting=[1,2] rhs_contracting=[1,0]"),
              2 * 2 * 5 * 32);
    expect_eq(t,
              flops_of(t, "input %a: f32[4,8], input %b: f32[8,16], input %c: f32[16]",
                       "fused_matmul_bias_act %a, %b, %c activation=relu"),
              2 * 4 * 16 * 8 + 2 * 4 * 16);
}

TEST(cost, convolutions_count_their_window_and_groups)
{
    /* out [1,8,6,6]; each sums 3 channels of 3 x 3 */
    expect_eq(t, flops_of(t, "input %x: f32[1,3,8,8], input %w: f32[8,3,3,3]", "conv %x, %w"),
              2 * 8 * 36 * 27);
    /* depthwise: one channel each */
    expect_eq(t,
              flops_of(t, "input %x: f32[1,8,8,8], input %w: f32[8,1,3,3]", "conv %x, %w groups=8"),
              2 * 8 * 36 * 9);
    expect_eq(
        t, flops_of(t, "input %x: f32[1,2,4,4]", "pool %x kind=max kernel_size=[2,2] stride=[2,2]"),
        2 * 4 * 4);
}

TEST(cost, attention_counts_scores_and_values)
{
    /* 2 batches of 4 heads, 5 queries, 7 keys, 8 channels; a score costs 5 in softmax */
    const char *leaves = "input %q: f32[2,4,5,8], input %k: f32[2,2,7,8], input %v: f32[2,2,7,8]";

    expect_eq(t, flops_of(t, leaves, "attention %q, %k, %v num_heads=4 num_kv_heads=2 head_dim=8"),
              2 * 4 * 5 * 7 * (4 * 8 + 5));
}

TEST(cost, elementwise_ops_are_one_per_element)
{
    expect_eq(t, flops_of(t, "input %a: f32[3,4], input %b: f32[4]", "add %a, %b"), 12);
    expect_eq(t, flops_of(t, "input %a: f32[3,4]", "gelu %a"), 12);
    expect_eq(t, flops_of(t, "input %a: f32[3,4]", "fma %a, %a, %a"), 24);
    expect_eq(t, flops_of(t, "input %a: f32[3,4]", "cast %a to=f16"), 0);
    expect_eq(t, flops_of(t, "input %a: f32[3,4]", "transpose %a perm=[1,0]"), 0);
    expect_eq(t, flops_of(t, "input %a: f32[3,4]", "reduce_sum %a axes=[0]"), 12);
    expect_eq(t, flops_of(t, "input %a: f32[3,4]", "softmax %a"), 60);
    expect_eq(t, flops_of(t, "input %a: f32[3,4], input %g: f32[4]", "rms_norm %a, %g"), 48);
    expect_eq(t, flops_of(t, "input %a: f32[3,4], input %g: f32[4]", "layer_norm %a, %g, %g"), 84);
}

TEST(cost, solves_are_cubic)
{
    /* 2/3 27 per system, and two per element of a for each right side */
    expect_eq(t, flops_of(t, "input %a: f32[3,3], input %b: f32[3,2]", "dense_solve %a, %b"),
              18 + 2 * 9 * 2);
    expect_eq(t, flops_of(t, "input %a: f32[3,3]", "cholesky %a"), 9);
}

TEST(cost, what_is_not_static_is_not_known)
{
    expect_eq(t, flops_of(t, "input %a: f32[n,8], input %b: f32[8,16]", "matmul %a, %b"), 0);
    expect_eq(t, flops_of(t, "input %a: f32[n]", "neg %a"), 0);
}
