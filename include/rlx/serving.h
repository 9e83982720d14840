/* serving.h: what a server of many sequences keeps count of: pages of a key-value cache, and what
 * goes into the next batch. Bookkeeping only: it knows no tensors and no devices. */
#ifndef RLX_SERVING_H
#define RLX_SERVING_H

#ifndef RLX_UNSTABLE
#error "rlx/serving.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/rlx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- pages ----
 *
 * A cache of `pages` pages with room for `page_tokens` tokens each. A sequence takes pages as it
 * grows, always the lowest free ones; token t lies in entry t / page_tokens of its table. */
typedef struct rlx_pages rlx_pages;

RLX_API rlx_status rlx_pages_create(rlx_context *ctx, int64_t page_tokens, int32_t pages,
                                    rlx_pages **out, rlx_error *err);
RLX_API void rlx_pages_destroy(rlx_pages *p);
/* A new sequence without tokens; numbers of closed ones are used again, the lowest first. */
RLX_API rlx_status rlx_pages_open(rlx_pages *p, int32_t *sequence, rlx_error *err);
/* Its pages are free again. Closing a sequence that is not open does nothing. */
RLX_API void rlx_pages_close(rlx_pages *p, int32_t sequence);
/* Pages for so many tokens in all. LIMIT, with the numbers, where there are not enough: then
 * nothing has changed. Fewer tokens than now frees pages. */
RLX_API rlx_status rlx_pages_resize(rlx_pages *p, int32_t sequence, int64_t tokens, rlx_error *err);
/* Its table; valid until the sequence is resized or closed. NULL: not open, or no pages. */
RLX_API const int32_t *rlx_pages_table(const rlx_pages *p, int32_t sequence, size_t *count);
RLX_API int64_t rlx_pages_tokens(const rlx_pages *p, int32_t sequence); /* -1: not open */
RLX_API int32_t rlx_pages_free(const rlx_pages *p);

/* ---- batches ----
 *
 * Sequences that decode come first, one token each; what room is left goes to prompts, which may
 * be cut: the rest of a prompt waits for the next batch. */
typedef struct rlx_waiting {
    int64_t done;    /* tokens that have been run */
    int64_t pending; /* tokens that have not; 0: there is nothing to do */
    bool decodes;    /* its prompt is done: one token at a time */
} rlx_waiting;

typedef struct rlx_batch_limits {
    int64_t tokens; /* of one batch; 0: no limit */
    size_t entries; /* likewise */
    int64_t chunk;  /* most tokens of one prompt in one batch; 0: no limit */
} rlx_batch_limits;

typedef struct rlx_batch_entry {
    size_t waiting;       /* its index */
    int64_t first, count; /* tokens [first, first + count) of its sequence */
} rlx_batch_entry;

/* Fills out[], room for `count`, in the order of waiting[]; how many there are. */
RLX_API size_t rlx_batch_make(const rlx_waiting *waiting, size_t count,
                              const rlx_batch_limits *limits, rlx_batch_entry *out);

#ifdef __cplusplus
}
#endif

#endif
