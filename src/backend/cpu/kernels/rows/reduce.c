/* reduce.c: sum, mean, maximum, minimum and product over any set of axes.
 *
 * Neighbouring axes of one kind, kept or reduced, are joined; what is left alternates. The last one
 * decides how the work goes:
 *
 *     [..., R]       rows: each piece of the last axis becomes one value
 *     [..., R, K]    columns: rows of K elements are reduced onto K values side by side
 *
 * A set that is large while the outputs are few is cut into chunks; their results lie in scratch,
 * chunk by chunk, and are reduced in that order. c64 sums are f32 sums with one more kept axis
 * of 2.
 */
#include "backend/cpu/kernels/rows/reduce.h"
#include "backend/cpu/kernels/order/order.h"

union value {
    double f;
    int64_t i;
};

enum { CHUNK = 32768, MANY = 64, MAX_AXES = RLX_MAX_RANK + 1 };

/* Axes, and where an index of them lies. */
struct axes {
    int32_t rank;
    int64_t dim[MAX_AXES], stride[MAX_AXES], count;
};

struct reduce {
    const struct cpu_call *c;
    enum reduce_kind kind;
    bool mean, floats, columns;
    bool flips;      /* u64 under max and min: the top bit turned over, it compares like i64 */
    rlx_dtype dtype; /* of the elements; f32 for c64 */
    struct axes kept, gone; /* without the last axis */
    int64_t inner;          /* that axis */
    int64_t set, outputs;   /* elements that are reduced to one; how many such */
    int64_t chunk, chunks;  /* of the set: elements (rows) or rows of K (columns) */
    int64_t tiles;          /* columns: of CPU_TILE values */
};

/* ---- plan ---------------------------------------------------------------------------------- */

static void push(struct axes *a, int64_t dim, int64_t stride)
{
    a->dim[a->rank] = dim;
    a->stride[a->rank++] = stride;
    a->count *= dim;
}

static int64_t offset_of(const struct axes *a, int64_t k)
{
    int64_t at = 0;

    for (int32_t i = a->rank - 1; i > 0; i--) {
        at += k % a->dim[i] * a->stride[i];
        k /= a->dim[i];
    }
    return a->rank ? at + k * a->stride[0] : 0;
}

/* Axes of x as pairs of size and "is reduced", joined; returns how many. */
static int32_t join(const struct cpu_call *c, int64_t *dim, bool *gone)
{
    const struct cpu_tensor *x = &c->in[0];
    const rlx_list *axes = &c->attr->reduce.axes;
    bool reduced[MAX_AXES] = {false};
    int32_t n = 0;

    for (int32_t i = 0; i < axes->count; i++)
        reduced[axes->at[i]] = true;
    for (int32_t i = 0; i < x->rank + (x->dtype == RLX_DTYPE_c64); i++) {
        int64_t size = i < x->rank ? x->dim[i] : 2;
        if (size == 1)
            continue;
        if (n > 0 && gone[n - 1] == reduced[i]) {
            dim[n - 1] *= size;
            continue;
        }
        dim[n] = size;
        gone[n++] = reduced[i];
    }
    return n;
}

static void choose_chunks(struct reduce *r)
{
    int64_t width = r->columns ? cpu_min_i64(r->inner, CPU_TILE) : 1;
    int64_t units = r->columns ? r->kept.count * r->tiles : r->outputs;

    r->chunk = r->set;
    r->chunks = 1;
    if (units >= MANY || r->set <= CHUNK / width)
        return;
    r->chunk = CHUNK / width;
    r->chunks = (r->set + r->chunk - 1) / r->chunk;
}

static enum reduce_kind kind_of(rlx_op op)
{
    switch (op) {
    case RLX_OP_reduce_max: return REDUCE_MAX;
    case RLX_OP_reduce_min: return REDUCE_MIN;
    case RLX_OP_reduce_prod: return REDUCE_PROD;
    default: return REDUCE_SUM;
    }
}

static void plan(struct reduce *r, const struct cpu_call *c)
{
    int64_t dim[MAX_AXES], stride[MAX_AXES];
    bool gone[MAX_AXES];
    int32_t last = join(c, dim, gone) - 1;
    rlx_dtype d = c->in[0].dtype;

    *r = (struct reduce){.c = c, .kept = {.count = 1}, .gone = {.count = 1}, .inner = 1};
    r->mean = c->op == RLX_OP_reduce_mean;
    r->kind = kind_of(c->op);
    r->dtype = d == RLX_DTYPE_c64 ? RLX_DTYPE_f32 : d;
    r->floats = cpu_is_float(r->dtype);
    r->flips = d == RLX_DTYPE_u64 && (r->kind == REDUCE_MAX || r->kind == REDUCE_MIN);
    r->columns = last >= 0 && !gone[last];
    if (last >= 0)
        r->inner = dim[last];
    for (int32_t i = last - 1; i >= 0; i--)
        stride[i] = i == last - 1 ? r->inner : stride[i + 1] * dim[i + 1];
    for (int32_t i = 0; i < last; i++)
        push(gone[i] ? &r->gone : &r->kept, dim[i], stride[i]);
    r->set = r->gone.count * (r->columns ? 1 : r->inner);
    r->outputs = r->kept.count * (r->columns ? r->inner : 1);
    r->tiles = (r->inner + CPU_TILE - 1) / CPU_TILE;
    choose_chunks(r);
}

/* ---- results ------------------------------------------------------------------------------- */

/* Output elements at .. at+n-1; changes v. */
static void store(const struct reduce *r, union value *v, int64_t at, int64_t n)
{
    void *dst = (char *)r->c->out->data + at * (int64_t)cpu_size(r->dtype);

    if (r->floats) {
        for (int64_t i = 0; r->mean && i < n; i++)
            v[i].f /= (double)r->set;
        cpu_store_f64(r->dtype, &v->f, dst, n);
        return;
    }
    for (int64_t i = 0; r->flips && i < n; i++)
        v[i].i ^= INT64_MIN;
    cpu_store_i64(r->dtype, &v->i, dst, n);
}

/* Of one chunk: either that is all there is, or it waits in scratch. */
static void put(const struct reduce *r, union value *v, int64_t chunk, int64_t at, int64_t n)
{
    if (r->chunks == 1)
        store(r, v, at, n);
    else
        memcpy((union value *)r->c->scratch + chunk * r->outputs + at, v, (size_t)n * sizeof *v);
}

static void clear(const struct reduce *r, union value *v, int64_t n)
{
    static const double f[] = {[REDUCE_SUM] = 0,
                               [REDUCE_PROD] = 1,
                               [REDUCE_MAX] = -(double)INFINITY,
                               [REDUCE_MIN] = (double)INFINITY};
    static const int64_t i[] = {
        [REDUCE_SUM] = 0, [REDUCE_PROD] = 1, [REDUCE_MAX] = INT64_MIN, [REDUCE_MIN] = INT64_MAX};
    union value one = {.f = f[r->kind]};

    if (!r->floats)
        one.i = i[r->kind];
    for (int64_t k = 0; k < n; k++)
        v[k] = one;
}

/* v[i] with w[i]. */
static void merge(const struct reduce *r, union value *v, const union value *w, int64_t n)
{
    if (r->floats)
        reduce_onto_f64(r->kind, &v->f, &w->f, n);
    else
        reduce_onto_i64(r->kind, &v->i, &w->i, n);
}

static void merge_chunks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct reduce *r = ctx;
    const union value *part = r->c->scratch;
    CPU_TILE_OF(union value, v);

    (void)worker;
    for (int64_t at = begin; at < end; at += CPU_TILE) {
        int64_t n = cpu_min_i64(end - at, CPU_TILE);
        memcpy(v, part + at, (size_t)n * sizeof *v);
        for (int64_t k = 1; k < r->chunks; k++)
            merge(r, v, part + k * r->outputs + at, n);
        store(r, v, at, n);
    }
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* n elements side by side, as one value. */
static union value reduce_piece(const struct reduce *r, const void *src, int64_t n)
{
    union value all, one;
    int64_t size = (int64_t)cpu_size(r->dtype);
    CPU_TILE_ANY(tile);

    if (r->dtype == RLX_DTYPE_f32)
        return (union value){.f = reduce_row_f32(r->kind, src, n)};
    if (r->dtype == RLX_DTYPE_f64)
        return (union value){.f = reduce_row_f64(r->kind, src, n)};
    clear(r, &all, 1);
    for (int64_t i = 0; i < n; i += CPU_TILE) {
        int64_t part = cpu_min_i64(n - i, CPU_TILE);
        const char *p = (const char *)src + i * size;
        if (r->floats) {
            cpu_load_f32(r->dtype, p, (float *)tile, part);
            one.f = reduce_row_f32(r->kind, (float *)tile, part);
        } else {
            int64_t *t = (int64_t *)tile;
            cpu_load_i64(r->dtype, p, t, part);
            for (int64_t k = 0; r->flips && k < part; k++)
                t[k] ^= INT64_MIN;
            one.i = reduce_row_i64(r->kind, t, part);
        }
        merge(r, &all, &one, 1);
    }
    return all;
}

static union value reduce_set(const struct reduce *r, int64_t output, int64_t from, int64_t to)
{
    const char *x = r->c->in[0].data;
    int64_t base = offset_of(&r->kept, output), size = (int64_t)cpu_size(r->dtype);
    union value all, one;

    if (r->gone.rank == 0)
        return reduce_piece(r, x + (base + from) * size, to - from);
    clear(r, &all, 1);
    while (from < to) {
        int64_t i = from % r->inner, n = cpu_min_i64(to - from, r->inner - i);
        int64_t at = base + offset_of(&r->gone, from / r->inner) + i;
        one = reduce_piece(r, x + at * size, n);
        merge(r, &all, &one, 1);
        from += n;
    }
    return all;
}

/* The plain case, kept short for the sake of short rows: elements [from, to) of n rows of f32. */
static void reduce_dense_rows(const struct reduce *r, union value *v, int64_t output, int64_t n,
                              int64_t from, int64_t to)
{
    const float *x = (const float *)r->c->in[0].data + output * r->inner;

    for (int64_t i = 0; i < n; i++)
        v[i].f = reduce_row_f32(r->kind, x + i * r->inner + from, to - from);
}

/* A unit is an output and a chunk of its set; outputs run faster. */
static void row_units(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct reduce *r = ctx;
    CPU_TILE_OF(union value, v);

    (void)worker;
    while (begin < end) {
        int64_t chunk = begin / r->outputs, output = begin % r->outputs;
        int64_t n = cpu_min_i64(cpu_min_i64(end - begin, CPU_TILE), r->outputs - output);
        int64_t from = chunk * r->chunk, to = cpu_min_i64(from + r->chunk, r->set);
        if (r->dtype == RLX_DTYPE_f32 && r->kept.rank <= 1 && r->gone.rank == 0)
            reduce_dense_rows(r, v, output, n, from, to);
        else
            for (int64_t i = 0; i < n; i++)
                v[i] = reduce_set(r, output + i, from, to);
        put(r, v, chunk, output, n);
        begin += n;
    }
}

/* ---- columns ------------------------------------------------------------------------------- */

/* v[i] with the i-th of n elements, n <= CPU_TILE. */
static void reduce_onto(const struct reduce *r, union value *v, const void *src, int64_t n)
{
    CPU_TILE_ANY(tile);
    int64_t *t = (int64_t *)tile;

    if (r->dtype == RLX_DTYPE_f64) {
        reduce_onto_f64(r->kind, &v->f, src, n);
    } else if (r->floats) {
        reduce_onto_f32(r->kind, &v->f, cpu_as_f32(r->dtype, src, (float *)tile, n), n);
    } else {
        cpu_load_i64(r->dtype, src, t, n);
        for (int64_t k = 0; r->flips && k < n; k++)
            t[k] ^= INT64_MIN;
        reduce_onto_i64(r->kind, &v->i, t, n);
    }
}

/* Rows of a few columns, side by side in memory, are taken as longer rows: v then has several
 * values per column, for the caller to merge. */
static void reduce_narrow(const struct reduce *r, union value *v, const char *src, int64_t rows)
{
    int64_t wide = CPU_TILE / r->inner * r->inner, total = rows * r->inner;
    int64_t size = (int64_t)cpu_size(r->dtype);

    for (int64_t i = 0; i < total; i += wide)
        reduce_onto(r, v, src + i * size, cpu_min_i64(wide, total - i));
}

/* Rows [from, to) of the set, columns [column, column + n) of kept index `outer`. */
static void reduce_columns(const struct reduce *r, union value *v, int64_t outer, int64_t column,
                           int64_t n, int64_t from, int64_t to)
{
    const char *x = r->c->in[0].data;
    int64_t size = (int64_t)cpu_size(r->dtype), base = offset_of(&r->kept, outer) + column;
    int64_t rows = r->gone.rank ? r->gone.dim[r->gone.rank - 1] : 1; /* that lie side by side */
    bool narrow = r->inner <= CPU_TILE / 2;

    clear(r, v, CPU_TILE);
    while (from < to) {
        int64_t i = from % rows, run = cpu_min_i64(to - from, rows - i);
        const char *src = x + (base + offset_of(&r->gone, from)) * size;
        if (narrow)
            reduce_narrow(r, v, src, run);
        for (int64_t k = 0; !narrow && k < run; k++)
            reduce_onto(r, v, src + k * r->inner * size, n);
        from += run;
    }
    for (int64_t k = 1; narrow && k < CPU_TILE / r->inner; k++)
        merge(r, v, v + k * r->inner, n);
}

/* A unit is a tile of columns and a chunk of the rows. */
static void column_units(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct reduce *r = ctx;
    int64_t per_chunk = r->kept.count * r->tiles;
    CPU_TILE_OF(union value, v);

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t chunk = u / per_chunk, outer = u % per_chunk / r->tiles;
        int64_t column = u % r->tiles * CPU_TILE, n = cpu_min_i64(r->inner - column, CPU_TILE);
        int64_t from = chunk * r->chunk;
        reduce_columns(r, v, outer, column, n, from, cpu_min_i64(from + r->chunk, r->set));
        put(r, v, chunk, outer * r->inner + column, n);
    }
}

/* ---- products of c64 ----------------------------------------------------------------------- */

static bool is_complex_product(const struct reduce *r)
{
    return r->kind == REDUCE_PROD && r->c->in[0].dtype == RLX_DTYPE_c64;
}

static void multiply_c64(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct reduce *r = ctx;
    const float *x = r->c->in[0].data;
    float *y = r->c->out->data;
    int64_t each = r->inner / 2; /* complex numbers of the last axis; all of them are kept */

    (void)worker;
    for (int64_t o = begin; o < end; o++) {
        int64_t base = offset_of(&r->kept, o / each) + o % each * 2;
        double re = 1, im = 0;
        for (int64_t k = 0; k < r->set; k++) {
            const float *v = x + base + offset_of(&r->gone, k);
            double next = re * (double)v[0] - im * (double)v[1];
            im = re * (double)v[1] + im * (double)v[0];
            re = next;
        }
        y[2 * o] = (float)re;
        y[2 * o + 1] = (float)im;
    }
}

/* ---- the op -------------------------------------------------------------------------------- */

/* The reduction of no elements. */
static void store_empty(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct reduce *r = ctx;
    int bits = 8 * (int)cpu_size(r->dtype);
    bool is_signed = cpu_is_signed(r->dtype);
    CPU_TILE_OF(union value, v);

    (void)worker;
    for (int64_t at = begin; at < end; at += CPU_TILE) {
        int64_t n = cpu_min_i64(end - at, CPU_TILE);
        clear(r, v, n); /* the identity of 64 bits; narrower integers have their own */
        for (int64_t i = 0; !r->floats && !r->flips && i < n; i++) {
            if (r->kind == REDUCE_MAX)
                v[i].i = is_signed ? INT64_MIN >> (64 - bits) : 0;
            else if (r->kind == REDUCE_MIN)
                v[i].i = is_signed ? INT64_MAX >> (64 - bits) : -1;
        }
        store(r, v, at, n);
    }
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct reduce r;

    if (c->out->count == 0 || c->in[0].count == 0)
        return 0;
    plan(&r, c);
    if (r.chunks == 1 || is_complex_product(&r))
        return 0;
    return order_bytes(order_bytes((uint64_t)r.chunks, sizeof(union value)), (uint64_t)r.outputs);
}

static void run(const struct cpu_call *c)
{
    const struct cpu_tensor *x = &c->in[0], *y = c->out;
    struct reduce r;

    if (y->count == 0)
        return;
    if (x->count == y->count && x->count > 0) { /* the sets have one element each */
        move_dense(c->pool, y->data, x->data, y->count, cpu_size(y->dtype));
        return;
    }
    plan(&r, c);
    if (is_complex_product(&r)) {
        cpu_for(c->pool, y->count, cpu_grain(MOVE_BLOCK, r.set), multiply_c64, &r);
        return;
    }
    if (r.set == 0) {
        cpu_for(c->pool, r.outputs, MOVE_BLOCK, store_empty, &r);
        return;
    }
    int64_t each = cpu_min_i64(r.chunk, r.set);
    if (r.columns) {
        int64_t width = cpu_min_i64(r.inner, CPU_TILE);
        cpu_for(c->pool, r.kept.count * r.tiles * r.chunks, cpu_grain(MOVE_BLOCK, each * width),
                column_units, &r);
    } else {
        cpu_for(c->pool, r.outputs * r.chunks, cpu_grain(MOVE_BLOCK, each), row_units, &r);
    }
    if (r.chunks > 1)
        cpu_for(c->pool, r.outputs, CPU_TILE, merge_chunks, &r);
}

extern const struct cpu_kernel CPU_NAME(cpu_reduce);
const struct cpu_kernel CPU_NAME(cpu_reduce) = {.run = run, .scratch = scratch};
