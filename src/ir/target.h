/* target.h: what the compiler may know of a device. */
#ifndef IR_TARGET_H
#define IR_TARGET_H

#include "ir/op.h"

struct target {
    const char *backend; /* "cpu" */
    char description[128];
    char features[256];         /* words */
    bool native[FAMILY_count];  /* families it has kernels for; others must be expanded */
    bool reduce_last_axis_only; /* its reductions take one axis, the last */
    bool joins_branches;        /* asking which branch to take costs more than computing both */
    bool slow_uploads;          /* uploading costs more than hashing what is uploaded */
    bool equal_operands;        /* its elementwise kernels want operands of the result's shape */
    bool scalar_operands;       /* but take a single element too */
    uint64_t alignment;         /* of every slot, unless a session asks for another */
    uint64_t least_alignment;   /* that slots can have; 0: any */
    uint64_t max_buffer;        /* bytes of one allocation; 0: no limit known */
    uint64_t memory;            /* bytes in all; 0: not known */
    int32_t threads;            /* CPU workers; 0 elsewhere */
    bool computes_nothing;      /* its results are zeros */
    bool flushes_small;         /* numbers below the normal ones of f32 may become zeros */
};

#endif
