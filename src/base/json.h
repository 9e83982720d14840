/* json.h: writing JSON with escapes and commas in the right places. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/str.h"

struct json {
    struct text *out; /* says whether memory ran out */
    bool need_comma;
    int depth; /* brackets open */
};
void json_init(struct json *j, struct text *out);
void json_open(struct json *j, char bracket);  /* '{' or '[' */
void json_close(struct json *j, char bracket); /* '}' or ']' */
void json_key(struct json *j, const char *key);
void json_str(struct json *j, rlx_str s); /* "none" becomes null, bytes that are not UTF-8 U+FFFD */
void json_i64(struct json *j, int64_t v);
void json_f64(struct json *j, double v); /* NaN and Inf become null */
void json_bool(struct json *j, bool v);

#endif
