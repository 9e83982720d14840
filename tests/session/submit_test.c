/* submit_test.c: runs that are submitted, and what happens while they are not done.
 *
 * On the CPU a custom op stands in the way of a run until the test lets it through, so that what
 * is in flight stays there for as long as a test wants. Called on the test's own thread it cannot
 * be let through, so there it only takes note. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/cpu/cpu.h"
#include "required.h"
#include "session/session.h"

/* ---- the gate ---- */

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    pthread_t owner;        /* the test's thread */
    bool open;              /* else all wait in it */
    int inside, passed;     /* runs that came to it, and that left it */
    int on_owner;           /* that came on the test's own thread */
    int fails;              /* how many runs fail from the next on */
    rlx_session *first_run; /* before it looks at its input; may be NULL */
};

static rlx_status gate_infer(void *user, const rlx_tensor *in, int32_t count, const void *attrs,
                             size_t size, rlx_tensor *out, char *message)
{
    (void)user, (void)count, (void)attrs, (void)size, (void)message;
    *out = in[0];
    return RLX_OK;
}

/* A run within the run, in both forms. */
static rlx_status run_within(rlx_session *s)
{
    uint64_t ticket;

    TRY(rlx_session_run(s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc)}, NULL));
    TRY(rlx_session_submit(s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc)}, &ticket, NULL));
    return rlx_session_wait(s, ticket, NULL, NULL);
}

/* One more than its input, looked at once the gate is open. */
static rlx_status gate_cpu(void *user, const rlx_tensor *in, int32_t count, const void *attrs,
                           size_t size, rlx_tensor *out)
{
    struct gate *g = user;
    rlx_status status = RLX_OK;

    (void)count, (void)attrs, (void)size;
    pthread_mutex_lock(&g->lock);
    bool here = pthread_equal(pthread_self(), g->owner);
    g->inside++;
    g->on_owner += here;
    pthread_cond_broadcast(&g->moved);
    while (!g->open && !here)
        pthread_cond_wait(&g->moved, &g->lock);
    if (g->fails) {
        g->fails--;
        status = RLX_ERROR_EXTENT;
    }
    pthread_mutex_unlock(&g->lock);
    if (g->first_run && run_within(g->first_run) != RLX_OK)
        status = RLX_ERROR_STATE;
    for (size_t i = 0; i < out->bytes / sizeof(float); i++)
        ((float *)out->data)[i] = ((const float *)in[0].data)[i] + 1;
    pthread_mutex_lock(&g->lock);
    g->passed++;
    pthread_mutex_unlock(&g->lock);
    return status;
}

static void gate_set(struct gate *g, bool open)
{
    pthread_mutex_lock(&g->lock);
    g->open = open;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
}

/* Until so many runs came to it in all. */
static void gate_await(struct gate *g, int inside)
{
    pthread_mutex_lock(&g->lock);
    while (g->inside < inside)
        pthread_cond_wait(&g->moved, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

/* One of its numbers. */
static int gate_count(struct gate *g, const int *number)
{
    pthread_mutex_lock(&g->lock);
    int count = *number;
    pthread_mutex_unlock(&g->lock);
    return count;
}

/* Opens it as soon as somebody stands before it. */
static void *open_when_reached(void *user)
{
    gate_await(user, 1);
    gate_set(user, true);
    return NULL;
}

/* A little later, so that who should wait for it has had the time not to. */
static void *open_later(void *user)
{
    gate_await(user, 1);
    usleep(3000);
    gate_set(user, true);
    return NULL;
}

struct world {
    struct place p;
    struct gate gate;
    rlx_custom_op op;
    atomic_bool all_in; /* nothing more will be submitted */
    bool was_full;
};

#define GATED "graph (input %x: f32[2]) { %a = neg %x %g = custom %a name=\"gate\" return %g }"
#define COUNTER "graph (input %h: f32[2]) { %g = custom %h name=\"gate\" return %g }"

static bool open_world(struct test *t, struct world *w, const char *graph,
                       const rlx_session_desc *desc)
{
    *w = (struct world){
        .gate = {.owner = pthread_self()},
        .op = {RLX_SIZED(rlx_custom_op), .name = "gate", .inputs = 1, .infer = gate_infer,
               .cpu = gate_cpu},
    };
    w->op.user = &w->gate;
    pthread_mutex_init(&w->gate.lock, NULL);
    pthread_cond_init(&w->gate.moved, NULL);
    const rlx_context_desc with = {RLX_SIZED(rlx_context_desc), .custom_ops = &w->op,
                                   .custom_op_count = 1, .threads = 2};
    return place_open(t, &w->p, "cpu", &with) && expect_ok(t, place_build(&w->p, graph, desc));
}

static void close_world(struct world *w)
{
    gate_set(&w->gate, true);
    place_close(&w->p);
    pthread_cond_destroy(&w->gate.moved);
    pthread_mutex_destroy(&w->gate.lock);
}

static int on_owner(struct world *w)
{
    return gate_count(&w->gate, &w->gate.on_owner);
}

static rlx_tensor pair(float *x)
{
    return (rlx_tensor){RLX_DTYPE_f32, 1, {2}, x, 2 * sizeof *x};
}

static bool submit(struct test *t, rlx_session *s, float *x, uint64_t *ticket)
{
    rlx_binding in = {"x", pair(x)};
    rlx_error err;

    return expect_ok(t, rlx_session_submit(s,
                                           &(rlx_run_desc){RLX_SIZED(rlx_run_desc), .inputs = &in,
                                                           .input_count = !!x},
                                           ticket, &err)) ||
           fail(t, "%s", err.message);
}

/* The first element of its output. */
static float wait_for(struct test *t, rlx_session *s, uint64_t ticket)
{
    float y[2] = {-99, -99};
    rlx_binding out = {"out0", pair(y)};
    rlx_error err;

    if (!expect_ok(t, rlx_session_wait(s, ticket,
                                       &(rlx_run_desc){RLX_SIZED(rlx_run_desc), .outputs = &out,
                                                       .output_count = 1},
                                       &err)))
        fail(t, "%s", err.message);
    return y[0];
}

static bool is_done(struct test *t, rlx_session *s, uint64_t ticket)
{
    bool done = false;

    expect_ok(t, rlx_session_poll(s, ticket, &done, NULL));
    return done;
}

/* ---- before it is done ---- */

TEST(submit, returns_before_the_work_is_done)
{
    struct world w;
    float x[2] = {3, 4};
    uint64_t ticket;

    if (open_world(t, &w, GATED, NULL) && submit(t, w.p.session, x, &ticket)) {
        x[0] = 100; /* it was copied */
        expect(t, !is_done(t, w.p.session, ticket));
        if (expect_eq(t, on_owner(&w), 0))
            gate_await(&w.gate, 1);
        expect(t, !is_done(t, w.p.session, ticket));
        gate_set(&w.gate, true);
        expect_near(t, wait_for(t, w.p.session, ticket), -2, 0);
    }
    close_world(&w);
}

/* Each waits for the one before it through a handle, and all are in flight at once. */
TEST(submit, runs_are_done_in_order)
{
    struct world w;
    float h[2] = {0, 0};
    rlx_tensor start = pair(h);
    rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE};
    uint64_t ticket[3];

    if (!open_world(t, &w, COUNTER,
                    &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .in_flight = 3}))
        return close_world(&w);
    expect_ok(t, rlx_session_bind_handle(w.p.session, "h", &start, &w.p.err));
    expect_ok(t, rlx_session_set_feed(w.p.session, "h", &feed, &w.p.err));
    for (int i = 0; i < 3; i++)
        submit(t, w.p.session, NULL, &ticket[i]);
    for (int i = 0; i < 3; i++)
        expect(t, !is_done(t, w.p.session, ticket[i]));
    gate_set(&w.gate, true);
    expect_near(t, wait_for(t, w.p.session, ticket[2]), 3, 0);
    expect_near(t, wait_for(t, w.p.session, ticket[0]), 1, 0);
    expect_near(t, wait_for(t, w.p.session, ticket[1]), 2, 0);
    rlx_tensor end = pair(h);
    expect_ok(t, rlx_session_read_handle(w.p.session, "h", &end, &w.p.err));
    expect_near(t, h[1], 3, 0);
    close_world(&w);
}

/* The next run's input goes where a run that is in flight reads. sizes: theirs differ. */
static void overwrite(struct test *t, const char *graph, bool sizes)
{
    struct world w;
    pthread_t opener;

    if (!open_world(t, &w, graph, NULL))
        return close_world(&w);
    for (int round = 0; round < 20; round++) {
        float x[2][4], y[4];
        uint64_t ticket[2];
        gate_set(&w.gate, false);
        w.gate.inside = 0;
        if (!expect(t, pthread_create(&opener, NULL, open_when_reached, &w.gate) == 0))
            break;
        for (int i = 0; i < 2; i++) {
            int64_t n = sizes && (round + i) % 2 ? 1 : 4;
            for (int k = 0; k < 4; k++)
                x[i][k] = (float)(100 * round + 10 * i + k);
            rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {n}, x[i], (size_t)n * sizeof(float)}};
            expect_ok(t, rlx_session_submit(
                             w.p.session,
                             &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0},
                             &ticket[i], &w.p.err));
            memset(x[i], 0, sizeof x[i]);
        }
        for (int i = 0; i < 2; i++) {
            rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
            rlx_run_desc take = {RLX_SIZED(rlx_run_desc), .outputs = &out, .output_count = 1};
            expect_ok(t, rlx_session_wait(w.p.session, ticket[i], &take, &w.p.err));
            int last = (int)out.tensor.dim[0] - 1;
            expect_eq(t, last, sizes && (round + i) % 2 ? 0 : 3);
            expect_near(t, y[last], 100 * round + 10 * i + last - 1, 0);
        }
        pthread_join(opener, NULL);
    }
    expect_eq(t, on_owner(&w), 0);
    close_world(&w);
}

#define AROUND                                                            \
    "graph (input %x: f32[n]) { %a = neg %x %g = custom %a name=\"gate\"" \
    " %b = neg %g return %b }"

TEST(submit, inputs_in_flight_are_not_overwritten)
{
    overwrite(t, "dim n " AROUND, false);
}

/* A program for all sizes is changed for each of them, though not while it is in flight. */
TEST(submit, a_run_in_flight_keeps_its_sizes)
{
    struct world w;
    struct place b = {0};
    float x[4] = {1, 2, 3, 4}, y[4];
    uint64_t gated, ticket[2];
    pthread_t opener;

    overwrite(t, "dim n " AROUND, true);
    if (!open_world(t, &w, GATED, NULL))
        return close_world(&w);
    b.ctx = w.p.ctx, b.dev = w.p.dev;
    if (submit(t, w.p.session, x, &gated) &&
        expect_ok(t, place_build(&b,
                                 "dim n <= 4 graph (input %x: f32[n]) {"
                                 " %a = exp %x %b = reverse %a axes=[0] %c = log %b return %c }",
                                 NULL)) &&
        expect(t, pthread_create(&opener, NULL, open_later, &w.gate) == 0)) {
        for (int i = 0; i < 2; i++) {
            rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {4 - 3 * i}, x, 16 - 12 * (size_t)i}};
            expect_ok(t, rlx_session_submit(
                             b.session,
                             &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0},
                             &ticket[i], &b.err));
        }
        for (int i = 0; i < 2; i++) {
            rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
            rlx_run_desc take = {RLX_SIZED(rlx_run_desc), .outputs = &out, .output_count = 1};
            expect_ok(t, rlx_session_wait(b.session, ticket[i], &take, &b.err));
            expect_eq(t, out.tensor.dim[0], 4 - 3 * i);
            expect_near(t, y[0], 4 - 3 * i, 1e-5);
        }
        pthread_join(opener, NULL);
        expect_near(t, wait_for(t, w.p.session, gated), 0, 0);
    }
    place_drop(&b);
    close_world(&w);
}

/* In one call, after one in two: the second reads what the first feeds. */
TEST(submit, a_run_waits_for_those_of_its_session)
{
    struct world w;
    float h[2] = {0, 0}, y[2];
    rlx_tensor start = pair(h);
    rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE};
    rlx_binding out = {"out0", pair(y)};
    uint64_t ticket;
    pthread_t opener;

    if (!open_world(t, &w, COUNTER, NULL))
        return close_world(&w);
    expect_ok(t, rlx_session_bind_handle(w.p.session, "h", &start, &w.p.err));
    expect_ok(t, rlx_session_set_feed(w.p.session, "h", &feed, &w.p.err));
    if (submit(t, w.p.session, NULL, &ticket) && expect_eq(t, on_owner(&w), 0) &&
        expect(t, pthread_create(&opener, NULL, open_later, &w.gate) == 0)) {
        expect_ok(t, rlx_session_run(w.p.session,
                                     &(rlx_run_desc){RLX_SIZED(rlx_run_desc), .outputs = &out,
                                                     .output_count = 1},
                                     &w.p.err));
        expect_near(t, y[0], 2, 0);
        expect_near(t, wait_for(t, w.p.session, ticket), 1, 0);
        pthread_join(opener, NULL);
    }
    close_world(&w);
}

#define WEIGHED                                    \
    "graph (input %x: f32[2], param %w: f32[2]) {" \
    " %a = mul %x, %w %g = custom %a name=\"gate\" %b = add %g, %w return %b }"

/* Not even one of the same weights waits for it. */
TEST(submit, another_session_runs_meanwhile)
{
    struct world w;
    float x[2] = {3, 4}, weight[2] = {2, 2}, y[2];
    rlx_tensor value = pair(weight);
    rlx_session *other = NULL;
    uint64_t first, second;

    if (!open_world(t, &w, WEIGHED, NULL))
        return close_world(&w);
    expect_ok(t, rlx_session_set_param(w.p.session, "w", &value, &w.p.err));
    if (expect_ok(t, rlx_session_clone(w.p.session, 0, &other, &w.p.err)) &&
        submit(t, w.p.session, x, &first) && expect_eq(t, on_owner(&w), 0)) {
        rlx_binding in = {"x", pair(x)}, out = {"out0", pair(y)};
        gate_await(&w.gate, 1);
        expect_ok(t, rlx_session_run(
                         other, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0},
                         &w.p.err));
        expect_near(t, y[1], 11, 0);
        expect_eq(t, on_owner(&w), 1); /* a run is on the caller's thread */
        x[0] = 10;
        submit(t, other, x, &second);
        expect(t, !is_done(t, w.p.session, first));
        expect(t, !is_done(t, other, second));
        expect_status(t, rlx_session_set_param(other, "w", &value, NULL), RLX_ERROR_STATE);
        gate_set(&w.gate, true);
        expect_near(t, wait_for(t, other, second), 23, 0);
        expect_near(t, wait_for(t, w.p.session, first), 9, 0);
    }
    rlx_session_destroy(other);
    close_world(&w);
}

/* The queue is full before the first run is done; whoever submits then waits. */
static void *open_when_full(void *user)
{
    struct world *w = user;
    struct cpu_queue *q = &cpu_device_of(w->p.dev->backend)->queue;

    while (!w->was_full && !atomic_load(&w->all_in)) {
        w->was_full = atomic_load(&q->last) - atomic_load(&q->done) == CPU_JOBS;
        sched_yield();
    }
    gate_set(&w->gate, true);
    return NULL;
}

TEST(submit, more_runs_than_the_queue_holds)
{
    enum { RUNS = 64 }; /* as many as a session takes; with feeds and outputs three jobs each */
    struct world w;
    float h[2] = {0, 0};
    rlx_tensor start = pair(h);
    rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE};
    uint64_t ticket[RUNS];
    pthread_t opener;

    if (!open_world(t, &w, COUNTER,
                    &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .in_flight = RUNS}))
        return close_world(&w);
    expect_ok(t, rlx_session_bind_handle(w.p.session, "h", &start, &w.p.err));
    expect_ok(t, rlx_session_set_feed(w.p.session, "h", &feed, &w.p.err));
    if (!expect(t, 3 * RUNS > CPU_JOBS) ||
        !expect(t, pthread_create(&opener, NULL, open_when_full, &w) == 0))
        return close_world(&w);
    for (int i = 0; i < RUNS; i++)
        submit(t, w.p.session, NULL, &ticket[i]);
    atomic_store(&w.all_in, true);
    pthread_join(opener, NULL);
    expect(t, w.was_full);
    for (int i = 0; i < RUNS; i++)
        expect_near(t, wait_for(t, w.p.session, ticket[i]), i + 1, 0);
    expect_eq(t, on_owner(&w), 0);
    close_world(&w);
}

/* ---- what goes wrong ---- */

TEST(submit, failures_are_told_by_wait)
{
    struct world w;
    float x[2] = {3, 4}, y[2] = {7, 7};
    rlx_binding in = {"x", pair(x)}, out = {"out0", pair(y)};
    rlx_run_desc take = {RLX_SIZED(rlx_run_desc), .outputs = &out, .output_count = 1},
                 run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
    uint64_t ticket;

    if (!open_world(t, &w, GATED, NULL))
        return close_world(&w);
    gate_set(&w.gate, true);
    for (int i = 0; i < 3; i++) {
        w.gate.fails = 1;
        submit(t, w.p.session, x, &ticket);
        expect_status(t, rlx_session_wait(w.p.session, ticket, &take, &w.p.err), RLX_ERROR_EXTENT);
        expect_error(t, RLX_ERROR_EXTENT, "custom op \"gate\"", &w.p.err);
        expect_str(t, w.p.err.stage, "run");
        expect_near(t, y[0], 7, 0);
        expect_status(t, rlx_session_wait(w.p.session, ticket, &take, &w.p.err), RLX_ERROR_STATE);
        w.gate.fails = 1;
        expect_status(t, rlx_session_run(w.p.session, &run, &w.p.err), RLX_ERROR_EXTENT);
        submit(t, w.p.session, x, &ticket);
        expect_near(t, wait_for(t, w.p.session, ticket), -2, 0);
    }
    close_world(&w);
}

/* The other runs in flight are none of its business. */
TEST_DEVICES(submit, a_bad_index_fails_its_own_run)
{
    struct place p;
    float table[4] = {10, 11, 12, 13}, y[2];
    uint64_t ticket[3];

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    if (!expect_ok(t, place_build(&p,
                                  "graph (input %t: f32[4], input %i: i32[2]) {"
                                  " %y = gather %t, %i axis=0 return %y }",
                                  &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .in_flight = 3,
                                                      .check_indices = true})))
        return place_close(&p);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) {
            int32_t index[2] = {i, i == 1 ? 77 : 3};
            rlx_binding in[] = {{"t", {RLX_DTYPE_f32, 1, {4}, table, sizeof table}},
                                {"i", {RLX_DTYPE_i32, 1, {2}, index, sizeof index}}};
            expect_ok(t, rlx_session_submit(
                             p.session,
                             &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, NULL, 0, NULL, 0},
                             &ticket[i], &p.err));
        }
        rlx_binding out = {"out0", pair(y)};
        rlx_run_desc take = {RLX_SIZED(rlx_run_desc), .outputs = &out, .output_count = 1};
        expect_status(t, rlx_session_wait(p.session, ticket[1], &take, &p.err), RLX_ERROR_INDEX);
        expect_contains(t, p.err.message, "index 77 at position 1");
        for (int i = 0; i < 3; i += 2) {
            expect_ok(t, rlx_session_wait(p.session, ticket[i], &take, &p.err));
            expect_near(t, y[0], 10 + i, 0);
        }
    }
    place_close(&p);
}

/* ---- ends ---- */

TEST(submit, destroying_a_session_waits_for_its_runs)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    struct world w;
    float x[2] = {3, 4};
    uint64_t ticket;
    pthread_t opener;

    if (!open_world(t, &w, GATED, NULL))
        return close_world(&w);
    place_close(&w.p);
    const rlx_context_desc with = {RLX_SIZED(rlx_context_desc), .custom_ops = &w.op,
                                   .custom_op_count = 1, .threads = 2, .allocator = &mem};
    if (place_open(t, &w.p, "cpu", &with) && expect_ok(t, place_build(&w.p, GATED, NULL)) &&
        submit(t, w.p.session, x, &ticket) && expect_eq(t, on_owner(&w), 0) &&
        expect(t, pthread_create(&opener, NULL, open_when_reached, &w.gate) == 0)) {
        place_drop(&w.p);
        expect_eq(t, gate_count(&w.gate, &w.gate.passed), 1);
        pthread_join(opener, NULL);
    }
    close_world(&w);
    expect_no_leak(t, &count);
}

/* Not even a run that never ends keeps the process from ending. */
TEST(submit, a_process_ends_with_runs_in_flight)
{
    struct world w;
    float x[2] = {3, 4};
    uint64_t ticket;
    int status = -1;

#ifdef __SANITIZE_THREAD__
    skip(t, "the sanitizer starts no threads after a fork");
#endif
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        if (!open_world(t, &w, GATED, NULL) || !submit(t, w.p.session, x, &ticket) || on_owner(&w))
            _exit(1);
        gate_await(&w.gate, 1);
        exit(0);
    }
    require(t, child > 0 && waitpid(child, &status, 0) == child);
    expect(t, WIFEXITED(status));
    expect_eq(t, WEXITSTATUS(status), 0);
}

/* In the forked process: what was in flight is lost, and new runs are as good as before. */
static bool goes_on(struct test *t, struct world *w, uint64_t lost)
{
    float x[2] = {8, 9};
    uint64_t ticket;

    gate_set(&w->gate, true);
    expect_status(t, rlx_session_wait(w->p.session, lost, NULL, &w->p.err), RLX_ERROR_STATE);
    return expect_contains(t, w->p.err.message, "forked") && submit(t, w->p.session, x, &ticket) &&
           expect_near(t, wait_for(t, w->p.session, ticket), -7, 0);
}

TEST(submit, a_forked_process_has_a_thread_of_its_own)
{
    struct world w;
    float x[2] = {3, 4};
    uint64_t ticket;
    int status = -1;

#ifdef __SANITIZE_THREAD__
    skip(t, "the sanitizer starts no threads after a fork");
#endif
    if (!open_world(t, &w, GATED, NULL) || !submit(t, w.p.session, x, &ticket) ||
        !expect_eq(t, on_owner(&w), 0))
        return close_world(&w);
    gate_await(&w.gate, 1);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(!goes_on(t, &w, ticket));
    }
    gate_set(&w.gate, true);
    expect(t, child > 0 && waitpid(child, &status, 0) == child);
    expect(t, WIFEXITED(status));
    expect_eq(t, WEXITSTATUS(status), 0);
    expect_near(t, wait_for(t, w.p.session, ticket), -2, 0);
    close_world(&w);
}

/* ---- callbacks and threads ---- */

/* A custom op that runs a session of the same device on the thread that does the runs. */
TEST(submit, a_custom_op_may_run_a_session)
{
    struct world w;
    float x[2] = {3, 4}, h[2] = {0, 0};
    rlx_tensor start = pair(h);
    rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE, .output = 0};
    struct place inner = {0};
    uint64_t ticket[2];

    if (!open_world(t, &w, GATED, NULL))
        return close_world(&w);
    inner.ctx = w.p.ctx, inner.dev = w.p.dev;
    if (expect_ok(t, place_build(&inner,
                                 "graph (input %h: f32[2]) { %a = exp %h %b = sub %a, %a"
                                 " %c = add %b, %h %d = sub %c, %a return %h, %d }",
                                 NULL)) &&
        expect_ok(t, rlx_session_bind_handle(inner.session, "h", &start, &w.p.err)) &&
        expect_ok(t, rlx_session_set_feed(inner.session, "h", &feed, &w.p.err))) {
        w.gate.first_run = inner.session;
        gate_set(&w.gate, true);
        for (int i = 0; i < 2; i++)
            submit(t, w.p.session, x, &ticket[i]);
        for (int i = 0; i < 2; i++)
            expect_near(t, wait_for(t, w.p.session, ticket[i]), -2, 0);
        expect_eq(t, gate_count(&w.gate, &w.gate.passed), 2);
    }
    place_drop(&inner);
    close_world(&w);
}

struct heard {
    pthread_t owner;
    int steps, elsewhere;
};

static void hear(void *user, const rlx_profile_event *e)
{
    struct heard *h = user;

    h->steps += e->step != NULL;
    h->elsewhere += !pthread_equal(pthread_self(), h->owner);
}

TEST_DEVICES(submit, profiles_are_told_on_the_thread_that_submits)
{
    struct place p;
    struct heard h = {.owner = pthread_self()};
    float x[2] = {3, 4};
    uint64_t ticket;

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    if (expect_ok(
            t, place_build(&p, "graph (input %x: f32[2]) { %y = softmax %x return %y }", NULL))) {
        rlx_session_set_profile(p.session, hear, &h);
        submit(t, p.session, x, &ticket);
        expect(t, h.steps > 0);
        expect_ok(t, rlx_session_wait(p.session, ticket, NULL, &p.err));
        expect_eq(t, h.elsewhere, 0);
    }
    place_close(&p);
}

struct submitter {
    struct test *t;
    rlx_session *session;
    bool runs; /* every other time in one call */
    pthread_t thread;
};

/* Two at a time; w is all ones. */
static void *submit_many(void *user)
{
    const struct submitter *s = user;

    for (int round = 0; round < 40; round++) {
        float x[2][32], y[32];
        uint64_t ticket[2];
        rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
        for (int i = 0; i < 2; i++) {
            for (int k = 0; k < 32; k++)
                x[i][k] = (float)(round + i);
            rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {2, 16}, x[i], sizeof x[i]}};
            rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0};
            expect_ok(s->t, rlx_session_submit(s->session, &run, &ticket[i], NULL));
        }
        for (int i = 0; i < 2; i++) {
            rlx_run_desc take = {RLX_SIZED(rlx_run_desc), .outputs = &out, .output_count = 1};
            expect_ok(s->t, rlx_session_wait(s->session, ticket[i], &take, NULL));
            expect_near(s->t, y[31], -16 * (round + i), 0);
        }
        if (!s->runs)
            continue;
        rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {2, 16}, x[1], sizeof x[1]}};
        expect_ok(s->t,
                  rlx_session_run(
                      s->session,
                      &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0}, NULL));
        expect_near(s->t, y[0], -16 * (round + 1), 0);
    }
    return NULL;
}

TEST_DEVICES(submit, threads_submit_to_one_device)
{
    enum { THREADS = 3 };
    struct submitter s[THREADS] = {{0}};
    struct place p;
    float w[256];
    rlx_tensor value = {RLX_DTYPE_f32, 2, {16, 16}, w, sizeof w};

    if (!place_open(t, &p, test_device(t),
                    &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .threads = 2}))
        return;
    for (int i = 0; i < 256; i++)
        w[i] = 1;
    if (!expect_ok(t, place_build(&p,
                                  "graph (input %x: f32[2,16], param %w: f32[16,16]) {"
                                  " %m = matmul %x, %w %y = neg %m return %y }",
                                  NULL)) ||
        !expect_ok(t, rlx_session_set_param(p.session, "w", &value, &p.err)))
        return place_close(&p);
    for (int i = 0; i < THREADS; i++) {
        s[i] = (struct submitter){.t = t, .session = p.session, .runs = i == 1};
        if (i)
            require_ok(t, rlx_session_clone(p.session, 0, &s[i].session, &p.err));
    }
    for (int i = 0; i < THREADS; i++)
        require(t, pthread_create(&s[i].thread, NULL, submit_many, &s[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(s[i].thread, NULL);
    for (int i = 1; i < THREADS; i++)
        rlx_session_destroy(s[i].session);
    place_close(&p);
}
