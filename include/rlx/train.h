/* train.h: losses.
 *
 *     rlx_value loss = rlx_cross_entropy(g, logits, labels, NULL);
 *
 * Losses are parts of a graph, as any op: they add ordinary nodes, and the graph keeps failures for
 * rlx_graph_check. Each is one number, in f32, or in f64 where what it is given is f64. */
#ifndef RLX_TRAIN_H
#define RLX_TRAIN_H

#ifndef RLX_UNSTABLE
#error "rlx/train.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- losses ---- */

typedef struct rlx_cross_entropy_desc {
    uint32_t size;
    float smoothing; /* of the weight of the label, how much goes to all classes alike: 0 to 1 */
    bool ignore;     /* rows with the label `ignored` do not count */
    int64_t ignored;
} rlx_cross_entropy_desc;
/* logits [.., classes], labels [..] of integers: the mean of -ln softmax(logits)[label] over the
 * rows that count; 0 if none does. Rows whose label is no class (-1, -100) never count. desc NULL:
 * all zeros. */
RLX_API rlx_value rlx_cross_entropy(rlx_graph *g, rlx_value logits, rlx_value labels,
                                    const rlx_cross_entropy_desc *desc);
/* The mean of (x - target)^2 over all elements. Shapes are the same. */
RLX_API rlx_value rlx_mse(rlx_graph *g, rlx_value x, rlx_value target);
/* Yes or no, for every element: the mean of -t ln p - (1 - t) ln(1 - p) with p = sigmoid(logits)
 * and targets t from 0 to 1. Right for logits of any size. */
RLX_API rlx_value rlx_bce(rlx_graph *g, rlx_value logits, rlx_value target);
/* How far the distribution q = softmax(logits) is from p = softmax(target), both [.., classes]: the
 * sum of p (ln p - ln q) over the classes, its mean over the rows. */
RLX_API rlx_value rlx_kl(rlx_graph *g, rlx_value logits, rlx_value target);

typedef struct rlx_contrastive_desc {
    uint32_t size;
    float temperature; /* 0: 0.07 */
    bool one_way;      /* only: which b belongs to an a. Otherwise also the reverse, halved */
} rlx_contrastive_desc;
/* InfoNCE: a and b [n, d] are pairs of rows, each scaled to length 1. Of the products of a row of a
 * with all rows of b, divided by the temperature, its own b is the label. */
RLX_API rlx_value rlx_contrastive(rlx_graph *g, rlx_value a, rlx_value b,
                                  const rlx_contrastive_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
