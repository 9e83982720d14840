/* coop_attention.c: attention with cooperative matrices (kernels/coop_attention). */
#include "lower/gpu/attention.h"

enum { ROWS = 64, MOST_ROOM = 49152 };

static bool fits(const struct gpu_call *c, const struct gpu_attention *a)
{
    const struct kc_features *f = c->features;
    uint64_t d = a->head_dim;
    bool dtype = a->dtype == RLX_DTYPE_f16 || (a->dtype == RLX_DTYPE_bf16 && f->coop_bf16);

    return dtype && (d == 32 || d == 64 || d == 128 || d == 256) && f->coop && f->subgroups &&
           f->subgroup_size == 32 && f->max_group >= GPU_GROUP && f->shared_bytes >= MOST_ROOM &&
           gpu_aligned(c, gpu_in(c, 0), 16) && gpu_aligned(c, gpu_in(c, 1), 16) &&
           gpu_aligned(c, gpu_in(c, 2), 16) && gpu_aligned(c, gpu_out(c), 8);
}

bool gpu_coop_attention(struct gpu_call *c, const struct gpu_attention *a, uint64_t heads)
{
    uint64_t rows = a->queries * heads, bundles = a->heads / heads;
    uint64_t blocks = gpu_ceil(rows, ROWS), units = blocks * bundles * a->batch;

    if (!fits(c, a))
        return false;
    gpu_kernel(c, "coop_attention", "attention");
    gpu_type(c, "T", a->dtype);
    gpu_type(c, "M", a->mask_dtype);
    gpu_const(c, "KEYS", a->head_dim > 128 ? 32 : 64);
    gpu_const(c, "D", (int64_t)a->head_dim);
    gpu_const(c, "MASK", a->mask);
    gpu_flag(c, "CAP", a->cap > 0);
    gpu_flag(c, "SHARED", heads > 1);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_in(c, 2));
    gpu_bind(c, a->mask_arg);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, units);
    gpu_u32(c, blocks);
    gpu_u32(c, bundles);
    gpu_u32(c, rows);
    gpu_u32(c, a->keys);
    gpu_u32(c, heads);
    gpu_u32(c, bundles / a->kv_heads);
    gpu_attention_words(c, a);
    gpu_groups(c, units);
    return true;
}
