/* cross_entropy.c: losses over rows of logits, and the gradient (ops-core.md 19.1).
 *
 * lse is the logarithm of the sum of e^x over a row. */
#include "backend/cpu/kernels/move/index.h"
#include "backend/cpu/kernels/rows/softmax.h"

struct loss_job {
    const struct cpu_call *c;
    int64_t classes;
};

static double row_lse(const struct cpu_tensor *logits, int64_t row, int64_t classes)
{
    double shift;
    double sum = softmax_row_sum(logits->dtype, cpu_at(logits, row * classes), classes, &shift);

    return shift + log(sum);
}

static int64_t rows_of(const struct cpu_call *c)
{
    const struct cpu_tensor *logits = &c->in[0];
    return cpu_product(logits, 0, logits->rank - 1);
}

/* Negative labels are padding; in checked mode nothing else may be out of range. */
static void check_labels(const struct cpu_call *c, const struct cpu_tensor *labels, int64_t classes)
{
    for (int64_t k = 0; c->check_indices && k < labels->count; k++) {
        int64_t v = cpu_index(labels, k);
        bool nan =
            cpu_is_float(labels->dtype) && isnan(cpu_get_f64(labels->dtype, labels->data, k));
        if (v >= classes || nan)
            cpu_report_index(c, k, v);
    }
}

static void label_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct loss_job *j = ctx;
    const struct cpu_tensor *logits = &j->c->in[0], *labels = &j->c->in[1], *y = j->c->out;

    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        int64_t label = cpu_index(labels, r);
        double loss = 0;
        if (cpu_index_valid(label, j->classes))
            loss = row_lse(logits, r, j->classes) -
                   cpu_get_f64(logits->dtype, logits->data, r * j->classes + label);
        cpu_set_f64(y->dtype, y->data, r, loss);
    }
}

/* -sum of t (x - lse) */
static double target_loss(const struct cpu_tensor *logits, const struct cpu_tensor *targets,
                          int64_t row, int64_t classes)
{
    double lse = row_lse(logits, row, classes), sum = 0;
    CPU_TILE_OF(double, x);
    CPU_TILE_OF(double, t);

    for (int64_t i = 0; i < classes; i += CPU_TILE) {
        int64_t n = cpu_min_i64(classes - i, CPU_TILE);
        cpu_load_f64(logits->dtype, cpu_at(logits, row * classes + i), x, n);
        cpu_load_f64(targets->dtype, cpu_at(targets, row * classes + i), t, n);
        for (int64_t k = 0; k < n; k++)
            t[k] *= x[k] - lse;
        sum += reduce_row_sum_f64(t, n);
    }
    return -sum;
}

static void target_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct loss_job *j = ctx;
    const struct cpu_tensor *logits = &j->c->in[0], *targets = &j->c->in[1], *y = j->c->out;

    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        double loss = j->classes ? target_loss(logits, targets, r, j->classes) : 0;
        cpu_set_f64(y->dtype, y->data, r, loss);
    }
}

/* (softmax - onehot) * dloss, for n columns from `from` on; label counts from there. */
static void gradient_tile(rlx_dtype d, const void *x, void *y, int64_t n, const double *shift,
                          double scale, int64_t label, double dloss)
{
    if (d == RLX_DTYPE_f64) {
        CPU_TILE_OF(double, e);
        softmax_exp_f64(x, *shift, scale, e, n);
        if (cpu_index_valid(label, n))
            e[label] -= 1;
        for (int64_t i = 0; i < n; i++)
            e[i] *= dloss;
        cpu_store_f64(d, e, y, n);
    } else {
        CPU_TILE_OF(float, e);
        softmax_exp_f32(cpu_as_f32(d, x, e, n), (float)*shift, (float)scale, e, n);
        if (cpu_index_valid(label, n))
            e[label] -= 1;
        for (int64_t i = 0; i < n; i++)
            e[i] *= (float)dloss;
        cpu_store_f32(d, e, y, n);
    }
}

static void gradient_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct loss_job *j = ctx;
    const struct cpu_tensor *logits = &j->c->in[0], *labels = &j->c->in[1], *dloss = &j->c->in[2];
    const struct cpu_tensor *y = j->c->out;
    rlx_dtype d = logits->dtype;

    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        int64_t label = cpu_index(labels, r), at = r * j->classes;
        if (!cpu_index_valid(label, j->classes)) {
            memset(cpu_at(y, at), 0, (size_t)j->classes * cpu_size(d));
            continue;
        }
        double shift, sum = softmax_row_sum(d, cpu_at(logits, at), j->classes, &shift);
        double g = cpu_get_f64(dloss->dtype, dloss->data, r);
        for (int64_t i = 0; i < j->classes; i += CPU_TILE)
            gradient_tile(d, cpu_at(logits, at + i), cpu_at(y, at + i),
                          cpu_min_i64(j->classes - i, CPU_TILE), &shift, softmax_scale(sum),
                          label - i, g);
    }
}

static void run_rows(const struct cpu_call *c, cpu_range_fn fn)
{
    struct loss_job j = {c, c->in[0].dim[c->in[0].rank - 1]};

    if (c->out->count > 0)
        cpu_for(c->pool, rows_of(c), cpu_grain(4096, j.classes), fn, &j);
}

static void with_labels(const struct cpu_call *c)
{
    if (c->out->count > 0)
        check_labels(c, &c->in[1], c->in[0].dim[c->in[0].rank - 1]);
    run_rows(c, label_rows);
}

static void with_targets(const struct cpu_call *c)
{
    run_rows(c, target_rows);
}

static void backward(const struct cpu_call *c)
{
    if (c->out->count > 0)
        check_labels(c, &c->in[1], c->in[0].dim[c->in[0].rank - 1]);
    run_rows(c, gradient_rows);
}

extern const struct cpu_kernel CPU_NAME(cpu_softmax_cross_entropy_with_logits),
    CPU_NAME(cpu_softmax_cross_entropy), CPU_NAME(cpu_softmax_cross_entropy_backward);
const struct cpu_kernel CPU_NAME(cpu_softmax_cross_entropy_with_logits) = {.run = with_labels};
const struct cpu_kernel CPU_NAME(cpu_softmax_cross_entropy) = {.run = with_targets};
const struct cpu_kernel CPU_NAME(cpu_softmax_cross_entropy_backward) = {.run = backward,
                                                                        .in_place = 1};
