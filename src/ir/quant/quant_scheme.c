/* quant_scheme.c: the formats of packed weights, as a table. */
#include "ir/quant/quant_scheme.h"

#include <stddef.h>

#include "rlx/graph.h"

#define GGUF(word, display_, elems, bytes, scale, offset) \
    [RLX_QUANT_SCHEME_##word] = {.display = display_,     \
                                 .block_elems = elems,    \
                                 .block_bytes = bytes,    \
                                 .scale_at = scale,       \
                                 .offset_at = offset,     \
                                 .is_gguf = true}

static const struct quant_scheme table[] = {
    [RLX_QUANT_SCHEME_int8_block] = {.display = "int8", .has_scale = true},
    [RLX_QUANT_SCHEME_int8_block_asym] = {.display = "int8a",
                                          .has_scale = true,
                                          .has_zero_point = true},
    [RLX_QUANT_SCHEME_int4_block] = {.display = "int4", .nibbles = true, .has_scale = true},
    [RLX_QUANT_SCHEME_fp8_e4m3] = {.display = "fp8e4m3", .group = 1},
    [RLX_QUANT_SCHEME_fp8_e5m2] = {.display = "fp8e5m2", .group = 1},
    [RLX_QUANT_SCHEME_nvfp4_block] = {.display = "nvfp4/16",
                                      .group = 16,
                                      .nibbles = true,
                                      .has_scale = true,
                                      .scale_is_fp8 = true},
    GGUF(q4_0, "gguf_q4_0", 32, 18, 0, 0),
    GGUF(q4_1, "gguf_q4_1", 32, 20, 0, 2),
    GGUF(q5_0, "gguf_q5_0", 32, 22, 0, 0),
    GGUF(q5_1, "gguf_q5_1", 32, 24, 0, 2),
    GGUF(q8_0, "gguf_q8_0", 32, 34, 0, 0),
    GGUF(q8_1, "gguf_q8_1", 32, 36, 0, 2),
    GGUF(q2_k, "gguf_q2k", 256, 84, 80, 82),
    GGUF(q3_k, "gguf_q3k", 256, 110, 108, 0),
    GGUF(q4_k, "gguf_q4k", 256, 144, 0, 2),
    GGUF(q5_k, "gguf_q5k", 256, 176, 0, 2),
    GGUF(q6_k, "gguf_q6k", 256, 210, 208, 0),
    GGUF(q8_k, "gguf_q8k", 256, 292, 0, 0),
    GGUF(iq4_nl, "gguf_iq4_nl", 32, 18, 0, 0),
    GGUF(iq4_xs, "gguf_iq4_xs", 256, 136, 0, 0),
    GGUF(mxfp4, "gguf_mxfp4", 32, 17, -1, 0),
    GGUF(nvfp4, "gguf_nvfp4", 64, 36, -1, 0),
    GGUF(tq1_0, "gguf_tq1_0", 256, 54, 52, 0),
    GGUF(tq2_0, "gguf_tq2_0", 256, 66, 64, 0),
};

const struct quant_scheme *quant_scheme(int32_t scheme)
{
    if (scheme < 0 || (size_t)scheme >= sizeof table / sizeof table[0])
        return NULL;
    return &table[scheme];
}

bool quant_row_bytes(const struct quant_scheme *s, int64_t k, int64_t *out)
{
    int64_t bytes;

    if (!s->is_gguf || k < 0 || k % s->block_elems != 0)
        return false;
    if (__builtin_mul_overflow(k / s->block_elems, (int64_t)s->block_bytes, &bytes))
        return false;
    *out = bytes;
    return true;
}
