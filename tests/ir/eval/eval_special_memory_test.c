/* eval_special_memory_test.c: special ops when memory runs out at every point in turn, and that no
 * family is without a meaning. */
#include "eval_special.h"

/* Every op that needs room of its own. Leaves are zero, but for the camera. */
static const char source[] =
    "rlx 1 graph (input %x: f32[2,32], param %w: u8[3,18], state %sm: f32[1,1,3,3], state %ss: "
    "f32[1,3,1], param %e: u8[1,3,18], input %i: i32[2], "
    "input %a: f32[3,2], input %b: f32[1,2,2], input %s: f32[1,2,3], input %n: f32[3,1], "
    "input %c: f32[1,2,1], input %q: f32[1,2,1,3], input %g: f32[1,2,1], state %m: f32[1,1,3,3], "
    "input %h: f32[1], input %j: f32[1,3,2], input %k: f32[1,3,3], input %l: f32[1,3], "
    "input %f: f32[2,2], input %d: f32[4,4], input %r: f32[4,2], input %p: f32[2,3], "
    "input %t: f32[2,4], input %o: f32[2], input %v: f32[0], input %meta: f32[23], "
    "input %dl: f32[64]) { "
    "%y0 = dequant_matmul %x, %w scheme=q4_0 k=32 act=q8 "
    "%y1 = dequant_grouped_matmul %x, %e, %i scheme=q4_0 k=32 "
    "%y2 = dequant_moe_weights %e scheme=q4_0 k=32 %y3 = dequant_gather %w, %i scheme=q4_0 k=32 "
    "%y4 = svd %a part=vt %y5 = qr %a %y6 = eigh_batch %b "
    "%y7 = selective_scan %s, %s, %n, %c, %c state_size=1 "
    "%y8 = gated_delta_net %q, %q, %q, %g, %g, %m state_size=3 carry_state=true "
    "%y9 = mamba2 %q, %g, %h, %q, %q head_dim=3 state_size=3 "
    "%v1 = selective_scan %s, %s, %n, %c, %c, %ss state_size=1 carry_state=true "
    "%v0 = mamba2 %q, %g, %h, %q, %q, %sm head_dim=3 state_size=3 carry_state=true "
    "%z0 = rnn %b, %j, %k, %l, %l hidden_size=3 %z1 = fft %t "
    "%z2 = log_mel %t, %f "
    "%z3 = log_mel_backward %t, %f, %z2 %z4 = welch_peaks %t k=2 n_segments=2 "
    "%z5 = group_limited_gate %t, %t n_group=2 topk_group=1 top_k=2 %z6 = knn %d k=2 "
    "%z7 = knn_backward %d, %r k=2 "
    "%z8 = gaussian_splat_render %p, %p, %t, %o, %p, %v, %meta width=4 height=4 "
    "%z9 = gaussian_splat_prepare %p, %p, %t, %o, %p, %v, %meta width=4 height=4 "
    "%u0 = gaussian_splat_rasterize %z9, %meta width=4 height=4 "
    "%u1 = gaussian_splat_render_backward %p, %p, %t, %o, %p, %v, %meta, %dl width=4 height=4 "
    "return %u1 }";

static rlx_status run_with(struct test *t, const rlx_allocator *mem, void *user)
{
    struct special *s = user;
    const struct ir_graph *g = ir_entry(s->run.mod);
    struct arena arena;
    struct diag d;

    (void)t;
    diag_init(&d, "eval");
    arena_init(&arena, mem);
    struct eval_tensor *result = arena_array(&arena, struct eval_tensor, g->node.len);
    rlx_status status = result ? eval_graph(g, s->leaf, result, &arena, &d)
                               : diag_no_memory(&d, g->node.len * sizeof *result);
    arena_free(&arena);
    return status;
}

TEST(eval_special, survives_without_memory)
{
    struct special s;

    if (!special_open(t, &s, source))
        return;
    special_leaf(t, &s, "meta")->at[9].f = 60;
    expect_survives_no_memory(t, run_with, &s);
    special_close(&s);
}

TEST(eval_special, every_family_has_a_meaning)
{
    for (int f = FAMILY_none + 1; f < FAMILY_count; f++) {
        test_note(t, "%s", family_name((enum op_family)f));
        expect(t, f == FAMILY_leaf || eval_fn_of((enum op_family)f) != NULL);
    }
}
