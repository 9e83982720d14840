/* sampler.c: from logits to a token, step by step: docs/llm.md has the order. A step takes the
 * candidates that are left, and leaves some of them; once sorted they stay so. */
#include "llm/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/desc.h"
#include "base/mem.h"
#include "base/rng.h"
#include "llm/engine.h"

struct candidate {
    int32_t id;
    float logit;
    double p; /* its probability, once it is known */
};

struct rlx_sampler {
    rlx_sampling how; /* with defaults in place */
    rlx_token_bias *bias;
    size_t vocab;
    struct candidate *c; /* room for the vocabulary */
    size_t left;         /* of them */
    bool sorted;         /* the most likely first */
    uint64_t drawn;      /* random numbers so far */
    double mu;           /* mirostat: the surprise that is allowed now */
    float logprob;
    rlx_grammar_state *start, *state; /* of the grammar; copies of start share what they learn */
    uint32_t *allowed;                /* a bit for each token, and words for those that pad */
};

/* ---- grammars ----------------------------------------------------------------------------- */

static size_t mask_words(const rlx_sampler *p)
{
    return (p->vocab + 31) / 32;
}

static rlx_status take_grammar(rlx_sampler *p, const rlx_tokenizer *t, struct diag *d)
{
    rlx_error err;

    if (!p->how.grammar)
        return RLX_OK;
    if (!t)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED,
                         "a grammar needs a vocabulary, and the model has none");
    if (!(p->allowed = mem_alloc(mem_default(), mask_words(p) * sizeof *p->allowed)))
        return diag_no_memory(d, mask_words(p) * sizeof *p->allowed);
    if (rlx_grammar_state_create(p->how.grammar, t, &p->start, &err) != RLX_OK ||
        rlx_grammar_state_clone(p->start, &p->state, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    return RLX_OK;
}

rlx_status rlx_sampler_begin(rlx_sampler *p, rlx_error *err)
{
    rlx_grammar_state *fresh = NULL;
    struct diag d;

    diag_init(&d, "llm");
    if (!p) {
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "p is NULL");
        return diag_report(&d, err);
    }
    p->mu = 2 * (double)p->how.mirostat_tau;
    if (!p->start)
        return RLX_OK;
    rlx_status s = rlx_grammar_state_clone(p->start, &fresh, err);
    if (s == RLX_OK) {
        rlx_grammar_state_destroy(p->state);
        p->state = fresh;
    }
    return s;
}

bool rlx_sampler_done(const rlx_sampler *p)
{
    return p && p->state && rlx_grammar_done(p->state);
}

/* What the grammar does not allow has no chance. */
static rlx_status forbid(rlx_sampler *p, struct diag *d)
{
    rlx_error err;

    if (!p->state)
        return RLX_OK;
    memset(p->allowed, 0, mask_words(p) * sizeof *p->allowed);
    if (rlx_grammar_mask(p->state, p->allowed, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    for (size_t i = 0; i < p->vocab; i++)
        if (!(p->allowed[i / 32] >> i % 32 & 1))
            p->c[i].logit = -INFINITY;
    return RLX_OK;
}

/* ---- making one --------------------------------------------------------------------------- */

static rlx_status check(const rlx_sampling *h, size_t vocab, struct diag *d)
{
    const struct {
        const char *name;
        float v, low, high;
    } rules[] = {{"temperature", h->temperature, 0, 1e6f},
                 {"repeat_penalty", h->repeat_penalty, 1e-3f, 1e3f},
                 {"frequency_penalty", h->frequency_penalty, -1e3f, 1e3f},
                 {"presence_penalty", h->presence_penalty, -1e3f, 1e3f},
                 {"top_p", h->top_p, 0, 1},
                 {"min_p", h->min_p, 0, 1},
                 {"typical", h->typical, 0, 1},
                 {"mirostat_tau", h->mirostat_tau, 1e-3f, 1e3f},
                 {"mirostat_eta", h->mirostat_eta, 0, 1}};

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (!(rules[i].v >= rules[i].low && rules[i].v <= rules[i].high))
            return diag_fail(d, RLX_ERROR_ATTRIBUTE, "%s must be from %g to %g", rules[i].name,
                             (double)rules[i].low, (double)rules[i].high);
    if (h->top_k < 0 || h->penalty_last < -1)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "%s is %d, and cannot be negative",
                         h->top_k < 0 ? "top_k" : "penalty_last",
                         (int)(h->top_k < 0 ? h->top_k : h->penalty_last));
    if (h->mirostat != 0 && h->mirostat != 2)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "mirostat is %d; 0 (off) and 2 are known",
                         (int)h->mirostat);
    for (size_t i = 0; i < h->bias_count; i++)
        if (h->bias[i].token < 0 || (size_t)h->bias[i].token >= vocab || isnan(h->bias[i].bias))
            return diag_fail(
                d, RLX_ERROR_ATTRIBUTE, "bias %zu is for token %d: %s", i, (int)h->bias[i].token,
                isnan(h->bias[i].bias) ? "it is NaN" : "the vocabulary has no such token");
    return RLX_OK;
}

static rlx_status take(rlx_sampler *p, const rlx_sampling *how, struct diag *d)
{
    p->how = (rlx_sampling){RLX_SIZED(rlx_sampling)};
    if (how)
        TRY(DESC_READ(rlx_sampling, &p->how, how, d));
    if (p->how.repeat_penalty == 0)
        p->how.repeat_penalty = 1;
    if (p->how.penalty_last == 0)
        p->how.penalty_last = 64;
    if (p->how.mirostat_tau == 0)
        p->how.mirostat_tau = 5;
    if (p->how.mirostat_eta == 0)
        p->how.mirostat_eta = 0.1f;
    TRY(check(&p->how, p->vocab, d));
    p->mu = 2 * (double)p->how.mirostat_tau;
    p->c = mem_alloc(mem_default(), p->vocab * sizeof *p->c);
    p->bias = mem_alloc(mem_default(), p->how.bias_count * sizeof *p->bias);
    if (!p->c || (!p->bias && p->how.bias_count))
        return diag_no_memory(d, p->vocab * sizeof *p->c);
    if (p->how.bias_count)
        memcpy(p->bias, p->how.bias, p->how.bias_count * sizeof *p->bias);
    return RLX_OK;
}

rlx_status rlx_sampler_create(const rlx_llm *m, const rlx_sampling *how, rlx_sampler **out,
                              rlx_error *err)
{
    struct diag d;

    diag_init(&d, "llm");
    rlx_sampler *p = m && out ? mem_alloc(mem_default(), sizeof *p) : NULL;
    if (!m || !out)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "out" : "m");
    else if (!p)
        (diag_no_memory)(&d, sizeof *p);
    if (!p)
        return diag_report(&d, err);
    p->vocab = (size_t)m->spec.vocab;
    if (take(p, how, &d) == RLX_OK && take_grammar(p, m->tokenizer, &d) == RLX_OK)
        *out = p;
    else
        rlx_sampler_destroy(p);
    return diag_report(&d, err);
}

void rlx_sampler_destroy(rlx_sampler *p)
{
    if (!p)
        return;
    rlx_grammar_state_destroy(p->state);
    rlx_grammar_state_destroy(p->start);
    mem_free(mem_default(), p->allowed, mask_words(p) * sizeof *p->allowed);
    mem_free(mem_default(), p->c, p->vocab * sizeof *p->c);
    mem_free(mem_default(), p->bias, p->how.bias_count * sizeof *p->bias);
    mem_free(mem_default(), p, sizeof *p);
}

float rlx_sampler_logprob(const rlx_sampler *p)
{
    return p ? p->logprob : 0;
}

/* ---- candidates --------------------------------------------------------------------------- */

/* The more likely first, of equal ones that with the smaller id. NaN counts as -Inf. */
static int more_likely(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static void swap(struct candidate *a, struct candidate *b)
{
    struct candidate t = *a;

    *a = *b;
    *b = t;
}

/* The k most likely come to the front, in any order. */
static void select_front(struct candidate *c, size_t count, size_t k)
{
    size_t low = 0, high = count;

    while (high - low > 1) {
        size_t edge = low;
        swap(&c[low + (high - low) / 2], &c[high - 1]);
        for (size_t i = low; i + 1 < high; i++)
            if (more_likely(&c[i], &c[high - 1]) < 0)
                swap(&c[i], &c[edge++]);
        swap(&c[edge], &c[high - 1]);
        if (edge == k || edge + 1 == k)
            return;
        if (edge < k)
            low = edge + 1;
        else
            high = edge;
    }
}

static void sort(rlx_sampler *p)
{
    if (!p->sorted)
        qsort(p->c, p->left, sizeof *p->c, more_likely);
    p->sorted = true;
}

static float largest(const rlx_sampler *p)
{
    float max = -INFINITY;

    for (size_t i = 0; i < p->left; i++)
        max = p->c[i].logit > max ? p->c[i].logit : max;
    return max;
}

/* Their probabilities among themselves. */
static void softmax(rlx_sampler *p)
{
    const double max = (double)largest(p);
    double sum = 0;

    for (size_t i = 0; i < p->left; i++) {
        double logit = (double)p->c[i].logit;
        p->c[i].p = max == -INFINITY ? 1 : exp(logit - max);
        sum += p->c[i].p;
    }
    for (size_t i = 0; i < p->left; i++)
        p->c[i].p /= sum;
}

/* ---- steps -------------------------------------------------------------------------------- */

static void fill(rlx_sampler *p, const float *logits)
{
    p->left = p->vocab;
    p->sorted = false;
    for (size_t i = 0; i < p->vocab; i++)
        p->c[i] = (struct candidate){(int32_t)i, isnan(logits[i]) ? -INFINITY : logits[i], 0};
    for (size_t i = 0; i < p->how.bias_count; i++)
        p->c[p->bias[i].token].logit += p->bias[i].bias;
}

/* p is used to count: candidates lie at their ids still. */
static void penalise(rlx_sampler *p, const int32_t *id, size_t count)
{
    const rlx_sampling *h = &p->how;
    const size_t last = h->penalty_last < 0 ? count : (size_t)h->penalty_last;

    if (h->repeat_penalty == 1 && h->frequency_penalty == 0 && h->presence_penalty == 0)
        return;
    const size_t first = count > last ? count - last : 0;
    for (size_t i = first; i < count; i++)
        p->c[id[i]].p++;
    for (size_t i = first; i < count; i++) {
        struct candidate *c = &p->c[id[i]];
        if (c->p == 0)
            continue;
        c->logit = c->logit > 0 ? c->logit / h->repeat_penalty : c->logit * h->repeat_penalty;
        c->logit -= (float)c->p * h->frequency_penalty + h->presence_penalty;
        c->p = 0;
    }
}

static void keep_top_k(rlx_sampler *p)
{
    size_t k = (size_t)p->how.top_k;

    if (k == 0 || k >= p->left)
        return;
    select_front(p->c, p->left, k);
    p->left = k;
}

static int less_odd(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return (x->p > y->p) - (x->p < y->p);
}

/* Those whose surprise is nearest to the mean surprise, up to the sum asked for. */
static void keep_typical(rlx_sampler *p)
{
    double entropy = 0, sum = 0;
    size_t kept = 0;

    if (p->how.typical <= 0 || p->how.typical >= 1)
        return;
    softmax(p);
    for (size_t i = 0; i < p->left; i++)
        entropy -= p->c[i].p > 0 ? p->c[i].p * log(p->c[i].p) : 0;
    double max = (double)largest(p), total = 0;
    for (size_t i = 0; i < p->left; i++)
        total += exp((double)p->c[i].logit - max);
    for (size_t i = 0; i < p->left; i++)
        p->c[i].p = p->c[i].p > 0 ? fabs(-log(p->c[i].p) - entropy) : INFINITY;
    qsort(p->c, p->left, sizeof *p->c, less_odd);
    while (kept < p->left && sum < (double)p->how.typical)
        sum += exp((double)p->c[kept++].logit - max) / total;
    p->left = kept ? kept : 1;
    p->sorted = false;
}

static void keep_top_p(rlx_sampler *p)
{
    double sum = 0;
    size_t kept = 0;

    if (p->how.top_p <= 0 || p->how.top_p >= 1)
        return;
    sort(p);
    softmax(p);
    while (kept < p->left && sum < (double)p->how.top_p)
        sum += p->c[kept++].p;
    p->left = kept;
}

static void keep_min_p(rlx_sampler *p)
{
    const float least = largest(p) + logf(p->how.min_p);
    size_t kept = 0;

    if (p->how.min_p <= 0)
        return;
    for (size_t i = 0; i < p->left; i++)
        if (p->c[i].logit >= least)
            p->c[kept++] = p->c[i];
    p->left = kept ? kept : 1;
}

static void heat(rlx_sampler *p)
{
    for (size_t i = 0; i < p->left; i++)
        p->c[i].logit /= p->how.temperature;
}

static const struct candidate *draw(rlx_sampler *p)
{
    struct rng_pair key = rng_key(p->how.seed, p->drawn++);
    uint64_t bits = (uint64_t)key.x0 << 21 ^ (uint64_t)key.x1 >> 11;
    double at = (double)(bits & ((1ull << 53) - 1)) * 0x1p-53, sum = 0;

    sort(p);
    softmax(p);
    for (size_t i = 0; i < p->left; i++) {
        sum += p->c[i].p;
        if (at < sum)
            return &p->c[i];
    }
    return &p->c[0]; /* rounding left a gap at the end */
}

/* Mirostat 2: what would surprise more than mu is dropped, and mu follows what was drawn. */
static const struct candidate *draw_mirostat(rlx_sampler *p)
{
    size_t kept = 0;

    sort(p);
    softmax(p);
    while (kept < p->left && (kept == 0 || -log2(p->c[kept].p) <= p->mu))
        kept++;
    p->left = kept;
    const struct candidate *c = draw(p);
    double surprise = -log2(c->p);
    p->mu -= (double)p->how.mirostat_eta * (surprise - (double)p->how.mirostat_tau);
    return c;
}

static const struct candidate *likeliest(const rlx_sampler *p)
{
    const struct candidate *best = &p->c[0];

    for (size_t i = 1; i < p->left; i++)
        if (p->c[i].logit > best->logit)
            best = &p->c[i];
    return best;
}

static const struct candidate *choose(rlx_sampler *p)
{
    if (p->how.temperature == 0)
        return likeliest(p);
    if (p->how.mirostat == 2) {
        heat(p);
        return draw_mirostat(p);
    }
    keep_top_k(p);
    keep_typical(p);
    keep_top_p(p);
    keep_min_p(p);
    heat(p);
    return draw(p);
}

static float log_probability(const float *logits, size_t vocab, int32_t id)
{
    double max = -INFINITY, sum = 0;

    for (size_t i = 0; i < vocab; i++)
        max = (double)logits[i] > max ? (double)logits[i] : max;
    for (size_t i = 0; i < vocab; i++)
        sum += isnan(logits[i]) ? 0 : exp((double)logits[i] - max);
    return (float)((double)logits[id] - max - log(sum));
}

rlx_status sampler_choose(rlx_sampler *p, const float *logits, const int32_t *id, size_t count,
                          int32_t *out, struct diag *d)
{
    rlx_error err;

    fill(p, logits);
    TRY(forbid(p, d));
    if (largest(p) == -INFINITY)
        return diag_fail(d, RLX_ERROR_NUMERIC,
                         "no token is possible after %zu: all logits are NaN or -Inf%s", count,
                         p->state ? ", or the grammar does not allow those that are not" : "");
    penalise(p, id, count);
    const int32_t chosen = choose(p)->id;
    if (p->state && rlx_grammar_accept(p->state, chosen, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    *out = chosen;
    p->logprob = p->how.logprobs ? log_probability(logits, p->vocab, chosen) : 0;
    return RLX_OK;
}
