/* rule_reduce.c: reductions, orderings and running sums (ops-core.md 8). */
#include "autodiff/rule.h"

/* ---- reductions ---- */

/* The reduced value's shape with 1 for each reduced axis. */
static rlx_list kept_shape(const struct vjp *v)
{
    const rlx_list *axes = &v->n->attr.reduce.axes;
    rlx_list shape = formula_shape(vjp_type(v, 0));

    for (int32_t i = 0; i < axes->count; i++)
        shape.at[axes->at[i]] = 1;
    return shape;
}

/* How many elements go into one, in the formula's type. */
static ir_value terms(struct vjp *v)
{
    const rlx_list *axes = &v->n->attr.reduce.axes;
    struct formula *f = &v->f;
    ir_dim n = 1;

    for (int32_t i = 0; i < axes->count; i++)
        n = dim_mul(rule_dims(f), n, vjp_type(v, 0)->dim[axes->at[i]]);
    if (dim_is_static(n))
        return NUM((double)n);
    return formula_cast(f, rule_size(f, n), f->dtype);
}

/* Elements equal to the extreme share its gradient. Where it is NaN, none gets any. */
static void reduce_extreme(struct vjp *v)
{
    struct formula *f = &v->f;
    rlx_list kept = kept_shape(v);
    ir_value y = formula_reshape(f, v->y, kept);
    ir_value dy = formula_cast(f, formula_reshape(f, v->dy, kept), f->dtype);
    ir_value tied = formula_2(f, RLX_OP_eq, v->n->in[0], y);
    ir_value count = formula_reduce(f, RLX_OP_reduce_sum, formula_cast(f, tied, f->dtype),
                                    v->n->attr.reduce.axes, true);

    vjp_add(v, 0, formula_where(f, tied, DIV(dy, count), NUM(0)));
}

/* x moved by `by` along its last axis: what comes in is `fill`. by > 0: towards the end. */
static ir_value shifted(struct formula *f, ir_value x, int64_t by, ir_dim n, double fill)
{
    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    int64_t axis = formula_type(f, x)->rank - 1, far = by < 0 ? -by : by;
    ir_value part = formula_narrow(f, x, axis, by < 0 ? far : 0, n - far);

    return rule_pad(f, part, axis, by < 0 ? 0 : far, by < 0 ? far : 0, fill);
}

/* Along the last axis: the product of all elements before, or of all after. There is no running
 * product of complex numbers: it is computed in doubling steps. */
static ir_value product_of_others(struct formula *f, ir_value x, bool after)
{
    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(f, x);
    int64_t axis = t.rank - 1, n = t.dim[axis];

    if (t.dtype != RLX_DTYPE_c64) {
        x = after ? formula_reverse(f, x, axis) : x;
        x = rule_cumulative(f, RLX_OP_cumprod, x, axis, true);
        return after ? formula_reverse(f, x, axis) : x;
    }
    x = n > 0 ? shifted(f, x, after ? -1 : 1, n, 1) : x;
    for (int64_t by = 1; by < n; by *= 2)
        x = MUL(x, shifted(f, x, after ? -by : by, n, 1));
    return x;
}

/* With the reduced axes joined into one, after the others. */
static void reduce_prod(struct vjp *v)
{
    const rlx_list *axes = &v->n->attr.reduce.axes;
    struct formula *f = &v->f;
    const struct ir_type t = *vjp_type(v, 0);
    rlx_list perm = {0}, back = {.count = t.rank}, moved = {.count = t.rank}, flat = {0};
    ir_dim many = 1;

    for (int32_t i = 0, k = 0; i < t.rank; i++) {
        if (k < axes->count && axes->at[k] == i) {
            k++;
            many = dim_mul(rule_dims(f), many, t.dim[i]);
            continue;
        }
        perm.at[perm.count++] = i;
        flat.at[flat.count++] = t.dim[i];
    }
    for (int32_t k = 0; k < axes->count; k++)
        perm.at[perm.count++] = axes->at[k];
    for (int32_t i = 0; i < t.rank; i++) {
        back.at[perm.at[i]] = i;
        moved.at[i] = t.dim[perm.at[i]];
    }
    flat.at[flat.count++] = many;
    ir_value x = formula_transpose(f, formula_cast(f, v->n->in[0], f->dtype), perm);
    x = formula_reshape(f, x, flat);
    flat.at[flat.count - 1] = 1;
    ir_value dy = formula_reshape(f, formula_cast(f, v->dy, f->dtype), flat);
    ir_value rest = MUL(product_of_others(f, x, false), product_of_others(f, x, true));
    ir_value dx = MUL(dy, rule_conjugate(f, rest));
    vjp_add(v, 0, formula_transpose(f, formula_reshape(f, dx, moved), back));
}

/* Doubling steps need a known length. */
bool vjp_reduce_applies(const struct ir_graph *g, const struct ir_node *n)
{
    const struct ir_type *x = ir_type_of(g, n->in[0]);
    bool known = true;

    for (int32_t i = 0; i < n->attr.reduce.axes.count; i++)
        known = known && dim_is_static(x->dim[n->attr.reduce.axes.at[i]]);
    return n->op != RLX_OP_reduce_prod || x->dtype != RLX_DTYPE_c64 || known;
}

void vjp_reduce(struct vjp *v)
{
    struct formula *f = &v->f;
    rlx_list shape = formula_shape(vjp_type(v, 0));
    ir_value dy = v->dy;

    if (v->n->attr.reduce.axes.count == 0) {
        vjp_add(v, 0, dy);
        return;
    }
    switch (v->n->op) {
    case RLX_OP_reduce_prod: reduce_prod(v); return;
    case RLX_OP_reduce_max:
    case RLX_OP_reduce_min: reduce_extreme(v); return;
    case RLX_OP_reduce_mean: dy = DIV(formula_cast(f, dy, f->dtype), terms(v)); break;
    default: break;
    }
    dy = formula_cast(f, formula_reshape(f, dy, kept_shape(v)), v->n->type.dtype);
    vjp_add(v, 0, formula_expand(f, dy, shape));
}

/* ---- orderings ---- */

/* Each value goes back to where it was. */
static void give_back(struct vjp *v, ir_value places, int64_t axis)
{
    vjp_add(v, 0, rule_scatter(&v->f, rule_zeros(&v->f, v->n->in[0]), places, v->dy, axis, false));
}

void vjp_topk(struct vjp *v)
{
    union ir_attr attr = v->n->attr;

    attr.topk.result = RLX_TOPK_RESULT_indices;
    attr.topk.index_dtype = RLX_DTYPE_i32;
    give_back(v, formula_node(&v->f, RLX_OP_topk, v->n->in, 1, &attr), attr.topk.axis);
}

void vjp_sort(struct vjp *v)
{
    const struct attr_sort *a = &v->n->attr.sort;
    union ir_attr attr;

    attr_defaults(RLX_OP_argsort, &attr);
    attr.argsort.axis = a->axis;
    attr.argsort.descending = a->descending;
    give_back(v, formula_node(&v->f, RLX_OP_argsort, v->n->in, 1, &attr), a->axis);
}

/* ---- rows and scans ---- */

ir_value rule_cumulative(struct formula *f, rlx_op op, ir_value x, int64_t axis, bool exclusive)
{
    union ir_attr attr;

    attr_defaults(op, &attr);
    if (op == RLX_OP_cumsum_backward)
        attr.cumsum_backward = (struct attr_cumsum_backward){axis, exclusive};
    else
        attr.cumulative = (struct attr_cumulative){axis, exclusive};
    return formula_node(f, op, &x, 1, &attr);
}

void vjp_softmax(struct vjp *v)
{
    struct formula *f = &v->f;
    ir_value y = formula_cast(f, v->y, f->dtype), dy = formula_cast(f, v->dy, f->dtype);
    rlx_list axis = RLX_LIST(v->n->attr.softmax.axis);
    ir_value sum = formula_reduce(f, RLX_OP_reduce_sum, MUL(dy, y), axis, true);

    vjp_add(v, 0, MUL(y, SUB(dy, sum)));
}

/* dx[i] = (product of all x before i) s[i], and s[i] = dy[i] + x[i+1] s[i+1], summed up in
 * doubling steps: s[i] = b[i] + a[i] s[i+d]. Exclusive: of dy[i+1] instead. */
static void cumprod(struct vjp *v)
{
    const struct attr_cumulative *c = &v->n->attr.cumulative;
    struct formula *f = &v->f;
    const struct ir_type t = *vjp_type(v, 0);
    rlx_list perm = {.count = t.rank};
    int64_t n = t.dim[c->axis], last = t.rank - 1;

    for (int32_t i = 0; i < t.rank; i++)
        perm.at[i] = i == c->axis ? last : i == last ? c->axis : i;
    ir_value x = formula_transpose(f, formula_cast(f, v->n->in[0], f->dtype), perm);
    ir_value b = formula_transpose(f, formula_cast(f, v->dy, f->dtype), perm);
    if (n > 0) {
        ir_value a = shifted(f, x, -1, n, 0);
        b = c->exclusive ? shifted(f, b, -1, n, 0) : b;
        for (int64_t by = 1; by < n; by *= 2) {
            b = ADD(b, MUL(a, shifted(f, b, -by, n, 0)));
            a = MUL(a, shifted(f, a, -by, n, 0));
        }
    }
    ir_value front = rule_cumulative(f, RLX_OP_cumprod, x, last, true);
    vjp_add(v, 0, formula_transpose(f, MUL(front, b), perm));
}

/* A maximum is new where it is larger than all before it, is the first element, or the first
 * NaN. */
static void cummax(struct vjp *v)
{
    const struct attr_cumulative *c = &v->n->attr.cumulative;
    struct formula *f = &v->f;
    const struct ir_type t = *vjp_type(v, 0);
    ir_value x = v->n->in[0], front = rule_cumulative(f, RLX_OP_cummax, x, c->axis, true);
    rlx_list along = {.count = t.rank - (int32_t)c->axis, .at = {0, 1, 1, 1, 1, 1, 1, 1}};

    along.at[0] = t.dim[c->axis];
    ir_value place = formula_reshape(f, rule_positions(f, t.dim[c->axis]), along);
    ir_value nan = formula_2(f, RLX_OP_bit_and, formula_2(f, RLX_OP_ne, x, x),
                             formula_2(f, RLX_OP_eq, front, front));
    ir_value first = formula_2(f, RLX_OP_eq, place, formula_number_of(f, RLX_DTYPE_i64, 0));
    ir_value larger = formula_2(f, RLX_OP_gt, x, front);
    ir_value fresh = formula_2(f, RLX_OP_bit_or, formula_2(f, RLX_OP_bit_or, larger, nan), first);
    ir_value from = formula_where(f, fresh, place, formula_number_of(f, RLX_DTYPE_i64, -1));
    from = rule_cumulative(f, RLX_OP_cummax, from, c->axis, c->exclusive);
    vjp_add(v, 0, rule_scatter(f, rule_zeros(f, x), from, v->dy, c->axis, true));
}

bool vjp_cumulative_applies(const struct ir_graph *g, const struct ir_node *n)
{
    const struct ir_type *x = ir_type_of(g, n->in[0]);

    return n->op != RLX_OP_cumprod || dim_is_static(x->dim[n->attr.cumulative.axis]);
}

void vjp_cumulative(struct vjp *v)
{
    const struct attr_cumulative *c = &v->n->attr.cumulative;

    switch (v->n->op) {
    case RLX_OP_cumprod: cumprod(v); break;
    case RLX_OP_cummax: cummax(v); break;
    default:
        vjp_add(v, 0, rule_cumulative(&v->f, RLX_OP_cumsum_backward, v->dy, c->axis, c->exclusive));
    }
}

void vjp_cumsum_backward(struct vjp *v)
{
    const struct attr_cumsum_backward *c = &v->n->attr.cumsum_backward;

    vjp_add(v, 0, rule_cumulative(&v->f, RLX_OP_cumsum, v->dy, c->axis, c->exclusive));
}
