/* stages.h: reports on a compile, as text, for whoever in the API shows them. */
#ifndef INSPECT_STAGES_H
#define INSPECT_STAGES_H

#include "base/str.h"
#include "pass/pass.h"
#include "session/session.h"

/* NAME, with the names that there are. */
rlx_status refuse_pass(rlx_str name, struct diag *d);

#endif
