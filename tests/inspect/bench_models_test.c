/* bench_models_test.c: the networks of bench/ compute what they should, in memory as small as it
 * can be, without allocating. The small ones are compared with what ONNX Runtime makes of the
 * networks of bench/ort.py at the same sizes, and with a session in which every pass and fusion is
 * off, which leaves one kernel per node of the graph as it was built. */
#include <stdlib.h>
#include <string.h>

#include "../../bench/support/models.h"
#include "test.h"

struct network {
    const char *name;
    void (*build)(rlx_graph *g, const void *shape);
    const void *shape;
};

static void build_encoder(rlx_graph *g, const void *shape)
{
    encoder_build(g, shape);
}

static void build_resnet(rlx_graph *g, const void *shape)
{
    resnet_build(g, shape);
}

static const struct encoder_shape small_encoder = {2, 64, 4, 128, 16};
static const struct resnet_shape small_resnet = {2, {2, 1}, 8, 10, 32, false};
static const struct resnet_shape small_folded = {2, {2, 1}, 8, 10, 32, true};
static const struct network small[] = {
    {"encoder", build_encoder, &small_encoder},
    {"resnet", build_resnet, &small_resnet},
    {"resnet, folded", build_resnet, &small_folded},
};
/* Of ONNX Runtime 1.31: the first three outputs, the last, and the sum of all squares. */
static const struct {
    float first[3], last;
    double squares;
} expected[] = {
    {{-1.10974f, -0.135286f, -0.350319f}, -0.695857f, 1049.75},
    {{0.0505395f, 0.126237f, -0.441198f}, -0.282424f, 3.54583},
    {{0.153036f, -0.267367f, -0.276085f}, -0.149394f, 3.23361},
};
static const struct network full[] = {
    {"bert", build_encoder, &bert_base},
    {"resnet50", build_resnet, &resnet50},
    {"resnet50, folded", build_resnet, &resnet50_folded},
};

/* ---- a network at work ---- */

struct world {
    int64_t calls; /* of the allocator */
    rlx_allocator allocator;
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    float *in, *out;
    rlx_binding input, output;
    rlx_error err;
};

static void *count_calls(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)old_size;
    __atomic_fetch_add((int64_t *)user, 1, __ATOMIC_RELAXED);
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

static bool open_device(struct test *t, struct world *w, const struct network *n)
{
    rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &w->allocator, .threads = 2};
    rlx_graph *g;

    *w = (struct world){.allocator = {count_calls, NULL}};
    w->allocator.user = &w->calls;
    if (!expect_ok(t, rlx_context_create(RLX_VERSION, &desc, &w->ctx, &w->err)) ||
        !expect_ok(t, rlx_device_open(w->ctx, "cpu", &w->dev, &w->err)) ||
        !expect_ok(t, rlx_graph_create(w->ctx, &g, &w->err)))
        return false;
    n->build(g, n->shape);
    if (expect_ok(t, rlx_model_create(g, &w->model, &w->err)))
        return true;
    fail(t, "%s: %s", n->name, w->err.message);
    rlx_graph_destroy(g);
    return false;
}

/* Room for one of the model's tensors, filled by its name. */
static bool make_tensor(struct test *t, struct world *w, rlx_io_kind kind, size_t i, char *name,
                        size_t name_size, rlx_tensor *out)
{
    rlx_io_info io = {RLX_SIZED(rlx_io_info)};

    if (!expect_ok(t, rlx_model_io(w->model, kind, i, &io, &w->err)) ||
        !expect(t, io.name.len < name_size))
        return false;
    memcpy(name, io.name.ptr, io.name.len);
    name[io.name.len] = 0;
    *out = (rlx_tensor){.dtype = io.dtype, .rank = io.rank};
    memcpy(out->dim, io.dim, sizeof out->dim);
    out->bytes = (size_t)values_count(out) * sizeof(float);
    out->data = malloc(out->bytes);
    if (!expect(t, out->data != NULL))
        return false;
    values_fill(name, out, out->data);
    return true;
}

static bool open_network(struct test *t, struct world *w, const struct network *n, bool with_values,
                         const rlx_session_desc *desc)
{
    rlx_tensor tensor;
    char name[64];

    if (!open_device(t, w, n))
        return false;
    for (size_t i = 0; with_values && i < rlx_model_io_count(w->model, RLX_IO_PARAM); i++) {
        if (!make_tensor(t, w, RLX_IO_PARAM, i, name, sizeof name, &tensor))
            return false;
        bool set = expect_ok(t, rlx_model_set_param(w->model, name, &tensor, &w->err));
        free(tensor.data);
        if (!set)
            return false;
    }
    if (!make_tensor(t, w, RLX_IO_INPUT, 0, name, sizeof name, &tensor))
        return false;
    w->in = tensor.data;
    w->input = (rlx_binding){"x", tensor};
    if (!make_tensor(t, w, RLX_IO_OUTPUT, 0, name, sizeof name, &tensor))
        return false;
    w->out = tensor.data;
    w->output = (rlx_binding){"out0", tensor};
    return expect_ok(t, rlx_session_create(w->model, w->dev, desc, &w->session, &w->err));
}

static bool run(struct test *t, struct world *w)
{
    rlx_run_desc desc = {RLX_SIZED(rlx_run_desc), &w->input, 1, &w->output, 1, NULL, 0};

    return expect_ok(t, rlx_session_run(w->session, &desc, &w->err));
}

static void close_world(struct world *w)
{
    rlx_session_destroy(w->session);
    rlx_model_destroy(w->model);
    rlx_device_close(w->dev);
    rlx_context_destroy(w->ctx);
    free(w->in);
    free(w->out);
}

/* ---- the tests ---- */

TEST(bench_models, small_networks_give_the_values_of_onnx_runtime)
{
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        struct world w = {0};
        test_note(t, "%s", small[i].name);
        if (open_network(t, &w, &small[i], true, NULL) && run(t, &w)) {
            size_t n = w.output.tensor.bytes / sizeof(float);
            double squares = 0;
            for (size_t k = 0; k < n; k++)
                squares += (double)w.out[k] * (double)w.out[k];
            expect_close(t, w.out, expected[i].first, 3, 1e-4, 1e-5);
            expect_close(t, w.out + n - 1, &expected[i].last, 1, 1e-4, 1e-5);
            expect_near(t, squares, expected[i].squares, 1e-4 * expected[i].squares);
        }
        close_world(&w);
    }
}

TEST(bench_models, small_networks_agree_with_the_plain_graph)
{
    const rlx_session_desc plain = {RLX_SIZED(rlx_session_desc),
                                    .debug = DEBUG(.no_optimize = true, .no_fusion = true,
                                                   .no_fold = true, .no_static_pack = true,
                                                   .dispatch = RLX_DISPATCH_COMMON)};

    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        struct world a = {0}, b = {0};
        test_note(t, "%s", small[i].name);
        if (open_network(t, &a, &small[i], true, &plain) && run(t, &a) &&
            open_network(t, &b, &small[i], true, NULL) && run(t, &b))
            expect_close(t, b.out, a.out, a.output.tensor.bytes / sizeof(float), 1e-4, 1e-4);
        close_world(&a);
        close_world(&b);
    }
}

TEST(bench_models, shapes_are_those_of_the_networks_named)
{
    static const struct {
        const char *name;
        int64_t params; /* elements */
        int rank;
        int64_t dim[3];
    } want[] = {{"bert", 85054464, 3, {1, 128, 768}},
                {"resnet50", 25610152, 2, {1, 1000}},
                {"resnet50, folded", 25530472, 2, {1, 1000}}};

    for (size_t i = 0; i < sizeof full / sizeof *full; i++) {
        struct world w;
        rlx_io_info io = {RLX_SIZED(rlx_io_info)};
        int64_t total = 0;
        test_note(t, "%s", full[i].name);
        if (!open_device(t, &w, &full[i]))
            return close_world(&w);
        for (size_t p = 0; p < rlx_model_io_count(w.model, RLX_IO_PARAM); p++) {
            expect_ok(t, rlx_model_io(w.model, RLX_IO_PARAM, p, &io, &w.err));
            rlx_tensor shape = {.rank = io.rank};
            memcpy(shape.dim, io.dim, sizeof shape.dim);
            total += values_count(&shape);
        }
        expect_eq(t, total, want[i].params);
        expect_ok(t, rlx_model_io(w.model, RLX_IO_OUTPUT, 0, &io, &w.err));
        expect_eq(t, io.rank, want[i].rank);
        for (int d = 0; d < io.rank; d++)
            expect_eq(t, io.dim[d], want[i].dim[d]);
        close_world(&w);
    }
}

/* Values do not matter here; params read as zero. */
static void expect_small_and_quiet(struct test *t, const struct network *n)
{
    struct world w;
    rlx_memory_info memory = {RLX_SIZED(rlx_memory_info)};
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .params_default_zero = true,
                                   .debug = DEBUG(.check_plan = true)};

    test_note(t, "%s", n->name);
    if (open_network(t, &w, n, false, &desc) && run(t, &w)) {
        expect_ok(t, rlx_session_memory(w.session, &memory, &w.err));
        expect(t, memory.activations > 0);
        expect_eq_u64(t, memory.activations, memory.lower_bound);
        int64_t before = w.calls;
        run(t, &w);
        expect_eq(t, w.calls - before, 0);
    }
    close_world(&w);
}

TEST(bench_models, small_networks_fill_their_bound_and_never_allocate)
{
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        expect_small_and_quiet(t, &small[i]);
}

TEST_SLOW(bench_models, full_networks_fill_their_bound_and_never_allocate)
{
    for (size_t i = 0; i < sizeof full / sizeof *full; i++)
        expect_small_and_quiet(t, &full[i]);
}
