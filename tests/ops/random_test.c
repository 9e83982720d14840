/* random_test.c: that random numbers are the same bits on every device. */
#include "device_run.h"

enum { N = 20000 };

static const char *const texts[] = {
    "%y = rng_uniform shape=[20000] seed=1234567890123 return %y",
    "%y = rng_normal shape=[20000] seed=1234567890123 return %y",
    "%y = rng_normal shape=[20000] seed=3 mean=0.3 scale=1.7 return %y",
};
enum { TEXTS = sizeof texts / sizeof texts[0] };

static void expect_same(struct test *t, struct device_run *r, const double (*want)[N])
{
    static double got[N];

    for (int i = 0; i < TEXTS; i++) {
        test_note(t, "%s", texts[i]);
        if (device_numbers(t, r, texts[i], 0, got, N) != N)
            return;
        for (int k = 0; k < N && expect_near(t, got[k], want[i][k], 0); k++)
            ;
    }
}

TEST_DEVICES(random, numbers_are_the_same_bits_everywhere)
{
    static const char *const levels[] = {"cpu:avx2", "cpu:avx512", "cpu:neon", "cpu:amx"};
    static double want[TEXTS][N];
    struct device_run r;
    rlx_error err;

    if (!device_open(t, &r, "cpu:baseline"))
        return;
    for (int i = 0; i < TEXTS; i++)
        expect_eq(t, device_numbers(t, &r, texts[i], 0, want[i], N), N);
    rlx_device_close(r.dev);
    for (int l = 0; l < 4; l++)
        if (rlx_device_open(r.ctx, levels[l], &r.dev, &err) == RLX_OK) {
            expect_same(t, &r, want);
            rlx_device_close(r.dev);
        }
    rlx_context_destroy(r.ctx);
    if (!device_open(t, &r, test_device(t)))
        return;
    expect_same(t, &r, want);
    device_close(&r);
}
