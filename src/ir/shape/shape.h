/* shape.h: the shape rules: from operand types and attributes to the type of the result.
 *
 * Before a rule runs, the number of inputs is within what ops.def says, and so is every attribute
 * by its kind: words and element types exist, lists have at most eight entries, floats are finite.
 *
 * A rule reads, refuses, computes, returns, in this order. It may normalise the node's attributes
 * (negative axes, empty lists, `auto`), so that a stored node says exactly what it does, and must
 * accept its own normalised form unchanged. A rule that cannot be decided because a dim is symbolic
 * is noted with shape_agree and friends and decided when the symbol is bound. */
#ifndef IR_SHAPE_H
#define IR_SHAPE_H

#include "ir/graph.h"

struct shape_call {
    const struct ir_graph *graph;
    struct ir_module *mod;
    rlx_op op;
    const char *name;    /* of the op, for messages */
    union ir_attr *attr; /* may be normalised in place */
    int32_t in_count;
    const struct ir_type *const *in;
    const ir_value *in_id; /* the operands as nodes (for rules about state leaves) */
    struct ir_type *out;   /* zeroed; to be filled */
    struct diag *diag;
    bool note_checks; /* record deferred checks (building), or not (verifying) */
    int32_t node_id;  /* that the node will have */

    /* The helpers' own; zero at first. */
    rlx_status failed; /* a dim overflowed, a check could not be noted: SHAPE_FAIL says so */
    uint32_t texts;    /* handed out so far, by dim_text and friends */
    char text[8][128];
};

typedef rlx_status (*shape_rule)(struct shape_call *c);
shape_rule shape_rule_of(enum op_family f);

/* The operand's dtype is in classes, or DTYPE naming operand and type. */
rlx_status shape_need_class(struct shape_call *c, int32_t operand, unsigned classes);
rlx_status shape_need_same_dtype(struct shape_call *c, int32_t a, int32_t b);
rlx_status shape_need_rank(struct shape_call *c, int32_t operand, int32_t lo, int32_t hi);
rlx_status shape_need_index(struct shape_call *c, int32_t operand);          /* ops-core.md 1.9 */
rlx_status shape_need_integer_scalar(struct shape_call *c, int32_t operand); /* one element */
rlx_status shape_need_state(struct shape_call *c, int32_t operand); /* a state leaf; else GRAPH */
rlx_status shape_need_inputs(struct shape_call *c, int32_t count, const char *why); /* else GRAPH */
const char *shape_operand_name(struct shape_call *c, int32_t operand); /* in the ring of texts */

/* -r <= axis < r, made non-negative; else ATTRIBUTE. `what` names the attribute. */
rlx_status shape_axis(struct shape_call *c, const char *what, int64_t *axis, int32_t rank);
/* Each of them so, and none twice. */
rlx_status shape_axes(struct shape_call *c, const char *what, rlx_list *axes, int32_t rank);

/* true: equal, or (one of them symbolic) noted as a check for binding time. An unknown agrees.
 * `what` outlives the call and is a plural, "inner dimensions": it opens the message at binding. */
bool shape_agree(struct shape_call *c, ir_dim a, ir_dim b, const char *what);
/* a >= b, likewise. */
bool shape_at_least(struct shape_call *c, ir_dim a, ir_dim b, const char *what);
/* Any kind of check, with a status of one's own for when it fails at binding. */
bool shape_check(struct shape_call *c, enum ir_check_kind kind, ir_dim a, ir_dim b,
                 rlx_status status, const char *what);
rlx_status shape_need_static(struct shape_call *c, ir_dim d, const char *what);
/* A size attribute: a size or an expression, not negative, unknown or -1; else ATTRIBUTE. */
rlx_status shape_need_size(struct shape_call *c, const char *what, ir_dim d);
/* Two operands of one shape (all dims agree), or SHAPE naming both. */
rlx_status shape_need_same_shape(struct shape_call *c, int32_t a, int32_t b);
/* Of two dims that agree, the one that says more: a size, else an expression, else unknown. */
ir_dim shape_meet(ir_dim a, ir_dim b);
/* What index_dtype may be for an axis of that length (ops-core.md 1.9), else ATTRIBUTE. */
rlx_status shape_need_index_dtype(struct shape_call *c, rlx_dtype index, ir_dim axis);
/* An axis that is searched or read by index must not be empty while c->out is not; else SHAPE. */
rlx_status shape_need_elements(struct shape_call *c, ir_dim axis, const char *what);

/* Fill c->out: LIMIT if the rank is above 8. */
rlx_status shape_result(struct shape_call *c, rlx_dtype dtype, int32_t rank, const ir_dim *dim);
rlx_status shape_result_like(struct shape_call *c, int32_t operand);

/* Right-aligned broadcasting of dims (ops-core.md 1.5) into out/rank; SHAPE naming both shapes. */
rlx_status shape_broadcast_dims(struct shape_call *c, const ir_dim *a, int32_t a_rank,
                                const ir_dim *b, int32_t b_rank, ir_dim *out, int32_t *rank);
/* The same for all but the last two dims of matrices. */
rlx_status shape_broadcast_batch(struct shape_call *c, const struct ir_type *a,
                                 const struct ir_type *b, ir_dim *out, int32_t *rank);
/* Does b broadcast to exactly a's shape? */
rlx_status shape_broadcasts_to(struct shape_call *c, const struct ir_type *b,
                               const struct ir_type *a, const char *what);

ir_dim shape_product(struct shape_call *c, const ir_dim *dim, int32_t count);
/* The text of a dim or a type, in a buffer that lives as long as the call (a ring of eight). */
const char *dim_text(struct shape_call *c, ir_dim d);
const char *type_text(struct shape_call *c, const struct ir_type *t);
const char *dims_text(struct shape_call *c, const ir_dim *dim, int32_t count); /* "[4,past+1]" */
const char *ints_text(struct shape_call *c, const rlx_list *list);             /* "[1,-2]" */

#define SHAPE_FAIL(c, status, ...) \
    ((c)->failed != RLX_OK ? (c)->failed : diag_fail((c)->diag, RLX_ERROR_##status, __VA_ARGS__))

/* What a unary, binary or compare op takes, as classes; 0: not such an op. */
unsigned shape_unary_classes(rlx_op op);
unsigned shape_pair_classes(rlx_op op);

/* The element type of every step of a chain (ops-core.md 16.1), of which there are chain->len; in:
 * the types of its external operands. ATTRIBUTE where the chain is malformed, DTYPE where a step
 * does not take what it is given. name opens the messages. */
rlx_status shape_chain_types(const char *name, const struct ir_blob *chain,
                             const struct ir_type *const *in, int32_t in_count, rlx_dtype *step,
                             struct diag *d);

#define FAMILY(name, rule, ...) rlx_status shape_##rule(struct shape_call *c);
#include "ir/ops.def"

#endif
