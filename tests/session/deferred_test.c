/* deferred_test.c: runtime.md 10, line 6: models whose sizes only a run tells. Params set
 * before or after the first run, sizes that alternate, handles and states across a change. */
#include "sized.h"

#define SCALED                                                                       \
    "dim n dim m graph (input %x: f32[n,m], param %w: f32[1], param %u: f32[2,2]) {" \
    " %d = reduce_sum %u axes=[0,1] %s = mul %x, %w %y = add %s, %d return %y }"

static const int64_t sizes[3][2] = {{2, 3}, {4, 1}, {1, 5}};

struct weights {
    float w, u[4];
};

static void set(struct test *t, struct place *p, struct weights *v)
{
    rlx_tensor w = {RLX_DTYPE_f32, 1, {1}, &v->w, 4}, u = {RLX_DTYPE_f32, 2, {2, 2}, v->u, 16};

    expect_ok(t, rlx_session_set_param(p->session, "w", &w, &p->err));
    expect_ok(t, rlx_session_set_param(p->session, "u", &u, &p->err));
}

static rlx_status run(struct place *p, const int64_t *size, float *y)
{
    float x[8];
    rlx_binding in = {"x",
                      {RLX_DTYPE_f32, 2, {size[0], size[1]}, x, (size_t)(size[0] * size[1]) * 4}};
    rlx_binding out = {"y", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = 32}};

    for (int i = 0; i < 8; i++)
        x[i] = (float)i;
    memset(&p->err, 0, sizeof p->err);
    return rlx_session_run(
        p->session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0}, &p->err);
}

static void expect_run(struct test *t, struct place *p, const int64_t *size,
                       const struct weights *v)
{
    float y[8], more = v->u[0] + v->u[1] + v->u[2] + v->u[3];

    if (!expect_ok(t, run(p, size, y)))
        fail(t, "%s", p->err.message);
    for (int i = 0; i < size[0] * size[1]; i++)
        expect_near(t, y[i], (float)i * v->w + more, 0);
}

static const rlx_session_desc modes[] = {
    {RLX_SIZED(rlx_session_desc)},
    {RLX_SIZED(rlx_session_desc), .programs = 1},
    {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_static_pack = true)},
    {RLX_SIZED(rlx_session_desc), .programs = 2, .debug = DEBUG(.no_reuse = true)}};

TEST_DEVICES(deferred, params_reach_programs_made_before_and_after)
{
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return place_close(&p);
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct weights v = {3, {1, 2, 3, 4}};
        float y[8];
        test_note(t, "mode %zu", i);
        if (!expect_ok(t, place_build(&p, SCALED, &modes[i])))
            break;
        expect_status(t, run(&p, sizes[0], y), RLX_ERROR_MISSING_INPUT);
        set(t, &p, &v); /* after a run that failed for want of it: before the first that does not */
        expect_run(t, &p, sizes[0], &v);
        v = (struct weights){5, {0, 0, 7, 0}};
        set(t, &p, &v);                /* after it */
        for (size_t k = 0; k < 9; k++) /* three bindings in turn, three times each */
            expect_run(t, &p, sizes[k % 3], &v);
        for (size_t k = 0; k < 6; k++) { /* and a new value before each */
            v.w = (float)k, v.u[k % 4] = (float)k;
            set(t, &p, &v);
            expect_run(t, &p, sizes[k % 3], &v);
            expect_run(t, &p, sizes[(k + 1) % 3], &v);
        }
    }
    place_close(&p);
}

/* Every session of the model sees a param, whenever it was made and whatever sizes it runs at. */
TEST_DEVICES(deferred, params_reach_other_sessions)
{
    struct place p;
    struct weights v = {2, {1, 0, 0, 0}};
    rlx_session *other = NULL, *first;

    if (!place_open(t, &p, test_device(t), NULL) || !expect_ok(t, place_build(&p, SCALED, NULL)))
        return place_close(&p);
    set(t, &p, &v);
    expect_ok(t, rlx_session_create(p.model, p.dev, NULL, &other, &p.err));
    first = p.session;
    for (size_t k = 0; k < 6; k++) {
        p.session = k % 2 ? other : first;
        v.w = (float)k;
        set(t, &p, &v);
        expect_run(t, &p, sizes[k % 3], &v);
        p.session = k % 2 ? first : other;
        expect_run(t, &p, sizes[(k + 2) % 3], &v);
    }
    p.session = first;
    rlx_session_destroy(other);
    place_close(&p);
}

/* ---- handles ---- */

#define HELD                                                                         \
    "dim n dim m graph (input %h: f32[n,m], input %c: f32[2,2], state %s: f32[2,2])" \
    " { %k = add %c, %s %z = reduce_sum %k axes=[0,1] %y = add %h, %z return %y, %k }"

static void expect_held(struct test *t, struct place *p, int64_t n, int64_t m, const float *want)
{
    float y[16];
    const rlx_dim_size dims[] = {{"n", n}, {"m", m}};
    rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};

    test_note(t, "%lld by %lld", (long long)n, (long long)m);
    memset(&p->err, 0, sizeof p->err);
    if (!expect_ok(
            t, rlx_session_run(p->session,
                               &(rlx_run_desc){RLX_SIZED(rlx_run_desc), NULL, 0, &out, 1, dims, 2},
                               &p->err)))
        fail(t, "%s", p->err.message);
    expect(t, out.tensor.dim[0] == n && out.tensor.dim[1] == m);
    expect_close(t, y, want, (size_t)(n * m), 0, 0);
}

/* The part that both shapes have stays; what is new is zero. A static handle and a state do not
 * notice. */
TEST_DEVICES(deferred, handles_move_when_sizes_change)
{
    struct place p;
    float h[6] = {1, 2, 3, 4, 5, 6}, c[4] = {1, 1, 1, 1}, s[4] = {10, 10, 10, 10};
    rlx_tensor vh = {RLX_DTYPE_f32, 2, {2, 3}, h, sizeof h};
    rlx_tensor vc = {RLX_DTYPE_f32, 2, {2, 2}, c, sizeof c};
    rlx_tensor vs = {RLX_DTYPE_f32, 2, {2, 2}, s, sizeof s};

    if (!place_open(t, &p, test_device(t), NULL) || !expect_ok(t, place_build(&p, HELD, NULL)))
        return place_close(&p);
    expect_ok(t, rlx_session_bind_handle(p.session, "h", &vh, &p.err));
    expect_ok(t, rlx_session_bind_handle(p.session, "c", &vc, &p.err));
    expect_ok(t, rlx_session_bind_handle(p.session, "s", &vs, &p.err));
    expect_held(t, &p, 2, 3, (const float[]){45, 46, 47, 48, 49, 50});
    expect_held(t, &p, 3, 3, (const float[]){45, 46, 47, 48, 49, 50, 44, 44, 44});
    expect_held(t, &p, 3, 4, (const float[]){45, 46, 47, 44, 48, 49, 50, 44, 44, 44, 44, 44});
    expect_held(t, &p, 2, 2, (const float[]){45, 46, 48, 49});
    expect_held(t, &p, 2, 3, (const float[]){45, 46, 44, 48, 49, 44}); /* what was cut is gone */
    expect_held(t, &p, 0, 3, NULL);
    expect_held(t, &p, 3, 1, (const float[]){45, 48, 44});
    place_close(&p);
}

/* A feed across programs: what one run wrote, the next one of another size reads. */
TEST_DEVICES(deferred, feeds_reach_programs_of_other_sizes)
{
    struct place p;
    float c[4] = {0}, x[4] = {1, 2, 3, 4}, y[4];
    rlx_tensor vc = {RLX_DTYPE_f32, 1, {2}, c, 8};
    rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE};

    if (!place_open(t, &p, test_device(t), NULL) ||
        !expect_ok(t, place_build(&p,
                                  "dim n graph (input %x: f32[n], input %c: f32[2])"
                                  " { %s = reduce_sum %x axes=[0] %y = add %c, %s return %y }",
                                  &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .programs = 2})))
        return place_close(&p);
    expect_ok(t, rlx_session_bind_handle(p.session, "c", &vc, &p.err));
    expect_ok(t, rlx_session_set_feed(p.session, "c", &feed, &p.err));
    static const double sums[] = {1, 3, 6};
    double sum = 0;
    for (size_t k = 0; k < 9; k++) {
        size_t n = k % 3 + 1;
        rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {(int64_t)n}, x, n * 4}};
        rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
        expect_ok(
            t, rlx_session_run(p.session,
                               &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0},
                               &p.err));
        expect_near(t, y[1], sum += sums[k % 3], 0);
    }
    place_close(&p);
}

/* The symbol rows follows from batch and seq where an axis has it. */
TEST_DEVICES(deferred, rows_are_batch_times_seq)
{
    struct place p;
    static struct sized r;

    if (!place_open(t, &p, test_device(t), NULL) ||
        !expect_ok(t, place_build(&p,
                                  "graph (input %x: f32[batch,seq]) { %z = const f32[1] {1}"
                                  " %e = expand %z shape=[rows] %f = reshape %x shape=[rows]"
                                  " %y = add %e, %f return %y }",
                                  NULL)))
        return place_close(&p);
    for (int64_t n = 1; n < 4; n++) {
        const rlx_dim_size dims[] = {{"batch", 2}, {"seq", n}};
        sized_run(&p, dims, 2, &r);
        expect_ok(t, r.status);
        expect_eq(t, r.shape[0].dim[0], 2 * n);
    }
    place_close(&p);
}
