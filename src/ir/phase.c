/* phase.c: see phase.h. */
#include "ir/phase.h"

bool ir_is_heavy(const struct ir_node *n)
{
    const struct op_info *o = op_info(n->op);

    switch (o->family) {
    case FAMILY_conv:
    case FAMILY_conv_transpose:
    case FAMILY_conv_backward_input:
    case FAMILY_conv_backward_weight:
    case FAMILY_attention_backward:
    case FAMILY_fused_matmul_bias_act:
    case FAMILY_fused_conv_bias_act:
    case FAMILY_fused_attention_block:
    case FAMILY_fused_transformer_layer:
    case FAMILY_scan: return true;
    case FAMILY_rope:
    case FAMILY_axial_rope_2d: return false;
    default: return o->category == CATEGORY_CONTRACTION || o->category == CATEGORY_SEQUENCE;
    }
}

static bool samples(const struct ir_node *n)
{
    return n->op == RLX_OP_sample || n->op == RLX_OP_topk;
}

void ir_phases(const struct ir_graph *g, enum ir_phase *phase)
{
    ir_value heavy = -1, sampling = -1;

    IR_EACH(n, g) {
        if (ir_is_heavy(n))
            heavy = ir_id(g, n);
        if (samples(n))
            sampling = ir_id(g, n);
    }
    IR_EACH(n, g) {
        ir_value v = ir_id(g, n);
        bool behind = v > heavy || (sampling >= 0 && v > sampling);
        phase[v] = op_is(n->op, OP_LEAF)  ? PHASE_PROLOGUE
                   : samples(n) || behind ? PHASE_EPILOGUE
                                          : PHASE_STEADY;
    }
}
