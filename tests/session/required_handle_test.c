/* required_handle_test.c: runtime.md 8.2, the rows about what stays on the device between
 * runs: handles, feeds, inputs that did not change, clones. After each refusal the same session
 * runs on. */
#include "required.h"
#include "rlx/tools.h"

static rlx_tensor matrix(float *x, int64_t rows, int64_t cols)
{
    return (rlx_tensor){RLX_DTYPE_f32, 2, {rows, cols}, x, (size_t)(rows * cols) * sizeof *x};
}

static rlx_status run_to(struct place *p, rlx_binding *in, size_t inputs, const char *name,
                         float *y, size_t room, const rlx_dim_size *dim)
{
    rlx_binding out = {name, {.dtype = RLX_DTYPE_f32, .data = y, .bytes = room * sizeof *y}};

    memset(&p->err, 0, sizeof p->err);
    return rlx_session_run(
        p->session,
        &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, inputs, &out, name != NULL, dim, dim != NULL},
        &p->err);
}

/* Two handles around one another, so that a write past an end shows in the neighbour. */
#define PAIR                                                               \
    "graph (input %a: f32[2,2], input %b: f32[2,2], input %x: f32[2,2]) {" \
    " %s = add %a, %b %y = add %s, %x %r = narrow %y axis=0 start=0 len=1 return %y, %r }"

struct pair {
    struct place p;
    float a[8], b[8], x[8], y[8];
    rlx_binding in;
};

static bool open_pair(struct test *t, struct pair *s, const char *device)
{
    memset(s, 0, sizeof *s);
    if (!place_open(t, &s->p, device, NULL) || !expect_ok(t, place_build(&s->p, PAIR, NULL)))
        return false;
    for (int i = 0; i < 8; i++)
        s->a[i] = 10, s->b[i] = 200, s->x[i] = (float)i;
    s->in = (rlx_binding){"x", matrix(s->x, 2, 2)};
    rlx_tensor a = matrix(s->a, 2, 2), b = matrix(s->b, 2, 2);
    return expect_ok(t, rlx_session_bind_handle(s->p.session, "a", &a, &s->p.err)) &&
           expect_ok(t, rlx_session_bind_handle(s->p.session, "b", &b, &s->p.err));
}

/* Whatever was refused: both handles are what they were. */
static void expect_pair(struct test *t, struct pair *s)
{
    static const float want[4] = {210, 211, 212, 213};

    memset(s->y, 0, sizeof s->y);
    expect_ok(t, run_to(&s->p, &s->in, 1, "out0", s->y, 4, NULL));
    expect_close(t, s->y, want, 4, 0, 0);
}

TEST_DEVICES(required, handles_of_wrong_name_or_size_write_nothing)
{
    struct pair s;

    if (!open_pair(t, &s, test_device(t)))
        return place_close(&s.p);
    test_note(t, "row 40");
    rlx_tensor v = matrix(s.x, 2, 2);
    rlx_session_bind_handle(s.p.session, "nobody", &v, &s.p.err);
    expect_error(t, RLX_ERROR_NAME, "a, b, x", &s.p.err);
    expect(t, !rlx_session_has_handle(s.p.session, "nobody"));
    static const int64_t wrong[][2] = {{1, 2}, {3, 2}, {2, 1}, {4, 1}, {0, 2}, {2, 4}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        test_note(t, "rows 41 to 43: %lld by %lld", (long long)wrong[i][0], (long long)wrong[i][1]);
        v = matrix(s.x, wrong[i][0], wrong[i][1]);
        rlx_session_bind_handle(s.p.session, "a", &v, &s.p.err);
        expect_error(t, RLX_ERROR_SHAPE, "\"a\"", &s.p.err);
        expect_pair(t, &s);
    }
    test_note(t, "rows 41 to 43: bytes that do not go with the dims");
    v = matrix(s.x, 2, 2);
    v.bytes = 20;
    rlx_session_bind_handle(s.p.session, "a", &v, &s.p.err);
    expect_error(t, RLX_ERROR_SIZE, "16 bytes", &s.p.err);
    v = (rlx_tensor){RLX_DTYPE_f32, 2, {2, 2}, NULL, 16};
    rlx_session_bind_handle(s.p.session, "a", &v, &s.p.err);
    expect_error(t, RLX_ERROR_ARGUMENT, "NULL", &s.p.err);
    test_note(t, "row 45: what has no room, and what is not bound");
    v = matrix(s.y, 2, 1);
    rlx_session_read_handle(s.p.session, "a", &v, &s.p.err);
    expect_error(t, RLX_ERROR_SIZE, "16 bytes", &s.p.err);
    rlx_session_read_handle(s.p.session, "x", &v, &s.p.err);
    expect_error(t, RLX_ERROR_STATE, "\"x\"", &s.p.err);
    rlx_session_unbind_handle(s.p.session, "x", &s.p.err);
    expect_error(t, RLX_ERROR_STATE, "\"x\"", &s.p.err);
    double value;
    rlx_session_peek(s.p.session, 1000, 0, 1, &value, &s.p.err);
    expect_error(t, RLX_ERROR_ARGUMENT, "1000", &s.p.err);
    expect_pair(t, &s);
    place_close(&s.p);
}

/* Row 64: on every device; the null device computes nothing, but keeps what it is given. */
TEST_DEVICES(required, handles_work_on_every_device)
{
    static const char *const devices[] = {"cpu", "cpu:baseline", "null"};

    for (size_t i = 0; i < COUNT_OF(devices); i++) {
        struct pair s;
        rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE};
        test_note(t, "row 64: %s", devices[i]);
        if (open_pair(t, &s, devices[i])) {
            float back[4] = {0};
            rlx_tensor v = matrix(back, 2, 2);
            expect_ok(t, rlx_session_read_handle(s.p.session, "b", &v, &s.p.err));
            expect_close(t, back, s.b, 4, 0, 0);
            expect_ok(t, rlx_session_set_feed(s.p.session, "a", &feed, &s.p.err));
            expect_ok(t, run_to(&s.p, &s.in, 1, NULL, NULL, 0, NULL));
            expect_ok(t, rlx_session_clear_feed(s.p.session, "a", &s.p.err));
        }
        place_close(&s.p);
    }
}

TEST_DEVICES(required, feeds_that_do_not_fit_are_refused)
{
    static const struct {
        int row;
        const char *name;
        rlx_feed feed;
        rlx_status status;
        const char *part;
    } rows[] = {
        {57, "nobody", {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE}, RLX_ERROR_NAME, "a, b, x"},
        {57, "x", {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE}, RLX_ERROR_STATE, "\"x\""},
        {48,
         "a",
         {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE, .output = 2},
         RLX_ERROR_ARGUMENT,
         "2 outputs"},
        {48,
         "a",
         {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE, .output = SIZE_MAX},
         RLX_ERROR_ARGUMENT,
         "2 outputs"},
        {57,
         "a",
         {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE, .output = 1},
         RLX_ERROR_SHAPE,
         "\"a\""},
        {57, "a", {RLX_SIZED(rlx_feed), .mode = (rlx_feed_mode)-1}, RLX_ERROR_ARGUMENT, "mode"},
        {57,
         "a",
         {RLX_SIZED(rlx_feed), .mode = RLX_FEED_ROW, .dst_row = "nothing"},
         RLX_ERROR_NAME,
         "nothing"},
        {57, "a", {RLX_SIZED(rlx_feed), .mode = RLX_FEED_ROW, .rows = "2*"}, RLX_ERROR_FORMAT, ""},
    };
    /* what only a run can tell */
    static const rlx_feed late[] = {
        {RLX_SIZED(rlx_feed), .mode = RLX_FEED_ROW, .dst_row = "2"},
        {RLX_SIZED(rlx_feed), .mode = RLX_FEED_ROW, .src_row = "2"},
        {RLX_SIZED(rlx_feed), .mode = RLX_FEED_ROW, .dst_row = "1", .rows = "2"},
        {RLX_SIZED(rlx_feed), .mode = RLX_FEED_ROW, .src_row = "9223372036854775807"},
        {RLX_SIZED(rlx_feed), .mode = RLX_FEED_ROW, .dst_row = "9223372036854775807",
         .rows = "9223372036854775807"},
        {RLX_SIZED(rlx_feed), .mode = RLX_FEED_PREFIX, .rows = "3"},
        {RLX_SIZED(rlx_feed), .mode = RLX_FEED_BATCH, .dst_row = "2"},
    };
    struct pair s;

    if (!open_pair(t, &s, test_device(t)))
        return place_close(&s.p);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_note(t, "row %d, case %zu", rows[i].row, i);
        rlx_session_set_feed(s.p.session, rows[i].name, &rows[i].feed, &s.p.err);
        expect_error(t, rows[i].status, rows[i].part, &s.p.err);
        expect_pair(t, &s);
    }
    for (size_t i = 0; i < COUNT_OF(late); i++) {
        test_note(t, "row 46, case %zu", i);
        expect_ok(t, rlx_session_set_feed(s.p.session, "a", &late[i], &s.p.err));
        expect_status(t, run_to(&s.p, &s.in, 1, NULL, NULL, 0, NULL), RLX_ERROR_SIZE);
        expect_contains(t, s.p.err.message, "\"a\"");
        expect_ok(t, rlx_session_clear_feed(s.p.session, "a", &s.p.err));
        expect_pair(t, &s);
    }
    place_close(&s.p);
}

/* Row 46: a run whose feeds do not all fit is refused before it changes anything. */
TEST_DEVICES(required, a_feed_that_does_not_fit_stops_the_run)
{
    struct place p;
    float a[4] = {1, 2, 3, 4}, row[2] = {9, 9}, y[8], zero[6] = {0}, state[6];
    int32_t at = 1;
    rlx_tensor v = matrix(a, 2, 2), read = matrix(y, 2, 2), kept = matrix(state, 3, 2);
    rlx_feed whole = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE},
             late = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_ROW, .dst_row = "at+1"};

    if (!place_open(t, &p, test_device(t), NULL) ||
        !expect_ok(t, place_build(&p,
                                  "dim at graph (input %a: f32[2,2], input %b: f32[2,2],"
                                  " input %r: f32[1,2], input %i: i32[], input %x: f32[at],"
                                  " state %s: f32[3,2]) { %y = neg %a"
                                  " %c = cache_append %s, %r, %i axis=0 return %y, %c }",
                                  NULL)))
        return place_close(&p);
    expect_ok(t, rlx_session_bind_handle(p.session, "a", &v, &p.err));
    expect_ok(t, rlx_session_bind_handle(p.session, "b", &v, &p.err));
    expect_ok(t, rlx_session_set_feed(p.session, "a", &whole, &p.err));
    expect_ok(t, rlx_session_set_feed(p.session, "b", &late, &p.err));
    rlx_binding in[2] = {{"r", matrix(row, 1, 2)}, {"i", {RLX_DTYPE_i32, 0, {0}, &at, 4}}};
    rlx_dim_size no = {"at", 1}, yes = {"at", 0};
    expect_status(t, run_to(&p, in, 2, NULL, NULL, 0, &no), RLX_ERROR_SIZE);
    expect_contains(t, p.err.message, "\"b\"");
    expect_ok(t, rlx_session_read_handle(p.session, "a", &read, &p.err));
    expect_close(t, y, a, 4, 0, 0);
    expect_ok(t, rlx_session_get_state(p.session, "s", &kept, &p.err));
    expect_close(t, state, zero, 6, 0, 0);
    expect_ok(t, run_to(&p, in, 2, NULL, NULL, 0, &yes));
    expect_ok(t, rlx_session_read_handle(p.session, "b", &read, &p.err));
    expect_close(t, y, ((const float[]){1, 2, -1, -2}), 4, 0, 0);
    expect_ok(t, rlx_session_get_state(p.session, "s", &kept, &p.err));
    expect_near(t, state[2], 9, 0);
    place_close(&p);
}

/* Rows 46 and 54: a row number below 0 is an error, not a place before the handle. */
TEST_DEVICES(required, row_numbers_below_zero_are_errors)
{
    struct place p;
    float h[8] = {1, 2, 3, 4}, y[8], back[8];
    rlx_tensor v = matrix(h, 2, 2), read = matrix(back, 4, 2);
    rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_ROW, .dst_row = "n-2"};

    if (!place_open(t, &p, test_device(t), NULL) ||
        !expect_ok(t, place_build(&p,
                                  "dim n <= 4 graph (input %h: f32[n,2])"
                                  " { %y = pad %h before=[1,0] after=[0,0] value=7 return %y }",
                                  NULL)))
        return place_close(&p);
    expect_ok(t, rlx_session_bind_handle(p.session, "h", &v, &p.err));
    expect_ok(t, rlx_session_set_feed(p.session, "h", &feed, &p.err));
    rlx_dim_size one = {"n", 1}, two = {"n", 2};
    expect_status(t, run_to(&p, NULL, 0, "out0", y, 8, &one), RLX_ERROR_BINDING);
    expect_ok(t, rlx_session_read_handle(p.session, "h", &read, &p.err));
    expect_eq(t, read.dim[0], 2);
    expect_close(t, back, h, 4, 0, 0);
    expect_ok(t, run_to(&p, NULL, 0, "out0", y, 8, &two));
    expect_ok(t, rlx_session_read_handle(p.session, "h", &read, &p.err));
    expect_close(t, back, ((const float[]){7, 7, 3, 4}), 4, 0, 0);
    place_close(&p);
}

/* Row 49: feeds and selection do not depend on how the schedule ends. */
TEST_DEVICES(required, feeds_follow_every_schedule)
{
    static const char *const ends[] = {
        "graph @main (input %h: f32[2,2]) { %y = add %h, %h return %y, %h }",
        "graph @main (input %h: f32[2,2])"
        " { %k = const f32[] {1} %y = while %h, %k max_iterations=3 cond_graph=@c body_graph=@b "
        "return %y }"
        " graph @c (input %x: f32[2,2], input %k: f32[]) { %z = const f32[] {0} %r = gt %k, %z"
        " return %r }"
        " graph @b (input %x: f32[2,2], input %k: f32[]) { %a = add %x, %x %m = sub %k, %k"
        " return %a, %m }",
        "graph @main (input %h: f32[2,2]) { %o = const f32[] {0} %m = reduce_max %h axes=[0,1]"
        " %p = gt %m, %o %y = if %p, %h then_graph=@f else_graph=@f return %y }"
        " graph @f (input %x: f32[2,2]) { %a = add %x, %x return %a }",
        "graph @main (input %h: f32[2,2]) { %d = add %h, %h %y = reshape %d shape=[2,2] return %y "
        "}",
        "graph @main (input %h: f32[2,2]) { %t = const f32[2,2] {2 2 2 2} %m = mul %h, %t"
        " %q = sort %m axis=1 return %q }",
    };
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return place_close(&p);
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        float h[4] = {1, 2, 3, 4}, back[4];
        rlx_tensor v = matrix(h, 2, 2), read = matrix(back, 2, 2);
        rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE};
        test_note(t, "row 49: %s", ends[i]);
        expect_ok(t, place_build(&p, ends[i], NULL));
        expect_ok(t, rlx_session_bind_handle(p.session, "h", &v, &p.err));
        expect_ok(t, rlx_session_set_feed(p.session, "h", &feed, &p.err));
        for (int k = 0; k < 3; k++)
            expect_ok(t, run_to(&p, NULL, 0, k % 2 ? "out0" : NULL, back, 4, NULL));
        expect_ok(t, rlx_session_read_handle(p.session, "h", &read, &p.err));
        expect_close(t, back, ((const float[]){8, 16, 24, 32}), 4, 0, 0);
    }
    place_close(&p);
}

/* Row 55 and 4.7: an output that is the handle itself is what the run had, not what it was fed. */
TEST_DEVICES(required, outputs_are_those_of_the_run)
{
    struct place p;
    float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, y[4], back[4];
    rlx_tensor va = matrix(a, 2, 2), vb = matrix(b, 2, 2), read = matrix(back, 2, 2);

    if (!place_open(t, &p, test_device(t), NULL) ||
        !expect_ok(t, place_build(&p,
                                  "graph (input %a: f32[2,2], input %b: f32[2,2])"
                                  " { return %b, %a }",
                                  NULL)))
        return place_close(&p);
    expect_ok(t, rlx_session_bind_handle(p.session, "a", &va, &p.err));
    expect_ok(t, rlx_session_bind_handle(p.session, "b", &vb, &p.err));
    for (size_t i = 0; i < 2; i++) {
        rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE, .output = i};
        expect_ok(t, rlx_session_set_feed(p.session, i ? "b" : "a", &feed, &p.err));
    }
    for (int i = 0; i < 4; i++) { /* they change places in every run */
        test_note(t, "run %d", i);
        expect_ok(t, run_to(&p, NULL, 0, "out0", y, 4, NULL));
        expect_close(t, y, i % 2 ? a : b, 4, 0, 0);
        expect_ok(t, rlx_session_read_handle(p.session, "a", &read, &p.err));
        expect_close(t, back, i % 2 ? a : b, 4, 0, 0);
        expect_ok(t, rlx_session_read_handle(p.session, "b", &read, &p.err));
        expect_close(t, back, i % 2 ? b : a, 4, 0, 0);
    }
    place_close(&p);
}

/* Rows 44 and 55: "unchanged" and equal bytes are what the slot holds, whatever wrote it since. */
TEST_DEVICES(required, skipped_uploads_are_never_stale)
{
    enum { N = 1500 }; /* more than 4 KiB */
    static float x[N], h[N], y[N];
    const rlx_session_desc changed = {RLX_SIZED(rlx_session_desc), .uploads = RLX_UPLOADS_CHANGED};
    struct place p;
    rlx_tensor value = {RLX_DTYPE_f32, 1, {N}, h, sizeof h};
    rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {N}, x, sizeof x}}, same = in, few = in;

    same.tensor.data = RLX_UNCHANGED;
    few.tensor.dim[0] = N - 100, few.tensor.bytes = (N - 100) * sizeof *x;
    if (!place_open(t, &p, test_device(t), NULL) ||
        !expect_ok(t, place_build(&p, "dim n graph (input %x: f32[n]) { %y = neg %x return %y }",
                                  &changed)))
        return place_close(&p);
    x[N - 1] = 1, h[N - 1] = 2;
    rlx_dim_size n = {"n", N};
    test_note(t, "row 44: there is nothing yet");
    expect_status(t, run_to(&p, &same, 1, "out0", y, N, &n), RLX_ERROR_MISSING_INPUT);
    expect_ok(t, run_to(&p, &in, 1, "out0", y, N, NULL));
    expect_ok(t, run_to(&p, &same, 1, "out0", y, N, &n));
    expect_near(t, y[N - 1], -1, 0);
    test_note(t, "row 55: another program in between");
    expect_ok(t, run_to(&p, &few, 1, "out0", y, N, NULL));
    expect_ok(t, run_to(&p, &in, 1, "out0", y, N, NULL));
    expect_near(t, y[N - 1], -1, 0);
    test_note(t, "row 55: a handle in between");
    expect_ok(t, rlx_session_bind_handle(p.session, "x", &value, &p.err));
    expect_ok(t, run_to(&p, NULL, 0, "out0", y, N, NULL));
    expect_near(t, y[N - 1], -2, 0);
    expect_ok(t, rlx_session_unbind_handle(p.session, "x", &p.err));
    expect_status(t, run_to(&p, &same, 1, "out0", y, N, &n), RLX_ERROR_MISSING_INPUT);
    expect_ok(t, run_to(&p, &in, 1, "out0", y, N, NULL));
    expect_near(t, y[N - 1], -1, 0);
    test_note(t, "row 55: a handle that is fed in between");
    expect_ok(t, rlx_session_bind_handle(p.session, "x", &value, &p.err));
    rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE};
    expect_ok(t, rlx_session_set_feed(p.session, "x", &feed, &p.err));
    expect_ok(t, run_to(&p, NULL, 0, "out0", y, N, NULL));
    expect_ok(t, run_to(&p, NULL, 0, "out0", y, N, NULL));
    expect_near(t, y[N - 1], 2, 0);
    expect_status(t, run_to(&p, &in, 1, "out0", y, N, NULL), RLX_ERROR_STATE);
    expect_ok(t, rlx_session_unbind_handle(p.session, "x", &p.err));
    expect_ok(t, run_to(&p, &in, 1, "out0", y, N, NULL));
    expect_near(t, y[N - 1], -1, 0);
    place_close(&p);
}

/* Row 60: a run without outputs says nothing about them and writes none. */
TEST_DEVICES(required, execute_only_runs_hand_out_nothing)
{
    struct pair s;
    uint64_t ticket;

    if (!open_pair(t, &s, test_device(t)))
        return place_close(&s.p);
    test_note(t, "row 60");
    memset(s.y, 0x55, sizeof s.y);
    float before[8];
    memcpy(before, s.y, sizeof before);
    rlx_binding out = {"out0", matrix(s.y, 2, 2)};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &s.in, 1, &out, 0, NULL, 0};
    expect_ok(t, rlx_session_run(s.p.session, &run, &s.p.err));
    expect_ok(t, rlx_session_submit(s.p.session, &run, &ticket, &s.p.err));
    expect_ok(t, rlx_session_wait(s.p.session, ticket, NULL, &s.p.err));
    expect_bytes(t, s.y, before, sizeof before);
    expect_pair(t, &s);
    place_close(&s.p);
}

/* Row 63: clones, on every device, with bounds, handles and feeds. */
TEST_DEVICES(required, clones_work_on_every_device)
{
    static const char *const devices[] = {"cpu", "cpu:baseline", "null"};

    for (size_t i = 0; i < COUNT_OF(devices); i++) {
        struct place p;
        float h[6] = {1, 2, 3, 4, 5, 6}, y[8] = {0}, back[8];
        rlx_tensor v = matrix(h, 2, 2), read = matrix(back, 4, 2);
        rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE};
        rlx_bound_info info = {RLX_SIZED(rlx_bound_info)};
        rlx_session *clone = NULL;
        test_note(t, "row 63: %s", devices[i]);
        if (place_open(t, &p, devices[i], NULL) &&
            expect_ok(
                t, place_build(&p, "dim n graph (input %h: f32[n,2]) { %y = add %h, %h return %y }",
                               NULL))) {
            expect_ok(t, rlx_session_set_bound(p.session, "n", 4, &p.err));
            expect_ok(t, rlx_session_bind_handle(p.session, "h", &v, &p.err));
            expect_ok(t, rlx_session_set_feed(p.session, "h", &feed, &p.err));
            rlx_session_clone(p.session, 2, &clone, &p.err);
            expect_error(t, RLX_ERROR_ARGUMENT, "2", &p.err);
            expect(t, clone == NULL);
            expect_ok(t, rlx_session_clone(p.session, 0, &clone, &p.err));
            expect_ok(t, rlx_session_bound(clone, "n", &info, &p.err));
            expect_eq(t, info.bound, 4);
            expect_ok(t, run_to(&p, NULL, 0, "out0", y, 8, NULL));
            expect_ok(t, rlx_session_read_handle(clone, "h", &read, &p.err)); /* its own */
            expect_close(t, back, h, 4, 0, 0);
            rlx_session_destroy(p.session);
            p.session = clone;
            expect_ok(t, run_to(&p, NULL, 0, "out0", y, 8, NULL));
            expect_ok(t, run_to(&p, NULL, 0, "out0", y, 8, NULL));
            if (i < 2)
                expect_close(t, y, ((const float[]){4, 8, 12, 16}), 4, 0, 0);
        }
        place_close(&p);
    }
}
