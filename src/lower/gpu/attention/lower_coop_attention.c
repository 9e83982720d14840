/* lower_coop_attention.c: attention with cooperative matrices (kernels/coop_attention,
 * kernels/flash_attention). */
#include "lower/gpu/attention/lower_attention.h"

enum {
    ROWS = 64,
    GROUP_THREADS = 128, /* that hold matrices together */
    GROUP_STEP = 32,     /* of their sides */
    GROUP_ROOM = 32768,  /* of shared memory, what the device takes for itself left aside */
    SUBGROUP_ROOM = 49152,
    FLASH_ROWS = 128
};

static bool fits(const struct gpu_call *c, const struct gpu_attention *a)
{
    const struct kc_features *f = c->features;
    bool dtype = a->dtype == RLX_DTYPE_f16 || (a->dtype == RLX_DTYPE_bf16 && f->coop_bf16);
    bool alike = a->dtype == a->kv_dtype && a->head_dim == a->value_dim;
    uint64_t steps = a->q.batch | a->q.head | a->q.line | a->k.batch | a->k.head | a->k.line |
                     a->v.batch | a->v.head | a->v.line;

    return dtype && alike && steps % 8 == 0 && f->coop && f->subgroups &&
           f->max_group >= GPU_GROUP && gpu_aligned(c, gpu_in(c, 0), 16) &&
           gpu_aligned(c, gpu_in(c, 1), 16) && gpu_aligned(c, gpu_in(c, 2), 16) &&
           gpu_aligned(c, gpu_out(c), 16);
}

/* How rows are cut: blocks of bundles of heads. */
struct cut {
    uint64_t heads, bundles, rows, blocks, units;
};

static struct cut cut_of(const struct gpu_attention *a, uint64_t heads)
{
    struct cut t = {.heads = heads, .bundles = a->heads / heads, .rows = a->queries * heads};

    t.blocks = gpu_ceil(t.rows, ROWS);
    t.units = t.blocks * t.bundles * a->batch;
    return t;
}

static void begin(struct gpu_call *c, const struct gpu_attention *a, const char *kernel,
                  uint32_t keys)
{
    gpu_kernel(c, "coop_attention", kernel);
    gpu_type(c, "T", a->dtype);
    gpu_type(c, "M", a->mask_dtype);
    gpu_const(c, "KEYS", keys);
    gpu_const(c, "D", (int64_t)a->head_dim);
    gpu_const(c, "MASK", a->mask);
    gpu_flag(c, "CAP", a->cap > 0);
    gpu_flag(c, "ALIBI", a->max_bias > 0);
    gpu_attention_sinks(c, a);
}

static void bind(struct gpu_call *c, const struct gpu_attention *a, const struct cut *t)
{
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_in(c, 2));
    gpu_bind(c, a->mask_arg);
    gpu_bind(c, a->sinks_arg);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "units", t->units);
    gpu_u32(c, "blocks", t->blocks);
    gpu_u32(c, "bundles", t->bundles);
    gpu_u32(c, "rows", t->rows);
    gpu_u32(c, "keys", a->keys);
}

/* Heads one by one: rows of a bundle do not form a matrix in memory. */
static void by_group(struct gpu_call *c, const struct gpu_attention *a)
{
    struct cut t = cut_of(a, 1);

    begin(c, a, "group_attention", 64);
    gpu_const(c, "ROWS", ROWS);
    gpu_const(c, "WIDE", (int64_t)gpu_ceil(a->head_dim, GROUP_STEP) * GROUP_STEP);
    gpu_const(c, "WG", GROUP_THREADS);
    bind(c, a, &t);
    gpu_u32(c, "share", a->heads / a->kv_heads);
    gpu_attention_words(c, a);
    gpu_groups(c, t.units);
}

static void by_subgroups(struct gpu_call *c, const struct gpu_attention *a, uint64_t heads)
{
    struct cut t = cut_of(a, heads);

    begin(c, a, "attention", a->head_dim > 128 ? 32 : 64);
    gpu_flag(c, "SHARED", heads > 1);
    bind(c, a, &t);
    gpu_u32(c, "heads", heads);
    gpu_u32(c, "share", t.bundles / a->kv_heads);
    gpu_attention_words(c, a);
    gpu_groups(c, t.units);
}

/* Rows of whole matrices, where these can be computed with. */
static bool fits_rows(const struct gpu_call *c, const struct gpu_attention *a, uint64_t heads)
{
    bool mask = a->mask == GPU_MASK_NONE || a->mask == GPU_MASK_RANGE || a->mask == GPU_MASK_NEAR;

    return c->features->coop_rows && mask && a->cap == 0 && a->max_bias == 0 && heads == 1 &&
           a->head_dim % 32 == 0 && a->head_dim <= 128;
}

static void by_rows(struct gpu_call *c, const struct gpu_attention *a)
{
    uint64_t blocks = gpu_ceil(a->queries, FLASH_ROWS), units = blocks * a->heads * a->batch;

    gpu_kernel(c, "flash_attention", "attention");
    gpu_type(c, "T", a->dtype);
    gpu_const(c, "D", (int64_t)a->head_dim);
    gpu_const(c, "MASK", a->mask);
    gpu_attention_sinks(c, a);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_in(c, 2));
    gpu_bind(c, a->sinks_arg);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "units", units);
    gpu_u32(c, "blocks", blocks);
    gpu_u32(c, "heads", a->heads);
    gpu_u32(c, "rows", a->queries);
    gpu_u32(c, "keys", a->keys);
    gpu_u32(c, "share", a->heads / a->kv_heads);
    gpu_attention_words(c, a);
    gpu_groups(c, units);
}

bool gpu_coop_attention(struct gpu_call *c, const struct gpu_attention *a, uint64_t heads)
{
    const struct kc_features *f = c->features;
    uint64_t d = a->head_dim;

    if (!fits(c, a))
        return false;
    /* Measured on an H200, 16 heads of 4096 x 128: 275 us by rows, 490 by subgroups. */
    if (f->subgroup_size == 32 && f->shared_bytes >= SUBGROUP_ROOM && fits_rows(c, a, heads)) {
        by_rows(c, a);
        return true;
    }
    if (f->subgroup_size == 32 && (d == 32 || d == 64 || d == 128 || d == 256) &&
        f->shared_bytes >= SUBGROUP_ROOM) {
        by_subgroups(c, a, heads);
        return true;
    }
    if (f->coop_group && d % 8 == 0 && d <= 128 && heads == 1 && f->shared_bytes >= GROUP_ROOM) {
        by_group(c, a);
        return true;
    }
    return false;
}
