/* saved.c: the offsets of an earlier plan, for the same steps.
 *
 * They may come from an untrusted file. So nothing is read from them until the steps have been
 * found equal one by one, lifetimes and in-place pairs are those found again, and the result has to
 * pass plan_check like any plan of our own. */
#include "plan/saved.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MISFIT(...)                                         \
    do {                                                    \
        snprintf(p->misfit, sizeof p->misfit, __VA_ARGS__); \
        return false;                                       \
    } while (0)

/* ---- are these the steps it was made for? ---- */

static bool same_values(struct plan *p, const struct steps *s, const struct steps *saved)
{
    if (s->value_count != saved->value_count)
        MISFIT("there are %zu values, not %zu", s->value_count, saved->value_count);
    for (size_t i = 0; i < s->value_count; i++) {
        const struct value *a = &s->value[i], *b = &saved->value[i];
        if (a->node != b->node || a->root != b->root || a->region != b->region ||
            a->flags != b->flags || a->bytes != b->bytes)
            MISFIT("value %zu is different", i);
        if (a->region != REGION_ACTS && a->root == (int32_t)i && a->offset != b->offset)
            MISFIT("value %zu lies at %" PRIu64 ", not at %" PRIu64, i, a->offset, b->offset);
    }
    return true;
}

static bool same_steps(struct plan *p, const struct steps *s, const struct steps *saved)
{
    if (s->step_count != saved->step_count || s->operand_count != saved->operand_count)
        MISFIT("there are %zu steps and %zu operands, not %zu and %zu", s->step_count,
               s->operand_count, saved->step_count, saved->operand_count);
    for (size_t i = 0; i < s->step_count; i++) {
        const struct step *a = &s->step[i], *b = &saved->step[i];
        if (strcmp(a->name ? a->name : "", b->name ? b->name : "") != 0 || a->node != b->node ||
            a->first != b->first || a->count != b->count)
            MISFIT("step %zu is different", i);
    }
    for (size_t i = 0; i < s->operand_count; i++) {
        const struct operand *a = &s->operand[i], *b = &saved->operand[i];
        if (a->value != b->value || a->role != b->role || a->in_place != b->in_place)
            MISFIT("operand %zu is different", i);
    }
    return true;
}

/* ---- do the offsets keep the rules? ---- */

static bool take_offsets(struct plan *p, struct steps *s, const struct root *root,
                         const struct plan_saved *saved)
{
    uint64_t end = 0, most = 0; /* as much as a plan of our own might take */

    for (size_t i = 0; i < s->value_count; i++) {
        struct value *v = &s->value[i];
        uint64_t e;
        if (v->region != REGION_ACTS || v->root != (int32_t)i)
            continue;
        v->offset = v->bytes ? saved->steps->value[i].offset : 0;
        /* A value in place of another has exactly its bytes, not just some of them. */
        if (v->bytes && v->offset != saved->steps->value[root[i].owner].offset)
            MISFIT("value %zu is not where the one it takes over is", i);
        if (__builtin_add_overflow(v->offset, v->bytes, &e) || e > UINT64_MAX - p->align)
            MISFIT("value %zu at %" PRIu64 " leaves 64 bits", i, v->offset);
        if (__builtin_add_overflow(most, p->segment, &most))
            most = UINT64_MAX;
        end = v->bytes && e > end ? e : end;
    }
    p->size[REGION_ACTS] = (end + p->align - 1) & ~(p->align - 1);
    if (p->size[REGION_ACTS] > p->unshared &&
        (p->size[REGION_ACTS] <= p->segment || p->size[REGION_ACTS] > most))
        MISFIT("it takes %" PRIu64 " bytes, and %" PRIu64 " with nothing shared",
               p->size[REGION_ACTS], p->unshared);
    for (int r = 0; r < REGION_COUNT; r++)
        if (p->size[r] != saved->size[r])
            MISFIT("region %d takes %" PRIu64 " bytes, not %" PRIu64, r, p->size[r],
                   saved->size[r]);
    return true;
}

/* A plan that was cut for other buffers takes more room than it has to, or lies across cuts. Where
 * one buffer is enough, it is as good as any. */
static bool same_buffers(struct plan *p, const struct plan_saved *saved, uint64_t max_buffer)
{
    uint64_t bytes = saved->size[REGION_ACTS], was = saved->max_buffer;

    if (was == max_buffer || ((!was || bytes <= was) && (!max_buffer || bytes <= max_buffer)))
        return true;
    MISFIT("it was planned for buffers of %" PRIu64 " bytes, not %" PRIu64 " (0: any)", was,
           max_buffer);
}

/* The most bytes alive at one position, found again. No sum overflows: unshared did not. */
static rlx_status find_bound(struct plan *p, const struct steps *s, const struct root *root,
                             struct arena *scratch, struct diag *d)
{
    size_t positions = s->step_count + 2;
    uint64_t *born = arena_array(scratch, uint64_t, positions);
    uint64_t *dead = arena_array(scratch, uint64_t, positions);
    uint64_t live = 0;

    if (!born || !dead)
        return diag_no_memory(d, positions * sizeof *born);
    for (size_t i = 0; i < s->value_count; i++) {
        const struct value *v = &s->value[i];
        uint64_t bytes = (v->bytes + p->align - 1) & ~(p->align - 1);
        if (v->region != REGION_ACTS || v->root != (int32_t)i || root[i].owner != (int32_t)i)
            continue;
        born[v->birth] += bytes;
        dead[root[i].until + 1] += bytes;
    }
    p->lower_bound = 0;
    for (size_t at = 0; at < positions; at++) {
        live = live + born[at] - dead[at];
        if (live <= p->lower_bound)
            continue;
        p->lower_bound = live;
        p->peak = (int32_t)at;
    }
    return RLX_OK;
}

rlx_status plan_restore(struct plan *p, struct steps *s, const struct root *root,
                        const struct plan_options *o, struct arena *scratch, struct diag *d)
{
    const struct plan_saved *saved = o->saved;
    struct diag own;

    if (saved->align != p->align) {
        snprintf(p->misfit, sizeof p->misfit, "slots are aligned to %" PRIu64 ", not %" PRIu64,
                 p->align, saved->align);
        return RLX_OK;
    }
    if (!same_buffers(p, saved, o->max_buffer) || !same_values(p, s, saved->steps) ||
        !same_steps(p, s, saved->steps) || !take_offsets(p, s, root, saved))
        return RLX_OK;
    plan_place_views(s);
    diag_init(&own, "plan");
    rlx_status status = plan_check(p, scratch, &own);
    if (status == RLX_ERROR_MEMORY)
        return diag_fail(d, status, "%s", own.first.message);
    if (status != RLX_OK) {
        snprintf(p->misfit, sizeof p->misfit, "%.100s", own.first.message);
        return RLX_OK;
    }
    TRY(find_bound(p, s, root, scratch, d));
    p->method = "saved";
    p->restored = true;
    return RLX_OK;
}
