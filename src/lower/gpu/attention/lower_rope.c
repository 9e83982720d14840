/* lower_rope.c: rotary embeddings, from tables and on a grid. */
#include <math.h>
#include <string.h>

#include "lower/gpu/move/lower_move.h"

#define MOST_PAIRS 4 /* of an invocation */

static void lower_rope(struct gpu_call *c, const struct attr_rope *a, bool back)
{
    const struct ir_type *x = &c->in[0], *table = &c->in[1];
    bool wide = x->dtype == RLX_DTYPE_f64 || table->dtype == RLX_DTYPE_f64;
    uint64_t all = gpu_count(x), pairs = (uint64_t)a->head_dim / 2, turn = (uint64_t)a->n_rot / 2;
    uint64_t each = gpu_common(gpu_common(pairs, turn), MOST_PAIRS);

    if (all == 0)
        return;
    gpu_kernel(c, "rope", "rope");
    gpu_type(c, "T", x->dtype);
    gpu_type(c, "C", table->dtype);
    gpu_type(c, "A", wide ? RLX_DTYPE_f64 : RLX_DTYPE_f32);
    gpu_flag(c, "HALVES", a->style == RLX_ROPE_STYLE_half);
    gpu_flag(c, "BACK", back);
    gpu_const(c, "EACH", (int64_t)each);
    for (int32_t i = 0; i < 3; i++)
        gpu_bind(c, gpu_in(c, i));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", all / 2 / each);
    gpu_u32(c, "head_dim", (uint64_t)a->head_dim);
    gpu_u32(c, "n_rot", (uint64_t)a->n_rot);
    gpu_u32(c, "inner", gpu_product(x, a->seq_axis + 1, x->rank));
    gpu_u32(c, "length", (uint64_t)x->dim[a->seq_axis]);
    gpu_u32(c, "item", table->rank == 3 ? gpu_product(x, 1, x->rank) : all);
    gpu_u32(c, "rows", (uint64_t)table->dim[table->rank - 2]);
    gpu_u32(c, "width", (uint64_t)table->dim[table->rank - 1]);
    gpu_invocations(c, all / 2 / each, GPU_GROUP);
}

void gpu_lower_rope(struct gpu_call *c)
{
    lower_rope(c, &c->attr->rope, false);
}

void gpu_lower_rope_backward(struct gpu_call *c)
{
    const struct attr_rope_backward *b = &c->attr->rope_backward;
    const struct attr_rope a = {b->head_dim, b->n_rot, b->style, b->seq_axis};

    lower_rope(c, &a, true);
}

void gpu_lower_axial_rope_2d(struct gpu_call *c)
{
    const struct attr_axial_rope_2d *a = &c->attr->axial_rope_2d;
    const struct ir_type *x = &c->in[0];
    double rate = 4 * log((double)a->theta) / (double)a->head_dim, ratio = exp(-rate);
    uint64_t bits;

    memcpy(&bits, &ratio, sizeof bits);
    gpu_kernel(c, "rope", "axial");
    gpu_type(c, "T", x->dtype);
    gpu_flag(c, "WIDE", x->dtype == RLX_DTYPE_f64);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", gpu_count(x));
    gpu_u32(c, "channels", (uint64_t)x->dim[2]);
    gpu_u32(c, "tokens", (uint64_t)x->dim[1]);
    gpu_u32(c, "head_dim", (uint64_t)a->head_dim);
    gpu_u32(c, "repeats", (uint64_t)a->repeat_factor);
    gpu_u32(c, "end_x", (uint64_t)a->end_x);
    gpu_f32(c, "rate", rate);
    gpu_u32(c, "low", bits & UINT32_MAX);
    gpu_u32(c, "high", bits >> 32);
    gpu_invocations(c, gpu_count(x), GPU_GROUP);
}
