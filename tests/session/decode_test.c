/* decode_test.c: runtime.md 10, line 7: generating token by token, with what came before
 * kept on the device, gives what computing all tokens at once gives: over three buckets' worth of
 * tokens, with two changes to a larger bucket, for one and for two sequences at a time, in both
 * forms that 4.7 knows, and with a state in place of handles. */
#include <math.h>

#include "required.h"

enum { WIDTH = 4, BUCKET = 8, TOKENS = 3 * BUCKET, MOST_BATCH = 2 };

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

static void token(float *x, int64_t batch, int64_t number)
{
    for (int64_t i = 0; i < WIDTH; i++)
        x[i] = sinf((float)(batch * 31 + number * 7 + i));
}

static void set_weight(struct test *t, struct place *p)
{
    float w[16];
    rlx_tensor value = matrix(w, 4, 4);

    for (int i = 0; i < 16; i++)
        w[i] = cosf((float)i);
    expect_ok(t, rlx_session_set_param(p->session, "w", &value, &p->err));
    for (int i = 0; i < 16; i++)
        w[i] = sinf((float)(3 * i));
    expect_ok(t, rlx_session_set_param(p->session, "u", &value, &p->err));
}

/* ---- all tokens at once ---- */

#define FULL                                                                     \
    "dim n graph (input %x: f32[n,4], param %w: f32[4,4], param %u: f32[4,4]) {" \
    " %k = matmul %x, %w %v = matmul %x, %u %q = reshape %x shape=[1,1,n,4]"     \
    " %a = reshape %k shape=[1,1,n,4] %b = reshape %v shape=[1,1,n,4]"           \
    " %o = attention %q, %a, %b num_heads=1 head_dim=4 mask_kind=causal"         \
    " %y = reshape %o shape=[n,4] return %y }"

static bool full_rows(struct test *t, int64_t batch, float *y)
{
    struct place p;
    float x[TOKENS * WIDTH];
    rlx_binding in = {"x", matrix(x, TOKENS, WIDTH)};
    bool ok = place_open(t, &p, test_device(t), NULL) && expect_ok(t, place_build(&p, FULL, NULL));

    for (int64_t i = 0; i < TOKENS; i++)
        token(x + i * WIDTH, batch, i);
    if (ok) {
        set_weight(t, &p);
        ok = expect_ok(t, run_to(&p, &in, 1, y, TOKENS * WIDTH, NULL, 0));
    }
    place_close(&p);
    return ok;
}

/* ---- token by token ---- */

/* One attention layer over what came so far, for B sequences. Outputs 1 and 2 are the new rows of
 * keys and values, or, in the older form, all rows with the new one last. */
#define LEAVES                                                             \
    "dim past graph (input %x: f32[B,1,4], input %ko: f32[B,past,4],"      \
    " input %vo: f32[B,past,4], param %w: f32[4,4], param %u: f32[4,4]) {" \
    " %k = matmul %x, %w %v = matmul %x, %u %ka = concat %ko, %k axis=1"   \
    " %va = concat %vo, %v axis=1"                                         \
    " %y = attention %x, %ka, %va num_heads=1 head_dim=4 layout=packed"
#define NEW_ROWS LEAVES " return %y, %k, %v }"
#define ALL_ROWS LEAVES " return %y, %ka, %va }"
/* The same for one sequence, without an axis for it: rows are the first axis. */
#define FLAT                                                                              \
    "dim past graph (input %x: f32[1,4], input %ko: f32[past,4], input %vo: f32[past,4]," \
    " param %w: f32[4,4], param %u: f32[4,4]) {"                                          \
    " %k = matmul %x, %w %v = matmul %x, %u %ka = concat %ko, %k axis=0"                  \
    " %va = concat %vo, %v axis=0 %q = reshape %x shape=[1,1,1,4]"                        \
    " %a = reshape %ka shape=[1,1,past+1,4] %b = reshape %va shape=[1,1,past+1,4]"        \
    " %o = attention %q, %a, %b num_heads=1 head_dim=4 %y = reshape %o shape=[1,4]"
#define FLAT_NEW FLAT " return %y, %k, %v }"
#define FLAT_ALL FLAT " return %y, %ka, %va }"

struct loop {
    const char *graph;
    int32_t batch; /* 0: one sequence, without an axis for it */
    rlx_feed_mode mode;
    const char *src_row;
};

static const struct loop loops[] = {
    {FLAT_NEW, 0, RLX_FEED_ROW, NULL},   {FLAT_ALL, 0, RLX_FEED_ROW, "past"},
    {NEW_ROWS, 1, RLX_FEED_BATCH, NULL}, {ALL_ROWS, 1, RLX_FEED_BATCH, "past"},
    {NEW_ROWS, 2, RLX_FEED_BATCH, NULL}, {ALL_ROWS, 2, RLX_FEED_BATCH, "past"},
};

static const char *const handles[] = {"ko", "vo"};

static bool set_feeds(struct test *t, struct place *p, rlx_session *s, const struct loop *l)
{
    bool ok = true;

    for (size_t i = 0; i < 2; i++) {
        const rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = l->mode, .output = 1 + i,
                               .src_row = l->src_row, .dst_row = "past"};
        ok &= expect_ok(t, rlx_session_set_feed(s, handles[i], &feed, &p->err));
    }
    return ok;
}

/* The first bucket, with nothing in it. */
static bool start(struct test *t, struct place *p, const struct loop *l)
{
    char text[1024];
    float none[1] = {0};
    rlx_tensor empty = {RLX_DTYPE_f32, 3, {l->batch, 0, WIDTH}, none, 0};
    size_t n = 0;

    for (const char *c = l->graph; *c; c++)
        text[n++] = (char)(*c == 'B' ? '0' + l->batch : *c);
    text[n] = 0;
    if (!expect_ok(t, place_build(p, text, NULL)))
        return fail(t, "%s", p->err.message);
    set_weight(t, p);
    if (l->batch == 0)
        empty = matrix(none, 0, WIDTH);
    expect_ok(t, rlx_session_set_bound(p->session, "past", BUCKET, &p->err));
    for (size_t i = 0; i < 2; i++)
        expect_ok(t, rlx_session_bind_handle(p->session, handles[i], &empty, &p->err));
    return set_feeds(t, p, p->session, l);
}

/* A session of the same model with twice the bound takes the handles over, on the device. */
static bool grow(struct test *t, struct place *p, const struct loop *l, int64_t upper)
{
    rlx_session *next = NULL;

    if (!expect_ok(t, rlx_session_create(p->model, p->dev, NULL, &next, &p->err)))
        return false;
    expect_ok(t, rlx_session_set_bound(next, "past", upper, &p->err));
    for (size_t i = 0; i < 2; i++)
        expect_ok(t, rlx_session_copy_handle(next, p->session, handles[i], &p->err));
    bool ok = set_feeds(t, p, next, l);
    rlx_session_destroy(p->session);
    p->session = next;
    return ok;
}

static bool step(struct test *t, struct place *p, const struct loop *l, int64_t past, float *y)
{
    float x[MOST_BATCH * WIDTH];
    int32_t batch = l->batch ? l->batch : 1;
    rlx_binding in = {"x", {RLX_DTYPE_f32, 3, {batch, 1, WIDTH}, x, 0}};
    const rlx_dim_size dim = {"past", past};

    if (l->batch == 0)
        in.tensor = matrix(x, 1, WIDTH);
    in.tensor.bytes = (size_t)batch * WIDTH * sizeof *x;
    for (int32_t b = 0; b < batch; b++)
        token(x + b * WIDTH, b, past);
    if (expect_ok(t, run_to(p, &in, 1, y, MOST_BATCH * WIDTH, &dim, 1)))
        return true;
    return fail(t, "%s", p->err.message);
}

static void run_loop(struct test *t, struct place *p, const struct loop *l,
                     float (*want)[TOKENS * WIDTH])
{
    int64_t upper = BUCKET, changes = 0;
    float y[MOST_BATCH * WIDTH];

    if (!start(t, p, l))
        return;
    for (int64_t past = 0; past < TOKENS; past++) {
        test_note(t, "batch %d, source row %s, past %lld", l->batch, l->src_row ? l->src_row : "0",
                  (long long)past);
        if (past == upper) {
            upper *= 2;
            changes++;
            if (!grow(t, p, l, upper))
                return;
        }
        if (!step(t, p, l, past, y))
            return;
        for (int32_t b = 0; b < (l->batch ? l->batch : 1); b++)
            expect_close(t, y + b * WIDTH, want[b] + past * WIDTH, WIDTH, 1e-5, 1e-6);
    }
    expect_eq(t, changes, 2);
}

TEST_DEVICES(decode, loops_equal_recomputation_across_two_bucket_changes)
{
    static float want[MOST_BATCH][TOKENS * WIDTH];
    struct place p;

    if (!full_rows(t, 0, want[0]) || !full_rows(t, 1, want[1]))
        return;
    if (place_open(t, &p, test_device(t), NULL))
        for (size_t i = 0; i < COUNT_OF(loops); i++)
            run_loop(t, &p, &loops[i], want);
    place_close(&p);
}

/* Past the last bucket there is an error, and the handle still holds all that was decoded. */
TEST_DEVICES(decode, a_full_bucket_says_so_and_keeps_its_rows)
{
    static float want[MOST_BATCH][TOKENS * WIDTH];
    float y[MOST_BATCH * WIDTH], before[BUCKET * WIDTH], after[BUCKET * WIDTH], x[WIDTH];
    struct place p;

    if (!full_rows(t, 0, want[0]))
        return;
    if (!place_open(t, &p, test_device(t), NULL) || !start(t, &p, &loops[0]))
        return place_close(&p);
    for (int64_t past = 0; past < BUCKET; past++)
        step(t, &p, &loops[0], past, y);
    rlx_tensor value = matrix(before, BUCKET, WIDTH);
    expect_ok(t, rlx_session_read_handle(p.session, "ko", &value, &p.err));
    expect_eq(t, value.dim[0], BUCKET);
    token(x, 0, BUCKET);
    rlx_binding in = {"x", matrix(x, 1, WIDTH)};
    /* of BUCKET + 1 rows of keys, the last one has no place to go */
    expect_status(t, run_to(&p, &in, 1, y, WIDTH, &(rlx_dim_size){"past", BUCKET}, 1),
                  RLX_ERROR_SIZE);
    expect_status(t, run_to(&p, &in, 1, y, WIDTH, &(rlx_dim_size){"past", BUCKET + 1}, 1),
                  RLX_ERROR_EXTENT);
    value = matrix(after, BUCKET, WIDTH);
    expect_ok(t, rlx_session_read_handle(p.session, "ko", &value, &p.err));
    expect_bytes(t, after, before, sizeof before);
    if (grow(t, &p, &loops[0], 2 * BUCKET) && step(t, &p, &loops[0], BUCKET, y))
        expect_close(t, y, want[0] + BUCKET * WIDTH, WIDTH, 1e-5, 1e-6);
    place_close(&p);
}

/* With a state that an op appends to there are no feeds at all, nor buckets. */
TEST_DEVICES(decode, loop_with_a_state)
{
    static const char graph[] =
        "dim past <= 24 graph (input %x: f32[1,4], input %at: i32[], state %ks: f32[25,4],"
        " state %vs: f32[25,4], param %w: f32[4,4], param %u: f32[4,4]) {"
        " %k = matmul %x, %w %c = cache_append %ks, %k, %at axis=0"
        " %v = matmul %x, %u %d = cache_append %vs, %v, %at axis=0"
        " %ka = narrow %c axis=0 start=0 len=past+1 %va = narrow %d axis=0 start=0 len=past+1"
        " %q = reshape %x shape=[1,1,1,4] %a = reshape %ka shape=[1,1,past+1,4]"
        " %b = reshape %va shape=[1,1,past+1,4]"
        " %o = attention %q, %a, %b num_heads=1 head_dim=4 %y = reshape %o shape=[1,4]"
        " return %y }";
    float want[TOKENS * WIDTH], x[WIDTH], y[WIDTH];
    struct place p;
    int32_t at;

    if (!full_rows(t, 0, want))
        return;
    if (!place_open(t, &p, test_device(t), NULL) || !expect_ok(t, place_build(&p, graph, NULL))) {
        fail(t, "%s", p.err.message);
        return place_close(&p);
    }
    set_weight(t, &p);
    for (int64_t past = 0; past < TOKENS; past++) {
        rlx_binding in[2] = {{"x", matrix(x, 1, WIDTH)},
                             {"at", {RLX_DTYPE_i32, 0, {0}, &at, sizeof at}}};
        const rlx_dim_size dim = {"past", past};
        at = (int32_t)past;
        token(x, 0, past);
        test_note(t, "past %lld", (long long)past);
        if (!expect_ok(t, run_to(&p, in, 2, y, WIDTH, &dim, 1)))
            fail(t, "%s", p.err.message);
        expect_close(t, y, want + past * WIDTH, WIDTH, 1e-5, 1e-6);
    }
    place_close(&p);
}
