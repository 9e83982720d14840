/* tpl_parse.c: statements of a template: what stands in {% and %}, and what lies between them. */
#include <string.h>

#include "text/template/tpl_call.h"

/* ---- tokens and nodes -------------------------------------------------------------------- */

rlx_status tpl_step(struct tpl_parse *p)
{
    return tpl_next(&p->lex, &p->now);
}

bool tpl_is(const struct tpl_parse *p, enum tpl_token_kind kind, const char *text)
{
    return p->now.kind == kind && (!text || str_eq(p->now.text, rlx_cstr(text)));
}

rlx_status tpl_unexpected(struct tpl_parse *p, const char *wanted)
{
    static const char *const kinds[] = {
        [TPL_TOK_TEXT] = "text",       [TPL_TOK_OPEN_OUTPUT] = "{{",
        [TPL_TOK_OPEN_BLOCK] = "{%",   [TPL_TOK_CLOSE] = "the end of the tag",
        [TPL_TOK_STRING] = "a string", [TPL_TOK_END] = "the end of the template",
    };
    const char *kind = kinds[p->now.kind];

    if (kind)
        return tpl_fail(p->d, p->lex.source, p->now.place, RLX_ERROR_FORMAT,
                        "%s was expected, and %s was found", wanted, kind);
    return tpl_fail(p->d, p->lex.source, p->now.place, RLX_ERROR_FORMAT,
                    "%s was expected, and \"%.*s\" was found", wanted, STR_ARG(p->now.text));
}

rlx_status tpl_take(struct tpl_parse *p, enum tpl_token_kind kind, const char *text)
{
    if (!tpl_is(p, kind, text))
        return tpl_unexpected(p, text                    ? text
                                 : kind == TPL_TOK_CLOSE ? "the end of the tag"
                                                         : "a name");
    return tpl_step(p);
}

rlx_status tpl_take_name(struct tpl_parse *p, rlx_str *out)
{
    *out = p->now.text;
    return tpl_take(p, TPL_TOK_NAME, NULL);
}

rlx_status tpl_new(struct tpl_parse *p, enum tpl_node_kind kind, uint32_t place,
                   struct tpl_node **out)
{
    struct tpl_node *n = arena_new(p->arena, struct tpl_node);

    if (!n)
        return diag_no_memory(p->d, sizeof *n);
    n->kind = kind;
    n->place = place;
    *out = n;
    return RLX_OK;
}

rlx_status tpl_child(struct tpl_parse *p, struct tpl_node *n, struct tpl_node *child)
{
    if (!tpl_room(p->arena, &n->at, &n->room, n->count, sizeof *n->at))
        return diag_no_memory(p->d, sizeof *n->at);
    n->at[n->count++] = child;
    return RLX_OK;
}

rlx_status tpl_child_name(struct tpl_parse *p, struct tpl_node *n, rlx_str name)
{
    if (!tpl_room(p->arena, &n->names, &n->name_room, n->name_count, sizeof *n->names))
        return diag_no_memory(p->d, sizeof *n->names);
    n->names[n->name_count++] = name;
    return RLX_OK;
}

rlx_status tpl_enter(struct tpl_parse *p)
{
    if (++p->depth > TPL_MOST_DEPTH)
        return tpl_fail(p->d, p->lex.source, p->now.place, RLX_ERROR_LIMIT,
                        "more than %d blocks and brackets are in each other", TPL_MOST_DEPTH);
    return RLX_OK;
}

/* ---- bodies ------------------------------------------------------------------------------ */

static rlx_status statement(struct tpl_parse *p, uint32_t place, struct tpl_node **out);

/* Is the block that begins with this token one of `ends`, words with a space after each? */
static bool is_end(rlx_str word, const char *ends)
{
    for (const char *e = ends; *e;) {
        const size_t len = strcspn(e, " ");
        if (str_eq(word, (rlx_str){e, len}))
            return true;
        e += len + (e[len] == ' ');
    }
    return false;
}

/* Up to the block {% word where word is one of `ends`, and past that word. *open: of its place;
 * ends
 * "": up to the end of the template. */
static rlx_status body(struct tpl_parse *p, const char *ends, rlx_str *end, uint32_t open,
                       struct tpl_node **out)
{
    struct tpl_node *b, *n;

    TRY(tpl_enter(p));
    TRY(tpl_new(p, TPL_BODY, p->now.place, &b));
    for (;;) {
        const uint32_t place = p->now.place;
        n = NULL;
        if (tpl_is(p, TPL_TOK_TEXT, NULL)) {
            if (p->now.text.len) {
                TRY(tpl_new(p, TPL_TEXT, place, &n));
                n->name = p->now.text;
            }
            TRY(tpl_step(p));
        } else if (tpl_is(p, TPL_TOK_OPEN_OUTPUT, NULL)) {
            TRY(tpl_new(p, TPL_OUTPUT, place, &n));
            TRY(tpl_step(p));
            TRY(tpl_parse_tuple(p, true, &n->a));
            TRY(tpl_take(p, TPL_TOK_CLOSE, NULL));
        } else if (tpl_is(p, TPL_TOK_OPEN_BLOCK, NULL)) {
            TRY(tpl_step(p));
            if (p->now.kind == TPL_TOK_NAME && is_end(p->now.text, ends)) {
                *end = p->now.text;
                TRY(tpl_step(p));
                break;
            }
            TRY(statement(p, place, &n));
        } else if (*ends)
            return tpl_fail(p->d, p->lex.source, open, RLX_ERROR_FORMAT,
                            "this block has no end: {%% %.*s %%} is missing",
                            (int)strcspn(ends, " "), ends);
        else
            break;
        if (n)
            TRY(tpl_child(p, b, n));
    }
    p->depth--;
    *out = b;
    return RLX_OK;
}

/* A body and the end of its last tag: "{% x %} .. {% endx %}". */
static rlx_status whole_body(struct tpl_parse *p, const char *end, uint32_t open,
                             struct tpl_node **out)
{
    rlx_str unused;

    TRY(tpl_take(p, TPL_TOK_CLOSE, NULL));
    TRY(body(p, end, &unused, open, out));
    return tpl_take(p, TPL_TOK_CLOSE, NULL);
}

/* ---- one function per statement, after its word --------------------------------------------- */

static rlx_status parse_if(struct tpl_parse *p, struct tpl_node *n)
{
    struct tpl_node *cond, *then;
    rlx_str end;

    do {
        TRY(tpl_parse_tuple(p, true, &cond));
        TRY(tpl_take(p, TPL_TOK_CLOSE, NULL));
        TRY(body(p, "endif elif else", &end, n->place, &then));
        TRY(tpl_child(p, n, cond));
        TRY(tpl_child(p, n, then));
    } while (str_eq(end, STR("elif")));
    if (str_eq(end, STR("else"))) {
        TRY(whole_body(p, "endif", n->place, &then));
        return tpl_child(p, n, then);
    }
    return tpl_take(p, TPL_TOK_CLOSE, NULL);
}

static rlx_status parse_for(struct tpl_parse *p, struct tpl_node *n)
{
    struct tpl_node *each;
    rlx_str end;

    TRY(tpl_parse_target(p, &n->a));
    if (n->a->kind == TPL_ATTR)
        return tpl_unexpected(p, "a name");
    TRY(tpl_take(p, TPL_TOK_NAME, "in"));
    TRY(tpl_parse_tuple(p, false, &n->b));
    if (tpl_is(p, TPL_TOK_NAME, "if")) {
        TRY(tpl_step(p));
        TRY(tpl_parse_expression(p, &n->c));
    }
    if (tpl_is(p, TPL_TOK_NAME, "recursive"))
        return tpl_fail(p->d, p->lex.source, p->now.place, RLX_ERROR_UNSUPPORTED,
                        "recursive loops are not supported; a macro can do the same");
    TRY(tpl_take(p, TPL_TOK_CLOSE, NULL));
    p->loops++;
    TRY(body(p, "endfor else", &end, n->place, &each));
    p->loops--;
    TRY(tpl_child(p, n, each));
    if (str_eq(end, STR("else"))) {
        TRY(whole_body(p, "endfor", n->place, &each));
        return tpl_child(p, n, each);
    }
    return tpl_take(p, TPL_TOK_CLOSE, NULL);
}

static rlx_status parse_set(struct tpl_parse *p, struct tpl_node *n)
{
    TRY(tpl_parse_target(p, &n->a));
    if (tpl_is(p, TPL_TOK_SIGN, "=")) {
        TRY(tpl_step(p));
        TRY(tpl_parse_tuple(p, true, &n->b));
        return tpl_take(p, TPL_TOK_CLOSE, NULL);
    }
    n->kind = TPL_SET_BLOCK;
    if (n->a->kind == TPL_TUPLE_OF)
        return tpl_unexpected(p, "=");
    if (tpl_is(p, TPL_TOK_SIGN, "|")) {
        TRY(tpl_step(p));
        TRY(tpl_parse_filters(p, NULL, &n->c));
    }
    return whole_body(p, "endset", n->place, &n->b);
}

static rlx_status parse_filter_block(struct tpl_parse *p, struct tpl_node *n)
{
    TRY(tpl_parse_filters(p, NULL, &n->b));
    return whole_body(p, "endfilter", n->place, &n->a);
}

static rlx_status parse_generation(struct tpl_parse *p, struct tpl_node *n)
{
    return whole_body(p, "endgeneration", n->place, &n->a);
}

static rlx_status parse_macro(struct tpl_parse *p, struct tpl_node *n)
{
    const uint32_t loops = p->loops;

    p->loops = 0;
    TRY(tpl_take_name(p, &n->name));
    TRY(tpl_take(p, TPL_TOK_SIGN, "("));
    while (!tpl_is(p, TPL_TOK_SIGN, ")")) {
        struct tpl_node *value = NULL;
        rlx_str name;
        if (n->count)
            TRY(tpl_take(p, TPL_TOK_SIGN, ","));
        if (tpl_is(p, TPL_TOK_SIGN, ")"))
            break;
        TRY(tpl_take_name(p, &name));
        if (tpl_is(p, TPL_TOK_SIGN, "=")) {
            TRY(tpl_step(p));
            TRY(tpl_parse_expression(p, &value));
        } else if (n->count && n->at[n->count - 1])
            return tpl_unexpected(p, "a default, as the parameter before it has one,");
        TRY(tpl_child_name(p, n, name));
        TRY(tpl_child(p, n, value));
    }
    TRY(tpl_step(p));
    TRY(whole_body(p, "endmacro", n->place, &n->a));
    p->loops = loops;
    return RLX_OK;
}

static rlx_status parse_jump(struct tpl_parse *p, struct tpl_node *n)
{
    if (!p->loops)
        return tpl_fail(p->d, p->lex.source, n->place, RLX_ERROR_FORMAT, "there is no loop here");
    return tpl_take(p, TPL_TOK_CLOSE, NULL);
}

static const struct {
    const char *word;
    enum tpl_node_kind kind;
    rlx_status (*parse)(struct tpl_parse *p, struct tpl_node *n);
} statements[] = {
    {"if", TPL_IF, parse_if},
    {"for", TPL_FOR, parse_for},
    {"set", TPL_SET, parse_set},
    {"macro", TPL_MACRO, parse_macro},
    {"filter", TPL_FILTERED, parse_filter_block},
    {"generation", TPL_SCOPED, parse_generation},
    {"break", TPL_BREAK, parse_jump},
    {"continue", TPL_CONTINUE, parse_jump},
};

static rlx_status statement(struct tpl_parse *p, uint32_t place, struct tpl_node **out)
{
    static const char *const others[] = {"include", "import", "from",       "extends", "block",
                                         "call",    "with",   "autoescape", "do",      "trans"};
    const rlx_str word = p->now.text;

    if (p->now.kind != TPL_TOK_NAME)
        return tpl_unexpected(p, "the name of a statement");
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (!str_eq(word, rlx_cstr(statements[i].word)))
            continue;
        TRY(tpl_new(p, statements[i].kind, place, out));
        TRY(tpl_step(p));
        return statements[i].parse(p, *out);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (str_eq(word, rlx_cstr(others[i])))
            return tpl_fail(p->d, p->lex.source, p->now.place, RLX_ERROR_UNSUPPORTED,
                            "{%% %s %%} is not supported", others[i]);
    return tpl_fail(p->d, p->lex.source, p->now.place, RLX_ERROR_FORMAT,
                    "there is no statement \"%.*s\", or not here", STR_ARG(word));
}

rlx_status tpl_parse_template(struct tpl_parse *p, struct tpl_node **out)
{
    rlx_str unused;

    TRY(tpl_step(p));
    return body(p, "", &unused, 0, out);
}
