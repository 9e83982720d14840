/* dispatch_test.c: who runs what, on devices that lack one thing or another. */
#include "ir/custom.h"
#include "ir/eval/eval_run.h"
#include "pass/dispatch.h"

static const struct pass_options automatic, common = {.dispatch = RLX_DISPATCH_COMMON},
                                            native = {.dispatch = RLX_DISPATCH_NATIVE};

static struct target device(void)
{
    struct target t = {.backend = "tiny", .alignment = 64};

    for (int f = 0; f < FAMILY_count; f++)
        t.native[f] = true;
    return t;
}

static const struct dispatch_row *row_of(const struct dispatch_report *r, rlx_op op)
{
    static const struct dispatch_row none;

    for (size_t i = 0; i < r->row_count; i++)
        if (r->row[i].op == op)
            return &r->row[i];
    return &none;
}

static const char mixed[] =
    "rlx 1 graph @main (input %x: f32[1,4,2,2], input %g: f32[4], input %p: bool[]) {"
    " %n = group_norm %x, %g, %g num_groups=2 %r = resize_nearest_2x %n"
    " %d = dot_general %r, %r lhs_contracting=[3] rhs_contracting=[3]"
    " %f = fft %x %i = if %p, %x then_graph=@a else_graph=@a return %d, %f, %i }"
    "graph @a (input %x: f32[1,4,2,2]) { %y = exp %x return %y }"
    "graph @unused (input %x: f32[4]) { %y = fft %x return %y }";

TEST(pass, dispatch_paths)
{
    struct target t1 = device();
    struct dispatch_report r;
    struct run m;

    require(t, run_open(t, &m, mixed, NULL));
    t1.native[FAMILY_group_norm] = t1.native[FAMILY_dot_general] = t1.native[FAMILY_if_] = false;
    for (int rewrite = 0; rewrite < 2; rewrite++) {
        test_note(t, "rewrite %d", rewrite);
        require_ok(t, dispatch_inspect(m.mod, &t1, &automatic, rewrite, &r, &m.diag));
        expect_str(t, r.backend, "tiny");
        expect(t, r.claims > 100 && r.compile_ready && r.offender_count == 0);
        expect_eq(t, row_of(&r, RLX_OP_group_norm)->path, DISPATCH_COMMON);
        expect(t, row_of(&r, RLX_OP_group_norm)->logical);
        expect_str(t, row_of(&r, RLX_OP_group_norm)->rewriter, "group-norm");
        expect_eq(t, row_of(&r, RLX_OP_resize_nearest_2x)->path, DISPATCH_NATIVE);
        expect_eq(t, row_of(&r, RLX_OP_dot_general)->path, DISPATCH_REWRITTEN);
        expect_eq(t, row_of(&r, RLX_OP_if)->path, DISPATCH_REWRITTEN);
        expect_eq(t, row_of(&r, RLX_OP_fft)->path, DISPATCH_NATIVE);
        expect_eq(t, row_of(&r, RLX_OP_fft)->count, 2);
        dispatch_free(&r);
    }
    run_close(&m);
}

TEST(pass, dispatch_policies)
{
    struct target t1 = device();
    struct dispatch_report r;
    struct run m;

    require(t, run_open(t, &m, mixed, NULL));
    require_ok(t, dispatch_inspect(m.mod, &t1, &common, true, &r, &m.diag));
    expect_eq(t, row_of(&r, RLX_OP_group_norm)->path, DISPATCH_COMMON);
    expect_eq(t, row_of(&r, RLX_OP_resize_nearest_2x)->path, DISPATCH_COMMON);
    expect_eq(t, row_of(&r, RLX_OP_dot_general)->path,
              DISPATCH_NATIVE); /* it is not a logical kernel */
    dispatch_free(&r);
    t1.native[FAMILY_group_norm] = false;
    require_ok(t, dispatch_inspect(m.mod, &t1, &native, true, &r, &m.diag));
    expect_eq(t, row_of(&r, RLX_OP_group_norm)->path, DISPATCH_UNSUPPORTED);
    expect(t, !r.compile_ready);
    dispatch_free(&r);
    run_close(&m);
}

TEST(pass, dispatch_exceptions)
{
    struct target t1 = device();
    struct dispatch_report r;
    struct run m;
    const struct pass_options o[] = {
        {.common_ops = "group_norm"},
        {.dispatch = RLX_DISPATCH_COMMON, .native_ops = "resize_nearest_2x"},
        {.native_ops = "resize_nearest_2x", .common_ops = "resize_nearest_2x,group_norm"}};

    require(t, run_open(t, &m, mixed, NULL));
    for (size_t i = 0; i < 3; i++) {
        test_note(t, "row %zu", i);
        require_ok(t, dispatch_inspect(m.mod, &t1, &o[i], true, &r, &m.diag));
        expect_eq(t, row_of(&r, RLX_OP_group_norm)->path, DISPATCH_COMMON);
        expect_eq(t, row_of(&r, RLX_OP_resize_nearest_2x)->path, DISPATCH_NATIVE);
        dispatch_free(&r);
    }
    static const char *const bad[] = {"matmul", "nonsense", "group_norm,,matmul"};
    for (size_t i = 0; i < 3; i++) {
        const struct pass_options wrong = {.native_ops = bad[i]};
        diag_init(&m.diag, "test");
        expect_status(t, dispatch_inspect(m.mod, &t1, &wrong, true, &r, &m.diag), RLX_ERROR_NAME);
        expect_error(t, RLX_ERROR_NAME, "group_norm, resize_nearest_2x", &m.diag.first);
    }
    run_close(&m);
}

struct heard {
    int count;
    char last[256];
};

static void hear(void *user, const rlx_error *e)
{
    struct heard *h = user;

    h->count++;
    snprintf(h->last, sizeof h->last, "%s %s %d", e->op, e->label, e->node);
}

TEST(pass, dispatch_lists_every_offender)
{
    struct target t1 = device();
    struct dispatch_report r;
    struct heard h = {0};
    struct text text;
    struct run m;

    require(t, run_open(t, &m, mixed, NULL));
    t1.native[FAMILY_fft] = t1.native[FAMILY_unary] = false;
    m.diag.each = hear;
    m.diag.user = &h;
    expect_status(t, pass_all(m.mod, &t1, &(struct pass_options){.no_optimize = true}, &m.diag),
                  RLX_ERROR_UNSUPPORTED);
    expect_error(t, RLX_ERROR_UNSUPPORTED, "tiny has no kernel for 2 nodes: node 6 %f (fft)",
                 &m.diag.first);
    expect_error(t, RLX_ERROR_UNSUPPORTED, "node 1 of graph 1 %y (exp)", &m.diag.first);
    expect_str(t, m.diag.first.op, "fft");
    expect_str(t, m.diag.first.label, "f");
    expect_eq(t, h.count, 3); /* the list, and one each; nothing of the graph that nobody uses */
    expect_str(t, h.last, "exp y 1");
    m.diag.first.status = RLX_OK;
    require_ok(t, dispatch_inspect(m.mod, &t1, &automatic, true, &r, &m.diag));
    expect_eq(t, r.offender_count, 2);
    text_init(&text, mem_default());
    dispatch_print(&r, &text);
    expect_contains(t, text.at, "tiny, policy auto");
    expect_contains(t, text.at, "some of it cannot run");
    expect_contains(t, text.at, "node 6 of graph 0 %f: fft");
    text_free(&text);
    text_init(&text, mem_default());
    dispatch_print_json(&r, &text);
    expect_contains(t, text.at, "\"compile_ready\":false");
    expect_contains(t, text.at, "\"op\":\"fft\"");
    text_free(&text);
    dispatch_free(&r);
    run_close(&m);
}

static rlx_status infer(void *user, const rlx_tensor *in, int32_t count, const void *attrs,
                        size_t size, rlx_tensor *out, char *message)
{
    (void)user, (void)count, (void)attrs, (void)size, (void)message;
    *out = in[0];
    return RLX_OK;
}

TEST(pass, dispatch_says_what_a_custom_op_needs)
{
    const rlx_custom_op op = {RLX_SIZED(rlx_custom_op), .name = "mine", .inputs = 1,
                              .infer = infer};
    const struct ir_customs customs = {.op = &op, .count = 1};
    struct target t1 = device();
    struct run m;

    require(t, run_open(t, &m,
                        "rlx 1 graph (input %x: f32[2]) { %y = custom %x name=\"mine\" return %y }",
                        &customs));
    t1.native[FAMILY_custom] = false;
    expect_status(t, dispatch_check(m.mod, &t1, &m.diag), RLX_ERROR_UNSUPPORTED);
    expect_error(t, RLX_ERROR_UNSUPPORTED, "custom \"mine\"", &m.diag.first);
    expect_error(t, RLX_ERROR_UNSUPPORTED, "rlx_custom_op", &m.diag.first);
    run_close(&m);
}
