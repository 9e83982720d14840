/* dims.h: symbolic dims by name, and what is said of names and shapes that do not fit. */
#ifndef MODEL_DIMS_H
#define MODEL_DIMS_H

#include "graph/find_dim.h"
#include "model/store.h"
#include "rlx/tools.h"

/* NAME, with the names that there are, of leaves with that op and of outputs. */
rlx_status refuse_leaf(const struct rlx_model *m, const char *what, rlx_op op, rlx_str name,
                       struct diag *d);
rlx_status refuse_output(const struct rlx_model *m, rlx_str name, struct diag *d);
/* SHAPE, with both shapes. */
rlx_status refuse_shape(const struct rlx_model *m, const char *what, rlx_str name,
                        const struct ir_type *want, const rlx_tensor *given, struct diag *d);
/* The type of an input, param, state or output as text; "": there is none of that number. */
void model_io_type(const struct rlx_model *m, rlx_io_kind kind, size_t i, char *out, size_t size);
size_t model_dim_count(const struct rlx_model *m); /* symbols that the model uses */
bool model_uses_dim(const struct rlx_model *m, size_t symbol);

#endif
