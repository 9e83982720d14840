/* pass.h: graph to graph. A pass is small, has a name, and leaves a module that verifies. */
#ifndef PASS_PASS_H
#define PASS_PASS_H

#include "ir/graph.h"
#include "ir/target.h"

struct pass_run {
    const struct target *target; /* NULL: no device in particular, accept everything */
    struct diag *diag;
    uint64_t changes; /* counted up by the pass */
};

struct pass {
    const char *name;    /* "dce" */
    const char *summary; /* for rlx opt --help */
    rlx_status (*run)(struct pass_run *p, struct ir_module *m);
};

/* Every pass there is, in pipeline order; NULL past the end. */
const struct pass *pass_at(size_t i);
const struct pass *pass_find(rlx_str name);
/* The passes a compile makes. optimize false: only those without which it cannot run. */
rlx_status pass_all(struct ir_module *m, const struct target *t, bool optimize, struct diag *d);
/* Is the family rewritten into others where a device has no kernels for it? (Views count.) */
bool pass_expands(enum op_family f);
/* One pass; the module is verified afterwards. */
rlx_status pass_one(const struct pass *pass, struct ir_module *m, const struct target *t,
                    uint64_t *changes, struct diag *d);

#endif
