/* sequence.c: a text that a model reads and writes: its tokens, and what was computed of them. */
#include <string.h>

#include "base/desc.h"
#include "base/mem.h"
#include "llm/engine.h"
#include "llm/sampler.h"

/* ---- memory ------------------------------------------------------------------------------- */

static size_t logits_bytes(const rlx_llm *m)
{
    return llm_most_rows(m) * (size_t)m->spec.vocab * sizeof(float);
}

static size_t table_bytes(const rlx_llm *m, int r)
{
    return m->turns_used[r] ? llm_table_count(&m->turns[r], m->desc.chunk) * sizeof(float) : 0;
}

static size_t id_bytes(const rlx_llm *m)
{
    return (size_t)m->desc.context * sizeof(int32_t);
}

static size_t position_bytes(const rlx_llm *m)
{
    return (size_t)m->desc.chunk * sizeof(int32_t);
}

static size_t pick_bytes(const rlx_llm *m)
{
    return llm_most_rows(m) * sizeof(int32_t);
}

static size_t temper_bytes(const rlx_llm *m)
{
    return (size_t)m->desc.chunk * sizeof(float);
}

static rlx_status get_memory(rlx_sequence *s, struct diag *d)
{
    const rlx_allocator *a = mem_default();
    bool fine = (s->id = mem_alloc(a, id_bytes(s->m))) &&
                (s->logits = mem_alloc(a, logits_bytes(s->m))) &&
                (s->pick = mem_alloc(a, pick_bytes(s->m))) &&
                (s->position = mem_alloc(a, position_bytes(s->m))) &&
                (s->temper = mem_alloc(a, temper_bytes(s->m)));

    for (int r = 0; fine && r < LLM_ROPES; r++)
        if (s->m->turns_used[r])
            fine = (s->cos[r] = mem_alloc(a, table_bytes(s->m, r))) &&
                   (s->sin[r] = mem_alloc(a, table_bytes(s->m, r)));
    return fine ? RLX_OK : diag_no_memory(d, logits_bytes(s->m));
}

static rlx_sequence *new_sequence(rlx_llm *m, struct diag *d)
{
    rlx_sequence *s = mem_alloc(mem_default(), sizeof *s);

    if (!s) {
        (diag_no_memory)(d, sizeof *s);
        return NULL;
    }
    s->m = m;
    if (get_memory(s, d) == RLX_OK)
        return s;
    rlx_sequence_destroy(s);
    return NULL;
}

rlx_status rlx_sequence_create(rlx_llm *m, rlx_sequence **out, rlx_error *err)
{
    rlx_error inner;
    struct diag d;

    diag_init(&d, "llm");
    if (!m || !out) {
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "out" : "m");
        return diag_report(&d, err);
    }
    if (m->gives_vectors) {
        (diag_fail)(&d, RLX_ERROR_UNSUPPORTED,
                    "%s: the model gives vectors of texts (rlx embed), and does not go on with one",
                    m->spec.arch->name);
        return diag_report(&d, err);
    }
    rlx_sequence *s = new_sequence(m, &d);
    if (s && rlx_session_create(m->model, m->device, NULL, &s->session, &inner) != RLX_OK)
        diag_again(&d, &inner, inner.status);
    if (d.count == 0)
        *out = s;
    else
        rlx_sequence_destroy(s);
    return diag_report(&d, err);
}

rlx_status rlx_sequence_fork(rlx_sequence *from, rlx_sequence **out, rlx_error *err)
{
    rlx_error inner;
    struct diag d;

    diag_init(&d, "llm");
    if (!from || !out) {
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "%s is NULL", from ? "out" : "s");
        return diag_report(&d, err);
    }
    rlx_sequence *s = new_sequence(from->m, &d);
    if (s && rlx_session_clone(from->session, 0, &s->session, &inner) != RLX_OK)
        diag_again(&d, &inner, inner.status);
    if (d.count) {
        rlx_sequence_destroy(s);
        return diag_report(&d, err);
    }
    memcpy(s->id, from->id, id_bytes(from->m));
    memcpy(s->logits, from->logits, from->rows * (size_t)from->m->spec.vocab * sizeof *s->logits);
    s->count = from->count;
    s->computed = from->computed;
    s->spoiled = from->spoiled;
    s->first = from->first;
    s->rows = from->rows;
    *out = s;
    return RLX_OK;
}

void rlx_sequence_destroy(rlx_sequence *s)
{
    const rlx_allocator *a = mem_default();

    if (!s)
        return;
    rlx_session_destroy(s->session);
    mem_free(a, s->id, id_bytes(s->m));
    mem_free(a, s->logits, logits_bytes(s->m));
    mem_free(a, s->position, position_bytes(s->m));
    mem_free(a, s->pick, pick_bytes(s->m));
    mem_free(a, s->temper, temper_bytes(s->m));
    for (int r = 0; r < LLM_ROPES; r++) {
        mem_free(a, s->cos[r], table_bytes(s->m, r));
        mem_free(a, s->sin[r], table_bytes(s->m, r));
    }
    mem_free(a, s, sizeof *s);
}

/* ---- tokens ------------------------------------------------------------------------------- */

const int32_t *rlx_sequence_tokens(const rlx_sequence *s, size_t *count)
{
    if (count)
        *count = s ? s->count : 0;
    return s ? s->id : NULL;
}

rlx_status llm_check_tokens(const rlx_llm *m, size_t first, const int32_t *id, size_t count,
                            struct diag *d)
{
    const size_t room = (size_t)m->desc.context;

    if (count > room - first && first == 0)
        return diag_fail(d, RLX_ERROR_LIMIT, "%zu tokens do not fit in a context of %zu", count,
                         room);
    if (count > room - first)
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "%zu tokens, and %zu before them, do not fit in a context of %zu", count,
                         first, room);
    for (size_t i = 0; i < count; i++)
        if (id[i] < 0 || id[i] >= m->spec.vocab)
            return diag_fail(d, RLX_ERROR_INDEX,
                             "token %zu is %d, and the vocabulary has those from 0 to %lld", i,
                             (int)id[i], (long long)m->spec.vocab - 1);
    return RLX_OK;
}

/* The caches hold the first `count` tokens, and nothing after them counts. What a state of fixed
 * size has read cannot be forgotten: such a model begins again. */
static rlx_status forget_after(rlx_sequence *s, size_t count, struct diag *d)
{
    if (s->computed <= count && !s->spoiled)
        return RLX_OK;
    if (s->m->recurrent)
        return llm_clear_states(s, d);
    s->computed = count;
    return RLX_OK;
}

/* The tokens from `first` on become these. A failure of the run leaves those that were computed. */
static rlx_status append(rlx_sequence *s, size_t first, const int32_t *id, size_t count,
                         struct diag *d)
{
    TRY(llm_check_tokens(s->m, first, id, count, d));
    TRY(forget_after(s, first, d));
    memmove(s->id + first, id, count * sizeof *id);
    s->count = first + count;
    rlx_status st = llm_compute(s, d);
    if (st != RLX_OK)
        s->count = s->computed; /* what failed may have been in a later chunk */
    return st;
}

rlx_status rlx_sequence_feed(rlx_sequence *s, const int32_t *id, size_t count, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "llm");
    if (!s || (!id && count))
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "id" : "s");
    else
        append(s, s->count, id, count, &d);
    return diag_report(&d, err);
}

/* The last token is computed again even if it is there already: its logits are what is asked for.
 */
rlx_status rlx_sequence_set(rlx_sequence *s, const int32_t *id, size_t count, size_t *kept,
                            rlx_error *err)
{
    struct diag d;
    size_t same = 0;

    diag_init(&d, "llm");
    if (!s || !id || count == 0) {
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "%s", s ? "there are no tokens" : "s is NULL");
        return diag_report(&d, err);
    }
    const size_t known = s->computed < s->count ? s->computed : s->count;
    while (same + 1 < count && same < known && s->id[same] == id[same])
        same++;
    if (append(s, same, id + same, count - same, &d) == RLX_OK && kept)
        *kept = same;
    return diag_report(&d, err);
}

rlx_status rlx_sequence_rewind(rlx_sequence *s, size_t count, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "llm");
    if (!s) {
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "s is NULL");
    } else if (count > s->count) {
        (diag_fail)(&d, RLX_ERROR_STATE, "there are %zu tokens, so %zu cannot be kept", s->count,
                    count);
    } else {
        s->count = count;
    }
    return diag_report(&d, err);
}

static bool has_logits(const rlx_sequence *s)
{
    return s->computed >= s->count && s->count > s->first && s->count <= s->first + s->rows;
}

/* After the last token; where they were not kept, it is computed once more. */
static rlx_status need_logits(rlx_sequence *s, struct diag *d)
{
    if (s->count == 0)
        return diag_fail(d, RLX_ERROR_STATE, "nothing was fed yet: there is nothing to go on from");
    if (has_logits(s))
        return RLX_OK;
    TRY(forget_after(s, s->count - 1, d));
    return llm_compute(s, d);
}

rlx_status rlx_sequence_logits(rlx_sequence *s, const float **out, size_t *rows, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "llm");
    if (!s || !out)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "out" : "s");
    else if (need_logits(s, &d) == RLX_OK) {
        const size_t row = s->m->desc.all_logits ? 0 : s->count - 1 - s->first;
        *out = s->logits + row * (size_t)s->m->spec.vocab;
        if (rows)
            *rows = s->m->desc.all_logits ? s->count - s->first : 1;
    }
    return diag_report(&d, err);
}

void rlx_sequence_guessed(const rlx_sequence *s, size_t *made, size_t *right)
{
    if (made)
        *made = s ? s->guessed : 0;
    if (right)
        *right = s ? s->right : 0;
}

rlx_status rlx_sequence_memory(rlx_sequence *s, rlx_memory_info *out, rlx_error *err)
{
    return rlx_session_memory(s ? s->session : NULL, out, err);
}

static rlx_status choose(rlx_sequence *s, rlx_sampler *p, int32_t *id, struct diag *d)
{
    const size_t vocab = (size_t)s->m->spec.vocab;

    TRY(need_logits(s, d));
    if (s->count == (size_t)s->m->desc.context)
        return diag_fail(d, RLX_ERROR_LIMIT, "the context of %zu tokens is full", s->count);
    TRY(sampler_choose(p, s->logits + (s->count - 1 - s->first) * vocab, s->id, s->count, id, d));
    if (s->computed > s->count && s->id[s->count] == *id)
        s->right++; /* it was guessed, and is in the caches */
    else
        TRY(forget_after(s, s->count, d));
    s->id[s->count++] = *id;
    return RLX_OK;
}

rlx_status rlx_sequence_next(rlx_sequence *s, rlx_sampler *p, int32_t *id, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "llm");
    if (!s || !p || !id)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !s ? "s" : p ? "id" : "p");
    else
        choose(s, p, id, &d);
    return diag_report(&d, err);
}
