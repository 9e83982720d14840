/* autodiff.h: derivatives of graphs, as graphs.
 *
 *     rlx_value loss = ..., d[2];
 *     rlx_gradient(g, loss, (const rlx_value[]){w, b}, 2, d, &err);
 *     rlx_output(g, loss);
 *     rlx_output(g, d[0]);
 *
 * All of these append nodes to g, so that values and derivatives are computed in one run, and what
 * they share is computed once. Derivatives may be differentiated again. Each takes values that
 * others are computed from, wrt[], which may be inputs, params, states or any value in between.
 *
 * NO_RULE names the op that has no derivative, or none in this form, and then nothing was added.
 * What is computed from integers, and what went through stop_gradient or a comparison, does not
 * depend on wrt[]: its derivative is zero. */
#ifndef RLX_AUTODIFF_H
#define RLX_AUTODIFF_H

#ifndef RLX_UNSTABLE
#error "rlx/autodiff.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of one number: out[i] is the gradient of `of`, which has one element, with respect to wrt[i], in
 * the type of wrt[i]. */
RLX_API rlx_status rlx_gradient(rlx_graph *g, rlx_value of, const rlx_value *wrt, size_t count,
                                rlx_value *out, rlx_error *err);
/* Of several values of any shape, each with a weight of its own type for every element: the
 * gradient of the sum of their products (a vector times the Jacobian). */
RLX_API rlx_status rlx_vjp(rlx_graph *g, const rlx_value *of, const rlx_value *weight,
                           size_t of_count, const rlx_value *wrt, size_t count, rlx_value *out,
                           rlx_error *err);
/* How of[] changes while wrt[i] moves along tangent[i], which has the type of wrt[i] (the Jacobian
 * times a vector): out[k] has the type of of[k]. */
RLX_API rlx_status rlx_jvp(rlx_graph *g, const rlx_value *of, size_t of_count, const rlx_value *wrt,
                           const rlx_value *tangent, size_t count, rlx_value *out, rlx_error *err);
/* How the gradient of one number changes in that direction (the Hessian times a vector): out[i] has
 * the type of wrt[i]. */
RLX_API rlx_status rlx_hvp(rlx_graph *g, rlx_value of, const rlx_value *wrt,
                           const rlx_value *direction, size_t count, rlx_value *out,
                           rlx_error *err);
/* of[] once for each of n examples: batched[i] stands for wrt[i] and has its type with an axis of
 * n in front; so has out[k] for of[k]. What does not depend on wrt[] is computed once. Integers
 * take part as well. NO_RULE: what draws random numbers, or writes a state. */
RLX_API rlx_status rlx_vmap(rlx_graph *g, const rlx_value *of, size_t of_count,
                            const rlx_value *wrt, const rlx_value *batched, size_t count,
                            rlx_value *out, rlx_error *err);
/* Which of wrt[] does `of` depend on in a way that has a derivative? */
RLX_API rlx_status rlx_gradient_reaches(rlx_graph *g, rlx_value of, const rlx_value *wrt,
                                        size_t count, bool *out, rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
