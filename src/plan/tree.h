/* tree.h: the exact search. Can these boxes be stacked below a cap?
 *
 * A box has a height (its bytes) and lives through a run of sections. Two boxes that share a
 * section must not share height. The tree holds all stackings in which every box rests on the
 * ground or on another box: pushing the boxes of any solution down gives one of these.
 *
 *     sections.c  what is searched: boxes in order, the sections they live through
 *     tree.c      the walk: place a box, or refuse to
 *     explain.c   which boxes a failure depends on, so that the walk turns back far enough
 *     search.c    where to begin, how long to try, which height to ask for */
#ifndef PLAN_TREE_H
#define PLAN_TREE_H

#include "base/arena.h"
#include "base/diag.h"
#include "plan/plan.h"

enum tree_answer {
    TREE_SOLVED, /* tree->floor holds the offsets */
    TREE_NONE,   /* there is none below this cap */
    TREE_LIMIT   /* the effort was spent before the answer was known */
};

#define TREE_NO_BOX UINT32_MAX
#define TREE_FAILED_SLOTS (1u << 16) /* hashes of failures kept; a newer one replaces an older */

enum { BOX_PLACED = 1, BOX_WAITS = 2 }; /* states of a box; 0: it may be placed at its floor */

/* Boxes first .. end-1 as far as they are not placed yet: every section between the outer ones has
 * one of them, so they form one part. */
struct tree_part {
    uint32_t first, end;
    uint32_t last; /* the last section of any */
    uint64_t cap;  /* every one must end at or below this */
};

struct tree_change { /* a box as it was */
    uint64_t floor;
    uint32_t box, cause, refusal;
    uint8_t state;
};

struct tree_frame {
    struct tree_part part;
    size_t entry, choice;  /* lengths of the trail: before this part, before the box chosen in it */
    size_t refusals, kept; /* lengths of tree->refusals: before this part, with what it refused */
    uint64_t hash;         /* of the part as it was entered */
    uint32_t chosen;
    uint32_t lo, hi;      /* sections in which placing it raised a floor */
    uint32_t parts, next; /* what remained then: tree->part[parts ..), and which is being solved */
};

struct tree {
    /* The boxes, by first section, then longest first. Sections are counted from 0. */
    uint32_t count, sections;
    uint32_t *id;      /* the caller's index */
    uint32_t *lo, *hi; /* first and last section */
    uint64_t *size;
    uint64_t *code; /* random and odd, for hashing; equal for twins */
    uint32_t *twin; /* the first box with the same sections and size */
    uint32_t *rank; /* when floors are equal, the smallest is chosen */

    /* Where they are. */
    uint64_t *floor;   /* the lowest offset it can still have; its offset once placed */
    uint32_t *cause;   /* the placed box whose top is its floor; TREE_NO_BOX: none */
    uint32_t *refusal; /* while it waits: which set of tree->refusals says why */
    uint8_t *state;
    uint32_t *stamp; /* the stage in which its last change was noted */
    uint64_t *low;   /* while floors are raised: the lowest top it could rest on */

    /* Sections: who lives there, kept nearly sorted by floor. */
    uint32_t *member;
    size_t *member_at;  /* sections + 1 of them */
    uint64_t *load;     /* all sizes in it */
    uint32_t *overfull; /* how often the walk failed there */

    VEC(struct tree_change) trail;
    uint32_t stage;
    struct tree_frame *frame;
    uint32_t depth;
    struct tree_part *part;
    uint32_t part_count;
    uint64_t *failed; /* hashes of parts known to have no solution */

    /* Sets of boxes, a bit each. */
    size_t words;           /* of one set */
    uint64_t *why;          /* whose placements the last failure depends on */
    VEC(uint64_t) refusals; /* sets: what the refusal of a waiting box depends on */
    uint32_t *pending;      /* boxes to be raised, or explained */
    uint32_t *seen;         /* equal to seen_now: it is explained, or on the list */
    uint32_t seen_now;

    uint64_t effort, effort_limit; /* boxes looked at, and when to stop */
    uint64_t nodes, node_limit;    /* placements and refusals tried, and when to stop */
    const rlx_allocator *mem;
};

/* box: sizes above zero. Uses the arena for what stays, its allocator for what grows. */
rlx_status tree_init(struct tree *t, const struct plan_item *box, uint32_t count,
                     struct arena *arena, struct diag *d);
void tree_free(struct tree *t);
/* How many members all sections have together, which says whether a problem is too big to
 * search. */
rlx_status tree_weigh(const struct plan_item *box, uint32_t count, struct arena *arena,
                      uint64_t *members, struct diag *d);

/* Puts everything back on the ground, then divides it: boxes that span all that they touch are
 * placed under the cap, where they are in no other's way, and the rest falls into parts at sections
 * that nothing crosses. The parts are tree->part[0 .. part_count). False: the cap is too low. */
bool tree_start(struct tree *t, uint64_t cap);
/* Works on one of these parts until a limit is reached. If it is not solved, it is left as it
 * was. */
rlx_status tree_solve(struct tree *t, struct tree_part part, enum tree_answer *out, struct diag *d);

/* ---- explain.c: each of these computes tree->why again ---- */

void why_section(struct tree *t, const struct tree_part *p, uint32_t s); /* it is overfull */
void why_waiting(struct tree *t, const struct tree_part *p, uint32_t b); /* b has no room left */
void why_part(struct tree *t, const struct tree_part *p); /* the floors of all that is unplaced */
void why_all(struct tree *t);                             /* all boxes */

static inline bool why_has(const struct tree *t, uint32_t b)
{
    return t->why[b / 64] >> (b % 64) & 1;
}

#endif
