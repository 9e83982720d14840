/* schema_object.c: objects. Keys come in the order of "properties"; optional ones may be left out.
 *
 *     root ::= "{" ws (a root-1 | b) ws "}"       a and b are optional, one is there
 *     root-1 ::= ("," ws b)?                      what may follow a */
#include "grammar/schema.h"

struct property {
    rlx_str name, value; /* value: a rule */
    bool required;
};
struct object {
    struct property *at;
    size_t count;
    rlx_str other_key, other; /* rules of keys that are not listed; len 0: there are none */
};

/* ---- what the schema says ---------------------------------------------------------------- */

static bool is_false(const struct json_value *v)
{
    return v && v->kind == JSON_BOOL && str_eq(v->text, STR("false"));
}

static bool has_property(const struct object *o, rlx_str name)
{
    for (size_t i = 0; i < o->count; i++)
        if (str_eq(o->at[i].name, name))
            return true;
    return false;
}

static rlx_status read_listed(struct schema *c, struct object *o, const struct json_value *listed,
                              const struct json_value *required, const struct schema_place *at)
{
    for (size_t i = 0; listed && i < listed->count; i++) {
        const struct json_member m = listed->member[i];
        const struct schema_place here = {at, m.key};
        struct property p = {.name = m.key};
        for (size_t k = 0; required && k < required->count; k++)
            p.required |= str_eq(required->member[k].value->text, m.key);
        if (is_false(m.value) && !p.required)
            continue;
        TRY(schema_visit(c, m.value, &here, m.key, &p.value));
        o->at[o->count++] = p;
    }
    return RLX_OK;
}

/* Those that have to be there, though nothing is said about them. */
static rlx_status read_unlisted(struct schema *c, struct object *o,
                                const struct json_value *required, const struct json_value *more,
                                const struct schema_place *at)
{
    for (size_t i = 0; required && i < required->count; i++) {
        const struct json_value *name = required->member[i].value;
        struct property p = {.name = name->text, .required = true};
        if (has_property(o, p.name))
            continue;
        if (is_false(more))
            return schema_bad(c, at, RLX_ERROR_FORMAT,
                              "\"%.*s\" is required, but additionalProperties is false",
                              STR_ARG(p.name));
        p.value = more ? o->other : schema_fixed(c, "value");
        o->at[o->count++] = p;
    }
    return RLX_OK;
}

static rlx_status check_lists(const struct schema *c, const struct json_value *listed,
                              const struct json_value *required, const struct schema_place *at)
{
    if (listed && listed->kind != JSON_OBJECT)
        return schema_bad(c, at, RLX_ERROR_FORMAT, "properties is to be an object");
    if (required && required->kind != JSON_ARRAY)
        return schema_bad(c, at, RLX_ERROR_FORMAT, "required is to be an array of names");
    for (size_t i = 0; required && i < required->count; i++)
        if (required->member[i].value->kind != JSON_STRING)
            return schema_bad(c, at, RLX_ERROR_FORMAT, "required is to be an array of names");
    if ((listed ? listed->count : 0) + (required ? required->count : 0) > GRAM_MOST_RULES)
        return schema_bad(c, at, RLX_ERROR_LIMIT, "there are more than %d properties",
                          GRAM_MOST_RULES);
    return RLX_OK;
}

/* Without additionalProperties, keys that are not listed are left out where some are. */
static rlx_status read_others(struct schema *c, struct object *o, const struct json_value *more,
                              bool any, const struct schema_place *at)
{
    const struct schema_place here = {at, STR("additionalProperties")};

    if (!more && any)
        o->other = schema_fixed(c, "value");
    else if (more && !is_false(more))
        TRY(schema_visit(c, more, &here, STR("other"), &o->other));
    return RLX_OK;
}

static rlx_status name_others(struct schema *c, struct object *o, const struct schema_place *at)
{
    rlx_str *name = arena_array(&c->arena, rlx_str, o->count);

    if (!name)
        return diag_no_memory(c->d, o->count * sizeof *name);
    for (size_t i = 0; i < o->count; i++)
        name[i] = o->at[i].name;
    return schema_other_keys(c, name, o->count, at, &o->other_key);
}

static rlx_status read_object(struct schema *c, struct object *o, const struct json_value *v,
                              const struct schema_place *at)
{
    const struct json_value *listed = json_tree_get(v, STR("properties"));
    const struct json_value *required = json_tree_get(v, STR("required"));
    const struct json_value *more = json_tree_get(v, STR("additionalProperties"));
    const struct schema_place here = {at, STR("properties")};

    TRY(check_lists(c, listed, required, at));
    const size_t most = (listed ? listed->count : 0) + (required ? required->count : 0);
    o->at = arena_array(&c->arena, struct property, most);
    if (!o->at)
        return diag_no_memory(c->d, most * sizeof *o->at);
    TRY(read_others(c, o, more, !listed, at));
    TRY(read_listed(c, o, listed, required, &here));
    TRY(read_unlisted(c, o, required, more, at));
    return o->other.len ? name_others(c, o, at) : RLX_OK;
}

/* ---- what may stand there ---------------------------------------------------------------- */

static void put_member(struct schema *c, size_t rule, const struct property *p)
{
    const struct json_value key = {.kind = JSON_STRING, .text = p->name};

    schema_put_json(c, rule, &key);
    schema_put(c, rule, " \":\" ws %s", p->value.ptr);
}

static void put_other(struct schema *c, size_t rule, const struct object *o)
{
    schema_put(c, rule, "%s \":\" ws %s", o->other_key.ptr, o->other.ptr);
}

static void put_next(struct schema *c, size_t rule, const struct property *p)
{
    schema_put(c, rule, p->required ? " \",\" ws " : " (\",\" ws ");
    put_member(c, rule, p);
    schema_put(c, rule, p->required ? "" : ")?");
}

/* All from that one on, where another member came before. */
static void put_rest(struct schema *c, size_t rule, const struct object *o, size_t from)
{
    for (size_t i = from; i < o->count; i++)
        put_next(c, rule, &o->at[i]);
    if (o->other.len) {
        schema_put(c, rule, " (\",\" ws ");
        put_other(c, rule, o);
        schema_put(c, rule, ")*");
    }
}

/* Whatever comes first: one of the optional ones, or the first that has to be there. */
static rlx_status put_first(struct schema *c, size_t rule, const struct object *o, size_t firsts)
{
    size_t rest[2] = {0, 0}; /* rules of what follows i, and i - 1 */

    for (size_t i = 0; i < firsts; i++) {
        TRY(schema_rule(c, schema_name(c, rule), &rest[0]));
        if (i) {
            put_next(c, rest[1], &o->at[i]);
            schema_put(c, rest[1], " %s", schema_name(c, rest[0]).ptr);
        }
        schema_put(c, rule, i ? " | " : "");
        put_member(c, rule, &o->at[i]);
        schema_put(c, rule, " %s", schema_name(c, rest[0]).ptr);
        rest[1] = rest[0];
    }
    put_rest(c, rest[1], o, firsts);
    if (firsts == o->count && o->other.len && !o->at[firsts - 1].required) {
        schema_put(c, rule, " | ");
        put_other(c, rule, o);
        put_rest(c, rule, o, o->count);
    }
    return RLX_OK;
}

static rlx_status put_members(struct schema *c, size_t rule, const struct object *o, size_t firsts)
{
    if (o->count == 0) {
        put_other(c, rule, o);
        put_rest(c, rule, o, 0);
    } else if (o->at[0].required) {
        put_member(c, rule, &o->at[0]);
        put_rest(c, rule, o, 1);
    } else
        return put_first(c, rule, o, firsts);
    return RLX_OK;
}

rlx_status schema_object(struct schema *c, size_t rule, const struct json_value *v,
                         const struct schema_place *at)
{
    struct object o = {0};
    size_t firsts = 0; /* members that may be the first */

    TRY(read_object(c, &o, v, at));
    while (firsts < o.count && !o.at[firsts].required)
        firsts++;
    const bool empty = firsts == o.count;
    firsts += !empty;
    schema_fixed(c, "ws");
    schema_put(c, rule, "\"{\" ws ");
    if (o.count || o.other.len) {
        schema_put(c, rule, empty ? "((" : "(");
        TRY(put_members(c, rule, &o, firsts));
        schema_put(c, rule, empty ? ") ws)? " : ") ws ");
    }
    schema_put(c, rule, "\"}\"");
    return RLX_OK;
}
