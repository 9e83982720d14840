/* gate.c: experts chosen from the groups that score best, and their weights (ops-special.md 4).
 *
 * Groups and experts are items of order.h, so the first k of either come from a heap; NaN counts
 * as minus infinity. */
#include "backend/cpu/kernels/order/order.h"

/* Room for one row. */
struct gate {
    float *score;     /* [n_group] */
    uint64_t *kept;   /* [topk_group] */
    uint64_t *chosen; /* [top_k] */
};

struct gate_job {
    const struct cpu_call *c;
    const struct attr_group_limited_gate *attr;
    int64_t experts, each; /* of a row, of a group */
};

static uint64_t gate_bytes(const struct attr_group_limited_gate *a)
{
    uint64_t bytes = 8 * (uint64_t)(a->topk_group + a->top_k) + 4 * (uint64_t)a->n_group;

    return (bytes + 63) / 64 * 64;
}

static struct gate gate_at(const struct attr_group_limited_gate *a, void *base)
{
    struct gate g = {.kept = base};

    g.chosen = g.kept + a->topk_group;
    g.score = (float *)(g.chosen + a->top_k);
    return g;
}

static float ranked(float v)
{
    return v != v ? -INFINITY : v;
}

/* The two largest of a group, or its only one, added up. */
static float score_of(const float *route, int64_t n)
{
    float first = -INFINITY, second = -INFINITY;

    for (int64_t i = 0; i < n; i++) {
        float v = ranked(route[i]);
        second = v > first ? first : v > second ? v : second;
        first = v > first ? v : first;
    }
    return n == 1 ? first : ranked(first + second);
}

/* The k first of those in top and of n more, whose indices begin at `index`; the largest are
 * first, of equals the one with the smaller index. */
static int64_t take_first(uint64_t *top, int64_t k, int64_t have, const float *v, int64_t n,
                          int64_t index)
{
    CPU_TILE_OF(float, value);
    CPU_TILE_OF(int32_t, key);
    CPU_TILE_OF(uint64_t, item);

    for (int64_t from = 0; from < n; from += CPU_TILE) {
        int64_t part = cpu_min_i64(n - from, CPU_TILE);
        for (int64_t i = 0; i < part; i++)
            value[i] = ranked(v[from + i]);
        order_keys32(RLX_DTYPE_f32, ORDER_DOWN, value, part, key);
        for (int64_t i = 0; i < part; i++)
            item[i] = order_pack(key[i], index + from + i);
        have = order_top_packed(top, k, have, item, part);
    }
    return have;
}

static void weigh(const struct gate_job *j, const struct gate *g, const float *sig, float *out)
{
    int64_t k = j->attr->top_k;
    double sum = 0;

    for (int64_t i = 0; i < k; i++)
        sum += (double)sig[g->chosen[i] & UINT32_MAX];
    double whole = k > 1 ? sum + 1e-20 : 1; /* of large numbers no f32 */
    for (int64_t i = 0; i < k; i++) {
        int64_t id = (int64_t)(g->chosen[i] & UINT32_MAX);
        out[i] = (float)id;
        out[k + i] = (float)((double)sig[id] / whole * (double)j->attr->scaling);
    }
}

static void some_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct gate_job *j = ctx;
    const struct attr_group_limited_gate *a = j->attr;
    struct gate g = gate_at(a, (char *)j->c->scratch + (uint64_t)worker * gate_bytes(a));

    for (int64_t row = begin; row < end; row++) {
        const float *route = (const float *)j->c->in[1].data + row * j->experts;
        int64_t have = 0;
        for (int64_t i = 0; i < a->n_group; i++)
            g.score[i] = score_of(route + i * j->each, j->each);
        take_first(g.kept, a->topk_group, 0, g.score, a->n_group, 0);
        for (int64_t i = 0; i < a->topk_group; i++) {
            int64_t at = (int64_t)(g.kept[i] & UINT32_MAX) * j->each;
            have = take_first(g.chosen, a->top_k, have, route + at, j->each, at);
        }
        order_finish_packed(g.chosen, have);
        weigh(j, &g, (const float *)j->c->in[0].data + row * j->experts,
              (float *)j->c->out->data + row * 2 * a->top_k);
    }
}

static uint64_t scratch(const struct cpu_call *c)
{
    uint64_t workers = c->pool ? (uint64_t)pool_threads(c->pool) : 1;

    return workers * gate_bytes(&c->attr->group_limited_gate);
}

static void run(const struct cpu_call *c)
{
    const struct cpu_tensor *sig = &c->in[0];
    struct gate_job j = {c, &c->attr->group_limited_gate, sig->dim[sig->rank - 1], 0};

    j.each = j.experts / j.attr->n_group;
    cpu_for(c->pool, sig->count / j.experts, 1 + 4096 / j.experts, some_rows, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_group_limited_gate);
const struct cpu_kernel CPU_NAME(cpu_group_limited_gate) = {.run = run, .scratch = scratch};
