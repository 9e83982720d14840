/* fold_eval.h: the value of one node on constants, for pass/fold.c: what the CPU's kernels make of
 * it, so that a folded value and a computed one are the same bits. */
#ifndef COMPILE_FOLD_EVAL_H
#define COMPILE_FOLD_EVAL_H

#include "backend/backend.h"

struct fold_eval {
    const rlx_allocator *mem;
    struct backend *cpu;
    bool own; /* opened here, when the first node came */
};

/* device: the one that is compiled for, or NULL; its kernels are used if it is a CPU. */
void fold_eval_init(struct fold_eval *f, const rlx_allocator *mem, struct backend *device);
void fold_eval_free(struct fold_eval *f);
/* As pass_options.eval has it; user is the struct above. A node whose indices are out of range is
 * declined with INDEX: the run decides what becomes of it. */
rlx_status fold_eval_node(void *user, const struct ir_graph *g, const struct ir_node *n,
                          const void *const *in, void *out, struct diag *d);

#endif
