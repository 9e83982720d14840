/* compile_watch.h: what a compile tells on its way, to those who asked: spans of the trace, lines
 * of the log (RLX_VERBOSE, RLX_GPU_SCHEDULE), reports (RLX_FUSION_REPORT, RLX_DISPATCH_REPORT), a
 * file of what became of the graph (RLX_IR_DUMP). None of it can make a compile fail. */
#ifndef COMPILE_WATCH_H
#define COMPILE_WATCH_H

#include "base/str.h"
#include "compile/compile.h"
#include "context/context.h"
#include "lower/joint.h"
#include "pass/pass.h"

struct compile_watch {
    const struct rlx_context *ctx;
    struct backend *backend;
    const struct target *target;        /* these are the compile's, and complete */
    const struct pass_options *options; /* once the graph is bound */
    const struct joint_options *joint;
    struct ir_module *built; /* the graph as built, for reports; NULL: none is asked for */
    uint64_t start, last;    /* of the compile, of the present stage */
    struct text before;      /* the graph as built, for RLX_IR_DUMP */
    struct text dump;
};

void compile_watch_begin(struct compile_watch *w, const struct rlx_context *ctx,
                         struct backend *backend, const struct target *target,
                         const struct pass_options *options, const struct joint_options *joint);
void compile_watch_bound(struct compile_watch *w, const struct ir_module *mod);
void compile_watch_pass(void *user, const struct pass *pass, const struct ir_module *m,
                        uint64_t changes);
void compile_watch_passed(struct compile_watch *w, const struct ir_module *mod);
/* NULL: it failed */
void compile_watch_end(struct compile_watch *w, const struct compiled_program *made);

#endif
