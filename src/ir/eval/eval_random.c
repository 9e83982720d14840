/* eval_random.c: draws from counter-based randomness (ops-core.md 9). The generator is base/rng. */
#include <math.h>

#include "base/rng.h"
#include "ir/eval/eval.h"

#define TWO_PI 6.28318530717958647693

/* ---- sampling ------------------------------------------------------------------------------ */

/* One row. All arithmetic on scores is in f32, as the manual has it; functions are f32 roundings of
 * what double gives. */
struct row {
    const struct attr_sample *attr;
    int64_t n;
    float *z, *p;   /* score and probability of each index */
    int64_t *order; /* indices by z descending, then by index */
    bool *kept;
    struct eval_cell *cell; /* for sorting */
    int64_t *spare;
    struct rng_pair key;
    uint32_t number;
};

static float read_logit(const struct eval_tensor *logits, int64_t k)
{
    float z = (float)logits->at[k].f;

    return isnan(z) ? -INFINITY : z;
}

static int64_t first_largest(const float *z, int64_t n)
{
    int64_t best = 0;

    for (int64_t i = 1; i < n; i++)
        if (z[i] > z[best])
            best = i;
    return best;
}

static void order_by_score(struct row *r)
{
    for (int64_t i = 0; i < r->n; i++)
        r->cell[i].f = (double)r->z[i];
    eval_order_line(r->cell, r->n, 1, RLX_DTYPE_f32, true, r->order, r->spare);
}

/* The first top_k in order, less those below min_p times the largest probability, cut after the
 * one that reaches top_p of what is left. Returns how many stay. */
static int64_t keep_likely(struct row *r, float top)
{
    const struct attr_sample *a = r->attr;
    int64_t k = a->top_k > 0 && a->top_k < r->n ? a->top_k : r->n;
    float least = (float)log((double)a->min_p); /* p / largest p = e^(z - top); -Inf: off */
    double sum = 0;
    float running = 0;

    while (k > 1 && r->z[r->order[k - 1]] - top < least)
        k--;
    for (int64_t i = 0; i < k; i++) {
        int64_t at = r->order[i];
        r->p[at] = (float)exp((double)(r->z[at] - top));
        sum += (double)r->p[at];
    }
    if ((double)a->top_p >= 1 - 1e-6)
        return k;
    for (int64_t i = 0; i < k; i++) {
        running += r->p[r->order[i]] / (float)sum;
        if (running >= a->top_p)
            return i + 1;
    }
    return k;
}

/* -ln(-ln u), u of row and index */
static float gumbel(const struct row *r, int64_t index)
{
    struct rng_pair x = rng_threefry(r->number, (uint32_t)index, r->key.x0, r->key.x1);
    double u = (double)rng_uniform(x.x0);

    return (float)-log(-log(u > 1e-30 ? u : 1e-30));
}

static int64_t draw(struct row *r)
{
    const struct attr_sample *a = r->attr;
    int64_t best = -1;
    float best_score = 0;

    if (a->top_k == 1 || (double)a->temperature < 1e-6)
        return first_largest(r->z, r->n);
    for (int64_t i = 0; i < r->n; i++) {
        r->z[i] /= a->temperature;
        r->kept[i] = false;
    }
    float top = r->z[first_largest(r->z, r->n)];
    if (isinf(top))
        return top < 0 ? 0 : first_largest(r->z, r->n);
    order_by_score(r);
    for (int64_t i = keep_likely(r, top); i-- > 0;)
        r->kept[r->order[i]] = true;
    for (int64_t i = 0; i < r->n; i++) {
        if (!r->kept[i] || r->z[i] == -INFINITY)
            continue;
        float score = (r->z[i] - top) + gumbel(r, i);
        if (best < 0 || score > best_score) {
            best = i;
            best_score = score;
        }
    }
    return best < 0 ? 0 : best;
}

/* The optional operand i: one integer, 0 where it is absent. */
static uint64_t offset_operand(const struct eval_call *c, int32_t i)
{
    return c->in_count > i ? (uint64_t)c->in[i]->at[0].i : 0;
}

rlx_status eval_sample(struct eval_call *c)
{
    const struct eval_tensor *logits = c->in[0];
    int64_t n = logits->type.dim[logits->type.rank - 1];
    size_t room = c->out->count ? (size_t)n : 0;
    struct row r = {.attr = &c->attr->sample, .n = n};

    r.key = rng_key(r.attr->seed, offset_operand(c, 1));
    r.z = arena_array(c->arena, float, room);
    r.p = arena_array(c->arena, float, room);
    r.order = arena_array(c->arena, int64_t, room);
    r.spare = arena_array(c->arena, int64_t, room);
    r.kept = arena_array(c->arena, bool, room);
    r.cell = arena_array(c->arena, struct eval_cell, room);
    if (!r.z || !r.p || !r.order || !r.spare || !r.kept || !r.cell)
        return diag_no_memory(c->diag, room * sizeof *r.cell);
    for (int64_t k = 0; k < c->out->count; k++) {
        r.number = (uint32_t)k;
        for (int64_t i = 0; i < n; i++)
            r.z[i] = read_logit(logits, k * n + i);
        eval_set(c->out, k, (double)draw(&r));
    }
    return RLX_OK;
}

/* ---- whole tensors ------------------------------------------------------------------------- */

static struct rng_pair words_of(struct rng_pair key, int64_t element)
{
    return rng_threefry((uint32_t)element, (uint32_t)((uint64_t)element >> 32), key.x0, key.x1);
}

rlx_status eval_rng_uniform(struct eval_call *c)
{
    const struct attr_rng_uniform *a = &c->attr->rng_uniform;
    struct rng_pair key = rng_key(a->seed, offset_operand(c, 0));
    double low = (double)a->low, high = (double)a->high;

    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k].f = low + (high - low) * (double)rng_uniform(words_of(key, k).x0);
    return RLX_OK;
}

rlx_status eval_rng_normal(struct eval_call *c)
{
    const struct attr_rng_normal *a = &c->attr->rng_normal;
    struct rng_pair key = rng_key(a->seed, offset_operand(c, 0));

    for (int64_t k = 0; k < c->out->count; k++) {
        struct rng_pair x = words_of(key, k);
        double u = (double)rng_uniform(x.x0), turn = (double)rng_uniform(x.x1);
        double size = sqrt(-2 * log(u > 0x1p-25 ? u : 0x1p-25));
        c->out->at[k].f = (double)a->mean + (double)a->scale * size * cos(TWO_PI * turn);
    }
    return RLX_OK;
}
