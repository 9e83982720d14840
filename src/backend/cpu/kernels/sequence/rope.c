/* rope.c: rope, rope_backward and axial_rope_2d: pairs of channels turned by angles (ops-core.md
 * 14).
 *
 * A row is all heads of one position, [heads, head_dim]. Its angles come as rows of cosines and
 * sines: from the tables, or, on a grid, from two short tables that are made first, one for each
 * direction. Both elements of a pair are read before either is written, so it works in place. */
#include "backend/cpu/kernels/common.h"

/* ---- pairs --------------------------------------------------------------------------------- */

/* a[i], b[i] turned by (c[i], s[i]): neighbours in memory or n apart, by `gap` and `step`. */
#define TURN(T)                                         \
    do {                                                \
        const T *x_ = x, *c_ = c, *s_ = s;              \
        T *y_ = y;                                      \
        CPU_INDEPENDENT                                 \
        for (int64_t i = 0; i < n; i++) {               \
            T a = x_[step * i], b = x_[step * i + gap]; \
            y_[step * i] = a * c_[i] - b * s_[i];       \
            y_[step * i + gap] = b * c_[i] + a * s_[i]; \
        }                                               \
    } while (0)

/* A row of n pairs, of a wide type: i and i + gap, or 2i and 2i + 1. */
static void turn(rlx_dtype wide, bool interleaved, const void *x, void *y, const void *c,
                 const void *s, int64_t n, int64_t gap)
{
    int64_t step = 1;

    if (interleaved) {
        step = 2;
        gap = 1;
        if (wide == RLX_DTYPE_f64)
            TURN(double);
        else
            TURN(float);
        return;
    }
    if (wide == RLX_DTYPE_f64)
        TURN(double);
    else
        TURN(float);
}

/* The same for f16 and bf16, a tile at a time. */
static void turn_halves(rlx_dtype dtype, bool interleaved, const uint16_t *x, uint16_t *y,
                        const float *c, const float *s, int64_t n, int64_t gap)
{
    enum { PAIRS = CPU_TILE / 2 };
    CPU_TILE_OF(float, tile);

    for (int64_t at = 0; at < n; at += PAIRS) {
        int64_t part = cpu_min_i64(PAIRS, n - at);
        if (interleaved) {
            cpu_load_f32(dtype, x + 2 * at, tile, 2 * part);
            turn(RLX_DTYPE_f32, true, tile, tile, c + at, s + at, part, 1);
            cpu_store_f32(dtype, tile, y + 2 * at, 2 * part);
        } else {
            cpu_load_f32(dtype, x + at, tile, part);
            cpu_load_f32(dtype, x + at + gap, tile + PAIRS, part);
            turn(RLX_DTYPE_f32, false, tile, tile, c + at, s + at, part, PAIRS);
            cpu_store_f32(dtype, tile, y + at, part);
            cpu_store_f32(dtype, tile + PAIRS, y + at + gap, part);
        }
    }
}

/* n pairs from element `at` on. */
static void turn_at(const struct cpu_tensor *x, const struct cpu_tensor *y, int64_t at,
                    bool interleaved, const void *c, const void *s, int64_t n, int64_t gap)
{
    const void *from = cpu_at(x, at);
    void *to = cpu_at(y, at);

    if (cpu_is_half(x->dtype))
        turn_halves(x->dtype, interleaved, from, to, c, s, n, gap);
    else
        turn(x->dtype, interleaved, from, to, c, s, n, gap);
}

static void copy_at(const struct cpu_tensor *x, const struct cpu_tensor *y, int64_t at, int64_t n)
{
    if (n > 0 && x->data != y->data)
        memcpy(cpu_at(y, at), cpu_at(x, at), (size_t)n * cpu_size(x->dtype));
}

static rlx_dtype wide_of(rlx_dtype d)
{
    return d == RLX_DTYPE_f64 ? RLX_DTYPE_f64 : RLX_DTYPE_f32;
}

/* ---- rope, rope_backward ------------------------------------------------------------------- */

struct rope {
    const struct cpu_call *c;
    const struct cpu_tensor *x, *cos, *sin;
    int64_t head_dim, pairs;
    bool interleaved, back;
    int64_t width;          /* of a row: all heads */
    int64_t rows;           /* in all */
    int64_t below;          /* rows between one position and the next */
    int64_t positions;      /* on seq_axis */
    int64_t per_batch;      /* rows of one index on axis 0 */
    int64_t columns, table; /* of the tables, and rows of one of them */
    char *room;             /* a worker's cosines and sines, in the wide type */
    uint64_t room_bytes;
};

static void describe(const struct cpu_call *c, struct rope *r)
{
    const struct cpu_tensor *x = &c->in[0], *cos = &c->in[1];
    bool back = c->op == RLX_OP_rope_backward; /* its attributes are those of rope */
    int64_t axis = back ? c->attr->rope_backward.seq_axis : c->attr->rope.seq_axis;
    int32_t style = back ? c->attr->rope_backward.style : c->attr->rope.style;

    *r = (struct rope){.c = c, .x = x, .cos = cos, .sin = &c->in[2], .back = back, .below = 1};
    r->head_dim = back ? c->attr->rope_backward.head_dim : c->attr->rope.head_dim;
    r->pairs = (back ? c->attr->rope_backward.n_rot : c->attr->rope.n_rot) / 2;
    r->interleaved = style == RLX_ROPE_STYLE_interleaved;
    r->width = x->dim[x->rank - 1];
    r->rows = x->count / r->width;
    for (int64_t a = axis + 1; a < x->rank - 1; a++)
        r->below *= x->dim[a];
    r->positions = x->dim[axis];
    r->per_batch = r->rows / x->dim[0];
    r->columns = cos->dim[cos->rank - 1];
    r->table = cos->rank == 3 ? cos->dim[1] : 0; /* one table serves all */
    r->room_bytes = ((uint64_t)r->pairs * cpu_size(wide_of(x->dtype)) + 63) / 64 * 64;
}

#define NEGATE(T)                       \
    do {                                \
        T *p_ = room;                   \
        for (int64_t i = 0; i < n; i++) \
            p_[i] = -p_[i];             \
    } while (0)

/* A row of a table in the wide type, negated if asked. */
static const void *table_row(const struct cpu_tensor *t, rlx_dtype wide, int64_t at, int64_t n,
                             bool negate, void *room)
{
    if (t->dtype == wide && !negate)
        return cpu_at(t, at);
    if (wide == RLX_DTYPE_f64) {
        cpu_load_f64(t->dtype, cpu_at(t, at), room, n);
        if (negate)
            NEGATE(double);
    } else {
        cpu_load_f32(t->dtype, cpu_at(t, at), room, n);
        if (negate)
            NEGATE(float);
    }
    return room;
}

static void rope_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct rope *r = ctx;
    const struct cpu_tensor *x = r->x, *y = r->c->out;
    rlx_dtype wide = wide_of(x->dtype);
    /* None where tables are read in place. */
    char *room = r->room ? r->room + (uint64_t)worker * 2 * r->room_bytes : NULL;
    char *more = room ? room + r->room_bytes : NULL;

    for (int64_t k = begin; k < end; k++) {
        int64_t position = k / r->below % r->positions, batch = k / r->per_batch;
        int64_t at = (batch * r->table + position) * r->columns;
        const void *cos = NULL, *sin = NULL;
        if (r->pairs > 0) {
            cos = table_row(r->cos, wide, at, r->pairs, false, room);
            sin = table_row(r->sin, wide, at, r->pairs, r->back, more);
        }
        for (int64_t head = k * r->width; head < (k + 1) * r->width; head += r->head_dim) {
            if (r->pairs > 0)
                turn_at(x, y, head, r->interleaved, cos, sin, r->pairs, r->pairs);
            copy_at(x, y, head + 2 * r->pairs, r->head_dim - 2 * r->pairs);
        }
    }
}

static uint64_t rope_scratch(const struct cpu_call *c)
{
    struct rope r;

    if (c->out->count == 0)
        return 0;
    describe(c, &r);
    return 2 * r.room_bytes * (uint64_t)(c->pool ? pool_threads(c->pool) : 1);
}

static void run_rope(const struct cpu_call *c)
{
    struct rope r;

    if (c->out->count == 0)
        return;
    describe(c, &r);
    r.room = c->scratch;
    cpu_for(c->pool, r.rows, cpu_max_i64(1, 16384 / r.width), rope_rows, &r);
}

/* ---- axial_rope_2d ------------------------------------------------------------------------- */

struct axial {
    const struct cpu_call *c;
    const struct attr_axial_rope_2d *a;
    int64_t quarter; /* pairs of each direction */
    int64_t places;  /* rows of the tables */
    rlx_dtype wide;
    void *cos, *sin; /* [places, quarter] */
};

static void describe_axial(const struct cpu_call *c, struct axial *x)
{
    const struct attr_axial_rope_2d *a = &c->attr->axial_rope_2d;

    *x = (struct axial){.c = c, .a = a, .quarter = a->head_dim / 4, .wide = wide_of(c->out->dtype)};
    x->places = cpu_max_i64(a->end_x, a->end_y); /* one table serves both directions */
}

static uint64_t table_bytes(const struct axial *x)
{
    return ((uint64_t)(x->places * x->quarter) * cpu_size(x->wide) + 63) / 64 * 64;
}

static void axial_tables(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct axial *x = ctx;

    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        double power = -4.0 * (double)(k % x->quarter) / (double)x->a->head_dim;
        int64_t place = k / x->quarter;
        double angle = (double)place * pow((double)x->a->theta, power);
        cpu_set_f64(x->wide, x->cos, k, cos(angle));
        cpu_set_f64(x->wide, x->sin, k, sin(angle));
    }
}

static void axial_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct axial *x = ctx;
    const struct attr_axial_rope_2d *a = x->a;
    const struct cpu_tensor *from = &x->c->in[0], *to = x->c->out;
    int64_t width = a->num_heads * a->head_dim, tokens = from->dim[1];
    int64_t row_bytes = x->quarter * (int64_t)cpu_size(x->wide);

    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        int64_t place = k % tokens / a->repeat_factor;
        int64_t col = place % a->end_x * row_bytes, row = place / a->end_x * row_bytes;
        const char *c = x->cos, *s = x->sin;
        for (int64_t at = k * width; at < (k + 1) * width; at += a->head_dim) {
            turn_at(from, to, at, true, c + col, s + col, x->quarter, 1);
            turn_at(from, to, at + a->head_dim / 2, true, c + row, s + row, x->quarter, 1);
        }
    }
}

static uint64_t axial_scratch(const struct cpu_call *c)
{
    struct axial x;

    if (c->out->count == 0)
        return 0;
    describe_axial(c, &x);
    return 2 * table_bytes(&x);
}

static void run_axial(const struct cpu_call *c)
{
    struct axial x;

    if (c->out->count == 0)
        return;
    describe_axial(c, &x);
    int64_t width = x.a->num_heads * x.a->head_dim;
    x.cos = c->scratch;
    x.sin = (char *)c->scratch + table_bytes(&x);
    cpu_for(c->pool, x.places * x.quarter, 256, axial_tables, &x);
    cpu_for(c->pool, c->out->count / width, cpu_max_i64(1, 16384 / width), axial_rows, &x);
}

extern const struct cpu_kernel CPU_NAME(cpu_rope);
extern const struct cpu_kernel CPU_NAME(cpu_rope_backward);
extern const struct cpu_kernel CPU_NAME(cpu_axial_rope_2d);
const struct cpu_kernel CPU_NAME(cpu_rope) = {
    .run = run_rope, .scratch = rope_scratch, .in_place = 1};
const struct cpu_kernel CPU_NAME(cpu_rope_backward) = {
    .run = run_rope, .scratch = rope_scratch, .in_place = 1};
const struct cpu_kernel CPU_NAME(cpu_axial_rope_2d) = {
    .run = run_axial, .scratch = axial_scratch, .in_place = 1};
