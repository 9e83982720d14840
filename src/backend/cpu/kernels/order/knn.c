/* knn.c: the nearest neighbours of each point, from a matrix of distances, and the gradient of
 * those distances (ops-special.md 6).
 *
 * Few neighbours are kept in a heap while the row goes by, and hardly any distance gets that far;
 * many are found by sorting the row. */
#include <float.h>

#include "backend/cpu/kernels/order/order.h"

enum { STRIDE = 32 }; /* distances that are looked at together */

struct knn_job {
    const struct cpu_call *c;
    int64_t n, k, room; /* items of scratch per worker */
    bool heap;
};

static uint64_t workers(const struct cpu_call *c)
{
    return c->pool ? (uint64_t)pool_threads(c->pool) : 1;
}

static void set_job(struct knn_job *j, const struct cpu_call *c)
{
    j->c = c;
    j->n = c->in[0].dim[0];
    j->k = c->op == RLX_OP_knn ? c->attr->knn.k : c->attr->knn_backward.k;
    j->heap = j->k <= j->n / 16;
    j->room = cpu_min_i64(2 * j->n, 32 * j->k); /* a heap needs less */
}

static uint64_t item_of(const float *d, int64_t j)
{
    int32_t key;

    order_keys32(RLX_DTYPE_f32, ORDER_UP, d + j, 1, &key);
    return order_pack(key, j);
}

/* Whether any of STRIDE distances is below the limit. */
static bool any_below(const float *d, float limit)
{
    int32_t any = 0;

    for (int i = 0; i < STRIDE; i++)
        any |= d[i] < limit;
    return any;
}

/* The k nearest but for `self`, in order; returns how many there are. Only what is below FLT_MAX
 * counts, which NaN is not. */
static int64_t by_heap(const float *d, int64_t n, int64_t self, int64_t k, uint64_t *item)
{
    int64_t have = 0;
    float limit = FLT_MAX;

    for (int64_t from = 0; from < n; from += STRIDE) {
        int64_t to = cpu_min_i64(from + STRIDE, n);
        if (to - from == STRIDE && !any_below(d + from, limit))
            continue;
        for (int64_t i = from; i < to; i++) {
            if (!(d[i] < limit) || i == self)
                continue;
            uint64_t next = item_of(d, i);
            have = order_top_packed(item, k, have, &next, 1);
            if (have == k)
                limit = d[item[0] & UINT32_MAX]; /* of equals the first stays */
        }
    }
    order_finish_packed(item, have);
    return have;
}

static int64_t by_sort(const float *d, int64_t n, int64_t self, int64_t k, uint64_t *item)
{
    int64_t have = 0;

    for (int64_t i = 0; i < n; i++)
        if (d[i] < FLT_MAX && i != self)
            item[have++] = item_of(d, i);
    order_sort_packed(item, item + n, have);
    return cpu_min_i64(have, k);
}

static void write_row(const struct knn_job *j, int64_t row, const float *d, const uint64_t *item,
                      int64_t have)
{
    float *out = (float *)j->c->out->data + row * 2 * j->k;

    for (int64_t s = 0; s < j->k; s++) {
        int64_t id = s < have ? (int64_t)(item[s] & UINT32_MAX) : j->n;
        out[s] = (float)id;
        out[j->k + s] = s < have ? d[id] : FLT_MAX;
    }
}

static void write_gradient(const struct knn_job *j, int64_t row, const uint64_t *item, int64_t have)
{
    const float *given = (const float *)j->c->in[1].data + row * j->k;
    float *out = (float *)j->c->out->data + row * j->n;

    memset(out, 0, (size_t)j->n * sizeof *out);
    for (int64_t s = 0; s < have; s++)
        out[item[s] & UINT32_MAX] = given[s];
}

static void some_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct knn_job *j = ctx;
    uint64_t *item = (uint64_t *)j->c->scratch + worker * j->room;

    for (int64_t row = begin; row < end; row++) {
        const float *d = (const float *)j->c->in[0].data + row * j->n;
        int64_t have =
            j->heap ? by_heap(d, j->n, row, j->k, item) : by_sort(d, j->n, row, j->k, item);
        if (j->c->op == RLX_OP_knn)
            write_row(j, row, d, item, have);
        else
            write_gradient(j, row, item, have);
    }
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct knn_job j;

    set_job(&j, c);
    return workers(c) * (uint64_t)j.room * sizeof(uint64_t);
}

static void run(const struct cpu_call *c)
{
    struct knn_job j;

    set_job(&j, c);
    cpu_for(c->pool, j.n, 1 + 16384 / j.n, some_rows, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_knn), CPU_NAME(cpu_knn_backward);
const struct cpu_kernel CPU_NAME(cpu_knn) = {.run = run, .scratch = scratch};
const struct cpu_kernel CPU_NAME(cpu_knn_backward) = {.run = run, .scratch = scratch};
