/* cost.c: see cost.h. Counts are doubles on the way: they are for people, and cannot overflow. */
#include "ir/cost.h"

#include <math.h>

struct counting {
    const struct ir_graph *g;
    const struct ir_node *n;
    double out; /* elements of the result */
};

static double count_of(const struct ir_type *t)
{
    int64_t n;

    return type_count(t, &n) ? (double)n : 0;
}

static double in_count(const struct counting *c, int32_t i)
{
    return i < c->n->in_count ? count_of(ir_type_of(c->g, c->n->in[i])) : 0;
}

/* A dim of operand i, from the back if it is negative; 0 if it is not static. */
static double in_dim(const struct counting *c, int32_t i, int32_t axis)
{
    const struct ir_type *t = ir_type_of(c->g, c->n->in[i]);

    axis += axis < 0 ? t->rank : 0;
    return axis >= 0 && axis < t->rank && dim_is_static(t->dim[axis]) ? (double)t->dim[axis] : 0;
}

/* Elements of operand i per step of its first axis. */
static double in_slice(const struct counting *c, int32_t i)
{
    double first = in_dim(c, i, 0);

    return first > 0 ? in_count(c, i) / first : 0;
}

/* ---- products ---- */

static double cost_product(const struct counting *c)
{
    bool ta = c->n->op == RLX_OP_matmul && c->n->attr.matmul.transpose_a;

    return 2 * c->out * in_dim(c, 0, ta ? -2 : -1);
}

static double cost_product_bias_act(const struct counting *c)
{
    return cost_product(c) + c->out * (c->n->attr.fused_matmul_bias_act.activation ? 2 : 1);
}

static double cost_dequant_product(const struct counting *c)
{
    return 2 * c->out * (double)c->n->attr.dequant_matmul.k;
}

static double cost_dequant_grouped_product(const struct counting *c)
{
    return 2 * c->out * (double)c->n->attr.dequant_grouped_matmul.k;
}

static double cost_outer_products(const struct counting *c)
{
    return 2 * in_count(c, 0) * in_dim(c, 1, -1);
}

static double cost_dot_general(const struct counting *c)
{
    const rlx_list *axes = &c->n->attr.dot_general.lhs_contracting;
    double k = 1;

    for (int32_t i = 0; i < axes->count; i++)
        k *= in_dim(c, 0, (int32_t)axes->at[i]);
    return 2 * c->out * k;
}

/* x w, and (x a) b beside it. */
static double cost_lora(const struct counting *c)
{
    double rows = in_dim(c, 0, -1) > 0 ? in_count(c, 0) / in_dim(c, 0, -1) : 0;

    return 2 * rows * (in_count(c, 1) + in_count(c, 2) + in_count(c, 3)) + 2 * c->out;
}

/* Per batch item: n^3 times `cube` for the factors, and n^2 times `square` per right side. */
static double solve(const struct counting *c, double cube, double square)
{
    double n = in_dim(c, 0, -1), each = n * n;
    double batch = each > 0 ? in_count(c, 0) / each : 0;
    double right = c->n->in_count > 1 ? in_count(c, 1) * n : 0;

    return batch * cube * n * n * n + square * right;
}

static double cost_dense_solve(const struct counting *c)
{
    return solve(c, 2.0 / 3, 2);
}

static double cost_triangular_solve(const struct counting *c)
{
    return solve(c, 0, 1);
}

static double cost_cholesky(const struct counting *c)
{
    return solve(c, 1.0 / 3, 0);
}

static double cost_det(const struct counting *c)
{
    return solve(c, 2.0 / 3, 0);
}

/* ---- attention ---- */

struct scores {
    double count, head_dim;
};

/* q has head_dim elements per query and head; k as many per key and head of its own. */
static struct scores scores_of(const struct counting *c, double heads, double kv_heads, double dim)
{
    double queries = dim > 0 ? in_count(c, 0) / dim : 0;
    double batch = ir_type_of(c->g, c->n->in[1])->rank >= 3 ? in_dim(c, 1, 0) : 1;
    double per_key = batch * (kv_heads > 0 ? kv_heads : heads) * dim;

    return (struct scores){per_key > 0 ? queries * (in_count(c, 1) / per_key) : 0, dim};
}

static double cost_attention(const struct counting *c)
{
    const struct attr_attention *a = &c->n->attr.attention;
    struct scores s =
        scores_of(c, (double)a->num_heads,
                  a->num_kv_heads == RLX_ABSENT ? 0 : (double)a->num_kv_heads, (double)a->head_dim);

    double value_dim = a->value_dim == RLX_ABSENT ? s.head_dim : (double)a->value_dim;

    /* two products, and softmax between them */
    return s.count * (2 * s.head_dim + 2 * value_dim + 5);
}

/* For v the scores are made again and multiplied with dy; q and k need dy v^T as well. */
static double cost_attention_backward(const struct counting *c)
{
    const struct attr_attention_backward *a = &c->n->attr.attention_backward;
    struct scores s =
        scores_of(c, (double)a->num_heads,
                  a->num_kv_heads == RLX_ABSENT ? 0 : (double)a->num_kv_heads, (double)a->head_dim);

    double value_dim = a->value_dim == RLX_ABSENT ? s.head_dim : (double)a->value_dim;
    double keys = a->wrt == RLX_ATTENTION_WRT_value ? 2 : 4;

    return s.count * (keys * s.head_dim + 2 * value_dim + 8);
}

/* Attention of a block's rows with one another. */
static double self_attention(const struct counting *c, double heads, double head_dim)
{
    double width = in_dim(c, 0, -1), rows = width > 0 ? in_count(c, 0) / width : 0;

    return heads * rows * in_dim(c, 0, -2) * (4 * head_dim + 5);
}

/* Operand i times every row of the first operand. */
static double projection(const struct counting *c, int32_t i)
{
    double width = in_dim(c, 0, -1);

    return width > 0 ? 2 * (in_count(c, 0) / width) * in_count(c, i) : 0;
}

static double cost_attention_block(const struct counting *c)
{
    const struct attr_fused_attention_block *a = &c->n->attr.fused_attention_block;

    return projection(c, 1) + projection(c, 2) +
           self_attention(c, (double)a->num_heads, (double)a->head_dim);
}

/* Its operands of rank 2 are the four weights; the mask, if there is one, is the last operand. */
static double cost_transformer_layer(const struct counting *c)
{
    const struct attr_fused_transformer_layer *a = &c->n->attr.fused_transformer_layer;
    double sum = self_attention(c, (double)a->num_heads, (double)a->head_dim);
    int weights = 0;

    for (int32_t i = 1; i < c->n->in_count && weights < 4; i++) {
        if (ir_type_of(c->g, c->n->in[i])->rank != 2)
            continue;
        sum += projection(c, i);
        weights++;
    }
    return sum;
}

/* ---- windows ---- */

static double cost_conv(const struct counting *c)
{
    return 2 * c->out * in_slice(c, 1);
}

static double cost_conv_bias_act(const struct counting *c)
{
    const struct attr_fused_conv_bias_act *a = &c->n->attr.fused_conv_bias_act;

    return cost_conv(c) + c->out * (1 + (a->activation != RLX_OP_none) + a->has_residual);
}

/* Each element of the first operand meets every weight of its channel. */
static double cost_conv_of_input(const struct counting *c)
{
    return 2 * in_count(c, 0) * in_slice(c, 1);
}

static double cost_conv_of_weight(const struct counting *c)
{
    double channels = (double)c->n->type.dim[0];

    return channels > 0 ? 2 * in_count(c, 1) * (c->out / channels) : 0;
}

static double cost_pool(const struct counting *c)
{
    const rlx_list *k = &c->n->attr.pool.kernel_size;
    double window = 1;

    for (int32_t i = 0; i < k->count; i++)
        window *= (double)k->at[i];
    return c->out * window;
}

/* ---- sub-graphs ---- */

static double graph_flops(const struct counting *c, int32_t graph)
{
    double flops = 0;

    if (graph <= 0 || (size_t)graph >= c->g->mod->graph.len)
        return 0;
    const struct ir_graph *sub = c->g->mod->graph.at[graph];
    IR_EACH(n, sub)
        flops += (double)ir_node_flops(sub, n);
    return flops;
}

static double cost_branches(const struct counting *c)
{
    return fmax(graph_flops(c, c->n->attr.if_.then_graph),
                graph_flops(c, c->n->attr.if_.else_graph));
}

static double cost_custom_fn(const struct counting *c)
{
    return graph_flops(c, c->n->attr.custom_fn.fwd_graph);
}

static double cost_scan(const struct counting *c)
{
    ir_dim length = c->n->attr.scan.length;

    return dim_is_static(length) ? (double)length * graph_flops(c, c->n->attr.scan.body) : 0;
}

/* ---- signals and sequences ---- */

static double cost_fft(const struct counting *c)
{
    double n = in_dim(c, 0, -1);

    return n > 1 ? 5 * c->out * log2(n) : 0;
}

static double cost_recurrent(const struct counting *c)
{
    double width = in_dim(c, 0, -1), rows = width > 0 ? in_count(c, 0) / width : 0;

    return 2 * rows * (in_count(c, 1) + in_count(c, 2));
}

/* ---- so much per element ---- */

static double cost_none(const struct counting *c)
{
    (void)c;
    return 0;
}

#define COST_PER_ELEMENT(name, each, elements)          \
    static double cost_##name(const struct counting *c) \
    {                                                   \
        return (each) * (elements);                     \
    }
COST_PER_ELEMENT(made_1, 1, c->out)
COST_PER_ELEMENT(made_2, 2, c->out)
COST_PER_ELEMENT(made_3, 3, c->out)
COST_PER_ELEMENT(made_4, 4, c->out)
COST_PER_ELEMENT(made_7, 7, c->out) /* mean, difference, square, sum, three more */
COST_PER_ELEMENT(read_1, 1, in_count(c, 0))
COST_PER_ELEMENT(read_5, 5, in_count(c, 0))
COST_PER_ELEMENT(gradient, 2, fmax(in_count(c, 0), c->out))
COST_PER_ELEMENT(rms_norm, 4 + (c->n->in_count > 2), c->out)
COST_PER_ELEMENT(residual_norm, 8 + c->n->attr.fused_residual_norm.has_bias, c->out)
COST_PER_ELEMENT(region, (double)c->n->attr.elementwise_region.chain.len, c->out)
COST_PER_ELEMENT(batch_region, (double)c->n->attr.batch_elementwise_region.chain.len, c->out)

/* ---- the column "cost" of ops.def ---- */

static double (*const cost_of[FAMILY_count])(const struct counting *c) = {
    [FAMILY_none] = cost_none,
#define FAMILY(name, rule, precision, cost, ...) [FAMILY_##name] = cost_##cost,
#include "ir/ops.def"
};

uint64_t ir_node_flops(const struct ir_graph *g, const struct ir_node *n)
{
    struct counting c = {g, n, count_of(&n->type)};
    double f = cost_of[op_info(n->op)->family](&c);

    return f >= 0x1p63 ? INT64_MAX : f > 0 ? (uint64_t)(f + 0.5) : 0;
}
