/* configs.c: frames and configurations, each once, and how most of them are forgotten. */
#include <string.h>

#include "grammar/machine.h"

void gram_store_init(struct gram_store *s, const rlx_allocator *mem)
{
    *s = (struct gram_store){0};
    map_init(&s->by_frame, mem);
    map_init(&s->by_config, mem);
}

void gram_store_free(struct gram_store *s, const rlx_allocator *mem)
{
    vec_free(mem, &s->frame);
    vec_free(mem, &s->thread);
    vec_free(mem, &s->config);
    vec_free(mem, &s->row);
    map_free(&s->by_frame);
    map_free(&s->by_config);
}

size_t gram_store_bytes(const struct gram_store *s)
{
    enum { SLOT = 32 }; /* of a map, about */

    return s->frame.len * (sizeof *s->frame.at + SLOT) + s->thread.len * sizeof *s->thread.at +
           s->config.len * (sizeof *s->config.at + SLOT) + s->row.len * sizeof *s->row.at;
}

/* ---- frames ------------------------------------------------------------------------------ */

static bool same_frame(const void *owner, uint32_t i, const void *key)
{
    const struct gram_frame *f = &((const struct gram_store *)owner)->frame.at[i], *k = key;

    return f->node == k->node && f->parent == k->parent;
}

rlx_status gram_store_frame(struct gram_store *s, const rlx_allocator *mem, uint32_t node,
                            uint32_t parent, uint32_t *out, struct diag *d)
{
    const struct gram_frame f = {node, parent, s->frame.len ? s->frame.at[parent].depth + 1 : 0};
    const uint64_t hash = hash_mix(node, parent);

    if (map_find(&s->by_frame, hash, same_frame, s, &f, out))
        return RLX_OK;
    if (f.depth > GRAM_MOST_FRAMES)
        return diag_fail(d, RLX_ERROR_LIMIT, "more than %d rules of the grammar are open",
                         GRAM_MOST_FRAMES);
    *out = (uint32_t)s->frame.len;
    if (!vec_room(mem, &s->frame) || !map_add(&s->by_frame, hash, *out))
        return diag_no_memory(d, sizeof f);
    s->frame.at[s->frame.len++] = f;
    return RLX_OK;
}

/* ---- configurations ---------------------------------------------------------------------- */

struct wanted {
    const struct gram_thread *at;
    size_t count;
    bool may_end;
};

static bool same_config(const void *owner, uint32_t i, const void *key)
{
    const struct gram_store *s = owner;
    const struct gram_config *c = &s->config.at[i];
    const struct wanted *w = key;

    return c->count == w->count && c->may_end == w->may_end &&
           (w->count == 0 || memcmp(&s->thread.at[c->first], w->at, w->count * sizeof *w->at) == 0);
}

rlx_status gram_store_config(struct gram_store *s, const rlx_allocator *mem,
                             const struct gram_thread *threads, size_t count, bool may_end,
                             uint32_t *out, struct diag *d)
{
    const struct wanted w = {threads, count, may_end};
    const uint64_t hash = hash_mix(hash_bytes(threads, count * sizeof *threads), may_end);

    if (map_find(&s->by_config, hash, same_config, s, &w, out))
        return RLX_OK;
    *out = (uint32_t)s->config.len;
    if (!vec_room(mem, &s->config) || !vec_room_for(mem, &s->thread, count) ||
        !map_add(&s->by_config, hash, *out))
        return diag_no_memory(d, count * sizeof *threads);
    s->config.at[s->config.len++] = (struct gram_config){.first = s->thread.len,
                                                         .count = (uint32_t)count,
                                                         .row = GRAM_NOTHING,
                                                         .mask = GRAM_NOTHING,
                                                         .may_end = may_end};
    if (count)
        memcpy(&s->thread.at[s->thread.len], threads, count * sizeof *threads);
    s->thread.len += count;
    return RLX_OK;
}

/* ---- forgetting -------------------------------------------------------------------------- */

struct keeping {
    const rlx_allocator *mem;
    const struct gram_store *old;
    struct gram_store fresh;
    uint32_t *frame, *config; /* numbers in fresh, by those in old; GRAM_NOTHING: not kept */
    struct gram_thread *room; /* for the threads of any configuration */
    struct diag *d;
};
enum { WANTED = 0 };

static void want(struct keeping *k, uint32_t config)
{
    const struct gram_config *c = &k->old->config.at[config];

    k->config[config] = WANTED;
    for (uint32_t i = 0; i < c->count; i++)
        k->frame[k->old->thread.at[c->first + i].frame] = WANTED;
}

static void want_all(struct keeping *k, const struct gram_machine *m)
{
    memset(k->frame, 0xff, k->old->frame.len * sizeof *k->frame);
    memset(k->config, 0xff, k->old->config.len * sizeof *k->config);
    want(k, GRAM_DEAD);
    k->frame[GRAM_BOTTOM] = WANTED;
    for (size_t i = 0; i < m->path.len; i++)
        want(k, m->path.at[i]);
    for (const struct rlx_grammar_state *s = m->states; s; s = s->after)
        want(k, s->config);
    for (size_t i = k->old->frame.len; i-- > 1;) /* parents come before */
        if (k->frame[i] != GRAM_NOTHING)
            k->frame[k->old->frame.at[i].parent] = WANTED;
}

/* In the old order, so the dead one and the bottom keep their numbers. */
static rlx_status copy_wanted(struct keeping *k)
{
    const struct gram_store *old = k->old;

    for (size_t i = 0; i < old->frame.len; i++) {
        const struct gram_frame *f = &old->frame.at[i];
        if (k->frame[i] != GRAM_NOTHING)
            TRY(gram_store_frame(&k->fresh, k->mem, f->node, k->frame[f->parent], &k->frame[i],
                                 k->d));
    }
    for (size_t i = 0; i < old->config.len; i++) {
        const struct gram_config *c = &old->config.at[i];
        if (k->config[i] == GRAM_NOTHING)
            continue;
        for (uint32_t j = 0; j < c->count; j++) {
            k->room[j] = old->thread.at[c->first + j];
            k->room[j].frame = k->frame[k->room[j].frame]; /* rising as before */
        }
        TRY(gram_store_config(&k->fresh, k->mem, k->room, c->count, c->may_end, &k->config[i],
                              k->d));
    }
    return RLX_OK;
}

static rlx_status keep(struct keeping *k, struct gram_machine *m)
{
    if (!k->frame || !k->config || !k->room)
        return diag_no_memory(k->d, m->store.frame.len * sizeof *k->frame);
    want_all(k, m);
    TRY(copy_wanted(k));
    if (gram_store_bytes(&k->fresh) > GRAM_MOST_STORE / 2)
        return diag_fail(k->d, RLX_ERROR_LIMIT,
                         "the grammar is too ambiguous: the ways to read what was written take "
                         "%zu bytes",
                         gram_store_bytes(&k->fresh));
    for (size_t i = 0; i < m->path.len; i++)
        m->path.at[i] = k->config[m->path.at[i]];
    for (struct rlx_grammar_state *s = m->states; s; s = s->after)
        s->config = k->config[s->config];
    for (size_t i = 0; i < m->mask.len; i++)
        m->mask.at[i].config = GRAM_NOTHING;
    gram_store_free(&m->store, k->mem);
    m->store = k->fresh;
    return RLX_OK;
}

rlx_status gram_forget(struct gram_machine *m, struct diag *d)
{
    struct arena a;
    uint32_t most = 0;

    if (gram_store_bytes(&m->store) < GRAM_MOST_STORE)
        return RLX_OK;
    for (size_t i = 0; i < m->store.config.len; i++)
        if (m->store.config.at[i].count > most)
            most = m->store.config.at[i].count;
    arena_init(&a, m->mem);
    struct keeping k = {.mem = m->mem,
                        .old = &m->store,
                        .frame = arena_array(&a, uint32_t, m->store.frame.len),
                        .config = arena_array(&a, uint32_t, m->store.config.len),
                        .room = arena_array(&a, struct gram_thread, most),
                        .d = d};
    gram_store_init(&k.fresh, m->mem);
    rlx_status s = keep(&k, m);
    if (s != RLX_OK)
        gram_store_free(&k.fresh, m->mem);
    arena_free(&a);
    return s;
}
