/* train.c: a step of training of a transformer of ten million params on 8 rows of 256 tokens: the
 * loss, its gradients and an update by AdamW. bench/train.py times it beside PyTorch.
 *
 *   train [--threads N] [--device NAME] [--profile RUNS]
 *
 * It prints {"ready": true, "losses": [...]}, those of the first three steps, then for each number
 * of milliseconds read {"times": [seconds, ...]}. --profile shows where the time goes, and ends. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/train.h"
#include "support/job.h"

enum { VOCAB = 6144, WIDTH = 256, LAYERS = 8, HEADS = 8, HIDDEN = 768, ROWS = 8, LENGTH = 256 };
enum { HEAD = WIDTH / HEADS, PARAMS = 3 + 9 * LAYERS };

/* ---- the graph ---- */

struct model {
    rlx_graph *g;
    rlx_value cos, sin;
    int count;
    struct {
        char name[16];
        int64_t rows, columns; /* rows 0: a vector of ones */
    } at[PARAMS];
};

static rlx_value param(struct model *m, const char *name, int layer, int64_t rows, int64_t columns)
{
    int i = m->count++;

    snprintf(m->at[i].name, sizeof m->at[i].name, layer ? "%s%d" : "%s", name, layer);
    m->at[i].rows = rows;
    m->at[i].columns = columns;
    return rlx_param(m->g, m->at[i].name, RLX_DTYPE_f32,
                     rows ? RLX_LIST(rows, columns) : RLX_LIST(columns));
}

static rlx_value product(struct model *m, rlx_value x, const char *name, int layer, int64_t rows,
                         int64_t columns)
{
    return rlx_matmul(m->g, x, param(m, name, layer, rows, columns), false, false);
}

static rlx_value norm(struct model *m, rlx_value x, const char *name, int layer)
{
    static const float none[WIDTH];
    rlx_value zero = rlx_const(m->g, RLX_DTYPE_f32, RLX_LIST(WIDTH), none, sizeof none);

    return rlx_rms_norm(m->g, x, param(m, name, layer, 0, WIDTH), zero, -1, 1e-5f);
}

static rlx_value table(rlx_graph *g, double (*of)(double))
{
    static float value[LENGTH][HEAD / 2];

    for (int p = 0; p < LENGTH; p++)
        for (int i = 0; i < HEAD / 2; i++)
            value[p][i] = (float)of(p * pow(10000, -2.0 * i / HEAD));
    return rlx_const(g, RLX_DTYPE_f32, RLX_LIST(LENGTH, HEAD / 2), value, sizeof value);
}

static rlx_value turned(struct model *m, rlx_value x)
{
    return rlx_rope(m->g, x, m->cos, m->sin, HEAD, RLX_ABSENT, RLX_ROPE_STYLE_half, -2);
}

static rlx_value block(struct model *m, rlx_value x, int layer)
{
    rlx_attention_desc desc = RLX_ATTENTION_DESC_INIT;
    rlx_value h = norm(m, x, "norm1.", layer);
    rlx_value q = turned(m, product(m, h, "q.", layer, WIDTH, WIDTH));
    rlx_value k = turned(m, product(m, h, "k.", layer, WIDTH, WIDTH));
    rlx_value v = product(m, h, "v.", layer, WIDTH, WIDTH);

    desc.num_heads = HEADS;
    desc.head_dim = HEAD;
    desc.mask_kind = RLX_MASK_KIND_causal;
    desc.layout = RLX_ATTENTION_LAYOUT_packed;
    h = rlx_attention(m->g, q, k, v, RLX_NO_VALUE, &desc);
    x = rlx_add(m->g, x, product(m, h, "o.", layer, WIDTH, WIDTH));
    h = norm(m, x, "norm2.", layer);
    rlx_value gate = rlx_silu(m->g, product(m, h, "gate.", layer, WIDTH, HIDDEN));
    h = rlx_mul(m->g, gate, product(m, h, "up.", layer, WIDTH, HIDDEN));
    return rlx_add(m->g, x, product(m, h, "down.", layer, HIDDEN, WIDTH));
}

static rlx_value transformer(struct model *m, rlx_graph *g)
{
    *m = (struct model){.g = g};
    rlx_value tokens = rlx_input(g, "tokens", RLX_DTYPE_i32, RLX_LIST(ROWS, LENGTH));
    rlx_value labels = rlx_input(g, "labels", RLX_DTYPE_i32, RLX_LIST(ROWS, LENGTH));
    rlx_value x = rlx_gather(g, param(m, "embed", 0, VOCAB, WIDTH), tokens, 0);

    m->cos = table(g, cos);
    m->sin = table(g, sin);
    for (int i = 1; i <= LAYERS; i++)
        x = block(m, x, i);
    x = product(m, norm(m, x, "norm", 0), "head", 0, WIDTH, VOCAB);
    return rlx_cross_entropy(g, x, labels, NULL);
}

/* ---- values: the rule is bench/train.py's as well ---- */

/* A number of 32 bits that looks random, for element i of tensor t. */
static uint32_t scrambled(uint32_t i, uint32_t t)
{
    uint32_t h = i * 0x9E3779B1u + t * 0x85EBCA77u + 1;

    h = (h ^ h >> 16) * 0x7FEB352Du;
    h = (h ^ h >> 15) * 0x846CA68Bu;
    return h ^ h >> 16;
}

static void set_params(const struct model *m, rlx_session *s)
{
    float *value = malloc(sizeof *value * VOCAB * WIDTH);
    rlx_error err;

    if (!value)
        give_up("out of memory");
    for (int i = 0; i < m->count; i++) {
        size_t rows = m->at[i].rows ? (size_t)m->at[i].rows : 1;
        size_t count = rows * (size_t)m->at[i].columns;
        for (size_t k = 0; k < count; k++)
            value[k] =
                m->at[i].rows
                    ? ((float)(scrambled((uint32_t)k, (uint32_t)i) >> 8) * 0x1p-23f - 1) * 0.0625f
                    : 1;
        rlx_tensor v = {
            RLX_DTYPE_f32, 2, {(int64_t)rows, m->at[i].columns}, value, count * sizeof *value};
        if (!m->at[i].rows)
            v = (rlx_tensor){RLX_DTYPE_f32, 1, {m->at[i].columns}, value, v.bytes};
        check(rlx_session_set_state(s, m->at[i].name, &v, &err), &err);
    }
    free(value);
}

static struct {
    int32_t tokens[ROWS][LENGTH], labels[ROWS][LENGTH];
} text;

static void set_text(void)
{
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t i = 0; i <= LENGTH; i++) {
            int32_t token = (int32_t)(scrambled((r * 31 + i) % 1009, 1000) % VOCAB);
            if (i < LENGTH)
                text.tokens[r][i] = token;
            if (i > 0)
                text.labels[r][i - 1] = token;
        }
}

/* ---- runs ---- */

static float step(struct job *j)
{
    rlx_binding in[] = {
        {"tokens", {RLX_DTYPE_i32, 2, {ROWS, LENGTH}, text.tokens, sizeof text.tokens}},
        {"labels", {RLX_DTYPE_i32, 2, {ROWS, LENGTH}, text.labels, sizeof text.labels}}};
    float loss = 0;
    rlx_binding out = {"loss", {.dtype = RLX_DTYPE_f32, .data = &loss, .bytes = sizeof loss}};
    rlx_error err;

    check(rlx_session_run(j->session,
                          &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0}, &err),
          &err);
    return loss;
}

static void answer_round(struct job *j, double seconds)
{
    double begin = now(), t;
    const char *comma = "";

    printf("{\"times\": [");
    do {
        double start = now();
        step(j);
        t = now();
        printf("%s%.9f", comma, t - start);
        comma = ", ";
    } while (t - begin < seconds);
    puts("]}");
    fflush(stdout);
}

/* Steps by name, slowest first. */
struct kind {
    char name[48];
    double seconds;
    int steps;
};

static struct kind kinds[128];
static int kind_count;

static void note_step(void *user, const rlx_profile_event *e)
{
    int i = 0;

    (void)user;
    while (i < kind_count && strcmp(kinds[i].name, e->step) != 0)
        i++;
    if (i == kind_count && kind_count < (int)(sizeof kinds / sizeof *kinds))
        snprintf(kinds[kind_count++].name, sizeof kinds->name, "%s", e->step);
    if (i < kind_count) {
        kinds[i].seconds += (double)e->duration_ns * 1e-9;
        kinds[i].steps++;
    }
}

static int slowest_first(const void *a, const void *b)
{
    double x = ((const struct kind *)a)->seconds, y = ((const struct kind *)b)->seconds;

    return (x < y) - (x > y);
}

static void print_profile(struct job *j, long runs)
{
    double total = 0;

    rlx_session_set_profile(j->session, note_step, NULL);
    for (long i = 0; i < runs; i++)
        step(j);
    qsort(kinds, (size_t)kind_count, sizeof *kinds, slowest_first);
    for (int i = 0; i < kind_count; i++)
        total += kinds[i].seconds;
    for (int i = 0; i < kind_count; i++)
        printf("%-32s %5ld steps %10.3f ms %6.1f%%\n", kinds[i].name, kinds[i].steps / runs,
               kinds[i].seconds * 1e3 / (double)runs, 100 * kinds[i].seconds / total);
    printf("%-32s             %10.3f ms\n", "all", total * 1e3 / (double)runs);
}

static void open_session(struct job *j, struct model *m, rlx_graph *g)
{
    rlx_train_desc desc = {RLX_SIZED(rlx_train_desc), .rate = 1e-3f, .decay = 0.1f, .clip_norm = 1};
    rlx_error err;

    check(rlx_train_graph(g, transformer(m, g), &desc, &err), &err);
    check(rlx_model_create(g, &j->model, &err), &err);
    check(rlx_session_create(j->model, j->dev, NULL, &j->session, &err), &err);
    set_params(m, j->session);
    set_text();
}

int main(int argc, char **argv)
{
    static struct model m;
    int threads = 1;
    long profile = 0;
    const char *device = "cpu";
    struct job j;
    char line[32];

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0)
            threads = (int)strtol(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--device") == 0)
            device = argv[i + 1];
        else if (strcmp(argv[i], "--profile") == 0)
            profile = strtol(argv[i + 1], NULL, 10);
        else
            give_up("there is no flag %s; there are --threads, --device and --profile", argv[i]);
    }
    rlx_graph *g = job_begin_on(&j, threads, device);
    open_session(&j, &m, g);
    float first = step(&j), second = step(&j), third = step(&j);
    if (profile > 0) {
        print_profile(&j, profile);
    } else {
        printf("{\"ready\": true, \"losses\": [%.7g, %.7g, %.7g]}\n", (double)first, (double)second,
               (double)third);
        fflush(stdout);
        while (fgets(line, sizeof line, stdin))
            answer_round(&j, strtod(line, NULL) * 1e-3);
    }
    job_close(&j);
    return 0;
}
