/* quantize.c: floats to i8 and back, with a scale and a zero point per tensor or channel
 * (ops-core.md 19.2). Quotients are taken in double, so that ties are ties. */
#include "backend/cpu/kernels/dequant/quant_tile.h"
#include "backend/cpu/kernels/rows/channel.h"

struct quant_job {
    const struct cpu_call *c;
    struct cpu_view scale, zero;
    bool has_zero;
};

/* n <= CPU_TILE; z NULL: all 0. */
static void quantize_part(const struct cpu_call *c, const double *s, const double *z, int64_t pos,
                          int64_t n)
{
    CPU_TILE_OF(double, x);

    cpu_load_f64(c->in[0].dtype, cpu_at(&c->in[0], pos), x, n);
    for (int64_t i = 0; i < n; i++)
        x[i] = quant_round(x[i] / s[i]);
    for (int64_t i = 0; z && i < n; i++)
        x[i] += z[i];
    cpu_store_f64(RLX_DTYPE_i8, x, cpu_at(c->out, pos), n);
}

static void dequantize_part(const struct cpu_call *c, const double *s, const double *z, int64_t pos,
                            int64_t n)
{
    CPU_TILE_OF(double, q);

    cpu_load_f64(RLX_DTYPE_i8, cpu_at(&c->in[0], pos), q, n);
    for (int64_t i = 0; z && i < n; i++)
        q[i] -= z[i];
    for (int64_t i = 0; i < n; i++)
        q[i] *= s[i];
    cpu_store_f64(c->out->dtype, q, cpu_at(c->out, pos), n);
}

static void quant_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct quant_job *j = ctx;
    CPU_TILE_OF(double, s);
    CPU_TILE_OF(double, z);

    (void)worker;
    for (int64_t pos = begin; pos < end; pos += CPU_TILE) {
        int64_t n = cpu_min_i64(end - pos, CPU_TILE);
        quant_read(&j->scale, RLX_DTYPE_f32, pos, n, s);
        quant_floor(s, n);
        if (j->has_zero)
            quant_read(&j->zero, RLX_DTYPE_f32, pos, n, z);
        if (j->c->op == RLX_OP_quantize)
            quantize_part(j->c, s, j->has_zero ? z : NULL, pos, n);
        else
            dequantize_part(j->c, s, j->has_zero ? z : NULL, pos, n);
    }
}

static void run(const struct cpu_call *c)
{
    const struct attr_quantize *a = &c->attr->quantize;
    struct cpu_channels g = cpu_channels_of(&c->in[0], a->axis);
    struct quant_job j = {.c = c, .has_zero = a->zero_points.len > 0};

    if (c->out->count == 0)
        return;
    cpu_channels_view(&j.scale, &g, a->scales.ptr, RLX_DTYPE_f32);
    if (j.has_zero)
        cpu_channels_view(&j.zero, &g, a->zero_points.ptr, RLX_DTYPE_f32);
    cpu_for(c->pool, c->out->count, QUANT_GRAIN, quant_range, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_quantize);
const struct cpu_kernel CPU_NAME(cpu_quantize) = {.run = run};
