/* rule_scan.c: scans, by the ops for their backward pass (ops-core.md 17.3), one for each gradient.
 * For these, what stays the same in every step becomes a sequence, with a copy for each step;
 * scan_backward.c avoids that where it can. */
#include "autodiff/scan_backward.h"

#include "autodiff/sub_graph.h"

/* The body's gradients that a node needs: the carry's, and that of one operand; 0: no other. */
static rlx_status need(struct grad_sub *s, const struct ir_graph *g, const struct ir_node *n,
                       int32_t operand, struct diag *d)
{
    static const bool given[] = {true};
    bool *wanted = arena_array(&g->mod->arena, bool, (size_t)n->in_count);

    if (!wanted)
        return diag_no_memory(d, (size_t)n->in_count);
    wanted[0] = wanted[operand] = true;
    *s = (struct grad_sub){scan_body(g, n), given, wanted, .all = true};
    return RLX_OK;
}

rlx_status vjp_scan_check(const struct ir_graph *g, const struct ir_node *n, const bool *wanted,
                          struct diag *d)
{
    struct grad_sub s;

    for (int32_t i = 0; i < n->in_count; i++)
        if (wanted[i]) {
            TRY(need(&s, g, n, i, d));
            TRY(grad_sub_check(&s, d));
        }
    return RLX_OK;
}

/* ---- sequences ---- */

ir_value *scan_new_values(struct vjp *v, int32_t count)
{
    ir_value *room = arena_array(&v->f.g->mod->arena, ir_value, (size_t)count + 1);

    if (!room && v->f.status == RLX_OK)
        v->f.status = diag_no_memory(v->f.diag, (size_t)count * sizeof *room);
    return room;
}

ir_value scan_as_row(struct vjp *v, ir_value x)
{
    rlx_list row = {.count = 1, .at = {1}};

    if (v->f.status != RLX_OK)
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(&v->f, x);
    if (t.rank == RLX_MAX_RANK) {
        formula_fail(&v->f, RLX_ERROR_LIMIT,
                     "the gradient of scan needs a value of rank %d for all steps", t.rank + 1);
        return RLX_NO_VALUE;
    }
    for (int32_t i = 0; i < t.rank; i++)
        row.at[row.count++] = t.dim[i];
    return formula_reshape(&v->f, x, row);
}

ir_value scan_trajectory(struct vjp *v)
{
    union ir_attr attr = v->n->attr;

    if (attr.scan.save_trajectory)
        return v->y;
    attr.scan.save_trajectory = true;
    return formula_node(&v->f, RLX_OP_scan, v->n->in, v->n->in_count, &attr);
}

/* ---- by the ops for the backward pass ---- */

/* An operand that is the same in every step, as a sequence. */
static ir_value each_step(struct vjp *v, int32_t operand)
{
    ir_value row = scan_as_row(v, v->n->in[operand]);

    if (v->f.status != RLX_OK)
        return RLX_NO_VALUE;
    rlx_list all = formula_shape(formula_type(&v->f, row));
    all.at[0] = v->n->attr.scan.length;
    return formula_expand(&v->f, row, all);
}

static void give_by_op(struct vjp *v, int32_t operand, const ir_value *in, union ir_attr attr)
{
    rlx_op op = operand == 0 ? RLX_OP_scan_backward : RLX_OP_scan_backward_xs;
    struct grad_sub s;

    if (v->f.status == RLX_OK)
        v->f.status = need(&s, v->f.g, v->n, operand, v->f.diag);
    if (v->f.status == RLX_OK)
        v->f.status = grad_sub_build(&s, &attr.scan_backward.body_vjp, v->f.diag);
    attr.scan_backward.xs_idx = operand ? operand - 1 : 0;
    ir_value dx = formula_node(&v->f, op, in, v->n->in_count + 2, &attr);
    if (operand > 0 && operand <= v->n->attr.scan.num_bcast) /* the sum of what its steps give */
        dx = formula_reduce(&v->f, RLX_OP_reduce_sum, dx, rlx_list_of(1, (const int64_t[]){0}),
                            false);
    vjp_add(v, operand, dx);
}

static void by_ops(struct vjp *v)
{
    const struct attr_scan a = v->n->attr.scan;
    ir_value *in = scan_new_values(v, v->n->in_count + 2);
    union ir_attr attr;

    if (!in)
        return;
    in[0] = v->n->in[0];
    in[1] = scan_trajectory(v);
    in[2] = v->dy;
    for (int32_t i = 1; v->f.status == RLX_OK && i < v->n->in_count; i++)
        in[i + 2] = i <= a.num_bcast ? each_step(v, i) : v->n->in[i];
    attr_defaults(RLX_OP_scan_backward, &attr);
    attr.scan_backward.body = a.body;
    attr.scan_backward.length = a.length;
    attr.scan_backward.num_xs = a.num_bcast + a.num_xs;
    attr.scan_backward.save_trajectory = a.save_trajectory;
    attr.scan_backward.num_checkpoints = a.num_checkpoints;
    for (int32_t i = 0; i < v->n->in_count; i++)
        if (vjp_wanted(v, i))
            give_by_op(v, i, in, attr);
}

void vjp_scan(struct vjp *v)
{
    const struct attr_scan *a = &v->n->attr.scan;
    bool keeps_all = a->num_checkpoints == 0 || a->num_checkpoints == a->length;

    if (a->num_bcast == 0 || !keeps_all || !scan_backward_by_scans(v))
        by_ops(v);
}

/* ---- second derivatives: by the scan that a gradient belongs to, which keeps all carries then,
 * and the scans that its gradient is made of (scan_backward.c) ---- */

/* One for each step that the K kept rows hold: row k is the carry after step e_k, and e_k is
 * ceil((k + 1) length / K) - 1. */
static ir_value kept_steps(struct formula *f, int64_t length, int64_t kept)
{
    int64_t *step = arena_array(&f->g->mod->arena, int64_t, (size_t)kept);
    union ir_attr attr;

    if (!step) {
        f->status = diag_no_memory(f->diag, (size_t)kept * sizeof *step);
        return RLX_NO_VALUE;
    }
    for (int64_t k = 0; k < kept; k++) {
        int64_t whole = length / kept, rest = length % kept; /* (k + 1) length may not fit */
        step[k] = (k + 1) * whole + ((k + 1) * rest + kept - 1) / kept - 1;
    }
    attr_defaults(RLX_OP_const, &attr);
    attr.const_.dtype = RLX_DTYPE_i64;
    attr.const_.shape = RLX_LIST(kept);
    attr.const_.data = (struct ir_blob){step, (size_t)kept * sizeof *step};
    return formula_node(f, RLX_OP_const, NULL, 0, &attr);
}

/* The gradients of the carries after all steps, from those of the ones that were kept. */
static ir_value of_all_steps(struct formula *f, ir_value upstream,
                             const struct attr_scan_backward *a)
{
    const struct ir_type t = *formula_type(f, upstream);
    rlx_list flat = RLX_LIST(t.dim[0], rule_product(f, t.dim + 1, t.rank - 1));
    rlx_list all = formula_shape(&t);
    union ir_attr attr;

    if (a->num_checkpoints == 0 || a->num_checkpoints == a->length)
        return upstream;
    if (!dim_is_static(a->length)) {
        formula_fail(f, RLX_ERROR_NO_RULE,
                     "scan_backward has no gradient rule where only some carries of a symbolic "
                     "number of steps were yielded");
        return RLX_NO_VALUE;
    }
    const ir_value in[] = {formula_reshape(f, upstream, flat),
                           kept_steps(f, a->length, a->num_checkpoints)};
    attr_defaults(RLX_OP_scatter_add, &attr);
    attr.scatter_add.out_dim = all.at[0] = a->length;
    return formula_reshape(f, formula_node(f, RLX_OP_scatter_add, in, 2, &attr), all);
}

/* in: init, trajectory, upstream, xs. The trajectory is that of init and xs: what depends on it
 * depends on these. */
ir_value define_scan_backward(struct formula *f, const struct ir_node *n)
{
    const struct attr_scan_backward *a = &n->attr.scan_backward;
    int32_t count = n->in_count - 2;
    int32_t of = n->op == RLX_OP_scan_backward ? 0 : 1 + (int32_t)a->xs_idx;
    ir_value *in = arena_array(&f->g->mod->arena, ir_value, 2 * (size_t)count), *dx = in + count;
    bool *wanted = arena_array(&f->g->mod->arena, bool, (size_t)count);
    union ir_attr attr;

    if (!in || !wanted) {
        f->status = diag_no_memory(f->diag, 2 * (size_t)count * sizeof *in);
        return RLX_NO_VALUE;
    }
    in[0] = n->in[0];
    for (int32_t i = 1; i < count; i++)
        in[i] = n->in[i + 2];
    for (int32_t i = 0; i < count; i++)
        dx[i] = RLX_NO_VALUE;
    wanted[of] = true;
    ir_value upstream = n->in[2];
    if (a->save_trajectory)
        upstream = of_all_steps(f, upstream, a);
    attr_defaults(RLX_OP_scan, &attr);
    attr.scan.body = a->body;
    attr.scan.length = a->length;
    attr.scan.num_xs = count - 1;
    attr.scan.save_trajectory = a->save_trajectory;
    ir_value y = formula_node(f, RLX_OP_scan, in, count, &attr);
    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    const struct ir_node scan = *ir_node(f->g, y);
    struct vjp v = {*f, &scan, y, upstream, wanted, dx};
    if (!scan_backward_by_scans(&v))
        formula_fail(&v.f, RLX_ERROR_INTERNAL, "one gradient has one type");
    f->status = v.f.status;
    return dx[of];
}
