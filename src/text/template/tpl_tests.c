/* tpl_tests.c: what comes after "is". */
#include "text/template/tpl_call.h"
#include "text/unicode.h"

static rlx_status yes(struct tpl_call *c, bool holds)
{
    c->out = tpl_bool(holds);
    return RLX_OK;
}

/* Tests of what kind a value is: X(name, condition on k). */
#define KIND_MAP(X)                                                                           \
    X(defined, k != TPL_UNDEFINED)                                                            \
    X(undefined, k == TPL_UNDEFINED)                                                          \
    X(none, k == TPL_NONE)                                                                    \
    X(boolean, k == TPL_BOOL)                                                                 \
    X(integer, k == TPL_INT)                                                                  \
    X(float, k == TPL_FLOAT)                                                                  \
    X(number, k == TPL_INT || k == TPL_FLOAT || k == TPL_BOOL)                                \
    X(string, k == TPL_STR)                                                                   \
    X(mapping, k == TPL_DICT)                                                                 \
    X(sequence,                                                                               \
      k == TPL_STR || k == TPL_LIST || k == TPL_TUPLE || k == TPL_DICT || k == TPL_UNDEFINED) \
    X(iterable, k == TPL_STR || k == TPL_LIST || k == TPL_TUPLE || k == TPL_DICT ||           \
                    k == TPL_UNDEFINED || k == TPL_LOOP)                                      \
    X(callable, k == TPL_FUNCTION || k == TPL_METHOD || k == TPL_MACRO_VALUE)
#define X(name, condition)                          \
    static rlx_status is_##name(struct tpl_call *c) \
    {                                               \
        const enum tpl_kind k = c->self.kind;       \
        return yes(c, condition);                   \
    }
KIND_MAP(X)
#undef X

static rlx_status is_true(struct tpl_call *c)
{
    return yes(c, c->self.kind == TPL_BOOL && c->self.u.b);
}

static rlx_status is_false(struct tpl_call *c)
{
    return yes(c, c->self.kind == TPL_BOOL && !c->self.u.b);
}

static rlx_status remainder_of(struct tpl_call *c, int64_t by, int64_t wanted)
{
    struct tpl_value rest;
    int64_t i;

    TRY(tpl_math(c->r, TPL_MOD, c->self, tpl_int(by), &rest));
    return yes(c, tpl_as_int(rest, &i) ? i == wanted : rest.u.f == (double)wanted);
}

static rlx_status is_odd(struct tpl_call *c)
{
    return remainder_of(c, 2, 1);
}

static rlx_status is_even(struct tpl_call *c)
{
    return remainder_of(c, 2, 0);
}

static rlx_status is_divisibleby(struct tpl_call *c)
{
    int64_t by;

    TRY(tpl_arg_int(c, 0, 0, &by));
    return remainder_of(c, by, 0);
}

static rlx_status is_eq(struct tpl_call *c)
{
    bool same;

    TRY(tpl_equal(c->r, c->self, c->arg[0], &same));
    return yes(c, same);
}

static rlx_status is_ne(struct tpl_call *c)
{
    bool same;

    TRY(tpl_equal(c->r, c->self, c->arg[0], &same));
    return yes(c, !same);
}

static rlx_status is_sameas(struct tpl_call *c)
{
    return c->self.kind == c->arg[0].kind ? is_eq(c) : yes(c, false);
}

#define X(name, condition)                                \
    static rlx_status is_##name(struct tpl_call *c)       \
    {                                                     \
        int order;                                        \
        TRY(tpl_order(c->r, c->self, c->arg[0], &order)); \
        return yes(c, order condition 0);                 \
    }
X(lt, <)
X(le, <=)
X(gt, >)
X(ge, >=)
#undef X

static rlx_status is_in(struct tpl_call *c)
{
    bool found;

    TRY(tpl_contains(c->r, c->arg[0], c->self, &found));
    return yes(c, found);
}

/* There are letters, and all of them are of that case. */
static rlx_status of_case(struct tpl_call *c, uint32_t wanted, uint32_t other)
{
    const struct tpl_str *s;
    bool any = false, all = true;

    TRY(tpl_self_str(c, &s));
    TRY(tpl_charge_chars(c->r, s->text.len));
    for (size_t at = 0, bytes; at < s->text.len; at += bytes) {
        const uint32_t category =
            unicode_category_bit(utf8_next(s->text.ptr + at, s->text.len - at, &bytes));
        any = any || (category & wanted);
        all = all && !(category & (other | CAT_BIT(Lt)));
    }
    return yes(c, any && all);
}

static rlx_status is_lower(struct tpl_call *c)
{
    return of_case(c, CAT_BIT(Ll), CAT_BIT(Lu));
}

static rlx_status is_upper(struct tpl_call *c)
{
    return of_case(c, CAT_BIT(Lu), CAT_BIT(Ll));
}

const struct tpl_builtin tpl_tests[] = {
#define X(name, condition) {#name, "", 0, is_##name},
    KIND_MAP(X)
#undef X
        {"true", "", 0, is_true},
    {"false", "", 0, is_false},
    {"odd", "", 0, is_odd},
    {"even", "", 0, is_even},
    {"divisibleby", "num", 1, is_divisibleby},
    {"eq", "other", 0, is_eq},
    {"equalto", "other", 0, is_eq},
    {"==", "other", 0, is_eq},
    {"ne", "other", 0, is_ne},
    {"!=", "other", 0, is_ne},
    {"sameas", "other", 0, is_sameas},
    {"lt", "other", 1, is_lt},
    {"lessthan", "other", 1, is_lt},
    {"<", "other", 1, is_lt},
    {"le", "other", 1, is_le},
    {"<=", "other", 1, is_le},
    {"gt", "other", 1, is_gt},
    {"greaterthan", "other", 1, is_gt},
    {">", "other", 1, is_gt},
    {"ge", "other", 1, is_ge},
    {">=", "other", 1, is_ge},
    {"in", "seq", 0, is_in},
    {"lower", "", 0, is_lower},
    {"upper", "", 0, is_upper},
    {0}};
