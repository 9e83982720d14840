/* conv_turned.c: a transposed convolution at stride 1, and so most gradients for the input, is an
 * ordinary one whose weights are turned around:
 *
 *     w [groups * ch, m, taps]  ->  [groups * m, ch, taps, the last one first]
 *
 * with padding dilation * (kernel - 1) - padding. Weights are small beside images, so turning them
 * costs little, and what reads planes (conv_tiles.h) takes only ordinary ones. */
#include "backend/cpu/kernels/conv/conv_turned.h"
#include "backend/cpu/kernels/conv/conv_tiles.h"

bool conv_turned_make(const struct conv *v, struct conv_turned *t)
{
    if (!v->transposed || !cpu_is_float(v->src->dtype) || v->m < CONV_DIRECT_ROWS ||
        windows_volume(v->stride) != 1 || v->w->count == 0)
        return false;
    *t = (struct conv_turned){.v = *v, .w = *v->w};
    t->w.data = NULL;
    t->w.packed = NULL;
    t->v.w = &t->w;
    t->v.transposed = false;
    for (int i = 0; i < 3; i++)
        t->v.pad[i] = v->dilation[i] * (v->kernel[i] - 1) - v->pad[i];
    t->v.w_ch = windows_volume(v->kernel);
    t->v.w_line = v->ch * t->v.w_ch;
    t->bytes = gemm_up(v->w->count * (int64_t)cpu_size(v->w->dtype), 64);
    return conv_tiles_fit(&t->v);
}

uint64_t conv_turned_scratch(const struct conv_turned *t, const struct pool *pool)
{
    return (uint64_t)t->bytes + conv_scratch(&t->v, pool);
}

/* One channel of out, of one of src. */
#define TURN(T)                              \
    do {                                     \
        const T *from_ = cpu_at(v->w, from); \
        T *to_ = cpu_at(&t->w, to);          \
        for (int64_t k = 0; k < taps; k++)   \
            to_[k] = from_[taps - 1 - k];    \
    } while (0)

struct turn_job {
    const struct conv *v;
    const struct conv_turned *t;
};

static void turn_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct turn_job *job = ctx;
    const struct conv *v = job->v;
    const struct conv_turned *t = job->t;
    int64_t taps = windows_volume(v->kernel);

    (void)worker;
    for (int64_t row = begin; row < end; row++)
        for (int64_t c = 0; c < v->ch; c++) {
            int64_t group = row / v->m, to = (row * v->ch + c) * taps;
            int64_t from = ((group * v->ch + c) * v->m + row % v->m) * taps;
            if (cpu_is_half(v->w->dtype))
                TURN(uint16_t);
            else
                TURN(float);
        }
}

void conv_turned_run(const struct conv *v, struct conv_turned *t, struct pool *pool, void *scratch)
{
    struct turn_job job = {v, t};

    t->w.data = scratch;
    cpu_for(pool, v->groups * v->m, cpu_max_i64(1, 16384 / t->v.w_line), turn_rows, &job);
    conv_run(&t->v, pool, (char *)scratch + t->bytes);
}
