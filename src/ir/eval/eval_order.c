/* eval_order.c: which element is first: extremes, the k largest, sorting (ops-core.md 8.2 to 8.4).
 *
 * NaN is larger than everything. Going down it comes first, going up last; the smallest index wins
 * among equals either way. argmin alone takes a NaN, where there is one, for the smallest. */
#include <math.h>

#include "ir/eval/eval.h"

/* ---- extremes ------------------------------------------------------------------------------ */

static bool is_nan(rlx_dtype t, struct eval_cell x)
{
    return dtype_is(t, CLASS_F) && isnan(x.f);
}

/* Is x more extreme than the best so far? */
static bool beats(rlx_op op, rlx_dtype t, struct eval_cell x, struct eval_cell best)
{
    int order = eval_cell_order(t, x, best);

    if (op == RLX_OP_argmax)
        return order > 0;
    return !is_nan(t, best) && (is_nan(t, x) || order < 0);
}

rlx_status eval_arg_extreme(struct eval_call *c)
{
    const struct eval_tensor *x = c->in[0];
    struct eval_lines l = eval_lines(x, c->attr->arg_extreme.axis);

    for (int64_t line = 0; line < l.outer * l.inner; line++) {
        const struct eval_cell *first = &x->at[eval_line_at(&l, line / l.inner, line % l.inner)];
        int64_t best = 0;
        for (int64_t i = 1; i < l.n; i++)
            if (beats(c->op, x->type.dtype, first[i * l.inner], first[best * l.inner]))
                best = i;
        eval_set(c->out, line, (double)best);
    }
    return RLX_OK;
}

/* ---- sorting ------------------------------------------------------------------------------- */

/* Does x have to stand before y, which stands before it now? */
static bool must_swap(rlx_dtype t, bool descending, struct eval_cell y, struct eval_cell x)
{
    int order = eval_cell_order(t, y, x);

    return descending ? order < 0 : order > 0;
}

/* A merge sort, bottom up: runs of 1, 2, 4 .. */
void eval_order_line(const struct eval_cell *x, int64_t n, int64_t step, rlx_dtype t,
                     bool descending, int64_t *order, int64_t *spare)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t i = 0; i < n; i++)
            spare[i] = order[i];
        for (int64_t lo = 0; lo < n; lo += 2 * run) {
            int64_t mid = lo + run < n ? lo + run : n;
            int64_t hi = mid + run < n ? mid + run : n, a = lo, b = mid;
            for (int64_t to = lo; to < hi; to++) {
                bool take_b = a == mid || (b < hi && must_swap(t, descending, x[spare[a] * step],
                                                               x[spare[b] * step]));
                order[to] = take_b ? spare[b++] : spare[a++];
            }
        }
    }
}

/* Each line of the operand in order; of that order the first elements that the result has room for,
 * as values or as indices. */
static rlx_status ordered(struct eval_call *c, int64_t axis, bool descending, bool values)
{
    const struct eval_tensor *x = c->in[0];
    struct eval_lines from = eval_lines(x, axis), to = eval_lines(c->out, axis);
    int64_t *order = arena_array(c->arena, int64_t, (size_t)from.n);
    int64_t *spare = arena_array(c->arena, int64_t, (size_t)from.n);

    if (!order || !spare)
        return diag_no_memory(c->diag, (size_t)from.n * sizeof *order);
    for (int64_t line = 0; line < to.outer * to.inner; line++) {
        int64_t o = line / to.inner, j = line % to.inner;
        const struct eval_cell *first = &x->at[eval_line_at(&from, o, j)];
        eval_order_line(first, from.n, from.inner, x->type.dtype, descending, order, spare);
        for (int64_t i = 0; i < to.n; i++) {
            int64_t k = eval_line_at(&to, o, j) + i * to.inner;
            if (values)
                c->out->at[k] = first[order[i] * from.inner];
            else
                eval_set(c->out, k, (double)order[i]);
        }
    }
    return RLX_OK;
}

rlx_status eval_topk(struct eval_call *c)
{
    const struct attr_topk *a = &c->attr->topk;

    return ordered(c, a->axis, true, a->result == RLX_TOPK_RESULT_values);
}

rlx_status eval_sort(struct eval_call *c)
{
    return ordered(c, c->attr->sort.axis, c->attr->sort.descending, true);
}

rlx_status eval_argsort(struct eval_call *c)
{
    return ordered(c, c->attr->argsort.axis, c->attr->argsort.descending, false);
}
