/* onnx_write_test.c: models written as ONNX: what the files say, that they come back as the same
 * models, and what is refused. How every op is written is tried by the self-test's cases, sent
 * through ONNX; the ones here are quick. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/onnx/read/onnx_model.h"
#include "import/wire_write.h"
#include "rlx/onnx.h"
#include "rlx/tools.h"
#include "test.h"

/* ---- bytes ---- */

struct bytes {
    uint8_t at[4096];
    size_t len;
};

static rlx_status put(void *user, const void *data, size_t count, struct diag *d)
{
    struct bytes *b = user;

    if (count > sizeof b->at - b->len)
        return diag_fail(d, RLX_ERROR_IO, "full");
    memcpy(b->at + b->len, data, count);
    b->len += count;
    return RLX_OK;
}

static rlx_status write_model(const struct onnx_model *m, struct bytes *out)
{
    struct diag d;

    diag_init(&d, "save");
    out->len = 0;
    return onnx_put_model(m, &(struct wire_sink){put, out}, &d);
}

TEST(onnx_write, a_message_is_read_back_as_it_was)
{
    int64_t ints[] = {0, -1, INT64_MIN, 300};
    rlx_str names[] = {rlx_cstr("a"), rlx_cstr(""), rlx_cstr("c")};
    struct onnx_attr attr[2] = {
        {.name = rlx_cstr("axes"), .type = ONNX_ATTR_INTS, .ints = {ints, 4}},
        {.name = rlx_cstr("alpha"), .type = ONNX_ATTR_FLOAT, .f = -0.5f}};
    struct onnx_node node = {.op = rlx_cstr("Op"), .input = {names, 3}, .attr = {attr, 2}};
    struct onnx_tensor tensor[2] = {{.name = rlx_cstr("empty"), .data_type = 1, .has_raw = true},
                                    {.name = rlx_cstr("none"), .data_type = 1}};
    struct onnx_dim dim[3] = {{.has_value = true}, {.param = rlx_cstr("n")}, {.has_value = false}};
    struct onnx_shape shape = {.dim = {dim, 3}};
    struct onnx_tensor_type tensor_type = {1, &shape};
    struct onnx_type type = {.tensor = &tensor_type};
    struct onnx_value_info input = {rlx_cstr("x"), &type};
    struct onnx_graph graph = {
        .node = {&node, 1}, .initializer = {tensor, 2}, .input = {&input, 1}};
    struct onnx_model model = {.ir_version = 11, .graph = &graph}, back;
    struct bytes b;
    struct arena arena;
    struct diag d;

    require_ok(t, write_model(&model, &b));
    expect_eq_u64(t, onnx_model_size(&model), b.len);
    arena_init(&arena, mem_default());
    diag_init(&d, "load");
    require_ok(t, onnx_read_model((rlx_str){(const char *)b.at, b.len}, &back, &arena, &d));
    expect_eq(t, back.ir_version, 11);
    const struct onnx_node *n = back.graph->node.at;
    require(t, back.graph->node.count == 1 && n->input.count == 3 && n->attr.count == 2);
    expect_eq(t, n->input.at[1].len, 0);
    require(t, n->attr.at[0].ints.count == 4);
    expect_bytes(t, n->attr.at[0].ints.at, ints, sizeof ints);
    expect_near(t, n->attr.at[1].f, -0.5, 0);
    require(t, back.graph->initializer.count == 2);
    expect(t, back.graph->initializer.at[0].has_raw);
    expect(t, !back.graph->initializer.at[1].has_raw);
    const struct onnx_shape *s = back.graph->input.at[0].type->tensor->shape;
    require(t, s && s->dim.count == 3);
    expect(t, s->dim.at[0].has_value && s->dim.at[0].value == 0);
    expect(t, !s->dim.at[1].has_value && s->dim.at[1].param.len == 1);
    expect(t, !s->dim.at[2].has_value && s->dim.at[2].param.len == 0);
    arena_free(&arena);
}

TEST(onnx_write, graphs_that_nest_too_deep_are_refused)
{
    enum { DEPTH = WIRE_MAX_DEPTH };
    static struct onnx_graph graph[DEPTH];
    static struct onnx_node node[DEPTH];
    static struct onnx_attr attr[DEPTH];
    struct onnx_model model = {.graph = &graph[0]};
    struct bytes b;

    for (int i = 0; i + 1 < DEPTH; i++) {
        attr[i] = (struct onnx_attr){.type = ONNX_ATTR_GRAPH, .g = &graph[i + 1]};
        node[i] = (struct onnx_node){.attr = {&attr[i], 1}};
        graph[i] = (struct onnx_graph){.node = {&node[i], 1}};
    }
    expect_status(t, write_model(&model, &b), RLX_ERROR_LIMIT);
    expect_eq_u64(t, onnx_model_size(&model), UINT64_MAX);
    graph[WIRE_MAX_DEPTH / 4].node.count = 0;
    expect_ok(t, write_model(&model, &b));
}

TEST(onnx_write, a_sink_that_fails_ends_it)
{
    static char large[8192];
    struct onnx_tensor tensor = {.has_raw = true, .raw = {large, sizeof large}};
    struct onnx_graph graph = {.initializer = {&tensor, 1}};
    struct onnx_model model = {.graph = &graph};
    struct bytes b;

    expect_status(t, write_model(&model, &b), RLX_ERROR_IO);
}

/* ---- models ---- */

struct world {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_error err;
    char log[2048];
};

static void take_line(void *user, int level, const char *line)
{
    struct world *w = user;
    size_t len = strlen(w->log);

    (void)level;
    snprintf(w->log + len, sizeof w->log - len, "%s\n", line);
}

static bool open_world(struct test *t, struct world *w)
{
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .log = take_line, .log_user = w};

    *w = (struct world){.ctx = NULL};
    return expect_ok(t, rlx_context_create(RLX_VERSION, &desc, &w->ctx, &w->err)) &&
           expect_ok(t, rlx_device_open(w->ctx, "cpu", &w->dev, &w->err));
}

static void close_world(struct world *w)
{
    rlx_device_close(w->dev);
    rlx_context_destroy(w->ctx);
}

/* The model of that text, written and read back; NULL after a failure. */
static rlx_model *through(struct test *t, struct world *w, const char *text)
{
    const char *path = test_temp(t, "model.onnx");
    rlx_model *m = NULL, *back = NULL;

    if (!expect_ok(t, rlx_model_parse(w->ctx, rlx_cstr(text), &m, &w->err)))
        return NULL;
    if (!expect_ok(t, rlx_model_save_onnx(m, path, NULL, &w->err)) ||
        !expect_ok(t, rlx_model_load(w->ctx, path, NULL, &back, &w->err)))
        fprintf(stderr, "%s\n", w->err.message);
    rlx_model_destroy(m);
    return back;
}

static void expect_io(struct test *t, const rlx_model *m, rlx_io_kind kind, size_t i,
                      const char *name)
{
    rlx_io_info info = {RLX_SIZED(rlx_io_info), .rank = 0};
    char text[64];

    if (!expect_ok(t, rlx_model_io(m, kind, i, &info, NULL)))
        return;
    snprintf(text, sizeof text, "%.*s", (int)info.name.len, info.name.ptr);
    expect_str(t, text, name);
}

/* y of that model for x[rows][4] of 0, 1, 2, ... */
static bool run_rows(struct test *t, struct world *w, rlx_model *m, int64_t rows, float *y,
                     size_t room)
{
    float x[64];
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {rows, 4}, x, (size_t)rows * 4 * sizeof *x}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 0, {0}, y, room * sizeof *y}};
    rlx_session *s = NULL;

    for (int i = 0; i < 64; i++)
        x[i] = (float)i;
    bool ok =
        expect_ok(t, rlx_session_create(m, w->dev, NULL, &s, &w->err)) &&
        expect_ok(
            t, rlx_session_run(
                   s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0}, &w->err));
    rlx_session_destroy(s);
    return ok;
}

/* Sizes are computed from the shape of x: products, sums, differences and halves of symbols. */
TEST(onnx_write, symbolic_dims_stay_symbolic)
{
    static const char text[] = "rlx 1\n"
                               "graph (input %x: f32[n,4]) {\n"
                               "    %a = reshape %x shape=[2*n,2]\n"
                               "    %b = narrow %a axis=0 start=1 len=2*n-2\n"
                               "    %c = expand %b shape=[n/2,2*n-2,2]\n"
                               "    %y = reduce_sum %c axes=[0]\n"
                               "    return %y\n"
                               "}\n";
    struct world w;
    float y[64], want[64];

    require(t, open_world(t, &w));
    rlx_model *back = through(t, &w, text), *m = NULL;
    if (back && expect_ok(t, rlx_model_parse(w.ctx, rlx_cstr(text), &m, &w.err)))
        for (int64_t n = 2; n < 8; n += 2)
            if (run_rows(t, &w, back, n, y, 64) && run_rows(t, &w, m, n, want, 64))
                expect_close(t, y, want, (size_t)(2 * n - 2) * 2, 0, 0);
    rlx_model_destroy(m);
    rlx_model_destroy(back);
    close_world(&w);
}

TEST(onnx_write, an_empty_picture_is_resized)
{
    struct world w;
    rlx_io_info y = {RLX_SIZED(rlx_io_info), .rank = 0};

    require(t, open_world(t, &w));
    rlx_model *m = through(t, &w,
                           "rlx 1\ngraph (input %x: f32[1,2,0,3]) {\n"
                           "    %y = resize_nearest_2x %x\n    return %y\n}\n");
    if (m && expect_ok(t, rlx_model_io(m, RLX_IO_OUTPUT, 0, &y, NULL))) {
        expect_eq(t, y.rank, 4);
        expect_eq(t, y.dim[2], 0);
        expect_eq(t, y.dim[3], 6);
    }
    rlx_model_destroy(m);
    close_world(&w);
}

TEST(onnx_write, a_size_that_no_input_tells_is_refused)
{
    static const char text[] = "rlx 1\n"
                               "graph (input %x: f32[n+1,m+2]) {\n"
                               "    %y = expand %x shape=[m,n+1,m+2]\n"
                               "    return %y\n"
                               "}\n";
    struct world w;
    rlx_model *m = NULL;

    require(t, open_world(t, &w));
    if (expect_ok(t, rlx_model_parse(w.ctx, rlx_cstr(text), &m, &w.err))) {
        rlx_status s = rlx_model_save_onnx(m, test_temp(t, "x.onnx"), NULL, &w.err);
        expect_status(t, s, RLX_ERROR_UNSUPPORTED);
        expect_error(t, RLX_ERROR_UNSUPPORTED, "no input has an axis that gives the size m",
                     &w.err);
    }
    rlx_model_destroy(m);
    close_world(&w);
}

/* All that stands in the way is given at once, and no file is left behind. */
TEST(onnx_write, every_node_that_cannot_be_written_is_named)
{
    static const char text[] = "rlx 1\n"
                               "graph (input %x: f32[4,4]) {\n"
                               "    %q = qr %x part=q\n"
                               "    %n = rng_normal shape=[4,4]\n"
                               "    %s = add %q, %n\n"
                               "    %y = cholesky %s\n"
                               "    return %y\n"
                               "}\n";
    const char *path = test_temp(t, "x.onnx");
    struct world w;
    rlx_model *m = NULL;
    struct stat st;

    require(t, open_world(t, &w));
    if (expect_ok(t, rlx_model_parse(w.ctx, rlx_cstr(text), &m, &w.err))) {
        expect_status(t, rlx_model_save_onnx(m, path, NULL, &w.err), RLX_ERROR_UNSUPPORTED);
        expect_error(t, RLX_ERROR_UNSUPPORTED, "3 nodes cannot be written as ONNX", &w.err);
        expect_contains(t, w.log, "qr: ONNX has no such op");
        expect_contains(t, w.log, "rng_normal: ONNX's random numbers are others");
        expect_contains(t, w.log, "cholesky: ONNX has no such op");
        expect(t, stat(path, &st) != 0);
    }
    rlx_model_destroy(m);
    close_world(&w);
}

/* ---- weights ---- */

static const char with_weights[] = "rlx 1\n"
                                   "graph (input %x: f32[1,4], param %w: f32[4,256],"
                                   " param %b: f32[256], param %unused: f32[3]) {\n"
                                   "    %p = matmul %x, %w\n"
                                   "    %y = add %p, %b\n"
                                   "    return %y\n"
                                   "}\n";

static rlx_model *model_with_weights(struct test *t, struct world *w, bool bias)
{
    static float weight[4 * 256], b[256];
    rlx_tensor tw = {RLX_DTYPE_f32, 2, {4, 256}, weight, sizeof weight};
    rlx_tensor tb = {RLX_DTYPE_f32, 1, {256}, b, sizeof b};
    rlx_model *m = NULL;

    for (int i = 0; i < 4 * 256; i++)
        weight[i] = (float)(i % 7);
    for (int i = 0; i < 256; i++)
        b[i] = (float)i;
    if (expect_ok(t, rlx_model_parse(w->ctx, rlx_cstr(with_weights), &m, &w->err))) {
        expect_ok(t, rlx_model_set_param(m, "w", &tw, &w->err));
        if (bias)
            expect_ok(t, rlx_model_set_param(m, "b", &tb, &w->err));
    }
    return m;
}

static void expect_same_rows(struct test *t, struct world *w, const char *path, rlx_model *m)
{
    float y[256], want[256];
    rlx_model *back = NULL;

    if (expect_ok(t, rlx_model_load(w->ctx, path, NULL, &back, &w->err)) &&
        run_rows(t, w, back, 1, y, 256) && run_rows(t, w, m, 1, want, 256))
        expect_close(t, y, want, 256, 0, 0);
    rlx_model_destroy(back);
}

TEST(onnx_write, params_with_values_are_initializers_and_others_inputs)
{
    const char *path = test_temp(t, "m.onnx");
    struct world w;
    rlx_model *back = NULL;

    require(t, open_world(t, &w));
    rlx_model *m = model_with_weights(t, &w, false);
    expect_ok(t, rlx_model_save_onnx(m, path, NULL, &w.err));
    if (expect_ok(t, rlx_model_load(w.ctx, path, NULL, &back, &w.err))) {
        expect_eq(t, rlx_model_io_count(back, RLX_IO_INPUT), 2);
        expect_io(t, back, RLX_IO_INPUT, 0, "x");
        expect_io(t, back, RLX_IO_INPUT, 1, "b");
        expect_eq(t, rlx_model_io_count(back, RLX_IO_PARAM), 1);
        expect_io(t, back, RLX_IO_PARAM, 0, "w");
    }
    rlx_model_destroy(back);
    rlx_model_destroy(m);
    m = model_with_weights(t, &w, true);
    expect_ok(t, rlx_model_save_onnx(m, path, NULL, &w.err)); /* over the other one */
    expect_same_rows(t, &w, path, m);
    rlx_model_destroy(m);
    close_world(&w);
}

TEST(onnx_write, weights_may_lie_in_a_file_of_their_own)
{
    const char *dir = test_temp(t, "folder");
    char path[4200], data[4300];
    struct world w;
    struct stat st;

    snprintf(path, sizeof path, "%s/m.onnx", dir);
    snprintf(data, sizeof data, "%s.data", path);
    require(t, mkdir(dir, 0777) == 0);
    require(t, open_world(t, &w));
    rlx_model *m = model_with_weights(t, &w, true);
    expect_ok(t, rlx_model_save_onnx(m, path,
                                     &(rlx_onnx_desc){RLX_SIZED(rlx_onnx_desc), .external = true},
                                     &w.err));
    require(t, stat(data, &st) == 0);
    expect_eq(t, st.st_size, 4096 + 1024); /* w, and b after it */
    require(t, stat(path, &st) == 0);
    expect(t, st.st_size < 1024);
    expect_same_rows(t, &w, path, m);
    /* A folder in the way of the second file: the first one stays as it was. */
    require(t, remove(data) == 0 && mkdir(data, 0777) == 0);
    expect_status(t,
                  rlx_model_save_onnx(m, path,
                                      &(rlx_onnx_desc){RLX_SIZED(rlx_onnx_desc), .external = true},
                                      &w.err),
                  RLX_ERROR_IO);
    expect_eq(t, rmdir(data), 0);
    expect_eq(t, remove(path), 0);
    rlx_model_destroy(m);
    close_world(&w);
}

TEST(onnx_write, paths_that_cannot_be_written_are_errors)
{
    struct world w;

    require(t, open_world(t, &w));
    rlx_model *m = model_with_weights(t, &w, true);
    rlx_model_save_onnx(m, "/nowhere/m.onnx", NULL, &w.err);
    expect_error(t, RLX_ERROR_IO, "/nowhere/m.onnx", &w.err);
    rlx_model_save_onnx(m, "/dev/full", NULL, &w.err);
    expect_error(t, RLX_ERROR_IO, "/dev/full", &w.err);
    expect_status(t, rlx_model_save_onnx(m, "", NULL, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_save_onnx(m, NULL, NULL, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_save_onnx(NULL, "x", NULL, &w.err), RLX_ERROR_ARGUMENT);
    rlx_model_destroy(m);
    close_world(&w);
}

/* ---- names and states ---- */

TEST(onnx_write, outputs_that_are_inputs_or_twice_the_same)
{
    struct world w;

    require(t, open_world(t, &w));
    rlx_model *back = through(t, &w,
                              "rlx 1\n"
                              "graph (input %x: f32[2], input %unused: f32[3]) {\n"
                              "    %y = neg %x\n"
                              "    %z = stop_gradient %y\n"
                              "    return %x, %y, %y, %z\n"
                              "}\n");
    if (back) {
        expect_eq(t, rlx_model_io_count(back, RLX_IO_INPUT), 2);
        expect_io(t, back, RLX_IO_OUTPUT, 0, "x");
        expect_io(t, back, RLX_IO_OUTPUT, 1, "y");
        expect_io(t, back, RLX_IO_OUTPUT, 2, "out2");
        expect_io(t, back, RLX_IO_OUTPUT, 3, "z");
    }
    rlx_model_destroy(back);
    close_world(&w);
}

TEST(onnx_write, a_state_is_an_input_and_an_output)
{
    struct world w;
    float kept[8] = {0}, rows[2] = {5, 6}, next[8], before[8], after[8];
    int32_t at = 1;
    rlx_binding in[] = {{"kept", {RLX_DTYPE_f32, 2, {4, 2}, kept, sizeof kept}},
                        {"rows", {RLX_DTYPE_f32, 2, {1, 2}, rows, sizeof rows}},
                        {"at", {RLX_DTYPE_i32, 0, {0}, &at, sizeof at}}};
    rlx_binding out[] = {{"before", {RLX_DTYPE_f32, 0, {0}, before, sizeof before}},
                         {"after", {RLX_DTYPE_f32, 0, {0}, after, sizeof after}},
                         {"kept.next", {RLX_DTYPE_f32, 0, {0}, next, sizeof next}}};
    rlx_session *s = NULL;

    require(t, open_world(t, &w));
    rlx_model *back = through(t, &w,
                              "rlx 1\n"
                              "graph (state %kept: f32[4,2], input %rows: f32[1,2],"
                              " input %at: i32[]) {\n"
                              "    %before = neg %kept\n"
                              "    %new = cache_append %kept, %rows, %at axis=0\n"
                              "    %after = neg %kept\n"
                              "    return %before, %after\n"
                              "}\n");
    if (back && expect_ok(t, rlx_session_create(back, w.dev, NULL, &s, &w.err)) &&
        expect_ok(
            t, rlx_session_run(s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 3, out, 3, NULL, 0},
                               &w.err))) {
        expect_near(t, before[2], 0, 0);
        expect_near(t, after[2], -5, 0); /* who reads after the writer reads what it wrote */
        expect_near(t, next[3], 6, 0);
    }
    rlx_session_destroy(s);
    rlx_model_destroy(back);
    close_world(&w);
}

/* ---- ops ---- */

struct failures {
    struct test *t;
    size_t written;
};

static void hear(void *user, const rlx_selftest_result *r)
{
    struct failures *f = user;

    f->written += r->verdict == RLX_PASSED;
    if (r->verdict == RLX_FAILED)
        fail(f->t, "%s: %s: %s", r->op, r->what, r->message);
}

static void try_ops(struct test *t, const char *const *ops)
{
    struct world w;

    require(t, open_world(t, &w));
    for (; *ops; ops++) {
        struct failures f = {t, 0};
        rlx_selftest_desc desc = {RLX_SIZED(rlx_selftest_desc), .op = *ops, .each = hear,
                                  .user = &f, .through_onnx = true};
        rlx_selftest_summary sum;
        test_note(t, "%s", *ops);
        expect_ok(t, rlx_selftest(w.ctx, w.dev, &desc, &sum, &w.err));
        expect(t, f.written > 0);
    }
    close_world(&w);
}

TEST(onnx_write, ops_with_attributes_of_their_own_come_back)
{
    static const char *const ops[] = {"shr",
                                      "atan2",
                                      "clamp",
                                      "pad",
                                      "slice",
                                      "reverse",
                                      "trilu",
                                      "interpolate_3d",
                                      "scatter_add",
                                      "gather_nd",
                                      "cache_append",
                                      "argmin",
                                      "topk",
                                      "argsort",
                                      "cumsum",
                                      "cumprod",
                                      "dot_general",
                                      "rms_norm",
                                      "group_norm",
                                      "batch_norm_inference",
                                      "conv_transpose",
                                      "im2col",
                                      "rope",
                                      "gru",
                                      "if",
                                      "while",
                                      "scan",
                                      "quantize",
                                      "fake_quantize",
                                      "qmatmul",
                                      "qconv_2d",
                                      "fused_swiglu",
                                      "mamba2",
                                      "custom_fn",
                                      NULL};

    try_ops(t, ops);
}

TEST_SLOW(onnx_write, all_ops_come_back)
{
    struct world w;
    struct failures f = {t, 0};
    rlx_selftest_desc desc = {RLX_SIZED(rlx_selftest_desc), .each = hear, .user = &f,
                              .through_onnx = true};
    rlx_selftest_summary sum;

    require(t, open_world(t, &w));
    expect_ok(t, rlx_selftest(w.ctx, w.dev, &desc, &sum, &w.err));
    expect(t, f.written > 7000);
    close_world(&w);
}

/* ---- memory ---- */

static rlx_status save_once(struct test *t, const rlx_allocator *mem, void *user)
{
    static const char text[] = "rlx 1\n"
                               "graph (input %x: f32[n,4], input %p: bool[]) {\n"
                               "    %a = silu %x\n"
                               "    %y = if %p, %a then_graph=@yes else_graph=@no\n"
                               "    return %y\n"
                               "}\n"
                               "graph @yes (input %a: f32[n,4]) {\n"
                               "    %b = reshape %a shape=[2*n,2]\n"
                               "    %c = reshape %b shape=[n,4]\n"
                               "    return %c\n"
                               "}\n"
                               "graph @no (input %a: f32[n,4]) {\n"
                               "    return %a\n"
                               "}\n";
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem};
    rlx_context *ctx = NULL;
    rlx_model *m = NULL;
    rlx_status s = rlx_context_create(RLX_VERSION, &desc, &ctx, NULL);

    if (s == RLX_OK)
        s = rlx_model_parse(ctx, rlx_cstr(text), &m, NULL);
    if (s == RLX_OK)
        s = rlx_model_save_onnx(m, user, NULL, NULL);
    rlx_model_destroy(m);
    rlx_context_destroy(ctx);
    (void)t;
    return s;
}

TEST(onnx_write, running_out_of_memory_is_an_error)
{
    expect_survives_no_memory(t, save_once, (void *)test_temp(t, "m.onnx"));
}
