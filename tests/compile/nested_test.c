/* nested_test.c: sub-graphs that are used more than once, in one another: a few lines that stand
 * for very many nodes. Each is built once, so what is taken is in proportion to what is written;
 * what would have to be written out all the same is refused before it takes anything. */
#include "rlx/onnx.h"
#include "session/required.h"

enum kind { IF, WHILE, SCAN, CUSTOM_FN, KINDS };
static const char *const kind_name[] = {"if", "while", "scan", "custom_fn"};

/* ---- memory that is counted ---- */

struct meter {
    size_t used, most;
};

static void *metered(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct meter *m = user;
    void *now = new_size ? realloc(ptr, new_size) : NULL;

    if (new_size == 0)
        free(ptr);
    if (now || new_size == 0)
        m->used += new_size - (ptr ? old_size : 0);
    m->most = m->used > m->most ? m->used : m->most;
    return now;
}

static bool open_metered(struct test *t, struct place *p, struct meter *m, rlx_allocator *mem)
{
    *m = (struct meter){0};
    *mem = (rlx_allocator){metered, m};
    return place_open(
        t, p, test_device(t),
        &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .allocator = mem, .threads = 1});
}

/* ---- graphs that double ---- */

struct nest {
    enum kind kind;
    int depth, fan; /* fan calls of the next level in each; the last one adds 1 */
};

static void add_call(char **at, char *end, const struct nest *n, int level, int i)
{
    char from[16];

    if (i)
        snprintf(from, sizeof from, "v%d", i - 1);
    else
        snprintf(from, sizeof from, "x");
    *at += snprintf(*at, (size_t)(end - *at), "%%v%d = %s ", i, kind_name[n->kind]);
    if (n->kind == IF)
        *at += snprintf(*at, (size_t)(end - *at), "%%p, %%%s, %%p then_graph=@g%d else_graph=@g%d ",
                        from, level + 1, level + 1);
    else if (n->kind == WHILE)
        *at +=
            snprintf(*at, (size_t)(end - *at),
                     "%%%s cond_graph=@small body_graph=@g%d max_iterations=1 ", from, level + 1);
    else
        *at += snprintf(*at, (size_t)(end - *at), "%%%s %s=@g%d%s ", from,
                        n->kind == SCAN ? "body" : "fwd_graph", level + 1,
                        n->kind == SCAN ? " length=1 num_bcast=0 num_xs=0" : "");
}

static const char *nest_text(const struct nest *n, char *text, size_t size)
{
    const char *leaves = n->kind == IF ? "input %x: f32[4], input %p: bool[]" : "input %x: f32[4]";
    char *at = text, *end = text + size;

    for (int level = 0; level <= n->depth; level++) {
        at += snprintf(at, (size_t)(end - at), "graph @g%d (%s) { ", level, leaves);
        if (level == n->depth) {
            at += snprintf(at, (size_t)(end - at),
                           "%%c = const f32[4] {1 1 1 1} %%y = add %%x, %%c return %%y }\n");
            break;
        }
        for (int i = 0; i < n->fan; i++)
            add_call(&at, end, n, level, i);
        at += snprintf(at, (size_t)(end - at), "return %%v%d }\n", n->fan - 1);
    }
    if (n->kind == WHILE)
        snprintf(at, (size_t)(end - at),
                 "graph @small (input %%x: f32[4]) { %%m = const f32[] {1e6} %%y = lt %%x, %%m "
                 "return %%y }\n");
    return text;
}

/* x + 1 for every use of the last level. */
static void expect_sums(struct test *t, struct place *p, const struct nest *n)
{
    float x[4] = {0, 1, 2, 3}, y[4] = {0}, uses = 1;
    bool yes = true;
    const rlx_binding in[] = {
        {"x", {.dtype = RLX_DTYPE_f32, .rank = 1, .dim = {4}, .data = x, .bytes = sizeof x}},
        {"p", {.dtype = RLX_DTYPE_bool, .data = &yes, .bytes = 1}}};
    rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
    const rlx_run_desc run = {RLX_SIZED(rlx_run_desc), in, n->kind == IF ? 2 : 1, &out, 1, NULL, 0};

    for (int i = 0; i < n->depth; i++)
        uses *= (float)n->fan;
    for (int again = 0; again < 2; again++) {
        if (!expect_ok(t, rlx_session_run(p->session, &run, &p->err)))
            fail(t, "%s", p->err.message);
        for (int i = 0; i < 4; i++)
            expect_near(t, y[i], (float)i + uses, 0);
    }
}

enum { MOST_BYTES = 200 << 20 };

/* ends: LIMIT, or RLX_OK. */
static void try_nest(struct test *t, const struct nest *n, rlx_status ends)
{
    static char text[1 << 16];
    struct meter m;
    rlx_allocator mem;
    struct place p;

    test_note(t, "%s, %d deep, %d each", kind_name[n->kind], n->depth, n->fan);
    if (!open_metered(t, &p, &m, &mem))
        return;
    rlx_status s = place_build(&p, nest_text(n, text, sizeof text), NULL);
    expect_status(t, s, ends);
    if (s == RLX_OK)
        expect_sums(t, &p, n);
    else
        expect_contains(t, p.err.message, "nodes");
    place_close(&p);
    expect(t, m.most < MOST_BYTES);
    expect_eq_u64(t, m.used, 0);
}

TEST_DEVICES(nested, small_ones_are_right)
{
    static const int sizes[][2] = {{1, 1}, {1, 3}, {2, 2}, {3, 3}, {4, 2}, {20, 1}};

    for (int k = 0; k < KINDS; k++)
        for (size_t i = 0; i < COUNT_OF(sizes); i++)
            if (k != IF || sizes[i][0] < 20) /* both branches: 2 to the 20th */
                try_nest(t, &(struct nest){(enum kind)k, sizes[i][0], sizes[i][1]}, RLX_OK);
}

TEST_DEVICES(nested, large_ones_are_refused)
{
    static const int sizes[][2] = {{18, 2}, {40, 2}, {63, 2}, {12, 4}, {6, 8}, {5, 100}};

    for (int k = 0; k < KINDS; k++)
        for (size_t i = 0; i < COUNT_OF(sizes); i++)
            try_nest(t, &(struct nest){(enum kind)k, sizes[i][0], sizes[i][1]}, RLX_ERROR_LIMIT);
}

/* As large as may be: what is taken is bounded all the same. */
TEST(nested, the_largest_that_are_taken_are_right)
{
    try_nest(t, &(struct nest){IF, 6, 2}, RLX_OK);
    try_nest(t, &(struct nest){IF, 3, 11}, RLX_OK);
    try_nest(t, &(struct nest){WHILE, 12, 2}, RLX_OK);
    try_nest(t, &(struct nest){SCAN, 13, 2}, RLX_OK);
    try_nest(t, &(struct nest){CUSTOM_FN, 13, 2}, RLX_OK);
}

/* ONNX has no graphs by name, so that each is written out wherever it is used. */
TEST(nested, written_as_onnx_they_take_little)
{
    static const struct nest nests[] = {
        {IF, 6, 2}, {IF, 3, 11}, {WHILE, 12, 2}, {SCAN, 13, 2}, {CUSTOM_FN, 13, 2}};
    static char text[1 << 16];
    const char *path = test_temp(t, "nested.onnx");
    struct meter m;
    rlx_allocator mem;
    struct place p;

    for (size_t i = 0; i < COUNT_OF(nests); i++) {
        test_note(t, "%s, %d deep", kind_name[nests[i].kind], nests[i].depth);
        if (!open_metered(t, &p, &m, &mem))
            return;
        if (expect_ok(t, place_build(&p, nest_text(&nests[i], text, sizeof text), NULL)))
            expect_ok(t, rlx_model_save_onnx(p.model, path, NULL, &p.err));
        place_close(&p);
        expect(t, m.most < MOST_BYTES);
        expect_eq_u64(t, m.used, 0);
    }
}

/* ---- who is in a sub-program, and where ---- */

/* The condition is used in the body too, so that it moves between two places. */
TEST_DEVICES(nested, a_condition_may_be_used_in_the_body)
{
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    expect_numbers(
        t, &p,
        "graph (input %x: f32[2]) { %y = while %x cond_graph=@c body_graph=@b return %y }\n"
        "graph @c (input %x: f32[2]) { %m = const f32[] {9} %y = lt %x, %m return %y }\n"
        "graph @b (input %x: f32[2]) { %w = while %x cond_graph=@c body_graph=@i max_iterations=2\n"
        " %o = const f32[] {1} %y = add %w, %o return %y }\n"
        "graph @i (input %x: f32[2]) { %o = const f32[] {0.5} %y = add %x, %o return %y }\n",
        "0 1", "8 9");
    expect_numbers(t, &p,
                   "graph (input %x: f32[2], input %z: f32[3,2]) {\n"
                   " %a = scan %x, %z body=@s length=3 num_bcast=0 num_xs=1\n"
                   " %b = scan %a, %z body=@t length=3 num_bcast=0 num_xs=1\n"
                   " %y = scan %b, %z body=@s length=3 num_bcast=0 num_xs=1 return %y }\n"
                   "graph @t (input %c: f32[2], input %z: f32[2]) {\n"
                   " %p = const f32[2,2] {1 2 3 4}\n"
                   " %y = scan %c, %p body=@s length=2 num_bcast=0 num_xs=1 return %y }\n"
                   "graph @s (input %c: f32[2], input %z: f32[2]) { %h = const f32[] {0.5}\n"
                   " %m = mul %c, %h %y = add %m, %z return %y }\n",
                   "8 16 | 1 2 3 4 5 6", "7.33935547 9.34082031");
    place_close(&p);
}

/* Sub-graphs that nothing comes to cost nothing, however they would unfold. */
TEST_DEVICES(nested, what_is_not_used_does_not_count)
{
    static char text[1 << 16];
    struct place p;
    char *at = text;

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    at += sprintf(at, "graph (input %%x: f32[2]) { %%y = neg %%x return %%y }\n");
    for (int i = 0; i < 60; i++)
        at += sprintf(at,
                      "graph @g%d (input %%x: f32[2]) { %%a = custom_fn %%x fwd_graph=@g%d "
                      "%%b = custom_fn %%a fwd_graph=@g%d return %%b }\n",
                      i, i + 1, i + 1);
    sprintf(at, "graph @g60 (input %%x: f32[2]) { %%y = neg %%x return %%y }\n");
    expect_numbers(t, &p, text, "1 2", "-1 -2");
    place_close(&p);
}

TEST_DEVICES(nested, many_graphs)
{
    enum { GRAPHS = 4000, ROOM = GRAPHS * 160 };
    char *text = malloc(ROOM), *at = text;
    struct place p;

    require(t, text != NULL);
    if (!place_open(t, &p, test_device(t), NULL)) {
        free(text);
        return;
    }
    at += sprintf(at, "graph (input %%x: f32[2]) { %%v0 = custom_fn %%x fwd_graph=@g0 ");
    for (int i = 1; i < GRAPHS; i++)
        at += sprintf(at, "%%v%d = custom_fn %%v%d fwd_graph=@g%d ", i, i - 1, i);
    at += sprintf(at, "return %%v%d }\n", GRAPHS - 1);
    for (int i = 0; i < GRAPHS; i++)
        at += sprintf(at, "graph @g%d (input %%x: f32[2]) { %%y = neg %%x return %%y }\n", i);
    expect_numbers(t, &p, text, "1 2", "1 2");
    free(text);
    place_close(&p);
}

/* ---- by the builders, with large constants ---- */

enum { WIDE = 1 << 16, DOUBLINGS = 8 };

TEST_DEVICES(nested, a_large_constant_is_kept_once)
{
    const int64_t shape = WIDE;
    static float ones[WIDE], x[WIDE], y[WIDE];
    struct meter m;
    rlx_allocator mem;
    struct place p;
    rlx_graph *g = NULL, *level[DOUBLINGS + 1];

    for (size_t i = 0; i < WIDE; i++)
        ones[i] = 1;
    if (!open_metered(t, &p, &m, &mem))
        return;
    expect_ok(t, rlx_graph_create(p.ctx, &g, &p.err));
    for (int i = DOUBLINGS; i >= 0; i--) {
        level[i] = g;
        if (i)
            expect_ok(t, rlx_graph_sub(g, "", &level[i], &p.err));
        rlx_value v = rlx_input(level[i], "x", RLX_DTYPE_f32, rlx_list_of(1, &shape));
        if (i == DOUBLINGS)
            v = rlx_add(
                level[i], v,
                rlx_const(level[i], RLX_DTYPE_f32, rlx_list_of(1, &shape), ones, sizeof ones));
        rlx_scan_desc d = RLX_SCAN_DESC_INIT;
        d.body = i < DOUBLINGS ? level[i + 1] : NULL;
        d.length = 1;
        for (int k = 0; k < 2 && i < DOUBLINGS; k++)
            v = rlx_scan(level[i], v, NULL, 0, &d);
        rlx_output(level[i], v);
    }
    expect_ok(t, rlx_model_create(g, &p.model, &p.err));
    expect_ok(t, rlx_session_create(p.model, p.dev, NULL, &p.session, &p.err));
    const rlx_binding in = {
        "x", {.dtype = RLX_DTYPE_f32, .rank = 1, .dim = {WIDE}, .data = x, .bytes = sizeof x}};
    rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
    if (p.session)
        expect_ok(
            t, rlx_session_run(p.session,
                               &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0},
                               &p.err));
    expect_near(t, y[0], 1 << DOUBLINGS, 0);
    expect_near(t, y[WIDE - 1], 1 << DOUBLINGS, 0);
    rlx_memory_info info = {RLX_SIZED(rlx_memory_info)};
    if (p.session)
        expect_ok(t, rlx_session_memory(p.session, &info, &p.err));
    expect(t, info.constants <= 2 * sizeof ones);
    place_close(&p);
    expect(t, m.most < (64 << 20));
}

/* ---- the compiler's own memory ---- */

/* Text that compiles to much more than it is. */
TEST(nested, memory_limit_bounds_the_compiler)
{
    enum { CALLS = 8000, ROOM = CALLS * 120 };
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .memory_limit = 1 << 20};
    char *text = malloc(ROOM), *at = text;
    struct meter m;
    rlx_allocator mem;
    struct place p;

    require(t, text != NULL);
    if (!open_metered(t, &p, &m, &mem)) {
        free(text);
        return;
    }
    at += sprintf(at, "graph (input %%x: f32[2]) { %%v0 = neg %%x ");
    for (int i = 1; i < CALLS; i++)
        at += sprintf(at, "%%v%d = custom_fn %%v%d fwd_graph=@g ", i, i - 1);
    at += sprintf(at, "return %%v%d }\ngraph @g (input %%x: f32[2]) { %%v0 = neg %%x ", CALLS - 1);
    for (int i = 1; i < 13; i++)
        at += sprintf(at, "%%v%d = neg %%v%d ", i, i - 1);
    sprintf(at, "return %%v12 }\n");
    expect_status(t, place_build(&p, text, &desc), RLX_ERROR_MEMORY);
    expect_contains(t, p.err.message, "compiling takes more than 67108864 bytes");
    expect_contains(t, p.err.message, "memory_limit");
    expect(t, m.most < (80 << 20));
    expect_ok(t, place_build(&p, text, NULL));
    place_close(&p);
    free(text);
    expect_eq_u64(t, m.used, 0);
}
