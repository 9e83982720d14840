/* forward.c: how values change along a direction.
 *
 * What reaches wrt[] from weights u of the values is linear in them: J^T u. Its own gradient with
 * respect to u, weighted with the direction v, is therefore J v, whatever u is. So this takes no
 * rules of its own, only those of what rules are made of. */
#include "autodiff/autodiff.h"
#include "ir/formula.h"

/* What the two walks go between. */
struct push {
    struct ir_graph *g;
    ir_value *weight;            /* of each value: zeros, which nothing depends on in the end */
    ir_value *back, *along;      /* what reached wrt[], and the direction there */
    size_t of_count, back_count; /* how many there are of these */
    struct diag *diag;
};

static rlx_status add_weights(struct push *p, const ir_value *of)
{
    struct formula f = {.g = p->g, .diag = p->diag};

    for (size_t i = 0; i < p->of_count && f.status == RLX_OK; i++) {
        const struct ir_type t = *ir_type_of(p->g, of[i]);
        p->weight[i] = formula_fill(&f, &t, 0);
    }
    return f.status;
}

static rlx_status go_back(struct push *p, const ir_value *of, const ir_value *wrt,
                          const ir_value *tangent, size_t count)
{
    TRY(grad_walk_all(p->g, 0, of, p->weight, p->of_count, wrt, count, p->back, p->diag));
    for (size_t i = 0; i < count; i++) {
        if (p->back[i] == RLX_NO_VALUE)
            continue;
        p->back[p->back_count] = p->back[i];
        p->along[p->back_count++] = tangent[i];
    }
    return RLX_OK;
}

rlx_status grad_push(struct ir_graph *g, const ir_value *of, size_t of_count, const ir_value *wrt,
                     const ir_value *tangent, size_t count, ir_value *out, struct diag *d)
{
    size_t room = of_count + 2 * count + 1;
    ir_value *value = arena_array(&g->mod->arena, ir_value, room), first = (ir_value)g->node.len;

    if (!value)
        return diag_no_memory(d, room * sizeof *value);
    struct push p = {g, value, value + of_count, value + of_count + count, of_count, 0, d};
    for (size_t i = 0; i < of_count; i++)
        out[i] = RLX_NO_VALUE;
    if (of_count == 0)
        return RLX_OK;
    TRY(grad_check(g, of, of_count, wrt, count, d));
    TRY(add_weights(&p, of));
    TRY(go_back(&p, of, wrt, tangent, count));
    if (p.back_count == 0)
        return RLX_OK;
    return grad_walk_all(g, first, p.back, p.along, p.back_count, p.weight, of_count, out, d);
}
