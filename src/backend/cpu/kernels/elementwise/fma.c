/* fma.c: a b + c, rounded once (ops-core.md 5.4). */
#include "backend/cpu/kernels/elementwise/row.h"

/* p + c where p is exact, rounded to odd: of the two doubles next to the true sum, the one whose
 * last bit is set. Rounding that to fewer bits gives what rounding the true sum gives. */
static inline double add_to_odd(double p, double c)
{
    double s = p + c;
    double t = s - p;
    double lost = (p - (s - t)) + (c - t); /* exactly what s lacks; NaN if s is not finite */
    uint64_t bits;

    memcpy(&bits, &s, sizeof bits);
    uint64_t outward = (lost > 0) == (s > 0) ? 1 : ~(uint64_t)0;
    uint64_t odd = (bits & 1) ? bits : bits + outward;
    bits = lost > 0 || lost < 0 ? odd : bits;
    memcpy(&s, &bits, sizeof s);
    return s;
}

/* The product of two f16 or bf16 is exact in double. */
static void fma_half(rlx_dtype dtype, const void *a, const void *b, const void *c, void *out,
                     int64_t n)
{
    CPU_TILE_OF(double, x);
    CPU_TILE_OF(double, y);
    CPU_TILE_OF(double, z);

    cpu_load_f64(dtype, a, x, n);
    cpu_load_f64(dtype, b, y, n);
    cpu_load_f64(dtype, c, z, n);
    for (int64_t i = 0; i < n; i++)
        z[i] = add_to_odd(x[i] * y[i], z[i]);
    cpu_store_f64(dtype, z, out, n);
}

#define EACH(type, fma_)                       \
    do {                                       \
        const type *a_ = a, *b_ = b, *c_ = c;  \
        type *q_ = out;                        \
        CPU_INDEPENDENT                        \
        for (int64_t i = 0; i < n; i++)        \
            q_[i] = fma_(a_[i], b_[i], c_[i]); \
    } while (0)

/* n <= CPU_TILE */
static void fma_rows(rlx_dtype dtype, const void *a, const void *b, const void *c, void *out,
                     int64_t n)
{
    switch (dtype) {
    case RLX_DTYPE_f32: EACH(float, __builtin_fmaf); break;
    case RLX_DTYPE_f64: EACH(double, __builtin_fma); break;
    default: fma_half(dtype, a, b, c, out, n); break;
    }
}

static void fma_span(const struct cpu_call *call, const struct cpu_span *s)
{
    rlx_dtype dtype = call->out->dtype;
    size_t size = cpu_size(dtype);
    const void *in[3];
    CPU_TILE_ANY(a_tile);
    CPU_TILE_ANY(b_tile);
    CPU_TILE_ANY(c_tile);
    void *const tile[3] = {a_tile, b_tile, c_tile};

    for (int i = 0; i < 3; i++)
        in[i] = s->step[i] ? s->in[i] : cpu_row_spread(s->in[i], size, tile[i], s->n);
    for (int64_t at = 0; at < s->n; at += CPU_TILE)
        fma_rows(dtype, cpu_row_part(in[0], s->step[0], size, at),
                 cpu_row_part(in[1], s->step[1], size, at),
                 cpu_row_part(in[2], s->step[2], size, at), (char *)s->out + at * (int64_t)size,
                 cpu_min_i64(s->n - at, CPU_TILE));
}

static void run(const struct cpu_call *c)
{
    cpu_elementwise(c, cpu_row_grain(c->op), fma_span);
}

extern const struct cpu_kernel CPU_NAME(cpu_fma);
const struct cpu_kernel CPU_NAME(cpu_fma) = {.run = run, .in_place = 7};
