/* gather.c: slices and elements picked by index. Indices are clamped to what is there. */
#include "backend/cpu/kernels/move/index.h"

/* ---- gather, gather_nd: rows of `width` elements ------------------------------------------- */

/* Output row r is copied from offset(r). Long rows are cut, so that a few of them still make work
 * for everyone. */
struct rows_job {
    const struct cpu_tensor *table, *indices, *out;
    size_t size;
    int64_t width, cuts; /* of a row: elements, pieces */
    int64_t picks;       /* gather: indices per outer index; gather_nd: rows per batch item */
    int64_t axis;        /* gather: size of the table's axis; 0: this is gather_nd */
    int32_t parts;       /* gather_nd: numbers in a coordinate */
    int64_t batch;       /* gather_nd: elements of a batch item */
    int64_t limit[RLX_MAX_RANK], stride[RLX_MAX_RANK]; /* gather_nd: of each part */
};

enum { CUT = MOVE_BLOCK };

/* Rows [r, r + n), their offsets given, elements [from, to) of each. */
static void copy_rows(const struct rows_job *j, int64_t r, int64_t n, const int64_t *offset,
                      int64_t from, int64_t to)
{
    char *dst = (char *)j->out->data + (size_t)(r * j->width + from) * j->size;
    const char *src = (const char *)j->table->data + (size_t)from * j->size;
    size_t bytes = (size_t)(to - from) * j->size, step = (size_t)j->width * j->size;

    if (j->width == 1) {
        MOVE_BY_SIZE(j->size, {
            for (int64_t i = 0; i < n; i++)
                ((move_t *)dst)[i] = ((const move_t *)src)[offset[i]];
        })
        return;
    }
    for (int64_t i = 0; i < n; i++, dst += step)
        memcpy(dst, src + (size_t)offset[i] * j->size, bytes);
}

/* Rows [r, r + n) of gather, all of one outer index. */
static void gather_offsets(const struct rows_job *j, int64_t r, int64_t n, int64_t *offset)
{
    int64_t base = r / j->picks * j->axis;

    index_load(j->indices, r % j->picks, n, offset);
    for (int64_t i = 0; i < n; i++)
        offset[i] = (base + cpu_index_clamp(offset[i], j->axis)) * j->width;
}

static void gather_nd_offsets(const struct rows_job *j, int64_t r, int64_t n, int64_t *offset)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at = (r + i) / j->picks * j->batch;
        for (int32_t p = 0; p < j->parts; p++) {
            int64_t k = cpu_index(j->indices, (r + i) * j->parts + p);
            at += cpu_index_clamp(k, j->limit[p]) * j->stride[p];
        }
        offset[i] = at;
    }
}

static void offsets_of(const struct rows_job *j, int64_t r, int64_t n, int64_t *offset)
{
    if (j->axis)
        gather_offsets(j, r, n, offset);
    else
        gather_nd_offsets(j, r, n, offset);
}

static void gather_units(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct rows_job *j = ctx;
    CPU_TILE_OF(int64_t, offset);

    (void)worker;
    while (begin < end) {
        int64_t r = begin / j->cuts, n = 1, from = 0, to = j->width;
        if (j->cuts > 1) {
            from = begin % j->cuts * CUT;
            to = cpu_min_i64(to, from + CUT);
        } else {
            n = cpu_min_i64(cpu_min_i64(end - r, CPU_TILE), j->picks - r % j->picks);
        }
        offsets_of(j, r, n, offset);
        copy_rows(j, r, n, offset, from, to);
        begin += n;
    }
}

static void run_rows(const struct cpu_call *c, struct rows_job *j)
{
    j->table = &c->in[0];
    j->indices = &c->in[1];
    j->out = c->out;
    j->size = cpu_size(c->out->dtype);
    j->cuts = (j->width + CUT - 1) / CUT;
    cpu_for(c->pool, c->out->count / j->width * j->cuts,
            cpu_grain(MOVE_BLOCK, cpu_min_i64(j->width, CUT)), gather_units, j);
}

static void gather(const struct cpu_call *c)
{
    const struct cpu_tensor *table = &c->in[0], *indices = &c->in[1];
    int64_t axis = c->attr->gather.axis;

    if (c->out->count == 0)
        return;
    struct rows_job j = {
        .width = cpu_product(table, axis + 1, table->rank),
        .picks = indices->count,
        .axis = table->dim[axis],
    };
    index_check(c, indices, &j.axis, 1);
    run_rows(c, &j);
}

static void gather_nd(const struct cpu_call *c)
{
    const struct cpu_tensor *data = &c->in[0], *indices = &c->in[1];
    int64_t shared = c->attr->gather_nd.batch_dims;
    int32_t parts = (int32_t)indices->dim[indices->rank - 1];
    int64_t stride[RLX_MAX_RANK];

    if (c->out->count == 0)
        return;
    cpu_strides(data, stride);
    struct rows_job j = {
        .width = cpu_product(data, shared + parts, data->rank),
        .parts = parts,
        .batch = cpu_product(data, shared, data->rank),
    };
    j.picks = c->out->count / j.width / cpu_product(data, 0, shared);
    for (int32_t p = 0; p < parts; p++) {
        j.limit[p] = data->dim[shared + p];
        j.stride[p] = stride[shared + p];
    }
    if (parts > 0)
        index_check(c, indices, j.limit, parts);
    run_rows(c, &j);
}

/* ---- gather_elements ----------------------------------------------------------------------- */

struct elements_job {
    const struct cpu_tensor *data, *indices, *out;
    size_t size;
    int64_t axis, limit, step; /* step: of the data, per element of a row; 0 along the axis */
    int64_t stride[RLX_MAX_RANK];
};

/* Where in the data a row of the output begins, the axis left out. */
static int64_t row_offset(const struct elements_job *j, int64_t row)
{
    int64_t at = 0;

    for (int32_t i = j->out->rank - 2; i >= 0; i--) {
        if (i != j->axis)
            at += row % j->out->dim[i] * j->stride[i];
        row /= j->out->dim[i];
    }
    return at;
}

static void elements_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct elements_job *j = ctx;
    int64_t width = j->out->dim[j->out->rank - 1], along = j->stride[j->axis];
    CPU_TILE_OF(int64_t, at);

    (void)worker;
    while (begin < end) {
        int64_t from = begin % width;
        int64_t n = cpu_min_i64(cpu_min_i64(end - begin, width - from), CPU_TILE);
        int64_t base = row_offset(j, begin / width) + from * j->step;
        index_load(j->indices, begin, n, at);
        for (int64_t i = 0; i < n; i++)
            at[i] = base + cpu_index_clamp(at[i], j->limit) * along + i * j->step;
        MOVE_BY_SIZE(j->size, {
            move_t *dst = cpu_at(j->out, begin);
            const move_t *src = j->data->data;
            for (int64_t i = 0; i < n; i++)
                dst[i] = src[at[i]];
        })
        begin += n;
    }
}

static void gather_elements(const struct cpu_call *c)
{
    const struct cpu_tensor *data = &c->in[0];
    struct elements_job j = {
        .data = data,
        .indices = &c->in[1],
        .out = c->out,
        .size = cpu_size(data->dtype),
        .axis = c->attr->gather_elements.axis,
    };

    if (c->out->count == 0)
        return;
    j.limit = data->dim[j.axis];
    j.step = j.axis == data->rank - 1 ? 0 : 1;
    cpu_strides(data, j.stride);
    index_check(c, j.indices, &j.limit, 1);
    cpu_for(c->pool, c->out->count, MOVE_BLOCK, elements_range, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_gather), CPU_NAME(cpu_gather_nd),
    CPU_NAME(cpu_gather_elements);
const struct cpu_kernel CPU_NAME(cpu_gather) = {.run = gather};
const struct cpu_kernel CPU_NAME(cpu_gather_nd) = {.run = gather_nd};
const struct cpu_kernel CPU_NAME(cpu_gather_elements) = {.run = gather_elements};
