/* fixed_rules.c: rules that every schema shares: any JSON, and texts of a known format. */
#include "grammar/schema.h"

/* Each after those that it needs. After a bracket, comma or colon there may be a space, or a line
 * may end: a model that wants to go on with spaces has to stop. */
static const struct {
    const char *name, *body;
} rules[] = {
    {"ws", "(\" \" | \"\\n\" [ \\t]{0,20})?"},
    {"hex", "[0-9a-fA-F]"},
    {"escape", "\"\\\\\" ([\"\\\\/bfnrt] | \"u\" ([0-9abcefABCEF] hex{3} | [dD] ([0-7] hex{2} | "
               "[89abAB] hex{2} \"\\\\u\" [dD] [c-fC-F] hex{2})))"},
    {"key-char", "[^\"\\\\\\x00-\\x1f]"},
    {"char", "key-char | escape"},
    {"string", "\"\\\"\" char* \"\\\"\""},
    {"integer", "\"0\" | \"-\"? [1-9] [0-9]{0,15}"},
    {"number", "\"-\"? (\"0\" | [1-9] [0-9]{0,15}) (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?"},
    {"boolean", "\"true\" | \"false\""},
    {"null", "\"null\""},
    {"object", "\"{\" ws (string \":\" ws value (\",\" ws string \":\" ws value)* ws)? \"}\""},
    {"array", "\"[\" ws (value (\",\" ws value)* ws)? \"]\""},
    {"value", "object | array | string | number | boolean | null"},
    /* February has 28 days: a grammar does not know which years leap. */
    {"date", "[0-9]{4} \"-\" ((\"0\" [13578] | \"1\" [02]) \"-\" (\"0\" [1-9] | [12] [0-9] | \"3\" "
             "[01]) | (\"0\" [469] | \"11\") \"-\" (\"0\" [1-9] | [12] [0-9] | \"30\") | \"02-\" "
             "(\"0\" [1-9] | \"1\" [0-9] | \"2\" [0-8]))"},
    {"time", "([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9] \":\" [0-5] [0-9] (\".\" [0-9]{1,9})? "
             "(\"Z\" | [-+] ([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9])"},
    {"date-time", "date \"T\" time"},
    {"uuid", "hex{8} \"-\" hex{4} \"-\" hex{4} \"-\" hex{4} \"-\" hex{12}"},
};
enum { RULES = sizeof rules / sizeof *rules };
_Static_assert(RULES <= 32, "they are bits of a word");

static const struct {
    const char *name, *needs[7];
} needs[] = {
    {"escape", {"hex"}},
    {"char", {"key-char", "escape"}},
    {"string", {"char"}},
    {"object", {"value"}},
    {"array", {"value"}},
    {"value", {"ws", "object", "array", "string", "number", "boolean", "null"}},
    {"date-time", {"date", "time"}},
    {"uuid", {"hex"}},
};

static bool is(const char *a, const char *b)
{
    return str_eq(rlx_cstr(a), rlx_cstr(b));
}

rlx_str schema_fixed(struct schema *c, const char *name)
{
    size_t i = 0;

    while (!is(rules[i].name, name))
        i++;
    if (c->fixed >> i & 1)
        return rlx_cstr(name);
    c->fixed |= UINT32_C(1) << i;
    for (i = 0; i < sizeof needs / sizeof *needs; i++)
        for (size_t k = 0; is(needs[i].name, name) && k < 7 && needs[i].needs[k]; k++)
            schema_fixed(c, needs[i].needs[k]);
    return rlx_cstr(name);
}

void schema_write_fixed(const struct schema *c, struct text *out)
{
    for (size_t i = 0; i < RULES; i++)
        if (c->fixed >> i & 1)
            text_addf(out, "%s ::= %s\n", rules[i].name, rules[i].body);
}
