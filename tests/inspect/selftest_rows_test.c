/* selftest_rows_test.c: where the numbers of a case come from. */
#include "inspect/selftest/selftest.h"
#include "test.h"

static const struct case_row row = {"add sub", "f32 f16", "T[2,3] T[3]", "axis=1", "plain wide"};

static uint64_t seed_of(const char *op, const char *dtype, const char *operands, const char *attrs,
                        uint64_t seed)
{
    struct case_row other = row;

    other.operands = operands;
    other.attrs = attrs;
    return selftest_seed(&other, op, dtype, VALUES_PLAIN, seed);
}

/* The same on every machine, in every process, wherever the row stands in the table. */
TEST(selftest_rows, seeds_come_from_what_a_row_says)
{
    uint64_t first = seed_of("add", "f32", row.operands, row.attrs, 7);

    expect(t, first == selftest_seed(&row, "add", "f32", VALUES_PLAIN, 7));
    expect(t, first != selftest_seed(&row, "add", "f32", VALUES_WIDE, 7));
    expect(t, first != seed_of("sub", "f32", row.operands, row.attrs, 7));
    expect(t, first != seed_of("add", "f16", row.operands, row.attrs, 7));
    expect(t, first != seed_of("add", "f32", "T[2,3] T[1]", row.attrs, 7));
    expect(t, first != seed_of("add", "f32", row.operands, "axis=0", 7));
    expect(t, first != seed_of("add", "f32", row.operands, row.attrs, 8));
    /* Words do not run into one another. */
    expect(t, seed_of("ab", "c", "d", "", 0) != seed_of("a", "bc", "d", "", 0));
    /* A graph has no attributes of its own. */
    expect(t, seed_of("add", "", "rlx 1", NULL, 0) == seed_of("add", "", "rlx 1", "", 0));
}

/* The number itself, so that a failure reported by op and seed can be reproduced later. */
TEST(selftest_rows, seeds_stay)
{
    expect_eq_u64(t, selftest_seed(&row, "add", "f32", VALUES_PLAIN, 0),
                  UINT64_C(0x2bb5503670b690f4));
}
