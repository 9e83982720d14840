/* selftest_rows.c: the table of cases, and what its words mean. */
#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "inspect/selftest/selftest.h"

static const struct case_row cases[] = {
#define CASE(ops, dtypes, operands, attrs, profiles) {ops, dtypes, operands, attrs, profiles},
#define GRAPH_CASE(op, profiles, text) {op, NULL, text, NULL, profiles},
#include "inspect/selftest/selftest_cases.def"
};

const struct case_row *selftest_row(size_t i)
{
    return i < sizeof cases / sizeof cases[0] ? &cases[i] : NULL;
}

uint64_t selftest_seed(const struct case_row *row, const char *op, const char *dtype,
                       enum value_profile profile, uint64_t seed)
{
    const char *word[] = {op, dtype, row->operands, row->attrs ? row->attrs : "",
                          profile_name(profile)};
    uint64_t key[2] = {seed, 0};

    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++)
        key[1] = hash_bytes_keyed(key, word[i], strlen(word[i]));
    return key[1];
}

rlx_str selftest_word(rlx_str *rest)
{
    while (rest->len && *rest->ptr == ' ')
        rest->ptr++, rest->len--;
    rlx_str word = {rest->ptr, 0};
    while (rest->len && *rest->ptr != ' ') {
        rest->ptr++, rest->len--;
        word.len++;
    }
    return word;
}

bool selftest_has_word(const char *list, const char *word)
{
    rlx_str rest = rlx_cstr(list), w;

    while ((w = selftest_word(&rest)).len)
        if (str_eq(w, rlx_cstr(word)))
            return true;
    return false;
}

static void parse_spec(rlx_str text, struct value_spec *out)
{
    static const struct {
        const char *name;
        enum value_kind kind;
    } kinds[] = {
        {"index=", KIND_INDEX},      {"valid=", KIND_VALID},      {"positive", KIND_POSITIVE},
        {"unit", KIND_UNIT},         {"spd", KIND_SPD},           {"triangle", KIND_TRIANGLE},
        {"distinct", KIND_DISTINCT}, {"bytes", KIND_BYTES},       {"log", KIND_LOG},
        {"turn", KIND_TURN},         {"camera", KIND_CAMERA},     {"small", KIND_SMALL},
        {"packed=", KIND_PACKED},    {"lowrank=", KIND_LOW_RANK}, {"repeated=", KIND_REPEATED},
        {"layer", KIND_LAYER}};

    *out = (struct value_spec){KIND_ANY, 0};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        rlx_str name = rlx_cstr(kinds[i].name);
        if (!str_starts(text, name))
            continue;
        rlx_str value = {text.ptr + name.len, text.len - name.len};
        int32_t scheme = 0;
        out->kind = kinds[i].kind;
        if (out->kind != KIND_PACKED)
            str_to_i64(value, &out->n);
        else if (enum_from_word("quant_scheme", value, &scheme))
            out->n = scheme;
    }
}

bool selftest_operand(rlx_str *rest, const char *dtype, struct case_operand *out)
{
    rlx_str word = selftest_word(rest);

    *out = (struct case_operand){.state = str_starts(word, STR("state:"))};
    if (word.len == 0)
        return false;
    if (out->state)
        word = (rlx_str){word.ptr + 6, word.len - 6};
    const char *colon = memchr(word.ptr, ':', word.len), *open = memchr(word.ptr, '[', word.len);
    const char *end = colon ? colon : word.ptr + word.len;
    open = open ? open : end;
    parse_spec(
        (rlx_str){colon ? colon + 1 : NULL, colon ? (size_t)(word.ptr + word.len - end - 1) : 0},
        &out->spec);
    out->dtype = (rlx_str){word.ptr, (size_t)(open - word.ptr)};
    out->shape = (rlx_str){open, (size_t)(end - open)};
    if (str_eq(out->dtype, STR("T")))
        out->dtype = rlx_cstr(dtype);
    return true;
}
