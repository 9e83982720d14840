/* contract_test.c: runtime.md 10, line 8: what the memory contract (3.1) has in functions
 * of the host, and the vectors of 3.5 that need no device. arena_test.c has the contract on
 * devices, slots_test.c through sessions, lower/gpu/launch_test.c the grids, content_test.c the
 * hash of inputs. */
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "backend/backend.h"
#include "rlx/cache.h"
#include "run/block.h"
#include "run/program.h"

/* ---- 3.5: worked values ---- */

TEST(contract, bucket_ladder_vector)
{
    static const int64_t high[] = {8, 16, 32, 64, 128, 256};
    rlx_bucket got[8];
    size_t n = 8;

    require_ok(t, rlx_bucket_ladder(8, 256, got, &n, NULL));
    require(t, n == 6);
    for (size_t i = 0; i < n; i++) {
        expect_eq(t, got[i].low, i ? high[i - 1] + 1 : 1);
        expect_eq(t, got[i].high, high[i]);
    }
}

/* ---- parts of tensors ---- */

struct moves {
    const uint8_t *from;
    uint8_t *to;
    size_t calls, bytes;
    uint64_t last;
    bool falls;
};

static rlx_status move(void *user, uint64_t to, uint64_t from, uint64_t bytes)
{
    struct moves *m = user;

    m->falls |= m->calls && to < m->last;
    m->last = to;
    m->calls++;
    m->bytes += (size_t)bytes;
    memcpy(m->to + to, m->from + from, (size_t)bytes);
    return RLX_OK;
}

static void check_block(struct test *t, const int64_t *dim, const int64_t *to, const int64_t *at,
                        size_t size, size_t calls)
{
    static uint8_t from[512], got[512], want[512];
    struct moves m = {.from = from, .to = got};
    const struct block b = {3, dim, size, {to, at}, {dim, NULL}};
    size_t n = 0;

    memset(got, 0xee, sizeof got);
    memset(want, 0xee, sizeof want);
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * 3);
    for (int64_t i = 0; i < dim[0]; i++)
        for (int64_t j = 0; j < dim[1]; j++)
            for (int64_t k = 0; k < dim[2]; k++, n++) {
                size_t place = (size_t)(((i + at[0]) * to[1] + j + at[1]) * to[2] + k + at[2]);
                memcpy(want + place * size, from + n * size, size);
            }
    expect_ok(t, block_each(&b, false, move, &m));
    expect_bytes(t, got, want, sizeof got);
    expect_eq_u64(t, m.calls, calls);
    expect_eq_u64(t, m.bytes, n * size);
    expect(t, !m.falls);
    struct moves back = {.from = from, .to = got};
    memset(got, 0xee, sizeof got);
    expect_ok(t, block_each(&b, true, move, &back));
    expect_bytes(t, got, want, sizeof got);
    expect_eq_u64(t, back.calls, calls);
    expect(t, calls < 2 || back.falls);
}

TEST(contract, blocks_are_as_few_runs_as_can_be)
{
    static const struct {
        int64_t dim[3], to[3], at[3];
        size_t calls;
    } rows[] = {
        {{2, 3, 4}, {2, 3, 4}, {0, 0, 0}, 1}, /* all of it */
        {{2, 3, 4}, {5, 3, 4}, {1, 0, 0}, 1}, /* rows of the first axis */
        {{2, 3, 4}, {2, 5, 4}, {0, 1, 0}, 2}, /* of the second: one run per batch */
        {{2, 3, 4}, {2, 3, 6}, {0, 0, 2}, 6}, {{2, 3, 4}, {4, 4, 5}, {2, 1, 1}, 6},
        {{1, 1, 1}, {3, 3, 3}, {2, 2, 2}, 1}, {{0, 3, 4}, {2, 3, 4}, {0, 0, 0}, 0}, /* nothing */
        {{2, 0, 4}, {2, 5, 4}, {0, 3, 0}, 0}, {{2, 3, 0}, {2, 3, 4}, {0, 0, 0}, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t size = 1; size <= 4; size *= 2) {
            test_note(t, "case %zu, elements of %zu", i, size);
            check_block(t, rows[i].dim, rows[i].to, rows[i].at, size, rows[i].calls);
        }
}

/* A scalar is a run of one element; a failure ends it. */
static rlx_status refuse(void *user, uint64_t to, uint64_t from, uint64_t bytes)
{
    (void)to, (void)from, (void)bytes;
    return ++*(int *)user == 2 ? RLX_ERROR_SIZE : RLX_OK;
}

TEST(contract, blocks_of_no_axes_and_failures)
{
    const int64_t dim[2] = {4, 2}, to[2] = {4, 3};
    const struct block scalar = {0, NULL, 8, {NULL, NULL}, {NULL, NULL}};
    const struct block rows = {2, dim, 1, {to, NULL}, {dim, NULL}};
    uint8_t a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, b[8] = {0};
    struct moves m = {.from = a, .to = b};
    int calls = 0;

    expect_ok(t, block_each(&scalar, false, move, &m));
    expect_bytes(t, b, a, 8);
    expect_status(t, block_each(&rows, false, refuse, &calls), RLX_ERROR_SIZE);
    expect_eq(t, calls, 2);
}
