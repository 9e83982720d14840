/* weights.h: what the fuzzers of files of tensors share: a file that is read has all that it says,
 * down to the last byte of the last tensor, and one that is refused has a sentence why. */
#ifndef FUZZ_WEIGHTS_H
#define FUZZ_WEIGHTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "rlx/weights.h"

static inline void need(bool held)
{
    if (!held)
        abort();
}

static inline uint32_t sum_of(const void *data, uint64_t bytes)
{
    const uint8_t *at = data;
    uint32_t sum = 0;

    for (uint64_t i = 0; i < bytes; i++)
        sum += at[i];
    return sum;
}

static inline uint32_t look_at_tensor(rlx_weights *w, size_t i)
{
    rlx_weight t = {.rank = -1};
    rlx_weight_type_info type = {.name = NULL};
    const void *data = NULL;
    uint64_t elements = 1;
    size_t found = SIZE_MAX;
    rlx_error err = {.status = RLX_OK};
    float numbers[256];

    need(rlx_weights_at(w, i, &t) && rlx_weights_find(w, t.name, &found) && found == i);
    need(rlx_weight_type_describe(t.type, &type));
    need(t.rank >= 0 && t.rank <= RLX_WEIGHT_MAX_RANK);
    for (int32_t k = 0; k < t.rank; k++) {
        need(t.dim[k] >= 0);
        elements *= (uint64_t)t.dim[k];
    }
    need(elements % (uint64_t)type.block_elems == 0);
    need(elements / (uint64_t)type.block_elems * (uint64_t)type.block_bytes == t.bytes);
    if (rlx_weights_data(w, i, &data, &err) != RLX_OK) { /* a member that inflates to rubbish */
        need(err.status != RLX_OK && err.message[0]);
        return 0;
    }
    uint64_t some = (uint64_t)type.block_elems; /* a block fits: 256 is the largest */
    if (elements >= some && type.use != RLX_WEIGHT_OPAQUE)
        rlx_weights_read_f32(w, i, elements - some, some, numbers, &err);
    return sum_of(data, t.bytes);
}

static inline uint32_t look_at_meta(const rlx_weights *w, size_t i)
{
    rlx_meta m = {.count = 0}, found;
    uint32_t sum = 0;
    uint64_t u;
    float f;

    need(rlx_weights_meta_at(w, i, &m) && rlx_weights_meta(w, m.key, &found));
    need(found.data == m.data && (m.is_array || m.count == 1));
    for (size_t k = 0; k < m.count && m.type == RLX_META_string; k++)
        sum += sum_of(((const rlx_str *)m.data)[k].ptr, ((const rlx_str *)m.data)[k].len);
    rlx_weights_get_u64(w, m.key, &u, NULL);
    rlx_weights_get_f32(w, m.key, &f, NULL);
    return sum;
}

static inline int fuzz_weights(const uint8_t *data, size_t size)
{
    const rlx_context_desc desc = {.threads = 1};
    rlx_context *ctx = NULL;
    rlx_weights *w = NULL;
    rlx_weights_info info;
    rlx_error err = {.status = RLX_OK};
    uint32_t sum = 0;

    if (rlx_context_create(RLX_VERSION, &desc, &ctx, &err) != RLX_OK)
        return 0;
    if (rlx_weights_parse(ctx, data, size, &w, &err) == RLX_OK) {
        rlx_weights_describe(w, &info);
        for (size_t i = 0; i < info.tensor_count; i++)
            sum += look_at_tensor(w, i);
        for (size_t i = 0; i < info.meta_count; i++)
            sum += look_at_meta(w, i);
        if (sum == UINT32_MAX) /* so that every byte was looked at */
            putchar(' ');
        rlx_weights_close(w);
    } else {
        need(err.status != RLX_OK && err.message[0] && !w);
    }
    rlx_context_destroy(ctx);
    return 0;
}

#endif
