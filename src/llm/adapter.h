/* adapter.h: small matrices from other files, whose products are added to those of a model's own.
 */
#ifndef LLM_ADAPTER_H
#define LLM_ADAPTER_H

#include "llm/spec.h"
#include "rlx/llm.h"

struct llm_build;

struct llm_adapter {
    rlx_weights *w;
    float alpha; /* over the rank, it is a factor of what is added; 0: there is none */
    float scale; /* another, which the user chose */
};

/* UNSUPPORTED, FORMAT: the file is no adapter, or one for another architecture. */
rlx_status llm_adapter_open(rlx_context *ctx, const rlx_llm_adapter *which,
                            const rlx_load_desc *load, const struct llm_spec *s,
                            struct llm_adapter *out, struct diag *d);
/* y and what each adapter adds to the product of x with the tensor of that full name. */
rlx_value llm_adapted(struct llm_build *b, const char *full, rlx_value x, rlx_value y, int64_t out,
                      int64_t in);
/* Once the graph is built: every tensor of the adapters went into it. */
rlx_status llm_adapters_check(const struct llm_build *b);
rlx_status llm_adapters_load(const struct llm_adapter *a, size_t count, rlx_model *m,
                             struct diag *d);

#endif
