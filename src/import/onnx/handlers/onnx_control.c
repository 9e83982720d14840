/* onnx_control.c: If, Loop and Scan of ONNX.
 *
 * A branch that is known at load is taken; of one that is not, both are computed and one is chosen.
 * Loops whose length is known are written out. */
#include <string.h>

#include "base/str.h"
#include "import/onnx/read/onnx_build.h"
#include "import/onnx/read/onnx_scope.h"

#define MAX_ROUNDS 4096

bool onnx_run_body(struct onnx_call *c, const struct onnx_graph *g, const struct onnx_value *in,
                   size_t in_count, struct onnx_value *out, size_t out_count)
{
    struct onnx_import *im = c->im;
    struct onnx_scope s;

    if (!g || g->input.count != in_count || g->output.count < out_count) {
        formula_fail(&c->f, RLX_ERROR_FORMAT, "a body takes %zu values and gives %zu here",
                     in_count, out_count);
        return false;
    }
    rlx_status status = onnx_scope_begin(im, &s, c->scope, c->f.g, c->f.diag);
    for (size_t i = 0; status == RLX_OK && i < in_count; i++)
        status = onnx_bind(im, &s, g->input.at[i].name, &in[i], c->f.diag);
    if (status == RLX_OK)
        status = onnx_walk_graph(im, &s, g, c->f.diag);
    for (size_t i = 0; status == RLX_OK && i < out_count; i++) {
        const struct onnx_value *v = onnx_find(im, &s, g->output.at[i].name);
        if (v)
            out[i] = *v;
        else
            status = diag_fail(c->f.diag, RLX_ERROR_FORMAT, "the body gives no \"%.*s\"",
                               STR_ARG(g->output.at[i].name));
    }
    onnx_scope_end(&s);
    c->f.status = status;
    return status == RLX_OK;
}

const struct onnx_graph *onnx_body(struct onnx_call *c, const char *name)
{
    const struct onnx_attr *a = onnx_attr_as(c, name, ONNX_ATTR_GRAPH);

    return a ? a->g : NULL;
}

struct onnx_value *onnx_make_values(struct onnx_call *c, size_t count)
{
    struct onnx_value *v = arena_array(onnx_arena(c), struct onnx_value, count);

    if (!v)
        c->f.status = diag_no_memory(c->f.diag, count * sizeof *v);
    for (size_t i = 0; v && i < count; i++)
        v[i].node = RLX_NO_VALUE;
    return v;
}

static ir_value node_of(struct onnx_call *c, struct onnx_value *v)
{
    return onnx_node_of(c->im, c->scope, &c->f, v);
}

/* ---- If ---- */

static bool known_truth(const struct onnx_value *v, bool *out)
{
    int64_t count;

    if (!v->data || v->type.dtype != RLX_DTYPE_bool || !type_count(&v->type, &count) || count != 1)
        return false;
    *out = *(const uint8_t *)v->data != 0;
    return true;
}

/* One of two tensors of the same type, as the predicate says when it runs. */
static struct onnx_value choose(struct onnx_call *c, size_t i, ir_value predicate,
                                struct onnx_value *a, struct onnx_value *b)
{
    struct onnx_value out = {.type = a->type, .narrow = a->narrow, .node = RLX_NO_VALUE};

    if (a->failed || b->failed)
        out.failed = true;
    else if (a->is_sequence || b->is_sequence || a->is_absent || b->is_absent ||
             !type_same(&a->type, &b->type) || a->narrow != b->narrow)
        onnx_unsupported(c, "branches whose output %zu differs in type or shape", i);
    else
        out.node = formula_where(&c->f, predicate, node_of(c, a), node_of(c, b));
    return out;
}

/* Sequences of one length are chosen from item by item. */
static void choose_output(struct onnx_call *c, size_t i, ir_value predicate, struct onnx_value *a,
                          struct onnx_value *b)
{
    if (!a->is_sequence || !b->is_sequence || a->item_count != b->item_count) {
        c->out[i] = choose(c, i, predicate, a, b);
        return;
    }
    struct onnx_value *item = onnx_give_items(c, i, a->item_count);
    for (size_t k = 0; item && k < a->item_count; k++) {
        item[k] = choose(c, i, predicate, &a->item[k], &b->item[k]);
        c->out[i].failed |= item[k].failed;
    }
}

/* Does the graph hold nothing but that op, and constants? */
static bool is_only(const struct onnx_graph *g, rlx_str op)
{
    for (size_t i = 0; g && i < g->node.count; i++)
        if (!str_eq(g->node.at[i].op, op) && !str_eq(g->node.at[i].op, STR("Constant")))
            return false;
    return g != NULL;
}

/* "Squeeze the axis if it has one element, otherwise leave it", which exporters write for an axis
 * whose size they do not know. What follows relies on the axis being removed; that it may go is
 * checked when sizes are known. */
static bool is_maybe_squeeze(struct onnx_call *c, const struct onnx_value *a,
                             const struct onnx_value *b)
{
    return c->out_count == 1 && !a->failed && !b->failed && a->type.dtype == b->type.dtype &&
           a->type.rank == b->type.rank - 1 &&
           is_only(onnx_body(c, "then_branch"), STR("Squeeze")) &&
           is_only(onnx_body(c, "else_branch"), STR("Identity"));
}

void onnx_if(struct onnx_call *c)
{
    struct onnx_value *a, *b;
    bool truth;

    if (!onnx_has(c, 0))
        onnx_in(c, 0);
    if (onnx_failed(c))
        return;
    if (known_truth(c->in[0], &truth)) {
        onnx_run_body(c, onnx_body(c, truth ? "then_branch" : "else_branch"), NULL, 0, c->out,
                      c->out_count);
        return;
    }
    if (!(a = onnx_make_values(c, c->out_count)) || !(b = onnx_make_values(c, c->out_count)) ||
        !onnx_run_body(c, onnx_body(c, "then_branch"), NULL, 0, a, c->out_count) ||
        !onnx_run_body(c, onnx_body(c, "else_branch"), NULL, 0, b, c->out_count))
        return;
    if (is_maybe_squeeze(c, &a[0], &b[0])) {
        c->out[0] = a[0];
        return;
    }
    ir_value predicate = formula_reshape(&c->f, onnx_in(c, 0), RLX_EMPTY);
    for (size_t i = 0; i < c->out_count && !onnx_failed(c); i++)
        choose_output(c, i, predicate, &a[i], &b[i]);
}

/* ---- what a loop collects ---- */

struct collected {
    ir_value *part;
    size_t count;
    int64_t narrow; /* of struct onnx_value */
};

static bool collect(struct onnx_call *c, struct collected *l, struct onnx_value *v, int64_t axis)
{
    rlx_list shape = {0};

    if (v->failed || v->is_sequence || v->is_absent || v->type.rank >= RLX_MAX_RANK) {
        onnx_unsupported(c, "a body that collects no tensor");
        return false;
    }
    int64_t at = axis < 0 ? axis + v->type.rank + 1 : axis;
    if (at < 0 || at > v->type.rank) {
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "axis %lld", (long long)axis);
        return false;
    }
    for (int32_t i = 0; i <= v->type.rank; i++)
        shape.at[shape.count++] = i == at ? 1 : v->type.dim[i < at ? i : i - 1];
    l->narrow = v->narrow;
    l->part[l->count++] = formula_reshape(&c->f, node_of(c, v), shape);
    return !onnx_failed(c);
}

static ir_value put_together(struct onnx_call *c, const struct collected *l, int64_t axis)
{
    if (l->count == 0)
        onnx_unsupported(c, "a loop of no rounds that collects results");
    if (onnx_failed(c))
        return RLX_NO_VALUE;
    int32_t rank = formula_type(&c->f, l->part[0])->rank;
    return formula_concat(&c->f, l->part, (int32_t)l->count, axis < 0 ? axis + rank : axis);
}

static void give_collected(struct onnx_call *c, size_t i, const struct collected *l, int64_t axis)
{
    onnx_give(c, i, put_together(c, l, axis));
    onnx_give_type(c, i, l->narrow);
}

static struct collected *make_collected(struct onnx_call *c, size_t lists, size_t rounds)
{
    struct collected *l = arena_array(onnx_arena(c), struct collected, lists);

    for (size_t i = 0; l && i < lists; i++)
        if (!(l[i].part = arena_array(onnx_arena(c), ir_value, rounds)))
            l = NULL;
    if (!l)
        c->f.status = diag_no_memory(c->f.diag, lists * sizeof *l);
    return l;
}

/* ---- Loop ---- */

struct loop {
    const struct onnx_graph *body;
    size_t carried, scans;
    int64_t rounds;         /* at most */
    struct onnx_value *in;  /* of the body: number, condition, carried */
    struct onnx_value *out; /* condition, carried, collected */
    struct collected *list;
    ir_value active; /* RLX_NO_VALUE: all rounds so far ran for sure */
};

static bool begin_loop(struct onnx_call *c, struct loop *l)
{
    double rounds = MAX_ROUNDS + 1;

    *l = (struct loop){.body = onnx_body(c, "body"), .active = RLX_NO_VALUE};
    l->carried = c->in_count > 2 ? c->in_count - 2 : 0;
    if (!l->body || l->body->input.count != l->carried + 2 ||
        l->body->output.count < l->carried + 1 || c->out_count > l->body->output.count - 1) {
        formula_fail(&c->f, RLX_ERROR_FORMAT, "the body does not fit the loop");
        return false;
    }
    l->scans = l->body->output.count - 1 - l->carried;
    if (onnx_has(c, 0) && !onnx_number_in(c, 0, &rounds))
        return false;
    l->rounds = rounds > MAX_ROUNDS ? MAX_ROUNDS + 1 : rounds > 0 ? (int64_t)rounds : 0;
    l->in = onnx_make_values(c, l->carried + 2);
    l->out = onnx_make_values(c, l->body->output.count);
    l->list = make_collected(c, l->scans, (size_t)l->rounds);
    if (onnx_failed(c))
        return false;
    for (size_t i = 0; i < l->carried; i++)
        if (c->in[i + 2])
            l->in[i + 2] = *c->in[i + 2];
    return true;
}

/* Does the next round run? unknown: that is decided when it runs. */
static bool goes_on(struct onnx_call *c, struct onnx_value *condition, bool *unknown)
{
    bool truth = true;

    *unknown = false;
    if (!condition || condition->is_absent)
        return true;
    if (known_truth(condition, &truth))
        return truth;
    *unknown = !onnx_failed(c);
    return true;
}

/* Where the condition is not known: a round that does not run leaves what is carried. */
static void keep_unless_active(struct onnx_call *c, struct loop *l, struct onnx_value *condition)
{
    struct formula *f = &c->f;
    ir_value now = formula_reshape(f, node_of(c, condition), RLX_EMPTY);

    l->active = l->active == RLX_NO_VALUE ? now : formula_2(f, RLX_OP_bit_and, l->active, now);
    if (l->scans)
        onnx_unsupported(c, "a loop that collects an unknown number of results");
}

static bool run_round(struct onnx_call *c, struct loop *l, int64_t number)
{
    int64_t *i = arena_new(onnx_arena(c), int64_t);
    uint8_t *yes = arena_new(onnx_arena(c), uint8_t);

    if (!i || !yes) {
        c->f.status = diag_no_memory(c->f.diag, sizeof *i);
        return false;
    }
    *i = number;
    *yes = 1;
    l->in[0] =
        (struct onnx_value){.type = {.dtype = RLX_DTYPE_i64}, .node = RLX_NO_VALUE, .data = i};
    l->in[1] =
        (struct onnx_value){.type = {.dtype = RLX_DTYPE_bool}, .node = RLX_NO_VALUE, .data = yes};
    if (!onnx_run_body(c, l->body, l->in, l->carried + 2, l->out, l->body->output.count))
        return false;
    for (size_t k = 0; k < l->carried; k++) {
        struct onnx_value *fresh = &l->out[k + 1], *old = &l->in[k + 2];
        if (l->active != RLX_NO_VALUE) {
            if (fresh->failed || fresh->is_sequence || fresh->is_absent ||
                fresh->narrow != old->narrow || !type_same(&fresh->type, &old->type)) {
                onnx_unsupported(c, "a carried value that is a sequence or changes its shape, in "
                                    "a round that may not run");
                return false;
            }
            ir_value v = formula_where(&c->f, l->active, node_of(c, fresh), node_of(c, old));
            *old = (struct onnx_value){.type = fresh->type, .narrow = fresh->narrow, .node = v};
        } else
            *old = *fresh;
    }
    for (size_t k = 0; k < l->scans; k++)
        if (!collect(c, &l->list[k], &l->out[1 + l->carried + k], 0))
            return false;
    return true;
}

void onnx_loop(struct onnx_call *c)
{
    struct loop l;
    bool unknown;

    if (!begin_loop(c, &l))
        return;
    struct onnx_value *condition = onnx_has(c, 1) ? c->in[1] : NULL;
    for (int64_t i = 0; i < l.rounds && goes_on(c, condition, &unknown); i++) {
        if (i == MAX_ROUNDS) {
            onnx_unsupported(c, "more than %d rounds, or no known end", MAX_ROUNDS);
            return;
        }
        if (unknown)
            keep_unless_active(c, &l, condition);
        if (onnx_failed(c) || !run_round(c, &l, i))
            return;
        condition = &l.out[0];
    }
    for (size_t i = 0; i < c->out_count && !onnx_failed(c); i++) {
        if (i < l.carried)
            c->out[i] = l.in[i + 2];
        else
            give_collected(c, i, &l.list[i - l.carried], 0);
    }
}

/* ---- Scan ---- */

static int64_t entry(struct onnx_call *c, const char *name, size_t i)
{
    const struct onnx_attr *a = onnx_attr_as(c, name, ONNX_ATTR_INTS);

    return a && i < a->ints.count ? a->ints.at[i] : 0;
}

/* What round t reads of a sequence along an axis. */
static struct onnx_value element(struct onnx_call *c, struct onnx_value *v, int32_t axis, int64_t t)
{
    struct onnx_value out = {.node = RLX_NO_VALUE, .narrow = v->narrow};
    rlx_list shape = {0};

    for (int32_t i = 0; i < v->type.rank; i++)
        if (i != axis)
            shape.at[shape.count++] = v->type.dim[i];
    out.node = formula_reshape(&c->f, formula_narrow(&c->f, node_of(c, v), axis, t, 1), shape);
    if (!onnx_failed(c))
        out.type = *formula_type(&c->f, out.node);
    return out;
}

struct scan {
    const struct onnx_graph *body;
    const char *directions; /* the attribute of the inputs' */
    size_t states, sequences, scans;
    int64_t rounds;
    struct onnx_value *source; /* the sequences */
    struct onnx_value *in, *out;
    struct collected *list;
};

static bool begin_scan(struct onnx_call *c, struct scan *s, struct onnx_value *input, size_t count)
{
    int64_t sequences = onnx_int(c, "num_scan_inputs", 0);

    *s = (struct scan){.body = onnx_body(c, "body"),
                       .directions = c->opset < 9 ? "directions" : "scan_input_directions",
                       .rounds = -1};
    if (!s->body || sequences < 1 || (size_t)sequences > count || s->body->input.count != count ||
        s->body->output.count < count - (size_t)sequences || c->out_count > s->body->output.count) {
        formula_fail(&c->f, RLX_ERROR_FORMAT, "the body does not fit the scan");
        return false;
    }
    s->sequences = (size_t)sequences;
    s->states = count - s->sequences;
    s->scans = s->body->output.count - s->states;
    s->source = &input[s->states];
    for (size_t i = 0; i < s->sequences && !onnx_failed(c); i++) {
        const struct ir_type *t = &s->source[i].type;
        int32_t axis = onnx_axis(c, entry(c, "scan_input_axes", i), t->rank);
        if (!onnx_failed(c) && (!dim_is_static(t->dim[axis]) || t->dim[axis] > MAX_ROUNDS ||
                                (s->rounds >= 0 && s->rounds != t->dim[axis])))
            onnx_unsupported(c, "sequences of symbolic, unequal or too large length");
        if (!onnx_failed(c))
            s->rounds = t->dim[axis];
    }
    if (onnx_failed(c))
        return false;
    s->in = onnx_make_values(c, count);
    s->out = onnx_make_values(c, s->body->output.count);
    s->list = make_collected(c, s->scans, (size_t)s->rounds);
    for (size_t i = 0; !onnx_failed(c) && i < s->states; i++)
        s->in[i] = input[i];
    return !onnx_failed(c);
}

static bool run_scan(struct onnx_call *c, struct scan *s)
{
    for (int64_t t = 0; t < s->rounds; t++) {
        for (size_t i = 0; i < s->sequences; i++) {
            bool back = entry(c, s->directions, i) != 0;
            int32_t axis = onnx_axis(c, entry(c, "scan_input_axes", i), s->source[i].type.rank);
            s->in[s->states + i] = element(c, &s->source[i], axis, back ? s->rounds - 1 - t : t);
        }
        if (onnx_failed(c) || !onnx_run_body(c, s->body, s->in, s->states + s->sequences, s->out,
                                             s->body->output.count))
            return false;
        for (size_t i = 0; i < s->states; i++)
            s->in[i] = s->out[i];
        for (size_t i = 0; i < s->scans; i++)
            if (!collect(c, &s->list[i], &s->out[s->states + i], entry(c, "scan_output_axes", i)))
                return false;
    }
    for (size_t i = 0; i < s->scans; i++) { /* the last round in front, where asked for */
        struct collected *l = &s->list[i];
        for (size_t k = 0; entry(c, "scan_output_directions", i) && k < l->count / 2; k++) {
            ir_value other = l->part[k];
            l->part[k] = l->part[l->count - 1 - k];
            l->part[l->count - 1 - k] = other;
        }
    }
    return true;
}

/* Inputs from `first` on, all of which must be there. */
static struct onnx_value *scan_inputs(struct onnx_call *c, size_t first)
{
    size_t count = c->in_count > first ? c->in_count - first : 0;
    struct onnx_value *input = onnx_make_values(c, count);

    for (size_t i = 0; input && i < count; i++) {
        if (onnx_has(c, i + first) && !c->in[i + first]->is_sequence)
            input[i] = *c->in[i + first];
        else
            onnx_in(c, i + first);
    }
    return onnx_failed(c) ? NULL : input;
}

void onnx_scan(struct onnx_call *c)
{
    struct onnx_value *input = scan_inputs(c, 0);
    struct scan s;

    if (!input || !begin_scan(c, &s, input, c->in_count) || !run_scan(c, &s))
        return;
    for (size_t i = 0; i < c->out_count && !onnx_failed(c); i++) {
        if (i < s.states)
            c->out[i] = s.in[i];
        else
            give_collected(c, i, &s.list[i - s.states], entry(c, "scan_output_axes", i - s.states));
    }
}

/* ---- Scan of opset 8: of every element of a batch ---- */

/* How many elements the batch has: all inputs agree. */
static bool batch_size(struct onnx_call *c, const struct onnx_value *input, size_t count,
                       int64_t *out)
{
    *out = -1;
    for (size_t i = 0; i < count; i++) {
        const struct ir_type *t = &input[i].type;
        if (t->rank < 1 || !dim_is_static(t->dim[0]) || t->dim[0] < 1 || t->dim[0] > MAX_ROUNDS ||
            (*out >= 0 && *out != t->dim[0])) {
            onnx_unsupported(c, "batches of symbolic, unequal or too large size");
            return false;
        }
        *out = t->dim[0];
    }
    return *out > 0;
}

/* Zeros after what was collected, up to the length of the longest. */
static ir_value padded(struct onnx_call *c, ir_value v, int64_t to)
{
    rlx_list before = {0}, after = {0};

    if (onnx_failed(c))
        return RLX_NO_VALUE;
    const struct ir_type *t = formula_type(&c->f, v);
    before.count = after.count = t->rank;
    after.at[0] = to - t->dim[0];
    return after.at[0] ? onnx_pad_of(&c->f, v, before, after, 0) : v;
}

/* The scan of element b, whose results join those of the others. */
static bool scan_element(struct onnx_call *c, struct onnx_value *input, size_t count, int64_t b,
                         const int64_t *len, struct collected *list)
{
    struct onnx_value *own = onnx_make_values(c, count);
    struct scan s;

    for (size_t i = 0; own && i < count; i++)
        own[i] = element(c, &input[i], 0, b);
    if (!own || onnx_failed(c) || !begin_scan(c, &s, own, count))
        return false;
    int64_t longest = s.rounds;
    if (len && (*len < 1 || *len > longest)) {
        onnx_unsupported(c, "a sequence of length %lld of %lld", (long long)*len,
                         (long long)longest);
        return false;
    }
    s.rounds = len ? *len : longest;
    if (!run_scan(c, &s))
        return false;
    for (size_t i = 0; i < c->out_count && !onnx_failed(c); i++) {
        struct onnx_value v = {.node = RLX_NO_VALUE};
        if (i >= s.states) {
            v.narrow = s.list[i - s.states].narrow;
            v.node = padded(c, put_together(c, &s.list[i - s.states], 0), longest);
        }
        if (i >= s.states && !onnx_failed(c))
            v.type = *formula_type(&c->f, v.node);
        collect(c, &list[i], i < s.states ? &s.in[i] : &v, 0);
    }
    return !onnx_failed(c);
}

void onnx_scan_batch(struct onnx_call *c)
{
    struct onnx_value *input = scan_inputs(c, 1);
    size_t count = c->in_count > 1 ? c->in_count - 1 : 0, lens = 0;
    int64_t batch;

    if (!input || !batch_size(c, input, count, &batch))
        return;
    const int64_t *len = onnx_has(c, 0) ? onnx_i64s(c, 0, &lens) : NULL;
    if (onnx_has(c, 0) && (!len || lens != (size_t)batch)) {
        onnx_unsupported(c, "lengths of sequences that are not known at load, one for each");
        return;
    }
    struct collected *list = make_collected(c, c->out_count, (size_t)batch);
    for (int64_t b = 0; list && b < batch; b++)
        if (!scan_element(c, input, count, b, len ? &len[b] : NULL, list))
            return;
    for (size_t i = 0; list && i < c->out_count && !onnx_failed(c); i++)
        give_collected(c, i, &list[i], 0);
}
