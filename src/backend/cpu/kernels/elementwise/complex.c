/* complex.c: complex_norm_sq, conjugate and complex_real (ops-core.md 21). */
#include "backend/cpu/kernels/elementwise/row.h"

/* In double the squares are exact and do not overflow before the sum is rounded. */
static void norm_span(const struct cpu_call *c, const struct cpu_span *s)
{
    const float *restrict z = s->in[0];
    float *restrict out = s->out;

    (void)c;
    for (int64_t i = 0; i < s->n; i++) {
        double re = (double)z[2 * i], im = (double)z[2 * i + 1];
        out[i] = (float)(re * re + im * im);
    }
}

static void conjugate_span(const struct cpu_call *c, const struct cpu_span *s)
{
    const float *z = s->in[0];
    float *out = s->out;

    (void)c;
    CPU_INDEPENDENT
    for (int64_t i = 0; i < s->n; i++) {
        float re = z[2 * i], im = z[2 * i + 1];
        out[2 * i] = re;
        out[2 * i + 1] = -im;
    }
}

static void real_span(const struct cpu_call *c, const struct cpu_span *s)
{
    const float *restrict z = s->in[0];
    float *restrict out = s->out;

    (void)c;
    for (int64_t i = 0; i < s->n; i++)
        out[i] = z[2 * i];
}

static void run_norm(const struct cpu_call *c)
{
    cpu_elementwise(c, cpu_row_grain(c->op), norm_span);
}

static void run_conjugate(const struct cpu_call *c)
{
    cpu_elementwise(c, cpu_row_grain(c->op), conjugate_span);
}

static void run_real(const struct cpu_call *c)
{
    cpu_elementwise(c, cpu_row_grain(c->op), real_span);
}

extern const struct cpu_kernel CPU_NAME(cpu_complex_norm_sq);
const struct cpu_kernel CPU_NAME(cpu_complex_norm_sq) = {.run = run_norm};

extern const struct cpu_kernel CPU_NAME(cpu_conjugate);
const struct cpu_kernel CPU_NAME(cpu_conjugate) = {.run = run_conjugate, .in_place = 1};

extern const struct cpu_kernel CPU_NAME(cpu_complex_real);
const struct cpu_kernel CPU_NAME(cpu_complex_real) = {.run = run_real};
