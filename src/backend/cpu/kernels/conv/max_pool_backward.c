/* max_pool_backward.c: the gradient of max pooling (ops-core.md 12.3): each window's dy goes to its
 * first largest element, a NaN being larger than anything. A plane is one thread's, and its windows
 * are taken in order. */
#include "backend/cpu/kernels/conv/pool_core.h"

struct backward {
    struct pool_windows w;
    const struct cpu_tensor *x, *dy, *dx;
    float *wide; /* f16 and bf16: per worker, x and dx of a plane */
};

static void describe(const struct cpu_call *c, struct backward *b)
{
    const struct attr_max_pool_backward *a = &c->attr->max_pool_backward;

    *b = (struct backward){.x = &c->in[0], .dy = &c->in[1], .dx = c->out, .wide = c->scratch};
    pool_windows_of(&b->w, b->x, b->dy, &a->kernel_size, &a->stride, &a->padding);
}

/* largest_<T>: where the first largest element of a window is, in a plane of x. */
#define LARGEST(T)                                                                                \
    static int64_t largest_##T(const struct pool_windows *w, const T *x, const int64_t *first,    \
                               const int64_t *count)                                              \
    {                                                                                             \
        int64_t best = (first[0] * w->in[1] + first[1]) * w->in[2] + first[2];                    \
                                                                                                  \
        for (int64_t i0 = 0; i0 < count[0]; i0++)                                                 \
            for (int64_t i1 = 0; i1 < count[1]; i1++) {                                           \
                int64_t row = ((first[0] + i0) * w->in[1] + first[1] + i1) * w->in[2] + first[2]; \
                for (int64_t i = row; i < row + count[2]; i++)                                    \
                    if (x[i] > x[best] || (x[i] != x[i] && x[best] == x[best]))                   \
                        best = i;                                                                 \
            }                                                                                     \
        return best;                                                                              \
    }                                                                                             \
                                                                                                  \
    static void plane_##T(const struct backward *b, int64_t plane, const T *x, T *dx)             \
    {                                                                                             \
        const struct pool_windows *w = &b->w;                                                     \
        int64_t at = plane * windows_volume(w->pos), first[3], count[3];                          \
                                                                                                  \
        memset(dx, 0, (size_t)windows_volume(w->in) * sizeof *dx);                                \
        for (int64_t p0 = 0; p0 < w->pos[0]; p0++)                                                \
            for (int64_t p1 = 0; p1 < w->pos[1]; p1++)                                            \
                for (int64_t p2 = 0; p2 < w->pos[2]; p2++, at++) {                                \
                    count[0] = pool_inside(w, 0, p0, &first[0]);                                  \
                    count[1] = pool_inside(w, 1, p1, &first[1]);                                  \
                    count[2] = pool_inside(w, 2, p2, &first[2]);                                  \
                    dx[largest_##T(w, x, first, count)] +=                                        \
                        (T)cpu_get_f64(b->dy->dtype, b->dy->data, at);                            \
                }                                                                                 \
    }

LARGEST(float)
LARGEST(double)

static void run_planes(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct backward *b = ctx;
    int64_t plane = windows_volume(b->w.in);

    for (int64_t i = begin; i < end; i++) {
        const void *x = cpu_at(b->x, i * plane);
        void *dx = cpu_at(b->dx, i * plane);
        if (b->x->dtype == RLX_DTYPE_f64) {
            plane_double(b, i, x, dx);
        } else if (b->x->dtype == RLX_DTYPE_f32) {
            plane_float(b, i, x, dx);
        } else {
            float *wide = b->wide + worker * 2 * plane;
            cpu_load_f32(b->x->dtype, x, wide, plane);
            plane_float(b, i, wide, wide + plane);
            cpu_store_f32(b->dx->dtype, wide + plane, dx, plane);
        }
    }
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct backward b;

    if (c->out->count == 0 || !cpu_is_half(c->out->dtype))
        return 0;
    describe(c, &b);
    return (uint64_t)gemm_workers(c->pool) * 2 * (uint64_t)windows_volume(b.w.in) * sizeof(float);
}

static void run(const struct cpu_call *c)
{
    struct backward b;

    if (c->out->count == 0)
        return;
    describe(c, &b);
    int64_t work = windows_volume(b.w.pos) * windows_volume(b.w.kernel);
    cpu_for(c->pool, b.w.planes, cpu_max_i64(1, 16384 / (work + 1)), run_planes, &b);
}

extern const struct cpu_kernel CPU_NAME(cpu_max_pool_backward);
const struct cpu_kernel CPU_NAME(cpu_max_pool_backward) = {.run = run, .scratch = scratch};
