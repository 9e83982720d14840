/* grouped.h: rows and their experts (kernels/grouped). */
#ifndef LOWER_GPU_GROUPED_H
#define LOWER_GPU_GROUPED_H

#include "lower/gpu/index_check.h"
#include "lower/gpu/tiles.h"

/* Rows in the order of their experts, in scratch. */
struct gpu_experts {
    struct gpu_arg first, order;
    uint64_t rows, experts;
    int32_t id; /* operand */
};

/* Is it worth while, or even possible, to sort them? `each`: rows per expert that make it so. */
bool gpu_experts_sortable(uint64_t rows, uint64_t experts, uint64_t each);
/* Room for the order, whatever is done with it now. */
struct gpu_experts gpu_experts_room(struct gpu_call *c, int32_t id, uint64_t experts);
void gpu_experts_sort(struct gpu_call *c, const struct gpu_experts *e);
/* Zeros in the rows [rows,n] of the result that have no expert. */
void gpu_experts_clear(struct gpu_call *c, const struct gpu_experts *e, uint64_t n);
/* Tiles of so many rows that all experts' rows come to at most. */
uint64_t gpu_experts_tiles(const struct gpu_experts *e, uint32_t tile);

#endif
