/* tiny_test.c: each model of tiny_models.def says what llama.cpp said of it (vectors.txt, which
 * tools/gen-llm-vectors writes). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/llm.h"
#include "test.h"
#include "tiny_model.h"

enum { PROMPT = 12, TOKENS = 64, STRIDE = 17, PROBED = 16, CONTEXT = 256, SMALL_CHUNK = 5 };

/* Texts that end in the middle of a character are not what llama.cpp was asked for. */
static bool may_be_chosen(int id)
{
    return id < 128 || (id >= 256 && id != TINY_END);
}

struct world {
    struct test *t;
    rlx_context *ctx;
    rlx_device *dev;
    const char *path, *vectors;
    char name[64];
    int32_t token[PROMPT + TOKENS]; /* the prompt, and what llama.cpp made of it */
    double tolerance;               /* of a logarithm of a probability */
};

/* ---- what llama.cpp said ------------------------------------------------------------------ */

/* After "NAME WHAT "; NULL: there is no such line. */
static const char *line_of(const struct world *w, const char *what)
{
    char begin[96];

    snprintf(begin, sizeof begin, "\n%s %s ", w->name, what);
    const char *at = strstr(w->vectors, begin);
    return at ? at + strlen(begin) : NULL;
}

static bool read_tokens(struct world *w)
{
    const char *at = line_of(w, "tokens");

    for (int i = 0; i < PROMPT; i++)
        w->token[i] = (37 * i + 11) % (TINY_VOCAB - 1);
    for (int i = 0; at && i < TOKENS; i++) {
        char *end;
        w->token[PROMPT + i] = (int32_t)strtol(at, &end, 10);
        at = end;
    }
    return expect(w->t, at != NULL);
}

static double log_of_sum(const float *logits)
{
    double most = -HUGE_VAL, sum = 0;

    for (int i = 0; i < TINY_VOCAB; i++)
        most = fmax(most, (double)logits[i]);
    for (int i = 0; i < TINY_VOCAB; i++)
        sum += exp((double)logits[i] - most);
    return most + log(sum);
}

/* Logits before step number `step`. Its token is as likely as any other, as far as rounding can
 * tell. */
static bool check_logits(const struct world *w, rlx_sequence *s, int step)
{
    char what[16];
    const float *logits;
    rlx_error err;
    double sum, most = -HUGE_VAL;
    bool fine = true;

    if (rlx_sequence_logits(s, &logits, NULL, &err) != RLX_OK)
        return fail(w->t, "step %d: %s", step, err.message);
    sum = log_of_sum(logits);
    for (int i = 0; i < TINY_VOCAB; i++)
        if (may_be_chosen(i))
            most = fmax(most, (double)logits[i]);
    if (step < TOKENS)
        fine = expect_near(w->t, (double)logits[w->token[PROMPT + step]], most, w->tolerance);
    snprintf(what, sizeof what, "%d", step);
    const char *at = line_of(w, what);
    for (int i = 0; at && i < PROBED; i++) {
        char *end;
        double want = strtod(at, &end);
        at = end;
        double got = (double)logits[(step + STRIDE * i) % TINY_VOCAB] - sum;
        fine &= expect_near(w->t, got, want, w->tolerance * (1 + fabs(want) / 8));
        if (!fine)
            return fail(w->t, "%s: step %d, token %d", w->name, step,
                        (step + STRIDE * i) % TINY_VOCAB);
    }
    return fine;
}

/* ---- a text that goes on ------------------------------------------------------------------ */

static void go_on(const struct world *w, rlx_sequence *s, int steps)
{
    rlx_error err;

    if (rlx_sequence_feed(s, w->token, PROMPT, &err) != RLX_OK) {
        fail(w->t, "%s", err.message);
        return;
    }
    for (int i = 0; i < steps && check_logits(w, s, i); i++)
        if (rlx_sequence_feed(s, &w->token[PROMPT + i], 1, &err) != RLX_OK) {
            fail(w->t, "%s", err.message);
            return;
        }
}

/* Back to the prompt, from there on in two ways, and to step 20 in one go. */
static void go_back(const struct world *w, rlx_sequence *s)
{
    rlx_sequence *other = NULL;
    rlx_error err;
    size_t kept = 0;

    require_ok(w->t, rlx_sequence_rewind(s, PROMPT, &err));
    check_logits(w, s, 0);
    require_ok(w->t, rlx_sequence_fork(s, &other, &err));
    expect_ok(w->t, rlx_sequence_feed(other, &w->token[PROMPT], 1, &err));
    check_logits(w, other, 1);
    expect_ok(w->t, rlx_sequence_set(s, w->token, PROMPT + 20, &kept, &err));
    expect_eq(w->t, kept, PROMPT);
    check_logits(w, s, 20);
    expect_ok(w->t, rlx_sequence_set(other, w->token + 1, 3, &kept, &err));
    expect_eq(w->t, kept, 0);
    expect_ok(w->t, rlx_sequence_set(other, w->token, PROMPT + 1, &kept, &err));
    check_logits(w, other, 1);
    rlx_sequence_destroy(other);
}

static void use_model(const struct world *w, int64_t chunk, int steps, bool back)
{
    const rlx_llm_desc desc = {RLX_SIZED(rlx_llm_desc), .context = CONTEXT, .chunk = chunk,
                               .cache = RLX_LLM_CACHE_F32};
    rlx_llm *m = NULL;
    rlx_sequence *s = NULL;
    rlx_error err;

    if (rlx_llm_open(w->ctx, w->dev, w->path, &desc, &m, &err) != RLX_OK ||
        rlx_sequence_create(m, &s, &err) != RLX_OK) {
        fail(w->t, "%s: %s", w->name, err.message);
    } else {
        go_on(w, s, steps);
        if (back)
            go_back(w, s);
    }
    rlx_sequence_destroy(s);
    rlx_llm_close(m);
}

/* ---- a model ------------------------------------------------------------------------------ */

static void compare(struct test *t, const char *name, rlx_weight_type type, double tolerance)
{
    const struct tiny_change change = {.type = type};
    const bool cpu = strcmp(test_device(t), "cpu") == 0;
    struct world w = {.t = t, .tolerance = tolerance};
    rlx_error err;
    rlx_weight_type_info info = {RLX_SIZED(rlx_weight_type_info)};

    require_ok(t, rlx_weight_type_describe(type, &info, NULL));
    snprintf(w.name, sizeof w.name, "%s%s%s", name, type ? "@" : "", type ? info.name : "");
    const char *file = test_source(t, "tests/llm/vectors.txt");
    w.vectors = file ? test_read(t, file, NULL) : NULL;
    w.path = test_temp(t, "tiny.gguf");
    require(t, w.vectors && w.path && read_tokens(&w));
    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &w.ctx, &err));
    rlx_status s = rlx_device_open(w.ctx, test_device(t), &w.dev, &err);
    if (!test_no_device(t, test_device(t), s, err.message) &&
        expect_ok(t, tiny_model_write(w.ctx, w.path, tiny_model_find(name), &change, &err))) {
        if (cpu)
            use_model(&w, 0, TOKENS, false);
        use_model(&w, SMALL_CHUNK, cpu ? 2 : 8, true);
    }
    rlx_device_close(w.dev);
    rlx_context_destroy(w.ctx);
}

/* Of logarithms. llama.cpp looks GELU up in a table of halves, which adds up in 46 layers. */
static double tolerance(const char *name)
{
    static const char *const halves[] = {"codeshell", "falcon", "gemma",    "gpt2",
                                         "gptneox",   "phi2",   "starcoder"};

    if (strstr(name, "_27b"))
        return 2e-2;
    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++)
        if (strncmp(name, halves[i], strlen(halves[i])) == 0)
            return 4e-3;
    return 1e-3;
}

#define TINY(name, ...)                                      \
    TEST_DEVICES_SLOW(llm, name)                             \
    {                                                        \
        compare(t, #name, RLX_WEIGHT_F32, tolerance(#name)); \
    }
#define TINY_DEEP(name, ...)                                 \
    TEST(llm, name)                                          \
    {                                                        \
        compare(t, #name, RLX_WEIGHT_F32, tolerance(#name)); \
    }
#include "tiny_models.def"

/* ---- whether the models tell -------------------------------------------------------------- */

/* How far the model with another value of a key is from what llama.cpp said of the one without. */
static double distance(struct test *t, const struct world *w)
{
    const rlx_llm_desc desc = {RLX_SIZED(rlx_llm_desc), .context = CONTEXT,
                               .cache = RLX_LLM_CACHE_F32};
    const char *at = line_of(w, "20");
    const float *logits = NULL;
    rlx_llm *m = NULL;
    rlx_sequence *s = NULL;
    double most = 0;
    rlx_error err;

    if (expect_ok(t, rlx_llm_open(w->ctx, w->dev, w->path, &desc, &m, &err)) &&
        expect_ok(t, rlx_sequence_create(m, &s, &err)) &&
        expect_ok(t, rlx_sequence_feed(s, w->token, PROMPT + 20, &err)) &&
        expect_ok(t, rlx_sequence_logits(s, &logits, NULL, &err)) && expect(t, at != NULL))
        for (int i = 0; i < PROBED; i++) {
            char *end;
            double want = strtod(at, &end), sum = log_of_sum(logits);
            at = end;
            most = fmax(most, fabs((double)logits[(20 + STRIDE * i) % TINY_VOCAB] - sum - want));
        }
    rlx_sequence_destroy(s);
    rlx_llm_close(m);
    return most;
}

TEST(llm, each_key_counts)
{
    static const struct {
        const char *model, *keys;
    } rows[] = {
        {"llama_linear", "rope.scaling.factor=3.5"},
        {"llama_yarn", "rope.scaling.factor=3.5"},
        {"llama_yarn", "rope.scaling.original_context_length=60"},
        {"mistral3", "attention.temperature_scale=0.2"},
        {"mistral3", "rope.scaling.yarn_beta_fast=4.0"},
        {"mistral3", "rope.scaling.yarn_beta_slow=0.1"},
        {"mistral3", "rope.scaling.yarn_log_multiplier=0.7"},
        {"phi3_long", "rope.scaling.original_context_length=300"},
        {"phi3_long", "rope.scaling.attn_factor=1.1"},
        {"granite", "attention.scale=0.25"},
        {"granite", "embedding_scale=2.0"},
        {"granite", "residual_scale=0.6"},
        {"granite", "logit_scale=2.1"},
        {"granite", "rope.scaling.finetuned=false"},
        {"hunyuan_dense", "rope.scaling.alpha=2.0"},
        {"gemma2", "attention.sliding_window=6"},
        {"gemma2", "attn_logit_softcapping=3.5"},
        {"gemma2", "final_logit_softcapping=9.0"},
        {"gemma3", "attention.sliding_window=4"},
        {"gemma3", "attention.sliding_window_pattern=3"},
        {"gemma3", "rope.freq_base=10000.0"},
        {"gemma3", "rope.freq_base_swa=5000.0"},
        {"gemma3", "rope.scaling.factor=4.0"},
        {"gemma4", "attention.sliding_window=6"},
        {"gemma4", "attention.shared_kv_layers=1"},
        {"gemma4", "final_logit_softcapping=9.0"},
        {"gemma4", "rope.freq_base=1000.0"},
        {"gemma4", "rope.freq_base_swa=1000.0"},
        {"glm4moe", "expert_weights_scale=1.4"},
        {"glm4moe", "expert_weights_norm=false"},
        {"glm4moe", "expert_gating_func=1"},
        {"qwen3moe", "expert_used_count=3"},
        {"qwen2moe", "expert_used_count=3"},
        {"deepseek2", "rope.scaling.yarn_log_multiplier=0.1"},
        {"deepseek2", "expert_group_used_count=2"},
        {"deepseek2", "expert_weights_scale=2.0"},
        {"deepseek2_plain", "rope.scaling.factor=3.5"},
        {"deepseek2_plain", "attention.temperature_scale=0.2"},
        {"deepseek2_plain", "attention.temperature_length=12"},
        {"gpt_oss", "attention.sliding_window=6"},
        {"gpt_oss", "expert_used_count=3"},
        {"mamba_normed", "ssm.dt_b_c_rms=false"},
        {"granitehybrid", "attention.scale=0.25"},
        {"granitehybrid", "residual_scale=0.6"},
        {"granitehybrid", "rope.scaling.finetuned=false"},
        {"granitehybrid_experts", "rope.scaling.finetuned=true"},
        {"granitehybrid_experts", "expert_used_count=3"},
        {"nemotron_h", "attention.layer_norm_rms_epsilon=0.2"},
        {"lfm2", "rope.freq_base=1000.0"},
        {"lfm2_windows", "attention.sliding_window=6"},
        {"lfm2moe", "expert_gating_func=1"},
        {"qwen35", "rope.dimension_count=4"},
        {"qwen3next", "expert_used_count=3"},
        {"olmo2_windows", "attention.sliding_window=6"},
        {"olmo2_windows", "rope.scaling.attn_factor=1.1"},
        {"exaone4_windows", "attention.sliding_window=6"},
        {"cohere2", "attention.sliding_window=6"},
        {"cohere2", "logit_scale=0.3"},
        {"glm4", "rope.dimension_count=8"},
        {"gptneox", "use_parallel_residual=false"},
        {"olmo", "attention.clamp_kqv=1.4"},
        {"gpt2", "attention.layer_norm_epsilon=0.1"},
    };
    struct world w = {.t = t};
    rlx_error err;

    const char *file = test_source(t, "tests/llm/vectors.txt");
    w.vectors = file ? test_read(t, file, NULL) : NULL;
    w.path = test_temp(t, "tiny.gguf");
    require(t, w.vectors && w.path);
    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &w.ctx, &err));
    require_ok(t, rlx_device_open(w.ctx, "cpu", &w.dev, &err));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct tiny_model *m = tiny_model_find(rows[i].model);
        const struct tiny_change change = {.keys = rows[i].keys};
        test_note(t, "%s with %s", rows[i].model, rows[i].keys);
        snprintf(w.name, sizeof w.name, "%s", rows[i].model);
        require(t, m && read_tokens(&w));
        require_ok(t, tiny_model_write(w.ctx, w.path, m, &change, &err));
        expect(t, distance(t, &w) > 0.01);
    }
    rlx_device_close(w.dev);
    rlx_context_destroy(w.ctx);
}

/* ---- matrices that are not of f32 --------------------------------------------------------- */

/* Products round what comes in, each in its own way. */
TEST_DEVICES(llm, llama_in_halves)
{
    compare(t, "llama_blocks", RLX_WEIGHT_F16, 2e-2);
}

TEST(llm, gpt2_in_halves)
{
    compare(t, "gpt2", RLX_WEIGHT_F16, 2e-2);
}

TEST_DEVICES(llm, llama_in_blocks)
{
    compare(t, "llama_blocks", RLX_WEIGHT_Q8_0, 5e-2);
}

TEST_DEVICES(llm, deepseek2_in_blocks)
{
    compare(t, "deepseek2_blocks", RLX_WEIGHT_Q8_0, 1e-1);
}

TEST_DEVICES(llm, gpt_oss_in_blocks)
{
    compare(t, "gpt_oss_blocks", RLX_WEIGHT_Q8_0, 5e-2);
}
