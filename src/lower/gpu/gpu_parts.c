/* gpu_parts.c: tensors that are larger than what a device binds at once.
 *
 * Many nodes compute each row of their result, along some outer axis, from the same row of some
 * operands and from all of the others. Such a node is lowered as several of fewer rows, one after
 * the other. Elementwise kernels do so themselves. What is too large even then, a row, or an
 * operand that all rows need, is seen through several windows (kc_bind). A packed weight of which
 * not even those show enough goes in columns of the result. */
#include <string.h>

#include "ir/op.h"
#include "ir/quant/quant_scheme.h"
#include "lower/gpu/gpu_core.h"
#include "lower/gpu/gpu_rows.h"
#include "lower/gpu/move/lower_move.h"

static bool is_too_large(const struct gpu_call *c)
{
    bool any = c->arg_out.bytes > gpu_seen(c, c->arg_out);

    for (int32_t i = 0; i < c->in_count; i++)
        any |= c->arg_in[i].bytes > gpu_seen(c, c->arg_in[i]);
    return any;
}

uint64_t gpu_aligned_rows(uint64_t row)
{
    uint64_t each = 1;

    while (each * row % GPU_ALIGN)
        each *= 2;
    return each;
}

/* How many rows of so many bytes a kernel can see, from wherever they begin. */
static uint64_t rows_seen(const struct gpu_call *c, struct gpu_arg a, uint64_t row, uint64_t all)
{
    uint64_t seen = row % GPU_ALIGN ? c->max_binding - GPU_ALIGN : gpu_seen(c, a);

    return row ? seen / row : all;
}

/* How many rows at a time, so that parts begin where a buffer can, if that is possible; one where
 * not even that can be seen, which may be cut along the next axis. */
static uint64_t rows_at_once(const struct gpu_call *c, const struct split *s)
{
    uint64_t all = (uint64_t)c->out->dim[s->axis], row = c->arg_out.bytes / all;
    uint64_t each = gpu_aligned_rows(row), most = rows_seen(c, c->arg_out, row, all), fit;

    for (int32_t i = 0; i < c->in_count && i < 64; i++)
        if (s->follows >> i & 1) {
            row = c->arg_in[i].bytes / all;
            fit = rows_seen(c, c->arg_in[i], row, all);
            most = fit < most ? fit : most;
            each = gpu_aligned_rows(row) > each ? gpu_aligned_rows(row) : each;
        }
    most = most < each ? most : most / each * each;
    return most ? most : 1;
}

static struct gpu_arg rows_of(struct gpu_arg a, uint64_t all, uint64_t first, uint64_t count)
{
    return gpu_part(a, a.bytes / all * first, a.bytes / all * count);
}

/* Tiles of matrices do not cross windows. */
static void lower_in_windows(struct gpu_call *c, gpu_lower_fn lower)
{
    const struct kc_features *all = c->features;
    struct kc_features plain = *all;

    plain.coop = plain.coop_group = plain.coop_bf16 = plain.coop_rows = false;
    c->features = &plain;
    lower(c);
    c->features = all;
}

/* ---- columns ---- */

/* A packed weight, which every row meets, has a row of its own for each column of the result. */
static bool has_weight_rows(const struct gpu_call *c)
{
    return op_info(c->op)->family == FAMILY_dequant_matmul &&
           quant_scheme(c->attr->dequant_matmul.scheme)->is_gguf;
}

/* Of how many columns a kernel sees the weight at once; 0: of all. Beside it there is x, up to
 * three times, in one form or another. */
static uint64_t columns_at_once(const struct gpu_call *c)
{
    uint64_t most = c->max_bindings, n = (uint64_t)c->in[1].dim[0];
    uint64_t others = 3 * gpu_windows(c, gpu_in(c, 0)) + gpu_windows(c, gpu_out(c));

    if (others + gpu_windows(c, gpu_in(c, 1)) <= most)
        return 0;
    uint64_t row = gpu_in(c, 1).bytes / n, each = gpu_aligned_rows(row);
    uint64_t fit = ((most > others ? most - others : 1) * c->max_binding - GPU_ALIGN) / row;
    fit = fit < each ? fit : fit / each * each;
    return fit ? fit : 1;
}

/* Some columns after others; where there are several rows, by way of scratch. */
static void lower_columns(struct gpu_call *c, gpu_lower_fn lower, uint64_t each)
{
    const struct gpu_call whole = *c;
    uint64_t n = (uint64_t)c->in[1].dim[0], rows = gpu_count(c->out) / n;
    uint64_t size = rlx_dtype_size(c->out->dtype), scratch;
    struct gpu_arg arg[GPU_OPERANDS], some = {0};
    struct ir_type in[GPU_OPERANDS], out = *c->out;

    memcpy(arg, c->arg_in, (size_t)c->in_count * sizeof *arg);
    memcpy(in, c->in, (size_t)c->in_count * sizeof *in);
    if (rows > 1)
        some = gpu_temp(c, rows * each * size);
    scratch = c->scratch;
    for (uint64_t first = 0, before = scratch; first < n && c->status == RLX_OK; first += each) {
        uint64_t count = n - first < each ? n - first : each;
        struct gpu_arg to = gpu_part(whole.arg_out, first * size,
                                     rows > 1 ? whole.arg_out.bytes - first * size : count * size);
        arg[1] = rows_of(whole.arg_in[1], n, first, count);
        in[1].dim[0] = out.dim[out.rank - 1] = (int64_t)count;
        c->in = in;
        c->out = &out;
        c->arg_in = arg;
        c->arg_out = rows > 1 ? gpu_part(some, 0, rows * count * size) : to;
        c->scratch = before;
        lower_in_windows(c, lower);
        scratch = c->scratch > scratch ? c->scratch : scratch;
        if (rows > 1)
            gpu_copy_columns(c, c->arg_out, count, to, n, rows, count, out.dtype);
    }
    c->in = whole.in;
    c->out = whole.out;
    c->arg_in = whole.arg_in;
    c->arg_out = whole.arg_out;
    c->scratch = scratch;
}

static void lower_large(struct gpu_call *c, gpu_lower_fn lower)
{
    uint64_t columns = has_weight_rows(c) ? columns_at_once(c) : 0;

    if (columns)
        lower_columns(c, lower, columns);
    else
        lower_in_windows(c, lower);
}

/* ---- rows ---- */

static void lower_rows(const struct gpu_call *whole, const struct split *s, uint64_t first,
                       uint64_t count, gpu_lower_fn lower, struct gpu_call *c)
{
    struct gpu_arg arg[GPU_OPERANDS];
    struct ir_type in[GPU_OPERANDS], out = *whole->out;
    uint64_t all = (uint64_t)out.dim[s->axis];

    for (int32_t i = 0; i < whole->in_count; i++) {
        bool cut = i < 64 && (s->follows >> i & 1);
        in[i] = whole->in[i];
        arg[i] = cut ? rows_of(whole->arg_in[i], all, first, count) : whole->arg_in[i];
        if (cut)
            in[i].dim[s->in_axis[i]] = (int64_t)count;
    }
    out.dim[s->axis] = (int64_t)count;
    c->in = in;
    c->out = &out;
    c->arg_in = arg;
    c->arg_out = rows_of(whole->arg_out, all, first, count);
    if (count == 1) {
        gpu_lower_in_parts(c, lower);
    } else if (is_too_large(c)) { /* operands that are not cut */
        lower_large(c, lower);
    } else {
        lower(c);
    }
}

void gpu_lower_in_parts(struct gpu_call *c, gpu_lower_fn lower)
{
    const struct gpu_call whole = *c;
    uint64_t all, most, scratch = 0;
    struct split s;

    if (!is_too_large(c)) {
        lower(c);
        return;
    }
    if (!gpu_find_split(c, &s)) {
        lower_large(c, lower);
        return;
    }
    all = (uint64_t)c->out->dim[s.axis];
    most = rows_at_once(c, &s);
    for (uint64_t first = 0; first < all && c->status == RLX_OK; first += most) {
        c->scratch = whole.scratch; /* each has it after the one before */
        lower_rows(&whole, &s, first, all - first < most ? all - first : most, lower, c);
        scratch = c->scratch > scratch ? c->scratch : scratch;
    }
    c->in = whole.in;
    c->out = whole.out;
    c->arg_in = whole.arg_in;
    c->arg_out = whole.arg_out;
    c->scratch = scratch;
}
