/* index.c: reading, checking and writing indices. */
#include "backend/cpu/kernels/move/index.h"

void index_load(const struct cpu_tensor *t, int64_t k, int64_t n, int64_t *dst)
{
    switch (t->dtype) {
    case RLX_DTYPE_u64:
    case RLX_DTYPE_f32:
    case RLX_DTYPE_f64:
        for (int64_t i = 0; i < n; i++)
            dst[i] = cpu_index(t, k + i);
        break;
    default: cpu_load_i64(t->dtype, cpu_at(t, k), dst, n); break;
    }
}

struct check_job {
    const struct cpu_call *c;
    const struct cpu_tensor *t;
    const int64_t *limit;
    int64_t period;
};

static void check_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct check_job *j = ctx;

    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        int64_t v = cpu_index(j->t, k);
        if (!cpu_index_valid(v, j->limit[k % j->period]))
            cpu_report_index(j->c, k, v);
    }
}

void index_check(const struct cpu_call *c, const struct cpu_tensor *t, const int64_t *limit,
                 int64_t period)
{
    struct check_job j = {c, t, limit, period};

    if (c->check_indices)
        cpu_for(c->pool, t->count, MOVE_BLOCK, check_range, &j);
}

void index_store(const struct cpu_tensor *out, int64_t at, int64_t stride, const int64_t *src,
                 int64_t n)
{
    void *dst = cpu_at(out, at);

    switch (out->dtype) {
    case RLX_DTYPE_i32:
        for (int64_t i = 0; i < n; i++)
            ((int32_t *)dst)[i * stride] = (int32_t)src[i];
        break;
    case RLX_DTYPE_i64:
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)dst)[i * stride] = src[i];
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            ((float *)dst)[i * stride] = (float)src[i];
        break;
    }
}
