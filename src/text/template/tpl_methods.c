/* tpl_methods.c: methods of lists, dicts and loops. Those of strings are in tpl_str_methods.c. */
#include "text/template/tpl_call.h"

/* ---- lists ------------------------------------------------------------------------------- */

static rlx_status list_append(struct tpl_call *c)
{
    return tpl_list_add(c->r, c->self.u.list, c->arg[0]);
}

static rlx_status list_extend(struct tpl_call *c)
{
    struct tpl_list *more;

    TRY(tpl_items_of(c->r, c->arg[0], &more));
    for (size_t i = 0; i < more->count; i++)
        TRY(tpl_list_add(c->r, c->self.u.list, more->at[i]));
    return RLX_OK;
}

static rlx_status list_insert(struct tpl_call *c)
{
    struct tpl_list *l = c->self.u.list;
    const int64_t count = (int64_t)l->count;
    int64_t at;

    TRY(tpl_arg_int(c, 0, 0, &at));
    at = at < -count ? 0 : at < 0 ? at + count : at > count ? count : at;
    TRY(tpl_charge(c->r, l->count));
    TRY(tpl_list_add(c->r, l, c->arg[1]));
    for (size_t i = l->count - 1; i > (size_t)at; i--)
        l->at[i] = l->at[i - 1];
    l->at[at] = c->arg[1];
    return RLX_OK;
}

static rlx_status list_pop(struct tpl_call *c)
{
    struct tpl_list *l = c->self.u.list;
    int64_t at;

    TRY(tpl_arg_int(c, 0, -1, &at));
    at += at < 0 ? (int64_t)l->count : 0;
    if (at < 0 || at >= (int64_t)l->count)
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "pop: the list has %zu items", l->count);
    TRY(tpl_charge(c->r, l->count - (size_t)at));
    c->out = l->at[at];
    l->count--;
    for (size_t i = (size_t)at; i < l->count; i++)
        l->at[i] = l->at[i + 1];
    return RLX_OK;
}

/* Where the value is, or -1; and how often. */
static rlx_status look(struct tpl_call *c, int64_t *first, int64_t *times)
{
    const struct tpl_list *l = c->self.u.list;
    bool same;

    *first = -1;
    *times = 0;
    for (size_t i = 0; i < l->count; i++) {
        TRY(tpl_equal(c->r, l->at[i], c->arg[0], &same));
        if (same && !(*times)++)
            *first = (int64_t)i;
    }
    return RLX_OK;
}

static rlx_status list_index(struct tpl_call *c)
{
    int64_t first, times;

    TRY(look(c, &first, &times));
    c->out = tpl_int(first);
    return times ? RLX_OK
                 : tpl_bad(c->r, RLX_ERROR_ARGUMENT, "index: the value is not in the list");
}

static rlx_status list_count(struct tpl_call *c)
{
    int64_t first, times;

    TRY(look(c, &first, &times));
    c->out = tpl_int(times);
    return RLX_OK;
}

static rlx_status list_copy(struct tpl_call *c)
{
    c->out.kind = TPL_LIST;
    return tpl_items_of(c->r, c->self, &c->out.u.list);
}

const struct tpl_builtin tpl_list_methods[] = {{"append", "object", 0, list_append},
                                               {"extend", "iterable", 1, list_extend},
                                               {"insert", "index object", 1, list_insert},
                                               {"pop", "index", 0, list_pop},
                                               {"index", "value", 0, list_index},
                                               {"count", "value", 0, list_count},
                                               {"copy", "", 0, list_copy},
                                               {0}};

const struct tpl_builtin tpl_tuple_methods[] = {
    {"index", "value", 0, list_index}, {"count", "value", 0, list_count}, {0}};

/* ---- dicts ------------------------------------------------------------------------------- */

static rlx_status dict_get(struct tpl_call *c)
{
    bool found;

    TRY(tpl_dict_get(c->r, c->self.u.dict, c->arg[0], &c->out, &found));
    if (!found)
        c->out = c->all.count > 1 ? c->arg[1] : tpl_none();
    return RLX_OK;
}

/* Which of keys and values go into a list. */
static rlx_status dict_list(struct tpl_call *c, bool keys, bool values)
{
    const struct tpl_dict *d = c->self.u.dict;
    struct tpl_list *l;

    TRY(tpl_list_new(c->r, &l));
    for (size_t i = 0; i < d->count; i++) {
        struct tpl_value v = keys ? d->at[i].key : d->at[i].value;
        if (keys && values)
            TRY(tpl_pair_new(c->r, d->at[i].key, d->at[i].value, &v));
        TRY(tpl_list_add(c->r, l, v));
    }
    c->out = (struct tpl_value){.kind = TPL_LIST, .u.list = l};
    return RLX_OK;
}

static rlx_status dict_items(struct tpl_call *c)
{
    return dict_list(c, true, true);
}

static rlx_status dict_keys(struct tpl_call *c)
{
    return dict_list(c, true, false);
}

static rlx_status dict_values(struct tpl_call *c)
{
    return dict_list(c, false, true);
}

static rlx_status dict_pop(struct tpl_call *c)
{
    bool found;

    TRY(tpl_dict_remove(c->r, c->self.u.dict, c->arg[0], &c->out, &found));
    if (found)
        return RLX_OK;
    c->out = c->arg[1];
    return c->all.count > 1 ? RLX_OK
                            : tpl_bad(c->r, RLX_ERROR_ARGUMENT, "pop: the dict has no such key");
}

static rlx_status dict_setdefault(struct tpl_call *c)
{
    bool found;

    TRY(tpl_dict_get(c->r, c->self.u.dict, c->arg[0], &c->out, &found));
    if (found)
        return RLX_OK;
    c->out = c->all.count > 1 ? c->arg[1] : tpl_none();
    return tpl_dict_set(c->r, c->self.u.dict, c->arg[0], c->out);
}

static rlx_status dict_update(struct tpl_call *c)
{
    const size_t plain = c->all.count - c->all.names;
    struct tpl_dict *d = c->self.u.dict;

    if (plain > 1 || (plain && c->all.at[0].kind != TPL_DICT))
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "update takes one dict, and arguments with names");
    for (size_t i = 0; plain && c->all.at[0].u.dict != d && i < c->all.at[0].u.dict->count; i++) {
        const struct tpl_pair *p = &c->all.at[0].u.dict->at[i];
        TRY(tpl_dict_set(c->r, d, p->key, p->value));
    }
    for (size_t i = 0; i < c->all.names; i++)
        TRY(tpl_dict_set_name(c->r, d, c->all.name[i], c->all.at[plain + i]));
    return RLX_OK;
}

static rlx_status dict_copy(struct tpl_call *c)
{
    const struct tpl_dict *d = c->self.u.dict;

    c->out.kind = TPL_DICT;
    TRY(tpl_dict_new(c->r, &c->out.u.dict));
    for (size_t i = 0; i < d->count; i++)
        TRY(tpl_dict_set(c->r, c->out.u.dict, d->at[i].key, d->at[i].value));
    return RLX_OK;
}

const struct tpl_builtin tpl_dict_methods[] = {{"get", "key default", 1, dict_get},
                                               {"items", "", 0, dict_items},
                                               {"keys", "", 0, dict_keys},
                                               {"values", "", 0, dict_values},
                                               {"pop", "key default", 1, dict_pop},
                                               {"setdefault", "key default", 1, dict_setdefault},
                                               {"update", "*", 0, dict_update},
                                               {"copy", "", 0, dict_copy},
                                               {0}};

/* ---- loops ------------------------------------------------------------------------------- */

static rlx_status loop_cycle(struct tpl_call *c)
{
    if (!c->all.count || c->all.names)
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "cycle takes at least one value");
    c->out = c->all.at[c->self.u.loop->at % c->all.count];
    return RLX_OK;
}

static rlx_status loop_changed(struct tpl_call *c)
{
    struct tpl_loop *l = c->self.u.loop;
    bool same = false;

    if (l->at)
        TRY(tpl_equal(c->r, l->last, c->arg[0], &same));
    l->last = c->arg[0];
    c->out = tpl_bool(!same);
    return RLX_OK;
}

const struct tpl_builtin tpl_loop_methods[] = {
    {"cycle", "*", 0, loop_cycle}, {"changed", "value", 1, loop_changed}, {0}};
