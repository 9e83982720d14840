/* train_places.c: counts pairs of neighbours, and joins one where it stands: what is touched are
 * the places of that pair and those beside them, however long the text.
 *
 *     prev -> a -> b -> next       (prev, a), (a, b) and (b, next) lose this place,
 *     prev -> ab -> next           (prev, ab) and (ab, next) gain it
 *
 * Places are never taken out of a pair's list: one whose symbols have changed is passed over. A
 * symbol at a place only ever grows, so a pair that has left a place does not come back. */
#include "text/train_places.h"

#include <string.h>

#define NONE UINT32_MAX

struct place_symbol {
    uint32_t symbol, word;
    uint32_t prev, next; /* NONE: the end of the word */
    bool gone;           /* joined with the one before */
};

struct place_pair {
    uint32_t left, right;
    uint64_t count;
    VEC(uint32_t) at;
    bool touched;
};

struct place_rank {
    uint64_t count;
    uint32_t left, right, pair;
};

void places_init(struct places *p, const rlx_allocator *mem)
{
    *p = (struct places){.mem = mem};
    map_init(&p->by_symbols, mem);
}

void places_free(struct places *p)
{
    for (size_t i = 0; i < p->pair.len; i++)
        vec_free(p->mem, &p->pair.at[i].at);
    vec_free(p->mem, &p->pair);
    vec_free(p->mem, &p->symbol);
    vec_free(p->mem, &p->count);
    vec_free(p->mem, &p->heap);
    vec_free(p->mem, &p->touched);
    map_free(&p->by_symbols);
}

rlx_status places_add_word(struct places *p, rlx_str word, uint64_t count, struct diag *d)
{
    if (p->symbol.len + word.len >= NONE || p->count.len >= NONE)
        return diag_fail(d, RLX_ERROR_LIMIT, "the text has more than 4 GB of different words");
    if (!vec_room_for(p->mem, &p->symbol, word.len) || !vec_room(p->mem, &p->count))
        return diag_no_memory(d, word.len * sizeof *p->symbol.at);
    for (size_t i = 0; i < word.len; i++) {
        uint32_t at = (uint32_t)p->symbol.len++;
        p->symbol.at[at] = (struct place_symbol){.symbol = (unsigned char)word.ptr[i],
                                                 .word = (uint32_t)p->count.len,
                                                 .prev = i ? at - 1 : NONE,
                                                 .next = i + 1 < word.len ? at + 1 : NONE};
    }
    p->count.at[p->count.len++] = count;
    return RLX_OK;
}

/* ---- pairs ------------------------------------------------------------------------------- */

static bool same_pair(const void *owner, uint32_t i, const void *key)
{
    const struct place_pair *pair = &((const struct places *)owner)->pair.at[i];
    const uint32_t *symbols = key;

    return pair->left == symbols[0] && pair->right == symbols[1];
}

/* The pair at a place and the next; NONE: it was never there. */
static uint32_t find_pair(const struct places *p, uint32_t left, uint32_t right)
{
    const uint32_t symbols[] = {left, right};
    uint32_t i;

    return map_find(&p->by_symbols, hash_mix(left, right), same_pair, p, symbols, &i) ? i : NONE;
}

static rlx_status add_place(struct places *p, uint32_t at, struct diag *d)
{
    const struct place_symbol *s = &p->symbol.at[at];
    uint32_t left = s->symbol, right = p->symbol.at[s->next].symbol;
    uint32_t i = find_pair(p, left, right);

    if (i == NONE) {
        i = (uint32_t)p->pair.len;
        if (!vec_room(p->mem, &p->pair) || !map_add(&p->by_symbols, hash_mix(left, right), i))
            return diag_no_memory(d, sizeof *p->pair.at);
        p->pair.at[p->pair.len++] = (struct place_pair){.left = left, .right = right};
    }
    struct place_pair *pair = &p->pair.at[i];
    if (!vec_room(p->mem, &pair->at))
        return diag_no_memory(d, sizeof at);
    pair->at.at[pair->at.len++] = at;
    pair->count += p->count.at[s->word];
    if (pair->touched)
        return RLX_OK;
    if (!vec_room(p->mem, &p->touched))
        return diag_no_memory(d, sizeof i);
    p->touched.at[p->touched.len++] = i;
    pair->touched = true;
    return RLX_OK;
}

static void lose_place(struct places *p, uint32_t at)
{
    const struct place_symbol *s = &p->symbol.at[at];
    uint32_t i = find_pair(p, s->symbol, p->symbol.at[s->next].symbol);

    p->pair.at[i].count -= p->count.at[s->word];
}

/* ---- the heap ---------------------------------------------------------------------------- */

static bool before(const struct place_rank *a, const struct place_rank *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    return a->left != b->left ? a->left < b->left : a->right < b->right;
}

/* There is room. */
static void push(struct places *p, uint32_t i)
{
    const struct place_pair *pair = &p->pair.at[i];
    const struct place_rank r = {pair->count, pair->left, pair->right, i};
    size_t at = p->heap.len++;

    for (; at && before(&r, &p->heap.at[(at - 1) / 2]); at = (at - 1) / 2)
        p->heap.at[at] = p->heap.at[(at - 1) / 2];
    p->heap.at[at] = r;
}

static struct place_rank pop(struct places *p)
{
    struct place_rank *h = p->heap.at, top = h[0], last = h[--p->heap.len];
    size_t at = 0, child;

    for (; (child = 2 * at + 1) < p->heap.len; at = child) {
        if (child + 1 < p->heap.len && before(&h[child + 1], &h[child]))
            child++;
        if (!before(&h[child], &last))
            break;
        h[at] = h[child];
    }
    h[at] = last;
    return top;
}

static rlx_status push_touched(struct places *p, struct diag *d)
{
    if (!vec_room_for(p->mem, &p->heap, p->touched.len))
        return diag_no_memory(d, p->touched.len * sizeof *p->heap.at);
    for (size_t i = 0; i < p->touched.len; i++) {
        push(p, p->touched.at[i]);
        p->pair.at[p->touched.at[i]].touched = false;
    }
    p->touched.len = 0;
    return RLX_OK;
}

rlx_status places_begin(struct places *p, struct diag *d)
{
    for (size_t i = 0; i < p->symbol.len; i++)
        if (p->symbol.at[i].next != NONE)
            TRY(add_place(p, (uint32_t)i, d));
    return push_touched(p, d);
}

bool places_best(struct places *p, uint64_t least, uint32_t *left, uint32_t *right)
{
    while (p->heap.len) {
        struct place_rank r = pop(p);
        uint64_t count = p->pair.at[r.pair].count;
        if (count == r.count && count >= least) {
            *left = r.left;
            *right = r.right;
            p->best = r.pair;
            return true;
        }
        if (count < r.count && count >= least)
            push(p, r.pair); /* a place was freed by the pop */
    }
    return false;
}

/* ---- merging ----------------------------------------------------------------------------- */

static rlx_status join(struct places *p, uint32_t at, uint32_t symbol, struct diag *d)
{
    struct place_symbol *s = &p->symbol.at[at], *gone = &p->symbol.at[s->next];

    if (s->prev != NONE)
        lose_place(p, s->prev);
    lose_place(p, at);
    if (gone->next != NONE)
        lose_place(p, s->next);
    s->symbol = symbol;
    s->next = gone->next;
    gone->gone = true;
    if (s->next != NONE)
        p->symbol.at[s->next].prev = at;
    if (s->prev != NONE)
        TRY(add_place(p, s->prev, d));
    return s->next == NONE ? RLX_OK : add_place(p, at, d);
}

/* Places are joined from left to right. They come in that order, unless two merges made the same
 * symbol. */
static void sort_places(uint32_t *at, size_t count)
{
    bool sorted = true;

    for (size_t i = 1; i < count && sorted; i++)
        sorted = at[i - 1] <= at[i];
    if (sorted)
        return;
    for (size_t gap = count / 2; gap; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (size_t i = gap; i < count; i++) {
            uint32_t v = at[i];
            size_t k = i;
            for (; k >= gap && at[k - gap] > v; k -= gap)
                at[k] = at[k - gap];
            at[k] = v;
        }
}

rlx_status places_merge(struct places *p, uint32_t symbol, struct diag *d)
{
    struct place_pair pair = p->pair.at[p->best]; /* its list is nobody else's from here on */
    rlx_status s = RLX_OK;

    p->pair.at[p->best].at.at = NULL;
    p->pair.at[p->best].at.len = p->pair.at[p->best].at.cap = 0;
    sort_places(pair.at.at, pair.at.len);
    for (size_t i = 0; i < pair.at.len && s == RLX_OK; i++) {
        const struct place_symbol *at = &p->symbol.at[pair.at.at[i]];
        if (!at->gone && at->symbol == pair.left && at->next != NONE &&
            p->symbol.at[at->next].symbol == pair.right)
            s = join(p, pair.at.at[i], symbol, d);
    }
    vec_free(p->mem, &pair.at);
    return s == RLX_OK ? push_touched(p, d) : s;
}
