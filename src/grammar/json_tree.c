/* json_tree.c: a JSON text as a tree. */
#include "grammar/json_tree.h"

#include <string.h>

#include "base/json.h"
#include "base/json_read.h"
#include "base/map.h"

struct reading {
    struct json_in j;
    const rlx_allocator *mem;
    VEC(struct json_member) open; /* members of all values that are not complete */
    struct map keys;              /* of one object at a time: those of its members */
};

static rlx_status read_value(struct reading *r, struct json_value **out);

static char peek(struct reading *r)
{
    struct json_in *j = &r->j;

    while (j->pos < j->text.len && strchr(" \t\n\r", j->text.ptr[j->pos]) && j->text.ptr[j->pos])
        j->pos++;
    return j->pos < j->text.len ? j->text.ptr[j->pos] : 0;
}

static bool same_key(const void *owner, uint32_t i, const void *key)
{
    return str_eq(((const struct json_member *)owner)[i].key, *(const rlx_str *)key);
}

static rlx_status check_keys(struct reading *r, const struct json_value *v)
{
    rlx_status s = RLX_OK;

    map_init(&r->keys, r->mem);
    for (size_t i = 0; i < v->count && s == RLX_OK; i++) {
        const rlx_str key = v->member[i].key;
        const uint64_t hash = hash_bytes(key.ptr, key.len);
        uint32_t other;
        if (map_find(&r->keys, hash, same_key, v->member, &key, &other))
            s = diag_fail(r->j.d, RLX_ERROR_FORMAT, "%s: the key \"%.*s\" comes twice in an object",
                          r->j.what, STR_ARG(key));
        else if (!map_add(&r->keys, hash, (uint32_t)i))
            s = diag_no_memory(r->j.d, sizeof key);
    }
    map_free(&r->keys);
    return s;
}

static rlx_status read_members(struct reading *r, struct json_value *v, bool object)
{
    const size_t first = r->open.len;

    TRY(json_read_open(&r->j, object ? '{' : '['));
    for (bool begin = true, more;; begin = false) {
        struct json_member m = {{NULL, 0}, NULL};
        TRY(json_read_more(&r->j, object ? '}' : ']', begin, &more));
        if (!more)
            break;
        if (object)
            TRY(json_read_key(&r->j, &m.key));
        TRY(read_value(r, &m.value));
        if (!vec_room(r->mem, &r->open))
            return diag_no_memory(r->j.d, sizeof m);
        r->open.at[r->open.len++] = m;
    }
    v->count = r->open.len - first;
    v->member = arena_array(r->j.arena, struct json_member, v->count);
    if (!v->member)
        return diag_no_memory(r->j.d, v->count * sizeof *v->member);
    if (v->count)
        memcpy(v->member, &r->open.at[first], v->count * sizeof *v->member);
    r->open.len = first;
    return object ? check_keys(r, v) : RLX_OK;
}

static rlx_status read_value(struct reading *r, struct json_value **out)
{
    struct json_value *v = arena_new(r->j.arena, struct json_value);
    const char c = peek(r);

    if (!v)
        return diag_no_memory(r->j.d, sizeof *v);
    *out = v;
    v->kind = c == '{'               ? JSON_OBJECT
              : c == '['             ? JSON_ARRAY
              : c == '"'             ? JSON_STRING
              : c == 'n'             ? JSON_NULL
              : c == 't' || c == 'f' ? JSON_BOOL
                                     : JSON_NUMBER;
    if (c == '{' || c == '[')
        return read_members(r, v, c == '{');
    if (c == '"')
        return json_read_string(&r->j, &v->text);
    const size_t from = r->j.pos;
    TRY(json_read_skip(&r->j));
    v->text = (rlx_str){r->j.text.ptr + from, r->j.pos - from};
    return RLX_OK;
}

/* JSON's numbers, of which json_read_skip takes some more: .5 1. 01 */
static bool is_number(rlx_str s)
{
    size_t i = s.len && s.ptr[0] == '-', digits = i;

    while (i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9')
        i++;
    if (i == digits || (s.ptr[digits] == '0' && i > digits + 1))
        return false;
    if (i < s.len && s.ptr[i] == '.')
        return i + 1 < s.len && s.ptr[i + 1] >= '0' && s.ptr[i + 1] <= '9';
    return true;
}

static bool numbers_hold(const struct json_value *v)
{
    if (v->kind == JSON_NUMBER)
        return is_number(v->text);
    for (size_t i = 0; i < v->count; i++)
        if (!numbers_hold(v->member[i].value))
            return false;
    return true;
}

rlx_status json_tree_read(rlx_str text, const char *what, struct arena *arena,
                          const rlx_allocator *mem, struct json_value **out, struct diag *d)
{
    struct reading r = {
        .j = {.text = text, .max_depth = JSON_MOST_DEPTH, .what = what, .arena = arena, .d = d},
        .mem = mem};

    if (!str_is_utf8(text))
        return diag_fail(d, RLX_ERROR_FORMAT, "%s: the text is not UTF-8", what);
    rlx_status s = read_value(&r, out);
    if (s == RLX_OK)
        s = json_read_end(&r.j);
    if (s == RLX_OK && !numbers_hold(*out))
        s = diag_fail(d, RLX_ERROR_FORMAT, "%s: a number is not written as JSON wants it", what);
    vec_free(mem, &r.open);
    return s;
}

struct json_value *json_tree_get(const struct json_value *v, rlx_str key)
{
    for (size_t i = 0; v->kind == JSON_OBJECT && i < v->count; i++)
        if (str_eq(v->member[i].key, key))
            return v->member[i].value;
    return NULL;
}

bool json_tree_same(const struct json_value *a, const struct json_value *b)
{
    if (a->kind != b->kind || a->count != b->count)
        return false;
    if (a->kind != JSON_ARRAY && a->kind != JSON_OBJECT)
        return str_eq(a->text, b->text);
    for (size_t i = 0; i < a->count; i++) {
        const struct json_value *other =
            a->kind == JSON_ARRAY ? b->member[i].value : json_tree_get(b, a->member[i].key);
        if (!other || !json_tree_same(a->member[i].value, other))
            return false;
    }
    return true;
}

static void write_string(rlx_str s, struct text *out)
{
    struct json j;

    json_init(&j, out);
    json_str(&j, s.ptr ? s : STR(""));
}

void json_tree_write(const struct json_value *v, struct text *out)
{
    const bool object = v->kind == JSON_OBJECT;

    if (v->kind == JSON_STRING) {
        write_string(v->text, out);
        return;
    }
    if (!object && v->kind != JSON_ARRAY) {
        text_add(out, v->text);
        return;
    }
    text_add(out, object ? STR("{") : STR("["));
    for (size_t i = 0; i < v->count; i++) {
        if (i)
            text_add(out, STR(","));
        if (object) {
            write_string(v->member[i].key, out);
            text_add(out, STR(":"));
        }
        json_tree_write(v->member[i].value, out);
    }
    text_add(out, object ? STR("}") : STR("]"));
}
