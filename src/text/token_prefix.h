/* token_prefix.h: the bytes of all tokens, and a tree of them: what a walk that goes on byte by
 * byte, such as a grammar's, needs to find all tokens that it may take. */
#ifndef TEXT_TOKEN_PREFIX_H
#define TEXT_TOKEN_PREFIX_H

#include "base/str.h"
#include "text/text.h"

/* A node per byte, parents before children, siblings by their bytes. */
struct tok_prefix {
    uint32_t token : 24; /* whose bytes end here; TOK_NO_TOKEN: none */
    uint32_t byte : 8;
    uint32_t skip : 24; /* nodes below it, and itself */
    uint32_t depth : 8; /* bytes up to here, with this one */
};
enum { TOK_NO_TOKEN = 0xffffff, TOK_MOST_PREFIX = 255 };

struct tok_same { /* tokens with equal bytes: only the first is in the tree */
    uint32_t first, token;
};

/* Of a tokenizer, made when it is first wanted, and its as long as it lives. Tokens have the bytes
 * that they have in the middle of a text. Control tokens, unknown and unused ones have none; those
 * of more than TOK_MOST_PREFIX bytes are not in the tree. */
struct tok_prefixes {
    const rlx_allocator *mem;
    uint32_t vocab;
    struct tok_prefix *node;
    uint32_t nodes, room;
    uint32_t depth; /* of the longest */
    VEC(struct tok_same) same;
    VEC(uint32_t) ends; /* tokens that end a text */
    struct text bytes;
    uint32_t *at; /* where the bytes of each begin; vocab + 1 */
};
rlx_status tok_prefixes(const struct rlx_tokenizer *t, const struct tok_prefixes **out,
                        struct diag *d);
void tok_prefixes_free(struct tok_prefixes *p); /* NULL is fine */
rlx_str tok_bytes(const struct tok_prefixes *p, uint32_t id);

#endif
