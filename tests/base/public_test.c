/* public_test.c: the tables of rlx.h, asked by number. */
#include "rlx/rlx.h"

#include <string.h>

#include "test.h"

TEST(public, version_is_that_of_the_header)
{
    expect_eq(t, rlx_version(), RLX_VERSION);
}

TEST(public, cstr)
{
    rlx_str s = rlx_cstr("abc"), empty = rlx_cstr(""), none = rlx_cstr(NULL);

    expect(t, s.len == 3 && memcmp(s.ptr, "abc", 3) == 0);
    expect(t, empty.ptr != NULL && empty.len == 0);
    expect(t, none.ptr == NULL && none.len == 0);
}

TEST(public, dtypes_have_names_and_sizes)
{
    expect_str(t, rlx_dtype_name(RLX_DTYPE_f32), "f32");
    expect_str(t, rlx_dtype_name(RLX_DTYPE_bf16), "bf16");
    expect_str(t, rlx_dtype_name(RLX_DTYPE_bool), "bool"); /* a macro in C, and not expanded */
    expect_str(t, rlx_dtype_name(RLX_DTYPE_c64), "c64");
    expect_eq(t, rlx_dtype_size(RLX_DTYPE_f32), 4);
    expect_eq(t, rlx_dtype_size(RLX_DTYPE_f16), 2);
    expect_eq(t, rlx_dtype_size(RLX_DTYPE_bool), 1);
    expect_eq(t, rlx_dtype_size(RLX_DTYPE_c64), 8);
    for (int d = 0; d < RLX_DTYPE_count; d++) {
        expect(t, rlx_dtype_size((rlx_dtype)d) >= 1);
        for (int e = 0; e < d; e++)
            expect(t, strcmp(rlx_dtype_name((rlx_dtype)d), rlx_dtype_name((rlx_dtype)e)) != 0);
    }
}

TEST(public, no_such_dtype)
{
    const int bad[] = {-1, RLX_DTYPE_count, 1000000};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_str(t, rlx_dtype_name((rlx_dtype)bad[i]), "?");
        expect_eq(t, rlx_dtype_size((rlx_dtype)bad[i]), 0);
    }
}

TEST(public, statuses_have_names_and_texts)
{
    expect_str(t, rlx_status_name(RLX_OK), "OK");
    expect_str(t, rlx_status_name(RLX_ERROR_SHAPE), "SHAPE");
    expect_str(t, rlx_status_name(RLX_ERROR_NO_DEVICE), "NO_DEVICE");
    expect_str(t, rlx_status_text(RLX_OK), "ok");
    expect_str(t, rlx_status_text(RLX_ERROR_SHAPE), "shapes do not fit");
    expect_str(t, rlx_status_name((rlx_status)26), "?");
    expect_str(t, rlx_status_name((rlx_status)-1), "?");
    expect_str(t, rlx_status_text((rlx_status)999), "no such status");
}
