/* handle_test.c: inputs that stay on the device, feeds, clones, runs in flight. Decode loops are in
 * decode_test.c. */
#include <math.h>
#include <pthread.h>

#include "required.h"

static rlx_tensor matrix(float *x, int64_t rows, int64_t cols)
{
    return (rlx_tensor){RLX_DTYPE_f32, 2, {rows, cols}, x, (size_t)(rows * cols) * sizeof *x};
}

static rlx_status run_to(struct place *p, rlx_binding *in, size_t inputs, float *y, size_t room,
                         const rlx_dim_size *dims, size_t dim_count)
{
    rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = room * sizeof *y}};

    memset(&p->err, 0, sizeof p->err);
    return rlx_session_run(
        p->session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, inputs, &out, 1, dims, dim_count},
        &p->err);
}

#define ADD "graph (input %x: f32[2,2], input %h: f32[2,2]) { %y = add %x, %h return %y }"

TEST_DEVICES(handle, needs_no_input_until_it_is_unbound)
{
    struct place p;
    float x[4] = {1, 2, 3, 4}, h[4] = {10, 20, 30, 40}, y[4], back[4];
    rlx_binding in[2] = {{"x", matrix(x, 2, 2)}, {"h", matrix(h, 2, 2)}};
    rlx_tensor value = matrix(h, 2, 2), read = matrix(back, 2, 2);

    if (!place_open(t, &p, test_device(t), NULL) || !expect_ok(t, place_build(&p, ADD, NULL)))
        return place_close(&p);
    expect(t, !rlx_session_has_handle(p.session, "h"));
    expect_status(t, run_to(&p, in, 1, y, 4, NULL, 0), RLX_ERROR_MISSING_INPUT);
    expect_status(t, rlx_session_bind_handle(p.session, "q", &value, &p.err), RLX_ERROR_NAME);
    expect_status(t, rlx_session_read_handle(p.session, "h", &read, &p.err), RLX_ERROR_STATE);
    rlx_tensor wrong = matrix(h, 1, 2);
    expect_status(t, rlx_session_bind_handle(p.session, "h", &wrong, &p.err), RLX_ERROR_SHAPE);
    expect(t, !rlx_session_has_handle(p.session, "h"));
    expect_ok(t, rlx_session_bind_handle(p.session, "h", &value, &p.err));
    expect(t, rlx_session_has_handle(p.session, "h"));
    h[0] = -1; /* it was copied */
    for (int i = 0; i < 2; i++) {
        expect_ok(t, run_to(&p, in, 1, y, 4, NULL, 0));
        expect_close(t, y, ((const float[]){11, 22, 33, 44}), 4, 0, 0);
    }
    expect_ok(t, run_to(&p, in, 2, y, 4, NULL, 0)); /* an input replaces its value */
    expect_close(t, y, ((const float[]){0, 22, 33, 44}), 4, 0, 0);
    expect_ok(t, rlx_session_read_handle(p.session, "h", &read, &p.err));
    expect_close(t, back, h, 4, 0, 0);
    expect_ok(t, rlx_session_unbind_handle(p.session, "h", &p.err));
    expect_status(t, run_to(&p, in, 1, y, 4, NULL, 0), RLX_ERROR_MISSING_INPUT);
    expect_ok(t, run_to(&p, in, 2, y, 4, NULL, 0));
    place_close(&p);
}

TEST_DEVICES(handle, whole_feed_accumulates)
{
    struct place p;
    float x[4] = {1, 2, 3, 4}, h[4] = {0}, y[4];
    rlx_binding in[2] = {{"x", matrix(x, 2, 2)}, {"h", matrix(h, 2, 2)}};
    rlx_tensor value = matrix(h, 2, 2), read = matrix(y, 2, 2);
    rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE};
    rlx_session_desc reseed = {RLX_SIZED(rlx_session_desc), .reseed_handles = true};

    if (!place_open(t, &p, test_device(t), NULL) || !expect_ok(t, place_build(&p, ADD, NULL)))
        return place_close(&p);
    expect_status(t, rlx_session_set_feed(p.session, "h", &feed, &p.err), RLX_ERROR_STATE);
    expect_ok(t, rlx_session_bind_handle(p.session, "h", &value, &p.err));
    expect_status(t, rlx_session_set_feed(p.session, "q", &feed, &p.err), RLX_ERROR_NAME);
    feed.output = 1;
    expect_status(t, rlx_session_set_feed(p.session, "h", &feed, &p.err), RLX_ERROR_ARGUMENT);
    feed.output = 0;
    expect_ok(t, rlx_session_set_feed(p.session, "h", &feed, &p.err));
    expect_status(t, rlx_session_set_feed(p.session, "h", &feed, &p.err), RLX_ERROR_STATE);
    for (int i = 1; i <= 3; i++) {
        expect_ok(t, run_to(&p, in, 1, y, 4, NULL, 0));
        expect_near(t, y[3], 4.0 * i, 0);
    }
    /* also when no output is read */
    expect_ok(t, rlx_session_run(p.session,
                                 &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 1, NULL, 0, NULL, 0},
                                 &p.err));
    expect_ok(t, rlx_session_read_handle(p.session, "h", &read, &p.err));
    expect_near(t, y[3], 16, 0);
    expect_status(t, run_to(&p, in, 2, y, 4, NULL, 0), RLX_ERROR_STATE);
    expect_ok(t, rlx_session_clear_feed(p.session, "h", &p.err));
    expect_ok(t, run_to(&p, in, 1, y, 4, NULL, 0));
    expect_ok(t, run_to(&p, in, 1, y, 4, NULL, 0));
    expect_near(t, y[3], 20, 0);
    expect_ok(t, place_build(&p, ADD, &reseed));
    expect_ok(t, rlx_session_bind_handle(p.session, "h", &value, &p.err));
    expect_ok(t, rlx_session_set_feed(p.session, "h", &feed, &p.err));
    expect_ok(t, run_to(&p, in, 2, y, 4, NULL, 0));
    expect_ok(t, run_to(&p, in, 1, y, 4, NULL, 0));
    expect_near(t, y[3], 8, 0);
    place_close(&p);
}

TEST_DEVICES(handle, feeds_of_the_wrong_shape_are_refused)
{
    struct place p;
    float h[4] = {0};
    rlx_tensor value = matrix(h, 2, 2);
    static const char *const graphs[] = {
        "graph (input %h: f32[2,2]) { %y = reduce_sum %h axes=[0] return %y }",
        "graph (input %h: f32[2,2]) { %y = cast %h to=f16 return %y }",
        "graph (input %h: f32[2,2]) { %y = concat %h, %h axis=1 return %y }",
    };
    static const rlx_status want[] = {RLX_ERROR_SHAPE, RLX_ERROR_DTYPE, RLX_ERROR_SHAPE};
    static const rlx_feed bad[] = {
        {RLX_SIZED(rlx_feed), .mode = RLX_FEED_ROW, .dst_row = "q"},
        {RLX_SIZED(rlx_feed), .mode = RLX_FEED_ROW, .dst_row = "1+"},
        {RLX_SIZED(rlx_feed), .mode = (rlx_feed_mode)9},
    };
    static const rlx_status bad_want[] = {RLX_ERROR_NAME, RLX_ERROR_FORMAT, RLX_ERROR_ARGUMENT};

    if (!place_open(t, &p, test_device(t), NULL))
        return place_close(&p);
    for (size_t i = 0; i < COUNT_OF(graphs); i++) {
        rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE};
        expect_ok(t, place_build(&p, graphs[i], NULL));
        expect_ok(t, rlx_session_bind_handle(p.session, "h", &value, &p.err));
        expect_status(t, rlx_session_set_feed(p.session, "h", &feed, &p.err), want[i]);
        expect_ok(t, rlx_session_run(p.session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc)}, &p.err));
    }
    expect_ok(t, place_build(&p, "graph (input %h: f32[2,2]) { %y = neg %h return %y }", NULL));
    expect_ok(t, rlx_session_bind_handle(p.session, "h", &value, &p.err));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        expect_status(t, rlx_session_set_feed(p.session, "h", &bad[i], &p.err), bad_want[i]);
    rlx_feed past = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_ROW,
                     .dst_row = "2"}; /* known in the run only */
    expect_ok(t, rlx_session_set_feed(p.session, "h", &past, &p.err));
    expect_status(t, rlx_session_run(p.session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc)}, &p.err),
                  RLX_ERROR_SIZE);
    expect_ok(t, rlx_session_clear_feed(p.session, "h", &p.err));
    expect_ok(t, rlx_session_run(p.session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc)}, &p.err));
    place_close(&p);
}

/* A handle over a symbol without a bound moves along when the symbol changes. */
TEST_DEVICES(handle, moves_when_an_unbounded_symbol_changes)
{
    static const char graph[] = "dim n graph (input %h: f32[n,2]) { %y = neg %h return %y }";
    float h[6] = {1, 2, 3, 4, 5, 6}, y[8];
    struct place p;
    rlx_tensor value = matrix(h, 3, 2);

    if (!place_open(t, &p, test_device(t), NULL) || !expect_ok(t, place_build(&p, graph, NULL)))
        return place_close(&p);
    expect_ok(t, rlx_session_bind_handle(p.session, "h", &value, &p.err));
    expect_ok(t, run_to(&p, NULL, 0, y, 8, NULL, 0)); /* its length says n */
    expect_near(t, y[5], -6, 0);
    expect_ok(t, run_to(&p, NULL, 0, y, 8, &(rlx_dim_size){"n", 4}, 1));
    expect_close(t, y, ((const float[]){-1, -2, -3, -4, -5, -6, -0.0f, -0.0f}), 8, 0, 0);
    expect_ok(t, run_to(&p, NULL, 0, y, 8, &(rlx_dim_size){"n", 2}, 1));
    expect_close(t, y, ((const float[]){-1, -2, -3, -4}), 4, 0, 0);
    place_close(&p);
}

/* ---- runs in flight ---- */

TEST_DEVICES(flight, results_wait_until_they_are_taken)
{
    struct place p;
    rlx_session_desc three = {RLX_SIZED(rlx_session_desc), .in_flight = 3};
    float x[3][4], y[4];
    uint64_t ticket[4];

    if (!place_open(t, &p, test_device(t), NULL) ||
        !expect_ok(
            t, place_build(&p, "graph (input %x: f32[2,2]) { %y = mul %x, %x return %y }", &three)))
        return place_close(&p);
    rlx_binding out = {"out0", {RLX_DTYPE_f32, 0, {0}, y, sizeof y}};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) {
            for (int k = 0; k < 4; k++)
                x[i][k] = (float)(round * 10 + i + k);
            rlx_binding in = {"x", matrix(x[i], 2, 2)};
            expect_ok(t, rlx_session_submit(
                             p.session,
                             &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0},
                             &ticket[i], &p.err));
        }
        rlx_binding more = {"x", matrix(x[0], 2, 2)};
        expect_status(
            t,
            rlx_session_submit(p.session,
                               &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &more, 1, NULL, 0, NULL, 0},
                               &ticket[3], &p.err),
            RLX_ERROR_STATE);
        static const int order[3] = {1, 0, 2};
        for (int n = 0; n < 3; n++) {
            int i = order[n];
            rlx_run_desc take = {RLX_SIZED(rlx_run_desc), NULL, 0, &out, 1, NULL, 0};
            expect_ok(t, rlx_session_wait(p.session, ticket[i], &take, &p.err));
            for (int k = 0; k < 4; k++)
                expect_near(t, y[k], (double)x[i][k] * (double)x[i][k], 0);
        }
    }
    expect_status(t, rlx_session_wait(p.session, ticket[0], NULL, &p.err), RLX_ERROR_STATE);
    place_close(&p);
}

TEST_DEVICES(flight, different_sizes_at_a_time)
{
    struct place p;
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
    uint64_t small, large;

    for (int bounded = 0; bounded < 2; bounded++) {
        if (!place_open(t, &p, test_device(t), NULL) ||
            !expect_ok(t, place_build(&p,
                                      bounded ? "dim n <= 3 graph (input %x: f32[n,2]) {"
                                                " %y = neg %x return %y }"
                                              : "dim n graph (input %x: f32[n,2]) {"
                                                " %y = neg %x return %y }",
                                      NULL)))
            return place_close(&p);
        rlx_binding one = {"x", matrix(x, 1, 2)}, three = {"x", matrix(x, 3, 2)};
        rlx_binding out = {"out0", {RLX_DTYPE_f32, 0, {0}, y, sizeof y}};
        rlx_run_desc take = {RLX_SIZED(rlx_run_desc), NULL, 0, &out, 1, NULL, 0};
        expect_ok(t, rlx_session_submit(
                         p.session,
                         &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &three, 1, NULL, 0, NULL, 0},
                         &large, &p.err));
        expect_ok(t, rlx_session_submit(
                         p.session,
                         &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &one, 1, NULL, 0, NULL, 0},
                         &small, &p.err));
        expect_ok(t, rlx_session_wait(p.session, large, &take, &p.err));
        expect_eq(t, out.tensor.dim[0], 3);
        expect_near(t, y[5], -6, 0);
        expect_ok(t, rlx_session_wait(p.session, small, &take, &p.err));
        expect_eq(t, out.tensor.dim[0], 1);
        expect_near(t, y[1], -2, 0);
        place_close(&p);
    }
}

TEST_DEVICES(flight, unchanged_inputs_need_not_be_sent_again)
{
    struct place p;
    static float x[2048], y[2048];
    rlx_session_desc changed = {RLX_SIZED(rlx_session_desc), .uploads = RLX_UPLOADS_CHANGED};
    rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {2048}, x, sizeof x}};

    if (!place_open(t, &p, test_device(t), NULL) ||
        !expect_ok(
            t, place_build(&p, "graph (input %x: f32[2048]) { %y = neg %x return %y }", &changed)))
        return place_close(&p);
    rlx_binding same = in;
    same.tensor.data = RLX_UNCHANGED;
    expect_status(t, run_to(&p, &same, 1, y, 2048, NULL, 0), RLX_ERROR_MISSING_INPUT);
    for (int i = 0; i < 4; i++) {
        x[i] = (float)i + 1;
        expect_ok(t, run_to(&p, &in, 1, y, 2048, NULL, 0));
        expect_near(t, y[i], -(double)x[i], 0);
        expect_ok(t, run_to(&p, &in, 1, y, 2048, NULL, 0)); /* by its hash */
        expect_near(t, y[i], -(double)x[i], 0);
        expect_ok(t, run_to(&p, &same, 1, y, 2048, NULL, 0));
        expect_near(t, y[i], -(double)x[i], 0);
    }
    place_close(&p);
}

/* ---- clones ---- */

#define CLONED                                                                                 \
    "graph (input %x: f32[2,2], input %h: f32[2,2], state %s: f32[2,2], param %w: f32[2,2]) {" \
    " %a = add %x, %h %b = add %a, %s %y = mul %b, %w return %y }"

struct worker {
    rlx_session *session;
    float offset;
    int wrong;
};

static void *work(void *user)
{
    struct worker *w = user;
    float x[4], y[4];
    rlx_binding in = {"x", matrix(x, 2, 2)};
    rlx_binding out = {"out0", {RLX_DTYPE_f32, 0, {0}, y, sizeof y}};

    for (int i = 0; i < 200; i++) {
        for (int k = 0; k < 4; k++)
            x[k] = w->offset + (float)(i + k);
        if (rlx_session_run(w->session,
                            &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0},
                            NULL) != RLX_OK)
            w->wrong++;
        for (int k = 0; k < 4; k++)
            w->wrong += y[k] != (x[k] + 1 + 10) * 2;
    }
    return NULL;
}

TEST_DEVICES(clone, runs_on_another_thread)
{
    struct place p;
    float one[4] = {1, 1, 1, 1}, ten[4] = {10, 10, 10, 10}, two[4] = {2, 2, 2, 2}, y[4];
    rlx_tensor h = matrix(one, 2, 2), s = matrix(ten, 2, 2), w = matrix(two, 2, 2);
    rlx_session *shared = NULL, *own = NULL;

    if (!place_open(t, &p, test_device(t), NULL) || !expect_ok(t, place_build(&p, CLONED, NULL)))
        return place_close(&p);
    expect_ok(t, rlx_session_bind_handle(p.session, "h", &h, &p.err));
    expect_ok(t, rlx_session_bind_handle(p.session, "s", &s, &p.err)); /* a state is one too */
    expect_ok(t, rlx_session_set_param(p.session, "w", &w, &p.err));
    expect_ok(t, rlx_session_clone(p.session, 0, &shared, &p.err));
    expect_ok(t, rlx_session_clone(p.session, RLX_CLONE_OWN_WEIGHTS, &own, &p.err));
    expect_status(t, rlx_session_clone(p.session, 6, &own, &p.err), RLX_ERROR_ARGUMENT);
    struct worker workers[3] = {{p.session, 0, 0}, {shared, 100, 0}, {own, 200, 0}};
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        require(t, pthread_create(&thread[i], NULL, work, &workers[i]) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 3; i++)
        expect_eq(t, workers[i].wrong, 0);

    /* a param set on one is seen by those that share it */
    rlx_binding in = {"x", matrix(one, 2, 2)};
    rlx_binding out = {"out0", {RLX_DTYPE_f32, 0, {0}, y, sizeof y}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
    rlx_tensor other = matrix(ten, 2, 2);
    expect_ok(t, rlx_session_set_param(p.session, "w", &other, &p.err));
    expect_ok(t, rlx_session_run(shared, &run, &p.err));
    expect_near(t, y[0], 120, 0);
    expect_ok(t, rlx_session_run(own, &run, &p.err));
    expect_near(t, y[0], 24, 0);
    rlx_session_destroy(shared);
    rlx_session_destroy(own);
    place_close(&p);
}

/* ---- what depends on weights alone ---- */

TEST_DEVICES(packs, follow_their_params)
{
    struct place p;
    float x[2] = {1, 1}, w[4] = {1, 2, 3, 4}, b[2] = {1, 1}, y[2];
    rlx_tensor weight = matrix(w, 2, 2), bias = {RLX_DTYPE_f32, 1, {2}, b, sizeof b};
    rlx_binding in = {"x", matrix(x, 1, 2)};

    if (!place_open(t, &p, test_device(t), NULL) ||
        !expect_ok(t,
                   place_build(&p,
                               "graph (input %x: f32[1,2], param %w: f32[2,2], param %b: f32[2]) {"
                               " %t = transpose %w perm=[1,0] %e = exp %t %c = add %e, %b"
                               " %y = matmul %x, %c return %y }",
                               NULL)))
        return place_close(&p);
    expect_ok(t, rlx_session_set_param(p.session, "w", &weight, &p.err));
    expect_ok(t, rlx_session_set_param(p.session, "b", &bias, &p.err));
    rlx_memory_info info = {RLX_SIZED(rlx_memory_info)};
    expect_ok(t, rlx_session_memory(p.session, &info, &p.err));
    expect(t, info.weight_copies > 0);
    for (int i = 0; i < 4; i++) { /* one, the other, one, and nothing */
        if (i == 0 || i == 2)
            w[0] = (float)i;
        if (i == 1)
            b[0] = 5;
        if (i < 3)
            expect_ok(t, rlx_session_set_param(p.session, i == 1 ? "b" : "w",
                                               i == 1 ? &bias : &weight, &p.err));
        for (int again = 0; again < 2; again++) {
            expect_ok(t, run_to(&p, &in, 1, y, 2, NULL, 0));
            expect_near(t, y[0], exp((double)w[0]) + exp(2.0) + 2 * (double)b[0], 1e-5);
        }
    }
    place_close(&p);
}

/* The same constant under two shapes, and one weight both ways round: a copy each. */
TEST_DEVICES(packs, shapes_and_directions_have_copies_of_their_own)
{
    enum { K = 64, N = 128, M = 4 };
    static const char graph[] =
        "graph (input %%x: f32[4,64], input %%z: f32[4,128], param %%w: f32[64,64]) {"
        " %%c = const f32[64,128] bytes 0x%s %%r = reshape %%c shape=[128,64]"
        " %%a = matmul %%x, %%c %%b = matmul %%z, %%r"
        " %%d = matmul %%x, %%w %%e = matmul %%x, %%w transpose_b=true"
        " %%s = concat %%a, %%b, %%d, %%e axis=1 return %%s }";
    static char hex[K * N * 8 + 1], text[sizeof hex + 1024];
    static float x[M * K], z[M * N], w[K * K], y[2][M * (N + 3 * K)];
    rlx_tensor weight = matrix(w, K, K);

    for (size_t i = 0; i < K * N; i++) {
        float v = (float)(i % 37) - 18;
        uint8_t byte[4];
        memcpy(byte, &v, sizeof v);
        for (size_t k = 0; k < 4; k++)
            snprintf(hex + i * 8 + k * 2, 3, "%02x", byte[k]);
    }
    for (size_t i = 0; i < K * K; i++)
        w[i] = (float)(i % 11) - 5;
    for (size_t i = 0; i < M * N; i++)
        x[i % (M * K)] = z[i] = (float)(i % 7) - 3;
    snprintf(text, sizeof text, graph, hex);
    for (int plain = 0; plain < 2; plain++) {
        struct place p;
        rlx_session_desc desc = {RLX_SIZED(rlx_session_desc),
                                 .debug = DEBUG(.no_packed_weights = plain)};
        if (place_open(t, &p, test_device(t), NULL) && expect_ok(t, place_build(&p, text, &desc))) {
            rlx_binding in[2] = {{"x", matrix(x, M, K)}, {"z", matrix(z, M, N)}};
            expect_ok(t, rlx_session_set_param(p.session, "w", &weight, &p.err));
            expect_ok(t, run_to(&p, in, 2, y[plain], M * (N + 3 * K), NULL, 0));
        }
        place_close(&p);
    }
    expect_close(t, y[0], y[1], M * (N + 3 * K), 0, 0); /* integers: exact both ways */
}

/* What nothing reads need not have a value to be unchanged from. */
TEST_DEVICES(flight, an_unused_input_may_be_unchanged)
{
    struct place p;
    float x[2] = {1, 2}, y[2];
    rlx_binding in[2] = {{"x", matrix(x, 1, 2)}, {"u", matrix(RLX_UNCHANGED, 1, 2)}};

    if (place_open(t, &p, test_device(t), NULL) &&
        expect_ok(t, place_build(&p,
                                 "graph (input %x: f32[1,2], input %u: f32[1,2])"
                                 " { %y = neg %x return %y }",
                                 NULL)))
        expect_ok(t, run_to(&p, in, 2, y, 2, NULL, 0));
    place_close(&p);
}
