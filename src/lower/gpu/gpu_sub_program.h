/* gpu_sub_program.h: a sub-graph whose memory is its parent step's scratch, and whose launches
 * become its parent's, once per round.
 *
 * Its steps are made once, however many nodes run it: they speak of its own values, and only a
 * parent's launches of the parent's. Each of those has a struct of its own, for its constants. */
#ifndef LOWER_GPU_SUB_PROGRAM_H
#define LOWER_GPU_SUB_PROGRAM_H

#include "lower/gpu/gpu_core.h"
#include "plan/plan.h"

struct gpu_sub_program {
    const struct ir_graph *graph;
    struct steps *steps;
    struct plan *plan;
    uint64_t consts_at; /* where its constants begin in the parent's table */
    ir_value *in;
    size_t in_count;
};

/* What a node with sub-graphs keeps: struct gpu_work.control. */
struct gpu_control {
    struct gpu_sub_program *sub[2]; /* then, else; cond, body; body; body, its gradient */
    uint64_t table;                 /* bytes of constants, of all of them */
    uint64_t table_key;             /* steps with the same sub-graphs have the same constants */
    bool table_is_own;              /* no step before this one fills it */
    bool table_filled;
    int64_t loop_limit; /* rounds of a loop without a bound of its own; 0: no limit */
};

/* Has the family sub-graphs that run here? */
bool gpu_has_subs(enum op_family f);
rlx_status gpu_build_subs(struct gpu_target *t, struct select_call *c, struct gpu_work *w);
/* The constants go where the command's table lies; once. */
rlx_status gpu_fill_table(struct gpu_target *t, struct command *c, struct diag *d);

/* Its memory is `memory`, scratch of the parent; sizes are those of now. */
void gpu_sub_place(struct gpu_call *c, struct gpu_sub_program *p);
uint64_t gpu_sub_bytes(const struct gpu_sub_program *p);
/* Where a value of it lies in the parent. */
struct gpu_arg gpu_sub_arg(const struct gpu_call *c, const struct gpu_sub_program *p,
                           struct gpu_arg memory, ir_value v);
static inline struct gpu_arg gpu_sub_in(const struct gpu_call *c, const struct gpu_sub_program *p,
                                        struct gpu_arg memory, size_t i)
{
    return gpu_sub_arg(c, p, memory, p->in[i]);
}
static inline struct gpu_arg gpu_sub_out(const struct gpu_call *c, const struct gpu_sub_program *p,
                                         struct gpu_arg memory, size_t i)
{
    return gpu_sub_arg(c, p, memory, p->graph->output.at[i]);
}
/* One round: its launches after those there are. */
void gpu_sub_run(struct gpu_call *c, const struct gpu_sub_program *p, struct gpu_arg memory);
uint64_t gpu_sub_launches(const struct gpu_sub_program *p); /* of one round */
/* Has it loops that the host repeats? */
bool gpu_sub_loops(const struct gpu_sub_program *p);

#endif
