/* pass.h: graph to graph. A pass is small, has a name, and leaves a module that verifies. */
#ifndef PASS_PASS_H
#define PASS_PASS_H

#include "ir/graph.h"
#include "ir/target.h"
#include "pass/recompute.h"
#include "rlx/debug.h"

struct pass;

/* What a compile was asked for. Zero is the default everywhere. */
struct pass_options {
    bool no_optimize; /* only the passes without which the device cannot run the graph */
    bool no_fold, no_cse;
    bool no_fusion;           /* none of the fusions below */
    bool no_matmul_fusion;    /* matmul with bias and activation */
    bool no_residual_fusion;  /* residual norms */
    bool no_weight_concat;    /* matmuls of one input as one, and the dual matmul of SwiGLU */
    bool no_regions;          /* elementwise chains stay single ops */
    bool no_static_pack;      /* what depends on params alone is computed in every run */
    bool assert_fusion_clean; /* a missed fusion is an error */
    bool verify_passes;       /* after every pass, even one that changed nothing */
    rlx_precision precision;
    rlx_precision_map precision_map; /* of RLX_PRECISION_CUSTOM */
    rlx_dispatch dispatch; /* native kernels or their common bodies, where there are both */
    const char *native_ops, *common_ops; /* names with commas between them: exceptions from that;
                                          * the first list wins. NULL: none */

    uint64_t activation_budget; /* bytes; above, values are computed again. 0: they are kept */
    struct recompute_report *recomputed; /* out, where there is a budget; or NULL */

    /* The value of a node whose operands are all constants, in the declared dtype, by the kernels
     * that would run it. in[i]: the bytes of operand i; out: room for the result. NULL: nothing is
     * folded. */
    rlx_status (*eval)(void *user, const struct ir_graph *g, const struct ir_node *n,
                       const void *const *in, void *out, struct diag *d);
    void *eval_user;
    /* Called after each pass that was made. */
    void (*after)(void *user, const struct pass *pass, const struct ir_module *m, uint64_t changes);
    void *after_user;
};

struct pass_run {
    const struct target *target; /* NULL: no device in particular, accept everything */
    const struct pass_options *options;
    struct diag *diag;
    uint64_t changes; /* counted up by the pass */
};

struct pass {
    const char *name;    /* "dce" */
    const char *summary; /* for rlx opt --help */
    rlx_status (*run)(struct pass_run *p, struct ir_module *m);
};

/* Every pass there is, in pipeline order; NULL past the end. */
const struct pass *pass_at(size_t i);
const struct pass *pass_find(rlx_str name);
/* The passes a compile makes. */
rlx_status pass_all(struct ir_module *m, const struct target *t, const struct pass_options *o,
                    struct diag *d);
/* Every graph with its leaves in front, as its text has them: printed and parsed, it is the same
 * node by node. */
rlx_status pass_leaves_first(struct ir_module *m, struct diag *d);
/* Is every node of the family rewritten where a device has no kernels for it? (Views count.) */
bool pass_expands(enum op_family f);
/* Does it run on a device like this: by a kernel, as a view, or written as ops that do? */
bool pass_covers(const struct target *t, enum op_family f);
/* Can this node be written with simpler ops? And that done, after the other nodes of g. */
bool pass_can_expand(const struct ir_graph *g, const struct ir_node *n);
rlx_status pass_expand_node(struct ir_graph *g, ir_value node, ir_value *out, struct diag *d);
/* A sub-graph's nodes after those of g: in[] for its inputs, out[] are then its outputs. */
rlx_status pass_append_graph(struct ir_graph *g, const struct ir_graph *sub, const ir_value *in,
                             ir_value *out, struct diag *d);
/* May this while or scan be written out, round after round? And one round of such a while, after
 * the nodes of g: now[], its values, become those after the round, or stay where it has ended;
 * *active, RLX_NO_VALUE before the first round, is then whether the round took place. */
bool pass_can_unroll(const struct ir_module *m, const struct ir_node *n);
rlx_status pass_append_round(struct ir_graph *g, const struct ir_node *n, ir_value *now,
                             ir_value *active, struct diag *d);
/* Is this node of g, for that device and policy? Control flow is not counted. */
bool pass_rewrites(const struct target *t, const struct pass_options *o, const struct ir_graph *g,
                   const struct ir_node *n);
/* One pass; the module is verified afterwards. */
rlx_status pass_one(const struct pass *pass, struct ir_module *m, const struct target *t,
                    const struct pass_options *o, uint64_t *changes, struct diag *d);
/* promote_params.c: those params of the entry become inputs; NAME where there is none of that name.
 */
rlx_status pass_promote_params(struct ir_module *m, const char *const *names, size_t count,
                               struct diag *d);

#endif
