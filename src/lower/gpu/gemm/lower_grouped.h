/* lower_grouped.h: rows and their experts (kernels/grouped). */
#ifndef LOWER_GROUPED_H
#define LOWER_GROUPED_H

#include "lower/gpu/gemm/lower_tiles.h"
#include "lower/gpu/gpu_index_check.h"

/* Rows in the order of their experts, in scratch. */
struct gpu_experts {
    struct gpu_arg first, order;
    uint64_t rows, experts;
    int32_t id;       /* operand */
    struct gpu_arg w; /* of experts [from, from + own): all, or some in their turn */
    uint64_t from, own;
};

/* Is it worth while, or even possible, to sort them? `each`: rows per expert that make it so. */
bool gpu_experts_sortable(uint64_t rows, uint64_t experts, uint64_t each);
/* Room for the order, whatever is done with it now. w is operand 1, and all of it. */
struct gpu_experts gpu_experts_room(struct gpu_call *c, int32_t id, uint64_t experts);
/* As many experts from `from` on as a kernel sees the matrices of at once; at least one. */
struct gpu_experts gpu_some_experts(const struct gpu_call *c, const struct gpu_experts *all,
                                    uint64_t from);
/* Where their rows begin in the order. */
struct gpu_arg gpu_experts_first(const struct gpu_experts *e);
void gpu_experts_sort(struct gpu_call *c, const struct gpu_experts *e);
/* Zeros in the rows [rows,n] of the result that have no expert. */
void gpu_experts_clear(struct gpu_call *c, const struct gpu_experts *e, uint64_t n);
/* Tiles of so many rows that the rows of its own experts come to at most. */
uint64_t gpu_experts_tiles(const struct gpu_experts *e, uint32_t tile);

#endif
