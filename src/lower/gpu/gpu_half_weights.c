/* gpu_half_weights.c: copies of f32 weights in f16 (runtime.md 3.3), where a session asks for them.
 *
 *     matmul x, w  =>  a step that reads x, w and the copy of w, which its kernel takes instead
 *
 * The copy is made on the device whenever its param is set (backend/gpu/gpu_pack.c); sums stay in
 * f32. */
#include "base/str.h"
#include "lower/gpu/gpu_core.h"

#define LAYOUT UINT64_C(0x6631362d636f7079) /* of all such copies */

/* The same in every run, and of one size. */
static bool is_weight(const struct select_call *c, ir_value v)
{
    return ir_node(c->graph, v)->op == RLX_OP_param &&
           ir_type_of(c->graph, v)->dtype == RLX_DTYPE_f32 &&
           (!c->symbolic || type_is_static(ir_type_of(c->symbolic, v)));
}

int32_t gpu_half_operand(const struct select_call *c)
{
    const struct ir_node *n = c->node;

    if (!c->options->f16_weights || !c->options->pack_weights)
        return 0;
    for (int32_t i = n->in_count; i > 0; i--)
        if (op_input_role(n->op, i - 1, n->in_count) == ROLE_WEIGHT && is_weight(c, n->in[i - 1]))
            return i;
    return 0;
}

rlx_status gpu_select_half(struct select_call *c, const struct gpu_work *w)
{
    ir_value source = c->node->in[w->half - 1];
    uint64_t count = gpu_count(ir_type_of(c->graph, source));

    const struct packing what = {.source = source, .operand = w->half - 1, .layout = LAYOUT};
    return select_packed(c, &what, (count + 1) / 2 * 4);
}
