/* eval_special_spectral_test.c: transforms, mel features, peaks, gates and neighbours: the worked
 * vectors of ops-special.md 11.3 and what must hold for any input. */
#include <float.h>

#include "eval_special.h"

/* ---- fft ----------------------------------------------------------------------------------- */

TEST(fft, by_hand)
{
    evals(t, 1e-7, "%x = const f32[8] {1 2 3 4 0 0 0 0} %y = fft %x return %y",
          "10 -2 -2 -2 0 2 0 -2");
    evals(t, 1e-7, "%x = const f32[2,6] {1 2 3 0 0 0 1 1 1 0 0 0} %y = fft %x return %y",
          "6 -1.5 -1.5 0 0.8660254037844386 -0.8660254037844386 3 0 0 0 0 0");
    evals(t, 1e-7,
          "%x = const c64[4] {1 0 2 0 3 0 4 0} %y = fft %x %z = fft %x inverse=true "
          "return %y, %z",
          "10 0 -2 2 -2 0 -2 -2", "10 0 -2 -2 -2 0 -2 2");
    evals(t, 0,
          "%x = const f64[2] {3 4} %y = fft %x norm=ortho %z = fft %x inverse=true norm=forward "
          "return %y, %z",
          "3 4", "3 4");
    evals(t, 0, "%x = const f32[0,4] {} %y = fft %x return %y", "");
    evals(t, 0, "%x = const c64[2] {nan 0 1 0} %y = fft %x return %y", "nan nan nan nan");
}

static void check_round_trip(struct test *t, int n, const char *norm)
{
    char source[512];
    struct special s;
    double there = 0, here = 0;

    test_note(t, "N = %d, %s", n, norm);
    snprintf(source, sizeof source,
             "rlx 1 graph (input %%x: f64[1,%d]) { %%y = fft %%x norm=%s "
             "%%z = fft %%y inverse=true norm=%s return %%y, %%z }",
             2 * n, norm, norm);
    if (!special_open(t, &s, source))
        return;
    const struct eval_tensor *x = special_leaf(t, &s, "x");
    fill_reals(special_leaf(t, &s, "x"), (uint64_t)n, -1, 1);
    if (special_run(t, &s)) {
        for (int64_t k = 0; k < 2 * n; k++) {
            expect_near(t, special_out(&s, 1, k), x->at[k].f, 1e-11);
            here += x->at[k].f * x->at[k].f;
            there += special_out(&s, 0, k) * special_out(&s, 0, k);
        }
        expect_near(t, there / here, strcmp(norm, "ortho") ? n : 1, 1e-11 * n); /* Parseval */
    }
    special_close(&s);
}

TEST(fft, back_and_forth)
{
    static const int sizes[] = {1, 2, 3, 4, 5, 7, 16, 17, 31, 97, 128, 1000};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_round_trip(t, sizes[i], "forward");
        check_round_trip(t, sizes[i], "ortho");
    }
}

TEST_SLOW(fft, back_and_forth_at_length)
{
    check_round_trip(t, 1024, "ortho");
    check_round_trip(t, 4096, "forward");
}

TEST(fft, is_linear)
{
    struct special s;

    if (!special_open(t, &s,
                      "rlx 1 graph (input %x: c64[3,7], input %y: c64[3,7]) { %a = fft %x "
                      "%b = fft %y %c = add %x, %y %d = fft %c return %a, %b, %d }"))
        return;
    struct eval_tensor *x = special_leaf(t, &s, "x"), *y = special_leaf(t, &s, "y");
    uint64_t state = 4;
    for (int64_t k = 0; k < 21; k++) {
        x->at[k] = (struct eval_cell){real_between(&state, -1, 1), real_between(&state, -1, 1), 0};
        y->at[k] = (struct eval_cell){real_between(&state, -1, 1), real_between(&state, -1, 1), 0};
    }
    if (special_run(t, &s))
        for (int64_t k = 0; k < 21; k++) {
            const struct eval_cell *a = &run_output(&s.run, 0)->at[k];
            const struct eval_cell *b = &run_output(&s.run, 1)->at[k];
            expect_near(t, run_output(&s.run, 2)->at[k].f, a->f + b->f, 1e-5);
            expect_near(t, run_output(&s.run, 2)->at[k].im, a->im + b->im, 1e-5);
        }
    special_close(&s);
}

/* ---- audio --------------------------------------------------------------------------------- */

TEST(audio, welch_peaks)
{
    evals(t, 1e-6,
          "%s = const f32[1,8] {2 1 0 1 0 1 0 -1} %y = welch_peaks %s k=2 n_segments=1 "
          "%z = welch_peaks %s k=3 n_segments=1 return %y, %z",
          "0 4 1 4", "0 4 1 4 2 0");
    /* two segments of two signals, n_fft = 2: bins 0 and 1, both counted once */
    evals(t, 1e-6,
          "%s = const f32[4,4] {1 0 0 0 3 0 0 0 nan 2 0 0 0 0 0 0} "
          "%y = welch_peaks %s k=2 n_segments=2 return %y",
          "0 5 1 0 1 2 0 nan");
    evals(t, 0, "%s = const f32[0,4] {} %y = welch_peaks %s k=1 n_segments=3 return %y", "");
    /* odd n_fft = 3: two bins, the second counted once all the same */
    evals(t, 0, "%s = const f32[1,6] {1 2 9 0 0 9} %y = welch_peaks %s k=2 n_segments=1 return %y",
          "1 4 0 1");
}

#define MEL "%s = const f32[8] {2 1 0 1 0 1 0 -1} %f = const f32[2,3] {1 .5 0 0 0 1} "

TEST(audio, log_mel)
{
    evals(t, 1e-6, MEL "%y = log_mel %s, %f return %y", "1.1747425 -0.8252575");
    evals(t, 1e-6, MEL "%d = const f32[2] {1 1} %y = log_mel_backward %s, %f, %d return %y",
          "0.0868589 0.0217147 0 0 0 0.0217147 0 0");
    evals(t, 0, /* the largest is that of the frame: NaN takes all of it, and no other frame */
          "%s = const f32[2,4] {nan 1 0 0 1 0 0 0} %f = const f32[2,2] {1 0 0 1} "
          "%y = log_mel %s, %f return %y",
          "nan nan 1 -1");
    evals(t, 0, "%s = const f32[0,4] {} %f = const f32[1,2] {1 1} %y = log_mel %s, %f return %y",
          "");
}

TEST(audio, log_mel_backward_agrees_with_differences)
{
    struct special s;
    double h = 1e-3;

    if (!special_open(t, &s,
                      "rlx 1 graph (input %s: f32[2,10], input %f: f32[4,3], input %d: f32[2,4]) { "
                      "%y = log_mel %s, %f %g = log_mel_backward %s, %f, %d return %g, %y }"))
        return;
    struct eval_tensor *spec = special_leaf(t, &s, "s"), *dy = special_leaf(t, &s, "d");
    fill_reals(spec, 1, 0.5, 1.5);
    fill_reals(special_leaf(t, &s, "f"), 2, 0.2, 1);
    fill_reals(dy, 3, -1, 1);
    for (int64_t k = 0; k < 20; k++) {
        double was = spec->at[k].f, slope[2] = {0, 0}, g;
        for (int side = 0; side < 2; side++) {
            spec->at[k].f = was + (side ? h : -h);
            require(t, special_run(t, &s));
            for (int64_t m = 0; m < 8; m++)
                slope[side] += dy->at[m].f * special_out(&s, 1, m);
        }
        spec->at[k].f = was;
        require(t, special_run(t, &s));
        g = special_out(&s, 0, k);
        /* the largest band is held fixed; here it never floors anything */
        expect_near(t, g, (slope[1] - slope[0]) / (2 * h), 1e-3);
        if (k % 5 >= 3)
            expect_near(t, g, 0, 0); /* bins past the middle */
    }
    special_close(&s);
}

/* ---- gate ---------------------------------------------------------------------------------- */

TEST(gate, by_hand)
{
    evals(t, 1e-6,
          "%s = const f32[4] {.9 .1 .6 .5} %r = const f32[4] {.8 .1 .55 .5} "
          "%y = group_limited_gate %s, %r n_group=2 topk_group=1 top_k=2 scaling=2.5 return %y",
          "2 3 1.3636364 1.1363636");
    evals(t, 1e-6, /* one expert: no division; ties go to the smaller index */
          "%s = const f32[2,4] {.9 .1 .6 .5 .1 .2 .3 .4} %r = const f32[2,4] {1 1 1 1 1 nan 0 1} "
          "%y = group_limited_gate %s, %r n_group=4 topk_group=2 top_k=1 scaling=2 return %y",
          "0 1.8 0 0.2");
    evals(t, 1e-6, /* NaN is last, and a group of it too */
          "%s = const f32[4] {1 2 3 4} %r = const f32[4] {nan inf 0 -5} "
          "%y = group_limited_gate %s, %r n_group=2 topk_group=1 top_k=2 scaling=1 "
          "%z = group_limited_gate %s, %r n_group=2 topk_group=2 top_k=4 scaling=1 return %y, %z",
          "2 3 0.42857143 0.57142857", "1 2 3 0 0.2 0.3 0.4 0.1");
    evals(t, 0, /* nothing to share out */
          "%s = const f32[2] {0 0} %y = group_limited_gate %s, %s n_group=1 topk_group=1 top_k=2 "
          "return %y",
          "0 1 0 0");
    evals(t, 0,
          "%s = const f32[0,2] {} %y = group_limited_gate %s, %s n_group=1 topk_group=1 top_k=1 "
          "return %y",
          "");
}

TEST(gate, group_scores_tie_as_f32)
{
    /* 2^24 + 1 is 2^24 in f32, so the groups are equal and the first wins */
    evals(t, 1e-6,
          "%r = const f32[4] {16777216 0 16777216 1} %s = const f32[4] {1 1 1 1} "
          "%y = group_limited_gate %s, %r n_group=2 topk_group=1 top_k=1 scaling=1 return %y",
          "0 1");
}

/* ---- neighbours ---------------------------------------------------------------------------- */

#define DISTANCES "%d = const f32[4,4] {0 1 1 3 1 0 2 2 1 2 0 nan 3 2 inf 0} "

TEST(knn, by_hand)
{
    evals(t, 0, DISTANCES "%y = knn %d k=2 return %y", "1 2 1 1 0 2 1 2 0 1 1 2 1 0 2 3");
    evals(t, 0, DISTANCES "%y = knn %d k=3 return %y",
          "1 2 3 1 1 3 0 2 3 1 2 2 0 1 4 1 2 3.4028234663852886e38 "
          "1 0 4 2 3 3.4028234663852886e38");
    evals(t, 0,
          DISTANCES "%g = const f32[4,2] {1 2 3 4 5 6 7 8} %y = knn_backward %d, %g k=2 return %y",
          "0 1 2 0 3 0 4 0 5 6 0 0 8 7 0 0");
    evals(t, 0, "%d = const f32[2,2] {-1 -inf 3.4028234663852886e38 -9} %y = knn %d k=1 return %y",
          "1 -inf 2 3.4028234663852886e38");
}

TEST(knn, equals_a_full_sort)
{
    struct special s;
    int64_t n = 12, k = 5;

    if (!special_open(t, &s, "rlx 1 graph (input %d: f32[12,12]) { %y = knn %d k=5 return %y }"))
        return;
    struct eval_tensor *d = special_leaf(t, &s, "d");
    uint64_t state = 8;
    for (int64_t i = 0; i < n * n; i++)
        d->at[i].f = (double)(dice(&state) % 6); /* many ties */
    if (special_run(t, &s))
        for (int64_t i = 0; i < n; i++)
            for (int64_t a = 0; a < k; a++) {
                int64_t id = (int64_t)special_out(&s, 0, i * 2 * k + a), before = 0;
                for (int64_t j = 0; j < n; j++)
                    before += j != i && (d->at[i * n + j].f < d->at[i * n + id].f ||
                                         (d->at[i * n + j].f == d->at[i * n + id].f && j < id));
                expect(t, id != i);
                expect_eq(t, before, a);
                expect_near(t, special_out(&s, 0, i * 2 * k + k + a), d->at[i * n + id].f, 0);
            }
    special_close(&s);
}
