/* legalise_test.c: what replaces an op means the same: both evaluated by definition,
 * on static sizes, and rewritten while sizes were still symbols. And the table keeps its promises.
 */
#include "ir/eval/eval_run.h"
#include "pass/expand/expand.h"
#include "pass/pass.h"

/* A device with everything but one kind, or all kinds that can do without. */
static struct target device_without(enum op_family lacking)
{
    struct target t = {.backend = "test", .alignment = 64};

    for (int f = 0; f < FAMILY_count; f++)
        t.native[f] = lacking == FAMILY_none ? !rewriter_of((enum op_family)f) || f == FAMILY_reduce
                                             : f != (int)lacking;
    t.reduce_last_axis_only = lacking == FAMILY_none || lacking == FAMILY_reduce;
    return t;
}

/* The bound module shares names and constants with the one it was made from, which `from` keeps. */
static bool bind(struct test *t, struct run *r, struct ir_module **from)
{
    struct ir_module *bound;
    int64_t size[32];

    for (size_t i = 0; i < 32; i++)
        size[i] = 2 + (int64_t)i % 2;
    if (!expect_ok(t, ir_bind(r->mod, size, 32, mem_default(), &bound, &r->diag))) {
        fail(t, "%s", r->diag.first.message);
        return false;
    }
    *from = r->mod;
    r->mod = bound;
    return true;
}

/* x: ordinary numbers; the input called "nasty" holds what formulas trip over. */
static rlx_status evaluate(struct run *r)
{
    static const double nasty[] = {0,    -0.0,  1,     -1,   3,   -3,        1e-30, 20,
                                   -20,  90,    -90,   1e20, 0.5, INFINITY,  NAN,   -0.25,
                                   2.75, -1e20, -1e-3, 7,    5.5, -INFINITY, 1e-8,  -7};
    const struct ir_graph *g = ir_entry(r->mod);
    struct eval_tensor **leaf = arena_array(&r->arena, struct eval_tensor *, g->node.len);
    size_t input = 0;

    IR_EACH(n, g) {
        struct eval_tensor *x;
        if (n->op != RLX_OP_input)
            continue;
        x = leaf[ir_id(g, n)] = arena_new(&r->arena, struct eval_tensor);
        TRY(eval_tensor_new(&r->arena, &n->type, x, &r->diag));
        bool bad = str_eq(ir_leaf_name(n), STR("nasty"));
        for (int64_t k = 0; k < x->count; k++) {
            uint32_t h = (uint32_t)(k + 1 + (int64_t)input * 7919) * 2654435761u;
            eval_set(x, k, bad ? nasty[k % 24] : (double)(h >> 8) / 4194304.0 - 2);
        }
        eval_round(x);
        input++;
    }
    return run_graph(r, leaf);
}

static void compare(struct test *t, const struct run *got, const struct run *want, double tol)
{
    const struct eval_tensor *a = run_output(got, 0), *b = run_output(want, 0);

    expect(t, type_same(&a->type, &b->type));
    for (int64_t k = 0; k < a->count && k < b->count; k++) {
        double x = eval_real(a, k), y = eval_real(b, k);
        bool same = (isnan(x) && isnan(y)) || x == y || fabs(x - y) <= tol * fmax(1, fabs(y));
        if (!expect(t, same))
            fail(t, "element %lld is %.9g, wanted %.9g", (long long)k, x, y);
    }
}

/* Every node that was not there before is of a kind that the row names. */
static void check_makes(struct test *t, const struct ir_graph *g, enum op_family kind)
{
    const struct rewriter *w = rewriter_of(kind);

    IR_EACH(n, g) {
        enum op_family f = op_info(n->op)->family;
        bool named = f == FAMILY_leaf;
        for (size_t i = 0; i < sizeof w->makes / sizeof w->makes[0] && w->makes[i]; i++)
            named = named || w->makes[i] == f;
        if (!expect(t, named))
            fail(t, "%s made %s, which its row does not name", family_name(kind), family_name(f));
    }
}

static void check_one(struct test *t, const char *text, enum op_family lacking, bool symbolic,
                      double tol)
{
    const struct pass *expand = pass_find(STR("expand"));
    struct target target = device_without(lacking);
    struct run before, after;
    struct ir_module *from[2] = {NULL, NULL};
    uint64_t changes = 0;

    if (!run_open(t, &before, text, NULL) || !run_open(t, &after, text, NULL))
        return;
    enum op_family kind =
        op_info(ir_node(ir_entry(after.mod), ir_entry(after.mod)->output.at[0])->op)->family;
    test_note(t, "%s%s: %s", symbolic ? "symbolic" : "static", lacking ? "" : ", all at once",
              text);
    bool ok = bind(t, &before, &from[0]) && (symbolic || bind(t, &after, &from[1]));
    if (ok && !expect_ok(t, pass_one(expand, after.mod, &target, NULL, &changes, &after.diag)))
        fail(t, "%s", after.diag.first.message);
    expect(t, changes > 0);
    IR_EACH(n, ir_entry(after.mod))
        expect(t, !pass_rewrites(&target, &(struct pass_options){0}, ir_entry(after.mod), n));
    if (lacking)
        check_makes(t, ir_entry(after.mod), kind);
    ok = ok && (!symbolic || bind(t, &after, &from[1]));
    if (ok && expect_ok(t, evaluate(&before)) && expect_ok(t, evaluate(&after)))
        compare(t, &after, &before, tol);
    run_close(&before);
    run_close(&after);
    ir_module_destroy(from[0]);
    ir_module_destroy(from[1]);
}

static void check(struct test *t, const char *text, double tol)
{
    struct run r;
    char whole[1024];

    snprintf(whole, sizeof whole, "rlx 1 graph %s", text);
    if (!run_open(t, &r, whole, NULL))
        return;
    enum op_family kind =
        op_info(ir_node(ir_entry(r.mod), ir_entry(r.mod)->output.at[0])->op)->family;
    run_close(&r);
    for (int symbolic = 0; symbolic < 2; symbolic++) {
        check_one(t, whole, kind, symbolic, tol);
        check_one(t, whole, FAMILY_none, symbolic, tol);
    }
}

static const struct {
    const char *text;
    double tol;
} cases[] = {
    {"(input %x: f32[b,3,4], input %w: f32[4,5], input %a: f32[4,2], input %c: f32[2,5])"
     " { %y = lora_matmul %x, %w, %a, %c scale=0.25 return %y }",
     1e-5},
    {"(input %x: f32[4], input %w: f32[4,5], input %a: f32[4,2], input %c: f32[2,5])"
     " { %y = lora_matmul %x, %w, %a, %c scale=0.25 return %y }",
     1e-5},
    {"(input %a: f32[b,2,3,4,5], input %c: f32[b,2,5,4,6])"
     " { %y = dot_general %a, %c lhs_contracting=[3,4] rhs_contracting=[3,2] lhs_batch=[0,1]"
     " rhs_batch=[0,1] return %y }",
     1e-5},
    {"(input %a: f32[b,3], input %c: f32[4,b])"
     " { %y = dot_general %a, %c lhs_contracting=[0] rhs_contracting=[1] return %y }",
     1e-5},
    {"(input %x: f32[b,3,4], input %w: f32[4,5], input %c: f32[5])"
     " { %y = fused_matmul_bias_act %x, %w, %c activation=gelu return %y }",
     1e-5},
    {"(input %x: f32[b,2,5,5], input %w: f32[3,2,3,3], input %c: f32[3], input %r: f32[b,3,3,3])"
     " { %y = fused_conv_bias_act %x, %w, %c, %r activation=silu has_residual=true return %y }",
     1e-5},
    {"(input %x: f32[b,2,9], input %w: f32[3,2,3], input %c: f32[3])"
     " { %y = fused_conv_bias_act %x, %w, %c stride=[2] return %y }",
     1e-5},
    {"(input %x: f32[b,4], input %r: f32[b,4], input %c: f32[4], input %g: f32[4], input %o: "
     "f32[4])"
     " { %y = fused_residual_ln %x, %r, %c, %g, %o has_bias=true eps=0.01 return %y }",
     1e-5},
    {"(input %x: f32[b,4], input %r: f32[b,4], input %g: f32[4], input %o: f32[4])"
     " { %y = fused_residual_rms_norm %x, %r, %g, %o eps=0.01 return %y }",
     1e-5},
    {"(input %x: f32[b,2*s]) { %y = fused_swiglu %x return %y }", 1e-5},
    {"(input %x: f32[b,6]) { %y = fused_swiglu %x gate_first=true cast_to=f16 return %y }", 2e-3},
    {"(input %h: f32[b,3,8], input %q: f32[8,16], input %o: f32[8,8], input %m: f32[b,3])"
     " { %y = fused_attention_block %h, %q, %o, %m num_heads=4 num_kv_heads=2 head_dim=2"
     " score_scale=0.3 logit_softcap=5 return %y }",
     1e-5},
    {"(input %h: f32[b,3,8], input %q: f32[8,24], input %o: f32[8,8], input %m: f32[b,3],"
     " input %qb: f32[24], input %ob: f32[8], input %c: f32[3,2], input %s: f32[3,2])"
     " { %y = fused_attention_block %h, %q, %o, %m, %qb, %ob, %c, %s num_heads=2 head_dim=4"
     " has_bias=true has_rope=true return %y }",
     1e-5},
    {"(input %h: f32[b,3,4], input %q: f32[4,12], input %o: f32[4,4], input %g: f32[4],"
     " input %f: f32[4,6], input %k: f32[6,4], input %e: f32[4], input %m: f32[b,3])"
     " { %y = fused_transformer_layer %h, %q, %o, %g, %f, %k, %e, %m num_heads=2 head_dim=2"
     " intermediate_size=6 eps1=0.01 eps2=0.02 activation=relu return %y }",
     1e-4},
    {"(input %h: f32[b,3,4], input %q: f32[4,12], input %qb: f32[12], input %o: f32[4,4],"
     " input %ob: f32[4], input %g: f32[4], input %gb: f32[4], input %f: f32[4,6], input %fb: "
     "f32[6],"
     " input %k: f32[6,4], input %kb: f32[4], input %e: f32[4], input %eb: f32[4], input %m: "
     "f32[b,3])"
     " { %y = fused_transformer_layer %h, %q, %qb, %o, %ob, %g, %gb, %f, %fb, %k, %kb, %e, %eb, %m"
     " num_heads=2 head_dim=2 intermediate_size=6 has_bias=true return %y }",
     1e-4},
    {"(input %x: f32[b,3], input %c: f32[3]) { %y = elementwise_region %x, %c"
     " chain=[[add,i0,i1],[relu,s0],[gt,s1,i1],[where,s2,s1,i0],[cast,s3,f16]] return %y }",
     2e-3},
    {"(input %x: f32[b,2,2,3], input %c: f32[b,2,4,6]) { %y = elementwise_region %x, %c"
     " chain=[[add,i0,i1],[neg,s0]] prologue=resize_nearest_2x return %y }",
     1e-6},
    {"(input %x: f32[b,3], input %c: f32[b,3]) { %y = batch_elementwise_region %x, %c"
     " chain=[[exp,i0],[neg,s0]] return %y }",
     1e-6},
    {"(input %x: f32[b,2,2,3]) { %y = transform_region %x chain=[[resize_nearest_2x,i0]] return %y "
     "}",
     0},
    {"(input %x: f32[b,3,2,s], input %g: f32[3], input %c: f32[3])"
     " { %y = layer_norm_2d %x, %g, %c eps=0.01 return %y }",
     1e-5},
    {"(input %x: f32[b,s,4], input %k: f32[b,s,4], input %c: f32[4])"
     " { %y = ada_layer_norm %x, %k, %c eps=0.01 return %y }",
     1e-5},
    {"(input %x: f32[b,4], input %k: f32[4], input %c: f32[b,4])"
     " { %y = ada_layer_norm %x, %k, %c norm=rms return %y }",
     1e-5},
    {"(input %x: f32[b,4], input %h: f32[b,4], input %g: f32[4])"
     " { %y = gated_residual %x, %h, %g return %y }",
     1e-6},
    {"(input %x: f32[b,6,s,3], input %g: f32[6], input %c: f32[6])"
     " { %y = group_norm %x, %g, %c num_groups=3 eps=0.01 return %y }",
     1e-5},
    {"(input %x: f16[b,6], input %g: f16[6], input %c: f16[6])"
     " { %y = group_norm %x, %g, %c num_groups=2 return %y }",
     2e-3},
    {"(input %x: i8[b,2,s,3]) { %y = resize_nearest_2x %x return %y }", 0},
    {"(input %nasty: f32[24], input %dy: f32[24]) { %y = relu_backward %nasty, %dy return %y }", 0},
    {"(input %x: f32[b,3,4]) { %y = reduce_sum %x axes=[0,2] return %y }", 1e-6},
    {"(input %x: f32[b,3,4]) { %y = reduce_mean %x axes=[0] keep_dim=true return %y }", 1e-6},
    {"(input %x: i32[b,3,4]) { %y = reduce_max %x axes=[1,2] return %y }", 0},
    {"(input %x: f32[b,3,4]) { %y = reduce_prod %x axes=[0,1,2] keep_dim=true return %y }", 1e-6},
    {"(input %x: f32[b,3]) { %y = reduce_min %x axes=[] return %y }", 0},
};

/* Their length is fixed; what is symbolic is the batch. */
static const struct {
    const char *text;
    double tol;
} scans[] = {
    {"(input %x: f32[b,5,3], input %d: f32[b,5,3], input %a: f32[3,2], input %m: f32[b,5,2],"
     " input %c: f32[b,5,2]) { %y = selective_scan %x, %d, %a, %m, %c state_size=2 return %y }",
     1e-4},
    {"(input %x: f32[b,0,3], input %d: f32[b,0,3], input %a: f32[3,2], input %m: f32[b,0,2],"
     " input %c: f32[b,0,2]) { %y = selective_scan %x, %d, %a, %m, %c state_size=2 return %y }",
     0},
    {"(input %q: f32[b,4,2,3], input %k: f32[b,4,2,3], input %v: f32[b,4,2,3], input %g: "
     "f32[b,4,2],"
     " input %e: f32[b,4,2]) { %y = gated_delta_net %q, %k, %v, %g, %e state_size=3 return %y }",
     1e-4},
};

TEST(pass, unrolled_is_the_same)
{
    for (size_t i = 0; i < sizeof scans / sizeof scans[0]; i++)
        check(t, scans[i].text, scans[i].tol);
}

static const struct {
    const char *text;
    double tol;
} layers[] = {
    {"(input %x: f32[b,s,2,3], input %d: f32[b,s,2], input %a: f32[2], input %m: f32[b,s,2,4],"
     " input %c: f32[b,s,2,4]) { %y = mamba2 %x, %d, %a, %m, %c head_dim=3 state_size=4 return %y "
     "}",
     1e-4},
    {"(input %x: f32[b,s,3], input %w: f32[3,4], input %c: f32[3])"
     " { %y = causal_conv %x, %w, %c activation=silu return %y }",
     1e-5},
    {"(input %x: f16[b,s,3], input %w: f16[3,1]) { %y = causal_conv %x, %w return %y }", 2e-3},
    {"(input %x: f32[b,s,4,3], input %d: f32[b,s,4], input %a: f32[4], input %m: f32[b,s,2,4])"
     " { %y = mamba2 %x, %d, %a, %m, %m head_dim=3 state_size=4 groups=2 return %y }",
     1e-4},
    {"(input %x: f32[b,0,2,3], input %d: f32[b,0,2], input %a: f32[2], input %m: f32[b,0,2,4])"
     " { %y = mamba2 %x, %d, %a, %m, %m head_dim=3 state_size=4 return %y }",
     0},
#define LAYER(op, gates, dirs, more, operands, attrs)                                           \
    "(input %x: f32[b,s,2], input %i: f32[" dirs "," gates ",2], input %h: f32[" dirs "," gates \
    ",3], input %c: f32[" dirs "," gates "], input %d: f32[" dirs "," gates "]" more            \
    ") { %y = " op " %x, %i, %h, %c, %d" operands " hidden_size=3 " attrs " return %y }"
    {LAYER("lstm", "12", "1", "", "", ""), 1e-5},
    {LAYER("lstm", "12", "1", "", "", "result=c"), 1e-5},
    {LAYER("lstm", "12", "2", ", input %u: f32[2,b,3], input %v: f32[2,b,3], input %l: i32[b]",
           ", %u, %v, %l", "bidirectional=true has_state=true has_lengths=true"),
     1e-5},
    {LAYER("lstm", "12", "2", ", input %u: f32[2,b,3], input %v: f32[2,b,3], input %l: i32[b]",
           ", %u, %v, %l", "bidirectional=true has_state=true has_lengths=true result=h"),
     1e-5},
    {LAYER("gru", "9", "1", "", "", ""), 1e-5},
    {LAYER("gru", "9", "2", ", input %u: f32[2,b,3], input %l: u8[b]", ", %u, %l",
           "bidirectional=true has_state=true has_lengths=true"),
     1e-5},
    {LAYER("gru", "9", "2", "", "", "bidirectional=true result=h"), 1e-5},
    {LAYER("rnn", "3", "1", "", "", ""), 1e-5},
    {LAYER("rnn", "3", "1", ", input %u: f32[1,b,3]", ", %u", "has_state=true activation=relu"),
     1e-5},
    {"(input %x: f16[b,s,2], input %i: f16[1,9,2], input %h: f16[1,9,3], input %c: f16[1,9])"
     " { %y = gru %x, %i, %h, %c, %c hidden_size=3 return %y }",
     2e-3},
    {"(input %x: f32[b,0,2], input %i: f32[1,9,2], input %h: f32[1,9,3], input %c: f32[1,9],"
     " input %l: i64[b]) { %y = gru %x, %i, %h, %c, %c, %l hidden_size=3 has_lengths=true"
     " return %y }",
     0},
#undef LAYER
};

TEST(pass, layers_as_scans_are_the_same)
{
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        check(t, layers[i].text, layers[i].tol);
}

TEST(pass, unrolling_has_a_limit)
{
    struct target target = device_without(FAMILY_selective_scan);
    const struct pass *expand = pass_find(STR("expand"));
    struct run r;

    require(t, run_open(t, &r,
                        "rlx 1 graph (input %x: f32[1,999,3], input %a: f32[3,2],"
                        " input %m: f32[1,999,2]) { %y = selective_scan %x, %x, %a, %m, %m"
                        " state_size=2 return %y }",
                        NULL));
    expect_status(t, pass_one(expand, r.mod, &target, NULL, NULL, &r.diag), RLX_ERROR_LIMIT);
    expect_error(t, RLX_ERROR_LIMIT, "999 steps", &r.diag.first);
    run_close(&r);
    /* A length that is not known, and a state that is carried, are the device's to refuse. */
    require(t, run_open(t, &r,
                        "rlx 1 graph (input %x: f32[1,n,3], input %a: f32[3,2],"
                        " input %m: f32[1,n,2]) { %y = selective_scan %x, %x, %a, %m, %m"
                        " state_size=2 return %y }",
                        NULL));
    expect_ok(t, pass_one(expand, r.mod, &target, NULL, NULL, &r.diag));
    expect_eq(t, ir_node(ir_entry(r.mod), ir_entry(r.mod)->output.at[0])->op,
              RLX_OP_selective_scan);
    run_close(&r);
    target = device_without(FAMILY_gated_delta_net);
    require(t, run_open(t, &r,
                        "rlx 1 graph (input %q: f32[1,2,1,3], input %g: f32[1,2,1],"
                        " state %s: f32[1,1,3,3]) { %y = gated_delta_net %q, %q, %q, %g, %g, %s"
                        " state_size=3 carry_state=true return %y }",
                        NULL));
    expect_ok(t, pass_one(expand, r.mod, &target, NULL, NULL, &r.diag));
    expect_eq(t, ir_node(ir_entry(r.mod), ir_entry(r.mod)->output.at[0])->op,
              RLX_OP_gated_delta_net);
    run_close(&r);
    target = device_without(FAMILY_mamba2);
    require(t, run_open(t, &r,
                        "rlx 1 graph (input %x: f32[1,2,1,3], input %d: f32[1,2,1], input %a: "
                        "f32[1], state %s: f32[1,1,3,3]) { %y = mamba2 %x, %d, %a, %x, %x, %s"
                        " head_dim=3 state_size=3 carry_state=true return %y }",
                        NULL));
    expect_ok(t, pass_one(expand, r.mod, &target, NULL, NULL, &r.diag));
    expect_eq(t, ir_node(ir_entry(r.mod), ir_entry(r.mod)->output.at[0])->op, RLX_OP_mamba2);
    run_close(&r);
}

TEST(pass, rewritten_is_the_same)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(t, cases[i].text, cases[i].tol);
}

TEST(pass, gradient_formulas)
{
    static const char *const types[] = {"f32", "f16", "f64"};
    static const double tols[] = {4e-6, 2e-3, 4e-6};

    for (int op = 1; op < RLX_OP_count; op++) {
        if (op_info((rlx_op)op)->family != FAMILY_unary || op == RLX_OP_not)
            continue;
        for (size_t k = 0; k < 3; k++) {
            char text[256];
            snprintf(text, sizeof text,
                     "(input %%nasty: %s[24], input %%dy: %s[24])"
                     " { %%y = activation_backward %%nasty, %%dy kind=%s return %%y }",
                     types[k], types[k], op_info((rlx_op)op)->name);
            bool through = op == RLX_OP_round; /* its formula has no node at all */
            if (!through)
                check(t, text, tols[k]);
        }
    }
}

TEST(pass, rewriters_come_to_an_end)
{
    const struct rewriter *w;

    for (size_t i = 0; (w = rewriter_at(i)) != NULL; i++) {
        expect(t, rewriter_of(w->kind) == w); /* one row per kind */
        expect(t, rewriter_depth(w->kind) >= 1 && rewriter_depth(w->kind) <= 16);
        for (size_t k = 0; k < sizeof w->makes / sizeof w->makes[0] && w->makes[k]; k++)
            if (w->makes[k] != w->kind || w->when != REWRITE_PARTLY)
                expect(t, rewriter_depth(w->makes[k]) < rewriter_depth(w->kind));
    }
}

/* On a device that takes no scalars either, every operand has the result's shape, and nothing else
 * has changed. */
TEST(pass, broadcasts_are_written_out)
{
    struct target target = device_without(FAMILY_reduce);
    struct ir_module *from[2];
    struct run before, after;
    static const char text[] =
        "rlx 1 graph (input %x: f32[b,s,3], input %r: f32[3], input %c: f32[s,1], input %k: f32[])"
        " { %a = add %x, %r %m = gt %a, %c %w = where %m, %k, %c %y = fma %w, %r, %a return %y }";

    target.equal_operands = true;
    require(t, run_open(t, &before, text, NULL) && run_open(t, &after, text, NULL));
    expect_ok(t, pass_one(pass_find(STR("expand-broadcasts")), after.mod, &target, NULL, NULL,
                          &after.diag));
    IR_EACH(n, ir_entry(after.mod)) {
        enum op_family f = op_info(n->op)->family;
        bool wide =
            f == FAMILY_binary || f == FAMILY_compare || f == FAMILY_where || f == FAMILY_fma;
        for (int32_t k = 0; wide && k < n->in_count; k++) {
            struct ir_type x = *ir_type_of(ir_entry(after.mod), n->in[k]);
            x.dtype = n->type.dtype;
            expect(t, type_same(&x, &n->type));
        }
    }
    if (bind(t, &before, &from[0]) && bind(t, &after, &from[1]) &&
        expect_ok(t, evaluate(&before)) && expect_ok(t, evaluate(&after)))
        compare(t, &after, &before, 0);
    run_close(&before);
    run_close(&after);
    ir_module_destroy(from[0]);
    ir_module_destroy(from[1]);
}
