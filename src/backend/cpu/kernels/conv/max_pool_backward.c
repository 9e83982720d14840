/* max_pool_backward.c: the gradient of max pooling (ops-core.md 12.3): each window's dy goes to its
 * first largest element, a NaN being larger than anything. A plane is one thread's, and its windows
 * get their dy in order. Where the largest elements are is found for many windows of a row at a
 * time, tap by tap; those that the padding cuts, and f64, go one by one. */
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

/* A row of windows: what they see along the first two axes, and where in dy the row begins. */
struct row {
    int64_t first[3], count[3], dy;
};

enum { ROW = 128 }; /* windows side by side, at most */

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
    /* Windows p .. end-1 of a row, one by one. dy: of the row's first. */                        \
    static void some_##T(const struct backward *b, struct row r, int64_t p, int64_t end,          \
                         const T *x, T *dx)                                                       \
    {                                                                                             \
        for (; p < end; p++) {                                                                    \
            r.count[2] = pool_inside(&b->w, 2, p, &r.first[2]);                                   \
            dx[largest_##T(&b->w, x, r.first, r.count)] +=                                        \
                (T)cpu_get_f64(b->dy->dtype, b->dy->data, r.dy + p);                              \
        }                                                                                         \
    }

LARGEST(float)
LARGEST(double)

/* ---- windows side by side ---- */

/* Windows lo .. hi-1 of a row are inside along it. */
static void find_inside(const struct pool_windows *w, int64_t *lo, int64_t *hi)
{
    int64_t room = w->in[2] + w->pad[2] - w->kernel[2];

    *lo = cpu_min_i64((w->pad[2] + w->stride[2] - 1) / w->stride[2], w->pos[2]);
    *hi = room < 0 ? 0 : cpu_min_i64(room / w->stride[2] + 1, w->pos[2]);
    if (*hi < *lo || windows_volume(w->in) > INT32_MAX)
        *hi = *lo; /* none, or places would not fit */
}

/* The place of the larger one of a, at `was`, and b, at `far`; without branches, so that loops
 * become vectors. */
static inline int32_t larger_place(float a, int32_t was, float b, int32_t far)
{
    int32_t takes_over = -(int32_t)(!(b <= a) & (a == a));

    return (far & takes_over) | (was & ~takes_over);
}

/* How far each of n windows' first largest element is from its first one. x: that of the first
 * window. At step 2 two taps go together, which read all that is there: vectors need no gaps. */
static void find_places(const struct pool_windows *w, const struct row *r, const float *x,
                        int64_t n, int32_t *restrict place)
{
    int64_t step = w->stride[2];
    float most[ROW];

    for (int64_t j = 0; j < n; j++) {
        most[j] = -INFINITY;
        place[j] = 0;
    }
    for (int64_t i = 0; i < r->count[0] * r->count[1]; i++) {
        int64_t row = (i / r->count[1] * w->in[1] + i % r->count[1]) * w->in[2], i2 = 0;
        for (; step == 2 && i2 + 2 <= w->kernel[2]; i2 += 2) {
            const float *at = x + row + i2;
            int32_t far = (int32_t)(row + i2);
            CPU_INDEPENDENT
            for (int64_t j = 0; j < n; j++) {
                float a = most[j], b = at[2 * j], c = at[2 * j + 1];
                float d = cpu_max_f32(a, b);
                place[j] = larger_place(d, larger_place(a, place[j], b, far), c, far + 1);
                most[j] = cpu_max_f32(d, c);
            }
        }
        for (; i2 < w->kernel[2]; i2++) {
            int32_t far = (int32_t)(row + i2);
            CPU_INDEPENDENT
            for (int64_t j = 0; j < n; j++) {
                float a = most[j], b = x[far + j * step];
                place[j] = larger_place(a, place[j], b, far);
                most[j] = cpu_max_f32(a, b);
            }
        }
    }
}

/* some_float, of windows that are inside along the row. */
static void many_float(const struct backward *b, struct row r, int64_t p, int64_t end,
                       const float *x, float *dx)
{
    const struct pool_windows *w = &b->w;
    int64_t step = w->stride[2], n;
    int32_t place[ROW];
    float buffer[ROW];

    for (; p < end; p += n) {
        n = cpu_min_i64(ROW, end - p);
        int64_t at = (r.first[0] * w->in[1] + r.first[1]) * w->in[2] + p * step - w->pad[2];
        const float *dy = cpu_as_f32(b->dy->dtype, cpu_at(b->dy, r.dy + p), buffer, n);
        find_places(w, &r, x + at, n, place);
        for (int64_t j = 0; j < n; j++)
            dx[at + j * step + place[j]] += dy[j];
    }
}

/* ---- planes ---- */

static void row_float(const struct backward *b, const struct row *r, const float *x, float *dx)
{
    int64_t lo, hi;

    find_inside(&b->w, &lo, &hi);
    some_float(b, *r, 0, lo, x, dx);
    many_float(b, *r, lo, hi, x, dx);
    some_float(b, *r, hi, b->w.pos[2], x, dx);
}

static void row_double(const struct backward *b, const struct row *r, const double *x, double *dx)
{
    some_double(b, *r, 0, b->w.pos[2], x, dx);
}

#define PLANE(T)                                                                      \
    static void plane_##T(const struct backward *b, int64_t plane, const T *x, T *dx) \
    {                                                                                 \
        const struct pool_windows *w = &b->w;                                         \
        struct row r = {.dy = plane * windows_volume(w->pos)};                        \
                                                                                      \
        memset(dx, 0, (size_t)windows_volume(w->in) * sizeof *dx);                    \
        for (int64_t p0 = 0; p0 < w->pos[0]; p0++)                                    \
            for (int64_t p1 = 0; p1 < w->pos[1]; p1++, r.dy += w->pos[2]) {           \
                r.count[0] = pool_inside(w, 0, p0, &r.first[0]);                      \
                r.count[1] = pool_inside(w, 1, p1, &r.first[1]);                      \
                row_##T(b, &r, x, dx);                                                \
            }                                                                         \
    }

PLANE(float)
PLANE(double)

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
