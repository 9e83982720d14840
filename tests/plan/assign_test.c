/* assign_test.c: offsets for bare intervals: greedy orders, lower bound, exact search. */
#include "problems.h"
#include "test.h"

static rlx_status assign(const struct plan_problem *p, struct arena *a, struct plan_fit *fit,
                         struct diag *d)
{
    arena_init(a, mem_default());
    diag_init(d, "plan");
    return plan_assign(p, a, fit, d);
}

TEST(plan_assign, the_worked_example)
{
    const struct plan_item item[] = {{128, 0, 1}, {64, 1, 2}, {128, 2, 3}, {64, 3, 4}};
    struct plan_problem p = {.item = item, .count = 4, .align = 64};
    struct arena a;
    struct diag d;
    struct plan_fit fit;

    require_ok(t, assign(&p, &a, &fit, &d));
    expect_eq_u64(t, fit.lower_bound, 192);
    expect_eq_u64(t, fit.arena, 192);
    expect_eq_u64(t, fit.unshared, 384);
    expect_eq(t, fit.peak, 1);
    expect_eq_u64(t, fit.offset[0], 0);
    expect_eq_u64(t, fit.offset[1], 128);
    expect_eq_u64(t, fit.offset[2], 0);
    expect_eq_u64(t, fit.offset[3], 128);
    expect_str(t, fit.method, "size");
    expect_eq_u64(t, fit.nodes, 0);
    arena_free(&a);
}

TEST(plan_assign, nothing_one_and_zero_bytes)
{
    const struct plan_item item[] = {{0, 3, 9}, {1, 5, 5}, {0, -4, 2}};
    struct plan_problem p = {.item = item, .count = 0, .align = 64};
    struct arena a;
    struct diag d;
    struct plan_fit fit;

    require_ok(t, assign(&p, &a, &fit, &d));
    expect_eq_u64(t, fit.arena, 0);
    expect_eq_u64(t, fit.lower_bound, 0);
    expect(t, fit.method == NULL);
    arena_free(&a);

    p.count = 3;
    require_ok(t, assign(&p, &a, &fit, &d));
    expect_eq_u64(t, fit.arena, 64);
    expect_eq_u64(t, fit.lower_bound, 64);
    expect_eq_u64(t, fit.unshared, 64);
    expect_eq(t, fit.peak, 5);
    for (size_t i = 0; i < 3; i++)
        expect_eq_u64(t, fit.offset[i], 0);
    arena_free(&a);
}

TEST(plan_assign, sizes_are_rounded_up_and_offsets_aligned)
{
    const struct plan_item item[] = {{1, 0, 1}, {65, 0, 1}, {129, 1, 2}, {64, 1, 2}};
    const uint64_t align[] = {1, 16, 64, 256, 4096};
    struct arena a;
    struct diag d;
    struct plan_fit fit;

    for (size_t k = 0; k < 5; k++) {
        struct plan_problem p = {.item = item, .count = 4, .align = align[k]};
        uint64_t live = 0;
        test_note(t, "align %llu", (unsigned long long)align[k]);
        require_ok(t, assign(&p, &a, &fit, &d));
        for (size_t i = 0; i < 4; i++) {
            expect_eq_u64(t, fit.offset[i] % align[k], 0);
            live += (item[i].size + align[k] - 1) / align[k] * align[k];
        }
        expect_eq_u64(t, fit.lower_bound, live); /* all four live at position 1 */
        expect_eq_u64(t, fit.arena, live);
        expect(t, fits(item, 4, &fit));
        arena_free(&a);
    }
}

TEST(plan_assign, refuses_bad_arguments_and_overflow)
{
    const struct plan_item backwards[] = {{8, 0, 1}, {8, 3, 2}};
    const struct plan_item huge[] = {{UINT64_MAX - 62, 0, 1}};
    const struct plan_item sum[] = {{UINT64_MAX / 2 + 1, 0, 1}, {UINT64_MAX / 2 + 1, 5, 6}};
    const struct plan_item edge[] = {{UINT64_MAX - 63, 0, 1}};
    struct plan_problem p = {.item = backwards, .count = 2, .align = 64};
    struct arena a;
    struct diag d;
    struct plan_fit fit;

    expect_status(t, assign(&p, &a, &fit, &d), RLX_ERROR_ARGUMENT);
    expect_error(t, RLX_ERROR_ARGUMENT, "buffer 1 is born at 3 and dies at 2", &d.first);
    arena_free(&a);
    p.align = 0;
    expect_status(t, assign(&p, &a, &fit, &d), RLX_ERROR_ARGUMENT);
    arena_free(&a);
    p.align = 48;
    expect_status(t, assign(&p, &a, &fit, &d), RLX_ERROR_ARGUMENT);
    expect_error(t, RLX_ERROR_ARGUMENT, "alignment 48 is not a power of two", &d.first);
    arena_free(&a);

    p = (struct plan_problem){.item = huge, .count = 1, .align = 64};
    expect_status(t, assign(&p, &a, &fit, &d), RLX_ERROR_LIMIT);
    arena_free(&a);
    p = (struct plan_problem){.item = sum, .count = 2, .align = 64};
    expect_status(t, assign(&p, &a, &fit, &d), RLX_ERROR_LIMIT);
    arena_free(&a);
    p = (struct plan_problem){.item = edge, .count = 1, .align = 64};
    expect_ok(t, assign(&p, &a, &fit, &d));
    expect_eq_u64(t, fit.arena, UINT64_MAX - 63);
    arena_free(&a);
}

TEST(plan_assign, positions_may_be_anywhere)
{
    const struct plan_item item[] = {
        {64, INT32_MIN, INT32_MAX},
        {64, INT32_MIN, INT32_MIN},
        {128, INT32_MAX, INT32_MAX},
        {64, -1, 0},
    };
    struct plan_problem p = {.item = item, .count = 4, .align = 64};
    struct arena a;
    struct diag d;
    struct plan_fit fit;

    require_ok(t, assign(&p, &a, &fit, &d));
    expect_eq_u64(t, fit.arena, 192);
    expect_eq(t, fit.peak, INT32_MAX);
    expect(t, fits(item, 4, &fit));
    arena_free(&a);
}

struct survival {
    struct plan_item item[40];
    size_t count;
};

static rlx_status plan_it(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct survival *s = ctx;
    struct plan_problem p = {.item = s->item, .count = s->count, .align = 1};
    struct plan_fit fit;
    struct arena a;
    struct diag d;

    (void)t;
    arena_init(&a, mem);
    diag_init(&d, "plan");
    rlx_status status = plan_assign(&p, &a, &fit, &d);
    arena_free(&a);
    return status;
}

TEST(plan_assign, survives_no_memory)
{
    struct dice dice = {5};
    struct survival s;
    struct plan_fit fit = {0};
    struct arena a;
    struct diag d;

    for (int tries = 0; tries < 50 && fit.nodes == 0; tries++) { /* one that needs the search */
        s.count = cut_block(&dice, 60, 500, 40, s.item);
        struct plan_problem p = {.item = s.item, .count = s.count, .align = 1};
        require_ok(t, assign(&p, &a, &fit, &d));
        arena_free(&a);
    }
    require(t, fit.nodes > 0);
    expect_survives_no_memory(t, plan_it, &s);
}
