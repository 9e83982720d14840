/* lower_grouped.c: grouped_matmul and its gradient for w (ops-core.md 10.4). Where experts have
 * many rows each, rows are sorted by expert first. Where a kernel cannot see all matrices at once,
 * experts take turns, some at a time. */
#include "lower/gpu/gemm/lower_grouped.h"
#include "lower/gpu/gpu_core.h"

#define MOST_SORTED (UINT64_C(1) << 26) /* ids looked at, by all experts together */

/* ---- sorting ---- */

bool gpu_experts_sortable(uint64_t rows, uint64_t experts, uint64_t each)
{
    return experts && rows >= experts * each && rows * experts <= MOST_SORTED;
}

struct gpu_experts gpu_experts_room(struct gpu_call *c, int32_t id, uint64_t experts)
{
    struct gpu_experts e = {.rows = gpu_count(&c->in[id]),
                            .experts = experts,
                            .id = id,
                            .w = gpu_in(c, 1),
                            .own = experts};

    e.first = gpu_temp(c, (experts + 1) * sizeof(uint32_t));
    e.order = gpu_temp(c, e.rows * sizeof(uint32_t));
    return e;
}

/* Windows of x, of ids or their order, and of the result. */
static uint64_t other_windows(const struct gpu_call *c, const struct gpu_experts *e)
{
    return gpu_windows(c, gpu_in(c, 0)) + gpu_windows(c, gpu_in(c, e->id)) +
           gpu_windows(c, e->first) + gpu_windows(c, e->order) + gpu_windows(c, gpu_out(c));
}

struct gpu_experts gpu_some_experts(const struct gpu_call *c, const struct gpu_experts *all,
                                    uint64_t from)
{
    uint64_t most = c->max_bindings, others = other_windows(c, all);
    uint64_t matrix = all->experts ? all->w.bytes / all->experts : 0;
    uint64_t room = (most > others ? most - others : 1) * c->max_binding;
    struct gpu_experts some = *all;

    some.from = from;
    some.own = all->experts - from;
    if (all->w.bytes > room - GPU_ALIGN) {
        uint64_t each = gpu_aligned_rows(matrix), fit = (room - GPU_ALIGN) / matrix;
        fit = fit < each ? fit : fit / each * each;
        fit = fit ? fit : 1;
        some.own = fit < some.own ? fit : some.own;
    }
    some.w = gpu_part(all->w, from * matrix, some.own * matrix);
    return some;
}

struct gpu_arg gpu_experts_first(const struct gpu_experts *e)
{
    return gpu_part(e->first, e->from * sizeof(uint32_t), (e->own + 1) * sizeof(uint32_t));
}

void gpu_experts_sort(struct gpu_call *c, const struct gpu_experts *e)
{
    gpu_kernel(c, "grouped", "sort_rows");
    gpu_index_type(c, c->in[e->id].dtype);
    gpu_bind(c, gpu_in(c, e->id));
    gpu_bind(c, e->first);
    gpu_bind(c, e->order);
    gpu_u32(c, "rows", e->rows);
    gpu_u32(c, "experts", e->experts);
    gpu_groups(c, e->experts);
}

void gpu_experts_clear(struct gpu_call *c, const struct gpu_experts *e, uint64_t n)
{
    gpu_kernel(c, "grouped", "clear");
    gpu_type(c, "Y", c->out->dtype);
    gpu_index_type(c, c->in[e->id].dtype);
    gpu_bind(c, gpu_in(c, e->id));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", e->rows * n);
    gpu_u32(c, "n", n);
    gpu_u32(c, "experts", e->experts);
    gpu_invocations(c, e->rows * n, GPU_GROUP);
}

uint64_t gpu_experts_tiles(const struct gpu_experts *e, uint32_t tile)
{
    return e->rows / tile + (e->rows < e->own ? e->rows : e->own);
}

/* ---- products ---- */

static int64_t width_of(const struct gpu_call *c, struct gpu_arg a, uint64_t stride)
{
    uint64_t bytes = 4 * rlx_dtype_size(c->out->dtype);

    return stride % 4 == 0 && gpu_aligned(c, a, bytes) ? 4 : 1;
}

/* Operands and first words of kernels that go through rows expert by expert. */
static void add_sorted(struct gpu_call *c, const struct gpu_experts *e, uint64_t groups, uint64_t n,
                       uint64_t k)
{
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, e->w);
    gpu_bind(c, gpu_experts_first(e));
    gpu_bind(c, e->order);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", groups);
    gpu_u32(c, "n", n);
    gpu_u32(c, "k", k);
}

static void launch_sorted(struct gpu_call *c, const struct gpu_experts *e, uint64_t n, uint64_t k)
{
    uint32_t tile = e->rows / e->experts >= 64 && n >= 64 ? 64 : 32;
    uint64_t groups = gpu_experts_tiles(e, tile) * gpu_ceil(n, tile);
    rlx_dtype sum = gpu_sum_type(c->out->dtype);

    if (e->from == 0) {
        gpu_experts_sort(c, e);
        gpu_experts_clear(c, e, n);
    }
    gpu_kernel(c, "grouped", "tiled");
    gpu_type(c, "T", c->out->dtype);
    gpu_type(c, "A", sum);
    gpu_tile_constants(c, tile);
    gpu_const(c, "VX", width_of(c, gpu_in(c, 0), k));
    gpu_const(c, "VW", width_of(c, e->w, n));
    add_sorted(c, e, groups, n, k);
    gpu_u32(c, "experts", e->own);
    gpu_groups(c, groups);
}

static void launch_unsorted(struct gpu_call *c, const struct gpu_experts *e, uint64_t n, uint64_t k)
{
    rlx_dtype sum = gpu_sum_type(c->out->dtype);
    bool shared = sum == RLX_DTYPE_f32;
    uint64_t count = shared ? e->rows * gpu_ceil(n, 128) : e->rows * n;

    gpu_kernel(c, "grouped", shared ? "rows" : "direct");
    gpu_type(c, "T", c->out->dtype);
    if (shared) {
        gpu_const(c, "V", width_of(c, e->w, n));
    } else {
        gpu_type(c, "A", sum);
        gpu_flag(c, "COMPLEX", c->out->dtype == RLX_DTYPE_c64);
    }
    gpu_index_type(c, c->in[2].dtype);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, e->w);
    gpu_bind(c, gpu_in(c, 2));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", count);
    gpu_u32(c, "n", n);
    gpu_u32(c, "k", k);
    gpu_u32(c, "experts", e->experts);
    gpu_u32(c, "from", e->from);
    gpu_u32(c, "own", e->own);
    gpu_groups(c, shared ? count : gpu_ceil(count, GPU_GROUP));
}

void gpu_lower_grouped_matmul(struct gpu_call *c)
{
    uint64_t n = (uint64_t)c->out->dim[1], k = (uint64_t)c->in[0].dim[1];
    struct gpu_experts e = gpu_experts_room(c, 2, (uint64_t)c->in[1].dim[0]);

    gpu_check_indices(c, gpu_in(c, 2), c->in[2].dtype, e.rows, 0, (int64_t)e.experts);
    if (gpu_count(c->out) == 0)
        return;
    bool sorted = rlx_dtype_size(gpu_sum_type(c->out->dtype)) == 4 &&
                  gpu_experts_sortable(e.rows, e.experts, 4);
    uint64_t from = 0;
    do {
        struct gpu_experts some = gpu_some_experts(c, &e, from);
        (sorted ? launch_sorted : launch_unsorted)(c, &some, n, k);
        from += some.own;
    } while (from < e.experts && c->status == RLX_OK);
}

/* ---- the gradient for w ---- */

static void launch_weights(struct gpu_call *c, const struct gpu_experts *e, uint64_t n, uint64_t k)
{
    uint64_t groups = e->experts * gpu_ceil(n, 64) * gpu_ceil(k, 64);

    gpu_experts_sort(c, e);
    gpu_kernel(c, "grouped", "weights");
    gpu_type(c, "T", c->out->dtype);
    gpu_type(c, "A", gpu_sum_type(c->out->dtype));
    add_sorted(c, e, groups, n, k);
    gpu_groups(c, groups);
}

static void launch_weight(struct gpu_call *c, const struct gpu_experts *e, uint64_t n, uint64_t k)
{
    uint64_t count = gpu_count(c->out);

    gpu_kernel(c, "grouped", "weight");
    gpu_type(c, "T", c->out->dtype);
    gpu_type(c, "A", gpu_sum_type(c->out->dtype));
    gpu_index_type(c, c->in[2].dtype);
    for (int32_t i = 0; i < 3; i++)
        gpu_bind(c, gpu_in(c, i));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", count);
    gpu_u32(c, "rows", e->rows);
    gpu_u32(c, "n", n);
    gpu_u32(c, "k", k);
    gpu_u32(c, "experts", e->experts);
    gpu_invocations(c, count, GPU_GROUP);
}

void gpu_lower_grouped_matmul_backward_weight(struct gpu_call *c)
{
    uint64_t n = (uint64_t)c->out->dim[2], k = (uint64_t)c->out->dim[1];
    struct gpu_experts e = gpu_experts_room(c, 2, (uint64_t)c->out->dim[0]);

    if (gpu_count(c->out) == 0)
        return;
    if (gpu_experts_sortable(e.rows, e.experts, 1))
        launch_weights(c, &e, n, k);
    else
        launch_weight(c, &e, n, k);
}
