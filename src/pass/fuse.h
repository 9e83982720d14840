/* fuse.h: what the fusion passes share: who reads a value, what is fixed between runs, and patterns
 * that become one op.
 *
 * uses(x) counts the operands that name x and its occurrences among the outputs, so an output is
 * never fused away; sole(x, y) says that y is the only one that reads x. */
#ifndef PASS_FUSE_H
#define PASS_FUSE_H

#include "pass/pass.h"
#include "pass/rebuild.h"

struct fuse {
    const struct ir_graph *g;
    size_t room;         /* of the arrays */
    int32_t *uses;       /* by node */
    ir_value *user;      /* by node: the last that reads it; RLX_NO_VALUE: none */
    bool *is_static;     /* by node: made of params and constants by ops that are computed once */
    uint64_t max_buffer; /* no value larger than this is to be made; 0: no limit */
};

rlx_status fuse_open(struct fuse *f, const struct ir_graph *g, struct diag *d);
void fuse_close(struct fuse *f);

static inline const struct ir_node *fuse_node(const struct fuse *f, ir_value v)
{
    return &f->g->node.at[v];
}
static inline bool fuse_sole(const struct fuse *f, ir_value x, const struct ir_node *by)
{
    return f->uses[x] == 1 && f->user[x] == ir_id(f->g, by);
}
static inline enum op_family fuse_family(const struct ir_node *n)
{
    return op_info(n->op)->family;
}
/* Would a value of *sum bytes and of t besides still fit in a buffer? Of sizes that are not known
 * nothing is said. */
bool fuse_fits(const struct fuse *f, const struct ir_type *t, uint64_t *sum);
/* Does the node read a state whose writer stands between it and `to`? Then it cannot move there. */
bool fuse_crosses_writer(const struct fuse *f, ir_value node, ir_value to);
/* Is t a vector of n elements, or [1, .., 1, n]? */
bool fuse_is_row(const struct ir_type *t, ir_dim n);

/* May the pass make nodes of that family? */
static inline bool fuse_may(const struct pass_run *p, enum op_family made)
{
    return !p->options->no_fusion && (!p->target || p->target->native[made]);
}

/* May weights be put side by side? Not where that would be done in every run. */
static inline bool fuse_may_concat(const struct pass_run *p)
{
    return !p->options->no_weight_concat && !p->options->no_static_pack;
}

/* ---- patterns ---- */

/* A node and those before it that one op stands for. */
struct fuse_match {
    rlx_op op;
    union ir_attr attr;
    ir_value in[6]; /* values of the old graph */
    int32_t in_count;
    float eps;        /* what the pattern needs besides, if it does */
    ir_value gone[6]; /* besides the node itself */
    int32_t gone_count;
};
struct fuse_pattern {
    /* Is n the last node of the pattern? A node in gone[] must have no reader outside of it. */
    bool (*match)(const struct fuse *f, const struct ir_node *n, struct fuse_match *m);
    /* What stands there now; in[] are the operands in the new graph. NULL: op, with attr. */
    rlx_status (*build)(struct rebuild *r, const struct fuse_match *m, const ir_value *in,
                        ir_value *out);
};
/* Replaces the pattern wherever it is, in every graph, and counts the changes. */
rlx_status fuse_patterns(struct pass_run *p, struct ir_module *m,
                         const struct fuse_pattern *pattern);

/* One of two operands of n, and the other one. For commutative ops: for (int i = 0; i < 2; i++) */
static inline ir_value fuse_other(const struct ir_node *n, int i)
{
    return n->in[1 - i];
}

/* Is operand i of the mul n a silu, and is n all that reads it and the other operand? The three
 * that go with n are put into m->gone: the silu, the other operand, what is gated. */
static inline bool fuse_gate(const struct fuse *f, const struct ir_node *n, int i,
                             struct fuse_match *m)
{
    const struct ir_node *silu = fuse_node(f, n->in[i]);

    if (silu->op != RLX_OP_silu || !fuse_sole(f, n->in[i], n) ||
        !fuse_sole(f, fuse_other(n, i), n) || !fuse_sole(f, silu->in[0], silu))
        return false;
    m->gone_count = 3;
    m->gone[0] = n->in[i];
    m->gone[1] = fuse_other(n, i);
    m->gone[2] = silu->in[0];
    return true;
}

#endif
