/* pages.c: which pages of a key-value cache belong to which sequence. Free pages are a bitmap, so
 * that the lowest is found by looking at words from where the last search ended or a page came
 * free. */
#include <string.h>

#include "serve/serve.h"

struct sequence {
    bool open;
    int64_t tokens;
    VEC(int32_t) page;
};

struct rlx_pages {
    rlx_context *ctx;
    int64_t page_tokens;
    int32_t pages, free;
    uint64_t *taken; /* a bit each */
    int32_t lowest;  /* no page below this is free */
    VEC(struct sequence) sequence;
};

static size_t word_count(int32_t pages)
{
    return ((size_t)pages + 63) / 64;
}

rlx_status pages_create(rlx_context *ctx, int64_t page_tokens, int32_t pages, rlx_pages **out,
                        struct diag *d)
{
    if (page_tokens < 1 || pages < 1)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%d pages of %lld tokens; both are at least 1",
                         (int)pages, (long long)page_tokens);
    rlx_pages *p = mem_alloc(&ctx->mem, sizeof *p);
    if (!p)
        return diag_no_memory(d, sizeof *p);
    *p = (rlx_pages){
        .ctx = context_retain(ctx), .page_tokens = page_tokens, .pages = pages, .free = pages};
    p->taken = mem_alloc(&ctx->mem, word_count(pages) * sizeof *p->taken);
    if (!p->taken) {
        pages_destroy(p);
        return diag_no_memory(d, word_count(pages) * sizeof *p->taken);
    }
    memset(p->taken, 0, word_count(pages) * sizeof *p->taken);
    *out = p;
    return RLX_OK;
}

void pages_destroy(rlx_pages *p)
{
    if (!p)
        return;
    rlx_context *ctx = p->ctx;
    const rlx_allocator *mem = &ctx->mem;
    for (size_t i = 0; i < p->sequence.len; i++)
        vec_free(mem, &p->sequence.at[i].page);
    vec_free(mem, &p->sequence);
    if (p->taken)
        mem_free(mem, p->taken, word_count(p->pages) * sizeof *p->taken);
    mem_free(mem, p, sizeof *p);
    context_release(ctx);
}

/* ---- sequences ---- */

static struct sequence *find(const rlx_pages *p, int32_t sequence)
{
    if (sequence < 0 || (size_t)sequence >= p->sequence.len)
        return NULL;
    return p->sequence.at[sequence].open ? &p->sequence.at[sequence] : NULL;
}

rlx_status pages_open(rlx_pages *p, int32_t *out, struct diag *d)
{
    size_t i = 0;

    while (i < p->sequence.len && p->sequence.at[i].open)
        i++;
    if (i == INT32_MAX)
        return diag_fail(d, RLX_ERROR_LIMIT, "%d sequences are open, the most there can be",
                         INT32_MAX);
    if (i == p->sequence.len) {
        if (!vec_room(&p->ctx->mem, &p->sequence))
            return diag_no_memory(d, sizeof(struct sequence));
        p->sequence.at[p->sequence.len++] = (struct sequence){0};
    }
    p->sequence.at[i].open = true;
    *out = (int32_t)i;
    return RLX_OK;
}

/* ---- taking and giving back ---- */

static int32_t take_lowest(rlx_pages *p)
{
    size_t word = (size_t)p->lowest / 64;

    while (p->taken[word] == UINT64_MAX)
        word++;
    int32_t page = (int32_t)(word * 64) + __builtin_ctzll(~p->taken[word]);
    p->taken[word] |= UINT64_C(1) << (page % 64);
    p->lowest = page + 1;
    p->free--;
    return page;
}

static void give_back(rlx_pages *p, struct sequence *s, size_t keep)
{
    while (s->page.len > keep) {
        int32_t page = s->page.at[--s->page.len];
        p->taken[page / 64] &= ~(UINT64_C(1) << (page % 64));
        p->lowest = page < p->lowest ? page : p->lowest;
        p->free++;
    }
}

rlx_status pages_resize(rlx_pages *p, int32_t sequence, int64_t tokens, struct diag *d)
{
    struct sequence *s = find(p, sequence);

    if (!s)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "sequence %d is not open", (int)sequence);
    if (tokens < 0)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "sequence %d cannot have %lld tokens",
                         (int)sequence, (long long)tokens);
    int64_t want = tokens / p->page_tokens + (tokens % p->page_tokens != 0);
    int64_t more = want - (int64_t)s->page.len;
    if (more > p->free)
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "sequence %d needs %lld more pages for %lld tokens; %d of %d are free",
                         (int)sequence, (long long)more, (long long)tokens, (int)p->free,
                         (int)p->pages);
    size_t had = s->page.len;
    for (int64_t i = 0; i < more; i++) {
        if (!vec_room(&p->ctx->mem, &s->page)) {
            give_back(p, s, had);
            return diag_no_memory(d, sizeof(int32_t));
        }
        s->page.at[s->page.len++] = take_lowest(p);
    }
    give_back(p, s, (size_t)want);
    s->tokens = tokens;
    return RLX_OK;
}

void pages_close(rlx_pages *p, int32_t sequence)
{
    struct sequence *s = find(p, sequence);

    if (!s)
        return;
    give_back(p, s, 0);
    s->open = false;
    s->tokens = 0;
}

/* ---- looking ---- */

const int32_t *pages_table(const rlx_pages *p, int32_t sequence, size_t *count)
{
    const struct sequence *s = find(p, sequence);

    *count = s ? s->page.len : 0;
    return s && s->page.len ? s->page.at : NULL;
}

int64_t pages_tokens(const rlx_pages *p, int32_t sequence)
{
    const struct sequence *s = find(p, sequence);

    return s ? s->tokens : -1;
}

int32_t pages_free(const rlx_pages *p)
{
    return p->free;
}
