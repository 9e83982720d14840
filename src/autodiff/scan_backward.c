/* scan_backward.c: the gradients of a scan by ordinary scans, from the last step to the first, in
 * which weights stay weights.
 *
 *     carries    E[t], the gradient of the carry after step t, from that after the next one
 *     parts      from E[t], side by side in a row per step: gradients of slices, small weights'
 *                gradients, and of a weight's gradient that is a product a^T b its two factors: the
 *                sum over the steps of a[t]^T b[t] is one product of what lies under one another
 *     sums       a weight's gradient that is neither, added up as it comes; one scan for each
 */
#include "autodiff/scan_backward.h"

#include "autodiff/sub_graph.h"
#include "pass/pass.h"

/* What the scans run over: operands as they are where they stay the same, otherwise from the last
 * step to the first. */
struct scan_walk {
    struct vjp *v;
    int32_t bcasts;
    ir_value before;   /* the carries before each step */
    ir_value upstream; /* the gradients of the carries after each step, where they are given */
    ir_value after;    /* the same with all that comes back from later steps: E */
    ir_value *operand; /* the others, from 1 */
};

/* first and then rows. */
static ir_value prepended(struct vjp *v, ir_value first, ir_value rows)
{
    const ir_value part[] = {scan_as_row(v, first), rows};

    return formula_concat(&v->f, part, 2, 0);
}

/* The same without the last row: what each step begins with. */
static ir_value shifted(struct vjp *v, ir_value first, ir_value rows)
{
    return formula_narrow(&v->f, prepended(v, first, rows), 0, 0, v->n->attr.scan.length);
}

static ir_value sum_steps(struct formula *f, ir_value x)
{
    return formula_reduce(f, RLX_OP_reduce_sum, x, rlx_list_of(1, (const int64_t[]){0}), false);
}

/* ---- bodies ---- */

/* An input of a body that is like v, or like a step of it. */
static ir_value add_input(struct formula *step, const struct ir_graph *g, ir_value v, bool slice)
{
    ir_value in = RLX_NO_VALUE;

    if (step->status != RLX_OK)
        return RLX_NO_VALUE;
    const struct ir_type t = *ir_type_of(g, v);
    step->status =
        sub_input(step->g, t.dtype, rlx_list_of(t.rank - slice, t.dim + slice), &in, step->diag);
    return in;
}

/* A body's inputs after its carry: what stays the same, the carry before, slices, and the gradient
 * that comes with the step (RLX_NO_VALUE: none). in[]: those of the old body. */
static ir_value add_inputs(struct formula *step, const struct scan_walk *w, ir_value gradient,
                           ir_value *in)
{
    const struct ir_graph *outer = w->v->f.g;

    for (int32_t i = 1; i <= w->bcasts; i++)
        in[i] = add_input(step, outer, w->operand[i], false);
    in[0] = add_input(step, outer, w->before, true);
    for (int32_t i = 1 + w->bcasts; i < w->v->n->in_count; i++)
        in[i] = add_input(step, outer, w->operand[i], true);
    return gradient == RLX_NO_VALUE ? RLX_NO_VALUE : add_input(step, outer, gradient, true);
}

/* Appends the old body, and its gradients for wrt[] from d, the gradient of its carry; zeros where
 * nothing flows. */
static void add_gradients(struct formula *step, const struct scan_walk *w, const ir_value *in,
                          ir_value d, const ir_value *wrt, size_t count, ir_value *dx)
{
    const struct ir_graph *body = scan_body(w->v->f.g, w->v->n);
    ir_value first = (ir_value)step->g->node.len, out;

    if (step->status == RLX_OK)
        step->status = pass_append_graph(step->g, body, in, &out, step->diag);
    if (step->status == RLX_OK)
        step->status = grad_walk(step->g, first, out, d, wrt, count, dx, step->diag);
    for (size_t i = 0; step->status == RLX_OK && i < count; i++)
        if (dx[i] == RLX_NO_VALUE) {
            const struct ir_type t = *formula_type(step, wrt[i]);
            dx[i] = formula_fill(step, &t, 0);
        }
}

static rlx_status new_body(const struct scan_walk *w, struct ir_graph **out)
{
    struct ir_module *m = w->v->f.g->mod;
    const char *name =
        arena_printf(&m->arena, "%.*s_back", STR_ARG(scan_body(w->v->f.g, w->v->n)->name));

    if (!name)
        return diag_no_memory(w->v->f.diag, 0);
    return ir_graph_add(m, ir_free_graph_name(m, rlx_cstr(name)), out, w->v->f.diag);
}

/* A scan of that body: from `carry`, with `gradient` as the last sequence, if there is one. */
static ir_value run_body(const struct scan_walk *w, const struct ir_graph *body, ir_value carry,
                         ir_value gradient, bool all)
{
    struct vjp *v = w->v;
    ir_value *in = scan_new_values(v, v->n->in_count + 2);
    int32_t count = 0;
    union ir_attr attr = v->n->attr;

    if (!in)
        return RLX_NO_VALUE;
    in[count++] = carry;
    for (int32_t i = 1; i <= w->bcasts; i++)
        in[count++] = w->operand[i];
    in[count++] = w->before;
    for (int32_t i = 1 + w->bcasts; i < v->n->in_count; i++)
        in[count++] = w->operand[i];
    if (gradient != RLX_NO_VALUE)
        in[count++] = gradient;
    attr.scan.body = body ? body->id : 0;
    attr.scan.num_xs = count - 1 - w->bcasts;
    attr.scan.save_trajectory = all;
    attr.scan.num_checkpoints = 0;
    return formula_node(&v->f, RLX_OP_scan, in, count, &attr);
}

/* ---- carries ---- */

static ir_value chain(const struct scan_walk *w, ir_value last)
{
    struct vjp *v = w->v;
    ir_value *in = scan_new_values(v, v->n->in_count), dx = RLX_NO_VALUE;
    struct ir_graph *g = NULL;

    if (v->f.status == RLX_OK)
        v->f.status = new_body(w, &g);
    if (v->f.status != RLX_OK)
        return RLX_NO_VALUE;
    struct formula step = {.g = g, .diag = v->f.diag};
    ir_value now = add_input(&step, v->f.g, last, false);
    ir_value d = add_inputs(&step, w, w->upstream, in);
    d = d == RLX_NO_VALUE ? now : formula_2(&step, RLX_OP_add, now, d);
    add_gradients(&step, w, in, d, in, 1, &dx);
    v->f.status = step.status == RLX_OK ? ir_add_output(g, dx, v->f.diag) : step.status;
    return run_body(w, g, last, w->upstream, true);
}

/* E, and the gradient of the first carry where it is wanted. */
static void find_carries(struct scan_walk *w)
{
    struct vjp *v = w->v;
    const struct ir_type carry = *vjp_type(v, 0);
    ir_value last = v->dy;

    if (v->n->attr.scan.save_trajectory) {
        w->upstream = formula_reverse(&v->f, v->dy, 0);
        last = formula_fill(&v->f, &carry, 0);
    }
    ir_value rows = chain(w, last);
    w->after = shifted(v, last, rows);
    if (w->upstream != RLX_NO_VALUE)
        w->after = formula_2(&v->f, RLX_OP_add, w->after, w->upstream);
    if (vjp_wanted(v, 0)) { /* of no steps: the initial carry */
        ir_value all = prepended(v, last, rows);
        ir_value first = formula_narrow(&v->f, all, 0, v->n->attr.scan.length, 1);
        vjp_add(v, 0, formula_reshape(&v->f, first, formula_shape(&carry)));
    }
}

/* ---- sums ---- */

/* Of many steps, which are not left to a narrow type. */
static void give_sum(const struct scan_walk *w, int32_t operand)
{
    struct vjp *v = w->v;
    ir_value *in = scan_new_values(v, v->n->in_count), dx = RLX_NO_VALUE;
    struct ir_type t = *vjp_type(v, operand);
    struct ir_graph *g = NULL;

    t.dtype = formula_dtype(t.dtype);
    ir_value zero = formula_fill(&v->f, &t, 0);
    if (v->f.status == RLX_OK)
        v->f.status = new_body(w, &g);
    if (v->f.status != RLX_OK)
        return;
    struct formula step = {.g = g, .diag = v->f.diag};
    ir_value now = add_input(&step, v->f.g, zero, false);
    ir_value d = add_inputs(&step, w, w->after, in);
    add_gradients(&step, w, in, d, &in[operand], 1, &dx);
    ir_value next = formula_2(&step, RLX_OP_add, now, formula_cast(&step, dx, t.dtype));
    v->f.status = step.status == RLX_OK ? ir_add_output(g, next, v->f.diag) : step.status;
    vjp_add(v, operand, run_body(w, g, zero, w->after, false));
}

/* ---- parts ---- */

struct part {
    int32_t operand;
    ir_value value;      /* in the body */
    struct ir_type type; /* of it */
    ir_dim at, count;    /* where it lies in a row */
};

struct parts {
    struct part *at;
    int32_t count;
    ir_dim width; /* of a row */
    rlx_dtype dtype;
    bool *is_sum; /* by operand: it is not a part, but added up */
};

static ir_dim elements(const struct ir_module *m, const struct ir_type *t)
{
    ir_dim count = 1;

    for (int32_t i = 0; i < t->rank; i++)
        count = dim_mul(m->dims, count, t->dim[i]);
    return count;
}

static void add_part(struct formula *step, struct parts *p, int32_t operand, ir_value value)
{
    struct part *part = &p->at[p->count];

    if (step->status != RLX_OK)
        return;
    const struct ir_type t = *formula_type(step, value);
    *part = (struct part){operand, RLX_NO_VALUE, t, p->width, elements(step->g->mod, &t)};
    value = formula_reshape(step, value, rlx_list_of(1, &part->count));
    part->value = formula_cast(step, value, p->dtype);
    p->width = dim_add(step->g->mod->dims, p->width, part->count);
    p->count++;
}

/* Is v a product of two matrices that together are smaller than it? */
static bool is_thin_product(const struct ir_graph *g, ir_value v)
{
    const struct ir_node *n = ir_node(g, v);
    int64_t whole, a, b;

    if (n->op != RLX_OP_matmul || ir_type_of(g, n->in[0])->rank != 2 ||
        ir_type_of(g, n->in[1])->rank != 2)
        return false;
    if (!type_count(&n->type, &whole) || !type_count(ir_type_of(g, n->in[0]), &a) ||
        !type_count(ir_type_of(g, n->in[1]), &b))
        return true; /* not known */
    return a + b < whole;
}

/* Both factors, with the axis that is summed over first. */
static void add_factors(struct formula *step, struct parts *p, int32_t operand, ir_value product)
{
    const struct ir_node n = *ir_node(step->g, product);
    bool ta = n.attr.matmul.transpose_a, tb = n.attr.matmul.transpose_b;

    add_part(step, p, operand, ta ? n.in[0] : formula_swap(step, n.in[0]));
    add_part(step, p, operand, tb ? formula_swap(step, n.in[1]) : n.in[1]);
}

/* A weight whose gradients of all steps are worth keeping: no more than its carry is. */
static bool is_small(const struct scan_walk *w, int32_t operand)
{
    int64_t count, carry;

    if (!type_count(vjp_type(w->v, operand), &count) || !type_count(vjp_type(w->v, 0), &carry))
        return vjp_type(w->v, operand)->rank <= 1;
    return count <= carry;
}

static void find_parts(struct formula *step, const struct scan_walk *w, struct parts *p)
{
    struct vjp *v = w->v;
    ir_value *in = scan_new_values(v, v->n->in_count), *wrt = scan_new_values(v, v->n->in_count);
    ir_value *dx = scan_new_values(v, v->n->in_count);
    size_t count = 0;

    if (!in || !wrt || !dx)
        return;
    ir_value d = add_inputs(step, w, w->after, in);
    for (int32_t i = 1; i < v->n->in_count; i++)
        if (vjp_wanted(v, i))
            wrt[count++] = in[i];
    add_gradients(step, w, in, d, wrt, count, dx);
    count = 0;
    for (int32_t i = 1; step->status == RLX_OK && i < v->n->in_count; i++) {
        if (!vjp_wanted(v, i))
            continue;
        ir_value found = dx[count++];
        if (i <= w->bcasts && is_thin_product(step->g, found))
            add_factors(step, p, i, found);
        else if (i > w->bcasts || is_small(w, i))
            add_part(step, p, i, found);
        else
            p->is_sum[i] = true;
    }
}

/* The body of the scan for them: a graph with their inputs after a carry, which is as wide as they
 * are together and so known only now. */
static ir_value run_parts(const struct scan_walk *w, struct ir_graph *plan, const struct parts *p)
{
    struct vjp *v = w->v;
    int32_t inputs = v->n->in_count + 1;
    ir_value *in = scan_new_values(v, inputs), *part = scan_new_values(v, p->count);
    ir_value out = RLX_NO_VALUE;
    const struct ir_type row = {.dtype = p->dtype, .rank = 1, .dim = {p->width}};
    struct formula on_plan = {.g = plan, .diag = v->f.diag};
    struct ir_graph *g = NULL;

    ir_value zero = formula_fill(&v->f, &row, 0);
    for (int32_t i = 0; part && i < p->count; i++)
        part[i] = p->at[i].value;
    if (v->f.status == RLX_OK)
        out = formula_concat(&on_plan, part, p->count, 0);
    if (v->f.status == RLX_OK)
        v->f.status = on_plan.status;
    if (v->f.status == RLX_OK)
        v->f.status = ir_add_output(plan, out, v->f.diag);
    if (v->f.status == RLX_OK)
        v->f.status = new_body(w, &g);
    if (v->f.status != RLX_OK)
        return RLX_NO_VALUE;
    struct formula step = {.g = g, .diag = v->f.diag};
    add_input(&step, v->f.g, zero, false);
    add_inputs(&step, w, w->after, in);
    for (int32_t i = 0; i < inputs; i++)
        in[i] = 1 + i; /* after the carry, in the order of the plan's */
    if (step.status == RLX_OK)
        step.status = pass_append_graph(g, plan, in, &out, v->f.diag);
    v->f.status = step.status == RLX_OK ? ir_add_output(g, out, v->f.diag) : step.status;
    return run_body(w, g, zero, w->after, true);
}

/* Part i of all steps, [steps, count]. */
static ir_value column(struct vjp *v, ir_value rows, const struct part *p)
{
    return formula_narrow(&v->f, rows, 1, p->at, p->count);
}

/* A factor's matrices of all steps under one another. */
static ir_value stacked(struct vjp *v, ir_value rows, const struct part *p)
{
    const int64_t shape[] = {dim_mul(v->f.g->mod->dims, v->n->attr.scan.length, p->type.dim[0]),
                             p->type.dim[1]};

    return formula_reshape(&v->f, column(v, rows, p), rlx_list_of(2, shape));
}

static void give_parts(const struct scan_walk *w, ir_value rows, const struct parts *p)
{
    struct vjp *v = w->v;

    for (int32_t i = 0; v->f.status == RLX_OK && i < p->count; i++) {
        const struct part *part = &p->at[i];
        const struct ir_type t = *vjp_type(v, part->operand);
        ir_value dx;
        if (i + 1 < p->count && part[1].operand == part->operand) {
            dx = formula_matmul(&v->f, stacked(v, rows, part), stacked(v, rows, part + 1), true,
                                false);
            i++;
        } else if (part->operand <= w->bcasts) {
            dx = sum_steps(&v->f, column(v, rows, part));
        } else {
            dx = column(v, rows, part);
        }
        dx = formula_reshape(&v->f, dx, formula_shape(&t));
        vjp_add(v, part->operand, part->operand <= w->bcasts ? dx : formula_reverse(&v->f, dx, 0));
    }
}

/* ---- all of it ---- */

static void drop_plan(struct ir_graph *plan)
{
    struct ir_module *m = plan->mod;
    size_t kept = 0;

    for (size_t i = 0; i < m->check.len; i++) /* of a graph that was not made */
        if (m->check.at[i].graph != plan->id)
            m->check.at[kept++] = m->check.at[i];
    m->check.len = kept;
    vec_free(m->mem, &plan->node);
    vec_free(m->mem, &plan->output);
    vec_free(m->mem, &plan->written);
    map_free(&plan->leaves);
}

static void give_others(const struct scan_walk *w, rlx_dtype dtype)
{
    struct vjp *v = w->v;
    struct ir_module *m = v->f.g->mod;
    struct parts p = {.dtype = dtype};
    struct ir_graph plan = {.mod = m, .id = -1, .name = STR("plan")};
    struct formula step = {.g = &plan, .diag = v->f.diag};

    p.at = arena_array(&m->arena, struct part, 2 * (size_t)v->n->in_count);
    p.is_sum = arena_array(&m->arena, bool, (size_t)v->n->in_count);
    if (!p.at || !p.is_sum) {
        v->f.status = diag_no_memory(v->f.diag, 2 * (size_t)v->n->in_count * sizeof *p.at);
        return;
    }
    map_init(&plan.leaves, m->mem);
    find_parts(&step, w, &p);
    if (v->f.status == RLX_OK)
        v->f.status = step.status;
    if (p.count > 0 && v->f.status == RLX_OK)
        give_parts(w, run_parts(w, &plan, &p), &p);
    drop_plan(&plan);
    for (int32_t i = 1; v->f.status == RLX_OK && i < v->n->in_count; i++)
        if (p.is_sum[i])
            give_sum(w, i);
}

/* The type that holds all gradients; false: there is none. */
static bool common_dtype(const struct vjp *v, rlx_dtype *out)
{
    bool has_complex = false, has_real = false;

    *out = RLX_DTYPE_f32;
    for (int32_t i = 1; i < v->n->in_count; i++) {
        rlx_dtype t = vjp_type(v, i)->dtype;
        if (!vjp_wanted(v, i))
            continue;
        has_complex |= t == RLX_DTYPE_c64;
        has_real |= t != RLX_DTYPE_c64;
        if (t == RLX_DTYPE_f64 || t == RLX_DTYPE_c64)
            *out = t;
    }
    return !(has_complex && has_real);
}

bool scan_backward_by_scans(struct vjp *v)
{
    const struct attr_scan a = v->n->attr.scan;
    struct scan_walk w = {.v = v, .bcasts = (int32_t)a.num_bcast, .upstream = RLX_NO_VALUE};
    rlx_dtype dtype;
    bool others = false;

    if (!common_dtype(v, &dtype))
        return false;
    w.operand = scan_new_values(v, v->n->in_count);
    if (!w.operand)
        return true;
    w.before = formula_reverse(&v->f, shifted(v, v->n->in[0], scan_trajectory(v)), 0);
    for (int32_t i = 1; i < v->n->in_count; i++) {
        w.operand[i] = i <= w.bcasts ? v->n->in[i] : formula_reverse(&v->f, v->n->in[i], 0);
        others |= vjp_wanted(v, i);
    }
    find_carries(&w);
    if (others && v->f.status == RLX_OK)
        give_others(&w, dtype);
    return true;
}
