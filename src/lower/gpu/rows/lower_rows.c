/* lower_rows.c: how the invocations of a group share rows of a tensor. */
#include "lower/gpu/rows/lower_rows.h"

enum {
    SIDE_BY_SIDE = 32, /* rows that a group takes where they lie so: a whole line of memory */
    SIDE_LEAST = 8,    /* where they would have to be cut otherwise */
    WIDE_LANE = 4,  /* vectors, or strided elements, that a lane holds while there are more lanes */
    MOST_HELD = 64, /* words of a lane: what fits into registers */
    MOST_LOADS = 32, /* of a lane */
};

void gpu_rows_along(struct gpu_rows *r, const struct ir_type *t, int64_t axis)
{
    uint64_t outer = 1;

    *r = (struct gpu_rows){.size = (uint64_t)t->dim[axis], .inner = 1};
    for (int32_t i = 0; i < t->rank; i++) {
        if (i < axis)
            outer *= (uint64_t)t->dim[i];
        else if (i > axis)
            r->inner *= (uint64_t)t->dim[i];
    }
    r->rows = outer * r->inner;
}

/* Few kernels for many sizes. */
static uint64_t round_hold(uint64_t n)
{
    return n <= 4 ? gpu_pow2(gpu_max(n, 1)) : gpu_ceil(n, 4) * 4;
}

void gpu_share_rows(struct gpu_rows *r, rlx_dtype type, uint64_t arrays, bool vectors)
{
    uint64_t words = type == RLX_DTYPE_f64 ? 2 * arrays : arrays, most_lanes = GPU_GROUP, units,
             most;

    r->side = r->inner > 1;
    r->width = !r->side && vectors && r->size % 4 == 0 && r->size ? 4 : 1;
    units = r->size / r->width;
    if (r->side)
        most_lanes = GPU_GROUP / gpu_min(gpu_pow2(r->rows), SIDE_BY_SIDE);
    r->lanes = gpu_min(gpu_pow2(gpu_ceil(units, WIDE_LANE)), most_lanes);
    most = gpu_min(MOST_HELD / (r->width * words), MOST_LOADS);
    while (r->side && units > r->lanes * most && r->lanes < GPU_GROUP / SIDE_LEAST)
        r->lanes *= 2;
    r->hold = round_hold(gpu_ceil(units, r->lanes));
    r->chunks = 1;
    if (r->hold > most) {
        r->hold = most / 2;
        r->chunks = gpu_ceil(units, r->lanes * r->hold);
    }
}

uint64_t gpu_row_groups(const struct gpu_rows *r)
{
    return gpu_ceil(r->rows, GPU_GROUP / r->lanes) * r->chunks;
}

/* A row that is cut has chunks of at least 2048 elements, or 64 where rows lie side by side. */
uint64_t gpu_row_chunks(const struct gpu_rows *r)
{
    return r->rows * r->size / (r->side ? 32 : 1024) + 1;
}

void gpu_row_consts(struct gpu_call *c, const struct gpu_rows *r, rlx_dtype type)
{
    gpu_type(c, "A", gpu_sum_type(type));
    gpu_const(c, "V", (int64_t)r->width);
    gpu_const(c, "LANES", (int64_t)r->lanes);
    gpu_const(c, "HOLD", (int64_t)r->hold);
    gpu_flag(c, "SIDE", r->side);
}

void gpu_row_words(struct gpu_call *c, const struct gpu_rows *r)
{
    gpu_u32(c, "rows", r->rows);
    gpu_u32(c, "size", r->size / r->width);
    gpu_u32(c, "inner", r->inner);
}

bool gpu_by_four(const struct gpu_call *c, struct gpu_arg a, rlx_dtype type)
{
    uint64_t size = rlx_dtype_size(type);

    return size <= 4 && gpu_aligned(c, a, 4 * size);
}
