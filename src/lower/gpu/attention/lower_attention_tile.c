/* lower_attention_tile.c: the sizes of attention, found in its operands, and tiles that suit them.
 */
#include <math.h>

#include "lower/gpu/attention/lower_attention.h"

/* ---- sizes ---- */

static void measure(struct gpu_attention *a, const struct ir_type *q, const struct ir_type *k,
                    int32_t layout)
{
    int32_t seq = layout == RLX_ATTENTION_LAYOUT_bhsd ? 2 : 1;

    a->batch = (uint64_t)q->dim[0];
    if (layout == RLX_ATTENTION_LAYOUT_folded)
        a->batch /= a->heads;
    a->queries = (uint64_t)q->dim[seq];
    a->keys = (uint64_t)k->dim[seq];
}

static struct gpu_attention_lines lines_of(int32_t layout, uint64_t heads, uint64_t seq,
                                           uint64_t dim)
{
    struct gpu_attention_lines l = {.batch = heads * seq * dim};

    if (layout == RLX_ATTENTION_LAYOUT_bshd || layout == RLX_ATTENTION_LAYOUT_packed) {
        l.head = dim;
        l.line = heads * dim;
    } else {
        l.head = seq * dim;
        l.line = dim;
    }
    return l;
}

/* The same where rows of so many elements lie apart. */
static struct gpu_attention_lines in_columns(struct gpu_attention_lines l, const struct columns *c)
{
    uint64_t *const step[] = {&l.batch, &l.head, &l.line};

    for (int i = 0; i < 3 && c->rows > 1; i++)
        if (*step[i] % c->width == 0)
            *step[i] = *step[i] / c->width * c->pitch;
    return l;
}

/* ---- masks ---- */

static enum gpu_attention_mask mask_of(int32_t kind, rlx_dtype t)
{
    switch (kind) {
    case RLX_MASK_KIND_causal:
    case RLX_MASK_KIND_sliding_window: return GPU_MASK_RANGE;
    case RLX_MASK_KIND_symmetric_window: return GPU_MASK_NEAR;
    case RLX_MASK_KIND_chunked_window: return GPU_MASK_CHUNK;
    case RLX_MASK_KIND_bias: return GPU_MASK_BIAS;
    case RLX_MASK_KIND_custom:
        return t == RLX_DTYPE_bool    ? GPU_MASK_BOOL
               : dtype_is(t, CLASS_F) ? GPU_MASK_REAL
                                      : GPU_MASK_WHOLE;
    default: return GPU_MASK_NONE;
    }
}

/* Rank 2 is [batch, keys], rank 3 [batch, queries, keys], rank 4 has heads as well. */
static void measure_mask(struct gpu_attention *a, const struct ir_type *m)
{
    uint64_t keys = a->keys;

    a->mask_batches = (uint64_t)m->dim[0];
    a->mask_heads = m->rank > 3 ? (uint64_t)m->dim[1] : 1;
    a->mask_queries = m->rank > 2 ? (uint64_t)m->dim[m->rank - 2] : 1;
    a->m.line = a->mask_queries == 1 ? 0 : keys;
    a->m.head = a->mask_heads == 1 ? 0 : a->mask_queries * keys;
    a->m.batch = a->mask_batches == 1 ? 0 : a->mask_heads * a->mask_queries * keys;
}

/* A few bytes to bind where there are no sinks: they must not take more windows. */
struct gpu_arg gpu_attention_no_sinks(struct gpu_arg q)
{
    return q.bytes > 16 ? gpu_part(q, 0, 16) : q;
}

void gpu_attention_describe(struct gpu_attention *a, const struct gpu_call *c,
                            const struct attr_attention *attr, int32_t first)
{
    int32_t mask = attention_mask_operand(attr, first);
    int32_t sinks = attention_sinks_operand(attr, first);
    rlx_dtype t = c->in[0].dtype;

    *a = (struct gpu_attention){.heads = (uint64_t)attr->num_heads,
                                .kv_heads = (uint64_t)attr->num_kv_heads,
                                .head_dim = (uint64_t)attr->head_dim,
                                .value_dim = (uint64_t)attention_value_dim(attr),
                                .dtype = t,
                                .kv_dtype = c->in[1].dtype,
                                .sums = t == RLX_DTYPE_f64 ? t : RLX_DTYPE_f32,
                                .mask_dtype = t,
                                .mask_arg = gpu_in(c, 0),
                                .sinks_dtype = t,
                                .sinks_arg = gpu_attention_no_sinks(gpu_in(c, 0)),
                                .window = UINT32_MAX};
    measure(a, &c->in[0], &c->in[1], attr->layout);
    a->q = lines_of(attr->layout, a->heads, a->queries, a->head_dim);
    a->k = lines_of(attr->layout, a->kv_heads, a->keys, a->head_dim);
    a->v = lines_of(attr->layout, a->kv_heads, a->keys, a->value_dim);
    a->y = lines_of(attr->layout, a->heads, a->queries, a->value_dim);
    if (c->columns) {
        a->q = in_columns(a->q, &c->columns[0]);
        a->k = in_columns(a->k, &c->columns[1]);
        a->v = in_columns(a->v, &c->columns[2]);
    }
    a->scale =
        isnan(attr->score_scale) ? 1.0 / sqrt((double)a->head_dim) : (double)attr->score_scale;
    a->cap = isnan(attr->logit_softcap) ? 0 : (double)attr->logit_softcap;
    a->shift = a->keys > a->queries ? a->keys - a->queries : 0;
    if (attr->window != RLX_ABSENT && attr->window < UINT32_MAX)
        a->window = (uint64_t)attr->window;
    a->max_bias = isnan(attr->alibi_max_bias) ? 0 : (double)attr->alibi_max_bias;
    a->alibi_period = (uint64_t)attention_alibi_period(attr->num_heads);
    if (sinks >= 0) {
        a->has_sinks = true;
        a->sinks_dtype = c->in[sinks].dtype;
        a->sinks_arg = gpu_in(c, sinks);
    }
    if (mask >= 0) {
        measure_mask(a, &c->in[mask]);
        a->mask_dtype = c->in[mask].dtype;
        a->mask_arg = gpu_in(c, mask);
    }
    a->mask = mask_of(attr->mask_kind, a->mask_dtype);
}

/* ---- tiles ---- */

struct gpu_attention_tile gpu_attention_tiles(const struct gpu_attention *a,
                                              const struct gpu_call *c, uint64_t own_lines,
                                              uint64_t elements)
{
    enum { MOST_COLUMNS = 256, ROOMY = 40960 };
    bool wide = a->sums == RLX_DTYPE_f64, few = own_lines <= 16;
    bool roomy = c->features->shared_bytes >= ROOMY;
    struct gpu_attention_tile t = {.own = few ? 16 : wide ? 32 : 64};

    t.other = wide ? (few ? 32 : 16) : few || roomy ? 64 : 32;
    t.depth = roomy && !wide ? 32 : 16;
    t.slices = (uint32_t)gpu_ceil(elements, MOST_COLUMNS);
    t.columns = (uint32_t)gpu_ceil(gpu_ceil(elements, t.slices), 16) * 16;
    for (t.lines = t.other; t.lines > 1;) {
        if (t.lines * t.columns <= t.depth * (t.own + t.other + 2))
            break;
        t.lines /= 2;
    }
    return t;
}

/* ---- what kernels are given ---- */

void gpu_attention_constants(struct gpu_call *c, const struct gpu_attention *a,
                             const struct gpu_attention_tile *t)
{
    gpu_type(c, "T", a->dtype);
    gpu_type(c, "M", a->mask_dtype);
    gpu_type(c, "A", a->sums);
    gpu_const(c, "OWN", t->own);
    gpu_const(c, "OTHER", t->other);
    gpu_const(c, "DC", t->depth);
    gpu_const(c, "D", (int64_t)a->head_dim);
    gpu_const(c, "DV", (int64_t)a->value_dim);
    gpu_const(c, "MASK", a->mask);
    gpu_flag(c, "CAP", a->cap > 0);
    gpu_flag(c, "ALIBI", a->max_bias > 0);
}

void gpu_attention_sinks(struct gpu_call *c, const struct gpu_attention *a)
{
    gpu_type(c, "E", a->sinks_dtype);
    gpu_flag(c, "SINKS", a->has_sinks);
}

void gpu_attention_line_words(struct gpu_call *c, const char *const name[3],
                              const struct gpu_attention_lines *l)
{
    gpu_u32(c, name[0], l->batch);
    gpu_u32(c, name[1], l->head);
    gpu_u32(c, name[2], l->line);
}

void gpu_attention_words(struct gpu_call *c, const struct gpu_attention *a)
{
    gpu_u32(c, "how.shift", a->shift);
    gpu_u32(c, "how.window", a->window);
    gpu_attention_line_words(c, (const char *const[]){"q_step.batch", "q_step.head", "q_step.line"},
                             &a->q);
    gpu_attention_line_words(c, (const char *const[]){"k_step.batch", "k_step.head", "k_step.line"},
                             &a->k);
    gpu_attention_line_words(c, (const char *const[]){"v_step.batch", "v_step.head", "v_step.line"},
                             &a->v);
    gpu_attention_line_words(c, (const char *const[]){"y_step.batch", "y_step.head", "y_step.line"},
                             &a->y);
    gpu_attention_line_words(c, (const char *const[]){"m_step.batch", "m_step.head", "m_step.line"},
                             &a->m);
    gpu_f32(c, "how.scale", a->scale);
    gpu_f32(c, "how.scale_rest", a->scale - (double)(float)a->scale);
    gpu_f32(c, "how.cap", a->cap);
    gpu_f32(c, "how.max_bias", a->max_bias);
    gpu_u32(c, "how.period", a->alibi_period);
    gpu_u32(c, "how.first_head", a->first_head);
}
