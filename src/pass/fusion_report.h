/* fusion_report.h: what fusing made of a module, and what nearly fused and did not. */
#ifndef PASS_FUSION_REPORT_H
#define PASS_FUSION_REPORT_H

#include "pass/pass.h"

/* Why a pattern stayed as it was. */
#define FUSION_REASON_MAP(X)                        \
    X(MULTI_CONSUMER, "multi-consumer")             \
    X(NOT_A_BIAS_ADD, "consumer is not a bias add") \
    X(BIAS_RANK, "bias rank too high")              \
    X(EPILOGUE, "unsupported epilogue activation")  \
    X(SHARED_COUNT, "shared-matmul count")          \
    X(INPUTS_DIFFER, "SwiGLU inputs differ")        \
    X(NOT_FUSED, "not fused")
enum fusion_reason {
#define X(name, text) FUSION_##name,
    FUSION_REASON_MAP(X)
#undef X
};
const char *fusion_reason_text(enum fusion_reason r);

struct fusion_missed {
    int32_t graph;
    ir_value node; /* of the module when all patterns but regions were fused */
    rlx_op op;
    rlx_str label; /* the module's */
    enum fusion_reason reason;
    const char *hint; /* what to do about it */
};

/* The ops a report counts. */
enum { FUSION_KINDS = 15 };
extern const rlx_op fusion_kind[FUSION_KINDS];
struct fusion_counts {
    size_t nodes; /* leaves not among them */
    size_t of[FUSION_KINDS];
};

struct fusion_report {
    const rlx_allocator *mem;
    struct fusion_counts before, after;
    VEC(struct fusion_missed) missed;
};

/* Compiles m up to its regions, and on to the end. The report's labels live as long as m. */
rlx_status fusion_report(struct ir_module *m, const struct target *t, const struct pass_options *o,
                         struct fusion_report *out, struct diag *d);
void fusion_report_free(struct fusion_report *r);

/* fusion_missed.c: adds what was missed so far. */
rlx_status fusion_find_missed(const struct ir_module *m, const struct target *t,
                              const struct pass_options *o, struct fusion_report *out,
                              struct diag *d);

#endif
