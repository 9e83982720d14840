/* gpu_joints.c: which nodes share a step on a GPU, and how a product is split. */
#include "lower/gpu/gpu_joints.h"
#include "lower/gpu/gpu_core.h"

static void set_dims(struct ir_type *t, int64_t a, int64_t b, int64_t c)
{
    t->rank = 3;
    t->dim[0] = a;
    t->dim[1] = b;
    t->dim[2] = c;
}

static bool has_weight_rows(const struct ir_node *n)
{
    return n->op == RLX_OP_matmul ? n->attr.matmul.transpose_b
                                  : n->attr.fused_matmul_bias_act.transpose_b;
}

uint64_t gpu_split_types(const struct ir_node *n, struct ir_type *in, int32_t in_count,
                         struct ir_type *out)
{
    int64_t m = 1, third = out->dim[out->rank - 1] / 3, k = in[0].dim[in[0].rank - 1];
    bool rows = has_weight_rows(n);

    for (int32_t i = 0; i + 1 < out->rank; i++)
        m *= out->dim[i];
    if (m == 1) /* whole or in thirds, a row lies the same */
        return 0;
    set_dims(&in[0], 1, m, k);
    set_dims(&in[1], 3, rows ? third : k, rows ? k : third);
    if (in_count > 2)
        set_dims(&in[2], 3, 1, third);
    set_dims(out, 3, m, third);
    return rows ? 0 : (uint64_t)(3 * third);
}

/* Can a kernel see all of it? What has symbolic sizes is judged once they are known. */
static bool is_seen(const struct gpu_target *device, const struct ir_graph *g, ir_value v)
{
    const struct ir_type *t = ir_type_of(g, v);
    uint64_t bytes;

    return !type_is_static(t) || (type_bytes(t, &bytes) && bytes <= device->max_binding);
}

/* A whole product can be made some rows at a time, its thirds cannot. */
static bool can_split(const struct gpu_target *t, const struct ir_graph *g, ir_value v)
{
    const struct ir_node *n = ir_node(g, v);

    return is_seen(t, g, v) && is_seen(t, g, n->in[0]) && is_seen(t, g, n->in[1]);
}

static bool can_pack(const struct gpu_target *t, const struct ir_graph *g, ir_value v)
{
    const struct ir_node *n = ir_node(g, v);

    return is_seen(t, g, ir_node(g, joint_renamed(g, n->in[0]))->in[0]);
}

bool gpu_joins(struct gpu_target *t, enum joint kind, const struct ir_graph *graph, ir_value v)
{
    switch (kind) {
    case JOINT_SPLIT: return can_split(t, graph, v);
    case JOINT_PACKED: return can_pack(t, graph, v);
    default: return true;
    }
}
