/* clamp.c: min(max(x, low), high), NaN kept (ops-core.md 5.4). Rounding a bound to the element type
 * first gives what rounding the result would, since rounding keeps order. */
#include "backend/cpu/kernels/elementwise/row.h"

#define CLAMP(type)                         \
    do {                                    \
        const type *p_ = x;                 \
        type *q_ = out;                     \
        type low_, high_;                   \
        memcpy(&low_, low, sizeof low_);    \
        memcpy(&high_, high, sizeof high_); \
        CPU_INDEPENDENT                     \
        for (int64_t i = 0; i < n; i++) {   \
            type v = p_[i];                 \
            v = v < low_ ? low_ : v;        \
            q_[i] = v > high_ ? high_ : v;  \
        }                                   \
    } while (0)

static void clamp_half(rlx_dtype dtype, const uint16_t *x, uint16_t *out, int64_t count,
                       const void *low16, const void *high16)
{
    float bound[2], *low = &bound[0], *high = &bound[1];
    CPU_TILE_OF(float, tile);

    cpu_load_f32(dtype, low16, low, 1);
    cpu_load_f32(dtype, high16, high, 1);
    for (int64_t at = 0; at < count; at += CPU_TILE) {
        int64_t n = cpu_min_i64(count - at, CPU_TILE);
        cpu_load_f32(dtype, x + at, tile, n);
        for (int64_t i = 0; i < n; i++) {
            float v = tile[i];
            v = v < *low ? *low : v;
            tile[i] = v > *high ? *high : v;
        }
        cpu_store_f32(dtype, tile, out + at, n);
    }
}

static void clamp_span(const struct cpu_call *c, const struct cpu_span *s)
{
    rlx_dtype dtype = c->out->dtype;
    const void *x = s->in[0];
    void *out = s->out;
    int64_t n = s->n;
    uint64_t low[1], high[1]; /* a bound each, in the element type */

    cpu_set_f64(dtype, low, 0, c->attr->clamp.min);
    cpu_set_f64(dtype, high, 0, c->attr->clamp.max);
    switch (dtype) {
    case RLX_DTYPE_f16:
    case RLX_DTYPE_bf16: clamp_half(dtype, x, out, n, low, high); break;
#define X(name, type) \
    case RLX_DTYPE_##name: CLAMP(type); break;
        CPU_EACH_WIDE_FLOAT(X)
        CPU_EACH_INT(X)
#undef X
    default: break;
    }
}

static void run(const struct cpu_call *c)
{
    cpu_elementwise(c, cpu_row_grain(c->op), clamp_span);
}

extern const struct cpu_kernel CPU_NAME(cpu_clamp);
const struct cpu_kernel CPU_NAME(cpu_clamp) = {.run = run, .in_place = 1};
