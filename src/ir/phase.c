/* phase.c: see phase.h. */
#include "ir/phase.h"

void ir_phases(const struct ir_graph *g, enum ir_phase *phase)
{
    ir_value heavy = -1, sampling = -1;

    IR_EACH(n, g) {
        if (op_has_trait(n->op, IS_HEAVY))
            heavy = ir_id(g, n);
        if (op_has_trait(n->op, IS_CHOICE))
            sampling = ir_id(g, n);
    }
    IR_EACH(n, g) {
        ir_value v = ir_id(g, n);
        bool after = v > heavy || (sampling >= 0 && v > sampling);
        phase[v] = op_is(n->op, OP_LEAF)                     ? PHASE_PROLOGUE
                   : op_has_trait(n->op, IS_CHOICE) || after ? PHASE_EPILOGUE
                                                             : PHASE_STEADY;
    }
}
