/* bestfit.c: greedy placing. A box goes into the smallest gap that holds it between boxes that
 * live when it does, the lowest of equal ones; above them all if no gap is wide enough.
 *
 * Most boxes live for a few steps and meet a few others. Lists of placed boxes are therefore kept
 * by stretch of time as well, all sorted by offset, and a box looks at one list only. */
#include "plan/bestfit.h"
#include "plan/segments.h"

#include <stdlib.h>
#include <string.h>

enum {
    FINEST = 64,      /* lanes of the last level */
    INSERT_EFFORT = 8 /* adding a box to a lane, in boxes looked at */
};

static int by_value(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Lane i begins at start[i]; as many births in each as can be. */
static uint8_t lane_of(const int32_t start[FINEST], int32_t position)
{
    uint32_t lo = 0, hi = FINEST;
    while (hi - lo > 1) {
        uint32_t mid = (lo + hi) / 2;
        if (start[mid] <= position)
            lo = mid;
        else
            hi = mid;
    }
    return (uint8_t)lo;
}

static rlx_status cut_time(struct bestfit *f, struct arena *arena, struct diag *d)
{
    int32_t start[FINEST], *birth = arena_array(arena, int32_t, f->count);

    if (!birth)
        return diag_no_memory(d, f->count * sizeof *birth);
    for (uint32_t b = 0; b < f->count; b++)
        birth[b] = f->box[b].birth;
    qsort(birth, f->count, sizeof *birth, by_value);
    for (uint32_t i = 0; i < FINEST; i++)
        start[i] = birth[(uint64_t)f->count * i / FINEST];
    for (uint32_t b = 0; b < f->count; b++) {
        f->first[b] = lane_of(start, f->box[b].birth);
        f->last[b] = lane_of(start, f->box[b].death);
    }
    return RLX_OK;
}

/* Levels are numbered from the single lane: lane i of the finest is i >> level_shift of this. */
static uint32_t level_shift(uint32_t level)
{
    return 3 * (BESTFIT_LEVELS - 1 - level);
}

/* The lanes of a level that b lives in: *last is the last of them. */
static struct bestfit_lane *lanes_of(struct bestfit *f, uint32_t level, uint32_t b,
                                     struct bestfit_lane **last)
{
    static const uint32_t base[BESTFIT_LEVELS] = {0, 1, 1 + 8};
    struct bestfit_lane *lane = f->lane + base[level];
    *last = lane + (f->last[b] >> level_shift(level));
    return lane + (f->first[b] >> level_shift(level));
}

rlx_status bestfit_init(struct bestfit *f, const struct plan_item *box, uint32_t count,
                        struct arena *arena, struct diag *d)
{
    memset(f, 0, sizeof *f);
    f->box = box;
    f->count = count;
    f->first = arena_array(arena, uint8_t, count);
    f->last = arena_array(arena, uint8_t, count);
    f->offset = arena_array(arena, uint64_t, count);
    if (!f->first || !f->last || !f->offset)
        return diag_no_memory(d, count * sizeof *f->offset);
    if (count == 0)
        return RLX_OK;
    TRY(cut_time(f, arena, d));

    struct bestfit_lane *lane, *last;
    for (uint32_t level = 0; level < BESTFIT_LEVELS; level++)
        for (uint32_t b = 0; b < count; b++)
            for (lane = lanes_of(f, level, b, &last); lane <= last; lane++)
                lane->count++;
    for (lane = f->lane; lane < f->lane + BESTFIT_LANES; lane++) {
        lane->placed = arena_array(arena, uint32_t, lane->count);
        if (!lane->placed)
            return diag_no_memory(d, lane->count * sizeof *lane->placed);
    }
    return RLX_OK;
}

static const struct bestfit_lane *narrowest_lane(struct bestfit *f, uint32_t b)
{
    struct bestfit_lane *lane = f->lane, *last;
    for (uint32_t level = BESTFIT_LEVELS; level-- > 0;) {
        lane = lanes_of(f, level, b, &last);
        if (lane == last)
            break;
    }
    return lane;
}

/* Room for it between top and the next box; UINT64_MAX: none. */
static uint64_t room_between(const struct bestfit *f, uint64_t size, uint64_t top, uint64_t next,
                             uint64_t *at)
{
    struct segment_gap gap = {.from = top, .to = next};

    *at = top;
    if (!f->segment)
        return next > top && next - top >= size ? next - top : UINT64_MAX;
    if (!segment_fit(f->segment, size, &gap))
        return UINT64_MAX;
    *at = gap.at;
    return gap.room;
}

static uint64_t find_offset(struct bestfit *f, uint32_t b)
{
    const struct bestfit_lane *lane = narrowest_lane(f, b);
    const struct plan_item *it = &f->box[b];
    uint64_t top = 0, best = 0, best_gap = UINT64_MAX;

    f->effort += lane->count;
    for (uint32_t i = 0; i < lane->count; i++) {
        uint32_t q = lane->placed[i];
        if (f->box[q].birth > it->death || f->box[q].death < it->birth)
            continue;
        uint64_t at, gap = room_between(f, it->size, top, f->offset[q], &at);
        if (gap < best_gap) {
            best_gap = gap;
            best = at;
        }
        if (f->offset[q] + f->box[q].size > top)
            top = f->offset[q] + f->box[q].size;
    }
    if (best_gap != UINT64_MAX)
        return best;
    return f->segment ? segment_above(f->segment, it->size, top) : top;
}

static void insert(struct bestfit *f, struct bestfit_lane *lane, uint32_t b)
{
    uint32_t lo = 0, hi = lane->count;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (f->offset[lane->placed[mid]] <= f->offset[b])
            lo = mid + 1;
        else
            hi = mid;
    }
    f->effort += INSERT_EFFORT;
    memmove(lane->placed + lo + 1, lane->placed + lo, (lane->count - lo) * sizeof *lane->placed);
    lane->placed[lo] = b;
    lane->count++;
}

uint64_t bestfit_place(struct bestfit *f, const uint32_t *order)
{
    uint64_t height = 0;

    for (uint32_t i = 0; i < BESTFIT_LANES; i++)
        f->lane[i].count = 0;
    for (uint32_t n = 0; n < f->count; n++) {
        uint32_t b = order[n];
        f->offset[b] = find_offset(f, b);
        if (f->offset[b] + f->box[b].size > height)
            height = f->offset[b] + f->box[b].size;
        for (uint32_t level = 0; level < BESTFIT_LEVELS; level++) {
            struct bestfit_lane *last, *lane = lanes_of(f, level, b, &last);
            for (; lane <= last; lane++)
                insert(f, lane, b);
        }
    }
    return height;
}
