/* harness_test.c: the harness's own tests. Each check must be able to fail, or it proves nothing.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test_impl.h"

/* A test that is not in the list, to try checks on: whatever it fails stays in here. */
static const struct test_case probe_case = {.suite = "harness", .name = "probe", .file = __FILE__};

static struct test probe(void)
{
    return (struct test){.about = &probe_case, .quiet = true};
}

/* Whether exactly one check was made since, and whether it held as foretold. */
static bool one_check(struct test *t, struct test *p, bool answer, bool held)
{
    bool ok = expect_eq(t, p->checks, 1) && expect_eq(t, p->failures, held ? 0 : 1) &&
              expect_eq(t, answer, held);
    *p = probe();
    return ok;
}

TEST(harness, checks_of_numbers_hold_and_fail)
{
    struct test p = probe();

    one_check(t, &p, expect(&p, 1 == 1), true);
    one_check(t, &p, expect(&p, 1 == 2), false);
    one_check(t, &p, expect_eq(&p, -1, (int8_t)-1), true);
    one_check(t, &p, expect_eq(&p, INT64_MIN, INT64_MAX), false);
    one_check(t, &p, expect_eq(&p, (size_t)5, 5), true);
    one_check(t, &p, expect_eq_u64(&p, UINT64_MAX, UINT64_MAX), true);
    one_check(t, &p, expect_eq_u64(&p, UINT64_MAX, 0), false);
}

TEST(harness, checks_of_floats_know_nan_and_infinity)
{
    const float two[] = {1, NAN}, off[] = {1.1f, NAN}, infinite[] = {1, INFINITY};
    struct test p = probe();

    one_check(t, &p, expect_near(&p, 1.0, 1.25, 0.25), true);
    one_check(t, &p, expect_near(&p, 1.0, 1.25, 0.2), false);
    one_check(t, &p, expect_near(&p, NAN, NAN, 0), true);
    one_check(t, &p, expect_near(&p, NAN, 1, 1e9), false);
    one_check(t, &p, expect_near(&p, 1, NAN, INFINITY), false);
    one_check(t, &p, expect_near(&p, INFINITY, INFINITY, 0), true);
    one_check(t, &p, expect_near(&p, INFINITY, -INFINITY, INFINITY), false);
    one_check(t, &p, expect_near(&p, 1, 2, NAN), false);

    one_check(t, &p, expect_close(&p, two, two, 2, 0, 0), true);
    one_check(t, &p, expect_close(&p, off, two, 2, 0.2, 0), true);
    one_check(t, &p, expect_close(&p, off, two, 2, 0.05, 0), false);
    one_check(t, &p, expect_close(&p, two, infinite, 2, 1, 1), false);
    one_check(t, &p, expect_close(&p, infinite, two, 2, 1, 1), false);
    one_check(t, &p, expect_close(&p, two, infinite, 1, 0, 0), true);
    one_check(t, &p, expect_close(&p, two, off, 0, 0, 0), true);
}

TEST(harness, checks_of_text_hold_and_fail)
{
    const char *none = NULL;
    struct test p = probe();

    one_check(t, &p, expect_str(&p, "a", "a"), true);
    one_check(t, &p, expect_str(&p, "a", "b"), false);
    one_check(t, &p, expect_str(&p, "a\nb", "a\nc"), false);
    one_check(t, &p, expect_str(&p, none, none), true);
    one_check(t, &p, expect_str(&p, none, ""), false);
    one_check(t, &p, expect_contains(&p, "shapes 8 and 9", "8 and"), true);
    one_check(t, &p, expect_contains(&p, "shapes", "8"), false);
    one_check(t, &p, expect_contains(&p, none, "8"), false);
    one_check(t, &p, expect_bytes(&p, "abc", "abd", 2), true);
    one_check(t, &p, expect_bytes(&p, "abc", "abd", 3), false);
}

TEST(harness, checks_of_errors_hold_and_fail)
{
    const rlx_error err = {.status = RLX_ERROR_SHAPE,
                           .message = "inner dimensions differ: 8 and 9"};
    struct test p = probe();

    one_check(t, &p, expect_ok(&p, RLX_OK), true);
    one_check(t, &p, expect_ok(&p, RLX_ERROR_MEMORY), false);
    one_check(t, &p, expect_error(&p, RLX_ERROR_SHAPE, "8 and 9", &err), true);
    one_check(t, &p, expect_error(&p, RLX_ERROR_SHAPE, "7 and 9", &err), false);
    one_check(t, &p, expect_error(&p, RLX_ERROR_GRAPH, "8 and 9", &err), false);
    one_check(t, &p, expect_error(&p, RLX_ERROR_GRAPH, "", (const rlx_error *)NULL), false);
}

TEST(harness, files_are_written_read_and_removed)
{
    size_t len = 0;
    const char *path = test_temp(t, "harness.bin");

    require(t, test_write(t, path, "a\0b", 3));
    const char *text = test_read(t, path, &len);
    require(t, text != NULL);
    expect_eq(t, len, 3);
    expect_bytes(t, text, "a\0b", 4); /* and the NUL after it */

    struct test p = probe();
    expect(t, test_read(&p, test_source(&p, "no/such/file"), NULL) == NULL);
    expect_eq(t, p.failures, 1);
    test_free_kept(&p);
    expect(t, test_read(t, test_source(t, "tests/test.h"), NULL) != NULL);
}

/* ---- the allocator -------------------------------------------------------------------------- */

TEST(harness, allocator_counts)
{
    struct test_alloc a = {0};
    rlx_allocator mem = test_allocator(&a);

    char *x = mem.resize(mem.user, NULL, 0, 10);
    require(t, x != NULL);
    memcpy(x, "012345678", 10);
    x = mem.resize(mem.user, x, 10, 100);
    require(t, x != NULL);
    expect_str(t, x, "012345678");
    expect_eq(t, a.calls, 2);
    expect_eq(t, a.live_blocks, 1);
    expect_eq(t, a.live_bytes, 100);
    expect_eq(t, a.peak_bytes, 110); /* both at once, while it moved */
    expect_eq(t, (uintptr_t)x % _Alignof(max_align_t), 0);

    struct test p = probe();
    expect(t, !expect_no_leak(&p, &a));
    expect(t, mem.resize(mem.user, x, 100, 0) == NULL);
    expect_no_leak(t, &a);
    expect(t, mem.resize(mem.user, NULL, 0, 0) == NULL);
    expect(t, mem.resize(mem.user, NULL, 0, SIZE_MAX) == NULL);
    expect(t, mem.resize(mem.user, NULL, 0, SIZE_MAX / 4) == NULL);
    expect_no_leak(t, &a);
}

TEST(harness, allocator_notices_wrong_sizes)
{
    struct test_alloc a = {0};
    rlx_allocator mem = test_allocator(&a);
    struct test p = probe();

    void *x = mem.resize(mem.user, NULL, 0, 10);
    require(t, x != NULL);
    mem.resize(mem.user, x, 9, 0);
    expect_eq(t, a.misused, 1);
    expect_eq(t, a.live_blocks, 0);
    expect(t, !expect_no_leak(&p, &a));
}

TEST(harness, allocator_refuses_on_demand)
{
    struct test_alloc once = {.fail_at = 2}, sticky = {.fail_at = 2, .sticky = true};
    rlx_allocator mem = test_allocator(&once);
    void *x = mem.resize(mem.user, NULL, 0, 1);

    expect(t, x != NULL);
    expect(t, mem.resize(mem.user, x, 1, 2) == NULL); /* x stays */
    expect_eq(t, once.live_blocks, 1);
    x = mem.resize(mem.user, x, 1, 2);
    expect(t, x != NULL);
    mem.resize(mem.user, x, 2, 0);
    expect_no_leak(t, &once);

    mem = test_allocator(&sticky);
    x = mem.resize(mem.user, NULL, 0, 1);
    for (int i = 0; i < 5; i++)
        expect(t, mem.resize(mem.user, NULL, 0, 1) == NULL);
    expect_eq(t, sticky.refused, 5);
    mem.resize(mem.user, x, 1, 0);
    expect_no_leak(t, &sticky);
}

/* Takes `blocks` blocks and gives them back. */
struct errand {
    int blocks;
    bool leaks, hides; /* when refused: leave the others live; say RLX_OK all the same */
    int runs;
};

/* What an errand lost on purpose, held on to so that a leak checker has nothing to say. */
static void *volatile lost;

static rlx_status run_errand(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct errand *e = ctx;
    void *block[1000];
    int n = 0;

    (void)t;
    e->runs++;
    while (n < e->blocks && (block[n] = mem->resize(mem->user, NULL, 0, 8)))
        n++;
    bool refused = n < e->blocks;
    if (refused && e->leaks) {
        lost = n ? block[0] : NULL;
        return RLX_ERROR_MEMORY;
    }
    while (n > 0)
        mem->resize(mem->user, block[--n], 8, 0);
    return refused && !e->hides ? RLX_ERROR_MEMORY : RLX_OK;
}

TEST(harness, every_request_is_refused_in_turn)
{
    struct errand few = {.blocks = 7}, many = {.blocks = 1000}, none = {0};
    struct test p = probe();

    expect(t, expect_survives_no_memory(&p, run_errand, &few));
    expect_eq(t, few.runs, 15); /* each of 7 alone, each with all after it, then none */
    expect(t, expect_survives_no_memory(&p, run_errand, &none));
    expect_eq(t, none.runs, 1);
    expect(t, expect_survives_no_memory(&p, run_errand, &many));
    expect(t, many.runs > 600);
    expect_eq(t, p.failures, 0);
}

TEST(harness, a_lost_block_or_a_hidden_failure_is_noticed)
{
    struct errand leaks = {.blocks = 3, .leaks = true}, hides = {.blocks = 3, .hides = true};
    struct test p = probe();

    expect(t, expect_survives_no_memory(&p, run_errand, &hides) == false);
    expect_eq(t, hides.runs, 1);
    expect(t, expect_survives_no_memory(&p, run_errand, &leaks) == false);
    expect_eq(t, leaks.runs, 3); /* refusing the 1st, in both ways, loses nothing */
}

/* For tests/tools/harness_test.py, which looks at what becomes of the others. */
TEST(harness, ends_its_process_when_asked)
{
    if (getenv("RLX_TEST_CRASH"))
        abort();
    expect(t, true);
}
