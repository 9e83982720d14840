/* parts_test.c: a graph with cuts as several graphs: what is in each, and which cuts are refused.
 */
#include "pass/parts.h"

#include "ir/text/text.h"
#include "session/parts_world.h"

static rlx_status split(struct parts_world *w, struct arena *a, struct graph_part **part,
                        size_t *count)
{
    struct diag d;

    diag_init(&d, "cut");
    rlx_status s = cut_into_parts(w->g->mod, w->cut, w->cuts, w->g->mod->mem, a, part, count, &d);
    diag_report(&d, &w->err);
    return s;
}

static void destroy_parts(struct graph_part *part, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ir_module_destroy(part[i].mod);
}

static void expect_text(struct test *t, const struct ir_module *m, const char *want)
{
    struct text text;
    struct diag d;

    diag_init(&d, "print");
    text_init(&text, m->mem);
    if (expect_ok(t, ir_verify(m, &d)) &&
        expect_ok(t, ir_print(m, &(struct text_print_options){0}, &text, &d)))
        expect_str(t, text.at, want);
    text_free(&text);
}

TEST(parts, are_graphs_of_their_own)
{
    struct parts_world w;
    struct arena a;
    struct graph_part *part;
    size_t count = 0;

    require_ok(t, world_graph(&w, NULL, 8));
    arena_init(&a, w.g->mod->mem);
    if (expect_ok(t, split(&w, &a, &part, &count)) && expect_eq(t, count, 2)) {
        expect_text(t, part[0].mod,
                    "rlx 1\n"
                    "graph @main (input %x: f32[8]) {\n"
                    "    %v1 = reduce_sum %x axes=[0]\n"
                    "    %v2 = sort %x axis=0 descending=true\n"
                    "    %v3 = const f32[] {0}\n"
                    "    %v4 = gt %x, %v3\n"
                    "    %v5 = cast %v4 to=i64\n"
                    "    %v6 = reduce_sum %v5 axes=[0]\n"
                    "    return %v1, %v2, %v6\n"
                    "}\n");
        expect_text(t, part[1].mod,
                    "rlx 1\n"
                    "dim kept <= 8\n"
                    "graph @main (input %value_1: f32[], input %kept: f32[kept], "
                    "state %bias: f32[1], param %w: f32[1]) {\n"
                    "    %v4 = mul %kept, %w\n"
                    "    %v5 = add %v4, %bias\n"
                    "    %y = add %v5, %value_1\n"
                    "    %total = reduce_sum %y axes=[0]\n"
                    "    %v8 = const f32[] {1}\n"
                    "    %v9 = gt %kept, %v8\n"
                    "    %v10 = cast %v9 to=i64\n"
                    "    %v11 = reduce_sum %v10 axes=[0]\n"
                    "    return %kept, %y, %total, %v11\n"
                    "}\n");
        size_t n = 0;
        expect(t, dim_find_symbol(w.g->mod->dims, STR("kept"), &n) && part[1].uses[n]);
        expect(t, !part[0].uses[n]);
        expect_eq(t, part[1].input_count, 2);
        expect_eq(t, part[1].input[0], w.sum);
        expect_eq(t, part[1].input[1], w.kept);
        expect_eq(t, part[0].output_count, 3);
    }
    destroy_parts(part, count);
    arena_free(&a);
    world_close(&w);
}

/* What is computed from constants has the size of a cut: it comes after it, nothing else does. */
TEST(parts, follow_from_sizes_alone)
{
    struct parts_world w;
    struct arena a;
    struct graph_part *part;
    size_t count = 0;

    require_ok(t, world_graph(&w, NULL, 8));
    rlx_dim n = rlx_dim_symbol(w.g, "length");
    rlx_value one = rlx_reshape(w.g, rlx_scalar(w.g, w.x, 1), RLX_LIST(1));
    rlx_output(w.g, rlx_expand(w.g, one, RLX_LIST(rlx_dim_add(w.g, n, 1))));
    struct ir_cut *c = &w.cut[w.cuts++];
    *c = (struct ir_cut){.count = w.count, .padded = RLX_NO_VALUE, .leaf = RLX_NO_VALUE};
    require(t, dim_find_symbol(w.g->mod->dims, STR("length"), &c->symbol));
    arena_init(&a, w.g->mod->mem);
    if (expect_ok(t, split(&w, &a, &part, &count)) && expect_eq(t, count, 2)) {
        expect(t, !part[0].uses[c->symbol]);
        expect(t, part[1].uses[c->symbol]);
        expect_eq(t, part[1].output_count, 5);
    }
    destroy_parts(part, count);
    arena_free(&a);
    world_close(&w);
}

/* ---- refusals ---- */

static void two_counts(struct parts_world *w)
{
    w->cut[w->cuts] = w->cut[0];
    w->cut[w->cuts].padded = w->cut[w->cuts].leaf = RLX_NO_VALUE;
    w->cut[w->cuts++].count = w->cut[1].count;
}

static void count_is_no_number(struct parts_world *w)
{
    w->cut[0].count = w->padded;
}

static void count_is_nowhere(struct parts_world *w)
{
    w->cut[0].count = 10000;
}

static void symbol_is_nowhere(struct parts_world *w)
{
    w->cut[0].symbol = 10000;
}

static void leaf_is_no_input(struct parts_world *w)
{
    w->cut[0].leaf = w->y;
}

static void leaf_is_shared(struct parts_world *w)
{
    w->cut[w->cuts++] = w->cut[0];
}

static void padded_comes_late(struct parts_world *w)
{
    w->cut[0].padded = w->y;
}

static void axis_is_wrong(struct parts_world *w)
{
    w->cut[0].axis = 1;
}

static void size_is_used_early(struct parts_world *w)
{
    w->cut[0].symbol = w->cut[1].symbol;
    w->cut[0].padded = w->cut[0].leaf = RLX_NO_VALUE;
    w->cut[0].count = w->cut[1].count;
    dim_find_symbol(w->g->mod->dims, STR("kept"), &w->cut[0].symbol);
}

static void state_is_in_two(struct parts_world *w)
{
    rlx_output(w->g, rlx_add(w->g, w->x, w->bias));
}

static void too_many(struct parts_world *w)
{
    w->cuts = MAX_CUTS + 1; /* refused before any is looked at */
}

TEST(parts, cuts_without_sense_are_refused)
{
    static const struct {
        void (*spoil)(struct parts_world *w);
        rlx_status status;
        const char *part;
    } rows[] = {
        {two_counts, RLX_ERROR_GRAPH, "\"kept\" is given by two counts"},
        {count_is_no_number, RLX_ERROR_GRAPH, "not an integer"},
        {count_is_nowhere, RLX_ERROR_GRAPH, "no count"},
        {symbol_is_nowhere, RLX_ERROR_GRAPH, "no symbol"},
        {leaf_is_no_input, RLX_ERROR_GRAPH, "no leaf"},
        {leaf_is_shared, RLX_ERROR_GRAPH, "one leaf"},
        {padded_comes_late, RLX_ERROR_GRAPH, "no leaf after"},
        {axis_is_wrong, RLX_ERROR_GRAPH, "axis 1"},
        {size_is_used_early, RLX_ERROR_GRAPH, "not computed yet"},
        {state_is_in_two, RLX_ERROR_UNSUPPORTED, "\"bias\""},
        {too_many, RLX_ERROR_LIMIT, "more than"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct parts_world w;
        struct arena a;
        struct graph_part *part = NULL;
        size_t count = 0;
        test_note(t, "row %zu", i);
        require_ok(t, world_graph(&w, NULL, 8));
        rows[i].spoil(&w);
        arena_init(&a, w.g->mod->mem);
        expect_status(t, split(&w, &a, &part, &count), rows[i].status);
        expect_error(t, rows[i].status, rows[i].part, &w.err);
        arena_free(&a);
        world_close(&w);
    }
}
