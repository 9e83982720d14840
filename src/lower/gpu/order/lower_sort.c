/* lower_sort.c: sort, argsort and topk: rows in order, or the first k of it. */
#include "lower/gpu/order/lower_sort.h"
#include "lower/gpu/move/lower_move.h"

#define SPAN 1024      /* elements that a group sorts at once: SPAN of sort.rlk */
#define FEW (SPAN / 4) /* so many of each piece are kept, rather than all pieces merged */
#define EACH 8         /* elements that an invocation merges: EACH of sort.rlk */

uint64_t gpu_key_bytes(rlx_dtype t)
{
    return rlx_dtype_size(t) == 8 ? 8 : 4;
}

static void key_type(struct gpu_call *c, rlx_dtype t)
{
    gpu_name(c, "K", gpu_word(gpu_key_bytes(t)));
    gpu_flag(c, "WIDE", gpu_key_bytes(t) == 8);
}

void gpu_order_type(struct gpu_call *c, rlx_dtype t)
{
    enum { FLOAT, SIGNED, UNSIGNED };

    key_type(c, t);
    gpu_name(c, "T", rlx_dtype_size(t) == 8 ? "u32x2" : rlx_dtype_name(t));
    gpu_const(c, "KIND", dtype_is(t, CLASS_F) ? FLOAT : dtype_is(t, CLASS_I) ? SIGNED : UNSIGNED);
}

/* ---- long rows ---- */

static struct gpu_order room_for(struct gpu_call *c, const struct gpu_sort_rows *r, uint64_t m)
{
    return (struct gpu_order){.keys = gpu_temp(c, r->rows * m * gpu_key_bytes(r->dtype)),
                              .ids = gpu_temp(c, r->rows * m * sizeof(uint32_t)),
                              .m = m};
}

/* What a group's piece of such a row is filled up to: a power of two. */
static uint64_t piece_length(uint64_t n)
{
    uint64_t length = 2;

    while (length < n && length < SPAN)
        length *= 2;
    return length;
}

static void sort_pieces(struct gpu_call *c, const struct gpu_sort_rows *r, uint64_t keep,
                        const struct gpu_order *to)
{
    uint64_t pieces = gpu_ceil(r->n, SPAN), length = piece_length(r->n);

    gpu_kernel(c, "sort", "sort_pieces");
    gpu_order_type(c, r->dtype);
    gpu_flag(c, "DOWN", r->down);
    gpu_flag(c, "NEAR", r->near);
    gpu_bind(c, r->x);
    gpu_bind(c, to->keys);
    gpu_bind(c, to->ids);
    gpu_u32(c, "count", r->rows * pieces);
    gpu_u32(c, "pieces", pieces);
    gpu_u32(c, "n", r->n);
    gpu_u32(c, "inner", r->inner);
    gpu_u32(c, "length", length);
    gpu_u32(c, "keep", keep);
    gpu_u32(c, "m", to->m);
    gpu_groups(c, gpu_ceil(r->rows * pieces, SPAN / length));
}

static void sort_again(struct gpu_call *c, const struct gpu_sort_rows *r, uint64_t keep,
                       const struct gpu_order *from, const struct gpu_order *to)
{
    uint64_t pieces = gpu_ceil(from->m, SPAN), length = piece_length(from->m);

    gpu_kernel(c, "sort", "sort_again");
    key_type(c, r->dtype);
    gpu_bind(c, from->keys);
    gpu_bind(c, from->ids);
    gpu_bind(c, to->keys);
    gpu_bind(c, to->ids);
    gpu_u32(c, "count", r->rows * pieces);
    gpu_u32(c, "pieces", pieces);
    gpu_u32(c, "n", from->m);
    gpu_u32(c, "length", length);
    gpu_u32(c, "keep", keep);
    gpu_u32(c, "m", to->m);
    gpu_groups(c, gpu_ceil(r->rows * pieces, SPAN / length));
}

static void merge(struct gpu_call *c, const struct gpu_sort_rows *r, uint64_t run,
                  const struct gpu_order *from, const struct gpu_order *to)
{
    uint64_t per_row = gpu_ceil(r->n, EACH);

    gpu_kernel(c, "sort", "merge");
    key_type(c, r->dtype);
    gpu_bind(c, from->keys);
    gpu_bind(c, from->ids);
    gpu_bind(c, to->keys);
    gpu_bind(c, to->ids);
    gpu_u32(c, "count", r->rows * per_row);
    gpu_u32(c, "per_row", per_row);
    gpu_u32(c, "n", r->n);
    gpu_u32(c, "run", run);
    gpu_invocations(c, r->rows * per_row, GPU_GROUP);
}

struct gpu_order gpu_order_rows(struct gpu_call *c, const struct gpu_sort_rows *r, uint64_t k)
{
    bool few = k <= FEW;
    uint64_t m = few ? gpu_ceil(r->n, SPAN) * k : r->n;
    struct gpu_order now = room_for(c, r, m), other;

    if (r->rows == 0)
        return now;
    sort_pieces(c, r, few ? k : SPAN, &now);
    if (few && m <= k)
        return now;
    other = room_for(c, r, few ? gpu_ceil(m, SPAN) * k : m);
    if (!few) {
        for (uint64_t run = SPAN; run < r->n; run *= 2) {
            struct gpu_order from = now;
            merge(c, r, run, &from, &other);
            now = other;
            other = from;
        }
        return now;
    }
    while (now.m > k) {
        struct gpu_order from = now;
        other.m = gpu_ceil(from.m, SPAN) * k;
        sort_again(c, r, k, &from, &other);
        now = other;
        other = from;
    }
    return now;
}

/* ---- the ops ---- */

struct wish {
    int64_t axis;
    bool down, values;
};

/* The result's elements: as the operand's, or numbers. */
static void result_type(struct gpu_call *c, bool values)
{
    gpu_flag(c, "VALUES", values);
    if (values && rlx_dtype_size(c->out->dtype) == 8)
        gpu_name(c, "D", "u32x2");
    else
        gpu_type(c, "D", c->out->dtype);
}

static void sort_short(struct gpu_call *c, const struct gpu_sort_rows *r, uint64_t k, bool values)
{
    uint64_t length = piece_length(r->n);

    gpu_kernel(c, "sort", "sort_rows");
    gpu_order_type(c, r->dtype);
    gpu_flag(c, "DOWN", r->down);
    result_type(c, values);
    gpu_bind(c, r->x);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "rows", r->rows);
    gpu_u32(c, "n", r->n);
    gpu_u32(c, "inner", r->inner);
    gpu_u32(c, "k", k);
    gpu_u32(c, "length", length);
    gpu_groups(c, gpu_ceil(r->rows, SPAN / length));
}

static void sort_long(struct gpu_call *c, const struct gpu_sort_rows *r, uint64_t k, bool values)
{
    struct gpu_order order = gpu_order_rows(c, r, k);

    gpu_kernel(c, "sort", "finish");
    gpu_name(c, "T", rlx_dtype_size(r->dtype) == 8 ? "u32x2" : rlx_dtype_name(r->dtype));
    result_type(c, values);
    gpu_bind(c, r->x);
    gpu_bind(c, order.ids);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", gpu_count(c->out));
    gpu_u32(c, "n", r->n);
    gpu_u32(c, "inner", r->inner);
    gpu_u32(c, "k", k);
    gpu_u32(c, "m", order.m);
    gpu_invocations(c, gpu_count(c->out), GPU_GROUP);
}

static void lower_order(struct gpu_call *c, const struct wish *w)
{
    const struct ir_type *x = &c->in[0];
    struct gpu_sort_rows r = {.x = gpu_in(c, 0), .dtype = x->dtype, .down = w->down};
    uint64_t k = (uint64_t)c->out->dim[w->axis];

    if (gpu_count(x) == 0 || gpu_count(c->out) == 0)
        return;
    r.n = (uint64_t)x->dim[w->axis];
    r.inner = gpu_product(x, w->axis + 1, x->rank);
    r.rows = gpu_count(x) / r.n;
    if (r.n <= SPAN)
        sort_short(c, &r, k, w->values);
    else
        sort_long(c, &r, k, w->values);
}

void gpu_lower_sort(struct gpu_call *c)
{
    const struct attr_sort *a = &c->attr->sort;

    lower_order(c, &(struct wish){a->axis, a->descending, true});
}

void gpu_lower_argsort(struct gpu_call *c)
{
    const struct attr_argsort *a = &c->attr->argsort;

    lower_order(c, &(struct wish){a->axis, a->descending, false});
}

void gpu_lower_topk(struct gpu_call *c)
{
    const struct attr_topk *a = &c->attr->topk;

    lower_order(c, &(struct wish){a->axis, true, a->result == RLX_TOPK_RESULT_values});
}
