/* schema_keys.c: keys that are none of some names: a tree of the names, in which a key leaves them
 * at some character, or ends before or after where a name does.
 *
 *     not "ab"    [^a] any* | "a" ([^b] any* | "b" any+)? */
#include <stdlib.h>

#include "grammar/schema.h"
#include "text/unicode.h"

enum { MOST_NAME = 256 }; /* bytes; the tree is gone down so deep */

static int by_bytes(const void *a, const void *b)
{
    return str_cmp(*(const rlx_str *)a, *(const rlx_str *)b);
}

/* A character inside of a class. */
static void put_char(struct schema *c, size_t rule, uint32_t ch)
{
    schema_put(c, rule, "\\U%08x", (unsigned)ch);
}

/* Names from *name on, count of them and sorted, that agree in their first `depth` bytes. */
static rlx_status put_others(struct schema *c, size_t rule, const rlx_str *name, size_t count,
                             size_t depth)
{
    const bool ends = count && name->len == depth; /* one of them is complete */
    size_t step;

    name += ends;
    count -= ends;
    schema_put(c, rule, ends ? "[^\\\"\\\\\\x00-\\x1f" : "([^\\\"\\\\\\x00-\\x1f");
    for (size_t i = 0; i < count; i++)
        put_char(c, rule, utf8_next(name[i].ptr + depth, name[i].len - depth, &step));
    schema_put(c, rule, "] key-char*");
    for (size_t i = 0, same; i < count; i += same) {
        const uint32_t ch = utf8_next(name[i].ptr + depth, name[i].len - depth, &step);
        size_t below, other;
        for (same = 1; i + same < count; same++)
            if (utf8_next(name[i + same].ptr + depth, name[i + same].len - depth, &other) != ch)
                break;
        TRY(schema_rule(c, STR("key"), &below));
        schema_put(c, rule, " | [");
        put_char(c, rule, ch);
        schema_put(c, rule, "] %s", schema_name(c, below).ptr);
        TRY(put_others(c, below, name + i, same, depth + step));
    }
    schema_put(c, rule, ends ? "" : ")?");
    return RLX_OK;
}

/* Keys are written without escapes, so one with such a character is another one anyway. */
static bool is_plain(rlx_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == '"' || name.ptr[i] == '\\')
            return false;
    return true;
}

rlx_status schema_other_keys(struct schema *c, const rlx_str *names, size_t count,
                             const struct schema_place *at, rlx_str *out)
{
    rlx_str *name = arena_array(&c->arena, rlx_str, count);
    size_t plain = 0, rule, inside;

    if (!name)
        return diag_no_memory(c->d, count * sizeof *name);
    for (size_t i = 0; i < count; i++) {
        if (names[i].len > MOST_NAME)
            return schema_bad(c, at, RLX_ERROR_LIMIT,
                              "beside additionalProperties, names have at most %d bytes",
                              MOST_NAME);
        if (is_plain(names[i]))
            name[plain++] = names[i];
    }
    *out = schema_fixed(c, plain ? "key-char" : "string");
    if (!plain)
        return RLX_OK;
    qsort(name, plain, sizeof *name, by_bytes);
    TRY(schema_rule(c, STR("key"), &rule));
    TRY(schema_rule(c, STR("key"), &inside));
    schema_put(c, rule, "\"\\\"\" %s \"\\\"\"", schema_name(c, inside).ptr);
    *out = schema_name(c, rule);
    return put_others(c, inside, name, plain, 0);
}
