/* search_test.c: the exact search, against brute force and against packings of known height. */
#include "plan/search.h"

#include "problems.h"
#include "test.h"

static rlx_status assign(const struct plan_problem *p, struct arena *a, struct plan_fit *fit,
                         struct diag *d)
{
    arena_init(a, mem_default());
    diag_init(d, "plan");
    return plan_assign(p, a, fit, d);
}

/* Eight items each, all orders tried beforehand. */
TEST(plan_search, small_instances_that_are_hard)
{
    static const struct {
        uint64_t bound, greedy, least;
        struct plan_item item[8];
    } cases[] = {
        /* the greedy orders miss the bound, and it can be reached */
        {26,
         29,
         26,
         {{7, 6, 9}, {12, 4, 4}, {8, 1, 4}, {6, 1, 3}, {9, 0, 1}, {1, 2, 2}, {4, 2, 3}, {6, 2, 4}}},
        {27,
         30,
         27,
         {{11, 0, 2},
          {6, 1, 3},
          {6, 7, 7},
          {1, 6, 7},
          {8, 6, 8},
          {8, 7, 11},
          {4, 4, 8},
          {11, 3, 6}}},
        {38,
         40,
         38,
         {{9, 2, 5},
          {10, 3, 4},
          {2, 5, 5},
          {12, 6, 7},
          {6, 0, 1},
          {7, 3, 6},
          {2, 0, 2},
          {12, 3, 6}}},
        /* nothing reaches the bound */
        {21,
         0,
         23,
         {{9, 6, 8}, {9, 7, 7}, {3, 5, 8}, {3, 4, 6}, {4, 4, 5}, {12, 3, 4}, {5, 5, 6}, {8, 3, 3}}},
        {13,
         0,
         14,
         {{3, 6, 10}, {5, 0, 3}, {3, 3, 3}, {6, 4, 7}, {2, 2, 5}, {3, 0, 1}, {3, 3, 6}, {4, 1, 2}}},
        {25,
         0,
         27,
         {{5, 3, 6},
          {12, 7, 10},
          {7, 3, 3},
          {5, 0, 4},
          {8, 1, 3},
          {12, 0, 1},
          {10, 4, 7},
          {10, 6, 6}}},
    };
    struct arena a;
    struct diag d;
    struct plan_fit fit;

    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct plan_problem p = {
            .item = cases[k].item, .count = 8, .align = 1, .budget = PLAN_BUDGET_NONE};
        test_note(t, "case %zu", k);
        expect_eq_u64(t, least_height(cases[k].item, 8), cases[k].least);
        require_ok(t, assign(&p, &a, &fit, &d));
        expect_eq_u64(t, fit.lower_bound, cases[k].bound);
        if (cases[k].greedy)
            expect_eq_u64(t, fit.arena, cases[k].greedy);
        arena_free(&a);

        p.budget = PLAN_BUDGET_DEFAULT;
        require_ok(t, assign(&p, &a, &fit, &d));
        expect_eq_u64(t, fit.arena, cases[k].least);
        expect(t, fits(cases[k].item, 8, &fit));
        arena_free(&a);
    }
}

/* Without any greedy plan to begin from, so that the answer is the search's alone. */
TEST(plan_search, agrees_with_brute_force)
{
    struct dice dice = {7};
    struct plan_item item[7];
    uint64_t offset[7];

    for (int round = 0; round < 4000; round++) {
        uint64_t bound = 0, sum = 0;
        size_t n = 2 + roll(&dice, 6);
        int32_t length = 1 + (int32_t)roll(&dice, 7);
        for (size_t i = 0; i < n; i++) {
            item[i].birth = (int32_t)roll(&dice, 8);
            item[i].death = item[i].birth + (int32_t)roll(&dice, (uint64_t)length);
            item[i].size = 1 + roll(&dice, 12);
            sum += item[i].size;
        }
        for (size_t i = 0; i < n; i++) { /* the most that live when one is born */
            uint64_t live = 0;
            for (size_t j = 0; j < n; j++)
                if (item[j].birth <= item[i].birth && item[j].death >= item[i].birth)
                    live += item[j].size;
            bound = live > bound ? live : bound;
        }
        if (bound == sum)
            continue;
        struct arena a;
        struct diag d;
        struct search s = {.box = item,
                           .count = (uint32_t)n,
                           .goal = bound,
                           .grain = 1,
                           .budget = PLAN_BUDGET_DEFAULT,
                           .offset = offset,
                           .height = sum};
        test_note(t, "round %d", round);
        arena_init(&a, mem_default());
        diag_init(&d, "plan");
        require_ok(t, search_run(&s, &a, &d));
        arena_free(&a);
        uint64_t least = least_height(item, n);
        require(t, s.height == least);
        struct plan_fit fit = {.offset = offset, .arena = s.height};
        require(t, least == sum || fits(item, n, &fit));
    }
}

TEST(plan_search, perfect_packings_are_found)
{
    struct dice dice = {3};
    struct plan_item item[80];
    struct arena a;
    struct diag d;
    struct plan_fit fit;

    for (int round = 0; round < 40; round++) {
        size_t n = cut_block(&dice, 200, 1000, 20 + roll(&dice, 60), item);
        struct plan_problem p = {.item = item, .count = n, .align = 1, .budget = UINT64_C(1) << 28};
        test_note(t, "round %d, %zu pieces", round, n);
        require_ok(t, assign(&p, &a, &fit, &d));
        expect_eq_u64(t, fit.lower_bound, 1000);
        expect_eq_u64(t, fit.arena, 1000);
        expect(t, fits(item, n, &fit));
        arena_free(&a);
    }
}

/* Nothing in the search may take steps of one byte. */
TEST(plan_search, sizes_of_all_magnitudes)
{
    struct dice dice = {13};
    struct plan_item item[60];
    struct arena a;
    struct diag d;
    struct plan_fit fit;

    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < 60; i++) {
            item[i].birth = (int32_t)roll(&dice, 30);
            item[i].death = item[i].birth + (int32_t)roll(&dice, 12);
            item[i].size = (UINT64_C(1) << roll(&dice, 58)) + roll(&dice, 3);
        }
        struct plan_problem p = {.item = item, .count = 60, .align = 1, .budget = 300000};
        test_note(t, "round %d", round);
        require_ok(t, assign(&p, &a, &fit, &d));
        expect(t, fits(item, 60, &fit));
        expect(t, fit.arena >= fit.lower_bound);
        arena_free(&a);
    }
}

TEST(plan_search, stops_at_the_capacity_given)
{
    struct dice dice = {11};
    struct plan_item item[40];
    struct arena a;
    struct diag d;
    struct plan_fit fit;

    size_t n = cut_block(&dice, 100, 400, 40, item);
    struct plan_problem p = {
        .item = item, .count = n, .align = 1, .capacity = UINT64_MAX, .budget = 0};
    require_ok(t, assign(&p, &a, &fit, &d)); /* anything will do */
    expect_str(t, fit.method, "size");
    expect_eq_u64(t, fit.nodes, 0);
    arena_free(&a);

    p.capacity = 420;
    require_ok(t, assign(&p, &a, &fit, &d));
    expect(t, fit.arena <= 420);
    expect(t, fits(item, n, &fit));
    arena_free(&a);

    p.capacity = 1; /* cannot be: the best there is */
    require_ok(t, assign(&p, &a, &fit, &d));
    expect_eq_u64(t, fit.arena, 400);
    arena_free(&a);
}

TEST(plan_search, a_spent_budget_still_gives_a_plan)
{
    struct dice dice = {21};
    struct plan_item item[120];
    struct arena a;
    struct diag d;
    struct plan_fit greedy, fit;
    uint64_t budget[] = {1, 1000, 100000, 1000000};

    size_t n = cut_block(&dice, 300, 3000, 120, item);
    struct plan_problem p = {.item = item, .count = n, .align = 1, .budget = PLAN_BUDGET_NONE};
    require_ok(t, assign(&p, &a, &greedy, &d));
    expect_eq_u64(t, greedy.nodes, 0);
    arena_free(&a);
    for (size_t k = 0; k < 4; k++) {
        p.budget = budget[k];
        require_ok(t, assign(&p, &a, &fit, &d));
        expect(t, fits(item, n, &fit));
        expect(t, fit.arena >= 3000);
        arena_free(&a);
    }
}

TEST(plan_search, equal_problems_give_equal_plans)
{
    struct dice dice = {31};
    struct plan_item item[100];
    struct arena a, b;
    struct diag d;
    struct plan_fit one, two;

    for (int round = 0; round < 5; round++) {
        size_t n = cut_block(&dice, 400, 5000, 100, item);
        struct plan_problem p = {.item = item, .count = n, .align = 1, .budget = 3000000};
        require_ok(t, assign(&p, &a, &one, &d));
        require_ok(t, assign(&p, &b, &two, &d));
        expect_eq_u64(t, one.arena, two.arena);
        expect_eq_u64(t, one.nodes, two.nodes);
        expect_bytes(t, one.offset, two.offset, n * sizeof *one.offset);
        arena_free(&a);
        arena_free(&b);
    }
}
