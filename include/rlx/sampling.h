/* sampling.h: what happens to logits before rlx_sample draws from them, as parts of a graph.
 *
 *     rlx_value seen = rlx_count_tokens(g, tokens, vocab);
 *     rlx_value fair = rlx_penalize(g, logits, seen, 1.1f, 0.2f, 0.0f);
 *     rlx_value next = rlx_sample(g, fair, step, &drawn);
 *
 * The order of all steps is in docs/sampling.md. These functions add ordinary nodes; failures are
 * kept by the graph, as those of any op. */
#ifndef RLX_SAMPLING_H
#define RLX_SAMPLING_H

#ifndef RLX_UNSTABLE
#error "rlx/sampling.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How often each of `vocab` tokens occurs in each row: tokens [..., n] of integers, result f32
 * [..., vocab]. Tokens that are negative (padding) or not below vocab do not count. Exact up to
 * 2^24 of one token. */
RLX_API rlx_value rlx_count_tokens(rlx_graph *g, rlx_value tokens, rlx_dim vocab);

/* Logits [..., v] of tokens that occurred counts [..., v] times, made less likely, in this order:
 *
 *     repetition  of those that occurred, positive ones are divided by it, others multiplied; 1:
 * off frequency   times the count is taken away; 0: off presence    is taken away from those that
 * occurred; 0: off
 *
 * Counts are any numbers, and broadcast. Computed in f32, or in f64 if the logits are; the result
 * has the logits' type. ATTRIBUTE: repetition is not above 0, or one of the three is not finite. */
RLX_API rlx_value rlx_penalize(rlx_graph *g, rlx_value logits, rlx_value counts, float repetition,
                               float frequency, float presence);

#ifdef __cplusplus
}
#endif
#endif
