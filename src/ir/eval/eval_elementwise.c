/* eval_elementwise.c: one result element from one element of each operand (ops-core.md 2.3, 5). */
#include <math.h>
#include <string.h>

#include "ir/eval/eval.h"

/* The element of operand i that result element k reads. */
static struct eval_cell operand(const struct eval_call *c, int32_t i, int64_t k)
{
    return c->in[i]->at[eval_broadcast(c->in[i], c->out, k)];
}

rlx_status eval_binary(struct eval_call *c)
{
    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k] =
            eval_cell_binary(c->op, c->out->type.dtype, operand(c, 0, k), operand(c, 1, k));
    return RLX_OK;
}

rlx_status eval_compare(struct eval_call *c)
{
    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k].i =
            eval_cell_compare(c->op, c->in[0]->type.dtype, operand(c, 0, k), operand(c, 1, k));
    return RLX_OK;
}

rlx_status eval_cast(struct eval_call *c)
{
    const struct eval_tensor *x = c->in[0];

    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k] = eval_cell_cast(x->type.dtype, c->out->type.dtype, x->at[k]);
    return RLX_OK;
}

/* A signalling NaN comes out quiet, as cells hold no others. */
rlx_status eval_bitcast(struct eval_call *c)
{
    size_t size = rlx_dtype_size(c->out->type.dtype);
    void *bytes = arena_alloc_array(c->arena, (size_t)c->out->count, size, size);

    if (!bytes)
        return diag_no_memory(c->diag, (size_t)c->out->count * size);
    eval_store(c->in[0], bytes);
    eval_load(c->out, bytes);
    return RLX_OK;
}

rlx_status eval_where(struct eval_call *c)
{
    rlx_dtype cond = c->in[0]->type.dtype;

    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k] = operand(c, eval_cell_true(cond, operand(c, 0, k)) ? 1 : 2, k);
    return RLX_OK;
}

/* Integers meet the bounds as integers: cut to integers that the dtype holds. */
rlx_status eval_clamp(struct eval_call *c)
{
    rlx_dtype t = c->out->type.dtype;
    struct eval_cell min = eval_cell_of(t, c->attr->clamp.min);
    struct eval_cell max = eval_cell_of(t, c->attr->clamp.max);

    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k] = eval_cell_binary(
            RLX_OP_min, t, eval_cell_binary(RLX_OP_max, t, c->in[0]->at[k], min), max);
    return RLX_OK;
}

/* a * b + c for operands narrower than f64, as a double that any narrower type is rounded from as
 * from the true value. The product is exact; of the sum, what a double cannot hold is found (error)
 * and remembered by making the last bit odd, so that the sum never looks like a tie by accident. */
static double fma_to_odd(double a, double b, double c)
{
    double product = a * b, sum = product + c;
    double part = sum - product, error = (product - (sum - part)) + (c - part);
    uint64_t bits;

    if (!isfinite(sum) || error == 0)
        return sum;
    memcpy(&bits, &sum, sizeof bits);
    if (!(bits & 1)) /* up or down one, away from or towards zero */
        bits = (error > 0) == (sum > 0) ? bits + 1 : bits - 1;
    memcpy(&sum, &bits, sizeof sum);
    return sum;
}

rlx_status eval_fma(struct eval_call *c)
{
    bool wide = c->out->type.dtype == RLX_DTYPE_f64;

    for (int64_t k = 0; k < c->out->count; k++) {
        double x = operand(c, 0, k).f, y = operand(c, 1, k).f, z = operand(c, 2, k).f;
        c->out->at[k].f = wide ? fma(x, y, z) : fma_to_odd(x, y, z);
    }
    return RLX_OK;
}

rlx_status eval_stop_gradient(struct eval_call *c)
{
    eval_copy(c->out, c->in[0]);
    return RLX_OK;
}

rlx_status eval_complex_norm_sq(struct eval_call *c)
{
    for (int64_t k = 0; k < c->out->count; k++) {
        struct eval_cell z = c->in[0]->at[k];
        c->out->at[k].f = z.f * z.f + z.im * z.im;
    }
    return RLX_OK;
}

rlx_status eval_complex_real(struct eval_call *c)
{
    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k].f = c->in[0]->at[k].f;
    return RLX_OK;
}

rlx_status eval_conjugate(struct eval_call *c)
{
    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k] = (struct eval_cell){.f = c->in[0]->at[k].f, .im = -c->in[0]->at[k].im};
    return RLX_OK;
}
