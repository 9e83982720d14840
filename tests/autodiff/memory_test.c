/* memory_test.c: gradients when memory runs out at every point in turn. */
#include "central.h"
#include "ir/formula.h"

/* Control flow of every kind, and rules that make constants and graphs of their own. */
static const char source[] =
    "rlx 1 graph (input %a: f32[2], input %b: f32[2], input %x: f32[3,2], input %w: u8[2,3], "
    "input %s: f32[1,3], input %z: f32[0], input %d: f32[2]) { "
    "%p = const bool[] {1} %y0 = if %p, %a, %b then_graph=@f else_graph=@g "
    "%y1 = while %y0, %b cond_graph=@c body_graph=@h max_iterations=2 "
    "%y2 = scan %y1, %b, %x body=@i length=3 num_bcast=1 num_xs=1 "
    "%y3 = scan %y2, %x body=@f length=3 num_xs=1 num_checkpoints=1 "
    "%y4 = custom_fn %y3, %a fwd_graph=@f "
    "%y5 = dequant_matmul %y4, %w, %z, %z scheme=fp8_e4m3 k=2 "
    "%y6 = dequant_matmul %y4, %w, %s, %s scheme=int8_block_asym k=2 "
    "%y7 = add %y5, %y6 return %y7 } "
    "graph @f (input %a: f32[2], input %b: f32[2]) { %p = mul %a, %b return %p } "
    "graph @g (input %a: f32[2], input %b: f32[2]) { %p = add %a, %b return %p } "
    "graph @h (input %a: f32[2], input %b: f32[2]) { %p = mul %a, %b return %p, %a } "
    "graph @c (input %a: f32[2], input %b: f32[2]) { return %a } "
    "graph @i (input %a: f32[2], input %b: f32[2], input %c: f32[2]) { %p = mul %a, %b "
    "%q = add %p, %c return %q }";

static rlx_status differentiate(struct test *t, const rlx_allocator *mem, void *user)
{
    const ir_value wrt[] = {0, 1, 2};
    struct ir_module *m = NULL;
    ir_value dx[3], dy;
    struct diag d;

    (void)t, (void)user;
    diag_init(&d, "grad");
    rlx_status s = ir_parse(rlx_cstr(source), NULL, mem, &m, &d);
    if (s == RLX_OK) {
        struct ir_graph *g = ir_entry(m);
        struct formula f = {.g = g, .diag = &d};
        dy = formula_1(&f, RLX_OP_neg, g->output.at[0]);
        s = f.status;
        if (s == RLX_OK)
            s = grad_walk(g, 0, g->output.at[0], dy, wrt, 3, dx, &d);
        if (s == RLX_OK)
            s = ir_verify(m, &d);
    }
    ir_module_destroy(m);
    return s;
}

TEST(grad, survives_without_memory)
{
    expect_survives_no_memory(t, differentiate, NULL);
}
