/* lower_gate.c: the gate that chooses experts, best groups first. */
#include "lower/gpu/move/lower_move.h"
#include "lower/gpu/order/lower_sort.h"

void gpu_lower_group_limited_gate(struct gpu_call *c)
{
    const struct attr_group_limited_gate *a = &c->attr->group_limited_gate;
    const struct ir_type *t = &c->in[0];
    uint64_t experts = (uint64_t)t->dim[t->rank - 1], all = gpu_count(t);
    uint64_t groups = (uint64_t)a->n_group, each = experts / groups, k = (uint64_t)a->top_k;
    struct gpu_arg score, keys;

    if (all == 0)
        return;
    score = gpu_temp(c, all / each * sizeof(float));
    keys = gpu_temp(c, all * sizeof(uint32_t));
    gpu_kernel(c, "gate", "group_scores");
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, score);
    gpu_u32(c, "count", all / each);
    gpu_u32(c, "each", each);
    gpu_invocations(c, all / each, GPU_GROUP);

    gpu_kernel(c, "gate", "expert_keys");
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, score);
    gpu_bind(c, keys);
    gpu_u32(c, "count", all);
    gpu_u32(c, "groups", groups);
    gpu_u32(c, "each", each);
    gpu_u32(c, "kept", (uint64_t)a->topk_group);
    gpu_invocations(c, all, GPU_GROUP);

    struct gpu_sort_rows rows = {keys, RLX_DTYPE_u32, all / experts, experts, 1, false, false};
    struct gpu_order order = gpu_order_rows(c, &rows, k);
    gpu_kernel(c, "gate", "shares");
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, order.ids);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "rows", all / experts);
    gpu_u32(c, "experts", experts);
    gpu_u32(c, "k", k);
    gpu_u32(c, "m", order.m);
    gpu_f32(c, "scaling", (double)a->scaling);
    gpu_groups(c, all / experts);
}
