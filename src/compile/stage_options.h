/* stage_options.h: what the options of a session (base/options.def) are to the stages of a compile,
 * and to the keys of what it compiles. */
#ifndef COMPILE_STAGE_OPTIONS_H
#define COMPILE_STAGE_OPTIONS_H

#include "lower/lower.h"
#include "pass/pass.h"
#include "plan/plan.h"
#include "rlx/debug.h"

/* What each stage is asked for. What depends on the device as well is left for the caller to fill
 * in: alignments. */
struct stage_options {
    struct pass_options pass;
    struct select_options select;
    struct plan_options plan;
};
void stage_options_of(const rlx_session_desc *desc, struct stage_options *out);

/* A caller's descs as this library knows them (base/desc.h): user.debug is &debug. */
struct session_descs {
    rlx_session_desc user;
    rlx_debug_desc debug;
};
rlx_status session_descs_read(const rlx_session_desc *theirs, struct session_descs *own,
                              struct diag *d);

const rlx_debug_desc *debug_options(const rlx_session_desc *desc); /* never NULL */

/* The options that distinguish compiled programs. */
uint64_t program_options_key(const rlx_session_desc *desc);
/* Those, and the ones that only say where a program's bytes lie. */
uint64_t all_options_key(const rlx_session_desc *desc);

#endif
