/* json_read_test.c: JSON of any depth and kind, skipped or refused. What headers need of it is in
 * tests/import/safetensors_test.c. */
#include "base/json_read.h"

#include <string.h>

#include "../test.h"
#include "base/str.h"

/* Skips one value and wants nothing after it. */
static rlx_status skip_text(const char *text, int max_depth, struct diag *d)
{
    struct arena arena;

    diag_init(d, "test");
    arena_init(&arena, mem_default());
    struct json_in j = {rlx_cstr(text), 0, 0, 0, max_depth, "json", &arena, d};
    rlx_status s = json_read_skip(&j);
    if (s == RLX_OK)
        s = json_read_end(&j);
    arena_free(&arena);
    return s;
}

TEST(json_read, skips_values)
{
    static const char *const good[] = {
        "null",        "true", "false", "0",         "-1.5e+3",
        "\"a\\\"b\"",  "[]",   "{}",    "[1,2,[3]]", "{\"a\": {\"b\": [null, {}]}, \"c\" : \"d\"}",
        " \t\r\n[ 1 ]"};
    static const char *const bad[] = {"",      "nul",   "[1,]", "[,1]",    "{\"a\"}",
                                      "{1:2}", "[1 2]", "[1",   "\"",      "{\"a\":}",
                                      "--1",   "[1}",   "{]",   "\"\\u\"", "1e999"};
    struct diag d;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        test_note(t, "%s", good[i]);
        expect_ok(t, skip_text(good[i], 64, &d));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        test_note(t, "%s", bad[i]);
        expect_status(t, skip_text(bad[i], 64, &d), RLX_ERROR_FORMAT);
    }
}

TEST(json_read, depth_is_bounded)
{
    char text[200];
    struct diag d;

    for (size_t depth = 63; depth <= 65; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = 0;
        expect_status(t, skip_text(text, 64, &d), depth <= 64 ? RLX_OK : RLX_ERROR_FORMAT);
    }
    expect_error(t, RLX_ERROR_FORMAT, "too many brackets", &d.first);
}

TEST(json_read, words_are_what_they_say)
{
    struct diag d;
    struct arena arena;
    struct json_word w;

    diag_init(&d, "test");
    arena_init(&arena, mem_default());
    struct json_in j = {
        rlx_cstr(" true,false null 12 -9223372036854775808 9223372036854775808 1.5 1e2 x"),
        0,
        0,
        0,
        4,
        "json",
        &arena,
        &d};
    expect_eq(t, json_read_peek(&j), 't');
    expect(t, json_read_word(&j, &w) == RLX_OK && w.kind == JSON_WORD_BOOL && w.b);
    expect_eq(t, json_read_peek(&j), ',');
    j.pos++;
    expect(t, json_read_word(&j, &w) == RLX_OK && w.kind == JSON_WORD_BOOL && !w.b);
    expect(t, json_read_word(&j, &w) == RLX_OK && w.kind == JSON_WORD_NULL);
    expect(t, json_read_word(&j, &w) == RLX_OK && w.kind == JSON_WORD_INT && w.i == 12);
    expect(t, json_read_word(&j, &w) == RLX_OK && w.kind == JSON_WORD_INT && w.i == INT64_MIN);
    expect(t, json_read_word(&j, &w) == RLX_OK && w.kind == JSON_WORD_FLOAT && w.f == 0x1p63);
    expect(t, json_read_word(&j, &w) == RLX_OK && w.kind == JSON_WORD_FLOAT && w.f == 1.5);
    expect(t, json_read_word(&j, &w) == RLX_OK && w.kind == JSON_WORD_FLOAT && w.f == 100);
    expect_status(t, json_read_word(&j, &w), RLX_ERROR_FORMAT);
    expect_error(t, RLX_ERROR_FORMAT, "a value was expected", &d.first);
    j.pos = j.text.len;
    expect_eq(t, json_read_peek(&j), 0);
    arena_free(&arena);
}
