/* window_grad_test.c: the gradients of convolutions for their input, and of max pooling, at every
 * instruction set of this CPU, with one thread and three, against plain loops. Values are small
 * integers, whose sums f32 knows exactly. */
#include "levels.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 1 << 16 };

struct shape {
    int64_t images, channels, outs, in[2], kernel[2], stride, pad, dilation, groups;
};

static void fill(float *x, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)(seed >> 29) - 4;
    }
}

static struct cpu_tensor image(void *data, int64_t n, int64_t c, const int64_t *size)
{
    return (struct cpu_tensor){
        data, RLX_DTYPE_f32, 4, {n, c, size[0], size[1]}, n * c * size[0] * size[1], NULL};
}

static void out_size(const struct shape *s, int64_t *out)
{
    for (int i = 0; i < 2; i++)
        out[i] = (s->in[i] + 2 * s->pad - s->dilation * (s->kernel[i] - 1) - 1) / s->stride + 1;
}

/* ---- convolutions ---- */

static const struct shape convs[] = {
    {2, 8, 16, {14, 14}, {3, 3}, 1, 1, 1, 1}, {1, 5, 9, {23, 19}, {3, 3}, 1, 0, 1, 1},
    {3, 12, 6, {9, 17}, {5, 2}, 1, 1, 1, 1},  {1, 16, 8, {20, 20}, {3, 3}, 1, 4, 4, 2},
    {2, 17, 40, {7, 7}, {1, 1}, 1, 0, 1, 1},  {1, 6, 8, {8, 9}, {1, 1}, 1, 2, 1, 1},
    {1, 40, 70, {9, 9}, {3, 3}, 1, 1, 1, 1},  {1, 5, 4, {12, 12}, {3, 3}, 1, 4, 1, 1},
    {2, 3, 8, {10, 10}, {3, 3}, 1, 1, 1, 1},  {1, 64, 8, {33, 30}, {3, 3}, 1, 1, 1, 1},
    {1, 6, 10, {13, 11}, {3, 3}, 2, 1, 1, 1},
};

/* Each element of dy goes to all that it was computed from. */
static void scatter(const struct shape *s, const float *dy, const float *w, float *dx)
{
    int64_t out[2], ch = s->channels / s->groups, m = s->outs / s->groups;
    int64_t kernel = s->kernel[0] * s->kernel[1];

    out_size(s, out);
    memset(dx, 0, (size_t)(s->images * s->channels * s->in[0] * s->in[1]) * sizeof *dx);
    for (int64_t i = 0; i < s->images * s->outs * out[0] * out[1]; i++)
        for (int64_t k = 0; k < ch * kernel; k++) {
            int64_t co = i / out[1] / out[0] % s->outs, image_at = i / out[1] / out[0] / s->outs;
            int64_t y = i / out[1] % out[0] * s->stride + k % kernel / s->kernel[1] * s->dilation;
            int64_t x = i % out[1] * s->stride + k % s->kernel[1] * s->dilation - s->pad;
            int64_t c = image_at * s->channels + co / m * ch + k / kernel;
            y -= s->pad;
            if (y >= 0 && y < s->in[0] && x >= 0 && x < s->in[1])
                dx[(c * s->in[0] + y) * s->in[1] + x] += dy[i] * w[co * ch * kernel + k];
        }
}

static void run_op(struct test *t, const struct cpu_kernels *k, rlx_op op,
                   const union ir_attr *attr, const struct cpu_tensor *in,
                   const struct cpu_tensor *out)
{
    run_alike(t, k->family[op_info(op)->family],
              (struct cpu_call){.op = op, .attr = attr, .in_count = 2, .in = in, .out = out});
}

static void hold_conv(struct test *t, const struct cpu_kernels *k, const struct shape *s)
{
    static float dy[MOST], w[MOST], got[MOST], want[MOST];
    int64_t out[2];
    union ir_attr attr = {
        .conv_backward_input = {.kernel_size = rlx_list_of(2, s->kernel),
                                .stride = RLX_LIST(s->stride, s->stride),
                                .padding = RLX_LIST(s->pad, s->pad),
                                .dilation = RLX_LIST(s->dilation, s->dilation),
                                .groups = s->groups,
                                .x_shape = RLX_LIST(s->images, s->channels, s->in[0], s->in[1])}};

    out_size(s, out);
    const struct cpu_tensor in[2] = {image(dy, s->images, s->outs, out),
                                     image(w, s->outs, s->channels / s->groups, s->kernel)};
    const struct cpu_tensor dx = image(got, s->images, s->channels, s->in);
    require(t, in[0].count <= MOST && in[1].count <= MOST && dx.count <= MOST);
    fill(dy, in[0].count, 1);
    fill(w, in[1].count, 2);
    scatter(s, dy, w, want);
    run_op(t, k, RLX_OP_conv_backward_input, &attr, in, &dx);
    expect_close(t, got, want, (size_t)dx.count, 0, 0);
    dy[in[0].count / 2] = INFINITY; /* which no zero of the padding may meet */
    scatter(s, dy, w, want);
    run_op(t, k, RLX_OP_conv_backward_input, &attr, in, &dx);
    expect_close(t, got, want, (size_t)dx.count, 0, 0);
}

TEST(window_grad, conv_backward_input_scatters_at_every_level)
{
    for (int l = 0; l < LEVELS; l++)
        for (size_t i = 0; level(l) && i < sizeof convs / sizeof *convs; i++) {
            test_note(t, "level %d, shape %zu", l, i);
            hold_conv(t, level(l), &convs[i]);
        }
}

/* ---- max pooling ---- */

static const struct shape pools[] = {
    {2, 3, 3, {16, 16}, {2, 2}, 2, 0, 1, 1}, {1, 2, 2, {9, 301}, {2, 2}, 2, 0, 1, 1},
    {1, 3, 3, {15, 18}, {3, 3}, 2, 1, 1, 1}, {1, 2, 2, {7, 150}, {3, 3}, 1, 1, 1, 1},
    {1, 2, 2, {5, 40}, {4, 5}, 3, 2, 1, 1},  {2, 1, 1, {6, 6}, {6, 6}, 1, 0, 1, 1},
};

/* dy goes to the first largest element, or to the first NaN. */
static void send(const struct shape *s, const float *x, const float *dy, float *dx)
{
    int64_t out[2], plane = s->in[0] * s->in[1];

    out_size(s, out);
    memset(dx, 0, (size_t)(s->images * s->channels * plane) * sizeof *dx);
    for (int64_t i = 0; i < s->images * s->channels * out[0] * out[1]; i++) {
        int64_t best = -1;
        for (int64_t k = 0; k < s->kernel[0] * s->kernel[1]; k++) {
            int64_t r = i / out[1] % out[0] * s->stride - s->pad + k / s->kernel[1];
            int64_t c = i % out[1] * s->stride - s->pad + k % s->kernel[1];
            int64_t at = i / out[1] / out[0] * plane + r * s->in[1] + c;
            if (r < 0 || r >= s->in[0] || c < 0 || c >= s->in[1])
                continue;
            if (best < 0 || x[at] > x[best] || (isnan(x[at]) && !isnan(x[best])))
                best = at;
        }
        if (best >= 0)
            dx[best] += dy[i];
    }
}

static void hold_pool(struct test *t, const struct cpu_kernels *k, struct shape s, bool special)
{
    static float x[MOST], dy[MOST], got[MOST], want[MOST];
    int64_t out[2];

    out_size(&s, out);
    const union ir_attr attr = {.max_pool_backward = {rlx_list_of(2, s.kernel),
                                                      RLX_LIST(s.stride, s.stride),
                                                      RLX_LIST(s.pad, s.pad)}};
    const struct cpu_tensor in[2] = {image(x, s.images, s.channels, s.in),
                                     image(dy, s.images, s.channels, out)};
    const struct cpu_tensor dx = image(got, s.images, s.channels, s.in);
    fill(x, in[0].count, 3);
    fill(dy, in[1].count, 4);
    for (int64_t i = 0; special && i < in[0].count; i += 5)
        x[i] = i % 3 ? -INFINITY : NAN;
    for (int64_t i = 0; special && i < in[0].count / 2; i++)
        x[i] = i % 7 ? -INFINITY : x[i];
    send(&s, x, dy, want);
    run_op(t, k, RLX_OP_max_pool_backward, &attr, in, &dx);
    expect_close(t, got, want, (size_t)dx.count, 0, 0);
}

TEST(window_grad, max_pool_backward_finds_the_first_largest_at_every_level)
{
    for (int l = 0; l < LEVELS; l++)
        for (size_t i = 0; level(l) && i < sizeof pools / sizeof *pools; i++)
            for (int special = 0; special < 2; special++) {
                test_note(t, "level %d, shape %zu, special %d", l, i, special);
                hold_pool(t, level(l), pools[i], special != 0);
            }
}
