/* str_test.c: views, UTF-8 and text under construction. */
#include "base/str.h"

#include <string.h>

#include "test.h"

static const rlx_str none = {NULL, 0};

TEST(str, equality_is_by_bytes)
{
    expect(t, str_eq(STR("abc"), STR("abc")));
    expect(t, !str_eq(STR("abc"), STR("abd")));
    expect(t, !str_eq(STR("abc"), STR("ab")));
    expect(t, str_eq(none, STR("")));
    expect(t, str_eq(STR("a\0b"), STR("a\0b")));
    expect(t, !str_eq(STR("a\0b"), STR("a\0c")));
}

TEST(str, starts_and_ends)
{
    expect(t, str_starts(STR("blk.0.w"), STR("blk.")));
    expect(t, !str_starts(STR("blk"), STR("blk.")));
    expect(t, str_starts(STR("x"), none) && str_starts(none, none));
    expect(t, str_ends(STR("a.gguf"), STR(".gguf")));
    expect(t, !str_ends(STR("gguf"), STR(".gguf")));
    expect(t, !str_ends(STR("a.ggufx"), STR(".gguf")));
    expect(t, str_ends(STR("x"), none) && str_ends(none, none));
}

static int sign(int x)
{
    return (x > 0) - (x < 0);
}

TEST(str, order_is_by_bytes_then_length)
{
    const rlx_str sorted[] = {none,      STR("A"), STR("a"),       STR("a\0"),
                              STR("aa"), STR("b"), STR("\xc3\xa4")};
    const int n = (int)(sizeof sorted / sizeof *sorted);

    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++)
            expect_eq(t, sign(str_cmp(sorted[i], sorted[k])), sign(i - k));
    }
}

/* ---- UTF-8 ------------------------------------------------------------------------------- */

TEST(str, utf8_table)
{
    static const struct {
        rlx_str s;
        bool valid;
    } rows[] = {
        {{"", 0}, true},
        {{"a\0b", 3}, true},
        {{"\x7f", 1}, true},
        {{"\x80", 1}, false}, /* continuation alone */
        {{"\xbf", 1}, false},
        {{"\xc0\x80", 2}, false}, /* overlong NUL */
        {{"\xc1\xbf", 2}, false}, /* overlong U+007F */
        {{"\xc2\x80", 2}, true},  /* U+0080 */
        {{"\xdf\xbf", 2}, true},  /* U+07FF */
        {{"\xc2", 1}, false},     /* cut */
        {{"\xc2\x41", 2}, false},
        {{"\xc2\xc0", 2}, false},
        {{"\xe0\x80\x80", 3}, false}, /* overlong */
        {{"\xe0\x9f\xbf", 3}, false}, /* overlong U+07FF */
        {{"\xe0\xa0\x80", 3}, true},  /* U+0800 */
        {{"\xe0\xa0", 2}, false},     /* cut */
        {{"\xec\xbf\xbf", 3}, true},
        {{"\xed\x9f\xbf", 3}, true},  /* U+D7FF */
        {{"\xed\xa0\x80", 3}, false}, /* U+D800 */
        {{"\xed\xbf\xbf", 3}, false}, /* U+DFFF */
        {{"\xee\x80\x80", 3}, true},  /* U+E000 */
        {{"\xef\xbf\xbf", 3}, true},  /* U+FFFF */
        {{"\xef\xbf\x7f", 3}, false},
        {{"\xf0\x80\x80\x80", 4}, false}, /* overlong */
        {{"\xf0\x8f\xbf\xbf", 4}, false}, /* overlong U+FFFF */
        {{"\xf0\x90\x80\x80", 4}, true},  /* U+10000 */
        {{"\xf3\xbf\xbf\xbf", 4}, true},
        {{"\xf4\x8f\xbf\xbf", 4}, true},  /* U+10FFFF */
        {{"\xf4\x90\x80\x80", 4}, false}, /* U+110000 */
        {{"\xf0\x90\x80", 3}, false},     /* cut */
        {{"\xf0\x90\x80\xc0", 4}, false},
        {{"\xf5\x80\x80\x80", 4}, false},
        {{"\xf8\x88\x80\x80\x80", 5}, false},
        {{"\xfe", 1}, false},
        {{"\xff", 1}, false},
        {{"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82", 15}, true},
        {{"ok then \xc3", 9}, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        test_note(t, "row %zu", i);
        expect_eq(t, str_is_utf8(rows[i].s), rows[i].valid);
    }
    expect(t, str_is_utf8(none));
}

/* Every code point, made by the definition, and every three-byte string checked against it. */
static size_t encode(uint32_t c, char out[4])
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return n;
}

TEST(str, utf8_every_code_point)
{
    char text[4];
    uint32_t wrong = 0;

    for (uint32_t c = 0; c <= 0x10ffff + 100; c++) {
        rlx_str s = {text, encode(c, text)};
        bool valid = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
        wrong += str_utf8_step(s) != (valid ? s.len : 0);
        if (s.len > 1)
            wrong += str_utf8_step((rlx_str){text, s.len - 1}) != 0;
    }
    expect_eq(t, wrong, 0);
}

TEST(str, utf8_counts_of_short_strings)
{
    uint32_t valid[4] = {0};

    for (uint32_t x = 0; x < 1u << 24; x++) {
        const char text[3] = {(char)(x >> 16), (char)(x >> 8), (char)x};
        valid[3] += str_utf8_step((rlx_str){text, 3}) == 3;
        if (x < 1u << 16)
            valid[2] += str_utf8_step((rlx_str){text + 1, 2}) == 2;
    }
    expect_eq(t, valid[2], 0x800 - 0x80);
    expect_eq(t, valid[3], 0x10000 - 0x800 - 0x800);
}

/* ---- text -------------------------------------------------------------------------------- */

TEST(text, is_put_together)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    struct text x;

    text_init(&x, &mem);
    text_add(&x, none);
    expect_str(t, x.at, "");
    text_add(&x, STR("one"));
    text_addf(&x, ", %s and %d", "two", 3);
    text_addf(&x, "%s", "");
    expect_str(t, x.at, "one, two and 3");
    expect_eq(t, x.len, 14);
    expect(t, !x.failed);
    text_free(&x);
    expect(t, x.at == NULL && x.len == 0);
    text_addf(&x, "%s", "");
    expect_str(t, x.at, ""); /* and may be used again */
    text_free(&x);
    expect_no_leak(t, &count);
}

TEST(text, long_text_is_whole)
{
    struct text x;

    text_init(&x, mem_default());
    for (int i = 0; i < 20000; i++)
        text_addf(&x, "%05d", i);
    text_addf(&x, "%70000d", 1);
    require(t, !x.failed);
    expect_eq(t, x.len, 170000);
    expect_eq(t, strlen(x.at), 170000);
    expect_bytes(t, x.at + 5 * 12345, "1234512346", 10);
    text_free(&x);
}

TEST(text, keeps_what_it_had_when_memory_ends)
{
    struct test_alloc count = {.fail_at = 2, .sticky = true};
    rlx_allocator mem = test_allocator(&count);
    struct text x;

    text_init(&x, &mem);
    text_add(&x, STR("abc"));
    text_addf(&x, "%50d", 1);
    expect(t, x.failed);
    expect_str(t, x.at, "abc");
    text_add(&x, STR("d")); /* would fit, but comes after what was lost */
    expect_str(t, x.at, "abc");
    text_add(&x, (rlx_str){"x", SIZE_MAX});
    text_free(&x);
    expect_no_leak(t, &count);
}

static rlx_status build(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct text x;
    (void)ctx;

    text_init(&x, mem);
    for (int i = 0; i < 300; i++) {
        text_add(&x, STR("item "));
        text_addf(&x, "%d\n", i);
    }
    if (!x.failed)
        expect(t, str_ends((rlx_str){x.at, x.len}, STR("item 299\n")));
    rlx_status s = x.failed ? RLX_ERROR_MEMORY : RLX_OK;
    text_free(&x);
    return s;
}

TEST(text, survives_no_memory)
{
    expect_survives_no_memory(t, build, NULL);
}
