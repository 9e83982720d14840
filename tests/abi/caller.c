/* caller.c: a program as a user would write it, with what the stable headers declare. abi_test.py
 * compiles it with the headers of earlier versions, and runs it with the library as it is now. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/custom.h"
#include "rlx/graph.h"
#include "rlx/load.h"
#include "rlx/session.h"
#include "rlx/weights.h"

static int failures;

static void expect(int holds, const char *what)
{
    if (!holds) {
        printf("caller: %s\n", what);
        failures++;
    }
}

static void expect_ok(rlx_status s, const rlx_error *err, const char *what)
{
    if (s != RLX_OK) {
        printf("caller: %s: %s: %s\n", what, rlx_status_name(s), err->message);
        failures++;
    }
}

/* ---- an op of our own ---- */

static rlx_status double_infer(void *user, const rlx_tensor *in, int32_t in_count,
                               const void *attrs, size_t attrs_size, rlx_tensor *out, char *message)
{
    (void)user, (void)in_count, (void)attrs, (void)attrs_size, (void)message;
    *out = in[0];
    return RLX_OK;
}

static rlx_status double_cpu(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                             size_t attrs_size, rlx_tensor *out)
{
    const float *x = in[0].data;
    float *y = out->data;

    (void)user, (void)in_count, (void)attrs, (void)attrs_size;
    for (size_t i = 0; i < out->bytes / sizeof *y; i++)
        y[i] = 2 * x[i];
    return RLX_OK;
}

static void *my_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user, (void)old_size;
    if (new_size)
        return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* ---- graphs ---- */

static rlx_model *build(rlx_context *ctx)
{
    rlx_graph *g = NULL;
    rlx_model *m = NULL;
    rlx_error err;

    expect_ok(rlx_graph_create(ctx, &g, &err), &err, "rlx_graph_create");
    rlx_value x = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(1, 1, 4, 4));
    rlx_value w = rlx_param(g, "w", RLX_DTYPE_f32, RLX_LIST(1, 1, 3, 3));
    rlx_value n = rlx_state(g, "n", RLX_DTYPE_f32, RLX_LIST(1));
    rlx_conv_desc conv = RLX_CONV_DESC_INIT;
    conv.padding = RLX_LIST(1, 1);
    rlx_pool_desc pool = RLX_POOL_DESC_INIT;
    pool.kind = RLX_POOL_KIND_max;
    pool.kernel_size = RLX_LIST(2, 2);
    pool.stride = RLX_LIST(2, 2);
    rlx_value y = rlx_pool(g, rlx_relu(g, rlx_conv(g, x, w, &conv)), &pool);
    y = rlx_custom(g, &y, 1, "caller.double", NULL, 0);
    y = rlx_add(g, rlx_reduce_sum(g, y, RLX_LIST(1, 2, 3), false), n);
    rlx_label(g, y, "y");
    rlx_output(g, y);
    expect_ok(rlx_model_create(g, &m, &err), &err, "rlx_model_create");
    return m;
}

static void look_at(rlx_model *m)
{
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    rlx_error err;

    expect(rlx_model_io_count(m, RLX_IO_INPUT) == 1 && rlx_model_io_count(m, RLX_IO_PARAM) == 1,
           "counts of inputs and params");
    expect_ok(rlx_model_io(m, RLX_IO_INPUT, 0, &info, &err), &err, "rlx_model_io");
    expect(info.kind == RLX_IO_INPUT && info.name.len == 1 && info.name.ptr[0] == 'x' &&
               info.dtype == RLX_DTYPE_f32 && info.rank == 4 && info.dim[2] == 4 && info.used,
           "what rlx_model_io says of the input");
    expect(rlx_model_io(m, RLX_IO_INPUT, 7, &info, &err) == RLX_ERROR_ARGUMENT && err.message[0],
           "an input that does not exist");
}

static void run(rlx_session *s)
{
    float x[16], y = 0;
    rlx_binding in = {"x", {RLX_DTYPE_f32, 4, {1, 1, 4, 4}, x, sizeof x}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 0, {0}, &y, sizeof y}};
    rlx_run_desc both = {RLX_SIZED(rlx_run_desc), .inputs = &in, .input_count = 1, .outputs = &out,
                         .output_count = 1};
    rlx_memory_info memory = {RLX_SIZED(rlx_memory_info)};
    uint64_t ticket = 0;
    rlx_error err;

    for (int i = 0; i < 16; i++)
        x[i] = 1;
    expect_ok(rlx_session_run(s, &both, &err), &err, "rlx_session_run");
    /* 9 neighbours of each of the four in the middle, which are the largest */
    expect(fabsf(y - (2 * 4 * 9 + 5)) < 1e-4f && out.tensor.rank == 1, "the result of a run");
    y = 0;
    expect_ok(rlx_session_submit(s, &both, &ticket, &err), &err, "rlx_session_submit");
    expect_ok(rlx_session_wait(s, ticket, &both, &err), &err, "rlx_session_wait");
    expect(fabsf(y - (2 * 4 * 9 + 5)) < 1e-4f, "the result of a submitted run");
    expect_ok(rlx_session_memory(s, &memory, &err), &err, "rlx_session_memory");
    expect(memory.steps > 0 && memory.activations > 0, "what rlx_session_memory says");
}

/* ---- text, symbolic sizes, handles ---- */

static void run_text(rlx_context *ctx, rlx_device *dev)
{
    static const char text[] = "rlx 1\n"
                               "dim n <= 8\n"
                               "graph (input %h: f32[n], input %x: f32[n]) {\n"
                               "    %y = add %h, %x\n"
                               "    return %y\n"
                               "}\n";
    float one[2] = {1, 1}, y[2] = {0, 0};
    rlx_tensor first = {RLX_DTYPE_f32, 1, {2}, one, sizeof one};
    rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {2}, one, sizeof one}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 1, {0}, y, sizeof y}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .inputs = &in, .input_count = 1, .outputs = &out,
                        .output_count = 1};
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .check_indices = true, .programs = 2};
    rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE, .output = 0};
    rlx_bound_info bound = {RLX_SIZED(rlx_bound_info)};
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err;

    expect_ok(rlx_model_parse(ctx, rlx_cstr(text), &m, &err), &err, "rlx_model_parse");
    expect_ok(rlx_session_create(m, dev, &desc, &s, &err), &err, "rlx_session_create");
    rlx_model_destroy(m);
    expect_ok(rlx_session_bound(s, "n", &bound, &err), &err, "rlx_session_bound");
    expect(bound.bound == 8, "the bound of n");
    expect_ok(rlx_session_bind_handle(s, "h", &first, &err), &err, "rlx_session_bind_handle");
    expect_ok(rlx_session_set_feed(s, "h", &feed, &err), &err, "rlx_session_set_feed");
    for (int i = 0; i < 3; i++)
        expect_ok(rlx_session_run(s, &run, &err), &err, "a run with a handle");
    expect(y[0] == 4 && y[1] == 4 && out.tensor.dim[0] == 2, "what the handle became");
    rlx_session_destroy(s);
}

/* ---- files of weights ---- */

static void write_and_read(rlx_context *ctx, const char *path)
{
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    const rlx_weight tensor = {
        .name = rlx_cstr("t"), .type = RLX_WEIGHT_F32, .rank = 2, .dim = {2, 3}};
    const rlx_weights_content content = {RLX_SIZED(rlx_weights_content), .kind = RLX_FILE_gguf,
                                         .tensor = &tensor, .tensor_count = 1};
    rlx_weights_info info = {RLX_SIZED(rlx_weights_info)};
    rlx_weight_type_info type = {RLX_SIZED(rlx_weight_type_info)};
    rlx_load_desc load = {RLX_SIZED(rlx_load_desc), .read_files = true};
    rlx_weights_writer *writer = NULL;
    rlx_weights *w = NULL;
    float back[6] = {0};
    rlx_error err;

    expect_ok(rlx_weights_begin(ctx, path, &content, &writer, &err), &err, "rlx_weights_begin");
    expect_ok(rlx_weights_write(writer, numbers, sizeof numbers, &err), &err, "rlx_weights_write");
    expect_ok(rlx_weights_finish(writer, &err), &err, "rlx_weights_finish");
    expect_ok(rlx_weights_open(ctx, path, &load, &w, &err), &err, "rlx_weights_open");
    expect_ok(rlx_weights_describe(w, &info, &err), &err, "rlx_weights_describe");
    expect(info.kind == RLX_FILE_gguf && info.tensor_count == 1 && info.files == 1,
           "what rlx_weights_describe says");
    expect_ok(rlx_weight_type_describe(RLX_WEIGHT_F32, &type, &err), &err,
              "rlx_weight_type_describe");
    expect(type.block_bytes == 4 && type.use == RLX_WEIGHT_PLAIN, "what it says of f32");
    expect_ok(rlx_weights_read_f32(w, 0, 0, 6, back, &err), &err, "rlx_weights_read_f32");
    expect(memcmp(back, numbers, sizeof back) == 0, "numbers that were written");
    rlx_weights_close(w);
}

static void log_line(void *user, int level, const char *line)
{
    (void)user, (void)level, (void)line;
}

int main(int argc, char **argv)
{
    const rlx_allocator allocator = {my_resize, NULL};
    const rlx_custom_op ops[] = {
        {RLX_SIZED(rlx_custom_op), .name = "caller.unused", .inputs = 1, .infer = double_infer},
        {RLX_SIZED(rlx_custom_op), .name = "caller.double", .inputs = 1, .infer = double_infer,
         .cpu = double_cpu}};
    const rlx_context_desc desc = {
        RLX_SIZED(rlx_context_desc), .allocator = &allocator, .log = log_line,
        .custom_ops = ops,           .custom_op_count = 2,    .threads = 1};
    rlx_device_info info = {RLX_SIZED(rlx_device_info)};
    float nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, five = 5;
    rlx_tensor w = {RLX_DTYPE_f32, 4, {1, 1, 3, 3}, nine, sizeof nine};
    rlx_tensor n = {RLX_DTYPE_f32, 1, {1}, &five, sizeof five};
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_session *s = NULL;
    rlx_error err;

    if (argc != 2)
        return 2;
    expect_ok(rlx_context_create(RLX_VERSION, &desc, &ctx, &err), &err, "rlx_context_create");
    if (!ctx)
        return 1;
    expect_ok(rlx_device_at(ctx, 0, &info, &err), &err, "rlx_device_at");
    expect(info.present && info.name[0], "what rlx_device_at says");
    expect_ok(rlx_device_open(ctx, "cpu", &dev, &err), &err, "rlx_device_open");
    rlx_context_destroy(ctx); /* what it made keeps it */
    rlx_model *m = build(ctx);
    look_at(m);
    expect_ok(rlx_model_set_param(m, "w", &w, &err), &err, "rlx_model_set_param");
    expect_ok(rlx_session_create(m, dev, NULL, &s, &err), &err, "rlx_session_create");
    expect_ok(rlx_session_set_state(s, "n", &n, &err), &err, "rlx_session_set_state");
    run(s);
    run_text(ctx, dev);
    write_and_read(ctx, argv[1]);
    rlx_device_close(dev);
    rlx_model_destroy(m);
    rlx_session_destroy(s);
    return failures != 0;
}
