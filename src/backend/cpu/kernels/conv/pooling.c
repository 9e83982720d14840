/* pooling.c: sum, mean, max, min and product of windows (ops-core.md 12.3), of any size and type;
 * the ordinary ones are in pool_rows.c.
 *
 * Floats are added and multiplied in f64, so that long windows are right and nothing overflows
 * on the way. A row of outputs is made in one of two ways, each with rows of elements as the unit:
 *
 *     many positions, short windows:   for each tap, what all positions see, onto their results
 *     few positions, long windows:     for each position, rows of its window onto one row, which is
 *                                      then folded in half until one element is left */
#include "backend/cpu/kernels/conv/pool_core.h"
#include "backend/cpu/kernels/elementwise/row.h"

struct pooling {
    struct pool_windows w;
    const struct cpu_tensor *x, *y;
    int32_t kind;
    bool count_pad;
    rlx_op op;       /* that joins two elements */
    rlx_dtype dtype; /* that it is done in */
    int64_t size;    /* of an element of that */
    _Alignas(8) unsigned char identity[8];
};

#define SET_IDENTITY(T, value)               \
    do {                                     \
        T v_ = (value);                      \
        memcpy(p->identity, &v_, sizeof v_); \
    } while (0)

/* What max (or min) starts from. */
static void set_extreme(struct pooling *p, bool max)
{
    switch (p->dtype) {
    case RLX_DTYPE_f32: SET_IDENTITY(float, max ? -INFINITY : INFINITY); break;
    case RLX_DTYPE_f64: SET_IDENTITY(double, (double)(max ? -INFINITY : INFINITY)); break;
    case RLX_DTYPE_i8: SET_IDENTITY(int8_t, max ? INT8_MIN : INT8_MAX); break;
    case RLX_DTYPE_i16: SET_IDENTITY(int16_t, max ? INT16_MIN : INT16_MAX); break;
    case RLX_DTYPE_i32: SET_IDENTITY(int32_t, max ? INT32_MIN : INT32_MAX); break;
    case RLX_DTYPE_i64: SET_IDENTITY(int64_t, max ? INT64_MIN : INT64_MAX); break;
    default: memset(p->identity, max ? 0 : 0xff, sizeof p->identity); break; /* unsigned */
    }
}

static void set_one(struct pooling *p)
{
    switch (p->size) {
    case 1: SET_IDENTITY(uint8_t, 1); break;
    case 2: SET_IDENTITY(uint16_t, 1); break;
    case 4: SET_IDENTITY(uint32_t, 1); break;
    default:
        if (p->dtype == RLX_DTYPE_f64)
            SET_IDENTITY(double, 1);
        else
            SET_IDENTITY(uint64_t, 1);
        break;
    }
}

static void describe(const struct cpu_call *c, struct pooling *p)
{
    const struct attr_pool *a = &c->attr->pool;
    bool extreme = a->kind == RLX_POOL_KIND_max || a->kind == RLX_POOL_KIND_min;

    *p = (struct pooling){.x = &c->in[0], .y = c->out, .kind = a->kind, .dtype = c->out->dtype};
    p->count_pad = a->count_include_pad;
    pool_windows_of(&p->w, p->x, p->y, &a->kernel_size, &a->stride, &a->padding);
    if (cpu_is_float(p->dtype))
        p->dtype = !extreme || p->dtype == RLX_DTYPE_f64 ? RLX_DTYPE_f64 : RLX_DTYPE_f32;
    p->size = (int64_t)cpu_size(p->dtype);
    switch (a->kind) {
    case RLX_POOL_KIND_max:
    case RLX_POOL_KIND_min:
        p->op = a->kind == RLX_POOL_KIND_max ? RLX_OP_max : RLX_OP_min;
        set_extreme(p, a->kind == RLX_POOL_KIND_max);
        break;
    case RLX_POOL_KIND_prod:
        p->op = RLX_OP_mul;
        set_one(p);
        break;
    default: p->op = RLX_OP_add; break; /* identity: zeros */
    }
}

/* n elements of x, `step` apart, joined onto n results. */
static void join(const struct pooling *p, int64_t at, int64_t step, int64_t n, char *to)
{
    CPU_TILE_ANY(dense);
    CPU_TILE_ANY(wide);
    const void *row = cpu_at(p->x, at);

    if (step != 1) {
        cpu_copy_strided(dense, row, (int32_t)cpu_size(p->x->dtype), n, step);
        row = dense;
    }
    if (p->x->dtype != p->dtype) {
        if (p->dtype == RLX_DTYPE_f64)
            cpu_load_f64(p->x->dtype, row, (double *)(void *)wide, n);
        else
            cpu_load_f32(p->x->dtype, row, (float *)(void *)wide, n);
        row = wide;
    }
    cpu_row_binary(p->op, p->dtype, to, 1, row, 1, to, n);
}

/* The rows of x that a row of outputs reads: begin, counts along the first two axes. */
struct pool_row {
    const struct pooling *p;
    int64_t first[2], count[2]; /* source rows */
    int64_t plane;              /* element that the plane begins with */
};

static int64_t row_at(const struct pool_row *r, int64_t i0, int64_t i1)
{
    const int64_t *in = r->p->w.in;
    return r->plane + ((r->first[0] + i0) * in[1] + r->first[1] + i1) * in[2];
}

static void by_positions(const struct pool_row *r, int64_t pos, int64_t n, char *to)
{
    const struct pooling *p = r->p;
    const struct pool_windows *w = &p->w;

    for (int64_t i0 = 0; i0 < r->count[0]; i0++)
        for (int64_t i1 = 0; i1 < r->count[1]; i1++)
            for (int64_t t = 0; t < w->kernel[2]; t++) {
                int64_t start = pos * w->stride[2] - w->pad[2] + t, lo, hi;
                windows_inside(start, w->stride[2], w->in[2], n, &lo, &hi);
                if (lo < hi)
                    join(p, row_at(r, i0, i1) + start + lo * w->stride[2], w->stride[2], hi - lo,
                         to + lo * p->size);
            }
}

/* Each of n positions by itself. */
static void by_taps(const struct pool_row *r, int64_t pos, int64_t n, char *to)
{
    const struct pooling *p = r->p;
    CPU_TILE_ANY(line);

    for (int64_t j = 0; j < n; j++) {
        int64_t first, taps = pool_inside(&p->w, 2, pos + j, &first);
        for (int64_t t = 0; t < taps; t += CPU_TILE) {
            int64_t m = cpu_min_i64(CPU_TILE, taps - t);
            cpu_copy_strided(line, p->identity, (int32_t)p->size, m, 0);
            for (int64_t i0 = 0; i0 < r->count[0]; i0++)
                for (int64_t i1 = 0; i1 < r->count[1]; i1++)
                    join(p, row_at(r, i0, i1) + first + t, 1, m, (char *)line);
            while (m > 1) { /* the second half onto the first; an odd one in the middle stays */
                int64_t half = m / 2;
                cpu_row_binary(p->op, p->dtype, line, 1, line + (m - half) * p->size, 1, line,
                               half);
                m -= half;
            }
            cpu_row_binary(p->op, p->dtype, to + j * p->size, 1, line, 1, to + j * p->size, 1);
        }
    }
}

/* Sums become means. */
static void divide(const struct pool_row *r, int64_t pos, int64_t n, double *sum)
{
    const struct pool_windows *w = &r->p->w;

    for (int64_t j = 0; j < n; j++) {
        int64_t first, count = windows_volume(w->kernel);
        if (!r->p->count_pad)
            count = r->count[0] * r->count[1] * pool_inside(w, 2, pos + j, &first);
        sum[j] /= (double)count;
    }
}

static void run_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct pooling *p = ctx;
    const struct pool_windows *w = &p->w;
    CPU_TILE_ANY(tile);

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        struct pool_row r = {.p = p, .plane = t / (w->pos[0] * w->pos[1]) * windows_volume(w->in)};
        r.count[0] = pool_inside(w, 0, t / w->pos[1] % w->pos[0], &r.first[0]);
        r.count[1] = pool_inside(w, 1, t % w->pos[1], &r.first[1]);
        for (int64_t pos = 0; pos < w->pos[2]; pos += CPU_TILE) {
            int64_t n = cpu_min_i64(CPU_TILE, w->pos[2] - pos);
            void *to = cpu_at(p->y, t * w->pos[2] + pos);
            cpu_copy_strided(tile, p->identity, (int32_t)p->size, n, 0);
            if (w->pos[2] < w->kernel[2])
                by_taps(&r, pos, n, (char *)tile);
            else
                by_positions(&r, pos, n, (char *)tile);
            if (p->kind == RLX_POOL_KIND_mean)
                divide(&r, pos, n, (double *)(void *)tile);
            if (p->dtype == p->y->dtype)
                memcpy(to, tile, (size_t)(n * p->size));
            else if (p->dtype == RLX_DTYPE_f64)
                cpu_store_f64(p->y->dtype, (const double *)(const void *)tile, to, n);
            else
                cpu_store_f32(p->y->dtype, (const float *)(const void *)tile, to, n);
        }
    }
}

static void run(const struct cpu_call *c)
{
    struct pooling p;

    if (c->out->count == 0)
        return;
    describe(c, &p);
    if (pool_rows_run(c, &p.w))
        return;
    int64_t work = p.w.pos[2] * windows_volume(p.w.kernel); /* of a row */
    cpu_for(c->pool, c->out->count / p.w.pos[2], cpu_max_i64(1, 16384 / (work + 1)), run_rows, &p);
}

extern const struct cpu_kernel CPU_NAME(cpu_pool);
const struct cpu_kernel CPU_NAME(cpu_pool) = {.run = run};
