/* lower_attention_backward.c: the gradient of attention for one operand. First each row is
 * measured, then
 *
 *     query         a group per block of rows
 *     key, value    a group per block of keys, against the rows of all heads that share them
 *     bias          a group per block of the bias, against all that reads it */
#include "lower/gpu/attention/lower_attention.h"

static uint64_t lines_of(const struct gpu_attention *a)
{
    return a->batch * a->heads * a->queries;
}

/* Base, inverse and delta of each row; never empty, as there may be results without rows. */
static struct gpu_arg room_for_stats(struct gpu_call *c, const struct gpu_attention *a)
{
    return gpu_temp(c, (3 * lines_of(a) + 1) * rlx_dtype_size(a->sums));
}

static void bind_operands(struct gpu_call *c, const struct gpu_attention *a)
{
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_in(c, 2));
    gpu_bind(c, gpu_in(c, 3));
    gpu_bind(c, a->mask_arg);
}

/* The words of a launch over all heads, from their number on. */
static void add_heads(struct gpu_call *c, const struct gpu_attention *a)
{
    gpu_u32(c, "heads", a->heads);
    gpu_u32(c, "rows", a->queries);
    gpu_u32(c, "keys", a->keys);
    gpu_u32(c, "share", a->heads / a->kv_heads);
    gpu_u32(c, "lines", lines_of(a));
    gpu_attention_words(c, a);
}

static void measure(struct gpu_call *c, const struct gpu_attention *a, struct gpu_arg stats)
{
    struct gpu_attention_tile t = gpu_attention_tiles(a, c, a->queries, a->head_dim);
    uint64_t blocks = gpu_ceil(a->queries, t.own), units = blocks * a->heads * a->batch;

    gpu_kernel(c, "attention_backward", "measure");
    gpu_attention_constants(c, a, &t);
    gpu_attention_sinks(c, a);
    gpu_flag(c, "DELTA", c->attr->attention_backward.wrt != RLX_ATTENTION_WRT_value);
    bind_operands(c, a);
    gpu_bind(c, a->sinks_arg);
    gpu_bind(c, stats);
    gpu_u32(c, "units", units);
    gpu_u32(c, "blocks", blocks);
    add_heads(c, a);
    gpu_groups(c, units);
}

/* wrt: as in the kernel, 0 query, 1 key, 2 value. */
static void gradient(struct gpu_call *c, const struct gpu_attention *a, struct gpu_arg stats,
                     int wrt)
{
    uint64_t own = wrt == 0 ? a->queries : a->keys;
    uint64_t heads = wrt == 0 ? 1 : a->heads / a->kv_heads, bundles = a->heads / heads;
    struct gpu_attention_tile t =
        gpu_attention_tiles(a, c, own, wrt == 2 ? a->value_dim : a->head_dim);
    uint64_t blocks = gpu_ceil(own, t.own), units = t.slices * blocks * bundles * a->batch;

    gpu_kernel(c, "attention_backward", "gradient");
    gpu_attention_constants(c, a, &t);
    gpu_const(c, "ZC", t.lines);
    gpu_const(c, "COLS", t.columns);
    gpu_flag(c, "SHARED", heads > 1);
    gpu_const(c, "WRT", wrt);
    bind_operands(c, a);
    gpu_bind(c, stats);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "units", units);
    gpu_u32(c, "blocks", blocks);
    gpu_u32(c, "bundles", bundles);
    gpu_u32(c, "rows", a->queries * heads);
    gpu_u32(c, "keys", a->keys);
    gpu_u32(c, "heads", heads);
    gpu_u32(c, "share", bundles / a->kv_heads);
    gpu_u32(c, "lines", lines_of(a));
    gpu_attention_words(c, a);
    gpu_groups(c, units);
}

static void bias(struct gpu_call *c, const struct gpu_attention *a, struct gpu_arg stats)
{
    struct gpu_attention_tile t = gpu_attention_tiles(a, c, a->queries, a->head_dim);
    uint64_t blocks = gpu_ceil(a->mask_queries, t.own), key_blocks = gpu_ceil(a->keys, t.other);
    uint64_t units = key_blocks * blocks * a->mask_heads * a->mask_batches;

    gpu_kernel(c, "attention_backward", "bias");
    gpu_attention_constants(c, a, &t);
    bind_operands(c, a);
    gpu_bind(c, stats);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "units", units);
    gpu_u32(c, "blocks", blocks);
    gpu_u32(c, "key_blocks", key_blocks);
    gpu_u32(c, "m_batches", a->mask_batches);
    gpu_u32(c, "m_heads", a->mask_heads);
    gpu_u32(c, "m_queries", a->mask_queries);
    gpu_u32(c, "batches", a->batch);
    add_heads(c, a);
    gpu_groups(c, units);
}

void gpu_lower_attention_backward(struct gpu_call *c)
{
    struct attr_attention forward;
    struct gpu_attention a;

    if (gpu_count(c->out) == 0)
        return;
    attention_of_backward(&c->attr->attention_backward, &forward);
    gpu_attention_describe(&a, c, &forward, 4);
    struct gpu_arg stats = room_for_stats(c, &a);
    measure(c, &a, stats);
    switch (c->attr->attention_backward.wrt) {
    case RLX_ATTENTION_WRT_query: gradient(c, &a, stats, 0); break;
    case RLX_ATTENTION_WRT_key: gradient(c, &a, stats, 1); break;
    case RLX_ATTENTION_WRT_value: gradient(c, &a, stats, 2); break;
    default: bias(c, &a, stats); break;
    }
}
