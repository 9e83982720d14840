/* move.c: ops that only say where elements lie: transposed, broadcast, cut out, reversed. */
#include "lower/gpu.h"

/* Steps through an operand, one per axis of the result. */
struct walk {
    int64_t size[RLX_MAX_RANK], step[RLX_MAX_RANK], first;
    int32_t rank;
};

static void dense_steps(const struct ir_type *t, int64_t *step)
{
    int64_t at = 1;

    for (int32_t i = t->rank; i-- > 0;) {
        step[i] = at;
        at *= t->dim[i];
    }
}

/* Fewer axes: those of size 1 go, and neighbours that are one run become one. */
static void join_axes(struct walk *w)
{
    int32_t kept = 0;

    for (int32_t i = 0; i < w->rank; i++) {
        if (w->size[i] == 1)
            continue;
        if (kept && w->step[kept - 1] == w->step[i] * w->size[i]) {
            w->size[kept - 1] *= w->size[i];
            w->step[kept - 1] = w->step[i];
        } else {
            w->size[kept] = w->size[i];
            w->step[kept++] = w->step[i];
        }
    }
    w->rank = kept;
}

static const char *type_of_width(rlx_dtype t)
{
    switch (rlx_dtype_size(t)) {
    case 1: return "u8";
    case 2: return "u16";
    case 4: return "u32";
    default: return "u64";
    }
}

static void lower_walk(struct gpu_call *c, struct walk *w)
{
    for (int32_t i = 0; i < c->out->rank; i++)
        w->size[i] = c->out->dim[i];
    w->rank = c->out->rank;
    join_axes(w);
    if (w->rank == 0) {
        w->size[0] = w->step[0] = 1;
        w->rank = 1;
    }
    gpu_kernel(c, "move", "strided");
    gpu_name(c, "W", type_of_width(c->out->dtype));
    gpu_const(c, "RANK", w->rank);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, gpu_count(c->out));
    gpu_u32(c, (uint64_t)w->first);
    for (int32_t i = 0; i < w->rank; i++)
        gpu_u32(c, (uint64_t)w->size[i]);
    for (int32_t i = 0; i < w->rank; i++)
        gpu_i32(c, w->step[i]);
    gpu_invocations(c, gpu_count(c->out), GPU_GROUP);
}

void gpu_copy(struct gpu_call *c, struct gpu_arg to, struct gpu_arg from)
{
    uint64_t bits = to.bytes | to.offset | from.offset, width = bits & -bits;

    width = width > 4 || width == 0 ? 4 : width;
    gpu_kernel(c, "move", "copy");
    gpu_name(c, "W", width == 4 ? "u32" : width == 2 ? "u16" : "u8");
    gpu_bind(c, gpu_part(from, 0, to.bytes));
    gpu_bind(c, to);
    gpu_u32(c, to.bytes / width);
    gpu_invocations(c, to.bytes / width, GPU_GROUP);
}

void gpu_lower_expand(struct gpu_call *c)
{
    int32_t new_axes = c->out->rank - c->in[0].rank;
    int64_t step[RLX_MAX_RANK];
    struct walk w = {.first = 0};

    dense_steps(&c->in[0], step);
    for (int32_t i = new_axes; i < c->out->rank; i++)
        w.step[i] = c->in[0].dim[i - new_axes] == 1 ? 0 : step[i - new_axes];
    lower_walk(c, &w);
}

void gpu_lower_transpose(struct gpu_call *c)
{
    int64_t step[RLX_MAX_RANK];
    struct walk w = {.first = 0};

    dense_steps(&c->in[0], step);
    for (int32_t i = 0; i < c->out->rank; i++)
        w.step[i] = step[c->attr->transpose.perm.at[i]];
    lower_walk(c, &w);
}
