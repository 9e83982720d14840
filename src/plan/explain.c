/* explain.c: on which placements does a failure depend?
 *
 * A floor is the top of its cause, whose own floor is the top of another, and so on down: a chain
 * of placed boxes. A box that waits was raised above its cause by its refusal, which had reasons
 * of its own, and by the floors of all the boxes it might come to rest on. */
#include <string.h>

#include "plan/tree.h"

static void begin(struct tree *t)
{
    memset(t->why, 0, t->words * sizeof *t->why);
    if (++t->seen_now == 0) {
        memset(t->seen, 0, t->count * sizeof *t->seen);
        t->seen_now = 1;
    }
}

/* Sets hold whole chains: if a box is in, so is everything below it. */
static void add_chain(struct tree *t, uint32_t b)
{
    for (b = t->cause[b]; b != TREE_NO_BOX && !why_has(t, b); b = t->cause[b])
        t->why[b / 64] |= UINT64_C(1) << (b % 64);
}

static void add_floor(struct tree *t, const struct tree_part *p, uint32_t b)
{
    uint32_t n = 0;

    if (t->seen[b] == t->seen_now)
        return;
    t->seen[b] = t->seen_now;
    t->pending[n++] = b;
    while (n > 0) {
        b = t->pending[--n];
        add_chain(t, b);
        if (t->state[b] != BOX_WAITS)
            continue;
        const uint64_t *reason = t->refusals.at + t->refusal[b] * t->words;
        for (size_t i = 0; i < t->words; i++)
            t->why[i] |= reason[i];
        uint32_t k;
        for (k = p->first; k < p->end && t->lo[k] <= t->hi[b]; k++) {
            if (t->hi[k] < t->lo[b] || (t->state[k] & BOX_PLACED) || t->seen[k] == t->seen_now)
                continue;
            t->seen[k] = t->seen_now;
            t->pending[n++] = k;
        }
        t->effort += k - p->first;
    }
}

/* The members are sorted by floor. Those from the last gap on fill it beyond the cap. */
void why_section(struct tree *t, const struct tree_part *p, uint32_t s)
{
    const uint32_t *m = t->member + t->member_at[s];
    size_t n = t->member_at[s + 1] - t->member_at[s], from = 0;
    uint64_t top = 0;

    for (size_t i = 0; i < n; i++) {
        if (t->state[m[i]] & BOX_PLACED)
            continue;
        if (t->floor[m[i]] > top) {
            top = t->floor[m[i]];
            from = i;
        }
        top += t->size[m[i]];
    }
    begin(t);
    for (size_t i = from; i < n; i++)
        if (!(t->state[m[i]] & BOX_PLACED))
            add_floor(t, p, m[i]);
}

void why_waiting(struct tree *t, const struct tree_part *p, uint32_t b)
{
    begin(t);
    add_floor(t, p, b);
}

void why_part(struct tree *t, const struct tree_part *p)
{
    begin(t);
    for (uint32_t b = p->first; b < p->end; b++)
        if (!(t->state[b] & BOX_PLACED))
            add_floor(t, p, b);
}

void why_all(struct tree *t)
{
    memset(t->why, 0xff, t->words * sizeof *t->why);
}
