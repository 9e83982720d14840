/* shape_index.c: elements picked or placed by index. Index values are the run's affair; that there
 * is something to read is ours. */
#include "ir/shape/shape.h"

/* ---- gather and its mirror ----------------------------------------------------------------- */

/* table [o.., n, t..], indices [k..] -> [o.., k.., t..] */
rlx_status shape_gather(struct shape_call *c)
{
    const struct ir_type *table = c->in[0], *indices = c->in[1];
    int64_t *axis = &c->attr->gather.axis;
    ir_dim dim[2 * RLX_MAX_RANK];
    int32_t rank = 0;

    TRY(shape_need_rank(c, 0, 1, RLX_MAX_RANK));
    TRY(shape_need_index(c, 1));
    TRY(shape_axis(c, "axis", axis, table->rank));
    for (int32_t i = 0; i < *axis; i++)
        dim[rank++] = table->dim[i];
    for (int32_t i = 0; i < indices->rank; i++)
        dim[rank++] = indices->dim[i];
    for (int32_t i = (int32_t)*axis + 1; i < table->rank; i++)
        dim[rank++] = table->dim[i];
    TRY(shape_result(c, table->dtype, rank, dim));
    return shape_need_elements(c, table->dim[*axis], "the table's axis");
}

/* dy [o.., k.., t..], indices [k..] -> [o.., table_dim, t..]; axis is the table's. */
rlx_status shape_gather_backward(struct shape_call *c)
{
    const struct ir_type *dy = c->in[0], *indices = c->in[1];
    struct attr_gather_backward *a = &c->attr->gather_backward;
    int32_t q = indices->rank, rank = 0;
    ir_dim dim[RLX_MAX_RANK + 1];

    TRY(shape_need_class(c, 0, CLASS_REAL | CLASS_C));
    TRY(shape_need_index(c, 1));
    TRY(shape_need_rank(c, 0, q, RLX_MAX_RANK));
    TRY(shape_axis(c, "axis", &a->axis, dy->rank - q + 1));
    TRY(shape_need_size(c, "table_dim", a->table_dim));
    for (int32_t i = 0; i < q; i++)
        if (!shape_agree(c, dy->dim[a->axis + i], indices->dim[i], "sizes of dy and indices"))
            return SHAPE_FAIL(c, SHAPE,
                              "%s: dy %s does not hold the shape of indices %s at axis %lld",
                              c->name, type_text(c, dy), type_text(c, indices), (long long)a->axis);
    for (int32_t i = 0; i < a->axis; i++)
        dim[rank++] = dy->dim[i];
    dim[rank++] = a->table_dim;
    for (int32_t i = (int32_t)a->axis + q; i < dy->rank; i++)
        dim[rank++] = dy->dim[i];
    return shape_result(c, dy->dtype, rank, dim);
}

/* updates [k.., t..], indices [k..] -> [out_dim, t..] */
rlx_status shape_scatter_add(struct shape_call *c)
{
    const struct ir_type *updates = c->in[0], *indices = c->in[1];
    ir_dim dim[RLX_MAX_RANK + 1] = {c->attr->scatter_add.out_dim};
    int32_t rank = 1;
    bool fits = updates->rank >= indices->rank;

    TRY(shape_need_class(c, 0, CLASS_REAL | CLASS_C));
    TRY(shape_need_index(c, 1));
    TRY(shape_need_size(c, "out_dim", dim[0]));
    for (int32_t i = 0; fits && i < indices->rank; i++)
        fits = shape_agree(c, updates->dim[i], indices->dim[i], "sizes of updates and indices");
    if (!fits)
        return SHAPE_FAIL(c, SHAPE, "%s: updates %s does not start with the shape of indices %s",
                          c->name, type_text(c, updates), type_text(c, indices));
    for (int32_t i = indices->rank; i < updates->rank; i++)
        dim[rank++] = updates->dim[i];
    return shape_result(c, updates->dtype, rank, dim);
}

/* ---- element by element -------------------------------------------------------------------- */

/* What combining into existing elements asks of them. */
static rlx_status need_reducible(struct shape_call *c, int32_t reduction)
{
    switch (reduction) {
    case RLX_SCATTER_REDUCTION_add:
    case RLX_SCATTER_REDUCTION_mul: return shape_need_class(c, 0, CLASS_REAL | CLASS_C);
    case RLX_SCATTER_REDUCTION_max:
    case RLX_SCATTER_REDUCTION_min: return shape_need_class(c, 0, CLASS_REAL | CLASS_B);
    default: return RLX_OK;
    }
}

/* Off the axis, positions in indices are positions in data: there may not be more of them. */
static rlx_status need_element_indices(struct shape_call *c, int64_t *axis)
{
    const struct ir_type *data = c->in[0], *indices = c->in[1];
    bool fits = data->rank == indices->rank;

    TRY(shape_need_rank(c, 0, 1, RLX_MAX_RANK));
    TRY(shape_need_index(c, 1));
    TRY(shape_axis(c, "axis", axis, data->rank));
    for (int32_t i = 0; fits && i < data->rank; i++)
        fits = i == *axis ||
               shape_at_least(c, data->dim[i], indices->dim[i], "sizes of data and indices");
    if (fits)
        return RLX_OK;
    return SHAPE_FAIL(c, SHAPE,
                      "%s: indices %s must have the rank of data %s, no larger sizes off axis %lld",
                      c->name, type_text(c, indices), type_text(c, data), (long long)*axis);
}

rlx_status shape_gather_elements(struct shape_call *c)
{
    const struct ir_type *data = c->in[0], *indices = c->in[1];
    int64_t *axis = &c->attr->gather_elements.axis;

    TRY(need_element_indices(c, axis));
    TRY(shape_result(c, data->dtype, indices->rank, indices->dim));
    return shape_need_elements(c, data->dim[*axis], "the axis of data");
}

rlx_status shape_scatter_elements(struct shape_call *c)
{
    struct attr_scatter_elements *a = &c->attr->scatter_elements;

    TRY(need_element_indices(c, &a->axis));
    TRY(need_reducible(c, a->reduction));
    TRY(shape_need_same_dtype(c, 0, 2));
    TRY(shape_need_same_shape(c, 1, 2));
    return shape_result_like(c, 0);
}

/* ---- by coordinate ------------------------------------------------------------------------- */

/* The length k of a coordinate: the last axis of indices, which decides ranks and so is fixed. */
static rlx_status coordinate(struct shape_call *c, int64_t batch_dims, int32_t *k)
{
    const struct ir_type *data = c->in[0], *indices = c->in[1];

    TRY(shape_need_rank(c, 1, 1, RLX_MAX_RANK));
    TRY(shape_need_index(c, 1));
    ir_dim last = indices->dim[indices->rank - 1];
    TRY(shape_need_static(c, last, "the last axis of indices"));
    if (batch_dims < 0 || batch_dims >= indices->rank || batch_dims > data->rank)
        return SHAPE_FAIL(c, ATTRIBUTE,
                          "%s: batch_dims is %lld; data %s and indices %s allow 0 to %d", c->name,
                          (long long)batch_dims, type_text(c, data), type_text(c, indices),
                          indices->rank - 1 < data->rank ? indices->rank - 1 : data->rank);
    if (last > data->rank - batch_dims)
        return SHAPE_FAIL(c, SHAPE,
                          "%s: indices %s holds coordinates of length %lld; data %s has %lld axes",
                          c->name, type_text(c, indices), (long long)last, type_text(c, data),
                          (long long)(data->rank - batch_dims));
    *k = (int32_t)last;
    return RLX_OK;
}

/* indices.shape[:-1] ++ data.shape[from:]; dim has room for two shapes. */
static int32_t slices_dims(const struct shape_call *c, int32_t from, ir_dim *dim)
{
    const struct ir_type *data = c->in[0], *indices = c->in[1];
    int32_t rank = 0;

    for (int32_t i = 0; i < indices->rank - 1; i++)
        dim[rank++] = indices->dim[i];
    for (int32_t i = from; i < data->rank; i++)
        dim[rank++] = data->dim[i];
    return rank;
}

rlx_status shape_gather_nd(struct shape_call *c)
{
    const struct ir_type *data = c->in[0], *indices = c->in[1];
    int64_t batch = c->attr->gather_nd.batch_dims;
    ir_dim dim[2 * RLX_MAX_RANK];
    int32_t k;

    TRY(coordinate(c, batch, &k));
    for (int32_t i = 0; i < batch; i++)
        if (!shape_agree(c, data->dim[i], indices->dim[i], "batch sizes"))
            return SHAPE_FAIL(c, SHAPE, "%s: data %s and indices %s differ in the first %lld axes",
                              c->name, type_text(c, data), type_text(c, indices), (long long)batch);
    TRY(shape_result(c, data->dtype, slices_dims(c, (int32_t)batch + k, dim), dim));
    for (int32_t i = 0; i < k; i++)
        TRY(shape_need_elements(c, data->dim[batch + i], "an axis of data"));
    return RLX_OK;
}

rlx_status shape_scatter_nd(struct shape_call *c)
{
    const struct ir_type *updates = c->in[2];
    ir_dim dim[2 * RLX_MAX_RANK];
    int32_t k;

    TRY(coordinate(c, 0, &k));
    TRY(need_reducible(c, c->attr->scatter_nd.reduction));
    TRY(shape_need_same_dtype(c, 0, 2));
    int32_t rank = slices_dims(c, k, dim);
    bool fits = rank == updates->rank;
    for (int32_t i = 0; fits && i < rank; i++)
        fits = shape_agree(c, updates->dim[i], dim[i], "sizes of updates and of what they replace");
    if (!fits)
        return SHAPE_FAIL(c, SHAPE, "%s: updates %s must have the shape %s", c->name,
                          type_text(c, updates), dims_text(c, dim, rank));
    return shape_result_like(c, 0);
}

/* ---- writing a state ----------------------------------------------------------------------- */

/* rows are like the state except on the axis, where there are no more of them. */
rlx_status shape_cache_append(struct shape_call *c)
{
    const struct ir_type *state = c->in[0], *rows = c->in[1];
    int64_t *axis = &c->attr->cache_append.axis;
    bool fits = state->rank == rows->rank;

    TRY(shape_need_state(c, 0));
    TRY(shape_need_same_dtype(c, 0, 1));
    TRY(shape_axis(c, "axis", axis, state->rank));
    TRY(shape_need_integer_scalar(c, 2));
    for (int32_t i = 0; fits && i < state->rank; i++)
        fits = i == *axis
                   ? shape_at_least(c, state->dim[i], rows->dim[i], "a cache and its new rows")
                   : shape_agree(c, state->dim[i], rows->dim[i], "sizes of state and rows");
    if (!fits)
        return SHAPE_FAIL(c, SHAPE, "%s: rows %s do not fit into the state %s along axis %lld",
                          c->name, type_text(c, rows), type_text(c, state), (long long)*axis);
    return shape_result_like(c, 0);
}
