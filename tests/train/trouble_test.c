/* trouble_test.c: several runs to an update, sizes that change, factors of the loss, and numbers
 * that are not finite: what is on the device is what it was before them. */
#include "reference.h"

static const rlx_train_desc plain = {RLX_SIZED(rlx_train_desc), .rate = 1e-2f, .decay = 0.1f,
                                     .clip_norm = 0.5f};

static bool run(struct test *t, struct train_world *w, const struct batch *b, struct shown *s)
{
    return expect_ok(t, run_batch(w, b, ROWS, s)) || fail(t, "%s", w->err.message);
}

/* An update of the reference by that batch alone. */
static void follow(struct reference *r, const struct batch *b)
{
    double grad[PARAMS][MOST];

    batch_gradients(r->p, b, grad);
    update(r, grad);
}

/* ---- sizes ---- */

static bool learn(struct test *t, const rlx_train_desc *desc, struct how how, int64_t rows,
                  float out[PARAMS][MOST])
{
    struct train_world w;
    bool ok = open_as(t, &w, desc, how);

    for (int k = 0; ok && k < 4; k++)
        for (int64_t at = 0; ok && at < 4; at += rows) {
            struct batch b, part;
            struct shown s;
            make_batch(&b, k);
            memcpy(part.x, b.x + at * IN, (size_t)rows * IN * sizeof(float));
            memcpy(part.t, b.t + at * OUT, (size_t)rows * OUT * sizeof(float));
            ok = expect_ok(t, run_batch(&w, &part, rows, &s)) || fail(t, "%s", w.err.message);
        }
    for (int i = 0; ok && i < PARAMS; i++)
        ok = get_state(t, &w, param_name[i], RLX_DTYPE_f32, out[i], param_size(i) * sizeof(float));
    close_world(&w);
    return ok;
}

static void same_params(struct test *t, float a[PARAMS][MOST], float b[PARAMS][MOST], double tol)
{
    for (int i = 0; i < PARAMS; i++)
        expect_close(t, a[i], b[i], param_size(i), tol, tol);
}

TEST_DEVICES(train, four_runs_are_one_of_four_times_the_rows)
{
    rlx_train_desc desc = plain;
    float together[PARAMS][MOST], apart[PARAMS][MOST], any[PARAMS][MOST];

    if (!learn(t, &desc, (struct how){.rows = 4}, 4, together))
        return;
    desc.accumulate = 4;
    if (learn(t, &desc, (struct how){.rows = 1}, 1, apart))
        same_params(t, apart, together, 2e-5);
    desc.accumulate = 2;
    if (learn(t, &desc, (struct how){.any_rows = true}, 2, any))
        same_params(t, any, together, 2e-5);
}

/* A graph with a symbolic size is compiled for each, and what was learnt goes on. */
TEST_DEVICES(train, sizes_that_change)
{
    struct train_world w;
    static struct reference r;
    float sum[2];
    double losses = 0;
    struct batch b;
    struct shown s;

    start(&r, &plain);
    if (open_as(t, &w, &plain, (struct how){.any_rows = true})) {
        for (int k = 0; k < 6; k++) {
            double grad[PARAMS][MOST];
            make_batch(&b, k);
            losses += batch_gradients(r.p, &b, grad);
            follow(&r, &b);
            if (!run(t, &w, &b, &s))
                break;
        }
        compare_params(t, &w, &r, 2e-4);
        if (get_state(t, &w, "train.loss", RLX_DTYPE_f32, sum, sizeof sum)) {
            expect_near(t, sum[0], losses, 1e-4 * losses);
            expect_near(t, sum[1], 6, 0);
        }
        expect_ok(t, run_batch(&w, &b, 2, &s));
        expect_ok(t, run_batch(&w, &b, 3, &s));
        expect(t, isfinite(s.loss));
    }
    close_world(&w);
}

/* ---- what is not finite ---- */

static void expect_bad(struct test *t, struct train_world *w, int32_t runs, int32_t updates)
{
    int32_t bad[2] = {-1, -1};

    if (get_state(t, w, "train.bad", RLX_DTYPE_i32, bad, sizeof bad)) {
        expect_eq(t, bad[0], runs);
        if (runs)
            expect_eq(t, bad[1], updates);
    }
}

static void forgive(struct test *t, struct train_world *w)
{
    static const int32_t none[2];

    set_state(t, w, "train.bad", RLX_DTYPE_i32, none, 2, sizeof none);
}

static void check_bad(struct test *t, float number, rlx_optimiser by)
{
    rlx_train_desc desc = plain;
    struct train_world w;
    static struct reference r;
    struct batch b, wrong;
    struct shown s;

    desc.optimiser = by;
    test_note(t, "%g, optimiser %d", (double)number, (int)by);
    start(&r, &desc);
    make_batch(&wrong, 9);
    wrong.x[7] = number;
    if (open_trained(t, &w, &desc)) {
        for (int k = 0; k < 3; k++) {
            make_batch(&b, k);
            follow(&r, &b);
            run(t, &w, &b, &s);
        }
        expect_bad(t, &w, 0, 0);
        run(t, &w, &wrong, &s);
        expect(t, !isfinite(s.loss));
        expect_bad(t, &w, 1, 3);
        compare_params(t, &w, &r, 2e-4);
        run(t, &w, &b, &s); /* a good one, too late */
        expect(t, isfinite(s.loss));
        expect_bad(t, &w, 2, 3);
        compare_params(t, &w, &r, 2e-4);
        forgive(t, &w);
        for (int k = 3; k < 6; k++) {
            make_batch(&b, k);
            follow(&r, &b);
            run(t, &w, &b, &s);
        }
        expect_bad(t, &w, 0, 0);
        compare_params(t, &w, &r, 2e-4);
    }
    close_world(&w);
    test_note(t, "%s", "");
}

TEST_DEVICES(train, a_bad_run_changes_nothing)
{
    for (int i = RLX_OPTIMISER_ADAMW; i <= RLX_OPTIMISER_MUON; i++)
        check_bad(t, NAN, (rlx_optimiser)i);
    check_bad(t, INFINITY, RLX_OPTIMISER_ADAMW);
    check_bad(t, -1e30f, RLX_OPTIMISER_SGD); /* whose square is too large */
}

/* A bad run among those that make one update does not count as one of them. */
TEST_DEVICES(train, a_bad_run_of_several)
{
    rlx_train_desc desc = plain;
    struct train_world w;
    static struct reference r;
    struct batch b[3];
    struct shown s;
    double sum[PARAMS][MOST] = {0}, grad[PARAMS][MOST];

    desc.accumulate = 3;
    start(&r, &desc);
    for (int i = 0; i < 3; i++) {
        make_batch(&b[i], i);
        batch_gradients(r.p, &b[i], grad);
        for (int p = 0; p < PARAMS; p++)
            for (size_t k = 0; k < param_size(p); k++)
                sum[p][k] += grad[p][k] / 3;
    }
    update(&r, sum);
    if (open_trained(t, &w, &desc)) {
        struct batch wrong = b[0];
        wrong.t[0] = NAN;
        run(t, &w, &b[0], &s);
        run(t, &w, &wrong, &s);
        expect_bad(t, &w, 1, 0);
        forgive(t, &w);
        run(t, &w, &b[1], &s);
        run(t, &w, &b[2], &s);
        expect_bad(t, &w, 0, 0);
        compare_params(t, &w, &r, 2e-4);
    }
    close_world(&w);
}

/* ---- factors ---- */

static float factor_now(struct test *t, struct train_world *w)
{
    float scale[2] = {0};

    get_state(t, w, "train.scale", RLX_DTYPE_f32, scale, sizeof scale);
    return scale[0];
}

TEST_DEVICES(train, a_factor_grows)
{
    rlx_train_desc desc = plain;
    struct train_world w;
    static struct reference r;
    struct batch b;
    struct shown s;

    desc.loss_scale = 256;
    desc.loss_scale_steps = 3;
    start(&r, &desc);
    if (open_trained(t, &w, &desc)) {
        for (int k = 0; k < 7; k++) {
            double grad[PARAMS][MOST], loss;
            make_batch(&b, k);
            loss = batch_gradients(r.p, &b, grad);
            double length = update(&r, grad);
            run(t, &w, &b, &s);
            expect_near(t, s.loss, loss, 2e-4 * loss);
            expect_near(t, s.grad_norm, length, 2e-4 * length);
            expect_near(t, factor_now(t, &w), k < 2 ? 256 : k < 5 ? 512 : 1024, 0);
        }
        compare_params(t, &w, &r, 2e-4);
    }
    close_world(&w);
}

/* Gradients times the factor overflow, until it has been halved often enough. */
TEST_DEVICES(train, a_factor_that_is_too_large_halves)
{
    rlx_train_desc desc = plain;
    struct train_world w;
    static struct reference r;
    struct batch b;
    struct shown s;
    int32_t step = 0;
    double factor = 0x1p70;

    desc.loss_scale = 0x1p70f;
    start(&r, &desc);
    make_batch(&b, 0);
    if (open_trained(t, &w, &desc)) {
        for (int k = 0; k < 20 && step == 0; k++) {
            run(t, &w, &b, &s);
            expect(t, isfinite(s.loss));
            get_state(t, &w, "train.step", RLX_DTYPE_i32, &step, sizeof step);
            if (step == 0) {
                factor /= 2;
                compare_params(t, &w, &r, 1e-7);
                expect(t, !isfinite(s.grad_norm));
            }
            expect_near(t, factor_now(t, &w), factor, 0);
        }
        expect(t, step == 1 && factor < 0x1p66 && factor > 0x1p58);
        follow(&r, &b);
        compare_params(t, &w, &r, 2e-4);
        expect_bad(t, &w, 0, 0);
        b.t[3] = NAN; /* that no factor helps against */
        run(t, &w, &b, &s);
        expect_bad(t, &w, 1, 1);
        expect_near(t, factor_now(t, &w), factor, 0);
    }
    close_world(&w);
}
