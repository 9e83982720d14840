/* moe.c: layers of experts, built from ops: the second part of rlx/moe.h.
 *
 * Every row of x is repeated once per expert that it goes to; grouped products give each copy its
 * own matrix, in whatever order the copies are, and the copies' results are weighed and summed:
 *
 *     x [.., d] -> [m, d] -> [m, k, d] -> [m k, d] -> experts -> [m k, d] -> [m, k, d] -> [m, d] */
#include <inttypes.h>

#include "base/desc.h"
#include "graph/moe_part.h"
#include "rlx/moe.h"

struct layer {
    rlx_graph *g;
    const char *name; /* of the function, for messages */
    struct moe_part x;
    rlx_dim d, k;
    rlx_value id;     /* [m k] */
    rlx_value weight; /* [m, k, 1] */
};

#define FAIL(l, status, ...) build_fail_in((l)->g, RLX_ERROR_##status, (l)->name, __VA_ARGS__)

static bool open_layer(struct layer *l, rlx_graph *g, const char *name, rlx_value x, rlx_gate gate)
{
    struct moe_part weights;

    *l = (struct layer){.g = g, .name = name};
    if (!moe_look_at_floats(&l->x, g, name, "x", x) ||
        !moe_look_at_floats(&weights, g, name, "the gate's weights", gate.weights))
        return false;
    l->d = moe_last(&l->x);
    l->k = moe_last(&weights);
    l->id = rlx_reshape(g, gate.ids, RLX_LIST(RLX_DIM_INFER));
    l->weight = rlx_reshape(g, gate.weights, RLX_LIST(RLX_DIM_INFER, l->k, 1));
    return true;
}

/* [m k, d] */
static rlx_value copies(const struct layer *l, bool weighed)
{
    rlx_value row = rlx_reshape(l->g, l->x.v, RLX_LIST(RLX_DIM_INFER, 1, l->d));
    rlx_value each = weighed ? rlx_mul(l->g, row, l->weight)
                             : rlx_expand(l->g, row, RLX_LIST(RLX_DIM_INFER, l->k, l->d));

    return rlx_reshape(l->g, each, RLX_LIST(RLX_DIM_INFER, l->d));
}

/* out [m k, d] to what x is like. */
static rlx_value summed(const struct layer *l, rlx_value out, bool weighed)
{
    rlx_value each = rlx_reshape(l->g, out, RLX_LIST(RLX_DIM_INFER, l->k, l->d));
    rlx_value sum =
        rlx_reduce_sum(l->g, weighed ? rlx_mul(l->g, each, l->weight) : each, RLX_LIST(1), false);

    return rlx_reshape(l->g, rlx_cast(l->g, sum, l->x.dtype), l->x.shape);
}

rlx_value rlx_moe_ffn(rlx_graph *g, rlx_value x, rlx_gate gate, rlx_value w_gate, rlx_value w_up,
                      rlx_value w_down)
{
    struct layer l;

    if (!open_layer(&l, g, "moe_ffn", x, gate))
        return RLX_NO_VALUE;
    rlx_value in = copies(&l, false);
    rlx_value open = rlx_silu(g, rlx_grouped_matmul(g, in, w_gate, l.id));
    rlx_value hidden = rlx_mul(g, open, rlx_grouped_matmul(g, in, w_up, l.id));
    return summed(&l, rlx_grouped_matmul(g, hidden, w_down, l.id), true);
}

/* ---- experts as files have them ---- */

/* A matrix of every expert, looked at: [experts, rows, ..]. */
struct matrix {
    const rlx_expert_matrix *m;
    struct moe_part w;
    rlx_dim rows;
};

static bool look_at_matrix(const struct layer *l, const char *what, const rlx_expert_matrix *m,
                           struct matrix *out)
{
    *out = (struct matrix){.m = m};
    if (m->w == RLX_NO_VALUE && rlx_graph_check(l->g, NULL) == RLX_OK)
        return FAIL(l, ATTRIBUTE, "%s has no matrix", what);
    if (!moe_look(&out->w, l->g, l->name, what, m->w))
        return false;
    if (out->w.dtype != RLX_DTYPE_u8 && !dtype_is(out->w.dtype, CLASS_F))
        return FAIL(l, DTYPE, "%s must be floats, or packed as u8, not %s", what,
                    rlx_dtype_name(out->w.dtype));
    if (out->w.dtype == RLX_DTYPE_u8 && (int)m->scheme < 0)
        return FAIL(l, ATTRIBUTE, "%s is packed, but its scheme is not set", what);
    if (out->w.shape.count != 3)
        return FAIL(l, SHAPE, "%s must have 3 axes, [experts, out, in], not %d", what,
                    out->w.shape.count);
    out->rows = out->w.shape.at[1];
    if (out->rows < 0)
        return FAIL(l, SHAPE, "the size of axis 1 of %s must be known", what);
    return true;
}

static bool is_gated(rlx_expert_function f)
{
    return f != RLX_EXPERT_RELU_SQUARED && f != RLX_EXPERT_GELU;
}

struct experts {
    rlx_expert_desc desc;
    struct matrix up, gate, down;
    rlx_dim hidden;
};

static bool look_at_gate(const struct layer *l, struct experts *e)
{
    bool apart = is_gated(e->desc.function) && !e->desc.fused;

    if (!apart && e->desc.gate.w != RLX_NO_VALUE)
        return FAIL(l, ATTRIBUTE, "there is a matrix for the gate, but %s",
                    e->desc.fused ? "its rows are said to be in up's" : "the function has none");
    if (e->desc.fused && !is_gated(e->desc.function))
        return FAIL(l, ATTRIBUTE, "fused is set, but the function has no gate");
    if (!apart)
        return true;
    if (!look_at_matrix(l, "gate", &e->desc.gate, &e->gate))
        return false;
    if (e->gate.rows != e->up.rows)
        return FAIL(l, SHAPE, "gate has %" PRId64 " rows, and up %" PRId64, e->gate.rows,
                    e->up.rows);
    return true;
}

static bool look_at_experts(const struct layer *l, struct experts *e)
{
    if ((unsigned)e->desc.function > RLX_EXPERT_GELU)
        return FAIL(l, ATTRIBUTE, "there is no function number %d", (int)e->desc.function);
    if (l->d < 0)
        return FAIL(l, SHAPE, "the last axis of x must have a known size");
    if (!look_at_matrix(l, "up", &e->desc.up, &e->up) || !look_at_gate(l, e) ||
        !look_at_matrix(l, "down", &e->desc.down, &e->down))
        return false;
    if (e->desc.fused && e->up.rows % 2)
        return FAIL(l, SHAPE, "up has %" PRId64 " rows, which are not two halves", e->up.rows);
    e->hidden = e->desc.fused ? e->up.rows / 2 : e->up.rows;
    if (e->down.rows != l->d)
        return FAIL(l, SHAPE, "down has %" PRId64 " rows, for an x of %" PRId64, e->down.rows,
                    l->d);
    return true;
}

/* One number for all, or the one of each row's expert. */
static rlx_value scale_of(const struct layer *l, rlx_value scale)
{
    struct moe_part p;

    if (!moe_look_at_floats(&p, l->g, l->name, "a scale", scale))
        return RLX_NO_VALUE;
    if (p.shape.count == 1 && p.shape.at[0] == 1)
        return scale;
    return rlx_reshape(l->g, rlx_gather(l->g, scale, l->id, 0), RLX_LIST(RLX_DIM_INFER, 1));
}

/* x [m k, in] */
static rlx_value product(const struct layer *l, const struct experts *e, const struct matrix *m,
                         rlx_value x, rlx_dim in)
{
    rlx_graph *g = l->g;
    rlx_value y;

    if (m->w.dtype == RLX_DTYPE_u8)
        y = rlx_dequant_grouped_matmul(g, rlx_cast(g, x, RLX_DTYPE_f32), m->w.v, l->id,
                                       m->m->scheme, in, e->desc.act);
    else
        y = rlx_grouped_matmul(g, x, rlx_transpose(g, m->w.v, RLX_LIST(0, 2, 1)), l->id);
    if (m->m->bias != RLX_NO_VALUE)
        y = rlx_add(g, y, rlx_gather(g, m->m->bias, l->id, 0));
    if (m->m->scale != RLX_NO_VALUE)
        y = rlx_mul(g, y, scale_of(l, m->m->scale));
    return y;
}

/* g sigmoid(1.702 g) (u + 1), both limited. */
static rlx_value clamped(rlx_graph *g, rlx_value gate, rlx_value up)
{
    rlx_value low = rlx_min(g, gate, rlx_scalar(g, gate, 7)), near = rlx_clamp(g, up, -7, 7);
    rlx_value open = rlx_sigmoid(g, rlx_mul(g, low, rlx_scalar(g, low, 1.702)));

    return rlx_mul(g, rlx_mul(g, low, open), rlx_add(g, near, rlx_scalar(g, near, 1)));
}

static rlx_value between(rlx_graph *g, rlx_expert_function f, rlx_value gate, rlx_value up)
{
    switch (f) {
    case RLX_EXPERT_GEGLU: return rlx_mul(g, rlx_gelu_approx(g, gate), up);
    case RLX_EXPERT_CLAMPED: return clamped(g, gate, up);
    case RLX_EXPERT_GELU: return rlx_gelu_approx(g, up);
    case RLX_EXPERT_RELU_SQUARED: up = rlx_relu(g, up); return rlx_mul(g, up, up);
    default: return rlx_mul(g, rlx_silu(g, gate), up);
    }
}

rlx_value rlx_experts(rlx_graph *g, rlx_value x, rlx_gate gate, const rlx_expert_desc *desc)
{
    struct experts e = {.desc = RLX_EXPERT_DESC_INIT};
    struct layer l;

    if (!build_desc(g, &e.desc, sizeof e.desc, desc, "rlx_expert_desc") ||
        !open_layer(&l, g, "experts", x, gate) || !look_at_experts(&l, &e))
        return RLX_NO_VALUE;
    rlx_value in = copies(&l, e.desc.weights_first), open = RLX_NO_VALUE;
    rlx_value up = product(&l, &e, &e.up, in, l.d);
    if (e.desc.fused) {
        open = rlx_narrow(g, up, -1, 0, e.hidden);
        up = rlx_narrow(g, up, -1, e.hidden, e.hidden);
    } else if (is_gated(e.desc.function)) {
        open = product(&l, &e, &e.gate, in, l.d);
    }
    rlx_value hidden = between(g, e.desc.function, open, up);
    return summed(&l, product(&l, &e, &e.down, hidden, e.hidden), !e.desc.weights_first);
}
