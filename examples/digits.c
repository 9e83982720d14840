/* digits.c: learns to read handwritten digits, and is then asked about some that it never saw. The
 * digits are in build/digits.npz (tools/setup test gets them), or in the file that is named. */
#define RLX_UNSTABLE
#include <math.h>
#include <string.h>

#include "example.h"
#include "rlx/train.h"
#include "rlx/weights.h"

enum { DIGITS = 1797, PIXELS = 64, HIDDEN = 96, CLASSES = 10, BATCH = 64, STEPS = 800 };
enum { EACH = 5, TEST = DIGITS / EACH + 1, LEARN = DIGITS - TEST }; /* every fifth is held out */

static const struct param {
    const char *name;
    int64_t in, out; /* in 0: a vector */
} params[] = {
    {"w1", PIXELS, HIDDEN}, {"b1", 0, HIDDEN}, {"w2", HIDDEN, CLASSES}, {"b2", 0, CLASSES}};

static float seen[LEARN][PIXELS], held[TEST][PIXELS];
static int32_t seen_label[LEARN], held_label[TEST];

static bool read_digits(rlx_context *ctx, const char *path)
{
    rlx_weights *file;
    rlx_error err;
    static float x[DIGITS][PIXELS], y[DIGITS];
    size_t at[2], count[2] = {0, 0};

    if (rlx_weights_open(ctx, path, NULL, &file, &err) != RLX_OK) {
        fprintf(stderr, "no digits: %s\n", err.message);
        return false;
    }
    if (!rlx_weights_find(file, (rlx_str){"x", 1}, &at[0]) ||
        !rlx_weights_find(file, (rlx_str){"y", 1}, &at[1])) {
        fprintf(stderr, "%s holds no x and y\n", path);
        exit(1);
    }
    check(rlx_weights_read_f32(file, at[0], 0, DIGITS * PIXELS, x[0], &err), &err);
    check(rlx_weights_read_f32(file, at[1], 0, DIGITS, y, &err), &err);
    for (size_t i = 0; i < DIGITS; i++) {
        size_t test = i % EACH == 0, k = count[test]++;
        memcpy(test ? held[k] : seen[k], x[i], sizeof x[i]);
        (test ? held_label : seen_label)[k] = (int32_t)y[i];
    }
    rlx_weights_close(file);
    return true;
}

/* A score for each class of each picture. */
static rlx_value scores(rlx_graph *g, rlx_value x)
{
    rlx_value v[4];

    for (int i = 0; i < 4; i++)
        v[i] = rlx_param(g, params[i].name, RLX_DTYPE_f32,
                         params[i].in ? RLX_LIST(params[i].in, params[i].out)
                                      : RLX_LIST(params[i].out));
    rlx_value h = rlx_relu(g, rlx_add(g, rlx_matmul(g, x, v[0], false, false), v[1]));
    return rlx_add(g, rlx_matmul(g, h, v[2], false, false), v[3]);
}

/* With a loss it learns; without one it answers with the likeliest class. */
static rlx_session *open_session(struct world w, int64_t rows, bool learns, rlx_model **model)
{
    rlx_graph *g;
    rlx_session *s;
    rlx_error err;

    check(rlx_graph_create(w.ctx, &g, &err), &err);
    rlx_value out = scores(g, rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(rows, PIXELS)));
    if (learns) {
        rlx_value label = rlx_input(g, "label", RLX_DTYPE_i32, RLX_LIST(rows));
        rlx_train_desc desc = {RLX_SIZED(rlx_train_desc), .rate = 4e-3f, .decay = 1e-2f,
                               .schedule = RLX_SCHEDULE_COSINE, .total_steps = STEPS};
        rlx_value loss = rlx_cross_entropy(g, out, label, NULL);
        check(rlx_train_graph(g, loss, &desc, &err), &err);
    } else {
        rlx_output(g, rlx_argmax(g, out, 1, false, RLX_DTYPE_i32));
    }
    check(rlx_model_create(g, model, &err), &err);
    check(rlx_session_create(*model, w.dev, NULL, &s, &err), &err);
    return s;
}

static rlx_tensor tensor_of(const struct param *p, float *data)
{
    rlx_tensor t = {RLX_DTYPE_f32, p->in ? 2 : 1, {p->in ? p->in : p->out, p->out}, data, 0};

    t.bytes = (size_t)((p->in ? p->in : 1) * p->out) * sizeof(float);
    return t;
}

static void learn(rlx_session *s)
{
    static float x[BATCH][PIXELS], value[PIXELS * HIDDEN];
    int32_t label[BATCH];
    float loss;
    rlx_error err;
    uint32_t random = 1;

    for (int i = 0; i < 4; i++) { /* weights of a size that keeps sums near 1; biases stay 0 */
        for (int64_t k = 0; k < params[i].in * params[i].out; k++)
            value[k] = 3 * pattern(i, (size_t)k * 31) / sqrtf((float)params[i].in);
        rlx_tensor v = tensor_of(&params[i], value);
        if (params[i].in)
            check(rlx_session_set_state(s, params[i].name, &v, &err), &err);
    }
    rlx_binding in[] = {{"x", {RLX_DTYPE_f32, 2, {BATCH, PIXELS}, x, sizeof x}},
                        {"label", {RLX_DTYPE_i32, 1, {BATCH}, label, sizeof label}}};
    rlx_binding out = {"loss", {.dtype = RLX_DTYPE_f32, .data = &loss, .bytes = sizeof loss}};
    for (int step = 0; step < STEPS; step++) {
        bool tell = step % 100 == 0 || step == STEPS - 1;
        for (int i = 0; i < BATCH; i++) {
            random = random * 1664525 + 1013904223;
            uint32_t k = (random >> 8) % LEARN;
            memcpy(x[i], seen[k], sizeof x[i]);
            label[i] = seen_label[k];
        }
        rlx_run_desc run = {RLX_SIZED(rlx_run_desc), in, 2, &out, tell, NULL, 0};
        check(rlx_session_run(s, &run, &err), &err);
        if (tell)
            printf("step %3d: loss %.4f\n", step, (double)loss);
    }
}

/* How many of those that were held out it reads right, with what the other session has learnt. */
static int examine(rlx_session *s, rlx_session *learnt)
{
    static float value[PIXELS * HIDDEN];
    int32_t answer[TEST];
    int right = 0;
    rlx_error err;

    for (int i = 0; i < 4; i++) {
        rlx_tensor v = tensor_of(&params[i], value);
        check(rlx_session_get_state(learnt, params[i].name, &v, &err), &err);
        check(rlx_session_set_param(s, params[i].name, &v, &err), &err);
    }
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {TEST, PIXELS}, held, sizeof held}};
    rlx_binding out = {"out0", {.dtype = RLX_DTYPE_i32, .data = answer, .bytes = sizeof answer}};
    check(rlx_session_run(s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0},
                          &err),
          &err);
    for (int i = 0; i < TEST; i++)
        right += answer[i] == held_label[i];
    return right;
}

int main(int argc, char **argv)
{
    struct world world = open_world(NULL);
    rlx_model *learner, *reader;
    bool found = read_digits(world.ctx, argc > 1 ? argv[1] : "build/digits.npz");
    double part = 0;

    if (found) {
        rlx_session *train = open_session(world, BATCH, true, &learner);
        rlx_session *read = open_session(world, TEST, false, &reader);
        learn(train);
        part = (double)examine(read, train) / TEST;
        printf("%.1f %% of %d digits that it never saw are read right\n", 100 * part, TEST);
        rlx_session_destroy(read);
        rlx_session_destroy(train);
        rlx_model_destroy(reader);
        rlx_model_destroy(learner);
    }
    close_world(world);
    return !found ? 77 : part > 0.97 ? 0 : 1;
}
