/* expand_region.c: regions back into the ops they were made of. */
#include "pass/expand/expand.h"

/* Walk a chain of elementwise steps; inputs are values of the new graph. */
static rlx_status unfuse(struct rebuild *r, const struct ir_blob *chain, const ir_value *in,
                         ir_value *out)
{
    const rlx_chain_step *step = chain->ptr;
    ir_value *value = arena_array(&r->old->mod->arena, ir_value, chain->len);

    if (!value)
        return diag_no_memory(r->diag, chain->len * sizeof *value);
    for (size_t i = 0; i < chain->len; i++) {
        rlx_op op = (rlx_op)step[i].op;
        ir_value operand[3];
        int32_t count = op_info(op)->inputs_max;
        union ir_attr attr;

        for (int32_t k = 0; k < count; k++) {
            int32_t from = step[i].in[k];
            operand[k] = from < 0 ? in[RLX_CHAIN_INPUT(from)] : value[from];
        }
        attr_defaults(op, &attr);
        if (op == RLX_OP_cast)
            attr.cast.to = (rlx_dtype)step[i].to;
        TRY(rebuild_add(r, op, operand, count, &attr, &value[i]));
    }
    *out = value[chain->len - 1];
    return RLX_OK;
}

rlx_status expand_region(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                         ir_value *out)
{
    const struct attr_elementwise_region *a = &n->attr.elementwise_region;
    ir_value *operand = arena_array(&r->old->mod->arena, ir_value, (size_t)n->in_count);

    if (!operand)
        return diag_no_memory(r->diag, (size_t)n->in_count * sizeof *operand);
    for (int32_t i = 0; i < n->in_count; i++)
        operand[i] = in[i];
    if (a->prologue == RLX_REGION_PROLOGUE_resize_nearest_2x)
        TRY(expand_1(r, RLX_OP_resize_nearest_2x, in[a->prologue_input],
                     &operand[a->prologue_input]));
    return unfuse(r, &a->chain, operand, out);
}

rlx_status expand_batch_region(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                               ir_value *out)
{
    const struct attr_batch_elementwise_region *a = &n->attr.batch_elementwise_region;
    ir_value *part = arena_array(&r->old->mod->arena, ir_value, (size_t)n->in_count);
    union ir_attr attr;

    if (!part)
        return diag_no_memory(r->diag, (size_t)n->in_count * sizeof *part);
    attr_defaults(RLX_OP_elementwise_region, &attr);
    attr.elementwise_region.chain = a->chain;
    attr.elementwise_region.prologue = a->prologue;
    for (int32_t i = 0; i < n->in_count; i++)
        TRY(rebuild_add(r, RLX_OP_elementwise_region, &in[i], 1, &attr, &part[i]));
    attr_defaults(RLX_OP_concat, &attr);
    attr.concat.axis = 0;
    return rebuild_add(r, RLX_OP_concat, part, n->in_count, &attr, out);
}

rlx_status expand_transform(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                            ir_value *out)
{
    return unfuse(r, &n->attr.transform_region.chain, in, out);
}
