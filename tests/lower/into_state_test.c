/* into_state_test.c: a step that computes all of a state's new content writes the state itself,
 * where nobody can tell the difference; and what is computed stays the same. */
#include "backend/backend.h"
#include "ir/text/text_check.h"
#include "lower/lower.h"
#include "plan/plan.h"

#define GRAPH                                                                                  \
    "rlx 1 graph (input %x: f32[2,2], input %i: i32[], state %s: f32[2,2], state %b: f32[2,2]" \
    ") { %z = const i32[] {0} "

/* With s = 10 20 30 40, b = 0 and x = 1 2 3 4: the steps on the CPU; then what is returned by the
 * third run, and what s and b hold after it. i is 0. */
static const struct {
    const char *text, *steps;
    float o[4], s[4], b[4];
} rows[] = {
    /* what reads the new content reads the state */
    {"%n = add %s, %x %w = cache_append %s, %n, %z %o = neg %n return %o }",
     "add neg",
     {-13, -26, -39, -52},
     {13, 26, 39, 52},
     {0}},
    /* the old content may be read before */
    {"%o = neg %s %n = add %s, %x %w = cache_append %s, %n, %z return %o }",
     "neg add",
     {-12, -24, -36, -48},
     {13, 26, 39, 52},
     {0}},
    /* but not between: */
    {"%n = add %s, %x %o = neg %s %w = cache_append %s, %n, %z return %o }",
     "add neg cache_append",
     {-12, -24, -36, -48},
     {13, 26, 39, 52},
     {0}},
    /* an output has a place of its own */
    {"%o = add %s, %x %w = cache_append %s, %o, %z return %o }",
     "add cache_append",
     {13, 26, 39, 52},
     {13, 26, 39, 52},
     {0}},
    /* only the run knows where it is written */
    {"%n = add %s, %x %w = cache_append %s, %n, %i %o = neg %w return %o }",
     "add cache_append neg",
     {-13, -26, -39, -52},
     {13, 26, 39, 52},
     {0}},
    /* a part of it is */
    {"%n = neg %x %r = narrow %n axis=0 start=0 len=1 %w = cache_append %s, %r, %z"
     " %o = neg %w return %o }",
     "neg cache_append neg",
     {1, 2, -30, -40},
     {-1, -2, 30, 40},
     {0}},
    /* elements are read after others were written */
    {"%n = reverse %s axes=[0] %w = cache_append %s, %n, %z %o = neg %x return %o }",
     "reverse cache_append neg",
     {-1, -2, -3, -4},
     {30, 40, 10, 20},
     {0}},
    {"%n = matmul %s, %x %w = cache_append %s, %n, %z %o = neg %x return %o }",
     "matmul cache_append neg",
     {-1, -2, -3, -4},
     {1990, 2900, 4350, 6340},
     {0}},
    /* nothing of the state is read: any step may write it, also through a view */
    {"%n = transpose %x perm=[1,0] %w = cache_append %s, %n, %z %o = neg %w return %o }",
     "transpose neg",
     {-1, -3, -2, -4},
     {1, 3, 2, 4},
     {0}},
    {"%f = reshape %x shape=[4] %g = neg %f %n = reshape %g shape=[2,2]"
     " %w = cache_append %s, %n, %z %o = neg %g return %o }",
     "neg neg",
     {1, 2, 3, 4},
     {-1, -2, -3, -4},
     {0}},
    /* from another state */
    {"%n = add %s, %x %w = cache_append %b, %n, %z %o = neg %s return %o }",
     "add neg",
     {-10, -20, -30, -40},
     {10, 20, 30, 40},
     {11, 22, 33, 44}},
    /* written to both: the second is a copy */
    {"%n = add %s, %x %w = cache_append %s, %n, %z %v = cache_append %b, %n, %z"
     " %o = neg %v return %o }",
     "add cache_append neg",
     {-13, -26, -39, -52},
     {13, 26, 39, 52},
     {13, 26, 39, 52}},
    /* crosswise */
    {"%p = add %s, %x %q = add %b, %x %w = cache_append %s, %q, %z %v = cache_append %b, %p, %z"
     " %o = neg %x return %o }",
     "add add cache_append neg",
     {-1, -2, -3, -4},
     {3, 6, 9, 12},
     {13, 26, 39, 52}},
};

static void check_steps(struct test *t, const char *text, const char *want)
{
    static const struct select_options none = {0};
    static const uint64_t leaf_offset[16] = {[3] = 64}; /* of b */
    static const struct plan_options checked = {.check_plan = true};
    struct ir_module *mod = parse(t, text);
    struct device_desc desc = {.mem = mem_default(), .threads = 1};
    struct backend *backend = NULL;
    struct steps *steps;
    struct arena arena;
    struct plan *plan;
    struct text names;
    struct diag d;

    diag_init(&d, "select");
    arena_init(&arena, mem_default());
    text_init(&names, mem_default());
    if (mod && expect_ok(t, backend_find(STR("cpu"))->open(&desc, &backend, &d)) &&
        expect_ok(t, lower_select(
                         &(struct select_graph){.graph = ir_entry(mod), .leaf_offset = leaf_offset},
                         backend, &none, &arena, &steps, &d)) &&
        expect_ok(t, plan_build(steps, &checked, &arena, &plan, &d))) {
        uint32_t operands = 0; /* of one step after those of the other, and no more */
        for (size_t i = 0; i < steps->step_count; i++) {
            expect_eq(t, steps->step[i].first, operands);
            operands += steps->step[i].count;
        }
        expect_eq(t, steps->operand_count, operands);
        for (size_t i = 0; i < steps->step_count; i++)
            text_addf(&names, "%s%s", i ? " " : "", steps->step[i].name);
        expect_str(t, names.at, want);
        expect_ok(t, plan_check(plan, &arena, &d));
    }
    text_free(&names);
    arena_free(&arena);
    if (backend)
        backend->ops->close(backend);
    ir_module_destroy(mod);
}

TEST(into_state, where_nobody_can_tell)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct text text;
        text_init(&text, mem_default());
        text_addf(&text, "%s%s", GRAPH, rows[i].text);
        test_note(t, "%s", rows[i].text);
        check_steps(t, text.at, rows[i].steps);
        text_free(&text);
    }
}

struct place {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
};

static bool open_place(struct test *t, struct place *p, const char *text)
{
    const rlx_flag check = {"MEM_VERIFY", "1"};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .flags = &check, .flag_count = 1};

    *p = (struct place){0};
    return expect_ok(t, rlx_context_create(RLX_VERSION, &desc, &p->ctx, &p->err)) &&
           !test_no_device(t, test_device(t),
                           rlx_device_open(p->ctx, test_device(t), &p->dev, &p->err),
                           p->err.message) &&
           expect_ok(t, rlx_model_parse(p->ctx, rlx_cstr(text), &p->model, &p->err)) &&
           expect_ok(t, rlx_session_create(p->model, p->dev, NULL, &p->session, &p->err));
}

static void close_place(struct place *p)
{
    rlx_session_destroy(p->session);
    rlx_model_destroy(p->model);
    rlx_device_close(p->dev);
    rlx_context_destroy(p->ctx);
}

static rlx_tensor square(void *data)
{
    return (rlx_tensor){RLX_DTYPE_f32, 2, {2, 2}, data, 16};
}

static bool run(struct test *t, struct place *p, int64_t height, float *o)
{
    static float x[] = {1, 2, 3, 4};
    int32_t zero = 0;
    rlx_binding in[] = {{"x", square(x)}, {"i", {RLX_DTYPE_i32, 0, {0}, &zero, sizeof zero}}};
    rlx_binding out[] = {{"o", square(o)}};

    in[0].tensor.dim[0] = height;
    in[0].tensor.bytes = (size_t)height * 8;
    return expect_ok(
               t, rlx_session_run(p->session,
                                  &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, out, 1, NULL, 0},
                                  &p->err)) ||
           fail(t, "%s", p->err.message);
}

TEST_DEVICES(into_state, computes_the_same)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float first[] = {10, 20, 30, 40}, o[4], got[4];
        rlx_tensor from = square(first), to = square(got);
        struct text text;
        struct place p;
        text_init(&text, mem_default());
        text_addf(&text, "%s%s", GRAPH, rows[i].text);
        test_note(t, "%s", rows[i].text);
        if (open_place(t, &p, text.at) &&
            expect_ok(t, rlx_session_set_state(p.session, "s", &from, &p.err)) &&
            run(t, &p, 2, o) && run(t, &p, 2, o) && run(t, &p, 2, o)) {
            expect_close(t, o, rows[i].o, 4, 1e-6, 0);
            expect_ok(t, rlx_session_get_state(p.session, "s", &to, &p.err));
            expect_close(t, got, rows[i].s, 4, 1e-6, 0);
            expect_ok(t, rlx_session_get_state(p.session, "b", &to, &p.err));
            expect_close(t, got, rows[i].b, 4, 1e-6, 0);
        }
        close_place(&p);
        text_free(&text);
    }
}

/* What fills the state at its bound may be smaller in the next run. */
TEST_DEVICES(into_state, sizes_that_change)
{
    float first[] = {10, 20, 30, 40}, o[4], got[4];
    rlx_tensor from = square(first), to = square(got);
    struct place p;

    if (open_place(t, &p,
                   "rlx 1 dim n <= 2 graph (input %x: f32[n,2], input %i: i32[], state %s: f32[2,2]"
                   ", state %c: f32[2,2]) { %z = const i32[] {0} %n = neg %x"
                   " %w = cache_append %s, %n, %z"
                   " %r = reduce_sum %x axes=[0] keep_dim=true %a = add %c, %r"
                   " %v = cache_append %c, %a, %z %o = add %s, %c return %o }") &&
        expect_ok(t, rlx_session_set_state(p.session, "s", &from, &p.err)) && run(t, &p, 1, o)) {
        expect_close(t, o, ((float[]){0, 0, 31, 42}), 4, 0, 0);
        if (run(t, &p, 2, o))
            expect_close(t, o, ((float[]){4, 6, 2, 4}), 4, 0, 0);
        if (run(t, &p, 1, o))
            expect_close(t, o, ((float[]){5, 8, 3, 6}), 4, 0, 0);
        expect_ok(t, rlx_session_get_state(p.session, "s", &to, &p.err));
        expect_close(t, got, ((float[]){-1, -2, -3, -4}), 4, 0, 0);
        expect_ok(t, rlx_session_get_state(p.session, "c", &to, &p.err));
        expect_close(t, got, ((float[]){6, 10, 6, 10}), 4, 0, 0);
    }
    close_place(&p);
}
