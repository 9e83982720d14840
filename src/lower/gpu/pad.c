/* pad.c: where some elements have no source: padded, cut to a triangle; and the nearest of a
 * volume.
 */
#include <string.h>

#include "ir/eval.h"
#include "lower/gpu/move.h"

/* The padding's value as bytes of the tensor's dtype, in two words. */
static void add_fill(struct gpu_call *c, double value)
{
    struct eval_cell cell = eval_cell_of(c->out->dtype, value);
    const struct eval_tensor one = {
        .type = {.dtype = c->out->dtype, .rank = 0}, .count = 1, .at = &cell};
    uint32_t word[4] = {0};

    eval_store(&one, word);
    gpu_u32(c, word[0]);
    gpu_u32(c, word[1]);
}

void gpu_lower_pad(struct gpu_call *c)
{
    const struct attr_pad *a = &c->attr->pad;
    uint64_t size = rlx_dtype_size(c->out->dtype), count = gpu_count(c->out);
    int32_t rank = c->out->rank;

    if (count == gpu_count(&c->in[0])) { /* of no axis, or by nothing */
        gpu_copy(c, gpu_in(c, 0), gpu_out(c), c->out->dtype);
        return;
    }
    gpu_kernel(c, "pad", "pad");
    gpu_name(c, "W", gpu_word(size));
    gpu_const(c, "BYTES", (int64_t)size);
    gpu_const(c, "MODE", a->mode);
    gpu_const(c, "RANK", rank);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, count);
    add_fill(c, a->value);
    for (int32_t i = 0; i < rank; i++)
        gpu_u32(c, (uint64_t)c->out->dim[i]);
    for (int32_t i = 0; i < rank; i++)
        gpu_i32(c, c->in[0].dim[i]);
    for (int32_t i = 0; i < rank; i++)
        gpu_i32(c, a->before.at[i]);
    gpu_invocations(c, count, GPU_GROUP);
}

void gpu_lower_trilu(struct gpu_call *c)
{
    const struct ir_type *t = c->out;
    int64_t rows = t->dim[t->rank - 2], cols = t->dim[t->rank - 1];
    int64_t diagonal = c->attr->trilu.diagonal;

    /* Beyond the corners all are alike. */
    diagonal = diagonal > cols ? cols : diagonal < -rows ? -rows : diagonal;
    gpu_kernel(c, "pad", "triangle");
    gpu_name(c, "W", gpu_word(rlx_dtype_size(t->dtype)));
    gpu_flag(c, "UPPER", c->attr->trilu.upper);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, gpu_count(t));
    gpu_u32(c, (uint64_t)rows);
    gpu_u32(c, (uint64_t)cols);
    gpu_i32(c, diagonal);
    gpu_invocations(c, gpu_count(t), GPU_GROUP);
}

void gpu_lower_interpolate_3d(struct gpu_call *c)
{
    const struct ir_type *x = &c->in[0], *y = c->out;
    bool wide = false;

    for (int32_t i = 2; i < 5; i++)
        wide = wide || y->dim[i] > UINT16_MAX || x->dim[i] > UINT16_MAX;
    gpu_kernel(c, "pad", "interpolate");
    gpu_name(c, "W", gpu_word(rlx_dtype_size(y->dtype)));
    gpu_name(c, "N", wide ? "u64" : "u32");
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, gpu_count(y));
    for (int32_t i = 2; i < 5; i++)
        gpu_u32(c, (uint64_t)x->dim[i]);
    for (int32_t i = 2; i < 5; i++)
        gpu_u32(c, (uint64_t)y->dim[i]);
    gpu_invocations(c, gpu_count(y), GPU_GROUP);
}
