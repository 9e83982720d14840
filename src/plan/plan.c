/* plan.c: from steps to a plan: the regions, and every value's offset in its own. */
#include "plan/plan.h"

#include <string.h>

#include "plan/liveness.h"
#include "plan/saved.h"
#include "plan/segments.h"

static bool round_up(uint64_t x, uint64_t align, uint64_t *out)
{
    uint64_t r;
    if (__builtin_add_overflow(x, align - 1, &r))
        return false;
    *out = r & ~(align - 1);
    return true;
}

static rlx_status too_big(struct diag *d, const struct steps *s, size_t value)
{
    return diag_fail(d, RLX_ERROR_LIMIT,
                     "value %zu (node %d) of %llu bytes takes its region past 64 bits", value,
                     s->value[value].node, (unsigned long long)s->value[value].bytes);
}

/* One after the other, after those whose place was given. */
static rlx_status lay_out(struct plan *p, struct steps *s, enum region region, struct diag *d)
{
    bool is_cut = region == REGION_ACTS || region == REGION_CONSTS;
    uint64_t end = 0, segment = is_cut ? p->segment : 0;

    for (size_t i = 0; i < s->value_count; i++) {
        const struct value *v = &s->value[i];
        uint64_t e;
        if (v->region != region || v->root != (int32_t)i || !(v->flags & VALUE_FIXED))
            continue;
        if (__builtin_add_overflow(v->offset, v->bytes, &e))
            return too_big(d, s, i);
        end = e > end ? e : end;
    }
    for (size_t i = 0; i < s->value_count; i++) {
        struct value *v = &s->value[i];
        if (v->region != region || v->root != (int32_t)i || (v->flags & VALUE_FIXED))
            continue;
        v->offset = 0;
        if (v->bytes == 0)
            continue;
        if (!segment_append(segment, p->align, v->bytes, &end, &v->offset))
            return too_big(d, s, i);
    }
    if (!round_up(end, p->align, &p->size[region]))
        return diag_fail(d, RLX_ERROR_LIMIT, "a region of %llu bytes does not fit 64 bits",
                         (unsigned long long)end);
    return RLX_OK;
}

/* Bytes of the activations if every root had its own. */
static rlx_status sum_roots(struct plan *p, const struct steps *s, struct diag *d)
{
    p->unshared = 0;
    for (size_t i = 0; i < s->value_count; i++) {
        uint64_t bytes;
        if (s->value[i].region != REGION_ACTS || s->value[i].root != (int32_t)i)
            continue;
        if (!round_up(s->value[i].bytes, p->align, &bytes) ||
            __builtin_add_overflow(p->unshared, bytes, &p->unshared))
            return too_big(d, s, i);
    }
    return RLX_OK;
}

/* Give every slot owner its interval, let plan_assign place them, and pass the offsets on to all
 * that share a slot. */
static rlx_status share_out(struct plan *p, struct steps *s, const struct root *root,
                            const struct plan_options *o, struct arena *scratch, struct diag *d)
{
    struct plan_item *item = arena_array(scratch, struct plan_item, s->value_count);
    size_t *slot = arena_array(scratch, size_t, s->value_count); /* the item of an owner */
    struct plan_fit fit;
    size_t count = 0;

    if (!item || !slot)
        return diag_no_memory(d, s->value_count * sizeof *item);
    for (size_t i = 0; i < s->value_count; i++) {
        const struct value *v = &s->value[i];
        if (v->region != REGION_ACTS || v->root != (int32_t)i || root[i].owner != (int32_t)i)
            continue;
        slot[i] = count;
        item[count++] = (struct plan_item){v->bytes, v->birth, root[i].until};
    }
    struct plan_problem problem = {
        .item = item, .count = count, .align = p->align, .budget = o->budget};
    TRY(plan_assign(&problem, scratch, &fit, d));
    if (p->segment && fit.arena > p->segment) {
        problem.segment = p->segment;
        TRY(plan_assign(&problem, scratch, &fit, d));
    }
    for (size_t i = 0; i < s->value_count; i++)
        if (s->value[i].region == REGION_ACTS && s->value[i].root == (int32_t)i)
            s->value[i].offset = fit.offset[slot[root[i].owner]];
    p->size[REGION_ACTS] = fit.arena;
    p->lower_bound = fit.lower_bound;
    p->peak = fit.peak;
    p->method = fit.method;
    return RLX_OK;
}

/* The lower bound assumes reuse, so it shows what doing without costs. */
static rlx_status share_nothing(struct plan *p, struct steps *s, const struct root *root,
                                const struct plan_options *o, struct arena *scratch, struct diag *d)
{
    struct plan_options greedy = *o;
    greedy.budget = PLAN_BUDGET_NONE;
    TRY(share_out(p, s, root, &greedy, scratch, d));
    p->method = "unshared";
    return lay_out(p, s, REGION_ACTS, d);
}

void plan_place_views(struct steps *s)
{
    for (size_t i = 0; i < s->value_count; i++) {
        struct value *v = &s->value[i];
        if (v->root == (int32_t)i)
            continue;
        v->offset = s->value[v->root].offset + v->view_offset; /* inside its root: checked */
        v->region = s->value[v->root].region;
    }
}

static rlx_status check_sizes(const struct plan *p, const struct steps *s, struct diag *d)
{
    for (size_t i = 0; i < s->value_count && p->segment; i++) {
        const struct value *v = &s->value[i];
        bool is_cut = v->region == REGION_ACTS || v->region == REGION_CONSTS;
        if (is_cut && v->root == (int32_t)i && v->bytes > p->segment)
            return diag_fail(d, RLX_ERROR_LIMIT,
                             "value %zu (node %d) takes %llu bytes; a buffer holds %llu", i,
                             v->node, (unsigned long long)v->bytes, (unsigned long long)p->segment);
    }
    return RLX_OK;
}

/* A region that is cut up has gaps below its cuts, which take up no memory. */
static rlx_status count_held(struct plan *p, struct arena *scratch, struct diag *d)
{
    static const enum region cut[] = {REGION_ACTS, REGION_CONSTS};

    memcpy(p->held, p->size, sizeof p->held);
    p->held[REGION_OUTSIDE] = 0;
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        uint64_t *bytes;
        size_t count;
        TRY(segment_bytes(p, cut[i], scratch, &bytes, &count, d));
        p->held[cut[i]] = 0;
        for (size_t k = 0; k < count; k++)
            p->held[cut[i]] += bytes[k]; /* at most its size */
    }
    return RLX_OK;
}

static rlx_status build(struct plan *p, struct steps *s, const struct plan_options *o,
                        struct arena *scratch, struct diag *d)
{
    struct root *root;

    TRY(segment_size(o->max_buffer, p->align, &p->segment, d));
    TRY(liveness_check(s, d));
    TRY(check_sizes(p, s, d));
    TRY(liveness_find(s, scratch, &root, d));
    if (!o->no_reuse && !o->no_in_place)
        p->in_place = liveness_in_place(s, root);
    TRY(lay_out(p, s, REGION_WEIGHTS, d));
    TRY(lay_out(p, s, REGION_CONSTS, d));
    TRY(lay_out(p, s, REGION_STATE, d));
    TRY(lay_out(p, s, REGION_OUTSIDE, d));
    TRY(sum_roots(p, s, d));
    if (o->saved)
        TRY(plan_restore(p, s, root, o, scratch, d));
    if (!p->restored)
        TRY((o->no_reuse ? share_nothing : share_out)(p, s, root, o, scratch, d));
    plan_place_views(s);
    TRY(count_held(p, scratch, d));
    return o->check_plan ? plan_check(p, scratch, d) : RLX_OK;
}

rlx_status plan_build(struct steps *s, const struct plan_options *o, struct arena *arena,
                      struct plan **out, struct diag *d)
{
    static const struct plan_options defaults = {0};
    struct plan *p = arena_new(arena, struct plan);
    struct arena scratch;

    if (!p)
        return diag_no_memory(d, sizeof *p);
    o = o ? o : &defaults;
    p->steps = s;
    p->align = o->align ? o->align : PLAN_ALIGN;
    if ((p->align & (p->align - 1)) != 0)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "alignment %llu is not a power of two",
                         (unsigned long long)p->align);
    arena_init(&scratch, arena->mem);
    rlx_status status = build(p, s, o, &scratch, d);
    arena_free(&scratch);
    if (status == RLX_OK)
        *out = p;
    return status;
}

rlx_status plan_from_fit(const struct plan_item *item, size_t count, const struct plan_fit *fit,
                         struct arena *arena, struct plan **out, struct diag *d)
{
    struct plan *p = arena_new(arena, struct plan);
    struct steps *s = arena_new(arena, struct steps);
    struct value *v = arena_array(arena, struct value, count);

    if (!p || !s || !v)
        return diag_no_memory(d, count * sizeof *v);
    if (count > INT32_MAX)
        return diag_fail(d, RLX_ERROR_LIMIT, "%zu buffers; a plan holds up to %d", count,
                         INT32_MAX);
    for (size_t i = 0; i < count; i++)
        v[i] = (struct value){.node = (int32_t)i,
                              .root = (int32_t)i,
                              .region = REGION_ACTS,
                              .bytes = item[i].size,
                              .offset = fit->offset[i],
                              .birth = item[i].birth,
                              .death = item[i].death,
                              .shares = -1};
    s->value = v;
    s->value_count = count;
    p->steps = s;
    p->align = 1;
    p->size[REGION_ACTS] = p->held[REGION_ACTS] = fit->arena;
    p->lower_bound = fit->lower_bound;
    p->unshared = fit->unshared;
    p->peak = fit->peak;
    p->method = fit->method;
    *out = p;
    return RLX_OK;
}
