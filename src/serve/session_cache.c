/* session_cache.c: sessions by key, and sessions by range of sizes.
 *
 * A keyed cache is a list: it holds few sessions, each worth far more than a search. */
#include <string.h>

#include "base/desc.h"
#include "compile/stage_options.h"
#include "ir/fingerprint.h"
#include "rlx/cache.h"
#include "session/session.h"

struct entry {
    uint64_t key, last_use;
    rlx_session *session;
};

struct rlx_cache {
    rlx_context *ctx;
    size_t capacity;
    uint64_t bytes; /* 0: any number */
    uint64_t uses;
    VEC(struct entry) entry;
};

/* ---- by key ---- */

static rlx_status create(rlx_context *ctx, size_t capacity, uint64_t bytes, rlx_cache **out,
                         struct diag *d)
{
    if (!ctx || !out)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", ctx ? "out" : "ctx");
    if (capacity == 0)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "capacity is 0; a cache holds at least 1 session");
    rlx_cache *c = mem_alloc(&ctx->mem, sizeof *c);
    if (!c)
        return diag_no_memory(d, sizeof *c);
    c->ctx = context_retain(ctx);
    c->capacity = capacity;
    c->bytes = bytes;
    *out = c;
    return RLX_OK;
}

rlx_status rlx_cache_create(rlx_context *ctx, size_t capacity, uint64_t bytes, rlx_cache **out,
                            rlx_error *err)
{
    struct diag d;

    diag_init(&d, "cache");
    create(ctx, capacity, bytes, out, &d);
    return diag_report(&d, err);
}

void rlx_cache_destroy(rlx_cache *c)
{
    if (!c)
        return;
    rlx_context *ctx = c->ctx;
    for (size_t i = 0; i < c->entry.len; i++)
        rlx_session_destroy(c->entry.at[i].session);
    vec_free(&ctx->mem, &c->entry);
    mem_free(&ctx->mem, c, sizeof *c);
    rlx_context_destroy(ctx);
}

size_t rlx_cache_count(const rlx_cache *c)
{
    return c ? c->entry.len : 0;
}

/* What it takes now: a session with symbolic dims grows with its runs. */
static uint64_t bytes_of(rlx_session *s)
{
    rlx_memory_info info = {RLX_SIZED(rlx_memory_info)};

    if (rlx_session_memory(s, &info, NULL) != RLX_OK)
        return 0;
    return info.activations + info.constants + info.state;
}

static size_t oldest(const rlx_cache *c)
{
    size_t found = 0;

    for (size_t i = 1; i < c->entry.len; i++)
        if (c->entry.at[i].last_use < c->entry.at[found].last_use)
            found = i;
    return found;
}

/* Down to capacity and bytes; the one used last is never the oldest of two. */
static void make_room(rlx_cache *c)
{
    uint64_t total = 0;

    for (size_t i = 0; i < c->entry.len; i++)
        total += bytes_of(c->entry.at[i].session);
    while (c->entry.len > 1 && (c->entry.len > c->capacity || (c->bytes && total > c->bytes))) {
        size_t i = oldest(c);
        total -= bytes_of(c->entry.at[i].session);
        rlx_session_destroy(c->entry.at[i].session);
        c->entry.at[i] = c->entry.at[--c->entry.len];
    }
}

/* Calls the maker and takes care that it keeps its word. */
static rlx_status call_maker(rlx_cache_make_fn make, void *user, uint64_t key, rlx_session **out,
                             struct diag *d)
{
    rlx_error err = {0};
    rlx_session *s = NULL;
    rlx_status status = make(user, key, &s, &err);

    if (status != RLX_OK) {
        if (err.status == RLX_OK)
            return diag_fail(d, status, "the session for key %llu was not made: %s",
                             (unsigned long long)key, rlx_status_text(status));
        d->first = err;
        d->count = 1;
        return status;
    }
    if (!s)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "make succeeded, but gave no session for key %llu",
                         (unsigned long long)key);
    *out = s;
    return RLX_OK;
}

static rlx_status get(rlx_cache *c, uint64_t key, rlx_cache_make_fn make, void *user,
                      rlx_session **out, struct diag *d)
{
    struct entry *e = NULL;
    rlx_session *s;

    if (!c || !make || !out)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", !c ? "c" : !make ? "make" : "out");
    for (size_t i = 0; i < c->entry.len && !e; i++)
        if (c->entry.at[i].key == key)
            e = &c->entry.at[i];
    if (!e) {
        if (!vec_room(&c->ctx->mem, &c->entry))
            return diag_no_memory(d, sizeof *e);
        TRY(call_maker(make, user, key, &s, d));
        e = &c->entry.at[c->entry.len++];
        *e = (struct entry){.key = key, .session = s};
    }
    e->last_use = ++c->uses;
    *out = e->session;
    make_room(c);
    return RLX_OK;
}

rlx_status rlx_cache_get(rlx_cache *c, uint64_t key, rlx_cache_make_fn make, void *user,
                         rlx_session **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "cache");
    get(c, key, make, user, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_model_key(const rlx_model *m, const rlx_session_desc *desc, uint64_t *out,
                         rlx_error *err)
{
    rlx_session_desc own = {RLX_SIZED(rlx_session_desc)};
    struct diag d;
    uint64_t h;

    diag_init(&d, "cache");
    if (!m || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "out" : "m");
    else if (DESC_READ(rlx_session_desc, &own, desc, &d) == RLX_OK &&
             ir_fingerprint(m->mod, true, &h, &d) == RLX_OK)
        *out = fingerprint_u64(h, all_options_key(&own));
    return diag_report(&d, err);
}

/* ---- by size ---- */

static rlx_status ladder(int64_t min, int64_t max, rlx_bucket *out, size_t *count, struct diag *d)
{
    int64_t high = 1, low = 1;
    size_t n = 0;

    if (!count)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "count is NULL");
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

rlx_status rlx_bucket_ladder(int64_t min, int64_t max, rlx_bucket *out, size_t *count,
                             rlx_error *err)
{
    struct diag d;

    diag_init(&d, "cache");
    ladder(min, max, out, count, &d);
    return diag_report(&d, err);
}

struct rlx_bucket_cache {
    rlx_context *ctx;
    rlx_bucket *bucket;
    rlx_session **session; /* NULL: not made yet */
    size_t count;
};

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

static rlx_status create_buckets(rlx_context *ctx, const rlx_bucket *list, size_t count,
                                 rlx_bucket_cache **out, struct diag *d)
{
    if (!ctx || !out || (!list && count))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !out ? "out" : "list");
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
        rlx_bucket_cache_destroy(c);
        return diag_no_memory(d, sizeof *c);
    }
    memcpy(c->bucket, list, count * sizeof *list);
    *out = c;
    return RLX_OK;
}

rlx_status rlx_bucket_cache_create(rlx_context *ctx, const rlx_bucket *list, size_t count,
                                   rlx_bucket_cache **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "cache");
    create_buckets(ctx, list, count, out, &d);
    return diag_report(&d, err);
}

void rlx_bucket_cache_destroy(rlx_bucket_cache *c)
{
    if (!c)
        return;
    rlx_context *ctx = c->ctx;
    const rlx_allocator *mem = &ctx->mem;
    for (size_t i = 0; c->session && i < c->count; i++)
        rlx_session_destroy(c->session[i]);
    mem_free(mem, c->bucket, c->count * sizeof *c->bucket);
    mem_free(mem, c->session, c->count * sizeof(rlx_session *));
    mem_free(mem, c, sizeof *c);
    rlx_context_destroy(ctx);
}

static rlx_status get_bucket(rlx_bucket_cache *c, int64_t size, rlx_cache_make_fn make, void *user,
                             rlx_session **out, int64_t *upper, struct diag *d)
{
    if (!c || !make || !out)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", !c ? "c" : !make ? "make" : "out");
    for (size_t i = 0; i < c->count; i++) {
        if (size < c->bucket[i].low || size > c->bucket[i].high)
            continue;
        if (!c->session[i])
            TRY(call_maker(make, user, (uint64_t)c->bucket[i].high, &c->session[i], d));
        *out = c->session[i];
        if (upper)
            *upper = c->bucket[i].high;
        return RLX_OK;
    }
    *out = NULL;
    return RLX_OK;
}

rlx_status rlx_bucket_cache_get(rlx_bucket_cache *c, int64_t size, rlx_cache_make_fn make,
                                void *user, rlx_session **out, int64_t *upper, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "cache");
    get_bucket(c, size, make, user, out, upper, &d);
    return diag_report(&d, err);
}
