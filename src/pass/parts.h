/* parts.h: a graph with cuts (ir/cut.h) as several graphs without, to be run one after the other.
 *
 * A part reads inputs of the whole graph, leaves of cuts, and values that earlier parts computed;
 * the latter two are inputs of its own. What depends on constants and params alone is in every part
 * that reads it. */
#ifndef PASS_PARTS_H
#define PASS_PARTS_H

#include "ir/cut.h"

struct graph_part {
    struct ir_module *mod; /* its symbols have the numbers they have in the whole */
    ir_value *input;       /* by input of mod: the value of the whole graph it stands for */
    size_t input_count;
    ir_value *output; /* by output of mod, each once */
    size_t output_count;
    bool *uses; /* by symbol: something in it has such a size */
};

/* Lists are in the arena; modules are the caller's to destroy, and share the constants of `whole`.
 * UNSUPPORTED: a state is read in more than one part. GRAPH: the cuts make no sense. */
rlx_status cut_into_parts(const struct ir_module *whole, const struct ir_cut *cut, size_t cut_count,
                          const rlx_allocator *mem, struct arena *arena, struct graph_part **out,
                          size_t *count, struct diag *d);

#endif
