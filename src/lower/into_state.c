/* into_state.c: results straight into states.
 *
 *     step p:  y = f(x, state)                step p:  state = f(x, state)
 *     step q:  state = y              =>      what reads y reads the state
 *
 * if all of the state is written, no step between p and q touches it, and f may write its result
 * over what it reads of the state. A state has one writer, so that y stays what it is to the end.
 */
#include <string.h>

#include "lower/lower.h"

struct whole_write {
    int32_t state, value; /* roots: of the state, and of what is written to it */
};

static bool is_zero(const struct ir_node *n)
{
    const struct ir_blob *data = &n->attr.const_.data;

    for (size_t i = 0; n->op == RLX_OP_const && i < data->len; i++)
        if (((const uint8_t *)data->ptr)[i])
            return false;
    return n->op == RLX_OP_const;
}

static bool same_types(const struct ir_graph *g, ir_value a, ir_value b)
{
    return !g || type_same(ir_type_of(g, a), ir_type_of(g, b));
}

static bool writes_whole(const struct ir_graph *g, const struct ir_graph *symbolic,
                         const struct steps *s, const struct step *st, struct whole_write *w)
{
    const struct ir_node *n = ir_node(g, st->node);

    if (n->op != RLX_OP_cache_append || !is_zero(ir_node(g, n->in[2])) ||
        !same_types(g, n->in[0], n->in[1]) || !same_types(symbolic, n->in[0], n->in[1]))
        return false;
    *w = (struct whole_write){s->value[n->in[0]].root, s->value[n->in[1]].root};
    const struct value *from = &s->value[w->value], *to = &s->value[w->state];
    return from->region == REGION_ACTS && to->region == REGION_STATE && from->bytes == to->bytes &&
           !(from->flags & (VALUE_INPUT | VALUE_OUTPUT | VALUE_PINNED | VALUE_FIXED));
}

static bool touches(const struct steps *s, const struct step *st, int32_t root)
{
    for (uint32_t i = st->first; i < st->first + st->count; i++)
        if (s->value[s->operand[i].value].root == root)
            return true;
    return false;
}

/* Is this an operand of a step whose result may be the state? */
static bool allows(const struct steps *s, const struct operand *o, const struct whole_write *w)
{
    const struct value *v = &s->value[o->value];

    if (o->role == ROLE_UPDATE || (o->role == ROLE_WRITE && o->value != w->value))
        return (v->flags & VALUE_SCRATCH) != 0;
    return v->root != w->state ||
           (o->in_place && v->view_offset == 0 && v->bytes == s->value[w->state].bytes);
}

/* Does the step write the value, and nothing else, in a way that it may be the state? */
static bool may_store(const struct steps *s, const struct step *st, const struct whole_write *w)
{
    int32_t reads = 0;
    bool makes = false;

    for (uint32_t i = st->first; i < st->first + st->count; i++) {
        const struct operand *o = &s->operand[i];
        if (!allows(s, o, w))
            return false;
        makes |= o->role == ROLE_WRITE && o->value == w->value;
        reads += s->value[o->value].root == w->state;
    }
    return makes && reads <= 1;
}

static void store(struct steps *s, const struct whole_write *w)
{
    for (size_t i = 0; i < s->value_count; i++)
        if (s->value[i].root == w->value) {
            s->value[i].root = w->state;
            s->value[i].region = REGION_STATE;
        }
    s->value[w->value].flags |= VALUE_STORED;
}

/* Is what the step writes stored by the one that computes it, one of the `kept` steps before it? */
static bool stored_before(const struct ir_graph *g, const struct ir_graph *symbolic,
                          struct steps *s, const struct step *writer, size_t kept)
{
    struct whole_write w;

    if (!writes_whole(g, symbolic, s, writer, &w))
        return false;
    for (size_t p = kept; p-- > 0;) {
        const struct step *st = &s->step[p];
        if (touches(s, st, w.value) && may_store(s, st, &w)) {
            store(s, &w);
            return true;
        }
        if (touches(s, st, w.state))
            return false;
    }
    return false;
}

/* The step moves up to be the `to`-th, and its operands follow those of the steps before it. */
static void keep(struct steps *s, const struct step *st, size_t to, uint32_t *operands)
{
    struct step moved = *st;

    moved.first = *operands;
    memmove(s->operand + moved.first, s->operand + st->first, moved.count * sizeof *s->operand);
    *operands += moved.count;
    s->step[to] = moved;
}

/* Steps after one that is gone move up, and so do the copies of weights that are made for them. */
void lower_into_state(const struct ir_graph *g, const struct ir_graph *symbolic, struct steps *s)
{
    size_t kept = 0, packing = 0;
    uint32_t operands = 0;

    for (size_t i = 0; i < s->step_count; i++) {
        bool stored = stored_before(g, symbolic, s, &s->step[i], kept);
        for (; packing < s->packing_count && s->packing[packing].step == i; packing++)
            s->packing[packing].step = (uint32_t)kept;
        if (!stored)
            keep(s, &s->step[i], kept++, &operands);
    }
    s->step_count = kept;
    s->operand_count = operands;
}
