/* sampler.h: which token comes next. */
#ifndef LLM_SAMPLER_H
#define LLM_SAMPLER_H

#include "base/diag.h"
#include "rlx/llm.h"

/* logits[vocab] of what comes after id[count]; they stay as they are. */
rlx_status sampler_choose(rlx_sampler *p, const float *logits, const int32_t *id, size_t count,
                          int32_t *out, struct diag *d);

#endif
