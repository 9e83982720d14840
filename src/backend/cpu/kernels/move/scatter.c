/* scatter.c: rows of updates combined into rows picked by index: scatter_add, gather_backward,
 * scatter_nd.
 *
 * The updates are first grouped by the row they go to, in their own order within a group. A group
 * then belongs to one worker, which reads the row, combines all of its updates and writes it once:
 * nothing is ever added by two, and the order is always the same.
 *
 *     indices 2 0 2 7    =>    row 0: 1    row 2: 0, 2    (7 is out of range) */
#include "backend/cpu/kernels/move/scatter.h"
#include "backend/cpu/kernels/order/order.h"

struct scatter {
    const struct cpu_call *c;
    const struct cpu_tensor *updates, *indices;
    rlx_dtype dtype; /* f32 for sums of c64, which are sums of twice as many f32 */
    int32_t reduction;
    int64_t outer;       /* times that all of the following is there */
    int64_t rows, picks; /* of the output, of the updates */
    int64_t width, cuts; /* elements of a row, pieces that it is worked on in */
    int32_t parts;       /* numbers that make up an index */
    int64_t limit[RLX_MAX_RANK];
    struct order_pair *pair; /* key: row; index: number of the update */
    int64_t used;
};

/* Only c64 products have the parts of a number depend on each other. */
static bool is_complex(const struct scatter *s)
{
    return s->dtype == RLX_DTYPE_c64;
}

static int64_t cut_width(const struct scatter *s)
{
    return is_complex(s) ? CPU_TILE / 2 : CPU_TILE;
}

/* ---- groups -------------------------------------------------------------------------------- */

/* The row that update k goes to; -1: none. */
static int64_t row_of(const struct scatter *s, int64_t k)
{
    int64_t row = 0;

    for (int32_t p = 0; p < s->parts; p++) {
        int64_t i = cpu_index(s->indices, k * s->parts + p);
        if (!cpu_index_valid(i, s->limit[p]))
            return -1;
        row = row * s->limit[p] + i;
    }
    return row;
}

static void group(struct scatter *s)
{
    bool sorted = true;

    s->pair = s->c->scratch;
    s->used = 0;
    for (int64_t k = 0; k < s->picks; k++) {
        int64_t row = row_of(s, k);
        if (row < 0)
            continue;
        sorted = sorted && (s->used == 0 || s->pair[s->used - 1].key <= (uint64_t)row);
        s->pair[s->used++] = (struct order_pair){(uint64_t)row, k};
    }
    if (!sorted)
        order_sort_pairs(s->pair, s->pair + s->picks, s->used);
}

static uint64_t group_bytes(int64_t picks)
{
    return order_bytes((uint64_t)picks, 2 * sizeof(struct order_pair));
}

/* ---- combining ----------------------------------------------------------------------------- */

/* n elements of a row, and the updates of a group for the same columns. */
struct target {
    const struct scatter *s;
    const struct order_pair *group;
    int64_t count; /* updates in the group */
    char *row;
    const char *updates; /* of this outer index, from the first column on */
    int64_t n;
};

static const void *update_at(const struct target *t, int64_t k)
{
    return t->updates + t->group[k].index * t->s->width * (int64_t)cpu_size(t->s->dtype);
}

/* Rows of one element: updates k .. k+n-1 of the group, side by side. */
static const void *scalar_updates(const struct target *t, int64_t k, int64_t n, void *buffer)
{
    MOVE_BY_SIZE(cpu_size(t->s->dtype), {
        move_t *dst = buffer;
        const move_t *src = (const move_t *)t->updates;
        for (int64_t i = 0; i < n; i++)
            dst[i] = src[t->group[k + i].index];
    })
    return buffer;
}

#define EACH_COLUMN(T, expression)       \
    for (int64_t i = 0; i < t->n; i++) { \
        T a = acc[i], u = v[i];          \
        acc[i] = (expression);           \
    }

#define EACH_UPDATE(T, expression)    \
    for (int64_t i = 0; i < n; i++) { \
        T a = acc[0], u = v[i];       \
        acc[0] = (expression);        \
    }

static void combine_f64(const struct target *t)
{
    rlx_dtype d = t->s->dtype;
    int32_t reduction = t->s->reduction;
    CPU_TILE_OF(double, acc);
    CPU_TILE_OF(double, v);
    CPU_TILE_ANY(buffer);

    cpu_load_f64(d, t->row, acc, t->n);
    for (int64_t k = 0, n = 1; k < t->count; k += n) {
        if (t->s->width > 1) {
            cpu_load_f64(d, update_at(t, k), v, t->n);
            SCATTER_F64(reduction, EACH_COLUMN)
        } else {
            n = cpu_min_i64(t->count - k, CPU_TILE);
            cpu_load_f64(d, scalar_updates(t, k, n, buffer), v, n);
            SCATTER_F64(reduction, EACH_UPDATE)
        }
    }
    cpu_store_f64(d, acc, t->row, t->n);
}

static void combine_i64(const struct target *t)
{
    rlx_dtype d = t->s->dtype;
    int32_t reduction = t->s->reduction;
    CPU_TILE_OF(int64_t, acc);
    CPU_TILE_OF(int64_t, v);
    CPU_TILE_ANY(buffer);

    scatter_load_i64(d, reduction, t->row, acc, t->n);
    for (int64_t k = 0, n = 1; k < t->count; k += n) {
        if (t->s->width > 1) {
            scatter_load_i64(d, reduction, update_at(t, k), v, t->n);
            SCATTER_I64(reduction, EACH_COLUMN)
        } else {
            n = cpu_min_i64(t->count - k, CPU_TILE);
            scatter_load_i64(d, reduction, scalar_updates(t, k, n, buffer), v, n);
            SCATTER_I64(reduction, EACH_UPDATE)
        }
    }
    scatter_store_i64(d, reduction, acc, t->row, t->n);
}

static void multiply_c64(const struct target *t)
{
    CPU_TILE_OF(double, acc);
    CPU_TILE_OF(double, v);

    cpu_load_f64(RLX_DTYPE_f32, t->row, acc, 2 * t->n);
    for (int64_t k = 0; k < t->count; k++) {
        cpu_load_f64(RLX_DTYPE_f32, update_at(t, k), v, 2 * t->n);
        for (int64_t i = 0; i < t->n; i++)
            scatter_mul_c64(acc + 2 * i, v + 2 * i);
    }
    cpu_store_f64(RLX_DTYPE_f32, acc, t->row, 2 * t->n);
}

static void combine(const struct target *t)
{
    if (t->s->reduction == RLX_SCATTER_REDUCTION_none)
        memcpy(t->row, update_at(t, t->count - 1), (size_t)t->n * cpu_size(t->s->dtype));
    else if (is_complex(t->s))
        multiply_c64(t);
    else if (cpu_is_float(t->s->dtype))
        combine_f64(t);
    else
        combine_i64(t);
}

/* A unit is an update and a piece of its row. The first update of a group does the group's work. */
static void scatter_units(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct scatter *s = ctx;
    int64_t size = (int64_t)cpu_size(s->dtype), step = cut_width(s);

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t first = u / s->cuts % s->used, outer = u / s->cuts / s->used;
        int64_t from = u % s->cuts * step, last = first + 1;
        uint64_t row = s->pair[first].key;
        if (first > 0 && s->pair[first - 1].key == row)
            continue;
        while (last < s->used && s->pair[last].key == row)
            last++;

        int64_t to = (outer * s->rows + (int64_t)row) * s->width + from;
        struct target t = {
            .s = s,
            .group = s->pair + first,
            .count = last - first,
            .row = (char *)s->c->out->data + to * size,
            .updates = (const char *)s->updates->data + (outer * s->picks * s->width + from) * size,
            .n = cpu_min_i64(s->width - from, step),
        };
        combine(&t);
    }
}

/* The output holds what the updates are combined with. */
static void scatter(struct scatter *s)
{
    if (s->updates->count == 0)
        return;
    if (s->parts > 0)
        index_check(s->c, s->indices, s->limit, s->parts);
    group(s);
    if (s->used == 0)
        return;
    if (s->dtype == RLX_DTYPE_c64 && s->reduction == RLX_SCATTER_REDUCTION_add) {
        s->dtype = RLX_DTYPE_f32;
        s->width *= 2;
    }
    int64_t step = cut_width(s);
    s->cuts = (s->width + step - 1) / step;
    cpu_for(s->c->pool, s->outer * s->used * s->cuts,
            cpu_grain(MOVE_BLOCK, cpu_min_i64(s->width, step)), scatter_units, s);
}

/* ---- the ops ------------------------------------------------------------------------------- */

/* updates [outer..., picks..., width...] summed into zeros [outer..., rows, width...]. */
static void sum_into_zeros(const struct cpu_call *c, int64_t axis)
{
    const struct cpu_tensor *y = c->out;
    struct scatter s = {
        .c = c,
        .updates = &c->in[0],
        .indices = &c->in[1],
        .dtype = y->dtype,
        .reduction = RLX_SCATTER_REDUCTION_add,
        .outer = cpu_product(y, 0, axis),
        .rows = y->dim[axis],
        .picks = c->in[1].count,
        .width = cpu_product(y, axis + 1, y->rank),
        .parts = 1,
        .limit = {y->dim[axis]},
    };

    if (y->count == 0)
        return;
    move_zero(c->pool, y->data, y->count, cpu_size(y->dtype));
    scatter(&s);
}

static void scatter_add(const struct cpu_call *c)
{
    sum_into_zeros(c, 0);
}

static void gather_backward(const struct cpu_call *c)
{
    sum_into_zeros(c, c->attr->gather_backward.axis);
}

static uint64_t sum_scratch(const struct cpu_call *c)
{
    return group_bytes(c->in[1].count);
}

static void scatter_nd(const struct cpu_call *c)
{
    const struct cpu_tensor *y = c->out, *indices = &c->in[1];
    int32_t parts = (int32_t)indices->dim[indices->rank - 1];
    struct scatter s = {
        .c = c,
        .updates = &c->in[2],
        .indices = indices,
        .dtype = y->dtype,
        .reduction = c->attr->scatter_nd.reduction,
        .outer = 1,
        .rows = cpu_product(y, 0, parts),
        .picks = cpu_product(indices, 0, indices->rank - 1),
        .width = cpu_product(y, parts, y->rank),
        .parts = parts,
    };

    if (y->count == 0)
        return;
    memcpy(s.limit, y->dim, (size_t)parts * sizeof *s.limit);
    move_dense(c->pool, y->data, c->in[0].data, y->count, cpu_size(y->dtype));
    scatter(&s);
}

static uint64_t scatter_nd_scratch(const struct cpu_call *c)
{
    return group_bytes(cpu_product(&c->in[1], 0, c->in[1].rank - 1));
}

extern const struct cpu_kernel CPU_NAME(cpu_scatter_add), CPU_NAME(cpu_gather_backward),
    CPU_NAME(cpu_scatter_nd);
const struct cpu_kernel CPU_NAME(cpu_scatter_add) = {.run = scatter_add, .scratch = sum_scratch};
const struct cpu_kernel CPU_NAME(cpu_gather_backward) = {.run = gather_backward,
                                                         .scratch = sum_scratch};
const struct cpu_kernel CPU_NAME(cpu_scatter_nd) = {.run = scatter_nd,
                                                    .scratch = scatter_nd_scratch};
