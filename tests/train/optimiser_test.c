/* optimiser_test.c: every optimiser and every schedule against the formulas, in double precision,
 * over 20 updates, with decay, clipping and accumulation. */
#include "reference.h"

enum { UPDATES = 20 };

/* ---- beside the device ---- */

static bool same_runs(struct test *t, struct train_world *w, struct reference *r, int runs)
{
    double sum[PARAMS][MOST] = {0}, grad[PARAMS][MOST];

    for (int i = 0; i < runs; i++) {
        struct batch b;
        struct shown s;
        make_batch(&b, r->updates * runs + i);
        double loss = batch_gradients(r->p, &b, grad);
        for (int p = 0; p < PARAMS; p++)
            for (size_t k = 0; k < param_size(p); k++)
                sum[p][k] += grad[p][k] / runs;
        if (!expect_ok(t, run_batch(w, &b, ROWS, &s)))
            return fail(t, "%s", w->err.message);
        if (!expect_near(t, s.loss, loss, 2e-4 * loss) ||
            !expect_near(t, s.rate, rate_of(&r->d, base_rate(&r->d), r->updates),
                         2e-6 * base_rate(&r->d)))
            return false;
        if (i == runs - 1) {
            double norm = update(r, sum);
            return expect_near(t, s.grad_norm, norm, 2e-4 * norm);
        }
    }
    return true;
}

static void check(struct test *t, const char *what, rlx_train_desc desc)
{
    struct train_world w;
    static struct reference r;
    int32_t step = 0, bad[2] = {-1, -1};

    desc.size = sizeof desc;
    test_note(t, "%s", what);
    if (open_trained(t, &w, &desc)) {
        start(&r, &desc);
        for (int k = 0; k < UPDATES; k++) {
            test_note(t, "%s, update %d", what, k);
            if (!same_runs(t, &w, &r, desc.accumulate ? desc.accumulate : 1))
                break;
        }
        compare_params(t, &w, &r, 2e-4);
        if (get_state(t, &w, "train.step", RLX_DTYPE_i32, &step, sizeof step))
            expect_eq(t, step, UPDATES);
        if (get_state(t, &w, "train.bad", RLX_DTYPE_i32, bad, sizeof bad))
            expect(t, bad[0] == 0);
    }
    close_world(&w);
    test_note(t, "%s", "");
}

#define CHECK(t, ...) check(t, #__VA_ARGS__, (rlx_train_desc){__VA_ARGS__})

TEST_DEVICES(train_optimiser, adamw)
{
    CHECK(t, .rate = 0);
    CHECK(t, .rate = 3e-2f, .decay = 0.1f, .clip_norm = 0.3f);
    CHECK(t, .rate = 3e-2f, .decay = 0.1f, .decay_vectors = true, .beta1 = 0.8f, .beta2 = 0.9f,
          .eps = 1e-3f);
}

TEST_DEVICES(train_optimiser, adam)
{
    CHECK(t, .optimiser = RLX_OPTIMISER_ADAM, .rate = 1e-2f);
    CHECK(t, .optimiser = RLX_OPTIMISER_ADAM, .rate = 1e-2f, .decay = 0.2f, .clip_norm = 0.5f);
}

TEST_DEVICES(train_optimiser, sgd)
{
    CHECK(t, .optimiser = RLX_OPTIMISER_SGD, .decay = 0.1f, .decay_vectors = true);
    CHECK(t, .optimiser = RLX_OPTIMISER_SGD, .rate = 5e-2f, .momentum = 0.9f, .decay = 0.1f);
    CHECK(t, .optimiser = RLX_OPTIMISER_SGD, .rate = 5e-2f, .momentum = 0.9f, .nesterov = true,
          .decay = 0.1f, .clip_norm = 0.2f);
}

TEST_DEVICES(train_optimiser, lion)
{
    CHECK(t, .optimiser = RLX_OPTIMISER_LION, .rate = 1e-3f);
    CHECK(t, .optimiser = RLX_OPTIMISER_LION, .rate = 1e-3f, .decay = 0.5f, .clip_norm = 0.1f,
          .beta1 = 0.5f, .beta2 = 0.9f);
}

TEST_DEVICES(train_optimiser, muon)
{
    static const char *const plain[] = {"u*"};

    CHECK(t, .optimiser = RLX_OPTIMISER_MUON);
    CHECK(t, .optimiser = RLX_OPTIMISER_MUON, .decay = 0.1f, .plain = plain, .plain_count = 1,
          .plain_rate = 5e-3f, .momentum = 0.8f);
}

TEST_DEVICES(train_optimiser, several_runs_to_an_update)
{
    CHECK(t, .accumulate = 3, .rate = 1e-2f, .clip_norm = 0.3f);
    CHECK(t, .optimiser = RLX_OPTIMISER_SGD, .accumulate = 2, .momentum = 0.9f);
}

TEST_DEVICES(train_schedule, follows_its_formula)
{
    CHECK(t, .warmup_steps = 4);
    CHECK(t, .schedule = RLX_SCHEDULE_LINEAR, .total_steps = 15);
    CHECK(t, .schedule = RLX_SCHEDULE_LINEAR, .warmup_steps = 3, .total_steps = 20,
          .final_ratio = 0.1f);
    CHECK(t, .schedule = RLX_SCHEDULE_COSINE, .warmup_steps = 5, .total_steps = 15,
          .final_ratio = 0.2f, .rate = 1e-2f);
    CHECK(t, .schedule = RLX_SCHEDULE_COSINE, .total_steps = 18, .accumulate = 2);
    CHECK(t, .schedule = RLX_SCHEDULE_ONE_CYCLE, .warmup_steps = 6, .total_steps = 20,
          .final_ratio = 1e-3f, .rate = 2e-2f);
    CHECK(t, .schedule = RLX_SCHEDULE_ONE_CYCLE, .warmup_steps = 4, .total_steps = 12,
          .start_ratio = 0.5f);
}
