/* scatter_elements.c: single elements written or combined along an axis.
 *
 * Only elements of one line along the axis can meet in one place, so each line belongs to one
 * worker and is walked in order. `none` writes straight into the output; everything else is
 * combined in scratch of 64 bits per element (twice that for c64) and stored at the end. */
#include "backend/cpu/kernels/move/scatter.h"
#include "backend/cpu/kernels/order/order.h"

struct elements {
    const struct cpu_call *c;
    const struct cpu_tensor *data, *indices, *updates, *out;
    rlx_dtype dtype;
    int32_t reduction;
    int64_t axis, limit;          /* size of the data's axis */
    int64_t picks, inner;         /* of the indices: along the axis, after it */
    int64_t tiles;                /* of the inner positions */
    int64_t stride[RLX_MAX_RANK]; /* of the data */
    bool complex;
};

/* ---- one tile of updates ------------------------------------------------------------------- */

/* Update first+i goes to element target[i]; -1: nowhere. */
struct batch {
    const int64_t *target;
    int64_t first, n;
};

static void write_none(const struct elements *e, const struct batch *b)
{
    MOVE_BY_SIZE(cpu_size(e->dtype), {
        move_t *dst = e->out->data;
        const move_t *src = cpu_at(e->updates, b->first);
        for (int64_t i = 0; i < b->n; i++)
            if (b->target[i] >= 0)
                dst[b->target[i]] = src[i];
    })
}

#define EACH(T, expression)                    \
    for (int64_t i = 0; i < b->n; i++) {       \
        if (b->target[i] >= 0) {               \
            T a = acc[b->target[i]], u = v[i]; \
            acc[b->target[i]] = (expression);  \
        }                                      \
    }

static void combine_f64(const struct elements *e, const struct batch *b)
{
    double *acc = e->c->scratch;
    CPU_TILE_OF(double, v);

    cpu_load_f64(e->dtype, cpu_at(e->updates, b->first), v, b->n);
    SCATTER_F64(e->reduction, EACH)
}

static void combine_i64(const struct elements *e, const struct batch *b)
{
    int64_t *acc = e->c->scratch;
    CPU_TILE_OF(int64_t, v);

    scatter_load_i64(e->dtype, e->reduction, cpu_at(e->updates, b->first), v, b->n);
    SCATTER_I64(e->reduction, EACH)
}

static void combine_c64(const struct elements *e, const struct batch *b)
{
    double *acc = e->c->scratch;
    const float *src = cpu_at(e->updates, b->first);

    for (int64_t i = 0; i < b->n; i++) {
        double v[2] = {(double)src[2 * i], (double)src[2 * i + 1]}, *at;
        if (b->target[i] < 0)
            continue;
        at = acc + 2 * b->target[i];
        if (e->reduction == RLX_SCATTER_REDUCTION_mul) {
            scatter_mul_c64(at, v);
        } else {
            at[0] += v[0];
            at[1] += v[1];
        }
    }
}

static void apply(const struct elements *e, const struct batch *b)
{
    if (e->reduction == RLX_SCATTER_REDUCTION_none)
        write_none(e, b);
    else if (e->complex)
        combine_c64(e, b);
    else if (cpu_is_float(e->dtype))
        combine_f64(e, b);
    else
        combine_i64(e, b);
}

/* ---- lines --------------------------------------------------------------------------------- */

/* Where in the data position k of the axes [begin, end) of the indices lies. */
static int64_t data_offset(const struct elements *e, int32_t begin, int32_t end, int64_t k)
{
    int64_t at = 0;

    for (int32_t i = end - 1; i >= begin; i--) {
        at += k % e->indices->dim[i] * e->stride[i];
        k /= e->indices->dim[i];
    }
    return at;
}

/* Updates first .. first+n-1, whose places differ from base by offset[] and by their index. */
static void scatter_tile(const struct elements *e, int64_t first, int64_t n, int64_t base,
                         const int64_t *offset)
{
    int64_t along = e->stride[e->axis];
    CPU_TILE_OF(int64_t, target);

    index_load(e->indices, first, n, target);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = base + (offset ? offset[i] : 0);
        target[i] = cpu_index_valid(target[i], e->limit) ? at + target[i] * along : -1;
    }
    apply(e, &(struct batch){target, first, n});
}

/* A unit is a bundle of neighbouring lines. */
static void scatter_lines(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct elements *e = ctx;
    int32_t axis = (int32_t)e->axis;
    CPU_TILE_OF(int64_t, offset);

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t outer = u / e->tiles, column = u % e->tiles * CPU_TILE;
        int64_t base = data_offset(e, 0, axis, outer), first = outer * e->picks * e->inner;
        if (e->inner == 1) {
            for (int64_t p = 0; p < e->picks; p += CPU_TILE)
                scatter_tile(e, first + p, cpu_min_i64(e->picks - p, CPU_TILE), base, NULL);
            continue;
        }
        int64_t n = cpu_min_i64(e->inner - column, CPU_TILE);
        for (int64_t i = 0; i < n; i++)
            offset[i] = data_offset(e, axis + 1, e->indices->rank, column + i);
        for (int64_t p = 0; p < e->picks; p++)
            scatter_tile(e, first + p * e->inner + column, n, base, offset);
    }
}

/* ---- before and after ---------------------------------------------------------------------- */

static void load_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct elements *e = ctx;
    const void *src = cpu_at(e->data, begin);

    (void)worker;
    if (e->complex)
        cpu_load_f64(RLX_DTYPE_f32, src, (double *)e->c->scratch + 2 * begin, 2 * (end - begin));
    else if (cpu_is_float(e->dtype))
        cpu_load_f64(e->dtype, src, (double *)e->c->scratch + begin, end - begin);
    else
        scatter_load_i64(e->dtype, e->reduction, src, (int64_t *)e->c->scratch + begin,
                         end - begin);
}

static void store_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct elements *e = ctx;
    void *dst = cpu_at(e->out, begin);

    (void)worker;
    if (e->complex)
        cpu_store_f64(RLX_DTYPE_f32, (double *)e->c->scratch + 2 * begin, dst, 2 * (end - begin));
    else if (cpu_is_float(e->dtype))
        cpu_store_f64(e->dtype, (double *)e->c->scratch + begin, dst, end - begin);
    else
        scatter_store_i64(e->dtype, e->reduction, (int64_t *)e->c->scratch + begin, dst,
                          end - begin);
}

static uint64_t scratch(const struct cpu_call *c)
{
    uint64_t width = c->out->dtype == RLX_DTYPE_c64 ? 2 * sizeof(double) : sizeof(double);

    if (c->attr->scatter_elements.reduction == RLX_SCATTER_REDUCTION_none)
        return 0;
    return order_bytes((uint64_t)c->out->count, width);
}

static void run(const struct cpu_call *c)
{
    const struct cpu_tensor *data = &c->in[0], *indices = &c->in[1];
    int64_t axis = c->attr->scatter_elements.axis, count = c->out->count;
    struct elements e = {
        .c = c,
        .data = data,
        .indices = indices,
        .updates = &c->in[2],
        .out = c->out,
        .dtype = data->dtype,
        .reduction = c->attr->scatter_elements.reduction,
        .axis = axis,
        .limit = data->dim[axis],
        .picks = indices->dim[axis],
        .inner = cpu_product(indices, axis + 1, indices->rank),
        .complex = data->dtype == RLX_DTYPE_c64,
    };
    bool direct = e.reduction == RLX_SCATTER_REDUCTION_none;

    if (count == 0)
        return;
    if (direct || indices->count == 0)
        move_dense(c->pool, c->out->data, data->data, count, cpu_size(data->dtype));
    if (indices->count == 0)
        return;
    if (!direct)
        cpu_for(c->pool, count, MOVE_BLOCK, load_range, &e);
    cpu_strides(data, e.stride);
    index_check(c, indices, &e.limit, 1);
    e.tiles = (e.inner + CPU_TILE - 1) / CPU_TILE;
    cpu_for(c->pool, cpu_product(indices, 0, axis) * e.tiles,
            cpu_grain(MOVE_BLOCK, e.picks * cpu_min_i64(e.inner, CPU_TILE)), scatter_lines, &e);
    if (!direct)
        cpu_for(c->pool, count, MOVE_BLOCK, store_range, &e);
}

extern const struct cpu_kernel CPU_NAME(cpu_scatter_elements);
const struct cpu_kernel CPU_NAME(cpu_scatter_elements) = {.run = run, .scratch = scratch};
