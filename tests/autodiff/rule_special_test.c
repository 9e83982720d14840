/* rule_special_test.c: the special ops, against central differences. */
#include "central.h"
#include "ir/eval/eval_splat_scene.h"

static void each_fft(struct test *t, const char *type, int64_t extent)
{
    static const char *const norms[] = {"backward", "forward", "ortho"};
    char graph[160];

    for (int i = 0; i < 6; i++) {
        snprintf(graph, sizeof graph,
                 "(input %%x: %s[2,%d]) { %%y = fft %%x inverse=%s norm=%s return %%y }", type,
                 (int)extent, i % 2 ? "true" : "false", norms[i / 2]);
        agrees(t, 1e-6, graph);
    }
}

TEST(grad, fft)
{
    each_fft(t, "f64", 8);
    each_fft(t, "f32", 10);
    each_fft(t, "c64", 5);
    each_fft(t, "c64", 1);
}

TEST(grad, special_ops_of_symbolic_sizes)
{
    agrees_at(t, 1e-5, 6,
              "(input %x: f32[2,n]) { %y = fft %x inverse=true norm=forward return %y }");
    agrees_at(t, 1e-5, 6, "(input %x: c64[n]) { %y = fft %x inverse=true norm=forward return %y }");
    agrees_at(t, 1e-5, 6, "(input %d: f32[n,n]) { %y = knn %d k=2 return %y }");
    agrees_at(t, 1e-5, 6,
              "(input %pos: f32[n,8], input %r: f32[n,8]) { "
              "%y = group_limited_gate %pos, %r top_k=2 topk_group=2 return %y }");
    agrees_at(t, 1e-5, 6,
              "(input %x: f32[n,32], input %idx40: u8[5,34]) { "
              "%y = dequant_matmul %x, %idx40 scheme=q8_0 k=32 return %y }");
    agrees_at(t, 1e-5, 6,
              "(input %c: f64[2], input %b: f64[2], input %x: f64[n,2]) { "
              "%y = scan %c, %b, %x body=@s length=n num_bcast=1 num_xs=1 return %y } "
              "graph @s (input %c: f64[2], input %b: f64[2], input %x: f64[2]) { %p = mul %c, %b "
              "%s = add %p, %x return %s }");
}

/* Sizes that are not known yet: the gradient is built, and is whole once they are. */
static void builds(struct test *t, const char *source)
{
    struct central c = {0};
    struct ir_module *bound = NULL;
    ir_value wrt[16], dx[16];
    int64_t size[64]; /* of every symbol there is */

    for (int i = 0; i < 64; i++)
        size[i] = 6;
    require(t, run_open(t, &c.s.run, source, NULL));
    struct ir_graph *g = ir_entry(c.s.run.mod);
    struct diag *d = &c.s.run.diag;
    size_t count = central_wrt(g, wrt, 16), symbols = dim_symbol_count(g->mod->dims);
    if (expect(t, symbols <= 64) && expect_ok(t, central_seed(&c, d)) &&
        expect_ok(t, grad_walk(g, 0, c.out, c.dy, wrt, count, dx, d)) &&
        expect_ok(t, ir_add_output(g, dx[0], d)) && expect_ok(t, ir_verify(c.s.run.mod, d)) &&
        expect_ok(t, ir_bind(c.s.run.mod, size, symbols, mem_default(), &bound, d)))
        expect_ok(t, ir_verify(bound, d));
    if (d->first.status)
        fail(t, "%s\n  in: %s", d->first.message, source);
    ir_module_destroy(bound);
    run_close(&c.s.run);
}

TEST(grad, special_ops_are_built_for_symbols)
{
    builds(t, "rlx 1 dim n graph (input %p: f32[n,3], input %s: f32[n,3], input %r: f32[n,4], "
              "input %o: f32[n], input %c: f32[n,3], input %h: f32[n,3,4], input %m: f32[23]) { "
              "%y = gaussian_splat_render %p, %s, %r, %o, %c, %h, %m return %y }");
    builds(t, "rlx 1 dim n graph (input %c: bf16[2], input %b: bf16[2], input %x: bf16[n,2]) { "
              "%y = scan %c, %b, %x body=@s length=n num_bcast=1 num_xs=1 save_trajectory=true "
              "return %y } graph @s (input %c: bf16[2], input %b: bf16[2], input %x: bf16[2]) { "
              "%p = mul %c, %b %s = add %p, %x return %s }");
}

/* No mel is so much weaker than the strongest that it is held at the floor. */
TEST(grad, log_mel)
{
    agrees(t, 1e-6,
           "(input %x: f32[2,3,8]) { %f = const f32[2,3] {1 0.5 0 0 0.25 1}"
           " %y = log_mel %x, %f return %y }");
    agrees(t, 1e-6,
           "(input %x: f32[6]) { %f = const f32[3,2] {1 0.5 0.5 0.5 0 2}"
           " %y = log_mel %x, %f return %y }");
}

TEST(grad, knn_passes_distances)
{
    agrees(t, 1e-6, "(input %d: f32[5,5]) { %y = knn %d k=2 return %y }");
    agrees(t, 1e-6, "(input %d: f32[3,3]) { %n = neg %d %y = knn %n k=1 return %y }");
}

/* The ids do not move; nothing reaches the scores that chose them. */
TEST(grad, group_limited_gate)
{
    agrees(t, 1e-6,
           "(input %pos: f32[2,3,8], input %r: f32[2,3,8]) { %y = group_limited_gate %pos, %r"
           " n_group=4 topk_group=2 top_k=3 return %y }");
    agrees(t, 1e-6,
           "(input %pos: f32[8], input %r: f32[8]) { %y = group_limited_gate %pos, %r"
           " n_group=2 topk_group=1 top_k=1 scaling=1.5 return %y }");
    agrees(t, 1e-6,
           "(input %s: f32[4], input %r: f32[4]) { %y = group_limited_gate %s, %r"
           " n_group=1 topk_group=1 top_k=4 return %y }");
}

/* ---- packed weights ---- */

TEST(grad, products_with_block_formats)
{
    agrees(t, 1e-6,
           "(input %x: f32[3,64], input %idx40: u8[5,68])"
           " { %y = dequant_matmul %x, %idx40 scheme=q8_0 k=64 return %y }");
    agrees(t, 1e-6,
           "(input %x: f32[256], input %idx40: u8[3,144])"
           " { %y = dequant_matmul %x, %idx40 scheme=q4_k k=256 return %y }");
    agrees(t, 1e-6,
           "(input %x: f32[2,2,32], input %idx40: u8[3,18])"
           " { %y = dequant_matmul %x, %idx40 scheme=q4_0 k=32 return %y }");
    agrees(t, 1e-6,
           "(input %x: f32[4,32], input %idx40: u8[3,5,34], input %idx3: i32[4])"
           " { %y = dequant_grouped_matmul %x, %idx40, %idx3 scheme=q8_0 k=32 return %y }");
}

TEST(grad, products_with_scales_beside_the_weight)
{
    static const char *const graphs[] = {
        /* groups of 2 and one of 1; one group for all */
        "(input %x: f32[2,5], input %idx256: u8[5,3], input %skip: f32[3,3], input %skipz: "
        "f32[0]) { %y = dequant_matmul %x, %idx256, %skip, %skipz scheme=int8_block k=5 "
        "block_size=2 return %y }",
        "(input %x: f32[2,2,5], input %idx256: u8[5,3], input %skip: f32[3,3], input %skipz: "
        "f32[3,3]) { %y = dequant_matmul %x, %idx256, %skip, %skipz scheme=int8_block_asym k=5 "
        "block_size=2 return %y }",
        "(input %x: f32[5], input %idx256: u8[5,3], input %skip: f32[1,3], input %skipz: "
        "f32[1,3]) { %y = dequant_matmul %x, %idx256, %skip, %skipz scheme=int8_block_asym k=5 "
        "block_size=1000 return %y }",
        /* an odd number of half bytes */
        "(input %x: f32[2,5], input %idx256: u8[8], input %skip: f32[2,3], input %skipz: "
        "f32[0]) { %y = dequant_matmul %x, %idx256, %skip, %skipz scheme=int4_block k=5 n=3 "
        "block_size=4 return %y }",
        "(input %x: f32[2,5], input %idx256: u8[5,3], input %skip: f32[0], input %skipz: "
        "f32[0]) { %y = dequant_matmul %x, %idx256, %skip, %skipz scheme=fp8_e4m3 k=5 return %y }",
        "(input %x: f32[2,5], input %idx256: u8[5,3], input %skip: f32[1], input %skipz: "
        "f32[0]) { %y = dequant_matmul %x, %idx256, %skip, %skipz scheme=fp8_e4m3 k=5 return %y }",
        "(input %x: f32[2,5], input %idx60: u8[5,3], input %skip: f32[1,3], input %skipz: "
        "f32[0]) { %y = dequant_matmul %x, %idx60, %skip, %skipz scheme=fp8_e5m2 k=5 return %y }",
        "(input %x: f32[2,18], input %idx256: u8[27], input %idx60: u8[2,3], input %skip: "
        "f32[1]) { %y = dequant_matmul %x, %idx256, %idx60, %skip scheme=nvfp4_block k=18 n=3 "
        "return %y }",
    };

    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
        agrees(t, 1e-6, graphs[i]);
    refuses(t, RLX_ERROR_NO_RULE, "operand 2",
            "(input %x: f32[2,5], input %w: u8[5,3], input %s: f32[3,3], input %skip: f32[0])"
            " { %y = dequant_matmul %x, %w, %s, %skip scheme=int8_block k=5 block_size=2"
            " return %y }");
}

/* ---- splats ---- */

/* The six gradients of render are the parts of what its backward op packs. */
static void compare_parts(struct test *t, struct special *s, const ir_value *wrt,
                          const ir_value *dx)
{
    const struct eval_tensor *packed = run_output(&s->run, 1);
    int64_t at = 0;
    bool any = false;

    for (int i = 0; i < 6; i++) {
        const struct eval_tensor *got = &s->run.result[dx[i]];
        expect(t, type_same(&got->type, ir_type_of(ir_entry(s->run.mod), wrt[i])));
        for (int64_t k = 0; k < got->count; k++) {
            expect_near(t, got->at[k].f, packed->at[at + k].f, 0);
            any |= got->at[k].f != 0;
        }
        at += got->count;
    }
    expect(t, any);
    expect_eq(t, at, packed->count);
}

static bool open_again(struct special *s)
{
    const struct ir_graph *g = ir_entry(s->run.mod);
    struct eval_tensor **leaf = arena_array(&s->run.arena, struct eval_tensor *, g->node.len);

    for (size_t v = 0; leaf && v < g->node.len; v++)
        if (op_info(g->node.at[v].op)->family == FAMILY_leaf)
            leaf[v] = s->leaf[v]; /* what was added has no leaves */
    s->leaf = leaf;
    return leaf;
}

#define SCENE "%positions, %scales, %rotations, %opacities, %colors, %sh, %meta"
#define ATTRS "width=8 height=6 tile_size=4 max_list_entries=100 max_splat_steps=3 "

TEST(grad, splats_get_their_parts)
{
    static const char source[] =
        "rlx 1 graph (input %positions: f32[4,3], input %scales: f32[12], input %rotations: "
        "f32[4,4], input %opacities: f32[2,2], input %colors: f32[4,3], input %sh: f32[4,4,3], "
        "input %meta: f32[23], input %dl: f32[192]) { %y = gaussian_splat_render " SCENE " " ATTRS
        "%b = gaussian_splat_render_backward " SCENE ", %dl " ATTRS
        "loss_grad_clip=1e30 sh_band=1 return %y, %b }";
    ir_value wrt[6], dx[6], dl;
    struct special s;

    require(t, special_open(t, &s, source));
    struct ir_graph *g = ir_entry(s.run.mod);
    scene_random(t, &s, 3);
    struct eval_tensor *p = special_leaf(t, &s, "positions");
    for (int64_t k = 0; k < p->count; k++) /* all of them in sight */
        p->at[k].f *= 0.3;
    fill_reals(special_leaf(t, &s, "dl"), 5, -2, 2);
    for (int i = 0; i < 6; i++)
        wrt[i] = i;
    expect(t, ir_find_leaf(g, STR("dl"), &dl));
    if (expect_ok(t, grad_walk(g, 0, g->output.at[0], dl, wrt, 6, dx, &s.run.diag)) &&
        open_again(&s) && special_run(t, &s))
        compare_parts(t, &s, wrt, dx);
    special_close(&s);
}

TEST(grad, halves_of_splatting_have_none)
{
    static const char in[] =
        "(input %p: f32[3], input %s: f32[3], input %r: f32[4], input %o: f32[1], "
        "input %c: f32[3], input %h: f32[0], input %m: f32[23]) { "
        "%y = gaussian_splat_prepare %p, %s, %r, %o, %c, %h, %m return %y }";

    refuses(t, RLX_ERROR_NO_RULE, "gaussian_splat_prepare", in);
    refuses(t, RLX_ERROR_NO_RULE, "gaussian_splat_rasterize",
            "(input %p: f32[68], input %m: f32[23]) { %y = gaussian_splat_rasterize %p, %m "
            "width=3 height=3 tile_size=3 max_list_entries=13 return %y }");
}

/* ---- recurrences ---- */

TEST(grad, recurrences_over_time)
{
    agrees(t, 1e-6,
           "(input %x: f32[2,3,2], input %pos: f32[2,3,2], input %a: f32[2,4], input %b: "
           "f32[2,3,4], input %c: f32[2,3,4]) { %y = selective_scan %x, %pos, %a, %b, %c "
           "state_size=4 return %y }");
    agrees(t, 1e-6,
           "(input %q: f32[2,3,2,2], input %k: f32[2,3,2,2], input %v: f32[2,3,2,2], input %g: "
           "f32[2,3,2], input %b: f32[2,3,2]) { %y = gated_delta_net %q, %k, %v, %g, %b "
           "state_size=2 return %y }");
    refuses(t, RLX_ERROR_NO_RULE, "selective_scan",
            "(input %x: f32[1,3,2], input %a: f32[2,2], state %s: f32[1,2,2]) { "
            "%y = selective_scan %x, %x, %a, %x, %x, %s state_size=2 carry_state=true return %y }");
    refuses(
        t, RLX_ERROR_NO_RULE, "gated_delta_net",
        "(input %q: f32[1,3,2,2], input %g: f32[1,3,2], state %s: f32[1,2,2,2]) { "
        "%y = gated_delta_net %q, %q, %q, %g, %g, %s state_size=2 carry_state=true return %y }");
}

TEST(grad, mamba2)
{
    agrees(t, 1e-5,
           "(input %x: f32[2,3,2,3], input %pos: f32[2,3,2], input %a: f32[2], input %b: "
           "f32[2,3,2,4], input %c: f32[2,3,2,4]) { %y = mamba2 %x, %pos, %a, %b, %c head_dim=3 "
           "state_size=4 return %y }");
    agrees(t, 1e-5,
           "(input %x: f32[1,3,4,2], input %pos: f32[1,3,4], input %a: f32[4], input %b: "
           "f32[1,3,1,3], input %c: f32[1,3,1,3]) { %y = mamba2 %x, %pos, %a, %b, %c head_dim=2 "
           "state_size=3 groups=1 return %y }");
    refuses(t, RLX_ERROR_NO_RULE, "mamba2",
            "(input %x: f32[1,3,2,2], input %g: f32[1,3,2], input %a: f32[2], "
            "state %s: f32[1,2,2,2]) { %y = mamba2 %x, %g, %a, %x, %x, %s head_dim=2 "
            "state_size=2 carry_state=true return %y }");
}

TEST(grad, causal_conv)
{
    agrees(t, 1e-5,
           "(input %x: f32[2,5,3], input %w: f32[3,4], input %b: f32[3]) { "
           "%y = causal_conv %x, %w, %b activation=silu return %y }");
    refuses(t, RLX_ERROR_NO_RULE, "causal_conv",
            "(input %x: f32[2,5,3], input %w: f32[3,4], state %s: f32[2,3,3]) { "
            "%y = causal_conv %x, %w, %s carry_state=true return %y }");
}

/* Each kind of layer, in each form: one direction or two, with a beginning or lengths or neither.
 */
TEST(grad, recurrent_layers)
{
    static const char *const op[] = {"lstm", "gru", "rnn"}, *const result[] = {"seq", "h", "c"};
    char graph[1024];

    for (int i = 0; i < 3 * 3 * 4; i++) {
        int gates = i % 3 == 0 ? 4 : i % 3 == 1 ? 3 : 1, which = i / 3 % 3, form = i / 9;
        int dirs = form % 2 ? 2 : 1;
        bool more = form >= 2, lstm = i % 3 == 0;
        if (which == 2 && !lstm)
            continue;
        snprintf(graph, sizeof graph,
                 "(input %%x: f64[2,3,2], input %%w: f64[%d,%d,2], input %%u: f64[%d,%d,3], "
                 "input %%b: f64[%d,%d], input %%d: f64[%d,%d], input %%h: f64[%d,2,3], "
                 "input %%c: f64[%d,2,3], input %%idx4: i32[2]) { "
                 "%%y = %s %%x, %%w, %%u, %%b, %%d%s%s hidden_size=3 result=%s bidirectional=%s "
                 "has_state=%s has_lengths=%s return %%y }",
                 dirs, 3 * gates, dirs, 3 * gates, dirs, 3 * gates, dirs, 3 * gates, dirs, dirs,
                 op[i % 3],
                 !more  ? ""
                 : lstm ? ", %h, %c"
                        : ", %h",
                 more ? ", %idx4" : "", result[which], dirs == 2 ? "true" : "false",
                 more ? "true" : "false", more ? "true" : "false");
        agrees(t, 1e-6, graph);
    }
}
