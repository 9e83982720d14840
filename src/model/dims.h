/* dims.h: symbolic dims by name, and what is said of names and shapes that do not fit. */
#ifndef MODEL_DIMS_H
#define MODEL_DIMS_H

#include "graph/find_dim.h"
#include "model/store.h"

/* NAME, with the names that there are, of leaves with that op and of outputs. */
rlx_status refuse_leaf(const struct rlx_model *m, const char *what, rlx_op op, rlx_str name,
                       struct diag *d);
rlx_status refuse_output(const struct rlx_model *m, rlx_str name, struct diag *d);
/* SHAPE, with both shapes. */
rlx_status refuse_shape(const struct rlx_model *m, const char *what, rlx_str name,
                        const struct ir_type *want, const rlx_tensor *given, struct diag *d);
/* session/binding.c: what a run's dims and the shapes of its inputs say of the dims' sizes; -1:
 * nothing. */
rlx_status bind_shapes(const struct rlx_model *m, const rlx_run_desc *run, int64_t *size,
                       size_t count, struct diag *d);

#endif
