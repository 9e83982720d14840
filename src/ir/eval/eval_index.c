/* eval_index.c: elements picked or placed by index (ops-core.md 7). Reads clamp; writes outside are
 * dropped (1.9). */
#include "ir/eval/eval.h"

static bool inside(int64_t index, int64_t n)
{
    return index >= 0 && index < n;
}

/* ---- whole slices, one index each ---------------------------------------------------------- */

/* A long index [o.., k.., t..], q axes of k from `axis` on, becomes [o.., row, t..]. */
static void replace_axes(const int64_t *from, int32_t rank, int64_t axis, int32_t q, int64_t row,
                         int64_t *to)
{
    int32_t n = 0;

    for (int32_t i = 0; i < axis; i++)
        to[n++] = from[i];
    to[n++] = row;
    for (int32_t i = (int32_t)axis + q; i < rank; i++)
        to[n++] = from[i];
}

rlx_status eval_gather(struct eval_call *c)
{
    const struct eval_tensor *table = c->in[0], *indices = c->in[1];
    int64_t axis = c->attr->gather.axis, at[RLX_MAX_RANK], from[RLX_MAX_RANK + 1];

    for (int64_t k = 0; k < c->out->count; k++) {
        eval_unflatten(c->out, k, at);
        int64_t row = eval_index(indices, eval_at(indices, at + axis));
        row = eval_clamp_index(row, table->type.dim[axis]);
        replace_axes(at, c->out->type.rank, axis, indices->type.rank, row, from);
        c->out->at[k] = table->at[eval_at(table, from)];
    }
    return RLX_OK;
}

/* Element k of updates is added to row indices[its index from `axis` on] of the result. */
static void add_rows(struct eval_call *c, int64_t axis)
{
    const struct eval_tensor *updates = c->in[0], *indices = c->in[1];
    int64_t at[RLX_MAX_RANK], to[RLX_MAX_RANK + 1];

    for (int64_t k = 0; k < updates->count; k++) {
        eval_unflatten(updates, k, at);
        int64_t row = eval_index(indices, eval_at(indices, at + axis));
        if (!inside(row, c->out->type.dim[axis]))
            continue;
        replace_axes(at, updates->type.rank, axis, indices->type.rank, row, to);
        struct eval_cell *sum = &c->out->at[eval_at(c->out, to)];
        *sum = eval_cell_binary(RLX_OP_add, c->out->type.dtype, *sum, updates->at[k]);
    }
}

rlx_status eval_gather_backward(struct eval_call *c)
{
    add_rows(c, c->attr->gather_backward.axis);
    return RLX_OK;
}

rlx_status eval_scatter_add(struct eval_call *c)
{
    add_rows(c, 0);
    return RLX_OK;
}

/* ---- single elements ----------------------------------------------------------------------- */

rlx_status eval_gather_elements(struct eval_call *c)
{
    const struct eval_tensor *data = c->in[0], *indices = c->in[1];
    int64_t axis = c->attr->gather_elements.axis, at[RLX_MAX_RANK];

    for (int64_t k = 0; k < c->out->count; k++) {
        eval_unflatten(c->out, k, at);
        at[axis] = eval_clamp_index(eval_index(indices, k), data->type.dim[axis]);
        c->out->at[k] = data->at[eval_at(data, at)];
    }
    return RLX_OK;
}

/* In order of position, so that of several writes without a reduction the last one stays. */
static void combine(struct eval_cell *to, struct eval_cell update, int32_t reduction, rlx_dtype t)
{
    switch (reduction) {
    case RLX_SCATTER_REDUCTION_add: *to = eval_cell_binary(RLX_OP_add, t, *to, update); break;
    case RLX_SCATTER_REDUCTION_mul: *to = eval_cell_binary(RLX_OP_mul, t, *to, update); break;
    case RLX_SCATTER_REDUCTION_max: *to = eval_cell_binary(RLX_OP_max, t, *to, update); break;
    case RLX_SCATTER_REDUCTION_min: *to = eval_cell_binary(RLX_OP_min, t, *to, update); break;
    default: *to = update; break;
    }
}

rlx_status eval_scatter_elements(struct eval_call *c)
{
    const struct attr_scatter_elements *a = &c->attr->scatter_elements;
    const struct eval_tensor *indices = c->in[1], *updates = c->in[2];
    int64_t at[RLX_MAX_RANK];

    eval_copy(c->out, c->in[0]);
    for (int64_t k = 0; k < updates->count; k++) {
        eval_unflatten(updates, k, at);
        at[a->axis] = eval_index(indices, k);
        if (inside(at[a->axis], c->out->type.dim[a->axis]))
            combine(&c->out->at[eval_at(c->out, at)], updates->at[k], a->reduction,
                    c->out->type.dtype);
    }
    return RLX_OK;
}

/* ---- by coordinate ------------------------------------------------------------------------- */

/* Where in indices [.., k] the coordinate begins that belongs to an index starting with [..]. */
static int64_t coordinate_at(const struct eval_tensor *indices, const int64_t *at)
{
    int64_t position = 0;
    int32_t last = indices->type.rank - 1;

    for (int32_t i = 0; i < last; i++)
        position = position * indices->type.dim[i] + at[i];
    return position * indices->type.dim[last];
}

rlx_status eval_gather_nd(struct eval_call *c)
{
    const struct eval_tensor *data = c->in[0], *indices = c->in[1];
    int32_t batch = (int32_t)c->attr->gather_nd.batch_dims, lead = indices->type.rank - 1;
    int32_t k_len = (int32_t)indices->type.dim[lead];
    int64_t at[RLX_MAX_RANK], from[RLX_MAX_RANK];

    for (int64_t k = 0; k < c->out->count; k++) {
        eval_unflatten(c->out, k, at);
        int64_t coordinate = coordinate_at(indices, at);
        for (int32_t i = 0; i < data->type.rank; i++) {
            if (i < batch)
                from[i] = at[i];
            else if (i < batch + k_len)
                from[i] = eval_clamp_index(eval_index(indices, coordinate + i - batch),
                                           data->type.dim[i]);
            else
                from[i] = at[lead + i - batch - k_len];
        }
        c->out->at[k] = data->at[eval_at(data, from)];
    }
    return RLX_OK;
}

rlx_status eval_scatter_nd(struct eval_call *c)
{
    const struct eval_tensor *indices = c->in[1], *updates = c->in[2];
    int32_t lead = indices->type.rank - 1, k_len = (int32_t)indices->type.dim[lead];
    int64_t at[RLX_MAX_RANK], to[RLX_MAX_RANK];

    eval_copy(c->out, c->in[0]);
    for (int64_t k = 0; k < updates->count; k++) {
        bool all_inside = true;
        eval_unflatten(updates, k, at);
        int64_t coordinate = coordinate_at(indices, at);
        for (int32_t i = 0; i < c->out->type.rank; i++) {
            to[i] = i < k_len ? eval_index(indices, coordinate + i) : at[lead + i - k_len];
            all_inside = all_inside && inside(to[i], c->out->type.dim[i]);
        }
        if (all_inside)
            combine(&c->out->at[eval_at(c->out, to)], updates->at[k], c->attr->scatter_nd.reduction,
                    c->out->type.dtype);
    }
    return RLX_OK;
}

/* ---- into a state -------------------------------------------------------------------------- */

rlx_status eval_cache_append(struct eval_call *c)
{
    const struct eval_tensor *rows = c->in[1];
    int64_t axis = c->attr->cache_append.axis, at[RLX_MAX_RANK];
    int64_t n = rows->type.dim[axis], room = c->out->type.dim[axis];
    int64_t position = eval_index(c->in[2], 0);

    if (position < 0 || position > room - n)
        return diag_fail(c->diag, RLX_ERROR_INDEX,
                         "cache_append: %lld rows at position %lld do not fit into axis %lld of "
                         "size %lld",
                         (long long)n, (long long)position, (long long)axis, (long long)room);
    eval_copy(c->out, c->in[0]);
    for (int64_t k = 0; k < rows->count; k++) {
        eval_unflatten(rows, k, at);
        at[axis] += position;
        c->out->at[eval_at(c->out, at)] = rows->at[k];
    }
    if (c->state)
        eval_copy(c->state, c->out);
    return RLX_OK;
}
