/* weights.h: what the fuzzers of files of tensors share: a file that is read has all that it says,
 * down to the last byte of the last tensor, and comes back the same when it is written; one that is
 * refused has a sentence why. */
#ifndef FUZZ_WEIGHTS_H
#define FUZZ_WEIGHTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    rlx_weight_type_info type = {RLX_SIZED(rlx_weight_type_info)};
    const void *data = NULL;
    uint64_t elements = 1;
    size_t found = SIZE_MAX;
    rlx_error err = {.status = RLX_OK};
    float numbers[256];

    need(rlx_weights_at(w, i, &t) && rlx_weights_find(w, t.name, &found) && found == i);
    need(rlx_weight_type_describe(t.type, &type, NULL) == RLX_OK);
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
    uint64_t some = 256; /* the largest block, and a multiple of every other */
    for (uint64_t at = 0; at < elements && type.use != RLX_WEIGHT_OPAQUE; at += some)
        rlx_weights_read_f32(w, i, at, elements - at < some ? elements - at : some, numbers, &err);
    return sum_of(data, t.bytes);
}

static inline uint32_t look_at_meta(const rlx_weights *w, size_t i)
{
    rlx_meta m = {.count = 0}, found;
    uint32_t sum = 0;
    uint64_t u;
    float f;
    bool b;
    rlx_str s = {NULL, 0};

    need(rlx_weights_meta_at(w, i, &m) && rlx_weights_meta(w, m.key, &found));
    need(found.data == m.data && (m.is_array || m.count == 1));
    for (size_t k = 0; k < m.count && m.type == RLX_META_string; k++)
        sum += sum_of(((const rlx_str *)m.data)[k].ptr, ((const rlx_str *)m.data)[k].len);
    rlx_weights_get_u64(w, m.key, &u, NULL);
    rlx_weights_get_f32(w, m.key, &f, NULL);
    rlx_weights_get_bool(w, m.key, &b, NULL);
    rlx_weights_get_str(w, m.key, &s, NULL);
    return sum + sum_of(s.ptr, s.len);
}

/* ---- there and back ---- */

struct all {
    rlx_weights_info info;
    rlx_weight *tensor;
    rlx_meta *meta;
};

static inline void take_all(const rlx_weights *w, struct all *a)
{
    a->info = (rlx_weights_info){RLX_SIZED(rlx_weights_info)};
    rlx_weights_describe(w, &a->info, NULL);
    a->tensor = calloc(a->info.tensor_count + 1, sizeof *a->tensor);
    a->meta = calloc(a->info.meta_count + 1, sizeof *a->meta);
    need(a->tensor && a->meta);
    for (size_t i = 0; i < a->info.tensor_count; i++)
        need(rlx_weights_at(w, i, &a->tensor[i]));
    for (size_t i = 0; i < a->info.meta_count; i++)
        need(rlx_weights_meta_at(w, i, &a->meta[i]));
}

/* false: names that the writer rightly refuses, or members that do not inflate. */
static inline bool write_again(rlx_context *ctx, rlx_weights *w, const struct all *a,
                               const char *path)
{
    const rlx_weights_content content = {
        RLX_SIZED(rlx_weights_content), a->info.kind, a->tensor,
        a->info.tensor_count,           a->meta,      a->info.meta_count,
        (uint32_t)a->info.alignment};
    rlx_weights_writer *out = NULL;
    const void *data;
    rlx_error err;
    uint64_t left;
    size_t i;

    for (i = 0; i < a->info.tensor_count; i++)
        if (rlx_weights_data(w, i, &data, &err) != RLX_OK)
            return false;
    if (rlx_weights_begin(ctx, path, &content, &out, &err) != RLX_OK) {
        need(err.status == RLX_ERROR_NAME);
        return false;
    }
    while (rlx_weights_next(out, &i, &left)) {
        need(rlx_weights_data(w, i, &data, &err) == RLX_OK);
        need(rlx_weights_write(out, data, (size_t)left, &err) == RLX_OK);
    }
    need(rlx_weights_finish(out, &err) == RLX_OK);
    return true;
}

static inline void same_tensors(rlx_weights *a, rlx_weights *b, const struct all *all)
{
    for (size_t i = 0; i < all->info.tensor_count; i++) {
        const rlx_weight *t = &all->tensor[i];
        const void *x = NULL, *y = NULL;
        rlx_weight other;
        size_t at = 0;
        need(rlx_weights_find(b, t->name, &at) && rlx_weights_at(b, at, &other));
        need(other.type == t->type && other.rank == t->rank && other.bytes == t->bytes);
        need(memcmp(other.dim, t->dim, sizeof t->dim) == 0);
        need(rlx_weights_data(a, i, &x, NULL) == RLX_OK);
        need(rlx_weights_data(b, at, &y, NULL) == RLX_OK);
        need(t->bytes == 0 || memcmp(x, y, (size_t)t->bytes) == 0);
    }
}

/* Says of itself that it is one of several files, which are looked for when it is opened by name.
 */
static inline bool is_split(const struct all *a)
{
    bool found = false;

    for (size_t i = 0; i < a->info.meta_count; i++)
        found |= a->meta[i].key.len > 6 && memcmp(a->meta[i].key.ptr, "split.", 6) == 0;
    return found;
}

static inline void there_and_back(rlx_context *ctx, rlx_weights *w)
{
    struct all all;
    rlx_weights *back = NULL;
    rlx_weights_info info = {RLX_SIZED(rlx_weights_info)};
    rlx_meta m;
    char path[64];

    if (access("/dev/shm", W_OK) != 0)
        return;
    snprintf(path, sizeof path, "/dev/shm/rlx-fuzz-%d", (int)getpid());
    take_all(w, &all);
    if (all.info.kind != RLX_FILE_npy && !is_split(&all) && write_again(ctx, w, &all, path)) {
        need(rlx_weights_open(ctx, path, NULL, &back, NULL) == RLX_OK);
        rlx_weights_describe(back, &info, NULL);
        need(info.tensor_count == all.info.tensor_count && info.kind == all.info.kind);
        same_tensors(w, back, &all);
        for (size_t i = 0; i < all.info.meta_count; i++)
            need(rlx_weights_meta(back, all.meta[i].key, &m)
                     ? m.type == all.meta[i].type && m.count == all.meta[i].count
                     : memcmp(all.meta[i].key.ptr, "general.alignment", 17) == 0);
        rlx_weights_close(back);
        unlink(path);
    }
    free(all.tensor);
    free(all.meta);
}

/* All that can be asked of a file. */
static inline void look_at_all(rlx_weights *w)
{
    rlx_weights_info info = {RLX_SIZED(rlx_weights_info)};
    uint32_t sum = 0;

    rlx_weights_describe(w, &info, NULL);
    for (size_t i = 0; i < info.tensor_count; i++)
        sum += look_at_tensor(w, i);
    for (size_t i = 0; i < info.meta_count; i++)
        sum += look_at_meta(w, i);
    if (sum == UINT32_MAX) /* so that every byte was looked at */
        putchar(' ');
}

static inline void fuzz_weights(const uint8_t *data, size_t size)
{
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .threads = 1};
    rlx_context *ctx = NULL;
    rlx_weights *w = NULL;
    rlx_error err = {.status = RLX_OK};

    if (rlx_context_create(RLX_VERSION, &desc, &ctx, &err) != RLX_OK)
        return;
    if (rlx_weights_parse(ctx, data, size, &w, &err) == RLX_OK) {
        look_at_all(w);
        there_and_back(ctx, w);
        rlx_weights_close(w);
    } else {
        need(err.status != RLX_OK && err.message[0] && !w);
    }
    rlx_context_destroy(ctx);
}

#endif
