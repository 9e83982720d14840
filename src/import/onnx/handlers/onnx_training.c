/* onnx_training.c: steps of optimisers, and gradients, of ONNX's training preview.
 *
 * An optimiser takes the rate R, the number of steps T before this one, and lists of equal length:
 * all tensors X, then all their gradients G, then what it remembers of each. It gives the new X,
 * and the new memories in the same order. */
#include "autodiff/autodiff.h"
#include "base/str.h"
#include "import/onnx/read/onnx_build.h"
#include "import/onnx/read/onnx_scope.h"

struct update {
    struct onnx_call *c;
    struct formula *f;
    size_t count;         /* of tensors */
    ir_value rate, steps; /* scalars of the tensor's type */
    ir_value x, g;        /* g: with the norm's gradient */
    ir_value old[2];      /* what it remembers */
};

static ir_value times(struct update *u, ir_value a, ir_value b)
{
    return formula_2(u->f, RLX_OP_mul, a, b);
}

static ir_value scaled(struct update *u, ir_value a, double by)
{
    return times(u, a, formula_number(u->f, by));
}

static ir_value sum(struct update *u, ir_value a, ir_value b)
{
    return formula_2(u->f, RLX_OP_add, a, b);
}

/* `lists`: X, G and the memories. */
static bool begin(struct onnx_call *c, size_t lists, struct update *u)
{
    *u = (struct update){.c = c, .f = &c->f};
    if (c->in_count < 2 + lists || (c->in_count - 2) % lists) {
        formula_fail(&c->f, RLX_ERROR_FORMAT, "%zu inputs, not 2 plus a multiple of %zu",
                     c->in_count, lists);
        return false;
    }
    u->count = (c->in_count - 2) / lists;
    if (!dtype_is(onnx_type(c, 2)->dtype, CLASS_F))
        onnx_unsupported(c, "tensors that are not floats");
    return !onnx_failed(c);
}

static ir_value scalar(struct update *u, size_t i)
{
    return formula_reshape(u->f, formula_cast(u->f, onnx_in(u->c, i), u->f->dtype), RLX_EMPTY);
}

/* Tensor i and what goes with it, which is of the same type. */
static bool take(struct update *u, size_t i, size_t lists)
{
    struct onnx_call *c = u->c;
    const struct ir_type t = *onnx_type(c, 2 + i);

    for (size_t k = 1; k < lists; k++)
        if (!type_same(onnx_type(c, 2 + i + k * u->count), &t) && !onnx_failed(c))
            formula_fail(u->f, RLX_ERROR_SHAPE, "input %zu differs in type from input %zu",
                         2 + i + k * u->count, 2 + i);
    u->f->dtype = t.dtype;
    u->rate = scalar(u, 0);
    u->steps = scalar(u, 1);
    u->x = onnx_in(c, 2 + i);
    u->g =
        sum(u, scaled(u, u->x, onnx_float(c, "norm_coefficient", 0)), onnx_in(c, 2 + i + u->count));
    for (size_t k = 2; k < lists; k++)
        u->old[k - 2] = onnx_in(c, 2 + i + k * u->count);
    return !onnx_failed(c);
}

/* X less the rate times a direction. */
static ir_value moved(struct update *u, ir_value rate, ir_value along)
{
    return formula_2(u->f, RLX_OP_sub, u->x, times(u, rate, along));
}

/* b if there were steps before, otherwise a. */
static ir_value after_first(struct update *u, ir_value a, ir_value b)
{
    ir_value later = formula_2(u->f, RLX_OP_gt, u->steps, formula_number(u->f, 0));

    return formula_where(u->f, later, b, a);
}

void onnx_momentum(struct onnx_call *c)
{
    double alpha = onnx_float(c, "alpha", 0), beta = onnx_float(c, "beta", 0);
    rlx_str mode = onnx_text(c, "mode", "standard");
    bool nesterov = str_eq(mode, STR("nesterov"));
    struct update u;

    if (!nesterov && !str_eq(mode, STR("standard")))
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "mode \"%.*s\"", STR_ARG(mode));
    if (!begin(c, 3, &u))
        return;
    for (size_t i = 0; i < u.count && take(&u, i, 3); i++) {
        ir_value part = after_first(&u, formula_number(u.f, 1), formula_number(u.f, beta));
        ir_value v = sum(&u, scaled(&u, u.old[0], alpha), times(&u, part, u.g));
        onnx_give(c, i, moved(&u, u.rate, nesterov ? sum(&u, u.g, scaled(&u, v, alpha)) : v));
        onnx_give(c, u.count + i, v);
    }
}

void onnx_adagrad(struct onnx_call *c)
{
    double epsilon = onnx_float(c, "epsilon", 1e-6), decay = onnx_float(c, "decay_factor", 0);
    struct update u;

    if (!begin(c, 3, &u))
        return;
    for (size_t i = 0; i < u.count && take(&u, i, 3); i++) {
        ir_value rate =
            formula_2(u.f, RLX_OP_div, u.rate, onnx_plus(u.f, scaled(&u, u.steps, decay), 1));
        ir_value h = sum(&u, u.old[0], times(&u, u.g, u.g));
        ir_value over = onnx_plus(u.f, formula_1(u.f, RLX_OP_sqrt, h), epsilon);
        onnx_give(c, i, moved(&u, rate, formula_2(u.f, RLX_OP_div, u.g, over)));
        onnx_give(c, u.count + i, h);
    }
}

/* The rate, made up for averages that began at zero. */
static ir_value adam_rate(struct update *u, double alpha, double beta)
{
    struct formula *f = u->f;
    ir_value one = formula_number(f, 1);
    ir_value v = formula_2(f, RLX_OP_pow, formula_number(f, alpha), u->steps);
    ir_value h = formula_2(f, RLX_OP_pow, formula_number(f, beta), u->steps);

    h = formula_1(f, RLX_OP_sqrt, formula_2(f, RLX_OP_sub, one, h));
    v = formula_2(f, RLX_OP_sub, one, v);
    return after_first(u, u->rate, times(u, u->rate, formula_2(f, RLX_OP_div, h, v)));
}

void onnx_adam(struct onnx_call *c)
{
    double alpha = onnx_float(c, "alpha", 0.9), beta = onnx_float(c, "beta", 0.999);
    double epsilon = onnx_float(c, "epsilon", 1e-6);
    double post = onnx_float(c, "norm_coefficient_post", 0);
    struct update u;

    if (!begin(c, 4, &u))
        return;
    for (size_t i = 0; i < u.count && take(&u, i, 4); i++) {
        ir_value v = sum(&u, scaled(&u, u.old[0], alpha), scaled(&u, u.g, 1 - alpha));
        ir_value h = sum(&u, scaled(&u, u.old[1], beta), scaled(&u, times(&u, u.g, u.g), 1 - beta));
        ir_value over = onnx_plus(u.f, formula_1(u.f, RLX_OP_sqrt, h), epsilon);
        ir_value along = formula_2(u.f, RLX_OP_div, v, over);
        onnx_give(c, i, onnx_times(u.f, moved(&u, adam_rate(&u, alpha, beta), along), 1 - post));
        onnx_give(c, u.count + i, v);
        onnx_give(c, 2 * u.count + i, h);
    }
}

/* ---- Gradient ---- */

/* The tensor of that name as a node of the graph; it must be worked out when the graph runs, since
 * what is known at load has lost where it came from. */
static ir_value named(struct onnx_call *c, rlx_str name)
{
    struct onnx_value *v = onnx_find(c->im, c->scope, name);

    if (!v || v->failed || v->is_sequence || v->is_absent)
        formula_fail(&c->f, RLX_ERROR_FORMAT, "there is no tensor \"%.*s\" before it",
                     STR_ARG(name));
    else if (v->data || v->size)
        onnx_unsupported(c, "the gradient of, or for, \"%.*s\", which is known at load",
                         STR_ARG(name));
    else if (!dtype_is(v->type.dtype, CLASS_F))
        onnx_unsupported(c, "\"%.*s\" is not a tensor of floats", STR_ARG(name));
    return onnx_failed(c) ? RLX_NO_VALUE : v->node;
}

void onnx_gradient(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct onnx_attr *xs = onnx_attr(c, "xs");
    size_t count = xs ? xs->strings.count : 0;
    ir_value out = named(c, onnx_text(c, "y", ""));
    ir_value *wrt = arena_array(onnx_arena(c), ir_value, count);
    ir_value *dx = arena_array(onnx_arena(c), ir_value, count);

    if (!wrt || !dx) {
        f->status = diag_no_memory(f->diag, count * sizeof *wrt);
        return;
    }
    if (count == 0 || count > c->in_count || c->out_count > count)
        formula_fail(f, RLX_ERROR_FORMAT, "gradients for %zu tensors of %zu", count, c->in_count);
    for (size_t i = 0; i < count && !onnx_failed(c); i++) {
        wrt[i] = named(c, xs->strings.at[i]);
        if (!onnx_failed(c) && (!onnx_has(c, i) || onnx_in(c, i) != wrt[i]))
            onnx_unsupported(c, "a gradient in a different place than the graph");
    }
    if (onnx_failed(c))
        return;
    const struct ir_type type = *formula_type(f, out);
    ir_value dy = formula_fill(f, &type, 1);
    if (onnx_failed(c))
        return;
    f->status = grad_walk(f->g, 0, out, dy, wrt, count, dx, f->diag);
    for (size_t i = 0; i < count && !onnx_failed(c); i++) {
        const struct ir_type t = *formula_type(f, wrt[i]);
        onnx_give(c, i, dx[i] == RLX_NO_VALUE ? formula_fill(f, &t, 0) : dx[i]);
    }
}
