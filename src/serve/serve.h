/* serve.h: what servers of models need: rlx/serving.h and rlx/cache.h, with arguments checked. */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include "rlx/cache.h"
#include "rlx/serving.h"
#include "session/session.h"

/* pages.c */
rlx_status pages_create(rlx_context *ctx, int64_t page_tokens, int32_t pages, rlx_pages **out,
                        struct diag *d);
void pages_destroy(rlx_pages *p); /* NULL is fine */
rlx_status pages_open(rlx_pages *p, int32_t *out, struct diag *d);
rlx_status pages_resize(rlx_pages *p, int32_t sequence, int64_t tokens, struct diag *d);
void pages_close(rlx_pages *p, int32_t sequence);
const int32_t *pages_table(const rlx_pages *p, int32_t sequence, size_t *count);
int64_t pages_tokens(const rlx_pages *p, int32_t sequence); /* -1: it is not open */
int32_t pages_free(const rlx_pages *p);

/* batch_make.c */
size_t batch_make(const rlx_waiting *waiting, size_t count, const rlx_batch_limits *limits,
                  rlx_batch_entry *out);

/* padded.c */
rlx_status rows_pad(const rlx_tensor *from, int64_t inner, int64_t actual, int64_t upper,
                    rlx_tensor *to, struct diag *d);
rlx_status rows_slice(const rlx_tensor *from, int64_t inner, int64_t actual, int64_t upper,
                      rlx_tensor *to, struct diag *d);
rlx_status run_padded(struct rlx_session *s, const rlx_padded_run *run, struct diag *d);

/* session_cache.c: by key */
rlx_status session_cache_create(rlx_context *ctx, size_t capacity, uint64_t bytes, rlx_cache **out,
                                struct diag *d);
void session_cache_destroy(rlx_cache *c); /* NULL is fine */
size_t session_cache_count(const rlx_cache *c);
rlx_status session_cache_get(rlx_cache *c, uint64_t key, rlx_cache_make_fn make, void *user,
                             rlx_session **out, struct diag *d);
rlx_status session_cache_key(const struct rlx_model *m, const rlx_session_desc *desc, uint64_t *out,
                             struct diag *d);

/* bucket_cache.c: by size */
rlx_status bucket_ladder(int64_t min, int64_t max, rlx_bucket *out, size_t *count, struct diag *d);
rlx_status bucket_cache_create(rlx_context *ctx, const rlx_bucket *list, size_t count,
                               rlx_bucket_cache **out, struct diag *d);
void bucket_cache_destroy(rlx_bucket_cache *c); /* NULL is fine */
rlx_status bucket_cache_get(rlx_bucket_cache *c, int64_t size, rlx_cache_make_fn make, void *user,
                            rlx_session **out, int64_t *upper, struct diag *d);

/* Calls the maker of a session and sees to it that it keeps its word. */
rlx_status session_cache_make(rlx_cache_make_fn make, void *user, uint64_t key, rlx_session **out,
                              struct diag *d);

#endif
