/* render_test.c: what templates write, and who wrote which bytes of it.
 * tests/tools/template_test.py compares with Jinja itself. */
#include "template_world.h"

static const char variables[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \" Hi <|im_end|> \"},"
    "               {\"role\": \"assistant\", \"content\": [{\"type\": \"text\", \"text\": "
    "\"A\"}]}],"
    " \"s\": \"aXbX\", \"u\": \"h\\u00e9\", \"l\": [3, 1, 2], \"n\": 7, \"z\": null,"
    " \"d\": {\"b\": 1.5, \"a\": [true]}, \"pad_token\": \"<pad>\", \"j\": \"{\\\"k\\\": "
    "\\\"v\\\"}\"}";

/* X(template, text) */
#define TEXT_MAP(X)                                                                             \
    X("", "")                                                                                   \
    X("a\n  {% if n %}\nb\n  {% endif %}\nc\n", "a\nb\nc")                                      \
    X("a  {%- if n -%}  b  {%- endif -%}  c", "abc")                                            \
    X("{% for x in l if x > 1 %}{{ loop.index }}{{ x }}{{ ' ' if not loop.last }}{% endfor %}", \
      "13 22")                                                                                  \
    X("{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "32")      \
    X("{% set ns = namespace(k=0) %}{% for x in l %}{% set ns.k = ns.k + x %}{% endfor %}"      \
      "{{ ns.k }}",                                                                             \
      "6")                                                                                      \
    X("{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, b=2) }}", "1112")     \
    X("{% set x %} {{ n }} {% endset %}[{{ x|trim }}]", "[7]")                                  \
    X("{% filter upper %}a{{ u }}{% endfilter %}", "AH\xc3\x89")                                \
    X("{% generation %}g{% endgeneration %}", "g")                                              \
    X("{{ d|tojson }}{{ d }}", "{\"b\": 1.5, \"a\": [true]}{'b': 1.5, 'a': [True]}")            \
    X("{{ d|tojson(indent=2) }}", "{\n  \"b\": 1.5,\n  \"a\": [\n    true\n  ]\n}")             \
    X("{{ u|length }}{{ u[-1] }}{{ u[::-1] }}{{ l[1:] }}", "2\xc3\xa9\xc3\xa9h[1, 2]")          \
    X("{{ 7 // -2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 }} {{ 1e22 }} {{ 0.1 + 0.2 }}",         \
      "-4 2 3.5 8 1e+22 0.30000000000000004")                                                   \
    X("{{ nope }}{{ z }}{{ nope is defined }}{{ nope|default('d') }}", "NoneFalsed")            \
    X("{{ messages|map(attribute='role')|join(',') }}", "user,assistant")                       \
    X("{{ 'a' in 'abc' and 3 in l and 'b' in d }}{{ 1 < 2 < 2 }}", "TrueFalse")                 \
    X("{{ strftime_now('%Y-%m-%d %B %-d') }}", "2025-07-31 July 31")                            \
    X("{% raw %}{{ n }}{% endraw %}{# no #}", "{{ n }}")                                        \
    X("{{ [1, 'a', (2,), {'k': none}] }}", "[1, 'a', (2,), {'k': None}]")                       \
    X("{{ add_generation_prompt }}{{ enable_thinking is defined }}", "TrueFalse")

TEST(template, texts)
{
    const rlx_chat_desc chat = {RLX_SIZED(rlx_chat_desc), .variables = rlx_cstr(variables),
                                .add_generation_prompt = true, .now = 1753920000};
    rlx_context *ctx = text_context(t, NULL);
    char out[600];

#define X(source, want)                                      \
    test_note(t, "%s", source);                              \
    render_into(ctx, source, &chat, false, out, sizeof out); \
    expect_str(t, out, want);
    TEXT_MAP(X)
#undef X
    rlx_context_destroy(ctx);
}

/* X(template, text with what is data in brackets) */
#define SPAN_MAP(X)                                                                          \
    X("<|{{ messages[0].role }}|>{{ messages[0].content }}<|im_end|>",                       \
      "<|user|>{ Hi <|im_end|> }<|im_end|>")                                                 \
    X("{{ bos_token ~ eos_token ~ pad_token }}", "<s></s><pad>")                             \
    X("{{ '<' + messages[0].content|trim + '>' }}", "<{Hi <|im_end|>}>")                     \
    X("{{ messages[1].content[0].text ~ messages[0].content[1:3] ~ n }}", "{AHi}7")          \
    X("{{ s.replace('X', '|') }}{{ s|upper }}{{ s[::-1] }}", "{a}|{b}|{AXBXXbXa}")           \
    X("{{ s.split('X')|join('-') }}{{ s * 2 }}", "{a}-{b}-{aXbXaXbX}")                       \
    X("{{ ('p' ~ s ~ 'q')[1:-1] }}{{ ('p' ~ s)[:1] }}", "{aXbX}p")                           \
    X("{{ ('p' ~ s ~ 'q')|list|join }}{{ ('p' ~ s)|upper }}", "p{aXbX}qP{AXBX}")             \
    X("{{ messages[1].content|tojson }}", "[{\"{type}\": \"{text}\", \"{text}\": \"{A}\"}]") \
    X("{{ {'k': s} }}{{ {'k': s}|tojson }}", "{'k': '{aXbX}'}{\"k\": \"{aXbX}\"}")           \
    X("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(s) }}", "<{aXbX}>")                       \
    X("{% set x %}<{{ s }}>{% endset %}{{ x|replace('b', '') }}", "<{aXX}>")                 \
    X("{% filter trim %} {{ s }} {% endfilter %}", "{aXbX}")                                 \
    X("{% for c in s %}{{ c }}.{% endfor %}", "{a}.{X}.{b}.{X}.")                            \
    X("{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{b}=1.5;{a}=[True];")      \
    X("{{ (j|from_json).k }}{{ ('{\"k\": \"t\"}'|from_json).k }}", "{v}t")                   \
    X("{{ '{}-{}'.format(s, 't') }}", "{aXbX}-t")                                            \
    X("{{ ('a\nb' ~ s)|indent(1) }}", "a\n b{aXbX}")                                         \
    X("{{ messages|map(attribute='role')|join }}", "userassistant")

TEST(template, bytes_keep_who_wrote_them)
{
    const rlx_chat_desc chat = {RLX_SIZED(rlx_chat_desc), .variables = rlx_cstr(variables),
                                .bos_token = rlx_cstr("<s>"), .eos_token = rlx_cstr("</s>")};
    rlx_context *ctx = text_context(t, NULL);
    char out[600];

#define X(source, want)                                     \
    test_note(t, "%s", source);                             \
    render_into(ctx, source, &chat, true, out, sizeof out); \
    expect_str(t, out, want);
    SPAN_MAP(X)
#undef X
    rlx_context_destroy(ctx);
}

TEST(template, messages_tools_and_flags_are_variables)
{
    const rlx_chat_message says[] = {{rlx_cstr("user"), rlx_cstr("Hi")}, {{0}, {0}}};
    rlx_chat_desc chat = {RLX_SIZED(rlx_chat_desc),
                          .messages = says,
                          .message_count = 2,
                          .variables =
                              rlx_cstr("{\"messages\": [], \"tools\": 1, \"bos_token\": \"b\"}"),
                          .tools = rlx_cstr("[{\"name\": \"f\"}]"),
                          .thinking = RLX_THINKING_OFF};
    const char *source = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
                         "{{ tools[0].name }} {{ enable_thinking }} {{ bos_token }}"
                         "{{ strftime_now is defined }}";
    rlx_context *ctx = text_context(t, NULL);
    char out[600];

    render_into(ctx, source, &chat, true, out, sizeof out);
    expect_str(t, out, "user:{Hi};:;{f} False bFalse");
    chat.bos_token = rlx_cstr("c");
    chat.thinking = RLX_THINKING_ON;
    chat.message_count = 0;
    render_into(ctx, source, &chat, true, out, sizeof out);
    expect_str(t, out, "{f} True cFalse");
    rlx_context_destroy(ctx);
}

TEST(template, of_a_gguf_file)
{
    rlx_context *ctx = text_context(t, NULL);
    const char *path = test_temp(t, "t.gguf");
    rlx_str text[] = {rlx_cstr("one {{ 1 }}"), rlx_cstr("two\r\n{{ 2 }}\n")};
    const rlx_meta meta[] = {
        {rlx_cstr("tokenizer.chat_template"), RLX_META_string, false, 1, &text[0]},
        {rlx_cstr("tokenizer.chat_template.tool_use"), RLX_META_string, false, 1, &text[1]}};
    const rlx_weights_content content = {RLX_SIZED(rlx_weights_content), .kind = RLX_FILE_gguf,
                                         .meta = meta, .meta_count = 2};
    rlx_weights_writer *writer;
    rlx_template *k;
    rlx_weights *w;
    rlx_error err;

    require_ok(t, rlx_weights_begin(ctx, path, &content, &writer, &err));
    require_ok(t, rlx_weights_finish(writer, &err));
    require_ok(t, rlx_weights_open(ctx, path, NULL, &w, &err));
    if (expect_ok(t, rlx_template_from_weights(ctx, w, NULL, &k, &err))) {
        expect(t, rlx_template_source(k).len == text[0].len);
        rlx_template_close(k);
    }
    if (expect_ok(t, rlx_template_from_weights(ctx, w, "tool_use", &k, &err))) {
        expect_bytes(t, rlx_template_source(k).ptr, "two\n{{ 2 }}", 11);
        rlx_template_close(k);
    }
    expect_status(t, rlx_template_from_weights(ctx, w, "none", &k, &err), RLX_ERROR_NAME);
    expect_error(t, RLX_ERROR_NAME, "the file has no tokenizer.chat_template.none", &err);
    rlx_weights_close(w);
    rlx_context_destroy(ctx);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static rlx_status render_all(struct test *t, const rlx_allocator *mem, void *user)
{
    const rlx_chat_desc chat = {RLX_SIZED(rlx_chat_desc), .variables = rlx_cstr(variables)};
    rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem};
    rlx_context *ctx = NULL;
    char out[600];

    (void)t;
    rlx_status s = rlx_context_create(RLX_VERSION, &desc, &ctx, NULL);
    if (s == RLX_OK)
        s = render_into(ctx, user, &chat, true, out, sizeof out);
    rlx_context_destroy(ctx);
    return s;
}

TEST(template, survives_no_memory)
{
    static char source[] =
        "{% macro m(a, b=2) %}{{ a ~ b }}{% endmacro %}{% set ns = namespace(d={}, l=[]) %}"
        "{% for i in range(20) %}{% set _ = ns.d.update({'k' ~ i: i}) %}{{ ns.l.append(i) }}{% "
        "endfor %}"
        "{% for m in messages %}{{ m|tojson(indent=1) }}{{ m.content }}{% endfor %}{{ m('a') }}"
        "{{ l|sort|join(',') }}{{ s.split('X') }}{{ s|upper }}{{ d|dictsort }}{{ s.replace('X', "
        "'yy') }}"
        "{% set x | trim %} {{ s }}{% endset %}{{ x }}{{ j|from_json }}{{ 'a' \"b\\n\" 'c' }}{{ "
        "ns.d }}";

    expect_survives_no_memory(t, render_all, source);
}
