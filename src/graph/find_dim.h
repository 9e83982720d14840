/* find_dim.h: a symbolic dim by its name. */
#ifndef GRAPH_FIND_DIM_H
#define GRAPH_FIND_DIM_H

#include "ir/graph.h"

/* NAME, with the names that there are, where there is no such dim. */
rlx_status find_dim(const struct dim_table *dims, const char *name, size_t *symbol, struct diag *d);

#endif
