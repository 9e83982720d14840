/* report_test.c: a plan as text, JSON and picture. */
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "problems.h"
#include "test.h"

static rlx_str name_of(void *user, int32_t node)
{
    static const char *const name[] = {"image", "conv\t<1> & \"co\"", "", "relu", "y"};
    (void)user;
    return node < 5 ? rlx_cstr(name[node]) : rlx_cstr("");
}

/* image -> 1 -> (view 2) relu in place 3 -> 4 output, with scratch 5 */
static struct plan *small_plan(struct test *t, struct build *b, struct arena *a)
{
    struct plan_options o = {.align = 64, .check_plan = true};
    struct plan *p = NULL;
    struct diag d;

    build_init(b);
    int32_t x = add_value(b, 64, VALUE_INPUT), c = add_value(b, 256, 0);
    int32_t v = add_view(b, c, 0, 256), r = add_value(b, 256, 0);
    int32_t y = add_value(b, 100, VALUE_OUTPUT), s = add_value(b, 128, VALUE_SCRATCH);
    add_unary(b, "conv", x, c, false);
    add_operand(b, s, ROLE_WRITE, false);
    add_unary(b, "relu", v, r, true);
    add_unary(b, "sum", r, y, false);
    arena_init(a, mem_default());
    diag_init(&d, "plan");
    expect_ok(t, plan_build(&b->steps, &o, a, &p, &d));
    return p;
}

TEST(plan_print, a_line_per_value_by_offset)
{
    struct build *b = calloc(1, sizeof *b);
    struct arena a;
    struct text out;
    struct plan *p = small_plan(t, b, &a);
    require(t, p != NULL);

    text_init(&out, mem_default());
    plan_print(p, name_of, NULL, &out);
    expect(t, !out.failed);
    expect_str(t, out.at,
               "# arena_size=448 total_unshared=832 saved=384 lower_bound=448\n"
               "# align=64 method=size in_place=1 weights=0 consts=0 state=0 copies=0 total=448\n"
               "offset\tsize\tnode\tname\tsteps\tnote\n"
               "0\t256\t%1\tconv?<1> & \"co\"\t0-1\t\n"
               "0\t256\t%2\t\t0-1\tview of %1\n"
               "0\t256\t%3\trelu\t1-2\tin place of %1\n"
               "256\t128\tscratch\t\t0-0\t\n"
               "256\t100\t%4\ty\t2-3\toutput\n"
               "384\t64\t%0\timage\t0-3\tinput\n"
               "# peak: 448 bytes live at step 0; the largest:\n"
               "# 256\t%1\tconv?<1> & \"co\"\n"
               "# 128\tscratch\t\n"
               "# 64\t%0\timage\n");
    text_free(&out);
    arena_free(&a);
    free(b);
}

TEST(plan_print, json_says_the_same)
{
    struct build *b = calloc(1, sizeof *b);
    struct arena a;
    struct text out;
    struct plan *p = small_plan(t, b, &a);
    require(t, p != NULL);

    text_init(&out, mem_default());
    plan_print_json(p, name_of, NULL, &out);
    expect_contains(t, out.at, "{\"arena_size\":448,\"lower_bound\":448,\"total_unshared\":832,");
    expect_contains(
        t, out.at,
        "\"regions\":{\"weights\":0,\"consts\":0,\"acts\":448,\"state\":0,\"copies\":0},"
        "\"total\":448,");
    expect_contains(t, out.at, "\"name\":\"conv\\t<1> & \\\"co\\\"\"");
    expect_contains(t, out.at, "\"birth\":1,\"death\":2,\"in_place_of\":1}");
    expect_contains(t, out.at, "\"view_of\":1}");
    text_free(&out);
    arena_free(&a);
    free(b);
}

static size_t count_of(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, part)); p++)
        n++;
    return n;
}

TEST(plan_draw, a_box_per_root_with_a_tooltip)
{
    struct build *b = calloc(1, sizeof *b);
    struct arena a;
    struct text out;
    struct plan *p = small_plan(t, b, &a);
    require(t, p != NULL);

    text_init(&out, mem_default());
    plan_draw(p, name_of, NULL, &out);
    expect_eq(t, count_of(out.at, "<title>"), 5);
    expect_eq(t, count_of(out.at, "<g"), count_of(out.at, "</g>"));
    expect_contains(t, out.at, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    expect_contains(t, out.at, ">arena 448 B, lower bound 448 B, ratio 1.000</text>");
    expect_contains(t, out.at, "conv\xef\xbf\xbd&lt;1&gt; &amp; &quot;co&quot;");
    expect_contains(t, out.at, "in place of %1</title>");
    expect_contains(t, out.at, "peak: 448 B live at step 0");
    expect(t, !strstr(out.at, "<1>"));
    expect_str(t, out.at + out.len - 7, "</svg>\n");
    text_free(&out);
    arena_free(&a);
    free(b);
}

TEST(plan_draw, nothing_and_the_very_large)
{
    const struct plan_item item[] = {
        {UINT64_C(1) << 62, INT32_MIN, INT32_MAX},
        {UINT64_C(1) << 62, -5, 7},
        {1, 0, 0},
    };
    struct arena a;
    struct diag d;
    struct text out;

    for (size_t count = 0; count <= 3; count += 3) {
        struct plan_problem q = {.item = item, .count = count, .align = 1};
        struct plan_fit fit;
        struct plan *p;
        arena_init(&a, mem_default());
        diag_init(&d, "plan");
        require_ok(t, plan_assign(&q, &a, &fit, &d));
        require_ok(t, plan_from_fit(item, count, &fit, &a, &p, &d));
        expect_ok(t, plan_check(p, &a, &d));
        text_init(&out, mem_default());
        plan_draw(p, NULL, NULL, &out);
        expect(t, !out.failed);
        expect_eq(t, count_of(out.at, "<title>"), count);
        plan_print(p, NULL, NULL, &out);
        plan_print_json(p, NULL, NULL, &out);
        expect(t, !out.failed);
        text_free(&out);
        arena_free(&a);
    }
}

struct show {
    const struct plan *p;
    void (*how)(const struct plan *p, plan_name name, void *user, struct text *out);
};

static rlx_status show_it(struct test *t, const rlx_allocator *mem, void *ctx)
{
    const struct show *s = ctx;
    struct text out;

    (void)t;
    text_init(&out, mem);
    s->how(s->p, name_of, NULL, &out);
    bool failed = out.failed;
    text_free(&out);
    return failed ? RLX_ERROR_MEMORY : RLX_OK;
}

TEST(plan_print, survives_no_memory)
{
    struct build *b = calloc(1, sizeof *b);
    struct arena a;
    struct show s = {.p = small_plan(t, b, &a)};
    require(t, s.p != NULL);

    s.how = plan_print;
    expect_survives_no_memory(t, show_it, &s);
    s.how = plan_print_json;
    expect_survives_no_memory(t, show_it, &s);
    s.how = plan_draw;
    expect_survives_no_memory(t, show_it, &s);
    arena_free(&a);
    free(b);
}
