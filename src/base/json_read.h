/* json_read.h: JSON, read piece by piece by a caller that knows what should come next.
 *
 *     TRY(json_read_open(&j, '{'));
 *     for (bool first = true, more;; first = false) {
 *         TRY(json_read_more(&j, '}', first, &more));
 *         if (!more)
 *             break;
 *         TRY(json_read_key(&j, &key));
 *         TRY(json_read_u64(&j, &value));
 *     }
 *
 * Anything unexpected is FORMAT, with its byte offset. */
#ifndef BASE_JSON_READ_H
#define BASE_JSON_READ_H

#include "base/arena.h"
#include "base/diag.h"

struct json_in {
    rlx_str text; /* UTF-8; not changed while it is read */
    size_t pos;
    size_t offset; /* of the text in its file, for messages */
    int depth, max_depth;
    const char *what; /* whose JSON it is, for messages: "safetensors" */
    struct arena *arena;
    struct diag *d;
};

rlx_status json_read_open(struct json_in *j, char bracket); /* '{' or '[' */
/* Is there another member or element, or was that the closing bracket? first: none was read yet. */
rlx_status json_read_more(struct json_in *j, char closing, bool first, bool *more);
rlx_status json_read_key(struct json_in *j, rlx_str *out); /* with its colon */
/* A view of the text, or in the arena where it holds escapes. */
rlx_status json_read_string(struct json_in *j, rlx_str *out);
/* Digits alone: no sign, fraction, exponent or leading zero. */
rlx_status json_read_u64(struct json_in *j, uint64_t *out);
/* The next character that is not a space, which is left there; 0: there is none. */
char json_read_peek(struct json_in *j);
/* null, true, false, or a number: an integer where it is written as one and fits. */
struct json_word {
    enum { JSON_WORD_NULL, JSON_WORD_BOOL, JSON_WORD_INT, JSON_WORD_FLOAT } kind;
    bool b;
    int64_t i;
    double f;
};
rlx_status json_read_word(struct json_in *j, struct json_word *out);
rlx_status json_read_skip(struct json_in *j); /* a value of any kind */
rlx_status json_read_end(struct json_in *j);  /* nothing but spaces is left */
/* For a caller that finds something wrong with what it read: "safetensors: byte 12: ...". */
rlx_status json_read_bad(struct json_in *j, const char *what);

#endif
