/* lower_pad.c: where some elements have no source: padded, cut to a triangle; and the nearest of a
 * volume.
 */
#include <string.h>

#include "ir/eval/eval.h"
#include "lower/gpu/move/lower_move.h"

/* Axes of the result and of the operand, neighbours without padding between them made one. */
struct axes {
    int64_t out[RLX_MAX_RANK], in[RLX_MAX_RANK], before[RLX_MAX_RANK];
    int32_t rank;
};

static bool is_padded(const struct axes *a, int32_t i)
{
    return a->out[i] != a->in[i];
}

/* A constant's rows are as good as single elements; they may join a padded axis. */
static struct axes join_axes(const struct gpu_call *c)
{
    const struct attr_pad *attr = &c->attr->pad;
    struct axes a = {.rank = 0};

    for (int32_t i = 0; i < c->out->rank; i++) {
        int32_t at = a.rank++;
        a.out[at] = c->out->dim[i];
        a.in[at] = c->in[0].dim[i];
        a.before[at] = attr->before.at[i];
        if (at == 0 || is_padded(&a, at) ||
            (is_padded(&a, at - 1) && attr->mode != RLX_PAD_MODE_constant))
            continue;
        a.out[at - 1] *= a.out[at];
        a.before[at - 1] *= a.in[at];
        a.in[at - 1] *= a.in[at];
        a.rank--;
    }
    return a;
}

/* Several elements move as one where padding is made of as many; returns their bytes. */
static uint64_t widen(const struct gpu_call *c, struct axes *a)
{
    uint64_t size = rlx_dtype_size(c->out->dtype), wide = size, run;
    int32_t last = a->rank - 1;

    if (is_padded(a, last) && c->attr->pad.mode != RLX_PAD_MODE_constant)
        return size;
    run = gpu_common((uint64_t)a->out[last], (uint64_t)a->in[last]);
    wide = gpu_wide(c, gpu_in(c, 0), gpu_out(c), gpu_common(run, (uint64_t)a->before[last]), size);
    a->out[last] /= (int64_t)(wide / size);
    a->in[last] /= (int64_t)(wide / size);
    a->before[last] /= (int64_t)(wide / size);
    return wide;
}

/* The padding's value, as often as it fits into four words. */
static void add_fill(struct gpu_call *c, double value)
{
    struct eval_cell cell = eval_cell_of(c->out->dtype, value);
    const struct eval_tensor one = {
        .type = {.dtype = c->out->dtype, .rank = 0}, .count = 1, .at = &cell};
    size_t size = rlx_dtype_size(c->out->dtype);
    uint32_t word[4];

    for (size_t i = 0; i < sizeof word; i += size)
        eval_store(&one, (char *)word + i);
    for (int32_t i = 0; i < 4; i++)
        gpu_u32(c, "fill", word[i]);
}

void gpu_lower_pad(struct gpu_call *c)
{
    uint64_t all = gpu_count(c->out), wide, count;
    struct axes a = join_axes(c);

    if (all == 0)
        return;
    if (a.rank == 0 || (a.rank == 1 && !is_padded(&a, 0))) {
        gpu_copy(c, gpu_in(c, 0), gpu_out(c), c->out->dtype);
        return;
    }
    wide = widen(c, &a);
    count = all * rlx_dtype_size(c->out->dtype) / wide;
    gpu_kernel(c, "pad", "pad");
    gpu_name(c, "W", gpu_word(wide));
    gpu_const(c, "BYTES", (int64_t)wide);
    gpu_const(c, "MODE", c->attr->pad.mode);
    gpu_const(c, "RANK", a.rank);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", count);
    add_fill(c, c->attr->pad.value);
    gpu_dims(c, "out_size", a.out, a.rank);
    gpu_i32s(c, "in_size", a.in, a.rank);
    gpu_i32s(c, "before", a.before, a.rank);
    gpu_invocations(c, gpu_ceil(count, GPU_MOVES), GPU_GROUP);
}

void gpu_lower_trilu(struct gpu_call *c)
{
    const struct ir_type *t = c->out;
    int64_t rows = t->dim[t->rank - 2], cols = t->dim[t->rank - 1];
    int64_t diagonal = c->attr->trilu.diagonal;

    /* Beyond the corners all are alike. */
    diagonal = diagonal > cols ? cols : diagonal < -rows ? -rows : diagonal;
    gpu_kernel(c, "pad", "triangle");
    gpu_name(c, "W", gpu_word(rlx_dtype_size(t->dtype)));
    gpu_flag(c, "UPPER", c->attr->trilu.upper);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", gpu_count(t));
    gpu_u32(c, "rows", (uint64_t)rows);
    gpu_u32(c, "cols", (uint64_t)cols);
    gpu_i32(c, "diagonal", diagonal);
    gpu_invocations(c, gpu_count(t), GPU_GROUP);
}

void gpu_lower_interpolate_3d(struct gpu_call *c)
{
    const struct ir_type *x = &c->in[0], *y = c->out;
    bool wide = false;

    for (int32_t i = 2; i < 5; i++)
        wide = wide || y->dim[i] > UINT16_MAX || x->dim[i] > UINT16_MAX;
    gpu_kernel(c, "pad", "interpolate");
    gpu_name(c, "W", gpu_word(rlx_dtype_size(y->dtype)));
    gpu_name(c, "N", wide ? "u64" : "u32");
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", gpu_count(y));
    gpu_dims(c, "in_size", x->dim + 2, 3);
    gpu_dims(c, "out_size", y->dim + 2, 3);
    gpu_invocations(c, gpu_count(y), GPU_GROUP);
}
