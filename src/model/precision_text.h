/* precision_text.h: names of precision policies. */
#ifndef MODEL_PRECISION_TEXT_H
#define MODEL_PRECISION_TEXT_H

#include "base/diag.h"
#include "rlx/tools.h"

/* "mixed-bf16", or a type per class of op: "reduction=f32,compute=bf16", into desc. */
rlx_status precision_parse(const char *text, rlx_session_desc *desc, struct diag *d);

#endif
