/* interpolate_3d.c: nearest-neighbour resize of [n, c, d, h, w]. */
#include "backend/cpu/kernels/move/move.h"

struct resize_job {
    const struct cpu_tensor *x, *y;
    size_t size;
};

/* floor(i * in / out) for 0 <= i < out; below `in`. */
static int64_t source_index(int64_t i, int64_t in, int64_t out)
{
    return (int64_t)((__int128)i * in / out);
}

/* One output row. The source index grows by in/out per element; the fraction is carried exactly. */
static void resize_row(const struct resize_job *j, char *dst, const char *src)
{
    int64_t in = j->x->dim[4], out = j->y->dim[4];
    int64_t whole = in / out, part = in % out;

    if (in == out) {
        memcpy(dst, src, (size_t)in * j->size);
        return;
    }
    MOVE_BY_SIZE(j->size, {
        int64_t from = 0, carry = 0;
        for (int64_t i = 0; i < out; i++) {
            ((move_t *)dst)[i] = ((const move_t *)src)[from];
            from += whole;
            carry += part;
            if (carry >= out) {
                carry -= out;
                from++;
            }
        }
    })
}

static void resize_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct resize_job *j = ctx;
    const int64_t *in = j->x->dim, *out = j->y->dim;

    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        int64_t h = source_index(r % out[3], in[3], out[3]);
        int64_t d = source_index(r / out[3] % out[2], in[2], out[2]);
        int64_t plane = r / out[3] / out[2];
        int64_t row = (plane * in[2] + d) * in[3] + h;
        resize_row(j, cpu_at(j->y, r * out[4]), cpu_at(j->x, row * in[4]));
    }
}

static void run(const struct cpu_call *c)
{
    struct resize_job j = {&c->in[0], c->out, cpu_size(c->out->dtype)};

    if (c->out->count == 0)
        return;
    int64_t width = c->out->dim[4];
    cpu_for(c->pool, c->out->count / width, cpu_grain(MOVE_BLOCK, width), resize_rows, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_interpolate_3d);
const struct cpu_kernel CPU_NAME(cpu_interpolate_3d) = {.run = run};
