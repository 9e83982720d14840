/* eval_reduce.c: along axes: reductions, softmax and scans (ops-core.md 8.1, 8.5, 8.6). Orderings
 * are in eval_order.c. */
#include <math.h>

#include "ir/eval/eval.h"

/* ---- reductions ---------------------------------------------------------------------------- */

/* Where element k of the operand goes. Kept axes of size 1 change no position, so keep_dim does not
 * matter here. */
static int64_t reduced_position(const struct eval_call *c, int64_t k, unsigned reduced)
{
    const struct ir_type *t = &c->in[0]->type;
    int64_t at[RLX_MAX_RANK], position = 0;

    eval_unflatten(c->in[0], k, at);
    for (int32_t i = 0; i < t->rank; i++)
        if (!((reduced >> i) & 1u))
            position = position * t->dim[i] + at[i];
    return position;
}

/* A running sum or product, wider than the cell it ends in. */
struct wide {
    long double f, im;
    bool begun; /* 1 times a complex Inf would be NaN: the first factor is taken as it is */
};

static void add_wide(struct wide *s, struct eval_cell x)
{
    s->f += (long double)x.f;
    s->im += (long double)x.im;
}

static void mul_wide(struct wide *p, struct eval_cell x, bool is_complex)
{
    long double re = (long double)x.f, im = (long double)x.im, f = p->f;

    if (is_complex && p->begun) {
        p->f = f * re - p->im * im;
        p->im = f * im + p->im * re;
    } else {
        p->f = f * re;
        p->im = im;
    }
    p->begun = true;
}

static rlx_status reduce_floats(struct eval_call *c, unsigned reduced, int64_t n)
{
    bool product = c->op == RLX_OP_reduce_prod, is_complex = c->out->type.dtype == RLX_DTYPE_c64;
    struct wide *acc = arena_array(c->arena, struct wide, (size_t)c->out->count);

    if (!acc)
        return diag_no_memory(c->diag, (size_t)c->out->count * sizeof *acc);
    for (int64_t k = 0; product && k < c->out->count; k++)
        acc[k].f = 1;
    for (int64_t k = 0; k < c->in[0]->count; k++) {
        struct wide *to = &acc[reduced_position(c, k, reduced)];
        if (product)
            mul_wide(to, c->in[0]->at[k], is_complex);
        else
            add_wide(to, c->in[0]->at[k]);
    }
    for (int64_t k = 0; k < c->out->count; k++) {
        long double by = c->op == RLX_OP_reduce_mean ? (long double)n : 1;
        c->out->at[k].f = (double)(acc[k].f / by);
        c->out->at[k].im = is_complex ? (double)(acc[k].im / by) : 0;
    }
    return RLX_OK;
}

/* What reducing nothing gives, and how two elements meet. */
static struct eval_cell identity(rlx_op op, rlx_dtype t)
{
    switch (op) {
    case RLX_OP_reduce_max: return eval_cell_least(t);
    case RLX_OP_reduce_min: return eval_cell_greatest(t);
    default: return eval_cell_of(t, op == RLX_OP_reduce_prod ? 1 : 0);
    }
}

static rlx_op pair_op(rlx_op op)
{
    switch (op) {
    case RLX_OP_reduce_max: return RLX_OP_max;
    case RLX_OP_reduce_min: return RLX_OP_min;
    case RLX_OP_reduce_prod: return RLX_OP_mul;
    default: return RLX_OP_add;
    }
}

rlx_status eval_reduce(struct eval_call *c)
{
    const rlx_list *axes = &c->attr->reduce.axes;
    rlx_dtype t = c->out->type.dtype;
    bool extreme = c->op == RLX_OP_reduce_max || c->op == RLX_OP_reduce_min;
    unsigned reduced = 0;
    int64_t n = 1;

    if (axes->count == 0) {
        eval_copy(c->out, c->in[0]);
        return RLX_OK;
    }
    for (int32_t i = 0; i < axes->count; i++) {
        reduced |= 1u << axes->at[i];
        n *= c->in[0]->type.dim[axes->at[i]];
    }
    if (dtype_is(t, CLASS_F | CLASS_C) && !extreme)
        return reduce_floats(c, reduced, n);
    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k] = identity(c->op, t);
    for (int64_t k = 0; k < c->in[0]->count; k++) {
        struct eval_cell *to = &c->out->at[reduced_position(c, k, reduced)];
        *to = eval_cell_binary(pair_op(c->op), t, *to, c->in[0]->at[k]);
    }
    return RLX_OK;
}

/* ---- softmax ------------------------------------------------------------------------------- */

void eval_softmax_line(const double *x, double *y, int64_t n)
{
    double top = -INFINITY, sum = 0;
    bool broken = false;

    for (int64_t i = 0; i < n; i++) {
        broken = broken || isnan(x[i]) || x[i] == INFINITY;
        if (x[i] > top)
            top = x[i];
    }
    for (int64_t i = 0; i < n; i++) {
        y[i] = broken ? NAN : top == -INFINITY ? 0 : exp(x[i] - top);
        sum += y[i];
    }
    for (int64_t i = 0; i < n && sum != 0; i++)
        y[i] /= sum;
}

rlx_status eval_softmax(struct eval_call *c)
{
    struct eval_lines l = eval_lines(c->in[0], c->attr->softmax.axis);
    double *x = arena_array(c->arena, double, (size_t)l.n);
    double *y = arena_array(c->arena, double, (size_t)l.n);

    if (!x || !y)
        return diag_no_memory(c->diag, (size_t)l.n * sizeof *x);
    for (int64_t line = 0; line < l.outer * l.inner; line++) {
        int64_t first = eval_line_at(&l, line / l.inner, line % l.inner);
        for (int64_t i = 0; i < l.n; i++)
            x[i] = c->in[0]->at[first + i * l.inner].f;
        eval_softmax_line(x, y, l.n);
        for (int64_t i = 0; i < l.n; i++)
            c->out->at[first + i * l.inner].f = y[i];
    }
    return RLX_OK;
}

/* ---- scans --------------------------------------------------------------------------------- */

/* What has been met so far along a line: an integer, an extreme, or a wide sum or product. */
struct running {
    rlx_op op;
    rlx_dtype dtype;
    struct eval_cell cell;
    long double wide;
};

static bool runs_wide(const struct running *r)
{
    return dtype_is(r->dtype, CLASS_F) && r->op != RLX_OP_max;
}

static struct running run_start(rlx_op op, rlx_dtype t)
{
    struct running r = {.op = op, .dtype = t};

    r.wide = op == RLX_OP_mul ? 1 : 0;
    r.cell = op == RLX_OP_max ? eval_cell_least(t) : eval_cell_of(t, op == RLX_OP_mul ? 1 : 0);
    return r;
}

static void run_on(struct running *r, struct eval_cell x)
{
    if (!runs_wide(r))
        r->cell = eval_cell_binary(r->op, r->dtype, r->cell, x);
    else if (r->op == RLX_OP_mul)
        r->wide *= (long double)x.f;
    else
        r->wide += (long double)x.f;
}

static struct eval_cell run_value(const struct running *r)
{
    return runs_wide(r) ? (struct eval_cell){.f = (double)r->wide} : r->cell;
}

/* Every line from its front, or from its back; exclusive: what was met before the element. */
static void scan_lines(struct eval_call *c, int64_t axis, rlx_op op, bool exclusive, bool from_back)
{
    struct eval_lines l = eval_lines(c->in[0], axis);

    for (int64_t line = 0; line < l.outer * l.inner; line++) {
        int64_t first = eval_line_at(&l, line / l.inner, line % l.inner);
        struct running r = run_start(op, c->out->type.dtype);
        for (int64_t i = 0; i < l.n; i++) {
            int64_t k = first + (from_back ? l.n - 1 - i : i) * l.inner;
            if (exclusive)
                c->out->at[k] = run_value(&r);
            run_on(&r, c->in[0]->at[k]);
            if (!exclusive)
                c->out->at[k] = run_value(&r);
        }
    }
}

rlx_status eval_cumulative(struct eval_call *c)
{
    const struct attr_cumulative *a = &c->attr->cumulative;
    rlx_op op = c->op == RLX_OP_cumprod  ? RLX_OP_mul
                : c->op == RLX_OP_cummax ? RLX_OP_max
                                         : RLX_OP_add;

    scan_lines(c, a->axis, op, a->exclusive, false);
    return RLX_OK;
}

rlx_status eval_cumsum_backward(struct eval_call *c)
{
    const struct attr_cumsum_backward *a = &c->attr->cumsum_backward;

    scan_lines(c, a->axis, RLX_OP_add, a->exclusive, true);
    return RLX_OK;
}
