/* fake_quant_propagate.c: drop a fake quantisation of what is quantised that way already
 * (runtime.md 7.4).
 *
 *     %a = fake_quantize %x, %s scale_mode=fixed         %a = fake_quantize %x, %s ...
 *     %r = relu %a                                 =>    %r = relu %a
 *     %b = fake_quantize %r, %s scale_mode=fixed         %y = matmul %r, %w
 *     %y = matmul %b, %w
 *
 * Both have the same bits, axis, estimator and mode, and the scale is the same for certain:
 *
 *     fixed        the same value is the scale of both. What lies between may drop or choose among
 *                  elements, but makes no new ones: reshape, transpose, narrow, relu, max pooling
 *                  and, with one scale for the whole tensor, concat
 *     per_batch    nothing but reshape and transpose lies between: the largest magnitude is there
 *                  still
 *     ema          never: each has a state of its own, which it writes
 *
 * Readers of the second are given its input. Needs:  nothing.      Keeps: order, labels, states,
 * and a second one that is an output. */
#include "pass/pass.h"
#include "pass/rebuild.h"

enum { MOST_LOOKS = 256 }; /* nodes looked at for one fake quantisation: concats may branch */

struct search {
    const struct ir_graph *g;
    const struct ir_node *n; /* the second one */
    int looks;
};

/* The axis of x that becomes `axis` of the reshaped y; NO_AXIS: no single one does. Sizes count
 * as equal only where they are so for certain. */
#define NO_AXIS (-1)
static int64_t axis_before_reshape(const struct ir_type *x, const struct ir_type *y, int64_t axis)
{
    int64_t rest = y->rank - axis, same = 0;

    while (same < x->rank && same <= axis && x->dim[same] == y->dim[same])
        same++;
    if (same == axis + 1)
        return axis;
    for (same = 0; same < x->rank && same < rest; same++)
        if (x->dim[x->rank - 1 - same] != y->dim[y->rank - 1 - same])
            break;
    return same == rest ? x->rank - rest : NO_AXIS;
}

static bool is_same_quantisation(const struct search *s, const struct ir_node *first, int64_t axis)
{
    const struct attr_fake_quantize *a = &first->attr.fake_quantize, *b = &s->n->attr.fake_quantize;

    return a->bits == b->bits && a->ste == b->ste && a->scale_mode == b->scale_mode &&
           a->axis == axis && first->type.dtype == s->n->type.dtype &&
           (a->scale_mode != RLX_SCALE_MODE_fixed || first->in[1] == s->n->in[1]);
}

/* Does max pooling find an element in every window? One of padding alone has none. */
static bool takes_elements(const struct ir_node *pool)
{
    const rlx_list *kernel = &pool->attr.pool.kernel_size, *padding = &pool->attr.pool.padding;

    for (int32_t i = 0; i < padding->count; i++)
        if (i >= kernel->count || padding->at[i] >= kernel->at[i])
            return false;
    return pool->attr.pool.kind == RLX_POOL_KIND_max;
}

static bool is_quantised(struct search *s, ir_value v, int64_t axis);

static bool all_are_quantised(struct search *s, const struct ir_node *concat)
{
    for (int32_t i = 0; i < concat->in_count; i++)
        if (!is_quantised(s, concat->in[i], RLX_ABSENT))
            return false;
    return true;
}

/* Is v, whose channels are on `axis`, what the second would make of it? */
static bool is_quantised(struct search *s, ir_value v, int64_t axis)
{
    bool fixed = s->n->attr.fake_quantize.scale_mode == RLX_SCALE_MODE_fixed;
    bool whole = axis == RLX_ABSENT;

    while (s->looks++ < MOST_LOOKS) {
        const struct ir_node *n = ir_node(s->g, v);
        switch (n->op) {
        case RLX_OP_fake_quantize: return is_same_quantisation(s, n, axis);
        case RLX_OP_reshape:
            if (!whole)
                axis = axis_before_reshape(ir_type_of(s->g, n->in[0]), &n->type, axis);
            if (axis == NO_AXIS)
                return false;
            break;
        case RLX_OP_transpose:
            if (!whole)
                axis = n->attr.transpose.perm.at[axis];
            break;
        case RLX_OP_narrow:
            if (!fixed || n->attr.narrow.axis == axis)
                return false;
            break;
        case RLX_OP_relu:
            if (!fixed)
                return false;
            break;
        case RLX_OP_pool: /* over the axes from 2 on */
            if (!fixed || (!whole && axis >= 2) || !takes_elements(n))
                return false;
            break;
        case RLX_OP_concat: return fixed && whole && all_are_quantised(s, n);
        default: return false;
        }
        v = n->in[0];
    }
    return false;
}

/* A state that has a writer may hold other scales by the time it is read again. */
static bool is_rewritten(const struct ir_graph *g, ir_value v)
{
    for (size_t i = 0; i < g->written.len; i++)
        if (g->written.at[i] == v)
            return true;
    return false;
}

static bool is_output(const struct ir_graph *g, const struct ir_node *n)
{
    for (size_t i = 0; i < g->output.len; i++)
        if (g->output.at[i] == ir_id(g, n))
            return true;
    return false;
}

static bool is_redundant(const struct ir_graph *g, const struct ir_node *n)
{
    struct search s = {.g = g, .n = n};

    if (n->op != RLX_OP_fake_quantize || is_output(g, n) ||
        (n->in_count == 2 && is_rewritten(g, n->in[1])))
        return false;
    return n->attr.fake_quantize.scale_mode != RLX_SCALE_MODE_ema &&
           is_quantised(&s, n->in[0], n->attr.fake_quantize.axis);
}

static rlx_status rewrite(struct pass_run *p, struct ir_graph *g)
{
    struct rebuild r;
    rlx_status s = rebuild_begin(&r, g, p->diag);
    uint64_t dropped = 0;

    for (size_t i = 0; s == RLX_OK && i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        if (is_redundant(g, n)) {
            rebuild_replace(&r, n, rebuild_map(&r, n->in[0]));
            dropped++;
        } else {
            s = rebuild_keep(&r, n);
        }
    }
    p->changes += dropped;
    if (dropped)
        return rebuild_finish(&r, s);
    rebuild_drop(&r);
    return s;
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    for (size_t i = 0; i < m->graph.len; i++) {
        bool any = false;
        IR_EACH(n, m->graph.at[i]) {
            any |= n->op == RLX_OP_fake_quantize;
        }
        if (any)
            TRY(rewrite(p, m->graph.at[i]));
    }
    return RLX_OK;
}

const struct pass pass_fake_quant_propagate = {
    "fake-quant-propagate", "drop fake quantisations of already quantised values", run};
