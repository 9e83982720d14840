/* llama.h: what the files of this folder share. */
#ifndef LLM_LLAMA_H
#define LLM_LLAMA_H

#include "base/diag.h"
#include "rlx/llm.h"

/* The shape with its defaults in place; SHAPE where it makes no model. */
rlx_status llm_read_shape(const rlx_llm_shape *theirs, rlx_llm_shape *own, struct diag *d);

#endif
