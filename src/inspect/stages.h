/* stages.h: reports on a compile, as text, for whoever in the API shows them. */
#ifndef INSPECT_STAGES_H
#define INSPECT_STAGES_H

#include "base/str.h"
#include "pass/pass.h"
#include "session/session.h"

/* Each is an extra: where it cannot be made, nothing is added. mod NULL: there is none to report
 * on.
 */
void dispatch_text(const struct ir_module *mod, const struct target *t,
                   const struct pass_options *o, struct text *out); /* stages.c */
/* Fuses a copy. backend: whose kernels fold constants, and whose steps nodes share. */
void fusion_text(const struct ir_module *mod, const struct target *t, const struct pass_options *o,
                 const struct joint_options *joint, struct backend *backend,
                 struct text *out); /* fusion.c */

/* NAME, with the names that there are. */
rlx_status refuse_pass(rlx_str name, struct diag *d);

/* The dispatch report of the model, line by line, to the context's log, if it has one. */
void stages_log_dispatch(const struct rlx_model *m, const struct target *t,
                         const struct pass_options *o);

#endif
