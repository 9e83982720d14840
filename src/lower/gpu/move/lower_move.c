/* lower_move.c: ops that only say where elements lie: transposed, broadcast, cut out, reversed,
 * repeated. Each is a walk: a step through the operand for each axis of the result. */
#include "lower/gpu/move/lower_move.h"

/* An axis that is repeated counts as two. */
#define MAX_WALK (2 * RLX_MAX_RANK)
#define TILE 32 /* rows and columns that transpose_tiles turns at a time */

struct walk {
    int64_t size[MAX_WALK], step[MAX_WALK], first;
    int32_t rank;
};

/* ---- widths ---- */

const char *gpu_word(uint64_t bytes)
{
    switch (bytes) {
    case 1: return "u8";
    case 2: return "u16";
    case 4: return "u32";
    case 8: return "u32x2";
    default: return "u32x4";
    }
}

uint64_t gpu_common(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint64_t gpu_wide(const struct gpu_call *c, struct gpu_arg a, struct gpu_arg b, uint64_t run,
                  uint64_t size)
{
    uint64_t wide = 16;

    while (wide > size &&
           (run * size % wide || !gpu_aligned(c, a, wide) || !gpu_aligned(c, b, wide)))
        wide /= 2;
    return wide;
}

uint64_t gpu_product(const struct ir_type *t, int64_t begin, int64_t end)
{
    uint64_t n = 1;

    for (int64_t i = begin; i < end; i++)
        n *= (uint64_t)t->dim[i];
    return n;
}

/* ---- plain launches ---- */

void gpu_copy(struct gpu_call *c, struct gpu_arg from, struct gpu_arg to, rlx_dtype t)
{
    uint64_t size = rlx_dtype_size(t), wide = gpu_wide(c, from, to, to.bytes / size, size);
    uint64_t count = to.bytes / wide;

    gpu_kernel(c, "move", "copy");
    gpu_name(c, "W", gpu_word(wide));
    gpu_bind(c, from);
    gpu_bind(c, to);
    gpu_u32(c, "count", count);
    gpu_invocations(c, gpu_ceil(count, GPU_MOVES), GPU_GROUP);
}

void gpu_copy_columns(struct gpu_call *c, struct gpu_arg from, uint64_t from_stride,
                      struct gpu_arg to, uint64_t to_stride, uint64_t rows, uint64_t width,
                      rlx_dtype t)
{
    uint64_t size = rlx_dtype_size(t), run = gpu_common(width, gpu_common(from_stride, to_stride));
    uint64_t wide = gpu_wide(c, from, to, run, size), each = wide / size;

    gpu_kernel(c, "move", "columns");
    gpu_name(c, "W", gpu_word(wide));
    gpu_bind(c, from);
    gpu_bind(c, to);
    gpu_u32(c, "count", rows * width / each);
    gpu_u32(c, "width", width / each);
    gpu_u32(c, "x_stride", from_stride / each);
    gpu_u32(c, "y_stride", to_stride / each);
    gpu_invocations(c, rows * width / each, GPU_GROUP);
}

void gpu_zero(struct gpu_call *c, struct gpu_arg to, rlx_dtype t)
{
    uint64_t size = rlx_dtype_size(t), wide = gpu_wide(c, to, to, to.bytes / size, size);

    gpu_kernel(c, "move", "zero");
    gpu_name(c, "W", gpu_word(wide));
    gpu_bind(c, to);
    gpu_u32(c, "count", to.bytes / wide);
    gpu_invocations(c, to.bytes / wide, GPU_GROUP);
}

/* ---- walks ---- */

static void add_axis(struct walk *w, int64_t size, int64_t step)
{
    w->size[w->rank] = size;
    w->step[w->rank++] = step;
}

static void dense_steps(const struct ir_type *t, int64_t *step)
{
    int64_t at = 1;

    for (int32_t i = t->rank; i-- > 0;) {
        step[i] = at;
        at *= t->dim[i];
    }
}

/* Fewer axes: those of size 1 go, and neighbours that are one run become one. */
static void join_axes(struct walk *w)
{
    int32_t kept = 0;

    for (int32_t i = 0; i < w->rank; i++) {
        if (w->size[i] == 1)
            continue;
        if (kept && w->step[kept - 1] == w->step[i] * w->size[i]) {
            w->size[kept - 1] *= w->size[i];
            w->step[kept - 1] = w->step[i];
        } else {
            w->size[kept] = w->size[i];
            w->step[kept++] = w->step[i];
        }
    }
    w->rank = kept;
    if (kept == 0)
        add_axis(w, 1, 1);
}

/* Several elements move as one where the last axis is a run; returns their bytes. */
static uint64_t widen(const struct gpu_call *c, struct walk *w)
{
    uint64_t size = rlx_dtype_size(c->out->dtype), run;
    int32_t last = w->rank - 1;

    if (w->step[last] != 1)
        return size;
    run = gpu_common((uint64_t)w->size[last], (uint64_t)w->first);
    for (int32_t i = 0; i < last; i++)
        run = gpu_common(run, (uint64_t)(w->step[i] < 0 ? -w->step[i] : w->step[i]));
    uint64_t wide = gpu_wide(c, gpu_in(c, 0), gpu_out(c), run, size);
    int64_t each = (int64_t)(wide / size);
    w->size[last] /= each;
    w->first /= each;
    for (int32_t i = 0; i < last; i++)
        w->step[i] /= each;
    return wide;
}

static void add_words(struct gpu_call *c, const struct walk *w)
{
    gpu_dims(c, "size", w->size, w->rank);
    gpu_i32s(c, "step", w->step, w->rank);
}

/* Where the operand runs along a different axis than the result, tiles of both are turned in shared
 * memory: both sides read and write runs then. Returns that axis; -1: it is not so. */
static int32_t turned_axis(const struct gpu_call *c, const struct walk *w)
{
    int32_t last = w->rank - 1;

    if (w->step[last] < TILE || w->size[last] < TILE / 2 || rlx_dtype_size(c->out->dtype) > 8)
        return -1;
    for (int32_t i = 0; i < last; i++)
        if (w->step[i] == 1 && w->size[i] >= TILE / 2)
            return i;
    return -1;
}

static void lower_turned(struct gpu_call *c, const struct walk *w, int32_t axis)
{
    uint64_t rows = (uint64_t)w->size[axis], cols = (uint64_t)w->size[w->rank - 1];
    uint64_t tiles = gpu_ceil(rows, TILE) * gpu_ceil(cols, TILE), others = 1, at = 1;
    uint64_t out_step[MAX_WALK] = {0}, across;
    struct walk rest = {.first = 0};

    for (int32_t i = w->rank; i-- > 0;) {
        out_step[i] = at;
        at *= (uint64_t)w->size[i];
    }
    across = out_step[axis];
    for (int32_t i = 0; i < w->rank - 1; i++) {
        if (i == axis)
            continue;
        others *= (uint64_t)w->size[i];
        out_step[rest.rank] = out_step[i];
        add_axis(&rest, w->size[i], w->step[i]);
    }
    if (rest.rank == 0) {
        out_step[0] = 0;
        add_axis(&rest, 1, 0);
    }
    gpu_kernel(c, "move", "transpose_tiles");
    gpu_name(c, "W", gpu_word(rlx_dtype_size(c->out->dtype)));
    gpu_name(c, "S", rlx_dtype_size(c->out->dtype) == 8 ? "u32x2" : "u32");
    gpu_const(c, "RANK", rest.rank);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "rows", rows);
    gpu_u32(c, "cols", cols);
    gpu_u32(c, "count", others);
    gpu_u32(c, "first", (uint64_t)w->first);
    gpu_u32(c, "down", (uint64_t)w->step[w->rank - 1]);
    gpu_u32(c, "across", across);
    add_words(c, &rest);
    for (int32_t i = 0; i < rest.rank; i++)
        gpu_u32(c, "out_step", out_step[i]);
    gpu_groups(c, tiles * others);
}

/* Where elements lie apart in the operand, they may still be written as whole words: so many at
 * once. 0: not even one. */
static uint64_t words_of(const struct gpu_call *c, const struct walk *w)
{
    uint64_t size = rlx_dtype_size(c->out->dtype), last = (uint64_t)w->size[w->rank - 1];
    uint64_t words = 4;

    while (words && (last * size % (4 * words) || !gpu_aligned(c, gpu_out(c), 4 * words)))
        words /= 2;
    return size > 4 || words * 4 == size ? 0 : words;
}

static void lower_words(struct gpu_call *c, const struct walk *w, uint64_t words)
{
    uint64_t size = rlx_dtype_size(c->out->dtype), count = gpu_count(c->out) * size / (4 * words);

    gpu_kernel(c, "move", "strided_words");
    gpu_name(c, "W", gpu_word(size));
    gpu_name(c, "Y", gpu_word(4 * words));
    gpu_const(c, "WORDS", (int64_t)words);
    gpu_const(c, "PER", (int64_t)(4 / size));
    gpu_const(c, "RANK", w->rank);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", count);
    gpu_u32(c, "first", (uint64_t)w->first);
    add_words(c, w);
    gpu_invocations(c, count, GPU_GROUP);
}

static void lower_walk(struct gpu_call *c, struct walk *w)
{
    int32_t axis;

    if (gpu_count(c->out) == 0)
        return;
    join_axes(w);
    axis = turned_axis(c, w);
    if (axis >= 0) {
        lower_turned(c, w, axis);
        return;
    }
    uint64_t size = rlx_dtype_size(c->out->dtype), wide = widen(c, w);
    uint64_t count = gpu_count(c->out) / (wide / size), words = wide > size ? 0 : words_of(c, w);
    if (words) {
        lower_words(c, w, words);
        return;
    }
    gpu_kernel(c, "move", "strided");
    gpu_name(c, "W", gpu_word(wide));
    gpu_const(c, "RANK", w->rank);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", count);
    gpu_u32(c, "first", (uint64_t)w->first);
    add_words(c, w);
    gpu_invocations(c, gpu_ceil(count, GPU_MOVES), GPU_GROUP);
}

void gpu_repeat_rows(struct gpu_call *c, uint64_t times, uint64_t width)
{
    struct walk w = {.first = 0};

    if (gpu_count(c->out) == 0)
        return;
    add_axis(&w, (int64_t)(gpu_count(c->out) / times / width), (int64_t)width);
    add_axis(&w, (int64_t)times, 0);
    add_axis(&w, (int64_t)width, 1);
    lower_walk(c, &w);
}

/* ---- the ops ---- */

/* Views whose operand's place cannot be theirs, as it is overwritten before they are read. */
void gpu_lower_same(struct gpu_call *c)
{
    if (gpu_count(c->out))
        gpu_copy(c, gpu_in(c, 0), gpu_out(c), c->out->dtype);
}

void gpu_lower_expand(struct gpu_call *c)
{
    int32_t new_axes = c->out->rank - c->in[0].rank;
    int64_t step[RLX_MAX_RANK];
    struct walk w = {.first = 0};

    dense_steps(&c->in[0], step);
    for (int32_t i = 0; i < c->out->rank; i++) {
        int32_t from = i - new_axes;
        add_axis(&w, c->out->dim[i], from < 0 || c->in[0].dim[from] == 1 ? 0 : step[from]);
    }
    lower_walk(c, &w);
}

void gpu_lower_transpose(struct gpu_call *c)
{
    int64_t step[RLX_MAX_RANK];
    struct walk w = {.first = 0};

    dense_steps(&c->in[0], step);
    for (int32_t i = 0; i < c->out->rank; i++)
        add_axis(&w, c->out->dim[i], step[c->attr->transpose.perm.at[i]]);
    lower_walk(c, &w);
}

/* Along one axis elements are `by` apart. */
static void lower_cut(struct gpu_call *c, int64_t axis, int64_t start, int64_t by)
{
    int64_t step[RLX_MAX_RANK];
    struct walk w = {.first = 0};

    dense_steps(&c->in[0], step);
    for (int32_t i = 0; i < c->out->rank; i++)
        add_axis(&w, c->out->dim[i], i == axis ? step[i] * by : step[i]);
    w.first = start * step[axis];
    lower_walk(c, &w);
}

void gpu_lower_narrow(struct gpu_call *c)
{
    lower_cut(c, c->attr->narrow.axis, c->attr->narrow.start, 1);
}

void gpu_lower_slice(struct gpu_call *c)
{
    lower_cut(c, c->attr->slice.axis, c->attr->slice.start, c->attr->slice.step);
}

void gpu_lower_reverse(struct gpu_call *c)
{
    const rlx_list *axes = &c->attr->reverse.axes;
    int64_t step[RLX_MAX_RANK];
    struct walk w = {.first = 0};

    dense_steps(&c->in[0], step);
    for (int32_t i = 0; i < axes->count; i++) {
        int64_t a = axes->at[i];
        w.first += step[a] * (c->out->dim[a] - 1);
        step[a] = -step[a];
    }
    for (int32_t i = 0; i < c->out->rank; i++)
        add_axis(&w, c->out->dim[i], step[i]);
    lower_walk(c, &w);
}

void gpu_lower_tile(struct gpu_call *c)
{
    int64_t step[RLX_MAX_RANK];
    struct walk w = {.first = 0};

    dense_steps(&c->in[0], step);
    for (int32_t i = 0; i < c->out->rank; i++) {
        add_axis(&w, c->attr->tile.reps.at[i], 0);
        add_axis(&w, c->in[0].dim[i], step[i]);
    }
    lower_walk(c, &w);
}

void gpu_lower_resize_nearest_2x(struct gpu_call *c)
{
    int64_t step[RLX_MAX_RANK];
    struct walk w = {.first = 0};

    dense_steps(&c->in[0], step);
    for (int32_t i = 0; i < 4; i++) {
        add_axis(&w, c->in[0].dim[i], step[i]);
        if (i >= 2)
            add_axis(&w, 2, 0);
    }
    lower_walk(c, &w);
}
