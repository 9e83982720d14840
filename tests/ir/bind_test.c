/* bind_test.c: symbols get sizes: in types, in attributes, and in what was left to be checked. */
#include <stdlib.h>
#include <string.h>

#include "ir/text/text_check.h"

enum { MOST_SYMBOLS = 64 };

/* "s=4 batch=1": what symbols stand for; the others are unbound. How many symbols there are. */
static size_t read_sizes(struct test *t, const struct ir_module *m, const char *text,
                         int64_t size[MOST_SYMBOLS])
{
    size_t count = dim_symbol_count(m->dims), symbol;

    expect(t, count <= MOST_SYMBOLS);
    for (size_t i = 0; i < MOST_SYMBOLS; i++)
        size[i] = -1;
    while (*text) {
        const char *eq = strchr(text, '=');
        rlx_str name = {text, (size_t)(eq - text)};
        char *end;
        int64_t value = strtoll(eq + 1, &end, 10);
        if (!dim_find_symbol(m->dims, name, &symbol))
            fail(t, "no symbol %.*s", STR_ARG(name));
        else
            size[symbol] = value;
        text = end + (*end == ' ');
    }
    return count;
}

/* Bound, the module is the one that says the sizes to begin with; and it stays as it was. */
static void expect_binds(struct test *t, const char *source, const char *sizes, const char *want)
{
    struct ir_module *m = parse(t, source), *wanted = parse(t, want), *bound = NULL;
    int64_t size[MOST_SYMBOLS];
    struct diag d;

    if (!m || !wanted) {
        ir_module_destroy(m);
        ir_module_destroy(wanted);
        return;
    }
    struct text before = print(t, m, true, false), expected = print(t, wanted, true, false);
    size_t count = read_sizes(t, m, sizes, size);
    diag_init(&d, "bind");
    test_note(t, "%s with %s", source, sizes);
    if (ir_bind(m, size, count, mem_default(), &bound, &d) != RLX_OK) {
        fail(t, "%s", d.first.message);
    } else {
        struct text got = print(t, bound, true, false), after = print(t, m, true, false);
        expect_str(t, got.at, expected.at);
        expect_str(t, after.at, before.at);
        expect(t, ir_module_is_static(bound));
        expect_eq_u64(t, bound->check.len, 0);
        expect_ok(t, ir_verify(bound, &d));
        text_free(&got);
        text_free(&after);
    }
    test_note(t, "%s", "");
    text_free(&before);
    text_free(&expected);
    ir_module_destroy(bound);
    ir_module_destroy(m);
    ir_module_destroy(wanted);
}

/* Binding is refused, and the module still is what it was. */
static void expect_bind_fails(struct test *t, const char *source, const char *sizes,
                              rlx_status status, const char *part, const char *label)
{
    struct ir_module *m = parse(t, source), *bound = NULL;
    int64_t size[MOST_SYMBOLS];
    struct diag d;

    if (!m)
        return;
    struct text before = print(t, m, true, false);
    size_t checks = m->check.len, count = read_sizes(t, m, sizes, size);
    diag_init(&d, "bind");
    test_note(t, "%s with %s", source, sizes);
    expect_status(t, ir_bind(m, size, count, mem_default(), &bound, &d), status);
    expect_error(t, status, part, &d.first);
    expect_str(t, d.first.label, label);
    expect(t, bound == NULL);
    struct text after = print(t, m, true, false);
    expect_str(t, after.at, before.at);
    expect_eq_u64(t, m->check.len, checks);
    expect_ok(t, ir_verify(m, &(struct diag){0}));
    test_note(t, "%s", "");
    text_free(&before);
    text_free(&after);
    ir_module_destroy(bound);
    ir_module_destroy(m);
}

#define binds(sizes, source, want) expect_binds(t, "rlx 1 " source, sizes, "rlx 1 " want)
#define refused(sizes, source, status, part, label) \
    expect_bind_fails(t, "rlx 1 " source, sizes, RLX_ERROR_##status, part, label)

/* ---- substitution ---------------------------------------------------------------------------- */

TEST(bind, types_take_sizes)
{
    binds("batch=3 s=5",
          "graph (input %x: f32[batch,s,2*s-1], param %w: f32[9,4]) { %y = exp %x return %y }",
          "graph (input %x: f32[3,5,9], param %w: f32[9,4]) { %y = exp %x return %y }");
    binds("s=7", "graph (input %x: i8[(s-1)/2+1,s*s]) { return %x }",
          "graph (input %x: i8[4,49]) { return %x }");
    binds("", "graph (input %x: f32[2]) { return %x }", "graph (input %x: f32[2]) { return %x }");
}

TEST(bind, size_attributes_take_sizes)
{
    binds("b=2 s=6", "graph (input %x: f32[b,s,4]) { %y = reshape %x shape=[b*s,-1] return %y }",
          "graph (input %x: f32[2,6,4]) { %y = reshape %x shape=[12,4] return %y }");
    binds("b=2 s=6", "graph (input %x: f32[b,1]) { %y = expand %x shape=[-1,s+1] return %y }",
          "graph (input %x: f32[2,1]) { %y = expand %x shape=[2,7] return %y }");
    binds("s=6", "graph (input %x: f32[s]) { %y = narrow %x axis=0 start=s-2 len=2 return %y }",
          "graph (input %x: f32[6]) { %y = narrow %x axis=0 start=4 len=2 return %y }");
    binds("s=6", "graph (input %x: f32[s,3]) { %y = narrow %x axis=0 start=1 len=s/2 return %y }",
          "graph (input %x: f32[6,3]) { %y = narrow %x axis=0 start=1 len=3 return %y }");
    binds("s=6",
          "graph (input %x: f32[s]) { %y = slice %x axis=0 start=s-1 len=s/2 step=-2 return %y }",
          "graph (input %x: f32[6]) { %y = slice %x axis=0 start=5 len=3 step=-2 return %y }");
    binds("s=6", "graph (input %x: f32[s,2]) { %y = pad %x before=[s-4,0] after=[0,s] return %y }",
          "graph (input %x: f32[6,2]) { %y = pad %x before=[2,0] after=[0,6] return %y }");
    binds("s=6 v=9",
          "graph (input %u: f32[s], input %i: i32[s]) { %y = scatter_add %u, %i out_dim=v return "
          "%y }",
          "graph (input %u: f32[6], input %i: i32[6]) { %y = scatter_add %u, %i out_dim=9 return "
          "%y }");
    binds("s=6", "graph () { %y = rng_normal shape=[s,s+1] return %y }",
          "graph () { %y = rng_normal shape=[6,7] return %y }");
}

TEST(bind, sub_graphs_take_sizes)
{
    binds("s=6 d=3",
          "graph (input %c: f32[d], input %x: f32[s,d]) {"
          "  %y = scan %c, %x body=@step length=s num_xs=1 save_trajectory=true return %y }"
          "graph @step (input %a: f32[d], input %b: f32[d]) {"
          "  %z = add %a, %b %r = reshape %z shape=[1,d] %q = reshape %r shape=[d] return %q }",
          "graph (input %c: f32[3], input %x: f32[6,3]) {"
          "  %y = scan %c, %x body=@step length=6 num_xs=1 save_trajectory=true return %y }"
          "graph @step (input %a: f32[3], input %b: f32[3]) {"
          "  %z = add %a, %b %r = reshape %z shape=[1,3] %q = reshape %r shape=[3] return %q }");
    /* the sub-graph stands first in the text of the one that names it, and is named twice */
    binds("n=4",
          "graph (input %p: bool[], input %x: f16[n]) {"
          "  %y = if %p, %x then_graph=@a else_graph=@a return %y }"
          "graph @a (input %x: f16[n]) { %y = neg %x return %y }",
          "graph (input %p: bool[], input %x: f16[4]) {"
          "  %y = if %p, %x then_graph=@a else_graph=@a return %y }"
          "graph @a (input %x: f16[4]) { %y = neg %x return %y }");
}

TEST(bind, sizes_may_be_zero_or_one)
{
    binds("s=0", "graph (input %x: f32[s,4]) { %y = exp %x %z = concat %y, %x axis=0 return %z }",
          "graph (input %x: f32[0,4]) { %y = exp %x %z = concat %y, %x axis=0 return %z }");
    binds("s=1", "graph (input %x: f32[s,4], input %y: f32[s,4]) { %z = add %x, %y return %z }",
          "graph (input %x: f32[1,4], input %y: f32[1,4]) { %z = add %x, %y return %z }");
    binds("s=0", "graph (input %x: f32[s]) { %y = reshape %x shape=[2,s] return %y }",
          "graph (input %x: f32[0]) { %y = reshape %x shape=[2,0] return %y }");
    binds("s=0",
          "graph (input %x: f32[s]) { %y = pad %x before=[0] after=[s] mode=reflect return %y }",
          "graph (input %x: f32[0]) { %y = pad %x before=[0] after=[0] mode=reflect return %y }");
}

/* ---- what had to wait ------------------------------------------------------------------------ */

TEST(bind, a_symbolic_axis_never_broadcasts)
{
    const char *two =
        "rlx 1 graph (input %x: f32[s,2], input %y: f32[n,2]) { %z = add %x, %y return %z }";
    const char *five =
        "rlx 1 graph (input %x: f32[s], input %y: f32[5]) { %z = mul %x, %y return %z }";
    const char *where = "rlx 1 graph (input %c: bool[s], input %x: f32[n], input %y: f32[]) {"
                        " %z = where %c, %x, %y return %z }";
    const char *part = "broadcast sizes do not fit once dims have sizes: 1 and 5";

    expect_bind_fails(t, two, "s=1 n=5", RLX_ERROR_SHAPE, part, "z");
    expect_bind_fails(t, two, "s=5 n=1", RLX_ERROR_SHAPE, "5 and 1", "z");
    expect_bind_fails(t, two, "s=0 n=1", RLX_ERROR_SHAPE, "0 and 1", "z");
    expect_bind_fails(t, two, "s=1 n=0", RLX_ERROR_SHAPE, "1 and 0", "z");
    expect_bind_fails(t, five, "s=1", RLX_ERROR_SHAPE, part, "z");
    expect_bind_fails(t, five, "s=0", RLX_ERROR_SHAPE, "", "z");
    expect_bind_fails(t, where, "s=3 n=1", RLX_ERROR_SHAPE, "3 and 1", "z");
    expect_binds(
        t, two, "s=1 n=1",
        "rlx 1 graph (input %x: f32[1,2], input %y: f32[1,2]) { %z = add %x, %y return %z }");
    /* a plain 1 does */
    binds("s=1", "graph (input %x: f32[s], input %y: f32[1]) { %z = add %x, %y return %z }",
          "graph (input %x: f32[1], input %y: f32[1]) { %z = add %x, %y return %z }");
    /* and expand is how to stretch one */
    binds("s=1", "graph (input %x: f32[s]) { %z = expand %x shape=[5] return %z }",
          "graph (input %x: f32[1]) { %z = expand %x shape=[5] return %z }");
}

TEST(bind, deferred_checks_have_their_status)
{
    refused("s=3",
            "graph (input %x: f32[2,s], input %w: f32[4,5]) { %y = matmul %x, %w return %y }",
            SHAPE, "inner dimensions", "y");
    refused("s=3", "graph (input %x: f32[s]) { %y = narrow %x axis=0 start=1 len=3 return %y }",
            ATTRIBUTE, "go past axis 0 of f32[3]", "y");
    refused("s=3 k=4", "graph (input %x: f32[s]) { %y = narrow %x axis=0 start=0 len=k return %y }",
            ATTRIBUTE, "start 0 and len 4", "y");
    refused("s=3",
            "graph (input %x: f32[s]) { %y = slice %x axis=0 start=2 len=2 step=2 return %y }",
            ATTRIBUTE, "leave axis 0 of f32[3]", "y");
    refused("s=3 k=4",
            "graph (input %x: f32[s]) { %y = slice %x axis=0 start=0 len=k step=1 return %y }",
            ATTRIBUTE, "leave axis 0", "y");
    refused("s=3", "graph (input %x: f32[s]) { %y = reshape %x shape=[2,2] return %y }", SHAPE,
            "cannot turn 3 elements", "y");
    refused("s=3", "graph (input %x: f32[s]) { %y = expand %x shape=[5] return %y }", SHAPE,
            "3 against 5", "y");
    refused("s=3 k=3",
            "graph (input %x: f32[s]) { %y = pad %x before=[k] after=[0] mode=reflect return %y }",
            ATTRIBUTE, "too short to pad", "y");
    refused("s=0", "graph (input %x: f32[s], input %i: i32[2]) { %y = gather %x, %i return %y }",
            SHAPE, "is empty", "y");
    refused("s=3",
            "graph (input %c: f32[], input %x: f32[4]) {"
            " %y = scan %c, %x body=@f length=s num_xs=1 return %y }"
            "graph @f (input %a: f32[], input %b: f32[]) { %z = add %a, %b return %z }",
            SHAPE, "length", "y");
    refused(
        "s=3",
        "graph (input %x: f32[2,s]) { %y = reduce_sum %x axes=[1] %z = topk %x k=4 return %y, %z }",
        ATTRIBUTE, "", "z");
    refused("b=2 s=3",
            "graph (input %x: f32[b,s]) { %y = concat %x, %x axis=0 "
            "%z = reshape %y shape=[s,b] return %z }",
            SHAPE, "cannot turn 12 elements", "z");
}

/* A check inside a sub-graph names its own node. */
TEST(bind, checks_in_sub_graphs)
{
    refused("n=3",
            "graph (input %p: bool[], input %x: f32[n]) {"
            "  %y = if %p, %x then_graph=@a else_graph=@b return %y }"
            "graph @a (input %u: f32[n]) { %c = const f32[4] {1 2 3 4} %v = add %u, %c"
            "  %r = reduce_sum %v axes=[0] return %r }"
            "graph @b (input %u: f32[n]) { %r = reduce_sum %u axes=[0] return %r }",
            SHAPE, "add: shapes [3] and [4] do not broadcast", "v");
}

/* ---- sizes that make no sense ---------------------------------------------------------------- */

TEST(bind, unbound_symbols_are_named)
{
    refused("", "graph (input %x: f32[s]) { return %x }", UNBOUND_DIM, "\"s\"", "x");
    refused("s=1", "graph (input %x: f32[s,s+k]) { return %x }", UNBOUND_DIM, "\"k\"", "x");
    refused("", "graph (input %x: f32[a*b+c]) { return %x }", UNBOUND_DIM, "\"a\", \"b\", \"c\"",
            "x");
    refused("s=4", "graph (input %x: f32[s]) { %y = narrow %x axis=0 start=0 len=k return %y }",
            UNBOUND_DIM, "\"k\"", "y");
    refused("", "graph (input %x: f32[?]) { return %x }", UNBOUND_DIM, "unknown", "x");
}

TEST(bind, fewer_sizes_than_symbols)
{
    struct ir_module *m = parse(t, "rlx 1 graph (input %x: f32[batch,s]) { return %x }"), *bound;
    const int64_t size[] = {3};
    struct diag d;

    require(t, m != NULL);
    diag_init(&d, "bind");
    expect_status(t, ir_bind(m, size, 1, mem_default(), &bound, &d), RLX_ERROR_UNBOUND_DIM);
    expect_contains(t, d.first.message, "\"s\"");
    expect_status(t, ir_bind(m, NULL, 0, mem_default(), &bound, &d), RLX_ERROR_UNBOUND_DIM);
    ir_module_destroy(m);
}

TEST(bind, negative_and_huge_sizes)
{
    refused("s=2", "graph (input %x: f32[s-3]) { return %x }", BINDING, "negative", "x");
    refused("s=2", "graph (input %x: f32[s]) { %y = narrow %x axis=0 start=s-5 len=1 return %y }",
            BINDING, "negative", "y");
    refused("s=4611686018427387904", "graph (input %x: f32[s]) { return %x }", LIMIT, "overflows",
            "x");
    refused("s=4611686018427387904", "graph (input %x: i8[s,s]) { return %x }", LIMIT, "overflow",
            "x");
    refused("s=4611686018427387904", "graph (input %x: i8[2*s]) { return %x }", LIMIT, "too large",
            "x");
    refused("s=3037000500", "graph (input %x: i8[s*s]) { return %x }", LIMIT, "too large", "x");
    refused("s=2305843009213693952",
            "graph (input %x: i8[s]) { %y = concat %x, %x, %x, %x axis=0 return %y }", LIMIT, "",
            "y");
    binds("s=9223372036854775807", "graph (input %x: i8[s]) { return %x }",
          "graph (input %x: i8[9223372036854775807]) { return %x }");
}

/* ---- what nothing needs ---------------------------------------------------------------------- */

TEST(bind, what_nothing_needs_may_stay_unbound)
{
    binds("s=2",
          "graph (input %a: f32[k], input %x: f32[s], input %b: f32[?]) {"
          "  %u = exp %a %y = neg %x %v = add %u, %u %w = exp %b return %y }",
          "graph (input %x: f32[2]) { %y = neg %x return %y }");
    /* a check on a dropped node is not made */
    binds("s=2",
          "graph (input %a: f32[k], input %x: f32[s]) {"
          "  %v = narrow %a axis=0 start=0 len=9 %y = neg %x return %y }",
          "graph (input %x: f32[2]) { %y = neg %x return %y }");
    /* states, outputs and leaves keep their names where ids change */
    binds("s=2",
          "graph (input %a: f32[k], state %c: f32[8,2], input %x: f32[1,s], input %p: i32[]) {"
          "  %e = exp %a %w = cache_append %c, %x, %p %n = neg %w return %n, %p, %n }",
          "graph (state %c: f32[8,2], input %x: f32[1,2], input %p: i32[]) {"
          "  %w = cache_append %c, %x, %p %n = neg %w return %n, %p, %n }");
    /* a writer is needed, whatever reads it */
    refused("s=2",
            "graph (input %x: f32[k,4], state %c: f32[8,4], input %p: i32[], input %y: f32[s]) {"
            "  %w = cache_append %c, %x, %p return %y }",
            UNBOUND_DIM, "\"k\"", "x");
    /* dead, but with sizes: still checked */
    refused("s=2", "graph (input %x: f32[s]) { %u = narrow %x axis=0 start=0 len=3 return %x }",
            ATTRIBUTE, "start 0 and len 3", "u");
}

/* A graph that only a dropped node names is left alone, symbols and all. */
TEST(bind, graphs_of_dropped_nodes_are_left_alone)
{
    struct ir_module *m =
        parse(t, "rlx 1 graph (input %p: bool[], input %a: f32[k], input %x: f32[s]) {"
                 "  %u = if %p, %a then_graph=@f else_graph=@f %y = neg %x return %y }"
                 "graph @f (input %q: f32[k]) { %z = neg %q return %z }");
    struct ir_module *bound = NULL;
    int64_t size[MOST_SYMBOLS];
    ir_value v;
    struct diag d;

    require(t, m != NULL);
    diag_init(&d, "bind");
    size_t count = read_sizes(t, m, "s=2", size);
    expect_ok(t, ir_bind(m, size, count, mem_default(), &bound, &d));
    if (bound) {
        const struct ir_graph *g = ir_entry(bound);
        expect_eq_u64(t, g->node.len, 3); /* p, x, y */
        expect(t, ir_find_leaf(g, STR("x"), &v) && v == 1);
        expect(t, !ir_find_leaf(g, STR("a"), &v));
        expect_eq(t, g->output.at[0], 2);
        expect_ok(t, ir_verify(bound, &d));
    }
    ir_module_destroy(bound);
    ir_module_destroy(m);
}

/* ---- no memory ------------------------------------------------------------------------------- */

static rlx_status bind_some(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct ir_module *m = ctx, *bound = NULL;
    int64_t size[MOST_SYMBOLS];
    struct diag d;

    diag_init(&d, "bind");
    size_t count = read_sizes(t, m, "s=6 d=3", size);
    TRY(ir_bind(m, size, count, mem, &bound, &d));
    expect_eq_u64(t, ir_entry(bound)->node.len, 4);
    ir_module_destroy(bound);
    return RLX_OK;
}

TEST(bind, no_memory)
{
    struct ir_module *m =
        parse(t, "rlx 1 graph (input %g: f32[k], input %c: f32[d], input %x: f32[s,d]) {"
                 "  %u = exp %g %y = scan %c, %x body=@f length=s num_xs=1 %n = neg %y return %n }"
                 "graph @f (input %a: f32[d], input %b: f32[d]) { %z = add %a, %b return %z }");

    require(t, m != NULL);
    expect_survives_no_memory(t, bind_some, m);
    ir_module_destroy(m);
}

/* Saying which symbol is missing takes memory too. */
static rlx_status bind_none(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct ir_module *bound = NULL;
    struct diag d;

    diag_init(&d, "bind");
    rlx_status s = ir_bind(ctx, NULL, 0, mem, &bound, &d);
    expect(t, bound == NULL);
    return s == RLX_ERROR_UNBOUND_DIM ? RLX_OK : s;
}

TEST(bind, no_memory_for_the_message)
{
    struct ir_module *m = parse(t, "rlx 1 graph (input %x: f32[s*d+2]) { return %x }");

    require(t, m != NULL);
    expect_survives_no_memory(t, bind_none, m);
    ir_module_destroy(m);
}
