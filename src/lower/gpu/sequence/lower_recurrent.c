/* lower_recurrent.c: lstm, gru and rnn layers.
 *
 * What inputs bring to the gates is one product for all steps, or for long stretches of them. The
 * rest goes step by step: for few hidden units one launch walks along the sequence, each group with
 * items of its own; for many the weights are too large to be read by each group in each step, and
 * every step is a launch, whose groups share the units. */
#include "lower/gpu/gpu_core.h"
#include "lower/gpu/gpu_joints.h"
#include "lower/gpu/sequence/lower_sequence.h"

enum {
    WALK_UNITS = 192,   /* hidden units of a walk, at most */
    WORTH_TURNING = 8,  /* steps that make up for turning the weights around */
    ENOUGH_GROUPS = 128 /* to keep a large device busy */
};

#define SUMS_MOST (UINT64_C(1) << 28) /* numbers that inputs bring to gates, at once */

struct layer {
    const struct attr_recurrent *attr;
    rlx_dtype dtype, sum; /* of operands; what is computed in */
    uint64_t items, steps, inputs, hidden, dirs, gates;
    int64_t kind; /* as in the kernel */
    bool turned, walk;
    uint64_t units, split, batch;    /* of a group: units side by side, invocations of one, items */
    struct gpu_arg w, sums, h, c, y; /* y: where a sequence goes */
};

static uint64_t state_count(const struct layer *l)
{
    return l->dirs * l->items * l->hidden;
}

/* Units side by side: as many as keep reads whole, unless that leaves too few groups. */
static uint64_t units_of(const struct layer *l)
{
    uint64_t units = l->walk ? sequence_power(l->hidden, GPU_GROUP) : 32;

    while (!l->walk && units > 8 &&
           l->dirs * gpu_ceil(l->hidden, units) * gpu_ceil(l->items, l->batch) < ENOUGH_GROUPS)
        units /= 2;
    return !l->turned || units < 8 ? 8 : units;
}

/* Both of them must be seen at once. */
static bool can_turn(const struct gpu_call *c)
{
    return 2 * gpu_windows(c, gpu_in(c, 2)) <= c->max_bindings;
}

static void set_cells(const struct gpu_call *c, struct layer *l)
{
    uint64_t most = 64 / rlx_dtype_size(l->sum) / l->gates; /* parts fill the shared memory */

    l->walk = l->steps > 1 && l->hidden <= WALK_UNITS;
    l->turned = l->steps >= WORTH_TURNING && can_turn(c);
    most = most >= 4 ? 4 : most >= 2 ? 2 : 1;
    /* Few items of a walk leave too few groups if they share them. */
    l->batch = sequence_power(l->walk ? gpu_ceil(l->items, ENOUGH_GROUPS) : l->items, most);
    l->units = units_of(l);
    l->split = GPU_GROUP / l->units;
}

static void describe(const struct gpu_call *c, struct layer *l)
{
    const struct attr_recurrent *a = &c->attr->recurrent;
    bool relu = a->activation == RLX_RNN_ACTIVATION_relu;

    *l = (struct layer){.attr = a,
                        .dtype = c->out->dtype,
                        .sum = c->out->dtype == RLX_DTYPE_f64 ? RLX_DTYPE_f64 : RLX_DTYPE_f32,
                        .items = (uint64_t)c->in[0].dim[0],
                        .steps = (uint64_t)c->in[0].dim[1],
                        .inputs = (uint64_t)c->in[0].dim[2],
                        .hidden = (uint64_t)a->hidden_size,
                        .dirs = a->bidirectional ? 2 : 1,
                        .gates = c->op == RLX_OP_lstm  ? 4
                                 : c->op == RLX_OP_gru ? 3
                                                       : 1,
                        .kind = c->op == RLX_OP_lstm  ? 0
                                : c->op == RLX_OP_gru ? 1
                                : relu                ? 3
                                                      : 2};
    set_cells(c, l);
}

static void begin(struct gpu_call *c, const struct layer *l, const char *kernel)
{
    gpu_kernel(c, "recurrent", kernel);
    gpu_type(c, "T", l->dtype);
    gpu_type(c, "A", l->sum);
}

/* ---- before the first step ---- */

static void bind_lengths(struct gpu_call *c, const struct layer *l)
{
    gpu_bind(c, gpu_in(c, l->attr->has_lengths ? c->in_count - 1 : 4)); /* else it is not read */
}

static void set_lengths(struct gpu_call *c, const struct layer *l)
{
    gpu_type(c, "L", l->attr->has_lengths ? c->in[c->in_count - 1].dtype : l->dtype);
    gpu_flag(c, "LENGTHS", l->attr->has_lengths);
}

static void weigh_inputs(struct gpu_call *c, const struct layer *l, uint64_t first, uint64_t count)
{
    uint64_t row_tiles = gpu_ceil(l->items * count, 64), gates = l->gates * l->hidden;
    uint64_t col_tiles = gpu_ceil(gates, 64), tasks = l->dirs * row_tiles * col_tiles;

    begin(c, l, "products");
    set_lengths(c, l);
    gpu_bind(c, l->inputs ? gpu_in(c, 0) : gpu_in(c, 3)); /* nothing of it is read then */
    gpu_bind(c, l->inputs ? gpu_in(c, 1) : gpu_in(c, 3));
    gpu_bind(c, gpu_in(c, 3));
    bind_lengths(c, l);
    gpu_bind(c, l->sums);
    gpu_u32(c, "items", l->items);
    gpu_u32(c, "steps", l->steps);
    gpu_u32(c, "first", first);
    gpu_u32(c, "count", count);
    gpu_u32(c, "inputs", l->inputs);
    gpu_u32(c, "gates", gates);
    gpu_u32(c, "row_tiles", row_tiles);
    gpu_u32(c, "col_tiles", col_tiles);
    gpu_u32(c, "tasks", tasks);
    gpu_groups(c, tasks);
}

static void turn_weights(struct gpu_call *c, struct layer *l)
{
    uint64_t rows = l->gates * l->hidden, cols = l->hidden;
    uint64_t tasks = l->dirs * gpu_ceil(rows, 32) * gpu_ceil(cols, 32);

    l->w = gpu_in(c, 2);
    if (!l->turned)
        return;
    l->w = gpu_temp(c, l->w.bytes);
    begin(c, l, "turned");
    gpu_bind(c, gpu_in(c, 2));
    gpu_bind(c, l->w);
    gpu_u32(c, "rows", rows);
    gpu_u32(c, "cols", cols);
    gpu_u32(c, "row_tiles", gpu_ceil(rows, 32));
    gpu_u32(c, "col_tiles", gpu_ceil(cols, 32));
    gpu_u32(c, "tasks", tasks);
    gpu_groups(c, tasks);
}

static void begin_state(struct gpu_call *c, const struct layer *l, int32_t from, struct gpu_arg to)
{
    uint64_t count = state_count(l);

    begin(c, l, "begin");
    gpu_flag(c, "GIVEN", l->attr->has_state);
    gpu_bind(c, gpu_in(c, l->attr->has_state ? from : 0));
    gpu_bind(c, gpu_part(to, 0, count * rlx_dtype_size(l->sum)));
    gpu_u32(c, "count", count);
    gpu_invocations(c, count, GPU_GROUP);
}

/* ---- steps ---- */

/* Steps first..last of a stretch of `count` that began at `begun`. */
static void run_steps(struct gpu_call *c, const struct layer *l, uint64_t begun, uint64_t count,
                      uint64_t first, uint64_t last)
{
    uint64_t units = l->walk ? l->hidden : l->units, blocks = gpu_ceil(l->hidden, units);
    uint64_t tasks = l->dirs * blocks * gpu_ceil(l->items, l->batch);

    begin(c, l, "cells");
    set_lengths(c, l);
    gpu_const(c, "KIND", l->kind);
    gpu_flag(c, "SEQ", l->attr->result == RLX_RNN_RESULT_seq);
    gpu_flag(c, "TURNED", l->turned);
    gpu_flag(c, "WALK", l->walk);
    gpu_const(c, "UB", (int64_t)l->units);
    gpu_const(c, "KS", (int64_t)l->split);
    gpu_const(c, "BT", (int64_t)l->batch);
    gpu_bind(c, l->sums);
    gpu_bind(c, l->w);
    gpu_bind(c, gpu_in(c, 4));
    bind_lengths(c, l);
    gpu_bind(c, l->h);
    gpu_bind(c, l->c);
    gpu_bind(c, l->y);
    gpu_u32(c, "items", l->items);
    gpu_u32(c, "steps", l->steps);
    gpu_u32(c, "hidden", l->hidden);
    gpu_u32(c, "dirs", l->dirs);
    gpu_u32(c, "begun", begun);
    gpu_u32(c, "count", count);
    gpu_u32(c, "first", first);
    gpu_u32(c, "last", last);
    gpu_u32(c, "units", units);
    gpu_u32(c, "unit_blocks", blocks);
    gpu_u32(c, "item_blocks", gpu_ceil(l->items, l->batch));
    gpu_u32(c, "tasks", tasks);
    gpu_groups(c, tasks);
}

/* What inputs bring to that many steps is weighed at once. */
static uint64_t stretch_of(const struct layer *l)
{
    uint64_t step = l->dirs * l->items * l->gates * l->hidden, most = SUMS_MOST / step;

    return most < 1 ? 1 : most > l->steps ? l->steps : most;
}

static void run_layer(struct gpu_call *c, struct layer *l)
{
    uint64_t stretch = stretch_of(l), step = l->dirs * l->items * l->gates * l->hidden;
    /* Where there are several stretches, fewer items fill the room better. */
    bool full = stretch < l->steps && stretch * step < SUMS_MOST;

    l->sums = gpu_temp(c, (full ? SUMS_MOST : stretch * step) * rlx_dtype_size(l->sum));
    turn_weights(c, l);
    for (uint64_t begun = 0; begun < l->steps; begun += stretch) {
        uint64_t end = begun + stretch < l->steps ? begun + stretch : l->steps;
        weigh_inputs(c, l, begun, end - begun);
        for (uint64_t s = begun; !l->walk && s < end; s++)
            run_steps(c, l, begun, end - begun, s, s + 1);
        if (l->walk)
            run_steps(c, l, begun, end - begun, begun, end);
    }
}

static void put_state(struct gpu_call *c, const struct layer *l, struct gpu_arg from,
                      struct gpu_arg to)
{
    uint64_t count = state_count(l);

    begin(c, l, "finish");
    gpu_bind(c, from);
    gpu_bind(c, to);
    gpu_u32(c, "count", count);
    gpu_invocations(c, count, GPU_GROUP);
}

static void put_results(struct gpu_call *c, const struct layer *l)
{
    uint64_t bytes = state_count(l) * rlx_dtype_size(l->sum);

    if (c->arg_also.bytes)
        put_state(c, l, l->c, c->arg_also);
    if (l->attr->result == RLX_RNN_RESULT_c)
        put_state(c, l, l->c, gpu_out(c));
    if (l->attr->result == RLX_RNN_RESULT_h)
        put_state(c, l, gpu_part(l->h, l->steps % 2 * bytes, bytes), gpu_out(c));
}

uint64_t gpu_cell_bytes(const struct gpu_call *c)
{
    struct layer l;

    describe(c, &l);
    return state_count(&l) * rlx_dtype_size(l.dtype);
}

void gpu_lower_recurrent(struct gpu_call *c)
{
    struct layer l;

    if (gpu_count(c->out) == 0 && !c->arg_also.bytes)
        return;
    describe(c, &l);
    uint64_t bytes = state_count(&l) * rlx_dtype_size(l.sum);
    l.h = gpu_temp(c, 2 * bytes);
    l.c = gpu_temp(c, l.gates == 4 ? bytes : 16);
    l.y = l.attr->result == RLX_RNN_RESULT_seq && l.steps ? gpu_out(c) : gpu_temp(c, 16);
    begin_state(c, &l, 5, l.h);
    if (l.gates == 4)
        begin_state(c, &l, 6, l.c);
    if (l.steps)
        run_layer(c, &l);
    put_results(c, &l);
}
