/* lora.c: adapts a network to another task without touching it. It learns to read digits; then the
 * pictures are turned upside down, and beside each of its two matrices W two thin ones, A and B,
 * are trained in its place: x W + (x A) B. The digits are in build/digits.npz (tools/setup test
 * gets them), or in the file that is named. */
#define RLX_UNSTABLE
#include <string.h>

#include "rlx/weights.h"
#include "trained.h"

enum { DIGITS = 1797, PIXELS = 64, HIDDEN = 96, CLASSES = 10, BATCH = 64, RANK = 4 };
enum { LEARN = 1400, TEST = DIGITS - LEARN, STEPS = 1200 };

static float x[DIGITS][PIXELS];
static int32_t y[DIGITS];

/* In another order than the file's, where digits of one writer follow each other. */
static bool read_digits(rlx_context *ctx, const char *path)
{
    rlx_weights *file;
    rlx_error err;
    size_t of_x, of_y;
    float digit;

    if (rlx_weights_open(ctx, path, NULL, &file, &err) != RLX_OK) {
        fprintf(stderr, "no digits: %s\n", err.message);
        return false;
    }
    bool found = rlx_weights_find(file, (rlx_str){"x", 1}, &of_x) &&
                 rlx_weights_find(file, (rlx_str){"y", 1}, &of_y);
    for (size_t i = 0; found && i < DIGITS; i++) {
        size_t k = i * 1000 % DIGITS;
        check(rlx_weights_read_f32(file, of_x, i * PIXELS, PIXELS, x[k], &err), &err);
        check(rlx_weights_read_f32(file, of_y, i, 1, &digit, &err), &err);
        y[k] = (int32_t)digit;
    }
    rlx_weights_close(file);
    if (!found)
        fprintf(stderr, "no digits: %s holds no x and y\n", path);
    return found;
}

/* Turns every picture upside down. */
static void turn(void)
{
    for (int i = 0; i < DIGITS; i++)
        for (int a = 0, b = PIXELS - 1; a < b; a++, b--) {
            float t = x[i][a];
            x[i][a] = x[i][b];
            x[i][b] = t;
        }
}

static rlx_value layer(rlx_graph *g, rlx_value v, int i, int64_t in, int64_t out, bool adapts)
{
    static const char *const names[][4] = {{"w1", "b1", "w1.lora_a", "w1.lora_b"},
                                           {"w2", "b2", "w2.lora_a", "w2.lora_b"}};
    rlx_value w = rlx_param(g, names[i][0], RLX_DTYPE_f32, RLX_LIST(in, out));
    rlx_value bias = rlx_param(g, names[i][1], RLX_DTYPE_f32, RLX_LIST(out));
    rlx_value sum = rlx_add(g, rlx_matmul(g, v, w, false, false), bias);

    if (!adapts)
        return sum;
    rlx_value a = rlx_param(g, names[i][2], RLX_DTYPE_f32, RLX_LIST(in, RANK));
    rlx_value b = rlx_param(g, names[i][3], RLX_DTYPE_f32, RLX_LIST(RANK, out));
    rlx_value thin = rlx_matmul(g, v, a, false, false);
    return rlx_add(g, sum, rlx_matmul(g, thin, b, false, false));
}

/* One that learns gives a loss; one that reads the likeliest class. */
static rlx_model *make_model(rlx_context *ctx, bool adapts, bool learns)
{
    int64_t rows = learns ? BATCH : TEST;
    rlx_model *model;
    rlx_graph *g;
    rlx_error err;

    check(rlx_graph_create(ctx, &g, &err), &err);
    rlx_value in = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(rows, PIXELS));
    rlx_value h = rlx_relu(g, layer(g, in, 0, PIXELS, HIDDEN, adapts));
    rlx_value score = layer(g, h, 1, HIDDEN, CLASSES, adapts);
    if (learns) {
        rlx_value label = rlx_input(g, "label", RLX_DTYPE_i32, RLX_LIST(rows));
        rlx_output(g, rlx_cross_entropy(g, score, label, NULL));
    } else {
        rlx_output(g, rlx_argmax(g, score, 1, false, RLX_DTYPE_i32));
    }
    check(rlx_model_create(g, &model, &err), &err);
    return model;
}

/* Trains the params that are named so. The rule for B makes the product 0 at first: it begins as
 * the network was. */
static rlx_trainer *learn(struct world w, rlx_model *model, const char *train)
{
    const rlx_init_rule zero = {"*.lora_b", RLX_INIT_CONSTANT, 0};
    rlx_train_desc step = {RLX_SIZED(rlx_train_desc),
                           .rate = 1e-2f,
                           .decay = 1e-2f,
                           .schedule = RLX_SCHEDULE_COSINE,
                           .total_steps = STEPS,
                           .train = &train,
                           .train_count = 1};
    rlx_trainer_desc desc = {RLX_SIZED(rlx_trainer_desc), .train = &step, .seed = 1, .init = &zero,
                             .init_count = 1};
    rlx_binding arrays[] = {{"x", {RLX_DTYPE_f32, 2, {LEARN, PIXELS}, x, sizeof x[0] * LEARN}},
                            {"label", {RLX_DTYPE_i32, 1, {LEARN}, y, sizeof y[0] * LEARN}}};
    rlx_dataset_desc from = {RLX_SIZED(rlx_dataset_desc), .arrays = arrays, .array_count = 2,
                             .seed = 1};
    rlx_train_report report = {RLX_SIZED(rlx_train_report)};
    const rlx_binding *inputs;
    rlx_trainer *trainer;
    rlx_dataset *data;
    size_t count;
    rlx_error err;

    check(rlx_trainer_create(model, w.dev, &desc, &trainer, &err), &err);
    check(rlx_dataset_create(w.ctx, &from, &data, &err), &err);
    check(rlx_dataset_fit(data, model, &err), &err);
    for (uint64_t i = 0; i < STEPS; i++) {
        check(rlx_dataset_batch(data, RLX_SPLIT_TRAIN, i, &inputs, &count, &err), &err);
        check(rlx_trainer_step(trainer, inputs, count, &err), &err);
    }
    check(rlx_trainer_report(trainer, &report, &err), &err);
    rlx_dataset_destroy(data);
    return trainer;
}

/* The part of digits that it never saw which it reads right. */
static double examine(struct world w, rlx_trainer *learnt, bool adapts, const char *what)
{
    int32_t answer[TEST];
    int right = 0;
    rlx_model *model = make_model(w.ctx, adapts, false);
    rlx_session *s;
    rlx_error err;

    give_params(learnt, model);
    check(rlx_session_create(model, w.dev, NULL, &s, &err), &err);
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {TEST, PIXELS}, x[LEARN], sizeof x[0] * TEST}};
    rlx_binding out = {"out0", {.dtype = RLX_DTYPE_i32, .data = answer, .bytes = sizeof answer}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
    check(rlx_session_run(s, &run, &err), &err);
    rlx_session_destroy(s);
    rlx_model_destroy(model);
    for (int i = 0; i < TEST; i++)
        right += answer[i] == y[LEARN + i];
    printf("%-45s %5.1f %% of %d read right\n", what, 100.0 * right / TEST, TEST);
    return (double)right / TEST;
}

/* Whether all that was not trained has the bits it had; how many numbers were. */
static bool same(rlx_trainer *before, rlx_trainer *after)
{
    size_t count[2] = {0, 0};
    bool equal = true;
    rlx_trainer_value v;

    for (size_t i = 0; rlx_trainer_value_at(after, i, &v); i++) {
        if (!v.param)
            continue;
        struct learnt now = learnt_param(after, &v);
        count[v.trained] += now.count;
        if (!v.trained) {
            struct learnt then = learnt_param(before, &v);
            equal = equal && memcmp(now.value.data, then.value.data, now.value.bytes) == 0;
            free(then.value.data);
        }
        free(now.value.data);
    }
    printf("%d numbers were trained; the %d others %s\n", (int)count[1], (int)count[0],
           equal ? "are what they were, bit for bit" : "have changed");
    return equal && count[0] > 0 && count[1] < count[0];
}

int main(int argc, char **argv)
{
    struct world w = open_world(NULL);
    bool good = false, found = read_digits(w.ctx, argc > 1 ? argv[1] : "build/digits.npz");

    if (found) {
        rlx_model *plain = make_model(w.ctx, false, true), *both = make_model(w.ctx, true, true);
        rlx_trainer *first = learn(w, plain, "*");
        double own = examine(w, first, false, "as it learnt them:");
        turn();
        double lost = examine(w, first, false, "upside down:");
        give_params(first, both);
        rlx_trainer *second = learn(w, both, "*.lora_*");
        double back = examine(w, second, true, "upside down, with matrices of rank 4:");
        good = same(first, second) && own > 0.95 && lost < 0.6 && back > 0.93;
        rlx_trainer_destroy(second);
        rlx_trainer_destroy(first);
        rlx_model_destroy(both);
        rlx_model_destroy(plain);
    }
    close_world(w);
    return !found ? 77 : good ? 0 : 1;
}
