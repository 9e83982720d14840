/* sections.c: the shape of the search: boxes in order, and the sections they live through.
 *
 * Of all positions only those matter at which nobody can be added: a birth that some death follows
 * before the next birth. Whoever is alive at another position is also alive at one of these.
 *
 *     a ##############
 *     b   ######                   births at 0 2 5 9; deaths at 7 9 13 13
 *     c      #####                 sections: 5 (a b c) and 9 (a c d)
 *     d          #####
 */
#include <stdlib.h>
#include <string.h>

#include "plan/tree.h"

static int by_value(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The positions of the sections, ascending. */
static rlx_status find_sections(const struct plan_item *box, uint32_t count, struct arena *arena,
                                int32_t **out, uint32_t *out_count, struct diag *d)
{
    int32_t *birth = arena_array(arena, int32_t, count);
    int32_t *death = arena_array(arena, int32_t, count);
    uint32_t found = 0, i, j = 0;

    if (!birth || !death)
        return diag_no_memory(d, count * sizeof *birth);
    for (i = 0; i < count; i++) {
        birth[i] = box[i].birth;
        death[i] = box[i].death;
    }
    qsort(birth, count, sizeof *birth, by_value);
    qsort(death, count, sizeof *death, by_value);
    for (i = 0; i < count; i++) {
        if (i + 1 < count && birth[i + 1] == birth[i])
            continue;
        bool ends = false;
        while (j < count && (i + 1 == count || death[j] < birth[i + 1])) {
            j++;
            ends = true;
        }
        if (ends)
            birth[found++] = birth[i]; /* found <= i */
    }
    *out = birth;
    *out_count = found;
    return RLX_OK;
}

/* How many of the ascending values are below x. */
static uint32_t count_below(const int32_t *value, uint32_t count, int64_t x)
{
    uint32_t lo = 0, hi = count;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (value[mid] < x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct entry {
    uint64_t size;
    uint32_t lo, hi, id;
};

static int by_section(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->lo != y->lo)
        return x->lo < y->lo ? -1 : 1;
    if (x->hi != y->hi)
        return x->hi > y->hi ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static rlx_status make_entries(const struct plan_item *box, uint32_t count, struct arena *arena,
                               struct entry **out, uint32_t *sections, struct diag *d)
{
    int32_t *at = NULL;
    TRY(find_sections(box, count, arena, &at, sections, d));
    struct entry *e = arena_array(arena, struct entry, count);
    if (!e)
        return diag_no_memory(d, count * sizeof *e);
    for (uint32_t i = 0; i < count; i++) {
        e[i].size = box[i].size;
        e[i].lo = count_below(at, *sections, box[i].birth);
        e[i].hi = count_below(at, *sections, (int64_t)box[i].death + 1) - 1;
        e[i].id = i;
    }
    *out = e;
    return RLX_OK;
}

rlx_status tree_weigh(const struct plan_item *box, uint32_t count, struct arena *arena,
                      uint64_t *members, struct diag *d)
{
    struct entry *e;
    uint32_t sections;
    TRY(make_entries(box, count, arena, &e, &sections, d));
    *members = 0;
    for (uint32_t i = 0; i < count; i++)
        *members += e[i].hi - e[i].lo + 1;
    return RLX_OK;
}

static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void take_entries(struct tree *t, const struct entry *e)
{
    for (uint32_t b = 0; b < t->count; b++) {
        t->id[b] = e[b].id;
        t->lo[b] = e[b].lo;
        t->hi[b] = e[b].hi;
        t->size[b] = e[b].size;
        t->rank[b] = b;
        bool same =
            b && e[b].lo == e[b - 1].lo && e[b].hi == e[b - 1].hi && e[b].size == e[b - 1].size;
        t->twin[b] = same ? t->twin[b - 1] : b;
        t->code[b] = scramble((t->twin[b] + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
    }
}

/* Members of section s: member[member_at[s] .. member_at[s+1]). */
static rlx_status fill_sections(struct tree *t, struct arena *arena, struct diag *d)
{
    size_t total = 0;
    for (uint32_t b = 0; b < t->count; b++) {
        total += t->hi[b] - t->lo[b] + 1;
        for (uint32_t s = t->lo[b]; s <= t->hi[b]; s++) {
            t->member_at[s + 1]++;
            t->load[s] += t->size[b];
        }
    }
    t->member = arena_array(arena, uint32_t, total);
    uint32_t *filled = arena_array(arena, uint32_t, t->sections);
    if (!t->member || !filled)
        return diag_no_memory(d, total * sizeof *t->member);
    for (uint32_t s = 0; s < t->sections; s++)
        t->member_at[s + 1] += t->member_at[s];
    for (uint32_t b = 0; b < t->count; b++)
        for (uint32_t s = t->lo[b]; s <= t->hi[b]; s++)
            t->member[t->member_at[s] + filled[s]++] = b;
    return RLX_OK;
}

rlx_status tree_init(struct tree *t, const struct plan_item *box, uint32_t count,
                     struct arena *arena, struct diag *d)
{
    struct entry *e;

    memset(t, 0, sizeof *t);
    t->mem = arena->mem;
    t->count = count;
    TRY(make_entries(box, count, arena, &e, &t->sections, d));
    qsort(e, count, sizeof *e, by_section);

    t->id = arena_array(arena, uint32_t, count);
    t->lo = arena_array(arena, uint32_t, count);
    t->hi = arena_array(arena, uint32_t, count);
    t->size = arena_array(arena, uint64_t, count);
    t->code = arena_array(arena, uint64_t, count);
    t->twin = arena_array(arena, uint32_t, count);
    t->rank = arena_array(arena, uint32_t, count);
    t->floor = arena_array(arena, uint64_t, count);
    t->state = arena_array(arena, uint8_t, count);
    t->stamp = arena_array(arena, uint32_t, count);
    t->low = arena_array(arena, uint64_t, count);
    t->cause = arena_array(arena, uint32_t, count);
    t->refusal = arena_array(arena, uint32_t, count);
    t->pending = arena_array(arena, uint32_t, count);
    t->seen = arena_array(arena, uint32_t, count);
    t->words = ((size_t)count + 63) / 64;
    t->why = arena_array(arena, uint64_t, t->words);
    t->member_at = arena_array(arena, size_t, (size_t)t->sections + 1);
    t->load = arena_array(arena, uint64_t, t->sections);
    t->overfull = arena_array(arena, uint32_t, t->sections);
    t->frame = arena_array(arena, struct tree_frame, (size_t)count + 1);
    t->part = arena_array(arena, struct tree_part, 2 * (size_t)count + 2);
    t->failed = arena_array(arena, uint64_t, TREE_FAILED_SLOTS);
    if (!t->id || !t->lo || !t->hi || !t->size || !t->code || !t->twin || !t->rank || !t->floor ||
        !t->state || !t->stamp || !t->low || !t->cause || !t->refusal || !t->pending || !t->seen ||
        !t->why || !t->member_at || !t->load || !t->overfull || !t->frame || !t->part || !t->failed)
        return diag_no_memory(d, count * sizeof *t->frame);
    take_entries(t, e);
    return fill_sections(t, arena, d);
}

void tree_free(struct tree *t)
{
    vec_free(t->mem, &t->trail);
    vec_free(t->mem, &t->refusals);
}
