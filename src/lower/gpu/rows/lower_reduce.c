/* lower_reduce.c: sets of elements become one each, along any axes (kernels/reduce.rlk).
 *
 *     few long sets:   chunks of sets  =>  [sets, chunks]  =>  sets
 *     others:          sets, many to a group where they are short */
#include "lower/gpu/rows/lower_rows.h"

enum {
    MOST_LANES_SIDE = 8,  /* of sets side by side: the other lanes are for their neighbours */
    GROUPS_WANTED = 1024, /* enough for a large device */
    CHUNKS_FROM = 256,    /* elements of a set that is worth cutting */
    SPLIT_FROM = 1 << 13, /* elements of a tensor that is */
    MOST_ROWS = 32,       /* of a group whose sets are cut */
};

/* ---- sets ---- */

static void add_axis(struct gpu_walk *w, uint64_t size, uint64_t step)
{
    if (w->rank && w->step[w->rank - 1] == step * size) {
        w->size[w->rank - 1] *= size;
        w->step[w->rank - 1] = step;
    } else {
        w->size[w->rank] = size;
        w->step[w->rank++] = step;
    }
    w->count *= size;
}

static void choose_lanes(struct gpu_sets *s)
{
    uint64_t set = s->gone.count, rows = s->kept.count, most = GPU_GROUP;

    if (s->side)
        most = gpu_max(MOST_LANES_SIDE, GPU_GROUP / gpu_pow2(gpu_min(rows, GPU_GROUP)));
    s->lanes = gpu_min(gpu_pow2(gpu_ceil(set, s->side ? 16 : 8)), most);
    s->turn = set >= 8 * s->lanes ? 8 : gpu_pow2(gpu_max(gpu_ceil(set, s->lanes), 1));
}

static void choose_chunks(struct gpu_sets *s)
{
    uint64_t set = s->gone.count, per_group = GPU_GROUP / s->lanes;
    uint64_t groups = gpu_ceil(s->kept.count, per_group), turn = s->lanes * s->turn;

    s->chunks = 1;
    if (groups > 0 && groups < GROUPS_WANTED / 2 && set >= CHUNKS_FROM && per_group <= MOST_ROWS &&
        set * s->kept.count >= SPLIT_FROM)
        s->chunks = gpu_min(GROUPS_WANTED / groups, gpu_ceil(set, 2 * turn));
    s->chunk = gpu_ceil(gpu_ceil(set, s->chunks), turn) * turn;
    s->chunks = gpu_max(gpu_ceil(set, s->chunk ? s->chunk : 1), 1);
}

void gpu_find_sets(struct gpu_sets *s, const struct ir_type *t, uint32_t gone)
{
    uint64_t step = 1;
    int32_t last = -1;

    *s = (struct gpu_sets){.kept = {.count = 1}, .gone = {.count = 1}};
    for (int32_t i = 0; i < t->rank; i++) {
        step = 1;
        for (int32_t k = i + 1; k < t->rank; k++)
            step *= (uint64_t)t->dim[k];
        if (t->dim[i] == 1)
            continue;
        last = i;
        add_axis(gone >> i & 1 ? &s->gone : &s->kept, (uint64_t)t->dim[i], step);
    }
    s->side = last >= 0 && !(gone >> last & 1);
    if (s->kept.rank == 0)
        add_axis(&s->kept, 1, 0);
    if (s->gone.rank == 0)
        add_axis(&s->gone, 1, 0);
    choose_lanes(s);
    choose_chunks(s);
}

/* ---- launches ---- */

uint64_t gpu_set_groups(const struct gpu_sets *s)
{
    return gpu_ceil(s->kept.count, GPU_GROUP / s->lanes) * s->chunks;
}

void gpu_set_consts(struct gpu_call *c, const struct gpu_sets *s)
{
    gpu_const(c, "LANES", (int64_t)s->lanes);
    gpu_flag(c, "SIDE", s->side);
    gpu_const(c, "KEPT", s->kept.rank);
    gpu_const(c, "GONE", s->gone.rank);
    gpu_const(c, "TURN", (int64_t)s->turn);
}

void gpu_set_words(struct gpu_call *c, const struct gpu_sets *s)
{
    gpu_u32s(c, "kept", s->kept.size, s->kept.rank);
    gpu_u32s(c, "kept_step", s->kept.step, s->kept.rank);
    gpu_u32s(c, "gone", s->gone.size, s->gone.rank);
    gpu_u32s(c, "gone_step", s->gone.step, s->gone.rank);
}

struct gpu_arg gpu_chunk_room(struct gpu_call *c, uint64_t elements)
{
    uint64_t most = (GROUPS_WANTED + GROUPS_WANTED / 2) * MOST_ROWS * sizeof(double);

    return elements < SPLIT_FROM ? gpu_out(c) : gpu_temp(c, most);
}

static void launch(struct gpu_call *c, const struct gpu_reduction *r, const struct gpu_sets *s,
                   struct gpu_arg x, struct gpu_arg y)
{
    gpu_kernel(c, "reduce", "reduce");
    gpu_type(c, "T", r->type);
    gpu_type(c, "A", r->sum);
    gpu_type(c, "U", r->result);
    gpu_const(c, "OP", r->op);
    gpu_flag(c, "MEAN", r->mean);
    gpu_set_consts(c, s);
    gpu_bind(c, x);
    gpu_bind(c, y);
    gpu_u32(c, "rows", s->kept.count);
    gpu_u32(c, "set", s->gone.count);
    gpu_u32(c, "chunk", s->chunk);
    gpu_u32(c, "chunks", s->chunks);
    gpu_u32(c, "count", r->count);
    gpu_set_words(c, s);
    gpu_groups(c, gpu_set_groups(s));
}

void gpu_join_chunks(struct gpu_call *c, const struct gpu_reduction *r, const struct gpu_sets *s,
                     struct gpu_arg room, struct gpu_arg y)
{
    const struct ir_type parts = {
        .dtype = r->sum, .rank = 2, .dim = {(int64_t)s->kept.count, (int64_t)s->chunks}};
    struct gpu_reduction rest = *r;
    struct gpu_sets joined;

    gpu_find_sets(&joined, &parts, 2);
    joined.chunks = 1;
    joined.chunk = joined.gone.count;
    rest.type = r->sum;
    launch(c, &rest, &joined, room, y);
}

void gpu_reduce_sets(struct gpu_call *c, const struct gpu_reduction *r, struct gpu_sets *s,
                     struct gpu_arg x, struct gpu_arg y, uint64_t elements)
{
    struct gpu_arg room = gpu_chunk_room(c, elements);
    struct gpu_reduction part = *r;

    if (elements == 0) {
        s->chunks = 1;
        s->chunk = s->gone.count;
    }
    if (s->chunks == 1) {
        launch(c, r, s, x, y);
        return;
    }
    room.bytes = s->kept.count * s->chunks * rlx_dtype_size(r->sum);
    part.result = r->sum;
    part.mean = false;
    launch(c, &part, s, x, room);
    gpu_join_chunks(c, r, s, room, y);
}

void gpu_reduce_nothing(struct gpu_call *c, const struct gpu_reduction *r, struct gpu_arg y,
                        uint64_t count)
{
    gpu_kernel(c, "reduce", "nothing");
    gpu_type(c, "T", r->result);
    gpu_type(c, "A", r->sum);
    gpu_const(c, "OP", r->op);
    gpu_flag(c, "MEAN", r->mean);
    gpu_bind(c, y);
    gpu_u32(c, "rows", count);
    gpu_invocations(c, count, GPU_GROUP);
}

/* ---- the op ---- */

enum { REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_SCALED };

static int64_t kind_of(rlx_op op)
{
    switch (op) {
    case RLX_OP_reduce_prod: return REDUCE_PROD;
    case RLX_OP_reduce_max: return REDUCE_MAX;
    case RLX_OP_reduce_min: return REDUCE_MIN;
    default: return REDUCE_SUM;
    }
}

void gpu_lower_reduce(struct gpu_call *c)
{
    const struct ir_type *t = &c->in[0];
    struct gpu_reduction r = {.type = t->dtype,
                              .sum = gpu_sum_type(t->dtype),
                              .result = t->dtype,
                              .op = kind_of(c->op),
                              .mean = c->op == RLX_OP_reduce_mean};
    struct gpu_sets s;
    uint32_t gone = 0;

    for (int32_t i = 0; i < c->attr->reduce.axes.count; i++)
        gone |= 1u << c->attr->reduce.axes.at[i];
    if (gpu_count(t) == 0) {
        gpu_reduce_nothing(c, &r, gpu_out(c), gpu_count(c->out));
        return;
    }
    if (r.op == REDUCE_PROD && r.sum == RLX_DTYPE_f32) { /* may leave f32 on its way */
        r.op = REDUCE_SCALED;
        r.sum = RLX_DTYPE_c64;
    }
    gpu_find_sets(&s, t, gone);
    r.count = s.gone.count;
    gpu_reduce_sets(c, &r, &s, gpu_in(c, 0), gpu_out(c), gpu_count(t));
}
