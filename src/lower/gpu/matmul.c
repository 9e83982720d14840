/* matmul.c: matmul and fused_matmul_bias_act (ops-core 10.1, 15), and parts of a split depth. */
#include "lower/gpu/matmul.h"

#define MOST_PARTS 32
#define SPLIT_SUMS (UINT64_C(1) << 21) /* of all parts together */

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
        p->m *= (uint64_t)d;
    }
    return fold;
}

/* One more axis in front; it joins the one behind it where both operands go on alike. */
static void add_axis(struct gpu_matmul *p, uint64_t size, uint64_t a_step, uint64_t b_step)
{
    if (size == 1)
        return;
    p->items *= size;
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
    uint64_t a_step = p->m * p->k, b_step = p->k * p->n;

    p->items = 1;
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
                           .y = gpu_out(c),
                           .dtype = out->dtype,
                           .sum = gpu_sum_dtype(out->dtype),
                           .at = at,
                           .bt = bt,
                           .m = (uint64_t)out->dim[out->rank - 2],
                           .n = (uint64_t)out->dim[out->rank - 1],
                           .k = (uint64_t)a->dim[a->rank - (at ? 2 : 1)],
                           .end = end};

    if (gpu_count(out) == 0)
        return;
    find_items(c, &p, fold_rows(c, &p));
    gpu_matmul_launch(c, &p);
}

void gpu_lower_matmul(struct gpu_call *c)
{
    const struct attr_matmul *a = &c->attr->matmul;

    lower(c, a->transpose_a, a->transpose_b, gpu_no_epilogue());
}

void gpu_lower_fused_matmul_bias_act(struct gpu_call *c)
{
    const struct attr_fused_matmul_bias_act *a = &c->attr->fused_matmul_bias_act;

    lower(c, a->transpose_a, a->transpose_b, gpu_epilogue_of(c, 2, a->activation));
}

/* ---- parts of the depth ---- */

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct gpu_split gpu_split_depth(uint64_t depth, uint64_t outputs, uint64_t groups, uint64_t want,
                                 uint64_t least, uint64_t step)
{
    uint64_t parts = least_of(want / (groups ? groups : 1), MOST_PARTS);
    struct gpu_split s = {1, depth};

    parts = least_of(parts, depth / least);
    parts = least_of(parts, SPLIT_SUMS / (outputs ? outputs : 1));
    if (parts < 2)
        return s;
    s.part = gpu_ceil(gpu_ceil(depth, parts), step) * step;
    s.parts = gpu_ceil(depth, s.part);
    return s;
}

struct gpu_arg gpu_split_room(struct gpu_call *c, uint64_t depth, uint64_t outputs, uint64_t least)
{
    uint64_t parts = least_of(depth / least, MOST_PARTS);

    return gpu_temp(c, least_of(parts * outputs, SPLIT_SUMS) * sizeof(float));
}

void gpu_add_parts(struct gpu_call *c, const struct gpu_epilogue *end, struct gpu_arg x,
                   struct gpu_arg y, uint64_t count, uint64_t parts)
{
    gpu_kernel(c, "matmul", "add_parts");
    gpu_type(c, "T", c->out->dtype);
    gpu_type(c, "A", gpu_sum_dtype(c->out->dtype));
    gpu_epilogue_constants(c, end);
    gpu_bind(c, gpu_part(x, 0, parts * count * sizeof(float)));
    gpu_epilogue_bind(c, end);
    gpu_bind(c, y);
    gpu_u32(c, count);
    gpu_u32(c, parts);
    gpu_epilogue_words(c, end);
    gpu_invocations(c, count, GPU_GROUP);
}
