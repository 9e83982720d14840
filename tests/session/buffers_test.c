/* buffers_test.c: what lies in several small buffers: networks give the same bits, weights and
 * states are found again, files are planned again, and one value that is too large is LIMIT. */
#include <stdlib.h>

#include "../../bench/support/models.h"
#include "compile/limits_world.h"
#include "rlx/artefact.h"

/* ---- any network of f32 with static sizes ---- */

struct network {
    const char *file; /* in the source tree, or: */
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
static const struct network networks[] = {
    {.file = "examples/mlp.rlx"},
    {.file = "examples/convnet.rlx"},
    {.file = "examples/transformer_block.rlx"},
    {NULL, build_encoder, &small_encoder},
    {NULL, build_resnet, &small_resnet},
};
enum { NETWORKS = sizeof networks / sizeof *networks, ENDS = 8 };

/* Tensors of one kind, filled by their names. */
struct tensors {
    rlx_binding at[ENDS];
    char name[ENDS][64];
    size_t count;
};

static bool make_tensor(struct test *t, struct world *w, rlx_io_kind kind, size_t i,
                        rlx_binding *out, char name[64])
{
    rlx_io_info io = {RLX_SIZED(rlx_io_info)};

    if (!expect_ok(t, rlx_model_io(w->model, kind, i, &io, &w->err)) ||
        !expect(t, io.name.len < 64 && io.dtype == RLX_DTYPE_f32))
        return false;
    memcpy(name, io.name.ptr, io.name.len);
    name[io.name.len] = 0;
    rlx_tensor x = {.dtype = io.dtype, .rank = io.rank};
    memcpy(x.dim, io.dim, sizeof x.dim);
    x.bytes = (size_t)values_count(&x) * sizeof(float);
    x.data = malloc(x.bytes);
    *out = (rlx_binding){name, x};
    if (!expect(t, x.data != NULL))
        return false;
    values_fill(name, &x, x.data);
    return true;
}

static bool make_tensors(struct test *t, struct world *w, rlx_io_kind kind, struct tensors *out)
{
    size_t count = rlx_model_io_count(w->model, kind);

    *out = (struct tensors){.count = 0};
    if (!expect(t, count <= ENDS))
        return false;
    for (size_t i = 0; i < count; i++, out->count++)
        if (!make_tensor(t, w, kind, i, &out->at[i], out->name[i]))
            return false;
    return true;
}

static void free_tensors(struct tensors *x)
{
    for (size_t i = 0; i < x->count; i++)
        free(x->at[i].tensor.data);
}

static bool open_network(struct test *t, struct world *w, const struct network *n)
{
    rlx_graph *g;
    size_t len;

    if (n->file) {
        const char *text = test_read(t, test_source(t, n->file), &len);
        if (!text || !open_text(t, w, test_device(t), text))
            return false;
    } else {
        if (!open_device(t, w, test_device(t)) ||
            !expect_ok(t, rlx_graph_create(w->ctx, &g, &w->err)))
            return false;
        n->build(g, n->shape);
        if (!expect_ok(t, rlx_model_create(g, &w->model, &w->err))) {
            rlx_graph_destroy(g);
            return false;
        }
    }
    for (size_t i = 0; i < rlx_model_io_count(w->model, RLX_IO_PARAM); i++) {
        rlx_binding p;
        char name[64];
        if (!make_tensor(t, w, RLX_IO_PARAM, i, &p, name))
            return false;
        bool set = expect_ok(t, rlx_model_set_param(w->model, name, &p.tensor, &w->err));
        free(p.tensor.data);
        if (!set)
            return false;
    }
    return true;
}

static bool run_all(struct test *t, struct world *w, struct tensors *in, struct tensors *out)
{
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), in->at, in->count, out->at, out->count, NULL, 0};

    for (size_t i = 0; i < out->count; i++)
        memset(out->at[i].tensor.data, 0xee, out->at[i].tensor.bytes);
    if (expect_ok(t, rlx_session_run(w->session, &run, &w->err)))
        return true;
    fail(t, "%s", w->err.message);
    return false;
}

static rlx_status try_limit(struct world *w, rlx_session_desc desc, uint64_t max_buffer)
{
    desc.max_buffer = max_buffer;
    rlx_session_destroy(w->session);
    w->session = NULL;
    return rlx_session_create(w->model, w->dev, &desc, &w->session, &w->err);
}

/* The least max_buffer that it compiles with, a multiple of 256. */
static uint64_t least_buffer(struct world *w, const rlx_session_desc *desc)
{
    uint64_t low = 0, high = 256;

    while (high < UINT64_C(1) << 40 && try_limit(w, *desc, high) == RLX_ERROR_LIMIT)
        high *= 2;
    while (high - low > 256) {
        uint64_t middle = (low + high) / 2 / 256 * 256;
        if (try_limit(w, *desc, middle) == RLX_OK)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Kernels that want copies of weights do without those that are too large, and products are not
 * joined; so neither happens here, lest other kernels give other bits. */
static void expect_same_bits(struct test *t, const struct network *n, bool no_reuse)
{
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc),
                             .debug = DEBUG(.no_reuse = no_reuse, .check_plan = true,
                                            .no_weight_concat = true, .no_packed_weights = true)};
    struct world w;
    struct tensors in = {.count = 0}, want = {.count = 0}, got = {.count = 0};

    if (!open_network(t, &w, n) || !make_tensors(t, &w, RLX_IO_INPUT, &in) ||
        !make_tensors(t, &w, RLX_IO_OUTPUT, &want) || !make_tensors(t, &w, RLX_IO_OUTPUT, &got) ||
        !open_session(t, &w, &desc) || !run_all(t, &w, &in, &want))
        goto out;
    uint64_t whole = memory(t, &w).activations, least = least_buffer(&w, &desc);
    for (uint64_t limit = least; limit <= 4 * least; limit += least) {
        test_note(t, "%s, max_buffer %llu of %llu", n->file ? n->file : "bench",
                  (unsigned long long)limit, (unsigned long long)whole);
        desc.max_buffer = limit;
        if (!open_session(t, &w, &desc) || !run_all(t, &w, &in, &got))
            break;
        for (size_t i = 0; i < got.count; i++)
            expect_bytes(t, got.at[i].tensor.data, want.at[i].tensor.data, got.at[i].tensor.bytes);
        rlx_memory_info m = memory(t, &w);
        expect(t, m.buffers >= (whole + limit - 1) / limit / 2 && m.activations >= m.lower_bound);
        if (whole > limit)
            expect(t, m.buffers > 1);
    }
    if (least > 256) {
        expect_status(t, try_limit(&w, desc, least - 256), RLX_ERROR_LIMIT);
        expect_contains(t, w.err.message, "max_buffer");
        expect_ok(t, try_limit(&w, desc, least)); /* nothing is broken by that */
        expect(t, run_all(t, &w, &in, &got));
    }
out:
    free_tensors(&in);
    free_tensors(&want);
    free_tensors(&got);
    close_world(&w);
}

TEST_DEVICES_SLOW(buffers, networks_in_small_buffers_give_the_same_bits)
{
    for (size_t i = 0; i < NETWORKS; i++)
        expect_same_bits(t, &networks[i], false);
}

TEST_DEVICES_SLOW(buffers, networks_in_small_buffers_without_reuse)
{
    for (size_t i = 0; i < NETWORKS; i++)
        expect_same_bits(t, &networks[i], true);
}

/* With copies and joined products as ever, where they fit. */
TEST_DEVICES_SLOW(buffers, networks_in_small_buffers_compute_the_same)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        struct world w;
        struct tensors in = {.count = 0}, want = {.count = 0}, got = {.count = 0};
        test_note(t, "network %zu", i);
        if (open_network(t, &w, &networks[i]) && make_tensors(t, &w, RLX_IO_INPUT, &in) &&
            make_tensors(t, &w, RLX_IO_OUTPUT, &want) && make_tensors(t, &w, RLX_IO_OUTPUT, &got) &&
            open_session(t, &w, NULL) && run_all(t, &w, &in, &want)) {
            rlx_session_desc desc = {RLX_SIZED(rlx_session_desc),
                                     .debug = DEBUG(.check_plan = true)};
            desc.max_buffer = least_buffer(&w, &desc);
            if (open_session(t, &w, &desc) && run_all(t, &w, &in, &got))
                for (size_t k = 0; k < got.count; k++)
                    expect_close(t, got.at[k].tensor.data, want.at[k].tensor.data,
                                 got.at[k].tensor.bytes / sizeof(float), 1e-4, 1e-5);
        }
        free_tensors(&in);
        free_tensors(&want);
        free_tensors(&got);
        close_world(&w);
    }
}

/* ---- what is too large, and what it is called ---- */

TEST_DEVICES_SLOW(buffers, one_value_too_large_is_named)
{
    static const struct {
        const char *text, *part;
    } row[] = {
        {"rlx 1\ngraph (input %x: f32[64]) {\n    %wide = expand %x shape=[100,64]\n"
         "    %y = exp %wide\n    return %y\n}\n",
         "25600 bytes, and a buffer holds at most 4096"},
        {"rlx 1\ngraph (input %x: f32[2], param %heavy: f32[50,50]) {\n"
         "    %s = reduce_sum %heavy axes=[0,1]\n    %y = mul %x, %s\n    return %y\n}\n",
         "param \"heavy\" takes 10000 bytes"},
        {"rlx 1\ngraph (input %x: f32[2], state %deep: f32[50,50]) {\n"
         "    %s = reduce_sum %deep axes=[0,1]\n    %y = mul %x, %s\n    return %y\n}\n",
         "state \"deep\" takes 10000 bytes"},
    };
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .max_buffer = 4100};

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct world w;
        if (open_text(t, &w, test_device(t), row[i].text)) {
            expect_status(t, rlx_session_create(w.model, w.dev, &desc, &w.session, &w.err),
                          RLX_ERROR_LIMIT);
            expect_contains(t, w.err.message, row[i].part);
            expect(t, i != 0 || (w.err.node >= 0 && w.err.op[0]));
            expect(t, open_session(t, &w, NULL));
        }
        close_world(&w);
    }
}

TEST_DEVICES_SLOW(buffers, buffers_below_the_alignment_are_a_limit)
{
    struct world w;
    const rlx_session_desc tiny = {RLX_SIZED(rlx_session_desc), .max_buffer = 255},
                           wide = {RLX_SIZED(rlx_session_desc), .max_buffer = 300,
                                   .debug = DEBUG(.alignment = 512)};

    if (open_text(t, &w, test_device(t),
                  "rlx 1\ngraph (input %x: f32[2]) {\n    %y = exp %x\n"
                  "    return %y\n}\n")) {
        expect_status(t, rlx_session_create(w.model, w.dev, &tiny, &w.session, &w.err),
                      RLX_ERROR_LIMIT);
        expect_contains(t, w.err.message, "255");
        expect_status(t, rlx_session_create(w.model, w.dev, &wide, &w.session, &w.err),
                      RLX_ERROR_LIMIT);
        expect_contains(t, w.err.message, "512");
    }
    close_world(&w);
}

/* The lower of the two limits rules: this device has one of 1 MiB. */
TEST(buffers, of_the_device_and_of_the_session)
{
    const char *text = "rlx 1\ngraph (input %x: f32[200000], input %y: f32[200000]) {\n"
                       "    %a = exp %x\n    %b = exp %y\n    return %a, %b\n}\n";
    const rlx_session_desc large = {RLX_SIZED(rlx_session_desc), .max_buffer = UINT64_C(1) << 30},
                           small = {RLX_SIZED(rlx_session_desc), .max_buffer = 4096};
    struct world w;

    if (open_text(t, &w, "null:small", text)) {
        if (open_session(t, &w, NULL))
            expect_eq(t, memory(t, &w).buffers, 4);
        if (open_session(t, &w, &large))
            expect_eq(t, memory(t, &w).buffers, 4);
        rlx_session_destroy(w.session);
        w.session = NULL;
        expect_status(t, rlx_session_create(w.model, w.dev, &small, &w.session, &w.err),
                      RLX_ERROR_LIMIT);
    }
    close_world(&w);
}

/* ---- weights, states, clones, unfinished runs ---- */

static bool set_all(struct test *t, struct world *w)
{
    static const char *const names[] = {"a", "b", "c", "s", "u"};
    float data[100];
    rlx_tensor value = row100(data);

    for (int i = 0; i < 5; i++) {
        fill(data, 0.25f + (float)i);
        rlx_status s = i < 3 ? rlx_session_set_param(w->session, names[i], &value, &w->err)
                             : rlx_session_set_state(w->session, names[i], &value, &w->err);
        if (!expect_ok(t, s))
            return false;
    }
    return true;
}

static void read_all(struct test *t, rlx_session *s)
{
    static const char *const names[] = {"a", "b", "c", "s", "u"};
    float data[100], want[100];
    rlx_tensor value = row100(data);

    for (int i = 0; i < 5; i++) {
        fill(want, 0.25f + (float)i);
        memset(data, 0, sizeof data);
        expect_ok(t, i < 3 ? rlx_session_get_param(s, names[i], &value, NULL)
                           : rlx_session_get_state(s, names[i], &value, NULL));
        expect_bytes(t, data, want, sizeof want);
    }
}

static bool run_spread(struct test *t, rlx_session *s, float seed, float *out)
{
    float x[100];
    rlx_binding in = {"x", row100(x)};
    rlx_binding to[2] = {{"y", row100(out)}, {"z", row100(out + 100)}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, to, 2, NULL, 0};

    fill(x, seed);
    return expect_ok(t, rlx_session_run(s, &run, NULL));
}

TEST_DEVICES_SLOW(buffers, weights_and_states_lie_in_several_buffers)
{
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .max_buffer = 512,
                                   .debug = DEBUG(.no_regions = true)};
    float want[200], got[200];
    rlx_session *clone = NULL;
    struct world w;

    if (!open_text(t, &w, test_device(t), SPREAD) || !open_session(t, &w, NULL) ||
        !set_all(t, &w) || !run_spread(t, w.session, 0.5f, want))
        return close_world(&w);
    close_world(&w);
    if (open_text(t, &w, test_device(t), SPREAD) && open_session(t, &w, &desc) && set_all(t, &w)) {
        read_all(t, w.session);
        expect(t, memory(t, &w).buffers > 1);
        if (run_spread(t, w.session, 0.5f, got))
            expect_bytes(t, got, want, sizeof want);
        for (unsigned own = 0; own < 2; own++) {
            unsigned flags = own ? RLX_CLONE_OWN_WEIGHTS : 0;
            require_ok(t, rlx_session_clone(w.session, flags, &clone, &w.err));
            read_all(t, clone);
            memset(got, 0, sizeof got);
            if (run_spread(t, clone, 0.5f, got))
                expect_bytes(t, got, want, sizeof want);
            rlx_session_destroy(clone);
        }
    }
    close_world(&w);
}

/* The second of two sessions reads weights where the first had them put. */
TEST_DEVICES_SLOW(buffers, sessions_of_one_model_may_differ)
{
    const rlx_session_desc desc[] = {
        {RLX_SIZED(rlx_session_desc), .max_buffer = 512, .debug = DEBUG(.no_regions = true)},
        {RLX_SIZED(rlx_session_desc), .max_buffer = 1024, .debug = DEBUG(.no_regions = true)},
        {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_regions = true)}};
    float want[200], got[200];
    rlx_session *other;
    struct world w;

    if (!open_text(t, &w, test_device(t), SPREAD) || !open_session(t, &w, &desc[0]) ||
        !set_all(t, &w) || !run_spread(t, w.session, 0.5f, want))
        return close_world(&w);
    for (int i = 0; i < 3; i++) {
        require_ok(t, rlx_session_create(w.model, w.dev, &desc[i], &other, &w.err));
        rlx_session *first = w.session;
        w.session = other;
        if (set_all(t, &w) && run_spread(t, other, 0.5f, got))
            expect_bytes(t, got, want, sizeof want);
        w.session = first;
        rlx_session_destroy(other);
    }
    close_world(&w);
}

TEST_DEVICES_SLOW(buffers, outputs_of_unfinished_runs_are_spread_too)
{
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .max_buffer = 512, .in_flight = 3,
                                   .debug = DEBUG(.no_regions = true)};
    float x[3][100], want[3][200], got[200];
    uint64_t ticket[3];
    struct world w;

    if (!open_text(t, &w, test_device(t), SPREAD) || !open_session(t, &w, &desc) || !set_all(t, &w))
        return close_world(&w);
    for (int i = 0; i < 3; i++)
        run_spread(t, w.session, (float)i, want[i]);
    for (int i = 0; i < 3; i++) {
        rlx_binding in = {"x", row100(x[i])};
        fill(x[i], (float)i);
        rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0};
        expect_ok(t, rlx_session_submit(w.session, &run, &ticket[i], &w.err));
    }
    for (int i = 0; i < 3; i++) {
        rlx_binding to[2] = {{"y", row100(got)}, {"z", row100(got + 100)}};
        rlx_run_desc run = {RLX_SIZED(rlx_run_desc), NULL, 0, to, 2, NULL, 0};
        expect_ok(t, rlx_session_wait(w.session, ticket[i], &run, &w.err));
        expect_bytes(t, got, want[i], sizeof want[i]);
    }
    close_world(&w);
}

/* ---- files ---- */

struct trip {
    uint64_t saved_for, loaded_for;
    bool restored;
};

static void make_trip(struct test *t, const struct trip *k)
{
    const char *path = test_temp(t, "a.rlxa");
    const rlx_session_desc save = {RLX_SIZED(rlx_session_desc), .max_buffer = k->saved_for,
                                   .debug = DEBUG(.no_regions = true)};
    const rlx_session_desc load = {RLX_SIZED(rlx_session_desc), .max_buffer = k->loaded_for,
                                   .debug = DEBUG(.no_regions = true)};
    float want[200], got[200], data[100];
    rlx_compiled_info c = {RLX_SIZED(rlx_compiled_info)};
    struct world w;

    test_note(t, "from %llu to %llu", (unsigned long long)k->saved_for,
              (unsigned long long)k->loaded_for);
    if (!open_text(t, &w, test_device(t), SPREAD) || !open_session(t, &w, &save) ||
        !set_all(t, &w) || !run_spread(t, w.session, 0.5f, want) ||
        !expect_ok(t, rlx_session_save(w.session, path, RLX_SAVE_WEIGHTS, &w.err)))
        return close_world(&w);
    close_world(&w);
    if (!open_device(t, &w, test_device(t)))
        return close_world(&w);
    if (expect_ok(t, rlx_session_load(w.dev, path, NULL, &load, &w.model, &w.session, &w.err))) {
        rlx_tensor value = row100(data);
        fill(data, 3.25f);
        expect_ok(t, rlx_session_set_state(w.session, "s", &value, &w.err));
        fill(data, 4.25f);
        expect_ok(t, rlx_session_set_state(w.session, "u", &value, &w.err));
        expect_ok(t, rlx_session_compiled(w.session, &c, &w.err));
        expect_eq(t, c.from_artefact, 1);
        expect_eq(t, c.restored, k->restored);
        expect_eq(t, c.why[0] == 0, k->restored);
        expect_eq(t, memory(t, &w).buffers > 1, k->loaded_for != 0);
        if (run_spread(t, w.session, 0.5f, got))
            expect_bytes(t, got, want, sizeof want);
    } else {
        fail(t, "%s", w.err.message);
    }
    close_world(&w);
}

TEST_DEVICES_SLOW(buffers, artefacts_are_planned_again_for_other_buffers)
{
    static const struct trip trips[] = {
        {0, 0, true}, {0, 512, false}, {512, 512, true}, {512, 0, false}, {512, 1024, false}};

    for (size_t i = 0; i < sizeof trips / sizeof *trips; i++)
        make_trip(t, &trips[i]);
}

/* Joined weights are too large here: what the passes made for large buffers is of no use. */
TEST_DEVICES_SLOW(buffers, artefacts_are_compiled_again_where_joined_weights_are_too_large)
{
    const char *text = "rlx 1\ngraph (input %x: f32[2,64], param %a: f32[64,64], param %b: "
                       "f32[64,64]) {\n    %p = matmul %x, %a\n    %q = matmul %x, %b\n"
                       "    %y = mul %p, %q\n    return %y\n}\n";
    const char *path = test_temp(t, "a.rlxa");
    const rlx_session_desc open = {RLX_SIZED(rlx_session_desc), .params_default_zero = true,
                                   .debug = DEBUG(.no_packed_weights = true)};
    rlx_session_desc load = open;
    rlx_compiled_info c = {RLX_SIZED(rlx_compiled_info)};
    struct world w;

    load.max_buffer = 64 * 64 * 4;
    if (!open_text(t, &w, test_device(t), text) || !open_session(t, &w, &open))
        return close_world(&w);
    expect(t, memory(t, &w).weight_copies >= 2 * 64 * 64 * 4);
    expect_ok(t, rlx_session_save(w.session, path, 0, &w.err));
    close_world(&w);
    if (!open_device(t, &w, test_device(t)))
        return close_world(&w);
    if (expect_ok(t, rlx_session_load(w.dev, path, NULL, &load, &w.model, &w.session, &w.err))) {
        expect_ok(t, rlx_session_compiled(w.session, &c, &w.err));
        expect_eq(t, c.from_artefact, 0);
        expect_eq(t, memory(t, &w).weight_copies, 0);
    } else {
        fail(t, "%s", w.err.message);
    }
    close_world(&w);
}
