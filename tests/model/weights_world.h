/* weights_world.h: files of tensors written through the public calls, for the tests of those. */
#ifndef TESTS_API_WEIGHTS_WORLD_H
#define TESTS_API_WEIGHTS_WORLD_H

#include <stdio.h>
#include <string.h>

#include "rlx/weights.h"
#include "test.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])
/* A tensor of a content: T("w", F32, 2, 3, 4) is f32[3,4]. */
#define T(name_, type_, rank_, ...)                                                    \
    {                                                                                  \
        .name = {name_, sizeof(name_) - 1}, .type = RLX_WEIGHT_##type_, .rank = rank_, \
        .dim = {__VA_ARGS__},                                                          \
    }
#define STRING(text) ((rlx_str){text, sizeof(text) - 1})

/* Byte k of tensor i of every file here. */
static inline uint8_t byte_of(size_t i, uint64_t k)
{
    return (uint8_t)(i * 31 + k * 7 + 1);
}

/* Writes every tensor in pieces of odd sizes. */
static inline rlx_status write_file(rlx_context *ctx, const char *path,
                                    const rlx_weights_content *content, rlx_error *err)
{
    rlx_weights_writer *w = NULL;
    rlx_status s = rlx_weights_begin(ctx, path, content, &w, err);
    uint64_t left = 0, done = 0;
    size_t i = 0, last = SIZE_MAX;

    if (s != RLX_OK)
        return s;
    while (s == RLX_OK && rlx_weights_next(w, &i, &left)) {
        uint8_t piece[37];
        size_t n = left < sizeof piece ? (size_t)left : sizeof piece;
        done = i == last ? done : 0;
        last = i;
        for (size_t k = 0; k < n; k++)
            piece[k] = byte_of(i, done + k);
        done += n;
        s = rlx_weights_write(w, piece, n, err);
    }
    if (s == RLX_OK)
        return rlx_weights_finish(w, err);
    rlx_weights_abandon(w);
    return s;
}

/* The file has those tensors, with the bytes above. */
static inline void expect_content(struct test *t, rlx_weights *w,
                                  const rlx_weights_content *content)
{
    rlx_weights_info info = {RLX_SIZED(rlx_weights_info)};
    rlx_error err;

    rlx_weights_describe(w, &info, NULL);
    expect_eq(t, info.tensor_count, content->tensor_count);
    expect_eq(t, info.meta_count, content->meta_count);
    for (size_t i = 0; i < content->tensor_count; i++) {
        const rlx_weight *want = &content->tensor[i];
        const void *data = NULL;
        rlx_weight got = {.rank = -1};
        size_t at = 0;
        test_note(t, "tensor %zu", i);
        require(t, rlx_weights_find(w, want->name, &at) && rlx_weights_at(w, at, &got));
        expect(t, got.type == want->type && got.rank == want->rank);
        expect(t, memcmp(got.dim, want->dim, (size_t)want->rank * sizeof got.dim[0]) == 0);
        require_ok(t, rlx_weights_data(w, at, &data, &err));
        for (uint64_t k = 0; k < got.bytes; k++)
            if (((const uint8_t *)data)[k] != byte_of(i, k)) {
                fail(t, "byte %llu differs", (unsigned long long)k);
                break;
            }
    }
    test_note(t, "%s", "");
}

#endif
