/* schema.h: what the files that turn a JSON schema into GBNF share.
 *
 * Each part of the schema becomes a rule, or is one of those that are always the same ("string").
 * What a grammar allows is valid by the schema; it may allow less: keys in their order, few spaces,
 * numbers of up to 16 digits. */
#ifndef GRAMMAR_SCHEMA_H
#define GRAMMAR_SCHEMA_H

#include "base/map.h"
#include "grammar/json_tree.h"
#include "grammar/program.h"

/* Where in the document something is, for messages. */
struct schema_place {
    const struct schema_place *up; /* NULL: the document, or the part that key refers to */
    rlx_str key;
};

struct schema_ref { /* a part that a $ref names */
    const struct json_value *target;
    rlx_str pointer; /* "#/$defs/x" */
    size_t rule;
};

struct schema_rule {
    rlx_str name;
    struct text body;
};

struct schema {
    const rlx_allocator *mem;
    struct arena arena;
    struct json_value *document;
    VEC(struct schema_rule) rule;
    VEC(struct schema_ref) ref;
    struct map by_target; /* refs */
    uint32_t fixed;       /* rules that are always the same, and are needed: bits */
    size_t effort;        /* members of trees that were made so far */
    uint32_t depth;
    struct diag *d;
};
enum { SCHEMA_MOST_DEPTH = 200, SCHEMA_MOST_EFFORT = 1 << 22 };

/* schema.c */
/* A failure at that place; it returns the status, as diag_fail does. */
rlx_status schema_bad(const struct schema *c, const struct schema_place *at, rlx_status status,
                      const char *fmt, ...) __attribute__((format(printf, 4, 5)));
#define schema_bad(c, at, status, ...)                                  \
    (__extension__({                                                    \
        (schema_bad)((c), (at), (status), __VA_ARGS__);                 \
        (status) == RLX_OK ? RLX_ERROR_INTERNAL : (rlx_status)(status); \
    }))
/* An empty rule; its name begins with hint, or is "root" for the first. */
rlx_status schema_rule(struct schema *c, rlx_str hint, size_t *rule);
static inline rlx_str schema_name(const struct schema *c, size_t rule)
{
    return c->rule.at[rule].name;
}
void schema_put(struct schema *c, size_t rule, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void schema_put_literal(struct schema *c, size_t rule, rlx_str text); /* in quotes */
void schema_put_json(struct schema *c, size_t rule, const struct json_value *v);
/* The name of the rule for that part of a schema. */
rlx_status schema_visit(struct schema *c, const struct json_value *v, const struct schema_place *at,
                        rlx_str hint, rlx_str *name);
/* A keyword that counts. FORMAT: it is no integer of at least 0. LIMIT: it is a least that is above
 * GRAM_MOST_REPEATS; a most becomes that. Without the keyword *out stays. */
rlx_status schema_count(const struct schema *c, const struct json_value *v, const char *key,
                        bool least, const struct schema_place *at, uint32_t *out);

/* fixed_rules.c: the name of a rule that is always the same, which is then needed. */
rlx_str schema_fixed(struct schema *c, const char *name);
void schema_write_fixed(const struct schema *c, struct text *out);

/* schema_merge.c: a schema that wants what both want. */
rlx_status schema_merge(struct schema *c, const struct json_value *a, const struct json_value *b,
                        const struct schema_place *at, struct json_value **out);
/* A copy without one key. */
rlx_status schema_without(struct schema *c, const struct json_value *v, rlx_str key,
                          struct json_value **out);
/* What a $ref names. */
rlx_status schema_resolve(struct schema *c, const struct json_value *ref,
                          const struct schema_place *at, struct json_value **out);

/* By type; each writes what may stand there. */
rlx_status schema_object(struct schema *c, size_t rule, const struct json_value *v,
                         const struct schema_place *at);
rlx_status schema_array(struct schema *c, size_t rule, const struct json_value *v,
                        const struct schema_place *at);
rlx_status schema_string(struct schema *c, size_t rule, const struct json_value *v,
                         const struct schema_place *at);
rlx_status schema_number(struct schema *c, size_t rule, const struct json_value *v, bool integer,
                         const struct schema_place *at);
/* schema_pattern.c: a pattern, as the inside of a JSON string. */
rlx_status schema_pattern(struct schema *c, size_t rule, rlx_str pattern,
                          const struct schema_place *at);
/* schema_keys.c: a string that is none of the names. */
rlx_status schema_other_keys(struct schema *c, const rlx_str *names, size_t count,
                             const struct schema_place *at, rlx_str *out);

#endif
