/* im2col.c: each window of an image as a row (ops-core.md 12.4).
 *
 *     x [n, c, h, w] -> [n * ho * wo, c * kh * kw], zeros outside the image */
#include "backend/cpu/kernels/conv/conv_core.h"

struct columns {
    struct windows w;
    int64_t channels, row; /* row: elements of a row of the output */
    const struct cpu_tensor *out;
};

/* One window: taps of a row of the image are `delta` apart. */
#define FILL_WINDOW(T)                                                                 \
    do {                                                                               \
        T *to_ = (T *)g->out->data + at * g->row;                                      \
        for (int64_t ch = 0; ch < g->channels; ch++)                                   \
            for (int64_t i = 0; i < w->taps[1]; i++, to_ += w->taps[2]) {              \
                int64_t y = top + i * w->delta[1], lo = 0, hi = 0;                     \
                const T *from_ = w->src;                                               \
                if ((uint64_t)y < (uint64_t)w->in[1] && w->src) {                      \
                    windows_inside(left, w->delta[2], w->in[2], w->taps[2], &lo, &hi); \
                    from_ += image + (ch * w->in[1] + y) * w->in[2];                   \
                }                                                                      \
                for (int64_t j = 0; j < lo; j++)                                       \
                    to_[j] = 0;                                                        \
                for (int64_t j = lo; j < hi; j++)                                      \
                    to_[j] = from_[left + j * w->delta[2]];                            \
                for (int64_t j = hi; j < w->taps[2]; j++)                              \
                    to_[j] = 0;                                                        \
            }                                                                          \
    } while (0)

static void run_windows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct columns *g = ctx;
    const struct windows *w = &g->w;

    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t image = at / (w->pos[1] * w->pos[2]) * w->image;
        int64_t top = at / w->pos[2] % w->pos[1] * w->step[1] + w->base[1];
        int64_t left = at % w->pos[2] * w->step[2] + w->base[2];
        switch (cpu_size(g->out->dtype)) {
        case 2: FILL_WINDOW(uint16_t); break;
        case 4: FILL_WINDOW(float); break;
        default: FILL_WINDOW(double); break;
        }
    }
}

static void run(const struct cpu_call *c)
{
    const struct attr_im2col *a = &c->attr->im2col;
    const struct cpu_tensor *x = &c->in[0];
    struct columns g = {.out = c->out, .channels = x->dim[1], .row = c->out->dim[1]};
    struct windows *w = &g.w;
    int64_t padding[3];

    if (c->out->count == 0)
        return;
    w->src = x->data;
    w->image = x->dim[1] * x->dim[2] * x->dim[3];
    conv_three(x->dim + 2, 2, 1, w->in);
    conv_three(a->kernel_size.at, a->kernel_size.count, 1, w->taps);
    conv_three(a->stride.at, a->stride.count, 1, w->step);
    conv_three(a->dilation.at, a->dilation.count, 1, w->delta);
    conv_three(a->padding.at, a->padding.count, 0, padding);
    for (int i = 0; i < 3; i++) {
        w->base[i] = -padding[i];
        w->pos[i] =
            (w->in[i] + 2 * padding[i] - w->delta[i] * (w->taps[i] - 1) - 1) / w->step[i] + 1;
    }
    cpu_for(c->pool, c->out->dim[0], cpu_max_i64(1, 16384 / g.row), run_windows, &g);
}

extern const struct cpu_kernel CPU_NAME(cpu_im2col);
const struct cpu_kernel CPU_NAME(cpu_im2col) = {.run = run};
