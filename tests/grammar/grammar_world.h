/* grammar_world.h: what tests of grammars share: a context with a grammar, and texts tried on it.
 */
#ifndef TESTS_GRAMMAR_WORLD_H
#define TESTS_GRAMMAR_WORLD_H

#include <string.h>

#include "rlx/grammar.h"
#include "text/text_world.h" /* of tests/ */

struct trial {
    rlx_context *ctx;
    rlx_grammar *grammar;
    rlx_grammar_state *start;
    rlx_error err;
};

/* false: err says why. */
static inline bool trial_begin(struct test *t, struct trial *r, const char *text, bool schema)
{
    *r = (struct trial){.ctx = text_context(t, NULL)};
    rlx_status s = schema ? rlx_grammar_from_schema(r->ctx, rlx_cstr(text), &r->grammar, &r->err)
                          : rlx_grammar_parse(r->ctx, rlx_cstr(text), (rlx_str){NULL, 0},
                                              &r->grammar, &r->err);
    if (s == RLX_OK)
        s = rlx_grammar_state_create(r->grammar, NULL, &r->start, &r->err);
    return s == RLX_OK;
}

static inline void trial_end(struct trial *r)
{
    rlx_grammar_state_destroy(r->start);
    rlx_grammar_destroy(r->grammar);
    rlx_context_destroy(r->ctx);
}

enum verdict { REFUSED, BEGUN, WHOLE }; /* it may not come; more has to; it is complete */
static inline enum verdict trial_text(struct trial *r, rlx_str text)
{
    rlx_grammar_state *s;
    enum verdict v = REFUSED;

    if (rlx_grammar_state_clone(r->start, &s, NULL) != RLX_OK)
        return REFUSED;
    if (rlx_grammar_accept_bytes(s, text, NULL) == RLX_OK)
        v = rlx_grammar_may_end(s) ? WHOLE : BEGUN;
    rlx_grammar_state_destroy(s);
    return v;
}

/* Texts that are whole, and texts that are not, each list ended by NULL. */
static inline void try_texts(struct test *t, const char *grammar, bool schema,
                             const char *const *good, const char *const *bad)
{
    struct trial r;

    test_note(t, "%.200s", grammar);
    if (!trial_begin(t, &r, grammar, schema))
        fail(t, "%s", r.err.message);
    else {
        for (; *good; good++)
            if (trial_text(&r, rlx_cstr(*good)) != WHOLE)
                fail(t, "\"%s\" was not taken", *good);
        for (; *bad; bad++)
            if (trial_text(&r, rlx_cstr(*bad)) == WHOLE)
                fail(t, "\"%s\" was taken", *bad);
    }
    trial_end(&r);
    test_note(t, "%s", "");
}
#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_TEXTS ((const char *const[]){NULL})

#endif
