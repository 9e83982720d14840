/* schema.c: a JSON schema as a grammar in GBNF, which is then read as any other. */
#include "grammar/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- messages ---------------------------------------------------------------------------- */

static size_t write_place(const struct schema_place *at, char *out, size_t room)
{
    size_t len = at->up ? write_place(at->up, out, room) : 0;
    int more = snprintf(out + len, room - len, "%s%.*s", at->up ? "/" : "", STR_ARG(at->key));

    len += more > 0 ? (size_t)more : 0;
    return len < room ? len : room - 1;
}

rlx_status(schema_bad)(const struct schema *c, const struct schema_place *at, rlx_status status,
                       const char *fmt, ...)
{
    char place[192], what[320];
    va_list args;

    write_place(at, place, sizeof place);
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return diag_fail(c->d, status, "%s: %s", place, what);
}

/* ---- what is written --------------------------------------------------------------------- */

rlx_status schema_rule(struct schema *c, rlx_str hint, size_t *rule)
{
    enum { MOST_HINT = 24 };
    char name[MOST_HINT + 32];
    size_t len = 0;

    for (size_t i = 0; i < hint.len && len < MOST_HINT; i++) {
        const char h = hint.ptr[i];
        const bool plain =
            (h >= 'a' && h <= 'z') || (h >= 'A' && h <= 'Z') || (h >= '0' && h <= '9');
        if (plain || (len && name[len - 1] != '-'))
            name[len++] = plain ? h : '-';
    }
    while (len && name[len - 1] == '-')
        len--;
    if (c->rule.len >= GRAM_MOST_RULES)
        return diag_fail(c->d, RLX_ERROR_LIMIT, "the schema takes more than %d rules",
                         GRAM_MOST_RULES);
    snprintf(name + len, sizeof name - len, "%s%zu", len ? "-" : "part-", c->rule.len);
    const rlx_str own = arena_str(&c->arena, c->rule.len ? rlx_cstr(name) : STR("root"));
    if (!own.ptr || !vec_room(c->mem, &c->rule))
        return diag_no_memory(c->d, sizeof(struct schema_rule));
    *rule = c->rule.len;
    c->rule.at[c->rule.len++].name = own;
    text_init(&c->rule.at[*rule].body, c->mem);
    return RLX_OK;
}

void schema_put(struct schema *c, size_t rule, const char *fmt, ...)
{
    char part[512]; /* names of rules, and our own words */
    va_list args;

    va_start(args, fmt);
    vsnprintf(part, sizeof part, fmt, args);
    va_end(args);
    text_add(&c->rule.at[rule].body, rlx_cstr(part));
}

void schema_put_literal(struct schema *c, size_t rule, rlx_str text)
{
    struct text *out = &c->rule.at[rule].body;

    text_add(out, STR("\""));
    for (size_t i = 0; i < text.len; i++) {
        const char ch = text.ptr[i];
        if (ch == '"' || ch == '\\')
            text_add(out, STR("\\"));
        if ((unsigned char)ch < 0x20 || ch == 0x7f)
            text_addf(out, "\\x%02x", (unsigned)ch);
        else
            text_add(out, (rlx_str){&ch, 1});
    }
    text_add(out, STR("\""));
}

void schema_put_json(struct schema *c, size_t rule, const struct json_value *v)
{
    struct text json;

    text_init(&json, c->mem);
    json_tree_write(v, &json);
    if (json.failed)
        c->rule.at[rule].body.failed = true;
    else
        schema_put_literal(c, rule, (rlx_str){json.at, json.len});
    text_free(&json);
}

/* ---- keywords ---------------------------------------------------------------------------- */

enum about { NOTE = 1, ANY = 2, OBJECT = 4, ARRAY = 8, STRING = 16, NUMBER = 32 };

static const struct {
    const char *name;
    enum about about;
} keywords[] = {
#define X(name, about) {#name, about},
#include "grammar/schema_keywords.def"
#undef X
};

/* 0: it is not known. */
static uint32_t about(const struct json_member *m)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (str_eq(m->key, rlx_cstr(keywords[i].name)))
            return keywords[i].about;
    /* What programs add for themselves, and what asks for nothing. */
    const bool off = m->value->kind == JSON_BOOL && str_eq(m->value->text, STR("false"));
    return str_starts(m->key, STR("x-")) || (off && str_eq(m->key, STR("uniqueItems"))) ? NOTE : 0;
}

static rlx_status check_keywords(const struct schema *c, const struct json_value *v,
                                 const struct schema_place *at, uint32_t *all)
{
    *all = 0;
    for (size_t i = 0; i < v->count; i++) {
        const uint32_t a = about(&v->member[i]);
        if (!a)
            return schema_bad(c, at, RLX_ERROR_UNSUPPORTED, "the keyword \"%.*s\" is not known",
                              STR_ARG(v->member[i].key));
        *all |= a;
    }
    return RLX_OK;
}

/* Does it say anything about what is valid? */
static bool says_more(const struct json_value *v)
{
    for (size_t i = 0; i < v->count; i++)
        if (about(&v->member[i]) != NOTE)
            return true;
    return false;
}

rlx_status schema_count(const struct schema *c, const struct json_value *v, const char *key,
                        bool least, const struct schema_place *at, uint32_t *out)
{
    const struct json_value *n = json_tree_get(v, rlx_cstr(key));
    int64_t count;

    if (!n)
        return RLX_OK;
    if (n->kind != JSON_NUMBER || !str_to_i64(n->text, &count) || count < 0)
        return schema_bad(c, at, RLX_ERROR_FORMAT, "%s is to be an integer of at least 0", key);
    if (count > GRAM_MOST_REPEATS && least)
        return schema_bad(c, at, RLX_ERROR_LIMIT, "%s is above %d", key, GRAM_MOST_REPEATS);
    *out = count > GRAM_MOST_REPEATS ? GRAM_MOST_REPEATS : (uint32_t)count;
    return RLX_OK;
}

/* ---- types ------------------------------------------------------------------------------- */

enum type { T_OBJECT, T_ARRAY, T_STRING, T_NUMBER, T_INTEGER, T_BOOLEAN, T_NULL, TYPES };
static const struct {
    const char *name;
    uint32_t about; /* keywords that ask for that type, where none is named */
} types[TYPES] = {{"object", OBJECT}, {"array", ARRAY}, {"string", STRING}, {"number", NUMBER},
                  {"integer", 0},     {"boolean", 0},   {"null", 0}};

static rlx_status add_type(const struct schema *c, const struct json_value *name,
                           const struct schema_place *at, uint32_t *out)
{
    for (unsigned i = 0; i < TYPES; i++)
        if (name->kind == JSON_STRING && str_eq(name->text, rlx_cstr(types[i].name))) {
            *out |= 1u << i;
            return RLX_OK;
        }
    return schema_bad(c, at, RLX_ERROR_FORMAT, "there is no type \"%.*s\"", STR_ARG(name->text));
}

/* Those that "type" names; without it, those that keywords are about, or all. */
static rlx_status read_types(const struct schema *c, const struct json_value *v, uint32_t all,
                             const struct schema_place *at, uint32_t *out)
{
    const struct json_value *type = json_tree_get(v, STR("type"));

    *out = 0;
    if (type && type->kind != JSON_ARRAY)
        TRY(add_type(c, type, at, out));
    for (size_t i = 0; type && i < type->count; i++)
        TRY(add_type(c, type->member[i].value, at, out));
    for (unsigned i = 0; !type && i < TYPES; i++)
        *out |= all & types[i].about ? 1u << i : 0;
    if (!type && !*out)
        *out = (1u << TYPES) - 1;
    if (*out >> T_NUMBER & 1)
        *out &= ~(1u << T_INTEGER); /* which are numbers */
    return *out ? RLX_OK
                : schema_bad(c, at, RLX_ERROR_FORMAT, "no type is left that may stand here");
}

static rlx_status put_type(struct schema *c, size_t rule, enum type type,
                           const struct json_value *v, const struct schema_place *at)
{
    switch (type) {
    case T_OBJECT: return schema_object(c, rule, v, at);
    case T_ARRAY: return schema_array(c, rule, v, at);
    case T_STRING: return schema_string(c, rule, v, at);
    case T_NUMBER: return schema_number(c, rule, v, false, at);
    case T_INTEGER: return schema_number(c, rule, v, true, at);
    default: break;
    }
    schema_put(c, rule, "%s", schema_fixed(c, types[type].name).ptr);
    return RLX_OK;
}

static rlx_status put_types(struct schema *c, size_t rule, const struct json_value *v, uint32_t all,
                            const struct schema_place *at)
{
    uint32_t wanted;
    bool first = true;

    TRY(read_types(c, v, all, at, &wanted));
    for (unsigned i = 0; i < TYPES; i++)
        if (wanted >> i & 1) {
            if (!first)
                schema_put(c, rule, " | ");
            first = false;
            TRY(put_type(c, rule, (enum type)i, v, at));
        }
    return RLX_OK;
}

/* ---- values that are given --------------------------------------------------------------- */

static bool has_type(const struct json_value *v, uint32_t wanted)
{
    static const enum type of_kind[] = {
        [JSON_NULL] = T_NULL,     [JSON_BOOL] = T_BOOLEAN, [JSON_NUMBER] = T_NUMBER,
        [JSON_STRING] = T_STRING, [JSON_ARRAY] = T_ARRAY,  [JSON_OBJECT] = T_OBJECT};
    const bool whole = v->kind == JSON_NUMBER && !memchr(v->text.ptr, '.', v->text.len) &&
                       !memchr(v->text.ptr, 'e', v->text.len) &&
                       !memchr(v->text.ptr, 'E', v->text.len);

    return (wanted >> of_kind[v->kind] & 1) || (whole && (wanted >> T_INTEGER & 1));
}

static rlx_status put_values(struct schema *c, size_t rule, const struct json_value *v,
                             uint32_t all, const struct schema_place *at)
{
    const struct json_value *one = json_tree_get(v, STR("const"));
    const struct json_value *some = json_tree_get(v, STR("enum"));
    uint32_t wanted;
    size_t count = 0;

    for (size_t i = 0; all & ~(uint32_t)(NOTE | ANY) && i < v->count; i++)
        if (!(about(&v->member[i]) & (NOTE | ANY)))
            return schema_bad(c, at, RLX_ERROR_UNSUPPORTED, "\"%.*s\" beside enum or const",
                              STR_ARG(v->member[i].key));
    TRY(read_types(c, v, 0, at, &wanted));
    if (some && some->kind != JSON_ARRAY)
        return schema_bad(c, at, RLX_ERROR_FORMAT, "enum is to be an array");
    const size_t most = some ? some->count : 1;
    for (size_t i = 0; i < most; i++) {
        const struct json_value *value = some ? some->member[i].value : one;
        if (!has_type(value, wanted) || (one && !json_tree_same(one, value)))
            continue;
        if (count++)
            schema_put(c, rule, " | ");
        schema_put_json(c, rule, value);
    }
    return count ? RLX_OK
                 : schema_bad(c, at, RLX_ERROR_FORMAT,
                              "none of the values may stand here by the other keywords");
}

/* ---- schemas of schemas ------------------------------------------------------------------ */

static bool same_target(const void *owner, uint32_t i, const void *key)
{
    return ((const struct schema *)owner)->ref.at[i].target == key;
}

/* The rule of what a $ref names; it is written later, so that it may name itself. */
static rlx_status visit_ref(struct schema *c, const struct json_value *ref,
                            const struct schema_place *at, rlx_str *name)
{
    struct json_value *target;
    uint32_t i;

    TRY(schema_resolve(c, ref, at, &target));
    const uint64_t hash = hash_mix(0, (uint64_t)(uintptr_t)target);
    if (!map_find(&c->by_target, hash, same_target, c, target, &i)) {
        struct schema_ref r = {.target = target, .pointer = ref->text};
        size_t last = ref->text.len; /* the name after the last slash */
        while (last && ref->text.ptr[last - 1] != '/')
            last--;
        i = (uint32_t)c->ref.len;
        TRY(schema_rule(c, (rlx_str){ref->text.ptr + last, ref->text.len - last}, &r.rule));
        if (!vec_room(c->mem, &c->ref) || !map_add(&c->by_target, hash, i))
            return diag_no_memory(c->d, sizeof r);
        c->ref.at[c->ref.len++] = r;
    }
    *name = schema_name(c, c->ref.at[i].rule);
    return RLX_OK;
}

static rlx_status put_part(struct schema *c, size_t rule, const struct json_value *v,
                           const struct schema_place *at);

/* One of several: what is beside anyOf holds for each of them. */
static rlx_status put_any_of(struct schema *c, size_t rule, const struct json_value *v,
                             const char *key, const struct schema_place *at)
{
    const struct json_value *list = json_tree_get(v, rlx_cstr(key));
    const struct schema_place here = {at, rlx_cstr(key)};
    struct json_value *rest;

    if (list->kind != JSON_ARRAY || list->count == 0)
        return schema_bad(c, at, RLX_ERROR_FORMAT, "%s is to be an array that is not empty", key);
    TRY(schema_without(c, v, rlx_cstr(key), &rest));
    for (size_t i = 0; i < list->count; i++) {
        struct json_value *part = list->member[i].value;
        rlx_str name;
        if (says_more(rest))
            TRY(schema_merge(c, rest, part, &here, &part));
        TRY(schema_visit(c, part, &here, rlx_cstr(key), &name));
        schema_put(c, rule, "%s%s", i ? " | " : "", name.ptr);
    }
    return RLX_OK;
}

static rlx_status put_all_of(struct schema *c, size_t rule, const struct json_value *v,
                             const struct schema_place *at)
{
    const struct json_value *list = json_tree_get(v, STR("allOf"));
    const struct schema_place here = {at, STR("allOf")};
    struct json_value *all;

    if (list->kind != JSON_ARRAY)
        return schema_bad(c, at, RLX_ERROR_FORMAT, "allOf is to be an array");
    TRY(schema_without(c, v, STR("allOf"), &all));
    for (size_t i = 0; i < list->count; i++)
        TRY(schema_merge(c, all, list->member[i].value, &here, &all));
    return put_part(c, rule, all, at);
}

static rlx_status put_keywords(struct schema *c, size_t rule, const struct json_value *v,
                               const struct schema_place *at)
{
    struct json_value *target, *rest;
    uint32_t all;
    rlx_str name;

    TRY(check_keywords(c, v, at, &all));
    const struct json_value *ref = json_tree_get(v, STR("$ref"));
    if (ref) {
        TRY(schema_without(c, v, STR("$ref"), &rest));
        if (!says_more(rest)) {
            TRY(visit_ref(c, ref, at, &name));
            schema_put(c, rule, "%s", name.ptr);
            return RLX_OK;
        }
        TRY(schema_resolve(c, ref, at, &target));
        TRY(schema_merge(c, rest, target, at, &rest));
        return put_part(c, rule, rest, at);
    }
    if (json_tree_get(v, STR("allOf")))
        return put_all_of(c, rule, v, at);
    if (json_tree_get(v, STR("anyOf")))
        return put_any_of(c, rule, v, "anyOf", at);
    if (json_tree_get(v, STR("oneOf")))
        return put_any_of(c, rule, v, "oneOf", at);
    if (json_tree_get(v, STR("const")) || json_tree_get(v, STR("enum")))
        return put_values(c, rule, v, all, at);
    return put_types(c, rule, v, all, at);
}

static rlx_status put_part(struct schema *c, size_t rule, const struct json_value *v,
                           const struct schema_place *at)
{
    if (v->kind == JSON_BOOL && str_eq(v->text, STR("false")))
        return schema_bad(c, at, RLX_ERROR_FORMAT, "nothing may stand here, and something has to");
    if (v->kind == JSON_BOOL) {
        schema_put(c, rule, "%s", schema_fixed(c, "value").ptr);
        return RLX_OK;
    }
    if (v->kind != JSON_OBJECT)
        return schema_bad(c, at, RLX_ERROR_FORMAT, "a schema is to be an object, true or false");
    if (++c->depth > SCHEMA_MOST_DEPTH)
        return schema_bad(c, at, RLX_ERROR_LIMIT, "schemas in schemas, without an end");
    TRY(put_keywords(c, rule, v, at));
    c->depth--;
    return RLX_OK;
}

rlx_status schema_visit(struct schema *c, const struct json_value *v, const struct schema_place *at,
                        rlx_str hint, rlx_str *name)
{
    size_t rule;

    if (v->kind == JSON_OBJECT && json_tree_get(v, STR("$ref"))) {
        struct json_value *rest;
        TRY(schema_without(c, v, STR("$ref"), &rest));
        if (!says_more(rest))
            return visit_ref(c, json_tree_get(v, STR("$ref")), at, name);
    }
    TRY(schema_rule(c, hint, &rule));
    *name = schema_name(c, rule);
    return put_part(c, rule, v, at);
}

/* ---- the grammar ------------------------------------------------------------------------- */

static rlx_status write_all(struct schema *c, struct text *out)
{
    const struct schema_place at = {NULL, STR("#")};
    size_t rule;

    TRY(schema_rule(c, STR("root"), &rule));
    TRY(put_part(c, rule, c->document, &at));
    for (size_t i = 0; i < c->ref.len; i++) { /* more of them come meanwhile */
        const struct schema_ref r = c->ref.at[i];
        const struct schema_place there = {NULL, r.pointer};
        c->depth = 0;
        TRY(put_part(c, r.rule, r.target, &there));
    }
    for (size_t i = 0; i < c->rule.len; i++) {
        const struct schema_rule *r = &c->rule.at[i];
        if (r->body.failed)
            return diag_no_memory(c->d, r->body.len);
        text_addf(out, "%.*s ::= ", STR_ARG(r->name));
        text_add(out, r->body.len ? (rlx_str){r->body.at, r->body.len} : STR("\"\""));
        text_add(out, STR("\n"));
    }
    schema_write_fixed(c, out);
    return out->failed ? diag_no_memory(c->d, out->len) : RLX_OK;
}

rlx_status gram_from_schema(rlx_str json, const rlx_allocator *mem, struct rlx_grammar **out,
                            struct diag *d)
{
    struct schema c = {.mem = mem, .d = d};
    struct text text;

    text_init(&text, mem);
    arena_init(&c.arena, mem);
    map_init(&c.by_target, mem);
    rlx_status s = json_tree_read(json, "schema", &c.arena, mem, &c.document, d);
    if (s == RLX_OK)
        s = write_all(&c, &text);
    if (s == RLX_OK)
        s = gram_parse((rlx_str){text.at, text.len}, STR("root"), mem, out, d);
    for (size_t i = 0; i < c.rule.len; i++)
        text_free(&c.rule.at[i].body);
    vec_free(mem, &c.rule);
    vec_free(mem, &c.ref);
    map_free(&c.by_target);
    arena_free(&c.arena);
    text_free(&text);
    return s;
}
