/* api_serving.c: rlx/serving.h and rlx/cache.h: pages, batches, padded runs, caches of sessions. */
#include "base/desc.h"
#include "compile/stage_options.h"
#include "serve/serve.h"

/* ---- pages of a key-value cache ---- */

rlx_status rlx_pages_create(rlx_context *ctx, int64_t page_tokens, int32_t pages, rlx_pages **out,
                            rlx_error *err)
{
    struct diag d;

    diag_init(&d, "pages");
    if (!ctx || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", ctx ? "out" : "ctx");
    else
        pages_create(ctx, page_tokens, pages, out, &d);
    return diag_report(&d, err);
}

void rlx_pages_destroy(rlx_pages *p)
{
    pages_destroy(p);
}

rlx_status rlx_pages_open(rlx_pages *p, int32_t *sequence, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "pages");
    if (!p || !sequence)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", p ? "sequence" : "pages");
    else
        pages_open(p, sequence, &d);
    return diag_report(&d, err);
}

rlx_status rlx_pages_resize(rlx_pages *p, int32_t sequence, int64_t tokens, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "pages");
    if (!p)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "pages is NULL");
    else
        pages_resize(p, sequence, tokens, &d);
    return diag_report(&d, err);
}

void rlx_pages_close(rlx_pages *p, int32_t sequence)
{
    if (p)
        pages_close(p, sequence);
}

const int32_t *rlx_pages_table(const rlx_pages *p, int32_t sequence, size_t *count)
{
    size_t none = 0;
    const int32_t *table = p ? pages_table(p, sequence, &none) : NULL;

    if (count)
        *count = none;
    return table;
}

int64_t rlx_pages_tokens(const rlx_pages *p, int32_t sequence)
{
    return p ? pages_tokens(p, sequence) : -1;
}

int32_t rlx_pages_free(const rlx_pages *p)
{
    return p ? pages_free(p) : 0;
}

/* ---- batches ---- */

size_t rlx_batch_make(const rlx_waiting *waiting, size_t count, const rlx_batch_limits *limits,
                      rlx_batch_entry *out)
{
    return waiting && out ? batch_make(waiting, count, limits, out) : 0;
}

/* ---- padded runs ---- */

rlx_status rlx_pad_rows(const rlx_tensor *from, int64_t inner, int64_t actual, int64_t upper,
                        rlx_tensor *to, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "pad");
    if (!from || !to)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", from ? "to" : "from");
    else
        rows_pad(from, inner, actual, upper, to, &d);
    return diag_report(&d, err);
}

rlx_status rlx_slice_rows(const rlx_tensor *from, int64_t inner, int64_t actual, int64_t upper,
                          rlx_tensor *to, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "slice");
    if (!from || !to)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", from ? "to" : "from");
    else
        rows_slice(from, inner, actual, upper, to, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_run_padded(rlx_session *s, const rlx_padded_run *run, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "run");
    if (!s || !run)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "run" : "s");
    else
        run_padded(s, run, &d);
    return diag_report(&d, err);
}

/* ---- sessions by key and by size ---- */

rlx_status rlx_cache_create(rlx_context *ctx, size_t capacity, uint64_t bytes, rlx_cache **out,
                            rlx_error *err)
{
    struct diag d;

    diag_init(&d, "cache");
    if (!ctx || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", ctx ? "out" : "ctx");
    else
        session_cache_create(ctx, capacity, bytes, out, &d);
    return diag_report(&d, err);
}

void rlx_cache_destroy(rlx_cache *c)
{
    session_cache_destroy(c);
}

size_t rlx_cache_count(const rlx_cache *c)
{
    return c ? session_cache_count(c) : 0;
}

rlx_status rlx_cache_get(rlx_cache *c, uint64_t key, rlx_cache_make_fn make, void *user,
                         rlx_session **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "cache");
    if (!c || !make || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !c ? "c" : !make ? "make" : "out");
    else
        session_cache_get(c, key, make, user, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_model_key(const rlx_model *m, const rlx_session_desc *desc, uint64_t *out,
                         rlx_error *err)
{
    struct session_descs own;
    struct diag d;

    diag_init(&d, "cache");
    if (!m || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "out" : "m");
    else if (session_descs_read(desc, &own, &d) == RLX_OK)
        session_cache_key(m, &own.user, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_bucket_ladder(int64_t min, int64_t max, rlx_bucket *out, size_t *count,
                             rlx_error *err)
{
    struct diag d;

    diag_init(&d, "cache");
    if (!count)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "count is NULL");
    else
        bucket_ladder(min, max, out, count, &d);
    return diag_report(&d, err);
}

rlx_status rlx_bucket_cache_create(rlx_context *ctx, const rlx_bucket *list, size_t count,
                                   rlx_bucket_cache **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "cache");
    if (!ctx || !out || (!list && count))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !out ? "out" : "list");
    else
        bucket_cache_create(ctx, list, count, out, &d);
    return diag_report(&d, err);
}

void rlx_bucket_cache_destroy(rlx_bucket_cache *c)
{
    bucket_cache_destroy(c);
}

rlx_status rlx_bucket_cache_get(rlx_bucket_cache *c, int64_t size, rlx_cache_make_fn make,
                                void *user, rlx_session **out, int64_t *upper, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "cache");
    if (!c || !make || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !c ? "c" : !make ? "make" : "out");
    else
        bucket_cache_get(c, size, make, user, out, upper, &d);
    return diag_report(&d, err);
}
