/* eval_special_sequence_test.c: scans, linear attention and recurrent layers: the worked vectors of
 * ops-special.md 11.3, and that input in pieces gives the same as all at once. */
#include "eval_special.h"

/* ---- selective_scan ------------------------------------------------------------------------ */

TEST(sequence, selective_scan)
{
    evals(t, 1e-6,
          "%x = const f32[1,2,1] {1 2} %d = const f32[1,2,1] {0.5 0.25} "
          "%a = const f32[1,2] {-1 -2} %b = const f32[1,2,2] {1 0.5 0.5 1} "
          "%c = const f32[1,2,2] {1 1 2 -1} "
          "%y = selective_scan %x, %d, %a, %b, %c state_size=2 return %y",
          "0.75 0.6271681");
    evals(t, 0,
          "%x = const f32[2,0,3] {} %a = const f32[3,1] {1 2 3} %b = const f32[2,0,1] {} "
          "%y = selective_scan %x, %x, %a, %b, %b state_size=1 return %y",
          "");
}

TEST(sequence, selective_scan_sees_no_later_input)
{
    struct special s;
    double before[2 * 5 * 3];

    if (!special_open(
            t, &s,
            "rlx 1 graph (input %x: f32[2,5,3], input %d: f32[2,5,3], input %a: f32[3,4], "
            "input %b: f32[2,5,4], input %c: f32[2,5,4]) { "
            "%y = selective_scan %x, %d, %a, %b, %c state_size=4 return %y }"))
        return;
    fill_reals(special_leaf(t, &s, "x"), 1, -1, 1);
    fill_reals(special_leaf(t, &s, "d"), 2, 0, 1);
    fill_reals(special_leaf(t, &s, "a"), 3, -2, 0);
    fill_reals(special_leaf(t, &s, "b"), 4, -1, 1);
    fill_reals(special_leaf(t, &s, "c"), 5, -1, 1);
    require(t, special_run(t, &s));
    for (int64_t k = 0; k < 30; k++)
        before[k] = special_out(&s, 0, k);
    struct eval_tensor *x = special_leaf(t, &s, "x");
    for (int64_t ch = 0; ch < 3; ch++)
        x->at[3 * 3 + ch].f += 1; /* item 0, step 3 */
    require(t, special_run(t, &s));
    for (int64_t k = 0; k < 30; k++) {
        if (k < 9 || k >= 15) /* before step 3, and the other item */
            expect_near(t, special_out(&s, 0, k), before[k], 0);
        else
            expect(t, special_out(&s, 0, k) != before[k]);
    }
    special_close(&s);
}

TEST(sequence, selective_scan_with_a_state)
{
    static const double want[2] = {0.5 + 2 * 0.6065306597126334, 0.25 + 3 * 0.36787944117144233};
    struct special s;

    if (!special_open(t, &s,
                      "rlx 1 graph (state %s: f32[1,1,2]) { %x = const f32[1,1,1] {1} "
                      "%d = const f32[1,1,1] {0.5} %a = const f32[1,2] {-1 -2} "
                      "%b = const f32[1,1,2] {1 0.5} %c = const f32[1,1,2] {1 -2} "
                      "%y = selective_scan %x, %d, %a, %b, %c, %s state_size=2 carry_state=true "
                      "return %y }"))
        return;
    for (int64_t k = 0; k < 2; k++)
        special_leaf(t, &s, "s")->at[k].f = 2 + (double)k;
    if (special_run(t, &s)) {
        for (int64_t k = 0; k < 2; k++)
            expect_near(t, special_leaf(t, &s, "s")->at[k].f, want[k], 1e-6);
        expect_near(t, special_out(&s, 0, 0), want[0] - 2 * want[1], 1e-6);
    }
    special_close(&s);
}

/* ---- gated_delta_net ----------------------------------------------------------------------- */

#define DELTA_EXAMPLE                                                        \
    "%q = const f32[1,2,1,2] {1 0 0 1} %k = const f32[1,2,1,2] {1 0 .6 .8} " \
    "%v = const f32[1,2,1,2] {2 4 1 -1} %g = const f32[1,2,1] {0 -.5} "      \
    "%b = const f32[1,2,1] {.5 1} "

TEST(sequence, gated_delta_net)
{
    static const double state[4] = {0.9881796, 0.1763592, 0.5088653, -1.3822694};
    struct special s;

    evals(t, 1e-6, DELTA_EXAMPLE "%y = gated_delta_net %q, %k, %v, %g, %b state_size=2 return %y",
          "0.7071068 1.4142136 0.3598221 -0.9774121");
    if (!special_open(t, &s,
                      "rlx 1 graph (state %s: f32[1,1,2,2]) { " DELTA_EXAMPLE
                      "%y = gated_delta_net %q, %k, %v, %g, %b, %s state_size=2 carry_state=true "
                      "return %y }"))
        return;
    if (special_run(t, &s))
        for (int64_t k = 0; k < 4; k++)
            expect_near(t, special_leaf(t, &s, "s")->at[k].f, state[k], 1e-6);
    special_close(&s);
}

#define DELTA_NET(steps)                                                              \
    "rlx 1 graph (input %q: f32[2," steps ",3,4], input %k: f32[2," steps             \
    ",3,4], input %v: f32[2," steps ",3,4], input %g: f32[2," steps ",3], input %b: " \
    "f32[2," steps ",3], state %s: f32[2,3,4,4]) { "                                  \
    "%y = gated_delta_net %q, %k, %v, %g, %b, %s state_size=4 carry_state=true return %y }"

/* Step `at` of [2,6,3,width]. */
static void take_step(struct eval_tensor *to, const struct eval_tensor *from, int64_t at)
{
    int64_t row = to->count / 2;

    for (int64_t k = 0; k < to->count; k++)
        to->at[k] = from->at[(k / row * 6 + at) * row + k % row];
}

TEST(sequence, tokens_one_by_one_equal_one_prefill)
{
    static const char *const name[] = {"q", "k", "v", "g", "b"};
    struct special all, one;

    if (!special_open(t, &all, DELTA_NET("6")))
        return;
    for (uint64_t i = 0; i < 5; i++)
        fill_reals(special_leaf(t, &all, name[i]), i + 1, i == 3 ? -1 : -0.7, i == 3 ? 0 : 0.7);
    fill_reals(special_leaf(t, &all, "s"), 9, -1, 1);
    if (!special_open(t, &one, DELTA_NET("1"))) {
        special_close(&all);
        return;
    }
    eval_copy(special_leaf(t, &one, "s"), special_leaf(t, &all, "s"));
    bool ran = special_run(t, &all);
    for (int64_t step = 0; ran && step < 6; step++) {
        for (int i = 0; i < 5; i++)
            take_step(special_leaf(t, &one, name[i]), special_leaf(t, &all, name[i]), step);
        ran = special_run(t, &one);
        for (int64_t k = 0; ran && k < 24; k++)
            expect_near(t, special_out(&one, 0, k),
                        special_out(&all, 0, (k / 12 * 6 + step) * 12 + k % 12), 1e-5);
    }
    for (int64_t k = 0; ran && k < 96; k++)
        expect_near(t, special_leaf(t, &one, "s")->at[k].f, special_leaf(t, &all, "s")->at[k].f,
                    1e-5);
    special_close(&one);
    special_close(&all);
}

TEST(sequence, no_tokens_leave_the_state)
{
    struct special s;

    if (!special_open(t, &s, DELTA_NET("0")))
        return;
    fill_reals(special_leaf(t, &s, "s"), 9, -1, 1);
    double first = special_leaf(t, &s, "s")->at[0].f;
    if (special_run(t, &s)) {
        expect_near(t, special_leaf(t, &s, "s")->at[0].f, first, 0);
        expect_eq(t, run_output(&s.run, 0)->count, 0);
    }
    special_close(&s);
}

TEST(sequence, a_state_may_be_an_operand_too)
{
    struct special s;

    /* q and the state are one leaf: every head reads it as it was */
    if (!special_open(t, &s,
                      "rlx 1 graph (state %s: f32[1,2,2,2], input %k: f32[1,2,2,2]) { "
                      "%g = const f32[1,2,2] {0 0 0 0} %b = const f32[1,2,2] {1 1 1 1} "
                      "%z = gated_delta_net %s, %k, %k, %g, %b, %s state_size=2 carry_state=true "
                      "return %z }"))
        return;
    struct eval_tensor *state = special_leaf(t, &s, "s");
    for (int64_t k = 0; k < 8; k++)
        state->at[k].f = (double)k;
    if (special_run(t, &s)) /* k = 0: the state stays, y = S^T q / sqrt 2 */
        for (int64_t k = 0; k < 8; k++) {
            int64_t step = k / 4, head = k / 2 % 2, j = k % 2;
            double want = 0;
            for (int64_t i = 0; i < 2; i++)
                want += (double)(head * 4 + i * 2 + j) * (double)(step * 4 + head * 2 + i);
            expect_near(t, special_out(&s, 0, k), want / sqrt(2), 1e-5);
        }
    special_close(&s);
}

TEST(sequence, mamba2)
{
    /* one channel, one state: M = e^(dt a) M + dt x b */
    evals(t, 1e-6,
          "%x = const f32[1,2,1,1] {1 2} %d = const f32[1,2,1] {0.5 0.25} %a = const f32[1] {-1} "
          "%b = const f32[1,2,1,1] {1 0.5} %c = const f32[1,2,1,1] {1 2} "
          "%y = mamba2 %x, %d, %a, %b, %c head_dim=1 state_size=1 return %y",
          "0.5 1.2788007830714049");
    evals(t, 1e-6, /* [d,n] = x (outer) b */
          "%x = const f32[1,1,1,2] {1 2} %d = const f32[1,1,1] {1} %a = const f32[1] {-1} "
          "%b = const f32[1,1,1,3] {1 10 100} %c = const f32[1,1,1,3] {1 1 -1} "
          "%y = mamba2 %x, %d, %a, %b, %c head_dim=2 state_size=3 return %y",
          "-89 -178");
    evals(t, 0,
          "%x = const f32[0,2,1,1] {} %d = const f32[0,2,1] {} %a = const f32[1] {-1} "
          "%y = mamba2 %x, %d, %a, %x, %x head_dim=1 state_size=1 return %y",
          "");
}

TEST(sequence, mamba2_with_a_state)
{
    static const double want[2] = {1.7130613194252668, 2.5};
    struct special s;

    /* two heads of one group; the second does not decay: M = e^(dt a) M + dt x b */
    if (!special_open(t, &s,
                      "rlx 1 graph (state %s: f32[1,2,1,1]) { %x = const f32[1,1,2,1] {1 2} "
                      "%d = const f32[1,1,2] {0.5 0.25} %a = const f32[2] {-1 0} "
                      "%b = const f32[1,1,1,1] {1} %c = const f32[1,1,1,1] {2} "
                      "%y = mamba2 %x, %d, %a, %b, %c, %s head_dim=1 state_size=1 groups=1 "
                      "carry_state=true return %y }"))
        return;
    for (int64_t k = 0; k < 2; k++)
        special_leaf(t, &s, "s")->at[k].f = 2;
    if (special_run(t, &s))
        for (int64_t k = 0; k < 2; k++) {
            expect_near(t, special_leaf(t, &s, "s")->at[k].f, want[k], 1e-6);
            expect_near(t, special_out(&s, 0, k), 2 * want[k], 1e-6);
        }
    special_close(&s);
}

TEST(sequence, causal_conv)
{
    static const double left[4] = {20, 200, 1, 10};
    struct special s;

    /* two channels: 1 2 3 with taps 1 10 100 */
    evals(t, 1e-6,
          "%x = const f32[1,3,2] {1 1 2 0 3 0} %w = const f32[2,3] {1 10 100 1 2 4} "
          "%y = causal_conv %x, %w return %y",
          "100 4 210 2 321 1");
    evals(t, 1e-6,
          "%x = const f32[1,1,1] {2} %w = const f32[1,1] {3} %b = const f32[1] {-6.5} "
          "%y = causal_conv %x, %w, %b activation=silu return %y",
          "-0.18877033");
    /* one new row: of the two that are kept, one stays */
    if (!special_open(t, &s,
                      "rlx 1 graph (state %s: f32[1,2,2]) { %x = const f32[1,1,2] {1 10} "
                      "%w = const f32[2,3] {1 1 1 0 0 1} "
                      "%y = causal_conv %x, %w, %s carry_state=true return %y }"))
        return;
    for (int64_t k = 0; k < 4; k++)
        special_leaf(t, &s, "s")->at[k].f = (double[]){4, 40, 20, 200}[k];
    if (special_run(t, &s)) {
        for (int64_t k = 0; k < 4; k++)
            expect_near(t, special_leaf(t, &s, "s")->at[k].f, left[k], 0);
        expect_near(t, special_out(&s, 0, 0), 25, 1e-6);
        expect_near(t, special_out(&s, 0, 1), 10, 1e-6);
    }
    special_close(&s);
}

/* ---- recurrent layers ---------------------------------------------------------------------- */

TEST(sequence, rnn_by_hand)
{
    evals(t, 1e-6,
          "%x = const f32[1,3,1] {1 -3 2} %i = const f32[1,1,1] {1} %h = const f32[1,1,1] {2} "
          "%b = const f32[1,1] {0.5} %c = const f32[1,1] {0.25} "
          "%r = rnn %x, %i, %h, %b, %c hidden_size=1 activation=relu "
          "%t = rnn %x, %i, %h, %b, %c hidden_size=1 result=h "
          "%s = const f32[1,1,1] {10} %u = rnn %x, %i, %h, %b, %c, %s hidden_size=1 "
          "activation=relu has_state=true return %r, %t, %u",
          "1.75 1.25 5.25", "0.96719128", "21.75 41.25 85.25");
}

TEST(sequence, lstm_by_hand)
{
    /* all weights 0: gates are their biases, i f g o; b_ih and b_hh add up */
    evals(t, 1e-6,
          "%x = const f32[1,2,1] {0 0} %i = const f32[1,4,1] {0 0 0 0} %h = const f32[1,4,1] {0 0 "
          "0 0} "
          "%b = const f32[1,4] {1 2 0.25 -1} %c = const f32[1,4] {0 0 0.25 0} "
          "%s = lstm %x, %i, %h, %b, %c hidden_size=1 "
          "%n = lstm %x, %i, %h, %b, %c hidden_size=1 result=h "
          "%m = lstm %x, %i, %h, %b, %c hidden_size=1 result=c return %s, %n, %m",
          "0.08755198 0.15108008", "0.15108008", "0.63539854");
}

TEST(sequence, gru_by_hand)
{
    /* r bears on h W + b_hn, not on the input's part */
    evals(t, 1e-6,
          "%x = const f32[1,1,1] {1} %i = const f32[1,3,1] {0.5 -0.5 1} "
          "%h = const f32[1,3,1] {1 1 -2} %b = const f32[1,3] {0 0 0.1} "
          "%c = const f32[1,3] {0 0 0.3} %s = const f32[1,1,1] {0.8} "
          "%y = gru %x, %i, %h, %b, %c, %s hidden_size=1 has_state=true return %y",
          "0.49285567");
}

#define LAYER(op, gates, more, dirs, inputs)                                                      \
    "rlx 1 graph (input %x: f32[3,4,2], param %i: f32[" dirs "," gates ",2], param %h: f32[" dirs \
    "," gates ",3], param %b: f32[" dirs "," gates "], param %c: f32[" dirs "," gates             \
    "], input %l: i32[3]) { %y = " op " %x, %i, %h, %b, %c" inputs " hidden_size=3 " more         \
    " %f = " op " %x, %i, %h, %b, %c" inputs " hidden_size=3 result=h " more " return %y, %f }"

static void fill_layer(struct test *t, struct special *s)
{
    static const char *const name[] = {"x", "i", "h", "b", "c"};

    for (uint64_t i = 0; i < 5; i++)
        fill_reals(special_leaf(t, s, name[i]), i + 1, -1, 1);
}

static void check_directions(struct test *t, const char *both, const char *one)
{
    struct special two, single;

    if (!special_open(t, &two, both))
        return;
    fill_layer(t, &two);
    if (special_run(t, &two) && special_open(t, &single, one)) {
        for (int64_t dir = 0; dir < 2; dir++) {
            static const char *const name[] = {"i", "h", "b", "c"};
            struct eval_tensor *x = special_leaf(t, &single, "x");
            for (int64_t k = 0; k < x->count; k++) { /* the reverse one walks from the end */
                int64_t step = dir ? 3 - k / 2 % 4 : k / 2 % 4;
                x->at[k] = special_leaf(t, &two, "x")->at[k / 8 * 8 + step * 2 + k % 2];
            }
            for (int i = 0; i < 4; i++) {
                struct eval_tensor *w = special_leaf(t, &single, name[i]);
                for (int64_t k = 0; k < w->count; k++)
                    w->at[k] = special_leaf(t, &two, name[i])->at[dir * w->count + k];
            }
            if (!special_run(t, &single))
                break;
            for (int64_t k = 0; k < 36; k++) {
                int64_t step = dir ? 3 - k / 3 % 4 : k / 3 % 4;
                expect_near(t, special_out(&two, 0, (k / 12 * 4 + step) * 6 + dir * 3 + k % 3),
                            special_out(&single, 0, k), 0);
            }
            for (int64_t k = 0; k < 9; k++)
                expect_near(t, special_out(&two, 1, dir * 9 + k), special_out(&single, 1, k), 0);
        }
        special_close(&single);
    }
    special_close(&two);
}

TEST(sequence, two_directions_are_two_layers)
{
    check_directions(t, LAYER("lstm", "12", "bidirectional=true", "2", ""),
                     LAYER("lstm", "12", "", "1", ""));
    check_directions(t, LAYER("gru", "9", "bidirectional=true", "2", ""),
                     LAYER("gru", "9", "", "1", ""));
    check_directions(t, LAYER("rnn", "3", "bidirectional=true", "2", ""),
                     LAYER("rnn", "3", "", "1", ""));
}

TEST(sequence, lengths_cut_a_sequence_short)
{
    static const int32_t length[3] = {2, -5, 99};
    struct special cut, whole;

    if (!special_open(t, &cut,
                      LAYER("gru", "9", "bidirectional=true has_lengths=true", "2", ", %l")))
        return;
    fill_layer(t, &cut);
    for (int k = 0; k < 3; k++)
        special_leaf(t, &cut, "l")->at[k].i = length[k];
    if (special_run(t, &cut) &&
        special_open(t, &whole, LAYER("gru", "9", "bidirectional=true", "2", ""))) {
        fill_layer(t, &whole);
        /* item 0 has two steps: put them last, where the reverse direction starts */
        struct eval_tensor *x = special_leaf(t, &whole, "x");
        if (special_run(t, &whole))
            for (int64_t k = 0; k < 24; k++) {
                expect_near(t, special_out(&cut, 0, 48 + k), special_out(&whole, 0, 48 + k), 0);
                expect_near(t, special_out(&cut, 0, 24 + k), 0, 0); /* no steps at all */
            }
        for (int64_t step = 0; step < 2; step++) /* forward: the same until the end */
            for (int64_t k = 0; k < 3; k++)
                expect_near(t, special_out(&cut, 0, step * 6 + k),
                            special_out(&whole, 0, step * 6 + k), 0);
        for (int64_t k = 0; k < 4; k++)
            x->at[4 + k] = x->at[k];
        if (special_run(t, &whole))
            for (int64_t k = 0; k < 3; k++) {
                expect_near(t, special_out(&cut, 0, 6 + 3 + k), special_out(&whole, 0, 18 + 3 + k),
                            0);
                expect_near(t, special_out(&cut, 0, 3 + k), special_out(&whole, 0, 12 + 3 + k), 0);
                expect_near(t, special_out(&cut, 1, 9 + k), special_out(&cut, 0, 3 + k), 0);
            }
        for (int64_t k = 12; k < 24; k++)
            expect_near(t, special_out(&cut, 0, k), 0, 0); /* past the length */
        special_close(&whole);
    }
    special_close(&cut);
}
