/* expand_recurrent_test.c: mamba2 and the recurrent layers as scans, run on the CPU beside its own
 * kernels for them; and what the scans look like. */
#include <math.h>

#include "../ops/device_run.h"
#include "base/str.h"
#include "ir/text/text.h"
#include "pass/pass.h"

enum { MOST = 4096 };

/* The text after the rewriting that a device without this family gets. */
static bool rewrite(struct test *t, const char *source, enum op_family lacking, struct text *out)
{
    struct target target = {.backend = "test", .alignment = 64};
    struct ir_module *m = NULL;
    struct diag d;
    uint64_t changes = 0;

    for (int f = 0; f < FAMILY_count; f++)
        target.native[f] = f != (int)lacking;
    diag_init(&d, "test");
    rlx_status s = ir_parse(rlx_cstr(source), NULL, mem_default(), &m, &d);
    if (s == RLX_OK)
        s = pass_one(pass_find(STR("expand")), m, &target, NULL, &changes, &d);
    if (s == RLX_OK)
        s = ir_print(m, NULL, out, &d);
    if (!expect_ok(t, s))
        fail(t, "%s\n  in: %s", d.first.message, source);
    expect(t, changes > 0);
    ir_module_destroy(m);
    return s == RLX_OK;
}

static void check(struct test *t, struct device_run *r, const char *source, enum op_family lacking)
{
    static double want[MOST], got[MOST];
    struct text text;

    text_init(&text, mem_default());
    if (rewrite(t, source, lacking, &text)) {
        long a = device_numbers(t, r, source, 0, want, MOST);
        long b = device_numbers(t, r, text.at, 0, got, MOST);
        test_note(t, "%s", source);
        expect_eq(t, a, b);
        expect(t, a > 0 && a <= MOST);
        expect_contains(t, text.at, " = scan ");
        double largest = 1; /* relu lets states grow, and sums of large ones may be small */
        for (long k = 0; k < a && k < MOST; k++)
            largest = fmax(largest, fabs(want[k]));
        for (long k = 0; k < a && k < MOST; k++)
            expect_near(t, got[k], want[k], 2e-5 * largest);
        test_note(t, "%s", "");
    }
    text_free(&text);
}

#define RANDOM(name, shape, seed) \
    "%" name " = rng_uniform shape=" shape " low=-1 high=1 seed=" seed " "
#define LAYER(op, gates, dirs, more, operands, attrs)                                           \
    "rlx 1\ngraph () { " RANDOM("x", "[5,9,6]", "1") RANDOM("i", "[" dirs "," gates ",6]", "2") \
        RANDOM("h", "[" dirs "," gates ",20]", "3") RANDOM("c", "[" dirs "," gates "]", "4")    \
            RANDOM("d", "[" dirs "," gates "]", "5") more                                       \
        "%y = " op " %x, %i, %h, %c, %d" operands " hidden_size=20 " attrs " return %y }"
#define STATES RANDOM("u", "[2,5,20]", "6") RANDOM("v", "[2,5,20]", "7")
#define LENGTHS "%l = const i64[5] {9 0 4 100 -3} "

TEST(pass, layers_as_scans_run)
{
    static const char *const layer[] = {
        LAYER("lstm", "80", "1", "", "", ""),
        LAYER("lstm", "80", "2", STATES LENGTHS, ", %u, %v, %l",
              "bidirectional=true has_state=true has_lengths=true"),
        LAYER("lstm", "80", "2", STATES LENGTHS, ", %u, %v, %l",
              "bidirectional=true has_state=true has_lengths=true result=c"),
        LAYER("gru", "60", "2", STATES LENGTHS, ", %u, %l",
              "bidirectional=true has_state=true has_lengths=true"),
        LAYER("gru", "60", "1", "", "", "result=h"),
        LAYER("rnn", "20", "2", LENGTHS, ", %l",
              "bidirectional=true has_lengths=true activation=relu result=h"),
    };
    struct device_run r;

    if (!device_open(t, &r, "cpu"))
        return;
    for (size_t i = 0; i < sizeof layer / sizeof layer[0]; i++)
        check(t, &r, layer[i], FAMILY_recurrent);
    check(t, &r,
          "rlx 1\ngraph () { " RANDOM("x", "[2,7,3,10]", "1") RANDOM("d", "[2,7,3]", "2")
              RANDOM("a", "[3]", "3") RANDOM("b", "[2,7,3,5]", "4")
                  RANDOM("c", "[2,7,3,5]",
                         "5") "%y = mamba2 %x, %d, %a, %b, %c head_dim=10 state_size=5 return %y }",
          FAMILY_mamba2);
    check(t, &r,
          "rlx 1\ngraph () { " RANDOM("x", "[2,7,6,10]", "1") RANDOM("d", "[2,7,6]", "2")
              RANDOM("a", "[6]", "3") RANDOM("b", "[2,7,2,5]", "4")
                  RANDOM("c", "[2,7,2,5]",
                         "5") "%y = mamba2 %x, %d, %a, %b, %c head_dim=10 state_size=5 groups=2 "
                              "return %y }",
          FAMILY_mamba2);
    device_close(&r);
}

/* A body of their own each, whatever the graphs that are there are called. */
TEST(pass, layers_as_scans_have_bodies)
{
    struct text text;

    text_init(&text, mem_default());
    if (rewrite(t,
                "rlx 1\ngraph @main (input %x: f32[2,3,4], input %i: f32[1,4,4], input %h: "
                "f32[1,4,4], input %b: f32[1,4]) { %y = rnn %x, %i, %h, %b, %b hidden_size=4 "
                "%z = rnn %y, %i, %h, %b, %b hidden_size=4 %w = scan %z body=@step3 length=2 "
                "return %w }\n graph @step3 (input %c: f32[2,3,4]) { %y = neg %c return %y }",
                FAMILY_recurrent, &text)) {
        expect_contains(t, text.at, "graph @step3 (input %c: f32[2,3,4])");
        expect_contains(t, text.at, "graph @step (");
        expect_contains(t, text.at, "graph @step_2 (");
    }
    text_free(&text);
}
