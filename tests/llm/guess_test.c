/* guess_test.c: guesses from what came before. */
#include "llm/guess.h"
#include "test.h"

enum { MOST = 8 };

static void expect_guess(struct test *t, const int32_t *id, size_t count, size_t most,
                         const int32_t *want, size_t want_count)
{
    int32_t out[MOST] = {0};

    expect_eq(t, llm_guess(id, count, most, out), want_count);
    for (size_t i = 0; i < want_count; i++)
        expect_eq(t, out[i], want[i]);
}

TEST(guess, what_followed_before_may_follow_again)
{
    const int32_t id[] = {1, 2, 3, 9, 8, 7, 6, 1, 2, 3};
    const int32_t want[] = {9, 8, 7, 6};

    expect_guess(t, id, 10, 4, want, 4);
    expect_guess(t, id, 10, 2, want, 2);
    expect_guess(t, id, 10, 0, want, 0);
}

TEST(guess, the_longest_run_decides_then_the_last_place)
{
    /* 5 6 stands three times; 4 5 6 only once before, 5 6 last before 8. */
    const int32_t longest[] = {4, 5, 6, 7, 5, 6, 8, 4, 5, 6};
    const int32_t last[] = {5, 6, 7, 5, 6, 8, 3, 5, 6};
    const int32_t seven = 7, eight = 8;

    expect_guess(t, longest, 10, 1, &seven, 1);
    expect_guess(t, last, 9, 1, &eight, 1);
}

TEST(guess, goes_on_with_its_own_guesses)
{
    const int32_t id[] = {1, 2, 1, 2};
    const int32_t want[] = {1, 2, 1, 2, 1};

    expect_guess(t, id, 4, 5, want, 5);
}

TEST(guess, nothing_to_go_by)
{
    const int32_t id[] = {1, 2, 3, 4, 5};

    expect_guess(t, id, 5, 4, NULL, 0);
    expect_guess(t, id, 1, 4, NULL, 0);
    expect_guess(t, id, 2, 4, NULL, 0);
    expect_guess(t, id, 0, 4, NULL, 0);
}
