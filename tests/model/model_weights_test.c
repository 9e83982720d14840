/* model_weights_test.c: params that take their values from files of tensors. */
#include "weights_world.h"

static const char graph[] = "rlx 1\n"
                            "graph (input %x: f32[1,32], param %w: f32[2,32], param %p: u8[2,34],"
                            " param %b: f32[2]) {\n"
                            "    %a = matmul %x, %w transpose_b=true\n"
                            "    %q = dequant_matmul %x, %p scheme=q8_0 k=32\n"
                            "    %s = add %a, %q\n"
                            "    %y = add %s, %b\n"
                            "    return %y\n"
                            "}\n";

struct world {
    rlx_context *ctx;
    rlx_model *model;
    rlx_weights *weights;
    rlx_error err;
};

/* Numbers that every type here holds exactly: 0, 1 or 2; of p all are 1. */
static void fill(float *x, size_t n, size_t tensor)
{
    for (size_t k = 0; k < n; k++)
        x[k] = tensor == 1 ? 1 : (float)((k + tensor) % 3);
}

static bool open_world(struct test *t, struct world *o, rlx_file_kind kind,
                       const rlx_weight *tensor, size_t count)
{
    const rlx_weights_content content = {
        RLX_SIZED(rlx_weights_content), kind, tensor, count, NULL, 0, 0};
    const char *path = test_temp(t, "weights");
    rlx_weights_writer *w = NULL;
    uint64_t left;
    size_t i;

    *o = (struct world){.ctx = NULL};
    if (!expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &o->ctx, &o->err)) ||
        !expect_ok(t, rlx_model_parse(o->ctx, rlx_cstr(graph), &o->model, &o->err)) ||
        !expect_ok(t, rlx_weights_begin(o->ctx, path, &content, &w, &o->err)))
        return false;
    while (rlx_weights_next(w, &i, &left)) {
        uint64_t n = 1;
        float x[128];
        for (int32_t k = 0; k < tensor[i].rank; k++)
            n *= (uint64_t)tensor[i].dim[k];
        fill(x, (size_t)n, i);
        if (!expect_ok(t, rlx_weights_write_f32(w, x, n, &o->err)))
            return false;
    }
    return expect_ok(t, rlx_weights_finish(w, &o->err)) &&
           expect_ok(t, rlx_weights_open(o->ctx, path, NULL, &o->weights, &o->err));
}

static void close_world(struct world *o)
{
    rlx_weights_close(o->weights);
    rlx_model_destroy(o->model);
    rlx_context_destroy(o->ctx);
}

/* Runs the model with x = 1 everywhere; the weights are closed before it. */
static void expect_result(struct test *t, struct world *o)
{
    float x[32], y[2], w[64], b[2];
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {1, 32}, x, sizeof x}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 2, {0}, y, sizeof y}};
    rlx_device *dev = NULL;
    rlx_session *s = NULL;

    rlx_weights_close(o->weights);
    o->weights = NULL;
    fill(x, 32, 1);
    fill(w, 64, 0);
    fill(b, 2, 2);
    require_ok(t, rlx_device_open(o->ctx, "cpu", &dev, &o->err));
    if (expect_ok(t, rlx_session_create(o->model, dev, NULL, &s, &o->err))) {
        const rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .inputs = &in, .input_count = 1,
                                  .outputs = &out, .output_count = 1};
        if (expect_ok(t, rlx_session_run(s, &run, &o->err)))
            for (size_t r = 0; r < 2; r++) {
                float want = 32 + b[r];
                for (size_t k = 0; k < 32; k++)
                    want += w[r * 32 + k];
                expect_near(t, y[r], want, 0.2); /* q8_0 holds a 1 to three digits */
            }
    } else {
        fail(t, "%s", o->err.message);
    }
    rlx_session_destroy(s);
    rlx_device_close(dev);
}

TEST(model_weights, params_take_tensors_by_name)
{
    static const rlx_weight same[] = {T("w", F32, 2, 2, 32), T("p", Q8_0, 2, 2, 32),
                                      T("b", F32, 1, 2), T("more", F32, 1, 4)};
    static const rlx_weight other[] = {T("w", Q8_0, 2, 2, 32), T("p", Q8_0, 2, 2, 32),
                                       T("b", BF16, 1, 2)};
    struct world o;
    rlx_weights_use use = {RLX_SIZED(rlx_weights_use)};

    require(t, open_world(t, &o, RLX_FILE_gguf, same, COUNT_OF(same)));
    require_ok(t, rlx_model_load_weights(o.model, o.weights, &use, &o.err));
    expect(t, use.set == 3 && use.in_file == 3 && use.missing == 0 && use.unused == 1);
    expect_str(t, use.example, "");
    expect_result(t, &o);
    expect_status(t, rlx_model_load_weights(o.model, NULL, NULL, &o.err), RLX_ERROR_ARGUMENT);
    close_world(&o);
    require(t, open_world(t, &o, RLX_FILE_gguf, other, COUNT_OF(other)));
    require_ok(t, rlx_model_load_weights(o.model, o.weights, &use, &o.err));
    expect(t, use.set == 3 && use.in_file == 1); /* w is unpacked, b converted */
    require_ok(t, rlx_model_load_weights(o.model, o.weights, NULL, &o.err)); /* again is fine */
    expect_result(t, &o);
    close_world(&o);
}

TEST(model_weights, what_is_missing_stays)
{
    static const rlx_weight some[] = {T("w", F32, 2, 2, 32)};
    float b[2] = {0};
    const rlx_tensor value = {RLX_DTYPE_f32, 1, {2}, b, sizeof b};
    struct world o;
    rlx_weights_use use = {RLX_SIZED(rlx_weights_use)};

    require(t, open_world(t, &o, RLX_FILE_npz, some, 1));
    require_ok(t, rlx_model_set_param(o.model, "b", &value, &o.err));
    require_ok(t, rlx_model_load_weights(o.model, o.weights, &use, &o.err));
    expect(t, use.set == 1 && use.missing == 2 && use.unused == 0);
    expect_str(t, use.example, "p");
    close_world(&o);
}

static rlx_status load_once(struct test *t, const rlx_allocator *mem, void *user)
{
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem, .threads = 1};
    rlx_context *ctx;
    rlx_model *m = NULL;
    rlx_weights *w = NULL;
    rlx_error err;
    (void)t;

    rlx_status s = rlx_context_create(RLX_VERSION, &desc, &ctx, &err);
    if (s != RLX_OK)
        return s;
    s = rlx_model_parse(ctx, rlx_cstr(graph), &m, &err);
    if (s == RLX_OK)
        s = rlx_weights_open(ctx, user, NULL, &w, &err);
    if (s == RLX_OK)
        s = rlx_model_load_weights(m, w, NULL, &err);
    rlx_weights_close(w);
    rlx_model_destroy(m);
    rlx_context_destroy(ctx);
    return s;
}

TEST(model_weights, survive_no_memory)
{
    static const rlx_weight other[] = {T("w", Q8_0, 2, 2, 32), T("p", Q8_0, 2, 2, 32),
                                       T("b", BF16, 1, 2)};
    struct world o;
    char path[4096];

    require(t, open_world(t, &o, RLX_FILE_gguf, other, COUNT_OF(other)));
    snprintf(path, sizeof path, "%s", test_temp(t, "weights"));
    expect_survives_no_memory(t, load_once, path);
    close_world(&o);
}

TEST(model_weights, refusals_name_both_sides)
{
    static const struct {
        rlx_weight tensor;
        rlx_status status;
        const char *why;
    } rows[] = {
        {T("w", F32, 2, 32, 2), RLX_ERROR_SHAPE, "\"w\" is f32[2,32], the file has F32[32,2]"},
        {T("w", F32, 1, 64), RLX_ERROR_SHAPE, "the file has F32[64]"},
        {T("p", Q4_0, 2, 2, 32), RLX_ERROR_SHAPE, "\"p\" is u8[2,34], the file has Q4_0[2,32]"},
        {T("p", Q8_0, 2, 2, 64), RLX_ERROR_SHAPE, "the file has Q8_0[2,64]"},
        {T("w", Q8_0, 2, 1, 32), RLX_ERROR_SHAPE, "the file has Q8_0[1,32]"},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct world o;
        rlx_weights_use use = {RLX_SIZED(rlx_weights_use), .set = 99};
        test_note(t, "row %zu", i);
        require(t, open_world(t, &o, RLX_FILE_gguf, &rows[i].tensor, 1));
        expect_status(t, rlx_model_load_weights(o.model, o.weights, &use, &o.err), rows[i].status);
        expect_error(t, rows[i].status, rows[i].why, &o.err);
        expect_eq(t, use.set, 99);
        close_world(&o);
    }
}
