/* transformer_test.c: a small transformer learns as it does in PyTorch: the first 100 losses, from
 * the same weights, on every device; the same bits for any number of threads. */
#include "rlx/artefact.h"
#include "transformer.h"

/* The losses in PyTorch, in that column of transformer.txt: f32, products in bf16, f64. */
static bool read_losses(struct test *t, int column, double out[UPDATES])
{
    const char *path = test_source(t, "tests/train/transformer.txt");
    const char *text = path ? test_read(t, path, NULL) : NULL;
    double v[3];

    if (!text)
        return false;
    for (int k = 0; k < UPDATES; k++) {
        text = strchr(text, '\n');
        if (!text || sscanf(++text, "%lf %lf %lf", &v[0], &v[1], &v[2]) != 3)
            return fail(t, "transformer.txt has %d lines", k);
        out[k] = v[column];
    }
    return true;
}

static void follow(struct test *t, int column, const rlx_session_desc *desc, double tol)
{
    double want[UPDATES];
    struct learner l;

    if (open_learner(t, &l, 0, desc) && read_losses(t, column, want)) {
        float loss;
        for (int k = 0; k < UPDATES && run_once(t, &l, k, &loss); k++) {
            test_note(t, "update %d", k);
            expect_near(t, loss, want[k], tol * want[k]);
        }
    }
    close_learner(&l);
}

TEST_DEVICES(train_transformer, learns_as_in_pytorch)
{
    follow(t, 0, NULL, 1e-3);
}

TEST_DEVICES_SLOW(train_transformer, learns_as_in_pytorch_with_products_in_bf16)
{
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .precision = RLX_PRECISION_CUSTOM,
                             .precision_map = {.compute = RLX_DTYPE_bf16,
                                               .reduction = RLX_DTYPE_f32,
                                               .elementwise = RLX_DTYPE_f32,
                                               .movement = RLX_DTYPE_f32}};

    follow(t, 1, &desc, 2e-2);
}

/* All params after some updates. */
static float *learnt(struct test *t, int threads, size_t *count)
{
    struct learner l;
    float *all = NULL, loss;

    *count = 0;
    if (open_learner(t, &l, threads, NULL)) {
        for (int k = 0; k < 12; k++)
            run_once(t, &l, k, &loss);
        for (int i = 0; i < PARAMS; i++)
            *count += weight_count(&l.weights, i);
        all = calloc(*count, sizeof *all);
        size_t at = 0;
        for (int i = 0; i < PARAMS && all; i++) {
            rlx_tensor v = weight_tensor(&l.weights, i, all + at);
            expect_ok(t, rlx_session_get_state(l.session, l.weights.at[i].name, &v, &l.err));
            at += weight_count(&l.weights, i);
        }
    }
    close_learner(&l);
    return all;
}

TEST(train_transformer, learns_the_same_with_any_number_of_threads)
{
    size_t count;
    float *one = learnt(t, 1, &count);

    for (int threads = 2; threads <= 3; threads++) {
        float *other = learnt(t, threads, &count);
        test_note(t, "%d threads", threads);
        if (expect(t, one && other))
            expect_bytes(t, other, one, count * sizeof *one);
        free(other);
    }
    free(one);
}

/* ---- the same training in other ways ---- */

/* All states by their numbers: what a file would hold. */
static bool copy_states(struct test *t, rlx_model *m, rlx_session *from, rlx_session *to)
{
    static unsigned char data[VOCAB * WIDTH * sizeof(float)];
    rlx_error err = {0};

    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_STATE); i++) {
        rlx_io_info io = {RLX_SIZED(rlx_io_info)};
        char name[64];
        expect_ok(t, rlx_model_io(m, RLX_IO_STATE, i, &io, &err));
        snprintf(name, sizeof name, "%.*s", (int)io.name.len, io.name.ptr);
        rlx_tensor v = {.dtype = io.dtype, .data = data, .bytes = rlx_dtype_size(io.dtype)};
        for (int32_t k = 0; k < io.rank; k++)
            v.bytes *= (size_t)io.dim[k];
        if (!expect(t, v.bytes <= sizeof data) ||
            !expect_ok(t, rlx_session_get_state(from, name, &v, &err)) ||
            !expect_ok(t, rlx_session_set_state(to, name, &v, &err)))
            return fail(t, "%s", err.message);
    }
    return true;
}

/* From the states alone another session goes on with the same bits. */
TEST_DEVICES(train_transformer, goes_on_from_its_states)
{
    rlx_session *other = NULL;
    struct learner l;
    float loss;

    if (open_learner(t, &l, 0, NULL)) {
        for (int k = 0; k < 5; k++)
            run_once(t, &l, k, &loss);
        expect_ok(t, rlx_session_create(l.model, l.dev, NULL, &other, &l.err));
        if (other && copy_states(t, l.model, l.session, other))
            for (int k = 5; k < 9; k++) {
                float again = -1;
                struct text_batch b;
                run_once(t, &l, k, &loss);
                text_batch(&b, k);
                expect_ok(t, run_text(other, &b, &again, &l.err));
                expect_bytes(t, &again, &loss, sizeof loss);
            }
        rlx_session_destroy(other);
    }
    close_learner(&l);
}

/* Values that are computed again read the params as they were. */
TEST_DEVICES(train_transformer, learns_within_less_memory)
{
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .activation_budget = 1150000};
    rlx_memory_info m = {RLX_SIZED(rlx_memory_info)};
    double want[UPDATES];
    struct learner l;
    float loss;

    if (open_learner(t, &l, 0, &desc) && read_losses(t, 0, want)) {
        for (int k = 0; k < 10 && run_once(t, &l, k, &loss); k++)
            expect_near(t, loss, want[k], 1e-3 * want[k]);
        expect_ok(t, rlx_session_memory(l.session, &m, &l.err));
        expect(t, m.recomputed > 0 && m.alive < m.kept);
    }
    close_learner(&l);
}

/* A program that was compiled earlier, with its plan, writes into states as well. */
TEST_DEVICES(train_transformer, learns_from_a_file_of_programs)
{
    const char *path = test_temp(t, "learner.rlxa");
    rlx_compiled_info how = {RLX_SIZED(rlx_compiled_info)};
    rlx_model *model = NULL;
    rlx_session *other = NULL;
    double want[UPDATES];
    struct learner l;
    float loss;

    if (open_learner(t, &l, 0, NULL) && read_losses(t, 0, want)) {
        run_once(t, &l, 0, &loss);
        if (expect_ok(t, rlx_session_save(l.session, path, 0, &l.err)) &&
            expect_ok(t, rlx_session_load(l.dev, path, NULL, NULL, &model, &other, &l.err)) &&
            expect_ok(t, set_weights(&l.weights, other, &l.err))) {
            for (int k = 0; k < 10; k++) {
                struct text_batch b;
                text_batch(&b, k);
                expect_ok(t, run_text(other, &b, &loss, &l.err));
                expect_near(t, loss, want[k], 1e-3 * want[k]);
            }
            expect_ok(t, rlx_session_compiled(other, &how, &l.err));
            test_note(t, "%s", how.why);
            expect_eq(t, how.from_artefact, 1);
            expect_eq(t, how.restored, 1);
        } else {
            fail(t, "%s", l.err.message);
        }
        rlx_session_destroy(other);
        rlx_model_destroy(model);
    }
    close_learner(&l);
}
