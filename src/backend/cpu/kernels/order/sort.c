/* sort.c: the elements along an axis in order: all of them (sort), the first k (topk), or where
 * they were (argsort, topk).
 *
 * A small k is kept in a heap while the row goes by; otherwise the whole row is sorted. */
#include "backend/cpu/kernels/order/order.h"

struct sort_job {
    const struct cpu_call *c;
    enum order order;
    bool values; /* else indices */
    bool packed, heap;
    int64_t n, k, inner, rows, lanes; /* inner: from one element of a row to the next */
    size_t item;                      /* bytes of an item */
    uint64_t lane_items;              /* of scratch */
};

static void set_job(struct sort_job *j, const struct cpu_call *c)
{
    const struct cpu_tensor *x = &c->in[0];
    const struct attr_sort *s = &c->attr->sort;
    const struct attr_argsort *a = &c->attr->argsort;
    const struct attr_topk *t = &c->attr->topk;
    bool top = c->op == RLX_OP_topk, sorts = c->op == RLX_OP_sort;
    int64_t axis = top ? t->axis : sorts ? s->axis : a->axis;

    j->c = c;
    j->order = (top || (sorts ? s->descending : a->descending)) ? ORDER_DOWN : ORDER_UP;
    j->values = top ? t->result == RLX_TOPK_RESULT_values : sorts;
    j->n = x->dim[axis];
    j->k = top ? t->k : j->n;
    j->packed = order_is_packed(x->dtype, j->n);
    j->heap = j->k < j->n && (j->k <= 64 || j->k <= j->n / 16);
    j->inner = cpu_product(x, axis + 1, x->rank);
    j->rows = j->n ? x->count / j->n : 0;
    j->item = j->packed ? sizeof(uint64_t) : sizeof(struct order_pair);
    j->lane_items = j->heap ? (uint64_t)j->k : 2 * (uint64_t)j->n;
    j->lanes = order_lanes(j->rows, j->n, order_bytes(j->lane_items, j->item));
}

static void first_packed(const struct sort_job *j, const struct order_row *r, uint64_t *items)
{
    CPU_TILE_OF(uint64_t, tile);
    int64_t have = 0;

    if (!j->heap) {
        order_packed(r, j->order, 0, r->n, items);
        order_sort_packed(items, items + r->n, r->n);
        return;
    }
    for (int64_t from = 0; from < r->n; from += CPU_TILE) {
        int64_t n = cpu_min_i64(r->n - from, CPU_TILE);
        order_packed(r, j->order, from, n, tile);
        have = order_top_packed(items, j->k, have, tile, n);
    }
    order_finish_packed(items, have);
}

static void first_pairs(const struct sort_job *j, const struct order_row *r,
                        struct order_pair *items)
{
    CPU_TILE_OF(struct order_pair, tile);
    int64_t have = 0;

    if (!j->heap) {
        order_pairs(r, j->order, 0, r->n, items);
        order_sort_pairs(items, items + r->n, r->n);
        return;
    }
    for (int64_t from = 0; from < r->n; from += CPU_TILE) {
        int64_t n = cpu_min_i64(r->n - from, CPU_TILE);
        order_pairs(r, j->order, from, n, tile);
        have = order_top_pairs(items, j->k, have, tile, n);
    }
    order_finish_pairs(items, have);
}

/* The indices of ranks from .. from+n-1. */
static void ranked(bool packed, const void *items, int64_t from, int64_t n, int64_t *index)
{
    if (packed)
        for (int64_t i = 0; i < n; i++)
            index[i] = (int64_t)(((const uint64_t *)items)[from + i] & UINT32_MAX);
    else
        for (int64_t i = 0; i < n; i++)
            index[i] = ((const struct order_pair *)items)[from + i].index;
}

/* to: the output row's first element. */
static void write_row(const struct sort_job *j, const struct order_row *r, const void *items,
                      int64_t to)
{
    CPU_TILE_OF(int64_t, index);

    for (int64_t from = 0; from < j->k; from += CPU_TILE, to += CPU_TILE * r->stride) {
        int64_t n = cpu_min_i64(j->k - from, CPU_TILE);
        ranked(j->packed, items, from, n, index);
        if (!j->values) {
            index_store(j->c->out, to, r->stride, index, n);
            continue;
        }
        MOVE_BY_SIZE(cpu_size(r->x->dtype), {
            move_t *dst = cpu_at(j->c->out, to);
            const move_t *src = cpu_at(r->x, r->at);
            for (int64_t i = 0; i < n; i++)
                dst[i * r->stride] = src[index[i] * r->stride];
        })
    }
}

static void sort_lane(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct sort_job *j = ctx;

    (void)worker;
    for (int64_t lane = begin; lane < end; lane++) {
        void *items = (char *)j->c->scratch + (size_t)lane * (size_t)j->lane_items * j->item;
        for (int64_t row = lane; row < j->rows; row += j->lanes) {
            int64_t outer = row / j->inner, column = row % j->inner;
            struct order_row r = {&j->c->in[0], outer * j->n * j->inner + column, j->inner, j->n};
            if (j->packed)
                first_packed(j, &r, items);
            else
                first_pairs(j, &r, items);
            write_row(j, &r, items, outer * j->k * j->inner + column);
        }
    }
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct sort_job j;

    set_job(&j, c);
    return order_bytes(order_bytes((uint64_t)j.lanes, j.item), j.lane_items);
}

static void run(const struct cpu_call *c)
{
    struct sort_job j;

    if (c->out->count == 0)
        return;
    set_job(&j, c);
    cpu_for(c->pool, j.lanes, 1, sort_lane, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_sort), CPU_NAME(cpu_argsort), CPU_NAME(cpu_topk);
const struct cpu_kernel CPU_NAME(cpu_sort) = {.run = run, .scratch = scratch};
const struct cpu_kernel CPU_NAME(cpu_argsort) = {.run = run, .scratch = scratch};
const struct cpu_kernel CPU_NAME(cpu_topk) = {.run = run, .scratch = scratch};
