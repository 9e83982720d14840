/* schema_string.c: strings: of a format, by a pattern, or of a length. */
#include "grammar/schema.h"

static rlx_status put_format(struct schema *c, size_t rule, const struct json_value *format,
                             const struct schema_place *at)
{
    static const char *const known[] = {"date", "time", "date-time", "uuid"};

    for (size_t i = 0; format->kind == JSON_STRING && i < sizeof known / sizeof *known; i++)
        if (str_eq(format->text, rlx_cstr(known[i]))) {
            schema_put(c, rule, "\"\\\"\" %s \"\\\"\"", schema_fixed(c, known[i]).ptr);
            return RLX_OK;
        }
    return schema_bad(c, at, RLX_ERROR_UNSUPPORTED,
                      "the format \"%.*s\" is not known: there are date, time, date-time, uuid",
                      STR_ARG(format->text));
}

static rlx_status put_length(struct schema *c, size_t rule, const struct json_value *v,
                             const struct schema_place *at)
{
    uint32_t min = 0, max = GRAM_NO_MOST;

    TRY(schema_count(c, v, "minLength", true, at, &min));
    TRY(schema_count(c, v, "maxLength", false, at, &max));
    if (min > max)
        return schema_bad(c, at, RLX_ERROR_FORMAT, "minLength is %u and maxLength %u", min, max);
    schema_put(c, rule, "\"\\\"\" %s", schema_fixed(c, "char").ptr);
    if (max == GRAM_NO_MOST)
        schema_put(c, rule, "{%u,} \"\\\"\"", min);
    else
        schema_put(c, rule, "{%u,%u} \"\\\"\"", min, max);
    return RLX_OK;
}

rlx_status schema_string(struct schema *c, size_t rule, const struct json_value *v,
                         const struct schema_place *at)
{
    const struct json_value *format = json_tree_get(v, STR("format"));
    const struct json_value *pattern = json_tree_get(v, STR("pattern"));
    const bool length = json_tree_get(v, STR("minLength")) || json_tree_get(v, STR("maxLength"));

    if ((format != NULL) + (pattern != NULL) + length > 1)
        return schema_bad(c, at, RLX_ERROR_UNSUPPORTED,
                          "%s beside %s: only one of pattern, format and a length may be given",
                          pattern ? "pattern" : "format",
                          pattern && format ? "format" : "a length");
    if (format)
        return put_format(c, rule, format, at);
    if (length)
        return put_length(c, rule, v, at);
    if (!pattern) {
        schema_put(c, rule, "%s", schema_fixed(c, "string").ptr);
        return RLX_OK;
    }
    if (pattern->kind != JSON_STRING)
        return schema_bad(c, at, RLX_ERROR_FORMAT, "pattern is to be a string");
    schema_put(c, rule, "\"\\\"\" (");
    TRY(schema_pattern(c, rule, pattern->text, at));
    schema_put(c, rule, ") \"\\\"\"");
    return RLX_OK;
}
