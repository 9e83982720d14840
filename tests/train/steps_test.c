/* steps_test.c: what a step of training runs: each state's new content is one step, which writes
 * the state itself; nothing is copied, and nothing lies in the arena twice. */
#include "train_world.h"

struct steps {
    int copies, updates, regions;
};

/* A step that computes a state's new content has its label, NAME.new. */
static void note_step(void *user, const rlx_profile_event *e)
{
    struct steps *s = user;

    s->copies += strcmp(e->step, "cache_append") == 0 || strcmp(e->step, "cast") == 0;
    if (e->label.len < 4 || memcmp(e->label.ptr + e->label.len - 4, ".new", 4) != 0)
        return;
    if (memcmp(e->label.ptr, "train.", 6) == 0 && memcmp(e->label.ptr, "train.grad", 10) != 0)
        return; /* a counter */
    s->updates++;
    s->regions += strcmp(e->step, "elementwise_region") == 0;
}

static void check(struct test *t, int states, rlx_train_desc desc)
{
    struct train_world w;
    struct steps s = {0};
    struct batch b;
    struct shown shown;

    desc.size = sizeof desc;
    test_note(t, "optimiser %d", (int)desc.optimiser);
    make_batch(&b, 0);
    if (open_trained(t, &w, &desc)) {
        rlx_session_set_profile(w.session, note_step, &s);
        if (!expect_ok(t, run_batch(&w, &b, ROWS, &shown)))
            fail(t, "%s", w.err.message);
        expect_eq(t, s.updates, states);
        expect_eq(t, s.regions, states);
        expect_eq(t, s.copies, 0);
    }
    close_world(&w);
    test_note(t, "%s", "");
}

/* As many as there are states of params. */
TEST_DEVICES(train_steps, one_for_each_state)
{
    check(t, 3 * PARAMS, (rlx_train_desc){.decay = 0.1f, .clip_norm = 1});
    check(t, 3 * PARAMS, (rlx_train_desc){.optimiser = RLX_OPTIMISER_ADAM, .decay = 0.1f});
    check(t, PARAMS, (rlx_train_desc){.optimiser = RLX_OPTIMISER_SGD, .decay = 0.1f});
    check(t, 2 * PARAMS,
          (rlx_train_desc){.optimiser = RLX_OPTIMISER_SGD, .momentum = 0.9f, .nesterov = true});
    check(t, 2 * PARAMS, (rlx_train_desc){.optimiser = RLX_OPTIMISER_LION, .decay = 0.1f});
    check(
        t, 3 * PARAMS,
        (rlx_train_desc){
            .optimiser = RLX_OPTIMISER_SGD, .momentum = 0.9f, .accumulate = 4, .loss_scale = 1024});
    check(t, 2 * 2 + 3, (rlx_train_desc){.optimiser = RLX_OPTIMISER_MUON});
}
