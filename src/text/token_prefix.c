/* token_prefix.c: the bytes of all tokens, sorted, and the tree that they make. */
#include "text/token_prefix.h"

#include <string.h>

#include "text/tokenizer.h"

static void add_bytes(void *user, const char *text, size_t len)
{
    text_add(user, (rlx_str){text, len});
}

static bool writes_text(const struct rlx_tokenizer *t, uint32_t id)
{
    switch ((rlx_token_type)t->type[id]) {
    case RLX_TOKEN_CONTROL:
    case RLX_TOKEN_UNKNOWN:
    case RLX_TOKEN_UNUSED: return false;
    default: return !(t->mark[id] & TOK_MARK_ENDS);
    }
}

static rlx_status read_bytes(const struct rlx_tokenizer *t, struct tok_prefixes *p, struct diag *d)
{
    for (uint32_t id = 0; id < t->vocab; id++) {
        p->at[id] = (uint32_t)p->bytes.len;
        if (t->mark[id] & TOK_MARK_ENDS) {
            if (!vec_room(p->mem, &p->ends))
                return diag_no_memory(d, sizeof id);
            p->ends.at[p->ends.len++] = id;
        }
        if (!writes_text(t, id))
            continue;
        rlx_token_stream s = {.begun = true};
        TRY(tok_stream_add(t, &s, (int32_t)id, add_bytes, &p->bytes, d));
        tok_stream_end(&s, add_bytes, &p->bytes); /* what may be the beginning of a character */
        if (p->bytes.len > UINT32_MAX)
            return diag_fail(d, RLX_ERROR_LIMIT, "the tokens have more than 2^32 bytes");
    }
    p->at[t->vocab] = (uint32_t)p->bytes.len;
    return p->bytes.failed ? diag_no_memory(d, p->bytes.len) : RLX_OK;
}

rlx_str tok_bytes(const struct tok_prefixes *p, uint32_t id)
{
    return (rlx_str){p->bytes.at + p->at[id], p->at[id + 1] - p->at[id]};
}

/* Merge sort by bytes, equal ones by id. */
static void sort(const struct tok_prefixes *p, uint32_t *at, uint32_t *room, size_t count)
{
    const size_t half = count / 2;

    if (count < 2)
        return;
    sort(p, at, room, half);
    sort(p, at + half, room, count - half);
    memcpy(room, at, half * sizeof *at);
    for (size_t i = 0, j = half, k = 0; i < half; k++)
        at[k] = j < count && str_cmp(tok_bytes(p, at[j]), tok_bytes(p, room[i])) < 0 ? at[j++]
                                                                                     : room[i++];
}

static size_t common(rlx_str a, rlx_str b)
{
    size_t n = 0;

    while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n])
        n++;
    return n;
}

static void add_nodes(struct tok_prefixes *p, uint32_t id, size_t from, uint32_t *path)
{
    const rlx_str bytes = tok_bytes(p, id);

    for (size_t i = from; i < bytes.len; i++) {
        path[i] = p->nodes;
        p->node[p->nodes++] = (struct tok_prefix){.token = TOK_NO_TOKEN,
                                                  .byte = (unsigned char)bytes.ptr[i],
                                                  .depth = (unsigned)(i + 1) & 0xff};
    }
    p->node[p->nodes - 1].token = id & 0xffffff;
    p->depth = bytes.len > p->depth ? (uint32_t)bytes.len : p->depth;
}

/* The nodes of a path that end here, below depth `to`. */
static void close_nodes(struct tok_prefixes *p, const uint32_t *path, size_t from, size_t to)
{
    while (from > to) {
        from--;
        p->node[path[from]].skip = (p->nodes - path[from]) & 0xffffff;
    }
}

/* order: tokens with bytes, sorted. */
static rlx_status grow(struct tok_prefixes *p, const uint32_t *order, size_t count, struct diag *d)
{
    uint32_t path[TOK_MOST_PREFIX];
    rlx_str last = {NULL, 0};

    for (size_t i = 0; i < count; i++) {
        const rlx_str bytes = tok_bytes(p, order[i]);
        const size_t same = common(last, bytes);
        if (same == bytes.len) { /* and so all of last, as it sorts before */
            if (!vec_room(p->mem, &p->same))
                return diag_no_memory(d, sizeof(struct tok_same));
            p->same.at[p->same.len++] = (struct tok_same){p->node[p->nodes - 1].token, order[i]};
            continue;
        }
        close_nodes(p, path, last.len, same);
        add_nodes(p, order[i], same, path);
        last = bytes;
    }
    close_nodes(p, path, last.len, 0);
    return RLX_OK;
}

static rlx_status grow_sorted(struct tok_prefixes *p, uint32_t *order, uint32_t *room,
                              struct diag *d)
{
    size_t count = 0, nodes = 0;

    for (uint32_t id = 0; id < p->vocab; id++) {
        const size_t len = tok_bytes(p, id).len;
        if (len && len <= TOK_MOST_PREFIX)
            order[count++] = id;
    }
    sort(p, order, room, count);
    for (size_t i = 0; i < count; i++) {
        const rlx_str bytes = tok_bytes(p, order[i]);
        nodes += bytes.len - (i ? common(tok_bytes(p, order[i - 1]), bytes) : 0);
    }
    if (nodes >= TOK_NO_TOKEN)
        return diag_fail(d, RLX_ERROR_LIMIT, "the tokens make a tree of more than 2^24 bytes");
    p->room = (uint32_t)nodes;
    p->node = mem_alloc(p->mem, nodes * sizeof *p->node);
    if (nodes && !p->node)
        return diag_no_memory(d, nodes * sizeof *p->node);
    return grow(p, order, count, d);
}

static rlx_status build(const struct rlx_tokenizer *t, struct tok_prefixes *p, struct diag *d)
{
    const size_t bytes = ((size_t)t->vocab + 1) * sizeof(uint32_t);

    p->vocab = t->vocab;
    text_init(&p->bytes, p->mem);
    text_add(&p->bytes, STR("")); /* so that there is a text, though no token may have any */
    p->at = mem_alloc(p->mem, bytes);
    if (!p->at)
        return diag_no_memory(d, bytes);
    TRY(read_bytes(t, p, d));
    uint32_t *order = mem_alloc(p->mem, bytes), *room = mem_alloc(p->mem, bytes);
    rlx_status s = order && room ? grow_sorted(p, order, room, d) : diag_no_memory(d, bytes);
    mem_free(p->mem, order, bytes);
    mem_free(p->mem, room, bytes);
    return s;
}

rlx_status tok_prefixes(const struct rlx_tokenizer *t, const struct tok_prefixes **out,
                        struct diag *d)
{
    /* A tokenizer does not change, but for this, which whoever is first leaves for the others. */
    struct rlx_tokenizer *own = (struct rlx_tokenizer *)t;
    struct tok_prefixes *there = atomic_load(&own->prefixes), *made;

    *out = there;
    if (there)
        return RLX_OK;
    made = mem_alloc(t->mem, sizeof *made);
    if (!made)
        return diag_no_memory(d, sizeof *made);
    made->mem = t->mem;
    rlx_status s = build(t, made, d);
    if (s == RLX_OK && atomic_compare_exchange_strong(&own->prefixes, &there, made))
        *out = made;
    else {
        tok_prefixes_free(made);
        *out = there;
    }
    return s;
}

void tok_prefixes_free(struct tok_prefixes *p)
{
    if (!p)
        return;
    mem_free(p->mem, p->node, p->room * sizeof *p->node);
    mem_free(p->mem, p->at, ((size_t)p->vocab + 1) * sizeof *p->at);
    vec_free(p->mem, &p->same);
    vec_free(p->mem, &p->ends);
    text_free(&p->bytes);
    mem_free(p->mem, p, sizeof *p);
}
