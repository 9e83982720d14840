/* sample.c: one index drawn per row of logits (ops-core.md 9.2).
 *
 * Adding Gumbel noise to the scores and taking the largest draws from their softmax, so plain
 * sampling needs no order and no sum. top_k and top_p need the scores in order, but hardly ever all
 * of them: a heap of the first FIRST mostly reaches top_p, and the row is sorted only if not.
 *
 * min_p drops what is less likely than so much of the likeliest: p / largest p = e^(z - top), so it
 * is a bound on z, -Inf where it is off. It comes after top_k and before top_p. */
#include "backend/cpu/kernels/math.h"
#include "backend/cpu/kernels/order/order.h"
#include "backend/cpu/kernels/order/random.h"
#include "backend/cpu/kernels/rows/softmax.h"

enum { FIRST = 256 };

struct sample_job {
    const struct cpu_call *c;
    int64_t rows, n, k, lanes; /* n: logits per row; k: how many are kept */
    bool greedy, nucleus;      /* nucleus: top_p is on */
    bool sorts;                /* a whole row, where it is not enough to keep the first k */
    uint64_t lane_items;       /* of scratch */
    float temperature, top_p;
    float least; /* of z less the largest one, by min_p */
    struct rng_pair key;
};

static void set_job(struct sample_job *j, const struct cpu_call *c)
{
    const struct attr_sample *a = &c->attr->sample;
    const struct cpu_tensor *logits = &c->in[0];

    *j = (struct sample_job){.c = c, .n = logits->dim[logits->rank - 1]};
    j->rows = c->out->count;
    j->greedy = a->top_k == 1 || a->temperature < 1e-6f;
    j->temperature = j->greedy ? 1.0f : a->temperature;
    j->k = a->top_k > 0 ? cpu_min_i64(a->top_k, j->n) : j->n;
    j->top_p = a->top_p;
    j->least = (float)log((double)a->min_p);
    j->nucleus = (double)a->top_p < 1 - 1e-6;
    if (!j->greedy && (j->k < j->n || j->nucleus)) {
        j->sorts = j->k == j->n || (j->k > FIRST && j->k > j->n / 16);
        j->lane_items = j->sorts ? 2 * (uint64_t)j->n : (uint64_t)j->k;
    }
    j->lanes = order_lanes(j->rows, j->n, order_bytes(j->lane_items, sizeof(uint64_t)));
}

/* ---- scores -------------------------------------------------------------------------------- */

/* Logits over temperature, NaN read as -Inf; n <= CPU_TILE. */
static void load_scores(const struct sample_job *j, int64_t row, int64_t from, int64_t n, float *z)
{
    const struct cpu_tensor *logits = &j->c->in[0];

    cpu_load_f32(logits->dtype, cpu_at(logits, row * j->n + from), z, n);
    for (int64_t i = 0; i < n; i++) {
        float v = z[i] / j->temperature;
        z[i] = v != v ? -INFINITY : v;
    }
}

static float score_at(const struct sample_job *j, int64_t row, int64_t i)
{
    float z;
    load_scores(j, row, i, 1, &z);
    return z;
}

/* A candidate: the best value so far and the first index that has it. */
struct best {
    float value;
    int64_t index;
};

static void take_tile(struct best *b, const float *v, int64_t from, int64_t n)
{
    float top = reduce_row_top_f32(v, n);
    int64_t i = 0;

    if (!(top > b->value))
        return;
    while (v[i] != top)
        i++;
    *b = (struct best){top, from + i};
}

static struct best largest_score(const struct sample_job *j, int64_t row)
{
    struct best b = {-INFINITY, 0};
    CPU_TILE_OF(float, z);

    for (int64_t from = 0; from < j->n; from += CPU_TILE) {
        int64_t n = cpu_min_i64(j->n - from, CPU_TILE);
        load_scores(j, row, from, n, z);
        take_tile(&b, z, from, n);
    }
    return b;
}

/* -ln(-ln(u)) of the row's numbers from .. from+n-1. */
static void gumbel(const struct sample_job *j, int64_t row, int64_t from, int64_t n, float *g)
{
    struct rng_pair key = j->key;

    for (int64_t i = 0; i < n; i++) {
        float u = random_unit(random_words((uint32_t)row, (uint32_t)(from + i), key).x0);
        g[i] = u > 1e-30f ? u : 1e-30f;
    }
    for (int64_t i = 0; i < n; i++)
        g[i] = -math_log_core(-math_log_core(g[i], 0.0f), 0.0f);
}

/* ---- drawing ------------------------------------------------------------------------------- */

static int64_t draw_from_all(const struct sample_job *j, int64_t row, float top)
{
    struct best b = {-INFINITY, 0};
    CPU_TILE_OF(float, z);
    CPU_TILE_OF(float, g);

    for (int64_t from = 0; from < j->n; from += CPU_TILE) {
        int64_t n = cpu_min_i64(j->n - from, CPU_TILE);
        load_scores(j, row, from, n, z);
        gumbel(j, row, from, n, g);
        for (int64_t i = 0; i < n; i++) {
            float below = z[i] - top;
            z[i] = below >= j->least ? below + g[i] : -INFINITY;
        }
        take_tile(&b, z, from, n);
    }
    return b.index;
}

static int64_t draw_from_list(const struct sample_job *j, int64_t row, float top,
                              const uint64_t *item, int64_t count)
{
    struct best b = {-INFINITY, INT64_MAX};

    for (int64_t k = 0; k < count; k++) {
        int64_t i = (int64_t)(item[k] & UINT32_MAX);
        float g, v;
        gumbel(j, row, i, 1, &g);
        v = (score_at(j, row, i) - top) + g;
        if (v > b.value || (v == b.value && v > -INFINITY && i < b.index))
            b = (struct best){v, i};
    }
    return b.index;
}

/* How many of the items, which are in order, min_p leaves; at least the first. */
static int64_t likely_of(const struct sample_job *j, int64_t row, float top, const uint64_t *item,
                         int64_t count)
{
    int64_t stay = 1, end = count; /* the answer is in between */

    while (stay < end) {
        int64_t middle = stay + (end - stay) / 2;
        if (score_at(j, row, (int64_t)(item[middle] & UINT32_MAX)) - top >= j->least)
            stay = middle + 1;
        else
            end = middle;
    }
    return stay;
}

/* ---- order --------------------------------------------------------------------------------- */

/* The first `want` in order, if that is not all of them; otherwise the whole row sorted. */
static void order_scores(const struct sample_job *j, int64_t row, uint64_t *item, int64_t want)
{
    int64_t have = 0;
    CPU_TILE_OF(float, z);
    CPU_TILE_OF(int32_t, key);
    CPU_TILE_OF(uint64_t, tile);

    for (int64_t from = 0; from < j->n; from += CPU_TILE) {
        int64_t n = cpu_min_i64(j->n - from, CPU_TILE);
        uint64_t *to = want < j->n ? tile : item + from;
        load_scores(j, row, from, n, z);
        order_keys32(RLX_DTYPE_f32, ORDER_DOWN, z, n, key);
        for (int64_t i = 0; i < n; i++)
            to[i] = order_pack(key[i], from + i);
        if (want < j->n)
            have = order_top_packed(item, want, have, tile, n);
    }
    if (want < j->n)
        order_finish_packed(item, want);
    else
        order_sort_packed(item, item + j->n, j->n);
}

/* Of all that min_p leaves. */
static double sum_of_all(const struct sample_job *j, int64_t row, float top)
{
    double sum = 0;
    CPU_TILE_OF(float, z);

    for (int64_t from = 0; from < j->n; from += CPU_TILE) {
        int64_t n = cpu_min_i64(j->n - from, CPU_TILE);
        load_scores(j, row, from, n, z);
        for (int64_t i = 0; i < n; i++)
            z[i] = z[i] - top >= j->least ? z[i] : -INFINITY;
        softmax_exp_f32(z, top, 1, z, n);
        sum += reduce_row_sum_f32(z, n);
    }
    return sum;
}

static double sum_of_list(const struct sample_job *j, int64_t row, float top, const uint64_t *item,
                          int64_t count)
{
    double sum = 0;

    for (int64_t k = 0; k < count; k++)
        sum += (double)math_exp(score_at(j, row, (int64_t)(item[k] & UINT32_MAX)) - top);
    return sum;
}

/* How many of the items, which are in order, are needed to reach top_p; 0: they do not reach it. */
static int64_t nucleus_of(const struct sample_job *j, int64_t row, float top, double sum,
                          const uint64_t *item, int64_t count)
{
    float all = (float)sum, running = 0;

    for (int64_t k = 0; k < count; k++) {
        running += math_exp(score_at(j, row, (int64_t)(item[k] & UINT32_MAX)) - top) / all;
        if (running >= j->top_p)
            return k + 1;
    }
    return 0;
}

static int64_t draw_from_nucleus(const struct sample_job *j, int64_t row, float top, uint64_t *item)
{
    bool all = j->k == j->n;
    double sum = all ? sum_of_all(j, row, top) : 0;
    int64_t count = 0;

    if (all && j->n > FIRST) {
        int64_t likely;
        order_scores(j, row, item, FIRST);
        likely = likely_of(j, row, top, item, FIRST);
        count = nucleus_of(j, row, top, sum, item, likely);
        if (count == 0 && likely < FIRST)
            count = likely; /* rounding: these are all there are */
    }
    if (count == 0) {
        order_scores(j, row, item, j->sorts ? j->n : j->k);
        int64_t likely = likely_of(j, row, top, item, j->k);
        if (!all)
            sum = sum_of_list(j, row, top, item, likely);
        count = nucleus_of(j, row, top, sum, item, likely);
        count = count ? count : likely;
    }
    return draw_from_list(j, row, top, item, count);
}

static int64_t draw(const struct sample_job *j, int64_t row, uint64_t *item)
{
    struct best top = largest_score(j, row);

    /* -Inf: nothing to draw from, and index 0; +Inf: the first that has it. */
    if (j->greedy || top.value == -INFINITY || top.value == INFINITY)
        return top.index;
    if (j->nucleus)
        return draw_from_nucleus(j, row, top.value, item);
    if (j->k == j->n)
        return draw_from_all(j, row, top.value);
    order_scores(j, row, item, j->sorts ? j->n : j->k);
    return draw_from_list(j, row, top.value, item, likely_of(j, row, top.value, item, j->k));
}

static void sample_lane(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct sample_job *j = ctx;

    (void)worker;
    for (int64_t lane = begin; lane < end; lane++) {
        uint64_t *item =
            j->lane_items ? (uint64_t *)j->c->scratch + (uint64_t)lane * j->lane_items : NULL;
        for (int64_t row = lane; row < j->rows; row += j->lanes) {
            int64_t index = draw(j, row, item);
            index_store(j->c->out, row, 1, &index, 1);
        }
    }
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct sample_job j;

    set_job(&j, c);
    return order_bytes(order_bytes((uint64_t)j.lanes, sizeof(uint64_t)), j.lane_items);
}

static void run(const struct cpu_call *c)
{
    struct sample_job j;

    if (c->out->count == 0)
        return;
    set_job(&j, c);
    j.key = random_key(c, c->attr->sample.seed, 1);
    cpu_for(c->pool, j.lanes, 1, sample_lane, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_sample);
const struct cpu_kernel CPU_NAME(cpu_sample) = {.run = run, .scratch = scratch};
