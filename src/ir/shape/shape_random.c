/* shape_random.c: draws: indices from rows of logits, and tensors of random numbers. */
#include <math.h>

#include "ir/shape/shape.h"

/* Row and column go into the generator's counter, and into f32 indices, without loss. */
#define MOST_SAMPLED (INT64_C(1) << 24)

static rlx_status need_ranges(struct shape_call *c, const struct attr_sample *a)
{
    char text[32];

    if (a->top_k < 0)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: top_k is %lld; it must not be negative", c->name,
                          (long long)a->top_k);
    if (!(a->top_p > 0.0f && a->top_p <= 1.0f)) {
        str_from_f32(text, a->top_p);
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: top_p is %s; it must be above 0 and at most 1",
                          c->name, text);
    }
    if (!(a->min_p >= 0.0f && a->min_p <= 1.0f)) {
        str_from_f32(text, a->min_p);
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: min_p is %s; it must be at least 0 and at most 1",
                          c->name, text);
    }
    if (!(a->temperature >= 0.0f && isfinite(a->temperature))) {
        str_from_f32(text, a->temperature);
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: temperature is %s; it must be 0 or more, and finite",
                          c->name, text);
    }
    return RLX_OK;
}

/* logits [.., v] -> [..] */
rlx_status shape_sample(struct shape_call *c)
{
    const struct ir_type *x = c->in[0];
    const struct attr_sample *a = &c->attr->sample;

    TRY(shape_need_class(c, 0, CLASS_F));
    TRY(shape_need_rank(c, 0, 1, RLX_MAX_RANK));
    if (c->in_count > 1)
        TRY(shape_need_integer_scalar(c, 1));
    TRY(need_ranges(c, a));
    ir_dim v = x->dim[x->rank - 1], rows = shape_product(c, x->dim, x->rank - 1);
    if (!shape_at_least(c, v, 1, "the row length and 1"))
        return SHAPE_FAIL(c, SHAPE, "%s: the rows of logits %s are empty", c->name,
                          type_text(c, x));
    if (!shape_at_least(c, MOST_SAMPLED, v, "the most that can be sampled and the row length") ||
        !shape_at_least(c, MOST_SAMPLED, rows, "the most that can be sampled and the row count"))
        return SHAPE_FAIL(c, SHAPE, "%s: logits %s has more than %lld rows or columns", c->name,
                          type_text(c, x), (long long)MOST_SAMPLED);
    TRY(shape_need_index_dtype(c, a->index_dtype, v));
    return shape_result(c, a->index_dtype, x->rank - 1, x->dim);
}

/* rng_normal, rng_uniform: f32 of the shape asked for. */
rlx_status shape_rng(struct shape_call *c)
{
    const rlx_list *shape =
        c->op == RLX_OP_rng_normal ? &c->attr->rng_normal.shape : &c->attr->rng_uniform.shape;

    if (c->in_count > 0)
        TRY(shape_need_integer_scalar(c, 0));
    for (int32_t i = 0; i < shape->count; i++)
        TRY(shape_need_size(c, "an entry of shape", shape->at[i]));
    return shape_result(c, RLX_DTYPE_f32, shape->count, shape->at);
}
