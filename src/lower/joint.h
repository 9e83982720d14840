/* joint.h: nodes that share a step, or bytes, though the graph has them apart (runtime.md 5.8
 * - 5.10).
 *
 *     split    y = x w + b;  q, k, v = thirds of y's columns    y is stored third by third, so that
 *                                                               q, k and v are views of it
 *     packed   q, k, v = columns of y;  attention q, k, v       attention reads them where they lie
 *     tee      s = h + d;  norm s;  others read s too           one step writes both
 *     cell     lstm;  the same lstm, of which the cell is       one step writes both
 *
 * What a backend has no kernels for stays apart. All of this is decided before the first step. */
#ifndef LOWER_JOINT_H
#define LOWER_JOINT_H

#include "base/arena.h"
#include "ir/graph.h"

enum joint {
    JOINT_NONE,
    JOINT_SPLIT,   /* a product that is stored third by third */
    JOINT_THIRD,   /* a narrow that is one of these */
    JOINT_PACKED,  /* an attention that reads columns where they lie */
    JOINT_COLUMNS, /* a narrow that is no more than where they do */
    JOINT_TEE,     /* a norm, computed with the sum that it reads */
    JOINT_SUM,     /* that sum */
    JOINT_LAYER,   /* an lstm, computed with its last cell */
    JOINT_CELL,    /* that cell */
    JOINT_COUNT
};

/* The name of its step; NULL: it has none of its own. */
const char *joint_step_name(enum joint j);

struct joints {
    uint8_t *as;    /* enum joint, by node */
    ir_value *with; /* of a sum its norm, and of that norm the sum; of a layer its cell, and of that
                     * the layer; else RLX_NO_VALUE */
};

struct joint_options {
    bool no_optimize, no_fusion;          /* nothing shares a step */
    bool no_residual_fusion, no_norm_tee; /* no norm shares one with the sum that it reads */
    bool no_qkv_split, no_packed_qkv;
};

/* In a graph whose sizes may be symbolic. sized: the same nodes at the largest sizes there are; may
 * be the graph itself. backend: who says which it has kernels for (backend_ops.joins). */
struct backend;
rlx_status joint_find(const struct ir_graph *g, const struct ir_graph *sized, struct backend *b,
                      const struct joint_options *o, struct arena *arena, struct joints *out,
                      struct diag *d);

/* Does its step write the value of another node, `with`, besides its own? */
bool joint_writes_both(enum joint j);

/* Where a narrow's elements lie in its operand: in `rows` rows that are `pitch` elements apart,
 * `width` of each, from element `first` on. Sizes are static. */
struct columns {
    uint64_t first, width, pitch, rows;
};
struct columns joint_columns(const struct ir_graph *g, const struct ir_node *narrow);
/* Elements from the first to the last of them. */
uint64_t joint_extent(const struct columns *c);

/* What the step of a JOINT_TEE reads: both terms of the sum, then what the norm reads besides, one
 * more than the norm has operands. NULL: no memory. */
ir_value *joint_tee_operands(const struct ir_graph *g, const struct ir_node *norm,
                             struct arena *arena);

/* The value whose bytes these are: through ops that only name them anew. */
ir_value joint_renamed(const struct ir_graph *g, ir_value v);

#endif
