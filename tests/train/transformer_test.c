/* transformer_test.c: a small transformer learns as it does in PyTorch: the first 100 losses, from
 * the same weights, on every device; the same bits for any number of threads. */
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

TEST_DEVICES(train_transformer, learns_as_in_pytorch_with_products_in_bf16)
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
