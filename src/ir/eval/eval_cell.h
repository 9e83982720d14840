/* eval_cell.h: one element, and what the elementwise ops make of one or two of them. */
#ifndef IR_EVAL_CELL_H
#define IR_EVAL_CELL_H

#include "ir/op.h"

/* Floats use f; c64 uses f and im; integers and bool use i (u64: its bits; bool: 0 or 1). Integers
 * always hold a value of their dtype. Floats may be more precise than their dtype until rounded. */
struct eval_cell {
    double f, im;
    int64_t i;
};

/* A real number in whatever class the dtype has: integers truncate and saturate, NaN gives 0; bool
 * is true for all but 0; floats stay as they are. And back: the real part of c64. */
struct eval_cell eval_cell_of(rlx_dtype t, double v);
double eval_cell_real(rlx_dtype t, struct eval_cell x);
bool eval_cell_true(rlx_dtype t, struct eval_cell x); /* NaN is true */

/* The low bits of an integer as a value of the dtype; bool: is any of them set? */
int64_t eval_wrap(rlx_dtype t, uint64_t bits);
struct eval_cell eval_cell_round(rlx_dtype t, struct eval_cell x);
struct eval_cell eval_cell_cast(rlx_dtype from, rlx_dtype to, struct eval_cell x); /* 2.3 */

/* The least and greatest value: infinities of floats. What an empty maximum and minimum are. */
struct eval_cell eval_cell_least(rlx_dtype t);
struct eval_cell eval_cell_greatest(rlx_dtype t);

struct eval_cell eval_cell_binary(rlx_op op, rlx_dtype t, struct eval_cell a, struct eval_cell b);
bool eval_cell_compare(rlx_op op, rlx_dtype t, struct eval_cell a, struct eval_cell b);
/* -1, 0, 1: is a before, with or after b? NaN comes after everything but NaN. Not for c64. */
int eval_cell_order(rlx_dtype t, struct eval_cell a, struct eval_cell b);

struct eval_cell eval_cell_unary(rlx_op op, rlx_dtype t, struct eval_cell x);
/* The same on a real number, and its derivative: the factor in ops-core.md 5.3. */
double eval_unary_value(rlx_op op, double x);
double eval_unary_slope(rlx_op op, double x);
double eval_sigmoid(double x);

#endif
