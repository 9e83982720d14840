/* experts.h: rows sorted by the expert that each names, for products of a matrix per expert.
 *
 * Rows of one expert are a group. Groups of a few rows and larger ones are kept apart, as they are
 * multiplied in different ways. */
#ifndef BACKEND_EXPERTS_H
#define BACKEND_EXPERTS_H

#include "backend/cpu/kernels/common.h"

struct expert_group {
    int32_t expert;
    int32_t first, rows; /* in the sorted order */
};

struct experts {
    const int32_t *row; /* rows in the sorted order, those that name an expert */
    const struct expert_group *few, *many;
    int64_t few_count, many_count;
};

#define experts_scratch CPU_NAME(experts_scratch)
#define experts_sort CPU_NAME(experts_sort)

/* Bytes of scratch, a multiple of 64. */
int64_t experts_scratch(int64_t rows, int64_t experts);
/* Sorts the rows of c->out, the first axis, by the ids of c->in[2]. Rows whose id is not one of
 * `experts` become zeros and are reported. Groups of up to `few` rows go to e->few. What e points
 * to is in scratch. */
void experts_sort(const struct cpu_call *c, int64_t experts, int64_t few, void *scratch,
                  struct experts *e);

#endif
