/* recurrent.c: lstm, gru and rnn layers (ops-core.md 21).
 *
 *     1. what inputs bring to the gates, x W_ih^T, of a stretch of steps at once   (gemm.c)
 *     2. step by step h W_hh^T, which has few rows, and the gates                  (gemm_few.c)
 *
 * A task of a step is some hidden units of one direction, with all their gates, for all items: it
 * reads the state before and writes its part of the next, and the steps take turns with two
 * states. f16 and bf16 are computed in f32, states included. An item whose length is reached keeps
 * its state. Where all steps are few rows together, their inputs are weighed in the tasks, too.
 *
 * Weights are turned for that, unless there are too few steps to make up for it: sums then stand
 * side by side, and none runs across a vector. A task's part of them is
 *
 *     [k][gates][units]    one task after another, directions outermost */
#include "backend/cpu/kernels/elementwise/row.h"
#include "backend/cpu/kernels/gemm/gemm.h"

enum { UNITS_MOST = 64, GATES_MOST = 4, STRETCH_LEAST = 64, SUMS_MOST = 1 << 22 };
enum { WORTH_TURNING = 8 }; /* steps */

#define UNITS(name) name##_f32
#define UNITS_T float
#define UNITS_DTYPE RLX_DTYPE_f32
#include "backend/cpu/kernels/sequence/recurrent_units.h"

#define UNITS(name) name##_f64
#define UNITS_T double
#define UNITS_DTYPE RLX_DTYPE_f64
#include "backend/cpu/kernels/sequence/recurrent_units.h"

struct layer {
    const struct cpu_call *c;
    const struct attr_recurrent *attr;
    rlx_dtype sum; /* f32 or f64 */
    int64_t size;  /* of a sum */
    int64_t items, steps, inputs, hidden, gates, dirs;
    int64_t units, parts; /* hidden units of a task; tasks of a direction */
    bool direct;          /* inputs are weighed in the tasks */

    const void *turned[3]; /* by operand, 1 and 2; NULL: as they lie */

    int64_t stretch; /* steps whose inputs are multiplied with the weights together */
    int64_t first;   /* of the stretch at hand */
    int64_t rows;    /* per item that from_x holds */
    char *from_x;    /* [dirs, items, rows, gates hidden]; rows by time where they are all steps,
                      * else as the direction comes to them */

    int64_t step;
    char *h, *next, *cell; /* [dirs, items, hidden] */
};

/* ---- shapes -------------------------------------------------------------------------------- */

static void describe(const struct cpu_call *c, struct layer *l)
{
    const struct attr_recurrent *a = &c->attr->recurrent;
    const int64_t *dim = c->in[0].dim;

    *l = (struct layer){.c = c,
                        .attr = a,
                        .sum = c->in[0].dtype == RLX_DTYPE_f64 ? RLX_DTYPE_f64 : RLX_DTYPE_f32,
                        .items = dim[0],
                        .steps = dim[1],
                        .inputs = dim[2],
                        .hidden = a->hidden_size,
                        .gates = c->op == RLX_OP_lstm  ? 4
                                 : c->op == RLX_OP_gru ? 3
                                                       : 1,
                        .dirs = a->bidirectional ? 2 : 1};
    l->size = (int64_t)cpu_size(l->sum);
    l->units = l->hidden >= 512 ? UNITS_MOST : l->hidden >= 128 ? 32 : 16;
    l->parts = (l->hidden + l->units - 1) / l->units;
    l->direct = l->items * l->steps <= GEMM_FEW;
    int64_t step = l->dirs * l->items * l->gates * l->hidden; /* sums */
    l->stretch = l->steps;
    if (l->steps > 0 && step > SUMS_MOST / l->steps)
        l->stretch = cpu_min_i64(l->steps, cpu_max_i64(STRETCH_LEAST, SUMS_MOST / step));
}

/* Sums that a stretch has, and never less for larger sizes. */
static int64_t most_sums(const struct layer *l)
{
    int64_t step = l->dirs * l->items * l->gates * l->hidden;

    if (l->steps == 0 || step <= SUMS_MOST / l->steps)
        return step * l->steps;
    return cpu_max_i64(SUMS_MOST, step * cpu_min_i64(l->steps, STRETCH_LEAST));
}

static int64_t length_of(const struct layer *l, int64_t item)
{
    if (!l->attr->has_lengths)
        return l->steps;
    int64_t n = cpu_index(&l->c->in[l->c->in_count - 1], item);
    return n < 0 ? 0 : cpu_min_i64(n, l->steps);
}

/* When the direction comes to an item's step: 0, 1, .. or length-1, length-2, .. */
static int64_t time_of(const struct layer *l, int64_t dir, int64_t item, int64_t step)
{
    return dir ? length_of(l, item) - 1 - step : step;
}

/* Element k of [dirs, items, hidden] sums. */
static void *state_at(const struct layer *l, char *state, int64_t dir, int64_t item, int64_t k)
{
    return state + ((dir * l->items + item) * l->hidden + k) * l->size;
}

/* ---- inputs -------------------------------------------------------------------------------- */

static void pack_weights(const struct layer *l, int64_t dir, const struct gemm_part *part)
{
    const struct cpu_tensor *w = &l->c->in[1];
    struct gemm_view v = {cpu_at(w, dir * l->gates * l->hidden * l->inputs), w->dtype, l->inputs,
                          1};

    gemm_pack_view(&v, part);
}

/* All steps: an item of the product is a direction, its rows are those of x. */
static void pack_all_b(const void *ctx, const struct gemm_part *part)
{
    pack_weights(ctx, part->item, part);
}

static void pack_all_a(const void *ctx, const struct gemm_part *part)
{
    const struct layer *l = ctx;
    struct gemm_view v = {l->c->in[0].data, l->c->in[0].dtype, l->inputs, 1};

    gemm_pack_view(&v, part);
}

/* A stretch: an item of the product is one of a direction, its rows are steps. */
static void pack_stretch_b(const void *ctx, const struct gemm_part *part)
{
    const struct layer *l = ctx;

    pack_weights(l, part->item / l->items, part);
}

static void pack_stretch_a(const void *ctx, const struct gemm_part *part)
{
    const struct layer *l = ctx;
    int64_t dir = part->item / l->items, item = part->item % l->items;
    int64_t left = length_of(l, item) - l->first - part->line;
    struct gemm_part some = *part;

    if (left <= 0)
        return; /* sums that are not used */
    some.lines = cpu_min_i64(part->lines, left);
    int64_t row = item * l->steps + time_of(l, dir, item, l->first);
    struct gemm_view v = {cpu_at(&l->c->in[0], row * l->inputs), l->c->in[0].dtype,
                          dir ? -l->inputs : l->inputs, 1};
    gemm_pack_view(&v, &some);
}

static void describe_product(const struct layer *l, bool all, struct gemm *g)
{
    *g = (struct gemm){.kind = gemm_kind_of(l->sum),
                       .items = all ? l->dirs : l->dirs * l->items,
                       .m = all ? l->items * l->steps : l->rows,
                       .n = l->gates * l->hidden,
                       .k = l->inputs,
                       .pack_a = all ? pack_all_a : pack_stretch_a,
                       .pack_b = all ? pack_all_b : pack_stretch_b,
                       .c = l->from_x,
                       .ctx = l};
}

static void weigh_inputs(struct layer *l)
{
    struct gemm g;

    l->first = l->step;
    l->rows = cpu_min_i64(l->stretch, l->steps - l->first);
    describe_product(l, l->stretch == l->steps, &g);
    gemm_run(&g, l->c->pool, l->c->scratch);
}

/* Where the sums of an item's step are. */
static const void *from_x_at(const struct layer *l, int64_t dir, int64_t item)
{
    int64_t row = l->stretch == l->steps ? time_of(l, dir, item, l->step) : l->step - l->first;

    return l->from_x + ((dir * l->items + item) * l->rows + row) * l->gates * l->hidden * l->size;
}

/* ---- turned weights ------------------------------------------------------------------------ */

static int64_t weight_k(const struct layer *l, int32_t i)
{
    return i == 1 ? l->inputs : l->hidden;
}

static const void *turned_at(const struct layer *l, int32_t i, int64_t dir, int64_t first)
{
    int64_t at = (dir * l->hidden + first) * l->gates * weight_k(l, i);

    return (const char *)l->turned[i] + at * (int64_t)cpu_size(l->c->in[i].dtype);
}

struct turning {
    const struct layer *l;
    int32_t operand;
};

static void turn_parts(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct turning *turn = ctx;
    const struct layer *l = turn->l;
    const struct cpu_tensor *w = &l->c->in[turn->operand];
    int64_t k = weight_k(l, turn->operand), size = (int64_t)cpu_size(w->dtype);

    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t dir = at / l->parts, first = at % l->parts * l->units;
        int64_t units = cpu_min_i64(l->units, l->hidden - first);
        char *to = (char *)(uintptr_t)turned_at(l, turn->operand, dir, first);
        for (int64_t i = 0; i < k; i++)
            for (int64_t g = 0; g < l->gates; g++, to += units * size)
                cpu_copy_strided(to, cpu_at(w, ((dir * l->gates + g) * l->hidden + first) * k + i),
                                 (int32_t)size, units, k);
    }
}

static void turn_weight(struct layer *l, int32_t i, void *to)
{
    struct turning turn = {l, i};

    l->turned[i] = to;
    cpu_for(l->c->pool, l->dirs * l->parts, 1, turn_parts, &turn);
}

/* Steps enough, and no copy of the weight that was made beforehand. */
static bool turns_here(const struct layer *l)
{
    return l->steps >= WORTH_TURNING && !l->c->in[2].packed;
}

/* ---- one step ------------------------------------------------------------------------------ */

/* Some hidden units of a direction, and the items that are to be stepped together. */
struct task {
    int64_t dir, first, units;
    int64_t rows, item[GEMM_FEW];
    _Alignas(64) unsigned char bx[GATES_MOST * UNITS_MOST * sizeof(double)];
    _Alignas(64) unsigned char bh[GATES_MOST * UNITS_MOST * sizeof(double)];
    /* [gates][rows][units]; of turned weights [rows][gates][units] */
    _Alignas(64) unsigned char x[GATES_MOST * GEMM_FEW * UNITS_MOST * sizeof(double)];
    _Alignas(64) unsigned char h[GATES_MOST * GEMM_FEW * UNITS_MOST * sizeof(double)];
};

static void load_sums(const struct layer *l, const struct cpu_tensor *t, int64_t at, void *to,
                      int64_t n)
{
    if (l->sum == RLX_DTYPE_f64)
        cpu_load_f64(t->dtype, cpu_at(t, at), to, n);
    else
        cpu_load_f32(t->dtype, cpu_at(t, at), to, n);
}

static void store_sums(const struct layer *l, const struct cpu_tensor *out, const void *from,
                       int64_t at, int64_t n)
{
    if (l->sum == RLX_DTYPE_f64)
        cpu_store_f64(out->dtype, from, cpu_at(out, at), n);
    else
        cpu_store_f32(out->dtype, from, cpu_at(out, at), n);
}

/* rows times the task's units of every gate of operand i, which is [dirs, gates hidden, k]. */
static void weigh(const struct layer *l, const struct task *t, int32_t i, int64_t k,
                  rlx_dtype dtype, const void *const *row, unsigned char *sum)
{
    const struct cpu_tensor *w = &l->c->in[i];
    struct gemm_few f = {.a_dtype = dtype, .a_k = 1, .rows = t->rows, .cols = t->units, .k = k};

    for (int64_t r = 0; r < t->rows; r++)
        f.row[r] = row[r];
    if (l->turned[i]) {
        f.cols = l->gates * t->units;
        f.b = (struct gemm_view){turned_at(l, i, t->dir, t->first), w->dtype, 1, f.cols};
        gemm_few_run(&f, sum);
        return;
    }
    for (int64_t g = 0; g < l->gates; g++) {
        int64_t first = (t->dir * l->gates + g) * l->hidden + t->first;
        f.b = (struct gemm_view){cpu_at(w, first * k), w->dtype, k, 1};
        gemm_few_run(&f, sum + g * t->rows * t->units * l->size);
    }
}

/* How far apart a task's sums of operand i are, from gate to gate and from row to row. */
static int64_t gate_step(const struct layer *l, const struct task *t, int32_t i)
{
    return l->turned[i] ? t->units : t->rows * t->units;
}

static int64_t row_step(const struct layer *l, const struct task *t, int32_t i)
{
    return l->turned[i] ? l->gates * t->units : t->units;
}

/* The gates of row r, whose sums have one gate every x_gate and h_gate elements. */
#define GATES(suffix, T)                                                                          \
    static void gates_##suffix(const struct layer *l, const struct task *t, const T *x,           \
                               int64_t x_gate, const T *h, int64_t h_gate, const T *old, T *cell, \
                               T *next)                                                           \
    {                                                                                             \
        const T *bx = (const T *)(const void *)t->bx, *bh = (const T *)(const void *)t->bh;       \
        switch (l->c->op) {                                                                       \
        case RLX_OP_lstm: lstm_##suffix(t->units, x, x_gate, h, h_gate, bx, bh, cell, next);      \
            break;                                                                                \
        case RLX_OP_gru: gru_##suffix(t->units, x, x_gate, h, h_gate, bx, bh, old, next); break;  \
        default:                                                                                  \
            rnn_##suffix(t->units, l->attr->activation == RLX_RNN_ACTIVATION_relu, x, h, bx, bh,  \
                         next);                                                                   \
        }                                                                                         \
    }
GATES(f32, float)
GATES(f64, double)
#undef GATES

static void step_row(const struct layer *l, const struct task *t, int64_t r)
{
    int64_t item = t->item[r];
    const void *h = t->h + r * row_step(l, t, 2) * l->size;
    const void *x = l->direct ? (const void *)(t->x + r * row_step(l, t, 1) * l->size)
                              : (const char *)from_x_at(l, t->dir, item) + t->first * l->size;
    int64_t x_gate = l->direct ? gate_step(l, t, 1) : l->hidden, h_gate = gate_step(l, t, 2);
    const void *old = state_at(l, l->h, t->dir, item, t->first);
    void *next = state_at(l, l->next, t->dir, item, t->first);
    void *cell = l->cell ? state_at(l, l->cell, t->dir, item, t->first) : NULL;

    if (l->sum == RLX_DTYPE_f64)
        gates_f64(l, t, x, x_gate, h, h_gate, old, cell, next);
    else
        gates_f32(l, t, x, x_gate, h, h_gate, old, cell, next);
    if (l->attr->result == RLX_RNN_RESULT_seq) {
        int64_t row = item * l->steps + time_of(l, t->dir, item, l->step);
        store_sums(l, l->c->out, next, (row * l->dirs + t->dir) * l->hidden + t->first, t->units);
    }
}

static void step_rows(const struct layer *l, struct task *t)
{
    const struct cpu_tensor *x = &l->c->in[0];
    const void *row[GEMM_FEW];

    if (t->rows == 0)
        return;
    for (int64_t r = 0; r < t->rows; r++)
        row[r] = state_at(l, l->h, t->dir, t->item[r], 0);
    weigh(l, t, 2, l->hidden, l->sum, row, t->h);
    for (int64_t r = 0; l->direct && r < t->rows; r++) {
        int64_t at = t->item[r] * l->steps + time_of(l, t->dir, t->item[r], l->step);
        row[r] = cpu_at(x, at * l->inputs);
    }
    if (l->direct)
        weigh(l, t, 1, l->inputs, x->dtype, row, t->x);
    for (int64_t r = 0; r < t->rows; r++)
        step_row(l, t, r);
    t->rows = 0;
}

static void run_parts(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct layer *l = ctx;
    struct task t;

    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        t.dir = at / l->parts;
        t.first = at % l->parts * l->units;
        t.units = cpu_min_i64(l->units, l->hidden - t.first);
        t.rows = 0;
        for (int64_t g = 0; g < l->gates; g++) {
            int64_t from = (t.dir * l->gates + g) * l->hidden + t.first;
            load_sums(l, &l->c->in[3], from, t.bx + g * t.units * l->size, t.units);
            load_sums(l, &l->c->in[4], from, t.bh + g * t.units * l->size, t.units);
        }
        for (int64_t item = 0; item < l->items; item++) {
            if (l->step < length_of(l, item))
                t.item[t.rows++] = item;
            else
                memcpy(state_at(l, l->next, t.dir, item, t.first),
                       state_at(l, l->h, t.dir, item, t.first), (size_t)(t.units * l->size));
            if (t.rows == GEMM_FEW)
                step_rows(l, &t);
        }
        step_rows(l, &t);
    }
}

/* ---- the layer ----------------------------------------------------------------------------- */

static void begin_states(struct layer *l)
{
    int64_t count = l->dirs * l->items * l->hidden;

    if (l->attr->has_state) {
        load_sums(l, &l->c->in[5], 0, l->h, count);
        if (l->cell)
            load_sums(l, &l->c->in[6], 0, l->cell, count);
        return;
    }
    memset(l->h, 0, (size_t)(count * l->size));
    if (l->cell)
        memset(l->cell, 0, (size_t)(count * l->size));
}

/* Steps that some item takes; the others' places in the sequence become zero. */
static int64_t steps_taken(const struct layer *l)
{
    int64_t width = l->dirs * l->hidden, most = 0;

    for (int64_t item = 0; item < l->items; item++) {
        int64_t length = length_of(l, item);
        most = cpu_max_i64(most, length);
        if (l->attr->result == RLX_RNN_RESULT_seq && length < l->steps)
            memset(cpu_at(l->c->out, (item * l->steps + length) * width), 0,
                   (size_t)((l->steps - length) * width) * cpu_size(l->c->out->dtype));
    }
    return most;
}

static uint64_t aligned(int64_t count, int64_t size)
{
    return ((uint64_t)count * (uint64_t)size + 63) / 64 * 64;
}

/* Of either way to weigh inputs: sizes decide between them. */
static uint64_t product_scratch(struct layer *l, const struct pool *pool)
{
    struct gemm g;
    uint64_t all, some;

    describe_product(l, true, &g);
    all = gemm_scratch(&g, pool);
    l->rows = l->steps;
    describe_product(l, false, &g);
    some = gemm_scratch(&g, pool);
    return ((all > some ? all : some) + 63) / 64 * 64;
}

/* A sequence without steps has a cell all the same. */
static bool is_empty(const struct cpu_call *c)
{
    return c->out->count == 0 && (!c->also || c->also->count == 0);
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct layer l;

    if (is_empty(c))
        return 0;
    describe(c, &l);
    return product_scratch(&l, c->pool) + aligned(most_sums(&l), l.size) +
           3 * aligned(l.dirs * l.items * l.hidden, l.size) +
           (turns_here(&l) ? aligned(c->in[2].count, (int64_t)cpu_size(c->in[2].dtype)) : 0);
}

static void run(const struct cpu_call *c)
{
    struct layer l;

    if (is_empty(c))
        return;
    describe(c, &l);
    uint64_t state = aligned(l.dirs * l.items * l.hidden, l.size);
    l.h = (char *)c->scratch + product_scratch(&l, c->pool);
    l.next = l.h + state;
    l.cell = c->op == RLX_OP_lstm ? l.next + state : NULL;
    l.from_x = l.next + 2 * state;
    l.turned[1] = c->in[1].packed;
    l.turned[2] = c->in[2].packed;
    if (turns_here(&l))
        turn_weight(&l, 2, l.from_x + aligned(most_sums(&l), l.size));
    begin_states(&l);
    int64_t taken = steps_taken(&l);
    double work = (double)(l.items * l.gates * l.units) * (double)(l.hidden + 1);
    for (l.step = 0; l.step < taken; l.step++) {
        if (!l.direct && l.step % l.stretch == 0)
            weigh_inputs(&l);
        cpu_for(c->pool, l.dirs * l.parts, work >= 32768 ? 1 : (int64_t)(32768 / work) + 1,
                run_parts, &l);
        char *h = l.h;
        l.h = l.next;
        l.next = h;
    }
    if (c->also)
        store_sums(&l, c->also, l.cell, 0, c->also->count);
    if (l.attr->result != RLX_RNN_RESULT_seq)
        store_sums(&l, c->out, l.attr->result == RLX_RNN_RESULT_c ? l.cell : l.h, 0, c->out->count);
}

/* w_ih is turned only where tasks read it. */
static struct cpu_pack pack_size(const struct cpu_call *c, int32_t i)
{
    struct layer l;

    describe(c, &l);
    if (c->out->count == 0 || (i != 2 && !(i == 1 && l.direct)))
        return (struct cpu_pack){0};
    return (struct cpu_pack){.bytes = (uint64_t)c->in[i].count * cpu_size(c->in[i].dtype),
                             .layout = (uint64_t)l.hidden << 3 | (uint64_t)l.gates};
}

static void pack(const struct cpu_call *c, int32_t i, void *to)
{
    struct layer l;

    describe(c, &l);
    turn_weight(&l, i, to);
}

extern const struct cpu_kernel CPU_NAME(cpu_recurrent);
const struct cpu_kernel CPU_NAME(cpu_recurrent) = {
    .run = run, .scratch = scratch, .pack_size = pack_size, .pack = pack};
