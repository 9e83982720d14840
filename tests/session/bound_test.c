/* bound_test.c: runtime.md 10, line 5, with bound_ops_test.c and bound_model_test.c:
 * symbols with a bound: one program, compiled at the bound, that runs at any smaller size exactly
 * like a program compiled for that size. */
#include "required.h"

enum { BOUND = 12, WIDTH = 4, MOST = 3 * (BOUND + 1) * WIDTH * 8 };

/* Graphs over x: f32[n, 4] or f32[b, n, 4] with n <= 12, and whatever reduces, moves, multiplies or
 * joins along n. Output 0 is compared. */
static const char *const first_axis[] = {
    "%y = gelu %x",
    "%y = add %x, %x",
    "%y = softmax %x axis=0",
    "%y = softmax %x axis=1",
    "%y = reduce_sum %x axes=[0]",
    "%y = reduce_max %x axes=[1] keep_dim=true",
    "%y = reduce_mean %x axes=[0,1]",
    "%y = cumsum %x axis=0",
    "%y = transpose %x perm=[1,0]",
    "%t = transpose %x perm=[1,0] %y = matmul %x, %t",
    "%t = transpose %x perm=[1,0] %y = matmul %t, %x",
    "%y = matmul %x, %x transpose_b=true",
    "%y = matmul %x, %x transpose_a=true",
    "%r = reshape %x shape=[n*4] %y = neg %r",
    "%r = reshape %x shape=[n,2,2] %y = transpose %r perm=[2,0,1]",
    "%y = concat %x, %x axis=0",
    "%c = concat %x, %x axis=1 %y = narrow %c axis=1 start=2 len=4",
    "%c = concat %x, %x axis=0 %y = narrow %c axis=0 start=n len=n",
    "%c = concat %x, %x axis=0 %v = narrow %c axis=0 start=n len=n %y = exp %v",
    "%g = const f32[4] {1 2 3 4} %z = const f32[4] {0 1 0 1} %y = layer_norm %x, %g, %z",
    "%i = const i32[2] {0 0} %p = pad %x before=[1,0] after=[1,0] %y = gather %p, %i axis=0",
    "%y = sort %x axis=0",
    "%y = argmax %x axis=0",
    "%y = pad %x before=[1,2] after=[0,1]",
    "%e = reshape %x shape=[n,1,4] %y = expand %e shape=[n,3,4]",
    "%c = gt %x, %x %y = where %c, %x, %x",
    "%a = reshape %x shape=[1,1,n,4] %y = attention %a, %a, %a num_heads=1 head_dim=4 "
    "mask_kind=causal",
    "%a = reshape %x shape=[1,1,n,4] %w = const f32[1,1,3,1] {1 2 3} %y = conv %a, %w "
    "padding=[1,0]",
};

static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((double)((i * 7919 + 13) % 101) / 25.0 - 2.0);
}

struct result {
    rlx_tensor shape;
    float y[MOST];
    rlx_status status;
};

static void run(struct place *p, int32_t rank, const int64_t *dim, struct result *r)
{
    float x[MOST];
    size_t count = 1;
    rlx_binding in = {"x", {.dtype = RLX_DTYPE_f32, .rank = rank, .data = x}};
    rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = r->y, .bytes = sizeof r->y}};

    for (int32_t i = 0; i < rank; i++) {
        in.tensor.dim[i] = dim[i];
        count *= (size_t)dim[i];
    }
    in.tensor.bytes = count * sizeof *x;
    fill(x, count);
    memset(r->y, 0, sizeof r->y);
    r->status = rlx_session_run(
        p->session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0}, &p->err);
    r->shape = out.tensor;
}

static bool same_result(struct test *t, const struct result *a, const struct result *b)
{
    size_t count = 1;

    if (!expect_status(t, a->status, b->status))
        return false;
    if (a->status != RLX_OK)
        return true; /* neither has an answer for this size */
    if (!expect_eq(t, a->shape.rank, b->shape.rank))
        return false;
    for (int32_t i = 0; i < a->shape.rank; i++) {
        if (!expect_eq(t, a->shape.dim[i], b->shape.dim[i]))
            return false;
        count *= (size_t)a->shape.dim[i];
    }
    return expect(t, memcmp(a->y, b->y, count * sizeof *a->y) == 0) || fail(t, "of %zu", count);
}

/* The same graph with and without the bound, at 0, 1, a half, one less than all, and all. */
static void compare(struct test *t, struct place *bounded, struct place *plain, const char *leaf,
                    const char *body, int32_t rank, int64_t batch, bool inner)
{
    static const int64_t sizes[] = {BOUND, 0, 1, BOUND / 2, BOUND - 1, 2, BOUND};
    static struct result a, b;
    char text[1024];

    snprintf(text, sizeof text, "dim n <= %d graph (%s) { %s return %%y }", BOUND, leaf, body);
    if (!expect_ok(t, place_build(bounded, text, NULL))) {
        fail(t, "%s: %s", body, bounded->err.message);
        return;
    }
    snprintf(text, sizeof text, "dim n graph (%s) { %s return %%y }", leaf, body);
    place_build(plain, text, NULL);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        int64_t dim[3] = {batch, sizes[i], WIDTH};
        test_note(t, "%s, batch %lld, n %lld", body, (long long)batch, (long long)sizes[i]);
        run(bounded, rank, inner ? dim : dim + 1, &a);
        run(plain, rank, inner ? dim : dim + 1, &b);
        if (!same_result(t, &a, &b))
            fail(t, "%s / %s", bounded->err.message, plain->err.message);
    }
    rlx_bound_info info = {RLX_SIZED(rlx_bound_info)};
    expect_ok(t, rlx_session_bound(bounded->session, "n", &info, &bounded->err));
    expect_eq(t, info.bound, BOUND);
    expect(t, !info.by_value);
}

TEST_DEVICES(bound, runs_at_smaller_sizes_like_a_program_of_that_size)
{
    struct place bounded = {0}, plain = {0};

    if (place_open(t, &bounded, test_device(t), NULL) &&
        place_open(t, &plain, test_device(t), NULL))
        for (size_t i = 0; i < COUNT_OF(first_axis); i++)
            compare(t, &bounded, &plain, "input %x: f32[n,4]", first_axis[i], 2, 1, false);
    place_close(&bounded);
    place_close(&plain);
}

static const char *const second_axis[] = {
    "%y = tanh %x",
    "%y = softmax %x axis=1",
    "%y = softmax %x axis=2",
    "%y = reduce_sum %x axes=[1]",
    "%y = reduce_sum %x axes=[0]",
    "%y = cumsum %x axis=1",
    "%y = transpose %x perm=[1,0,2]",
    "%y = matmul %x, %x transpose_b=true",
    "%w = const f32[4,3] {1 2 3 4 5 6 7 8 9 10 11 12} %y = matmul %x, %w",
    "%y = concat %x, %x axis=1",
    "%y = narrow %x axis=2 start=1 len=2",
    "%y = attention %x, %x, %x num_heads=2 head_dim=2 layout=packed",
    "%a = reduce_max %x axes=[1] keep_dim=true %y = sub %x, %a",
    "%y = pad %x before=[0,1,0] after=[0,0,1]",
    "%y = reverse %x axes=[1]",
};

TEST_DEVICES(bound, any_axis_and_batch)
{
    struct place bounded = {0}, plain = {0};

    if (place_open(t, &bounded, test_device(t), NULL) &&
        place_open(t, &plain, test_device(t), NULL))
        for (size_t i = 0; i < COUNT_OF(second_axis); i++)
            for (int64_t batch = 1; batch <= 3; batch += 2) {
                char leaf[64];
                snprintf(leaf, sizeof leaf, "input %%x: f32[%lld,n,4]", (long long)batch);
                compare(t, &bounded, &plain, leaf, second_axis[i], 3, batch, true);
            }
    place_close(&bounded);
    place_close(&plain);
}

/* Two symbols, one with a bound: a program per value of the other. */
TEST_DEVICES(bound, beside_a_symbol_without_one)
{
    struct place bounded = {0}, plain = {0};
    static struct result a, b;

    if (place_open(t, &bounded, test_device(t), NULL) &&
        place_open(t, &plain, test_device(t), NULL) &&
        expect_ok(t, place_build(&bounded,
                                 "dim m dim n <= 12 graph (input %x: f32[m,n,4]) {"
                                 " %r = reshape %x shape=[m*n,4] %y = exp %r return %y }",
                                 NULL)) &&
        expect_ok(t, place_build(&plain,
                                 "dim m dim n graph (input %x: f32[m,n,4]) {"
                                 " %r = reshape %x shape=[m*n,4] %y = exp %r return %y }",
                                 NULL)))
        for (int64_t m = 1; m < 4; m++)
            for (int64_t n = 0; n <= 12; n += 3) {
                run(&bounded, 3, (int64_t[]){m, n, 4}, &a);
                run(&plain, 3, (int64_t[]){m, n, 4}, &b);
                same_result(t, &a, &b);
            }
    place_close(&bounded);
    place_close(&plain);
}

TEST_DEVICES(bound, control_flow_shrinks_too)
{
    struct place bounded = {0}, plain = {0};
    static const char *const subs =
        " graph @then (input %a: f32[n,4]) { %b = exp %a return %b }"
        " graph @else (input %a: f32[n,4]) { %b = neg %a return %b }"
        " graph @body (input %c: f32[4], input %r: f32[4]) { %d = add %c, %r return %d }";
    static const char *const bodies[] = {
        "%m = reduce_max %x axes=[0,1] %z = const f32[] {1.5} %p = gt %m, %z"
        " %y = if %p, %x then_graph=@then else_graph=@else",
        "%z = const f32[4] {0 0 0 0} %y = scan %z, %x body=@body length=n num_xs=1",
    };
    static struct result a, b;
    char text[1024];

    if (place_open(t, &bounded, test_device(t), NULL) &&
        place_open(t, &plain, test_device(t), NULL))
        for (size_t i = 0; i < COUNT_OF(bodies); i++) {
            snprintf(text, sizeof text,
                     "dim n <= 12 graph (input %%x: f32[n,4]) { %s return %%y } %s", bodies[i],
                     subs);
            expect_ok(t, place_build(&bounded, text, NULL));
            snprintf(text, sizeof text, "dim n graph (input %%x: f32[n,4]) { %s return %%y } %s",
                     bodies[i], subs);
            expect_ok(t, place_build(&plain, text, NULL));
            for (int64_t n = 12; n > 0; n -= 5) {
                test_note(t, "%s, n %lld", bodies[i], (long long)n);
                run(&bounded, 2, (int64_t[]){n, 4}, &a);
                run(&plain, 2, (int64_t[]){n, 4}, &b);
                if (!same_result(t, &a, &b))
                    fail(t, "%s / %s", bounded.err.message, plain.err.message);
            }
        }
    place_close(&bounded);
    place_close(&plain);
}

#define GROWS                                  \
    "dim n <= 12 graph (input %x: f32[n,4]) {" \
    " %p = pad %x before=[0,0] after=[12-n,0]" \
    " %s = narrow %p axis=0 start=n len=12-n %y = neg %s return %y }"

/* Something that grows when n shrinks: per value, or an error where that was asked for. */
TEST_DEVICES(bound, what_cannot_shrink_is_compiled_per_value)
{
    struct place p;
    struct result r;
    rlx_bound_info info = {RLX_SIZED(rlx_bound_info)};

    if (place_open(t, &p, test_device(t), NULL) && expect_ok(t, place_build(&p, GROWS, NULL))) {
        for (int64_t n = 0; n <= 12; n += 4) {
            run(&p, 2, (int64_t[]){n, 4}, &r);
            expect_ok(t, r.status);
            expect_eq(t, r.shape.dim[0], 12 - n);
        }
        expect_ok(t, rlx_session_bound(p.session, "n", &info, &p.err));
        expect(t, info.by_value);
        rlx_session_desc strict = {RLX_SIZED(rlx_session_desc), .strict_extent = true};
        expect_ok(t, place_build(&p, GROWS, &strict));
        run(&p, 2, (int64_t[]){4, 4}, &r);
        expect_status(t, r.status, RLX_ERROR_EXTENT);
        expect_contains(t, p.err.message, "grows when a bounded dim shrinks");
        run(&p, 2, (int64_t[]){4, 4}, &r);
        expect_status(t, r.status, RLX_ERROR_EXTENT);
    }
    place_close(&p);
}

#define COPY "dim n graph (input %x: f32[2,n]) { %y = mul %x, %x return %y }"

TEST_DEVICES(bound, is_checked_and_set_before_the_first_run)
{
    struct place p;
    struct result r;

    if (place_open(t, &p, test_device(t), NULL) && expect_ok(t, place_build(&p, COPY, NULL))) {
        expect_status(t, rlx_session_set_bound(p.session, "m", 4, &p.err), RLX_ERROR_NAME);
        expect_status(t, rlx_session_set_bound(p.session, "n", 0, &p.err), RLX_ERROR_ARGUMENT);
        expect_ok(t, rlx_session_set_bound(p.session, "n", 4, &p.err));
        run(&p, 2, (int64_t[]){2, 5}, &r);
        expect_status(t, r.status, RLX_ERROR_EXTENT);
        expect_contains(t, p.err.message, "5");
        run(&p, 2, (int64_t[]){2, 3}, &r);
        expect_ok(t, r.status);
        expect_eq(t, r.shape.dim[1], 3);
        expect_status(t, rlx_session_set_bound(p.session, "n", 8, &p.err), RLX_ERROR_STATE);
        run(&p, 2, (int64_t[]){2, 4}, &r);
        expect_ok(t, r.status);
    }
    place_close(&p);
}

/* With the size in dims, an input may come in the shape of the bound. */
TEST_DEVICES(bound, takes_inputs_in_the_shape_of_the_bound)
{
    struct place p;
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8];
    rlx_dim_size size = {"n", 3};
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {2, 4}, x, sizeof x}};
    rlx_binding out = {"out0", {RLX_DTYPE_f32, 0, {0}, y, sizeof y}};

    if (place_open(t, &p, test_device(t), NULL) && expect_ok(t, place_build(&p, COPY, NULL))) {
        expect_ok(t, rlx_session_set_bound(p.session, "n", 4, &p.err));
        expect_ok(
            t, rlx_session_run(p.session,
                               &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, &size, 1},
                               &p.err));
        expect_eq(t, out.tensor.dim[1], 3);
        const float want[6] = {1, 4, 9, 25, 36, 49};
        expect_close(t, y, want, 6, 0, 0);
        size.size = 5;
        expect_status(
            t,
            rlx_session_run(p.session,
                            &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, &size, 1},
                            &p.err),
            RLX_ERROR_EXTENT);
        expect_status(
            t,
            rlx_session_run(p.session,
                            &(rlx_run_desc){RLX_SIZED(rlx_run_desc), NULL, 0, &out, 1, NULL, 0},
                            &p.err),
            RLX_ERROR_UNBOUND_DIM);
    }
    place_close(&p);
}

/* ---- what nothing reads ---- */

/* %u is read by nothing, and m is of nothing that is computed. */
#define UNREAD                                                                                \
    "dim n <= 12 dim m <= 5 graph (input %x: f32[n], input %u: f32[n,2], input %k: f32[m]) {" \
    " %d = exp %k %y = neg %x return %y }"

static rlx_status run_unread(struct place *p, int64_t n, int64_t m, float *y)
{
    float x[12], u[24] = {0}, k[5] = {0};
    const rlx_binding in[] = {{"x", {RLX_DTYPE_f32, 1, {n}, x, (size_t)n * sizeof *x}},
                              {"u", {RLX_DTYPE_f32, 2, {n, 2}, u, (size_t)n * 2 * sizeof *u}},
                              {"k", {RLX_DTYPE_f32, 1, {m}, k, (size_t)m * sizeof *k}}};
    rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = 12 * sizeof *y}};

    for (int i = 0; i < 12; i++)
        x[i] = (float)i;
    return rlx_session_run(
        p->session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 3, &out, 1, NULL, 0}, &p->err);
}

TEST_DEVICES(bound, inputs_that_nothing_reads_are_taken_at_any_size)
{
    static const int64_t sizes[][2] = {{12, 5}, {12, 3}, {7, 5}, {7, 2}, {1, 1}, {0, 0}, {12, 5}};
    struct place p;
    float y[12];

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    expect_ok(t, place_build(&p, UNREAD, NULL));
    for (size_t i = 0; i < COUNT_OF(sizes) && p.session; i++) {
        test_note(t, "n %d, m %d", (int)sizes[i][0], (int)sizes[i][1]);
        if (!expect_ok(t, run_unread(&p, sizes[i][0], sizes[i][1], y)))
            fail(t, "%s", p.err.message);
        for (int64_t k = 0; k < sizes[i][0]; k++)
            expect_near(t, y[k], -(double)k, 0);
    }
    /* They are still checked. */
    float x[12] = {0}, u[24] = {0};
    const rlx_binding in[] = {{"x", {RLX_DTYPE_f32, 1, {7}, x, 7 * sizeof *x}},
                              {"u", {RLX_DTYPE_f32, 2, {6, 2}, u, 12 * sizeof *u}}};
    rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
    expect_status(t,
                  rlx_session_run(p.session,
                                  &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0},
                                  &p.err),
                  RLX_ERROR_BINDING);
    place_close(&p);
}

TEST_DEVICES(bound, a_dim_that_nothing_has_needs_no_size)
{
    struct place p;
    float x[4] = {1, 2, 3, 4}, y[4];
    const rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {4}, x, sizeof x}};
    rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
    static const char *const graphs[] = {
        "dim n <= 12 dim other <= 9 graph (input %x: f32[n]) { %y = neg %x return %y }",
        "dim n <= 12 dim other <= 9 graph (input %x: f32[n], input %u: f32[other,2])"
        " { %d = exp %u %y = neg %x return %y }"};

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    for (size_t i = 0; i < COUNT_OF(graphs); i++) {
        expect_ok(t, place_build(&p, graphs[i], NULL));
        if (!expect_ok(t, rlx_session_run(
                              p.session,
                              &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0},
                              &p.err)))
            fail(t, "%s", p.err.message);
        expect_near(t, y[3], -4, 0);
    }
    /* One that something has still does. */
    expect_ok(t, place_build(&p,
                             "dim n <= 12 dim other <= 9 graph (input %x: f32[n]) {"
                             " %r = reshape %x shape=[n,1] %y = expand %r shape=[n,other]"
                             " return %y }",
                             NULL));
    expect_status(
        t,
        rlx_session_run(p.session,
                        &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0}, &p.err),
        RLX_ERROR_UNBOUND_DIM);
    place_close(&p);
}
