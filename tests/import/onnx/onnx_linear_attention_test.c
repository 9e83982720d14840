/* onnx_linear_attention_test.c: LinearAttention by its recurrence, and what it refuses. */
#include <math.h>

#include "onnx_node_world.h"

enum { B = 2, H = 2, G = 2, DK = 3, DV = 2, MOST_STEPS = 24 };

struct attention {
    float q[B * MOST_STEPS * H * G * DK], k[B * MOST_STEPS * H * DK], v[B * MOST_STEPS * H * DV];
    float decay[B * MOST_STEPS * H * DK], beta[B * MOST_STEPS * H], past[B * H * DK * DV];
    float out[B * MOST_STEPS * H * G * DV], state[B * H * DK * DV];
};

static void fill(float *at, size_t count, float low, float high)
{
    static uint32_t seed = 1;

    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        at[i] = low + (high - low) * (float)(seed >> 8) / 16777216.0f;
    }
}

/* One head of one item, step by step. keys: elements of a decay. */
static void recur(struct attention *a, int b, int h, int steps, bool gated, bool delta, int keys)
{
    float *s = &a->state[(b * H + h) * DK * DV];

    for (int t = 0; t < steps; t++) {
        int row = b * steps + t;
        const float *k = &a->k[(row * H + h) * DK], *v = &a->v[(row * H + h) * DV];
        for (int j = 0; j < DV; j++) {
            float old = 0;
            for (int i = 0; i < DK; i++) {
                float g = a->decay[(row * H + h) * keys + (keys == 1 ? 0 : i)];
                s[i * DV + j] *= gated ? expf(g) : 1;
                old += s[i * DV + j] * k[i];
            }
            float d = delta ? a->beta[row * H + h] * (v[j] - old) : v[j];
            for (int i = 0; i < DK; i++)
                s[i * DV + j] += k[i] * d;
            for (int g = 0; g < G; g++) {
                float sum = 0;
                for (int i = 0; i < DK; i++)
                    sum += a->q[(row * H * G + h * G + g) * DK + i] * s[i * DV + j];
                a->out[(row * H * G + h * G + g) * DV + j] = 0.5f * sum;
            }
        }
    }
}

static struct one node_of(const struct attention *a, const char *rule, int steps, int keys,
                          bool past, bool symbolic)
{
    struct one o = one_node("", "LinearAttention", 27, 2);

    o.symbolic = symbolic ? 1 : -1;
    one_in_f32(&o, RLX_LIST(B, steps, H * G * DK), a->q);
    one_in_f32(&o, RLX_LIST(B, steps, H * DK), a->k);
    one_in_f32(&o, RLX_LIST(B, steps, H * DV), a->v);
    o.symbolic = -1;
    if (past)
        one_in_f32(&o, RLX_LIST(B, H, DK, DV), a->past);
    else
        one_absent(&o);
    o.symbolic = symbolic ? 1 : -1;
    one_in_f32(&o, RLX_LIST(B, steps, H * keys), a->decay);
    one_in_f32(&o, RLX_LIST(B, steps, H), a->beta);
    one_text(&o, "update_rule", rule);
    one_int(&o, "q_num_heads", H * G);
    one_int(&o, "kv_num_heads", H);
    one_float(&o, "scale", 0.5f);
    return o;
}

static void check_rule(struct test *t, const char *rule, int steps, int keys, bool past,
                       bool symbolic)
{
    struct attention a = {.past = {0}};
    bool gated = strstr(rule, "gated"), delta = strstr(rule, "delta");

    fill(a.q, sizeof a.q / sizeof(float), -1, 1);
    fill(a.k, sizeof a.k / sizeof(float), -0.6f, 0.6f);
    fill(a.v, sizeof a.v / sizeof(float), -1, 1);
    fill(a.decay, sizeof a.decay / sizeof(float), -1, 0);
    fill(a.beta, sizeof a.beta / sizeof(float), 0, 1);
    if (past)
        fill(a.past, sizeof a.past / sizeof(float), -1, 1);
    memcpy(a.state, a.past, sizeof a.state);
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++)
            recur(&a, b, h, steps, gated, delta, keys);
    struct one o = node_of(&a, rule, steps, keys, past, symbolic);
    expect_one(t, &o, 0, 2e-5, (size_t)(B * steps * H * G * DV), a.out);
    expect_one(t, &o, 1, 2e-5, B * H * DK * DV, a.state);
}

static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};

TEST(onnx_linear_attention, steps_written_out_follow_the_recurrence)
{
    for (size_t i = 0; i < 4; i++) {
        check_rule(t, rules[i], 5, 1, true, false);
        check_rule(t, rules[i], 20, DK, false, false);
    }
}

TEST(onnx_linear_attention, all_steps_at_once_follow_the_recurrence)
{
    for (size_t i = 0; i < 4; i++) {
        check_rule(t, rules[i], MOST_STEPS, 1, true, false);
        check_rule(t, rules[i], MOST_STEPS, 1, false, true);
        check_rule(t, rules[i], 3, 1, true, true);
    }
}

TEST(onnx_linear_attention, what_does_not_fit_is_named)
{
    struct attention a = {.past = {0}};
    struct one o = node_of(&a, "gated_delta", 20, 1, true, false);

    expect_one_survives(t, &o);
    o = node_of(&a, "quadratic", 4, 1, true, false);

    expect_one_refused(t, &o, RLX_ERROR_ATTRIBUTE, "update_rule \"quadratic\"");
    o = node_of(&a, "gated", 4, 2, true, false);
    expect_one_refused(t, &o, RLX_ERROR_SHAPE, "a decay of 2 elements to a head of 3 keys");
    o = node_of(&a, "gated", 4, DK, true, true);
    expect_one_refused(t, &o, RLX_ERROR_UNSUPPORTED, "a decay of each key over an unknown number");

    o = one_node("", "LinearAttention", 27, 2);
    for (int i = 0; i < 3; i++)
        one_in_f32(&o, RLX_LIST(2, 0, 4), a.q);
    one_text(&o, "update_rule", "delta");
    one_int(&o, "q_num_heads", 2);
    one_int(&o, "kv_num_heads", 2);
    expect_one_refused(t, &o, RLX_ERROR_FORMAT, "a delta rule without a beta");
}

/* ---- CausalConvWithState ---- */

TEST(onnx_linear_attention, a_convolution_goes_on_where_it_ended)
{
    static const float x[] = {1, 2, 3, 4}, w[] = {1, 10, 100}, past[] = {5, 6};
    static const float y[] = {165, 216, 321, 432}, last[] = {3, 4};
    struct one o = one_node("", "CausalConvWithState", 27, 2);

    o.symbolic = 2;
    one_in_f32(&o, RLX_LIST(1, 1, 4), x);
    o.symbolic = -1;
    one_known(&o, RLX_DTYPE_f32, RLX_LIST(1, 1, 3), w);
    one_absent(&o);
    one_in_f32(&o, RLX_LIST(1, 1, 2), past);
    expect_one(t, &o, 0, 1e-4, 4, y);
    expect_one(t, &o, 1, 0, 2, last);
    one_text(&o, "activation", "relu");
    expect_one_refused(t, &o, RLX_ERROR_ATTRIBUTE, "activation \"relu\"");

    o = one_node("", "CausalConvWithState", 27, 2);
    one_in_f32(&o, RLX_LIST(1, 2, 4), x);
    one_known(&o, RLX_DTYPE_f32, RLX_LIST(1, 1, 3), w);
    expect_one_refused(t, &o, RLX_ERROR_SHAPE, "weights that are not [C, 1, k]");
}
