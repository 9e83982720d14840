/* eval_loss.c: cross-entropy per row of logits (ops-core.md 19.1). A label outside the classes
 * marks a row to be ignored. */
#include <math.h>

#include "ir/eval/eval.h"

/* m + ln sum e^(x-m), m the largest; as the formula has it where that is infinite or NaN. */
static double log_sum_exp(const struct eval_cell *x, int64_t n)
{
    double top = -INFINITY, sum = 0;

    for (int64_t i = 0; i < n; i++)
        if (x[i].f > top || isnan(x[i].f))
            top = x[i].f;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i].f - top);
    return top + log(sum);
}

rlx_status eval_softmax_cross_entropy_with_logits(struct eval_call *c)
{
    const struct eval_tensor *logits = c->in[0], *labels = c->in[1];
    int64_t n = logits->type.dim[1];

    for (int64_t k = 0; k < c->out->count; k++) {
        int64_t label = eval_index(labels, k);
        const struct eval_cell *x = &logits->at[k * n];
        if (label >= 0 && label < n)
            c->out->at[k].f = log_sum_exp(x, n) - x[label].f;
    }
    return RLX_OK;
}

rlx_status eval_softmax_cross_entropy(struct eval_call *c)
{
    const struct eval_tensor *logits = c->in[0], *targets = c->in[1];
    int64_t n = logits->type.dim[1];

    for (int64_t k = 0; k < c->out->count; k++) {
        const struct eval_cell *x = &logits->at[k * n], *t = &targets->at[k * n];
        double lse = log_sum_exp(x, n);
        for (int64_t i = 0; i < n; i++)
            c->out->at[k].f -= t[i].f * (x[i].f - lse);
    }
    return RLX_OK;
}

rlx_status eval_softmax_cross_entropy_backward(struct eval_call *c)
{
    const struct eval_tensor *logits = c->in[0], *labels = c->in[1], *dloss = c->in[2];
    int64_t n = logits->count ? logits->type.dim[1] : 0;
    double *x = arena_array(c->arena, double, (size_t)n);
    double *p = arena_array(c->arena, double, (size_t)n);

    if (!x || !p)
        return diag_no_memory(c->diag, (size_t)n * sizeof *x);
    for (int64_t k = 0; n > 0 && k < labels->count; k++) {
        int64_t label = eval_index(labels, k);
        if (label < 0 || label >= n)
            continue;
        for (int64_t i = 0; i < n; i++)
            x[i] = logits->at[k * n + i].f;
        eval_softmax_line(x, p, n);
        for (int64_t i = 0; i < n; i++)
            c->out->at[k * n + i].f = (p[i] - (i == label ? 1 : 0)) * dloss->at[k].f;
    }
    return RLX_OK;
}
