/* models.c: the encoder and the ResNet, through the public builders. */
#include "models.h"

#include <stdio.h>

const struct encoder_shape bert_base = {12, 768, 12, 3072, 128};
const struct resnet_shape resnet50 = {4, {3, 4, 6, 3}, 64, 1000, 224, false};
const struct resnet_shape resnet50_folded = {4, {3, 4, 6, 3}, 64, 1000, 224, true};

/* A param whose name is that of its layer and its part of it. */
static rlx_value part(rlx_graph *g, const char *layer, const char *what, rlx_list shape)
{
    char name[64];

    snprintf(name, sizeof name, "%s.%s", layer, what);
    return rlx_param(g, name, RLX_DTYPE_f32, shape);
}

static rlx_value dense(rlx_graph *g, const char *layer, rlx_value x, int64_t from, int64_t to)
{
    rlx_value w = part(g, layer, "weight", RLX_LIST(from, to));

    return rlx_add(g, rlx_matmul(g, x, w, false, false), part(g, layer, "bias", RLX_LIST(to)));
}

/* ---- the encoder ---- */

static rlx_value layer_norm(rlx_graph *g, const char *layer, rlx_value x, int64_t size)
{
    rlx_value gamma = part(g, layer, "gamma", RLX_LIST(size));

    return rlx_layer_norm(g, x, gamma, part(g, layer, "beta", RLX_LIST(size)), -1, 1e-12f);
}

static rlx_value encoder_layer(rlx_graph *g, const struct encoder_shape *s, int layer, rlx_value x)
{
    enum { QUERY, KEY, VALUE, ATTENDED, ATTENTION_NORM, WIDE, NARROW, NORM, COUNT };
    static const char *const parts[COUNT] = {"query",          "key",  "value",  "attended",
                                             "attention_norm", "wide", "narrow", "norm"};
    char name[COUNT][32];
    int64_t h = s->hidden;

    for (int i = 0; i < COUNT; i++)
        snprintf(name[i], sizeof name[i], "layer%d.%s", layer, parts[i]);
    rlx_value q = dense(g, name[QUERY], x, h, h);
    rlx_value k = dense(g, name[KEY], x, h, h);
    rlx_value v = dense(g, name[VALUE], x, h, h);
    rlx_attention_desc d = RLX_ATTENTION_DESC_INIT;
    d.num_heads = s->heads;
    d.head_dim = h / s->heads;
    d.layout = RLX_ATTENTION_LAYOUT_packed;
    rlx_value a = rlx_attention(g, q, k, v, RLX_NO_VALUE, &d);
    a = rlx_add(g, dense(g, name[ATTENDED], a, h, h), x);
    a = layer_norm(g, name[ATTENTION_NORM], a, h);
    rlx_value f = rlx_gelu(g, dense(g, name[WIDE], a, h, s->ffn));
    f = rlx_add(g, dense(g, name[NARROW], f, s->ffn, h), a);
    return layer_norm(g, name[NORM], f, h);
}

void encoder_build(rlx_graph *g, const struct encoder_shape *s)
{
    rlx_value x = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(1, s->sequence, s->hidden));

    for (int i = 0; i < s->layers; i++)
        x = encoder_layer(g, s, i, x);
    rlx_output(g, x);
}

/* ---- the ResNet ---- */

struct conv {
    int64_t from, to, kernel, stride;
};

/* Convolution and batch norm, or its bias. */
static rlx_value conv(rlx_graph *g, const struct resnet_shape *s, const char *layer, rlx_value x,
                      struct conv c)
{
    rlx_value w = part(g, layer, "weight", RLX_LIST(c.to, c.from, c.kernel, c.kernel));
    int64_t pad = c.kernel / 2;
    rlx_conv_desc conv = RLX_CONV_DESC_INIT;
    conv.stride = RLX_LIST(c.stride, c.stride);
    conv.padding = RLX_LIST(pad, pad);
    rlx_value y = rlx_conv(g, x, w, &conv);

    if (s->folded)
        return rlx_add(g, y, part(g, layer, "bias", RLX_LIST(c.to, 1, 1)));
    rlx_value gamma = part(g, layer, "gamma", RLX_LIST(c.to));
    rlx_value beta = part(g, layer, "beta", RLX_LIST(c.to));
    rlx_value mean = part(g, layer, "mean", RLX_LIST(c.to));
    rlx_value var = part(g, layer, "var", RLX_LIST(c.to));
    return rlx_batch_norm_inference(g, y, gamma, beta, mean, var, 1, 1e-5f);
}

/* 1x1 down, 3x3, 1x1 up to four times the width, added to the input or to its projection. */
static rlx_value bottleneck(rlx_graph *g, const struct resnet_shape *s, const char *name,
                            rlx_value x, int64_t from, int64_t width, int64_t stride, bool project)
{
    char layer[4][64];

    for (int i = 0; i < 4; i++)
        snprintf(layer[i], sizeof layer[i], "%s.conv%d", name, i);
    rlx_value skip = x;
    if (project)
        skip = conv(g, s, layer[0], x, (struct conv){from, 4 * width, 1, stride});
    rlx_value y = rlx_relu(g, conv(g, s, layer[1], x, (struct conv){from, width, 1, 1}));
    y = rlx_relu(g, conv(g, s, layer[2], y, (struct conv){width, width, 3, stride}));
    y = conv(g, s, layer[3], y, (struct conv){width, 4 * width, 1, 1});
    return rlx_relu(g, rlx_add(g, y, skip));
}

void resnet_build(rlx_graph *g, const struct resnet_shape *s)
{
    rlx_value x = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(1, 3, s->image, s->image));
    int64_t from = s->width;

    x = rlx_relu(g, conv(g, s, "stem", x, (struct conv){3, s->width, 7, 2}));
    rlx_pool_desc pool = RLX_POOL_DESC_INIT;
    pool.kind = RLX_POOL_KIND_max;
    pool.kernel_size = RLX_LIST(3, 3);
    pool.stride = RLX_LIST(2, 2);
    pool.padding = RLX_LIST(1, 1);
    pool.count_include_pad = false;
    x = rlx_pool(g, x, &pool);
    for (int stage = 0; stage < s->stage_count; stage++) {
        int64_t width = s->width << stage;
        for (int block = 0; block < s->blocks[stage]; block++) {
            char name[40];
            snprintf(name, sizeof name, "stage%d.block%d", stage, block);
            int64_t stride = block == 0 && stage > 0 ? 2 : 1;
            x = bottleneck(g, s, name, x, from, width, stride, block == 0);
            from = 4 * width;
        }
    }
    x = rlx_reduce_mean(g, x, RLX_LIST(2, 3), false);
    rlx_output(g, dense(g, "classes", x, from, s->classes));
}
