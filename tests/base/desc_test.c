/* Structs of callers that are older or newer than the library. */
#include <string.h>

#include "base/desc.h"
#include "test.h"

struct known { /* what the library has */
    uint32_t size;
    int32_t first;
    int64_t second;
};

struct newer {
    uint32_t size;
    int32_t first;
    int64_t second, third;
};

static rlx_status take(struct known *own, const void *theirs, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "test");
    desc_read(own, sizeof *own, theirs, "rlx_known", &d);
    return diag_report(&d, err);
}

TEST(desc, a_struct_is_taken_whole)
{
    struct known own = {sizeof own, 7, 8}, theirs = {sizeof theirs, 1, 2};

    require_ok(t, take(&own, &theirs, NULL));
    expect_eq(t, own.first, 1);
    expect_eq(t, own.second, 2);
    expect_eq_u64(t, own.size, sizeof own);
}

TEST(desc, null_leaves_the_defaults)
{
    struct known own = {sizeof own, 7, 8};

    require_ok(t, take(&own, NULL, NULL));
    expect_eq(t, own.first, 7);
    expect_eq(t, own.second, 8);
}

TEST(desc, an_older_caller_leaves_what_it_does_not_know)
{
    struct known own = {sizeof own, 7, 8}, theirs = {offsetof(struct known, second), 1, 2};

    require_ok(t, take(&own, &theirs, NULL));
    expect_eq(t, own.first, 1);
    expect_eq(t, own.second, 8);
    expect_eq_u64(t, own.size, sizeof own);
}

TEST(desc, a_newer_caller_must_not_use_what_is_new)
{
    struct known own = {sizeof own, 7, 8};
    struct newer theirs = {sizeof theirs, 1, 2, 0};
    rlx_error err;

    require_ok(t, take(&own, &theirs, NULL));
    expect_eq(t, own.second, 2);
    expect_eq_u64(t, own.size, sizeof own);
    theirs.third = (int64_t)1 << 56; /* the last byte of it */
    expect_status(t, take(&own, &theirs, &err), RLX_ERROR_ARGUMENT);
    expect(t, strstr(err.message, "rlx_known is newer than this library") != NULL);
}

TEST(desc, a_size_that_was_not_set_is_refused)
{
    const uint32_t bad[] = {0, 3, 1 << 20, UINT32_MAX};
    struct known own = {sizeof own, 7, 8}, theirs = {0, 1, 2};
    rlx_error err;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        theirs.size = bad[i];
        expect_status(t, take(&own, &theirs, &err), RLX_ERROR_ARGUMENT);
        expect(t, strstr(err.message, "{RLX_SIZED(rlx_known)}") != NULL);
        expect_eq(t, own.first, 7);
    }
}

TEST(desc, information_goes_as_far_as_the_caller_knows)
{
    const struct known own = {sizeof own, 7, 8};
    struct known older = {offsetof(struct known, second), 1, 2};
    struct newer newer = {sizeof newer, 1, 2, 3};
    struct diag d;

    diag_init(&d, "test");
    expect_ok(t, info_write(&own, sizeof own, &older, "rlx_known", &d));
    expect_eq(t, older.first, 7);
    expect_eq(t, older.second, 2);
    expect_eq_u64(t, older.size, offsetof(struct known, second));
    expect_ok(t, info_write(&own, sizeof own, &newer, "rlx_known", &d));
    expect_eq(t, newer.second, 8);
    expect_eq(t, newer.third, 3);
    expect_eq_u64(t, newer.size, sizeof newer);
}

TEST(desc, information_needs_room)
{
    const struct known own = {sizeof own, 7, 8};
    struct known out = {0, 1, 2};
    struct diag d;

    diag_init(&d, "test");
    expect_status(t, info_write(&own, sizeof own, NULL, "rlx_known", &d), RLX_ERROR_ARGUMENT);
    expect_status(t, info_write(&own, sizeof own, &out, "rlx_known", &d), RLX_ERROR_ARGUMENT);
    expect_eq(t, out.first, 1);
}
