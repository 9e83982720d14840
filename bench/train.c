/* train.c: a step of training, of a transformer of ten million params on 8 rows of 256 tokens or of
 * a small convolutional network on 64 pictures: the loss, its gradients and an update by AdamW.
 * bench/train.py times it beside PyTorch.
 *
 *   train [--net transformer|conv] [--threads N] [--device NAME] [--profile RUNS]
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
enum { PICTURES = 64, COLOURS = 3, SIDE = 32, STAGES = 3, CHANNELS = 32, CLASSES = 10 };

/* ---- the transformer ---- */

struct model {
    rlx_graph *g;
    rlx_value cos, sin;
    int count;
    struct {
        char name[16];
        rlx_list shape; /* one axis: ones */
    } at[PARAMS];
};

static rlx_value param(struct model *m, const char *name, int layer, rlx_list shape)
{
    int i = m->count++;

    snprintf(m->at[i].name, sizeof m->at[i].name, layer ? "%s%d" : "%s", name, layer);
    m->at[i].shape = shape;
    return rlx_param(m->g, m->at[i].name, RLX_DTYPE_f32, shape);
}

static rlx_value product(struct model *m, rlx_value x, const char *name, int layer, int64_t rows,
                         int64_t columns)
{
    return rlx_matmul(m->g, x, param(m, name, layer, RLX_LIST(rows, columns)), false, false);
}

static rlx_value norm(struct model *m, rlx_value x, const char *name, int layer)
{
    static const float none[WIDTH];
    rlx_value zero = rlx_const(m->g, RLX_DTYPE_f32, RLX_LIST(WIDTH), none, sizeof none);

    return rlx_rms_norm(m->g, x, param(m, name, layer, RLX_LIST(WIDTH)), zero, -1, 1e-5f);
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

static rlx_value transformer(struct model *m)
{
    rlx_graph *g = m->g;
    rlx_value tokens = rlx_input(g, "tokens", RLX_DTYPE_i32, RLX_LIST(ROWS, LENGTH));
    rlx_value labels = rlx_input(g, "labels", RLX_DTYPE_i32, RLX_LIST(ROWS, LENGTH));
    rlx_value x = rlx_gather(g, param(m, "embed", 0, RLX_LIST(VOCAB, WIDTH)), tokens, 0);

    m->cos = table(g, cos);
    m->sin = table(g, sin);
    for (int i = 1; i <= LAYERS; i++)
        x = block(m, x, i);
    x = product(m, norm(m, x, "norm", 0), "head", 0, WIDTH, VOCAB);
    return rlx_cross_entropy(g, x, labels, NULL);
}

/* ---- the convolutional network ---- */

/* 3 x 3, with a bias; of all stages but the last, half as many rows and columns come out. */
static rlx_value stage(struct model *m, rlx_value x, int i)
{
    int64_t out = (int64_t)CHANNELS << (i - 1), in = i == 1 ? COLOURS : out / 2;
    rlx_conv_desc conv = RLX_CONV_DESC_INIT;
    rlx_pool_desc pool = RLX_POOL_DESC_INIT;

    conv.kernel_size = RLX_LIST(3, 3);
    conv.padding = RLX_LIST(1, 1);
    x = rlx_conv(m->g, x, param(m, "conv", i, RLX_LIST(out, in, 3, 3)), &conv);
    rlx_value bias = param(m, "bias", i, RLX_LIST(out));
    x = rlx_relu(m->g, rlx_add(m->g, x, rlx_reshape(m->g, bias, RLX_LIST(1, out, 1, 1))));
    pool.kind = RLX_POOL_KIND_max;
    pool.kernel_size = pool.stride = RLX_LIST(2, 2);
    return i < STAGES ? rlx_pool(m->g, x, &pool) : x;
}

static rlx_value convolutional(struct model *m)
{
    rlx_graph *g = m->g;
    rlx_value x = rlx_input(g, "pictures", RLX_DTYPE_f32, RLX_LIST(PICTURES, COLOURS, SIDE, SIDE));
    rlx_value labels = rlx_input(g, "labels", RLX_DTYPE_i32, RLX_LIST(PICTURES));

    for (int i = 1; i <= STAGES; i++)
        x = stage(m, x, i);
    x = rlx_reduce_mean(g, x, RLX_LIST(2, 3), false);
    x = product(m, x, "head", 0, (int64_t)CHANNELS << (STAGES - 1), CLASSES);
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

/* From -1 to 1. */
static float spread(uint32_t i, uint32_t t)
{
    return (float)(scrambled(i, t) >> 8) * 0x1p-23f - 1;
}

static void set_params(const struct model *m, rlx_session *s)
{
    float *value = malloc(sizeof *value * VOCAB * WIDTH); /* no param is larger */
    rlx_error err;

    if (!value)
        give_up("out of memory");
    for (int i = 0; i < m->count; i++) {
        rlx_list shape = m->at[i].shape;
        rlx_tensor v = {.dtype = RLX_DTYPE_f32, .rank = shape.count, .data = value};
        size_t count = 1;
        for (int k = 0; k < shape.count; k++)
            count *= (size_t)(v.dim[k] = shape.at[k]);
        for (size_t k = 0; k < count; k++)
            value[k] = shape.count > 1 ? spread((uint32_t)k, (uint32_t)i) * 0.0625f : 1;
        v.bytes = count * sizeof *value;
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

static struct {
    float at[PICTURES * COLOURS * SIDE * SIDE];
    int32_t labels[PICTURES];
} pictures;

static void set_pictures(void)
{
    for (uint32_t i = 0; i < sizeof pictures.at / sizeof *pictures.at; i++)
        pictures.at[i] = spread(i, 1000);
    for (uint32_t i = 0; i < PICTURES; i++)
        pictures.labels[i] = (int32_t)(scrambled(i, 1001) % CLASSES);
}

/* ---- which network ---- */

static const struct net {
    const char *name;
    rlx_value (*loss)(struct model *m);
    void (*set)(void); /* its inputs */
    rlx_binding in[2];
} nets[] = {
    {"transformer",
     transformer,
     set_text,
     {{"tokens", {RLX_DTYPE_i32, 2, {ROWS, LENGTH}, text.tokens, sizeof text.tokens}},
      {"labels", {RLX_DTYPE_i32, 2, {ROWS, LENGTH}, text.labels, sizeof text.labels}}}},
    {"conv",
     convolutional,
     set_pictures,
     {{"pictures",
       {RLX_DTYPE_f32, 4, {PICTURES, COLOURS, SIDE, SIDE}, pictures.at, sizeof pictures.at}},
      {"labels", {RLX_DTYPE_i32, 1, {PICTURES}, pictures.labels, sizeof pictures.labels}}}},
};

static const struct net *net_of(const char *name)
{
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
        if (strcmp(nets[i].name, name) == 0)
            return &nets[i];
    give_up("unknown net %s: transformer or conv", name);
    return NULL;
}

/* ---- runs ---- */

static float step(struct job *j, const struct net *net)
{
    float loss = 0;
    rlx_binding out = {"loss", {.dtype = RLX_DTYPE_f32, .data = &loss, .bytes = sizeof loss}};
    rlx_error err;

    check(rlx_session_run(j->session,
                          &(rlx_run_desc){RLX_SIZED(rlx_run_desc), net->in, 2, &out, 1, NULL, 0},
                          &err),
          &err);
    return loss;
}

struct stepper {
    struct job *job;
    const struct net *net;
};

static void take_step(void *user)
{
    const struct stepper *s = user;

    step(s->job, s->net);
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

static void print_profile(struct job *j, const struct net *net, long runs)
{
    double total = 0;

    rlx_session_set_profile(j->session, note_step, NULL);
    for (long i = 0; i < runs; i++)
        step(j, net);
    qsort(kinds, (size_t)kind_count, sizeof *kinds, slowest_first);
    for (int i = 0; i < kind_count; i++)
        total += kinds[i].seconds;
    for (int i = 0; i < kind_count; i++)
        printf("%-32s %5ld steps %10.3f ms %6.1f%%\n", kinds[i].name, kinds[i].steps / runs,
               kinds[i].seconds * 1e3 / (double)runs, 100 * kinds[i].seconds / total);
    printf("%-32s             %10.3f ms\n", "all", total * 1e3 / (double)runs);
}

static void open_session(struct job *j, const struct net *net, rlx_graph *g)
{
    static struct model m;

    rlx_train_desc desc = {RLX_SIZED(rlx_train_desc), .rate = 1e-3f, .decay = 0.1f, .clip_norm = 1};
    rlx_error err;

    m.g = g;
    check(rlx_train_graph(g, net->loss(&m), &desc, &err), &err);
    check(rlx_model_create(g, &j->model, &err), &err);
    check(rlx_session_create(j->model, j->dev, NULL, &j->session, &err), &err);
    set_params(&m, j->session);
    net->set();
}

int main(int argc, char **argv)
{
    const struct net *net = &nets[0];
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
        else if (strcmp(argv[i], "--net") == 0)
            net = net_of(argv[i + 1]);
        else
            give_up("unknown flag %s; the flags are --net, --threads, --device and --profile",
                    argv[i]);
    }
    rlx_graph *g = job_begin_on(&j, threads, device);
    open_session(&j, net, g);
    float first = step(&j, net), second = step(&j, net), third = step(&j, net);
    if (profile > 0) {
        print_profile(&j, net, profile);
    } else {
        printf("{\"ready\": true, \"losses\": [%.7g, %.7g, %.7g]}\n", (double)first, (double)second,
               (double)third);
        fflush(stdout);
        while (fgets(line, sizeof line, stdin))
            print_times(take_step, &(struct stepper){&j, net}, strtod(line, NULL) * 1e-3);
    }
    job_close(&j);
    return 0;
}
