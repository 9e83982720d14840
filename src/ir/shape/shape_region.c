/* shape_region.c: chains of ops in one node: what each step makes of its operands.
 *
 *     elementwise_region %x, %b   chain: 0 = add(in 0, in 1)   1 = relu(step 0)
 *
 * A region stores neither strides nor its shape: both follow from the operands, which broadcast. */
#include "ir/shape/shape.h"

/* ---- chains -------------------------------------------------------------------------------- */

struct chain {
    const char *name;
    const rlx_chain_step *step;
    size_t len;
    const struct ir_type *const *in;
    int32_t in_count;
    rlx_dtype *dtype; /* of the steps so far */
    struct diag *diag;
};

static int32_t step_arity(enum op_family f)
{
    switch (f) {
    case FAMILY_unary:
    case FAMILY_cast: return 1;
    case FAMILY_binary:
    case FAMILY_compare: return 2;
    case FAMILY_where: return 3;
    default: return 0;
    }
}

static rlx_status operand_dtype(const struct chain *h, size_t at, int32_t operand, rlx_dtype *out)
{
    int64_t in = h->step[at].in[operand], input = -1 - in;

    if (in >= 0 && (size_t)in >= at)
        return diag_fail(h->diag, RLX_ERROR_ATTRIBUTE,
                         "%s: step %zu reads step %lld, which does not come before it", h->name, at,
                         (long long)in);
    if (in < 0 && input >= h->in_count)
        return diag_fail(h->diag, RLX_ERROR_ATTRIBUTE, "%s: step %zu reads input %lld of %d",
                         h->name, at, (long long)input, h->in_count);
    *out = in < 0 ? h->in[input]->dtype : h->dtype[in];
    return RLX_OK;
}

static rlx_status not_taken(const struct chain *h, size_t at, rlx_dtype d)
{
    return diag_fail(h->diag, RLX_ERROR_DTYPE, "%s: step %zu: %s does not take %s", h->name, at,
                     op_info((rlx_op)h->step[at].op)->name, rlx_dtype_name(d));
}

/* Two operands meet as they would in a node of their own, after casts. */
static rlx_status meet(const struct chain *h, size_t at, rlx_dtype a, rlx_dtype b, rlx_dtype *out)
{
    if (dtype_promote(a, b, out))
        return RLX_OK;
    return diag_fail(h->diag, RLX_ERROR_DTYPE, "%s: step %zu: %s and %s have no common type",
                     h->name, at, rlx_dtype_name(a), rlx_dtype_name(b));
}

static rlx_status cast_dtype(const struct chain *h, size_t at, rlx_dtype from, rlx_dtype *out)
{
    int32_t to = h->step[at].to;

    if (to < 0 || to >= RLX_DTYPE_count)
        return diag_fail(h->diag, RLX_ERROR_ATTRIBUTE, "%s: step %zu casts to no element type (%d)",
                         h->name, at, to);
    if (from == RLX_DTYPE_c64 && to != RLX_DTYPE_c64)
        return not_taken(h, at, from);
    *out = (rlx_dtype)to;
    return RLX_OK;
}

static rlx_status step_dtype(const struct chain *h, size_t at, rlx_dtype *out)
{
    int32_t number = h->step[at].op;
    rlx_op op = number > RLX_OP_none && number < RLX_OP_count ? (rlx_op)number : RLX_OP_none;
    enum op_family family = op_info(op)->family;
    int32_t arity = step_arity(family);
    rlx_dtype d[3] = {RLX_DTYPE_f32, RLX_DTYPE_f32, RLX_DTYPE_f32}, common;

    if (arity == 0)
        return diag_fail(h->diag, RLX_ERROR_ATTRIBUTE,
                         "%s: step %zu is %s (%d); steps are unary, cast, binary, compare, where",
                         h->name, at, op_info(op)->name, number);
    for (int32_t i = 0; i < arity; i++)
        TRY(operand_dtype(h, at, i, &d[i]));
    switch (family) {
    case FAMILY_unary:
        *out = d[0];
        return dtype_is(d[0], shape_unary_classes(op)) ? RLX_OK : not_taken(h, at, d[0]);
    case FAMILY_cast: return cast_dtype(h, at, d[0], out);
    case FAMILY_where:
        if (!dtype_is(d[0], CLASS_REAL | CLASS_B))
            return not_taken(h, at, d[0]);
        return meet(h, at, d[1], d[2], out);
    default:
        TRY(meet(h, at, d[0], d[1], &common));
        *out = family == FAMILY_compare ? RLX_DTYPE_bool : common;
        return dtype_is(common, shape_pair_classes(op)) ? RLX_OK : not_taken(h, at, common);
    }
}

rlx_status shape_chain_types(const char *name, const struct ir_blob *chain,
                             const struct ir_type *const *in, int32_t in_count, rlx_dtype *step,
                             struct diag *d)
{
    struct chain h = {name, chain->ptr, chain->len, in, in_count, step, d};

    if (h.len == 0)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "%s: the chain has no steps", name);
    for (size_t i = 0; i < h.len; i++)
        TRY(step_dtype(&h, i, &step[i]));
    return RLX_OK;
}

/* What the last step yields. */
static rlx_status chain_result(struct shape_call *c, const struct ir_blob *chain, int32_t in_count,
                               rlx_dtype *out)
{
    rlx_dtype few[32], *step = few;
    size_t bytes = sizeof few;

    if (chain->len > sizeof few / sizeof few[0]) {
        if (!size_mul(chain->len, sizeof *step, &bytes) || !(step = mem_alloc(c->mod->mem, bytes)))
            return diag_no_memory(c->diag, bytes);
    }
    rlx_status s = shape_chain_types(c->name, chain, c->in, in_count, step, c->diag);
    if (s == RLX_OK)
        *out = step[chain->len - 1];
    if (step != few)
        mem_free(c->mod->mem, step, bytes);
    return s;
}

/* ---- the rules ----------------------------------------------------------------------------- */

/* [n, c, h, w] -> [n, c, 2h, 2w] */
static void double_image(struct shape_call *c, struct ir_type *t)
{
    t->dim[2] = dim_mul(c->mod->dims, t->dim[2], 2);
    t->dim[3] = dim_mul(c->mod->dims, t->dim[3], 2);
}

/* The enlarged image is the result's shape; all else broadcasts to it. */
static rlx_status region_with_resize(struct shape_call *c, int64_t image)
{
    if (image < 0 || image >= c->in_count)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: prologue_input is %lld; there are %d inputs", c->name,
                          (long long)image, c->in_count);
    TRY(shape_need_rank(c, (int32_t)image, 4, 4));
    TRY(shape_result_like(c, (int32_t)image));
    double_image(c, c->out);
    for (int32_t i = 0; i < c->in_count; i++)
        if (i != image)
            TRY(shape_broadcasts_to(c, c->in[i], c->out, shape_operand_name(c, i)));
    return RLX_OK;
}

rlx_status shape_elementwise_region(struct shape_call *c)
{
    const struct attr_elementwise_region *a = &c->attr->elementwise_region;
    rlx_dtype dtype = RLX_DTYPE_f32;

    TRY(chain_result(c, &a->chain, c->in_count, &dtype));
    if (a->prologue == RLX_REGION_PROLOGUE_resize_nearest_2x) {
        TRY(region_with_resize(c, a->prologue_input));
    } else {
        TRY(shape_result_like(c, 0));
        for (int32_t i = 1; i < c->in_count; i++)
            TRY(shape_broadcast_dims(c, c->out->dim, c->out->rank, c->in[i]->dim, c->in[i]->rank,
                                     c->out->dim, &c->out->rank));
    }
    c->out->dtype = dtype;
    return RLX_OK;
}

/* m inputs [b, ...] -> [m b, ...]; the chain reads input 0, which stands for each in turn. */
rlx_status shape_batch_elementwise_region(struct shape_call *c)
{
    const struct attr_batch_elementwise_region *a = &c->attr->batch_elementwise_region;
    bool resize = a->prologue == RLX_REGION_PROLOGUE_resize_nearest_2x;
    rlx_dtype dtype = RLX_DTYPE_f32;

    TRY(shape_need_rank(c, 0, resize ? 4 : 1, resize ? 4 : RLX_MAX_RANK));
    for (int32_t i = 1; i < c->in_count; i++) {
        TRY(shape_need_same_dtype(c, 0, i));
        TRY(shape_need_same_shape(c, 0, i));
    }
    TRY(chain_result(c, &a->chain, 1, &dtype));
    TRY(shape_result_like(c, 0));
    c->out->dtype = dtype;
    c->out->dim[0] = dim_mul(c->mod->dims, c->out->dim[0], c->in_count);
    if (resize)
        double_image(c, c->out);
    return RLX_OK;
}

/* Each step enlarges what the one before it made. */
rlx_status shape_transform_region(struct shape_call *c)
{
    const struct ir_blob *chain = &c->attr->transform_region.chain;
    const rlx_chain_step *step = chain->ptr;

    if (chain->len == 0)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: the chain has no steps", c->name);
    TRY(shape_need_rank(c, 0, 4, 4));
    TRY(shape_result_like(c, 0));
    for (size_t i = 0; i < chain->len; i++) {
        int64_t before = i ? (int64_t)i - 1 : RLX_CHAIN_INPUT(0);
        if (step[i].op != RLX_OP_resize_nearest_2x)
            return SHAPE_FAIL(c, ATTRIBUTE, "%s: step %zu is op %d; only resize_nearest_2x may be",
                              c->name, i, step[i].op);
        if (step[i].in[0] != before)
            return SHAPE_FAIL(c, ATTRIBUTE, "%s: step %zu reads %d, not what comes before it",
                              c->name, i, step[i].in[0]);
        double_image(c, c->out);
        if (c->out->dim[2] == RLX_DIM_FAILED || c->out->dim[3] == RLX_DIM_FAILED)
            return SHAPE_FAIL(c, LIMIT, "%s: the size overflows at step %zu", c->name, i);
    }
    return RLX_OK;
}
