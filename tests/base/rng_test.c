/* rng_test.c: the generators against their published answers. */
#include "base/rng.h"

#include <math.h>

#include "test.h"

TEST(rng, threefry_known_answers)
{
    static const uint32_t rows[][6] = {
        {0, 0, 0, 0, 0x6b200159, 0x99ba4efe},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x1cb996fc, 0xbb002be7},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xc4923a9c, 0x483df7a0},
    };

    for (int i = 0; i < 3; i++) {
        struct rng_pair x = rng_threefry(rows[i][0], rows[i][1], rows[i][2], rows[i][3]);
        expect_eq_u64(t, x.x0, rows[i][4]);
        expect_eq_u64(t, x.x1, rows[i][5]);
    }
}

TEST(rng, key_from_seed_and_offset)
{
    static const uint32_t first[] = {0x9c1bc7e0, 0x6e36fa68, 0xa5018fee, 0xf4880493};
    struct rng_pair key = rng_key(42, 0);

    expect_eq_u64(t, key.x0, 0xde79f4b9);
    expect_eq_u64(t, key.x1, 0x4f6cc618);
    for (uint32_t i = 0; i < 4; i++)
        expect_eq_u64(t, rng_threefry(0, i, key.x0, key.x1).x0, first[i]);

    struct rng_pair whole = rng_key(UINT64_C(0x0370734413198a2e), UINT64_C(0x85a308d3243f6a88));
    expect_eq_u64(t, whole.x0, 0xc4923a9c); /* low words first */
    expect_eq_u64(t, whole.x1, 0x483df7a0);
}

TEST(rng, uniform_is_exact_and_below_one)
{
    expect(t, rng_uniform(0) == 0.0f);
    expect(t, rng_uniform(0xff) == 0.0f);
    expect(t, rng_uniform(0x100) == 0x1p-24f);
    expect(t, rng_uniform(0x80000000) == 0.5f);
    expect(t, rng_uniform(0xffffffff) == 1.0f - 0x1p-24f);
}

TEST(rng, philox_known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], word[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    for (int i = 0; i < 3; i++) {
        struct rng_philox r;
        rng_philox_init(&r, (uint64_t)rows[i].key[1] << 32 | rows[i].key[0]);
        for (int k = 0; k < 4; k++)
            r.counter[k] = rows[i].counter[k];
        for (int k = 0; k < 4; k++)
            expect_eq_u64(t, rng_philox_next(&r), rows[i].word[k]);
    }
}

TEST(rng, philox_counts_through_all_four_words)
{
    static const uint32_t rows[][2][4] = {
        {{0, 0, 0, 0}, {1, 0, 0, 0}},
        {{0xffffffff, 0, 0, 0}, {0, 1, 0, 0}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 5}, {0, 0, 0, 6}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0, 0, 0, 0}},
    };

    for (int i = 0; i < 4; i++) {
        struct rng_philox a, b;
        rng_philox_init(&a, 7);
        rng_philox_init(&b, 7);
        for (int k = 0; k < 4; k++) {
            a.counter[k] = rows[i][0][k];
            b.counter[k] = rows[i][1][k];
        }
        for (int k = 0; k < 4; k++)
            rng_philox_next(&a);
        for (int k = 0; k < 4; k++) /* a's second block is b's first */
            expect_eq_u64(t, rng_philox_next(&a), rng_philox_next(&b));
    }
}

TEST(rng, normals_have_mean_0_and_variance_1)
{
    const int n = 200000;
    struct rng_philox r, words;
    double sum = 0, squares = 0, fourths = 0;

    rng_philox_init(&r, 5);
    for (int i = 0; i < n; i++) {
        double x = (double)rng_philox_normal(&r);
        if (!isfinite(x))
            fail(t, "number %d is not finite", i);
        sum += x;
        squares += x * x;
        fourths += x * x * x * x;
    }
    expect_near(t, sum / n, 0, 0.01);
    expect_near(t, squares / n, 1, 0.02);
    expect_near(t, fourths / n, 3, 0.15);

    rng_philox_init(&words, 5); /* each took two words */
    for (int i = 0; i < 2 * n; i++)
        rng_philox_next(&words);
    expect_eq_u64(t, rng_philox_next(&r), rng_philox_next(&words));
}

TEST(rng, normal_of_the_first_words)
{
    struct rng_philox r;
    double u1 = (double)(0x6627e8d5 >> 8) / 16777216, u2 = (double)(0xe169c58d >> 8) / 16777216;

    rng_philox_init(&r, 0);
    expect_near(t, rng_philox_normal(&r), sqrt(-2 * log(u1)) * cos(2 * acos(-1.0) * u2), 1e-6);
    rng_philox_init(&r, 0);
    r.used = 0; /* two words of zero: the logarithm is held back from infinity */
    expect_near(t, rng_philox_normal(&r), sqrt(-2 * log(1.17549435e-38)), 1e-5);
}
