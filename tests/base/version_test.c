/* Which programs a library serves. */
#include "base/version.h"
#include "rlx/rlx.h"
#include "test.h"

TEST(version, below_1_0_only_the_same_minor_version)
{
    expect(t, version_serves(200, 200));
    expect(t, version_serves(200, 203)); /* a program built with a later patch */
    expect(t, version_serves(203, 200));
    expect(t, !version_serves(200, 100));
    expect(t, !version_serves(200, 300));
    expect(t, !version_serves(200, 0));
    expect(t, !version_serves(200, 10200));
}

TEST(version, from_1_0_on_any_older_minor_version)
{
    expect(t, version_serves(10300, 10300));
    expect(t, version_serves(10300, 10001));
    expect(t, version_serves(10300, 10399));
    expect(t, !version_serves(10300, 10400));
    expect(t, !version_serves(10300, 300));
    expect(t, !version_serves(10300, 20300));
    expect(t, !version_serves(20000, 19900));
}

TEST(version, a_context_refuses_programs_that_it_does_not_serve)
{
    const uint32_t bad[] = {0, 100, RLX_VERSION + 100, RLX_VERSION + 10000, UINT32_MAX};
    rlx_context *ctx = NULL;
    rlx_error err;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        test_note(t, "%u", bad[i]);
        expect_status(t, rlx_context_create(bad[i], NULL, &ctx, &err), RLX_ERROR_VERSION);
        expect(t, ctx == NULL);
    }
    test_note(t, "%s", "");
    expect_eq_u64(t, rlx_version(), RLX_VERSION);
    expect_ok(t, rlx_context_create(RLX_VERSION + 1, NULL, &ctx, &err));
    rlx_context_destroy(ctx);
}
