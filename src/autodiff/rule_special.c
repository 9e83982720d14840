/* rule_special.c: transforms, audio, neighbours, the expert gate, splats, singular values and
 * recurrences (ops-special.md 3 to 7, ops-core.md 21). Most have an op for the backward pass. */
#include <float.h>

#include "autodiff/rule.h"
#include "pass/pass.h"

#define MUL(a, b) formula_2(f, RLX_OP_mul, (a), (b))

static struct dim_table *dims_of(const struct vjp *v)
{
    return v->f.g->mod->dims;
}

/* The elements of operand i. */
static ir_dim count_of(const struct vjp *v, int32_t i)
{
    const struct ir_type *t = vjp_type(v, i);
    ir_dim count = 1;

    for (int32_t k = 0; k < t->rank; k++)
        count = dim_mul(dims_of(v), count, t->dim[k]);
    return count;
}

/* The gradients of the first operands, one after another in one flat value. */
static void give_packed(struct vjp *v, ir_value packed, int32_t operands)
{
    ir_dim at = 0;

    for (int32_t i = 0; i < operands; i++) {
        ir_dim count = count_of(v, i);
        if (vjp_wanted(v, i) && v->f.status == RLX_OK) {
            const struct ir_type t = *vjp_type(v, i);
            ir_value part = formula_narrow(&v->f, packed, 0, at, count);
            vjp_add(v, i, formula_reshape(&v->f, part, formula_shape(&t)));
        }
        at = dim_add(dims_of(v), at, count);
    }
}

/* ---- fft ---- */

/* How many complex numbers a row has, as a scalar: known, or as a sum of ones. */
static ir_value row_length(struct vjp *v)
{
    struct formula *f = &v->f;
    const struct ir_type t = v->n->type;
    ir_dim n = t.dim[t.rank - 1];
    bool pairs = t.dtype == RLX_DTYPE_c64; /* else both halves of the row count */

    if (dim_is_static(n))
        return formula_number(f, (double)(pairs ? n : n / 2));
    const struct ir_type row = {.dtype = t.dtype, .rank = 1, .dim = {n}};
    const int64_t axis = 0;
    ir_value ones = formula_fill(f, &row, pairs ? 1 : 0.5);
    return formula_reduce(f, RLX_OP_reduce_sum, ones, rlx_list_of(1, &axis), false);
}

/* The other direction with the same scale. The scale follows from the op's norm, except that an
 * inverse scaled by 1/N has no counterpart. */
void vjp_fft(struct vjp *v)
{
    struct formula *f = &v->f;
    const struct attr_fft *a = &v->n->attr.fft;
    bool by_length = a->norm == RLX_FFT_NORM_forward && a->inverse;
    union ir_attr attr;

    attr_defaults(RLX_OP_fft, &attr);
    attr.fft.inverse = !a->inverse;
    attr.fft.norm = a->norm == RLX_FFT_NORM_ortho ? RLX_FFT_NORM_ortho : RLX_FFT_NORM_backward;
    ir_value dx = formula_node(f, RLX_OP_fft, &v->dy, 1, &attr);
    if (by_length)
        dx = formula_2(f, RLX_OP_div, dx, row_length(v));
    vjp_add(v, 0, dx);
}

/* ---- ops with an op for the backward pass ---- */

/* The filters have no gradient. */
void vjp_log_mel(struct vjp *v)
{
    const ir_value in[] = {v->n->in[0], v->n->in[1], v->dy};

    if (vjp_wanted(v, 0))
        vjp_add(v, 0, formula_node(&v->f, RLX_OP_log_mel_backward, in, 3, NULL));
}

/* A row holds k ids, through which nothing flows, and k distances. */
void vjp_knn(struct vjp *v)
{
    int64_t k = v->n->attr.knn.k;
    const ir_value in[] = {v->n->in[0], formula_narrow(&v->f, v->dy, 1, k, k)};
    union ir_attr attr;

    attr_defaults(RLX_OP_knn_backward, &attr);
    attr.knn_backward.k = k;
    vjp_add(v, 0, formula_node(&v->f, RLX_OP_knn_backward, in, 2, &attr));
}

bool vjp_gaussian_splat_applies(const struct ir_graph *g, const struct ir_node *n)
{
    (void)g;
    return n->op == RLX_OP_gaussian_splat_render;
}

/* Everything that the image depends on; what to train is the caller's choice. */
void vjp_gaussian_splat(struct vjp *v)
{
    const struct attr_gaussian_splat *a = &v->n->attr.gaussian_splat;
    struct attr_gaussian_splat_render_backward *b;
    union ir_attr attr;
    ir_value in[8];

    for (int32_t i = 0; i < 7; i++)
        in[i] = v->n->in[i];
    in[7] = v->dy;
    attr_defaults(RLX_OP_gaussian_splat_render_backward, &attr);
    b = &attr.gaussian_splat_render_backward;
    b->width = a->width;
    b->height = a->height;
    b->tile_size = a->tile_size;
    b->max_splat_steps = a->max_splat_steps;
    b->max_list_entries = a->max_list_entries;
    b->radius_scale = a->radius_scale;
    b->alpha_cutoff = a->alpha_cutoff;
    b->transmittance_threshold = a->transmittance_threshold;
    b->loss_grad_clip = FLT_MAX;
    b->sh_band = 1; /* the last one that colours come from */
    give_packed(v, formula_node(&v->f, RLX_OP_gaussian_splat_render_backward, in, 8, &attr), 6);
}

/* ---- group_limited_gate ---- */

static ir_value sum_rows(struct formula *f, ir_value x)
{
    const int64_t last = -1;

    return formula_reduce(f, RLX_OP_reduce_sum, x, rlx_list_of(1, &last), true);
}

/* With the chosen ids fixed: p = sig[ids], S = sum p, w = scaling p / S, so that
 *     dp = (dw - sum(dw p) / S) scaling / S.
 * Nothing flows through the choice, so route has no gradient. */
void vjp_group_limited_gate(struct vjp *v)
{
    struct formula *f = &v->f;
    const struct attr_group_limited_gate *a = &v->n->attr.group_limited_gate;
    int64_t last = v->n->type.rank - 1, k = a->top_k;
    union ir_attr attr;

    if (!vjp_wanted(v, 0))
        return;
    ir_value ids = formula_narrow(f, v->y, last, 0, k);
    ir_value dp = formula_narrow(f, v->dy, last, k, k);
    if (k > 1) {
        attr_defaults(RLX_OP_gather_elements, &attr);
        attr.gather_elements.axis = last;
        ir_value p =
            formula_node(f, RLX_OP_gather_elements, (const ir_value[]){v->n->in[0], ids}, 2, &attr);
        ir_value sum = formula_2(f, RLX_OP_add, sum_rows(f, p), formula_number(f, 1e-20));
        ir_value mean = formula_2(f, RLX_OP_div, sum_rows(f, MUL(dp, p)), sum);
        dp = formula_2(f, RLX_OP_div, formula_2(f, RLX_OP_sub, dp, mean), sum);
    }
    dp = MUL(dp, formula_number(f, (double)a->scaling));
    const struct ir_type t = *vjp_type(v, 0);
    attr_defaults(RLX_OP_scatter_elements, &attr);
    attr.scatter_elements.axis = last;
    vjp_add(v, 0,
            formula_node(f, RLX_OP_scatter_elements,
                         (const ir_value[]){formula_fill(f, &t, 0), ids, dp}, 3, &attr));
}

/* ---- recurrences ---- */

static bool carries_nothing(const struct ir_node *n)
{
    return !attr_integer(n->op, &n->attr, "carry_state", false);
}

bool vjp_selective_scan_applies(const struct ir_graph *g, const struct ir_node *n)
{
    (void)g;
    return carries_nothing(n);
}

void vjp_selective_scan(struct vjp *v)
{
    const ir_value *x = v->n->in;
    const ir_value in[] = {x[0], x[1], x[2], x[3], x[4], v->dy};
    union ir_attr attr;

    attr_defaults(RLX_OP_selective_scan_backward, &attr);
    attr.selective_scan_backward.state_size = v->n->attr.selective_scan.state_size;
    give_packed(v, formula_node(&v->f, RLX_OP_selective_scan_backward, in, 6, &attr), 5);
}

bool vjp_gated_delta_net_applies(const struct ir_graph *g, const struct ir_node *n)
{
    (void)g;
    return carries_nothing(n);
}

void vjp_gated_delta_net(struct vjp *v)
{
    const ir_value *x = v->n->in;
    const ir_value in[] = {x[0], x[1], x[2], x[3], x[4], v->dy};
    union ir_attr attr;

    attr_defaults(RLX_OP_gated_delta_net_backward, &attr);
    attr.gated_delta_net_backward.state_size = v->n->attr.gated_delta_net.state_size;
    give_packed(v, formula_node(&v->f, RLX_OP_gated_delta_net_backward, in, 6, &attr), 5);
}

bool vjp_mamba2_applies(const struct ir_graph *g, const struct ir_node *n)
{
    (void)g;
    return carries_nothing(n);
}

bool vjp_causal_conv_applies(const struct ir_graph *g, const struct ir_node *n)
{
    (void)g;
    return carries_nothing(n);
}

/* ---- second derivatives ---- */

/* ---- recurrences: step by step, where they are short ---- */

/* The gradients of the first five operands of n, one after another; op: what they belong to. */
static ir_value packed(struct formula *f, const struct ir_node *n, rlx_op op,
                       const union ir_attr *attr)
{
    ir_value in[5], dx[5], out = RLX_NO_VALUE;

    for (int i = 0; i < 5; i++)
        in[i] = rule_apart(f, n->in[i]);
    ir_value dy = formula_cast(f, n->in[5], f->dtype);
    ir_value whole = formula_node(f, op, in, 5, attr), first = (ir_value)f->g->node.len;
    if (f->status == RLX_OK)
        f->status = pass_expand_node(f->g, whole, &out, f->diag);
    if (f->status == RLX_OK)
        f->status = grad_walk(f->g, first, out, dy, in, 5, dx, f->diag);
    for (int i = 0; i < 5 && f->status == RLX_OK; i++) {
        const struct ir_type t = *formula_type(f, in[i]);
        dx[i] = dx[i] == RLX_NO_VALUE ? rule_zeros(f, in[i]) : dx[i];
        dx[i] = formula_reshape(f, dx[i], RLX_LIST(rule_product(f, t.dim, t.rank)));
    }
    return f->status == RLX_OK ? formula_concat(f, dx, 5, 0) : RLX_NO_VALUE;
}

ir_value define_selective_scan_backward(struct formula *f, const struct ir_node *n)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_selective_scan, &attr);
    attr.selective_scan.state_size = n->attr.selective_scan_backward.state_size;
    return packed(f, n, RLX_OP_selective_scan, &attr);
}

ir_value define_gated_delta_net_backward(struct formula *f, const struct ir_node *n)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_gated_delta_net, &attr);
    attr.gated_delta_net.state_size = n->attr.gated_delta_net_backward.state_size;
    return packed(f, n, RLX_OP_gated_delta_net, &attr);
}

/* ---- log_mel ---- */

static ir_value square(struct formula *f, ir_value x)
{
    return MUL(x, x);
}

/* The largest band sets the floor of the others, and no gradient goes through that. */
ir_value define_log_mel_backward(struct formula *f, const struct ir_node *n)
{
    const double per_e = 0.43429448190325182765; /* log10 of e */
    const struct ir_type filt = *ir_type_of(f->g, n->in[1]);
    ir_value x = rule_apart(f, n->in[0]), dy = formula_cast(f, n->in[2], f->dtype);
    ir_value filters = formula_1(f, RLX_OP_stop_gradient, n->in[1]);
    ir_value first = (ir_value)f->g->node.len;
    const struct ir_type t = *formula_type(f, x);
    int64_t last = t.rank - 1;
    ir_dim half = dim_floor_div(rule_dims(f), t.dim[last], 2);
    ir_value re = formula_narrow(f, x, last, 0, filt.dim[1]);
    ir_value im = formula_narrow(f, x, last, half, filt.dim[1]);
    ir_value power = ADD(square(f, re), square(f, im));
    ir_value energy = last == 0 ? formula_reshape(f, power, RLX_LIST(1, filt.dim[1])) : power;

    energy = formula_matmul(f, energy, filters, false, true);
    energy = formula_2(f, RLX_OP_max, energy, NUM(1e-10));
    ir_value log = MUL(formula_1(f, RLX_OP_log, energy), NUM(per_e));
    int64_t bands = last == 0 ? 1 : last;
    ir_value top = formula_reduce(f, RLX_OP_reduce_max, log, RLX_LIST(bands), true);
    ir_value floor = SUB(formula_1(f, RLX_OP_stop_gradient, top), NUM(8));
    ir_value y = MUL(ADD(formula_2(f, RLX_OP_max, log, floor), NUM(4)), NUM(0.25));
    if (last == 0)
        y = formula_reshape(f, y, RLX_LIST(filt.dim[0]));
    return rule_pull(f, first, y, dy, x);
}

/* ---- knn: each distance came from a place that is an id in its row ---- */

/* A row that has too few neighbours is filled with ids past the end. */
void vjp_knn_backward(struct vjp *v)
{
    struct formula *f = &v->f;
    const struct ir_type t = *vjp_type(v, 0);
    int64_t k = v->n->attr.knn_backward.k;
    union ir_attr attr;

    if (!vjp_wanted(v, 1))
        return;
    attr_defaults(RLX_OP_knn, &attr);
    attr.knn.k = k;
    ir_value all = formula_node(f, RLX_OP_knn, v->n->in, 1, &attr);
    ir_value id = formula_cast(f, formula_narrow(f, all, 1, 0, k), RLX_DTYPE_i64);
    attr_defaults(RLX_OP_gather_elements, &attr);
    attr.gather_elements.axis = 1;
    ir_value found =
        formula_node(f, RLX_OP_gather_elements, (const ir_value[]){v->dy, id}, 2, &attr);
    ir_value real = formula_2(f, RLX_OP_lt, id, rule_size(f, t.dim[1]));
    vjp_add(v, 1, formula_where(f, real, found, NUM(0)));
}
