/* refuse_test.c: templates that are wrong, that refuse, and that take too much. */
#include "template_world.h"

/* X(template, status, part of the message) */
#define BAD_MAP(X)                                                                                \
    X("a\n{{ 1", FORMAT, "line 2, column 5: }} is missing")                                       \
    X("{% if x %}", FORMAT, "line 1, column 1: this block has no end: {% endif %} is missing")    \
    X("a {% endif %}", FORMAT, "line 1, column 6: there is no statement \"endif\", or not here")  \
    X("\xc3\xa9 {{ 'a }}", FORMAT, "line 1, column 6: a string has no end")                       \
    X("{# a", FORMAT, "column 1: a comment has no end")                                           \
    X("{% raw %} a", FORMAT, "{% raw %} has no {% endraw %}")                                     \
    X("{{ 1 $ 2 }}", FORMAT, "column 6: a character means nothing here")                          \
    X("{{ }}", FORMAT, "a value was expected, and the end of the tag was found")                  \
    X("{{ 1 2 }}", FORMAT, "the end of the tag was expected, and \"2\" was found")                \
    X("{{ 99999999999999999999 }}", FORMAT, "a number is too large")                              \
    X("{{ 'a\\ud800' }}", FORMAT, "column 6: an escape in a string is no character")              \
    X("{% break %}", FORMAT, "there is no loop here")                                             \
    X("{% for x in [] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", FORMAT, "no loop") \
    X("{% macro m(a=1, b) %}{% endmacro %}", FORMAT, "a default")                                 \
    X("{{ 1|nope }}", UNSUPPORTED, "column 6: there is no filter \"nope\"")                       \
    X("{{ 1 is nope }}", UNSUPPORTED, "there is no test \"nope\"")                                \
    X("{% include 'x' %}", UNSUPPORTED, "{% include %} is not supported")                         \
    X("{% for x in l recursive %}{% endfor %}", UNSUPPORTED, "recursive loops")                   \
    X("{{ f(*l) }}", UNSUPPORTED, "arguments from a list")                                        \
    X("x\n {{ raise_exception('Roles must ' ~ 'alternate') }}", ARGUMENT,                         \
      "template: line 2, column 20: Roles must alternate")                                        \
    X("{{ a.b.c }}", ARGUMENT, "\"a\" is undefined")                                              \
    X("{{ {}.b.c }}", ARGUMENT, "\"b\" is undefined")                                             \
    X("{{ {}['b'].c }}", ARGUMENT, "\"b\" is undefined")                                          \
    X("{{ f() }}", ARGUMENT, "\"f\" is undefined")                                                \
    X("{{ ''.f() }}", ARGUMENT, "\"f\" is undefined")                                             \
    X("{{ 'a' + 1 }}", ARGUMENT, "there is no a string + an integer; ~ makes text of both")       \
    X("{{ 1 < 'a' }}", ARGUMENT, "an integer and a string have no order")                         \
    X("{{ 1 // 0 }}", ARGUMENT, "divided by 0")                                                   \
    X("{% for x in 5 %}{% endfor %}", ARGUMENT, "an integer has no items")                        \
    X("{% for a, b in [[1]] %}{% endfor %}", ARGUMENT, "1 values are given to 2 names")           \
    X("{{ ''.replace('a') }}", ARGUMENT, "replace needs 2 arguments (old new count)")             \
    X("{{ ''.strip(1, 2) }}", ARGUMENT, "strip takes 1 arguments at most, and gets 2")            \
    X("{{ ''|replace('a', b=1) }}", ARGUMENT, "replace has no parameter \"b\"")                   \
    X("{% set x = {} %}{% set x.y = 1 %}", ARGUMENT, "only a namespace has attributes")           \
    X("{{ {[]: 1} }}", ARGUMENT, "a list cannot be a key")                                        \
    X("{{ nope|tojson }}", ARGUMENT, "an undefined value cannot be written as JSON")              \
    X("{{ [1]|selectattr(a=1, b=2)|list }}", ARGUMENT, "takes a name")                            \
    X("{{ '{'|from_json }}", FORMAT, "from_json: byte 1")

TEST(template, refusals_have_a_place)
{
    const rlx_chat_desc chat = {RLX_SIZED(rlx_chat_desc)};
    rlx_context *ctx = text_context(t, NULL);
    char out[600];

#define X(source, status, part)                                                                    \
    test_note(t, "%s", source);                                                                    \
    expect_status(t, render_into(ctx, source, &chat, false, out, sizeof out), RLX_ERROR_##status); \
    expect_contains(t, out, part);
    BAD_MAP(X)
#undef X
    rlx_context_destroy(ctx);
}

/* X(template, part of the message); each would take time or memory without end. */
#define MUCH_MAP(X)                                                                                \
    X("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "steps")   \
    X("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested too deeply")                      \
    X("{{ range(1000000)|length }}", "range: more than")                                           \
    X("{{ 'abcdefgh' * 100000000 }}", "")                                                          \
    X("{{ [1] * 1000000000 }}", "steps")                                                           \
    X("{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}" \
      "{% endfor %}",                                                                              \
      "more than")                                                                                 \
    X("{% set l = [] %}{{ l.append(l) }}{{ l }}", "in each other")                                 \
    X("{% set l = [] %}{{ l.append(l) }}{{ l|tojson }}", "in each other")                          \
    X("{% set l = [] %}{{ l.append(l) }}{% set k = [] %}{{ k.append(k) }}{{ l == k }}", "in each") \
    X("{{ 9223372036854775807 + 1 }}", "does not fit 64 bits")                                     \
    X("{{ -(-9223372036854775807 - 1) }}", "does not fit 64 bits")                                 \
    X("{{ 10 ** 100 }}", "does not fit 64 bits")                                                   \
    X("{{ ''|indent(99999999999) }}", "")

TEST(template, what_takes_too_much_is_refused)
{
    const rlx_chat_desc chat = {RLX_SIZED(rlx_chat_desc), .max_steps = 300000,
                                .max_output = 1 << 20, .max_memory = 32 << 20};
    rlx_context *ctx = text_context(t, NULL);
    char out[600];

#define X(source, part)                                                                         \
    test_note(t, "%s", source);                                                                 \
    expect_status(t, render_into(ctx, source, &chat, false, out, sizeof out), RLX_ERROR_LIMIT); \
    expect_contains(t, out, part);
    MUCH_MAP(X)
#undef X
    const rlx_chat_desc small = {RLX_SIZED(rlx_chat_desc), .max_memory = 1 << 16};
    test_note(t, "little memory");
    expect_status(t,
                  render_into(ctx, "{{ range(9999)|list|length }}", &small, false, out, sizeof out),
                  RLX_ERROR_LIMIT);
    expect_contains(t, out, "more than 65536 bytes of memory");
    rlx_context_destroy(ctx);
}

/* front, then `open` many times, then middle, then `close` as often */
static void nested(struct test *t, rlx_context *ctx, const char *open, const char *middle,
                   const char *close, rlx_status want)
{
    enum { TIMES = 20000 };
    const rlx_chat_desc chat = {RLX_SIZED(rlx_chat_desc)};
    const size_t a = strlen(open), b = strlen(close), m = strlen(middle);
    char *source = malloc(TIMES * (a + b) + m + 7), out[600], *p = source;

    memcpy(p, "{{ ", 3);
    p += *open == '{' && open[1] == '%' ? 0 : 3;
    for (int i = 0; i < TIMES; i++, p += a)
        memcpy(p, open, a);
    memcpy(p, middle, m);
    p += m;
    for (int i = 0; i < TIMES; i++, p += b)
        memcpy(p, close, b);
    memcpy(p, *open == '{' && open[1] == '%' ? "" : " }}", *open == '{' && open[1] == '%' ? 1 : 4);
    test_note(t, "%s many times", open);
    expect_status(t, render_into(ctx, source, &chat, false, out, sizeof out), want);
    free(source);
}

TEST(template, depth_is_bounded)
{
    rlx_context *ctx = text_context(t, NULL);

    nested(t, ctx, "(", "1", ")", RLX_ERROR_LIMIT);
    nested(t, ctx, "[", "1", "]", RLX_ERROR_LIMIT);
    nested(t, ctx, "{1: ", "1", "}", RLX_ERROR_LIMIT);
    nested(t, ctx, "-", "1", "", RLX_ERROR_LIMIT);
    nested(t, ctx, "not ", "1", "", RLX_ERROR_LIMIT);
    nested(t, ctx, "1 + ", "1", "", RLX_ERROR_LIMIT);
    nested(t, ctx, "1 if 1 else ", "1", "", RLX_ERROR_LIMIT);
    nested(t, ctx, "", "1", "|abs", RLX_ERROR_LIMIT);
    nested(t, ctx, "", "''", "[:]", RLX_ERROR_LIMIT);
    nested(t, ctx, "", "1", " is string", RLX_ERROR_LIMIT);
    nested(t, ctx, "1 ~ ", "1", "", RLX_OK);
    nested(t, ctx, "1 < ", "1", "", RLX_OK); /* and false at once */
    nested(t, ctx, "'a' ", "'b'", "", RLX_OK);
    nested(t, ctx, "{% if 1 %}", "", "{% endif %}", RLX_ERROR_LIMIT);
    rlx_context_destroy(ctx);
}

TEST(template, variables_that_are_no_json)
{
    rlx_context *ctx = text_context(t, NULL);
    rlx_chat_desc chat = {RLX_SIZED(rlx_chat_desc), .variables = rlx_cstr("{\"a\": }")};
    char out[600];

    expect_status(t, render_into(ctx, "x", &chat, false, out, sizeof out), RLX_ERROR_FORMAT);
    expect_contains(t, out, "variables: byte 6: a value was expected");
    chat.variables = rlx_cstr("[1]");
    expect_status(t, render_into(ctx, "x", &chat, false, out, sizeof out), RLX_ERROR_FORMAT);
    expect_contains(t, out, "variables: an object was expected");
    chat.variables = (rlx_str){0};
    chat.tools = rlx_cstr("[1] x");
    expect_status(t, render_into(ctx, "x", &chat, false, out, sizeof out), RLX_ERROR_FORMAT);
    expect_contains(t, out, "tools: byte 4: there is text after the end");
    rlx_context_destroy(ctx);
}
