/* llama_meta.c: what a GGUF file says of a model of the "llama" kind. */
#include <stddef.h>

#include "base/str.h"
#include "llm/llama.h"

/* Keys whose value is a size, and where it is in the shape. */
static const struct {
    const char *key;
    size_t at;
} sizes[] = {
    {"llama.vocab_size", offsetof(rlx_llm_shape, vocab)},
    {"llama.context_length", offsetof(rlx_llm_shape, context)},
    {"llama.embedding_length", offsetof(rlx_llm_shape, width)},
    {"llama.block_count", offsetof(rlx_llm_shape, layers)},
    {"llama.feed_forward_length", offsetof(rlx_llm_shape, ffn)},
    {"llama.attention.head_count", offsetof(rlx_llm_shape, heads)},
    {"llama.attention.head_count_kv", offsetof(rlx_llm_shape, kv_heads)},
    {"llama.attention.key_length", offsetof(rlx_llm_shape, head_dim)},
    {"llama.attention.value_length", offsetof(rlx_llm_shape, head_dim)},
    {"llama.rope.dimension_count", offsetof(rlx_llm_shape, head_dim)},
};
static const struct {
    const char *key;
    size_t at;
} numbers[] = {
    {"llama.attention.layer_norm_rms_epsilon", offsetof(rlx_llm_shape, eps)},
    {"llama.rope.freq_base", offsetof(rlx_llm_shape, rope_base)},
};
enum { SIZES = sizeof sizes / sizeof sizes[0], NUMBERS = sizeof numbers / sizeof numbers[0] };

bool rlx_llm_meta(const rlx_llm_shape *theirs, size_t i, rlx_llm_meta_room *room, rlx_meta *out)
{
    rlx_llm_shape own;
    struct diag quiet;

    diag_init(&quiet, "llm");
    if (!room || !out || i > SIZES + NUMBERS || llm_read_shape(theirs, &own, &quiet) != RLX_OK)
        return false;
    *out = (rlx_meta){.count = 1, .data = room};
    if (i == 0) {
        out->key = STR("general.architecture");
        out->type = RLX_META_string;
        room->str = STR("llama");
    } else if (i <= SIZES) {
        out->key = rlx_cstr(sizes[i - 1].key);
        out->type = RLX_META_u32;
        room->u32 = (uint32_t) * (const int64_t *)((const char *)&own + sizes[i - 1].at);
    } else {
        out->key = rlx_cstr(numbers[i - 1 - SIZES].key);
        out->type = RLX_META_f32;
        room->f32 = *(const float *)((const char *)&own + numbers[i - 1 - SIZES].at);
    }
    return true;
}
