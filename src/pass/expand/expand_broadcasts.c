/* expand_broadcasts.c: operands of the shape of the result, for devices whose kernels want that.
 *
 *     %y = add %x, %b                    =>      %t = reshape %b shape=[1,3]
 *         (f32[2,3] and f32[3])                  %e = expand %t shape=[2,3]
 *                                                %y = add %x, %e
 *
 * Needs:  nothing.      Keeps: types, order, labels. Of ops with the trait BROADCASTS. A dim is 1
 * only where it is known to be. A single element stays as it is where the kernels take one. */
#include "pass/expand/expand.h"
#include "pass/pass.h"

static bool fits(const struct pass_run *p, const struct ir_type *operand, const struct ir_type *out)
{
    bool scalars = !p->target || p->target->scalar_operands, same = operand->rank == out->rank;
    int64_t count;

    for (int32_t i = 0; same && i < out->rank; i++)
        same = operand->dim[i] == out->dim[i];
    return same || (scalars && type_count(operand, &count) && count == 1);
}

static bool node_fits(const struct pass_run *p, const struct ir_graph *g, const struct ir_node *n)
{
    for (int32_t k = 0; op_has_trait(n->op, BROADCASTS) && k < n->in_count; k++)
        if (!fits(p, ir_type_of(g, n->in[k]), &n->type))
            return false;
    return true;
}

static rlx_status widen(struct rebuild *r, ir_value x, const struct ir_type *to, ir_value *out)
{
    const struct ir_type from = *expand_type(r, x);
    rlx_list padded = {.count = to->rank};

    for (int32_t i = 0, lead = to->rank - from.rank; i < to->rank; i++)
        padded.at[i] = i < lead ? 1 : from.dim[i - lead];
    TRY(expand_reshape_to(r, x, padded, out));
    return expand_to_shape(r, *out, rlx_list_of(to->rank, to->dim), out);
}

static rlx_status replace(const struct pass_run *p, struct rebuild *r, const struct ir_node *n)
{
    ir_value in[3], out; /* none of them has more */

    for (int32_t k = 0; k < n->in_count; k++) {
        in[k] = rebuild_map(r, n->in[k]);
        if (!fits(p, expand_type(r, in[k]), &n->type))
            TRY(widen(r, in[k], &n->type, &in[k]));
    }
    TRY(rebuild_add(r, n->op, in, n->in_count, &n->attr, &out));
    rebuild_replace(r, n, out);
    return RLX_OK;
}

static rlx_status rewrite(struct pass_run *p, struct ir_graph *g)
{
    struct rebuild r;
    size_t wanted = 0;

    IR_EACH(n, g)
        wanted += !node_fits(p, g, n);
    if (!wanted)
        return RLX_OK;
    rlx_status s = rebuild_begin(&r, g, p->diag);
    for (size_t i = 0; s == RLX_OK && i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        s = node_fits(p, g, n) ? rebuild_keep(&r, n) : replace(p, &r, n);
    }
    s = rebuild_finish(&r, s);
    p->changes += wanted;
    return s;
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    if (p->target && !p->target->equal_operands)
        return RLX_OK;
    for (size_t i = 0; i < m->graph.len; i++)
        TRY(rewrite(p, m->graph.at[i]));
    return RLX_OK;
}

const struct pass pass_expand_broadcasts = {
    "expand-broadcasts", "operands of the result's shape, where kernels want that", run};
