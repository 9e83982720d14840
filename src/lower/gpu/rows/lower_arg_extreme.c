/* lower_arg_extreme.c: argmax and argmin along an axis. */
#include "lower/gpu/move/lower_move.h"
#include "lower/gpu/order/lower_sort.h"

#define PART 4096 /* elements of a long line that a group looks at */

struct lines {
    uint64_t count, n, inner;
    bool least;
};

static void in_parts(struct gpu_call *c, const struct lines *l)
{
    rlx_dtype t = c->in[0].dtype;
    uint64_t parts = gpu_ceil(l->n, PART), all = l->count * parts;
    struct gpu_arg keys = gpu_temp(c, all * gpu_key_bytes(t));
    struct gpu_arg ids = gpu_temp(c, all * sizeof(uint32_t));

    gpu_kernel(c, "arg_extreme", "arg_parts");
    gpu_order_type(c, t);
    gpu_flag(c, "LEAST", l->least);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, keys);
    gpu_bind(c, ids);
    gpu_u32(c, "count", all);
    gpu_u32(c, "n", l->n);
    gpu_u32(c, "inner", l->inner);
    gpu_u32(c, "parts", parts);
    gpu_u32(c, "length", PART);
    gpu_groups(c, all);

    gpu_kernel(c, "arg_extreme", "arg_of_parts");
    gpu_name(c, "K", gpu_word(gpu_key_bytes(t)));
    gpu_flag(c, "WIDE", gpu_key_bytes(t) == 8);
    gpu_type(c, "D", c->out->dtype);
    gpu_bind(c, keys);
    gpu_bind(c, ids);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", l->count);
    gpu_u32(c, "parts", parts);
    gpu_groups(c, l->count);
}

void gpu_lower_arg_extreme(struct gpu_call *c)
{
    const struct ir_type *x = &c->in[0];
    int64_t axis = c->attr->arg_extreme.axis;
    struct lines l = {.count = gpu_count(c->out), .least = c->op == RLX_OP_argmin};
    uint64_t lanes = 1;

    if (l.count == 0)
        return;
    l.n = (uint64_t)x->dim[axis];
    l.inner = gpu_product(x, axis + 1, x->rank);
    /* However many lines there are: fewer of them may not need more scratch. */
    if (l.n > 2 * PART) {
        in_parts(c, &l);
        return;
    }
    while (lanes < GPU_GROUP && lanes * 8 < l.n && (l.inner == 1 || l.count * lanes < 65536))
        lanes *= 2;
    gpu_kernel(c, "arg_extreme", "arg_extreme");
    gpu_order_type(c, x->dtype);
    gpu_type(c, "D", c->out->dtype);
    gpu_flag(c, "LEAST", l.least);
    gpu_const(c, "LANES", (int64_t)lanes);
    gpu_flag(c, "ACROSS", l.inner > 1);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", l.count);
    gpu_u32(c, "n", l.n);
    gpu_u32(c, "inner", l.inner);
    gpu_groups(c, gpu_ceil(l.count, GPU_GROUP / lanes));
}
