/* train_world.h: a small graph that learns, on a device, and the same in double precision: two
 * products and a bias, y = (x w + b) u, the mean of whose squared distance from t is the loss. */
#ifndef TESTS_TRAIN_TRAIN_WORLD_H
#define TESTS_TRAIN_TRAIN_WORLD_H

#include <math.h>
#include <string.h>

#include "rlx/autodiff.h"
#include "rlx/train.h"
#include "test.h"

enum { ROWS = 5, IN = 6, HIDDEN = 4, OUT = 7, PARAMS = 3, MOST = HIDDEN * OUT };

struct train_world {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
};

/* One batch, the same for every run of that number. */
struct batch {
    float x[ROWS * IN], t[ROWS * OUT];
};

static const char *const param_name[PARAMS] = {"w", "b", "u"};
static const int64_t param_rows[PARAMS] = {IN, 1, HIDDEN},
                     param_columns[PARAMS] = {HIDDEN, HIDDEN, OUT};

static inline size_t param_size(int i)
{
    return (size_t)(param_rows[i] * param_columns[i]);
}

static inline float first_value(int param, size_t i)
{
    return (float)(0.6 * sin(1.3 * (double)i + 2.1 * param + 0.4));
}

static inline void make_batch(struct batch *b, int number)
{
    for (int i = 0; i < ROWS * IN; i++)
        b->x[i] = (float)cos(0.7 * i + 1.1 * number);
    for (int i = 0; i < ROWS * OUT; i++)
        b->t[i] = (float)sin(0.3 * i * i + number);
}

static inline bool open_device(struct test *t, struct train_world *w, int threads)
{
    rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .threads = threads};

    *w = (struct train_world){0};
    return expect_ok(t, rlx_context_create(RLX_VERSION, &desc, &w->ctx, &w->err)) &&
           !test_no_device(t, test_device(t),
                           rlx_device_open(w->ctx, test_device(t), &w->dev, &w->err),
                           w->err.message);
}

static inline void close_world(struct train_world *w)
{
    rlx_session_destroy(w->session);
    rlx_model_destroy(w->model);
    rlx_device_close(w->dev);
    rlx_context_destroy(w->ctx);
}

/* The graph up to its loss, with params of that type. */
static inline rlx_value build_loss(rlx_graph *g, rlx_dtype dtype, rlx_dim rows)
{
    rlx_value x = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(rows, IN));
    rlx_value t = rlx_input(g, "t", RLX_DTYPE_f32, RLX_LIST(rows, OUT));
    rlx_value w = rlx_param(g, "w", dtype, RLX_LIST(IN, HIDDEN));
    rlx_value b = rlx_param(g, "b", dtype, RLX_LIST(HIDDEN));
    rlx_value u = rlx_param(g, "u", dtype, RLX_LIST(HIDDEN, OUT));
    rlx_value h = rlx_add(g, rlx_matmul(g, x, w, false, false), b);

    return rlx_mse(g, rlx_matmul(g, h, u, false, false), t);
}

static inline bool set_state(struct test *t, struct train_world *w, const char *name,
                             rlx_dtype dtype, const void *data, int64_t n, size_t bytes)
{
    rlx_tensor v = {dtype, 1, {n}, (void *)data, bytes};

    return expect_ok(t, rlx_session_set_state(w->session, name, &v, &w->err)) ||
           fail(t, "%s", w->err.message);
}

static inline bool get_state(struct test *t, struct train_world *w, const char *name,
                             rlx_dtype dtype, void *data, size_t bytes)
{
    rlx_tensor v = {.dtype = dtype, .data = data, .bytes = bytes};

    return expect_ok(t, rlx_session_get_state(w->session, name, &v, &w->err)) ||
           fail(t, "%s", w->err.message);
}

static inline bool set_params(struct test *t, struct train_world *w)
{
    float value[MOST];

    for (int i = 0; i < PARAMS; i++) {
        rlx_tensor v = {RLX_DTYPE_f32,
                        2,
                        {param_rows[i], param_columns[i]},
                        value,
                        param_size(i) * sizeof(float)};
        if (i == 1)
            v = (rlx_tensor){RLX_DTYPE_f32, 1, {HIDDEN}, value, sizeof(float) * HIDDEN};
        for (size_t k = 0; k < param_size(i); k++)
            value[k] = first_value(i, k);
        if (!expect_ok(t, rlx_session_set_state(w->session, param_name[i], &v, &w->err)))
            return fail(t, "%s", w->err.message);
    }
    return true;
}

/* How a session that learns differs from the plainest one. */
struct how {
    rlx_dtype dtype; /* of the params */
    bool any_rows;   /* as many as the run is given; otherwise `rows` */
    int64_t rows;    /* 0: ROWS */
    int threads;
    const rlx_session_desc *session;
};

/* With its params set; false: there is none, as the test now says. */
static inline bool open_as(struct test *t, struct train_world *w, const rlx_train_desc *desc,
                           struct how how)
{
    rlx_graph *g;

    if (!open_device(t, w, how.threads) || !expect_ok(t, rlx_graph_create(w->ctx, &g, &w->err)))
        return false;
    rlx_dim rows = how.any_rows ? rlx_dim_symbol(g, "n") : how.rows ? how.rows : ROWS;
    if (!expect_ok(t, rlx_train_graph(g, build_loss(g, how.dtype, rows), desc, &w->err)) ||
        !expect_ok(t, rlx_model_create(g, &w->model, &w->err)))
        return fail(t, "%s", w->err.message);
    return (expect_ok(t, rlx_session_create(w->model, w->dev, how.session, &w->session, &w->err)) ||
            fail(t, "%s", w->err.message)) &&
           set_params(t, w);
}

static inline bool open_trained(struct test *t, struct train_world *w, const rlx_train_desc *desc)
{
    return open_as(t, w, desc, (struct how){0});
}

/* What a run shows. */
struct shown {
    float loss, grad_norm, rate;
};

static inline rlx_status run_batch(struct train_world *w, const struct batch *b, int64_t rows,
                                   struct shown *s)
{
    rlx_binding in[] = {{"x", {RLX_DTYPE_f32, 2, {rows, IN}, (void *)b->x, sizeof b->x}},
                        {"t", {RLX_DTYPE_f32, 2, {rows, OUT}, (void *)b->t, sizeof b->t}}};
    rlx_binding out[] = {{"loss", {.dtype = RLX_DTYPE_f32, .data = &s->loss, .bytes = 4}},
                         {"grad_norm", {.dtype = RLX_DTYPE_f32, .data = &s->grad_norm, .bytes = 4}},
                         {"rate", {.dtype = RLX_DTYPE_f32, .data = &s->rate, .bytes = 4}}};

    in[0].tensor.bytes = (size_t)rows * IN * sizeof(float);
    in[1].tensor.bytes = (size_t)rows * OUT * sizeof(float);
    return rlx_session_run(
        w->session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, out, 3, NULL, 0}, &w->err);
}

/* The same in double: the loss, and the gradients of all params. */
static inline double batch_gradients(const double p[PARAMS][MOST], const struct batch *b,
                                     double grad[PARAMS][MOST])
{
    double loss = 0;

    memset(grad, 0, sizeof(double) * PARAMS * MOST);
    for (int r = 0; r < ROWS; r++) {
        double h[HIDDEN], dh[HIDDEN] = {0};
        for (int k = 0; k < HIDDEN; k++) {
            h[k] = p[1][k];
            for (int i = 0; i < IN; i++)
                h[k] += (double)b->x[r * IN + i] * p[0][i * HIDDEN + k];
        }
        for (int j = 0; j < OUT; j++) {
            double y = -(double)b->t[r * OUT + j], dy;
            for (int k = 0; k < HIDDEN; k++)
                y += h[k] * p[2][k * OUT + j];
            loss += y * y / (ROWS * OUT);
            dy = 2 * y / (ROWS * OUT);
            for (int k = 0; k < HIDDEN; k++) {
                grad[2][k * OUT + j] += h[k] * dy;
                dh[k] += p[2][k * OUT + j] * dy;
            }
        }
        for (int k = 0; k < HIDDEN; k++) {
            grad[1][k] += dh[k];
            for (int i = 0; i < IN; i++)
                grad[0][i * HIDDEN + k] += (double)b->x[r * IN + i] * dh[k];
        }
    }
    return loss;
}

#endif
