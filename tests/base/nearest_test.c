/* nearest_test.c: which name was meant. */
#include <stdio.h>

#include "base/str.h"
#include "rlx/tools.h"
#include "test.h"

static const char *meant(const char *wanted)
{
    static const char *const names[] = {"--output", "--input", "--params", "--param", "x",
                                        "relu",     "matmul",  "batch",    "seq",     "cpu"};
    static char out[RLX_NEAREST_HINT];
    rlx_nearest near = {.wanted = rlx_cstr(wanted)};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        rlx_nearest_offer(&near, rlx_cstr(names[i]));
    snprintf(out, sizeof out, "%.*s", STR_ARG(near.best));
    return near.best.ptr ? out : "";
}

TEST(nearest, letters_changed_added_left_out_and_swapped)
{
    expect_str(t, meant("rleu"), "relu");
    expect_str(t, meant("rel"), "relu");
    expect_str(t, meant("matmull"), "matmul");
    expect_str(t, meant("natmul"), "matmul");
    expect_str(t, meant("CPU"), "cpu");
    expect_str(t, meant("--params"), "--params");
    expect_str(t, meant("--parm"), "--param");
}

TEST(nearest, a_part_is_near)
{
    expect_str(t, meant("--out"), "--output");
    expect_str(t, meant("mat"), "matmul");
    expect_str(t, meant("put"), "--output"); /* the first of two */
}

TEST(nearest, what_is_far_is_not_meant)
{
    expect_str(t, meant("frobnicate"), "");
    expect_str(t, meant("y"), ""); /* x would be one letter off, but of one letter */
    expect_str(t, meant(""), "");
    expect_str(t, meant("an_uncommonly_long_word_that_goes_on_and_on_beyond_all_that_is_usual"),
               "");
}

TEST(nearest, the_hint_ends_a_message)
{
    rlx_nearest near = {.wanted = STR("rleu")};
    char hint[RLX_NEAREST_HINT];

    expect_str(t, rlx_nearest_hint(&near, hint), "");
    rlx_nearest_offer(&near, STR("relu"));
    expect_str(t, rlx_nearest_hint(&near, hint), "; did you mean relu?");
}
