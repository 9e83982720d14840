/* diff_test.c: unified diffs of short texts. */
#include "base/diff.h"

#include "test.h"

static void check(struct test *t, const char *a, const char *b, const char *want)
{
    struct text out;
    struct diag d;

    diag_init(&d, "test");
    text_init(&out, mem_default());
    expect_ok(t, diff_lines(rlx_cstr(a), rlx_cstr(b), "A", "B", mem_default(), &out, &d));
    expect_str(t, out.at ? out.at : "", want);
    text_free(&out);
}

TEST(diff, equal_texts_give_nothing)
{
    check(t, "", "", "");
    check(t, "a\nb\n", "a\nb\n", "");
}

TEST(diff, shows_changes_with_three_lines_around)
{
    check(t, "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
          "--- A\n+++ B\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(diff, adds_and_removes_whole_texts)
{
    check(t, "", "a\nb\n", "--- A\n+++ B\n@@ -0,0 +1,2 @@\n+a\n+b\n");
    check(t, "a\nb", "", "--- A\n+++ B\n@@ -1,2 +0,0 @@\n-a\n-b\n");
}

TEST(diff, far_changes_are_hunks_of_their_own)
{
    check(
        t, "a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
        "--- A\n+++ B\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
}

TEST(diff, keeps_the_most_lines_in_common)
{
    check(t, "a\nb\nc\nd\n", "b\nd\ne\n", "--- A\n+++ B\n@@ -1,4 +1,3 @@\n-a\n b\n-c\n d\n+e\n");
}

static rlx_status diff_some(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct text out;
    struct diag d;

    (void)t, (void)ctx;
    diag_init(&d, "test");
    text_init(&out, mem);
    rlx_status s = diff_lines(STR("a\nb\n"), STR("a\nc\n"), "A", "B", mem, &out, &d);
    if (s == RLX_OK && out.failed)
        s = RLX_ERROR_MEMORY;
    text_free(&out);
    return s;
}

TEST(diff, survives_want_of_memory)
{
    expect_survives_no_memory(t, diff_some, NULL);
}
