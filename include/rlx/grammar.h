/* grammar.h: grammars that say what a model may write, as masks of tokens.
 *
 *     rlx_grammar *g;
 *     rlx_grammar_state *s;
 *     rlx_grammar_from_schema(ctx, schema, &g, &err);
 *     rlx_grammar_state_create(g, tokenizer, &s, &err);
 *     while (!rlx_grammar_done(s)) {
 *         rlx_grammar_mask(s, bits, &err);           1 bit for each token that may come next
 *         ..                                         draw one of them
 *         rlx_grammar_accept(s, token, &err);
 *     }
 *
 * A grammar is a text in GBNF, or is made of a JSON schema: docs/grammars.md has both. It does not
 * change, and any number of threads may use it; a state belongs to one thread at a time. All of
 * them keep the context; states keep the grammar, but not the tokenizer, which must outlive them.
 */
#ifndef RLX_GRAMMAR_H
#define RLX_GRAMMAR_H

#ifndef RLX_UNSTABLE
#error "rlx/grammar.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlx_grammar rlx_grammar;
typedef struct rlx_grammar_state rlx_grammar_state;

/* ---- grammars ---------------------------------------------------------------------------- */

/* Of a text in GBNF. root: the rule that the text as a whole follows; "none": "root". FORMAT: line
 * and column of what is wrong, or the rule that begins with itself, never ends, or is not there.
 * LIMIT: it is too large. */
RLX_API rlx_status rlx_grammar_parse(rlx_context *ctx, rlx_str gbnf, rlx_str root,
                                     rlx_grammar **out, rlx_error *err);
/* Of a JSON schema: what follows the grammar is JSON that is valid by the schema. UNSUPPORTED: a
 * keyword that says more than is understood, by its name and place. */
RLX_API rlx_status rlx_grammar_from_schema(rlx_context *ctx, rlx_str json, rlx_grammar **out,
                                           rlx_error *err);
RLX_API void rlx_grammar_destroy(rlx_grammar *g); /* NULL is fine */
/* In GBNF, in memory of the grammar: the text that it was parsed from, or was made of a schema. */
RLX_API rlx_str rlx_grammar_text(const rlx_grammar *g);

/* ---- what may come next ------------------------------------------------------------------ */

/* At the start of a text. tokenizer NULL: for rlx_grammar_accept_bytes alone. */
RLX_API rlx_status rlx_grammar_state_create(rlx_grammar *g, const rlx_tokenizer *tokenizer,
                                            rlx_grammar_state **out, rlx_error *err);
/* Goes on from the same place by itself. The two share what they have computed so far, so a copy is
 * cheap: make one for each sequence. */
RLX_API rlx_status rlx_grammar_state_clone(const rlx_grammar_state *s, rlx_grammar_state **out,
                                           rlx_error *err);
RLX_API void rlx_grammar_state_destroy(rlx_grammar_state *s); /* NULL is fine */

/* Which tokens may come next: bit i % 32 of bits[i / 32] for token i, in (vocabulary + 31) / 32
 * words. Tokens that end what a model generates may come exactly where the text may end; other
 * control tokens, unknown and unused ones, and those without text never. Bytes of tokens are those
 * that they have in the middle of a text. STATE: the text has ended. UNSUPPORTED: no token of the
 * vocabulary can write what has to come. LIMIT: the grammar is too ambiguous to be followed. */
RLX_API rlx_status rlx_grammar_mask(rlx_grammar_state *s, uint32_t *bits, rlx_error *err);
/* The token was drawn. ARGUMENT: it may not come here, and the state stays as it was. */
RLX_API rlx_status rlx_grammar_accept(rlx_grammar_state *s, int32_t token, rlx_error *err);
/* The same for text, which may end inside a character. ARGUMENT: the first byte that may not. */
RLX_API rlx_status rlx_grammar_accept_bytes(rlx_grammar_state *s, rlx_str bytes, rlx_error *err);
/* May the text end here? */
RLX_API bool rlx_grammar_may_end(const rlx_grammar_state *s);
/* Is it complete, so that nothing can follow, or has a token ended it? */
RLX_API bool rlx_grammar_done(const rlx_grammar_state *s);

#ifdef __cplusplus
}
#endif
#endif
