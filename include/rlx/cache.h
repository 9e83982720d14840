/* cache.h: sessions kept by key or by size, and runs padded to a size that was compiled.
 *
 *     keyed      your 64-bit key finds a session; the least recently used ones make room
 *     buckets    a size finds the session compiled for the upper end of the range it is in
 *     padded     inputs of `actual` rows run on a session made for `upper` rows
 *
 * A cache is used by one thread at a time. The sessions in it are the cache's: what it returns is
 * good until the next call on the cache. Params stay with their session. */
#ifndef RLX_CACHE_H
#define RLX_CACHE_H

#ifndef RLX_UNSTABLE
#error "rlx/cache.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the session for a key (of a bucket: its upper end). Its failure becomes the caller's. */
typedef rlx_status (*rlx_cache_make_fn)(void *user, uint64_t key, rlx_session **out,
                                        rlx_error *err);

/* ---- by key ---- */

typedef struct rlx_cache rlx_cache;
/* capacity: sessions, at least 1, else ARGUMENT. bytes: of their activations, constants and states
 * together; the newest one always stays. 0: any number. */
RLX_API rlx_status rlx_cache_create(rlx_context *ctx, size_t capacity, uint64_t bytes,
                                    rlx_cache **out, rlx_error *err);
RLX_API void rlx_cache_destroy(rlx_cache *c); /* and all its sessions */
/* The session of that key, made if there is none. */
RLX_API rlx_status rlx_cache_get(rlx_cache *c, uint64_t key, rlx_cache_make_fn make, void *user,
                                 rlx_session **out, rlx_error *err);
RLX_API size_t rlx_cache_count(const rlx_cache *c); /* sessions in it */
/* A number for all that a model and its options are: usable as a key. Two models with equal graphs,
 * constants and leaf names have the same, in every process; values of params do not count. */
RLX_API rlx_status rlx_model_key(const rlx_model *m, const rlx_session_desc *desc, uint64_t *out,
                                 rlx_error *err);

/* ---- by size ---- */

typedef struct rlx_bucket {
    int64_t low, high; /* both included */
} rlx_bucket;

/* A ladder of powers of two: extents from the first that is at least min, doubling until one is at
 * least max; the first begins at 1. min 8, max 256: 1-8, 9-16, 17-32, 33-64, 65-128, 129-256. At
 * most half of a padded run is wasted. out: room for *count, which becomes how many there are (NULL
 * out: only that). ARGUMENT: min < 1, max < min, or a step past 64 bits. */
RLX_API rlx_status rlx_bucket_ladder(int64_t min, int64_t max, rlx_bucket *out, size_t *count,
                                     rlx_error *err);

typedef struct rlx_bucket_cache rlx_bucket_cache;
/* Ranges in rising order that do not overlap, each of at least one size, else ARGUMENT. */
RLX_API rlx_status rlx_bucket_cache_create(rlx_context *ctx, const rlx_bucket *list, size_t count,
                                           rlx_bucket_cache **out, rlx_error *err);
RLX_API void rlx_bucket_cache_destroy(rlx_bucket_cache *c);
/* The session for the range that holds the size, made for its upper end when first asked for. *out
 * NULL: no range does; compile one for this size. upper may be NULL. */
RLX_API rlx_status rlx_bucket_cache_get(rlx_bucket_cache *c, int64_t size, rlx_cache_make_fn make,
                                        void *user, rlx_session **out, int64_t *upper,
                                        rlx_error *err);

/* ---- padded runs ---- */

/* The two halves of a padded run. A row is `inner` elements. ARGUMENT: actual above upper or
 * negative, inner 0, or a size that is not rows of that many elements. */
RLX_API rlx_status rlx_pad_rows(const rlx_tensor *from, int64_t inner, int64_t actual,
                                int64_t upper, rlx_tensor *to, rlx_error *err);
RLX_API rlx_status rlx_slice_rows(const rlx_tensor *from, int64_t inner, int64_t actual,
                                  int64_t upper, rlx_tensor *to, rlx_error *err);

typedef struct rlx_padded_run {
    const char *dim; /* its actual size is passed to the run; NULL: the session has only upper */
    int64_t actual, upper;      /* rows */
    const rlx_binding *inputs;  /* of actual rows each, along axis 0 */
    const int64_t *input_inner; /* elements of a row, one per input; never 0 */
    size_t input_count;
    const rlx_binding *others; /* inputs without rows, passed as they are */
    size_t other_count;
    rlx_binding *outputs;        /* room for actual rows */
    const int64_t *output_inner; /* elements of a row; 0: no rows, read as it is */
    size_t output_count;
} rlx_padded_run;
/* Pads each input with zeros to upper rows, runs, and returns the first `actual` rows. */
RLX_API rlx_status rlx_session_run_padded(rlx_session *s, const rlx_padded_run *run,
                                          rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
