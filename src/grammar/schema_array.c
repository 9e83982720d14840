/* schema_array.c: arrays: some elements with schemas of their own, then any number of one kind. */
#include "grammar/schema.h"

struct array {
    rlx_str *first; /* rules of the elements in front */
    size_t firsts;
    rlx_str rest; /* of all others; len 0: there are none */
    uint32_t min, max;
};

static rlx_status read_firsts(struct schema *c, struct array *a, const struct json_value *list,
                              const struct schema_place *at)
{
    const struct schema_place here = {at, STR("prefixItems")};

    if (list->kind != JSON_ARRAY)
        return schema_bad(c, at, RLX_ERROR_FORMAT, "prefixItems is to be an array");
    a->first = arena_array(&c->arena, rlx_str, list->count);
    if (!a->first)
        return diag_no_memory(c->d, list->count * sizeof *a->first);
    a->firsts = list->count;
    for (size_t i = 0; i < list->count; i++)
        TRY(schema_visit(c, list->member[i].value, &here, STR("item"), &a->first[i]));
    return RLX_OK;
}

static rlx_status read_array(struct schema *c, struct array *a, const struct json_value *v,
                             const struct schema_place *at)
{
    const struct json_value *firsts = json_tree_get(v, STR("prefixItems"));
    const struct json_value *rest = json_tree_get(v, STR("items"));
    const struct schema_place here = {at, STR("items")};

    a->max = GRAM_NO_MOST;
    TRY(schema_count(c, v, "minItems", true, at, &a->min));
    TRY(schema_count(c, v, "maxItems", false, at, &a->max));
    if (rest && rest->kind == JSON_ARRAY && !firsts) { /* as older schemas say it */
        firsts = rest;
        rest = json_tree_get(v, STR("additionalItems"));
    }
    if (firsts)
        TRY(read_firsts(c, a, firsts, at));
    if (rest && rest->kind == JSON_BOOL && str_eq(rest->text, STR("false")))
        a->max = a->max < a->firsts ? a->max : (uint32_t)a->firsts;
    else if (rest && a->max > a->firsts)
        TRY(schema_visit(c, rest, &here, STR("item"), &a->rest));
    else if (!rest && (!firsts || a->min > a->firsts))
        a->rest = schema_fixed(c, "value");
    if (!a->rest.len && a->max > a->firsts)
        a->max = (uint32_t)a->firsts;
    if (a->min > a->max)
        return schema_bad(c, at, RLX_ERROR_FORMAT, "minItems is %u, but there may be %u at most",
                          a->min, a->max);
    return RLX_OK;
}

/* {n,m}, or {n,} */
static void put_times(struct schema *c, size_t rule, uint32_t min, uint32_t max)
{
    if (max == GRAM_NO_MOST)
        schema_put(c, rule, "{%u,}", min);
    else
        schema_put(c, rule, "{%u,%u}", min, max);
}

/* Elements from `from` on, after another. Each optional one begins a rule, so that what follows it
 * may come only with it. */
static rlx_status put_more(struct schema *c, size_t rule, const struct array *a, uint32_t from)
{
    for (uint32_t i = from; i < a->firsts && i < a->max; i++) {
        size_t next;
        if (i < a->min) {
            schema_put(c, rule, " \",\" ws %s", a->first[i].ptr);
            continue;
        }
        TRY(schema_rule(c, schema_name(c, rule), &next));
        schema_put(c, rule, " (\",\" ws %s %s)?", a->first[i].ptr, schema_name(c, next).ptr);
        rule = next;
    }
    if (a->rest.len && a->max > a->firsts) {
        const uint32_t done = from > a->firsts ? from : (uint32_t)a->firsts;
        schema_put(c, rule, " (\",\" ws %s)", a->rest.ptr);
        put_times(c, rule, a->min > done ? a->min - done : 0,
                  a->max == GRAM_NO_MOST ? a->max : a->max - done);
    }
    return RLX_OK;
}

rlx_status schema_array(struct schema *c, size_t rule, const struct json_value *v,
                        const struct schema_place *at)
{
    struct array a = {0};

    TRY(read_array(c, &a, v, at));
    schema_fixed(c, "ws");
    schema_put(c, rule, "\"[\" ws ");
    if (a.max) {
        schema_put(c, rule, a.min ? "%s" : "(%s", a.firsts ? a.first[0].ptr : a.rest.ptr);
        TRY(put_more(c, rule, &a, 1));
        schema_put(c, rule, a.min ? " ws " : " ws)? ");
    }
    schema_put(c, rule, "\"]\"");
    return RLX_OK;
}
