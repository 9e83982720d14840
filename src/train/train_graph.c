/* train_graph.c: rlx_train_graph. What is appended, in order:
 *
 *     gradients        of the loss, or of the loss times a factor
 *     sums             of gradients over several runs, if an update takes several
 *     their length     and whether all of it is finite; from it, what gradients are multiplied by
 *     counters         what they are for this run, and what they will be for the next
 *     updates          param by param
 *
 * What reads the old content of a state stands before its writer. */
#include <math.h>

#include "base/str.h"
#include "graph/builder.h"
#include "rlx/autodiff.h"
#include "train/train.h"

/* ---- pieces ---- */

rlx_value train_number(rlx_graph *g, rlx_value like, double v)
{
    return rlx_reshape(g, rlx_scalar(g, like, v), RLX_LIST(1));
}

rlx_value train_state(struct train *t, const char *prefix, const struct train_param *p)
{
    struct text name;

    text_init(&name, t->mem);
    text_addf(&name, "%s:%.*s", prefix, STR_ARG(p->name));
    if (name.failed)
        build_fail(t->g, RLX_ERROR_MEMORY, "out of memory for the name of a state");
    rlx_value v = name.failed ? RLX_NO_VALUE : rlx_state(t->g, name.at, p->wide, p->shape);
    text_free(&name);
    return v;
}

void train_write(struct train *t, rlx_value state, rlx_value content)
{
    rlx_value first = rlx_const(t->g, RLX_DTYPE_i32, RLX_EMPTY, &(int32_t){0}, sizeof(int32_t));
    struct text label;

    if (state == RLX_NO_VALUE || content == RLX_NO_VALUE)
        return; /* the graph has the failure */
    text_init(&label, t->mem);
    text_addf(&label, "%.*s.new", STR_ARG(ir_leaf_name(ir_node(t->g->g, state))));
    if (label.failed)
        build_fail(t->g, RLX_ERROR_MEMORY, "out of memory for a label");
    else
        rlx_label(t->g, content, label.at);
    text_free(&label);
    rlx_cache_append(t->g, state, content, first, 0);
}

static rlx_value both(rlx_graph *g, rlx_value a, rlx_value b)
{
    return rlx_where(g, a, b, a); /* a, if it is false */
}

static rlx_value pair(rlx_graph *g, rlx_value a, rlx_value b)
{
    return rlx_concat(g, (const rlx_value[]){a, b}, 2, 0);
}

static rlx_value part(rlx_graph *g, rlx_value pair, int64_t i)
{
    return rlx_narrow(g, pair, 0, i, 1);
}

static rlx_value is_finite(rlx_graph *g, rlx_value x)
{
    return rlx_le(g, rlx_abs(g, x), train_number(g, x, TRAIN_F32_MAX));
}

/* c where cond (bool[1]) holds, else x. */
static rlx_value unless(rlx_graph *g, rlx_value x, rlx_value cond, double c)
{
    return rlx_where(g, cond, train_number(g, x, c), x);
}

static rlx_value plus_one_if(rlx_graph *g, rlx_value x, rlx_value cond)
{
    return rlx_where(g, cond, rlx_add(g, x, train_number(g, x, 1)), x);
}

/* ---- the states that belong to no param ---- */

/* What they are in this run, each with one element. */
struct counters {
    rlx_value step, run, loss, bad, scale; /* the states; RLX_NO_VALUE: there is no such */
    rlx_value number;                      /* of updates so far, f32 */
    rlx_value first, last;                 /* bool: of the runs to an update; always if none */
    rlx_value factor;                      /* of the loss */
    rlx_value loss_now;                    /* f32[1] */
    rlx_value fine;                        /* bool: no run was bad so far, nor is this one */
    rlx_value overflow;                    /* bool: only the factor was too large */
};

static rlx_value counter(rlx_graph *g, const char *name, rlx_dtype dtype, int64_t n)
{
    return rlx_state(g, name, dtype, RLX_LIST(n));
}

static void open_counters(struct train *t, struct counters *c)
{
    rlx_graph *g = t->g;

    *c = (struct counters){.step = counter(g, "train.step", RLX_DTYPE_i32, 1),
                           .loss = counter(g, "train.loss", RLX_DTYPE_f32, 2),
                           .bad = counter(g, "train.bad", RLX_DTYPE_i32, 2),
                           .run = RLX_NO_VALUE,
                           .scale = RLX_NO_VALUE,
                           .first = RLX_NO_VALUE,
                           .last = RLX_NO_VALUE,
                           .factor = RLX_NO_VALUE,
                           .overflow = RLX_NO_VALUE};
    c->number = rlx_cast(g, c->step, RLX_DTYPE_f32);
    if (t->desc->accumulate > 1) {
        c->run = counter(g, "train.run", RLX_DTYPE_i32, 1);
        c->first = rlx_eq(g, c->run, train_number(g, c->run, 0));
        c->last = rlx_ge(g, c->run, train_number(g, c->run, t->desc->accumulate - 1));
    }
    if (t->desc->loss_scale > 0) {
        c->scale = counter(g, "train.scale", RLX_DTYPE_f32, 2);
        rlx_value now = part(g, c->scale, 0);
        c->factor =
            unless(g, now, rlx_le(g, now, train_number(g, now, 0)), (double)t->desc->loss_scale);
    }
}

/* Only after so many updates that went well does the factor grow. */
static void write_scale(struct train *t, const struct counters *c)
{
    rlx_graph *g = t->g;
    rlx_value good = plus_one_if(g, part(g, c->scale, 1), t->now.apply), now = c->factor;
    rlx_value grows = rlx_ge(g, good, train_number(g, good, t->desc->loss_scale_steps));
    rlx_value halved = rlx_mul(g, now, train_number(g, now, 0.5));
    rlx_value doubled = rlx_mul(g, now, train_number(g, now, 2));

    now = rlx_where(g, c->overflow, halved, rlx_where(g, grows, doubled, now));
    good = unless(g, good, c->overflow, 0);
    train_write(t, c->scale, pair(g, now, unless(g, good, grows, 0)));
}

static void write_counters(struct train *t, const struct counters *c)
{
    rlx_graph *g = t->g;
    rlx_value one = train_number(g, c->loss_now, 1), bad = part(g, c->bad, 0);
    rlx_value was_fine = rlx_eq(g, bad, train_number(g, bad, 0)), run;

    train_write(t, c->loss, rlx_add(g, c->loss, pair(g, c->loss_now, one)));
    train_write(t, c->bad,
                pair(g, rlx_where(g, c->fine, bad, rlx_add(g, bad, train_number(g, bad, 1))),
                     rlx_where(g, was_fine, c->step, part(g, c->bad, 1))));
    if (c->run != RLX_NO_VALUE) { /* a bad run does not count */
        run = unless(g, rlx_add(g, c->run, train_number(g, c->run, 1)), c->last, 0);
        train_write(t, c->run, rlx_where(g, c->fine, run, c->run));
    }
    if (c->scale != RLX_NO_VALUE)
        write_scale(t, c);
    train_write(t, c->step, plus_one_if(g, c->step, t->now.apply));
}

/* ---- gradients ---- */

static rlx_status differentiate(struct train *t, rlx_value loss)
{
    const rlx_allocator *mem = t->mem;
    size_t bytes = t->count * sizeof(rlx_value);
    rlx_value *wrt = mem_alloc(mem, bytes), *out = mem_alloc(mem, bytes);
    rlx_error err = {0};
    rlx_status s = RLX_OK;

    if (!wrt || !out)
        s = diag_no_memory(t->diag, bytes);
    for (size_t i = 0; s == RLX_OK && i < t->count; i++)
        wrt[i] = t->param[i].leaf;
    if (s == RLX_OK && rlx_gradient(t->g, loss, wrt, t->count, out, &err) != RLX_OK)
        s = diag_again(t->diag, &err, err.status);
    for (size_t i = 0; s == RLX_OK && i < t->count; i++)
        t->param[i].grad = rlx_cast(t->g, out[i], t->param[i].wide);
    mem_free(mem, wrt, bytes);
    mem_free(mem, out, bytes);
    return s;
}

/* The sum so far takes the place of each gradient, and is kept. After a run that is left out, it is
 * left as it was. */
static void accumulate(struct train *t, const struct counters *c, rlx_value fine)
{
    rlx_graph *g = t->g;

    for (size_t i = 0; i < t->count; i++) {
        struct train_param *p = &t->param[i];
        rlx_value sum = train_state(t, "train.grad", p);
        rlx_value now = rlx_where(g, c->first, p->grad, rlx_add(g, sum, p->grad));
        now = rlx_where(g, fine, now, sum);
        train_write(t, sum, now);
        p->grad = now;
    }
}

/* The sum of the squares of all gradients, f32[1]. */
static rlx_value square_of_all(struct train *t)
{
    rlx_graph *g = t->g;
    rlx_value all = RLX_NO_VALUE;

    for (size_t i = 0; i < t->count; i++) {
        rlx_value row = rlx_reshape(g, t->param[i].grad, RLX_LIST(RLX_DIM_INFER));
        rlx_value sum = rlx_reduce_sum(g, rlx_mul(g, row, row), RLX_LIST(0), true);
        sum = rlx_cast(g, sum, RLX_DTYPE_f32);
        all = i == 0 ? sum : rlx_add(g, all, sum);
    }
    return all;
}

/* ---- all together ---- */

/* 1 - b^t for t = number + 1: e^x - 1 is tanh(x / 2) (e^x + 1), where nothing is lost for small
 * x. */
static rlx_value unbias(rlx_graph *g, rlx_value number, double b)
{
    rlx_value t = rlx_add(g, number, train_number(g, number, 1));
    rlx_value x = rlx_mul(g, t, train_number(g, t, b > 0 ? log(b) : -100));
    rlx_value half = rlx_tanh(g, rlx_mul(g, x, train_number(g, x, -0.5)));

    return rlx_mul(g, half, rlx_add(g, rlx_exp(g, x), train_number(g, x, 1)));
}

static void show(rlx_graph *g, rlx_value v, const char *label)
{
    v = rlx_reshape(g, v, RLX_EMPTY);
    rlx_label(g, v, label);
    rlx_output(g, v);
}

/* What gradients are divided by before they are the mean's. */
static rlx_value divisor(struct train *t, const struct counters *c)
{
    rlx_graph *g = t->g;
    double runs = t->desc->accumulate;

    if (c->factor != RLX_NO_VALUE)
        return runs > 1 ? rlx_mul(g, c->factor, train_number(g, c->factor, runs)) : c->factor;
    return runs > 1 ? train_number(g, c->loss_now, runs) : RLX_NO_VALUE;
}

/* The length of the gradients, as they are used but for clipping; and what they are then multiplied
 * by. */
static rlx_value measure(struct train *t, const struct counters *c, rlx_value square)
{
    rlx_graph *g = t->g;
    rlx_value length = rlx_sqrt(g, square), by = divisor(t, c), clip;

    t->now.factor = RLX_NO_VALUE;
    if (by != RLX_NO_VALUE) {
        t->now.factor = rlx_recip(g, by);
        length = rlx_div(g, length, by);
    }
    if (t->desc->clip_norm > 0) {
        clip = rlx_add(g, length, train_number(g, length, 1e-6));
        clip = rlx_div(g, train_number(g, clip, (double)t->desc->clip_norm), clip);
        clip = rlx_min(g, clip, train_number(g, clip, 1));
        t->now.factor = by == RLX_NO_VALUE ? clip : rlx_mul(g, t->now.factor, clip);
    }
    return length;
}

/* Is there an update, are the numbers fine? */
static void judge(struct train *t, struct counters *c, rlx_value square)
{
    rlx_graph *g = t->g;
    rlx_value bad = part(g, c->bad, 0), was_fine = rlx_eq(g, bad, train_number(g, bad, 0));
    rlx_value loss_fine = is_finite(g, c->loss_now), all_fine = is_finite(g, square);

    if (c->scale == RLX_NO_VALUE) {
        c->fine = both(g, was_fine, both(g, loss_fine, all_fine));
        t->now.apply = c->fine;
    } else { /* gradients that overflow are part of the game */
        c->fine = both(g, was_fine, loss_fine);
        t->now.apply = both(g, c->fine, all_fine);
        c->overflow = both(g, c->fine, rlx_not(g, all_fine));
    }
    if (c->last != RLX_NO_VALUE)
        t->now.apply = both(g, t->now.apply, c->last);
}

static rlx_value scaled_loss(rlx_graph *g, const struct counters *c, rlx_value loss)
{
    if (c->factor == RLX_NO_VALUE)
        return loss;
    return rlx_reshape(g, rlx_mul(g, rlx_cast(g, loss, RLX_DTYPE_f32), c->factor), RLX_EMPTY);
}

static rlx_status append(struct train *t, rlx_value loss)
{
    rlx_graph *g = t->g;
    const rlx_train_desc *desc = t->desc;
    struct counters c;

    open_counters(t, &c);
    TRY(differentiate(t, scaled_loss(g, &c, loss)));
    c.loss_now = rlx_reshape(g, rlx_cast(g, loss, RLX_DTYPE_f32), RLX_LIST(1));
    if (desc->accumulate > 1)
        accumulate(t, &c, is_finite(g, c.loss_now));
    rlx_value square = square_of_all(t);
    judge(t, &c, square);
    rlx_value length = measure(t, &c, square);
    t->now.rate = train_rate(g, desc, (double)desc->rate, c.number);
    t->now.plain_rate = train_rate(g, desc, (double)desc->plain_rate, c.number);
    t->now.unbias1 = unbias(g, c.number, (double)desc->beta1);
    t->now.unbias2 = unbias(g, c.number, (double)desc->beta2);
    show(g, c.loss_now, "loss");
    show(g, length, "grad_norm");
    show(g, t->now.rate, "rate");
    write_counters(t, &c);
    for (size_t i = 0; i < t->count; i++)
        TRY(train_update(t, &t->param[i]));
    return RLX_OK;
}

static rlx_status check_loss(const rlx_graph *g, rlx_value loss, struct diag *d)
{
    int64_t count;

    if (loss < 0 || (size_t)loss >= g->g->node.len)
        return diag_fail(d, RLX_ERROR_GRAPH, "the loss is not a node of this graph (%d)",
                         (int)loss);
    const struct ir_type *t = ir_type_of(g->g, loss);
    if (!type_is_static(t) || !type_count(t, &count) || count != 1)
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "the loss, node %d, is not one number: take the mean or the sum of it",
                         (int)loss);
    if (!dtype_is(t->dtype, CLASS_F))
        return diag_fail(d, RLX_ERROR_DTYPE, "the loss, node %d, is %s and must be floats",
                         (int)loss, rlx_dtype_name(t->dtype));
    return RLX_OK;
}

/* Params become states once all else has been found to be in order. */
static rlx_status make_states(struct train *t)
{
    for (size_t i = 0; i < t->count; i++)
        ir_node(t->g->g, t->param[i].leaf)->op = RLX_OP_state;
    return RLX_OK;
}

static rlx_status train_graph(rlx_graph *g, rlx_value loss, const rlx_train_desc *theirs,
                              struct diag *d)
{
    rlx_train_desc desc;
    struct train t = {.g = g, .desc = &desc, .diag = d};
    rlx_error err;

    if (!g)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "g is NULL");
    if (rlx_graph_check(g, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    if (g->root != g)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "g is a sub-graph");
    TRY(train_read_desc(theirs, &desc, d));
    TRY(check_loss(g, loss, d));
    t.mem = &g->ctx->mem;
    rlx_status s = train_find_params(&t, loss);
    if (s == RLX_OK)
        s = make_states(&t);
    if (s == RLX_OK)
        s = append(&t, loss);
    train_free_params(&t);
    return s;
}

rlx_status rlx_train_graph(rlx_graph *g, rlx_value loss, const rlx_train_desc *desc, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "train");
    train_graph(g, loss, desc, &d);
    return diag_report(&d, err);
}
