/* tpl_list_filters.c: filters of lists and dicts. */
#include <string.h>

#include "text/template/tpl_filters.h"

/* ---- parts ------------------------------------------------------------------------------- */

static rlx_status give_list(struct tpl_call *c, struct tpl_list *l)
{
    c->out = (struct tpl_value){.kind = TPL_LIST, .u.list = l};
    return RLX_OK;
}

rlx_status tpl_filter_list(struct tpl_call *c)
{
    struct tpl_list *l;

    TRY(tpl_items_of(c->r, c->self, &l));
    return give_list(c, l);
}

rlx_status tpl_filter_first(struct tpl_call *c)
{
    struct tpl_list *l;

    TRY(tpl_items_of(c->r, c->self, &l));
    c->out = l->count ? l->at[0] : tpl_undefined(NULL);
    return RLX_OK;
}

rlx_status tpl_filter_last(struct tpl_call *c)
{
    struct tpl_list *l;

    TRY(tpl_items_of(c->r, c->self, &l));
    c->out = l->count ? l->at[l->count - 1] : tpl_undefined(NULL);
    return RLX_OK;
}

rlx_status tpl_filter_reverse(struct tpl_call *c)
{
    const struct tpl_value part[3] = {tpl_none(), tpl_none(), tpl_int(-1)};
    struct tpl_value v = c->self;

    if (v.kind != TPL_STR) {
        v.kind = TPL_LIST;
        TRY(tpl_items_of(c->r, c->self, &v.u.list));
    }
    return tpl_slice(c->r, v, part, &c->out);
}

/* v.a.b.0, for what "attribute" names; UNDEFINED where there is none. */
static rlx_status follow(struct tpl_run *r, struct tpl_value v, struct tpl_value path,
                         struct tpl_value *out)
{
    struct tpl_value key;
    int64_t i;

    if (path.kind != TPL_STR)
        return tpl_item(r, v, path, out);
    for (rlx_str rest = path.u.s->text; rest.ptr;) {
        const char *dot = rest.len ? memchr(rest.ptr, '.', rest.len) : NULL;
        const rlx_str part = {rest.ptr, dot ? (size_t)(dot - rest.ptr) : rest.len};
        rest = dot ? (rlx_str){dot + 1, rest.len - part.len - 1} : (rlx_str){0};
        TRY(tpl_charge(r, 1));
        if (str_to_i64(part, &i) && i >= 0)
            key = tpl_int(i);
        else
            TRY(tpl_string(r, part, false, &key));
        if (v.kind == TPL_UNDEFINED)
            return tpl_is_undefined(r, v);
        TRY(tpl_item(r, v, key, &v));
    }
    *out = v;
    return RLX_OK;
}

/* What is compared: the value or an attribute of it, without its case if it has one. */
static rlx_status key_of(struct tpl_call *c, struct tpl_value v, struct tpl_value attribute,
                         bool sensitive, struct tpl_value *out)
{
    *out = v;
    if (attribute.kind != TPL_UNDEFINED && attribute.kind != TPL_NONE)
        TRY(follow(c->r, v, attribute, out));
    return out->kind == TPL_STR && !sensitive ? tpl_change_case(c->r, out->u.s, TPL_LOWER, out)
                                              : RLX_OK;
}

/* ---- folded ------------------------------------------------------------------------------ */

rlx_status tpl_filter_join(struct tpl_call *c)
{
    const struct tpl_str *between = NULL;
    struct tpl_value v;
    struct tpl_list *l;
    struct tpl_text t;

    TRY(tpl_items_of(c->r, c->self, &l));
    if (tpl_given(c, 0))
        TRY(tpl_to_str(c->r, c->arg[0], &between));
    tpl_text_begin(&t, c->r);
    for (size_t i = 0; i < l->count; i++) {
        if (i && between)
            tpl_text_add_str(&t, between);
        TRY(key_of(c, l->at[i], c->arg[1], true, &v));
        TRY(tpl_print(&t, v));
    }
    return tpl_text_end(&t, &c->out);
}

rlx_status tpl_filter_sum(struct tpl_call *c)
{
    struct tpl_value v;
    struct tpl_list *l;

    TRY(tpl_items_of(c->r, c->self, &l));
    c->out = tpl_given(c, 1) ? c->arg[1] : tpl_int(0);
    for (size_t i = 0; i < l->count; i++) {
        TRY(key_of(c, l->at[i], c->arg[0], true, &v));
        TRY(tpl_math(c->r, TPL_ADD, c->out, v, &c->out));
    }
    return RLX_OK;
}

static rlx_status best(struct tpl_call *c, int sign)
{
    struct tpl_value key, have = {0};
    struct tpl_list *l;
    int order;

    TRY(tpl_items_of(c->r, c->self, &l));
    c->out = tpl_undefined(NULL);
    for (size_t i = 0; i < l->count; i++) {
        TRY(key_of(c, l->at[i], c->arg[1], tpl_arg_bool(c, 0, false), &key));
        order = 1;
        if (i)
            TRY(tpl_order(c->r, key, have, &order));
        if (i && order * sign <= 0)
            continue;
        have = key;
        c->out = l->at[i];
    }
    return RLX_OK;
}

rlx_status tpl_filter_min(struct tpl_call *c)
{
    return best(c, -1);
}

rlx_status tpl_filter_max(struct tpl_call *c)
{
    return best(c, 1);
}

/* ---- sorted ------------------------------------------------------------------------------ */

/* Items under their keys, sorted; the items go to a list. */
static rlx_status sort_by(struct tpl_call *c, struct tpl_pair *pairs, size_t count, bool reverse)
{
    struct tpl_list *l;

    TRY(tpl_sorted(c->r, pairs, count, reverse, &pairs));
    TRY(tpl_list_new(c->r, &l));
    for (size_t i = 0; i < count; i++)
        TRY(tpl_list_add(c->r, l, pairs[i].value));
    return give_list(c, l);
}

rlx_status tpl_filter_sort(struct tpl_call *c)
{
    struct tpl_pair *pairs;
    struct tpl_list *l;

    TRY(tpl_items_of(c->r, c->self, &l));
    pairs = arena_array(c->r->arena, struct tpl_pair, l->count);
    if (!pairs)
        return tpl_no_memory(c->r, l->count * sizeof *pairs);
    for (size_t i = 0; i < l->count; i++) {
        TRY(key_of(c, l->at[i], c->arg[2], tpl_arg_bool(c, 1, false), &pairs[i].key));
        pairs[i].value = l->at[i];
    }
    return sort_by(c, pairs, l->count, tpl_arg_bool(c, 0, false));
}

rlx_status tpl_filter_dictsort(struct tpl_call *c)
{
    const struct tpl_str *by = NULL;
    const struct tpl_dict *d;
    struct tpl_pair *pairs;

    if (c->self.kind != TPL_DICT)
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "dictsort: %s is no dict",
                       tpl_kind_name(c->self.kind));
    if (tpl_given(c, 1))
        TRY(tpl_arg_str(c, 1, &by));
    const bool values = by && str_eq(by->text, STR("value"));
    d = c->self.u.dict;
    pairs = arena_array(c->r->arena, struct tpl_pair, d->count);
    if (!pairs)
        return tpl_no_memory(c->r, d->count * sizeof *pairs);
    for (size_t i = 0; i < d->count; i++) {
        TRY(key_of(c, values ? d->at[i].value : d->at[i].key, tpl_none(), tpl_arg_bool(c, 0, false),
                   &pairs[i].key));
        TRY(tpl_pair_new(c->r, d->at[i].key, d->at[i].value, &pairs[i].value));
    }
    return sort_by(c, pairs, d->count, tpl_arg_bool(c, 2, false));
}

rlx_status tpl_filter_unique(struct tpl_call *c)
{
    struct tpl_list *l, *out, *others;
    struct tpl_value key, unused;
    struct tpl_dict *seen;
    bool found;

    TRY(tpl_items_of(c->r, c->self, &l));
    TRY(tpl_list_new(c->r, &out));
    TRY(tpl_list_new(c->r, &others)); /* keys that a dict cannot have */
    TRY(tpl_dict_new(c->r, &seen));
    for (size_t i = 0; i < l->count; i++) {
        TRY(key_of(c, l->at[i], c->arg[1], tpl_arg_bool(c, 0, false), &key));
        const bool other = key.kind == TPL_LIST || key.kind == TPL_DICT;
        if (other)
            TRY(tpl_contains(c->r, (struct tpl_value){.kind = TPL_LIST, .u.list = others}, key,
                             &found));
        else
            TRY(tpl_dict_get(c->r, seen, key, &unused, &found));
        if (found)
            continue;
        if (other)
            TRY(tpl_list_add(c->r, others, key));
        else
            TRY(tpl_dict_set(c->r, seen, key, tpl_none()));
        TRY(tpl_list_add(c->r, out, l->at[i]));
    }
    return give_list(c, out);
}

/* ---- dicts ------------------------------------------------------------------------------- */

static rlx_status of_dict(struct tpl_call *c, const char *method)
{
    const struct tpl_args none = {0};
    struct tpl_list *l;

    if (c->self.kind == TPL_UNDEFINED) {
        TRY(tpl_list_new(c->r, &l));
        return give_list(c, l);
    }
    if (c->self.kind != TPL_DICT)
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "%s: %s is no dict", method,
                       tpl_kind_name(c->self.kind));
    return tpl_call_builtin(c->r, tpl_find_builtin(tpl_dict_methods, rlx_cstr(method)), c->self,
                            &none, &c->out);
}

rlx_status tpl_filter_items(struct tpl_call *c)
{
    return of_dict(c, "items");
}

rlx_status tpl_filter_keys(struct tpl_call *c)
{
    return of_dict(c, "keys");
}

rlx_status tpl_filter_values(struct tpl_call *c)
{
    return of_dict(c, "values");
}

/* ---- one by one -------------------------------------------------------------------------- */

/* A filter or test that an argument names. */
static rlx_status named(struct tpl_call *c, size_t i, const struct tpl_builtin *from,
                        const struct tpl_builtin **out)
{
    const bool there = i < c->all.count - c->all.names;
    const struct tpl_value v = there ? c->all.at[i] : tpl_undefined(NULL);

    if (v.kind != TPL_STR)
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "%s takes a name, and gets %s", c->fn->name,
                       tpl_kind_name(v.kind));
    *out = tpl_find_builtin(from, v.u.s->text);
    return *out ? RLX_OK
                : tpl_bad(c->r, RLX_ERROR_UNSUPPORTED, "%s: there is no %s \"%.*s\"", c->fn->name,
                          from == tpl_tests ? "test" : "filter", STR_ARG(v.u.s->text));
}

/* What they go through; nothing, if it is false in any way, none included. */
static rlx_status candidates(struct tpl_call *c, struct tpl_list **out)
{
    return tpl_truth(c->self) ? tpl_items_of(c->r, c->self, out) : tpl_list_new(c->r, out);
}

/* The arguments from number i on. */
static struct tpl_args rest_of(const struct tpl_call *c, size_t i)
{
    struct tpl_args a = c->all;

    a.at += i;
    a.count -= i;
    return a;
}

/* map(attribute="a", default=1) */
static rlx_status map_attribute(struct tpl_call *c, struct tpl_list *l, struct tpl_list *out)
{
    struct tpl_value path = tpl_none(), otherwise = tpl_none(), v;
    bool has = false;

    for (size_t i = 0; i < c->all.names; i++) {
        const struct tpl_value given = c->all.at[c->all.count - c->all.names + i];
        if (str_eq(c->all.name[i], STR("attribute")))
            path = given;
        else if (str_eq(c->all.name[i], STR("default"))) {
            otherwise = given;
            has = true;
        } else
            return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "map has no parameter \"%.*s\"",
                           STR_ARG(c->all.name[i]));
    }
    for (size_t i = 0; i < l->count; i++) {
        TRY(follow(c->r, l->at[i], path, &v));
        TRY(tpl_list_add(c->r, out, v.kind == TPL_UNDEFINED && has ? otherwise : v));
    }
    return RLX_OK;
}

rlx_status tpl_filter_map(struct tpl_call *c)
{
    const struct tpl_builtin *filter;
    struct tpl_list *l, *out;
    struct tpl_value v;

    TRY(candidates(c, &l));
    TRY(tpl_list_new(c->r, &out));
    TRY(give_list(c, out));
    if (!c->all.count)
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "map takes a filter, or attribute=");
    if (c->all.count == c->all.names)
        return map_attribute(c, l, out);
    TRY(named(c, 0, tpl_filters, &filter));
    const struct tpl_args args = rest_of(c, 1);
    for (size_t i = 0; i < l->count; i++) {
        /* Filters that call filters: as deep as expressions. */
        if (++c->r->depth > TPL_MOST_EVAL)
            return tpl_bad(c->r, RLX_ERROR_LIMIT, "map is nested too deeply");
        TRY(tpl_call_builtin(c->r, filter, l->at[i], &args, &v));
        c->r->depth--;
        TRY(tpl_list_add(c->r, out, v));
    }
    return RLX_OK;
}

/* Those that pass a test (none: that are true), or an attribute of them does. */
static rlx_status choose(struct tpl_call *c, bool attribute, bool wanted)
{
    const size_t first = attribute;
    const struct tpl_builtin *test = NULL;
    struct tpl_args args = {0};
    struct tpl_list *l, *out;

    if (attribute && !c->all.count)
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "%s takes an attribute", c->fn->name);
    if (c->all.count > first) {
        TRY(named(c, first, tpl_tests, &test));
        args = rest_of(c, first + 1);
    }
    TRY(candidates(c, &l));
    TRY(tpl_list_new(c->r, &out));
    for (size_t i = 0; i < l->count; i++) {
        struct tpl_value v = l->at[i];
        if (attribute)
            TRY(follow(c->r, v, c->all.at[0], &v));
        if (test)
            TRY(tpl_call_builtin(c->r, test, v, &args, &v));
        if (tpl_truth(v) == wanted)
            TRY(tpl_list_add(c->r, out, l->at[i]));
    }
    return give_list(c, out);
}

rlx_status tpl_filter_select(struct tpl_call *c)
{
    return choose(c, false, true);
}

rlx_status tpl_filter_reject(struct tpl_call *c)
{
    return choose(c, false, false);
}

rlx_status tpl_filter_selectattr(struct tpl_call *c)
{
    return choose(c, true, true);
}

rlx_status tpl_filter_rejectattr(struct tpl_call *c)
{
    return choose(c, true, false);
}
