/* flags_test.c: flags from the environment and from code. */
#include "base/flags.h"

#include <string.h>

#include "base/str.h"
#include "test.h"

struct heard {
    int lines;
    char last[400];
};

static void hear(void *user, const char *line)
{
    struct heard *h = user;

    h->lines++;
    strncpy(h->last, line, sizeof h->last - 1);
}

static bool read(struct test *t, struct flags *f, char *const *environment, const rlx_flag *over,
                 size_t count, struct heard *h)
{
    struct diag d;

    *h = (struct heard){0};
    diag_init(&d, "test");
    return expect_ok(t, flags_read(f, over, count, environment, mem_default(), hear, h, &d));
}

TEST(flags, on_is_anything_but_a_few_words)
{
    static const char *const off[] = {"", "0", " 0 ", "false", "FALSE", "Off", "no", "\tNo\n"};
    static const char *const on[] = {"1", "00", "10", "true", "yes", "nope", "x", "-"};

    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++)
        expect(t, !flag_text_is_on(rlx_cstr(off[i])));
    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++)
        expect(t, flag_text_is_on(rlx_cstr(on[i])));
}

TEST(flags, defaults_stand_where_nothing_is_said)
{
    struct flags f;
    struct heard h;
    char *const nothing[] = {"PATH=/bin", "RLXY=1", NULL};

    require(t, read(t, &f, nothing, NULL, 0, &h));
    expect_eq(t, h.lines, 0);
    for (int i = 0; i < FLAG_count; i++) {
        expect_eq(t, f.at[i].source, FLAG_DEFAULT);
        expect_str(t, f.at[i].text, flag_info((enum flag_id)i)->default_text);
    }
    expect(t, !f.at[FLAG_NO_STATIC_PACK].on);
    expect(t, !f.at[FLAG_VERIFY].on);
    flags_free(&f);
}

TEST(flags, overrides_beat_the_environment_and_end_with_their_context)
{
    struct flags f, plain;
    struct heard h;
    char *const environment[] = {"RLX_VERBOSE=1", "RLX_DEVICE= cpu:baseline ", "RLX_VERIFY=1",
                                 "RLX_KERNEL_DISPATCH=Native", NULL};
    const rlx_flag over[] = {{"VERBOSE", "2"}, {"RLX_VERIFY", "off"}, {"IR_DUMP", NULL}};

    require(t, read(t, &f, environment, over, 3, &h));
    require(t, read(t, &plain, environment, NULL, 0, &h));
    expect_eq(t, f.at[FLAG_VERBOSE].number, 2);
    expect_eq(t, f.at[FLAG_VERBOSE].source, FLAG_OVERRIDE);
    expect_eq(t, plain.at[FLAG_VERBOSE].number, 1);
    expect_eq(t, plain.at[FLAG_VERBOSE].source, FLAG_ENVIRONMENT);
    expect(t, !f.at[FLAG_VERIFY].on && plain.at[FLAG_VERIFY].on);
    expect_str(t, f.at[FLAG_DEVICE].text, "cpu:baseline");
    expect_eq(t, f.at[FLAG_KERNEL_DISPATCH].number, 2);
    flags_free(&f);
    flags_free(&plain);
}

TEST(flags, what_makes_no_sense_is_said_once_and_left_at_its_default)
{
    struct flags f;
    struct heard h;
    char *const number[] = {"RLX_WORKERS=many", NULL}, *const negative[] = {"RLX_WORKERS=-1", NULL};
    char *const word[] = {"RLX_KERNEL_DISPATCH=both", NULL};
    char *const strangers[] = {"RLX_VERBOS=1", "RLX_NO_SUCH=2", "RLX_VERBOSE=1", NULL};

    require(t, read(t, &f, number, NULL, 0, &h));
    expect_eq(t, h.lines, 1);
    expect_contains(t, h.last, "RLX_WORKERS takes N, not \"many\"");
    expect_eq(t, f.at[FLAG_WORKERS].number, 0);
    flags_free(&f);
    require(t, read(t, &f, negative, NULL, 0, &h));
    expect_eq(t, h.lines, 1);
    expect_eq(t, f.at[FLAG_WORKERS].number, 0);
    flags_free(&f);
    require(t, read(t, &f, word, NULL, 0, &h));
    expect_contains(t, h.last, "common|native");
    expect_eq(t, f.at[FLAG_KERNEL_DISPATCH].number, 0);
    flags_free(&f);
    require(t, read(t, &f, strangers, NULL, 0, &h));
    expect_eq(t, h.lines, 1);
    expect_contains(t, h.last, "2 RLX_ names");
    expect_contains(t, h.last, "RLX_VERBOS, RLX_NO_SUCH");
    expect_eq(t, f.at[FLAG_VERBOSE].number, 1);
    flags_free(&f);
}

TEST(flags, those_of_options_have_a_second_name)
{
    struct flags f;
    struct heard h;
    const rlx_flag over[] = {{"verify_passes", "1"}, {"dispatch", "common"}, {"alignment", "64"}};

    require(t, read(t, &f, NULL, over, 3, &h));
    expect(t, f.at[FLAG_VERIFY].on && f.at[FLAG_VERIFY].source == FLAG_OVERRIDE);
    expect_eq(t, f.at[FLAG_KERNEL_DISPATCH].number, 1);
    expect_eq(t, f.at[FLAG_ARENA_ALIGN].number, 64);
    flags_free(&f);
}

/* "1|fail" is a switch that has one word more. */
TEST(flags, a_choice_may_begin_with_on)
{
    static const struct {
        const char *text;
        int64_t number;
    } row[] = {{"RLX_DEBUG_NANS=1", 1},   {"RLX_DEBUG_NANS=yes", 1}, {"RLX_DEBUG_NANS=FAIL", 2},
               {"RLX_DEBUG_NANS=off", 0}, {"RLX_DEBUG_NANS=", 0},    {"RLX_KERNEL_DISPATCH=on", 0}};

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char *const environment[] = {(char *)row[i].text, NULL};
        struct flags f;
        struct heard h;
        test_note(t, "%s", row[i].text);
        require(t, read(t, &f, environment, NULL, 0, &h));
        expect_eq(t, f.at[FLAG_DEBUG_NANS].number + f.at[FLAG_KERNEL_DISPATCH].number,
                  row[i].number);
        expect_eq(t, h.lines, i == 5);
        flags_free(&f);
    }
}

TEST(flags, an_override_that_makes_no_sense_is_refused)
{
    static const rlx_flag wrong[] = {
        {"WORKERS", "many"}, {"loop_limit", "-1"}, {"dispatch", "both"}};
    struct flags f;
    struct diag d;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        diag_init(&d, "test");
        expect_status(t, flags_read(&f, &wrong[i], 1, NULL, mem_default(), NULL, NULL, &d),
                      RLX_ERROR_ARGUMENT);
        expect_contains(t, d.first.message, wrong[i].value);
    }
}

TEST(flags, an_unknown_override_is_refused)
{
    struct flags f;
    struct diag d;
    const rlx_flag wrong = {"VERBOS", "1"}, nameless = {NULL, "1"};

    diag_init(&d, "test");
    expect_status(t, flags_read(&f, &wrong, 1, NULL, mem_default(), NULL, NULL, &d),
                  RLX_ERROR_NAME);
    expect_contains(t, d.first.message, "VERBOS");
    diag_init(&d, "test");
    expect_status(t, flags_read(&f, &nameless, 1, NULL, mem_default(), NULL, NULL, &d),
                  RLX_ERROR_ARGUMENT);
}

static rlx_status read_all(struct test *t, const rlx_allocator *mem, void *ctx)
{
    char *const environment[] = {"RLX_VERBOSE=1", "RLX_DEVICE=cpu", NULL};
    struct flags f;
    struct diag d;

    (void)t, (void)ctx;
    diag_init(&d, "test");
    TRY(flags_read(&f, NULL, 0, environment, mem, NULL, NULL, &d));
    flags_free(&f);
    return RLX_OK;
}

TEST(flags, survives_want_of_memory)
{
    expect_survives_no_memory(t, read_all, NULL);
}
