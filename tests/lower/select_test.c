/* select_test.c: nodes become steps: what is a view, where leaves lie, what needs no step at all.
 */
#include <string.h>

#include "backend/backend.h"
#include "ir/text/text_check.h"
#include "lower/lower.h"
#include "rlx/graph.h"

/* ---- views ----------------------------------------------------------------------------------- */

static const struct ir_node *node_of(const struct ir_graph *g, const char *label)
{
    IR_EACH(n, g) {
        if (str_eq(n->label, rlx_cstr(label)))
            return n;
    }
    return &g->node.at[0];
}

/* Is %y, made from an %x of that type, a view, and how many bytes in? -1: it is none. */
static void check_view(struct test *t, int line, const char *type, const char *y, int64_t want)
{
    struct text s;
    uint64_t offset = 77;

    text_init(&s, mem_default());
    text_addf(&s, "rlx 1 graph (input %%x: %s) { %%y = %s return %%y }", type, y);
    test_note(t, "%s", s.at);
    struct ir_module *m = parse(t, s.at);
    if (m) {
        const struct ir_graph *g = ir_entry(m);
        bool view = lower_is_view(g, node_of(g, "y"), &offset);
        test_expect_i64(t, __FILE__, line, view ? (int64_t)offset : -1, want, y, "the offset");
    }
    test_note(t, "%s", "");
    ir_module_destroy(m);
    text_free(&s);
}

#define is_view(type, y, offset) check_view(t, __LINE__, type, y, offset)
#define no_view(type, y) check_view(t, __LINE__, type, y, -1)

TEST(select, identities_are_views)
{
    is_view("f32[2,3]", "reshape %x shape=[6]", 0);
    is_view("f32[]", "reshape %x shape=[1,1]", 0);
    is_view("f32[0,4]", "reshape %x shape=[2,0]", 0);
    is_view("f16[2,3]", "stop_gradient %x", 0);
    is_view("f16[2,3]", "cast %x to=f16", 0);
    is_view("bool[3]", "cast %x to=bool", 0);
    is_view("f16[2,3]", "bitcast %x to=u16", 0);
    is_view("bool[3]", "bitcast %x to=u8", 0);
    no_view("f16[2,3]", "cast %x to=bf16"); /* as large, but not the same bits */
    no_view("i32[2,3]", "cast %x to=u32");
    no_view("bool[3]", "cast %x to=u8");
}

TEST(select, narrows_of_whole_rows_are_views)
{
    is_view("f32[5,3]", "narrow %x axis=0 start=2 len=2", 2 * 3 * 4);
    is_view("f32[5,3]", "narrow %x axis=-2 start=1 len=4", 3 * 4);
    is_view("i8[7]", "narrow %x axis=0 start=6 len=1", 6);
    is_view("f64[7]", "narrow %x axis=0 start=0 len=7", 0);
    is_view("c64[4,1,2]", "narrow %x axis=0 start=3 len=1", 3 * 2 * 8);
    is_view("f32[1,5,3]", "narrow %x axis=1 start=2 len=2", 2 * 3 * 4);
    is_view("f32[1,1,1,5]", "narrow %x axis=3 start=4 len=1", 4 * 4);
    is_view("f32[1,5,3]", "narrow %x axis=0 start=0 len=1", 0);
    is_view("f32[5,3]", "narrow %x axis=0 start=5 len=0", 5 * 3 * 4); /* empty, at the end */
    is_view("f32[5,0]", "narrow %x axis=0 start=4 len=1", 0);
    no_view("f32[5,3]", "narrow %x axis=1 start=0 len=2");
    no_view("f32[5,3]", "narrow %x axis=1 start=0 len=3"); /* all of it: a pass may see that */
    no_view("f32[2,5,3]", "narrow %x axis=1 start=0 len=2");
    no_view("f32[1,2,3]", "narrow %x axis=2 start=0 len=2");
}

TEST(select, transposes_that_move_only_ones_are_views)
{
    is_view("f32[2,3]", "transpose %x perm=[0,1]", 0);
    is_view("f32[1,3]", "transpose %x perm=[1,0]", 0);
    is_view("f32[3,1]", "transpose %x perm=[1,0]", 0);
    is_view("f32[1,1,1]", "transpose %x perm=[2,0,1]", 0);
    is_view("f32[2,1,3,1]", "transpose %x perm=[1,0,3,2]", 0);
    is_view("f32[2,1,3,1]", "transpose %x perm=[3,0,2,1]", 0);
    is_view("f32[]", "transpose %x perm=[]", 0);
    no_view("f32[2,3]", "transpose %x perm=[1,0]");
    no_view("f32[2,2]", "transpose %x perm=[1,0]");
    no_view("f32[2,1,3]", "transpose %x perm=[2,1,0]");
    no_view("f32[1,2,3,4]", "transpose %x perm=[0,1,3,2]");
}

TEST(select, everything_else_is_no_view)
{
    no_view("f32[3]", "neg %x");
    no_view("f32[3]", "slice %x axis=0 start=0 len=3 step=1");
    no_view("f32[3]", "expand %x shape=[3]");
    no_view("f32[3]", "concat %x axis=0");
    no_view("f32[1]", "reverse %x axes=[0]");
    no_view("f32[3]", "pad %x before=[0] after=[0]");
    no_view("f32[3]", "tile %x reps=[1]");
    no_view("f32[1]", "reduce_sum %x axes=[0]");
}

TEST(select, leaves_are_no_views)
{
    struct ir_module *m = parse(t, "rlx 1 graph (input %x: f32[3], param %w: f32[2]) {"
                                   " %c = const f32[] {1} return %x, %w, %c }");
    uint64_t offset;

    require(t, m != NULL);
    IR_EACH(n, ir_entry(m)) {
        expect(t, !lower_is_view(ir_entry(m), n, &offset));
    }
    ir_module_destroy(m);
}

/* ---- steps ----------------------------------------------------------------------------------- */

struct selected {
    struct ir_module *mod;
    const struct ir_graph *g;
    struct backend *backend;
    struct arena arena;
    struct steps *steps;
    struct diag diag;
    rlx_status status;
};

static struct selected select_text(struct test *t, const char *device, const char *source,
                                   const uint64_t *leaf_offset)
{
    static const struct select_options none = {0};
    struct selected s = {.mod = parse(t, source), .status = RLX_ERROR_INTERNAL};
    struct device_desc desc = {.mem = mem_default(), .threads = 1};

    arena_init(&s.arena, mem_default());
    diag_init(&s.diag, "select");
    if (!s.mod || !expect_ok(t, backend_find(rlx_cstr(device))->open(&desc, &s.backend, &s.diag)))
        return s;
    s.g = ir_entry(s.mod);
    s.status = lower_select(&(struct select_graph){.graph = s.g, .leaf_offset = leaf_offset},
                            s.backend, &none, &s.arena, &s.steps, &s.diag);
    return s;
}

static void selected_free(struct selected *s)
{
    arena_free(&s->arena);
    if (s->backend)
        s->backend->ops->close(s->backend);
    ir_module_destroy(s->mod);
}

static const struct value *value_of(const struct selected *s, const char *label)
{
    return &s->steps->value[ir_id(s->g, node_of(s->g, label))];
}

/* The names of the steps, in order, blanks between. */
static void expect_steps(struct test *t, const struct selected *s, const char *want)
{
    struct text names;

    text_init(&names, mem_default());
    text_add(&names, STR(""));
    for (size_t i = 0; i < s->steps->step_count; i++)
        text_addf(&names, "%s%s", i ? " " : "", s->steps->step[i].name);
    expect_str(t, names.at, want);
    text_free(&names);
}

TEST(select, leaves_lie_in_their_regions)
{
    const uint64_t offsets[] = {0, 640, 128, 0, 0};
    struct selected s =
        select_text(t, "null",
                    "rlx 1 graph (input %x: f32[3], param %w: f16[5], state %s: i8[7]) {"
                    " %c = const f64[2] {1 2} %y = neg %x return %y, %w }",
                    offsets);

    if (expect_ok(t, s.status)) {
        const struct value *x = value_of(&s, "x"), *w = value_of(&s, "w"), *k = value_of(&s, "s");
        const struct value *c = value_of(&s, "c"), *y = value_of(&s, "y");
        expect(t, x->region == REGION_ACTS && x->flags == VALUE_INPUT && x->bytes == 12);
        expect(t, w->region == REGION_WEIGHTS && w->offset == 640 && w->bytes == 10);
        expect_eq(t, w->flags, VALUE_PINNED | VALUE_FIXED | VALUE_OUTPUT);
        expect(t, k->region == REGION_STATE && k->offset == 128 && k->bytes == 7);
        expect_eq(t, k->flags, VALUE_PINNED | VALUE_FIXED);
        expect(t, c->region == REGION_CONSTS && c->flags == VALUE_PINNED && c->bytes == 16);
        expect(t, y->region == REGION_ACTS && y->flags == VALUE_OUTPUT && y->bytes == 12);
        for (size_t i = 0; i < s.steps->value_count; i++) {
            expect_eq(t, s.steps->value[i].root, (int32_t)i);
            expect_eq(t, s.steps->value[i].node, (int32_t)i);
            expect_eq(t, s.steps->value[i].shares, -1);
            expect_eq_u64(t, s.steps->value[i].view_offset, 0);
        }
        expect_steps(t, &s, "neg");
    }
    selected_free(&s);
}

TEST(select, chains_of_views_add_up)
{
    struct selected s = select_text(t, "null",
                                    "rlx 1 graph (param %w: f32[4,6]) {"
                                    " %a = narrow %w axis=0 start=1 len=3"
                                    " %b = reshape %a shape=[1,3,2,3]"
                                    " %c = narrow %b axis=1 start=1 len=2"
                                    " %d = transpose %c perm=[1,0,2,3]"
                                    " %e = narrow %d axis=0 start=1 len=1"
                                    " %y = neg %e %z = stop_gradient %y return %z, %c }",
                                    NULL);

    if (expect_ok(t, s.status)) {
        static const struct {
            const char *label;
            uint64_t offset, bytes;
        } rows[] = {{"a", 24, 72}, {"b", 24, 72}, {"c", 48, 48}, {"d", 48, 48}, {"e", 72, 24}};
        for (size_t i = 0; i < 5; i++) {
            const struct value *v = value_of(&s, rows[i].label);
            test_note(t, "%s", rows[i].label);
            expect(t, v->root == 0 && v->region == REGION_WEIGHTS);
            expect_eq_u64(t, v->view_offset, rows[i].offset);
            expect_eq_u64(t, v->bytes, rows[i].bytes);
        }
        test_note(t, "%s", "");
        expect_steps(t, &s, "neg");
        /* what is read after the run is its root too */
        expect(t, value_of(&s, "y")->flags == VALUE_OUTPUT);
        expect(t, value_of(&s, "z")->flags == VALUE_OUTPUT);
        expect(t, value_of(&s, "w")->flags & VALUE_OUTPUT);
        expect(t, !(value_of(&s, "e")->flags & VALUE_OUTPUT));
        expect_eq(t, value_of(&s, "z")->root, value_of(&s, "y")->node);
    }
    selected_free(&s);
}

TEST(select, operands_have_roles)
{
    struct selected s =
        select_text(t, "null",
                    "rlx 1 graph (state %s: f32[8,2], input %u: f32[1,2], input %p: i32[]) {"
                    " %n = neg %u %w = cache_append %s, %n, %p %y = add %w, %n"
                    " return %y }",
                    NULL);

    if (expect_ok(t, s.status)) {
        static const struct {
            const char *label;
            uint8_t role;
        } rows[] = {{"u", ROLE_READ}, {"n", ROLE_WRITE}, {"s", ROLE_UPDATE}, {"n", ROLE_READ},
                    {"p", ROLE_READ}, {"w", ROLE_READ},  {"n", ROLE_READ},   {"y", ROLE_WRITE}};
        expect_steps(t, &s, "neg cache_append add");
        if (expect_eq_u64(t, s.steps->operand_count, 8)) {
            for (size_t i = 0; i < 8; i++) {
                expect_eq(t, s.steps->operand[i].value, value_of(&s, rows[i].label)->node);
                expect_eq(t, s.steps->operand[i].role, rows[i].role);
            }
        }
        const struct value *w = value_of(&s, "w"); /* the state itself, as it is afterwards */
        expect(t, w->root == value_of(&s, "s")->node && w->region == REGION_STATE);
        expect_eq_u64(t, w->view_offset, 0);
    }
    selected_free(&s);
}

TEST(select, empty_results_have_no_step)
{
    struct selected s =
        select_text(t, "null",
                    "rlx 1 graph (input %x: f32[0,4], input %w: f32[4,3]) {"
                    " %a = exp %x %b = matmul %a, %w %c = reduce_sum %b axes=[0]"
                    " %d = transpose %x perm=[1,0] %e = narrow %w axis=1 start=1 len=0"
                    " return %c, %d, %e }",
                    NULL);

    if (expect_ok(t, s.status)) {
        expect_steps(t, &s, "reduce_sum"); /* which has three zeros to write */
        expect_eq_u64(t, value_of(&s, "b")->bytes, 0);
        expect_eq_u64(t, value_of(&s, "c")->bytes, 12);
    }
    selected_free(&s);
}

TEST(select, writers_of_empty_results_still_have_one)
{
    struct selected s = select_text(
        t, "null",
        "rlx 1 graph (input %q: f32[2,0,1,2], input %g: f32[2,0,1], state %s: f32[2,1,2,2],"
        "             state %e: f32[0,2], input %u: f32[0,2], input %p: i32[]) {"
        " %y = gated_delta_net %q, %q, %q, %g, %g, %s state_size=2 carry_state=true"
        " %z = gated_delta_net %q, %q, %q, %g, %g state_size=2"
        " %f = fake_quantize %u %w = cache_append %e, %u, %p return %y, %z, %f, %w }",
        NULL);

    if (expect_ok(t, s.status))
        expect_steps(t, &s, "gated_delta_net cache_append");
    selected_free(&s);
    s = select_text(t, "cpu",
                    "rlx 1 graph (state %e: f32[0,2], input %u: f32[0,2], input %p: i32[]) {"
                    " %w = cache_append %e, %u, %p return %w }",
                    NULL);
    if (expect_ok(t, s.status))
        expect_steps(t, &s, "cache_append");
    selected_free(&s);
}

TEST(select, symbols_must_be_bound)
{
    struct selected s =
        select_text(t, "null", "rlx 1 graph (input %x: f32[n]) { %y = neg %x return %y }", NULL);

    expect_status(t, s.status, RLX_ERROR_UNBOUND_DIM);
    expect(t, s.steps == NULL);
    selected_free(&s);
}

/* ---- views of states ------------------------------------------------------------------------- */

#define STATE "rlx 1 graph (state %s: f32[2,2], input %u: f32[1,2], input %p: i32[]) { "

/* A view of a state that is read after the state was written must hold what it held before. */
TEST(select, views_of_states_that_are_written_are_copies)
{
    static const struct {
        const char *text, *steps;
    } rows[] = {
        {STATE "%r = reshape %s shape=[4] %y = neg %r %w = cache_append %s, %u, %p return %y }",
         "neg cache_append"},
        {STATE "%r = reshape %s shape=[4] %w = cache_append %s, %u, %p %y = neg %r return %y }",
         "reshape cache_append neg"},
        {STATE "%r = reshape %s shape=[4] %w = cache_append %s, %u, %p return %r }",
         "reshape cache_append"},
        {STATE "%r = narrow %s axis=0 start=0 len=1 %w = cache_append %s, %r, %p return %w }",
         "narrow cache_append"}, /* the writer reads it itself */
        {STATE "%r = stop_gradient %s %n = narrow %r axis=0 start=1 len=1"
               " %w = cache_append %s, %u, %p %y = neg %n return %y }",
         "stop_gradient cache_append neg"}, /* and the second one looks at the copy */
        {STATE "%w = cache_append %s, %u, %p %r = reshape %s shape=[4] %q = reshape %w shape=[4]"
               " %y = add %r, %q return %y }",
         "cache_append add"}, /* after the writer there is only one content */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct selected s = select_text(t, "null", rows[i].text, NULL);
        test_note(t, "%s", rows[i].text);
        if (expect_ok(t, s.status))
            expect_steps(t, &s, rows[i].steps);
        selected_free(&s);
    }
    test_note(t, "%s", "");
}

TEST(select, views_of_states_keep_what_they_saw)
{
    static const char *const views[] = {
        "%r = reshape %s shape=[4]",
        "%g = stop_gradient %s %r = reshape %g shape=[4]",
        "%g = cast %s to=f32 %r = reshape %g shape=[4]",
        "%g = transpose %s perm=[0,1] %r = reshape %g shape=[4]",
        "%g = narrow %s axis=0 start=0 len=2 %r = reshape %g shape=[4]",
    };
    const float before[4] = {1, 2, 3, 4}, rows[2] = {8, 9}, minus[4] = {-1, -2, -3, -4};
    const int32_t position = 0;

    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        rlx_context *ctx = NULL;
        rlx_device *dev = NULL;
        rlx_model *model = NULL;
        rlx_session *session = NULL;
        rlx_error err = {0};
        float y[4] = {0}, r[4] = {0}, w[4] = {0};
        struct text text;
        text_init(&text, mem_default());
        text_add(&text, STR(STATE));
        text_add(&text, rlx_cstr(views[i]));
        text_add(&text, STR(" %w = cache_append %s, %u, %p %y = neg %r return %y, %r, %w }"));
        test_note(t, "%s", views[i]);
        rlx_tensor state = {RLX_DTYPE_f32, 2, {2, 2}, (void *)before, sizeof before};
        rlx_binding in[2] = {{"u", {RLX_DTYPE_f32, 2, {1, 2}, (void *)rows, sizeof rows}},
                             {"p", {RLX_DTYPE_i32, 0, {0}, (void *)&position, 4}}};
        rlx_binding out[3] = {{"y", {.data = y, .bytes = sizeof y}},
                              {"r", {.data = r, .bytes = sizeof r}},
                              {"w", {.data = w, .bytes = sizeof w}}};
        if (expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, &err)) &&
            expect_ok(t, rlx_device_open(ctx, "cpu", &dev, &err)) &&
            expect_ok(t, rlx_model_parse(ctx, (rlx_str){text.at, text.len}, &model, &err)) &&
            expect_ok(t, rlx_session_create(model, dev, NULL, &session, &err)) &&
            expect_ok(t, rlx_session_set_state(session, "s", &state, &err)) &&
            expect_ok(
                t, rlx_session_run(session,
                                   &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, out, 3, NULL, 0},
                                   &err))) {
            expect_close(t, y, minus, 4, 0, 0);
            expect_close(t, r, before, 4, 0, 0);
            expect_close(t, w, ((const float[]){8, 9, 3, 4}), 4, 0, 0);
        }
        rlx_session_destroy(session);
        rlx_model_destroy(model);
        rlx_device_close(dev);
        rlx_context_destroy(ctx);
        text_free(&text);
    }
    test_note(t, "%s", "");
}

/* ---- no memory ------------------------------------------------------------------------------- */

static rlx_status select_once(struct test *t, const rlx_allocator *mem, void *ctx)
{
    static const struct select_options none = {0};
    const struct ir_module *from = ctx;
    struct device_desc desc = {.mem = mem, .threads = 1};
    struct ir_module *m;
    struct backend *b = NULL;
    struct steps *steps = NULL;
    struct arena arena;
    struct diag d;

    diag_init(&d, "select");
    TRY(ir_module_copy(from, mem, &m, &d));
    arena_init(&arena, mem);
    rlx_status s = backend_find(STR("null"))->open(&desc, &b, &d);
    if (s == RLX_OK)
        s = lower_select(&(struct select_graph){.graph = ir_entry(m)}, b, &none, &arena, &steps,
                         &d);
    expect_eq(t, s == RLX_OK, steps != NULL);
    arena_free(&arena);
    if (b)
        b->ops->close(b);
    ir_module_destroy(m);
    return s;
}

TEST(select, no_memory)
{
    struct ir_module *m = parse(t, STATE "%r = reshape %s shape=[4] %w = cache_append %s, %u, %p"
                                         " %y = neg %r %z = add %y, %r return %z }");

    require(t, m != NULL);
    expect_survives_no_memory(t, select_once, m);
    ir_module_destroy(m);
}
