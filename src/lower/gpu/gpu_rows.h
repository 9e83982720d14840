/* gpu_rows.h: which rows of its operands some rows of a result need. */
#ifndef LOWER_GPU_ROWS_H
#define LOWER_GPU_ROWS_H

#include "lower/gpu.h"

/* Rows of which axis, and of which operands; the others are seen whole. */
struct split {
    int32_t axis;
    uint64_t follows; /* bit i: operand i */
    int32_t in_axis[64];
};

/* The first axis of the result that has something to cut: what is before it has one element. false:
 * its rows are not computed by themselves. */
bool gpu_find_split(const struct gpu_call *c, struct split *s);

#endif
