/* state.c: how far a text has come. */
#include "grammar/machine.h"

#include <string.h>

/* ---- made and freed ---------------------------------------------------------------------- */

/* Puts the state into its machine, whose lock is held. */
static void enter(struct rlx_grammar_state *s, struct gram_machine *m)
{
    s->machine = m;
    s->before = NULL;
    s->after = m->states;
    if (m->states)
        m->states->before = s;
    m->states = s;
    m->refs++;
}

static void arrive(struct rlx_grammar_state *s, uint32_t config)
{
    const struct gram_config *c = &s->machine->store.config.at[config];

    s->config = config;
    s->may_end = c->may_end;
    s->can_go_on = c->count > 0;
}

rlx_status gram_state_create(struct rlx_grammar *g, const struct rlx_tokenizer *t,
                             const rlx_allocator *mem, struct rlx_grammar_state **out,
                             struct diag *d)
{
    const struct tok_prefixes *tokens = NULL;
    struct gram_machine *m;

    if (t)
        TRY(tok_prefixes(t, &tokens, d));
    TRY(gram_machine_create(g, tokens, mem, &m, d));
    struct rlx_grammar_state *s = mem_alloc(mem, sizeof *s);
    rlx_status status = s ? gram_begin(m, d) : diag_no_memory(d, sizeof *s);
    if (status != RLX_OK) {
        mem_free(mem, s, sizeof *s);
        gram_machine_free(m);
        return status;
    }
    enter(s, m);
    arrive(s, m->path.at[0]);
    *out = s;
    return RLX_OK;
}

rlx_status gram_state_clone(const struct rlx_grammar_state *s, struct rlx_grammar_state **out,
                            struct diag *d)
{
    struct gram_machine *m = s->machine;
    struct rlx_grammar_state *copy = mem_alloc(m->mem, sizeof *copy);

    if (!copy)
        return diag_no_memory(d, sizeof *copy);
    pthread_mutex_lock(&m->lock);
    *copy = *s;
    enter(copy, m);
    pthread_mutex_unlock(&m->lock);
    *out = copy;
    return RLX_OK;
}

void gram_state_free(struct rlx_grammar_state *s)
{
    if (!s)
        return;
    struct gram_machine *m = s->machine;
    pthread_mutex_lock(&m->lock);
    if (s->before)
        s->before->after = s->after;
    else
        m->states = s->after;
    if (s->after)
        s->after->before = s->before;
    const bool last = --m->refs == 0;
    pthread_mutex_unlock(&m->lock);
    mem_free(m->mem, s, sizeof *s);
    if (last)
        gram_machine_free(m);
}

/* ---- what comes -------------------------------------------------------------------------- */

/* Places of paths that are left over keep nothing alive. */
static void begin_path(struct rlx_grammar_state *s)
{
    struct gram_machine *m = s->machine;

    memset(m->path.at, 0, m->path.len * sizeof *m->path.at);
    m->path.at[0] = s->config;
    m->steps = 0;
}

static rlx_status follow(struct rlx_grammar_state *s, rlx_str bytes, struct diag *d)
{
    struct gram_machine *m = s->machine;

    begin_path(s);
    for (size_t i = 0; i < bytes.len; i++) {
        TRY(gram_step(m, 0, (uint8_t)bytes.ptr[i], d));
        if (m->path.at[1] == GRAM_DEAD)
            return diag_fail(d, RLX_ERROR_ARGUMENT,
                             "byte %zu, 0x%02x, of \"%.*s\" may not come there by the grammar", i,
                             (unsigned char)bytes.ptr[i], STR_ARG(bytes));
        m->path.at[0] = m->path.at[1];
        m->steps = 0;
    }
    arrive(s, m->path.at[0]);
    return RLX_OK;
}

rlx_status gram_state_bytes(struct rlx_grammar_state *s, rlx_str bytes, struct diag *d)
{
    if (s->ended)
        return diag_fail(d, RLX_ERROR_STATE, "the text has ended");
    pthread_mutex_lock(&s->machine->lock);
    rlx_status status = follow(s, bytes, d);
    pthread_mutex_unlock(&s->machine->lock);
    return status;
}

static bool ends(const struct tok_prefixes *p, uint32_t token)
{
    for (size_t i = 0; i < p->ends.len; i++)
        if (p->ends.at[i] == token)
            return true;
    return false;
}

static rlx_status need_tokens(const struct rlx_grammar_state *s, struct diag *d)
{
    if (s->ended)
        return diag_fail(d, RLX_ERROR_STATE, "the text has ended");
    if (!s->machine->tokens)
        return diag_fail(d, RLX_ERROR_STATE, "this state was made without a tokenizer");
    return RLX_OK;
}

rlx_status gram_state_accept(struct rlx_grammar_state *s, int32_t token, struct diag *d)
{
    TRY(need_tokens(s, d));
    const struct tok_prefixes *p = s->machine->tokens;
    if (token < 0 || (uint32_t)token >= p->vocab)
        return diag_fail(d, RLX_ERROR_INDEX, "id %d: the vocabulary has %u tokens", token,
                         p->vocab);
    if (ends(p, (uint32_t)token)) {
        if (!s->may_end)
            return diag_fail(d, RLX_ERROR_ARGUMENT,
                             "token %d ends the text, which the grammar does not allow here",
                             token);
        s->ended = true;
        return RLX_OK;
    }
    const rlx_str bytes = tok_bytes(p, (uint32_t)token);
    if (!bytes.len || bytes.len > TOK_MOST_PREFIX)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "token %d is never allowed by a grammar: it is %s",
                         token, bytes.len ? "too long" : "special, or has no text");
    return gram_state_bytes(s, bytes, d);
}

static rlx_status write_mask(struct rlx_grammar_state *s, uint32_t *bits, struct diag *d)
{
    const struct tok_prefixes *p = s->machine->tokens;
    const struct gram_mask *mask;

    begin_path(s);
    TRY(gram_find_mask(s->machine, &mask, d));
    if (!mask->any && !(s->may_end && p->ends.len))
        return s->may_end ? diag_fail(d, RLX_ERROR_STATE,
                                      "the text is complete, and the vocabulary has no token that "
                                      "ends one")
                          : diag_fail(d, RLX_ERROR_UNSUPPORTED,
                                      "no token of the vocabulary can write what the grammar wants "
                                      "next");
    memcpy(bits, mask->bits, (p->vocab + 31) / 32 * sizeof *bits);
    for (size_t i = 0; s->may_end && i < p->ends.len; i++)
        bits[p->ends.at[i] / 32] |= UINT32_C(1) << p->ends.at[i] % 32;
    return RLX_OK;
}

rlx_status gram_state_mask(struct rlx_grammar_state *s, uint32_t *bits, struct diag *d)
{
    TRY(need_tokens(s, d));
    pthread_mutex_lock(&s->machine->lock);
    rlx_status status = write_mask(s, bits, d);
    pthread_mutex_unlock(&s->machine->lock);
    return status;
}

bool gram_state_may_end(const struct rlx_grammar_state *s)
{
    return s->may_end || s->ended;
}

bool gram_state_done(const struct rlx_grammar_state *s)
{
    return s->ended || (s->may_end && !s->can_go_on);
}
