/* region.c: a chain of elementwise ops in one pass over the output (ops-core.md 16).
 *
 * The output is walked a tile at a time. Each operand of the chain gets its elements of the tile,
 * each step computes a tile from tiles, and the last one's goes to the output. A value that is the
 * same for the whole tile stays a single element as long as it can.
 *
 * f16 and bf16 are f32 in tiles: loaded so, rounded by casts only, and rounded into the output.
 * Other types are themselves. A step's tile is used again once nobody reads the step any more.
 *
 *     scratch   [steps][views of the inputs][last use and spare tiles]
 *               per worker: [what each value is in this tile][tiles of inputs][tiles of steps] */
#include "backend/cpu/kernels/elementwise/row.h"

struct region_step {
    rlx_op op;
    enum op_family family;
    rlx_dtype type;    /* of the result */
    rlx_dtype operand; /* the type that the operands are brought to; of where: a and b */
    int32_t in[3];     /* values: inputs first, then steps */
    int32_t tile;      /* among the step tiles */
};

struct value {
    const void *at;
    int step; /* 0: one element for the whole tile */
};

struct region {
    const struct rlx_chain_step *chain;
    int32_t len, inputs, tiles;
    struct region_step *step;
    struct cpu_view *view;
    int32_t *last_use, *spare;
    rlx_dtype *type; /* of every value, inputs first */
    char *workers;
    uint64_t worker_bytes;

    const struct cpu_tensor *in, *out; /* out: its type; its data moves with a batch */
    char *out_data;
    int64_t count; /* of the output, or of a batch's part */
    int64_t span;  /* elements of a tile */
    bool streams;  /* results go past the caches */
};

static rlx_dtype in_tile(rlx_dtype d)
{
    return cpu_is_half(d) ? RLX_DTYPE_f32 : d;
}

static int32_t arity(enum op_family f)
{
    return f == FAMILY_where ? 3 : f == FAMILY_binary || f == FAMILY_compare ? 2 : 1;
}

/* ---- tiles for steps ----------------------------------------------------------------------- */

/* Gives each step a tile and returns how many there are. A step's own tile is taken before those it
 * reads are free, so it never writes over its operands. The arrays hold len each. */
static int32_t assign_tiles(const struct rlx_chain_step *chain, int32_t len, int32_t *last_use,
                            int32_t *spare, int32_t *tile_of)
{
    int32_t spares = 0, tiles = 0;

    for (int32_t k = 0; k < len; k++) {
        last_use[k] = k;
        for (int32_t i = 0; i < arity(op_info((rlx_op)chain[k].op)->family); i++)
            if (chain[k].in[i] >= 0)
                last_use[chain[k].in[i]] = k;
    }
    last_use[len - 1] = len;
    for (int32_t k = 0; k < len; k++) {
        int32_t tile = spares ? spare[--spares] : tiles++;
        tile_of[k] = tile;
        for (int32_t i = 0; i < arity(op_info((rlx_op)chain[k].op)->family); i++) {
            int32_t j = chain[k].in[i];
            if (j >= 0 && last_use[j] == k) {
                spare[spares++] = tile_of[j];
                last_use[j] = -1; /* once, if it is read twice */
            }
        }
        if (last_use[k] == k)
            spare[spares++] = tile;
    }
    return tiles;
}

/* Before the run: exact for chains of an ordinary length, otherwise a tile each. */
static int32_t tiles_needed(const struct rlx_chain_step *chain, int32_t len)
{
    enum { ORDINARY = 256 };
    int32_t last_use[ORDINARY], spare[ORDINARY], tile_of[ORDINARY];

    return len <= ORDINARY ? assign_tiles(chain, len, last_use, spare, tile_of) : len;
}

/* ---- scratch ------------------------------------------------------------------------------- */

static uint64_t reserve(uint64_t *at, uint64_t bytes)
{
    uint64_t here = *at;
    *at = (here + bytes + 63) / 64 * 64;
    return here;
}

/* Where everything is, from the start of scratch, which may be NULL; the bytes in all. */
static uint64_t lay_out(struct region *r, char *scratch, int threads)
{
    uint64_t len = (uint64_t)r->len, values = len + (uint64_t)r->inputs, at = 0;
    uint64_t step = reserve(&at, len * sizeof *r->step);
    uint64_t view = reserve(&at, (uint64_t)r->inputs * sizeof *r->view);
    uint64_t use = reserve(&at, len * sizeof *r->last_use);
    uint64_t spare = reserve(&at, 2 * len * sizeof *r->spare);
    uint64_t type = reserve(&at, values * sizeof *r->type);
    uint64_t workers = at, one = 0;

    reserve(&one, values * sizeof(struct value));
    reserve(&one, ((uint64_t)r->inputs + (uint64_t)r->tiles) * CPU_TILE_BYTES);
    r->worker_bytes = one;
    if (scratch) {
        r->step = (struct region_step *)(void *)(scratch + step);
        r->view = (struct cpu_view *)(void *)(scratch + view);
        r->last_use = (int32_t *)(void *)(scratch + use);
        r->spare = (int32_t *)(void *)(scratch + spare);
        r->type = (rlx_dtype *)(void *)(scratch + type);
        r->workers = scratch + workers;
    }
    return workers + (uint64_t)threads * one;
}

static int threads_of(const struct cpu_call *c)
{
    return c->pool ? pool_threads(c->pool) : 1;
}

static void region_init(struct region *r, const struct cpu_call *c, const struct ir_blob *chain,
                        int32_t inputs)
{
    *r = (struct region){.chain = chain->ptr,
                         .len = (int32_t)chain->len,
                         .inputs = inputs,
                         .in = c->in,
                         .out = c->out,
                         .streams = cpu_streams(c)};
    r->tiles = tiles_needed(r->chain, r->len);
}

/* ---- preparing ----------------------------------------------------------------------------- */

static void prepare_step(struct region *r, int32_t k)
{
    const struct rlx_chain_step *from = &r->chain[k];
    struct region_step *s = &r->step[k];
    rlx_dtype t[3] = {RLX_DTYPE_f32, RLX_DTYPE_f32, RLX_DTYPE_f32};
    int32_t first;

    *s = (struct region_step){.op = (rlx_op)from->op};
    s->family = op_info(s->op)->family;
    for (int32_t i = 0; i < arity(s->family); i++) {
        s->in[i] = from->in[i] < 0 ? -1 - from->in[i] : r->inputs + from->in[i];
        t[i] = r->type[s->in[i]];
    }
    first = s->family == FAMILY_where ? 1 : 0;
    s->operand = t[first];
    if (arity(s->family) > 1)
        dtype_promote(t[first], t[first + 1], &s->operand);
    s->type = s->family == FAMILY_cast      ? (rlx_dtype)from->to
              : s->family == FAMILY_compare ? RLX_DTYPE_bool
                                            : s->operand;
    r->type[r->inputs + k] = s->type;
}

/* A tile's bytes hold twice as many elements where none has eight bytes. */
static int64_t span_of(const struct region *r)
{
    for (int32_t i = 0; i < r->inputs + r->len; i++)
        if (cpu_size(r->type[i]) > 4)
            return CPU_TILE;
    for (int32_t k = 0; k < r->len; k++)
        if (cpu_size(r->step[k].operand) > 4)
            return CPU_TILE;
    return 2 * CPU_TILE;
}

static void prepare(struct region *r)
{
    int32_t *tile_of = r->spare + r->len;

    r->tiles = assign_tiles(r->chain, r->len, r->last_use, r->spare, tile_of);
    for (int32_t i = 0; i < r->inputs; i++)
        r->type[i] = r->in[i].dtype;
    for (int32_t k = 0; k < r->len; k++) {
        prepare_step(r, k);
        r->step[k].tile = tile_of[k];
    }
    r->span = span_of(r);
}

/* [n, c, h, w] read at [n, c, y/2, x/2] by an output [n, c, 2h, 2w]: each of y and x is two axes,
 * of which the second has stride 0. */
static void resized_view(struct cpu_view *v, const struct cpu_tensor *t)
{
    int64_t h = t->dim[2], w = t->dim[3];
    const int64_t dim[5] = {t->dim[0] * t->dim[1], h, 2, w, 2};
    const int64_t stride[5] = {h * w, w, 0, 1, 0};

    cpu_view_make(v, t->data, t->dtype, 5, dim, stride);
}

/* ---- running ------------------------------------------------------------------------------- */

struct worker {
    struct value *value;
    char *input_tile, *step_tile;
};

static struct worker worker_of(const struct region *r, int number)
{
    char *at = r->workers + (uint64_t)number * r->worker_bytes;
    uint64_t used = 0;
    struct worker w = {.value = (struct value *)(void *)at};

    reserve(&used, ((uint64_t)r->inputs + (uint64_t)r->len) * sizeof(struct value));
    w.input_tile = at + used;
    w.step_tile = w.input_tile + (uint64_t)r->inputs * CPU_TILE_BYTES;
    return w;
}

static void load_inputs(const struct region *r, const struct worker *w, int64_t pos, int64_t n)
{
    CPU_TILE_ANY(buffer);

    for (int32_t i = 0; i < r->inputs; i++) {
        char *tile = w->input_tile + (int64_t)i * CPU_TILE_BYTES;
        struct value *v = &w->value[i];
        bool half = cpu_is_half(r->type[i]);

        v->at = cpu_view_read(&r->view[i], pos, n, half ? (void *)buffer : tile, &v->step);
        if (half) {
            cpu_load_f32(r->type[i], v->at, (float *)(void *)tile, v->step ? n : 1);
            v->at = tile;
        }
    }
}

/* A value as elements of this type; spare: a tile for it, if it has another. */
static struct value operand(const struct region *r, const struct worker *w, int32_t value,
                            rlx_dtype type, int64_t n, void *spare)
{
    struct value v = w->value[value];
    rlx_dtype have = in_tile(r->type[value]);

    if (have != in_tile(type)) {
        cpu_row_cast(have, in_tile(type), v.at, spare, v.step ? n : 1);
        v.at = spare;
    }
    return v;
}

/* To f16 and bf16 and back, so that the rounding happens. */
static void cast_step(rlx_dtype from, rlx_dtype to, const void *x, void *out, int64_t n)
{
    CPU_TILE_ANY(half);

    if (cpu_is_half(to)) {
        cpu_row_cast(in_tile(from), to, x, half, n);
        cpu_load_f32(to, half, out, n);
    } else {
        cpu_row_cast(in_tile(from), to, x, out, n);
    }
}

/* out: room for the result, n elements; the result is there, or one element of it. */
static struct value run_step(const struct region *r, const struct worker *w,
                             const struct region_step *s, void *out, int64_t n)
{
    struct value a, b = {NULL, 0}, c = {NULL, 0}, result = {.at = out};
    rlx_dtype type = in_tile(s->operand);
    CPU_TILE_ANY(a_spare);
    CPU_TILE_ANY(b_spare);
    CPU_TILE_ANY(c_spare);

    a = operand(r, w, s->in[0], s->family == FAMILY_where ? RLX_DTYPE_bool : s->operand, n,
                a_spare);
    if (arity(s->family) > 1)
        b = operand(r, w, s->in[1], s->operand, n, b_spare);
    if (arity(s->family) > 2)
        c = operand(r, w, s->in[2], s->operand, n, c_spare);
    result.step = a.step | b.step | c.step;
    n = result.step ? n : 1;

    switch (s->family) {
    case FAMILY_unary: cpu_row_unary(s->op, type, a.at, out, n); break;
    case FAMILY_cast: cast_step(s->operand, s->type, a.at, out, n); break;
    case FAMILY_binary: cpu_row_binary(s->op, type, a.at, a.step, b.at, b.step, out, n); break;
    case FAMILY_compare: cpu_row_compare(s->op, type, a.at, a.step, b.at, b.step, out, n); break;
    default:
        cpu_row_where((int32_t)cpu_size(type), a.at, a.step, b.at, b.step, c.at, c.step, out, n);
        break;
    }
    return result;
}

/* The last step's tile to where the output is. */
static void store(const struct region *r, const struct value *v, char *to, int64_t n)
{
    rlx_dtype type = r->out->dtype;
    int32_t size = (int32_t)cpu_size(type);

    if (cpu_is_half(type))
        cpu_store_f32(type, v->at, to, v->step ? n : 1);
    if (!v->step && n > 1)
        cpu_copy_strided(to + size, to, size, n - 1, 0);
}

/* Of what dense inputs hold some tiles further on, step k fetches its share: all of it at once
 * would keep the step's own reads waiting. */
static void fetch_share(const struct region *r, int64_t pos, int32_t k)
{
    enum { AHEAD = 4 }; /* tiles */
    int64_t share = r->span / r->len, from = pos + AHEAD * r->span + k * share;

    if (from + share > r->count)
        return;
    for (int32_t i = 0; i < r->inputs; i++) {
        const struct cpu_view *v = &r->view[i];
        if (v->rank == 1 && v->stride[0] == 1)
            cpu_prefetch(v->data + from * v->size, share * v->size);
    }
}

static void region_range(void *ctx, int64_t begin, int64_t end, int number)
{
    const struct region *r = ctx;
    struct worker w = worker_of(r, number);
    rlx_dtype type = r->out->dtype;

    for (int64_t pos = begin; pos < end;) {
        CPU_TILE_ANY(result);
        char *place = r->out_data + pos * (int64_t)cpu_size(type);
        char *to = r->streams ? (char *)result : place;
        int64_t n = cpu_view_span(r->view, r->inputs, pos, cpu_min_i64(end - pos, r->span));

        load_inputs(r, &w, pos, n);
        for (int32_t k = 0; k < r->len; k++) {
            const struct region_step *s = &r->step[k];
            bool straight = k == r->len - 1 && !cpu_is_half(type);
            void *out = straight ? to : w.step_tile + (int64_t)s->tile * CPU_TILE_BYTES;
            if (r->streams)
                fetch_share(r, pos, k);
            w.value[r->inputs + k] = run_step(r, &w, s, out, n);
        }
        store(r, &w.value[r->inputs + r->len - 1], to, n);
        if (r->streams)
            cpu_stream_out(place, to, n * (int64_t)cpu_size(type));
        pos += n;
    }
    if (r->streams)
        cpu_stream_end();
}

static void run_over(struct region *r, struct pool *pool, int64_t count)
{
    int64_t grain = cpu_max_i64(2048, 65536 / (r->len + 1)) / CPU_TILE * CPU_TILE;

    r->count = count;
    if (r->streams)
        grain = cpu_stream_block(count) / CPU_TILE * CPU_TILE;
    cpu_for(pool, count, grain, region_range, r);
}

static void run_region(const struct cpu_call *c)
{
    const struct attr_elementwise_region *a = &c->attr->elementwise_region;
    bool resized = a->prologue == RLX_REGION_PROLOGUE_resize_nearest_2x;
    struct region r;

    if (c->out->count == 0)
        return;
    region_init(&r, c, &a->chain, c->in_count);
    lay_out(&r, c->scratch, threads_of(c));
    prepare(&r);
    for (int32_t i = 0; i < r.inputs; i++) {
        if (resized && i == a->prologue_input)
            resized_view(&r.view[i], &c->in[i]);
        else
            cpu_view_broadcast(&r.view[i], &c->in[i], c->out);
    }
    r.out_data = c->out->data;
    run_over(&r, c->pool, c->out->count);
}

static uint64_t scratch_region(const struct cpu_call *c)
{
    struct region r;

    region_init(&r, c, &c->attr->elementwise_region.chain, c->in_count);
    return lay_out(&r, NULL, threads_of(c));
}

/* Each input alone, its result straight into its part of the output. */
static void run_batch(const struct cpu_call *c)
{
    const struct attr_batch_elementwise_region *a = &c->attr->batch_elementwise_region;
    int64_t part = c->out->count / c->in_count;
    struct region r;

    if (c->out->count == 0)
        return;
    region_init(&r, c, &a->chain, 1);
    lay_out(&r, c->scratch, threads_of(c));
    prepare(&r);
    for (int32_t i = 0; i < c->in_count; i++) {
        if (a->prologue == RLX_REGION_PROLOGUE_resize_nearest_2x)
            resized_view(&r.view[0], &c->in[i]);
        else
            cpu_view_broadcast(&r.view[0], &c->in[i], &c->in[i]);
        r.out_data = cpu_at(c->out, i * part);
        run_over(&r, c->pool, part);
    }
}

static uint64_t scratch_batch(const struct cpu_call *c)
{
    struct region r;

    region_init(&r, c, &c->attr->batch_elementwise_region.chain, 1);
    return lay_out(&r, NULL, threads_of(c));
}

/* A tile of the output is written by the last step alone, from tiles of the same elements. */
extern const struct cpu_kernel CPU_NAME(cpu_elementwise_region);
const struct cpu_kernel CPU_NAME(cpu_elementwise_region) = {
    .run = run_region, .scratch = scratch_region, .in_place = UINT32_MAX};

extern const struct cpu_kernel CPU_NAME(cpu_batch_elementwise_region);
const struct cpu_kernel CPU_NAME(cpu_batch_elementwise_region) = {.run = run_batch,
                                                                  .scratch = scratch_batch};
