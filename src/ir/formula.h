/* formula.h: nodes written down as one writes a formula.
 *
 *     struct formula f = {.g = g, .diag = d, .dtype = RLX_DTYPE_f32};
 *     ir_value y = formula_2(&f, RLX_OP_mul, x, formula_1(&f, RLX_OP_sigmoid, x));
 *     return f.status;
 *
 * The first failure is kept, and everything after it adds nothing and returns RLX_NO_VALUE. */
#ifndef IR_FORMULA_H
#define IR_FORMULA_H

#include "ir/graph.h"

struct formula {
    struct ir_graph *g; /* nodes are appended here */
    struct diag *diag;
    rlx_dtype dtype; /* of its numbers */
    rlx_status status;
};

/* What an op on that type is best computed in: f32 where it is narrower. */
rlx_dtype formula_dtype(rlx_dtype t);
/* f32[] of what a failure left without a node. */
static inline const struct ir_type *formula_type(const struct formula *f, ir_value v)
{
    static const struct ir_type scalar = {.dtype = RLX_DTYPE_f32};

    return v == RLX_NO_VALUE ? &scalar : ir_type_of(f->g, v);
}
/* The failure that ends the formula; the message is printf's. */
void formula_fail(struct formula *f, rlx_status s, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Any node; attr NULL: defaults. */
ir_value formula_node(struct formula *f, rlx_op op, const ir_value *in, int32_t count,
                      const union ir_attr *attr);
ir_value formula_1(struct formula *f, rlx_op op, ir_value a);
ir_value formula_2(struct formula *f, rlx_op op, ir_value a, ir_value b);
ir_value formula_where(struct formula *f, ir_value cond, ir_value a, ir_value b);
ir_value formula_number(struct formula *f, double v); /* a scalar */
ir_value formula_number_of(struct formula *f, rlx_dtype dtype, double v);
/* The same number everywhere, in a value of that type, which may have symbols. */
ir_value formula_fill(struct formula *f, const struct ir_type *t, double v);
/* These return x itself where it is so already. */
ir_value formula_cast(struct formula *f, ir_value x, rlx_dtype to);
ir_value formula_reshape(struct formula *f, ir_value x, rlx_list shape);
ir_value formula_expand(struct formula *f, ir_value x, rlx_list shape);
ir_value formula_transpose(struct formula *f, ir_value x, rlx_list perm);
ir_value formula_swap(struct formula *f, ir_value x);                  /* the last two axes */
ir_value formula_reverse(struct formula *f, ir_value x, int64_t axis); /* the last in front */
ir_value formula_narrow(struct formula *f, ir_value x, int64_t axis, ir_dim start, ir_dim len);
ir_value formula_concat(struct formula *f, const ir_value *part, int32_t count, int64_t axis);
ir_value formula_reduce(struct formula *f, rlx_op op, ir_value x, rlx_list axes, bool keep_dim);
ir_value formula_matmul(struct formula *f, ir_value a, ir_value b, bool transpose_a,
                        bool transpose_b);
/* x summed over the axes that broadcasting from `to` added or stretched (ops-core.md 1.10). */
ir_value formula_unbroadcast(struct formula *f, ir_value x, const struct ir_type *to);

static inline rlx_list formula_shape(const struct ir_type *t)
{
    return rlx_list_of(t->rank, t->dim);
}

/* A number as an element of that type, zeros after it. Integers and booleans take what it
 * truncates to. */
void ir_number_bytes(rlx_dtype dtype, double value, uint8_t out[8]);
/* A constant: the same number in every element; the shape is static. */
rlx_status ir_add_number(struct ir_graph *g, rlx_dtype dtype, const rlx_list *shape, double value,
                         ir_value *out, struct diag *d);

#endif
