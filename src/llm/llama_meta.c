/* llama_meta.c: what a GGUF file says of a model of the "llama" kind, written and read. */
#include <stddef.h>

#include "base/desc.h"
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
/* The first SEVERAL of the sizes say something new; the others say head_dim again. */
enum {
    SEVERAL = 8,
    SIZES = sizeof sizes / sizeof sizes[0],
    NUMBERS = sizeof numbers / sizeof numbers[0]
};

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

/* ---- read ---- */

static rlx_status get_size(const rlx_weights *w, size_t i, int64_t *out, struct diag *d)
{
    uint64_t v = (uint64_t)*out;
    rlx_error err;

    if (rlx_weights_get_u64(w, rlx_cstr(sizes[i].key), &v, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    if (v > 1 << 24)
        return diag_fail(d, RLX_ERROR_FORMAT, "%s is %llu, which is no size", sizes[i].key,
                         (unsigned long long)v);
    *out = (int64_t)v;
    return RLX_OK;
}

static rlx_status get_numbers(const rlx_weights *w, rlx_llm_shape *out, struct diag *d)
{
    rlx_error err;

    for (size_t i = 0; i < SEVERAL; i++)
        TRY(get_size(w, i, (int64_t *)((char *)out + sizes[i].at), d));
    for (size_t i = 0; i < NUMBERS; i++)
        if (rlx_weights_get_f32(w, rlx_cstr(numbers[i].key), (float *)((char *)out + numbers[i].at),
                                &err) != RLX_OK)
            return diag_again(d, &err, err.status);
    return RLX_OK;
}

/* What this model would need and rlx_llm_build does not make. */
static rlx_status check_supported(const rlx_weights *w, struct diag *d)
{
    static const char *const tensors[] = {"rope_freqs.weight", "blk.0.attn_q.bias",
                                          "blk.0.attn_qkv.weight", "blk.0.ffn_gate_inp.weight"};
    rlx_str arch = {NULL, 0}, scaling = {NULL, 0};
    rlx_error err;
    size_t i;

    if (rlx_weights_get_str(w, STR("general.architecture"), &arch, &err) != RLX_OK ||
        rlx_weights_get_str(w, STR("llama.rope.scaling.type"), &scaling, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    if (!arch.ptr)
        return diag_fail(d, RLX_ERROR_FORMAT, "the file does not say which architecture it is of");
    if (!str_eq(arch, STR("llama")))
        return diag_fail(d, RLX_ERROR_UNSUPPORTED,
                         "the architecture is \"%.*s\"; \"llama\" is supported", STR_ARG(arch));
    if (scaling.ptr && !str_eq(scaling, STR("none")))
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "positions are scaled (%.*s)", STR_ARG(scaling));
    for (size_t k = 0; k < sizeof tensors / sizeof tensors[0]; k++)
        if (rlx_weights_find(w, rlx_cstr(tensors[k]), &i))
            return diag_fail(d, RLX_ERROR_UNSUPPORTED, "the model has a tensor \"%s\"", tensors[k]);
    return RLX_OK;
}

static rlx_status read_shape(const rlx_weights *w, rlx_llm_shape *out, struct diag *d)
{
    rlx_llm_shape found = {RLX_SIZED(rlx_llm_shape)};
    rlx_weight table;
    size_t i;

    TRY(check_supported(w, d));
    TRY(get_numbers(w, &found, d));
    if (!rlx_weights_find(w, STR("token_embd.weight"), &i) || !rlx_weights_at(w, i, &table) ||
        table.rank != 2)
        return diag_fail(d, RLX_ERROR_FORMAT, "there is no matrix \"token_embd.weight\"");
    found.vocab = table.dim[0];
    found.tied = !rlx_weights_find(w, STR("output.weight"), &i);
    TRY(llm_read_shape(&found, out, d));
    for (size_t k = SEVERAL; k < SIZES; k++) {
        int64_t again = out->head_dim;
        TRY(get_size(w, k, &again, d));
        if (again != out->head_dim)
            return diag_fail(d, RLX_ERROR_UNSUPPORTED, "%s is %lld, where a head has %lld numbers",
                             sizes[k].key, (long long)again, (long long)out->head_dim);
    }
    return RLX_OK;
}

rlx_status rlx_llm_read_shape(const rlx_weights *w, rlx_llm_shape *out, rlx_error *err)
{
    rlx_llm_shape own;
    struct diag d;

    diag_init(&d, "llm");
    if (!w)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "w is NULL");
    else if (INFO_CHECK(rlx_llm_shape, out, &d) == RLX_OK && read_shape(w, &own, &d) == RLX_OK)
        INFO_WRITE(rlx_llm_shape, &own, out, &d);
    return diag_report(&d, err);
}
