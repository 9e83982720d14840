/* grammar.h: grammars, as the rest of the library sees them: rlx/grammar.h with arguments checked.
 */
#ifndef GRAMMAR_H
#define GRAMMAR_H

#include "base/diag.h"
#include "rlx/grammar.h"

/* root.len 0: "root". */
rlx_status gram_parse(rlx_str text, rlx_str root, const rlx_allocator *mem,
                      struct rlx_grammar **out, struct diag *d);
rlx_status gram_from_schema(rlx_str json, const rlx_allocator *mem, struct rlx_grammar **out,
                            struct diag *d);
struct rlx_grammar *gram_retain(struct rlx_grammar *g);
void gram_release(struct rlx_grammar *g); /* one reference; NULL is fine */

/* Keeps the grammar. t may be NULL. */
rlx_status gram_state_create(struct rlx_grammar *g, const struct rlx_tokenizer *t,
                             const rlx_allocator *mem, struct rlx_grammar_state **out,
                             struct diag *d);
rlx_status gram_state_clone(const struct rlx_grammar_state *s, struct rlx_grammar_state **out,
                            struct diag *d);
void gram_state_free(struct rlx_grammar_state *s); /* NULL is fine */
rlx_status gram_state_mask(struct rlx_grammar_state *s, uint32_t *bits, struct diag *d);
rlx_status gram_state_accept(struct rlx_grammar_state *s, int32_t token, struct diag *d);
rlx_status gram_state_bytes(struct rlx_grammar_state *s, rlx_str bytes, struct diag *d);
bool gram_state_may_end(const struct rlx_grammar_state *s);
bool gram_state_done(const struct rlx_grammar_state *s);

#endif
