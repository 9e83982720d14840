/* custom_vjp.c: the gradient of a registered op, which adds its nodes with the same builders that
 * its caller builds graphs with. */
#include "graph/builder.h"

rlx_status custom_vjp(void *owner, const rlx_custom_op *op, struct ir_graph *g,
                      const struct ir_node *n, ir_value y, ir_value dy, ir_value *dx,
                      struct diag *d)
{
    const struct attr_custom *a = &n->attr.custom;
    rlx_context *ctx = owner;
    rlx_graph face = {.ctx = ctx, .mod = g->mod, .g = g}; /* g, as callers see graphs */

    face.root = &face;
    rlx_status s =
        op->vjp(op->user, &face, n->in, n->in_count, a->attrs.ptr, a->attrs.len, y, dy, dx);
    for (size_t i = 0; i < face.sub.len; i++)
        mem_free(&ctx->mem, face.sub.at[i], sizeof face);
    vec_free(&ctx->mem, &face.sub);
    if (face.first.status != RLX_OK)
        return diag_again(d, &face.first, face.first.status);
    if (s == RLX_OK)
        return RLX_OK;
    return custom_failed(op, "vjp", s, NULL, d);
}
