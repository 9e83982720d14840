/* op.c: ops.def and enums.def as tables, and look-ups in them. */
#include "ir/op.h"

#include <string.h>

#include "base/map.h"
#include "base/str.h"

#define MANY (-1)
static const struct op_info op_table[RLX_OP_count] = {
    [RLX_OP_none] = {"none", FAMILY_none, CATEGORY_IO, 0, 0, "", 0, "no op"},
#define OP(name, family, category, lo, hi, inputs, flags, summary, number) \
    [RLX_OP_##name] = {#name, FAMILY_##family, CATEGORY_##category, lo, hi, inputs, flags, summary},
#include "ir/ops.def"
};

static const struct family_info family_table[FAMILY_count] = {
    [FAMILY_none] = {"none", PRECISION_DECLARED, TOLERANCE_EXACT, 0},
#define FAMILY(name, rule, precision, cost, tolerance, traits) \
    [FAMILY_##name] = {#name, PRECISION_##precision, TOLERANCE_##tolerance, traits},
#include "ir/ops.def"
};

static const struct {
    enum operand_role role;
    const char *operand;
} role_table[] = {
#define ROLE(family, operand, role) {ROLE_##role, #operand},
#include "ir/ops.def"
};

/* By op: its own class plus 1; 0: its family's. */
static const uint8_t tolerance_table[RLX_OP_count] = {
#define TOLERANCE(op, tolerance) [RLX_OP_##op] = TOLERANCE_##tolerance + 1,
#include "ir/ops.def"
};

/* Where each family's rows begin in attr_table: a family takes the number of the next row and gives
 * it back, so that the rows themselves are numbered without gaps. */
enum {
    ROW_none,
    ROW_BEFORE_none = -1,
#define FAMILY(name, ...) ROW_##name, ROW_BEFORE_##name = ROW_##name - 1,
#define ATTR(family, field, kind, def) ROW_##family##_##field,
#define ENUM_ATTR(family, field, words, def) ROW_##family##_##field,
#include "ir/ops.def"
    ROW_COUNT
};

static const struct attr_info attr_table[] = {
#define ATTR(family, field, kind, def) \
    {#field, ATTR_##kind, NULL, #def, offsetof(union ir_attr, family.field)},
#define ENUM_ATTR(family, field, words, def) \
    {#field, ATTR_ENUM, #words, #def, offsetof(union ir_attr, family.field)},
#include "ir/ops.def"
};
_Static_assert(sizeof attr_table / sizeof attr_table[0] == ROW_COUNT, "rows and numbers agree");

static const int family_row[FAMILY_count + 1] = {
    [FAMILY_none] = 0,
#define FAMILY(name, ...) [FAMILY_##name] = ROW_##name,
#include "ir/ops.def"
    [FAMILY_count] = ROW_COUNT,
};

/* The same for role_table. */
enum {
    ROLE_ROW_none,
    ROLE_ROW_BEFORE_none = -1,
#define FAMILY(name, ...) ROLE_ROW_##name, ROLE_ROW_BEFORE_##name = ROLE_ROW_##name - 1,
#define ROLE(family, operand, role) ROLE_ROW_##family##_##operand,
#include "ir/ops.def"
    ROLE_ROW_COUNT
};
_Static_assert(sizeof role_table / sizeof role_table[0] == ROLE_ROW_COUNT,
               "rows and numbers agree");

static const int family_role[FAMILY_count + 1] = {
    [FAMILY_none] = 0,
#define FAMILY(name, ...) [FAMILY_##name] = ROLE_ROW_##name,
#include "ir/ops.def"
    [FAMILY_count] = ROLE_ROW_COUNT,
};

static const struct {
    const char *words, *word;
    int32_t number;
} word_table[] = {
#define WORD(name, word, number) {#name, #word, number},
#include "ir/enums.def"
};
#define WORD_COUNT (sizeof word_table / sizeof word_table[0])

const struct op_info *op_info(rlx_op op)
{
    return &op_table[(unsigned)op < RLX_OP_count ? op : RLX_OP_none];
}

const struct family_info *family_info(enum op_family f)
{
    return &family_table[(unsigned)f < FAMILY_count ? f : FAMILY_none];
}

const char *family_name(enum op_family f)
{
    return family_info(f)->name;
}

/* The next word of an op's list of names, without brackets; len 0: there is none. */
static rlx_str next_name(const char **at, bool *bracketed)
{
    const char *p = *at;

    while (*p == ' ' || *p == '[' || *p == ']') {
        if (*p != ' ')
            *bracketed = *p == '[';
        p++;
    }
    rlx_str name = {p, strcspn(p, " []")};
    *at = p + name.len;
    return name;
}

int32_t op_input_names(rlx_op op)
{
    const char *p = op_info(op)->inputs;
    bool bracketed = false;
    int32_t count = 0;

    while (next_name(&p, &bracketed).len)
        count++;
    return count;
}

/* Names in brackets are there together or not at all; with only some of them, positions from the
 * first bracket on have no certain name. */
rlx_str op_input_name(rlx_op op, int32_t operand, int32_t in_count)
{
    const struct op_info *o = op_info(op);
    int32_t total = 0, optional = 0, at = 0;
    bool bracketed = false;
    const char *p = o->inputs;
    rlx_str name, last = {NULL, 0};

    while ((name = next_name(&p, &bracketed)).len) {
        last = name;
        total++;
        optional += bracketed;
    }
    if (o->inputs_max < 0 && operand >= total - 1)
        return last; /* it repeats */
    p = o->inputs;
    bracketed = false;
    while ((name = next_name(&p, &bracketed)).len) {
        if (bracketed && in_count < total) {
            if (in_count != total - optional)
                break;
            continue;
        }
        if (at++ == operand)
            return name;
    }
    return (rlx_str){0};
}

enum operand_role op_input_role(rlx_op op, int32_t operand, int32_t in_count)
{
    enum op_family family = op_info(op)->family;
    int row = family_role[family], end = family_role[family + 1];

    if (row == end)
        return ROLE_PLAIN;
    rlx_str name = op_input_name(op, operand, in_count);
    for (; row < end; row++)
        if (str_eq(name, rlx_cstr(role_table[row].operand)))
            return role_table[row].role;
    return ROLE_PLAIN;
}

enum tolerance_class op_tolerance(rlx_op op)
{
    const struct op_info *o = op_info(op);
    uint8_t own = tolerance_table[(unsigned)op < RLX_OP_count ? op : RLX_OP_none];

    return own ? (enum tolerance_class)(own - 1) : family_info(o->family)->tolerance;
}

const struct attr_info *family_attrs(enum op_family f, size_t *count)
{
    *count = (size_t)(family_row[f + 1] - family_row[f]);
    return attr_table + family_row[f];
}

bool op_from_name(rlx_str name, rlx_op *out)
{
    if (name.len == 0)
        return false;
    for (int op = RLX_OP_none + 1; op < RLX_OP_count; op++) {
        const char *known = op_table[op].name;
        /* Defaults of attributes are looked up for every node: most names differ at once. */
        if (known[0] == name.ptr[0] && str_eq(name, rlx_cstr(known))) {
            *out = (rlx_op)op;
            return true;
        }
    }
    return false;
}

bool enum_from_word(const char *words, rlx_str word, int32_t *out)
{
    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (strcmp(word_table[i].words, words) == 0 && str_eq(word, rlx_cstr(word_table[i].word))) {
            *out = word_table[i].number;
            return true;
        }
    }
    return false;
}

const char *enum_word(const char *words, int32_t value)
{
    for (size_t i = 0; i < WORD_COUNT; i++)
        if (word_table[i].number == value && strcmp(word_table[i].words, words) == 0)
            return word_table[i].word;
    return NULL;
}
