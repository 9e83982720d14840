/* attention_tile.c: what attention and its gradients do to tiles of scores (attention.h). */
#include "backend/cpu/kernels/gemm/gemm_vec.h"
#include "backend/cpu/kernels/math.h"
#include "backend/cpu/kernels/sequence/attention.h"

/* MR rows of NV vectors of sums fill the registers, but for a row of b and an element of a. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { MR = 6, NV = 4 };
#else
enum { MR = 6, NV = 2 };
#endif

#define AT_INLINE inline __attribute__((always_inline))

/* e^x for x <= 0, and 0 where f32 has only subnormals left: those would cost hundreds of cycles,
 * and are less than 1e-38 of the row's largest. NaN stays. */
static inline float exp_f32(float x)
{
    int32_t k;
    float r = math_reduce_exp(x < -87.33f ? -87.33f : x, &k);
    float e = (1.0f + math_expm1_core(r)) * math_pow2(k);

    return x < -87.33f ? 0.0f : e;
}

#define AT(name) name##_f32
#define AT_T float
#define AT_V vec_f32
#define AT_MADD F32_MADD
#define AT_LOAD cpu_load_f32
#define AT_STORE cpu_store_f32
#define AT_DTYPE RLX_DTYPE_f32
#define AT_EXP exp_f32
#define AT_TANH math_tanh
#define AT_INF INFINITY
#include "backend/cpu/kernels/sequence/attention_tile_core.h"

#define AT(name) name##_f64
#define AT_T double
#define AT_V vec_f64
#define AT_MADD F64_MADD
#define AT_LOAD cpu_load_f64
#define AT_STORE cpu_store_f64
#define AT_DTYPE RLX_DTYPE_f64
#define AT_EXP exp
#define AT_TANH tanh
#define AT_INF ((double)INFINITY)
#include "backend/cpu/kernels/sequence/attention_tile_core.h"

const struct attention_math *attention_math_of(rlx_dtype dtype)
{
    return dtype == RLX_DTYPE_f64 ? &math_f64 : &math_f32;
}

/* ---- what is asked for --------------------------------------------------------------------- */

struct attention_operand attention_operand_of(const struct attention *a, const struct cpu_tensor *t,
                                              bool like_q, int64_t dim)
{
    int64_t heads = like_q ? a->heads : a->kv_heads, seq = like_q ? a->queries : a->keys;
    int64_t lanes = a->math->lanes;
    struct attention_operand o = {.data = t->data,
                                  .dtype = t->dtype,
                                  .batch = heads * seq * dim,
                                  .dim = dim,
                                  .width = (dim + lanes - 1) / lanes * lanes};

    if (a->layout == RLX_ATTENTION_LAYOUT_bshd || a->layout == RLX_ATTENTION_LAYOUT_packed) {
        o.head = dim;
        o.position = heads * dim;
    } else {
        o.head = seq * dim;
        o.position = dim;
    }
    return o;
}

/* The sizes, found in the shapes by the layout. */
static void measure(struct attention *a, const struct cpu_call *c)
{
    const struct cpu_tensor *q = &c->in[0], *k = &c->in[1];

    switch (a->layout) {
    case RLX_ATTENTION_LAYOUT_bhsd:
        a->batch = q->dim[0], a->queries = q->dim[2], a->keys = k->dim[2];
        break;
    case RLX_ATTENTION_LAYOUT_folded:
        a->batch = q->dim[0] / a->heads, a->queries = q->dim[1], a->keys = k->dim[1];
        break;
    default: /* bshd, packed */
        a->batch = q->dim[0], a->queries = q->dim[1], a->keys = k->dim[1];
        break;
    }
}

/* Rank 2 is [batch, keys], rank 3 [batch, queries, keys], rank 4 has heads as well; axes of size 1
 * broadcast. */
static void measure_mask(struct attention *a, const struct cpu_tensor *m)
{
    int64_t queries = m->rank > 2 ? m->dim[m->rank - 2] : 1, heads = m->rank > 3 ? m->dim[1] : 1;

    a->mask = m;
    a->mask_query = queries == 1 ? 0 : a->keys;
    a->mask_head = heads == 1 ? 0 : queries * a->keys;
    a->mask_batch = m->dim[0] == 1 ? 0 : heads * queries * a->keys;
}

void attention_describe(struct attention *a, const struct cpu_call *c,
                        const struct attr_attention *attr, int32_t first)
{
    int32_t mask = attention_mask_operand(attr, first);
    int32_t sinks = attention_sinks_operand(attr, first);
    rlx_dtype dtype = c->in[0].dtype;

    *a = (struct attention){.heads = attr->num_heads,
                            .kv_heads = attr->num_kv_heads,
                            .head_dim = attr->head_dim,
                            .value_dim = attention_value_dim(attr),
                            .layout = attr->layout,
                            .mask_kind = attr->mask_kind,
                            .window = attr->window,
                            .math = attention_math_of(dtype)};
    a->group = a->heads / a->kv_heads;
    measure(a, c);
    a->rows = a->group * a->queries;
    a->blocks = (a->rows + ATTENTION_ROWS - 1) / ATTENTION_ROWS;
    a->scale =
        isnan(attr->score_scale) ? 1.0 / sqrt((double)a->head_dim) : (double)attr->score_scale;
    a->cap = isnan(attr->logit_softcap) ? 0 : (double)attr->logit_softcap;
    a->shift = cpu_max_i64(0, a->keys - a->queries);
    a->q = attention_operand_of(a, &c->in[0], true, a->head_dim);
    a->k = attention_operand_of(a, &c->in[1], false, a->head_dim);
    a->v = attention_operand_of(a, &c->in[2], false, a->value_dim);
    a->max_bias = isnan(attr->alibi_max_bias) ? 0 : (double)attr->alibi_max_bias;
    if (mask >= 0)
        measure_mask(a, &c->in[mask]);
    if (sinks >= 0)
        a->sinks = &c->in[sinks];
}

/* ---- a worker's memory --------------------------------------------------------------------- */

static void *carve(char *base, uint64_t *at, int64_t count, int64_t size)
{
    void *p = base ? base + *at : NULL;

    *at += ((uint64_t)(count * size) + 63) / 64 * 64;
    return p;
}

uint64_t attention_carve(const struct attention *a, unsigned needs, char *base,
                         struct attention_room *r)
{
    const int64_t tile = ATTENTION_KEYS * ATTENTION_ROWS, size = a->math->size;
    const int64_t sums = ATTENTION_KEYS > ATTENTION_ROWS ? ATTENTION_KEYS : ATTENTION_ROWS;
    const int64_t width = cpu_max_i64(a->k.width, a->v.width);
    uint64_t at = 0;

    *r = (struct attention_room){0};
    r->q_panel = carve(base, &at, a->head_dim * ATTENTION_ROWS, size);
    r->z = carve(base, &at, tile, size);
    r->keep = carve(base, &at, tile, 1);
    r->k = carve(base, &at, ATTENTION_KEYS * a->k.width, size);
    r->v = carve(base, &at, ATTENTION_KEYS * a->v.width, size);
    r->sum = carve(base, &at, sums * width, size);
    r->max = carve(base, &at, ATTENTION_ROWS, size);
    r->total = carve(base, &at, ATTENTION_ROWS, size);
    if (needs & ATTENTION_NEEDS_DP) {
        r->dy_panel = carve(base, &at, a->value_dim * ATTENTION_ROWS, size);
        r->dp = carve(base, &at, tile, size);
        r->delta = carve(base, &at, ATTENTION_ROWS, size);
    }
    if (needs & ATTENTION_NEEDS_SLOPE)
        r->slope = carve(base, &at, tile, size);
    if (needs & ATTENTION_NEEDS_GATHER)
        r->gathered = carve(base, &at, ATTENTION_ROWS * width, size);
    return at;
}

/* ---- tiles --------------------------------------------------------------------------------- */

/* Which keys a row may see from its position. */
static void range_of(const struct attention *a, int64_t row, int64_t *low, int64_t *high)
{
    int64_t position = row / a->group + a->shift;

    *low = 0;
    *high = a->keys;
    if (!attention_is_by_place(a->mask_kind))
        return;
    *high = cpu_min_i64(a->keys, position + 1);
    if (a->mask_kind == RLX_MASK_KIND_chunked_window)
        *low = position - position % a->window;
    else if (a->mask_kind != RLX_MASK_KIND_causal)
        *low = cpu_max_i64(0, position - a->window);
    if (a->mask_kind == RLX_MASK_KIND_symmetric_window)
        *high = cpu_min_i64(a->keys, position + 1 + cpu_min_i64(a->window, a->keys));
}

static double slope_of(const struct attention *a, int64_t head)
{
    int64_t period = attention_alibi_period(a->heads);
    int64_t halves = head < period ? 2 * (head + 1) : 2 * (head - period) + 1;

    return exp2(-a->max_bias * (double)halves / (2 * (double)period));
}

void attention_rows(const struct attention *a, struct attention_tile *t, int64_t batch, int64_t kv,
                    int64_t row, int64_t end)
{
    t->batch = batch;
    t->kv = kv;
    t->row = row;
    t->rows = cpu_min_i64(ATTENTION_ROWS, end - row);
    t->lanes = (t->rows + a->math->lanes - 1) / a->math->lanes * a->math->lanes;
    t->first = a->keys;
    t->end = 0;
    for (int64_t r = 0; r < ATTENTION_ROWS; r++) {
        range_of(a, row + cpu_min_i64(r, t->rows - 1), &t->low[r], &t->high[r]);
        if (a->max_bias > 0)
            t->slope[r] = slope_of(a, kv * a->group + (row + r) % a->group);
        if (t->low[r] >= t->high[r])
            continue;
        t->first = cpu_min_i64(t->first, t->low[r]);
        t->end = cpu_max_i64(t->end, t->high[r]);
    }
}
