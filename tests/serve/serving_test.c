/* serving_test.c: pages of a key-value cache, and batches. */
#include "rlx/serving.h"
#include "test.h"

static bool open_pages(struct test *t, rlx_context **ctx, rlx_pages **p, int64_t tokens,
                       int32_t pages)
{
    rlx_error err = {0};

    *p = NULL;
    return expect_ok(t, rlx_context_create(RLX_VERSION, NULL, ctx, &err)) &&
           expect_ok(t, rlx_pages_create(*ctx, tokens, pages, p, &err));
}

TEST(pages, are_taken_from_the_lowest)
{
    rlx_context *ctx;
    rlx_pages *p;
    rlx_error err = {0};
    int32_t a, b, c;
    size_t count;

    if (!open_pages(t, &ctx, &p, 16, 100))
        return;
    expect_ok(t, rlx_pages_open(p, &a, &err));
    expect_ok(t, rlx_pages_open(p, &b, &err));
    expect_ok(t, rlx_pages_resize(p, a, 17, &err)); /* two pages */
    expect_ok(t, rlx_pages_resize(p, b, 16 * 70, &err));
    expect_ok(t, rlx_pages_resize(p, a, 33, &err)); /* a third, after b's */
    const int32_t *table = rlx_pages_table(p, a, &count);
    require(t, count == 3);
    expect_eq(t, table[0], 0);
    expect_eq(t, table[1], 1);
    expect_eq(t, table[2], 72);
    rlx_pages_close(p, b);
    expect_eq(t, rlx_pages_free(p), 97);
    expect_ok(t, rlx_pages_open(p, &c, &err));
    expect_eq(t, c, b); /* its number is used again */
    expect_eq(t, rlx_pages_tokens(p, c), 0);
    expect_ok(t, rlx_pages_resize(p, c, 1, &err));
    expect_eq(t, rlx_pages_table(p, c, NULL)[0], 2);
    expect_ok(t, rlx_pages_resize(p, a, 1, &err)); /* gives two back */
    expect_ok(t, rlx_pages_resize(p, c, 40, &err));
    expect_eq(t, rlx_pages_table(p, c, &count)[1], 1);
    expect_eq(t, count, 3);
    rlx_pages_destroy(p);
    rlx_context_destroy(ctx);
}

TEST(pages, that_are_not_there_change_nothing)
{
    rlx_context *ctx;
    rlx_pages *p, *none = NULL;
    rlx_error err = {0};
    int32_t a, b;
    size_t count;

    if (!open_pages(t, &ctx, &p, 4, 3))
        return;
    expect_ok(t, rlx_pages_open(p, &a, &err));
    expect_ok(t, rlx_pages_open(p, &b, &err));
    expect_ok(t, rlx_pages_resize(p, a, 8, &err));
    expect_error(t, RLX_ERROR_LIMIT, "2 more pages for 5 tokens; 1 of 3 are free",
                 (rlx_pages_resize(p, b, 5, &err), &err));
    rlx_pages_table(p, b, &count);
    expect_eq(t, count, 0);
    expect_ok(t, rlx_pages_resize(p, b, 4, &err));
    expect_status(t, rlx_pages_resize(p, 7, 1, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_pages_resize(p, a, -1, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_pages_create(ctx, 0, 3, &none, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_pages_create(ctx, 4, 0, &none, &err), RLX_ERROR_ARGUMENT);
    expect_eq(t, rlx_pages_tokens(p, -1), -1);
    rlx_pages_close(p, 99);
    rlx_pages_destroy(p);
    rlx_context_destroy(ctx);
}

TEST(batches, decode_before_they_prefill)
{
    const rlx_waiting w[] = {{.done = 0, .pending = 100},
                             {.done = 9, .pending = 1, .decodes = true},
                             {.done = 3, .pending = 0},
                             {.done = 30, .pending = 5},
                             {.done = 7, .pending = 1, .decodes = true}};
    rlx_batch_entry e[5];

    size_t n = rlx_batch_make(w, 5, &(rlx_batch_limits){.tokens = 40, .chunk = 36}, e);
    require(t, n == 4);
    expect_eq(t, e[0].waiting, 1);
    expect_eq(t, e[0].first, 9);
    expect_eq(t, e[1].waiting, 4);
    expect_eq(t, e[2].waiting, 0);
    expect_eq(t, e[2].count, 36);
    expect_eq(t, e[3].waiting, 3);
    expect_eq(t, e[3].first, 30);
    expect_eq(t, e[3].count, 2); /* what is left of 40 */
    expect_eq(t, rlx_batch_make(w, 5, &(rlx_batch_limits){.entries = 1}, e), 1);
    expect_eq(t, e[0].waiting, 1);
    expect_eq(t, rlx_batch_make(w, 5, NULL, e), 4);
    expect_eq(t, e[2].count, 100);
    expect_eq(t, rlx_batch_make(NULL, 0, NULL, e), 0);
}
