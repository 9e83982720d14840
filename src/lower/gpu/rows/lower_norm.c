/* lower_norm.c: rows normalised, scaled and shifted (kernels/norm.rlk).
 *
 *     rows that a group can hold:  norm
 *     longer ones:                 moments  =>  join  =>  apply */
#include "lower/gpu/rows/lower_norm.h"
#include "lower/gpu/elementwise/lower_elementwise.h"
#include "lower/gpu/gpu_core.h"
#include "lower/gpu/gpu_joints.h"

/* ---- what is normalised ---- */

void gpu_norm_along(struct gpu_norm *n, const struct ir_type *x, int64_t axis, bool centred,
                    float eps)
{
    *n = (struct gpu_norm){.type = x->dtype,
                           .centred = centred,
                           .eps = eps,
                           .residual = -1,
                           .bias = -1,
                           .gamma = -1,
                           .beta = -1,
                           .groups = 1,
                           .per = 1};
    gpu_rows_along(&n->rows, x, axis);
}

void gpu_norm_groups(struct gpu_norm *n, const struct ir_type *x, int64_t groups, float eps)
{
    gpu_norm_along(n, x, 1, true, eps);
    n->grouped = true;
    n->groups = (uint64_t)groups;
    n->channels = (uint64_t)x->dim[1] / n->groups;
    n->per = n->rows.inner;
    n->rows.rows = (uint64_t)x->dim[0] * n->groups;
    n->rows.size = n->channels * n->per;
    n->rows.inner = 1;
}

static bool operand_by_four(const struct gpu_call *c, int32_t i)
{
    return i < 0 || gpu_by_four(c, gpu_in(c, i), c->in[i].dtype);
}

void gpu_norm_share(struct gpu_call *c, struct gpu_norm *n, uint64_t arrays)
{
    bool vectors = n->type != RLX_DTYPE_f64 && gpu_aligned(c, gpu_out(c), 16);

    for (int32_t i = 0; i < c->in_count; i++) {
        bool of_channels = n->grouped && (i == n->gamma || i == n->beta);
        vectors = vectors && (of_channels || operand_by_four(c, i));
    }
    gpu_share_rows(&n->rows, n->type, arrays, vectors && (!n->grouped || n->per % 4 == 0));
}

/* ---- parts of launches ---- */

void gpu_norm_rows(struct gpu_call *c, const struct gpu_norm *n)
{
    gpu_type(c, "T", n->type);
    gpu_row_consts(c, &n->rows, n->type);
    gpu_flag(c, "CENTRED", n->centred);
}

static void source_consts(struct gpu_call *c, const struct gpu_norm *n)
{
    gpu_norm_rows(c, n);
    gpu_flag(c, "RESIDUAL", n->residual >= 0);
    gpu_flag(c, "BIAS", n->bias >= 0);
}

/* Where an operand is absent something else is bound, which is not looked at. */
static void bind_source(struct gpu_call *c, const struct gpu_norm *n)
{
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, n->residual >= 0 ? n->residual : 0));
    gpu_bind(c, gpu_in(c, n->bias >= 0 ? n->bias : 0));
}

static int32_t lead_rank(const struct gpu_call *c, const struct gpu_norm *n)
{
    return n->modulates && c->in[0].rank > 1 ? c->in[0].rank - 1 : 1;
}

void gpu_norm_factor(struct gpu_call *c, const struct gpu_norm *n)
{
    gpu_type(c, "G", c->in[n->gamma].dtype);
    gpu_const(c, "W", n->grouped ? 1 : (int64_t)n->rows.width);
    gpu_flag(c, "GROUPED", n->grouped);
    gpu_flag(c, "MODULATES", n->modulates);
    gpu_const(c, "LEAD", lead_rank(c, n));
}

static void affine_consts(struct gpu_call *c, const struct gpu_norm *n)
{
    gpu_norm_factor(c, n);
    gpu_type(c, "H", n->beta >= 0 ? c->in[n->beta].dtype : n->type);
    gpu_flag(c, "SHIFTS", n->beta >= 0);
}

static void bind_affine(struct gpu_call *c, const struct gpu_norm *n)
{
    gpu_bind(c, gpu_in(c, n->gamma));
    gpu_bind(c, gpu_in(c, n->beta >= 0 ? n->beta : 0));
}

/* Steps of t along the axes of x but the last, in vectors; 0 where t is broadcast. */
static void add_steps(struct gpu_call *c, const char *name, const struct gpu_norm *n,
                      int32_t operand)
{
    const struct ir_type *x = &c->in[0], *t = operand >= 0 ? &c->in[operand] : x;
    int32_t lead = lead_rank(c, n), missing = x->rank - t->rank;

    for (int32_t i = 0; i < lead; i++) {
        uint64_t step = 1;
        for (int32_t k = i - missing + 1; k >= 1 && k < t->rank; k++)
            step *= (uint64_t)t->dim[k];
        bool stays = n->modulates && i < x->rank - 1 && i >= missing && t->dim[i - missing] != 1;
        gpu_u32(c, name, stays ? step / n->rows.width : 0);
    }
}

void gpu_norm_factor_words(struct gpu_call *c, const struct gpu_norm *n)
{
    gpu_u32(c, "groups", n->groups);
    gpu_u32(c, "channels", n->channels);
    gpu_u32(c, "per", n->per);
    for (int32_t i = 0; i < lead_rank(c, n); i++)
        gpu_u32(c, "lead", i < c->in[0].rank - 1 ? (uint64_t)c->in[0].dim[i] : 1);
    add_steps(c, "gamma_step", n, n->gamma);
}

/* ---- statistics ---- */

static void launch_moments(struct gpu_call *c, const struct gpu_norm *n, struct gpu_arg parts)
{
    gpu_kernel(c, "norm", "moments");
    source_consts(c, n);
    gpu_flag(c, "LAST", n->rows.chunks == 1);
    bind_source(c, n);
    gpu_bind(c, parts);
    gpu_row_words(c, &n->rows);
    gpu_u32(c, "chunks", n->rows.chunks);
    gpu_f32(c, "eps", (double)n->eps);
    gpu_groups(c, gpu_row_groups(&n->rows));
}

static void launch_join(struct gpu_call *c, const struct gpu_norm *n, struct gpu_arg parts,
                        struct gpu_arg stats)
{
    const struct gpu_rows *r = &n->rows;

    gpu_kernel(c, "norm", "join");
    gpu_type(c, "A", gpu_sum_type(n->type));
    gpu_flag(c, "CENTRED", n->centred);
    gpu_bind(c, parts);
    gpu_bind(c, stats);
    gpu_u32(c, "rows", r->rows);
    gpu_u32(c, "chunks", r->chunks);
    gpu_u32(c, "chunk", r->lanes * r->hold * r->width);
    gpu_u32(c, "count", r->size);
    gpu_f32(c, "eps", (double)n->eps);
    gpu_groups(c, r->rows);
}

struct gpu_arg gpu_norm_stats(struct gpu_call *c, const struct gpu_norm *n)
{
    uint64_t each = 3 * rlx_dtype_size(gpu_sum_type(n->type));
    struct gpu_arg stats = gpu_temp(c, n->rows.rows * each), parts;

    if (n->rows.chunks == 1) {
        launch_moments(c, n, stats);
        return stats;
    }
    parts = gpu_temp(c, gpu_row_chunks(&n->rows) * each);
    parts.bytes = n->rows.rows * n->rows.chunks * each;
    launch_moments(c, n, parts);
    launch_join(c, n, parts, stats);
    return stats;
}

/* ---- forward ---- */

static void whole_rows(struct gpu_call *c, const struct gpu_norm *n)
{
    gpu_kernel(c, "norm", "norm");
    source_consts(c, n);
    affine_consts(c, n);
    bind_source(c, n);
    bind_affine(c, n);
    gpu_bind(c, gpu_out(c));
    gpu_row_words(c, &n->rows);
    gpu_u32(c, "count", n->rows.size);
    gpu_f32(c, "eps", (double)n->eps);
    gpu_norm_factor_words(c, n);
    add_steps(c, "beta_step", n, n->beta);
    gpu_groups(c, gpu_row_groups(&n->rows));
}

static void cut_rows(struct gpu_call *c, const struct gpu_norm *n)
{
    struct gpu_arg stats = gpu_norm_stats(c, n);

    gpu_kernel(c, "norm", "apply");
    source_consts(c, n);
    affine_consts(c, n);
    bind_source(c, n);
    bind_affine(c, n);
    gpu_bind(c, stats);
    gpu_bind(c, gpu_out(c));
    gpu_row_words(c, &n->rows);
    gpu_u32(c, "chunks", n->rows.chunks);
    gpu_norm_factor_words(c, n);
    add_steps(c, "beta_step", n, n->beta);
    gpu_groups(c, gpu_row_groups(&n->rows));
}

static void lower_norm(struct gpu_call *c, struct gpu_norm *n)
{
    if (gpu_count(c->out) == 0)
        return;
    gpu_norm_share(c, n, 1);
    if (n->rows.chunks == 1)
        whole_rows(c, n);
    else
        cut_rows(c, n);
}

static void lower_along(struct gpu_call *c, int64_t axis, bool centred, float eps)
{
    struct gpu_norm n;

    gpu_norm_along(&n, &c->in[0], axis, centred, eps);
    n.gamma = 1;
    n.beta = c->in_count > 2 ? 2 : -1;
    lower_norm(c, &n);
}

void gpu_lower_layer_norm(struct gpu_call *c)
{
    lower_along(c, c->attr->layer_norm.axis, true, c->attr->layer_norm.eps);
}

void gpu_lower_rms_norm(struct gpu_call *c)
{
    lower_along(c, c->attr->rms_norm.axis, false, c->attr->rms_norm.eps);
}

void gpu_lower_layer_norm_2d(struct gpu_call *c)
{
    lower_along(c, 1, true, c->attr->layer_norm_2d.eps);
}

void gpu_lower_group_norm(struct gpu_call *c)
{
    struct gpu_norm n;

    gpu_norm_groups(&n, &c->in[0], c->attr->group_norm.num_groups, c->attr->group_norm.eps);
    n.gamma = 1;
    n.beta = 2;
    lower_norm(c, &n);
}

void gpu_lower_ada_layer_norm(struct gpu_call *c)
{
    struct gpu_norm n;

    gpu_norm_along(&n, &c->in[0], c->in[0].rank - 1,
                   c->attr->ada_layer_norm.norm == RLX_NORM_KIND_layer,
                   c->attr->ada_layer_norm.eps);
    n.gamma = 1;
    n.beta = 2;
    n.modulates = true;
    lower_norm(c, &n);
}

void gpu_lower_fused_residual_norm(struct gpu_call *c)
{
    const struct attr_fused_residual_norm *a = &c->attr->fused_residual_norm;
    struct gpu_norm n;

    gpu_norm_along(&n, &c->in[0], c->in[0].rank - 1, c->op == RLX_OP_fused_residual_ln, a->eps);
    n.residual = 1;
    n.bias = a->has_bias ? 2 : -1;
    n.gamma = c->in_count - 2;
    n.beta = c->in_count - 1;
    lower_norm(c, &n);
}

/* ---- with the sum that is normalised ---- */

/* Rows that a group holds, in buffers that it can see. */
static bool holds_rows(const struct gpu_call *c, const struct gpu_norm *n)
{
    return n->rows.chunks == 1 && c->arg_out.bytes <= c->max_binding;
}

static void tee_rows(struct gpu_call *c, const struct gpu_norm *n)
{
    gpu_kernel(c, "norm", "tee");
    gpu_norm_rows(c, n);
    gpu_type(c, "G", c->in[n->gamma].dtype);
    gpu_type(c, "H", n->beta >= 0 ? c->in[n->beta].dtype : n->type);
    gpu_const(c, "W", (int64_t)n->rows.width);
    gpu_flag(c, "SHIFTS", n->beta >= 0);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    bind_affine(c, n);
    gpu_bind(c, c->arg_also);
    gpu_bind(c, gpu_out(c));
    gpu_row_words(c, &n->rows);
    gpu_u32(c, "count", n->rows.size);
    gpu_f32(c, "eps", (double)n->eps);
    gpu_groups(c, gpu_row_groups(&n->rows));
}

static void add(struct gpu_call *c)
{
    struct ew e;

    ew_begin(&e, c, c->out);
    struct ew_value in[2] = {ew_input(&e, gpu_in(c, 0), &c->in[0]),
                             ew_input(&e, gpu_in(c, 1), &c->in[1])};
    struct ew_value s = ew_step(&e, "s", RLX_OP_add, c->out->dtype, in);
    ew_store(&e, c->arg_also, c->out->dtype, s.name);
    ew_end(&e);
}

/* One after the other. */
static void add_then_norm(struct gpu_call *c, gpu_lower_fn norm)
{
    const struct ir_type in[] = {*c->out, c->in[2], c->in[c->in_count - 1]};
    const struct gpu_arg arg[] = {c->arg_also, gpu_in(c, 2), gpu_in(c, c->in_count - 1)};
    const struct gpu_call whole = *c;

    add(c);
    c->in = in;
    c->arg_in = arg;
    c->in_count--;
    gpu_lower_in_parts(c, norm);
    c->in = whole.in;
    c->arg_in = whole.arg_in;
    c->in_count = whole.in_count;
}

void gpu_lower_norm_tee(struct gpu_call *c)
{
    bool centred = c->op == RLX_OP_layer_norm;
    struct gpu_norm n;

    if (gpu_count(c->out) == 0)
        return;
    gpu_norm_along(&n, &c->in[0], centred ? c->attr->layer_norm.axis : c->attr->rms_norm.axis,
                   centred, centred ? c->attr->layer_norm.eps : c->attr->rms_norm.eps);
    n.gamma = 2;
    n.beta = c->in_count > 3 ? 3 : -1;
    gpu_norm_share(c, &n, 1);
    if (holds_rows(c, &n))
        tee_rows(c, &n);
    else
        add_then_norm(c, centred ? gpu_lower_layer_norm : gpu_lower_rms_norm);
}
