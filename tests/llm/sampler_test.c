/* sampler_test.c: which token is chosen, against probabilities worked out here. */
#include <math.h>
#include <string.h>

#include "llm/engine.h"
#include "llm/sampler.h"
#include "test.h"

enum { VOCAB = 6, DRAWS = 20000 };

/* Probabilities 0.4, 0.05, 0.25, 0.2, 0.08, 0.02 before anything is done. */
static const double share[VOCAB] = {0.4, 0.05, 0.25, 0.2, 0.08, 0.02};

static void to_logits(float out[VOCAB])
{
    for (int i = 0; i < VOCAB; i++)
        out[i] = (float)log(share[i]) + 3;
}

static rlx_sampler *sampler(struct test *t, const rlx_sampling *how)
{
    struct rlx_llm m = {.spec = {.vocab = VOCAB}};
    rlx_sampler *p = NULL;
    rlx_error err;

    if (rlx_sampler_create(&m, how, &p, &err) != RLX_OK)
        fail(t, "%s", err.message);
    return p;
}

/* Draws often; want[i] is how often token i should come. */
static void expect_shares(struct test *t, const rlx_sampling *how, const int32_t *id, size_t count,
                          const double want[VOCAB])
{
    rlx_sampler *p = sampler(t, how);
    int got[VOCAB] = {0};
    float logits[VOCAB];
    struct diag d;

    diag_init(&d, "test");
    to_logits(logits);
    for (int i = 0; p && i < DRAWS; i++) {
        int32_t one = -1;
        if (sampler_choose(p, logits, id, count, &one, &d) == RLX_OK && one >= 0 && one < VOCAB)
            got[one]++;
    }
    for (int i = 0; p && i < VOCAB; i++) {
        double seen = (double)got[i] / DRAWS;
        /* Five standard deviations; what is excluded never comes. */
        double off = want[i] == 0 ? 0 : 5 * sqrt(want[i] * (1 - want[i]) / DRAWS);
        expect_near(t, seen, want[i], off);
    }
    rlx_sampler_destroy(p);
}

TEST(sampler, draws_by_probability)
{
    const rlx_sampling how = {RLX_SIZED(rlx_sampling), .temperature = 1, .seed = 5};

    expect_shares(t, &how, NULL, 0, share);
}

TEST(sampler, temperature_is_a_power_of_probabilities)
{
    const rlx_sampling how = {RLX_SIZED(rlx_sampling), .temperature = 0.5f};
    double want[VOCAB], sum = 0;

    for (int i = 0; i < VOCAB; i++)
        sum += want[i] = share[i] * share[i];
    for (int i = 0; i < VOCAB; i++)
        want[i] /= sum;
    expect_shares(t, &how, NULL, 0, want);
}

TEST(sampler, filters_keep_what_they_say)
{
    const struct {
        rlx_sampling how;
        double want[VOCAB];
    } cases[] = {
        {{RLX_SIZED(rlx_sampling), .temperature = 1, .top_k = 2},
         {0.4 / 0.65, 0, 0.25 / 0.65, 0, 0, 0}},
        {{RLX_SIZED(rlx_sampling), .temperature = 1, .top_p = 0.6f},
         {0.4 / 0.65, 0, 0.25 / 0.65, 0, 0, 0}},
        {{RLX_SIZED(rlx_sampling), .temperature = 1, .min_p = 0.45f},
         {0.4 / 0.85, 0, 0.25 / 0.85, 0.2 / 0.85, 0, 0}},
        /* Surprises are 0.92, 3.0, 1.39, 1.61, 2.53, 3.91, their mean 1.47: 1.39 and 1.61 are the
         * nearest, then 0.92. */
        {{RLX_SIZED(rlx_sampling), .temperature = 1, .typical = 0.4f},
         {0, 0, 0.25 / 0.45, 0.2 / 0.45, 0, 0}},
        {{RLX_SIZED(rlx_sampling), .temperature = 1, .top_k = 4, .top_p = 0.5f},
         {0.4 / 0.65, 0, 0.25 / 0.65, 0, 0, 0}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_shares(t, &cases[i].how, NULL, 0, cases[i].want);
}

TEST(sampler, penalties_and_bias_change_logits)
{
    static const int32_t id[] = {1, 0, 0, 0, 2, 2};
    const rlx_token_bias bias[] = {{3, -INFINITY}, {5, 2}};
    rlx_sampling how = {RLX_SIZED(rlx_sampling),
                        .temperature = 1,
                        .penalty_last = 5,
                        .repeat_penalty = 1.25f,
                        .frequency_penalty = 0.5f,
                        .presence_penalty = 0.25f,
                        .bias = bias,
                        .bias_count = 2};
    const int times[VOCAB] = {3, 0, 2, 0, 0, 0}; /* among the last five */
    double want[VOCAB], sum = 0;

    for (int i = 0; i < VOCAB; i++) {
        double z = log(share[i]) + 3 + (i == 5 ? 2 : 0);
        if (times[i])
            z = (z > 0 ? z / 1.25 : z * 1.25) - 0.5 * times[i] - 0.25;
        sum += want[i] = i == 3 ? 0 : exp(z);
    }
    for (int i = 0; i < VOCAB; i++)
        want[i] /= sum;
    expect_shares(t, &how, id, 6, want);
}

TEST(sampler, no_chance_takes_the_first_of_the_most_likely)
{
    const float logits[VOCAB] = {1, NAN, 7, 7, -INFINITY, 2};
    rlx_sampler *p = sampler(t, NULL);
    int32_t id = -1;
    struct diag d;

    diag_init(&d, "test");
    if (p)
        expect_status(t, sampler_choose(p, logits, NULL, 0, &id, &d), RLX_OK);
    expect_eq(t, id, 2);
    rlx_sampler_destroy(p);
}

TEST(sampler, log_probabilities_are_the_models_own)
{
    const rlx_sampling how = {RLX_SIZED(rlx_sampling), .temperature = 3, .top_k = 1,
                              .logprobs = true};
    rlx_sampler *p = sampler(t, &how);
    float logits[VOCAB];
    int32_t id = -1;
    struct diag d;

    diag_init(&d, "test");
    to_logits(logits);
    if (p && sampler_choose(p, logits, NULL, 0, &id, &d) == RLX_OK)
        expect_near(t, (double)rlx_sampler_logprob(p), log(0.4), 1e-6);
    rlx_sampler_destroy(p);
}

TEST(sampler, mirostat_keeps_the_surprise_near_its_target)
{
    enum { MANY = 64, STEPS = 4000 };
    const rlx_sampling how = {RLX_SIZED(rlx_sampling), .temperature = 1, .mirostat = 2,
                              .mirostat_tau = 2};
    struct rlx_llm m = {.spec = {.vocab = MANY}};
    float logits[MANY];
    double sum = 0, total = 0;
    rlx_sampler *p;
    struct diag d;

    diag_init(&d, "test");
    for (int i = 0; i < MANY; i++) {
        logits[i] = -0.1f * (float)i;
        total += exp((double)logits[i]);
    }
    if (rlx_sampler_create(&m, &how, &p, NULL) != RLX_OK) {
        fail(t, "no sampler");
        return;
    }
    for (int i = 0; i < STEPS; i++) {
        int32_t id = 0;
        expect_status(t, sampler_choose(p, logits, NULL, 0, &id, &d), RLX_OK);
        sum += i < STEPS / 4 ? 0 : -log2(exp((double)logits[id]) / total);
    }
    /* Of what is kept, which is less surprising than all there is: between one bit and four. */
    expect(t, sum / (STEPS * 3 / 4) > 1 && sum / (STEPS * 3 / 4) < 4);
    rlx_sampler_destroy(p);
}

TEST(sampler, refuses_what_makes_no_sense)
{
    const rlx_token_bias outside = {VOCAB, 1};
    const struct {
        rlx_sampling how;
        const char *name;
    } cases[] = {
        {{RLX_SIZED(rlx_sampling), .temperature = -1}, "temperature"},
        {{RLX_SIZED(rlx_sampling), .temperature = NAN}, "temperature"},
        {{RLX_SIZED(rlx_sampling), .top_p = 2}, "top_p"},
        {{RLX_SIZED(rlx_sampling), .top_k = -1}, "top_k"},
        {{RLX_SIZED(rlx_sampling), .repeat_penalty = -2}, "repeat_penalty"},
        {{RLX_SIZED(rlx_sampling), .mirostat = 1}, "mirostat"},
        {{RLX_SIZED(rlx_sampling), .bias = &outside, .bias_count = 1}, "bias"},
    };
    struct rlx_llm m = {.spec = {.vocab = VOCAB}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rlx_sampler *p = NULL;
        rlx_error err;
        expect_status(t, rlx_sampler_create(&m, &cases[i].how, &p, &err), RLX_ERROR_ATTRIBUTE);
        expect_contains(t, err.message, cases[i].name);
    }
}

TEST(sampler, impossible_logits_are_an_error)
{
    const float logits[VOCAB] = {NAN, -INFINITY, NAN, NAN, NAN, NAN};
    rlx_sampler *p = sampler(t, NULL);
    int32_t id = 0;
    struct diag d;

    diag_init(&d, "test");
    if (p)
        expect_status(t, sampler_choose(p, logits, NULL, 7, &id, &d), RLX_ERROR_NUMERIC);
    rlx_sampler_destroy(p);
}
