/* models.h: the two networks that rlx is timed on as a whole, at full size or small, and the values
 * that go into them. bench/ort.py builds the same networks for ONNX Runtime, name by name, and
 * fills them by the same rule, so that both sides compute the same thing. */
#ifndef BENCH_MODELS_H
#define BENCH_MODELS_H

#include "rlx/graph.h"

/* A BERT-shaped encoder: layers of self-attention and a gelu feed-forward net, each added to its
 * input and normalised after that. Input "x" is [1, sequence, hidden]. */
struct encoder_shape {
    int layers;
    int64_t hidden, heads, ffn, sequence;
};
extern const struct encoder_shape bert_base;
void encoder_build(rlx_graph *g, const struct encoder_shape *s);

/* A ResNet with bottleneck blocks. Input "x" is [1, 3, image, image]. folded: each batch norm is a
 * bias, its scale having gone into the weights. */
struct resnet_shape {
    int stage_count;
    int blocks[4];          /* of each stage */
    int64_t width, classes; /* channels after the stem; what is distinguished */
    int64_t image;
    bool folded;
};
extern const struct resnet_shape resnet50, resnet50_folded;
void resnet_build(rlx_graph *g, const struct resnet_shape *s);

/* The values of the tensor of that name: seeded by the name, uniform, and of a size that the end of
 * the name tells: ".weight" keeps the variance, ".gamma" and ".var" lie around 1, ".bias", ".beta"
 * and ".mean" around 0; the rest within 1. */
void values_fill(const char *name, const rlx_tensor *shape, float *out);
int64_t values_count(const rlx_tensor *shape);

#endif
