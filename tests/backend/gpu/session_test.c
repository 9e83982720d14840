/* session_test.c: sessions on a GPU: the CPU's results, runs in flight, nothing allocated
 * while they go on, profiles, and errors that leave everything to be freed. */
#include <math.h>
#include <pthread.h>

#include "session/sized.h"
#include "world.h"

static const char rows[] = "dim n <= 9 dim m <= 300 graph (input %x: f32[n,m])"
                           " { %y = softmax %x axis=1 %z = transpose %y perm=[1,0]"
                           " %u = softmax %z axis=1 return %y, %u }";

struct gpu_place {
    struct test_alloc count;
    rlx_allocator mem;
    struct place p;
};

/* false: there is no such device here, and the test is skipped. */
static bool open_gpu(struct test *t, struct gpu_place *g, const rlx_flag *flag, size_t count)
{
    rlx_flag flags[6] = {{"GPU_CACHE", "0"}};

    for (size_t i = 0; i < count; i++)
        flags[1 + i] = flag[i];
    *g = (struct gpu_place){0};
    g->mem = test_allocator(&g->count);
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &g->mem,
                                   .flags = flags, .flag_count = count + 1};
    if (!expect_ok(t, rlx_context_create(RLX_VERSION, &desc, &g->p.ctx, &g->p.err)))
        return false;
    rlx_status s = rlx_device_open(g->p.ctx, test_device(t), &g->p.dev, &g->p.err);
    if (s == RLX_OK)
        return true;
    place_close(&g->p);
    test_no_device(t, test_device(t), s, g->p.err.message);
    return false;
}

static void close_gpu(struct test *t, struct gpu_place *g)
{
    place_close(&g->p);
    expect_no_leak(t, &g->count);
}

static bool build(struct test *t, struct gpu_place *g, const char *graph)
{
    return expect_ok(t, place_build(&g->p, graph, NULL)) || fail(t, "%s", g->p.err.message);
}

/* ---- the same results ---- */

static void compare(struct test *t, const struct sized *a, const struct sized *b)
{
    if (!expect_status(t, a->status, RLX_OK) || !expect_status(t, b->status, RLX_OK))
        return;
    for (size_t k = 0; k < a->outputs; k++)
        expect_close(t, a->y[k], b->y[k], sized_count(&a->shape[k]), 1e-5, 1e-6);
}

/* Any sizes, in all ways to reach memory. What a size needs is made when it first comes: a kernel
 * for such rows. When it comes again nothing is allocated. */
static void check_sizes(struct test *t, const rlx_flag *flags, size_t count)
{
    enum { SIZES = 24 };
    static struct sized a, b;
    struct gpu_place g;
    struct place cpu;

    if (!open_gpu(t, &g, flags, count))
        return;
    bool both = build(t, &g, rows) && place_open(t, &cpu, "cpu", NULL) &&
                expect_ok(t, place_build(&cpu, rows, NULL));
    for (int64_t i = 0; both && i < 2 * SIZES; i++) {
        const rlx_dim_size dims[] = {{"n", i % SIZES * 5 % 10}, {"m", 1 + i % SIZES * 7 % 13}};
        a.calls = &g.count.calls;
        sized_run(&g.p, dims, 2, &a);
        sized_run(&cpu, dims, 2, &b);
        compare(t, &a, &b);
        expect(t, i < SIZES || a.asked == 0);
    }
    if (both)
        place_close(&cpu);
    close_gpu(t, &g);
}

TEST_GPUS(gpu_session, results_at_any_size)
{
    static const rlx_flag flags[][2] = {{{"GPU_MEMORY", "mapped"}},
                                        {{"GPU_MEMORY", "bar"}, {"GPU_FULLBARRIER", "1"}},
                                        {{"GPU_MEMORY", "staging"}, {"GPU_NOCACHE", "1"}},
                                        {{"GPU_MAX_GROUPS", "20"}}};
    static const size_t count[] = {1, 2, 2, 1};

    for (size_t i = 0; i < 4; i++) {
        test_note(t, "flags %zu", i);
        check_sizes(t, flags[i], count[i]);
    }
}

/* ---- in flight ---- */

TEST_GPUS(gpu_session, runs_in_flight)
{
    enum { RUNS = 6, COUNT = 64 };
    static float x[RUNS][COUNT], y[RUNS][COUNT], z[RUNS][COUNT];

    for (int staged = 0; staged < 2; staged++) {
        const rlx_flag flag = {"GPU_MEMORY", "staging"};
        struct gpu_place g;
        if (!open_gpu(t, &g, &flag, (size_t)staged))
            return;
        if (build(t, &g, "graph (input %x: f32[4,16]) { %y = softmax %x axis=1 return %y }")) {
            for (int k = 0; k < 2; k++) /* one by one, then two at a time */
                for (size_t i = 0; i < RUNS; i += 1 + (size_t)k) {
                    uint64_t ticket[2];
                    for (size_t n = 0; n <= (size_t)k; n++) {
                        sized_fill(x[i + n], COUNT, i + n, false);
                        rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {4, 16}, x[i + n], sizeof x[0]}};
                        expect_ok(t, rlx_session_submit(g.p.session,
                                                        &(rlx_run_desc){RLX_SIZED(rlx_run_desc),
                                                                        &in, 1, NULL, 0, NULL, 0},
                                                        &ticket[n], &g.p.err));
                        memset(x[i + n], 0x7f, sizeof x[0]); /* it was taken */
                    }
                    for (size_t n = 0; n <= (size_t)k; n++) {
                        rlx_binding out = {"out0",
                                           {.dtype = RLX_DTYPE_f32,
                                            .data = k ? z[i + n] : y[i + n],
                                            .bytes = sizeof y[0]}};
                        expect_ok(
                            t, rlx_session_wait(g.p.session, ticket[n],
                                                &(rlx_run_desc){RLX_SIZED(rlx_run_desc),
                                                                .outputs = &out, .output_count = 1},
                                                &g.p.err));
                    }
                }
            expect_bytes(t, z, y, sizeof y);
            expect(t, y[0][0] > 0 && y[0][0] < 1);
        }
        close_gpu(t, &g);
    }
}

/* ---- threads ---- */

enum { THREADS = 3, TURNS = 12 };

struct worker {
    struct test *t;
    struct place p; /* a session of its own on the device of all */
    struct sized first, now;
    size_t seed;
};

static void *work(void *user)
{
    struct worker *w = user;

    for (size_t i = 0; i < TURNS; i++) {
        const rlx_dim_size dims[] = {{"n", 1 + (int64_t)(i % 4 ? i % 8 : w->seed)},
                                     {"m", 10 + (int64_t)w->seed}};
        struct sized *r = i ? &w->now : &w->first;
        sized_run(&w->p, dims, 2, r);
        if (!expect_ok(w->t, r->status))
            break;
        if (i && i % 4 == 0)
            sized_same(w->t, &w->now, &w->first);
    }
    return NULL;
}

TEST_GPUS(gpu_session, threads_share_a_device)
{
    static struct worker worker[THREADS];
    pthread_t thread[THREADS];
    struct gpu_place g;

    if (!open_gpu(t, &g, NULL, 0))
        return;
    for (size_t i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){.t = t, .seed = i};
        worker[i].p.ctx = g.p.ctx;
        worker[i].p.dev = g.p.dev;
        expect_ok(t, place_build(&worker[i].p, rows, NULL));
    }
    for (size_t i = 0; i < THREADS; i++)
        expect_eq(t, pthread_create(&thread[i], NULL, work, &worker[i]), 0);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        place_drop(&worker[i].p);
    }
    close_gpu(t, &g);
}

/* ---- profiles ---- */

struct profile {
    size_t events;
    uint64_t last;
    bool ordered;
};

static void note_event(void *user, const rlx_profile_event *e)
{
    struct profile *p = user;

    p->ordered &= e->start_ns >= p->last && e->start_ns > 0;
    p->last = e->start_ns;
    p->events++;
}

TEST_GPUS(gpu_session, profiles_have_a_time_for_each_step)
{
    static struct sized r;
    const rlx_dim_size dims[] = {{"n", 5}, {"m", 200}};
    struct profile p = {.ordered = true};
    struct gpu_place g;

    if (!open_gpu(t, &g, NULL, 0))
        return;
    if (build(t, &g, rows)) {
        rlx_session_set_profile(g.p.session, note_event, &p);
        sized_run(&g.p, dims, 2, &r);
        expect_ok(t, r.status);
        expect_eq_u64(t, p.events, 3);
        expect(t, p.ordered);
    }
    close_gpu(t, &g);
}

/* ---- what can go wrong ---- */

/* The second run meets a lost device; a new one gives the results again. */
TEST_GPUS(gpu_session, a_lost_device_is_reported)
{
    static struct sized r, again;
    const rlx_flag flag = {"GPU_LOSE_AFTER", "1"};
    const rlx_dim_size dims[] = {{"n", 5}, {"m", 20}};
    struct gpu_place g;

    if (!open_gpu(t, &g, &flag, 1))
        return;
    if (build(t, &g, rows)) {
        sized_run(&g.p, dims, 2, &r);
        expect_ok(t, r.status);
        for (int i = 0; i < 2; i++) {
            sized_run(&g.p, dims, 2, &again);
            expect_status(t, again.status, RLX_ERROR_DEVICE_LOST);
        }
        expect_contains(t, g.p.err.message, "lost");
        expect_status(t, place_build(&g.p, rows, NULL), RLX_ERROR_DEVICE_LOST);
        place_drop(&g.p);
        rlx_device_close(g.p.dev);
        expect_ok(t, rlx_device_open(g.p.ctx, test_device(t), &g.p.dev, &g.p.err));
        if (build(t, &g, rows)) {
            sized_run(&g.p, dims, 2, &again);
            sized_same(t, &again, &r);
        }
    }
    close_gpu(t, &g);
}

/* Whatever touches it says so, and what was made on it can be given back. */
TEST_GPUS(gpu_session, every_call_hears_of_a_lost_device)
{
    static struct sized r;
    const rlx_flag flag = {"GPU_LOSE_AFTER", "1"};
    float v[4] = {1, 2, 3, 4};
    rlx_tensor four = {RLX_DTYPE_f32, 1, {4}, v, sizeof v};
    rlx_session *clone = NULL;
    struct gpu_place g;
    uint64_t ticket;

    if (!open_gpu(t, &g, &flag, 1))
        return;
    if (build(t, &g,
              "graph (input %x: f32[4], state %s: f32[4], param %w: f32[4])"
              " { %m = mul %x, %w %y = add %m, %s return %y }") &&
        sized_params(t, &g.p)) {
        rlx_session *s = g.p.session;
        rlx_binding in = {"x", four};
        const rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0};
        rlx_error *err = &g.p.err;
        sized_run(&g.p, NULL, 0, &r);
        expect_ok(t, r.status);
        sized_run(&g.p, NULL, 0, &r);
        expect_status(t, r.status, RLX_ERROR_DEVICE_LOST);
        expect_status(t, rlx_session_submit(s, &run, &ticket, err), RLX_ERROR_DEVICE_LOST);
        expect_status(t, rlx_session_set_param(s, "w", &four, err), RLX_ERROR_DEVICE_LOST);
        expect_status(t, rlx_session_set_state(s, "s", &four, err), RLX_ERROR_DEVICE_LOST);
        expect_status(t, rlx_session_get_state(s, "s", &four, err), RLX_ERROR_DEVICE_LOST);
        expect_status(t, rlx_session_clone(s, 0, &clone, err), RLX_ERROR_DEVICE_LOST);
        rlx_session_destroy(clone);
    }
    close_gpu(t, &g);
}

TEST_GPUS(gpu_session, no_memory_is_reported)
{
    static struct sized r;
    const rlx_flag flag = {"GPU_MAX_MEMORY", "20000"};
    const rlx_dim_size dims[] = {{"n", 2}, {"m", 20}};
    struct gpu_place g;

    if (!open_gpu(t, &g, &flag, 1))
        return;
    if (expect_ok(t, place_build(&g.p, rows, NULL))) { /* bounds of 9 x 300 are more than that */
        sized_run(&g.p, dims, 2, &r);
        expect_status(t, r.status, RLX_ERROR_MEMORY);
        expect_contains(t, g.p.err.message, "bytes");
    }
    build(t, &g, "graph (input %x: f32[4,8]) { %y = softmax %x axis=1 return %y }"); /* it fits */
    close_gpu(t, &g);
}

/* Tensors that a kernel cannot see through windows either are refused; smaller ones run. */
TEST_GPUS(gpu_session, lowered_limits)
{
    const rlx_flag flag = {"GPU_MAX_BINDING", "4096"};
    struct gpu_place g;

    if (!open_gpu(t, &g, &flag, 1))
        return;
    expect_status(t,
                  place_build(&g.p,
                              "graph (input %x: f32[99999]) { %y = softmax %x axis=0 return %y }",
                              NULL),
                  RLX_ERROR_LIMIT);
    if (build(t, &g,
              "graph (input %x: f32[16,32]) { %y = softmax %x axis=1 %z = transpose %y perm=[1,0]"
              " %w = softmax %z axis=1 %v = transpose %w perm=[1,0] return %y, %z, %w }")) {
        static struct sized r;
        sized_run(&g.p, NULL, 0, &r);
        expect_ok(t, r.status);
        for (size_t i = 0; i < 16; i++)
            for (size_t k = 0; k < 32; k++)
                expect_near(t, r.y[1][k * 16 + i], r.y[0][i * 32 + k], 0);
    }
    close_gpu(t, &g);
}

/* What a session was given is the model's: a session on the device opened anew has it, and one on
 * another device. A clone with weights of its own keeps them to itself. */
TEST_GPUS(gpu_session, params_outlive_a_lost_device)
{
    const rlx_flag flag = {"GPU_LOSE_AFTER", "1"};
    float w[4] = {1, 2, 3, 4}, own[4] = {9, 9, 9, 9}, x[4] = {1, 10, 100, 1000}, y[4] = {0};
    rlx_tensor four = {RLX_DTYPE_f32, 1, {4}, w, sizeof w};
    rlx_tensor other = {RLX_DTYPE_f32, 1, {4}, own, sizeof own};
    rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {4}, x, sizeof x}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 1, {4}, y, sizeof y}};
    const rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
    rlx_session *clone = NULL;
    rlx_device *cpu = NULL;
    struct gpu_place g;

    if (!open_gpu(t, &g, &flag, 1))
        return;
    if (build(t, &g, "graph (input %x: f32[4], param %w: f32[4]) { %y = mul %x, %w return %y }")) {
        rlx_error *err = &g.p.err;
        expect_ok(t, rlx_session_set_param(g.p.session, "w", &four, err));
        expect_ok(t, rlx_session_clone(g.p.session, RLX_CLONE_OWN_WEIGHTS, &clone, err));
        expect_ok(t, rlx_session_set_param(clone, "w", &other, err));
        expect_ok(t, rlx_session_run(g.p.session, &run, err));
        expect_status(t, rlx_session_run(g.p.session, &run, err), RLX_ERROR_DEVICE_LOST);
        memset(w, 0, sizeof w);
        expect_ok(t, rlx_session_get_param(g.p.session, "w", &four, err)); /* the model has it */
        expect(t, w[0] == 1 && w[3] == 4);
        rlx_session_destroy(g.p.session);
        rlx_session_destroy(clone);
        rlx_device_close(g.p.dev);
        g.p.session = NULL;
        g.p.dev = NULL;
        expect_ok(t, rlx_device_open(g.p.ctx, test_device(t), &g.p.dev, err));
        expect_ok(t, rlx_device_open(g.p.ctx, "cpu", &cpu, err));
        for (int i = 0; i < 2; i++) {
            memset(y, 0, sizeof y);
            expect_ok(t, rlx_session_create(g.p.model, i ? cpu : g.p.dev, NULL, &g.p.session, err));
            expect_ok(t, rlx_session_run(g.p.session, &run, err));
            expect(t, y[0] == 1 && y[1] == 20 && y[2] == 300 && y[3] == 4000);
            rlx_session_destroy(g.p.session);
            g.p.session = NULL;
        }
        rlx_device_close(cpu);
    }
    close_gpu(t, &g);
}
