/* trie.c: texts found by how they begin. */
#include "text/trie.h"

#include <string.h>

/* Merge sort: qsort has no context, and is slow for chosen inputs in some libraries. */
static void sort(const rlx_str *text, uint32_t *at, uint32_t *room, size_t count)
{
    size_t half = count / 2;

    if (count < 2)
        return;
    sort(text, at, room, half);
    sort(text, at + half, room, count - half);
    memcpy(room, at, half * sizeof *at);
    for (size_t i = 0, j = half, k = 0; i < half; k++)
        at[k] = j < count && str_cmp(text[at[j]], text[room[i]]) < 0 ? at[j++] : room[i++];
}

rlx_status trie_build(struct trie *t, const rlx_str *text, const uint32_t *number, size_t count,
                      const rlx_allocator *mem, struct diag *d)
{
    *t = (struct trie){.mem = mem, .text = text};
    if (count == 0)
        return RLX_OK;
    uint32_t *room = mem_alloc(mem, count * sizeof *room);
    t->order = mem_alloc(mem, count * sizeof *t->order);
    t->count = count;
    if (!room || !t->order) {
        mem_free(mem, room, count * sizeof *room);
        trie_free(t);
        return diag_no_memory(d, count * sizeof *t->order);
    }
    memcpy(t->order, number, count * sizeof *number);
    sort(text, t->order, room, count);
    mem_free(mem, room, count * sizeof *room);
    uint32_t at = 0;
    while (at < count && text[t->order[at]].len == 0)
        at++;
    for (uint32_t b = 0; b < 256; b++) {
        t->first[b] = at;
        while (at < count && (unsigned char)text[t->order[at]].ptr[0] == b)
            at++;
    }
    t->first[256] = at;
    return RLX_OK;
}

void trie_free(struct trie *t)
{
    mem_free(t->mem, t->order, t->count * sizeof *t->order);
    *t = (struct trie){0};
}

struct trie_walk trie_begin(const struct trie *t, rlx_str s)
{
    struct trie_walk w = {.trie = t, .s = s};

    if (s.len && t->count) {
        w.lo = t->first[(unsigned char)s.ptr[0]];
        w.hi = t->first[(unsigned char)s.ptr[0] + 1];
    }
    return w;
}

/* The first in [lo, hi) whose byte at depth is at least b. All are longer than depth. */
static uint32_t lower(const struct trie *t, uint32_t lo, uint32_t hi, size_t depth, unsigned b)
{
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if ((unsigned char)t->text[t->order[mid]].ptr[depth] < b)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool trie_next(struct trie_walk *w, uint32_t *number)
{
    const struct trie *t = w->trie;

    while (w->lo < w->hi && w->depth < w->s.len) {
        unsigned b = (unsigned char)w->s.ptr[w->depth];
        if (w->depth) {
            w->lo = lower(t, w->lo, w->hi, w->depth, b);
            w->hi = lower(t, w->lo, w->hi, w->depth, b + 1);
        }
        w->depth++;
        if (w->lo < w->hi && t->text[t->order[w->lo]].len == w->depth) {
            *number = t->order[w->lo];
            /* The others are longer; equal ones are passed over. */
            while (w->lo < w->hi && t->text[t->order[w->lo]].len == w->depth)
                w->lo++;
            return true;
        }
    }
    return false;
}
