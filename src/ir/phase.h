/* phase.h: which part of a graph a node belongs to: what comes in, the bulk of the work, or what is
 * made of its result. For reports, and for decoding token by token. */
#ifndef IR_PHASE_H
#define IR_PHASE_H

#include "ir/graph.h"

enum ir_phase {
    PHASE_PROLOGUE, /* leaves */
    PHASE_STEADY,
    PHASE_EPILOGUE, /* sampling, top-k, and all after the last heavy or the last sampling node */
    PHASE_COUNT
};

/* phase[v] for every node v of g. */
void ir_phases(const struct ir_graph *g, enum ir_phase *phase);

#endif
