/* row.h: the elementwise ops on rows of elements, for the ops themselves and for regions.
 *
 * A row has n >= 1 elements of one type; operands with a step are rows (1) or a single element that
 * stands for all of them (0). The output may be exactly one of the operands with step 1, unless a
 * function says otherwise. */
#ifndef BACKEND_ROW_H
#define BACKEND_ROW_H

#include "backend/cpu/kernels/common.h"

#define cpu_row_unary CPU_NAME(cpu_row_unary)
#define cpu_row_unary_grad CPU_NAME(cpu_row_unary_grad)
#define cpu_row_binary CPU_NAME(cpu_row_binary)
#define cpu_row_compare CPU_NAME(cpu_row_compare)
#define cpu_row_cast CPU_NAME(cpu_row_cast)
#define cpu_row_where CPU_NAME(cpu_row_where)
#define cpu_row_is_costly CPU_NAME(cpu_row_is_costly)

/* op: a unary op; dtype: any that it takes. */
void cpu_row_unary(rlx_op op, rlx_dtype dtype, const void *x, void *out, int64_t n);
/* dy times the derivative of unary op at x; float types. out may be x or dy. */
void cpu_row_unary_grad(rlx_op op, rlx_dtype dtype, const void *x, const void *dy, void *out,
                        int64_t n);
/* a and b have the same type, and so has out. */
void cpu_row_binary(rlx_op op, rlx_dtype dtype, const void *a, int a_step, const void *b,
                    int b_step, void *out, int64_t n);
/* out: n bytes, 0 or 1; it overlaps neither operand unless their elements are bytes too. */
void cpu_row_compare(rlx_op op, rlx_dtype dtype, const void *a, int a_step, const void *b,
                     int b_step, uint8_t *out, int64_t n);
/* x and out may be the same row if their elements have the same size. */
void cpu_row_cast(rlx_dtype from, rlx_dtype to, const void *x, void *out, int64_t n);
/* cond: bytes, 0 or not; elements of `size` bytes. out may be a or b, but not cond. */
void cpu_row_where(int32_t size, const uint8_t *cond, int cond_step, const void *a, int a_step,
                   const void *b, int b_step, void *out, int64_t n);

/* Whether an element of this op takes tens of operations rather than one or two. */
bool cpu_row_is_costly(rlx_op op);

/* A single element as a row of up to a tile, for loops that know only step 1. */
static inline const void *cpu_row_spread(const void *value, size_t size, void *tile, int64_t n)
{
    cpu_copy_strided(tile, value, (int32_t)size, cpu_min_i64(n, CPU_TILE), 0);
    return tile;
}

/* Where the part of a row that starts at element `at` is; spread rows serve every part. */
static inline const void *cpu_row_part(const void *row, int step, size_t size, int64_t at)
{
    return step ? (const char *)row + at * (int64_t)size : row;
}

/* Elements per block: enough to be worth a thread's while. */
static inline int64_t cpu_row_grain(rlx_op op)
{
    return cpu_row_is_costly(op) ? 8192 : 32768;
}

#endif
