/* weight_peak_test.c: weights are in memory once, however a model gets them: a process that loads
 * and runs a model peaks at its weights and activations. Each is measured in a process of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../bench/support/models.h"
#include "required.h"
#include "rlx/onnx.h"
#include "rlx/weights.h"
#include "test.h"

#define STEP(call)                 \
    do {                           \
        rlx_status step_ = (call); \
        if (step_ != RLX_OK)       \
            return step_;          \
    } while (0)

struct peak {
    long start, most; /* KiB that the process had before the model, and at most */
    rlx_memory_info memory;
    uint64_t weights;
    rlx_status status;
    char what[512];
};

/* Where a model and its weights come from. */
struct origin {
    const char *what;
    rlx_status (*make)(rlx_context *ctx, rlx_model **out, rlx_error *err); /* NULL: it is in path */
    const char *path; /* of the model, or of its weights; NULL: they are set from here */
};

/* ---- models ---- */

static rlx_status make_encoder(rlx_context *ctx, rlx_model **out, rlx_error *err)
{
    rlx_graph *g;

    STEP(rlx_graph_create(ctx, &g, err));
    encoder_build(g, &bert_base);
    return rlx_model_create(g, out, err);
}

enum { LAYERS = 32, WIDE = 768 };

struct words {
    char at[LAYERS * 1024];
    size_t len;
};

static void put(struct words *w, const char *format, int layer, const char *from)
{
    for (; *format; format++) {
        const char *piece = *format == '#' ? from : (char[]){*format, 0};
        char number[16];
        snprintf(number, sizeof number, "%d", layer);
        piece = *format == '@' ? number : piece;
        w->len += (size_t)snprintf(w->at + w->len, sizeof w->at - w->len, "%s", piece);
    }
}

/* Layers one after the other: @ in params and body is the layer, # what the one before it made. */
static rlx_status make_layers(rlx_context *ctx, const char *params, const char *body,
                              rlx_model **out, rlx_error *err)
{
    struct words w = {.len = 0};
    char from[16] = "x";

    put(&w, "rlx 1 graph (input %x: f32[2,768]", 0, "");
    for (int i = 0; i < LAYERS; i++)
        put(&w, params, i, from);
    put(&w, ") {", 0, "");
    for (int i = 0; i < LAYERS; i++) {
        put(&w, body, i, from);
        snprintf(from, sizeof from, "y%d", i);
    }
    put(&w, " return %# }", 0, from);
    return rlx_model_parse(ctx, (rlx_str){w.at, w.len}, out, err);
}

#define FOUR(type) \
    ", param %q@: " type ", param %k@: " type ", param %v@: " type ", param %o@: " type

/* Products of one input, whose weights are joined, and one that is transposed. */
static rlx_status make_joined(rlx_context *ctx, rlx_model **out, rlx_error *err)
{
    return make_layers(ctx, FOUR("f32[768,768]"),
                       " %a@ = matmul %#, %q@ %b@ = matmul %#, %k@ %c@ = matmul %#, %v@"
                       " %d@ = add %a@, %b@ %e@ = mul %d@, %c@"
                       " %t@ = transpose %o@ perm=[1,0] %y@ = matmul %e@, %t@",
                       out, err);
}

static rlx_status make_half(rlx_context *ctx, rlx_model **out, rlx_error *err)
{
    return make_layers(ctx, FOUR("f16[768,768]"),
                       " %h@ = cast %# to=f16"
                       " %a@ = matmul %h@, %q@ %b@ = matmul %h@, %k@ %c@ = matmul %h@, %v@"
                       " %d@ = add %a@, %b@ %e@ = mul %d@, %c@ %f@ = matmul %e@, %o@"
                       " %y@ = cast %f@ to=f32",
                       out, err);
}

#define DEQUANT(out, x, w) " %" out "@ = dequant_matmul %" x ", %" w "@ scheme=q8_0 k=768"

static rlx_status make_quantised(rlx_context *ctx, rlx_model **out, rlx_error *err)
{
    return make_layers(
        ctx, FOUR("u8[768,816]"),
        DEQUANT("a", "#", "q") DEQUANT("b", "#", "k")
            DEQUANT("c", "#", "v") " %d@ = add %a@, %b@ %e@ = mul %d@, %c@" DEQUANT("y", "e@", "o"),
        out, err);
}

/* ---- their weights ---- */

static void fill(float *x, size_t n, size_t seed)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t v = (uint32_t)(i + seed * 7919) * 2654435761u + 12345;
        x[i] = (float)(int32_t)((v ^ v >> 15) % 2001 - 1000) / 65536.0f;
    }
}

static uint64_t shape_of(const rlx_model *m, rlx_io_kind kind, size_t i, rlx_tensor *out,
                         char name[64])
{
    rlx_io_info io = {RLX_SIZED(rlx_io_info)};

    rlx_model_io(m, kind, i, &io, NULL);
    snprintf(name, 64, "%.*s", (int)io.name.len, io.name.ptr);
    *out = (rlx_tensor){.dtype = io.dtype, .rank = io.rank, .bytes = rlx_dtype_size(io.dtype)};
    for (int32_t k = 0; k < io.rank; k++)
        out->bytes *= (size_t)(out->dim[k] = io.dim[k]);
    return out->bytes;
}

/* Params one after the other, from one buffer. */
static rlx_status set_params(rlx_model *m, rlx_error *err)
{
    float *room = malloc((size_t)16 << 20);
    rlx_status status = room ? RLX_OK : RLX_ERROR_MEMORY;

    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_PARAM) && status == RLX_OK; i++) {
        char name[64];
        rlx_tensor value;
        fill(room, shape_of(m, RLX_IO_PARAM, i, &value, name) / sizeof(float), i);
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

static rlx_status open_model(rlx_context *ctx, const struct origin *from, rlx_model **out,
                             rlx_error *err)
{
    if (!from->make)
        return rlx_model_load(ctx, from->path, NULL, out, err);
    STEP(from->make(ctx, out, err));
    return from->path ? load_params(ctx, *out, from->path, err) : set_params(*out, err);
}

/* ---- files ---- */

/* A tensor of that type for each of the model's params; a packed one's rows are WIDE elements. */
static void list_tensors(const rlx_model *m, rlx_weight_type type, rlx_weight *tensor,
                         char (*name)[64])
{
    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_PARAM); i++) {
        rlx_weight_type_info info = {RLX_SIZED(rlx_weight_type_info)};
        rlx_tensor shape;
        uint64_t count = 1;
        shape_of(m, RLX_IO_PARAM, i, &shape, name[i]);
        rlx_weight_type_describe(type, &info, NULL);
        tensor[i] = (rlx_weight){.name = rlx_cstr(name[i]), .type = type, .rank = shape.rank};
        memcpy(tensor[i].dim, shape.dim, sizeof shape.dim);
        if (info.use == RLX_WEIGHT_PACKED)
            tensor[i].dim[shape.rank - 1] = WIDE;
        for (int32_t k = 0; k < shape.rank; k++)
            count *= (uint64_t)tensor[i].dim[k];
        tensor[i].bytes = count / (uint64_t)info.block_elems * (uint64_t)info.block_bytes;
    }
}

static rlx_status write_tensors(rlx_context *ctx, const char *path,
                                const rlx_weights_content *content, rlx_error *err)
{
    float *room = malloc((size_t)16 << 20);
    rlx_weights_writer *w;
    uint64_t left;
    size_t i;

    STEP(rlx_weights_begin(ctx, path, content, &w, err));
    while (rlx_weights_next(w, &i, &left)) { /* in an order of the format's own */
        fill(room, (size_t)left / sizeof(float), i);
        STEP(rlx_weights_write(w, room, (size_t)left, err));
    }
    free(room);
    return rlx_weights_finish(w, err);
}

struct file_like {
    rlx_status (*make)(rlx_context *ctx, rlx_model **out, rlx_error *err); /* whose params */
    rlx_file_kind kind;
    rlx_weight_type type; /* of every tensor */
    bool external;        /* ONNX: weights in a file beside it */
};

static rlx_status write_weights(rlx_context *ctx, rlx_model *m, const char *path,
                                const struct file_like *like, rlx_error *err)
{
    size_t count = rlx_model_io_count(m, RLX_IO_PARAM);
    rlx_weight *tensor = calloc(count, sizeof *tensor);
    char(*name)[64] = calloc(count, sizeof *name);

    list_tensors(m, like->type, tensor, name);
    rlx_status status =
        write_tensors(ctx, path,
                      &(rlx_weights_content){RLX_SIZED(rlx_weights_content), .kind = like->kind,
                                             .tensor = tensor, .tensor_count = count},
                      err);
    free(name);
    free(tensor);
    return status;
}

static rlx_status write_file(const char *path, const struct file_like *like, rlx_error *err)
{
    rlx_context *ctx;
    rlx_model *m;

    STEP(rlx_context_create(RLX_VERSION, NULL, &ctx, err));
    STEP(like->make(ctx, &m, err));
    if (like->kind != RLX_FILE_onnx)
        return write_weights(ctx, m, path, like, err);
    STEP(set_params(m, err));
    return rlx_model_save_onnx(m, path, &(rlx_onnx_desc){RLX_SIZED(rlx_onnx_desc), like->external},
                               err);
}

/* In a process of its own, so that nothing of it is left in this one. */
static bool write_apart(struct test *t, const char *path, const struct file_like *like)
{
    int state = -1;
    pid_t child = fork();

    if (child == 0) {
        rlx_error err;
        rlx_status status = write_file(path, like, &err);
        if (status != RLX_OK)
            printf("%s\n", err.message);
        fflush(stdout);
        _exit(status != RLX_OK);
    }
    if (child > 0)
        waitpid(child, &state, 0);
    return expect_eq(t, state, 0);
}

/* ---- measuring ---- */

/* Of the process, mapped pages of files among it. */
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

static rlx_status run_twice(const rlx_model *m, rlx_session *s, rlx_error *err)
{
    char name[64];
    rlx_binding in = {name, {0}};
    size_t bytes = (size_t)shape_of(m, RLX_IO_INPUT, 0, &in.tensor, name);
    rlx_status status = RLX_OK;

    in.tensor.data = malloc(bytes);
    fill(in.tensor.data, bytes / sizeof(float), 1);
    for (int i = 0; i < 2 && status == RLX_OK; i++)
        status = rlx_session_run(
            s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0}, err);
    free(in.tensor.data);
    return status;
}

/* A small model, so that what the code itself takes is there before the large one. */
static rlx_status warm_up(rlx_context *ctx, rlx_device *dev, rlx_error *err)
{
    const char *text = "rlx 1 graph (input %x: f32[2,32], param %w: f32[32,32],"
                       " param %q: u8[32,34]) { %y = matmul %x, %w"
                       " %z = dequant_matmul %y, %q scheme=q8_0 k=32 return %z }";
    rlx_model *m;
    rlx_session *s;

    STEP(rlx_model_parse(ctx, rlx_cstr(text), &m, err));
    STEP(set_params(m, err));
    STEP(rlx_session_create(m, dev, NULL, &s, err));
    STEP(run_twice(m, s, err));
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    return RLX_OK;
}

static rlx_status measure(const struct origin *from, struct peak *out, rlx_error *err)
{
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *m;
    rlx_session *s;

    STEP(rlx_context_create(RLX_VERSION, NULL, &ctx, err));
    STEP(rlx_device_open(ctx, "cpu", &dev, err));
    STEP(warm_up(ctx, dev, err));
    out->start = high_water();
    STEP(open_model(ctx, from, &m, err));
    STEP(rlx_session_create(m, dev, NULL, &s, err));
    STEP(run_twice(m, s, err));
    out->most = high_water();
    out->memory = (rlx_memory_info){RLX_SIZED(rlx_memory_info)};
    STEP(rlx_session_memory(s, &out->memory, err));
    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_PARAM); i++) {
        char name[64];
        rlx_tensor shape;
        out->weights += shape_of(m, RLX_IO_PARAM, i, &shape, name);
    }
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    return RLX_OK;
}

/* In a process of its own, which has nothing of the other tests' in its peak. */
static bool measure_apart(struct test *t, const struct origin *from, struct peak *out)
{
    int ends[2], state = 0;
    rlx_error err = {0};

    memset(out, 0, sizeof *out);
    if (!expect(t, pipe(ends) == 0))
        return false;
    pid_t child = fork();
    if (child == 0) {
        out->status = measure(from, out, &err);
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

static void expect_peak(struct test *t, const struct origin *from)
{
    struct peak p;

    if (!measure_apart(t, from, &p))
        return;
    double mib = 1 << 20, weights = (double)p.weights / mib;
    double acts = (double)p.memory.activations / mib, start = (double)p.start / 1024;
    double most = (double)p.most / 1024, limit = (weights + acts) * 1.1 + start;
    printf("%s: %.0f MiB of weights, %.1f of activations, %.0f at the start: peak %.0f, at "
           "most %.0f\n",
           from->what, weights, acts, start, most, limit);
    if (most > limit)
        fail(t, "%s: %.0f MiB at the peak, more than %.0f", from->what, most, limit);
    expect(t, weights > 50);
}

static bool can_measure(struct test *t)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    test_skip(t, "a sanitizer has memory of its own");
    return false;
#else
    (void)t;
    return true;
#endif
}

static void expect_peak_of_file(struct test *t, const char *name, const struct file_like *like,
                                struct origin from)
{
    from.path = test_temp(t, name);
    if (can_measure(t) && write_apart(t, from.path, like))
        expect_peak(t, &from);
}

TEST_SLOW(weight_memory, params_from_c_are_in_memory_once)
{
    if (can_measure(t))
        expect_peak(t, &(struct origin){"params set from C", make_encoder, NULL});
}

TEST_SLOW(weight_memory, joined_params_from_c_are_in_memory_once)
{
    if (can_measure(t))
        expect_peak(t, &(struct origin){"joined params set from C", make_joined, NULL});
}

TEST_SLOW(weight_memory, params_of_a_file_are_in_memory_once)
{
    expect_peak_of_file(t, "encoder.safetensors",
                        &(struct file_like){make_encoder, RLX_FILE_safetensors, RLX_WEIGHT_F32, 0},
                        (struct origin){"a safetensors file", make_encoder, NULL});
}

TEST_SLOW(weight_memory, joined_params_of_a_file_are_in_memory_once)
{
    expect_peak_of_file(t, "joined.safetensors",
                        &(struct file_like){make_joined, RLX_FILE_safetensors, RLX_WEIGHT_F32, 0},
                        (struct origin){"joined params of a file", make_joined, NULL});
}

TEST_SLOW(weight_memory, an_onnx_file_is_in_memory_once)
{
    struct file_like like = {make_joined, RLX_FILE_onnx, RLX_WEIGHT_F32, false};

    expect_peak_of_file(t, "inside.onnx", &like, (struct origin){"an ONNX file", NULL, NULL});
    like.external = true;
    expect_peak_of_file(t, "outside.onnx", &like,
                        (struct origin){"ONNX with external data", NULL, NULL});
}

TEST_SLOW(weight_memory, a_quantised_gguf_file_is_in_memory_once)
{
    expect_peak_of_file(t, "q8.gguf",
                        &(struct file_like){make_quantised, RLX_FILE_gguf, RLX_WEIGHT_Q8_0, 0},
                        (struct origin){"a GGUF file of q8_0", make_quantised, NULL});
}

TEST_SLOW(weight_memory, a_gguf_file_of_halves_is_in_memory_once)
{
    const struct file_like like = {make_half, RLX_FILE_gguf, RLX_WEIGHT_F16, false};

    expect_peak_of_file(t, "half.gguf", &like, (struct origin){"a GGUF file of f16", make_half, 0});
    expect_peak_of_file(t, "half.gguf", &like,
                        (struct origin){"a GGUF file of f16, as f32", make_joined, NULL});
}
