/* problems.h: planning problems for the tests: dice, packings with a known height, brute force. */
#ifndef TESTS_PLAN_PROBLEMS_H
#define TESTS_PLAN_PROBLEMS_H

#include "plan/plan.h"

struct dice {
    uint64_t state;
};

static inline uint64_t roll(struct dice *d, uint64_t sides) /* 0 .. sides-1 */
{
    d->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = d->state;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) % sides;
}

/* Whether no two that live at once share bytes, and all end within fit->arena. */
static inline bool fits(const struct plan_item *item, size_t count, const struct plan_fit *fit)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t end = fit->offset[i] + item[i].size;
        if (end > fit->arena)
            return false;
        for (size_t j = 0; j < i; j++)
            if (item[i].size && item[j].size && item[i].birth <= item[j].death &&
                item[j].birth <= item[i].death && fit->offset[i] < fit->offset[j] + item[j].size &&
                fit->offset[j] < end)
                return false;
    }
    return true;
}

/* Cut a block of width x height into pieces, now along time, now along height: a problem whose
 * lower bound is height, everywhere, and which has a solution of that height. How many pieces. */
static inline size_t cut_block(struct dice *d, int32_t width, uint64_t height, size_t pieces,
                               struct plan_item *item)
{
    size_t n = 1;

    item[0] = (struct plan_item){height, 0, width - 1};
    for (int tries = 0; n < pieces && tries < 10000; tries++) {
        size_t i = roll(d, n);
        int32_t w = item[i].death - item[i].birth + 1;
        if (roll(d, 2) == 0 && w > 1) {
            int32_t at = item[i].birth + 1 + (int32_t)roll(d, (uint64_t)w - 1);
            item[n] = item[i];
            item[n++].birth = at;
            item[i].death = at - 1;
        } else if (item[i].size > 1) {
            uint64_t below = 1 + roll(d, item[i].size - 1);
            item[n] = item[i];
            item[n++].size = item[i].size - below;
            item[i].size = below;
        }
    }
    return n;
}

/* The least height there is, by dropping the items in every order. Up to eight of them. */
static inline void try_orders_from(const struct plan_item *item, size_t count, size_t placed,
                                   size_t order[8], uint64_t top[8], uint64_t height,
                                   uint64_t *best)
{
    if (height >= *best)
        return;
    if (placed == count) {
        *best = height;
        return;
    }
    for (size_t k = placed; k < count; k++) {
        size_t i = order[k];
        uint64_t at = 0;
        for (size_t q = 0; q < placed; q++) {
            size_t j = order[q];
            if (item[i].birth <= item[j].death && item[j].birth <= item[i].death && top[j] > at)
                at = top[j];
        }
        top[i] = at + item[i].size;
        order[k] = order[placed];
        order[placed] = i;
        try_orders_from(item, count, placed + 1, order, top, top[i] > height ? top[i] : height,
                        best);
        order[placed] = order[k];
        order[k] = i;
    }
}

static inline uint64_t least_height(const struct plan_item *item, size_t count)
{
    size_t order[8];
    uint64_t top[8], best = UINT64_MAX;
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    try_orders_from(item, count, 0, order, top, 0, &best);
    return best;
}

#endif
