/* order_test.c: objects may be destroyed in any order: each keeps alive what it needs. Under the
 * address sanitizer a use of what is gone is seen at once; here, what is never given back. */
#include "required.h"
#include "rlx/cache.h"
#include "rlx/serving.h"
#include "rlx/weights.h"

static void *counted(void *user, void *ptr, size_t old_size, size_t new_size)
{
    size_t *used = user;
    void *now = new_size ? realloc(ptr, new_size) : NULL;

    if (new_size == 0)
        free(ptr);
    if (now || new_size == 0)
        *used += new_size - (ptr ? old_size : 0);
    return now;
}

enum { CONTEXT, DEVICE, MODEL, SESSION, OBJECTS };

static void take_down(struct place *p, int object)
{
    switch (object) {
    case CONTEXT: rlx_context_destroy(p->ctx); break;
    case DEVICE: rlx_device_close(p->dev); break;
    case MODEL: rlx_model_destroy(p->model); break;
    default: rlx_session_destroy(p->session);
    }
}

static void expect_doubled(struct test *t, struct place *p)
{
    float x[2] = {1, 2}, y[2] = {0};
    const rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {2}, x, sizeof x}};
    rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};

    expect_ok(t, rlx_session_run(p->session,
                                 &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0},
                                 &p->err));
    expect_near(t, y[1], 4, 0);
}

/* Number i of the orders of n things. */
static void order_of(int i, int n, int *order)
{
    int left[OBJECTS];

    for (int k = 0; k < n; k++)
        left[k] = k;
    for (int k = 0; k < n; k++) {
        int at = i % (n - k);
        i /= n - k;
        order[k] = left[at];
        for (; at + 1 < n - k; at++)
            left[at] = left[at + 1];
    }
}

TEST_DEVICES(order, a_session_and_what_it_is_of)
{
    for (int i = 0; i < 24; i++) {
        size_t used = 0;
        const rlx_allocator mem = {counted, &used};
        const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &mem};
        struct place p;
        int order[OBJECTS];
        bool session = true;

        order_of(i, OBJECTS, order);
        if (!place_open(t, &p, test_device(t), &desc))
            return;
        test_note(t, "order %d%d%d%d", order[0], order[1], order[2], order[3]);
        expect_ok(t,
                  place_build(&p, "graph (input %x: f32[n]) { %y = add %x, %x return %y }", NULL));
        for (int k = 0; k < OBJECTS; k++) {
            take_down(&p, order[k]);
            session = session && order[k] != SESSION;
            if (session)
                expect_doubled(t, &p);
        }
        expect_eq_u64(t, used, 0);
    }
}

TEST(order, everything_else_outlives_its_context)
{
    size_t used = 0;
    const rlx_allocator mem = {counted, &used};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &mem};
    const rlx_bucket bucket = {1, 8};
    rlx_graph *g = NULL, *sub = NULL;
    rlx_cache *cache = NULL;
    rlx_bucket_cache *buckets = NULL;
    rlx_pages *pages = NULL;
    rlx_model *m = NULL;
    rlx_context *ctx = NULL;
    rlx_error err;

    require_ok(t, rlx_context_create(RLX_VERSION, &desc, &ctx, &err));
    expect_ok(t, rlx_graph_create(ctx, &g, &err));
    expect_ok(t, rlx_cache_create(ctx, 2, 0, &cache, &err));
    expect_ok(t, rlx_bucket_cache_create(ctx, &bucket, 1, &buckets, &err));
    expect_ok(t, rlx_pages_create(ctx, 4, 4, &pages, &err));
    rlx_context_destroy(ctx);
    expect_ok(t, rlx_graph_sub(g, "later", &sub, &err));
    rlx_output(sub, rlx_input(sub, "z", RLX_DTYPE_f32, RLX_LIST(2)));
    rlx_value x = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(2));
    rlx_output(g, rlx_neg(g, x));
    expect_ok(t, rlx_model_create(g, &m, &err));
    expect(t, rlx_pages_free(pages) == 4);
    rlx_cache_destroy(cache);
    rlx_pages_destroy(pages);
    expect_eq(t, rlx_model_io_count(m, RLX_IO_INPUT), 1);
    rlx_model_destroy(m);
    expect(t, used > 0);
    rlx_bucket_cache_destroy(buckets);
    expect_eq_u64(t, used, 0);
}

TEST(order, a_graph_alone_is_enough)
{
    size_t used = 0;
    const rlx_allocator mem = {counted, &used};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &mem};
    rlx_graph *g = NULL;
    rlx_context *ctx = NULL;
    rlx_error err;

    require_ok(t, rlx_context_create(RLX_VERSION, &desc, &ctx, &err));
    expect_ok(t, rlx_graph_create(ctx, &g, &err));
    rlx_context_destroy(ctx);
    rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(2));
    rlx_graph_destroy(g);
    expect_eq_u64(t, used, 0);
}
