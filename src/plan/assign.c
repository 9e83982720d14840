/* assign.c: offsets for intervals. Greedy orders first, the exact search where they miss.
 *
 *     round sizes up  =>  lower bound  =>  four orders, best fit  =>  the topmost to the front
 *                                                                     (64 rounds)  =>  search
 *
 * Each stage begins only if the ones before did not reach the goal: the lower bound, or the
 * capacity given. */
#include <stdlib.h>
#include <string.h>

#include "plan/bestfit.h"
#include "plan/search.h"

struct assign {
    struct plan_item *box; /* the items that have a size, rounded up to the alignment */
    uint32_t *id;          /* whose item each is */
    uint32_t count;
    uint64_t bound, goal, budget;
    struct bestfit fit;
    uint32_t *order, *best_order;
    uint64_t *offset, height; /* the best so far */
    const char *method;
};

/* ---- from items to boxes ---- */

static rlx_status take_items(struct assign *a, const struct plan_problem *p, struct arena *arena,
                             uint64_t *unshared, struct diag *d)
{
    if (p->align == 0 || (p->align & (p->align - 1)) != 0)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "alignment %llu is not a power of two",
                         (unsigned long long)p->align);
    if (p->count > INT32_MAX)
        return diag_fail(d, RLX_ERROR_LIMIT, "%zu buffers; the planner takes up to %d", p->count,
                         INT32_MAX);
    a->box = arena_array(arena, struct plan_item, p->count);
    a->id = arena_array(arena, uint32_t, p->count);
    if (!a->box || !a->id)
        return diag_no_memory(d, p->count * sizeof *a->box);
    *unshared = 0;
    for (size_t i = 0; i < p->count; i++) {
        struct plan_item it = p->item[i];
        if (it.birth > it.death)
            return diag_fail(d, RLX_ERROR_ARGUMENT, "buffer %zu is born at %d and dies at %d", i,
                             it.birth, it.death);
        if (it.size == 0)
            continue;
        uint64_t pad = (p->align - it.size % p->align) % p->align;
        if (__builtin_add_overflow(it.size, pad, &it.size) ||
            __builtin_add_overflow(*unshared, it.size, unshared))
            return diag_fail(d, RLX_ERROR_LIMIT,
                             "buffer %zu of %llu bytes takes the sum of all sizes past 64 bits", i,
                             (unsigned long long)p->item[i].size);
        a->id[a->count] = (uint32_t)i;
        a->box[a->count++] = it;
    }
    return RLX_OK;
}

struct event {
    int64_t position;
    uint64_t size;
};

static int by_position(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    return (x->position > y->position) - (x->position < y->position);
}

/* The most bytes alive at one position, and the first such position. */
static rlx_status find_bound(struct assign *a, struct arena *arena, int32_t *peak, struct diag *d)
{
    struct event *birth = arena_array(arena, struct event, a->count);
    struct event *death = arena_array(arena, struct event, a->count);
    uint64_t live = 0;
    uint32_t dead = 0;

    if (!birth || !death)
        return diag_no_memory(d, a->count * sizeof *birth);
    for (uint32_t b = 0; b < a->count; b++) {
        birth[b] = (struct event){a->box[b].birth, a->box[b].size};
        death[b] = (struct event){a->box[b].death, a->box[b].size};
    }
    qsort(birth, a->count, sizeof *birth, by_position);
    qsort(death, a->count, sizeof *death, by_position);
    *peak = 0;
    for (uint32_t b = 0; b < a->count; b++) {
        while (death[dead].position < birth[b].position)
            live -= death[dead++].size;
        live += birth[b].size;
        if (live > a->bound) {
            a->bound = live;
            *peak = (int32_t)birth[b].position;
        }
    }
    return RLX_OK;
}

/* ---- orders ---- */

struct entry {
    uint64_t major, minor; /* the greater first */
    uint32_t box;
};

static int by_keys(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->major != y->major)
        return x->major > y->major ? -1 : 1;
    if (x->minor != y->minor)
        return x->minor > y->minor ? -1 : 1;
    return x->box < y->box ? -1 : 1;
}

static uint64_t lifetime(const struct plan_item *it)
{
    return (uint64_t)((int64_t)it->death - it->birth) + 1; /* at most 2^32 */
}

static void key_size(struct entry *e, const struct plan_item *it)
{
    e->major = it->size;
}

static void key_area(struct entry *e, const struct plan_item *it)
{
    /* size * lifetime in two parts, for it may have 97 bits */
    uint64_t low = (it->size & UINT32_MAX) * lifetime(it);
    uint64_t high = (it->size >> 32) * lifetime(it);
    e->major = high + (low >> 32);
    e->minor = low & UINT32_MAX;
}

static void key_lifetime(struct entry *e, const struct plan_item *it)
{
    e->major = lifetime(it);
    e->minor = it->size;
}

static void key_birth(struct entry *e, const struct plan_item *it)
{
    e->major = (uint64_t)((int64_t)INT32_MAX - it->birth);
    e->minor = it->size;
}

static const struct ordering {
    const char *name;
    void (*key)(struct entry *e, const struct plan_item *it);
} orderings[] = {
    {"size", key_size},
    {"area", key_area},
    {"lifetime", key_lifetime},
    {"birth", key_birth},
};

static void keep_if_lower(struct assign *a, uint64_t height, const char *method)
{
    if (a->method && height >= a->height)
        return;
    a->height = height;
    a->method = method;
    memcpy(a->offset, a->fit.offset, a->count * sizeof *a->offset);
    memcpy(a->best_order, a->order, a->count * sizeof *a->order);
}

static rlx_status try_orders(struct assign *a, struct arena *arena, struct diag *d)
{
    struct entry *e = arena_array(arena, struct entry, a->count);
    if (!e)
        return diag_no_memory(d, a->count * sizeof *e);
    for (size_t i = 0; i < sizeof orderings / sizeof *orderings; i++) {
        for (uint32_t b = 0; b < a->count; b++) {
            e[b] = (struct entry){.box = b};
            orderings[i].key(&e[b], &a->box[b]);
        }
        qsort(e, a->count, sizeof *e, by_keys);
        for (uint32_t b = 0; b < a->count; b++)
            a->order[b] = e[b].box;
        keep_if_lower(a, bestfit_place(&a->fit, a->order), orderings[i].name);
        if (a->height <= a->goal)
            break;
    }
    return RLX_OK;
}

/* ---- lifting: what ended up on top goes first next time ---- */

enum { ROUNDS = 64 };

static void move_topmost_first(struct assign *a)
{
    uint32_t top = 0;
    uint64_t end = 0;

    for (uint32_t n = 0; n < a->count; n++) {
        uint32_t b = a->order[n];
        uint64_t e = a->fit.offset[b] + a->box[b].size;
        if (e > end || (e == end && b < a->order[top])) {
            end = e;
            top = n;
        }
    }
    uint32_t b = a->order[top];
    memmove(a->order + 1, a->order, top * sizeof *a->order);
    a->order[0] = b;
}

static void lift(struct assign *a)
{
    memcpy(a->order, a->best_order, a->count * sizeof *a->order);
    memcpy(a->fit.offset, a->offset, a->count * sizeof *a->offset);
    for (int round = 0; round < ROUNDS && a->height > a->goal; round++) {
        if (a->fit.effort > a->budget / 4)
            return; /* the rest is better spent on the search */
        move_topmost_first(a);
        keep_if_lower(a, bestfit_place(&a->fit, a->order), "lifted");
    }
}

/* ---- the exact search ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static rlx_status search(struct assign *a, struct arena *arena, uint64_t *nodes, struct diag *d)
{
    uint64_t grain = 0, spent = a->fit.effort < a->budget ? a->fit.effort : a->budget;

    for (uint32_t b = 0; b < a->count; b++)
        grain = common_divisor(a->box[b].size, grain);
    uint64_t goal =
        grain ? a->goal / grain * grain : a->goal; /* every height is a multiple of the grain */
    struct search s = {
        .box = a->box,
        .count = a->count,
        .goal = goal > a->bound ? goal : a->bound,
        .grain = grain,
        .budget = a->budget - spent,
        .offset = a->offset,
        .height = a->height,
    };
    TRY(search_run(&s, arena, d));
    if (s.height < a->height) {
        a->height = s.height;
        a->method = "search";
    }
    *nodes = s.nodes;
    return RLX_OK;
}

/* Every box opens one segment at most, so that no offset can leave 64 bits. */
static rlx_status check_segment(const struct assign *a, uint64_t segment, struct diag *d)
{
    uint64_t most;

    if (__builtin_mul_overflow(segment, a->count, &most))
        return diag_fail(d, RLX_ERROR_LIMIT, "%u buffers in segments of %llu bytes leave 64 bits",
                         (unsigned)a->count, (unsigned long long)segment);
    for (uint32_t b = 0; b < a->count && segment; b++)
        if (a->box[b].size > segment)
            return diag_fail(d, RLX_ERROR_LIMIT,
                             "buffer %u of %llu bytes is larger than a segment, %llu",
                             (unsigned)a->id[b], (unsigned long long)a->box[b].size,
                             (unsigned long long)segment);
    return RLX_OK;
}

static rlx_status assign(struct assign *a, const struct plan_problem *p, struct plan_fit *fit,
                         struct arena *scratch, struct diag *d)
{
    TRY(take_items(a, p, scratch, &fit->unshared, d));
    TRY(find_bound(a, scratch, &fit->peak, d));
    a->goal = p->capacity > a->bound ? p->capacity : a->bound;
    a->budget = p->budget && p->budget != PLAN_BUDGET_NONE ? p->budget : PLAN_BUDGET_DEFAULT;
    a->order = arena_array(scratch, uint32_t, a->count);
    a->best_order = arena_array(scratch, uint32_t, a->count);
    a->offset = arena_array(scratch, uint64_t, a->count);
    if (!a->order || !a->best_order || !a->offset)
        return diag_no_memory(d, a->count * sizeof *a->offset);
    TRY(bestfit_init(&a->fit, a->box, a->count, scratch, d));
    TRY(check_segment(a, p->segment, d));
    a->fit.segment = p->segment;
    TRY(try_orders(a, scratch, d));
    if (a->height > a->goal)
        lift(a);
    if (a->height > a->goal && p->budget != PLAN_BUDGET_NONE && !p->segment)
        TRY(search(a, scratch, &fit->nodes, d));

    fit->arena = a->height;
    fit->lower_bound = a->bound;
    fit->method = a->count ? a->method : NULL;
    for (uint32_t b = 0; b < a->count; b++)
        fit->offset[a->id[b]] = a->offset[b];
    return RLX_OK;
}

rlx_status plan_assign(const struct plan_problem *p, struct arena *arena, struct plan_fit *out,
                       struct diag *d)
{
    struct assign a = {0};
    struct plan_fit fit = {0};
    struct arena scratch;

    fit.offset = arena_array(arena, uint64_t, p->count);
    if (!fit.offset)
        return diag_no_memory(d, p->count * sizeof *fit.offset);
    arena_init(&scratch, arena->mem);
    rlx_status status = assign(&a, p, &fit, &scratch, d);
    arena_free(&scratch);
    if (status == RLX_OK)
        *out = fit;
    return status;
}
