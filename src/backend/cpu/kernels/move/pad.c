/* pad.c: elements added around a tensor, row by row of the output.
 *
 *     | before |   copied from x   | after |
 *
 * An axis maps an output index to an input index, or to none, where the constant goes. Rows in the
 * padding of an outer axis under `constant` have no input row at all. */
#include "backend/cpu/kernels/move/move.h"

struct pad_axis {
    int64_t n, wide, before; /* input size, output size, elements added in front */
    int64_t stride;          /* of the input */
};

struct pad_job {
    const struct cpu_call *c;
    int32_t mode;
    size_t size;
    int32_t rank;
    struct pad_axis axis[RLX_MAX_RANK];
    uint64_t fill; /* the constant's bits, in the low bytes */
};

static inline int64_t map_index(int32_t mode, const struct pad_axis *a, int64_t i)
{
    i -= a->before;
    if (i >= 0 && i < a->n)
        return i;
    switch (mode) {
    case RLX_PAD_MODE_reflect: return i < 0 ? -i : 2 * a->n - 2 - i;
    case RLX_PAD_MODE_replicate: return i < 0 ? 0 : a->n - 1;
    case RLX_PAD_MODE_circular: return i < 0 ? i + a->n : i - a->n;
    default: return -1;
    }
}

/* Output elements [from, to) of a row, all of them in its padding or src NULL. dst: the row's first
 * element. */
static void pad_run(const struct pad_job *j, const struct pad_axis *a, char *dst, const char *src,
                    int64_t from, int64_t to)
{
    if (!src || j->mode == RLX_PAD_MODE_constant) {
        MOVE_BY_SIZE(j->size, {
            move_t v = (move_t)j->fill;
            for (int64_t i = from; i < to; i++)
                ((move_t *)dst)[i] = v;
        })
    } else {
        MOVE_BY_SIZE(j->size, {
            for (int64_t i = from; i < to; i++)
                ((move_t *)dst)[i] = ((const move_t *)src)[map_index(j->mode, a, i)];
        })
    }
}

static void pad_row(const struct pad_job *j, char *dst, const char *src, int64_t from, int64_t to)
{
    const struct pad_axis *a = &j->axis[j->rank - 1];

    if (!src) {
        pad_run(j, a, dst, NULL, from, to);
        return;
    }
    int64_t left = cpu_max_i64(from, cpu_min_i64(to, a->before));
    int64_t right = cpu_max_i64(left, cpu_min_i64(to, a->before + a->n));
    pad_run(j, a, dst, src, from, left);
    if (right > left)
        memcpy(dst + (size_t)left * j->size, src + (size_t)(left - a->before) * j->size,
               (size_t)(right - left) * j->size);
    pad_run(j, a, dst, src, right, to);
}

/* The input row that an output row comes from; NULL: none. */
static const char *source_row(const struct pad_job *j, int64_t row)
{
    const struct cpu_tensor *x = &j->c->in[0];
    int64_t offset = 0;

    if (x->count == 0)
        return NULL;
    for (int32_t i = j->rank - 2; i >= 0; i--) {
        const struct pad_axis *a = &j->axis[i];
        int64_t k = map_index(j->mode, a, row % a->wide);
        if (k < 0)
            return NULL;
        row /= a->wide;
        offset += k * a->stride;
    }
    return (const char *)x->data + (size_t)offset * j->size;
}

static void pad_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct pad_job *j = ctx;
    int64_t width = j->axis[j->rank - 1].wide;

    (void)worker;
    while (begin < end) {
        int64_t row = begin / width, from = begin % width;
        int64_t to = cpu_min_i64(width, from + end - begin);
        char *dst = (char *)j->c->out->data + (size_t)(row * width) * j->size;
        pad_row(j, dst, source_row(j, row), from, to);
        begin += to - from;
    }
}

/* Axes, those that nothing is added to joined with their neighbours of the same kind. */
static void set_axes(struct pad_job *j, const struct cpu_tensor *x, const struct cpu_tensor *y)
{
    int64_t stride[RLX_MAX_RANK];

    cpu_strides(x, stride);
    for (int32_t i = 0; i < x->rank; i++) {
        struct pad_axis *last = j->rank ? &j->axis[j->rank - 1] : NULL;
        bool plain = x->dim[i] == y->dim[i];
        if (last && plain && last->n == last->wide) {
            last->n *= x->dim[i];
            last->wide = last->n;
            last->stride = stride[i];
            continue;
        }
        j->axis[j->rank++] =
            (struct pad_axis){x->dim[i], y->dim[i], j->c->attr->pad.before.at[i], stride[i]};
    }
    if (j->rank == 0)
        j->axis[j->rank++] = (struct pad_axis){1, 1, 0, 1};
}

static uint64_t fill_bits(rlx_dtype d, double value)
{
    uint64_t bits = 0;
    float re = (float)value;

    if (d == RLX_DTYPE_c64)
        memcpy(&bits, &re, sizeof re); /* the imaginary part is 0 */
    else
        cpu_set_f64(d, &bits, 0, value);
    return bits;
}

static void run(const struct cpu_call *c)
{
    const struct cpu_tensor *y = c->out;
    struct pad_job j = {.c = c, .mode = c->attr->pad.mode, .size = cpu_size(y->dtype)};

    if (y->count == 0)
        return;
    set_axes(&j, &c->in[0], y);
    j.fill = fill_bits(y->dtype, c->attr->pad.value);
    cpu_for(c->pool, y->count, MOVE_BLOCK, pad_range, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_pad);
const struct cpu_kernel CPU_NAME(cpu_pad) = {.run = run};
