/* text_hostile_test.c: texts that nobody honest would write, memory that runs out, and drawings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text/text.h"
#include "test.h"

/* A small text with a bit of everything. */
static const char sample[] =
    "rlx 1\n"
    "dim n <= 64\n"
    "graph @main (input %x \"an \\\"x\\\"\": f32[n,(n-3)/2+1], input %flag: bool[], state %s: "
    "f32[2]) {\n"
    "    %c = const f32[2,2] {1 -2.5 nan inf}   # numbers\n"
    "    %b = const u8[3] bytes 0x00ff10\n"
    "    %r = reduce_sum %x axes=[0,-1] keep_dim=true: f32[1,1]\n"
    "    %e = elementwise_region %r, %c chain=[[add,i0,i1],[cast,s0,f16]]\n"
    "    %q = quantize %c scales=[0.5] zero_points=[3]\n"
    "    %i = if %flag, %c then_graph=@t else_graph=@e result=0\n"
    "    %k = fused_matmul_bias_act %c, %c, %i activation=silu\n"
    "    return %e, %q, %k, %b, %s\n"
    "}\n"
    "graph @t (input %x: f32[2,2]) { %y = narrow %x axis=0 start=0 len=2 return %y }\n"
    "graph @e (input %x: f32[2,2]) { return %x }\n";

static rlx_status try(const char *source, size_t len, struct ir_module **out, struct diag *d)
{
    diag_init(d, "parse");
    return ir_parse((rlx_str){source, len}, NULL, mem_default(), out, d);
}

/* It parses and prints as itself, or is refused with a position. */
static bool behaves(struct test *t, const char *source, size_t len)
{
    struct ir_module *m = NULL, *again = NULL;
    struct text first, second;
    struct diag d;
    size_t line = 0, column = 0;

    if (try(source, len, &m, &d) != RLX_OK)
        return expect(t, sscanf(d.first.message, "%zu:%zu: ", &line, &column) == 2 && line &&
                             column) &&
               expect(t, m == NULL);
    text_init(&first, mem_default());
    text_init(&second, mem_default());
    expect_ok(t, ir_print(m, NULL, &first, &d));
    bool ok = expect_ok(t, try(first.at, first.len, &again, &d));
    if (ok) {
        expect_ok(t, ir_print(again, NULL, &second, &d));
        ok = expect_str(t, second.at, first.at);
    }
    text_free(&first);
    text_free(&second);
    ir_module_destroy(m);
    ir_module_destroy(again);
    return ok;
}

/* ---- texts cut short and changed ------------------------------------------------------------ */

TEST(text_hostile, every_prefix)
{
    size_t len = sizeof sample - 1;
    struct ir_module *m = NULL;
    struct diag d;

    require_ok(t, try(sample, len, &m, &d));
    ir_module_destroy(m);
    for (size_t i = 0; i < len; i++) {
        test_note(t, "the first %zu bytes", i);
        char *cut = malloc(i + 1); /* its own, so that reading past it shows */
        memcpy(cut, sample, i);
        bool ok = behaves(t, cut, i);
        free(cut);
        if (!ok)
            return;
    }
}

TEST(text_hostile, every_byte_changed)
{
    static const char put[] = {0,   '\n', '"', '%', '@', '{',  '}',
                               '(', '-',  '9', 'x', '#', '\\', (char)0xff};
    char text[sizeof sample];

    for (size_t i = 0; i < sizeof sample - 1; i++) {
        for (size_t k = test_full() ? 0 : i % 3; k < sizeof put; k += test_full() ? 1 : 3) {
            memcpy(text, sample, sizeof sample);
            text[i] = put[k];
            test_note(t, "byte %zu is %d", i, put[k]);
            if (!behaves(t, text, sizeof sample - 1))
                return;
        }
    }
}

TEST(text_hostile, random_splices)
{
    uint64_t rng = 7;
    char text[2 * sizeof sample];
    int rounds = test_full() ? 200000 : 5000;

    for (int i = 0; i < rounds; i++) {
        size_t len = sizeof sample - 1;
        memcpy(text, sample, len);
        for (int k = 0; k < 3; k++) {
            rng = rng * 6364136223846793005u + 1442695040888963407u;
            size_t from = (size_t)(rng >> 33) % len, n = 1 + (size_t)(rng >> 20) % 24;
            size_t to = (size_t)(rng >> 45) % len;
            n = from + n > len ? len - from : n;
            n = to + n > len ? len - to : n;
            memmove(text + to, text + from, n);
        }
        test_note(t, "round %d", i);
        if (!behaves(t, text, len))
            return;
    }
}

/* ---- too much of something ------------------------------------------------------------------ */

static void repeat(struct text *out, const char *what, size_t times)
{
    for (size_t i = 0; i < times; i++)
        text_add(out, rlx_cstr(what));
}

static void expect_limit(struct test *t, const struct text *source, rlx_status status,
                         const char *part)
{
    struct ir_module *m = NULL;
    struct diag d;

    expect_status(t, try(source->at, source->len, &m, &d), status);
    expect_error(t, status, part, &d.first);
    ir_module_destroy(m);
}

TEST(text_hostile, deep_parentheses)
{
    for (size_t depth = 63; depth <= 100000; depth = depth < 66 ? depth + 1 : depth * 50) {
        struct text s;
        text_init(&s, mem_default());
        text_add(&s, STR("rlx 1 graph (input %x: f32["));
        repeat(&s, "(", depth);
        text_add(&s, STR("n"));
        repeat(&s, ")", depth);
        text_add(&s, STR("]) { return %x }"));
        if (depth <= 64)
            behaves(t, s.at, s.len);
        else
            expect_limit(t, &s, RLX_ERROR_LIMIT, "nested more than 64 deep");
        text_free(&s);
    }
}

TEST(text_hostile, long_expressions)
{
    struct text s;

    text_init(&s, mem_default());
    text_add(&s, STR("rlx 1 graph (input %x: f32[a"));
    for (int i = 0; i < 100; i++)
        text_addf(&s, "+a%d", i);
    text_add(&s, STR("]) { return %x }"));
    expect_limit(t, &s, RLX_ERROR_FORMAT, "too long an expression");
    text_free(&s);
    text_init(&s, mem_default());
    text_add(&s, STR("rlx 1 graph (input %x: f32[a"));
    repeat(&s, "*a", 20);
    text_add(&s, STR("]) { return %x }"));
    expect_limit(t, &s, RLX_ERROR_FORMAT, "too long an expression");
    text_free(&s);
}

TEST(text_hostile, graphs_in_a_circle)
{
#define IF(then)                                                                 \
    "(input %x: f32[]) { %p = const bool[] {1} %y = if %p, %x then_graph=@" then \
    " else_graph=@" then " return %y }"
    static const struct {
        const char *source, *part;
    } row[] = {
        {"rlx 1\ngraph " IF("main"), "there is no graph @main"},
        {"rlx 1\ngraph @main " IF("main"), "2:81: @main is the entry"},
        {"rlx 1\ngraph " IF("a") " graph @a " IF("a"), "@a would run itself"},
        {"rlx 1\ngraph " IF("a") " graph @a " IF("b") " graph @b " IF("a"), "@a would run itself"},
        {"rlx 1\ngraph @m " IF("a") " graph @a " IF("m"), "@m is the entry"},
    };
#undef IF

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct text s;
        text_init(&s, mem_default());
        text_add(&s, rlx_cstr(row[i].source));
        expect_limit(t, &s, RLX_ERROR_FORMAT, row[i].part);
        text_free(&s);
    }
}

TEST(text_hostile, graphs_nested_deeply)
{
    for (int depth = 64; depth <= 65; depth++) {
        struct text s;
        text_init(&s, mem_default());
        text_add(&s, STR("rlx 1 "));
        for (int i = 0; i <= depth; i++) {
            text_addf(&s, "graph @g%d (input %%x: f32[]) {", i);
            if (i < depth)
                text_addf(
                    &s,
                    " %%p = const bool[] {1} %%y = if %%p, %%x then_graph=@g%d else_graph=@g%d"
                    " return %%y }\n",
                    i + 1, i + 1);
            else
                text_add(&s, STR(" return %x }\n"));
        }
        if (depth <= 64)
            behaves(t, s.at, s.len);
        else
            expect_limit(t, &s, RLX_ERROR_LIMIT, "graphs are nested more than 64 deep");
        text_free(&s);
    }
}

TEST(text_hostile, too_many_graphs)
{
    struct text s;

    text_init(&s, mem_default());
    text_add(&s, STR("rlx 1 "));
    repeat(&s, "graph (input %x: f32[]) { return %x }\n", 4097);
    expect_limit(t, &s, RLX_ERROR_LIMIT, "at most 4096 graphs");
    text_free(&s);
}

TEST_SLOW(text_hostile, too_many_nodes)
{
    struct text s;

    text_init(&s, mem_default());
    text_add(&s, STR("rlx 1 graph (input %x: f32[]) { "));
    for (int i = 0; i < 1 << 20; i++)
        text_addf(&s, "%%v%d = relu %%x\n", i);
    text_add(&s, STR("return %x }"));
    expect_limit(t, &s, RLX_ERROR_LIMIT, "at most 1048576 nodes");
    text_free(&s);
}

TEST(text_hostile, declared_sizes_allocate_nothing)
{
    static const char *const body[] = {
        "const f32[1000000000000] {1}", "const u8[9223372036854775807] bytes 0x00",
        "const f64[1152921504606846975] {}", "const c64[65536,65536,65536] {1 2}"};

    for (size_t i = 0; i < sizeof body / sizeof *body; i++) {
        struct test_alloc counter = {0};
        rlx_allocator mem = test_allocator(&counter);
        struct ir_module *m = NULL;
        char source[200];
        struct diag d;
        diag_init(&d, "parse");
        snprintf(source, sizeof source, "rlx 1 graph () { %%c = %s return %%c }", body[i]);
        expect(t, ir_parse(rlx_cstr(source), NULL, &mem, &m, &d) != RLX_OK);
        expect(t, counter.peak_bytes < 100000);
        expect_no_leak(t, &counter);
    }
}

TEST(text_hostile, wrong_encoding)
{
    static const struct {
        const char *source;
        size_t len;
        const char *part;
    } row[] = {
        {"rlx 1 # \xff\n", 10, "1:9: the text is not UTF-8 here"},
        {"rlx 1 # \xc0\x80\n", 11, "1:9: the text is not UTF-8 here"},
        {"rlx 1\n# \0\n", 10, "2:3: the text holds a NUL byte"},
        {"\xef\xbb\xbfrlx 1", 8, "1:1: no token begins with this character"},
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct ir_module *m = NULL;
        struct diag d;
        expect_status(t, try(row[i].source, row[i].len, &m, &d), RLX_ERROR_FORMAT);
        expect_error(t, RLX_ERROR_FORMAT, row[i].part, &d.first);
    }
}

/* ---- memory -------------------------------------------------------------------------------- */

static rlx_status parse_print_draw(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct ir_module *m = NULL;
    struct text text, svg, dot;
    struct diag d;

    (void)t, (void)ctx;
    diag_init(&d, "parse");
    text_init(&text, mem);
    text_init(&svg, mem);
    text_init(&dot, mem);
    rlx_status s = ir_parse(rlx_cstr(sample), NULL, mem, &m, &d);
    if (s == RLX_OK)
        s = ir_print(m, NULL, &text, &d);
    if (s == RLX_OK)
        s = ir_draw_svg(ir_entry(m), &svg, &d);
    if (s == RLX_OK) {
        ir_draw_dot(ir_entry(m), &dot);
        s = dot.failed ? RLX_ERROR_MEMORY : RLX_OK;
    }
    text_free(&text);
    text_free(&svg);
    text_free(&dot);
    ir_module_destroy(m);
    return s;
}

TEST(text_hostile, survives_no_memory)
{
    expect_survives_no_memory(t, parse_print_draw, NULL);
}

/* ---- drawings ------------------------------------------------------------------------------ */

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

TEST(text_draw, svg_shows_every_op_once)
{
    struct ir_module *m = NULL;
    struct text out;
    struct diag d;

    require_ok(t, try(sample, sizeof sample - 1, &m, &d));
    text_init(&out, mem_default());
    expect_ok(t, ir_draw_svg(ir_entry(m), &out, &d));
    expect(t, strncmp(out.at, "<svg xmlns=\"http://www.w3.org/2000/svg\"", 39) == 0);
    expect_contains(t, out.at, "</svg>\n");
    /* c and what is computed from it alone is a word in its readers' boxes; b is an output. */
    expect_eq(t, count_of(out.at, "class=\"op\""),
              ir_entry(m)->node.len - 1 + ir_entry(m)->output.len);
    expect_eq(t, count_of(out.at, "<text"), count_of(out.at, "</text>"));
    expect_eq(t, count_of(out.at, "<g"), count_of(out.at, "</g>"));
    expect_contains(t, out.at, ">%e</text>");
    expect_contains(t, out.at, ">f32[n,(n-1)/2]</text>");
    expect_contains(t, out.at, ">{1 -2.5 nan inf} f32[2,2]</text>");
    expect_eq(t, count_of(out.at, "nan.0") + count_of(out.at, "-nan"), 0);
    text_free(&out);
    ir_module_destroy(m);
}

/* x -> a chain with a detour and weights -> two readers; one chain is too long to be listed. */
static const char chains[] =
    "rlx 1 graph (input %x: f32[4], param %w: f32[4], param %u \"a </title><script>\": f32[4]) {\n"
    "    %v = neg %w\n    %a = mul %x, %w\n    %b = fma %a, %v, %u\n    %s = sigmoid %b\n"
    "    %c = mul %b, %s\n    %d = exp %c\n    %l = log %c\n"
    "    %e = abs %l\n    %f = neg %e\n    %g = abs %f\n    %h = neg %g\n    %i = abs %h\n"
    "    %j = neg %i\n    %k = abs %j\n    %m = neg %k\n    %n = abs %m\n    return %d, %n }";

TEST(text_draw, chains_are_one_box_and_weights_are_words)
{
    struct ir_module *m = NULL;
    struct text out, again;
    struct diag d;

    require_ok(t, try(chains, sizeof chains - 1, &m, &d));
    text_init(&out, mem_default());
    text_init(&again, mem_default());
    expect_ok(t, ir_draw_svg(ir_entry(m), &out, &d));
    /* x; mul fma sigmoid mul; exp; log abs neg ...: each a box with a tooltip */
    expect_eq(t, count_of(out.at, "<title>"), 4);
    expect_contains(t, out.at, ">w f32[4]</text>");
    expect_contains(t, out.at, ">a &lt;/title&gt;&lt;");
    expect_eq(t, count_of(out.at, "<script>"), 0);
    expect_contains(t, out.at, "\xe2\x80\xa6 2 more \xe2\x80\xa6");
    expect_contains(t, out.at, "%g = abs %f"); /* in the tooltip, all the same */
    expect_eq(t, count_of(out.at, "marker-end"), 5);
    expect_ok(t, ir_draw_svg(ir_entry(m), &again, &d));
    expect_str(t, again.at, out.at);
    out.len = 0;
    ir_draw_dot(ir_entry(m), &out);
    expect_contains(t, out.at,
                    "label=\"mul\\nw f32[4]\\nfma\\nv f32[4]\\na </title><script> f32[4]\\n"
                    "sigmoid\\nmul\\n%c\\nf32[4]\"");
    expect_eq(t, count_of(out.at, " -> "), 5);
    text_free(&out);
    text_free(&again);
    ir_module_destroy(m);
}

TEST(text_draw, svg_of_large_and_odd_graphs)
{
    struct text s, out;
    struct ir_module *m = NULL;
    struct diag d;

    /* A long chain whose first value is read everywhere; a wide row; a value read by itself. */
    text_init(&s, mem_default());
    text_add(&s, STR("rlx 1 graph (input %x: f32[]) { %a0 = mul %x, %x\n"));
    for (int i = 1; i < 1000; i++)
        text_addf(&s, "%%a%d = add %%a%d, %s\n", i, i - 1, i % 2 ? "%x" : "%a0");
    for (int i = 0; i < 200; i++)
        text_addf(&s, "%%b%d = relu %%x\n", i);
    text_add(&s, STR("return %a999, %x }"));
    require_ok(t, try(s.at, s.len, &m, &d));
    text_init(&out, mem_default());
    expect_ok(t, ir_draw_svg(ir_entry(m), &out, &d));
    expect_eq(t, count_of(out.at, "class=\"op\""), 1 + 1000 + 200 + 2);
    text_free(&out);
    ir_module_destroy(m);
    text_free(&s);
}

TEST(text_draw, dot_is_quoted)
{
    struct ir_module *m = NULL;
    struct text out;
    struct diag d;

    require_ok(t, try(sample, sizeof sample - 1, &m, &d));
    text_init(&out, mem_default());
    ir_draw_dot(ir_entry(m), &out);
    expect(t, !out.failed);
    expect(t, strncmp(out.at, "digraph \"main\" {\n", 17) == 0);
    expect_contains(t, out.at,
                    "label=\"reduce_sum\\naxes=[0,1] keep_dim=true\\n"
                    "elementwise_region\\nchain=");
    expect_contains(t, out.at, "n0 -> n4\n");
    expect_eq(t, count_of(out.at, "-> out"), 5);
    text_free(&out);
    ir_module_destroy(m);
}
