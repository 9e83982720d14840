/* rotary.c: angles of rotary positions, and the ways they are stretched for longer contexts: the
 * formulas of docs/spec/llm-architectures.md 3.2. */
#include "llm/rotary.h"

#include <math.h>

#include "base/mem.h"
#include "base/str.h"

/* The pair that has turned beta times over the original context. */
static double pair_of(const struct llm_rope *r, double beta)
{
    const double turn = 2 * acos(-1.0);

    return (double)r->channels * log(r->original / (turn * beta)) / (2 * log(r->base));
}

/* How much of pair i keeps its own speed: 1 for fast ones, 0 for slow ones. */
static double kept(const struct llm_rope *r, int64_t i)
{
    double low = fmax(0, floor(pair_of(r, r->beta_fast)));
    double high = fmin((double)r->channels - 1, ceil(pair_of(r, r->beta_slow)));
    double t = ((double)i - low) / fmax(0.001, high - low);

    return 1 - fmin(1, fmax(0, t));
}

static double yarn_magnitude(const struct llm_rope *r)
{
    double grown = r->factor > 1 ? log(r->factor) : 0;

    if (grown == 0)
        return 1;
    if (r->log_multiplier == 0)
        return 1 + 0.1 * grown;
    return (1 + 0.1 * grown) / (1 + 0.1 * r->log_multiplier * grown);
}

/* The tensor that angles are divided by; a model stretched in the "longrope" way has two. */
static const char *divisors_of(const struct llm_rope *r, int64_t context)
{
    if (r->divisors || r->scaling != LLM_ROPE_LONG)
        return r->divisors;
    return (double)context > r->original ? "rope_factors_long.weight" : "rope_factors_short.weight";
}

static rlx_status divide(const char *name, rlx_weights *w, struct llm_turns *t, struct diag *d)
{
    rlx_weight tensor;
    rlx_error err;
    size_t i;

    if (!rlx_weights_find(w, rlx_cstr(name), &i) || !rlx_weights_at(w, i, &tensor))
        return diag_fail(d, RLX_ERROR_FORMAT, "the file has no tensor \"%s\"", name);
    if (tensor.rank != 1 || tensor.dim[0] != t->pairs)
        return diag_fail(d, RLX_ERROR_SHAPE, "%s must have %lld numbers", name,
                         (long long)t->pairs);
    float *by = mem_alloc(mem_default(), (size_t)t->pairs * sizeof *by);
    if (!by)
        return diag_no_memory(d, (size_t)t->pairs * sizeof *by);
    rlx_status s = rlx_weights_read_f32(w, i, 0, (uint64_t)t->pairs, by, &err);
    for (int64_t p = 0; s == RLX_OK && p < t->pairs; p++) {
        if (!(by[p] > 0 && isfinite((double)by[p])))
            (diag_fail)(d, RLX_ERROR_FORMAT, "%s: number %lld is %g, and angles are divided by it",
                        name, (long long)p, (double)by[p]);
        t->angle[p] /= (double)by[p];
    }
    mem_free(mem_default(), by, (size_t)t->pairs * sizeof *by);
    if (s != RLX_OK)
        return diag_again(d, &err, s);
    return d->count ? d->first.status : RLX_OK;
}

rlx_status llm_turns_make(const struct llm_rope *r, rlx_weights *w, int64_t context,
                          struct llm_turns *out, struct diag *d)
{
    const char *divisors = divisors_of(r, context);

    *out = (struct llm_turns){.pairs = r->channels / 2, .magnitude = r->magnitude};
    if (out->pairs == 0)
        return RLX_OK;
    out->angle = mem_alloc(mem_default(), (size_t)out->pairs * sizeof *out->angle);
    if (!out->angle)
        return diag_no_memory(d, (size_t)out->pairs * sizeof *out->angle);
    for (int64_t i = 0; i < out->pairs; i++)
        out->angle[i] = pow(r->base, -2.0 * (double)i / (double)r->channels);
    if (divisors)
        TRY(divide(divisors, w, out, d));
    for (int64_t i = 0; i < out->pairs; i++) {
        double own = r->scaling == LLM_ROPE_YARN ? kept(r, i) : 0;
        out->angle[i] *= own + (1 - own) / r->factor;
    }
    if (r->scaling == LLM_ROPE_YARN)
        out->magnitude *= yarn_magnitude(r);
    return RLX_OK;
}

void llm_turns_free(struct llm_turns *t)
{
    if (t->angle)
        mem_free(mem_default(), t->angle, (size_t)t->pairs * sizeof *t->angle);
    t->angle = NULL;
}

void llm_turns_fill(const struct llm_turns *t, int64_t first, int64_t count, float *cos_out,
                    float *sin_out)
{
    for (int64_t row = 0; row < count; row++)
        for (int64_t p = 0; p < t->pairs; p++) {
            double angle = (double)(first + row) * t->angle[p];
            cos_out[row * t->pairs + p] = (float)(t->magnitude * cos(angle));
            sin_out[row * t->pairs + p] = (float)(t->magnitude * sin(angle));
        }
}
