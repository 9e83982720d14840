/* broken_test.c: files that make no model are refused, with what is wrong by name. */
#include <string.h>

#include "rlx/llm.h"
#include "test.h"
#include "tiny_model.h"

struct row {
    const char *model;
    struct tiny_change change;
    rlx_status status;
    const char *part; /* of the message */
};

static rlx_status open_changed(struct test *t, rlx_context *ctx, rlx_device *dev,
                               const struct row *row, rlx_error *err)
{
    const rlx_llm_desc desc = {RLX_SIZED(rlx_llm_desc), .context = 16};
    const char *path = test_temp(t, "broken.gguf");
    rlx_llm *m = NULL;

    const struct tiny_model *model = tiny_model_find(row->model);
    if (!expect(t, model != NULL) ||
        !expect_ok(t, tiny_model_write(ctx, path, model, &row->change, err)))
        return RLX_ERROR_INTERNAL;
    rlx_status s = rlx_llm_open(ctx, dev, path, &desc, &m, err);
    rlx_llm_close(m);
    return s;
}

static void refuse_all(struct test *t, const struct row *rows, size_t count)
{
    rlx_context *ctx;
    rlx_device *dev;
    rlx_error err;

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    require_ok(t, rlx_device_open(ctx, "cpu", &dev, NULL));
    for (size_t i = 0; i < count; i++) {
        test_note(t, "row %zu, %s", i, rows[i].model);
        expect_status(t, open_changed(t, ctx, dev, &rows[i], &err), rows[i].status);
        expect_error(t, rows[i].status, rows[i].part, &err);
    }
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}

#define REFUSE(rows) refuse_all(t, rows, sizeof(rows) / sizeof(rows)[0])
#define WITHOUT(name)     \
    {                     \
        .without = (name) \
    }
#define KEYS(list)     \
    {                  \
        .keys = (list) \
    }

TEST(llm_broken, what_is_missing_is_named)
{
    static const struct row rows[] = {
        {"llama", WITHOUT("general.architecture"), RLX_ERROR_FORMAT, "general.architecture"},
        {"llama", WITHOUT("llama.context_length"), RLX_ERROR_FORMAT, "llama.context_length"},
        {"llama", WITHOUT("llama.embedding_length"), RLX_ERROR_FORMAT, "llama.embedding_length"},
        {"llama", WITHOUT("llama.block_count"), RLX_ERROR_FORMAT, "llama.block_count"},
        {"llama", WITHOUT("llama.attention.layer_norm_rms_epsilon"), RLX_ERROR_FORMAT,
         "llama.attention.layer_norm_rms_epsilon"},
        {"gpt2", WITHOUT("gpt2.attention.layer_norm_epsilon"), RLX_ERROR_FORMAT,
         "gpt2.attention.layer_norm_epsilon"},
        {"granite", WITHOUT("granite.logit_scale"), RLX_ERROR_FORMAT, "granite.logit_scale"},
        {"cohere2", WITHOUT("cohere2.attention.sliding_window"), RLX_ERROR_FORMAT,
         "cohere2.attention.sliding_window"},
        {"gemma4", WITHOUT("gemma4.attention.sliding_window_pattern"), RLX_ERROR_FORMAT,
         "gemma4.attention.sliding_window_pattern"},
        {"gemma4", WITHOUT("per_layer_token_embd.weight"), RLX_ERROR_FORMAT,
         "per_layer_token_embd.weight"},
        {"qwen3moe", WITHOUT("qwen3moe.expert_used_count"), RLX_ERROR_FORMAT,
         "qwen3moe.expert_used_count"},
        {"qwen3moe", WITHOUT("blk.1.ffn_down_exps.weight"), RLX_ERROR_FORMAT,
         "blk.1.ffn_down_exps.weight"},
        {"llama", WITHOUT("token_embd.weight"), RLX_ERROR_FORMAT, "token_embd.weight"},
        {"llama", WITHOUT("output_norm.weight"), RLX_ERROR_FORMAT, "output_norm.weight"},
        {"llama", WITHOUT("blk.1.attn_norm.weight"), RLX_ERROR_FORMAT, "blk.1.attn_norm.weight"},
        {"llama", WITHOUT("blk.0.attn_k.weight"), RLX_ERROR_FORMAT, "blk.0.attn_k.weight"},
        {"llama", WITHOUT("blk.1.ffn_down.weight"), RLX_ERROR_FORMAT, "blk.1.ffn_down.weight"},
        {"gemma2", WITHOUT("blk.2.post_ffw_norm.weight"), RLX_ERROR_FORMAT,
         "blk.2.post_ffw_norm.weight"},
        {"gpt2", WITHOUT("position_embd.weight"), RLX_ERROR_FORMAT, "position_embd.weight"},
        {"phi3_long", WITHOUT("rope_factors_short.weight"), RLX_ERROR_FORMAT,
         "rope_factors_short.weight"},
        {"bitnet", WITHOUT("blk.0.ffn_sub_norm.weight"), RLX_ERROR_FORMAT,
         "blk.0.ffn_sub_norm.weight"},
    };
    REFUSE(rows);
}

TEST(llm_broken, sizes_that_make_no_model_are_refused)
{
    static const struct row rows[] = {
        {"llama", KEYS("block_count=1000000000"), RLX_ERROR_FORMAT, "llama.block_count"},
        {"llama", KEYS("block_count=5000"), RLX_ERROR_SHAPE, "5000 layers"},
        {"llama", KEYS("block_count=0"), RLX_ERROR_SHAPE, "0 layers"},
        {"llama", KEYS("nextn_predict_layers=3"), RLX_ERROR_SHAPE, "layers"},
        {"llama", KEYS("block_count=3"), RLX_ERROR_FORMAT, "blk.2.attn_norm.weight"},
        {"llama", KEYS("attention.head_count=0"), RLX_ERROR_SHAPE, "heads is 0"},
        {"llama", KEYS("attention.head_count_kv=0"), RLX_ERROR_SHAPE, "kv_heads is 0"},
        {"llama", KEYS("attention.head_count_kv=3"), RLX_ERROR_SHAPE, "must divide the first"},
        {"gemma3", KEYS("attention.head_count=2,2"), RLX_ERROR_FORMAT, "for layer 2"},
        {"llama", KEYS("attention.head_count=4294967295"), RLX_ERROR_FORMAT, "head_count"},
        {"llama", KEYS("attention.head_count=many"), RLX_ERROR_FORMAT, "head_count"},
        {"llama", KEYS("feed_forward_length=80,4"), RLX_ERROR_SHAPE, "blk.1.ffn_gate.weight"},
        {"llama", KEYS("feed_forward_length=80,"), RLX_ERROR_SHAPE, "ffn is 0"},
        {"llama", KEYS("context_length=0"), RLX_ERROR_SHAPE, "context is 0"},
        {"qwen3", KEYS("embedding_length=4096"), RLX_ERROR_SHAPE, "token_embd.weight"},
        {"llama", KEYS("rope.dimension_count=5"), RLX_ERROR_UNSUPPORTED, "rope.dimension_count"},
        {"glm4", KEYS("rope.dimension_count=5"), RLX_ERROR_SHAPE, "turned in pairs"},
        {"glm4", KEYS("rope.dimension_count=400"), RLX_ERROR_SHAPE, "turned in pairs"},
        {"qwen3", KEYS("attention.key_length=0"), RLX_ERROR_SHAPE, "head_dim is 0"},
        {"qwen3", KEYS("attention.value_length=8"), RLX_ERROR_SHAPE, "blk.0.attn_v.weight"},
        {"gemma4", KEYS("attention.shared_kv_layers=5"), RLX_ERROR_FORMAT, "shared_kv_layers"},
        {"gemma4", KEYS("embedding_length_per_layer_input=7"), RLX_ERROR_SHAPE, "per_layer"},
        {"gemma4", KEYS("attention.key_length_swa=16"), RLX_ERROR_SHAPE, "blk.0.attn_q.weight"},
        {"qwen3moe", KEYS("expert_used_count=5"), RLX_ERROR_SHAPE, "5 of 4 experts"},
        {"qwen3moe", KEYS("expert_count=5"), RLX_ERROR_SHAPE, "blk.0.ffn_"},
        {"gemma3", KEYS("attention.sliding_window=4294967295"), RLX_ERROR_FORMAT, "sliding_window"},
    };
    REFUSE(rows);
}

TEST(llm_broken, values_that_make_no_sense_are_refused)
{
    static const struct row rows[] = {
        {"llama", KEYS(".general.architecture=lama"), RLX_ERROR_UNSUPPORTED, "did you mean llama?"},
        {"llama", KEYS("rope.freq_base=0.0"), RLX_ERROR_ATTRIBUTE, "makes no sense"},
        {"llama", KEYS("rope.scaling.factor=-1.0"), RLX_ERROR_ATTRIBUTE, "makes no sense"},
        {"llama", KEYS("rope.scaling.type=spiral"), RLX_ERROR_UNSUPPORTED, "spiral"},
        {"llama", KEYS("attention.layer_norm_rms_epsilon=0.0"), RLX_ERROR_ATTRIBUTE, "eps"},
        {"llama", KEYS("attention.layer_norm_rms_epsilon=0.000001e60"), RLX_ERROR_FORMAT,
         "layer_norm_rms_epsilon is not a finite number"},
        {"mistral3", KEYS("rope.scaling.original_context_length=0"), RLX_ERROR_ATTRIBUTE,
         "makes no sense"},
        {"olmo", KEYS("attention.clamp_kqv=-1.0"), RLX_ERROR_ATTRIBUTE, "min 1 and max -1"},
    };
    REFUSE(rows);
}

TEST(llm_broken, experts_that_make_no_sense_are_refused)
{
    static const struct row rows[] = {
        {"qwen3moe", WITHOUT("qwen3moe.expert_count"), RLX_ERROR_FORMAT, "qwen3moe.expert_count"},
        {"qwen3moe", WITHOUT("qwen3moe.expert_used_count"), RLX_ERROR_FORMAT, "expert_used_count"},
        {"llama_experts", WITHOUT("llama.expert_used_count"), RLX_ERROR_FORMAT,
         "llama.expert_used_count"},
        {"gpt_oss", WITHOUT("gpt-oss.attention.sliding_window"), RLX_ERROR_FORMAT,
         "gpt-oss.attention.sliding_window"},
        {"qwen3moe", KEYS("expert_count=0"), RLX_ERROR_SHAPE, "2 of 0 experts"},
        {"qwen3moe", KEYS("expert_count=1000000000"), RLX_ERROR_FORMAT, "qwen3moe.expert_count"},
        {"qwen3moe", KEYS("expert_count=1025"), RLX_ERROR_SHAPE, "2 of 1025 experts"},
        {"qwen3moe", KEYS("expert_count=4294967295"), RLX_ERROR_FORMAT, "expert_count"},
        {"qwen3moe", KEYS("expert_used_count=0"), RLX_ERROR_SHAPE, "0 of 4 experts"},
        {"llama_experts", KEYS("expert_used_count=5"), RLX_ERROR_SHAPE, "5 of 4 experts"},
        {"gpt_oss", KEYS("expert_used_count=5"), RLX_ERROR_SHAPE, "5 of 4 experts"},
        {"lfm2moe", KEYS("expert_count=0"), RLX_ERROR_SHAPE, "2 of 0 experts"},
        {"qwen35moe", KEYS("expert_count=0"), RLX_ERROR_SHAPE, "2 of 0 experts"},
        {"qwen3moe", KEYS("expert_feed_forward_length=0"), RLX_ERROR_SHAPE,
         "the width of an expert is 0"},
        {"qwen3moe", KEYS("expert_feed_forward_length=25"), RLX_ERROR_SHAPE, "blk.0.ffn_"},
        {"qwen2moe", KEYS("expert_shared_feed_forward_length=1000000000"), RLX_ERROR_FORMAT,
         "qwen2moe.expert_shared_feed_forward_length"},
        {"glm4moe", KEYS("expert_shared_count=16777216"), RLX_ERROR_SHAPE,
         "the width of the shared expert"},
        {"glm4moe", KEYS("expert_gating_func=9"), RLX_ERROR_UNSUPPORTED, "expert_gating_func is 9"},
        {"glm4moe", KEYS("expert_group_count=3 expert_group_used_count=1"), RLX_ERROR_SHAPE,
         "groups"},
        {"glm4moe", KEYS("expert_group_count=2 expert_group_used_count=3"), RLX_ERROR_SHAPE,
         "groups"},
        {"qwen3moe", WITHOUT("blk.1.ffn_down_exps.weight"), RLX_ERROR_FORMAT,
         "blk.1.ffn_down_exps.weight"},
        {"gpt_oss", {.layer = "attn_sinks:q"}, RLX_ERROR_SHAPE, "blk.0.attn_sinks.weight"},
        {"gpt_oss", {.layer = "ffn_up_exps.bias:ed"}, RLX_ERROR_SHAPE, "blk.0.ffn_up_exps.bias"},
        {"glm4moe", {.layer = "exp_probs_b.bias:d+"}, RLX_ERROR_SHAPE, "blk.1.exp_probs_b.bias"},
    };
    REFUSE(rows);
}

TEST(llm_broken, rows_for_all_heads_that_make_no_sense_are_refused)
{
    static const struct row rows[] = {
        {"deepseek2", WITHOUT("deepseek2.attention.kv_lora_rank"), RLX_ERROR_FORMAT,
         "deepseek2.attention.kv_lora_rank"},
        {"deepseek2", WITHOUT("deepseek2.attention.q_lora_rank"), RLX_ERROR_FORMAT,
         "deepseek2.attention.q_lora_rank"},
        {"deepseek2", WITHOUT("deepseek2.attention.key_length_mla"), RLX_ERROR_FORMAT,
         "deepseek2.attention.key_length_mla"},
        {"deepseek2", WITHOUT("deepseek2.attention.value_length_mla"), RLX_ERROR_FORMAT,
         "deepseek2.attention.value_length_mla"},
        {"deepseek2_plain", WITHOUT("deepseek2.attention.temperature_length"), RLX_ERROR_FORMAT,
         "deepseek2.attention.temperature_length"},
        {"deepseek2_plain", KEYS("attention.temperature_length=0"), RLX_ERROR_ATTRIBUTE,
         "attention.temperature_length"},
        {"deepseek2", KEYS("attention.kv_lora_rank=0"), RLX_ERROR_SHAPE, "kv_lora_rank is 0"},
        {"deepseek2", KEYS("attention.kv_lora_rank=33"), RLX_ERROR_SHAPE, "blk.0.attn_k"},
        {"deepseek2", KEYS("attention.q_lora_rank=63"), RLX_ERROR_SHAPE, "blk.0.attn_q_a"},
        {"deepseek2", KEYS("attention.key_length_mla=8"), RLX_ERROR_SHAPE, "turned in pairs"},
        {"deepseek2", KEYS("attention.key_length_mla=0"), RLX_ERROR_SHAPE, "a key is 0"},
        {"deepseek2", KEYS("attention.value_length_mla=0"), RLX_ERROR_SHAPE, "a value is 0"},
        {"deepseek2", KEYS("rope.dimension_count=0"), RLX_ERROR_SHAPE, "turned in pairs"},
        {"deepseek2", KEYS("rope.dimension_count=7"), RLX_ERROR_SHAPE, "turned in pairs"},
        {"deepseek2", KEYS("attention.head_count=0"), RLX_ERROR_SHAPE, "heads is 0"},
        {"deepseek2", {.layer = "attn_k_b:nov"}, RLX_ERROR_SHAPE, "blk.0.attn_k_b.weight"},
        {"deepseek2", WITHOUT("blk.1.attn_v_b.weight"), RLX_ERROR_FORMAT, "blk.1.attn_v_b.weight"},
        {"deepseek2_plain", WITHOUT("blk.1.attn_kv_b.weight"), RLX_ERROR_FORMAT,
         "blk.1.attn_kv_b.weight"},
    };
    REFUSE(rows);
}

TEST(llm_broken, states_that_make_no_sense_are_refused)
{
    static const struct row rows[] = {
        {"mamba", WITHOUT("mamba.ssm.conv_kernel"), RLX_ERROR_FORMAT, "mamba.ssm.conv_kernel"},
        {"mamba", WITHOUT("mamba.ssm.inner_size"), RLX_ERROR_FORMAT, "mamba.ssm.inner_size"},
        {"mamba2", WITHOUT("mamba2.ssm.state_size"), RLX_ERROR_FORMAT, "mamba2.ssm.state_size"},
        {"qwen35", WITHOUT("qwen35.ssm.time_step_rank"), RLX_ERROR_FORMAT,
         "qwen35.ssm.time_step_rank"},
        {"lfm2", WITHOUT("lfm2.shortconv.l_cache"), RLX_ERROR_FORMAT, "lfm2.shortconv.l_cache"},
        {"mamba", KEYS("ssm.conv_kernel=0"), RLX_ERROR_SHAPE, "taps"},
        {"mamba", KEYS("ssm.conv_kernel=1000000000"), RLX_ERROR_FORMAT, "mamba.ssm.conv_kernel"},
        {"mamba", KEYS("ssm.conv_kernel=65"), RLX_ERROR_UNSUPPORTED, "65 taps"},
        {"mamba", KEYS("ssm.conv_kernel=1"), RLX_ERROR_UNSUPPORTED, "1 taps"},
        {"mamba", KEYS("ssm.inner_size=0"), RLX_ERROR_SHAPE, "ssm.inner_size is 0"},
        {"mamba", KEYS("ssm.state_size=0"), RLX_ERROR_SHAPE, "ssm.state_size is 0"},
        {"mamba", KEYS("ssm.state_size=16777216 ssm.inner_size=16777216"), RLX_ERROR_UNSUPPORTED,
         "state_size 16777216"},
        {"mamba", KEYS("ssm.time_step_rank=0"), RLX_ERROR_SHAPE, "ssm.time_step_rank is 0"},
        {"mamba2", KEYS("ssm.inner_size=0"), RLX_ERROR_SHAPE, "ssm.inner_size is 0"},
        {"mamba2", KEYS("ssm.time_step_rank=0"), RLX_ERROR_SHAPE, "ssm.time_step_rank is 0"},
        {"mamba2", KEYS("ssm.time_step_rank=5"), RLX_ERROR_SHAPE, "5 heads"},
        {"mamba2", KEYS("ssm.group_count=0"), RLX_ERROR_SHAPE, "ssm.group_count is 0"},
        {"mamba2", KEYS("ssm.group_count=3"), RLX_ERROR_SHAPE, "3 groups"},
        {"mamba2", KEYS("ssm.state_size=1000000000"), RLX_ERROR_FORMAT, "mamba2.ssm.state_size"},
        {"falcon_h1", KEYS("ssm.state_size=0"), RLX_ERROR_SHAPE, "ssm.state_size is 0"},
        {"granitehybrid", KEYS("attention.head_count_kv=2,2,2"), RLX_ERROR_FORMAT, "blk.0.attn_q"},
        {"granitehybrid", KEYS("attention.head_count_kv=0,2"), RLX_ERROR_FORMAT, "for layer 2"},
        {"nemotron_h", KEYS("feed_forward_length=0,80,0,0,0"), RLX_ERROR_FORMAT, "blk.4.ssm_in"},
        {"lfm2", KEYS("shortconv.l_cache=0"), RLX_ERROR_SHAPE, "taps"},
        {"lfm2", KEYS("shortconv.l_cache=5"), RLX_ERROR_SHAPE, "blk.0.shortconv.conv.weight"},
        {"qwen35", KEYS("ssm.inner_size=95"), RLX_ERROR_UNSUPPORTED, "ssm.inner_size, 95"},
        {"qwen35", KEYS("ssm.time_step_rank=0"), RLX_ERROR_UNSUPPORTED, "0 heads of 16"},
        {"qwen35", KEYS("ssm.group_count=0"), RLX_ERROR_SHAPE, "ssm.group_count is 0"},
        {"qwen35", KEYS("full_attention_interval=3"), RLX_ERROR_FORMAT, "blk.1.attn_"},
        {"mamba", {.layer = "ssm_a.:SI"}, RLX_ERROR_SHAPE, "blk.0.ssm_a"},
        {"mamba", WITHOUT("blk.1.ssm_d"), RLX_ERROR_FORMAT, "blk.1.ssm_d"},
        {"mamba2", {.layer = "ssm_norm:gG"}, RLX_ERROR_SHAPE, "blk.0.ssm_norm.weight"},
        {"qwen3next", WITHOUT("blk.0.ssm_ba.weight"), RLX_ERROR_FORMAT, "blk.0.ssm_beta.weight"},
        {"qwen3next_old", {.layer = "ssm_in:Zd<"}, RLX_ERROR_SHAPE, "blk.0.ssm_in.weight"},
    };
    REFUSE(rows);
}

TEST(llm_broken, tensors_of_other_shapes_are_refused)
{
    static const struct row rows[] = {
        {"llama", {.layer = "ffn_up:dd"}, RLX_ERROR_SHAPE, "blk.0.ffn_up.weight"},
        {"llama", {.layer = "attn_norm:f"}, RLX_ERROR_SHAPE, "blk.0.attn_norm.weight"},
        {"llama", {.layer = "attn_q.bias:d attn_k.bias:q"}, RLX_ERROR_SHAPE, "blk.0.attn_k.bias"},
        {"llama", {.layer = "attn_q.scale:d"}, RLX_ERROR_SHAPE, "blk.0.attn_q.scale"},
        {"llama", {.global = "token_embd:t"}, RLX_ERROR_FORMAT, "token_embd.weight"},
        {"llama", {.global = "token_embd:cd"}, RLX_ERROR_SHAPE, "277 tokens"},
        {"llama", {.global = "output:cd"}, RLX_ERROR_SHAPE, "output.weight"},
        {"llama", {.global = "rope_freqs:d"}, RLX_ERROR_SHAPE, "rope_freqs.weight"},
        {"gpt2", {.global = "position_embd:td"}, RLX_ERROR_SHAPE, "position_embd.weight"},
        {"qwen3", {.layer = "attn_q_norm:f"}, RLX_ERROR_SHAPE, "blk.0.attn_q_norm.weight"},
        {"command_r_plus", {.layer = "attn_q_norm:hh"}, RLX_ERROR_SHAPE, "attn_q_norm.weight"},
        {"llama_fused", {.layer = "attn_qkv:qd"}, RLX_ERROR_SHAPE, "blk.0.attn_qkv.weight"},
    };
    REFUSE(rows);
}

TEST(llm_broken, positions_that_were_not_learned_are_refused)
{
    const rlx_llm_desc desc = {RLX_SIZED(rlx_llm_desc), .context = 512};
    const char *path = test_temp(t, "gpt2.gguf");
    rlx_llm *m = NULL;
    rlx_context *ctx;
    rlx_device *dev;
    rlx_error err;

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    require_ok(t, rlx_device_open(ctx, "cpu", &dev, NULL));
    require_ok(t, tiny_model_write(ctx, path, tiny_model_find("gpt2"), NULL, &err));
    rlx_llm_open(ctx, dev, path, &desc, &m, &err);
    expect_error(t, RLX_ERROR_LIMIT, "knows 256 positions", &err);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}
