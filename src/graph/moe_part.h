/* moe_part.h: what the choice of experts and a layer of them look at before they add nodes. */
#ifndef GRAPH_MOE_PART_H
#define GRAPH_MOE_PART_H

#include "graph/builder.h"

struct moe_part {
    rlx_value v;
    rlx_dtype dtype;
    rlx_list shape;
};

/* A value and its type. False: it is no node of the graph, which is kept under `name` unless the
 * graph has failed already. */
static inline bool moe_look(struct moe_part *p, rlx_graph *g, const char *name, const char *what,
                            rlx_value v)
{
    *p = (struct moe_part){.v = v};
    if (!g || (v == RLX_NO_VALUE && rlx_graph_check(g, NULL) != RLX_OK))
        return false;
    if (rlx_value_type(g, v, &p->dtype, &p->shape, NULL) != RLX_OK)
        return build_fail_in(g, RLX_ERROR_GRAPH, name, "%s is not a node of this graph", what);
    return true;
}

/* The same for floats of at least one axis. */
static inline bool moe_look_at_floats(struct moe_part *p, rlx_graph *g, const char *name,
                                      const char *what, rlx_value v)
{
    if (!moe_look(p, g, name, what, v))
        return false;
    if (!dtype_is(p->dtype, CLASS_F))
        return build_fail_in(g, RLX_ERROR_DTYPE, name, "%s must be floats, not %s", what,
                             rlx_dtype_name(p->dtype));
    if (p->shape.count < 1)
        return build_fail_in(g, RLX_ERROR_SHAPE, name, "%s must have at least one axis", what);
    return true;
}

static inline rlx_dim moe_last(const struct moe_part *p)
{
    return p->shape.at[p->shape.count - 1];
}

#endif
