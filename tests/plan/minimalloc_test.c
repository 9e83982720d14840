/* minimalloc_test.c: eleven public instances that defeat greedy placing. All fit in 1 MiB. */
#include "problems.h"
#include "test.h"

static void place(struct test *t, const char *text, size_t len, uint64_t *nodes)
{
    struct plan_csv csv;
    struct plan_fit fit;
    struct plan *p;
    struct arena a;
    struct diag d;

    arena_init(&a, mem_default());
    diag_init(&d, "plan");
    require_ok(t, plan_csv_read((rlx_str){text, len}, &a, &csv, &d));
    expect(t, csv.count > 100);
    struct plan_problem q = {.item = csv.item,
                             .count = csv.count,
                             .align = 1,
                             .capacity = 1048576,
                             .budget = PLAN_BUDGET_THOROUGH};
    require_ok(t, plan_assign(&q, &a, &fit, &d));
    expect(t, fit.arena <= 1048576);
    expect(t, fit.arena >= fit.lower_bound);
    expect(t, fits(csv.item, csv.count, &fit));
    require_ok(t, plan_from_fit(csv.item, csv.count, &fit, &a, &p, &d));
    expect_ok(t, plan_check(p, &a, &d));
    *nodes = fit.nodes;
    arena_free(&a);
}

TEST_SLOW(plan_search, eleven_hard_instances_fit)
{
    char name[] = "minimalloc/A.1048576.csv";

    for (char c = 'A'; c <= 'K'; c++) {
        uint64_t nodes = 0;
        size_t len;
        name[11] = c;
        const char *path = test_data(t, name);
        if (!path)
            return;
        const char *text = test_read(t, path, &len);
        require(t, text != NULL);
        test_note(t, "instance %c", c);
        place(t, text, len, &nodes);
        expect(t, nodes > 0); /* greedy does not do it */
    }
}
