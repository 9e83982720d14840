/* stages.h: what other files of the API ask of stages.c. */
#ifndef API_STAGES_H
#define API_STAGES_H

#include "api/objects.h"
#include "pass/pass.h"

/* The dispatch report of the model, line by line, to the context's log, if it has one. */
void stages_log_dispatch(const struct rlx_model *m, const struct target *t,
                         const struct pass_options *o);

#endif
