/* limits.h: memory for a context under test. A file may ask for any amount of it; it gets so much,
 * and must live with the answer. What was taken is counted, so that what is kept shows. */
#ifndef FUZZ_LIMITS_H
#define FUZZ_LIMITS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "rlx/rlx.h"

enum { FUZZ_MOST_BYTES = 64 << 20 };

static inline void *fuzz_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    size_t *used = user;

    if (new_size == 0) {
        free(ptr);
        *used -= old_size;
        return NULL;
    }
    if (new_size > FUZZ_MOST_BYTES || *used - old_size > FUZZ_MOST_BYTES - new_size)
        return NULL;
    ptr = realloc(ptr, new_size);
    if (ptr)
        *used += new_size - old_size;
    return ptr;
}

/* A refusal has a status and a sentence, and is never a bug of ours. */
static inline void fuzz_need_reason(const rlx_error *err)
{
    if (err->status == RLX_OK || err->status == RLX_ERROR_INTERNAL || !err->message[0])
        abort();
}

#endif
