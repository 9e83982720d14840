/* diag_test.c: what a failure's record holds, and how text that does not fit is cut. */
#include "base/diag.h"

#include <string.h>

#include "base/str.h"
#include "test.h"

TEST(diag, starts_empty)
{
    struct diag d;
    rlx_error err = {.status = RLX_ERROR_INTERNAL, .message = "as it was"};

    diag_init(&d, "infer");
    expect_ok(t, diag_report(&d, &err));
    expect_str(t, err.message, "as it was"); /* no failure: left alone */
    expect_ok(t, diag_report(&d, NULL));
}

TEST(diag, records_place_and_sentence)
{
    struct diag d;
    rlx_error err;

    diag_init(&d, "infer");
    diag_at(&d, "matmul", 7, STR("layer.0"));
    expect_status(t, diag_fail(&d, RLX_ERROR_SHAPE, "inner dimensions differ: %d and %d", 8, 9),
                  RLX_ERROR_SHAPE);
    expect_status(t, diag_report(&d, &err), RLX_ERROR_SHAPE);
    expect_error(t, RLX_ERROR_SHAPE, "inner dimensions differ: 8 and 9", &err);
    expect_str(t, err.stage, "infer");
    expect_str(t, err.backend, "");
    expect_str(t, err.op, "matmul");
    expect_str(t, err.label, "layer.0");
    expect_eq(t, err.node, 7);
}

TEST(diag, place_can_change_and_be_cleared)
{
    struct diag d;

    diag_init(&d, "infer");
    diag_at(&d, "add", 3, STR("x"));
    diag_stage(&d, "run", "cpu");
    diag_at(&d, NULL, 5, (rlx_str){NULL, 0});
    diag_fail(&d, RLX_ERROR_IO, "no");
    expect_str(t, d.first.stage, "run");
    expect_str(t, d.first.backend, "cpu");
    expect_str(t, d.first.op, "");
    expect_str(t, d.first.label, "");
    expect_eq(t, d.first.node, -1);
}

struct heard {
    int count;
    rlx_error last;
};

static void hear(void *user, const rlx_error *e)
{
    struct heard *h = user;

    h->count++;
    h->last = *e;
}

TEST(diag, keeps_the_first_and_tells_of_each)
{
    struct diag d;
    struct heard h = {0};

    diag_init(&d, "verify");
    d.each = hear;
    d.user = &h;
    diag_fail(&d, RLX_ERROR_GRAPH, "one");
    diag_fail(&d, RLX_ERROR_DTYPE, "two");
    expect_eq(t, d.count, 2);
    expect_error(t, RLX_ERROR_GRAPH, "one", &d.first);
    expect_eq(t, h.count, 2);
    expect_error(t, RLX_ERROR_DTYPE, "two", &h.last);
}

TEST(diag, null_is_fine)
{
    diag_at(NULL, "add", 0, STR("x"));
    diag_stage(NULL, "run", NULL);
    expect_status(t, diag_fail(NULL, RLX_ERROR_NAME, "x"), RLX_ERROR_NAME);
    expect_status(t, diag_no_memory(NULL, 1), RLX_ERROR_MEMORY);
}

TEST(diag, a_failure_never_looks_like_success)
{
    struct diag d;

    diag_init(&d, "x");
    expect_status(t, diag_fail(&d, RLX_OK, "odd"), RLX_ERROR_INTERNAL);
    expect_status(t, diag_report(&d, NULL), RLX_ERROR_INTERNAL);
}

TEST(diag, no_memory_says_how_much)
{
    struct diag d;

    diag_init(&d, "x");
    diag_no_memory(&d, 123456);
    expect_error(t, RLX_ERROR_MEMORY, "123456 bytes", &d.first);
}

/* ---- cutting ----------------------------------------------------------------------------- */

TEST(diag, text_that_just_fits_is_whole)
{
    struct diag d;
    char text[2 * sizeof d.first.message];

    for (size_t len = sizeof d.first.message - 6; len < sizeof d.first.message + 6; len++) {
        memset(text, 'a', len);
        text[len] = 0;
        diag_init(&d, "x");
        diag_fail(&d, RLX_ERROR_IO, "%s", text);
        size_t got = strlen(d.first.message);
        test_note(t, "length %zu", len);
        if (len < sizeof d.first.message) {
            expect_str(t, d.first.message, text);
        } else {
            expect_eq(t, got, sizeof d.first.message - 1);
            expect_str(t, d.first.message + got - 4, "a...");
        }
    }
}

TEST(diag, cuts_between_characters)
{
    static const char *const chars[] = {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x99\x82"};
    struct diag d;
    char text[1200];

    for (size_t c = 0; c < 3; c++) {
        for (size_t shift = 0; shift < 8; shift++) {
            size_t len = shift, step = strlen(chars[c]);
            memset(text, 'x', shift);
            for (; len + step < sizeof text; len += step)
                memcpy(text + len, chars[c], step);
            text[len] = 0;
            test_note(t, "characters of %zu bytes after %zu", step, shift);
            diag_init(&d, "x");
            diag_at(&d, text, 1, (rlx_str){text, len});
            diag_fail(&d, RLX_ERROR_IO, "%s", text);
            const char *each[] = {d.first.message, d.first.label, d.first.op};
            const size_t room[] = {sizeof d.first.message, sizeof d.first.label, sizeof d.first.op};
            for (int i = 0; i < 3; i++) {
                expect(t, str_is_utf8(rlx_cstr(each[i])));
                expect(t, str_ends(rlx_cstr(each[i]), STR("...")));
                expect(t, strlen(each[i]) + step >= room[i] - 1);
            }
        }
    }
}

TEST(diag, strange_bytes_become_question_marks)
{
    struct diag d;

    diag_init(&d, "x");
    diag_at(&d, "add", 1, STR("a\0b\x1b[2J\xff"));
    diag_fail(&d, RLX_ERROR_FORMAT, "key \"%s\" \xed\xa0\x80 line\n\tnext \xc3", "\x07\xc0\xaf");
    expect_str(t, d.first.label, "a?b?[2J?");
    expect_str(t, d.first.message, "key \"???\" ??? line\n\tnext ?");
}
