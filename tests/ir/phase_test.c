/* phase_test.c: prologue, steady part and epilogue of small graphs. */
#include "ir/phase.h"

#include "ir/text/text.h"
#include "test.h"

/* "pps.e": the phases of the nodes, in order. */
static void check(struct test *t, const char *text, const char *want)
{
    enum ir_phase phase[32];
    char got[33] = "";
    struct ir_module *m;
    struct diag d;

    diag_init(&d, "test");
    require_ok(t, ir_parse(rlx_cstr(text), NULL, mem_default(), &m, &d));
    const struct ir_graph *g = ir_entry(m);
    ir_phases(g, phase);
    for (size_t i = 0; i < g->node.len && i < 32; i++)
        got[i] = "pse"[phase[i]];
    expect_str(t, got, want);
    ir_module_destroy(m);
}

TEST(phase, what_follows_the_last_product_is_epilogue)
{
    check(t,
          "rlx 1\ngraph (input %x: f32[2,4], param %w: f32[4,4]) {\n    %a = neg %x\n"
          "    %m = matmul %a, %w\n    %s = softmax %m\n    return %s\n}\n",
          "ppsse");
}

TEST(phase, sampling_is_epilogue_wherever_it_stands)
{
    check(t,
          "rlx 1\ngraph (input %x: f32[2,4], param %w: f32[4,4]) {\n"
          "    %k = topk %x k=1 result=values\n    %m = matmul %x, %w\n    %r = relu %m\n"
          "    return %k, %r\n}\n",
          "ppeee"); /* the product too: it stands after the last sampling node */
}

TEST(phase, without_heavy_nodes_all_is_epilogue)
{
    check(t, "rlx 1\ngraph (input %x: f32[2]) {\n    %a = neg %x\n    return %a\n}\n", "pe");
}
