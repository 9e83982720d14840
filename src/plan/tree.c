/* tree.c: walk over the stackings of boxes, depth first.
 *
 * Every unplaced box has a floor: the highest top among the placed boxes it shares a section with.
 * Take the box with the lowest floor; nothing else can end up below it. Either it lies there
 * (place), or it rests on a box that is yet to be placed (refuse: it waits, and its floor rises to
 * the lowest top a neighbour could have). Between them the two meet every stacking once.
 *
 * Five things keep the walk short:
 *  - In each section the unplaced boxes, stacked from their floors in order of floor, must end
 *    below the cap. This holds whatever is decided later, so a failure turns back at once.
 *  - What is still unplaced falls apart where no box crosses. The parts no longer touch each
 *    other: the first that fails refutes the choice above it, not the solution of its siblings.
 *  - A box that spans its whole part goes under the cap, which sinks by its size: sliding it there
 *    and everything above it down is always possible.
 *  - A failure knows the boxes it depends on (explain.c). When backing up, choices about other
 *    boxes are skipped.
 *  - A part met again with the same boxes and floors fails as it did before. */
#include <string.h>

#include "plan/tree.h"

/* ---- changes and how they are taken back ---- */

/* Each box is noted at most once per stage, so count entries are always enough for one. */
static rlx_status open_stage(struct tree *t, struct diag *d)
{
    if (!vec_room_for(t->mem, &t->trail, t->count))
        return diag_no_memory(d, t->count * sizeof *t->trail.at);
    if (++t->stage == 0) { /* after 2^32 stages: forget the old stamps */
        memset(t->stamp, 0, t->count * sizeof *t->stamp);
        t->stage = 1;
    }
    return RLX_OK;
}

static inline void note(struct tree *t, uint32_t b)
{
    if (t->stamp[b] == t->stage)
        return;
    t->stamp[b] = t->stage;
    t->trail.at[t->trail.len++] =
        (struct tree_change){t->floor[b], b, t->cause[b], t->refusal[b], t->state[b]};
}

static void take_back(struct tree *t, size_t mark)
{
    while (t->trail.len > mark) {
        const struct tree_change *c = &t->trail.at[--t->trail.len];
        t->floor[c->box] = c->floor;
        t->cause[c->box] = c->cause;
        t->refusal[c->box] = c->refusal;
        t->state[c->box] = c->state;
    }
}

/* ---- what must hold ---- */

static bool section_holds(struct tree *t, uint32_t s, uint64_t cap)
{
    uint32_t *m = t->member + t->member_at[s];
    size_t n = t->member_at[s + 1] - t->member_at[s];
    uint64_t top = 0;

    t->effort += n;
    for (size_t i = 1; i < n; i++) { /* mostly in order already */
        uint32_t b = m[i];
        uint64_t floor = t->floor[b];
        size_t j = i;
        while (j > 0 && t->floor[m[j - 1]] > floor) {
            m[j] = m[j - 1];
            j--;
        }
        m[j] = b;
        t->effort += i - j;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t b = m[i];
        if (t->state[b] & BOX_PLACED)
            continue;
        if (t->floor[b] > top)
            top = t->floor[b];
        top += t->size[b];
    }
    return top <= cap;
}

static bool beside(const struct tree *t, uint32_t a, uint32_t b)
{
    return t->lo[a] <= t->hi[b] && t->lo[b] <= t->hi[a];
}

/* The lowest possible top of a box that shares a section with b and does not wait itself. */
static uint64_t lowest_top_beside(struct tree *t, const struct tree_part *p, uint32_t b)
{
    uint64_t low = UINT64_MAX;
    uint32_t k;

    for (k = p->first; k < p->end && t->lo[k] <= t->hi[b]; k++)
        if (t->hi[k] >= t->lo[b] && !t->state[k] && t->floor[k] + t->size[k] < low)
            low = t->floor[k] + t->size[k];
    t->effort += k - p->first;
    return low;
}

static uint64_t top_if_raised(const struct tree *t, uint32_t b)
{
    uint64_t floor = t->low[b] > t->floor[b] ? t->low[b] : t->floor[b];
    return t->low[b] == UINT64_MAX ? UINT64_MAX : floor + t->size[b];
}

/* Each box that waits comes to rest on another, waiting or not, but never on each other in a ring.
 * So they are raised in the order of their tops, as in finding shortest paths. *lo and *hi grow to
 * the sections touched. */
static bool raise_waiting(struct tree *t, const struct tree_part *p, uint32_t *lo, uint32_t *hi)
{
    uint32_t n = 0;

    t->effort += p->end - p->first;
    for (uint32_t b = p->first; b < p->end; b++) {
        if (t->state[b] != BOX_WAITS)
            continue;
        t->pending[n++] = b;
        t->low[b] = lowest_top_beside(t, p, b);
    }
    while (n > 0) {
        uint32_t at = 0;
        for (uint32_t i = 1; i < n; i++)
            if (top_if_raised(t, t->pending[i]) < top_if_raised(t, t->pending[at]))
                at = i;
        t->effort += n;
        uint32_t b = t->pending[at];
        t->pending[at] = t->pending[--n];
        if (top_if_raised(t, b) > p->cap) {
            why_waiting(t, p, b);
            return false;
        }
        if (t->low[b] > t->floor[b]) {
            note(t, b);
            t->floor[b] = t->low[b];
            *lo = t->lo[b] < *lo ? t->lo[b] : *lo;
            *hi = t->hi[b] > *hi ? t->hi[b] : *hi;
        }
        uint64_t top = t->floor[b] + t->size[b];
        for (uint32_t i = 0; i < n; i++)
            if (top < t->low[t->pending[i]] && beside(t, b, t->pending[i]))
                t->low[t->pending[i]] = top;
    }
    return true;
}

/* Raise the floors of those that wait, then look at every section that a change touched. */
static bool settle(struct tree *t, const struct tree_part *p, uint32_t lo, uint32_t hi)
{
    if (!raise_waiting(t, p, &lo, &hi))
        return false;
    for (uint32_t s = lo; s <= hi; s++) {
        if (section_holds(t, s, p->cap))
            continue;
        t->overfull[s]++;
        why_section(t, p, s);
        return false;
    }
    return true;
}

/* ---- parts ---- */

/* Put the part's spanning boxes under its cap. They come first, by the order of the boxes. */
static bool top_off(struct tree *t, struct tree_part *p, bool *any)
{
    uint32_t lo = t->lo[p->first];
    *any = false;
    for (uint32_t b = p->first; b < p->end && t->lo[b] == lo && t->hi[b] == p->last; b++) {
        if (t->state[b] & BOX_PLACED)
            continue;
        if (t->size[b] > p->cap || t->floor[b] > p->cap - t->size[b])
            return false;
        p->cap -= t->size[b];
        note(t, b);
        t->floor[b] = p->cap;
        t->state[b] = BOX_PLACED;
        *any = true;
    }
    return true;
}

/* Add the parts that p falls into to tree->part, the shortest first. */
static bool divide(struct tree *t, struct tree_part p)
{
    uint32_t at = t->part_count, from = at;

    t->part[t->part_count++] = p;
    while (at < t->part_count) {
        p = t->part[at];
        while (p.first < p.end && (t->state[p.first] & BOX_PLACED))
            p.first++;
        while (p.first < p.end && (t->state[p.end - 1] & BOX_PLACED))
            p.end--;
        if (p.first == p.end) {
            t->part[at] = t->part[--t->part_count];
            continue;
        }
        uint32_t b = p.first;
        for (p.last = t->hi[b]; b < p.end && t->lo[b] <= p.last; b++)
            if (!(t->state[b] & BOX_PLACED) && t->hi[b] > p.last)
                p.last = t->hi[b];
        t->effort += b - p.first;
        if (b < p.end) {
            t->part[t->part_count++] = (struct tree_part){.first = b, .end = p.end, .cap = p.cap};
            p.end = b;
        }
        bool any;
        if (!top_off(t, &p, &any))
            return false;
        t->part[at] = p;
        if (!any)
            at++;
    }
    for (uint32_t i = from + 1; i < t->part_count; i++) {
        p = t->part[i];
        uint32_t j = i;
        for (; j > from && t->part[j - 1].end - t->part[j - 1].first > p.end - p.first; j--)
            t->part[j] = t->part[j - 1];
        t->part[j] = p;
    }
    return true;
}

/* ---- the walk ---- */

enum event {
    CHOOSE, /* the top frame is ready for its next choice */
    ENTER,  /* the top frame has a part to be entered */
    FAILED, /* what was entered last has no solution; its frame is gone */
    SOLVED  /* what was entered last is solved; its frame is gone */
};

static uint64_t hash_part(struct tree *t, const struct tree_part *p)
{
    uint64_t h = p->cap * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t b = p->first; b < p->end; b++)
        if (!(t->state[b] & BOX_PLACED))
            h += t->code[b] * (2 * t->floor[b] + 1 + (t->state[b] == BOX_WAITS));
    t->effort += p->end - p->first;
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ (h >> 32);
}

/* The part on top has no solution; tree->why says what that depends on. */
static enum event leave_failed(struct tree *t, bool remember)
{
    const struct tree_frame *f = &t->frame[--t->depth];
    if (remember)
        t->failed[f->hash % TREE_FAILED_SLOTS] = f->hash;
    if (t->depth > 0 && t->frame[t->depth - 1].part.cap != f->part.cap)
        why_all(t); /* the cap depends on how the part was separated */
    take_back(t, f->entry);
    t->refusals.len = f->refusals;
    t->part_count = f->parts;
    return FAILED;
}

/* lo, hi: the sections to look at; those outside the part are left out. */
static rlx_status enter(struct tree *t, struct tree_part part, uint32_t lo, uint32_t hi,
                        enum event *e, struct diag *d)
{
    struct tree_frame *f = &t->frame[t->depth++];

    *f = (struct tree_frame){.part = part,
                             .entry = t->trail.len,
                             .refusals = t->refusals.len,
                             .kept = t->refusals.len,
                             .parts = t->part_count};
    t->nodes++;
    TRY(open_stage(t, d));
    lo = lo < t->lo[part.first] ? t->lo[part.first] : lo;
    hi = hi > part.last ? part.last : hi;
    if (!settle(t, &part, lo, hi)) {
        *e = leave_failed(t, false);
        return RLX_OK;
    }
    f->hash = hash_part(t, &part);
    *e = CHOOSE;
    if (t->failed[f->hash % TREE_FAILED_SLOTS] == f->hash) {
        why_part(t, &part);
        *e = leave_failed(t, false);
    }
    return RLX_OK;
}

/* The box with the lowest floor that does not wait; the smaller rank of two. */
static uint32_t pick(struct tree *t, const struct tree_part *p)
{
    uint32_t best = TREE_NO_BOX;
    for (uint32_t b = p->first; b < p->end; b++) {
        if (t->state[b])
            continue;
        if (best == TREE_NO_BOX || t->floor[b] < t->floor[best] ||
            (t->floor[b] == t->floor[best] && t->rank[b] < t->rank[best]))
            best = b;
    }
    t->effort += p->end - p->first;
    return best;
}

static void place(struct tree *t, struct tree_frame *f)
{
    const struct tree_part *p = &f->part;
    uint32_t b = f->chosen, k;
    uint64_t top = t->floor[b] + t->size[b];

    f->lo = t->lo[b];
    f->hi = t->hi[b];
    note(t, b);
    t->state[b] = BOX_PLACED;
    for (k = p->first; k < p->end && t->lo[k] <= t->hi[b]; k++) {
        if (t->hi[k] < t->lo[b] || (t->state[k] & BOX_PLACED))
            continue;
        if (t->floor[k] >= top && !t->state[k])
            continue;
        note(t, k); /* it may rest on the new box, unless its floor was already above that */
        t->state[k] = 0;
        t->floor[k] = top;
        t->cause[k] = b;
        f->lo = t->lo[k] < f->lo ? t->lo[k] : f->lo;
        f->hi = t->hi[k] > f->hi ? t->hi[k] : f->hi;
    }
    t->effort += k - p->first;
}

static rlx_status choose(struct tree *t, enum event *e, struct diag *d)
{
    struct tree_frame *f = &t->frame[t->depth - 1];

    f->chosen = pick(t, &f->part);
    if (f->chosen == TREE_NO_BOX) { /* all of them wait for each other */
        why_part(t, &f->part);
        *e = leave_failed(t, true);
        return RLX_OK;
    }
    f->choice = t->trail.len;
    f->next = f->parts;
    TRY(open_stage(t, d));
    place(t, f);
    if (!divide(t, f->part)) {
        why_all(t);
        *e = FAILED;
        return RLX_OK;
    }
    *e = ENTER;
    if (t->part_count == f->parts) {
        t->depth--;
        *e = SOLVED;
    }
    return RLX_OK;
}

/* Keep tree->why, without b, as the reason of a refusal. */
static rlx_status keep_reason(struct tree *t, uint32_t b, uint32_t *refusal, struct diag *d)
{
    if (!vec_room_for(t->mem, &t->refusals, t->words))
        return diag_no_memory(d, t->words * sizeof *t->why);
    *refusal = (uint32_t)(t->refusals.len / t->words);
    t->why[b / 64] &= ~(UINT64_C(1) << (b % 64));
    memcpy(t->refusals.at + t->refusals.len, t->why, t->words * sizeof *t->why);
    t->refusals.len += t->words;
    return RLX_OK;
}

/* What remained after the chosen box was placed has no solution: the box does not belong here, nor
 * do its twins. If the failure does not depend on the box, it would happen again, so the whole part
 * has failed. */
static rlx_status refuse(struct tree *t, enum event *e, struct diag *d)
{
    struct tree_frame *f = &t->frame[t->depth - 1];
    uint32_t refusal = 0, twin = t->twin[f->chosen];

    take_back(t, f->choice);
    t->refusals.len = f->kept;
    t->part_count = f->parts;
    t->nodes++;
    if (!why_has(t, f->chosen)) {
        *e = leave_failed(t, true);
        return RLX_OK;
    }
    TRY(keep_reason(t, f->chosen, &refusal, d));
    f->kept = t->refusals.len;
    TRY(open_stage(t, d));
    for (uint32_t b = twin; b < f->part.end && t->twin[b] == twin; b++) {
        if (t->state[b] || b < f->part.first)
            continue;
        note(t, b);
        t->state[b] = BOX_WAITS;
        t->refusal[b] = refusal;
    }
    *e = settle(t, &f->part, UINT32_MAX, 0) ? CHOOSE : leave_failed(t, true);
    return RLX_OK;
}

static rlx_status enter_next(struct tree *t, enum event *e, struct diag *d)
{
    const struct tree_frame *f = &t->frame[t->depth - 1];
    struct tree_part p = t->part[f->next];
    bool lower = p.cap != f->part.cap; /* then every section has less room than before */
    return enter(t, p, lower ? 0 : f->lo, lower ? UINT32_MAX : f->hi, e, d);
}

static enum event after_part(struct tree *t)
{
    struct tree_frame *f = &t->frame[t->depth - 1];
    if (++f->next < t->part_count)
        return ENTER;
    t->part_count = f->parts;
    t->depth--;
    return SOLVED;
}

rlx_status tree_solve(struct tree *t, struct tree_part part, enum tree_answer *out, struct diag *d)
{
    size_t mark = t->trail.len;
    uint32_t parts = t->part_count;
    enum event e;

    t->depth = 0;
    t->refusals.len = 0;
    TRY(enter(t, part, 0, UINT32_MAX, &e, d));
    while (t->depth > 0 && t->effort < t->effort_limit && t->nodes < t->node_limit) {
        switch (e) {
        case CHOOSE: TRY(choose(t, &e, d)); break;
        case ENTER: TRY(enter_next(t, &e, d)); break;
        case FAILED: TRY(refuse(t, &e, d)); break;
        case SOLVED: e = after_part(t); break;
        }
    }
    *out = t->depth > 0 ? TREE_LIMIT : e == SOLVED ? TREE_SOLVED : TREE_NONE;
    t->part_count = parts;
    if (*out != TREE_SOLVED)
        take_back(t, mark);
    return RLX_OK;
}

bool tree_start(struct tree *t, uint64_t cap)
{
    t->trail.len = 0;
    t->part_count = 0;
    t->stage = 1; /* nothing is noted: there is nothing to go back to */
    for (uint32_t b = 0; b < t->count; b++) {
        t->floor[b] = 0;
        t->cause[b] = TREE_NO_BOX;
        t->state[b] = 0;
        t->stamp[b] = 1;
    }
    return divide(t, (struct tree_part){.end = t->count, .cap = cap});
}
