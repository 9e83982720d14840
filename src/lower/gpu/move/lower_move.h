/* lower_move.h: elements that are only moved, for all ops that do so.
 *
 * Kernels that move take a type W of the elements' width, and not their dtype. Where runs of
 * elements stay together, and lie so in memory, several go as one: see gpu_wide. */
#ifndef LOWER_MOVE_H
#define LOWER_MOVE_H

#include "lower/gpu.h"

#define GPU_MOVES 4 /* that an invocation has under way: N of the kernels */

/* "u8" "u16" "u32" "u32x2" "u32x4": a type of so many bytes. */
const char *gpu_word(uint64_t bytes);

/* As how many bytes, 16 at most, runs of `run` elements of `size` bytes can be moved between two
 * arguments. run: of every distance and length that there is the largest common divisor. */
uint64_t gpu_wide(const struct gpu_call *c, struct gpu_arg a, struct gpu_arg b, uint64_t run,
                  uint64_t size);
uint64_t gpu_common(uint64_t a, uint64_t b); /* largest common divisor; 0 divides by anything */

/* The product of sizes [begin, end). */
uint64_t gpu_product(const struct ir_type *t, int64_t begin, int64_t end);

/* A launch that copies, one that writes zeros. Arguments of equal lengths. */
void gpu_copy(struct gpu_call *c, struct gpu_arg from, struct gpu_arg to, rlx_dtype t);
void gpu_zero(struct gpu_call *c, struct gpu_arg to, rlx_dtype t);
/* Rows of `width` elements, so many, that lie so far apart in either. */
void gpu_copy_columns(struct gpu_call *c, struct gpu_arg from, uint64_t from_stride,
                      struct gpu_arg to, uint64_t to_stride, uint64_t rows, uint64_t width,
                      rlx_dtype t);
/* Each of the operand's rows of `width` elements, so many times one after another. */
void gpu_repeat_rows(struct gpu_call *c, uint64_t times, uint64_t width);

#endif
