/* search.c: where the exact search begins, and for how long.
 *
 * One walk over the tree can spend all its time below an early mistake, so there are many short
 * ones. They differ only in which of several boxes with equal floors goes first, and that is
 * enough. Each walk notes which sections it found overfull; some of the orders use that. Limits
 * count what was looked at and grow slowly, and the random numbers are always the same, so the
 * result is too.
 *
 * First comes the goal, with half of the budget. If it is not reached, the heights between it and
 * the best known one are halved, again and again. */
#include <stdlib.h>
#include <string.h>

#include "plan/search.h"
#include "plan/tree.h"

/* ---- who goes first ---- */

enum first { FIRST_NOBODY, FIRST_LOADED, FIRST_FAILED };

/* Boxes by lifetime and size, as lifetime^(share/4) * size^(1-share/4), the greatest first. */
struct rule {
    uint8_t share;
    bool sections;    /* lifetime in sections; else in positions */
    enum first first; /* a box in a fuller section, or in one that failed often, goes before */
};

static const struct rule rules[] = {
    {4, true, FIRST_LOADED}, {4, false, FIRST_FAILED}, {1, false, FIRST_FAILED},
    {4, true, FIRST_FAILED}, {4, false, FIRST_NOBODY}, {0, false, FIRST_LOADED},
};
enum { RULE_COUNT = sizeof rules / sizeof *rules };

/* log2 in 1/256ths, linear between the powers of two. x > 0. */
static int64_t log2_256(uint64_t x)
{
    int bit = 63 - __builtin_clzll(x);
    uint64_t below = bit >= 8 ? x >> (bit - 8) : x << (8 - bit);
    return (int64_t)bit * 256 + (int64_t)(below & 255);
}

static uint32_t random_byte(uint64_t *seed) /* 0 .. 255 */
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 56);
}

struct place {
    uint64_t group; /* the load, where that decides first */
    int64_t key;
    uint32_t box;
};

static int by_key(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->group != y->group)
        return x->group > y->group ? -1 : 1;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    return x->box < y->box ? -1 : 1;
}

struct run {
    const struct search *s;
    struct tree tree;
    struct place *place; /* one per box, for sorting */
    uint64_t *top;       /* one per section */
    uint64_t seed;
};

/* noise: the key is moved by up to this much either way. */
static void set_ranks(struct run *r, struct tree_part p, const struct rule *rule, uint32_t noise)
{
    struct tree *t = &r->tree;
    size_t n = 0;

    for (uint32_t b = p.first; b < p.end; b++) {
        const struct plan_item *box = &r->s->box[t->id[b]];
        uint64_t positions = (uint64_t)((int64_t)box->death - box->birth) + 1;
        uint64_t life = rule->sections ? t->hi[b] - t->lo[b] + 1 : positions;
        uint64_t load = 0;
        uint32_t blame = 0;
        for (uint32_t s = t->lo[b]; s <= t->hi[b]; s++) {
            load = t->load[s] > load ? t->load[s] : load;
            blame = t->overfull[s] > blame ? t->overfull[s] : blame;
        }
        struct place *q = &r->place[n++];
        q->box = b;
        q->group = rule->first == FIRST_LOADED ? load : 0;
        q->key = (rule->share * log2_256(life) + (4 - rule->share) * log2_256(t->size[b])) / 4;
        if (rule->first == FIRST_FAILED)
            q->key += log2_256((uint64_t)blame + 16);
        q->key += (int64_t)noise *
                  ((int64_t)random_byte(&r->seed) + (int64_t)random_byte(&r->seed) - 255) / 256;
    }
    qsort(r->place, n, sizeof *r->place, by_key);
    for (uint32_t i = 0; i < n; i++)
        t->rank[r->place[i].box] = i;
}

/* ---- one height ---- */

enum {
    NOISE = 110,       /* of a key, in 1/256ths of a doubling; the first walk of a rule has none */
    NODES_PER_BOX = 4, /* of the first walks; an eighth more each time round the rules */
};

static rlx_status solve_part(struct run *r, struct tree_part p, enum tree_answer *out,
                             struct diag *d)
{
    struct tree *t = &r->tree;
    uint64_t nodes = (uint64_t)NODES_PER_BOX * (p.end - p.first);

    memset(t->overfull, 0, t->sections * sizeof *t->overfull);
    for (uint32_t walk = 0;; walk++) {
        if (walk > 0 && walk % RULE_COUNT == 0)
            nodes += nodes / 8;
        set_ranks(r, p, &rules[walk % RULE_COUNT], walk < RULE_COUNT ? 0 : NOISE);
        t->node_limit = t->nodes + nodes;
        TRY(tree_solve(t, p, out, d));
        if (*out != TREE_LIMIT || t->effort >= t->effort_limit)
            return RLX_OK;
        for (uint32_t s = 0; s < t->sections; s++)
            t->overfull[s] -= t->overfull[s] / 4; /* what failed lately counts most */
    }
}

static rlx_status try_height(struct run *r, uint64_t height, uint64_t effort, enum tree_answer *out,
                             struct diag *d)
{
    struct tree *t = &r->tree;

    *out = TREE_NONE;
    if (!tree_start(t, height))
        return RLX_OK;
    *out = TREE_SOLVED;
    t->effort_limit = t->effort + effort;
    for (uint32_t i = 0; i < t->part_count && *out == TREE_SOLVED; i++)
        TRY(solve_part(r, t->part[i], out, d));
    return RLX_OK;
}

/* ---- taking a solution ---- */

static int by_offset(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->box < y->box ? -1 : 1;
}

/* Lets every box fall as far as it can, the lowest first, and sees how high the result is. */
static void take_solution(struct run *r, struct search *s)
{
    struct tree *t = &r->tree;
    uint64_t *top = r->top; /* of what has fallen, by section */

    for (uint32_t b = 0; b < t->count; b++)
        r->place[b] = (struct place){.group = t->floor[b], .box = b};
    qsort(r->place, t->count, sizeof *r->place, by_offset);
    memset(top, 0, t->sections * sizeof *top);
    s->height = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t b = r->place[i].box;
        uint64_t at = 0;
        for (uint32_t q = t->lo[b]; q <= t->hi[b]; q++)
            at = top[q] > at ? top[q] : at;
        for (uint32_t q = t->lo[b]; q <= t->hi[b]; q++)
            top[q] = at + t->size[b];
        s->offset[t->id[b]] = at;
        if (at + t->size[b] > s->height)
            s->height = at + t->size[b];
    }
}

/* ---- which height ---- */

static rlx_status search_heights(struct run *r, struct search *s, struct diag *d)
{
    enum tree_answer answer;
    uint64_t left = s->budget, low = s->goal;

    TRY(try_height(r, low, left / 2, &answer, d));
    if (answer == TREE_SOLVED) {
        take_solution(r, s);
        return RLX_OK;
    }
    while (s->height - low > s->grain) { /* low: given up; height: there is one */
        uint64_t middle = low + (s->height - low) / 2 / s->grain * s->grain;
        if (middle == low)
            middle += s->grain;
        left = r->tree.effort < s->budget ? s->budget - r->tree.effort : 0;
        if (left < s->count)
            return RLX_OK;
        TRY(try_height(r, middle, left / 2, &answer, d));
        if (answer == TREE_SOLVED)
            take_solution(r, s);
        else
            low = middle;
    }
    return RLX_OK;
}

rlx_status search_run(struct search *s, struct arena *arena, struct diag *d)
{
    struct run r = {.s = s, .seed = 1};
    uint64_t members;

    TRY(tree_weigh(s->box, s->count, arena, &members, d));
    if (members > SEARCH_MEMBERS_MAX || s->budget < members)
        return RLX_OK; /* no walk would finish */
    r.place = arena_array(arena, struct place, s->count);
    r.top = arena_array(arena, uint64_t, s->count);
    if (!r.place || !r.top)
        return diag_no_memory(d, s->count * sizeof *r.place);
    rlx_status status = tree_init(&r.tree, s->box, s->count, arena, d);
    if (status == RLX_OK)
        status = search_heights(&r, s, d);
    s->nodes = r.tree.nodes;
    s->effort = r.tree.effort;
    tree_free(&r.tree);
    return status;
}
