/* str.h: string views, and text that is built piece by piece. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/mem.h"

#define STR(literal) ((rlx_str){(literal), sizeof(literal) - 1})
/* For "%.*s". */
#define STR_ARG(s) (int)((s).len < INT32_MAX ? (s).len : INT32_MAX), (s).ptr

bool str_eq(rlx_str a, rlx_str b);
bool str_starts(rlx_str s, rlx_str prefix);
bool str_ends(rlx_str s, rlx_str suffix);
int str_cmp(rlx_str a, rlx_str b); /* by bytes, as strcmp */

/* UTF-8: no overlong forms, no surrogates, up to U+10FFFF. */
bool str_is_utf8(rlx_str s);
size_t str_utf8_step(rlx_str s); /* bytes of the character at the front; 0: none, or not UTF-8 */

/* The whole text as a number, or false and *out untouched. '-' may lead, '+' or a space may not. */
bool str_to_i64(rlx_str s, int64_t *out); /* decimal, in range */
/* "12", "-.5e-3", "1.", "nan", "inf", "-inf". Correctly rounded, whatever the locale. Too small
 * gives 0; too large is false, as nobody who means infinity writes 1e999. */
bool str_to_f64(rlx_str s, double *out);

/* Shortest decimal text that reads back as the same float; returns its length, at most 31, and ends
 * it with a NUL. "0.1", "1000", "1e-5", "-0", "nan", "inf", "-inf", whatever the locale. */
size_t str_from_f32(char out[32], float v);
size_t str_from_f64(char out[32], double v);

/* Text under construction. After a failed allocation it only remembers the failure: go on adding,
 * and look at `failed` once at the end. */
struct text {
    const rlx_allocator *mem;
    char *at; /* NUL-terminated once something was added, if only "" */
    size_t len, cap;
    bool failed;
};
void text_init(struct text *t, const rlx_allocator *mem);
void text_add(struct text *t, rlx_str s);
/* For floats use str_from_f32: a "%g" follows the process's locale. */
void text_addf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What was added since `start` becomes one line: names are a stranger's, and a line break in one
 * must not make two of it. */
void text_end_line(struct text *t, size_t start);
void text_free(struct text *t);

#endif
