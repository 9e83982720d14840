/* eval_region.c: chains of ops in one node (ops-core.md 16).
 *
 * Between steps a value has the precision of its step's type, but no less than f32: types below f32
 * are carried in f32, except where a cast step narrows. So a chain of f32 means exactly what its
 * steps would as nodes of their own. */
#include "ir/eval/eval.h"
#include "ir/shape/shape.h"

struct chain {
    const rlx_chain_step *step;
    size_t len;
    rlx_dtype *dtype;          /* of each step */
    const rlx_dtype *in_dtype; /* of each external operand */
    struct eval_cell *value;   /* of each step, for one element */
};

static rlx_status chain_new(struct eval_call *c, const struct ir_blob *blob, int32_t in_count,
                            struct chain *out)
{
    size_t inputs = (size_t)in_count;
    const struct ir_type **types = arena_array(c->arena, const struct ir_type *, inputs);
    rlx_dtype *in_dtype = arena_array(c->arena, rlx_dtype, inputs);

    *out = (struct chain){.step = blob->ptr, .len = blob->len, .in_dtype = in_dtype};
    out->dtype = arena_array(c->arena, rlx_dtype, blob->len);
    out->value = arena_array(c->arena, struct eval_cell, blob->len);
    if (!types || !in_dtype || !out->dtype || !out->value)
        return diag_no_memory(c->diag, blob->len * sizeof *out->value);
    for (size_t i = 0; i < inputs; i++) {
        types[i] = &c->in[i]->type;
        in_dtype[i] = c->in[i]->type.dtype;
    }
    return shape_chain_types(op_info(c->op)->name, blob, types, in_count, out->dtype, c->diag);
}

/* ---- one element --------------------------------------------------------------------------- */

/* Operand i of a step: a value and its type. */
static struct eval_cell read_operand(const struct chain *h, size_t at, int i,
                                     const struct eval_cell *in, rlx_dtype *dtype)
{
    int32_t from = h->step[at].in[i];

    if (from >= 0) {
        *dtype = h->dtype[from];
        return h->value[from];
    }
    *dtype = h->in_dtype[-1 - from];
    return in[-1 - from];
}

/* Promotion: a value below f32 is carried as one, so only other changes of type do something. */
static struct eval_cell promoted(rlx_dtype from, rlx_dtype to, struct eval_cell x)
{
    return dtype_is(from, CLASS_F) && to == RLX_DTYPE_f32 ? x : eval_cell_cast(from, to, x);
}

static struct eval_cell run_step(const struct chain *h, size_t at, const struct eval_cell *in)
{
    rlx_op op = (rlx_op)h->step[at].op;
    rlx_dtype to = h->dtype[at], da = to, db = to, dc, common = to;
    struct eval_cell a = read_operand(h, at, 0, in, &da), b, cond;

    switch (op_info(op)->family) {
    case FAMILY_unary: return eval_cell_unary(op, to, a);
    case FAMILY_cast:
        return eval_cell_round(to, eval_cell_cast(da, to, a)); /* what was carried is cut now */
    case FAMILY_where:
        cond = a;
        dc = da;
        a = read_operand(h, at, 1, in, &da);
        b = read_operand(h, at, 2, in, &db);
        return eval_cell_true(dc, cond) ? promoted(da, to, a) : promoted(db, to, b);
    default: break;
    }
    b = read_operand(h, at, 1, in, &db);
    dtype_promote(da, db, &common);
    a = promoted(da, common, a);
    b = promoted(db, common, b);
    if (op_info(op)->family == FAMILY_compare)
        return (struct eval_cell){.i = eval_cell_compare(op, common, a, b)};
    return eval_cell_binary(op, common, a, b);
}

/* The last step's value on external operands in[]. It alone is left as precise as it came. */
static struct eval_cell run_chain(const struct chain *h, const struct eval_cell *in)
{
    for (size_t i = 0; i < h->len; i++) {
        bool narrow = h->dtype[i] == RLX_DTYPE_f16 || h->dtype[i] == RLX_DTYPE_bf16;
        struct eval_cell x = run_step(h, i, in);
        h->value[i] =
            i + 1 == h->len ? x : eval_cell_round(narrow ? RLX_DTYPE_f32 : h->dtype[i], x);
    }
    return h->value[h->len - 1];
}

/* ---- the families -------------------------------------------------------------------------- */

/* Position in an image [n, c, h, w] of what is seen at position k of it enlarged. */
static int64_t before_resize(const struct eval_tensor *image, const struct eval_tensor *out,
                             int64_t k)
{
    int64_t at[RLX_MAX_RANK];

    eval_unflatten(out, k, at);
    at[2] /= 2;
    at[3] /= 2;
    return eval_at(image, at);
}

rlx_status eval_elementwise_region(struct eval_call *c)
{
    const struct attr_elementwise_region *a = &c->attr->elementwise_region;
    bool resize = a->prologue == RLX_REGION_PROLOGUE_resize_nearest_2x;
    struct eval_cell *in = arena_array(c->arena, struct eval_cell, (size_t)c->in_count);
    struct chain h;

    if (!in)
        return diag_no_memory(c->diag, (size_t)c->in_count * sizeof *in);
    TRY(chain_new(c, &a->chain, c->in_count, &h));
    for (int64_t k = 0; k < c->out->count; k++) {
        for (int32_t i = 0; i < c->in_count; i++)
            in[i] =
                c->in[i]
                    ->at[resize && i == a->prologue_input ? before_resize(c->in[i], c->out, k)
                                                          : eval_broadcast(c->in[i], c->out, k)];
        c->out->at[k] = run_chain(&h, in);
    }
    return RLX_OK;
}

rlx_status eval_batch_elementwise_region(struct eval_call *c)
{
    const struct attr_batch_elementwise_region *a = &c->attr->batch_elementwise_region;
    bool resize = a->prologue == RLX_REGION_PROLOGUE_resize_nearest_2x;
    struct eval_tensor part = *c->out; /* the share of one input */
    struct chain h;

    part.type.dim[0] = c->in[0]->type.dim[0];
    part.count = c->out->count / c->in_count;
    TRY(chain_new(c, &a->chain, 1, &h));
    for (int64_t k = 0; k < c->out->count; k++) {
        const struct eval_tensor *x = c->in[k / part.count];
        int64_t within = k % part.count;
        c->out->at[k] = run_chain(&h, &x->at[resize ? before_resize(x, &part, within) : within]);
    }
    return RLX_OK;
}

rlx_status eval_transform_region(struct eval_call *c)
{
    int64_t at[RLX_MAX_RANK];

    for (int64_t k = 0; k < c->out->count; k++) {
        eval_unflatten(c->out, k, at);
        for (size_t i = 0; i < c->attr->transform_region.chain.len; i++) {
            at[2] /= 2;
            at[3] /= 2;
        }
        c->out->at[k] = c->in[0]->at[eval_at(c->in[0], at)];
    }
    return RLX_OK;
}
