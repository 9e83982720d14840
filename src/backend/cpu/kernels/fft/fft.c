/* fft.c: the fft kernel: Fourier transforms along the last axis (ops-special.md 5.1). What it does
 * to which rows is in fft.h; here operands become that. */
#include "backend/cpu/kernels/fft/fft.h"

struct shape {
    int64_t n, rows, size; /* points, rows, bytes of an element of the working type */
};

static struct shape shape_of(const struct cpu_tensor *x)
{
    bool pairs = x->dtype == RLX_DTYPE_c64;
    int64_t extent = x->dim[x->rank - 1], n = pairs ? extent : extent / 2;

    return (struct shape){n, n ? x->count / extent : 0, x->dtype == RLX_DTYPE_f64 ? 8 : 4};
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct shape s = shape_of(&c->in[0]);
    int threads = c->pool ? pool_threads(c->pool) : 1;

    return s.n ? fft_scratch_bytes(s.n, s.rows, s.size, threads, c->bounded) : 0;
}

/* ---- tables: the plan, then what it points to ---------------------------------------------- */

enum { HEAD = (sizeof(struct fft_plan) + 63) / 64 * 64 };

static uint64_t table_size(const struct cpu_call *c)
{
    struct shape s = shape_of(&c->in[0]);

    return s.n ? HEAD + fft_table_bytes(s.n, s.rows, s.size, c->bounded) : 0;
}

static void make_table(const struct cpu_call *c, void *to)
{
    struct shape s = shape_of(&c->in[0]);
    struct fft_plan *p = to, old = *p;

    if (s.n == 0)
        return;
    fft_plan_make(p, s.n, s.rows, s.size);
    if (old.n == p->n && old.rows_are_lanes == p->rows_are_lanes)
        return; /* only the number of rows is another */
    if (s.size == 8)
        fft_f64_fill(p, (double *)(void *)((char *)to + HEAD));
    else
        fft_f32_fill(p, (float *)(void *)((char *)to + HEAD));
}

/* ---- runs ---------------------------------------------------------------------------------- */

static double scale_of(const struct attr_fft *a, int64_t n)
{
    switch (a->norm) {
    case RLX_FFT_NORM_forward: return a->inverse ? 1 / (double)n : 1;
    case RLX_FFT_NORM_ortho: return 1 / sqrt((double)n);
    default: return 1;
    }
}

static struct fft_end end_of(const struct cpu_tensor *x, struct shape s, bool inverse)
{
    bool pairs = x->dtype == RLX_DTYPE_c64;
    char *re = x->data, *im = re + s.size * (pairs ? 1 : s.n);

    return (struct fft_end){inverse ? im : re, inverse ? re : im, 2 * s.n, pairs ? 2 : 1};
}

static void run(const struct cpu_call *c)
{
    const struct attr_fft *a = &c->attr->fft;
    struct shape s = shape_of(&c->in[0]);

    if (c->out->count == 0)
        return;
    struct fft_run r = {.plan = c->table,
                        .table = (const char *)c->table + HEAD,
                        .scratch = c->scratch,
                        .pool = c->pool,
                        .in = end_of(&c->in[0], s, a->inverse),
                        .out = end_of(c->out, s, a->inverse),
                        .scale = scale_of(a, s.n)};
    if (s.size == 8)
        fft_f64_run(&r);
    else
        fft_f32_run(&r);
}

const struct cpu_kernel CPU_NAME(cpu_fft) = {
    .run = run, .scratch = scratch, .table_size = table_size, .make_table = make_table};
