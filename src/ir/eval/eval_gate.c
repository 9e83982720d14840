/* eval_gate.c: what picks by rank: the gate that chooses experts, best groups first, and the
 * nearest neighbours from a matrix of distances (ops-special.md 4, 6). */
#include <float.h>
#include <math.h>

#include "base/half.h"
#include "ir/eval/eval.h"

static double *room_for(struct eval_call *c, int64_t count)
{
    double *v = arena_array(c->arena, double, (size_t)count);

    if (!v)
        diag_no_memory(c->diag, (size_t)count * sizeof *v);
    return v;
}

/* ---- group_limited_gate -------------------------------------------------------------------- */

static double rank_of(double v)
{
    return isnan(v) ? -(double)INFINITY : v;
}

/* The two largest of a group, or its only one, added up. The sum is an f32, as ties are broken by
 * what is equal after rounding. */
static double group_score(const struct eval_cell *route, int64_t n)
{
    double first = -(double)INFINITY, second = -(double)INFINITY;

    for (int64_t i = 0; i < n; i++) {
        double v = rank_of(route[i].f);
        if (v > first) {
            second = first;
            first = v;
        } else if (v > second) {
            second = v;
        }
    }
    return n == 1 ? first : rank_of(f64_through_f32(first + second));
}

/* Where the largest of those that are open is, the first of equals; it is closed then. */
static int64_t take_largest(const double *score, bool *open, int64_t n)
{
    int64_t best = -1;

    for (int64_t i = 0; i < n; i++)
        if (open[i] && (best < 0 || score[i] > score[best]))
            best = i;
    if (best >= 0)
        open[best] = false;
    return best;
}

/* Room for one row: scores of groups and experts, and which of them may still be chosen. */
struct gate {
    double *group, *expert;
    bool *group_open, *expert_open;
};

static void choose(const struct eval_call *c, const struct gate *g, const struct eval_cell *sig,
                   const struct eval_cell *route, int64_t experts, struct eval_cell *out)
{
    const struct attr_group_limited_gate *attr = &c->attr->group_limited_gate;
    int64_t each = experts / attr->n_group;
    double sum = 0;

    for (int64_t i = 0; i < attr->n_group; i++) {
        g->group[i] = group_score(route + i * each, each);
        g->group_open[i] = true;
    }
    for (int64_t i = 0; i < experts; i++) {
        g->expert[i] = rank_of(route[i].f);
        g->expert_open[i] = false;
    }
    for (int64_t i = 0; i < attr->topk_group; i++) {
        int64_t kept = take_largest(g->group, g->group_open, attr->n_group);
        for (int64_t e = kept * each; e < (kept + 1) * each; e++)
            g->expert_open[e] = true;
    }
    for (int64_t i = 0; i < attr->top_k; i++) {
        int64_t id = take_largest(g->expert, g->expert_open, experts);
        out[i].f = (double)id;
        sum += sig[id].f;
    }
    for (int64_t i = 0; i < attr->top_k; i++) {
        double p = sig[(int64_t)out[i].f].f;
        out[attr->top_k + i].f = (attr->top_k > 1 ? p / (sum + 1e-20) : p) * (double)attr->scaling;
    }
}

rlx_status eval_group_limited_gate(struct eval_call *c)
{
    const struct attr_group_limited_gate *attr = &c->attr->group_limited_gate;
    int64_t experts = c->in[0]->type.dim[c->in[0]->type.rank - 1];

    if (c->out->count == 0)
        return RLX_OK;
    struct gate g = {.group = room_for(c, attr->n_group),
                     .expert = room_for(c, experts),
                     .group_open = arena_array(c->arena, bool, (size_t)attr->n_group),
                     .expert_open = arena_array(c->arena, bool, (size_t)experts)};
    if (!g.group || !g.expert || !g.group_open || !g.expert_open)
        return diag_no_memory(c->diag, (size_t)experts * sizeof *g.expert);
    for (int64_t row = 0; row < c->in[0]->count / experts; row++)
        choose(c, &g, c->in[0]->at + row * experts, c->in[1]->at + row * experts, experts,
               c->out->at + row * 2 * attr->top_k);
    return RLX_OK;
}

/* ---- knn ----------------------------------------------------------------------------------- */

/* The nearest k of the others, by ascending distance, the first of equals first; n where there are
 * no more that are near enough to count. */
static void neighbours(const struct eval_cell *d, int64_t n, int64_t self, int64_t k, int64_t *id)
{
    int64_t found = 0;

    for (int64_t j = 0; j < n; j++) {
        if (j == self || !(d[j].f < (double)FLT_MAX))
            continue;
        int64_t at = found < k ? found : k;
        while (at > 0 && d[j].f < d[id[at - 1]].f) {
            if (at < k)
                id[at] = id[at - 1];
            at--;
        }
        if (at < k)
            id[at] = j;
        if (found < k)
            found++;
    }
    for (; found < k; found++)
        id[found] = n;
}

static int64_t *ids_for(struct eval_call *c, int64_t k)
{
    int64_t *id = arena_array(c->arena, int64_t, (size_t)k);

    if (!id)
        diag_no_memory(c->diag, (size_t)k * sizeof *id);
    return id;
}

rlx_status eval_knn(struct eval_call *c)
{
    int64_t n = c->in[0]->type.dim[0], k = c->attr->knn.k, *id = ids_for(c, k);

    if (!id)
        return RLX_ERROR_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        const struct eval_cell *d = c->in[0]->at + i * n;
        struct eval_cell *out = c->out->at + i * 2 * k;
        neighbours(d, n, i, k, id);
        for (int64_t s = 0; s < k; s++) {
            out[s].f = (double)id[s];
            out[k + s].f = id[s] < n ? d[id[s]].f : (double)FLT_MAX;
        }
    }
    return RLX_OK;
}

rlx_status eval_knn_backward(struct eval_call *c)
{
    int64_t n = c->in[0]->type.dim[0], k = c->attr->knn_backward.k, *id = ids_for(c, k);

    if (!id)
        return RLX_ERROR_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        neighbours(c->in[0]->at + i * n, n, i, k, id);
        for (int64_t s = 0; s < k; s++)
            if (id[s] < n)
                c->out->at[i * n + id[s]].f += c->in[1]->at[i * k + s].f;
    }
    return RLX_OK;
}
