/* conv_test.c: convolutions of many shapes, at every instruction set of this CPU, against plain
 * loops: with weights packed and not, with one thread and three, in place of the residual. */
#include "base/half.h"
#include "levels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape {
    int64_t images, channels, in[3], outs, kernel[3], stride[3], pad[3], dilation[3], groups;
};

static const struct shape shapes[] = {
    /* 3 x 3, rows that vectors do not divide; whole panels, and one channel more */
    {1, 16, {1, 14, 14}, 16, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, 1},
    {2, 5, {1, 23, 19}, 9, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, 1},
    {1, 3, {1, 33, 31}, 12, {1, 7, 7}, {1, 2, 2}, {0, 3, 3}, {1, 1, 1}, 1},
    {3, 6, {1, 9, 17}, 4, {1, 3, 2}, {1, 2, 3}, {0, 1, 0}, {1, 1, 2}, 1},
    {1, 8, {1, 20, 20}, 8, {1, 3, 3}, {1, 2, 2}, {0, 4, 4}, {1, 4, 4}, 2},
    {1, 4, {1, 20, 20}, 5, {1, 3, 3}, {1, 1, 1}, {0, 12, 12}, {1, 12, 12}, 1}, /* wasteful planes */
    /* single elements: in place, with a tail, with a stride */
    {2, 40, {1, 7, 7}, 17, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 1},
    {1, 300, {1, 5, 13}, 8, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 1},
    {1, 32, {1, 16, 16}, 24, {1, 1, 1}, {1, 2, 2}, {0, 0, 0}, {1, 1, 1}, 1},
    {1, 6, {1, 6, 6}, 8, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, 1},
    /* more channels than a stretch holds */
    {1, 70, {1, 9, 9}, 40, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, 1},
    /* small images of many channels: whole runs of positions; the last of a line reaches back */
    {1, 150, {1, 7, 7}, 64, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 1},
    {2, 40, {1, 7, 7}, 70, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, 1},
    {1, 33, {1, 27, 19}, 96, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}, 1},
    {1, 130, {1, 5, 5}, 32, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 1},
    {2, 64, {3, 4, 8}, 64, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 2},
    /* one output channel per group, and a few */
    {2, 11, {1, 15, 18}, 11, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, 11},
    {1, 6, {1, 30, 10}, 12, {1, 5, 5}, {1, 2, 2}, {0, 2, 2}, {1, 1, 1}, 6},
    {1, 20, {1, 40, 40}, 3, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, 1},
    /* one axis, three axes, a kernel as large as the image */
    {2, 4, {1, 1, 100}, 6, {1, 1, 10}, {1, 1, 5}, {0, 0, 2}, {1, 1, 1}, 1},
    {1, 3, {6, 8, 7}, 10, {3, 3, 3}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1}, 1},
    {2, 3, {1, 7, 7}, 9, {1, 7, 7}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 1},
    {1, 2, {1, 1, 1}, 8, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, 1},
    /* bands: more than fits a part */
    {1, 16, {1, 300, 260}, 8, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, 1},
    {1, 20, {1, 301, 463}, 4, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}, 1},
};

static int64_t volume(const int64_t *d)
{
    return d[0] * d[1] * d[2];
}

static void out_dims(const struct shape *s, int64_t *out)
{
    for (int i = 0; i < 3; i++)
        out[i] =
            (s->in[i] + 2 * s->pad[i] - s->dilation[i] * (s->kernel[i] - 1) - 1) / s->stride[i] + 1;
}

/* Small integers, whose sums f32 knows exactly. */
static float *numbers(int64_t n, uint32_t seed)
{
    float *x = malloc((size_t)n * sizeof *x);

    for (int64_t i = 0; x && i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)(seed >> 29) - 4;
    }
    return x;
}

/* One output, by the definition: terms outside are left out. */
static double one(const struct shape *s, const float *x, const float *w, int64_t image, int64_t co,
                  const int64_t *o)
{
    int64_t ch = s->channels / s->groups, first = co / (s->outs / s->groups) * ch;
    double sum = 0;

    for (int64_t c = 0; c < ch; c++) {
        for (int64_t k = 0; k < volume(s->kernel); k++) {
            const int64_t tap[3] = {k / (s->kernel[1] * s->kernel[2]),
                                    k / s->kernel[2] % s->kernel[1], k % s->kernel[2]};
            int64_t at = 0;
            bool inside = true;
            for (int i = 0; i < 3; i++) {
                int64_t p = o[i] * s->stride[i] + tap[i] * s->dilation[i] - s->pad[i];
                inside = inside && p >= 0 && p < s->in[i];
                at = at * s->in[i] + p;
            }
            if (inside)
                sum += (double)w[(co * ch + c) * volume(s->kernel) + k] *
                       (double)x[(image * s->channels + first + c) * volume(s->in) + at];
        }
    }
    return sum;
}

static void reference(const struct shape *s, const float *x, const float *w, const float *bias,
                      const float *residual, rlx_op act, float *y)
{
    int64_t out[3], at = 0;

    out_dims(s, out);
    for (int64_t image = 0; image < s->images; image++) {
        for (int64_t co = 0; co < s->outs; co++) {
            for (int64_t p = 0; p < volume(out); p++, at++) {
                const int64_t o[3] = {p / (out[1] * out[2]), p / out[2] % out[1], p % out[2]};
                double v = one(s, x, w, image, co, o);
                v += bias ? (double)bias[co] : 0;
                v += residual ? (double)residual[at] : 0;
                v = act == RLX_OP_relu && v < 0 ? 0 : v;
                y[at] = (float)(act == RLX_OP_silu ? v / (1 + exp(-v)) : v);
            }
        }
    }
}

/* ---- running ------------------------------------------------------------------------------- */

/* As many spatial axes as the shape has; sizes in front are 1. */
static int32_t spatial_axes(const struct shape *s)
{
    return s->in[0] > 1 ? 3 : s->in[1] > 1 || s->kernel[1] > 1 ? 2 : 1;
}

static struct cpu_tensor image(const struct shape *s, void *data, rlx_dtype dtype, int64_t n,
                               int64_t c, const int64_t *d)
{
    int32_t axes = spatial_axes(s);
    struct cpu_tensor r = {.data = data, .dtype = dtype, .rank = 2 + axes, .dim = {n, c}};

    r.count = n * c * volume(d);
    for (int32_t i = 0; i < axes; i++)
        r.dim[2 + i] = d[3 - axes + i];
    return r;
}

static rlx_list last(const struct shape *s, const int64_t *d)
{
    rlx_list l = {.count = spatial_axes(s)};

    for (int32_t i = 0; i < l.count; i++)
        l.at[i] = d[3 - l.count + i];
    return l;
}

struct trial {
    const struct cpu_kernel *kernel;
    struct cpu_call call;
    struct cpu_tensor in[4], out;
};

static void describe(struct trial *k, const struct shape *s, union ir_attr *attr, rlx_dtype dtype,
                     bool fused, rlx_op act, bool residual)
{
    int64_t out[3];

    out_dims(s, out);
    if (fused)
        attr->fused_conv_bias_act = (struct attr_fused_conv_bias_act){last(s, s->kernel),
                                                                      last(s, s->stride),
                                                                      last(s, s->pad),
                                                                      last(s, s->dilation),
                                                                      s->groups,
                                                                      act,
                                                                      residual};
    else
        attr->conv = (struct attr_conv){last(s, s->kernel), last(s, s->stride), last(s, s->pad),
                                        last(s, s->dilation), s->groups};
    k->in[0] = image(s, NULL, dtype, s->images, s->channels, s->in);
    k->in[1] = image(s, NULL, dtype, s->outs, s->channels / s->groups, s->kernel);
    k->in[2] = (struct cpu_tensor){.dtype = dtype, .rank = 1, .dim = {s->outs}, .count = s->outs};
    k->in[3] = k->out = image(s, NULL, dtype, s->images, s->outs, out);
    k->call = (struct cpu_call){.op = fused ? RLX_OP_fused_conv_bias_act : RLX_OP_conv,
                                .attr = attr,
                                .in_count = fused ? 3 + residual : 2,
                                .in = k->in,
                                .out = &k->out};
}

/* Scratch and the packed copy are asked for without data, as a session does. */
static void run(struct test *t, struct trial *k, void *const *data, void *y, struct pool *pool,
                bool packed)
{
    struct cpu_pack pack = {0};
    void *copy = NULL;

    k->call.pool = pool;
    for (int32_t i = 0; i < 4; i++)
        k->in[i].data = NULL, k->in[i].packed = NULL;
    k->out.data = NULL;
    if (packed)
        pack = k->kernel->pack_size(&k->call, 1);
    size_t bytes = (size_t)k->kernel->scratch(&k->call);
    void *scratch = mem_alloc_aligned(mem_default(), bytes, 64);
    for (int32_t i = 0; i < k->call.in_count; i++)
        k->in[i].data = data[i];
    k->out.data = y;
    if (pack.bytes > 0) {
        copy = mem_alloc_aligned(mem_default(), (size_t)pack.bytes, 64);
        require(t, copy != NULL);
        k->kernel->pack(&k->call, 1, copy);
        k->in[1].packed = copy;
    }
    if (expect(t, bytes == 0 || scratch)) {
        k->call.scratch = scratch;
        k->kernel->run(&k->call);
    }
    mem_free_aligned(mem_default(), scratch, bytes, 64);
    mem_free_aligned(mem_default(), copy, (size_t)pack.bytes, 64);
}

/* One thread, three threads, packed weights: the same bits. */
static void run_all_ways(struct test *t, struct trial *k, void *const *data, void *y, size_t bytes)
{
    struct diag d;
    struct pool *pool;
    void *again = malloc(bytes);

    diag_init(&d, NULL);
    require(t, again != NULL);
    require_ok(t, pool_create(&pool, 3, mem_default(), &d));
    run(t, k, data, y, NULL, false);
    for (int way = 0; way < 2; way++) {
        memset(again, 0xa5, bytes);
        run(t, k, data, again, pool, way == 1);
        expect_bytes(t, again, y, bytes);
    }
    pool_destroy(pool);
    free(again);
}

struct data {
    float *x, *w, *bias, *residual, *y, *want;
    int64_t outs;
};

static bool make_data(const struct shape *s, struct data *d)
{
    int64_t out[3];

    out_dims(s, out);
    d->outs = s->images * s->outs * volume(out);
    d->x = numbers(s->images * s->channels * volume(s->in), 1);
    d->w = numbers(s->outs * s->channels / s->groups * volume(s->kernel), 2);
    d->bias = numbers(s->outs, 3);
    d->residual = numbers(d->outs, 4);
    d->y = malloc((size_t)d->outs * sizeof *d->y);
    d->want = malloc((size_t)d->outs * sizeof *d->want);
    return d->x && d->w && d->bias && d->residual && d->y && d->want;
}

static void free_data(struct data *d)
{
    free(d->x);
    free(d->w);
    free(d->bias);
    free(d->residual);
    free(d->y);
    free(d->want);
}

TEST(conv, equals_the_definition_at_every_level)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *s = &shapes[i];
        struct data d;
        union ir_attr attr;
        require(t, make_data(s, &d));
        reference(s, d.x, d.w, NULL, NULL, RLX_OP_none, d.want);
        for (int l = 0; l < LEVELS; l++) {
            struct trial k = {0};
            if (!level(l))
                continue;
            test_note(t, "shape %d at %s", (int)i, level(l)->isa);
            k.kernel = level(l)->family[FAMILY_conv];
            describe(&k, s, &attr, RLX_DTYPE_f32, false, RLX_OP_none, false);
            run_all_ways(t, &k, (void *[]){d.x, d.w}, d.y, (size_t)d.outs * 4);
            expect_close(t, d.y, d.want, (size_t)d.outs, 0, 0);
        }
        free_data(&d);
    }
}

TEST(conv, bias_residual_and_activation_come_after_the_sum)
{
    static const rlx_op acts[] = {RLX_OP_none, RLX_OP_relu, RLX_OP_silu};

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes - 2; i++) {
        const struct shape *s = &shapes[i];
        struct data d;
        union ir_attr attr;
        rlx_op act = acts[i % 3];
        bool residual = i / 3 % 2 == 0;
        require(t, make_data(s, &d));
        reference(s, d.x, d.w, d.bias, residual ? d.residual : NULL, act, d.want);
        for (int l = 0; l < LEVELS; l++) {
            struct trial k = {0};
            void *const data[] = {d.x, d.w, d.bias, d.residual};
            if (!level(l))
                continue;
            test_note(t, "shape %d at %s", (int)i, level(l)->isa);
            k.kernel = level(l)->family[FAMILY_fused_conv_bias_act];
            describe(&k, s, &attr, RLX_DTYPE_f32, true, act, residual);
            run_all_ways(t, &k, data, d.y, (size_t)d.outs * 4);
            expect_close(t, d.y, d.want, (size_t)d.outs, act == RLX_OP_silu ? 1e-6 : 0, 1e-7);
            if (residual) { /* the kernel says that it may */
                memcpy(d.y, d.residual, (size_t)d.outs * 4);
                expect(t, k.kernel->in_place >> 3 & 1);
                run(t, &k, (void *[]){d.x, d.w, d.bias, d.y}, d.y, NULL, false);
                expect_close(t, d.y, d.want, (size_t)d.outs, act == RLX_OP_silu ? 1e-6 : 0, 1e-7);
            }
        }
        free_data(&d);
    }
}

static uint16_t *as_f16(const float *x, int64_t n)
{
    uint16_t *h = malloc((size_t)n * sizeof *h);

    for (int64_t i = 0; h && i < n; i++)
        h[i] = f32_to_f16(x[i]);
    return h;
}

TEST(conv, halves_are_rounded_once)
{
    static const size_t some[] = {1, 3, 6, 8, 11, 12, 13, 16, 20};

    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        const struct shape *s = &shapes[some[i]];
        struct data d;
        union ir_attr attr;
        require(t, make_data(s, &d));
        reference(s, d.x, d.w, d.bias, NULL, RLX_OP_relu, d.want);
        void *const data[] = {as_f16(d.x, s->images * s->channels * volume(s->in)),
                              as_f16(d.w, s->outs * s->channels / s->groups * volume(s->kernel)),
                              as_f16(d.bias, s->outs)};
        uint16_t *want = as_f16(d.want, d.outs);
        for (int l = 0; l < LEVELS; l++) {
            struct trial k = {0};
            if (!level(l))
                continue;
            test_note(t, "shape %d at %s", (int)some[i], level(l)->isa);
            k.kernel = level(l)->family[FAMILY_fused_conv_bias_act];
            describe(&k, s, &attr, RLX_DTYPE_f16, true, RLX_OP_relu, false);
            run_all_ways(t, &k, data, d.y, (size_t)d.outs * 2);
            expect_bytes(t, d.y, want, (size_t)d.outs * 2);
        }
        for (int j = 0; j < 3; j++)
            free(data[j]);
        free(want);
        free_data(&d);
    }
}

TEST(conv, what_is_outside_is_left_out)
{
    static const size_t some[] = {0, 2, 12, 13, 16, 19, 22};

    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        const struct shape *s = &shapes[some[i]];
        struct data d;
        union ir_attr attr;
        require(t, make_data(s, &d));
        d.w[0] = INFINITY;
        d.w[volume(s->kernel) - 1] = NAN;
        reference(s, d.x, d.w, d.bias, NULL, RLX_OP_relu, d.want);
        for (int l = 0; l < LEVELS; l++) {
            struct trial k = {0};
            void *const data[] = {d.x, d.w, d.bias};
            if (!level(l))
                continue;
            test_note(t, "shape %d at %s", (int)some[i], level(l)->isa);
            k.kernel = level(l)->family[FAMILY_fused_conv_bias_act];
            describe(&k, s, &attr, RLX_DTYPE_f32, true, RLX_OP_relu, false);
            run_all_ways(t, &k, data, d.y, (size_t)d.outs * 4);
            expect_close(t, d.y, d.want, (size_t)d.outs, 0, 0);
        }
        free_data(&d);
    }
}

/* A copy that was packed for one size of image serves all the others. */
TEST(conv, packed_weights_serve_images_of_other_sizes)
{
    static const int64_t side[] = {7, 8, 14, 3, 1, 40};
    enum { SIDES = sizeof side / sizeof *side };
    const struct shape shape = {1,         40,        {1, 7, 7}, 70, {1, 3, 3},
                                {1, 1, 1}, {0, 1, 1}, {1, 1, 1}, 1};

    for (int i = 0; i < LEVELS * SIDES * SIDES; i++) {
        const struct cpu_kernels *isa = level(i / (SIDES * SIDES));
        struct shape from = shape, to = shape;
        struct trial k = {0};
        struct data d;
        union ir_attr attr;
        if (!isa)
            continue;
        from.in[1] = from.in[2] = side[i / SIDES % SIDES];
        to.in[1] = to.in[2] = side[i % SIDES];
        test_note(t, "packed for %d, run for %d at %s", (int)from.in[1], (int)to.in[1], isa->isa);
        require(t, make_data(&to, &d));
        k.kernel = isa->family[FAMILY_conv];
        describe(&k, &to, &attr, RLX_DTYPE_f32, false, RLX_OP_none, false);
        run(t, &k, (void *[]){d.x, d.w}, d.want, NULL, false);

        describe(&k, &from, &attr, RLX_DTYPE_f32, false, RLX_OP_none, false);
        size_t bytes = (size_t)k.kernel->pack_size(&k.call, 1).bytes;
        void *copy = mem_alloc_aligned(mem_default(), bytes, 64);
        require(t, copy != NULL);
        k.in[1].data = d.w;
        k.kernel->pack(&k.call, 1, copy);
        describe(&k, &to, &attr, RLX_DTYPE_f32, false, RLX_OP_none, false);
        k.in[0].data = d.x;
        k.in[1].data = d.w;
        k.in[1].packed = copy;
        k.out.data = d.y;
        size_t scratch = (size_t)k.kernel->scratch(&k.call);
        k.call.scratch = mem_alloc_aligned(mem_default(), scratch, 64);
        k.kernel->run(&k.call);
        expect_close(t, d.y, d.want, (size_t)d.outs, 0, 0);
        mem_free_aligned(mem_default(), k.call.scratch, scratch, 64);
        mem_free_aligned(mem_default(), copy, bytes, 64);
        free_data(&d);
    }
}
