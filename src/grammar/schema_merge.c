/* schema_merge.c: two schemas as one that wants what both want, as far as keywords say so one by
 * one; and the parts of a document that a $ref names. */
#include <string.h>

#include "grammar/schema.h"

/* ---- trees ------------------------------------------------------------------------------- */

/* Bounded, as short schemas can ask for trees without an end. cost: of the work with it, too. */
static rlx_status new_value(struct schema *c, enum json_kind kind, size_t room, size_t cost,
                            struct json_value **out)
{
    struct json_value *v = arena_new(&c->arena, struct json_value);

    c->effort += 1 + room + cost / 64;
    if (c->effort > SCHEMA_MOST_EFFORT)
        return diag_fail(c->d, RLX_ERROR_LIMIT, "the schema's parts are put together too often");
    if (!v)
        return diag_no_memory(c->d, sizeof *v);
    v->kind = kind;
    v->member = arena_array(&c->arena, struct json_member, room);
    *out = v;
    return v->member ? RLX_OK : diag_no_memory(c->d, room * sizeof *v->member);
}

rlx_status schema_without(struct schema *c, const struct json_value *v, rlx_str key,
                          struct json_value **out)
{
    TRY(new_value(c, JSON_OBJECT, v->count, 0, out));
    for (size_t i = 0; i < v->count; i++)
        if (!str_eq(v->member[i].key, key))
            (*out)->member[(*out)->count++] = v->member[i];
    return RLX_OK;
}

/* ---- $ref -------------------------------------------------------------------------------- */

static int hex(char h)
{
    return h >= '0' && h <= '9'   ? h - '0'
           : h >= 'A' && h <= 'F' ? h - 'A' + 10
           : h >= 'a' && h <= 'f' ? h - 'a' + 10
                                  : -1;
}

/* One name of a pointer as it is: %25 is %, ~1 is /, ~0 is ~. */
static rlx_status plain_name(struct schema *c, rlx_str s, rlx_str *out)
{
    char *to = arena_alloc(&c->arena, s.len, 1);
    size_t len = 0;

    if (!to)
        return diag_no_memory(c->d, s.len);
    for (size_t i = 0; i < s.len; i++) {
        char ch = s.ptr[i];
        if (ch == '%' && i + 2 < s.len && hex(s.ptr[i + 1]) >= 0 && hex(s.ptr[i + 2]) >= 0) {
            ch = (char)(hex(s.ptr[i + 1]) * 16 + hex(s.ptr[i + 2]));
            i += 2;
        }
        if (len && to[len - 1] == '~' && (ch == '0' || ch == '1'))
            to[len - 1] = ch == '0' ? '\x01' : '/'; /* so that ~01 is no ~1 */
        else
            to[len++] = ch;
    }
    for (size_t i = 0; i < len; i++)
        if (to[i] == '\x01')
            to[i] = '~';
    *out = (rlx_str){to, len};
    return RLX_OK;
}

static struct json_value *step_into(const struct json_value *v, rlx_str name)
{
    int64_t i;

    if (v->kind == JSON_ARRAY)
        return str_to_i64(name, &i) && i >= 0 && (uint64_t)i < v->count ? v->member[i].value : NULL;
    return json_tree_get(v, name);
}

rlx_status schema_resolve(struct schema *c, const struct json_value *ref,
                          const struct schema_place *at, struct json_value **out)
{
    struct json_value *v = c->document;
    rlx_str rest = ref->text, name;

    if (ref->kind != JSON_STRING)
        return schema_bad(c, at, RLX_ERROR_FORMAT, "$ref is to be a string");
    if (!str_eq(rest, STR("#")) && !str_starts(rest, STR("#/")))
        return schema_bad(c, at, RLX_ERROR_UNSUPPORTED,
                          "$ref \"%.*s\": only parts of the same document are found, as "
                          "#/$defs/name",
                          STR_ARG(rest));
    rest.ptr++;
    rest.len--;
    while (rest.len && v) {
        const char *end = memchr(rest.ptr + 1, '/', rest.len - 1);
        const size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        TRY(plain_name(c, (rlx_str){rest.ptr + 1, len - 1}, &name));
        v = step_into(v, name);
        rest.ptr += len;
        rest.len -= len;
    }
    if (!v)
        return schema_bad(c, at, RLX_ERROR_FORMAT, "$ref \"%.*s\": there is no such part",
                          STR_ARG(ref->text));
    *out = v;
    return RLX_OK;
}

/* The schema with its own $ref put in. */
static rlx_status put_ref_in(struct schema *c, const struct json_value *v,
                             const struct schema_place *at, const struct json_value **out)
{
    const struct json_value *ref = json_tree_get(v, STR("$ref"));
    struct json_value *target, *rest, *both;

    *out = v;
    if (!ref)
        return RLX_OK;
    TRY(schema_resolve(c, ref, at, &target));
    TRY(schema_without(c, v, STR("$ref"), &rest));
    TRY(schema_merge(c, rest, target, at, &both));
    *out = both;
    return RLX_OK;
}

/* ---- keywords that both have ------------------------------------------------------------- */

/* All elements of a, then those of b that are not there yet. both: those of a that b has, too. */
static rlx_status join_lists(struct schema *c, const struct json_value *a,
                             const struct json_value *b, bool both, struct json_value **out)
{
    struct json_value *v;

    TRY(new_value(c, JSON_ARRAY, a->count + b->count, a->count * b->count, &v));
    for (size_t i = 0; i < a->count; i++) {
        bool there = !both;
        for (size_t k = 0; k < b->count && !there; k++)
            there = json_tree_same(a->member[i].value, b->member[k].value);
        if (there)
            v->member[v->count++] = a->member[i];
    }
    for (size_t i = 0; !both && i < b->count; i++) {
        bool there = false;
        for (size_t k = 0; k < a->count && !there; k++)
            there = json_tree_same(b->member[i].value, a->member[k].value);
        if (!there)
            v->member[v->count++] = b->member[i];
    }
    *out = v;
    return RLX_OK;
}

static rlx_status as_list(struct schema *c, const struct json_value *v,
                          const struct json_value **out)
{
    *out = v;
    if (v->kind == JSON_ARRAY)
        return RLX_OK;
    struct json_value *list;
    TRY(new_value(c, JSON_ARRAY, 1, 0, &list));
    list->member[list->count++].value = (struct json_value *)v;
    *out = list;
    return RLX_OK;
}

static rlx_status join_properties(struct schema *c, const struct json_value *a,
                                  const struct json_value *b, const struct schema_place *at,
                                  struct json_value **out)
{
    struct json_value *v;

    TRY(new_value(c, JSON_OBJECT, a->count + b->count, a->count * b->count, &v));
    for (size_t i = 0; i < a->count; i++) {
        struct json_member m = a->member[i];
        const struct json_value *other = json_tree_get(b, m.key);
        if (other)
            TRY(schema_merge(c, m.value, other, at, &m.value));
        v->member[v->count++] = m;
    }
    for (size_t i = 0; i < b->count; i++)
        if (!json_tree_get(a, b->member[i].key))
            v->member[v->count++] = b->member[i];
    *out = v;
    return RLX_OK;
}

static bool one_of(rlx_str key, const char *const *list)
{
    for (; *list; list++)
        if (str_eq(key, rlx_cstr(*list)))
            return true;
    return false;
}

static rlx_status join(struct schema *c, rlx_str key, const struct json_value *a,
                       const struct json_value *b, const struct schema_place *at,
                       struct json_value **out)
{
    static const char *const notes[] = {"title",    "description", "default",  "examples",
                                        "example",  "deprecated",  "$comment", "$schema",
                                        "$id",      "$anchor",     "$defs",    "definitions",
                                        "readOnly", "writeOnly",   NULL};
    static const char *const least[] = {"minimum", "exclusiveMinimum", "minLength", "minItems",
                                        NULL};
    static const char *const most[] = {"maximum", "exclusiveMaximum", "maxLength", "maxItems",
                                       NULL};
    double x, y;

    *out = (struct json_value *)a;
    if (one_of(key, notes) || json_tree_same(a, b))
        return RLX_OK;
    if (str_eq(key, STR("properties")) && a->kind == JSON_OBJECT && b->kind == JSON_OBJECT)
        return join_properties(c, a, b, at, out);
    if (str_eq(key, STR("type"))) {
        TRY(as_list(c, a, &a));
        TRY(as_list(c, b, &b));
        return join_lists(c, a, b, true, out);
    }
    const bool lists = a->kind == JSON_ARRAY && b->kind == JSON_ARRAY;
    if (lists && str_eq(key, STR("enum")))
        return join_lists(c, a, b, true, out);
    if (lists && (str_eq(key, STR("required")) || str_eq(key, STR("allOf"))))
        return join_lists(c, a, b, false, out);
    if ((one_of(key, least) || one_of(key, most)) && a->kind == JSON_NUMBER &&
        b->kind == JSON_NUMBER && str_to_f64(a->text, &x) && str_to_f64(b->text, &y)) {
        *out = (struct json_value *)((one_of(key, least) ? x >= y : x <= y) ? a : b);
        return RLX_OK;
    }
    return schema_bad(c, at, RLX_ERROR_UNSUPPORTED,
                      "schemas that are put together have different values of \"%.*s\"",
                      STR_ARG(key));
}

/* ---- both -------------------------------------------------------------------------------- */

static rlx_status merge_objects(struct schema *c, const struct json_value *a,
                                const struct json_value *b, const struct schema_place *at,
                                struct json_value **out)
{
    TRY(put_ref_in(c, a, at, &a));
    TRY(put_ref_in(c, b, at, &b));
    if (a->kind != JSON_OBJECT || b->kind != JSON_OBJECT)
        return schema_merge(c, a, b, at, out);
    struct json_value *v;
    TRY(new_value(c, JSON_OBJECT, a->count + b->count, a->count * b->count, &v));
    for (size_t i = 0; i < a->count; i++) {
        struct json_member m = a->member[i];
        const struct json_value *other = json_tree_get(b, m.key);
        if (other)
            TRY(join(c, m.key, m.value, other, at, &m.value));
        v->member[v->count++] = m;
    }
    for (size_t i = 0; i < b->count; i++)
        if (!json_tree_get(a, b->member[i].key))
            v->member[v->count++] = b->member[i];
    *out = v;
    return RLX_OK;
}

rlx_status schema_merge(struct schema *c, const struct json_value *a, const struct json_value *b,
                        const struct schema_place *at, struct json_value **out)
{
    const bool a_flag = a->kind == JSON_BOOL, b_flag = b->kind == JSON_BOOL;

    if ((a->kind != JSON_OBJECT && !a_flag) || (b->kind != JSON_OBJECT && !b_flag))
        return schema_bad(c, at, RLX_ERROR_FORMAT, "a schema is to be an object, true or false");
    if (a_flag || b_flag) {
        const bool take_b = a_flag ? str_eq(a->text, STR("true")) : str_eq(b->text, STR("false"));
        *out = (struct json_value *)(take_b ? b : a);
        return RLX_OK;
    }
    if (++c->depth > SCHEMA_MOST_DEPTH)
        return schema_bad(c, at, RLX_ERROR_LIMIT, "schemas in schemas, without an end");
    TRY(merge_objects(c, a, b, at, out));
    c->depth--;
    return RLX_OK;
}
