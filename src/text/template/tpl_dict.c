/* tpl_dict.c: dicts: pairs in the order in which they came, and an index once there are many. */
#include <string.h>

#include "base/map.h"
#include "text/template/tpl_node.h"
#include "text/template/tpl_value.h"

enum { FEW = 8 }; /* that are looked through one by one */

rlx_status tpl_dict_new(struct tpl_run *r, struct tpl_dict **out)
{
    *out = arena_new(r->arena, struct tpl_dict);
    return *out ? RLX_OK : tpl_no_memory(r, sizeof **out);
}

/* Numbers that are equal hash alike, whatever their kind. */
static uint64_t hash_of(struct tpl_value v)
{
    double f = 0;

    if (v.kind == TPL_STR)
        return hash_bytes(v.u.s->text.len ? v.u.s->text.ptr : "", v.u.s->text.len);
    tpl_as_float(v, &f);
    f = f == 0 ? 0 : f; /* not -0 */
    return hash_bytes(&f, sizeof f);
}

static void index_put(struct tpl_dict *t, size_t at)
{
    size_t slot = hash_of(t->at[at].key) & (t->slots - 1);

    while (t->index[slot])
        slot = (slot + 1) & (t->slots - 1);
    t->index[slot] = (uint32_t)at + 1;
}

static rlx_status index_build(struct tpl_run *r, struct tpl_dict *t)
{
    for (t->slots = 4 * FEW; t->slots < 4 * t->count;)
        t->slots *= 2;
    t->index = arena_array(r->arena, uint32_t, t->slots);
    if (!t->index)
        return tpl_no_memory(r, t->slots * sizeof *t->index);
    for (size_t i = 0; i < t->count; i++)
        index_put(t, i);
    return tpl_charge(r, t->count);
}

/* *at: where it is, or t->count. */
static rlx_status find(struct tpl_run *r, const struct tpl_dict *t, struct tpl_value key,
                       size_t *at)
{
    bool same;

    if (key.kind == TPL_LIST || key.kind == TPL_DICT)
        return tpl_bad(r, RLX_ERROR_ARGUMENT, "%s cannot be a key", tpl_kind_name(key.kind));
    TRY(tpl_charge(r, 1));
    if (key.kind == TPL_STR)
        TRY(tpl_charge_bytes(r, key.u.s->text.len));
    if (!t->index) {
        for (*at = 0; *at < t->count; ++*at) {
            TRY(tpl_equal(r, t->at[*at].key, key, &same));
            if (same)
                return RLX_OK;
        }
        return RLX_OK;
    }
    for (size_t slot = hash_of(key) & (t->slots - 1); t->index[slot];
         slot = (slot + 1) & (t->slots - 1)) {
        *at = t->index[slot] - 1;
        TRY(tpl_equal(r, t->at[*at].key, key, &same));
        if (same)
            return RLX_OK;
    }
    *at = t->count;
    return RLX_OK;
}

rlx_status tpl_dict_set(struct tpl_run *r, struct tpl_dict *t, struct tpl_value key,
                        struct tpl_value value)
{
    size_t at;

    TRY(find(r, t, key, &at));
    if (at < t->count) {
        t->at[at].value = value;
        return RLX_OK;
    }
    if (t->count >= UINT32_MAX - 1 ||
        !tpl_room(r->arena, &t->at, &t->room, t->count, sizeof *t->at))
        return tpl_no_memory(r, t->count * sizeof *t->at);
    t->at[t->count++] = (struct tpl_pair){key, value};
    if (t->index && t->count * 2 <= t->slots)
        index_put(t, at);
    else if (t->count > FEW)
        return index_build(r, t);
    return RLX_OK;
}

rlx_status tpl_dict_get(struct tpl_run *r, const struct tpl_dict *t, struct tpl_value key,
                        struct tpl_value *out, bool *found)
{
    size_t at;

    TRY(find(r, t, key, &at));
    *found = at < t->count;
    if (*found)
        *out = t->at[at].value;
    return RLX_OK;
}

rlx_status tpl_dict_set_name(struct tpl_run *r, struct tpl_dict *t, rlx_str name,
                             struct tpl_value value)
{
    struct tpl_value key;

    TRY(tpl_string(r, name, false, &key));
    return tpl_dict_set(r, t, key, value);
}

rlx_status tpl_dict_get_name(struct tpl_run *r, const struct tpl_dict *t, rlx_str name,
                             struct tpl_value *out, bool *found)
{
    const struct tpl_str s = {.text = name};

    return tpl_dict_get(r, t, (struct tpl_value){.kind = TPL_STR, .u.s = &s}, out, found);
}

rlx_status tpl_dict_remove(struct tpl_run *r, struct tpl_dict *t, struct tpl_value key,
                           struct tpl_value *out, bool *found)
{
    size_t at;

    TRY(find(r, t, key, &at));
    *found = at < t->count;
    if (!*found)
        return RLX_OK;
    *out = t->at[at].value;
    memmove(&t->at[at], &t->at[at + 1], (t->count - at - 1) * sizeof *t->at);
    t->count--;
    TRY(tpl_charge(r, t->count));
    t->index = NULL;
    t->slots = 0;
    return t->count > FEW ? index_build(r, t) : RLX_OK;
}
