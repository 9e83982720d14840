/* parse_expr.c: types and expressions.
 *
 *     type    := NAME [ "<" arg { "," arg } ">" ] | "[" ["atomic"] type [ ";" expr ] "]"
 *     arg     := NAME | INT
 *     expr    := operators by rank, from || to *, over unary
 *     unary   := { "-" | "!" | "~" } postfix
 *     postfix := primary { "[" expr "]" | "." NAME }
 *     primary := NUMBER | true | false | NAME | type "(" args ")" | NAME "(" args ")"
 *              | "(" expr ")" | "[" args "]"
 *
 * An operator at the start of a line begins nothing: the line before it is a whole statement. */
#include <string.h>

#include "kernel/parse.h"

#define MAX_ARGS 256

bool kc_is_type_word(rlx_str name)
{
    return str_eq(name, STR("vec")) || str_eq(name, STR("matrix_a")) ||
           str_eq(name, STR("matrix_b")) || str_eq(name, STR("matrix_acc"));
}

static struct kc_tree *new_tree(struct kc_parser *p, enum kc_tree_kind kind)
{
    struct kc_tree *t = KC_NEW(p, struct kc_tree);

    if (t)
        *t = (struct kc_tree){.kind = kind, .at = p->token.at, .name = p->token.text};
    return t;
}

/* ---- numbers ---- */

static void read_int(struct kc_parser *p, struct kc_tree *t)
{
    rlx_str s = p->token.text;
    bool hex = s.len > 2 && s.ptr[1] == 'x';
    uint64_t base = hex ? 16 : 10, v = 0;

    for (size_t i = hex ? 2 : 0; i < s.len; i++) {
        char c = s.ptr[i];
        uint64_t digit = c <= '9' ? (uint64_t)(c - '0') : (uint64_t)((c | 32) - 'a' + 10);
        if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit, &v)) {
            kc_parse_fail(p, p->token.at, "the number does not fit in 64 bits");
            return;
        }
    }
    t->whole = v;
}

static struct kc_tree *number(struct kc_parser *p)
{
    bool real = p->token.kind == KC_FLOAT;
    struct kc_tree *t = new_tree(p, real ? KC_T_FLOAT : KC_T_INT);

    if (!t)
        return NULL;
    if (!real)
        read_int(p, t);
    else if (!str_to_f64(p->token.text, &t->real))
        kc_parse_fail(p, p->token.at, "the number is too large");
    kc_advance(p);
    return t;
}

/* ---- types ---- */

struct kc_tree *kc_parse_literal(struct kc_parser *p)
{
    struct kc_tree *t = NULL;

    if (kc_is(p, "-")) {
        t = new_tree(p, KC_T_UNARY);
        kc_advance(p);
        if (t) {
            t->op[0] = '-';
            t->a = p->token.kind == KC_INT || p->token.kind == KC_FLOAT ? number(p) : NULL;
        }
        if (!t || !t->a)
            kc_expected(p, "a number");
    } else if (p->token.kind == KC_INT || p->token.kind == KC_FLOAT) {
        t = number(p);
    } else if (p->token.kind == KC_NAME) {
        t = new_tree(p, kc_is(p, "true") || kc_is(p, "false") ? KC_T_BOOL : KC_T_NAME);
        if (t)
            t->whole = kc_is(p, "true");
        kc_advance(p);
    } else {
        kc_expected(p, "a name or a number");
    }
    return kc_failed(p) ? NULL : t;
}

static void type_args(struct kc_parser *p, struct kc_type_tree *t)
{
    do {
        if (t->args == 4)
            kc_parse_fail(p, p->token.at, "a type takes at most 4 arguments");
        if (kc_failed(p))
            return;
        t->arg[t->args++] = kc_parse_literal(p);
    } while (kc_take(p, ","));
    kc_need(p, ">");
}

struct kc_type_tree *kc_parse_type(struct kc_parser *p)
{
    struct kc_type_tree *t = KC_NEW(p, struct kc_type_tree);

    if (!t || !kc_enter(p))
        return NULL;
    t->at = p->token.at;
    if (kc_take(p, "[")) {
        t->array = true;
        t->atomic = kc_take(p, "atomic");
        t->element = kc_parse_type(p);
        p->brackets++;
        t->open = !kc_take(p, ";");
        if (!t->open)
            t->count = kc_parse_expr(p);
        p->brackets--;
        kc_need(p, "]");
    } else {
        t->name = kc_need_name(p, "a type");
        if (kc_is(p, "<") && !p->token.first) {
            kc_advance(p);
            type_args(p, t);
        }
    }
    kc_leave(p);
    return kc_failed(p) ? NULL : t;
}

/* ---- primaries ---- */

/* What stands between brackets, up to the closing one, and past it. */
static void arguments(struct kc_parser *p, struct kc_tree *t, const char *close)
{
    struct kc_tree *arg[MAX_ARGS];

    p->brackets++;
    while (!kc_failed(p) && !kc_is(p, close)) {
        if (t->args == MAX_ARGS) {
            kc_parse_fail(p, p->token.at, "too many of them");
            break;
        }
        arg[t->args++] = kc_parse_expr(p);
        if (!kc_take(p, ","))
            break;
    }
    p->brackets--;
    kc_need(p, close);
    if (kc_failed(p))
        return;
    t->arg = kc_new(p, t->args * sizeof *t->arg);
    if (t->arg && t->args)
        memcpy(t->arg, arg, t->args * sizeof *t->arg);
}

static struct kc_tree *name_or_call(struct kc_parser *p)
{
    struct kc_tree *t = new_tree(p, KC_T_NAME);

    if (!t)
        return NULL;
    if (kc_is(p, "true") || kc_is(p, "false")) {
        t->kind = KC_T_BOOL;
        t->whole = kc_is(p, "true");
        kc_advance(p);
        return t;
    }
    if (kc_is_type_word(p->token.text))
        t->type = kc_parse_type(p);
    else
        kc_advance(p);
    if (!kc_failed(p) && kc_is(p, "(") && !p->token.first) {
        kc_advance(p);
        t->kind = KC_T_CALL;
        arguments(p, t, ")");
    } else if (t->type) {
        kc_expected(p, "( after the type");
    }
    return t;
}

static struct kc_tree *primary(struct kc_parser *p)
{
    struct kc_tree *t = NULL;

    switch (p->token.kind) {
    case KC_INT:
    case KC_FLOAT: return number(p);
    case KC_NAME: return name_or_call(p);
    default: break;
    }
    if (kc_is(p, "[")) {
        t = new_tree(p, KC_T_ARRAY);
        kc_advance(p);
        if (t)
            arguments(p, t, "]");
    } else if (kc_take(p, "(")) {
        p->brackets++;
        t = kc_parse_expr(p);
        p->brackets--;
        kc_need(p, ")");
    } else {
        kc_expected(p, "an expression");
    }
    return t;
}

static struct kc_tree *postfix(struct kc_parser *p)
{
    struct kc_tree *t = primary(p);

    while (!kc_failed(p) && !p->token.first) {
        struct kc_tree *made;
        if (kc_is(p, "[")) {
            made = new_tree(p, KC_T_INDEX);
            kc_advance(p);
            p->brackets++;
            struct kc_tree *index = kc_parse_expr(p);
            p->brackets--;
            kc_need(p, "]");
            if (made)
                made->b = index;
        } else if (kc_is(p, ".")) {
            made = new_tree(p, KC_T_MEMBER);
            kc_advance(p);
            rlx_str name = kc_need_name(p, "the name of a lane");
            if (made)
                made->name = name;
        } else {
            break;
        }
        if (made)
            made->a = t;
        t = made;
    }
    return t;
}

/* ---- operators ---- */

static struct kc_tree *unary(struct kc_parser *p)
{
    struct kc_tree *t;

    if (!kc_is(p, "-") && !kc_is(p, "!") && !kc_is(p, "~"))
        return postfix(p);
    t = new_tree(p, KC_T_UNARY);
    if (!t || !kc_enter(p))
        return NULL;
    t->op[0] = p->token.text.ptr[0];
    kc_advance(p);
    t->a = unary(p);
    kc_leave(p);
    return t;
}

/* As in C, but bits bind closer than comparisons. */
static const struct {
    char op[3];
    int rank;
} operators[] = {{"||", 1}, {"&&", 2}, {"==", 3}, {"!=", 3}, {"<", 3}, {"<=", 3},
                 {">", 3},  {">=", 3}, {"|", 4},  {"^", 5},  {"&", 6}, {"<<", 7},
                 {">>", 7}, {"+", 8},  {"-", 8},  {"*", 9},  {"/", 9}, {"%", 9}};

static int rank_of(const struct kc_parser *p)
{
    if (p->token.kind != KC_PUNCT || (p->token.first && p->brackets == 0))
        return 0;
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (str_eq(p->token.text, rlx_cstr(operators[i].op)))
            return operators[i].rank;
    return 0;
}

static struct kc_tree *binary(struct kc_parser *p, int least)
{
    struct kc_tree *left = unary(p);
    int rank;

    while (!kc_failed(p) && (rank = rank_of(p)) >= least && rank > 0) {
        struct kc_tree *t = new_tree(p, KC_T_BINARY);
        if (!t)
            return NULL;
        memcpy(t->op, p->token.text.ptr, p->token.text.len);
        kc_advance(p);
        t->a = left;
        t->b = binary(p, rank + 1);
        left = t;
    }
    return left;
}

struct kc_tree *kc_parse_expr(struct kc_parser *p)
{
    struct kc_tree *t;

    if (kc_failed(p) || !kc_enter(p))
        return NULL;
    t = binary(p, 1);
    kc_leave(p);
    return kc_failed(p) ? NULL : t;
}
