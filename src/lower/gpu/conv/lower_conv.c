/* lower_conv.c: convolutions and their gradients: conv, fused_conv_bias_act, conv_transpose,
 * conv_backward_input, conv_backward_weight (ops-core.md 12, 15). */
#include "lower/gpu/conv/lower_conv.h"
#include "lower/gpu/gemm/lower_matmul.h"

/* ---- shapes ---- */

static void spatial(const struct ir_type *t, uint64_t size[3])
{
    int32_t missing = 5 - t->rank;

    for (int32_t i = 0; i < 3; i++)
        size[i] = i < missing ? 1 : (uint64_t)t->dim[2 + i - missing];
}

static void numbers(const rlx_list *l, uint64_t absent, uint64_t out[3])
{
    int32_t missing = 3 - l->count;

    for (int32_t i = 0; i < 3; i++)
        out[i] = i < missing ? absent : (uint64_t)l->at[i - missing];
}

/* Do all taps of all positions fall into the image? */
static bool has_edges(const struct gpu_conv *v)
{
    if (v->mode == GPU_CONV_TO_X)
        return true;
    for (int i = 0; i < 3; i++)
        if (v->padding[i] ||
            (v->places[i] - 1) * v->stride[i] + (v->kernel[i] - 1) * v->dilation[i] >= v->size[i])
            return true;
    return false;
}

struct gpu_conv gpu_conv_of(const struct gpu_call *c, enum gpu_conv_mode mode,
                            const struct gpu_conv_lists *l, const struct ir_type *x,
                            const struct ir_type *w, const struct ir_type *y)
{
    uint64_t groups = (uint64_t)l->groups, in = (uint64_t)x->dim[1], out = (uint64_t)y->dim[1];
    struct gpu_conv v = {.mode = mode,
                         .dtype = x->dtype,
                         .images = (uint64_t)x->dim[0],
                         .groups = groups,
                         .residual = -1,
                         .end = gpu_no_epilogue(c)};
    bool to_x = mode == GPU_CONV_TO_X;

    spatial(w, v.kernel);
    spatial(to_x ? y : x, v.size);
    spatial(to_x ? x : y, v.places);
    numbers(l->stride, 1, v.stride);
    numbers(l->padding, 0, v.padding);
    numbers(l->dilation, 1, v.dilation);
    v.taps = v.kernel[0] * v.kernel[1] * v.kernel[2];
    v.channels = to_x ? out : in;
    v.others = to_x ? in : out;
    v.across = v.channels / groups;
    v.of = (struct gpu_product){
        .items = groups,
        .m = v.others / groups,
        .n = v.images * v.places[0] * v.places[1] * v.places[2],
        .k = v.across * v.taps,
        .split_sums = gpu_split_sums(c),
    };
    if (mode == GPU_CONV_TO_W) {
        v.of.k = v.of.n;
        v.of.n = v.across * v.taps;
    }
    v.edges = has_edges(&v);
    return v;
}

void gpu_conv_taps(struct gpu_call *c, const struct gpu_conv *v)
{
    gpu_const(c, "KD", (int64_t)v->kernel[0]);
    gpu_const(c, "KH", (int64_t)v->kernel[1]);
    gpu_const(c, "KW", (int64_t)v->kernel[2]);
}

void gpu_conv_shape(struct gpu_call *c, const struct gpu_conv *v)
{
    const uint64_t *lists[] = {v->size, v->places, v->stride, v->padding, v->dilation};

    for (int i = 0; i < 15; i++)
        gpu_u32(c, "shape", lists[i / 3][i % 3]);
}

/* ---- launches ---- */

static void bind_factors(struct gpu_call *c, const struct gpu_conv *v,
                         const struct gpu_epilogue *end)
{
    gpu_bind(c, v->p);
    gpu_bind(c, v->q);
    gpu_epilogue_bind(c, end);
    gpu_bind(c, gpu_in(c, v->residual >= 0 ? v->residual : 0));
}

/* Any dtype, and planes of their own, which share nothing that tiles would keep. */
static void launch_direct(struct gpu_call *c, const struct gpu_conv *v)
{
    uint64_t count = gpu_count(c->out);

    gpu_kernel(c, "conv", "direct");
    gpu_type(c, "T", v->dtype);
    gpu_type(c, "Q", v->q_type);
    gpu_type(c, "Y", v->end.stored);
    gpu_type(c, "A", gpu_sum_type(v->dtype));
    gpu_const(c, "MODE", v->mode);
    gpu_conv_taps(c, v);
    gpu_epilogue_constants(c, &v->end);
    gpu_flag(c, "RESIDUAL", v->residual >= 0);
    bind_factors(c, v, &v->end);
    gpu_bind(c, v->y);
    gpu_u32(c, "count", count);
    gpu_u32(c, "m", v->of.m);
    gpu_u32(c, "channels", v->channels);
    gpu_u32(c, "across", v->across);
    gpu_u32(c, "others", v->others);
    gpu_conv_shape(c, v);
    gpu_epilogue_words(c, &v->end);
    gpu_invocations(c, count, GPU_GROUP);
}

static void launch_weight(struct gpu_call *c, const struct gpu_conv *v)
{
    bool solo = gpu_sum_type(v->dtype) != RLX_DTYPE_f32;
    uint64_t count = gpu_count(c->out);

    gpu_kernel(c, "conv", "weight");
    gpu_type(c, "T", v->dtype);
    gpu_type(c, "A", gpu_sum_type(v->dtype));
    gpu_flag(c, "SOLO", solo);
    gpu_conv_taps(c, v);
    gpu_bind(c, v->p);
    gpu_bind(c, v->q);
    gpu_bind(c, v->y);
    gpu_u32(c, "count", count);
    gpu_u32(c, "images", v->images);
    gpu_u32(c, "m", v->of.m);
    gpu_u32(c, "channels", v->channels);
    gpu_u32(c, "across", v->across);
    gpu_u32(c, "others", v->others);
    gpu_conv_shape(c, v);
    gpu_groups(c, solo ? gpu_ceil(count, GPU_GROUP) : count);
}

static bool whole_vectors(const struct gpu_call *c, const struct gpu_conv *v)
{
    return v->mode == GPU_CONV_FORWARD && v->of.k % 4 == 0 &&
           gpu_aligned(c, v->q, 4 * rlx_dtype_size(v->q_type));
}

static void launch_tiles(struct gpu_call *c, const struct gpu_conv *v)
{
    bool may_split = v->residual < 0;
    struct gpu_tiling t = gpu_best_tiling(&v->of, may_split);
    uint64_t count = gpu_count(c->out);
    struct gpu_arg room = gpu_split_room(c, &v->of);
    bool split = t.split.parts > 1;
    struct gpu_epilogue none = gpu_no_epilogue(c);
    const struct gpu_epilogue *end = split ? &none : &v->end;

    gpu_kernel(c, "conv", "tiled");
    gpu_type(c, "T", v->dtype);
    gpu_type(c, "Q", v->q_type);
    gpu_type(c, "Y", split ? RLX_DTYPE_f32 : v->end.stored);
    gpu_const(c, "MODE", v->mode);
    gpu_tile_constants(c, t.tile);
    gpu_const(c, "VA", whole_vectors(c, v) ? 4 : 1);
    gpu_conv_taps(c, v);
    gpu_flag(c, "EDGES", v->edges);
    gpu_epilogue_constants(c, end);
    gpu_flag(c, "RESIDUAL", v->residual >= 0);
    bind_factors(c, v, end);
    gpu_bind(c, split ? gpu_part(room, 0, t.split.parts * count * sizeof(float)) : v->y);
    gpu_u32(c, "count", t.groups);
    gpu_u32(c, "m", v->of.m);
    gpu_u32(c, "n", v->of.n);
    gpu_u32(c, "k", v->of.k);
    gpu_u32(c, "part", t.split.part);
    gpu_u32(c, "parts", t.split.parts);
    gpu_u32(c, "channels", v->channels);
    gpu_u32(c, "across", v->across);
    gpu_u32(c, "others", v->others);
    gpu_conv_shape(c, v);
    gpu_epilogue_words(c, end);
    gpu_groups(c, t.groups);
    if (split)
        gpu_add_parts(c, &v->end, room, v->y, count, t.split.parts);
}

/* One tap that moves nothing: rows of channels, [m,k] or turned around [k,m], times planes
 * [k,places], for every image and group. */
static bool is_matmul(const struct gpu_conv *v)
{
    bool plain = v->mode != GPU_CONV_TO_W && v->residual < 0 && v->taps == 1;

    for (int i = 0; i < 3; i++)
        plain = plain && v->stride[i] == 1 && v->padding[i] == 0 && v->size[i] == v->places[i];
    return plain;
}

static void launch_matmul(struct gpu_call *c, const struct gpu_conv *v)
{
    uint64_t places = v->places[0] * v->places[1] * v->places[2];
    struct gpu_matmul p = {
        .a = v->q,
        .b = v->p,
        .y = v->y,
        .dtype = v->dtype,
        .sum = gpu_sum_type(v->dtype),
        .a_half = v->q_type != v->dtype,
        .at = v->mode == GPU_CONV_TO_X,
        .of = {v->images * v->groups, v->of.m, places, v->of.k, v->of.split_sums},
        .rank = 2,
        .size = {v->images, v->groups},
        .a_step = {0, v->of.m * v->of.k},
        .b_step = {v->channels * places, v->across * places},
        .end = v->end};

    p.room = gpu_split_room(c, &p.of);
    gpu_matmul_launch(c, &p);
}

/* Below this many columns or rows, tiles would be mostly empty. */
#define FEW 4

static void launch(struct gpu_call *c, struct gpu_conv *v, int32_t p, int32_t q)
{
    bool tiles = gpu_sum_type(v->dtype) == RLX_DTYPE_f32 && v->of.m >= FEW && v->of.n >= FEW;

    if (gpu_count(c->out) == 0)
        return;
    v->p = gpu_in(c, p);
    v->q = gpu_in(c, q);
    v->q_type = gpu_is_half(c, q) ? RLX_DTYPE_f16 : v->dtype;
    v->y = gpu_epilogue_result(c, &v->end);
    if (is_matmul(v))
        launch_matmul(c, v);
    else if (tiles)
        launch_tiles(c, v);
    else if (v->mode == GPU_CONV_TO_W)
        launch_weight(c, v);
    else
        launch_direct(c, v);
    gpu_epilogue_finish(c, &v->end, v->y);
}

/* ---- the ops ---- */

#define LISTS(a)                                                 \
    {                                                            \
        &(a)->stride, &(a)->padding, &(a)->dilation, (a)->groups \
    }

void gpu_lower_conv(struct gpu_call *c)
{
    const struct gpu_conv_lists l = LISTS(&c->attr->conv);
    struct gpu_conv v = gpu_conv_of(c, GPU_CONV_FORWARD, &l, &c->in[0], &c->in[1], c->out);

    launch(c, &v, 0, 1);
}

/* A bias per channel: [N, O, places] steps through it by 0, 1, 0. */
void gpu_lower_fused_conv_bias_act(struct gpu_call *c)
{
    const struct attr_fused_conv_bias_act *a = &c->attr->fused_conv_bias_act;
    const struct gpu_conv_lists l = LISTS(a);
    struct gpu_conv v = gpu_conv_of(c, GPU_CONV_FORWARD, &l, &c->in[0], &c->in[1], c->out);

    v.end = gpu_epilogue_of(c, -1, a->activation);
    v.end.bias = 2;
    v.end.rank = 3;
    v.end.size[0] = v.images;
    v.end.size[1] = v.others;
    v.end.size[2] = v.places[0] * v.places[1] * v.places[2];
    v.end.step[1] = 1;
    v.residual = a->has_residual ? 3 : -1;
    launch(c, &v, 0, 1);
}

/* The gradient for the input of the convolution that it turns around. */
void gpu_lower_conv_transpose(struct gpu_call *c)
{
    const struct gpu_conv_lists l = LISTS(&c->attr->conv_transpose);
    struct gpu_conv v = gpu_conv_of(c, GPU_CONV_TO_X, &l, c->out, &c->in[1], &c->in[0]);

    launch(c, &v, 0, 1);
}

void gpu_lower_conv_backward_input(struct gpu_call *c)
{
    const struct gpu_conv_lists l = LISTS(&c->attr->conv_backward_input);
    struct gpu_conv v = gpu_conv_of(c, GPU_CONV_TO_X, &l, c->out, &c->in[1], &c->in[0]);

    launch(c, &v, 0, 1);
}

void gpu_lower_conv_backward_weight(struct gpu_call *c)
{
    const struct gpu_conv_lists l = LISTS(&c->attr->conv_backward_weight);
    struct gpu_conv v = gpu_conv_of(c, GPU_CONV_TO_W, &l, &c->in[0], c->out, &c->in[1]);

    launch(c, &v, 0, 1);
}
