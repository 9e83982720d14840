/* artefact_test.c: programs saved and loaded: the same bits, on the same device without a pass or a
 * plan, elsewhere with them; and what becomes of files that are not what they should be. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/levels.h"
#include "compile/cache/artefact.h"
#include "rlx/artefact.h"
#include "rlx/graph.h"
#include "test.h"

/* A constant too large for the text, a small one, views, steps in place, something unused. */
#define MODEL                                                                                    \
    "rlx 1\n"                                                                                    \
    "graph (input %x: f32[4,8], param %w: f32[8,6], param %b: f32[6], input %n: f32[2]) {\n"     \
    "    %c = const f32[4,6] {1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24}\n" \
    "    %h = const f32[] {0.5}\n"                                                               \
    "    %y = matmul %x, %w\n"                                                                   \
    "    %z = add %y, %b\n"                                                                      \
    "    %t = mul %z, %c\n"                                                                      \
    "    %e = exp %z\n"                                                                          \
    "    %r = reshape %t shape=[24]\n"                                                           \
    "    %s = mul %r, %h\n"                                                                      \
    "    %o = softmax %e axis=1\n"                                                               \
    "    return %s, %o\n}\n"
#define TALL                                                                  \
    "rlx 1\ndim rows\n"                                                       \
    "graph (input %x: f32[rows,8], param %w: f32[8,6], param %b: f32[6]) {\n" \
    "    %y = matmul %x, %w\n    %z = add %y, %b\n    %s = relu %z\n"         \
    "    %o = softmax %z axis=1\n    return %s, %o\n}\n"

enum { X = 32, W = 48, B = 6, OUT = 24 };

struct world {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
};

static bool open_on(struct test *t, struct world *w, const char *device,
                    const rlx_context_desc *desc)
{
    *w = (struct world){0};
    return expect_ok(t, rlx_context_create(RLX_VERSION, desc, &w->ctx, &w->err)) &&
           expect_ok(t, rlx_device_open(w->ctx, device, &w->dev, &w->err));
}

static void close_world(struct world *w)
{
    rlx_session_destroy(w->session);
    rlx_model_destroy(w->model);
    rlx_device_close(w->dev);
    rlx_context_destroy(w->ctx);
    *w = (struct world){0};
}

static rlx_tensor matrix(float *data, int64_t rows, int64_t columns)
{
    return (rlx_tensor){
        RLX_DTYPE_f32, 2, {rows, columns}, data, (size_t)(rows * columns) * sizeof *data};
}

static void fill(float *to, size_t n, float seed)
{
    for (size_t i = 0; i < n; i++)
        to[i] = seed * (float)((i * 7 + 3) % 11) - 1.0f;
}

static rlx_status set_weights(rlx_session *s, rlx_error *err)
{
    float k[W], b[B];
    rlx_tensor weight = matrix(k, 8, 6), bias = {RLX_DTYPE_f32, 1, {6}, b, sizeof b};

    fill(k, W, 0.25f);
    fill(b, B, 0.5f);
    rlx_status s1 = rlx_session_set_param(s, "w", &weight, err);
    return s1 == RLX_OK ? rlx_session_set_param(s, "b", &bias, err) : s1;
}

/* rows of x through the model; the two outputs one after the other. */
static rlx_status run_rows(rlx_session *s, int64_t rows, float *out, rlx_error *err)
{
    float x[2 * X];
    size_t half = (size_t)rows * 6;
    fill(x, (size_t)rows * 8, 0.125f);
    rlx_binding in = {"x", matrix(x, rows, 8)};
    rlx_binding to[2] = {{"s", matrix(out, rows, 6)}, {"o", matrix(out + half, rows, 6)}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, to, 2, NULL, 0};

    return rlx_session_run(s, &run, err);
}

static rlx_compiled_info compiled(const struct world *w)
{
    rlx_compiled_info info = {RLX_SIZED(rlx_compiled_info)};

    rlx_session_compiled(w->session, &info, NULL);
    return info;
}

/* A session of the text with weights, saved; out: what it computes. */
static bool save_one(struct test *t, const char *device, const char *text, unsigned flags,
                     const char *path, float *out)
{
    struct world w;
    bool ok = open_on(t, &w, device, NULL) &&
              expect_ok(t, rlx_model_parse(w.ctx, rlx_cstr(text), &w.model, &w.err)) &&
              expect_ok(t, rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err)) &&
              expect_ok(t, set_weights(w.session, &w.err)) &&
              expect_ok(t, run_rows(w.session, 4, out, &w.err)) &&
              expect_ok(t, rlx_session_save(w.session, path, flags, &w.err));

    if (!ok)
        fail(t, "%s", w.err.message);
    close_world(&w);
    return ok;
}

/* As somebody does who made the file. */
static bool load_on(struct test *t, struct world *w, const char *device, const char *path,
                    const rlx_session_desc *desc)
{
    const rlx_load_desc trust = {RLX_SIZED(rlx_load_desc), .trust_programs = true};

    if (!open_on(t, w, device, NULL))
        return false;
    if (expect_ok(t, rlx_session_load(w->dev, path, &trust, desc, &w->model, &w->session, &w->err)))
        return true;
    fail(t, "%s", w->err.message);
    return false;
}

/* ---- there and back ---- */

TEST(artefact, gives_the_same_bits_without_a_pass_or_a_plan)
{
    const char *path = test_temp(t, "a.rlxa");
    float want[2 * OUT], got[2 * OUT] = {0};
    rlx_artefact_info info = {RLX_SIZED(rlx_artefact_info)};
    rlx_artefact_program program;
    struct world w = {0};

    if (save_one(t, "cpu", MODEL, RLX_SAVE_WEIGHTS, path, want) &&
        load_on(t, &w, "cpu", path, NULL)) {
        rlx_compiled_info c = compiled(&w);
        expect_eq(t, c.programs, 1);
        expect_eq(t, c.from_artefact, 1);
        expect_eq(t, c.restored, 1);
        expect_eq(t, c.passes, 0);
        expect_str(t, c.why, "");
        expect_ok(t, run_rows(w.session, 4, got, &w.err));
        expect_bytes(t, got, want, sizeof want);
        require_ok(t, rlx_model_artefact(w.model, &info, &w.err));
        expect_eq(t, info.format, 1);
        expect_eq(t, info.library, RLX_VERSION);
        expect_str(t, info.backend, "cpu");
        expect_eq(t, info.programs, 1);
        expect_eq(t, info.weights, 2);
        expect_eq_u64(t, info.weight_bytes, (W + B) * 4);
        expect(t, rlx_model_artefact_program(w.model, 0, &program));
        expect_str(t, program.sizes, "");
        expect(t, program.steps > 3 && program.activations > 0);
        expect(t, !rlx_model_artefact_program(w.model, 1, &program));
    }
    close_world(&w);
}

TEST(artefact, sessions_of_a_loaded_model_take_its_programs)
{
    const char *path = test_temp(t, "a.rlxa");
    float want[2 * OUT], got[2 * OUT] = {0};
    rlx_load_desc read = {RLX_SIZED(rlx_load_desc), .read_files = true};
    struct world w = {0};

    if (save_one(t, "cpu", MODEL, RLX_SAVE_WEIGHTS, path, want) && open_on(t, &w, "cpu", NULL)) {
        require_ok(t, rlx_model_load(w.ctx, path, &read, &w.model, &w.err));
        require_ok(t, rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err));
        expect_eq(t, compiled(&w).restored, 1);
        expect_ok(t, run_rows(w.session, 4, got, &w.err));
        expect_bytes(t, got, want, sizeof want);
        /* and saving it again gives the same file */
        const char *again = test_temp(t, "b.rlxa");
        expect_ok(t, rlx_session_save(w.session, again, RLX_SAVE_WEIGHTS, &w.err));
        size_t n, m;
        const char *a = test_read(t, path, &n), *b = test_read(t, again, &m);
        require(t, a && b && n == m);
        expect_bytes(t, b, a, n);
    }
    close_world(&w);
}

TEST(artefact, holds_a_program_for_each_size)
{
    const char *path = test_temp(t, "a.rlxa");
    float want[3][48], got[48];
    struct world w = {0};

    if (!open_on(t, &w, "cpu", NULL))
        return close_world(&w);
    require_ok(t, rlx_model_parse(w.ctx, rlx_cstr(TALL), &w.model, &w.err));
    require_ok(t, rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err));
    require_ok(t, set_weights(w.session, &w.err));
    for (int i = 0; i < 3; i++)
        require_ok(t, run_rows(w.session, 2 + i, want[i], &w.err));
    uint32_t passes = compiled(&w).passes / 3;
    expect(t, passes > 0);
    require_ok(t, rlx_session_save(w.session, path, RLX_SAVE_WEIGHTS, &w.err));
    close_world(&w);

    if (load_on(t, &w, "cpu", path, NULL)) {
        rlx_artefact_program program;
        require(t, rlx_model_artefact_program(w.model, 1, &program));
        expect_str(t, program.sizes, "rows=3");
        expect_eq(t, compiled(&w).restored, 3);
        for (int i = 0; i < 3; i++) {
            expect_ok(t, run_rows(w.session, 2 + i, got, &w.err));
            expect_bytes(t, got, want[i], (size_t)(2 + i) * 12 * sizeof *got);
        }
        expect_eq(t, compiled(&w).passes, 0);
        expect_ok(t, run_rows(w.session, 1, got, &w.err)); /* a size it has not */
        expect_eq(t, compiled(&w).passes, passes);
        expect_contains(t, compiled(&w).why, "no program for these sizes");
    }
    close_world(&w);
}

/* Compiles a model with symbolic dims for 4 of each. */
static void prepare_fours(struct world *w)
{
    const struct dim_table *dims = w->model->mod->dims;
    rlx_dim_size size[32];
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .dims = size};

    for (size_t i = 0; i < dim_symbol_count(dims) && run.dim_count < 32; i++)
        if (dim_symbol_name(dims, i).len)
            size[run.dim_count++] = (rlx_dim_size){dim_symbol_name(dims, i).ptr, 4};
    rlx_session_prepare(w->session, &run, &w->err);
}

/* A model from a file, compiled on the device, saved and loaded. false: it does not compile. */
static bool comes_back(struct test *t, const char *from, const char *device)
{
    const char *path = test_temp(t, "a.rlxa");
    struct world w = {0}, again = {0};
    bool opens = open_on(t, &w, device, NULL) &&
                 rlx_model_load(w.ctx, from, NULL, &w.model, &w.err) == RLX_OK &&
                 rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err) == RLX_OK;

    if (opens && compiled(&w).programs == 0)
        prepare_fours(&w);
    bool compiles = opens && compiled(&w).programs == 1;
    test_note(t, "%s on %s", from, device);
    if (compiles && expect_ok(t, rlx_session_save(w.session, path, 0, &w.err)) &&
        load_on(t, &again, device, path, NULL)) {
        expect_eq(t, compiled(&again).restored, 1);
        expect_eq(t, compiled(&again).passes, 0);
    }
    close_world(&again);
    /* A stranger gets the same: the passes give the very graph that was saved. */
    if (compiles && open_on(t, &again, device, NULL) &&
        expect_ok(t, rlx_session_load(again.dev, path, NULL, NULL, &again.model, &again.session,
                                      &again.err))) {
        expect_eq(t, compiled(&again).restored, 1);
        expect(t, compiled(&again).passes > 0);
    }
    close_world(&again);
    close_world(&w);
    return compiles;
}

static size_t all_come_back(struct test *t, const char *folder)
{
    const char *path = test_source(t, folder);
    DIR *dir = opendir(path);
    struct dirent *e;
    char file[4096];
    size_t tried = 0;

    while (dir && (e = readdir(dir))) {
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".rlx") != 0)
            continue;
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        tried += comes_back(t, file, "cpu");
        tried += comes_back(t, file, "null"); /* which has every op: none is expanded */
    }
    if (dir)
        closedir(dir);
    return tried;
}

TEST(artefact, every_example_and_every_op_comes_back)
{
    expect(t, all_come_back(t, "examples") >= 6);
    expect(t, all_come_back(t, "fuzz/corpus/ir_text") >= 20);
}

/* An output may be called what no text can say. */
TEST(artefact, keeps_the_names_of_outputs)
{
    const char *path = test_temp(t, "a.rlxa");
    struct world w = {0};
    rlx_graph *g = NULL;
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};

    if (!open_on(t, &w, "cpu", NULL))
        return close_world(&w);
    require_ok(t, rlx_graph_create(w.ctx, &g, &w.err));
    rlx_value x = rlx_input(g, "in put", RLX_DTYPE_f32, (rlx_list){.count = 1, .at = {4}});
    rlx_value y = rlx_neg(g, x);
    rlx_label(g, y, "/layer 0/neg");
    rlx_output(g, y);
    require_ok(t, rlx_model_create(g, &w.model, &w.err));
    require_ok(t, rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err));
    require_ok(t, rlx_session_save(w.session, path, 0, &w.err));
    close_world(&w);
    if (load_on(t, &w, "cpu", path, NULL)) {
        require_ok(t, rlx_model_io(w.model, RLX_IO_OUTPUT, 0, &info, &w.err));
        expect(t, str_eq(info.name, STR("/layer 0/neg")));
        require_ok(t, rlx_model_io(w.model, RLX_IO_INPUT, 0, &info, &w.err));
        expect(t, str_eq(info.name, STR("in put")));
        expect_eq(t, compiled(&w).restored, 1);
    }
    close_world(&w);
}

/* ---- weights ---- */

TEST(artefact, without_weights_the_caller_sets_them)
{
    const char *path = test_temp(t, "a.rlxa");
    float want[2 * OUT], got[2 * OUT] = {0};
    struct world w = {0};

    if (save_one(t, "cpu", MODEL, 0, path, want) && load_on(t, &w, "cpu", path, NULL)) {
        expect_status(t, run_rows(w.session, 4, got, &w.err), RLX_ERROR_MISSING_INPUT);
        expect_contains(t, w.err.message, "w");
        expect_ok(t, set_weights(w.session, &w.err));
        expect_ok(t, run_rows(w.session, 4, got, &w.err));
        expect_bytes(t, got, want, sizeof want);
    }
    close_world(&w);
}

TEST(artefact, weights_may_lie_beside_it)
{
    const char *path = test_temp(t, "a.rlxa"), *beside = test_temp(t, "a.rlxa.weights");
    float want[2 * OUT], got[2 * OUT] = {0};
    struct world w = {0};
    rlx_artefact_info info = {RLX_SIZED(rlx_artefact_info)};
    size_t n;

    if (!save_one(t, "cpu", MODEL, RLX_SAVE_WEIGHTS_BESIDE, path, want))
        return;
    const char *bytes = test_read(t, beside, &n);
    require(t, bytes && n > 200);
    if (load_on(t, &w, "cpu", path, NULL)) {
        expect_ok(t, rlx_model_artefact(w.model, &info, &w.err));
        expect(t, info.weights_beside);
        expect_eq_u64(t, info.weight_bytes, (W + B) * 4);
        expect_ok(t, run_rows(w.session, 4, got, &w.err));
        expect_bytes(t, got, want, sizeof want);
    }
    close_world(&w);
    if (!open_on(t, &w, "cpu", NULL))
        return close_world(&w);
    char *copy = malloc(n);
    require(t, copy);
    memcpy(copy, bytes, n);
    copy[100] ^= 1;
    expect(t, test_write(t, beside, copy, n));
    expect_status(t, rlx_model_load(w.ctx, path, NULL, &w.model, &w.err), RLX_ERROR_FORMAT);
    expect_contains(t, w.err.message, "checksum");
    expect(t, test_write(t, beside, bytes, n - 1));
    expect_status(t, rlx_model_load(w.ctx, path, NULL, &w.model, &w.err), RLX_ERROR_FORMAT);
    expect_contains(t, w.err.message, "bytes");
    remove(beside);
    expect_status(t, rlx_model_load(w.ctx, path, NULL, &w.model, &w.err), RLX_ERROR_IO);
    free(copy);
    close_world(&w);
}

TEST(artefact, set_params_take_the_place_of_saved_ones)
{
    const char *path = test_temp(t, "a.rlxa");
    float want[2 * OUT], got[2 * OUT] = {0}, b[B] = {9, 9, 9, 9, 9, 9};
    rlx_tensor bias = {RLX_DTYPE_f32, 1, {6}, b, sizeof b};
    struct world w = {0};

    if (save_one(t, "cpu", MODEL, RLX_SAVE_WEIGHTS, path, want) && open_on(t, &w, "cpu", NULL)) {
        require_ok(t, rlx_model_load(w.ctx, path, NULL, &w.model, &w.err));
        require_ok(t, rlx_model_set_param(w.model, "b", &bias, &w.err));
        require_ok(t, rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err));
        expect_ok(t, run_rows(w.session, 4, got, &w.err));
        expect(t, memcmp(got, want, sizeof want) != 0);
    }
    close_world(&w);
}

/* ---- elsewhere ---- */

static void expect_elsewhere(struct test *t, const char *made_on, const char *device,
                             const rlx_session_desc *desc, bool optimised, const char *why)
{
    const char *path = test_temp(t, "a.rlxa");
    float want[2 * OUT], unused[2 * OUT], got[2 * OUT] = {0};
    struct world w = {0};

    test_note(t, "from %s to %s", made_on, device);
    if (save_one(t, device, MODEL, 0, path, want) &&
        save_one(t, made_on, MODEL, RLX_SAVE_WEIGHTS, path, unused) &&
        load_on(t, &w, device, path, desc)) {
        rlx_compiled_info c = compiled(&w);
        expect_eq(t, c.from_artefact, optimised);
        expect_eq(t, c.restored, 0);
        expect_eq(t, c.passes == 0, optimised);
        expect_contains(t, c.why, why);
        expect_ok(t, run_rows(w.session, 4, got, &w.err));
        expect_bytes(t, got, want, sizeof want);
    }
    close_world(&w);
}

TEST(artefact, is_planned_again_for_other_limits)
{
    expect_elsewhere(
        t, "cpu", "cpu",
        &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .debug = DEBUG(.alignment = 512)}, true,
        "aligned");
    expect_elsewhere(t, "null", "null:small", NULL, true, "aligned");
}

TEST(artefact, is_compiled_again_for_other_kernels_or_options)
{
    expect_elsewhere(t, "null", "cpu", NULL, false, "another device");
    expect_elsewhere(t, "cpu", "null", NULL, false, "another device");
    if (!cpu_is_baseline())
        expect_elsewhere(t, "cpu:baseline", "cpu", NULL, false, "another device");
    expect_elsewhere(
        t, "cpu", "cpu",
        &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_in_place = true)},
        false, "other options");
}

TEST(artefact, a_device_may_be_too_small_for_it)
{
    const char *text = "rlx 1\ngraph (input %x: f32[300000]) {\n    %y = neg %x\n"
                       "    return %y\n}\n";
    const char *path = test_temp(t, "a.rlxa");
    struct world w = {0};

    if (!open_on(t, &w, "null", NULL))
        return close_world(&w);
    require_ok(t, rlx_model_parse(w.ctx, rlx_cstr(text), &w.model, &w.err));
    require_ok(t, rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err));
    require_ok(t, rlx_session_save(w.session, path, 0, &w.err));
    close_world(&w);
    if (!open_on(t, &w, "null:small", NULL))
        return close_world(&w);
    expect_status(t, rlx_session_load(w.dev, path, NULL, NULL, &w.model, &w.session, &w.err),
                  RLX_ERROR_LIMIT);
    expect_contains(t, w.err.message, "1200000");
    expect(t, !w.model && !w.session);
    close_world(&w);
}

/* ---- versions ---- */

static void store_u32(char *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (char)(v >> (8 * i));
}

static void seal_header(char *file)
{
    uint64_t sum = artefact_checksum(file, 56);

    store_u32(file + 56, (uint32_t)sum);
    store_u32(file + 60, (uint32_t)(sum >> 32));
}

TEST(artefact, of_another_version_is_refused_or_compiled_again)
{
    const char *path = test_temp(t, "a.rlxa");
    float want[2 * OUT], got[2 * OUT] = {0};
    struct world w = {0};
    size_t n;

    if (!save_one(t, "cpu", MODEL, RLX_SAVE_WEIGHTS, path, want) || !open_on(t, &w, "cpu", NULL))
        return close_world(&w);
    const char *bytes = test_read(t, path, &n);
    char *copy = malloc(n);
    require(t, bytes && copy);
    memcpy(copy, bytes, n);
    store_u32(copy + 8, 2);
    seal_header(copy);
    expect(t, test_write(t, path, copy, n));
    expect_status(t, rlx_model_load(w.ctx, path, NULL, &w.model, &w.err), RLX_ERROR_VERSION);
    expect_contains(t, w.err.message, "format 2");

    store_u32(copy + 8, 1);
    store_u32(copy + 12, RLX_VERSION + 1);
    seal_header(copy);
    expect(t, test_write(t, path, copy, n));
    expect_status(t, rlx_model_load(w.ctx, path, NULL, &w.model, &w.err), RLX_ERROR_VERSION);
    expect_contains(t, w.err.message, "version");
    close_world(&w);

    store_u32(copy + 12, RLX_VERSION - 1);
    seal_header(copy);
    expect(t, test_write(t, path, copy, n));
    if (load_on(t, &w, "cpu", path, NULL)) {
        expect_eq(t, compiled(&w).from_artefact, 0);
        expect_contains(t, compiled(&w).why, "version");
        expect_ok(t, run_rows(w.session, 4, got, &w.err));
        expect_bytes(t, got, want, sizeof want);
    }
    free(copy);
    close_world(&w);
}

/* ---- damage ---- */

/* Loads, and runs if it comes that far. */
static rlx_status try_file(struct world *w, const char *path, const rlx_load_desc *desc, float *out)
{
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_status status = rlx_session_load(w->dev, path, desc, NULL, &m, &s, &w->err);

    if (status == RLX_OK)
        status = run_rows(s, 4, out, &w->err);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    return status;
}

/* A small artefact, so that every byte can have its turn. */
#define SMALL                                                                                   \
    "rlx 1\n"                                                                                   \
    "graph (input %x: f32[4,8], param %w: f32[8,6], param %b: f32[6]) {\n"                      \
    "    %c = const f32[24] {1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24}\n" \
    "    %d = reshape %c shape=[4,6]\n"                                                         \
    "    %y = matmul %x, %w\n    %z = add %y, %b\n    %s = mul %z, %d\n"                        \
    "    %o = relu %s\n    return %s, %o\n}\n"

static void damage_each_byte(struct test *t, bool skip_checksums, const uint8_t *flips,
                             size_t flip_count)
{
    const char *path = test_temp(t, "a.rlxa"), *bad = test_temp(t, "bad.rlxa");
    rlx_load_desc desc = {RLX_SIZED(rlx_load_desc), .skip_checksums = skip_checksums,
                          .read_files = true};
    float want[2 * OUT], got[2 * OUT];
    rlx_context_desc quick = {RLX_SIZED(rlx_context_desc), .threads = 1};
    struct world w = {0};
    size_t n, refused = 0, same = 0;

    if (!save_one(t, "cpu", SMALL, RLX_SAVE_WEIGHTS, path, want) || !open_on(t, &w, "cpu", &quick))
        return close_world(&w);
    const char *bytes = test_read(t, path, &n);
    char *copy = malloc(n);
    require(t, bytes && copy && n < 8192);
    memcpy(copy, bytes, n);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < flip_count; k++) {
            copy[i] = (char)(bytes[i] ^ flips[k]);
            if (!test_write(t, bad, copy, n))
                break;
            memset(got, 0, sizeof got);
            rlx_status s = try_file(&w, bad, &desc, got);
            bool equal = s == RLX_OK && memcmp(got, want, sizeof want) == 0;
            refused += s != RLX_OK;
            same += equal;
            if (s == RLX_ERROR_INTERNAL || (s != RLX_OK && !w.err.message[0]) ||
                (!skip_checksums && s == RLX_OK && !equal))
                fail(t, "byte %zu ^ %02x: %s: %s", i, flips[k], rlx_status_name(s), w.err.message);
        }
        copy[i] = bytes[i];
    }
    if (skip_checksums)
        expect(t, refused > n * flip_count / 4 && same > 0);
    else
        expect_eq_u64(t, refused, n * flip_count);
    free(copy);
    close_world(&w);
}

TEST(artefact, any_damaged_byte_is_found)
{
    const uint8_t flips[] = {0x01, 0x80};

    damage_each_byte(t, false, flips, sizeof flips);
}

/* The same file from somebody who knows how to make checksums: refused or run, but never worse. */
TEST(artefact, any_changed_byte_is_harmless)
{
    const uint8_t flips[] = {0x01, 0x80, 0xff};

    damage_each_byte(t, true, flips, sizeof flips);
}

TEST(artefact, cut_short_it_is_refused)
{
    const char *path = test_temp(t, "a.rlxa"), *bad = test_temp(t, "bad.rlxa");
    float out[2 * OUT];
    struct world w = {0};
    size_t n;

    if (!save_one(t, "cpu", SMALL, RLX_SAVE_WEIGHTS, path, out) || !open_on(t, &w, "cpu", NULL))
        return close_world(&w);
    const char *bytes = test_read(t, path, &n);
    require(t, bytes);
    for (size_t len = 0; len < n; len += len < 200 ? 1 : 37) {
        expect(t, test_write(t, bad, bytes, len));
        if (try_file(&w, bad, NULL, out) != RLX_ERROR_FORMAT)
            fail(t, "%zu bytes: %s", len, w.err.message);
    }
    close_world(&w);
}

/* ---- calls ---- */

TEST(artefact, bad_calls_are_refused)
{
    const char *path = test_temp(t, "a.rlxa"), *text = test_temp(t, "m.rlx");
    struct world w = {0};
    rlx_compiled_info info = {RLX_SIZED(rlx_compiled_info)};
    rlx_artefact_info about = {RLX_SIZED(rlx_artefact_info)};

    if (!open_on(t, &w, "cpu", NULL))
        return close_world(&w);
    require_ok(t, rlx_model_parse(w.ctx, rlx_cstr(MODEL), &w.model, &w.err));
    require_ok(t, rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err));
    expect_status(t, rlx_session_save(NULL, path, 0, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_save(w.session, NULL, 0, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_save(w.session, "", 0, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_save(w.session, path, 3, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_save(w.session, "/nowhere/at/all", 0, &w.err), RLX_ERROR_IO);
    expect_status(t, rlx_session_compiled(NULL, &info, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_compiled(w.session, NULL, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_artefact(w.model, &about, &w.err), RLX_ERROR_STATE);
    expect_status(t, rlx_model_artefact(NULL, &about, &w.err), RLX_ERROR_ARGUMENT);
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    expect_status(t, rlx_session_load(NULL, path, NULL, NULL, &m, &s, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_load(w.dev, NULL, NULL, NULL, &m, &s, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_load(w.dev, path, NULL, NULL, NULL, &s, &w.err),
                  RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_load(w.dev, path, NULL, NULL, &m, NULL, &w.err),
                  RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_load(w.dev, path, NULL, NULL, &m, &s, &w.err), RLX_ERROR_IO);
    expect(t, test_write(t, text, MODEL, sizeof MODEL - 1));
    expect_status(t, rlx_session_load(w.dev, text, NULL, NULL, &m, &s, &w.err), RLX_ERROR_FORMAT);
    expect_contains(t, w.err.message, "not an artefact");
    expect(t, !m && !s);
    close_world(&w);
}

static rlx_status there_and_back(struct test *t, const rlx_allocator *mem, void *ctx)
{
    const char *path = ctx;
    rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem, .threads = 1};
    struct world w = {0};
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    float out[2 * OUT];

    (void)t;
    rlx_status status = rlx_context_create(RLX_VERSION, &desc, &w.ctx, &w.err);
    if (status == RLX_OK)
        status = rlx_device_open(w.ctx, "cpu", &w.dev, &w.err);
    if (status == RLX_OK)
        status = rlx_model_parse(w.ctx, rlx_cstr(SMALL), &w.model, &w.err);
    if (status == RLX_OK)
        status = rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err);
    if (status == RLX_OK)
        status = set_weights(w.session, &w.err);
    if (status == RLX_OK)
        status = rlx_session_save(w.session, path, RLX_SAVE_WEIGHTS, &w.err);
    if (status == RLX_OK)
        status = rlx_session_load(w.dev, path, NULL, NULL, &m, &s, &w.err);
    if (status == RLX_OK)
        status = run_rows(s, 4, out, &w.err);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    close_world(&w);
    return status;
}

TEST(artefact, survives_no_memory)
{
    expect_survives_no_memory(t, there_and_back, (void *)test_temp(t, "a.rlxa"));
}
