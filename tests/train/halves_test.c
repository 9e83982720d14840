/* halves_test.c: products in halves with params in f32, and params that are halves themselves. */
#include "reference.h"

static const rlx_dtype halves[] = {RLX_DTYPE_bf16, RLX_DTYPE_f16};

static rlx_session_desc products_in(rlx_dtype dtype)
{
    return (rlx_session_desc){RLX_SIZED(rlx_session_desc), .precision = RLX_PRECISION_CUSTOM,
                              .precision_map = {.compute = dtype,
                                                .reduction = RLX_DTYPE_f32,
                                                .elementwise = RLX_DTYPE_f32,
                                                .movement = RLX_DTYPE_f32}};
}

/* 20 updates in one precision beside those in double. */
TEST_DEVICES(train_halves, products)
{
    for (size_t i = 0; i < 2; i++) {
        rlx_session_desc session = products_in(halves[i]);
        rlx_train_desc desc = {RLX_SIZED(rlx_train_desc), .rate = 2e-2f, .clip_norm = 1,
                               .loss_scale = halves[i] == RLX_DTYPE_f16 ? 1024 : 0};
        struct train_world w;
        static struct reference r;
        bool differs = false;

        test_note(t, "%s", rlx_dtype_name(halves[i]));
        start(&r, &desc);
        if (open_as(t, &w, &desc, (struct how){.session = &session})) {
            for (int k = 0; k < 20; k++) {
                double grad[PARAMS][MOST];
                struct batch b;
                struct shown s = {0};
                make_batch(&b, k);
                double loss = batch_gradients(r.p, &b, grad);
                update(&r, grad);
                if (!expect_ok(t, run_batch(&w, &b, ROWS, &s)))
                    fail(t, "%s", w.err.message);
                expect_near(t, s.loss, loss, 2e-2 * loss);
                differs |= fabs((double)s.loss - loss) > 2e-5 * loss;
            }
            compare_params(t, &w, &r, 3e-2);
            expect(t, differs); /* the products were in halves */
        }
        close_world(&w);
    }
    test_note(t, "%s", "");
}

/* Updates far smaller than a half's last bit are not lost. */
TEST_DEVICES(train_halves, params_stay_wide)
{
    for (size_t i = 0; i < 2; i++) {
        rlx_session_desc session = products_in(halves[i]);
        rlx_train_desc desc = {RLX_SIZED(rlx_train_desc), .optimiser = RLX_OPTIMISER_SGD,
                               .rate = 1e-5f};
        struct train_world w;
        static struct reference r;
        struct batch b;
        struct shown s;
        float got[MOST];

        test_note(t, "%s", rlx_dtype_name(halves[i]));
        start(&r, &desc);
        make_batch(&b, 0);
        if (open_as(t, &w, &desc, (struct how){.session = &session})) {
            for (int k = 0; k < 20; k++) {
                double grad[PARAMS][MOST];
                batch_gradients(r.p, &b, grad);
                update(&r, grad);
                expect_ok(t, run_batch(&w, &b, ROWS, &s));
            }
            get_state(t, &w, "u", RLX_DTYPE_f32, got, param_size(2) * sizeof *got);
            for (size_t k = 0; k < param_size(2); k++) {
                double from = (double)first_value(2, k), want = r.p[2][k] - from;
                expect_near(t, (double)got[k] - from, want, 0.03 * fabs(want) + 3e-6);
            }
        }
        close_world(&w);
    }
    test_note(t, "%s", "");
}

/* The nearest half. */
static double rounded(double v, rlx_dtype dtype)
{
    int exponent;

    frexp(v, &exponent);
    double last = ldexp(1, exponent - (dtype == RLX_DTYPE_f16 ? 11 : 8));
    return v == 0 ? 0 : nearbyint(v / last) * last;
}

/* Params that are halves: each update is computed in f32 and rounded. */
TEST_DEVICES(train_halves, params_that_are)
{
    for (size_t i = 0; i < 2; i++) {
        rlx_train_desc desc = {RLX_SIZED(rlx_train_desc), .rate = 5e-2f, .decay = 0.1f};
        struct train_world w;
        static struct reference r;
        float m[MOST], want[MOST];
        struct batch b;
        struct shown s;

        test_note(t, "%s", rlx_dtype_name(halves[i]));
        start(&r, &desc);
        if (open_as(t, &w, &desc, (struct how){.dtype = halves[i]})) {
            for (int k = 0; k < 5; k++) {
                double grad[PARAMS][MOST];
                for (int p = 0; p < PARAMS; p++)
                    for (size_t n = 0; n < param_size(p); n++)
                        r.p[p][n] = rounded(r.p[p][n], halves[i]);
                make_batch(&b, k);
                batch_gradients(r.p, &b, grad);
                update(&r, grad);
                if (!expect_ok(t, run_batch(&w, &b, ROWS, &s)))
                    fail(t, "%s", w.err.message);
            }
            compare_params(t, &w, &r, halves[i] == RLX_DTYPE_f16 ? 2e-3 : 1.5e-2);
            get_state(t, &w, "adamw.m:u", RLX_DTYPE_f32, m, param_size(2) * sizeof *m);
            for (size_t k = 0; k < param_size(2); k++)
                want[k] = (float)r.m[2][k];
            expect_close(t, m, want, param_size(2), 2e-2, 2e-3);
        }
        close_world(&w);
    }
    test_note(t, "%s", "");
}
