/* normal_test.c: that normal random numbers do not hang on what a driver makes of roots, sums and
 * products. */
#include "base/rng.h"
#include "interpret.h"

enum { N = 20000 };

static const char source[] =
    "use \"lib/normal\"\n"
    "kernel k(x: in [u32x2], y: out [f32], mean: f32, scale: f32, seal: u32) group(1) {\n"
    "    y[group.x] = normal(x[group.x], mean, scale, seal)\n}\n";

/* Random words; and those that make the smallest and the largest numbers. */
static void fill(uint32_t (*x)[2])
{
    static const uint32_t edge[] = {0, 1 << 8, 0xb504f3u << 8, 0xffffffffu, 0x20000000, 0x60000000};

    for (uint32_t i = 0; i < N; i++) {
        struct rng_pair p = rng_threefry(i, 0, 42, 0);
        x[i][0] = i < 36 ? edge[i / 6] : p.x0;
        x[i][1] = i < 36 ? edge[i % 6] : p.x1;
    }
}

TEST(normal, numbers_do_not_hang_on_the_driver)
{
    static const uint32_t param[] = {0x3e99999a, 0x3fd9999a, 0}; /* 0.3, 1.7 */
    static uint32_t x[N][2];
    static float y[N], want[N];
    struct source s;

    fill(x);
    if (!open_kernel(t, &s, source, ""))
        return;
    interpret(&s, (void *const[]){x, want}, param, N);
    for (int units = -4; units <= 4; units++) {
        test_note(t, "roots off by %d", units);
        interpret_freely(&s, (void *const[]){x, y}, param, N, (struct liberty){units, true});
        expect_bytes(t, y, want, sizeof want);
    }
    source_close(&s);
}
