/* json_tree.h: a JSON text as a tree, in an arena. */
#ifndef GRAMMAR_JSON_TREE_H
#define GRAMMAR_JSON_TREE_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
struct json_value {
    enum json_kind kind;
    rlx_str text; /* of a string: what it says; of a number, true, false and null: as written */
    struct json_member *member; /* of an array and an object, in order */
    size_t count;
};
struct json_member {
    rlx_str key; /* of an object; a key that comes twice is FORMAT */
    struct json_value *value;
};

enum { JSON_MOST_DEPTH = 64 };
/* what: whose JSON it is, for messages. The text is kept. */
rlx_status json_tree_read(rlx_str text, const char *what, struct arena *arena,
                          const rlx_allocator *mem, struct json_value **out, struct diag *d);
/* The value of that key; NULL: there is none, or v is no object. */
struct json_value *json_tree_get(const struct json_value *v, rlx_str key);
bool json_tree_same(const struct json_value *a, const struct json_value *b);
/* As JSON without spaces. */
void json_tree_write(const struct json_value *v, struct text *out);

#endif
