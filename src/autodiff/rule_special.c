/* rule_special.c: transforms, audio, neighbours, the expert gate, splats, singular values and
 * recurrences (ops-special.md 3 to 7, ops-core.md 21). Most have an op for the backward pass. */
#include <float.h>

#include "autodiff/rule.h"

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
            vjp_give(v, i, formula_reshape(&v->f, part, formula_shape(&t)));
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
    vjp_give(v, 0, dx);
}

/* ---- ops with an op for the backward pass ---- */

/* The filters have no gradient. */
void vjp_log_mel(struct vjp *v)
{
    const ir_value in[] = {v->n->in[0], v->n->in[1], v->dy};

    if (vjp_wanted(v, 0))
        vjp_give(v, 0, formula_node(&v->f, RLX_OP_log_mel_backward, in, 3, NULL));
}

/* A row holds k ids, through which nothing flows, and k distances. */
void vjp_knn(struct vjp *v)
{
    int64_t k = v->n->attr.knn.k;
    const ir_value in[] = {v->n->in[0], formula_narrow(&v->f, v->dy, 1, k, k)};
    union ir_attr attr;

    attr_defaults(RLX_OP_knn_backward, &attr);
    attr.knn_backward.k = k;
    vjp_give(v, 0, formula_node(&v->f, RLX_OP_knn_backward, in, 2, &attr));
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
    vjp_give(v, 0,
             formula_node(f, RLX_OP_scatter_elements,
                          (const ir_value[]){formula_fill(f, &t, 0), ids, dp}, 3, &attr));
}

/* ---- recurrences ---- */

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
    return !n->attr.gated_delta_net.carry_state;
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
