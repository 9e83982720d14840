/* tensor.h: what the fuzzers of files of one tensor share: a tensor that is handed out has all the
 * bytes it says, and one that is refused has a sentence why. */
#ifndef FUZZ_TENSOR_H
#define FUZZ_TENSOR_H

#include "files.h"
#include "limits.h"
#include "rlx/load.h"
#include "rlx/tools.h"

static inline void fuzz_check_tensor(const rlx_tensor *t)
{
    const uint8_t *bytes = t->data;
    uint64_t need = rlx_dtype_size(t->dtype);
    uint32_t sum = 0;

    if (t->rank < 0 || t->rank > RLX_MAX_RANK || need == 0)
        abort();
    for (int32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0)
            abort();
        need *= (uint64_t)t->dim[i];
    }
    if (need != t->bytes)
        abort();
    for (size_t i = 0; i < t->bytes; i++)
        sum += bytes[i];
    if (sum == UINT32_MAX) /* so that every byte was looked at */
        putchar(' ');
}

/* ending: of the file's name, where the reader goes by that; or NULL. */
static inline void fuzz_tensor(const char *ending, const uint8_t *data, size_t size)
{
    size_t used = 0;
    const rlx_allocator mem = {fuzz_resize, &used};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &mem, .threads = 1};
    rlx_context *ctx = NULL;
    rlx_tensor t = {0};
    rlx_error err = {0};
    struct fuzz_file f;

    if (fuzz_file_make(&f, ending, NULL, 0, data, size) &&
        rlx_context_create(RLX_VERSION, &desc, &ctx, &err) == RLX_OK) {
        if (rlx_tensor_load(ctx, f.path, &t, &err) == RLX_OK) {
            fuzz_check_tensor(&t);
            rlx_tensor_free(ctx, &t);
        } else {
            fuzz_need_reason(&err);
            if (t.data)
                abort();
        }
    }
    rlx_context_destroy(ctx);
    fuzz_file_close(&f);
    if (used)
        abort();
}

#endif
