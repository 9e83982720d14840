/* lower_solve.c: LU factors, and what is solved with triangles: dense_solve, batched_dense_solve,
 * triangular_solve, det, logdet (ops-core.md 10.4). */
#include "lower/gpu/linalg/lower_dense.h"

enum { SMALL = 4, SMALL_GROUP = 64 }; /* rows and columns that one invocation solves */

/* ---- LU ---- */

static void join(struct gpu_call *c, const struct dense_lu *lu, struct gpu_arg a, struct gpu_arg b)
{
    uint64_t count = lu->items * lu->n * lu->pitch;

    gpu_kernel(c, "solve", "join");
    gpu_type(c, "T", c->in[0].dtype);
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, a);
    gpu_bind(c, b);
    gpu_bind(c, lu->w);
    gpu_u32(c, "n", lu->n);
    gpu_u32(c, "r", lu->r);
    gpu_u32(c, "count", count);
    gpu_invocations(c, count, GPU_GROUP);
}

/* A launch on the factors, and on their swaps if it changes rows. */
static void begin(struct gpu_call *c, const struct dense_lu *lu, const char *kernel, bool swaps)
{
    gpu_kernel(c, "solve", kernel);
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, lu->w);
    if (swaps)
        gpu_bind(c, lu->swaps);
    gpu_u32(c, "n", lu->n);
    gpu_u32(c, "pitch", lu->pitch);
}

static void end(struct gpu_call *c, uint64_t groups)
{
    gpu_u32(c, "count", groups);
    gpu_groups(c, groups);
}

static void panel(struct gpu_call *c, const struct dense_lu *lu, uint64_t first, uint64_t last)
{
    begin(c, lu, "lu_panel", true);
    gpu_u32(c, "first", first);
    gpu_u32(c, "last", last);
    end(c, lu->items);
}

static void right(struct gpu_call *c, const struct dense_lu *lu, uint64_t first, uint64_t last)
{
    uint64_t strips = gpu_ceil(lu->pitch - last, DENSE_BLOCK);

    begin(c, lu, "lu_right", true);
    gpu_u32(c, "first", first);
    gpu_u32(c, "last", last);
    gpu_u32(c, "strips", strips);
    end(c, lu->items * strips);
}

static void trail(struct gpu_call *c, const struct dense_lu *lu, uint64_t last)
{
    uint64_t down = gpu_ceil(lu->n - last, DENSE_BLOCK);
    uint64_t across = gpu_ceil(lu->pitch - last, DENSE_BLOCK);

    begin(c, lu, "lu_trail", false);
    gpu_u32(c, "last", last);
    gpu_u32(c, "down", down);
    gpu_u32(c, "across", across);
    end(c, lu->items * down * across);
}

struct dense_lu dense_factor(struct gpu_call *c, struct gpu_arg a, struct gpu_arg b, uint64_t items,
                             uint64_t n, uint64_t r)
{
    struct dense_lu lu = {.items = items, .n = n, .r = r, .pitch = n + r};

    lu.w = gpu_temp(c, items * n * lu.pitch * dense_bytes(c));
    lu.swaps = gpu_temp(c, items * n * 4);
    join(c, &lu, a, b);
    for (uint64_t first = 0; first < n; first += DENSE_BLOCK) {
        uint64_t last = n - first < DENSE_BLOCK ? n : first + DENSE_BLOCK;
        panel(c, &lu, first, last);
        if (last < lu.pitch)
            right(c, &lu, first, last);
        if (last < n)
            trail(c, &lu, last);
    }
    return lu;
}

/* ---- triangles ---- */

/* op(a) x = b. */
struct triangle {
    struct gpu_arg a, b;
    rlx_dtype a_type, b_type;
    uint64_t items, n, r, a_pitch, b_pitch, b_first;
    bool lower, transpose;
};

static void substitute(struct gpu_call *c, const struct triangle *t)
{
    uint64_t columns = t->r == 1 ? 1 : t->r < 16 ? 8 : 32, strips = gpu_ceil(t->r, columns);

    gpu_kernel(c, "solve", "substitute");
    gpu_type(c, "T", t->a_type);
    gpu_type(c, "B", t->b_type);
    gpu_type(c, "R", dense_real(c));
    gpu_type(c, "O", c->out->dtype);
    gpu_flag(c, "LOWER", t->lower);
    gpu_flag(c, "TRANSPOSE", t->transpose);
    gpu_const(c, "COLUMNS", (int64_t)columns);
    gpu_bind(c, t->a);
    gpu_bind(c, t->b);
    gpu_bind(c, gpu_temp(c, t->items * t->n * t->r * dense_bytes(c)));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "n", t->n);
    gpu_u32(c, "r", t->r);
    gpu_u32(c, "a_pitch", t->a_pitch);
    gpu_u32(c, "b_pitch", t->b_pitch);
    gpu_u32(c, "b_first", t->b_first);
    gpu_u32(c, "strips", strips);
    end(c, t->items * strips);
}

/* Columns of b: it is [..,n] or [..,n,r]. */
static uint64_t columns_of(const struct gpu_call *c)
{
    return c->in[1].rank == c->in[0].rank ? (uint64_t)c->in[1].dim[c->in[1].rank - 1] : 1;
}

/* Small systems: an invocation for each. */
static void solve_small(struct gpu_call *c, uint64_t items, uint64_t n, uint64_t r)
{
    gpu_kernel(c, "solve", "solve_small");
    gpu_type(c, "T", c->in[0].dtype);
    gpu_type(c, "R", dense_real(c));
    gpu_const(c, "N", (int64_t)n);
    gpu_const(c, "R_COLUMNS", (int64_t)r);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "items", items);
    gpu_invocations(c, items, SMALL_GROUP);
}

void gpu_lower_dense_solve(struct gpu_call *c)
{
    uint64_t items = c->op == RLX_OP_batched_dense_solve ? (uint64_t)c->in[0].dim[0] : 1;
    uint64_t n = (uint64_t)c->in[0].dim[c->in[0].rank - 1], r = columns_of(c);

    if (gpu_count(c->out) == 0)
        return;
    if (n <= SMALL && r <= SMALL) {
        solve_small(c, items, n, r);
        return;
    }
    struct dense_lu lu = dense_factor(c, gpu_in(c, 0), gpu_in(c, 1), items, n, r);
    substitute(c, &(struct triangle){.a = lu.w,
                                     .b = lu.w,
                                     .a_type = dense_real(c),
                                     .b_type = dense_real(c),
                                     .items = items,
                                     .n = n,
                                     .r = r,
                                     .a_pitch = lu.pitch,
                                     .b_pitch = lu.pitch,
                                     .b_first = n});
}

void gpu_lower_triangular_solve(struct gpu_call *c)
{
    const struct attr_triangular_solve *attr = &c->attr->triangular_solve;
    uint64_t n = (uint64_t)c->in[0].dim[0], r = columns_of(c);

    if (gpu_count(c->out) == 0)
        return;
    substitute(c, &(struct triangle){.a = gpu_in(c, 0),
                                     .b = gpu_in(c, 1),
                                     .a_type = c->in[0].dtype,
                                     .b_type = c->in[1].dtype,
                                     .items = 1,
                                     .n = n,
                                     .r = r,
                                     .a_pitch = n,
                                     .b_pitch = r,
                                     .lower = attr->lower != attr->transpose,
                                     .transpose = attr->transpose});
}

/* ---- det ---- */

/* Of an empty matrix: 1 and 0. */
void gpu_lower_det(struct gpu_call *c)
{
    uint64_t n = (uint64_t)c->in[0].dim[0];
    struct dense_lu lu = {.n = n};

    if (n > 0)
        lu = dense_factor(c, gpu_in(c, 0), gpu_in(c, 0), 1, n, 0);
    else
        lu.w = lu.swaps = gpu_temp(c, dense_bytes(c));
    gpu_kernel(c, "solve", "lu_det");
    gpu_type(c, "R", dense_real(c));
    gpu_type(c, "O", c->out->dtype);
    gpu_flag(c, "LOG", c->op == RLX_OP_logdet);
    gpu_bind(c, lu.w);
    gpu_bind(c, lu.swaps);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "n", n);
    gpu_groups(c, 1);
}
