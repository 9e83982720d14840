/* threads_test.c: runtime.md 10, line 14: sessions on threads of their own do not disturb
 * each other: two on one device, two devices in one process, clones while params are set. Run under
 * the thread sanitizer as well. */
#include <pthread.h>
#include <stdatomic.h>

#include "sized.h"

enum { ROUNDS = 60 };

/* Enough work that the device's workers take part in it. */
#define MODEL                                                                \
    "graph (input %x: f32[n,16], param %w: f32[16,16], param %b: f32[16]) {" \
    " %m = matmul %x, %w %a = add %m, %b %g = gelu %a %s = softmax %g"       \
    " %c = cumsum %s axis=0 %k = matmul %c, %w transpose_b=true %y = tanh %k return %y, %s }"
#define OTHER                                                                        \
    "graph (input %x: f32[n,16], param %w: f32[16,16], param %b: f32[16]) {"         \
    " %l = layer_norm %x, %b, %b %m = matmul %l, %w %e = exp %m %o = sort %e axis=0" \
    " %r = reduce_sum %o axes=[1] return %o, %r }"

/* ---- two sessions, each with sizes of its own ---- */

struct worker {
    struct test *t;
    struct place p; /* its session; context, device and model may be another's */
    struct sized want[3], got;
    pthread_t thread;
};

static const int64_t sizes[3] = {64, 7, 33};

static void *run_many(void *user)
{
    struct worker *w = user;

    for (int i = 0; i < ROUNDS; i++) {
        const rlx_dim_size dim = {"n", sizes[i % 3]};
        sized_run(&w->p, &dim, 1, &w->got);
        if (!sized_same(w->t, &w->got, &w->want[i % 3]))
            break;
    }
    return NULL;
}

/* What each is to give is computed alone, before anything else runs. */
static bool make_worker(struct test *t, struct worker *w, const struct place *place,
                        const char *graph, const rlx_session_desc *desc)
{
    w->t = t;
    w->p = *place;
    w->p.model = NULL, w->p.session = NULL;
    if (!expect_ok(t, place_build(&w->p, graph, desc)) || !sized_params(t, &w->p))
        return false;
    for (int i = 0; i < 3; i++) {
        const rlx_dim_size dim = {"n", sizes[i]};
        sized_run(&w->p, &dim, 1, &w->want[i]);
        if (!expect_ok(t, w->want[i].status))
            return fail(t, "%s", w->p.err.message);
    }
    return true;
}

static void run_both(struct test *t, struct worker *w)
{
    for (int i = 0; i < 2; i++)
        require(t, pthread_create(&w[i].thread, NULL, run_many, &w[i]) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(w[i].thread, NULL);
}

TEST_DEVICES(threads, two_sessions_on_one_device)
{
    static const char *const dims[] = {"dim n ", "dim n <= 64 "};
    static struct worker w[2];
    struct place p;

    if (!place_open(t, &p, test_device(t),
                    &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .threads = 2}))
        return place_close(&p);
    for (size_t i = 0; i < COUNT_OF(dims); i++) {
        char a[512], b[512];
        snprintf(a, sizeof a, "%s%s", dims[i], MODEL);
        snprintf(b, sizeof b, "%s%s", dims[1 - i], OTHER);
        test_note(t, "%s", dims[i]);
        if (make_worker(t, &w[0], &p, a, NULL) &&
            make_worker(t, &w[1], &p, b,
                        &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .programs = 1}))
            run_both(t, w);
        place_drop(&w[0].p);
        place_drop(&w[1].p);
    }
    place_close(&p);
}

/* The baseline level is a device of its own, and everywhere there is one. */
TEST_DEVICES(threads, two_devices_in_one_process)
{
    static const char *const second[] = {"cpu:avx2", "cpu:baseline"};
    static struct worker w[2];
    struct place p;
    rlx_device *other = NULL;

    if (!place_open(t, &p, test_device(t),
                    &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .threads = 2}))
        return place_close(&p);
    for (size_t i = 0; i < COUNT_OF(second) && !other; i++)
        rlx_device_open(p.ctx, second[i], &other, &p.err);
    if (expect(t, other != NULL && other != p.dev)) {
        struct place q = {.ctx = p.ctx, .dev = other};
        if (make_worker(t, &w[0], &p, "dim n " MODEL, NULL) &&
            make_worker(t, &w[1], &q, "dim n " MODEL, NULL))
            run_both(t, w);
        place_drop(&w[0].p);
        place_drop(&w[1].p);
    }
    rlx_device_close(other);
    place_close(&p);
}

/* Two objects of one device, each in a context of its own. */
TEST_DEVICES(threads, a_device_opened_twice)
{
    static struct worker w[2];
    struct place p = {0}, q = {0};

    if (place_open(t, &p, test_device(t), NULL) && place_open(t, &q, test_device(t), NULL)) {
        if (make_worker(t, &w[0], &p, "dim n " MODEL, NULL) &&
            make_worker(t, &w[1], &q, "dim n " MODEL, NULL))
            run_both(t, w);
        place_drop(&w[0].p);
        place_drop(&w[1].p);
    }
    place_close(&p);
    place_close(&q);
}

/* Compiling on one thread while another runs, on the same device and model. */
static void *compile_many(void *user)
{
    struct worker *w = user;

    for (int i = 0; i < ROUNDS / 4; i++) {
        struct place p = w->p;
        const rlx_dim_size dim = {"n", sizes[i % 3]};
        if (!expect_ok(w->t, rlx_session_create(w->p.model, w->p.dev, NULL, &p.session, &p.err)))
            break;
        sized_run(&p, &dim, 1, &w->got);
        rlx_session_destroy(p.session);
        if (!sized_same(w->t, &w->got, &w->want[i % 3]))
            break;
    }
    return NULL;
}

TEST_DEVICES(threads, compiling_beside_running)
{
    static struct worker w[2];
    struct place p;

    if (!place_open(t, &p, test_device(t),
                    &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .threads = 2}))
        return place_close(&p);
    if (make_worker(t, &w[0], &p, "dim n " MODEL, NULL)) {
        w[1] = w[0];
        require(t, pthread_create(&w[0].thread, NULL, run_many, &w[0]) == 0);
        require(t, pthread_create(&w[1].thread, NULL, compile_many, &w[1]) == 0);
        for (int i = 0; i < 2; i++)
            pthread_join(w[i].thread, NULL);
    }
    place_drop(&w[0].p);
    place_close(&p);
}

/* ---- clones, and params that change between their runs ---- */

#define SCALE                                                                      \
    "graph (input %x: f32[4], param %w: f32[4], param %v: f32[4]) {"               \
    " %p = mul %w, %v %a = mul %x, %p %z = const f32[4] {0 0 0 0} %y = add %a, %z" \
    " return %y }"

struct clone {
    rlx_session *session;
    atomic_int *stop;
    int runs, wrong;
    pthread_t thread;
};

/* A run sees one value of each param from its start to its end: all elements agree. */
static void *run_clone(void *user)
{
    struct clone *c = user;
    float x[4] = {1, 1, 1, 1}, y[4];
    rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {4}, x, sizeof x}};

    while (!atomic_load(c->stop) || c->runs < ROUNDS) {
        rlx_binding out = {"y", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
        rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
        c->wrong += rlx_session_run(c->session, &run, NULL) != RLX_OK;
        c->wrong += y[0] < 1 || y[1] != y[0] || y[2] != y[0] || y[3] != y[0];
        c->runs++;
    }
    return NULL;
}

static rlx_status set_all(rlx_session *s, const char *name, float value)
{
    float w[4] = {value, value, value, value};
    rlx_tensor v = {RLX_DTYPE_f32, 1, {4}, w, sizeof w};

    return rlx_session_set_param(s, name, &v, NULL);
}

TEST_DEVICES(threads, params_change_between_the_runs_of_clones)
{
    struct place p;
    struct clone c[2] = {{0}};
    atomic_int stop = 0;
    int set = 0, busy = 0;

    if (!place_open(t, &p, test_device(t), NULL) || !expect_ok(t, place_build(&p, SCALE, NULL)))
        return place_close(&p);
    expect_ok(t, set_all(p.session, "w", 1));
    expect_ok(t, set_all(p.session, "v", 1));
    for (int i = 0; i < 2; i++) {
        c[i].stop = &stop;
        require(t, rlx_session_clone(p.session, 0, &c[i].session, &p.err) == RLX_OK);
    }
    for (int i = 0; i < 2; i++)
        require(t, pthread_create(&c[i].thread, NULL, run_clone, &c[i]) == 0);
    for (int i = 0; i < 2000; i++) { /* STATE while one of them runs */
        rlx_status s = set_all(p.session, i % 2 ? "w" : "v", (float)(i % 7 + 1));
        set += s == RLX_OK;
        busy += s == RLX_ERROR_STATE;
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; i++) {
        pthread_join(c[i].thread, NULL);
        expect_eq(t, c[i].wrong, 0);
        expect(t, c[i].runs >= ROUNDS);
    }
    expect_eq(t, set + busy, 2000);
    expect_ok(t, set_all(p.session, "w", 3));
    expect_ok(t, set_all(p.session, "v", 5));
    for (int i = 0; i < 2; i++) {
        float x[4] = {2, 2, 2, 2}, y[4];
        rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {4}, x, sizeof x}};
        rlx_binding out = {"y", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
        expect_ok(t, rlx_session_run(
                         c[i].session,
                         &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0}, NULL));
        expect_near(t, y[3], 30, 0);
        rlx_session_destroy(c[i].session);
    }
    place_close(&p);
}
