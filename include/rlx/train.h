/* train.h: from a model to one that has learnt: losses, optimisers, and what runs them.
 *
 *     rlx_value loss = rlx_cross_entropy(g, logits, labels, NULL);
 *     rlx_train_graph(g, loss, &(rlx_train_desc){RLX_SIZED(rlx_train_desc), .rate = 3e-4f}, &err);
 *
 * Losses are parts of a graph, as any op: they add ordinary nodes, and the graph keeps failures for
 * rlx_graph_check. Each is one number, in f32, or in f64 where what it is given is f64.
 * docs/training.md begins at the beginning. */
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

/* ---- a step of training, as a graph ---- */

typedef enum rlx_optimiser {
    RLX_OPTIMISER_ADAMW = 0,
    RLX_OPTIMISER_ADAM = 1, /* decay is added to the gradient */
    RLX_OPTIMISER_SGD = 2,  /* likewise */
    RLX_OPTIMISER_LION = 3,
    RLX_OPTIMISER_MUON = 4 /* matrices; AdamW for all else, and for those that rows are taken from
                            * or that `plain` names */
} rlx_optimiser;

/* The rate of update k, counted from 0. Over the first warmup_steps it grows: rate (k + 1) /
 * warmup_steps; then it goes to rate final_ratio, which it has from update total_steps on. */
typedef enum rlx_schedule {
    RLX_SCHEDULE_CONSTANT = 0,
    RLX_SCHEDULE_LINEAR = 1,
    RLX_SCHEDULE_COSINE = 2,   /* half a wave */
    RLX_SCHEDULE_ONE_CYCLE = 3 /* from rate start_ratio over warmup_steps updates up to rate, and
                                * down over the rest of total_steps, each half a wave */
} rlx_schedule;

typedef struct rlx_train_desc {
    uint32_t size;
    rlx_optimiser optimiser;
    float rate;               /* 0: 1e-3; SGD 1e-2, Lion 1e-4, Muon 2e-2 */
    float decay;              /* of weights */
    bool decay_vectors;       /* params with one axis decay as well */
    float beta1, beta2;       /* 0: 0.9 and 0.999; Lion 0.9 and 0.99 */
    float eps;                /* 0: 1e-8 */
    float momentum;           /* of SGD; of Muon, where 0 is 0.95 */
    bool nesterov;            /* of SGD; Muon always */
    float plain_rate;         /* with Muon, of the params that AdamW takes; 0: 1e-3 */
    const char *const *plain; /* with Muon, names of such params; '*' stands for anything */
    size_t plain_count;

    rlx_schedule schedule;
    int64_t warmup_steps, total_steps; /* updates */
    float final_ratio;
    float start_ratio; /* of one-cycle; 0: 1/25 */

    float clip_norm;    /* gradients together are no longer than this; 0: any length */
    int32_t accumulate; /* runs to an update, which takes their mean; 0: 1 */
    /* The loss is multiplied by this before it is differentiated, and gradients divided by it
     * again, so that those in f16 do not vanish: where they overflow there is no update, and the
     * factor halves; after loss_scale_steps (0: 2000) updates without, it doubles. 0: no factor. */
    float loss_scale;
    int32_t loss_scale_steps;

    const char *const *train; /* names of params to train, '*' as above; none: all */
    size_t train_count;
    const char *const *keep; /* of those, names of params that stay as they are */
    size_t keep_count;
} rlx_train_desc;
/* Makes of g, which computes loss, a graph that learns in each run. Params that are trained become
 * states of the same name; others are added, zero at first, for what the optimiser keeps. Outputs
 * are added, one number each:
 *
 *     loss        of this run
 *     grad_norm   the length of all gradients together, before they are clipped
 *     rate        of this run's update
 *
 * and can be read of the run that the host cares for: all else stays on the device. The states:
 *
 *     adamw.m:NAME, ..  of the param NAME, what the optimiser keeps of it
 *     train.grad:NAME   the sum of gradients so far, with `accumulate`
 *     train.step        i32[1]: updates made
 *     train.run         i32[1]: runs so far since the last update, with `accumulate`
 *     train.loss        f32[2]: the sum of the losses and their number, since it was last set to 0
 *     train.bad         i32[2]: runs whose loss or gradients were not finite, from the first such
 *                       run on all of them; and the number of updates before it. Params and
 *                       optimiser have been left as they were then. Set it to 0 to go on.
 *     train.scale       f32[2]: with loss_scale, the factor (0: as the desc says), and the number
 *                       of updates since it changed
 *
 * desc NULL: all zeros. SHAPE, DTYPE: loss is not one float. GRAPH: it depends on no param that is
 * to be trained, or not on one that `train` names in full. NAME: there is no such param. */
RLX_API rlx_status rlx_train_graph(rlx_graph *g, rlx_value loss, const rlx_train_desc *desc,
                                   rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
