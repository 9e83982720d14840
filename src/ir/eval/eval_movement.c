/* eval_movement.c: the same elements elsewhere (ops-core.md 6).
 *
 * Each op says where result position `at` was in its operand; nothing is computed. */
#include "ir/eval/eval.h"

/* Turns an index into the result into one into the operand; false: there is none, fill instead. */
typedef bool (*source_fn)(const struct eval_call *c, int64_t *at);

static rlx_status move(struct eval_call *c, source_fn source, struct eval_cell fill)
{
    int64_t at[RLX_MAX_RANK];

    for (int64_t k = 0; k < c->out->count; k++) {
        eval_unflatten(c->out, k, at);
        c->out->at[k] = source(c, at) ? c->in[0]->at[eval_at(c->in[0], at)] : fill;
    }
    return RLX_OK;
}

static const struct eval_cell zero;

/* ---- one operand, every element used ------------------------------------------------------- */

rlx_status eval_reshape(struct eval_call *c)
{
    eval_copy(c->out, c->in[0]);
    return RLX_OK;
}

static bool transposed(const struct eval_call *c, int64_t *at)
{
    const rlx_list *perm = &c->attr->transpose.perm;
    int64_t from[RLX_MAX_RANK];

    for (int32_t i = 0; i < perm->count; i++)
        from[perm->at[i]] = at[i];
    for (int32_t i = 0; i < perm->count; i++)
        at[i] = from[i];
    return true;
}

rlx_status eval_transpose(struct eval_call *c)
{
    return move(c, transposed, zero);
}

static bool reversed(const struct eval_call *c, int64_t *at)
{
    const rlx_list *axes = &c->attr->reverse.axes;

    for (int32_t i = 0; i < axes->count; i++)
        at[axes->at[i]] = c->in[0]->type.dim[axes->at[i]] - 1 - at[axes->at[i]];
    return true;
}

rlx_status eval_reverse(struct eval_call *c)
{
    return move(c, reversed, zero);
}

/* ---- a part -------------------------------------------------------------------------------- */

static bool narrowed(const struct eval_call *c, int64_t *at)
{
    at[c->attr->narrow.axis] += c->attr->narrow.start;
    return true;
}

rlx_status eval_narrow(struct eval_call *c)
{
    return move(c, narrowed, zero);
}

static bool sliced(const struct eval_call *c, int64_t *at)
{
    const struct attr_slice *a = &c->attr->slice;

    at[a->axis] = a->start + at[a->axis] * a->step;
    return true;
}

rlx_status eval_slice(struct eval_call *c)
{
    return move(c, sliced, zero);
}

static bool in_triangle(const struct eval_call *c, int64_t *at)
{
    int32_t rank = c->out->type.rank;
    int64_t right = at[rank - 1] - at[rank - 2], diagonal = c->attr->trilu.diagonal;

    return c->attr->trilu.upper ? right >= diagonal : right <= diagonal;
}

rlx_status eval_trilu(struct eval_call *c)
{
    return move(c, in_triangle, zero);
}

/* ---- more of it ---------------------------------------------------------------------------- */

rlx_status eval_expand(struct eval_call *c)
{
    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k] = c->in[0]->at[eval_broadcast(c->in[0], c->out, k)];
    return RLX_OK;
}

static bool tiled(const struct eval_call *c, int64_t *at)
{
    for (int32_t i = 0; i < c->out->type.rank; i++)
        at[i] %= c->in[0]->type.dim[i];
    return true;
}

rlx_status eval_tile(struct eval_call *c)
{
    return move(c, tiled, zero);
}

/* Where position p of an axis of n, which may lie outside, is read; -1: nowhere. Padding is never
 * longer than what there is to mirror or go round, so one step back is enough. */
static int64_t padded_position(int32_t mode, int64_t p, int64_t n)
{
    if (p >= 0 && p < n)
        return p;
    switch (mode) {
    case RLX_PAD_MODE_reflect: return p < 0 ? -p : 2 * (n - 1) - p;
    case RLX_PAD_MODE_replicate: return p < 0 ? 0 : n - 1;
    case RLX_PAD_MODE_circular: return p < 0 ? p + n : p - n;
    default: return -1;
    }
}

static bool padded(const struct eval_call *c, int64_t *at)
{
    const struct attr_pad *a = &c->attr->pad;

    for (int32_t i = 0; i < c->out->type.rank; i++) {
        at[i] = padded_position(a->mode, at[i] - a->before.at[i], c->in[0]->type.dim[i]);
        if (at[i] < 0)
            return false;
    }
    return true;
}

rlx_status eval_pad(struct eval_call *c)
{
    return move(c, padded, eval_cell_of(c->out->type.dtype, c->attr->pad.value));
}

static bool halved(const struct eval_call *c, int64_t *at)
{
    (void)c;
    at[2] /= 2;
    at[3] /= 2;
    return true;
}

rlx_status eval_resize_nearest_2x(struct eval_call *c)
{
    return move(c, halved, zero);
}

/* Unsigned, so that no product is undefined; where one could wrap, no memory holds such an axis. */
static bool interpolated(const struct eval_call *c, int64_t *at)
{
    for (int32_t i = 2; i < 5; i++) {
        uint64_t in = (uint64_t)c->in[0]->type.dim[i], out = (uint64_t)c->out->type.dim[i];
        uint64_t from = (uint64_t)at[i] * in / out;
        at[i] = (int64_t)(from < in - 1 ? from : in - 1);
    }
    return true;
}

rlx_status eval_interpolate_3d(struct eval_call *c)
{
    return move(c, interpolated, zero);
}

/* ---- several operands ---------------------------------------------------------------------- */

rlx_status eval_concat(struct eval_call *c)
{
    int64_t axis = c->attr->concat.axis, at[RLX_MAX_RANK];

    for (int64_t k = 0; k < c->out->count; k++) {
        int32_t part = 0;
        eval_unflatten(c->out, k, at);
        while (at[axis] >= c->in[part]->type.dim[axis])
            at[axis] -= c->in[part++]->type.dim[axis];
        c->out->at[k] = c->in[part]->at[eval_at(c->in[part], at)];
    }
    return RLX_OK;
}
