/* grow.h: the parts of the grower. */
#ifndef TESTS_RANDOM_GROW_H
#define TESTS_RANDOM_GROW_H

#include "random.h"

struct grower {
    struct ir_graph *g;
    struct dice *dice;
    struct spread *spread; /* values as they grow; NULL: in a sub-graph */
    int64_t *leaves;       /* made so far */
    bool tame;             /* values stay finite, and errors small */
    bool inner;            /* in a sub-graph: no leaves but constants, nothing that jumps */
    ir_dim symbol;         /* a size that is not known; 0: there is none. Then there is a */
    struct ir_graph *twin; /* of the same nodes with a size for it, which has the values */
    int64_t size;
};

/* All answer RLX_NO_VALUE where that cannot be: the op refuses its operands, or its values would be
 * wild. Then the graph is as it was. */
ir_value put(struct grower *g, rlx_op op, const ir_value *in, int32_t count,
             const union ir_attr *attr);
ir_value put_1(struct grower *g, rlx_op op, ir_value x);
ir_value put_2(struct grower *g, rlx_op op, ir_value x, ir_value y);
ir_value add_leaf(struct grower *g, const struct ir_type *type, const struct value_spec *spec);
/* x with another type, whatever it takes: cast, reshaped, repeated, cut. */
ir_value adapt(struct grower *g, ir_value x, const struct ir_type *type);

/* A value made before; of those classes, or made now. */
ir_value pick(struct grower *g);
ir_value pick_of(struct grower *g, unsigned classes);
/* One that is nearly of that type, if there is one. */
ir_value pick_like(struct grower *g, const struct ir_type *type);
int64_t random_size(struct grower *g);
struct ir_type random_type(struct grower *g, rlx_dtype dtype);
static inline const struct ir_type *type_of(const struct grower *g, ir_value v)
{
    return ir_type_of(g->g, v);
}

/* One more node, or a few; the latter three draw which. False: it did not work out. */
bool grow_free(struct grower *g, rlx_op op);  /* on any values: grow_free.c */
bool grow_row(struct grower *g, rlx_op op);   /* as the self-test has it: grow_rows.c */
bool grow_motif(struct grower *g, rlx_op op); /* what passes look for: grow_flow.c */
bool grow_flow(struct grower *g, rlx_op op);  /* if, while, scan: grow_flow.c */
bool grow_again(struct grower *g, rlx_op op); /* one that is there: grow_free.c */
bool has_free(rlx_op op);
bool has_row(rlx_op op);

#endif
