/* dispatch.h: who runs what: for each kind of op in a module, whether the device has a kernel,
 * simpler ops stand in for it, or nothing does. */
#ifndef PASS_DISPATCH_H
#define PASS_DISPATCH_H

#include "base/arena.h"
#include "base/str.h"
#include "pass/pass.h"

enum dispatch_path {
    DISPATCH_NATIVE,    /* a kernel of the device */
    DISPATCH_COMMON,    /* its common body, by the policy */
    DISPATCH_REWRITTEN, /* other kinds stand in for it */
    DISPATCH_UNSUPPORTED
};

struct dispatch_row {
    rlx_op op;
    size_t count; /* nodes of the module as it was given */
    enum dispatch_path path;
    bool logical;         /* it has both a kernel and a common body */
    const char *rewriter; /* what handled it; NULL: nothing had to */
};

struct dispatch_offender {
    int32_t graph;
    ir_value node; /* in the rewritten graph */
    rlx_op op;
    rlx_str label, custom; /* may be none; the name of a custom op */
};

struct dispatch_report {
    const char *backend;
    rlx_dispatch policy;
    const struct pass_options *options; /* which says more than the policy */
    size_t claims;                      /* ops that the device has kernels for */
    struct dispatch_row *row;
    size_t row_count;
    struct dispatch_offender *offender;
    size_t offender_count;
    bool compile_ready; /* nothing is left without a kernel */
    struct arena arena; /* all of the above */
};

/* rewrite false: only look, and believe each rewriter that it can. Labels are the module's. */
rlx_status dispatch_inspect(const struct ir_module *m, const struct target *t,
                            const struct pass_options *o, bool rewrite, struct dispatch_report *out,
                            struct diag *d);
void dispatch_free(struct dispatch_report *r);
void dispatch_print(const struct dispatch_report *r, struct text *out);
void dispatch_print_json(const struct dispatch_report *r, struct text *out);

/* UNSUPPORTED with every node that the device has no kernel for; RLX_OK where there is none. */
rlx_status dispatch_check(const struct ir_module *m, const struct target *t, struct diag *d);

#endif
