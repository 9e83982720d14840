/* cpu_sub_program.h: a sub-graph compiled into steps whose memory is its parent step's scratch.
 *
 * It is compiled once, however many steps run it, and its addresses point into the scratch of one
 * of them at a time: a run from another step has them filled in again. Graphs do not recurse, so it
 * is not running then. */
#ifndef BACKEND_CPU_SUB_PROGRAM_H
#define BACKEND_CPU_SUB_PROGRAM_H

#include "backend/cpu/cpu.h"
#include "plan/plan.h"

struct cpu_sub_value {
    int32_t value; /* in steps; the rest is set by load */
    uint8_t *data;
    uint64_t bytes;
    struct ir_type type;
};

struct cpu_sub_program {
    const struct ir_graph *graph;
    struct steps *steps;
    struct plan *plan;
    uint8_t *consts;
    void **pointers; /* room for the operands of any one step */
    bool is_loaded;  /* at that memory, for the sizes of now */
    uint8_t *memory;
    size_t in_count, out_count;
    struct cpu_sub_value *in, *out;
};

rlx_status cpu_sub_build(struct cpu_device *dev, struct select_call *c, int32_t graph,
                         struct cpu_sub_program **out);
uint64_t cpu_sub_bytes(const struct cpu_sub_program *p); /* of memory it needs */
/* Places its values in that memory from now on; does nothing if they are there already. To be
 * called before inputs are written, and again whenever something else may have run in between. */
rlx_status cpu_sub_enter(struct cpu_sub_program *p, uint8_t *memory, struct diag *d);
/* Inputs have been written, outputs can be read afterwards. Bad indices go to the parent's fault.
 */
rlx_status cpu_sub_run(struct cpu_sub_program *p, struct cpu_fault *fault, struct diag *d);

#endif
