/* lower_matmul.c: matmul and fused_matmul_bias_act (ops-core.md 10.1, 15). */
#include "lower/gpu/gemm/lower_matmul.h"

/* ---- shapes ---- */

/* Size of the batch axis that is `from_end` axes away from the matrices; 1 where there is none. */
static int64_t batch_dim(const struct ir_type *t, int32_t from_end)
{
    int32_t axis = t->rank - 3 - from_end;

    return axis < 0 ? 1 : t->dim[axis];
}

/* How many innermost batch axes are rows: those where a is full and b has nothing to say. */
static int32_t fold_rows(const struct gpu_call *c, struct gpu_matmul *p)
{
    int32_t batch = c->out->rank - 2, fold = 0;

    for (; fold < batch && !p->at; fold++) {
        int64_t d = batch_dim(c->out, fold);
        if (batch_dim(&c->in[1], fold) != 1 || batch_dim(&c->in[0], fold) != d)
            break;
        p->of.m *= (uint64_t)d;
    }
    return fold;
}

/* One more axis in front; it joins the one after it where both operands go on alike. */
static void add_axis(struct gpu_matmul *p, uint64_t size, uint64_t a_step, uint64_t b_step)
{
    if (size == 1)
        return;
    p->of.items *= size;
    if (p->rank && p->a_step[0] * p->size[0] == a_step && p->b_step[0] * p->size[0] == b_step) {
        p->size[0] *= size;
        return;
    }
    for (int32_t i = p->rank++; i > 0; i--) {
        p->size[i] = p->size[i - 1];
        p->a_step[i] = p->a_step[i - 1];
        p->b_step[i] = p->b_step[i - 1];
    }
    p->size[0] = size;
    p->a_step[0] = a_step;
    p->b_step[0] = b_step;
}

static void find_items(const struct gpu_call *c, struct gpu_matmul *p, int32_t fold)
{
    uint64_t a_step = p->of.m * p->of.k, b_step = p->b_apart ? p->of.n : p->of.k * p->of.n;

    p->of.items = 1;
    for (int32_t i = fold; i < c->out->rank - 2; i++) {
        uint64_t da = (uint64_t)batch_dim(&c->in[0], i), db = (uint64_t)batch_dim(&c->in[1], i);
        add_axis(p, (uint64_t)batch_dim(c->out, i), da == 1 ? 0 : a_step, db == 1 ? 0 : b_step);
        a_step *= da;
        b_step *= db;
    }
    if (p->rank == 0) {
        p->rank = 1;
        p->size[0] = 1;
    }
}

static void lower(struct gpu_call *c, bool at, bool bt, struct gpu_epilogue end)
{
    const struct ir_type *a = &c->in[0], *out = c->out;
    struct gpu_matmul p = {.a = gpu_in(c, 0),
                           .b = gpu_in(c, 1),
                           .y = gpu_epilogue_result(c, &end),
                           .dtype = out->dtype,
                           .sum = gpu_sum_type(out->dtype),
                           .a_half = gpu_is_half(c, 0),
                           .b_half = gpu_is_half(c, 1),
                           .at = at,
                           .bt = bt,
                           .b_apart = c->columns_of,
                           .of.m = (uint64_t)out->dim[out->rank - 2],
                           .of.n = (uint64_t)out->dim[out->rank - 1],
                           .of.k = (uint64_t)a->dim[a->rank - (at ? 2 : 1)],
                           .of.split_sums = gpu_split_sums(c),
                           .end = end};

    if (gpu_count(out) == 0)
        return;
    find_items(c, &p, fold_rows(c, &p));
    p.room = gpu_split_room(c, &p.of);
    gpu_matmul_launch(c, &p);
    gpu_epilogue_finish(c, &end, p.y);
}

void gpu_lower_matmul(struct gpu_call *c)
{
    const struct attr_matmul *a = &c->attr->matmul;

    lower(c, a->transpose_a, a->transpose_b, gpu_no_epilogue(c));
}

void gpu_lower_fused_matmul_bias_act(struct gpu_call *c)
{
    const struct attr_fused_matmul_bias_act *a = &c->attr->fused_matmul_bias_act;

    lower(c, a->transpose_a, a->transpose_b, gpu_epilogue_of(c, 2, a->activation));
}
