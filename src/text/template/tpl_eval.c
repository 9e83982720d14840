/* tpl_eval.c: expressions. */
#include <math.h>
#include <string.h>

#include "text/template/tpl_call.h"

/* ---- arithmetic -------------------------------------------------------------------------- */

static rlx_status overflow(struct tpl_run *r)
{
    return tpl_bad(r, RLX_ERROR_LIMIT, "an integer does not fit 64 bits");
}

static rlx_status by_zero(struct tpl_run *r)
{
    return tpl_bad(r, RLX_ERROR_ARGUMENT, "something is divided by 0");
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static rlx_status int_power(struct tpl_run *r, int64_t a, int64_t b, int64_t *out)
{
    *out = 1;
    for (; b; b >>= 1) {
        if ((b & 1) && __builtin_mul_overflow(*out, a, out))
            return overflow(r);
        if (b > 1 && __builtin_mul_overflow(a, a, &a))
            return overflow(r);
    }
    return RLX_OK;
}

static rlx_status int_math(struct tpl_run *r, enum tpl_op op, int64_t a, int64_t b,
                           struct tpl_value *out)
{
    int64_t i = 0;
    bool bad = false;

    if ((op == TPL_DIV || op == TPL_FLOOR_DIV || op == TPL_MOD) && b == 0)
        return by_zero(r);
    switch (op) {
    case TPL_ADD: bad = __builtin_add_overflow(a, b, &i); break;
    case TPL_SUB: bad = __builtin_sub_overflow(a, b, &i); break;
    case TPL_MUL: bad = __builtin_mul_overflow(a, b, &i); break;
    case TPL_DIV: *out = tpl_float((double)a / (double)b); return RLX_OK;
    case TPL_FLOOR_DIV:
        bad = a == INT64_MIN && b == -1;
        i = bad ? 0 : floor_div(a, b);
        break;
    case TPL_MOD: i = b == -1 ? 0 : a - b * floor_div(a, b); break;
    default:
        if (b < 0) {
            *out = tpl_float(pow((double)a, (double)b));
            return a ? RLX_OK : by_zero(r);
        }
        TRY(int_power(r, a, b, &i));
    }
    *out = tpl_int(i);
    return bad ? overflow(r) : RLX_OK;
}

static rlx_status float_math(struct tpl_run *r, enum tpl_op op, double a, double b,
                             struct tpl_value *out)
{
    double f;

    if ((op == TPL_DIV || op == TPL_FLOOR_DIV || op == TPL_MOD) && b == 0)
        return by_zero(r);
    switch (op) {
    case TPL_ADD: f = a + b; break;
    case TPL_SUB: f = a - b; break;
    case TPL_MUL: f = a * b; break;
    case TPL_DIV: f = a / b; break;
    case TPL_FLOOR_DIV: f = floor(a / b); break;
    case TPL_MOD:
        f = fmod(a, b);
        f += f != 0 && (f < 0) != (b < 0) ? b : 0;
        break;
    default: f = pow(a, b);
    }
    *out = tpl_float(f);
    return RLX_OK;
}

static rlx_status repeat(struct tpl_run *r, struct tpl_value v, int64_t times,
                         struct tpl_value *out)
{
    struct tpl_text t;
    struct tpl_list *l;

    tpl_text_begin(&t, r);
    TRY(tpl_list_new(r, &l));
    if (!tpl_truth(v))
        times = 0;
    for (int64_t i = 0; i < times; i++) {
        TRY(tpl_charge(r, 1));
        if (v.kind == TPL_STR) {
            tpl_text_add_str(&t, v.u.s);
            TRY(t.failed);
        } else
            for (size_t k = 0; k < v.u.list->count; k++)
                TRY(tpl_list_add(r, l, v.u.list->at[k]));
    }
    if (v.kind == TPL_STR)
        return tpl_text_end(&t, out);
    *out = (struct tpl_value){.kind = v.kind, .u.list = l};
    return RLX_OK;
}

static rlx_status join_two(struct tpl_run *r, struct tpl_value a, struct tpl_value b,
                           struct tpl_value *out)
{
    struct tpl_text t;
    struct tpl_list *l;

    if (a.kind == TPL_STR) {
        tpl_text_begin(&t, r);
        tpl_text_reserve(&t, a.u.s->text.len + b.u.s->text.len);
        tpl_text_add_str(&t, a.u.s);
        tpl_text_add_str(&t, b.u.s);
        return tpl_text_end(&t, out);
    }
    TRY(tpl_items_of(r, a, &l));
    for (size_t i = 0, count = b.u.list->count; i < count; i++)
        TRY(tpl_list_add(r, l, b.u.list->at[i]));
    *out = (struct tpl_value){.kind = a.kind, .u.list = l};
    return RLX_OK;
}

rlx_status tpl_math(struct tpl_run *r, enum tpl_op op, struct tpl_value a, struct tpl_value b,
                    struct tpl_value *out)
{
    static const char *const names[] = {"+", "-", "*", "/", "//", "%", "**"};
    int64_t i, k;
    double x, y;

    if (tpl_as_int(a, &i) && tpl_as_int(b, &k))
        return int_math(r, op, i, k, out);
    if (tpl_as_float(a, &x) && tpl_as_float(b, &y))
        return float_math(r, op, x, y, out);
    if (op == TPL_ADD && a.kind == b.kind && (a.kind == TPL_STR || tpl_is_list(a)))
        return join_two(r, a, b, out);
    if (op == TPL_MUL && (a.kind == TPL_STR || tpl_is_list(a)) && tpl_as_int(b, &k))
        return repeat(r, a, k, out);
    if (op == TPL_MUL && (b.kind == TPL_STR || tpl_is_list(b)) && tpl_as_int(a, &i))
        return repeat(r, b, i, out);
    if (a.kind == TPL_UNDEFINED || b.kind == TPL_UNDEFINED)
        return tpl_is_undefined(r, a.kind == TPL_UNDEFINED ? a : b);
    return tpl_bad(
        r, RLX_ERROR_ARGUMENT, "there is no %s %s %s%s", tpl_kind_name(a.kind), names[op],
        tpl_kind_name(b.kind),
        op == TPL_ADD && (a.kind == TPL_STR || b.kind == TPL_STR) ? "; ~ makes text of both" : "");
}

/* ---- comparisons ------------------------------------------------------------------------- */

static rlx_status compare_two(struct tpl_run *r, enum tpl_op op, struct tpl_value a,
                              struct tpl_value b, bool *out)
{
    double x, y;
    int order;

    switch (op) {
    case TPL_EQ: return tpl_equal(r, a, b, out);
    case TPL_NE:
        TRY(tpl_equal(r, a, b, out));
        *out = !*out;
        return RLX_OK;
    case TPL_IN: return tpl_contains(r, b, a, out);
    case TPL_NOT_IN:
        TRY(tpl_contains(r, b, a, out));
        *out = !*out;
        return RLX_OK;
    default: break;
    }
    TRY(tpl_order(r, a, b, &order));
    *out = op == TPL_LT   ? order < 0
           : op == TPL_LE ? order <= 0
           : op == TPL_GT ? order > 0
                          : order >= 0;
    if (tpl_as_float(a, &x) && tpl_as_float(b, &y) && (isnan(x) || isnan(y)))
        *out = false;
    return RLX_OK;
}

static rlx_status eval_compare(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    struct tpl_value a, b;
    bool holds = true;

    TRY(tpl_eval(r, n->at[0], &a));
    for (size_t i = 0; holds && i + 1 < n->count; i++, a = b) {
        TRY(tpl_eval(r, n->at[i + 1], &b));
        r->place = n->place;
        TRY(compare_two(r, (enum tpl_op)n->ops[i], a, b, &holds));
    }
    *out = tpl_bool(holds);
    return RLX_OK;
}

/* ---- parts of values ------------------------------------------------------------------------ */

rlx_status tpl_is_undefined(struct tpl_run *r, struct tpl_value v)
{
    const struct tpl_node *n = v.u.missing;

    if (n && (n->kind == TPL_NAME || n->kind == TPL_ATTR))
        return tpl_bad(r, RLX_ERROR_ARGUMENT, "\"%.*s\" is undefined", STR_ARG(n->name));
    if (n && n->kind == TPL_ITEM && n->b->kind == TPL_CONST && n->b->op == TPL_CONST_STR)
        return tpl_bad(r, RLX_ERROR_ARGUMENT, "\"%.*s\" is undefined", STR_ARG(n->b->name));
    return tpl_bad(r, RLX_ERROR_ARGUMENT, "a value is undefined");
}

static struct tpl_value neighbour(const struct tpl_loop *l, bool next)
{
    if (next ? l->at + 1 >= l->items->count : l->at == 0)
        return tpl_undefined(NULL);
    return l->items->at[next ? l->at + 1 : l->at - 1];
}

static struct tpl_value loop_attribute(const struct tpl_loop *l, rlx_str name,
                                       const struct tpl_node *n)
{
    const int64_t at = (int64_t)l->at, count = (int64_t)l->items->count;

    if (str_eq(name, STR("index")))
        return tpl_int(at + 1);
    if (str_eq(name, STR("index0")))
        return tpl_int(at);
    if (str_eq(name, STR("revindex")))
        return tpl_int(count - at);
    if (str_eq(name, STR("revindex0")))
        return tpl_int(count - at - 1);
    if (str_eq(name, STR("first")))
        return tpl_bool(at == 0);
    if (str_eq(name, STR("last")))
        return tpl_bool(at + 1 == count);
    if (str_eq(name, STR("length")))
        return tpl_int(count);
    if (str_eq(name, STR("previtem")))
        return neighbour(l, false);
    if (str_eq(name, STR("nextitem")))
        return neighbour(l, true);
    if (str_eq(name, STR("depth")) || str_eq(name, STR("depth0")))
        return tpl_int(name.len == 5); /* loops are not recursive */
    return tpl_undefined(n);
}

rlx_status tpl_attribute(struct tpl_run *r, struct tpl_value v, rlx_str name,
                         const struct tpl_node *n, struct tpl_value *out)
{
    const struct tpl_builtin *fn = tpl_find_method(v, name);
    bool found;

    *out = tpl_undefined(n);
    if (v.kind == TPL_UNDEFINED)
        return tpl_is_undefined(r, v);
    if (fn) {
        struct tpl_method *m = arena_new(r->arena, struct tpl_method);
        if (!m)
            return tpl_no_memory(r, sizeof *m);
        *m = (struct tpl_method){fn, v};
        *out = (struct tpl_value){.kind = TPL_METHOD, .u.method = m};
        return RLX_OK;
    }
    if (v.kind == TPL_LOOP)
        *out = loop_attribute(v.u.loop, name, n);
    if (v.kind != TPL_DICT && v.kind != TPL_NAMESPACE)
        return RLX_OK;
    TRY(tpl_dict_get_name(r, v.u.dict, name, out, &found));
    return RLX_OK;
}

static rlx_status eval_item(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    struct tpl_value of, key;

    TRY(tpl_eval(r, n->a, &of));
    TRY(tpl_eval(r, n->b, &key));
    r->place = n->place;
    if (of.kind == TPL_UNDEFINED)
        return tpl_is_undefined(r, of);
    TRY(tpl_item(r, of, key, out));
    if (out->kind != TPL_UNDEFINED)
        return RLX_OK;
    out->u.missing = n;
    /* As in Jinja, what is no item may be an attribute: x["items"] is a method, unless it is a key.
     */
    return key.kind == TPL_STR ? tpl_attribute(r, of, key.u.s->text, n, out) : RLX_OK;
}

static rlx_status eval_slice(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    struct tpl_value of, part[3];

    TRY(tpl_eval(r, n->a, &of));
    for (size_t i = 0; i < 3; i++) {
        part[i] = tpl_none();
        if (n->at[i])
            TRY(tpl_eval(r, n->at[i], &part[i]));
    }
    r->place = n->place;
    if (of.kind == TPL_UNDEFINED)
        return tpl_is_undefined(r, of);
    return tpl_slice(r, of, part, out);
}

/* ---- values that are written out ------------------------------------------------------------ */

static rlx_status eval_const(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    switch ((enum tpl_const)n->op) {
    case TPL_CONST_NONE: *out = tpl_none(); return RLX_OK;
    case TPL_CONST_BOOL: *out = tpl_bool(n->value.b); return RLX_OK;
    case TPL_CONST_INT: *out = tpl_int(n->value.i); return RLX_OK;
    case TPL_CONST_FLOAT: *out = tpl_float(n->value.f); return RLX_OK;
    case TPL_CONST_STR: break;
    }
    return tpl_string(r, n->name, false, out);
}

static rlx_status eval_list(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    struct tpl_list *l;
    struct tpl_value v;

    TRY(tpl_list_new(r, &l));
    for (size_t i = 0; i < n->count; i++) {
        TRY(tpl_eval(r, n->at[i], &v));
        TRY(tpl_list_add(r, l, v));
    }
    *out = (struct tpl_value){.kind = n->kind == TPL_LIST_OF ? TPL_LIST : TPL_TUPLE, .u.list = l};
    return RLX_OK;
}

static rlx_status eval_dict(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    struct tpl_value key, v;
    struct tpl_dict *d;

    TRY(tpl_dict_new(r, &d));
    for (size_t i = 0; i + 1 < n->count; i += 2) {
        TRY(tpl_eval(r, n->at[i], &key));
        TRY(tpl_eval(r, n->at[i + 1], &v));
        r->place = n->place;
        TRY(tpl_dict_set(r, d, key, v));
    }
    *out = (struct tpl_value){.kind = TPL_DICT, .u.dict = d};
    return RLX_OK;
}

static rlx_status eval_name(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    const struct tpl_builtin *fn;
    bool found;

    TRY(tpl_scope_get(r, n->name, out, &found));
    if (found)
        return RLX_OK;
    *out = tpl_undefined(n);
    fn = tpl_find_builtin(tpl_functions, n->name);
    if (fn && (r->now || !str_eq(n->name, STR("strftime_now"))))
        *out = (struct tpl_value){.kind = TPL_FUNCTION, .u.fn = fn};
    return RLX_OK;
}

static rlx_status eval_concat(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    struct tpl_value v;
    struct tpl_text t;

    tpl_text_begin(&t, r);
    for (size_t i = 0; i < n->count; i++) {
        TRY(tpl_eval(r, n->at[i], &v));
        TRY(tpl_print(&t, v));
    }
    return tpl_text_end(&t, out);
}

/* ---- operators, calls ----------------------------------------------------------------------- */

static rlx_status eval_sign(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    struct tpl_value v;
    int64_t i;

    TRY(tpl_eval(r, n->a, &v));
    r->place = n->place;
    if (v.kind == TPL_FLOAT)
        *out = tpl_float(n->kind == TPL_NEGATE ? -v.u.f : v.u.f);
    else if (!tpl_as_int(v, &i))
        return v.kind == TPL_UNDEFINED
                   ? tpl_is_undefined(r, v)
                   : tpl_bad(r, RLX_ERROR_ARGUMENT, "%s has no sign", tpl_kind_name(v.kind));
    else if (i == INT64_MIN && n->kind == TPL_NEGATE)
        return overflow(r);
    else
        *out = tpl_int(n->kind == TPL_NEGATE ? -i : i);
    return RLX_OK;
}

static rlx_status eval_two(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    struct tpl_value a;

    TRY(tpl_eval(r, n->a, &a));
    if (n->kind == TPL_MATH) {
        struct tpl_value b;
        TRY(tpl_eval(r, n->b, &b));
        r->place = n->place;
        return tpl_math(r, (enum tpl_op)n->op, a, b, out);
    }
    *out = a;
    return tpl_truth(a) == (n->kind == TPL_AND) ? tpl_eval(r, n->b, out) : RLX_OK;
}

static rlx_status eval_choose(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    struct tpl_value yes;

    TRY(tpl_eval(r, n->b, &yes));
    if (tpl_truth(yes))
        return tpl_eval(r, n->a, out);
    *out = tpl_undefined(NULL);
    return n->c ? tpl_eval(r, n->c, out) : RLX_OK;
}

static rlx_status eval_args(struct tpl_run *r, const struct tpl_node *n, struct tpl_args *out)
{
    *out = (struct tpl_args){.count = n->count, .names = n->name_count, .name = n->names};
    if (!n->count)
        return RLX_OK;
    out->at = arena_array(r->arena, struct tpl_value, n->count);
    if (!out->at)
        return tpl_no_memory(r, n->count * sizeof *out->at);
    for (size_t i = 0; i < n->count; i++)
        TRY(tpl_eval(r, n->at[i], &out->at[i]));
    return RLX_OK;
}

static rlx_status eval_call(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    struct tpl_value fn;
    struct tpl_args args;

    TRY(tpl_eval(r, n->a, &fn));
    TRY(eval_args(r, n, &args));
    r->place = n->place;
    return tpl_call_value(r, fn, &args, out);
}

static rlx_status eval_builtin(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    struct tpl_value self;
    struct tpl_args args;
    bool found;

    if (n->a)
        TRY(tpl_eval(r, n->a, &self));
    else /* a block's text */
        TRY(tpl_scope_get(r, STR("|"), &self, &found));
    TRY(eval_args(r, n, &args));
    r->place = n->place;
    return tpl_call_builtin(r, n->builtin, self, &args, out);
}

static rlx_status eval_one(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    struct tpl_value v;

    switch (n->kind) {
    case TPL_CONST: return eval_const(r, n, out);
    case TPL_NAME: return eval_name(r, n, out);
    case TPL_LIST_OF:
    case TPL_TUPLE_OF: return eval_list(r, n, out);
    case TPL_DICT_OF: return eval_dict(r, n, out);
    case TPL_NOT:
        TRY(tpl_eval(r, n->a, &v));
        *out = tpl_bool(!tpl_truth(v));
        return RLX_OK;
    case TPL_NEGATE:
    case TPL_PLUS: return eval_sign(r, n, out);
    case TPL_AND:
    case TPL_OR:
    case TPL_MATH: return eval_two(r, n, out);
    case TPL_CONCAT: return eval_concat(r, n, out);
    case TPL_COMPARE: return eval_compare(r, n, out);
    case TPL_CHOOSE: return eval_choose(r, n, out);
    case TPL_ATTR:
        TRY(tpl_eval(r, n->a, &v));
        r->place = n->place;
        return tpl_attribute(r, v, n->name, n, out);
    case TPL_ITEM: return eval_item(r, n, out);
    case TPL_SLICE: return eval_slice(r, n, out);
    case TPL_CALL: return eval_call(r, n, out);
    default: return eval_builtin(r, n, out);
    }
}

rlx_status tpl_eval(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out)
{
    r->place = n->place;
    TRY(tpl_charge(r, 1));
    if (++r->depth > TPL_MOST_EVAL)
        return tpl_bad(r, RLX_ERROR_LIMIT, "blocks, brackets and macros are nested too deeply");
    const rlx_status s = eval_one(r, n, out);
    r->depth--;
    return s;
}
