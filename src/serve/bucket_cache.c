/* bucket_cache.c: sessions by range of sizes: one for each bucket, made when it is first wanted. */
#include <string.h>

#include "serve/serve.h"

struct rlx_bucket_cache {
    rlx_context *ctx;
    rlx_bucket *bucket;
    rlx_session **session; /* NULL: not made yet */
    size_t count;
};

rlx_status bucket_ladder(int64_t min, int64_t max, rlx_bucket *out, size_t *count, struct diag *d)
{
    int64_t high = 1, low = 1;
    size_t n = 0;

    if (min < 1 || max < min)
        return diag_fail(d, RLX_ERROR_ARGUMENT,
                         "a ladder goes from a size of at least 1 up, not from %lld to %lld",
                         (long long)min, (long long)max);
    if (max > INT64_MAX / 2 + 1)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "no power of two in 64 bits reaches %lld",
                         (long long)max);
    while (high < min)
        high *= 2;
    for (;; high *= 2) {
        if (out && n == *count)
            return diag_fail(d, RLX_ERROR_ARGUMENT,
                             "the ladder has more than the %zu steps there "
                             "is room for",
                             n);
        if (out)
            out[n] = (rlx_bucket){low, high};
        n++;
        if (high >= max)
            break;
        low = high + 1;
    }
    *count = n;
    return RLX_OK;
}

static rlx_status check_buckets(const rlx_bucket *list, size_t count, struct diag *d)
{
    if (count == 0)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there are no buckets");
    for (size_t i = 0; i < count; i++) {
        if (list[i].low < 0 || list[i].high < list[i].low)
            return diag_fail(d, RLX_ERROR_ARGUMENT, "bucket %zu, %lld to %lld, holds no size", i,
                             (long long)list[i].low, (long long)list[i].high);
        if (i && list[i].low <= list[i - 1].high)
            return diag_fail(d, RLX_ERROR_ARGUMENT,
                             "bucket %zu begins at %lld, but the one before it ends at %lld", i,
                             (long long)list[i].low, (long long)list[i - 1].high);
    }
    return RLX_OK;
}

rlx_status bucket_cache_create(rlx_context *ctx, const rlx_bucket *list, size_t count,
                               rlx_bucket_cache **out, struct diag *d)
{
    TRY(check_buckets(list, count, d));
    rlx_bucket_cache *c = mem_alloc(&ctx->mem, sizeof *c);
    if (!c)
        return diag_no_memory(d, sizeof *c);
    *c = (rlx_bucket_cache){.ctx = context_retain(ctx), .count = count};
    if (count <= SIZE_MAX / sizeof *c->bucket) {
        c->bucket = mem_alloc(&ctx->mem, count * sizeof *c->bucket);
        c->session = mem_alloc(&ctx->mem, count * sizeof(rlx_session *));
    }
    if (!c->bucket || !c->session) {
        bucket_cache_destroy(c);
        return diag_no_memory(d, sizeof *c);
    }
    memcpy(c->bucket, list, count * sizeof *list);
    *out = c;
    return RLX_OK;
}

void bucket_cache_destroy(rlx_bucket_cache *c)
{
    if (!c)
        return;
    rlx_context *ctx = c->ctx;
    const rlx_allocator *mem = &ctx->mem;
    for (size_t i = 0; c->session && i < c->count; i++)
        session_destroy(c->session[i]);
    mem_free(mem, c->bucket, c->count * sizeof *c->bucket);
    mem_free(mem, c->session, c->count * sizeof(rlx_session *));
    mem_free(mem, c, sizeof *c);
    context_release(ctx);
}

rlx_status bucket_cache_get(rlx_bucket_cache *c, int64_t size, rlx_cache_make_fn make, void *user,
                            rlx_session **out, int64_t *upper, struct diag *d)
{
    for (size_t i = 0; i < c->count; i++) {
        if (size < c->bucket[i].low || size > c->bucket[i].high)
            continue;
        if (!c->session[i])
            TRY(session_cache_make(make, user, (uint64_t)c->bucket[i].high, &c->session[i], d));
        *out = c->session[i];
        if (upper)
            *upper = c->bucket[i].high;
        return RLX_OK;
    }
    *out = NULL;
    return RLX_OK;
}
