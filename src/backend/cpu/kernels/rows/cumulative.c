/* cumulative.c: running sum, product and maximum along an axis, and the running sum from the end
 * (cumsum_backward).
 *
 * Elements pass through 64-bit tiles: f64 for floats, so that the running value is not rounded on
 * its way, i64 for integers, which wrap when they are stored. An exclusive scan writes the running
 * value before the element joins it. Along the last axis a row is walked tile by tile; along others
 * a tile of columns is walked side by side. */
#include "backend/cpu/kernels/move/move.h"
#include "backend/cpu/kernels/rows/reduce.h"

union value {
    double f;
    int64_t i;
};

struct scan_job {
    const struct cpu_tensor *x, *y;
    enum reduce_kind kind;
    bool floats, exclusive, backward;
    bool flips;              /* u64 under max: the top bit turned over, it compares like i64 */
    int64_t n, inner, tiles; /* the axis, the elements after it, tiles of those */
    union value start;
};

static void load(const struct scan_job *j, int64_t at, union value *v, int64_t n)
{
    const void *src = cpu_at(j->x, at);

    if (j->floats) {
        cpu_load_f64(j->x->dtype, src, &v->f, n);
        return;
    }
    cpu_load_i64(j->x->dtype, src, &v->i, n);
    for (int64_t i = 0; j->flips && i < n; i++)
        v[i].i ^= INT64_MIN;
}

static void store(const struct scan_job *j, int64_t at, union value *v, int64_t n)
{
    void *dst = cpu_at(j->y, at);

    if (j->floats) {
        cpu_store_f64(j->y->dtype, &v->f, dst, n);
        return;
    }
    for (int64_t i = 0; j->flips && i < n; i++)
        v[i].i ^= INT64_MIN;
    cpu_store_i64(j->y->dtype, &v->i, dst, n);
}

/* ---- along a row --------------------------------------------------------------------------- */

#define SCAN_ROW(T, field, WITH)                     \
    do {                                             \
        T before = run.field;                        \
        for (int64_t k = 0; k < n; k++, p += step) { \
            T after = WITH(before, p->field);        \
            p->field = exclusive ? before : after;   \
            before = after;                          \
        }                                            \
        run.field = before;                          \
    } while (0)

/* LOOP(C type, field, operation) for the kind of scan. */
#define SCAN_KINDS(j, LOOP)                                      \
    if ((j)->floats) {                                           \
        switch ((j)->kind) {                                     \
        case REDUCE_SUM: LOOP(double, f, REDUCE_ADD_F); break;   \
        case REDUCE_PROD: LOOP(double, f, REDUCE_MUL_F); break;  \
        default: LOOP(double, f, REDUCE_MAX_F); break;           \
        }                                                        \
    } else {                                                     \
        switch ((j)->kind) {                                     \
        case REDUCE_SUM: LOOP(int64_t, i, REDUCE_ADD_I); break;  \
        case REDUCE_PROD: LOOP(int64_t, i, REDUCE_MUL_I); break; \
        default: LOOP(int64_t, i, REDUCE_MAX_I); break;          \
        }                                                        \
    }

/* v becomes the scan of itself; returns the running value at the end. */
static union value scan_tile(const struct scan_job *j, union value *v, int64_t n, union value run)
{
    union value *p = j->backward ? v + n - 1 : v;
    int64_t step = j->backward ? -1 : 1;
    bool exclusive = j->exclusive;

    SCAN_KINDS(j, SCAN_ROW)
    return run;
}

static void scan_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct scan_job *j = ctx;
    CPU_TILE_OF(union value, v);

    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        union value run = j->start;
        for (int64_t done = 0; done < j->n; done += CPU_TILE) {
            int64_t n = cpu_min_i64(j->n - done, CPU_TILE);
            int64_t at = r * j->n + (j->backward ? j->n - done - n : done);
            load(j, at, v, n);
            run = scan_tile(j, v, n, run);
            store(j, at, v, n);
        }
    }
}

/* ---- across columns ------------------------------------------------------------------------ */

#define SCAN_COLUMNS(T, field, WITH)                               \
    do {                                                           \
        T *restrict before = &run->field, *restrict x = &v->field; \
        for (int64_t k = 0; k < n; k++) {                          \
            T after = WITH(before[k], x[k]);                       \
            x[k] = exclusive ? before[k] : after;                  \
            before[k] = after;                                     \
        }                                                          \
    } while (0)

static void scan_across(const struct scan_job *j, union value *run, union value *v, int64_t n)
{
    bool exclusive = j->exclusive;

    SCAN_KINDS(j, SCAN_COLUMNS)
}

static void scan_column_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct scan_job *j = ctx;
    CPU_TILE_OF(union value, v);
    CPU_TILE_OF(union value, run);

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t column = u % j->tiles * CPU_TILE, n = cpu_min_i64(j->inner - column, CPU_TILE);
        int64_t base = u / j->tiles * j->n * j->inner + column;
        for (int64_t i = 0; i < n; i++)
            run[i] = j->start;
        for (int64_t k = 0; k < j->n; k++) {
            int64_t at = base + (j->backward ? j->n - 1 - k : k) * j->inner;
            load(j, at, v, n);
            scan_across(j, run, v, n);
            store(j, at, v, n);
        }
    }
}

/* ---- the ops ------------------------------------------------------------------------------- */

/* What an exclusive scan begins with. */
static union value start_of(const struct scan_job *j)
{
    rlx_dtype d = j->x->dtype;
    int64_t least = cpu_is_signed(d) ? INT64_MIN >> (64 - 8 * (int)cpu_size(d)) : 0;

    if (j->floats)
        return (union value){.f = j->kind == REDUCE_SUM    ? 0
                                  : j->kind == REDUCE_PROD ? 1
                                                           : -(double)INFINITY};
    if (j->kind == REDUCE_MAX)
        return (union value){.i = j->flips ? least ^ INT64_MIN : least};
    return (union value){.i = j->kind == REDUCE_PROD};
}

static void scan(const struct cpu_call *c, struct scan_job *j, int64_t axis)
{
    const struct cpu_tensor *x = &c->in[0];

    if (x->count == 0)
        return;
    j->x = x;
    j->y = c->out;
    j->floats = cpu_is_float(x->dtype);
    j->flips = x->dtype == RLX_DTYPE_u64 && j->kind == REDUCE_MAX;
    j->n = x->dim[axis];
    j->inner = cpu_product(x, axis + 1, x->rank);
    j->tiles = (j->inner + CPU_TILE - 1) / CPU_TILE;
    j->start = start_of(j);
    int64_t outer = x->count / j->n / j->inner;
    if (j->inner == 1)
        cpu_for(c->pool, outer, cpu_grain(MOVE_BLOCK, j->n), scan_rows, j);
    else
        cpu_for(c->pool, outer * j->tiles,
                cpu_grain(MOVE_BLOCK, j->n * cpu_min_i64(j->inner, CPU_TILE)), scan_column_tiles,
                j);
}

static void cumulative(const struct cpu_call *c)
{
    struct scan_job j = {.exclusive = c->attr->cumulative.exclusive};

    j.kind = c->op == RLX_OP_cumsum    ? REDUCE_SUM
             : c->op == RLX_OP_cumprod ? REDUCE_PROD
                                       : REDUCE_MAX;
    scan(c, &j, c->attr->cumulative.axis);
}

static void cumsum_backward(const struct cpu_call *c)
{
    struct scan_job j = {
        .kind = REDUCE_SUM,
        .exclusive = c->attr->cumsum_backward.exclusive,
        .backward = true,
    };

    scan(c, &j, c->attr->cumsum_backward.axis);
}

extern const struct cpu_kernel CPU_NAME(cpu_cumulative), CPU_NAME(cpu_cumsum_backward);
const struct cpu_kernel CPU_NAME(cpu_cumulative) = {.run = cumulative, .in_place = 1};
const struct cpu_kernel CPU_NAME(cpu_cumsum_backward) = {.run = cumsum_backward, .in_place = 1};
