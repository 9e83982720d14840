/* inline.c: see inline.h. */
#include "pass/inline.h"

#include "pass/pass.h"

static rlx_status copy_nodes(struct rebuild *r, const struct ir_graph *sub, const ir_value *in,
                             ir_value *map, ir_value *operand)
{
    size_t taken = 0;

    for (size_t i = 0; i < sub->node.len; i++) {
        const struct ir_node *n = &sub->node.at[i];
        if (n->op == RLX_OP_input) {
            map[i] = in[taken++];
            continue;
        }
        for (int32_t k = 0; k < n->in_count; k++)
            operand[k] = map[n->in[k]];
        TRY(rebuild_add(r, n->op, operand, n->in_count, &n->attr, &map[i]));
    }
    return RLX_OK;
}

rlx_status inline_graph(struct rebuild *r, const struct ir_graph *sub, const ir_value *in,
                        ir_value *out)
{
    const rlx_allocator *mem = r->old->mod->mem;
    size_t widest = 0, room = sub->node.len + 1;

    IR_EACH(n, sub)
        widest = (size_t)n->in_count > widest ? (size_t)n->in_count : widest;
    ir_value *map = mem_alloc(mem, (room + widest) * sizeof *map);
    if (!map)
        return diag_no_memory(r->diag, (room + widest) * sizeof *map);
    rlx_status s = copy_nodes(r, sub, in, map, map + room);
    for (size_t i = 0; s == RLX_OK && i < sub->output.len; i++)
        out[i] = map[sub->output.at[i]];
    mem_free(mem, map, (room + widest) * sizeof *map);
    return s;
}

rlx_status pass_append_graph(struct ir_graph *g, const struct ir_graph *sub, const ir_value *in,
                             ir_value *out, struct diag *d)
{
    struct rebuild r = rebuild_append(g, d);
    rlx_status s = inline_graph(&r, sub, in, out);

    return rebuild_appended(&r, s);
}
