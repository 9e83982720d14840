/* weight_memory_test.c: weights are in memory once. Those that only packed copies are read of are
 * dropped, and come back when somebody asks; a whole encoder peaks at its weights and activations.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../bench/support/models.h"
#include "../test.h"
#include "required.h"
#include "rlx/artefact.h"
#include "rlx/weights.h"

/* ---- what was dropped comes back ---- */

enum { ROWS = 5, K = 33, N = 45 }; /* panels that are not full, in both directions */

static const char product[] =
    "graph (input %x: f32[5,33], param %w: f32[33,45], param %v: f32[45,33], param %h: f16[33,45],"
    " param %b: f32[45])"
    " { %y = matmul %x, %w %z = matmul %x, %v transpose_b=true %c = cast %x to=f16"
    "   %u = matmul %c, %h %s = add %y, %b return %s, %z, %u }";

static uint32_t bits(size_t i)
{
    uint32_t v = (uint32_t)i * 2654435761u + 12345;

    return v ^ v >> 15;
}

static void fill(float *x, size_t n, size_t seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(int32_t)(bits(i + seed * 7919) % 2001 - 1000) / 512.0f;
}

struct numbers {
    float x[ROWS * K], w[K * N], v[N * K], b[N];
    uint16_t h[K * N];
    float y[3][ROWS * N];
};

static void fill_all(struct numbers *n, size_t seed)
{
    fill(n->x, ROWS * K, 1);
    fill(n->w, K * N, seed + 2);
    fill(n->v, N * K, seed + 3);
    fill(n->b, N, seed + 4);
    for (size_t i = 0; i < K * N; i++) /* halves between 1 and 2, and below 0 */
        n->h[i] = (uint16_t)(0x3c00 | (bits(i + seed) & 0x83ff));
}

static rlx_tensor of(rlx_dtype dtype, int32_t rank, int64_t rows, int64_t cols, void *data,
                     size_t bytes)
{
    return (rlx_tensor){dtype, rank, {rows, cols}, data, bytes};
}

static void set_all(struct test *t, rlx_session *s, struct numbers *n)
{
    rlx_tensor w = of(RLX_DTYPE_f32, 2, K, N, n->w, sizeof n->w);
    rlx_tensor v = of(RLX_DTYPE_f32, 2, N, K, n->v, sizeof n->v);
    rlx_tensor h = of(RLX_DTYPE_f16, 2, K, N, n->h, sizeof n->h);
    rlx_tensor b = of(RLX_DTYPE_f32, 1, N, 0, n->b, sizeof n->b);
    rlx_error err;

    expect_ok(t, rlx_session_set_param(s, "w", &w, &err));
    expect_ok(t, rlx_session_set_param(s, "v", &v, &err));
    expect_ok(t, rlx_session_set_param(s, "h", &h, &err));
    expect_ok(t, rlx_session_set_param(s, "b", &b, &err));
}

static void run(struct test *t, rlx_session *s, struct numbers *n)
{
    rlx_binding in = {"x", of(RLX_DTYPE_f32, 2, ROWS, K, n->x, sizeof n->x)}, out[3];
    rlx_error err = {0};

    memset(n->y, 0, sizeof n->y);
    for (int i = 0; i < 3; i++)
        out[i] = (rlx_binding){(const char *[]){"s", "z", "u"}[i],
                               of(RLX_DTYPE_f32, 2, ROWS, N, n->y[i], sizeof n->y[i])};
    if (!expect_ok(t, rlx_session_run(s, &(rlx_run_desc){&in, 1, out, 3, NULL, 0}, &err)))
        fail(t, "%s", err.message);
}

/* What the session reads back is what was set, bit by bit. */
static void expect_params(struct test *t, rlx_session *s, const struct numbers *n)
{
    static struct numbers got;
    rlx_tensor w = of(RLX_DTYPE_f32, 2, K, N, got.w, sizeof got.w);
    rlx_tensor v = of(RLX_DTYPE_f32, 2, N, K, got.v, sizeof got.v);
    rlx_tensor h = of(RLX_DTYPE_f16, 2, K, N, got.h, sizeof got.h);
    rlx_error err;

    memset(&got, 0, sizeof got);
    expect_ok(t, rlx_session_get_param(s, "w", &w, &err));
    expect_ok(t, rlx_session_get_param(s, "v", &v, &err));
    expect_ok(t, rlx_session_get_param(s, "h", &h, &err));
    expect_bytes(t, got.w, n->w, sizeof n->w);
    expect_bytes(t, got.v, n->v, sizeof n->v);
    expect_bytes(t, got.h, n->h, sizeof n->h);
}

TEST_DEVICES(weight_memory, dropped_weights_come_back)
{
    static struct numbers a, b, plain;
    const rlx_session_desc as_they_are = {.no_packed_weights = true};
    rlx_session *other = NULL, *own = NULL;
    struct place p;
    rlx_error err;

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    if (!expect_ok(t, place_build(&p, product, NULL)))
        return place_close(&p);
    fill_all(&a, 0);
    set_all(t, p.session, &a);
    run(t, p.session, &a);
    expect_params(t, p.session, &a);
    run(t, p.session, &a);

    /* A session that reads them as they are, while the first goes on. */
    memcpy(&plain, &a, sizeof a);
    expect_ok(t, rlx_session_create(p.model, p.dev, &as_they_are, &other, &err));
    run(t, other, &plain);
    for (int i = 0; i < 3; i++)
        expect_close(t, plain.y[i], a.y[i], ROWS * N, 1e-3, 1e-3);

    /* A clone of its own, others after that, and back to none but the first. */
    expect_ok(t, rlx_session_clone(p.session, RLX_CLONE_OWN_WEIGHTS, &own, &err));
    fill_all(&b, 100);
    set_all(t, p.session, &b);
    run(t, p.session, &b);
    expect_params(t, p.session, &b);
    expect(t, memcmp(a.y, b.y, sizeof a.y) != 0);
    run(t, own, &plain);
    expect_bytes(t, plain.y, a.y, sizeof a.y);
    expect_params(t, own, &a);
    rlx_session_destroy(own);
    memcpy(&plain, &b, sizeof b);
    run(t, other, &plain);
    for (int i = 0; i < 3; i++)
        expect_close(t, plain.y[i], b.y[i], ROWS * N, 1e-3, 1e-3);
    rlx_session_destroy(other);
    run(t, p.session, &plain);
    expect_bytes(t, plain.y, b.y, sizeof b.y);

    /* The model has them when no session is left. */
    rlx_session_destroy(p.session);
    expect_ok(t, rlx_session_create(p.model, p.dev, NULL, &p.session, &err));
    expect_params(t, p.session, &b);
    run(t, p.session, &plain);
    expect_bytes(t, plain.y, b.y, sizeof b.y);
    place_close(&p);
}

/* A session of another device, and an artefact, of weights that are only there packed. */
TEST_DEVICES(weight_memory, dropped_weights_go_elsewhere)
{
    static struct numbers a, got;
    const char *path = test_temp(t, "product.rlxa");
    rlx_device *cpu = NULL;
    rlx_session *s = NULL;
    rlx_model *loaded = NULL;
    struct place p;
    rlx_error err;

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    if (!expect_ok(t, rlx_device_open(p.ctx, rlx_cstr("cpu:baseline"), &cpu, &err)) ||
        !expect_ok(t, place_build(&p, product, NULL)))
        return rlx_device_close(cpu), place_close(&p);
    fill_all(&a, 7);
    set_all(t, p.session, &a);
    run(t, p.session, &a);
    memcpy(&got, &a, sizeof a);
    expect_ok(t, rlx_session_create(p.model, cpu, NULL, &s, &err));
    run(t, s, &got);
    for (int i = 0; i < 3; i++)
        expect_close(t, got.y[i], a.y[i], ROWS * N, 1e-3, 1e-3);
    expect_params(t, s, &a);
    rlx_session_destroy(s);
    run(t, p.session, &got);
    expect_bytes(t, got.y, a.y, sizeof a.y);

    expect_ok(t, rlx_session_save(p.session, path, RLX_SAVE_WEIGHTS, &err));
    expect_ok(t, rlx_model_load(p.ctx, path, NULL, &loaded, &err));
    expect_ok(t, rlx_session_create(loaded, p.dev, NULL, &s, &err));
    run(t, s, &got);
    expect_bytes(t, got.y, a.y, sizeof a.y);
    expect_params(t, s, &a);
    rlx_session_destroy(s);
    rlx_model_destroy(loaded);
    rlx_device_close(cpu);
    place_close(&p);
}

/* ---- the peak of a whole encoder ---- */

struct peak {
    long start, most; /* KiB that the process had before the model, and at most */
    rlx_memory_info memory;
    uint64_t weights;
    rlx_status status;
    char what[512];
};

static long high_water(void)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = atol(line + 6);
    if (f)
        fclose(f);
    return kib;
}

#define STEP(call)                 \
    do {                           \
        rlx_status step_ = (call); \
        if (step_ != RLX_OK)       \
            return step_;          \
    } while (0)

static size_t shape_of(const rlx_model *m, size_t i, rlx_tensor *out, char name[64])
{
    rlx_io_info io = {0};
    size_t count = 1;

    rlx_model_io(m, RLX_IO_PARAM, i, &io, NULL);
    snprintf(name, 64, "%.*s", (int)io.name.len, io.name.ptr);
    *out = (rlx_tensor){.dtype = io.dtype, .rank = io.rank};
    for (int32_t k = 0; k < io.rank; k++)
        count *= (size_t)(out->dim[k] = io.dim[k]);
    out->bytes = count * sizeof(float);
    return count;
}

/* Params one after the other, from one buffer. */
static rlx_status set_params(rlx_model *m, rlx_error *err)
{
    float *room = malloc((size_t)16 << 20);
    rlx_status status = room ? RLX_OK : RLX_ERROR_MEMORY;

    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_PARAM) && status == RLX_OK; i++) {
        char name[64];
        rlx_tensor value;
        fill(room, shape_of(m, i, &value, name), i);
        value.data = room;
        status = rlx_model_set_param(m, name, &value, err);
    }
    free(room);
    return status;
}

static rlx_status load_params(rlx_context *ctx, rlx_model *m, const char *path, rlx_error *err)
{
    rlx_weights *w;

    STEP(rlx_weights_open(ctx, path, NULL, &w, err));
    rlx_status status = rlx_model_load_weights(m, w, NULL, err);
    rlx_weights_close(w);
    return status;
}

static rlx_status run_encoder(rlx_session *s, const struct encoder_shape *e, rlx_error *err)
{
    size_t bytes = (size_t)(e->sequence * e->hidden) * sizeof(float);
    rlx_binding in = {"x", {RLX_DTYPE_f32, 3, {1, e->sequence, e->hidden}, NULL, bytes}};

    in.tensor.data = malloc(bytes);
    fill(in.tensor.data, bytes / sizeof(float), 1);
    rlx_status status = RLX_OK;
    for (int i = 0; i < 2 && status == RLX_OK; i++)
        status = rlx_session_run(s, &(rlx_run_desc){&in, 1, NULL, 0, NULL, 0}, err);
    free(in.tensor.data);
    return status;
}

/* file NULL: params are set from here. */
static rlx_status measure(const char *device, const char *file, struct peak *out, rlx_error *err)
{
    rlx_context *ctx;
    rlx_device *dev;
    rlx_graph *g;
    rlx_model *m;
    rlx_session *s;

    STEP(rlx_context_create(RLX_VERSION, NULL, &ctx, err));
    STEP(rlx_device_open(ctx, rlx_cstr(device), &dev, err));
    STEP(rlx_graph_create(ctx, &g, err));
    encoder_build(g, &bert_base);
    STEP(rlx_model_create(g, &m, err));
    out->start = high_water();
    STEP(file ? load_params(ctx, m, file, err) : set_params(m, err));
    STEP(rlx_session_create(m, dev, NULL, &s, err));
    STEP(run_encoder(s, &bert_base, err));
    out->most = high_water();
    STEP(rlx_session_memory(s, &out->memory, err));
    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_PARAM); i++) {
        char name[64];
        rlx_tensor shape;
        out->weights += shape_of(m, i, &shape, name) * sizeof(float);
    }
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    return RLX_OK;
}

/* In a process of its own, which has nothing of the other tests' in its peak. */
static bool measure_apart(struct test *t, const char *device, const char *file, struct peak *out)
{
    int ends[2], state = 0;
    rlx_error err = {0};

    memset(out, 0, sizeof *out);
    if (!expect(t, pipe(ends) == 0))
        return false;
    pid_t child = fork();
    if (child == 0) {
        out->status = measure(device, file, out, &err);
        snprintf(out->what, sizeof out->what, "%s", err.message);
        bool sent = write(ends[1], out, sizeof *out) == (ssize_t)sizeof *out;
        _exit(!sent);
    }
    close(ends[1]);
    bool got = child > 0 && read(ends[0], out, sizeof *out) == (ssize_t)sizeof *out;
    close(ends[0]);
    if (child > 0)
        waitpid(child, &state, 0);
    return expect(t, got) && (expect_ok(t, out->status) || fail(t, "%s", out->what));
}

static void expect_peak(struct test *t, const char *device, const char *file, const char *what)
{
    struct peak p;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(t, "a sanitizer has memory of its own");
#endif
    if (!measure_apart(t, device, file, &p))
        return;
    double mib = 1 << 20, weights = (double)p.weights / mib;
    double acts = (double)p.memory.activations / mib, start = (double)p.start / 1024;
    double most = (double)p.most / 1024, limit = (weights + acts) * 1.1 + start;
    printf("%s, %s: %.0f MiB of weights, %.1f of activations, %.0f at the start: peak %.0f, at "
           "most %.0f\n",
           device, what, weights, acts, start, most, limit);
    if (most > limit)
        fail(t, "%s: %.0f MiB at the peak, more than %.0f", what, most, limit);
    expect(t, weights > 300);
}

TEST_SLOW(weight_memory, params_from_c_are_in_memory_once)
{
    expect_peak(t, "cpu", NULL, "params set from C");
}

/* The parent writes the file, so that what that takes is not counted. */
static bool write_file(struct test *t, const char *path)
{
    struct place p;
    rlx_graph *g;
    rlx_model *m;
    rlx_weights_writer *w;
    bool written = false;

    if (!place_open(t, &p, "cpu", NULL))
        return false;
    expect_ok(t, rlx_graph_create(p.ctx, &g, &p.err));
    encoder_build(g, &bert_base);
    expect_ok(t, rlx_model_create(g, &m, &p.err));
    size_t count = rlx_model_io_count(m, RLX_IO_PARAM);
    rlx_weight *tensor = calloc(count, sizeof *tensor);
    char(*name)[64] = calloc(count, sizeof *name);
    float *room = malloc((size_t)16 << 20);
    for (size_t i = 0; i < count; i++) {
        rlx_tensor shape;
        shape_of(m, i, &shape, name[i]);
        tensor[i] = (rlx_weight){rlx_cstr(name[i]), RLX_WEIGHT_F32, shape.rank, {0}, shape.bytes};
        memcpy(tensor[i].dim, shape.dim, sizeof shape.dim);
    }
    const rlx_weights_content content = {
        .kind = RLX_FILE_safetensors, .tensor = tensor, .tensor_count = count};
    if (expect_ok(t, rlx_weights_begin(p.ctx, path, &content, &w, &p.err))) {
        size_t i;
        uint64_t left;
        while (rlx_weights_next(w, &i, &left)) { /* in an order of the format's own */
            fill(room, (size_t)left / sizeof(float), i);
            if (!expect_ok(t, rlx_weights_write(w, room, (size_t)left, &p.err)))
                break;
        }
        written = expect_ok(t, rlx_weights_finish(w, &p.err));
    }
    free(room);
    free(name);
    free(tensor);
    rlx_model_destroy(m);
    place_close(&p);
    return written;
}

TEST_SLOW(weight_memory, params_of_a_file_are_in_memory_once)
{
    const char *path = test_temp(t, "encoder.safetensors");

    if (write_file(t, path))
        expect_peak(t, "cpu", path, "a safetensors file");
}
