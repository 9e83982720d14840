/* lower_combine.h: how values of a dtype are added, multiplied or compared on a device: the
 * operation of kernels/lib/combine.rlk, and the types that it works on. */
#ifndef LOWER_COMBINE_H
#define LOWER_COMBINE_H

#include "lower/gpu.h"

/* As in kernels/lib/combine.rlk. */
enum gpu_combine {
    COMBINE_SUM,
    COMBINE_PRODUCT,
    COMBINE_SCALED,
    COMBINE_COMPLEX,
    COMBINE_LARGEST,
    COMBINE_LARGEST_F32,
    COMBINE_LARGEST_F64,
    COMBINE_SMALLEST,
    COMBINE_SMALLEST_F32,
    COMBINE_SMALLEST_F64,
    COMBINE_LAST
};

struct gpu_acc {
    enum gpu_combine op;
    const char *element; /* type T of what is combined */
    const char *type;    /* type A of what it is computed in */
    const char *shared;  /* type S of what shared memory holds of that; u32x2 where it is wide */
    uint64_t bytes;      /* of A */
    bool wide;           /* 64 bits that are one number */
    uint32_t start[2];   /* bits of what combining begins with; COMBINE_SCALED: 1 */
};

/* op: RLX_OP_add, mul, max, min; none: the last one stays. */
struct gpu_acc gpu_accumulator(struct gpu_call *c, rlx_op op, rlx_dtype t);

#endif
