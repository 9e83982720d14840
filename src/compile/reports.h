/* reports.h: what a compile did, as text, for logs, dumps and rlx/tools.h. */
#ifndef COMPILE_REPORTS_H
#define COMPILE_REPORTS_H

#include "base/str.h"
#include "context/context.h"
#include "lower/joint.h"
#include "pass/pass.h"
#include "run/program.h"

/* These two are extras: where one cannot be made, nothing is added. mod NULL: there is none to
 * report on. */
void dispatch_text(const struct ir_module *mod, const struct target *t,
                   const struct pass_options *o, struct text *out);
/* Fuses a copy. backend: whose kernels fold constants, and whose steps nodes share. */
void fusion_text(const struct ir_module *mod, const struct target *t, const struct pass_options *o,
                 const struct joint_options *joint, struct backend *backend, struct text *out);

/* The dispatch report, line by line, to the context's log, if it has one. */
void log_dispatch(const struct rlx_context *ctx, const struct ir_module *mod,
                  const struct target *t, const struct pass_options *o);

/* Who runs which op on that device. */
rlx_status dispatch_of(const struct ir_module *mod, struct backend *backend, bool json,
                       struct text *out, struct diag *d);
/* What fusing makes of a copy of mod, with the defaults. backend NULL: a device that has
 * everything, as far as passes go. */
rlx_status fusion_of(const struct ir_module *mod, struct backend *backend, bool json,
                     struct text *out, struct diag *d);

/* Steps by kind, with bytes and arithmetic. */
void schedule_text(const struct program *p, struct text *out);
void schedule_json(const struct program *p, struct text *out);

/* What a plan calls a node of the graph `user`: its label, its leaf's name, or its op. */
rlx_str plan_node_name(void *user, int32_t node);

#endif
