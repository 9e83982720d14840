/* shape_dims.c: comparing dims, now or when symbols are bound, and broadcasting them. */
#include "ir/shape/shape.h"

bool shape_check(struct shape_call *c, enum ir_check_kind kind, ir_dim a, ir_dim b,
                 rlx_status status, const char *what)
{
    if (c->failed != RLX_OK)
        return false;
    if (a == RLX_DIM_FAILED || b == RLX_DIM_FAILED) {
        c->failed = dim_no_memory(c->mod->dims)
                        ? diag_no_memory(c->diag, 0)
                        : SHAPE_FAIL(c, LIMIT, "%s: %s overflow 64 bits", c->name, what);
        return false;
    }
    if (a == RLX_DIM_UNKNOWN || b == RLX_DIM_UNKNOWN)
        return true; /* looked at again once the data tells the size */
    if (dim_is_static(a) && dim_is_static(b))
        return ir_check_holds(kind, a, b);
    if (a == b || (kind == CHECK_AT_LEAST && b == 0) || !c->note_checks)
        return true;
    if (!vec_room(c->mod->mem, &c->mod->check)) {
        c->failed = diag_no_memory(c->diag, sizeof(struct ir_check));
        return false;
    }
    struct ir_check *note = &c->mod->check.at[c->mod->check.len++];
    *note = (struct ir_check){a, b, c->graph->id, c->node_id, kind, status, what};
    return true;
}

bool shape_agree(struct shape_call *c, ir_dim a, ir_dim b, const char *what)
{
    return shape_check(c, CHECK_EQUAL, a, b, RLX_ERROR_SHAPE, what);
}

bool shape_at_least(struct shape_call *c, ir_dim a, ir_dim b, const char *what)
{
    return shape_check(c, CHECK_AT_LEAST, a, b, RLX_ERROR_SHAPE, what);
}

ir_dim shape_meet(ir_dim a, ir_dim b)
{
    if (dim_is_static(a) || b == RLX_DIM_UNKNOWN)
        return a;
    return dim_is_static(b) || a == RLX_DIM_UNKNOWN ? b : a;
}

ir_dim shape_product(struct shape_call *c, const ir_dim *dim, int32_t count)
{
    ir_dim p = 1;

    for (int32_t i = 0; i < count; i++)
        p = dim_mul(c->mod->dims, p, dim[i]);
    return p;
}

/* One axis of two shapes. Only a plain 1 stretches: a symbol that happens to be bound to 1 does
 * not, which the noted check sees to. */
static bool broadcast_dim(struct shape_call *c, ir_dim a, ir_dim b, ir_dim *out)
{
    if (a == 1 || b == 1) {
        *out = a == 1 ? b : a;
        return true;
    }
    *out = shape_meet(a, b);
    return shape_agree(c, a, b, "broadcast sizes");
}

/* Of all dims but the last `tail`, which are there for the message only. */
static rlx_status broadcast(struct shape_call *c, const ir_dim *a, int32_t a_rank, const ir_dim *b,
                            int32_t b_rank, int32_t tail, ir_dim *out, int32_t *rank)
{
    int32_t r = a_rank > b_rank ? a_rank : b_rank;
    ir_dim dim[RLX_MAX_RANK]; /* out may be a or b */

    for (int32_t i = 0; i < r; i++) {
        ir_dim x = i < r - a_rank ? 1 : a[i - (r - a_rank)];
        ir_dim y = i < r - b_rank ? 1 : b[i - (r - b_rank)];
        if (!broadcast_dim(c, x, y, &dim[i]))
            return SHAPE_FAIL(c, SHAPE, "%s: shapes %s and %s do not broadcast: %s against %s",
                              c->name, dims_text(c, a, a_rank + tail),
                              dims_text(c, b, b_rank + tail), dim_text(c, x), dim_text(c, y));
    }
    for (int32_t i = 0; i < r; i++)
        out[i] = dim[i];
    *rank = r;
    return RLX_OK;
}

rlx_status shape_broadcast_dims(struct shape_call *c, const ir_dim *a, int32_t a_rank,
                                const ir_dim *b, int32_t b_rank, ir_dim *out, int32_t *rank)
{
    return broadcast(c, a, a_rank, b, b_rank, 0, out, rank);
}

rlx_status shape_broadcast_batch(struct shape_call *c, const struct ir_type *a,
                                 const struct ir_type *b, ir_dim *out, int32_t *rank)
{
    return broadcast(c, a->dim, a->rank - 2, b->dim, b->rank - 2, 2, out, rank);
}

rlx_status shape_broadcasts_to(struct shape_call *c, const struct ir_type *b,
                               const struct ir_type *a, const char *what)
{
    int32_t lead = a->rank - b->rank;
    bool fits = lead >= 0;

    for (int32_t i = 0; fits && i < b->rank; i++)
        fits = b->dim[i] == 1 || shape_agree(c, b->dim[i], a->dim[lead + i], "broadcast sizes");
    if (fits)
        return RLX_OK;
    return SHAPE_FAIL(c, SHAPE, "%s: %s of shape %s does not broadcast to %s", c->name, what,
                      dims_text(c, b->dim, b->rank), dims_text(c, a->dim, a->rank));
}
