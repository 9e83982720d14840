/* cache_test.c: sessions by key and by size, and runs padded to a size that was compiled. */
#include "rlx/cache.h"

#include <stdio.h>
#include <string.h>

#include "rlx/graph.h"
#include "test.h"

struct world {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_error err;
    int made;     /* sessions */
    bool refuse;  /* the next one */
    bool nothing; /* succeed, but make none */
};

static bool open_world(struct test *t, struct world *w)
{
    *w = (struct world){0};
    return expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &w->ctx, &w->err)) &&
           expect_ok(t, rlx_device_open(w->ctx, "cpu", &w->dev, &w->err));
}

static void close_world(struct world *w)
{
    rlx_device_close(w->dev);
    rlx_context_destroy(w->ctx);
}

/* y = x * 2 of `rows` rows of three. */
static rlx_status make(void *user, uint64_t rows, rlx_session **out, rlx_error *err)
{
    struct world *w = user;
    rlx_model *m = NULL;
    char text[256];

    if (w->refuse)
        return RLX_ERROR_UNSUPPORTED;
    if (w->nothing)
        return RLX_OK;
    snprintf(text, sizeof text,
             "rlx 1\ngraph (input %%x: f32[%llu,3], input %%k: f32[]) {\n    %%y = mul %%x, %%k\n"
             "    %%s = reduce_sum %%k axes=[]\n    return %%y, %%s\n}\n",
             (unsigned long long)rows);
    rlx_status s = rlx_model_parse(w->ctx, rlx_cstr(text), &m, err);
    if (s == RLX_OK)
        s = rlx_session_create(m, w->dev, NULL, out, err);
    rlx_model_destroy(m);
    w->made += s == RLX_OK;
    return s;
}

/* ---- by key ---- */

TEST(cache, the_least_recently_used_goes)
{
    struct world w;
    rlx_cache *c = NULL;
    rlx_session *s, *first;

    if (!open_world(t, &w))
        return close_world(&w);
    require_ok(t, rlx_cache_create(w.ctx, 2, 0, &c, &w.err));
    require_ok(t, rlx_cache_get(c, 1, make, &w, &first, &w.err));
    require_ok(t, rlx_cache_get(c, 2, make, &w, &s, &w.err));
    expect(t, s != first);
    require_ok(t, rlx_cache_get(c, 1, make, &w, &s, &w.err));
    expect(t, s == first);
    expect_eq(t, w.made, 2);
    require_ok(t, rlx_cache_get(c, 3, make, &w, &s, &w.err)); /* 2 goes, not 1 */
    expect_eq_u64(t, rlx_cache_count(c), 2);
    require_ok(t, rlx_cache_get(c, 1, make, &w, &s, &w.err));
    expect_eq(t, w.made, 3);
    require_ok(t, rlx_cache_get(c, 2, make, &w, &s, &w.err));
    expect_eq(t, w.made, 4);
    rlx_cache_destroy(c);
    rlx_cache_destroy(NULL);
    close_world(&w);
}

TEST(cache, keeps_to_its_bytes_but_never_below_one)
{
    struct world w;
    rlx_cache *c = NULL;
    rlx_session *s;
    rlx_memory_info one = {RLX_SIZED(rlx_memory_info)};

    if (!open_world(t, &w))
        return close_world(&w);
    require_ok(t, make(&w, 1000, &s, &w.err));
    require_ok(t, rlx_session_memory(s, &one, &w.err));
    rlx_session_destroy(s);
    require_ok(t, rlx_cache_create(w.ctx, 10, 2 * one.activations + one.activations / 2, &c, NULL));
    for (uint64_t key = 1000; key < 1004; key++)
        require_ok(t, rlx_cache_get(c, key, make, &w, &s, &w.err));
    expect_eq_u64(t, rlx_cache_count(c), 2);
    require_ok(t, rlx_cache_get(c, 100000, make, &w, &s, &w.err)); /* larger than all it may */
    expect_eq_u64(t, rlx_cache_count(c), 1);
    expect_ok(t, rlx_session_memory(s, &one, &w.err)); /* and usable */
    rlx_cache_destroy(c);
    close_world(&w);
}

TEST(cache, refuses_bad_calls_and_passes_failures_on)
{
    struct world w;
    rlx_cache *c = NULL;
    rlx_session *s = NULL;

    if (!open_world(t, &w))
        return close_world(&w);
    expect_status(t, rlx_cache_create(w.ctx, 0, 0, &c, &w.err), RLX_ERROR_ARGUMENT);
    expect_contains(t, w.err.message, "capacity is 0");
    expect_status(t, rlx_cache_create(NULL, 1, 0, &c, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_cache_create(w.ctx, 1, 0, NULL, &w.err), RLX_ERROR_ARGUMENT);
    require_ok(t, rlx_cache_create(w.ctx, 1, 0, &c, &w.err));
    expect_status(t, rlx_cache_get(NULL, 1, make, &w, &s, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_cache_get(c, 1, NULL, &w, &s, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_cache_get(c, 1, make, &w, NULL, &w.err), RLX_ERROR_ARGUMENT);
    w.refuse = true;
    expect_status(t, rlx_cache_get(c, 1, make, &w, &s, &w.err), RLX_ERROR_UNSUPPORTED);
    expect_contains(t, w.err.message, "key 1");
    w.refuse = false;
    w.nothing = true;
    expect_status(t, rlx_cache_get(c, 1, make, &w, &s, &w.err), RLX_ERROR_ARGUMENT);
    w.nothing = false;
    expect_eq_u64(t, rlx_cache_count(c), 0);
    expect_ok(t, rlx_cache_get(c, 1, make, &w, &s, &w.err)); /* still works */
    expect(t, s != NULL);
    rlx_cache_destroy(c);
    close_world(&w);
}

TEST(cache, a_model_has_a_key)
{
    const char *text = "rlx 1\ngraph (input %x: f32[2]) {\n    %y = neg %x\n    return %y\n}\n";
    const char *other = "rlx 1\ngraph (input %x: f32[2]) {\n    %y = abs %x\n    return %y\n}\n";
    const rlx_session_desc plain = {RLX_SIZED(rlx_session_desc)},
                           option = {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_reuse = true)};
    struct world w;
    rlx_model *m[3] = {0};
    uint64_t key[5] = {0};

    if (!open_world(t, &w))
        return close_world(&w);
    require_ok(t, rlx_model_parse(w.ctx, rlx_cstr(text), &m[0], &w.err));
    require_ok(t, rlx_model_parse(w.ctx, rlx_cstr(text), &m[1], &w.err));
    require_ok(t, rlx_model_parse(w.ctx, rlx_cstr(other), &m[2], &w.err));
    expect_ok(t, rlx_model_key(m[0], NULL, &key[0], &w.err));
    expect_ok(t, rlx_model_key(m[1], &plain, &key[1], &w.err));
    expect_ok(t, rlx_model_key(m[2], NULL, &key[2], &w.err));
    expect_ok(t, rlx_model_key(m[0], &option, &key[3], &w.err));
    expect_eq_u64(t, key[0], key[1]);
    expect(t, key[0] != key[2] && key[0] != key[3]);
    expect_status(t, rlx_model_key(NULL, NULL, &key[0], &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_key(m[0], NULL, NULL, &w.err), RLX_ERROR_ARGUMENT);
    for (int i = 0; i < 3; i++)
        rlx_model_destroy(m[i]);
    close_world(&w);
}

/* ---- by size ---- */

static void expect_ladder(struct test *t, int64_t min, int64_t max, const rlx_bucket *want,
                          size_t count)
{
    rlx_bucket got[64];
    size_t n = 64, counted = 0;

    test_note(t, "from %lld to %lld", (long long)min, (long long)max);
    expect_ok(t, rlx_bucket_ladder(min, max, NULL, &counted, NULL));
    expect_ok(t, rlx_bucket_ladder(min, max, got, &n, NULL));
    expect_eq_u64(t, counted, count);
    require(t, n == count);
    for (size_t i = 0; i < n; i++) {
        expect_eq(t, got[i].low, want[i].low);
        expect_eq(t, got[i].high, want[i].high);
    }
}

TEST(cache, ladders_double)
{
    const rlx_bucket worked[] = {{1, 8}, {9, 16}, {17, 32}, {33, 64}, {65, 128}, {129, 256}};
    const rlx_bucket odd[] = {{1, 8}, {9, 16}, {17, 32}}, one[] = {{1, 1}},
                     two[] = {{1, 1}, {2, 2}};
    const int64_t top = INT64_MAX / 2 + 1;

    expect_ladder(t, 8, 256, worked, 6);
    expect_ladder(t, 5, 17, odd, 3);
    expect_ladder(t, 1, 1, one, 1);
    expect_ladder(t, 1, 2, two, 2);
    expect_ladder(t, top, top, (const rlx_bucket[]){{1, top}}, 1);
}

TEST(cache, bad_ladders_are_refused)
{
    rlx_bucket got[2];
    rlx_error err;
    size_t n = 2;

    expect_status(t, rlx_bucket_ladder(0, 8, got, &n, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_bucket_ladder(-3, 8, got, &n, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_bucket_ladder(9, 8, got, &n, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_bucket_ladder(8, 256, got, &n, &err), RLX_ERROR_ARGUMENT); /* no room */
    expect_status(t, rlx_bucket_ladder(8, INT64_MAX, got, &n, &err), RLX_ERROR_ARGUMENT);
    expect_contains(t, err.message, "64 bits");
    expect_status(t, rlx_bucket_ladder(8, 256, got, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_eq_u64(t, n, 2);
}

TEST(cache, buckets_are_compiled_at_their_upper_end)
{
    const rlx_bucket list[] = {{1, 4}, {5, 8}, {20, 30}};
    struct world w;
    rlx_bucket_cache *c = NULL;
    rlx_session *s, *again;
    int64_t upper = 0;
    rlx_tensor shape;

    if (!open_world(t, &w))
        return close_world(&w);
    require_ok(t, rlx_bucket_cache_create(w.ctx, list, 3, &c, &w.err));
    require_ok(t, rlx_bucket_cache_get(c, 5, make, &w, &s, &upper, &w.err));
    expect_eq(t, upper, 8);
    expect_ok(t, rlx_session_output_shape(s, 0, &shape, &w.err));
    expect_eq(t, shape.dim[0], 8);
    require_ok(t, rlx_bucket_cache_get(c, 8, make, &w, &again, NULL, &w.err));
    expect(t, again == s);
    expect_eq(t, w.made, 1);
    require_ok(t, rlx_bucket_cache_get(c, 1, make, &w, &again, &upper, &w.err));
    expect(t, again != s && upper == 4);
    const int64_t outside[] = {0, 9, 19, 31, -1, INT64_MAX};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        again = s;
        expect_ok(t, rlx_bucket_cache_get(c, outside[i], make, &w, &again, &upper, &w.err));
        expect(t, again == NULL);
    }
    w.refuse = true;
    expect_status(t, rlx_bucket_cache_get(c, 25, make, &w, &s, NULL, &w.err),
                  RLX_ERROR_UNSUPPORTED);
    w.refuse = false;
    expect_ok(t, rlx_bucket_cache_get(c, 25, make, &w, &s, &upper, &w.err));
    expect_eq(t, upper, 30);
    rlx_bucket_cache_destroy(c);
    rlx_bucket_cache_destroy(NULL);
    close_world(&w);
}

TEST(cache, bad_buckets_are_refused)
{
    static const rlx_bucket bad[][2] = {
        {{1, 4}, {4, 8}},  /* they overlap */
        {{5, 8}, {1, 4}},  /* falling */
        {{1, 4}, {6, 5}},  /* empty */
        {{-1, 4}, {6, 7}}, /* no size */
        {{1, INT64_MAX}, {6, 7}},
    };
    const rlx_bucket good[] = {{0, 0}, {1, INT64_MAX}};
    struct world w;
    rlx_bucket_cache *c = NULL;

    if (!open_world(t, &w))
        return close_world(&w);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_status(t, rlx_bucket_cache_create(w.ctx, bad[i], 2, &c, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_bucket_cache_create(w.ctx, good, 0, &c, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_bucket_cache_create(w.ctx, NULL, 2, &c, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_bucket_cache_create(NULL, good, 2, &c, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_bucket_cache_create(w.ctx, good, 2, NULL, &w.err), RLX_ERROR_ARGUMENT);
    expect(t, !c);
    expect_ok(t, rlx_bucket_cache_create(w.ctx, good, 2, &c, &w.err));
    rlx_bucket_cache_destroy(c);
    close_world(&w);
}

/* ---- padded ---- */

TEST(padded, rows_are_added_and_taken_away)
{
    float two[6] = {1, 2, 3, 4, 5, 6}, four[12], back[6] = {0};
    rlx_tensor from = {RLX_DTYPE_f32, 2, {2, 3}, two, sizeof two};
    rlx_tensor to = {.data = four, .bytes = sizeof four}, slice = {.data = back, .bytes = 24};
    const float want[12] = {1, 2, 3, 4, 5, 6};

    memset(four, 0x55, sizeof four);
    expect_ok(t, rlx_pad_rows(&from, 3, 2, 4, &to, NULL));
    expect_bytes(t, four, want, sizeof want);
    expect_eq(t, to.dim[0], 4);
    expect_eq(t, to.dim[1], 3);
    expect_eq_u64(t, to.bytes, sizeof four);
    expect_ok(t, rlx_slice_rows(&to, 3, 2, 4, &slice, NULL));
    expect_bytes(t, back, two, sizeof two);
    expect_eq(t, slice.dim[0], 2);
    expect_eq_u64(t, slice.bytes, sizeof two);
    /* none at all, and all of them */
    rlx_tensor none = {RLX_DTYPE_f32, 2, {0, 3}, NULL, 0}, room = {.data = four, .bytes = 48};
    expect_ok(t, rlx_pad_rows(&none, 3, 0, 4, &room, NULL));
    expect_near(t, four[0], 0, 0);
    room = (rlx_tensor){.data = four, .bytes = 24};
    expect_ok(t, rlx_pad_rows(&from, 3, 2, 2, &room, NULL));
    expect_bytes(t, four, two, sizeof two);
}

TEST(padded, wrong_sizes_are_refused)
{
    float two[6] = {0}, four[12];
    rlx_tensor from = {RLX_DTYPE_f32, 2, {2, 3}, two, sizeof two};
    rlx_tensor to = {.data = four, .bytes = sizeof four}, keep = to, bad;
    rlx_error err;

    expect_status(t, rlx_pad_rows(&from, 3, 2, 1, &to, &err), RLX_ERROR_ARGUMENT);
    expect_contains(t, err.message, "2 rows do not fit into 1");
    expect_status(t, rlx_pad_rows(&from, 0, 2, 4, &to, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_pad_rows(&from, -1, 2, 4, &to, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_pad_rows(&from, 4, 2, 4, &to, &err), RLX_ERROR_ARGUMENT);
    expect_contains(t, err.message, "not rows of 16");
    expect_status(t, rlx_pad_rows(&from, 3, 1, 4, &to, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_pad_rows(&from, 3, -1, 4, &to, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_pad_rows(&from, 3, 2, 5, &to, &err), RLX_ERROR_ARGUMENT); /* no room */
    expect_status(t, rlx_pad_rows(&from, 3, 2, INT64_MAX, &to, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_pad_rows(NULL, 3, 2, 4, &to, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_pad_rows(&from, 3, 2, 4, NULL, &err), RLX_ERROR_ARGUMENT);
    bad = from;
    bad.rank = 0;
    expect_status(t, rlx_pad_rows(&bad, 3, 2, 4, &to, &err), RLX_ERROR_ARGUMENT);
    bad = from;
    bad.dim[0] = 3;
    bad.dim[1] = 2;
    expect_status(t, rlx_pad_rows(&bad, 3, 2, 4, &to, &err), RLX_ERROR_ARGUMENT);
    bad = from;
    bad.data = NULL;
    expect_status(t, rlx_pad_rows(&bad, 3, 2, 4, &to, &err), RLX_ERROR_ARGUMENT);
    bad = from;
    bad.dtype = (rlx_dtype)99;
    expect_status(t, rlx_pad_rows(&bad, 3, 2, 4, &to, &err), RLX_ERROR_ARGUMENT);
    expect(t, memcmp(&to, &keep, sizeof to) == 0);
    expect_status(t, rlx_slice_rows(&from, 3, 3, 2, &to, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_slice_rows(&from, 0, 1, 2, &to, &err), RLX_ERROR_ARGUMENT);
    to.bytes = 11;
    expect_status(t, rlx_slice_rows(&from, 3, 1, 2, &to, &err), RLX_ERROR_ARGUMENT);
}

TEST(padded, runs_on_a_session_for_more_rows)
{
    struct world w;
    rlx_session *s = NULL;
    float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, k = 2, y[9] = {0}, sum = 0;
    const int64_t inner[] = {3}, out_inner[] = {3, 0};

    if (!open_world(t, &w))
        return close_world(&w);
    require_ok(t, make(&w, 8, &s, &w.err));
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {3, 3}, x, sizeof x}};
    rlx_binding other = {"k", {RLX_DTYPE_f32, 0, {0}, &k, sizeof k}};
    rlx_binding out[] = {{"y", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}},
                         {"s", {.dtype = RLX_DTYPE_f32, .data = &sum, .bytes = sizeof sum}}};
    rlx_padded_run run = {.actual = 3,
                          .upper = 8,
                          .inputs = &in,
                          .input_inner = inner,
                          .input_count = 1,
                          .others = &other,
                          .other_count = 1,
                          .outputs = out,
                          .output_inner = out_inner,
                          .output_count = 2};
    expect_ok(t, rlx_session_run_padded(s, &run, &w.err));
    for (int i = 0; i < 9; i++)
        expect_near(t, y[i], 2 * x[i], 0);
    expect_near(t, sum, 2, 0);
    expect_eq(t, out[0].tensor.dim[0], 3);
    expect_eq_u64(t, out[0].tensor.bytes, sizeof y);

    run.upper = 2;
    expect_status(t, rlx_session_run_padded(s, &run, &w.err), RLX_ERROR_ARGUMENT);
    run.upper = 9; /* not the session's size */
    expect_status(t, rlx_session_run_padded(s, &run, &w.err), RLX_ERROR_SIZE);
    run.upper = 8;
    out[0].tensor.bytes = 35;
    expect_status(t, rlx_session_run_padded(s, &run, &w.err), RLX_ERROR_ARGUMENT);
    expect_contains(t, w.err.message, "\"y\"");
    out[0].tensor.bytes = sizeof y;
    run.input_inner = (const int64_t[]){0};
    expect_status(t, rlx_session_run_padded(s, &run, &w.err), RLX_ERROR_ARGUMENT);
    expect_contains(t, w.err.message, "\"x\"");
    run.input_inner = NULL;
    expect_status(t, rlx_session_run_padded(s, &run, &w.err), RLX_ERROR_ARGUMENT);
    run.input_inner = inner;
    expect_status(t, rlx_session_run_padded(NULL, &run, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_run_padded(s, NULL, &w.err), RLX_ERROR_ARGUMENT);
    expect_ok(t, rlx_session_run_padded(s, &run, &w.err)); /* still works */
    rlx_session_destroy(s);
    close_world(&w);
}
