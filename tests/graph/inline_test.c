/* inline_test.c: a model in the middle of a graph computes what it computes alone; a failure leaves
 * the graph as it was. */
#include "pass/model_run.h"

static const char inner[] =
    "rlx 1 graph @main (input %x: f32[n,3], param %w: f32[3], input %p: bool[]) {"
    " %m = mul %x, %w %c = const f32[1] {0.5} %a = add %m, %c %r = reshape %a shape=[3*n]"
    " %y = if %p, %r then_graph=@f else_graph=@g return %y, %a }"
    "graph @f (input %x: f32[3*n]) { %y = exp %x return %y }"
    "graph @g (input %x: f32[3*n]) { %y = neg %x return %y }";

struct built {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model; /* the one that is put in */
    rlx_graph *g;
    rlx_value x, p, out[2];
};

static bool build(struct test *t, struct built *b, const rlx_allocator *mem)
{
    rlx_error err = {0};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem, .threads = 1};

    *b = (struct built){.x = RLX_NO_VALUE};
    if (rlx_context_create(RLX_VERSION, &desc, &b->ctx, &err) != RLX_OK ||
        rlx_model_parse(b->ctx, rlx_cstr(inner), &b->model, &err) != RLX_OK ||
        rlx_graph_create(b->ctx, &b->g, &err) != RLX_OK)
        return mem ? false : (fail(t, "%s", err.message), false);
    rlx_dim n = rlx_dim_symbol(b->g, "n");
    b->x = rlx_input(b->g, "x", RLX_DTYPE_f32, RLX_LIST(n, 3));
    b->p = rlx_input(b->g, "p", RLX_DTYPE_bool, RLX_EMPTY);
    return true;
}

static void destroy(struct built *b)
{
    rlx_graph_destroy(b->g);
    rlx_model_destroy(b->model);
    rlx_device_close(b->dev);
    rlx_context_destroy(b->ctx);
}

TEST(inline, twice_in_a_graph)
{
    struct built b;
    rlx_model *made = NULL;
    rlx_session *s = NULL;
    rlx_error err = {0};
    rlx_value first[2], second[2];

    require(t, build(t, &b, NULL));
    rlx_value w = rlx_param(b.g, "other", RLX_DTYPE_f32, RLX_LIST(3));
    const rlx_leaf_value one[] = {{"x", b.x}, {"p", b.p}};
    require_ok(t, rlx_graph_inline(b.g, b.model, one, 2, first, 2, &err));
    const rlx_leaf_value two[] = {{"p", b.p}, {"w", w}, {"x", first[1]}};
    require_ok(t, rlx_graph_inline(b.g, b.model, two, 3, second, 2, &err));
    rlx_output(b.g, second[0]);
    require_ok(t, rlx_model_create(b.g, &made, &err));
    b.g = NULL;
    expect_eq(t, rlx_model_io_count(made, RLX_IO_PARAM), 2); /* w was made, other was bound */
    float wv[3] = {1, 2, 3}, ov[3] = {10, 20, 30}, x[3] = {1, -1, 2}, y[3];
    bool p = false;
    const rlx_tensor wt = {RLX_DTYPE_f32, 1, {3}, wv, sizeof wv};
    const rlx_tensor ot = {RLX_DTYPE_f32, 1, {3}, ov, sizeof ov};
    expect_ok(t, rlx_model_set_param(made, "w", &wt, &err));
    expect_ok(t, rlx_model_set_param(made, "other", &ot, &err));
    expect_ok(t, rlx_device_open(b.ctx, "cpu", &b.dev, &err));
    const rlx_binding in[] = {{"x", {RLX_DTYPE_f32, 2, {1, 3}, x, sizeof x}},
                              {"p", {RLX_DTYPE_bool, 0, {0}, &p, sizeof p}}};
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    rlx_model_io(made, RLX_IO_OUTPUT, 0, &info, NULL);
    char name[32] = "";
    memcpy(name, info.name.ptr, info.name.len);
    rlx_binding out = {name, {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
    if (expect_ok(t, rlx_session_create(made, b.dev, NULL, &s, &err)) &&
        expect_ok(
            t, rlx_session_run(s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0},
                               &err)))
        for (size_t k = 0; k < 3; k++)
            expect_near(t, y[k], -((x[k] * wv[k] + 0.5f) * ov[k] + 0.5f), 1e-4);
    rlx_session_destroy(s);
    rlx_model_destroy(made);
    destroy(&b);
}

TEST(inline, refusals_leave_the_graph)
{
    struct built b;
    rlx_error err;

    require(t, build(t, &b, NULL));
    rlx_value wrong = rlx_input(b.g, "wrong", RLX_DTYPE_f32, RLX_LIST(4, 3));
    rlx_value half = rlx_input(b.g, "half", RLX_DTYPE_f16, RLX_LIST(4, 3));
    const struct {
        rlx_leaf_value bind[2];
        size_t count, outputs;
        rlx_status status;
        const char *part;
    } rows[] = {
        {{{"x", b.x}}, 1, 2, RLX_ERROR_MISSING_INPUT, "\"p\""},
        {{{"x", b.x}, {"q", b.p}}, 2, 2, RLX_ERROR_NAME, "\"q\""},
        {{{"x", wrong}, {"p", b.p}}, 2, 2, RLX_ERROR_SHAPE, "\"x\""},
        {{{"x", half}, {"p", b.p}}, 2, 2, RLX_ERROR_DTYPE, "f16"},
        {{{"x", 99}, {"p", b.p}}, 2, 2, RLX_ERROR_GRAPH, "99"},
        {{{"x", b.x}, {"p", b.p}}, 2, 1, RLX_ERROR_SIZE, "2"},
        {{{NULL, b.x}, {"p", b.p}}, 2, 2, RLX_ERROR_ARGUMENT, "NULL"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_note(t, "row %zu", i);
        expect_status(t,
                      rlx_graph_inline(b.g, b.model, rows[i].bind, rows[i].count, b.out,
                                       rows[i].outputs, &err),
                      rows[i].status);
        expect_error(t, rows[i].status, rows[i].part, &err);
    }
    /* A name that is taken comes up in the middle of the copy, after sub-graphs. */
    rlx_value w = rlx_param(b.g, "w", RLX_DTYPE_f32, RLX_LIST(3));
    const rlx_leaf_value bind[] = {{"x", b.x}, {"p", b.p}, {"w", w}};
    expect_status(t, rlx_graph_inline(b.g, b.model, bind, 2, b.out, 2, &err), RLX_ERROR_GRAPH);
    expect_ok(t, rlx_graph_inline(b.g, b.model, bind, 3, b.out, 2, &err));
    expect_ok(t, rlx_graph_check(b.g, &err));
    destroy(&b);
}

static rlx_status inline_once(struct test *t, const rlx_allocator *mem, void *unused)
{
    struct built b;
    rlx_error err = {.status = RLX_ERROR_MEMORY};
    rlx_status s = RLX_ERROR_MEMORY;

    (void)unused;
    if (build(t, &b, mem) && rlx_graph_check(b.g, &err) == RLX_OK) {
        const rlx_leaf_value bind[] = {{"x", b.x}, {"p", b.p}};
        s = rlx_graph_inline(b.g, b.model, bind, 2, b.out, 2, &err);
    }
    destroy(&b);
    return s;
}

TEST(inline, survives_no_memory)
{
    expect_survives_no_memory(t, inline_once, NULL);
}
