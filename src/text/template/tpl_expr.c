/* tpl_expr.c: expressions of a template, by recursive descent; what binds least comes first.
 *
 *     a if b else c    or    and    not    == != < > <= >= in    + -    ~    * / // %    **    - +
 *     then .name [item] (call), | filter, is test */
#include <string.h>

#include "text/template/tpl_call.h"

typedef rlx_status (*parse_fn)(struct tpl_parse *p, struct tpl_node **out);

static bool is_sign(const struct tpl_parse *p, const char *text)
{
    return tpl_is(p, TPL_TOK_SIGN, text);
}

static bool is_word(const struct tpl_parse *p, const char *text)
{
    return tpl_is(p, TPL_TOK_NAME, text);
}

/* ---- what stands by itself ------------------------------------------------------------------ */

/* "(a, b)", "[a, b]" up to the bracket; p is past the first one. */
static rlx_status items(struct tpl_parse *p, const char *close, struct tpl_node *n)
{
    while (!is_sign(p, close)) {
        struct tpl_node *item;
        if (n->count)
            TRY(tpl_take(p, TPL_TOK_SIGN, ","));
        if (is_sign(p, close))
            break;
        TRY(tpl_parse_expression(p, &item));
        TRY(tpl_child(p, n, item));
    }
    return tpl_step(p);
}

static rlx_status dict(struct tpl_parse *p, struct tpl_node *n)
{
    while (!is_sign(p, "}")) {
        struct tpl_node *key, *value;
        if (n->count)
            TRY(tpl_take(p, TPL_TOK_SIGN, ","));
        if (is_sign(p, "}"))
            break;
        TRY(tpl_parse_expression(p, &key));
        TRY(tpl_take(p, TPL_TOK_SIGN, ":"));
        TRY(tpl_parse_expression(p, &value));
        TRY(tpl_child(p, n, key));
        TRY(tpl_child(p, n, value));
    }
    return tpl_step(p);
}

static rlx_status bracket(struct tpl_parse *p, struct tpl_node **out)
{
    const uint32_t place = p->now.place;

    TRY(tpl_step(p));
    if (is_sign(p, ")")) {
        TRY(tpl_new(p, TPL_TUPLE_OF, place, out));
        return tpl_step(p);
    }
    TRY(tpl_parse_tuple(p, true, out));
    return tpl_take(p, TPL_TOK_SIGN, ")");
}

/* Strings one after the other are one. */
static rlx_status string(struct tpl_parse *p, struct tpl_node *n)
{
    n->op = TPL_CONST_STR;
    n->name = p->now.text;
    TRY(tpl_step(p));
    for (size_t room = 0; p->now.kind == TPL_TOK_STRING;) {
        if (room < n->name.len + p->now.text.len || !room) {
            const rlx_str before = n->name;
            room = 2 * (n->name.len + p->now.text.len) + 1;
            char *own = arena_alloc(p->arena, room, 1);
            if (!own)
                return diag_no_memory(p->d, room);
            if (before.len)
                memcpy(own, before.ptr, before.len);
            n->name.ptr = own;
        }
        if (p->now.text.len)
            memcpy((char *)n->name.ptr + n->name.len, p->now.text.ptr, p->now.text.len);
        n->name.len += p->now.text.len;
        TRY(tpl_step(p));
    }
    return RLX_OK;
}

static rlx_status name(struct tpl_parse *p, struct tpl_node *n)
{
    static const struct {
        const char *word;
        enum tpl_const kind;
        bool value;
    } words[] = {{"true", TPL_CONST_BOOL, true},   {"True", TPL_CONST_BOOL, true},
                 {"false", TPL_CONST_BOOL, false}, {"False", TPL_CONST_BOOL, false},
                 {"none", TPL_CONST_NONE, false},  {"None", TPL_CONST_NONE, false}};

    n->kind = TPL_NAME;
    n->name = p->now.text;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!is_word(p, words[i].word))
            continue;
        n->kind = TPL_CONST;
        n->op = (uint8_t)words[i].kind;
        n->value.b = words[i].value;
    }
    return tpl_step(p);
}

static rlx_status primary(struct tpl_parse *p, struct tpl_node **out)
{
    struct tpl_node *n;

    if (is_sign(p, "("))
        return bracket(p, out);
    TRY(tpl_new(p, TPL_CONST, p->now.place, &n));
    *out = n;
    switch (p->now.kind) {
    case TPL_TOK_NAME: return name(p, n);
    case TPL_TOK_STRING: return string(p, n);
    case TPL_TOK_INT:
        n->op = TPL_CONST_INT;
        n->value.i = p->now.i;
        return tpl_step(p);
    case TPL_TOK_FLOAT:
        n->op = TPL_CONST_FLOAT;
        n->value.f = p->now.f;
        return tpl_step(p);
    default: break;
    }
    if (!is_sign(p, "[") && !is_sign(p, "{"))
        return tpl_unexpected(p, "a value");
    n->kind = is_sign(p, "[") ? TPL_LIST_OF : TPL_DICT_OF;
    TRY(tpl_step(p));
    return n->kind == TPL_LIST_OF ? items(p, "]", n) : dict(p, n);
}

/* ---- what comes after a value --------------------------------------------------------------- */

/* "(1, a=2)", at its first bracket. */
static rlx_status arguments(struct tpl_parse *p, struct tpl_node *n)
{
    TRY(tpl_step(p));
    while (!is_sign(p, ")")) {
        struct tpl_node *value;
        if (n->count)
            TRY(tpl_take(p, TPL_TOK_SIGN, ","));
        if (is_sign(p, ")"))
            break;
        if (is_sign(p, "*") || is_sign(p, "**"))
            return tpl_fail(p->d, p->lex.source, p->now.place, RLX_ERROR_UNSUPPORTED,
                            "arguments from a list or dict are not supported");
        TRY(tpl_parse_expression(p, &value));
        if (is_sign(p, "=") && value->kind == TPL_NAME) {
            TRY(tpl_child_name(p, n, value->name));
            TRY(tpl_step(p));
            TRY(tpl_parse_expression(p, &value));
        } else if (n->name_count)
            return tpl_unexpected(p, "an argument with a name, as the one before it has one,");
        TRY(tpl_child(p, n, value));
    }
    return tpl_step(p);
}

static rlx_status slice_part(struct tpl_parse *p, struct tpl_node *n)
{
    struct tpl_node *part = NULL;

    if (!is_sign(p, ":") && !is_sign(p, "]"))
        TRY(tpl_parse_expression(p, &part));
    return tpl_child(p, n, part);
}

static rlx_status subscript(struct tpl_parse *p, struct tpl_node *n)
{
    TRY(tpl_step(p));
    TRY(slice_part(p, n));
    if (is_sign(p, ":")) {
        n->kind = TPL_SLICE;
        while (is_sign(p, ":") && n->count < 3) {
            TRY(tpl_step(p));
            TRY(slice_part(p, n));
        }
        while (n->count < 3)
            TRY(tpl_child(p, n, NULL));
    } else {
        n->kind = TPL_ITEM;
        if (is_sign(p, "]") && !n->at[0])
            return tpl_unexpected(p, "an index");
        n->b = n->at[0];
    }
    return tpl_take(p, TPL_TOK_SIGN, "]");
}

static rlx_status attribute(struct tpl_parse *p, struct tpl_node *n)
{
    TRY(tpl_step(p));
    if (p->now.kind == TPL_TOK_INT) { /* a.0 */
        n->kind = TPL_ITEM;
        TRY(primary(p, &n->b));
        return RLX_OK;
    }
    n->kind = TPL_ATTR;
    return tpl_take_name(p, &n->name);
}

static rlx_status postfix(struct tpl_parse *p, struct tpl_node **out)
{
    struct tpl_node *n;

    while (is_sign(p, ".") || is_sign(p, "[") || is_sign(p, "(")) {
        TRY(tpl_new(p, TPL_CALL, p->now.place, &n));
        n->a = *out;
        *out = n;
        if (is_sign(p, "."))
            TRY(attribute(p, n));
        else if (is_sign(p, "["))
            TRY(subscript(p, n));
        else
            TRY(arguments(p, n));
    }
    return RLX_OK;
}

static rlx_status find_builtin(struct tpl_parse *p, const struct tpl_builtin *from,
                               const char *what, struct tpl_node *n)
{
    n->builtin = tpl_find_builtin(from, n->name);
    if (n->builtin)
        return RLX_OK;
    return tpl_fail(p->d, p->lex.source, n->place, RLX_ERROR_UNSUPPORTED, "there is no %s \"%.*s\"",
                    what, STR_ARG(n->name));
}

rlx_status tpl_parse_filters(struct tpl_parse *p, struct tpl_node *what, struct tpl_node **out)
{
    bool first = !what;
    struct tpl_node *n;

    *out = what;
    for (; first || is_sign(p, "|"); first = false) {
        if (!first)
            TRY(tpl_step(p));
        TRY(tpl_new(p, TPL_FILTER, p->now.place, &n));
        n->a = *out;
        *out = n;
        TRY(tpl_take_name(p, &n->name));
        TRY(find_builtin(p, tpl_filters, "filter", n));
        if (is_sign(p, "("))
            TRY(arguments(p, n));
    }
    return RLX_OK;
}

/* Is this the argument of a test that has no brackets: "x is divisibleby 3"? */
static bool is_argument(const struct tpl_parse *p)
{
    switch (p->now.kind) {
    case TPL_TOK_NAME:
        return !is_word(p, "else") && !is_word(p, "or") && !is_word(p, "and") &&
               !is_word(p, "is") && !is_word(p, "if") && !is_word(p, "in") && !is_word(p, "not");
    case TPL_TOK_STRING:
    case TPL_TOK_INT:
    case TPL_TOK_FLOAT: return true;
    default: return is_sign(p, "[") || is_sign(p, "{");
    }
}

static rlx_status test(struct tpl_parse *p, struct tpl_node **out)
{
    struct tpl_node *n, *arg;
    bool negated = false;

    TRY(tpl_step(p));
    TRY(tpl_new(p, TPL_TEST, p->now.place, &n));
    n->a = *out;
    *out = n;
    if (is_word(p, "not")) {
        negated = true;
        TRY(tpl_step(p));
    }
    TRY(tpl_take_name(p, &n->name));
    TRY(find_builtin(p, tpl_tests, "test", n));
    if (is_sign(p, "("))
        TRY(arguments(p, n));
    else if (is_argument(p)) {
        TRY(primary(p, &arg));
        TRY(postfix(p, &arg));
        TRY(tpl_child(p, n, arg));
    }
    if (negated) {
        struct tpl_node *no;
        TRY(tpl_new(p, TPL_NOT, n->place, &no));
        no->a = n;
        *out = no;
    }
    return RLX_OK;
}

static rlx_status filters_and_tests(struct tpl_parse *p, struct tpl_node **out)
{
    for (;;) {
        if (is_sign(p, "|"))
            TRY(tpl_parse_filters(p, *out, out));
        else if (is_word(p, "is"))
            TRY(test(p, out));
        else if (is_sign(p, "("))
            TRY(postfix(p, out));
        else
            return RLX_OK;
    }
}

/* ---- operators ------------------------------------------------------------------------------ */

static rlx_status unary(struct tpl_parse *p, bool filters, struct tpl_node **out)
{
    TRY(tpl_enter(p));
    if (is_sign(p, "-") || is_sign(p, "+")) {
        struct tpl_node *n;
        TRY(tpl_new(p, is_sign(p, "-") ? TPL_NEGATE : TPL_PLUS, p->now.place, &n));
        TRY(tpl_step(p));
        TRY(unary(p, false, &n->a));
        *out = n;
    } else
        TRY(primary(p, out));
    TRY(postfix(p, out));
    p->depth--;
    return filters ? filters_and_tests(p, out) : RLX_OK;
}

static rlx_status with_filters(struct tpl_parse *p, struct tpl_node **out)
{
    return unary(p, true, out);
}

struct row {
    const char *sign;
    enum tpl_op op;
};

/* "a op b op c", from the left. rows end with a NULL. */
static rlx_status from_left(struct tpl_parse *p, const struct row *rows, parse_fn part,
                            struct tpl_node **out)
{
    TRY(part(p, out));
    for (const struct row *r = rows; r->sign;) {
        struct tpl_node *n;
        if (!is_sign(p, r->sign)) {
            r++;
            continue;
        }
        TRY(tpl_new(p, TPL_MATH, p->now.place, &n));
        TRY(tpl_step(p));
        n->op = (uint8_t)r->op;
        n->a = *out;
        TRY(part(p, &n->b));
        *out = n;
        r = rows;
    }
    return RLX_OK;
}

static rlx_status power(struct tpl_parse *p, struct tpl_node **out)
{
    static const struct row rows[] = {{"**", TPL_POW}, {NULL, 0}};

    return from_left(p, rows, with_filters, out);
}

static rlx_status product(struct tpl_parse *p, struct tpl_node **out)
{
    static const struct row rows[] = {
        {"*", TPL_MUL}, {"/", TPL_DIV}, {"//", TPL_FLOOR_DIV}, {"%", TPL_MOD}, {NULL, 0}};

    return from_left(p, rows, power, out);
}

static rlx_status concat(struct tpl_parse *p, struct tpl_node **out)
{
    struct tpl_node *n, *part;

    TRY(product(p, out));
    if (!is_sign(p, "~"))
        return RLX_OK;
    TRY(tpl_new(p, TPL_CONCAT, p->now.place, &n));
    TRY(tpl_child(p, n, *out));
    while (is_sign(p, "~")) {
        TRY(tpl_step(p));
        TRY(product(p, &part));
        TRY(tpl_child(p, n, part));
    }
    *out = n;
    return RLX_OK;
}

static rlx_status sum(struct tpl_parse *p, struct tpl_node **out)
{
    static const struct row rows[] = {{"+", TPL_ADD}, {"-", TPL_SUB}, {NULL, 0}};

    return from_left(p, rows, concat, out);
}

/* The comparison that comes next, and past it; false: there is none. */
static rlx_status take_comparison(struct tpl_parse *p, enum tpl_op *op, bool *found)
{
    static const struct row rows[] = {{"==", TPL_EQ}, {"!=", TPL_NE}, {"<", TPL_LT},
                                      {"<=", TPL_LE}, {">", TPL_GT},  {">=", TPL_GE}};

    *found = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (is_sign(p, rows[i].sign)) {
            *op = rows[i].op;
            return tpl_step(p);
        }
    }
    if (is_word(p, "in")) {
        *op = TPL_IN;
        return tpl_step(p);
    }
    if (!is_word(p, "not")) {
        *found = false;
        return RLX_OK;
    }
    *op = TPL_NOT_IN;
    TRY(tpl_step(p));
    return tpl_take(p, TPL_TOK_NAME, "in");
}

static rlx_status comparison(struct tpl_parse *p, struct tpl_node **out)
{
    struct tpl_node *n = NULL, *part;
    size_t room = 0;
    enum tpl_op op;
    bool found;

    TRY(sum(p, out));
    for (;;) {
        const uint32_t place = p->now.place;
        TRY(take_comparison(p, &op, &found));
        if (!found)
            break;
        if (!n) {
            TRY(tpl_new(p, TPL_COMPARE, place, &n));
            TRY(tpl_child(p, n, *out));
        }
        if (!tpl_room(p->arena, &n->ops, &room, n->count - 1, 1))
            return diag_no_memory(p->d, room);
        n->ops[n->count - 1] = (uint8_t)op;
        TRY(sum(p, &part));
        TRY(tpl_child(p, n, part));
        *out = n;
    }
    return RLX_OK;
}

static rlx_status negation(struct tpl_parse *p, struct tpl_node **out)
{
    struct tpl_node *n;

    if (!is_word(p, "not"))
        return comparison(p, out);
    TRY(tpl_enter(p));
    TRY(tpl_new(p, TPL_NOT, p->now.place, &n));
    TRY(tpl_step(p));
    TRY(negation(p, &n->a));
    p->depth--;
    *out = n;
    return RLX_OK;
}

static rlx_status logic(struct tpl_parse *p, const char *word, enum tpl_node_kind kind,
                        parse_fn part, struct tpl_node **out)
{
    struct tpl_node *n;

    TRY(part(p, out));
    while (is_word(p, word)) {
        TRY(tpl_new(p, kind, p->now.place, &n));
        TRY(tpl_step(p));
        n->a = *out;
        TRY(part(p, &n->b));
        *out = n;
    }
    return RLX_OK;
}

static rlx_status conjunction(struct tpl_parse *p, struct tpl_node **out)
{
    return logic(p, "and", TPL_AND, negation, out);
}

rlx_status tpl_parse_or(struct tpl_parse *p, struct tpl_node **out)
{
    return logic(p, "or", TPL_OR, conjunction, out);
}

rlx_status tpl_parse_expression(struct tpl_parse *p, struct tpl_node **out)
{
    struct tpl_node *n;

    TRY(tpl_enter(p));
    TRY(tpl_parse_or(p, out));
    while (is_word(p, "if")) {
        TRY(tpl_new(p, TPL_CHOOSE, p->now.place, &n));
        TRY(tpl_step(p));
        n->a = *out;
        TRY(tpl_parse_or(p, &n->b));
        if (is_word(p, "else")) {
            TRY(tpl_step(p));
            TRY(tpl_parse_expression(p, &n->c));
        }
        *out = n;
    }
    p->depth--;
    return RLX_OK;
}

/* ---- several -------------------------------------------------------------------------------- */

/* Can an expression begin here? */
static bool begins(const struct tpl_parse *p)
{
    if (p->now.kind == TPL_TOK_CLOSE)
        return false;
    return !is_sign(p, ")") && !is_sign(p, "=") && !is_word(p, "in") && !is_word(p, "if") &&
           !is_word(p, "recursive");
}

rlx_status tpl_parse_tuple(struct tpl_parse *p, bool with_if, struct tpl_node **out)
{
    const parse_fn part = with_if ? tpl_parse_expression : tpl_parse_or;
    const uint32_t place = p->now.place;
    struct tpl_node *n, *item;

    TRY(part(p, out));
    if (!is_sign(p, ","))
        return RLX_OK;
    TRY(tpl_new(p, TPL_TUPLE_OF, place, &n));
    TRY(tpl_child(p, n, *out));
    while (is_sign(p, ",")) {
        TRY(tpl_step(p));
        if (!begins(p))
            break;
        TRY(part(p, &item));
        TRY(tpl_child(p, n, item));
    }
    *out = n;
    return RLX_OK;
}

static rlx_status target_name(struct tpl_parse *p, struct tpl_node **out)
{
    TRY(tpl_new(p, TPL_NAME, p->now.place, out));
    TRY(tpl_take_name(p, &(*out)->name));
    if (is_sign(p, ".")) {
        struct tpl_node *n;
        TRY(tpl_new(p, TPL_ATTR, p->now.place, &n));
        TRY(tpl_step(p));
        n->a = *out;
        TRY(tpl_take_name(p, &n->name));
        *out = n;
    }
    return RLX_OK;
}

rlx_status tpl_parse_target(struct tpl_parse *p, struct tpl_node **out)
{
    const bool brackets = is_sign(p, "(");
    struct tpl_node *n, *item;

    if (brackets)
        TRY(tpl_step(p));
    TRY(tpl_new(p, TPL_TUPLE_OF, p->now.place, &n));
    TRY(target_name(p, out));
    if (is_sign(p, ",")) {
        TRY(tpl_child(p, n, *out));
        *out = n;
    }
    while (is_sign(p, ",")) {
        TRY(tpl_step(p));
        if (p->now.kind != TPL_TOK_NAME || is_word(p, "in"))
            break;
        TRY(target_name(p, &item));
        TRY(tpl_child(p, n, item));
    }
    return brackets ? tpl_take(p, TPL_TOK_SIGN, ")") : RLX_OK;
}
