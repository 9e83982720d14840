/* session_cache.c: sessions by key, in a list: there are few of them, each worth far more than a
 * search. */
#include <string.h>

#include "compile/stage_options.h"
#include "ir/fingerprint.h"
#include "serve/serve.h"

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

rlx_status session_cache_create(rlx_context *ctx, size_t capacity, uint64_t bytes, rlx_cache **out,
                                struct diag *d)
{
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

void session_cache_destroy(rlx_cache *c)
{
    if (!c)
        return;
    rlx_context *ctx = c->ctx;
    for (size_t i = 0; i < c->entry.len; i++)
        session_destroy(c->entry.at[i].session);
    vec_free(&ctx->mem, &c->entry);
    mem_free(&ctx->mem, c, sizeof *c);
    context_release(ctx);
}

size_t session_cache_count(const rlx_cache *c)
{
    return c->entry.len;
}

/* What it takes now: a session with symbolic dims grows with its runs. */
static uint64_t bytes_of(rlx_session *s)
{
    rlx_memory_info info = {RLX_SIZED(rlx_memory_info)};
    struct diag quiet;

    diag_init(&quiet, "cache");
    if (s->kind->memory(s, &info, &quiet) != RLX_OK)
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
        session_destroy(c->entry.at[i].session);
        c->entry.at[i] = c->entry.at[--c->entry.len];
    }
}

rlx_status session_cache_make(rlx_cache_make_fn make, void *user, uint64_t key, rlx_session **out,
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

rlx_status session_cache_get(rlx_cache *c, uint64_t key, rlx_cache_make_fn make, void *user,
                             rlx_session **out, struct diag *d)
{
    struct entry *e = NULL;
    rlx_session *s;

    for (size_t i = 0; i < c->entry.len && !e; i++)
        if (c->entry.at[i].key == key)
            e = &c->entry.at[i];
    if (!e) {
        if (!vec_room(&c->ctx->mem, &c->entry))
            return diag_no_memory(d, sizeof *e);
        TRY(session_cache_make(make, user, key, &s, d));
        e = &c->entry.at[c->entry.len++];
        *e = (struct entry){.key = key, .session = s};
    }
    e->last_use = ++c->uses;
    *out = e->session;
    make_room(c);
    return RLX_OK;
}

rlx_status session_cache_key(const struct rlx_model *m, const rlx_session_desc *desc, uint64_t *out,
                             struct diag *d)
{
    static const rlx_session_desc zero = {RLX_SIZED(rlx_session_desc)};
    uint64_t h;

    TRY(ir_fingerprint(m->mod, true, &h, d));
    *out = fingerprint_u64(h, all_options_key(desc ? desc : &zero));
    return RLX_OK;
}
