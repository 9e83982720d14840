/* random_maker.h: a random graph under construction, between random_graph.c and random_ops.c. */
#ifndef TESTS_PASS_RANDOM_MAKER_H
#define TESTS_PASS_RANDOM_MAKER_H

#include "base/half.h"
#include "base/rng.h"
#include "ir/graph.h"
#include "random_graph.h"

struct maker {
    struct ir_module *m;
    struct ir_graph *g;
    struct rng_philox rng;
    struct random_value info[RANDOM_MOST_NODES]; /* by node */
    bool either_zero[RANDOM_MOST_NODES];
    bool symbolic; /* inputs may have a dim s */
    bool no_memory;
};

uint32_t maker_pick(struct maker *k, uint32_t n); /* 0 .. n-1 */
bool maker_chance(struct maker *k, uint32_t one_in);
const struct ir_type *maker_type(const struct maker *k, ir_value v);
bool maker_is_float(const struct maker *k, ir_value v);
double maker_count(const struct maker *k, ir_dim d); /* with the symbol bound */
double maker_size(const struct random_value *v);     /* the largest magnitude */
double maker_rounding(rlx_dtype t, double size);

/* A node, or RLX_NO_VALUE where it does not fit: types, size, range or error. attr NULL: defaults.
 */
ir_value maker_add(struct maker *k, rlx_op op, const ir_value *in, int32_t count,
                   const union ir_attr *attr, struct random_value value);
rlx_list maker_shape(struct maker *k, int32_t most_rank);
ir_value maker_leaf(struct maker *k, rlx_op op, rlx_dtype dtype, rlx_list shape);
ir_value maker_const(struct maker *k, rlx_dtype dtype, rlx_list shape, double lo, double hi);

typedef bool (*maker_fits)(const struct maker *k, ir_value v, ir_value beside);
ir_value maker_choose(struct maker *k, maker_fits fits, ir_value beside);

/* random_ops.c. An operand that is RLX_NO_VALUE gives RLX_NO_VALUE. */
ir_value maker_binary(struct maker *k, rlx_op op, ir_value a, ir_value b);
ir_value maker_unary(struct maker *k, rlx_op op, ir_value a);
ir_value maker_cast(struct maker *k, ir_value a, rlx_dtype to);
ir_value maker_reshape(struct maker *k, ir_value a, rlx_list shape);
ir_value maker_narrow(struct maker *k, ir_value a, int64_t axis, int64_t start, int64_t len);
/* A constant or param that broadcasts with v. */
ir_value maker_beside(struct maker *k, ir_value v, double lo, double hi);

void maker_step_of_patterns(struct maker *k); /* random_patterns.c */
void maker_step(struct maker *k);             /* one more node or pattern, or nothing */

#endif
