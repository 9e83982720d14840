/* parse.h: what the files of the parser share. Functions return NULL after a failure, which is
 * kept; every caller goes on to its end with that. */
#ifndef KERNEL_PARSE_H
#define KERNEL_PARSE_H

#include "kernel/syntax.h"

struct kc_parser {
    struct kc_program *program;
    struct kc_file *file;
    struct kc_lexer lex;
    struct kc_token token; /* the next one */
    uint32_t brackets;     /* open ones: a line's end means nothing inside */
    uint32_t depth;
    rlx_status status;
};

void kc_advance(struct kc_parser *p);
void kc_expected(struct kc_parser *p, const char *what); /* a failure at the next token */
void kc_parse_fail(struct kc_parser *p, uint32_t at, const char *message);
static inline bool kc_failed(const struct kc_parser *p)
{
    return p->status != RLX_OK;
}
bool kc_is(const struct kc_parser *p, const char *text); /* punctuation or a word */
bool kc_take(struct kc_parser *p, const char *text);     /* and past it */
bool kc_need(struct kc_parser *p, const char *text);     /* or fail */
rlx_str kc_need_name(struct kc_parser *p, const char *what);
/* Nesting is bounded: the source may be anybody's. */
bool kc_enter(struct kc_parser *p);
void kc_leave(struct kc_parser *p);
void *kc_new(struct kc_parser *p, size_t bytes);
#define KC_NEW(p, T) ((T *)kc_new((p), sizeof(T)))

struct kc_tree *kc_parse_expr(struct kc_parser *p);
/* A number or a name: what may stand between < and >. */
struct kc_tree *kc_parse_literal(struct kc_parser *p);
struct kc_type_tree *kc_parse_type(struct kc_parser *p);
struct kc_stmt *kc_parse_block(struct kc_parser *p);
bool kc_is_type_word(rlx_str name); /* vec, matrix_a, ...: takes <..> in an expression too */

#endif
