/* lower_norm_backward.c: gradients of norms (kernels/norm_backward.rlk).
 *
 *     dx, rows that a group can hold:  backward
 *         longer ones:                 statistics  =>  sums  =>  their means  =>  apply
 *     dgamma:                          statistics  =>  products, reduced along axes
 *     dbeta:                           dy, reduced along axes */
#include "lower/gpu/rows/lower_norm_backward.h"

/* ---- for gamma and beta ---- */

static struct gpu_reduction sum_of(rlx_dtype type, rlx_dtype result)
{
    return (struct gpu_reduction){.type = type, .sum = gpu_sum_type(type), .result = result};
}

static uint64_t sums(const struct ir_type *t, uint32_t gone)
{
    uint64_t n = 1;

    for (int32_t i = 0; i < t->rank; i++)
        n *= gone >> i & 1 ? 1 : (uint64_t)t->dim[i];
    return n;
}

void gpu_sum_gradients(struct gpu_call *c, const struct ir_type *t, uint32_t gone, int32_t dy,
                       rlx_dtype result, struct gpu_arg y)
{
    const struct gpu_reduction r = sum_of(t->dtype, result);
    struct gpu_sets s;

    if (gpu_count(t) == 0) {
        gpu_reduce_nothing(c, &r, y, sums(t, gone));
        return;
    }
    gpu_find_sets(&s, t, gone);
    gpu_reduce_sets(c, &r, &s, gpu_in(c, dy), y, gpu_count(t));
}

/* Whose statistics are an element's? See the kernel; divisions are slow. */
static int64_t stats_of(const struct gpu_products *p, const struct gpu_sets *s)
{
    enum { OF_ROW, OF_SET, OF_PLACE };

    if (p->own)
        return OF_SET;
    return s->side && s->gone.rank == 1 && s->kept.count == p->span ? OF_PLACE : OF_ROW;
}

static void launch_products(struct gpu_call *c, const struct gpu_products *p,
                            const struct gpu_sets *s, rlx_dtype result, struct gpu_arg y)
{
    gpu_kernel(c, "norm_backward", "products");
    gpu_type(c, "T", p->t->dtype);
    gpu_type(c, "A", gpu_sum_type(p->t->dtype));
    gpu_type(c, "U", result);
    gpu_const(c, "STATS", stats_of(p, s));
    gpu_set_consts(c, s);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, p->dy));
    gpu_bind(c, p->stats);
    gpu_bind(c, y);
    gpu_u32(c, "rows", s->kept.count);
    gpu_u32(c, "set", s->gone.count);
    gpu_u32(c, "chunk", s->chunk);
    gpu_u32(c, "chunks", s->chunks);
    gpu_u32(c, "span", p->span);
    gpu_u32(c, "inner", p->inner);
    gpu_set_words(c, s);
    gpu_groups(c, gpu_set_groups(s));
}

void gpu_sum_products(struct gpu_call *c, const struct gpu_products *p, rlx_dtype result,
                      struct gpu_arg y)
{
    const struct gpu_reduction r = sum_of(p->t->dtype, result);
    struct gpu_arg room = gpu_chunk_room(c, gpu_count(p->t));
    struct gpu_sets s;

    if (gpu_count(p->t) == 0) {
        gpu_reduce_nothing(c, &r, y, sums(p->t, p->gone));
        return;
    }
    gpu_find_sets(&s, p->t, p->gone);
    if (s.chunks == 1) {
        launch_products(c, p, &s, result, y);
        return;
    }
    room.bytes = s.kept.count * s.chunks * rlx_dtype_size(r.sum);
    launch_products(c, p, &s, r.sum, room);
    gpu_join_chunks(c, &r, &s, room, y);
}

/* All axes but one. */
static uint32_t all_but(const struct ir_type *t, int64_t axis)
{
    return ((1u << t->rank) - 1) & ~(1u << axis);
}

static void lower_gamma(struct gpu_call *c, struct gpu_norm *n, int64_t axis)
{
    const struct ir_type *x = &c->in[0];
    struct gpu_products p = {.t = x, .gone = all_but(x, axis), .dy = c->in_count - 1};

    if (gpu_count(x)) {
        gpu_norm_share(c, n, 1);
        p.stats = gpu_norm_stats(c, n);
        p.span = n->rows.size * n->rows.inner;
        p.inner = n->rows.inner;
    }
    gpu_sum_products(c, &p, c->out->dtype, gpu_out(c));
}

static void lower_beta(struct gpu_call *c, int64_t axis)
{
    gpu_sum_gradients(c, &c->in[0], all_but(&c->in[0], axis), c->in_count - 1, c->out->dtype,
                      gpu_out(c));
}

/* ---- for x ---- */

/* x, gamma and dy, then what the kernel is given besides. */
static void launch_rows(struct gpu_call *c, const struct gpu_norm *n, const char *kernel,
                        const struct gpu_arg *arg, int args)
{
    gpu_kernel(c, "norm_backward", kernel);
    gpu_norm_rows(c, n);
    gpu_norm_factor(c, n);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, n->gamma));
    gpu_bind(c, gpu_in(c, c->in_count - 1));
    for (int i = 0; i < args; i++)
        gpu_bind(c, arg[i]);
    gpu_row_words(c, &n->rows);
}

static void whole_rows(struct gpu_call *c, const struct gpu_norm *n, struct gpu_arg dx)
{
    launch_rows(c, n, "backward", &dx, 1);
    gpu_u32(c, "count", n->rows.size);
    gpu_f32(c, "eps", (double)n->eps);
    gpu_norm_factor_words(c, n);
    gpu_groups(c, gpu_row_groups(&n->rows));
}

/* [rows, chunks, 2] => means of [rows, 2] */
static void join_means(struct gpu_call *c, const struct gpu_norm *n, struct gpu_arg parts,
                       struct gpu_arg means)
{
    rlx_dtype type = gpu_sum_type(n->type);
    const struct ir_type t = {
        .dtype = type, .rank = 3, .dim = {(int64_t)n->rows.rows, (int64_t)n->rows.chunks, 2}};
    struct gpu_reduction r = sum_of(type, type);
    struct gpu_sets s;

    r.mean = true;
    r.count = n->rows.size;
    gpu_find_sets(&s, &t, 2);
    gpu_reduce_sets(c, &r, &s, parts, means, 0);
}

static void cut_rows(struct gpu_call *c, const struct gpu_norm *n, struct gpu_arg dx)
{
    uint64_t pair = 2 * rlx_dtype_size(gpu_sum_type(n->type)), rows = n->rows.rows;
    struct gpu_arg stats = gpu_norm_stats(c, n), means = gpu_temp(c, rows * pair);
    struct gpu_arg parts = gpu_temp(c, gpu_row_chunks(&n->rows) * pair);

    parts.bytes = rows * n->rows.chunks * pair;
    launch_rows(c, n, "sums", (const struct gpu_arg[]){stats, parts}, 2);
    gpu_u32(c, "chunks", n->rows.chunks);
    gpu_norm_factor_words(c, n);
    gpu_groups(c, gpu_row_groups(&n->rows));
    join_means(c, n, parts, means);
    launch_rows(c, n, "apply", (const struct gpu_arg[]){stats, means, dx}, 3);
    gpu_u32(c, "chunks", n->rows.chunks);
    gpu_norm_factor_words(c, n);
    gpu_groups(c, gpu_row_groups(&n->rows));
}

static void lower_input(struct gpu_call *c, struct gpu_norm *n, struct gpu_arg dx)
{
    if (gpu_count(&c->in[0]) == 0)
        return;
    n->gamma = 1;
    gpu_norm_share(c, n, 2);
    if (n->rows.chunks == 1)
        whole_rows(c, n, dx);
    else
        cut_rows(c, n, dx);
}

/* ---- the ops ---- */

void gpu_lower_layer_norm_backward(struct gpu_call *c)
{
    const struct attr_layer_norm_backward *a = &c->attr->layer_norm_backward;
    struct gpu_norm n;

    gpu_norm_along(&n, &c->in[0], a->axis, true, a->eps);
    if (c->op == RLX_OP_layer_norm_backward_input)
        lower_input(c, &n, gpu_out(c));
    else
        lower_gamma(c, &n, a->axis);
}

void gpu_lower_rms_norm_backward(struct gpu_call *c)
{
    const struct attr_rms_norm_backward *a = &c->attr->rms_norm_backward;
    struct gpu_norm n;

    gpu_norm_along(&n, &c->in[0], a->axis, false, a->eps);
    if (c->op == RLX_OP_rms_norm_backward_input)
        lower_input(c, &n, gpu_out(c));
    else if (c->op == RLX_OP_rms_norm_backward_gamma)
        lower_gamma(c, &n, a->axis);
    else
        lower_beta(c, a->axis);
}

void gpu_lower_group_norm_backward(struct gpu_call *c)
{
    const struct attr_group_norm_backward *a = &c->attr->group_norm_backward;
    struct gpu_norm n;

    gpu_norm_groups(&n, &c->in[0], a->num_groups, a->eps);
    if (c->op == RLX_OP_group_norm_backward_input)
        lower_input(c, &n, gpu_out(c));
    else if (c->op == RLX_OP_group_norm_backward_gamma)
        lower_gamma(c, &n, 1);
    else
        lower_beta(c, 1);
}

/* The axes of x that t, which broadcasts to it, does not have. */
static uint32_t broadcast_axes(const struct ir_type *x, const struct ir_type *t)
{
    int32_t missing = x->rank - t->rank;
    uint32_t axes = 0;

    for (int32_t i = 0; i < x->rank; i++)
        if (i < missing || t->dim[i - missing] == 1)
            axes |= 1u << i;
    return axes;
}

/* dx, dscale and dshift, one after the other. */
void gpu_lower_ada_layer_norm_backward(struct gpu_call *c)
{
    const struct attr_ada_layer_norm_backward *a = &c->attr->ada_layer_norm_backward;
    const struct ir_type *x = &c->in[0], *scale = &c->in[1], *shift = &c->in[2];
    struct gpu_norm n;
    struct gpu_products p = {.t = x, .gone = broadcast_axes(x, scale), .dy = 3, .inner = 1};
    uint64_t at = c->arg_in[0].bytes;

    gpu_norm_along(&n, x, x->rank - 1, a->norm == RLX_NORM_KIND_layer, a->eps);
    n.modulates = true;
    lower_input(c, &n, gpu_part(gpu_out(c), 0, at));
    if (gpu_count(x)) {
        gpu_norm_share(c, &n, 1);
        p.stats = gpu_norm_stats(c, &n);
        p.span = n.rows.size;
    }
    gpu_sum_products(c, &p, c->out->dtype, gpu_part(gpu_out(c), at, c->arg_in[1].bytes));
    at += c->arg_in[1].bytes;
    gpu_sum_gradients(c, x, broadcast_axes(x, shift), 3, c->out->dtype,
                      gpu_part(gpu_out(c), at, c->arg_in[2].bytes));
}
