/* characters.c: learns from a text which character comes next, and then writes some of its own. Of
 * every character the model sees the WINDOW before it, each as a vector that is learnt, through one
 * hidden layer. The text is the file that is named, or one of $RLX_TEST_DATA/text. */
#define RLX_UNSTABLE
#include <math.h>
#include <string.h>

#include "trained.h"

enum { WINDOW = 8, VECTOR = 16, HIDDEN = 128, BATCH = 32, CONTEXT = 64, STEPS = 600 };
/* Batches to look at in the end, of the twentieth that is held out; and characters: that
 * this needs at least, that are read at most, to write. */
enum { LOOK = 8, ENOUGH = 20 * (LOOK + 1) * BATCH * CONTEXT, MOST = 4 << 20, WRITE = 200 };

/* The text as numbers: bytes that occur in it are counted from 0. */
static struct text {
    int32_t at[MOST];
    size_t count;
    int32_t vocab, number[256];
    char byte[256];
    double entropy; /* bits to a character, where no more is known than how often each occurs */
} text;

static bool read_text(const char *path)
{
    FILE *f = path ? fopen(path, "rb") : NULL;
    double seen[256] = {0};

    if (!f)
        return false;
    memset(text.number, -1, sizeof text.number);
    for (int c; text.count < MOST && (c = getc(f)) != EOF;) {
        if (text.number[c] < 0) {
            text.byte[text.vocab] = (char)c;
            text.number[c] = text.vocab++;
        }
        seen[text.number[c]]++;
        text.at[text.count++] = text.number[c];
    }
    fclose(f);
    for (int i = 0; i < text.vocab; i++)
        text.entropy -= seen[i] / (double)text.count * log2(seen[i] / (double)text.count);
    return true;
}

/* tokens [rows, length] to scores [rows, length, vocab] of what comes next: the vectors of tokens,
 * moved by 0, 1, 2, .. places with zeros before the first, are side by side. */
static rlx_value scores(rlx_graph *g, rlx_value tokens, int64_t length)
{
    static const char *const names[] = {"embedding", "w1", "b1", "w2", "b2"};
    const int64_t shape[][2] = {{text.vocab, VECTOR},
                                {WINDOW * VECTOR, HIDDEN},
                                {1, HIDDEN},
                                {HIDDEN, text.vocab},
                                {1, text.vocab}};
    rlx_value v[5], moved[WINDOW];

    for (int i = 0; i < 5; i++)
        v[i] = rlx_param(g, names[i], RLX_DTYPE_f32,
                         shape[i][0] == 1 ? RLX_LIST(shape[i][1]) : rlx_list_of(2, shape[i]));
    rlx_value all = rlx_pad(g, rlx_gather(g, v[0], tokens, 0), RLX_LIST(0, WINDOW - 1, 0),
                            RLX_LIST(0, 0, 0), RLX_PAD_MODE_constant, 0);
    for (int i = 0; i < WINDOW; i++)
        moved[i] = rlx_narrow(g, all, 1, i, length);
    rlx_value x = rlx_concat(g, moved, WINDOW, 2);
    rlx_value h = rlx_relu(g, rlx_add(g, rlx_matmul(g, x, v[1], false, false), v[2]));
    return rlx_add(g, rlx_matmul(g, h, v[3], false, false), v[4]);
}

/* One that learns gives a loss; one that writes gives the odds of what comes after its window. */
static rlx_model *make_model(rlx_context *ctx, bool learns)
{
    int64_t rows = learns ? BATCH : 1, length = learns ? CONTEXT : WINDOW;
    rlx_model *model;
    rlx_graph *g;
    rlx_error err;

    check(rlx_graph_create(ctx, &g, &err), &err);
    rlx_value tokens = rlx_input(g, "tokens", RLX_DTYPE_i32, RLX_LIST(rows, length));
    rlx_value out = scores(g, tokens, length);
    if (learns) {
        rlx_value next = rlx_input(g, "targets", RLX_DTYPE_i32, RLX_LIST(rows, length));
        rlx_output(g, rlx_cross_entropy(g, out, next, NULL));
    } else {
        rlx_output(g, rlx_softmax(g, rlx_narrow(g, out, 1, WINDOW - 1, 1), 2));
    }
    check(rlx_model_create(g, &model, &err), &err);
    return model;
}

/* Bits to a character of what was held out. */
static double held_out(rlx_trainer *trainer, rlx_dataset *data)
{
    const rlx_binding *inputs;
    double loss, sum = 0;
    size_t count;
    rlx_error err;

    for (uint64_t i = 0; i < LOOK; i++) {
        check(rlx_dataset_batch(data, RLX_SPLIT_VALIDATION, i, &inputs, &count, &err), &err);
        check(rlx_trainer_evaluate(trainer, inputs, count, &loss, &err), &err);
        sum += loss / log(2);
    }
    return sum / LOOK;
}

static void learn(rlx_trainer *trainer, rlx_dataset *data)
{
    const rlx_binding *inputs;
    rlx_train_report report = {RLX_SIZED(rlx_train_report)};
    size_t count;
    rlx_error err;

    for (uint64_t i = 1; i <= STEPS; i++) {
        check(rlx_dataset_batch(data, RLX_SPLIT_TRAIN, i - 1, &inputs, &count, &err), &err);
        check(rlx_trainer_step(trainer, inputs, count, &err), &err);
        if (i % 100 == 0) {
            check(rlx_trainer_report(trainer, &report, &err), &err);
            printf("step %4d: %.3f bits per character\n", (int)i, report.loss / log(2));
        }
    }
}

/* Draws one character after the other by its odds, after the beginning of the text. */
static void write_some(struct world w, rlx_trainer *trainer)
{
    float odds[256];
    int32_t seen[WINDOW];
    rlx_model *model = make_model(w.ctx, false);
    rlx_session *s;
    rlx_error err;
    uint32_t random = 1;

    give_params(trainer, model);
    check(rlx_session_create(model, w.dev, NULL, &s, &err), &err);
    rlx_binding in = {"tokens", {RLX_DTYPE_i32, 2, {1, WINDOW}, seen, sizeof seen}};
    rlx_binding out = {
        "out0", {.dtype = RLX_DTYPE_f32, .data = odds, .bytes = (size_t)text.vocab * sizeof *odds}};
    memcpy(seen, text.at, sizeof seen);
    for (int n = 0; n < WRITE; n++) {
        rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
        check(rlx_session_run(s, &run, &err), &err);
        random = random * 1664525 + 1013904223;
        float left = (float)(random >> 8) / (1 << 24);
        int32_t next = 0;
        while (next < text.vocab - 1 && (left -= odds[next]) >= 0)
            next++;
        putchar(text.byte[next]);
        memmove(seen, seen + 1, sizeof seen - sizeof *seen);
        seen[WINDOW - 1] = next;
    }
    putchar('\n');
    rlx_session_destroy(s);
    rlx_model_destroy(model);
}

int main(int argc, char **argv)
{
    const char *root = getenv("RLX_TEST_DATA");
    char path[1024];
    rlx_trainer *trainer;
    rlx_dataset *data;
    rlx_error err;

    snprintf(path, sizeof path, "%s/text/tinyshakespeare.txt", root ? root : "");
    if (!read_text(argc > 1 ? argv[1] : root ? path : NULL) || text.count < ENOUGH) {
        printf("no text of %d characters: name a file, or set RLX_TEST_DATA\n", ENOUGH);
        return 77;
    }
    struct world w = open_world(NULL);
    rlx_model *model = make_model(w.ctx, true);
    rlx_train_desc step = {RLX_SIZED(rlx_train_desc), .rate = 4e-3f,
                           .schedule = RLX_SCHEDULE_COSINE, .total_steps = STEPS};
    rlx_init_rule wide = {"embedding", RLX_INIT_NORMAL, 0.5f};
    rlx_trainer_desc desc = {RLX_SIZED(rlx_trainer_desc), .train = &step, .seed = 1, .init = &wide,
                             .init_count = 1};
    rlx_dataset_desc from = {RLX_SIZED(rlx_dataset_desc), .batch = BATCH,
                             .validation = 0.05,          .seed = 1,
                             .tokens = text.at,           .token_count = text.count,
                             .context = CONTEXT};
    check(rlx_trainer_create(model, w.dev, &desc, &trainer, &err), &err);
    check(rlx_dataset_create(w.ctx, &from, &data, &err), &err);
    check(rlx_dataset_fit(data, model, &err), &err);
    learn(trainer, data);
    double bits = held_out(trainer, data);
    printf("%.3f bits on text it never saw; how often each of %d characters occurs gives %.3f\n\n",
           bits, text.vocab, text.entropy);
    write_some(w, trainer);
    rlx_dataset_destroy(data);
    rlx_trainer_destroy(trainer);
    rlx_model_destroy(model);
    close_world(w);
    return !(bits < 0.65 * text.entropy);
}
