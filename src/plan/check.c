/* check.c: every rule a plan must keep, worked out again from the steps.
 *
 * Nothing here trusts what plan.c and liveness.c derived: lifetimes are compared with the operands
 * themselves, and bytes with bytes. Whatever is broken is a fault in rlx, so it is INTERNAL. */
#include <inttypes.h>
#include <stdlib.h>

#include "plan/report.h"

#define FAIL(...) return diag_fail(d, RLX_ERROR_INTERNAL, __VA_ARGS__)

struct range {
    uint64_t start, end;
};

static struct range bytes_of(const struct value *v)
{
    return (struct range){v->offset, v->offset + v->bytes}; /* no overflow: inside its region */
}

static bool overlap(const struct value *a, const struct value *b)
{
    struct range x = bytes_of(a), y = bytes_of(b);
    return a->bytes && b->bytes && a->region == b->region && x.start < y.end && y.start < x.end;
}

/* ---- each value by itself ---- */

static rlx_status check_value(const struct plan *p, int32_t i, struct diag *d)
{
    const struct steps *s = p->steps;
    const struct value *v = &s->value[i];

    if (v->root < 0 || (size_t)v->root >= s->value_count || s->value[v->root].root != v->root)
        FAIL("plan: the root %d of value %d is not a root", v->root, i);
    if ((unsigned)v->region >= REGION_COUNT || v->region != s->value[v->root].region)
        FAIL("plan: value %d and its root %d are in different regions", i, v->root);
    if (v->bytes == 0)
        return RLX_OK; /* no slot: nothing to hold it to */
    if (v->offset > p->size[v->region] || v->bytes > p->size[v->region] - v->offset)
        FAIL("plan: value %d, %" PRIu64 " bytes at %" PRIu64 ", leaves region %s of %" PRIu64
             " bytes",
             i, v->bytes, v->offset, report_region[v->region], p->size[v->region]);
    if (v->root == i) {
        if (v->offset % p->align != 0 && !(v->flags & VALUE_FIXED)) /* a fixed one is as given */
            FAIL("plan: value %d at %" PRIu64 " is not aligned to %" PRIu64, i, v->offset,
                 p->align);
        bool is_cut = p->segment && (v->region == REGION_ACTS || v->region == REGION_CONSTS);
        if (is_cut && v->offset / p->segment != (v->offset + v->bytes - 1) / p->segment)
            FAIL("plan: value %d, %" PRIu64 " bytes at %" PRIu64 ", lies across the end of a buffer"
                 " of %" PRIu64 " bytes",
                 i, v->bytes, v->offset, p->segment);
        return RLX_OK;
    }
    const struct value *r = &s->value[v->root];
    if (v->offset < r->offset || v->offset - r->offset != v->view_offset ||
        v->view_offset > r->bytes || v->bytes > r->bytes - v->view_offset)
        FAIL("plan: view %d, %" PRIu64 " bytes at %" PRIu64 ", is not inside its root %d, %" PRIu64
             " bytes at %" PRIu64,
             i, v->bytes, v->offset, v->root, r->bytes, r->offset);
    return RLX_OK;
}

static rlx_status check_life(const struct plan *p, int32_t i, struct diag *d)
{
    const struct steps *s = p->steps;
    const struct value *v = &s->value[i], *r = &s->value[v->root];
    int32_t end = (int32_t)s->step_count;

    if (s->step_count == 0) /* bare intervals */
        return RLX_OK;
    if (v->birth != r->birth || v->death != r->death || v->birth > v->death)
        FAIL("plan: value %d lives in [%d, %d], its root %d in [%d, %d]", i, v->birth, v->death,
             v->root, r->birth, r->death);
    bool whole = (v->flags & (VALUE_INPUT | VALUE_PINNED)) || v->region != REGION_ACTS;
    if (whole && v->birth != 0)
        FAIL("plan: value %d is there before the first step but born at %d", i, v->birth);
    if ((whole || (v->flags & VALUE_OUTPUT)) && v->death != end)
        FAIL("plan: value %d is needed after the last step but dies at %d", i, v->death);
    return RLX_OK;
}

/* ---- steps ---- */

/* A state that is read and written at the same bytes. */
static bool updates_state(const struct value *to, const struct value *from)
{
    return (to->flags & VALUE_STORED) && to->root == from->root && to->offset == from->offset &&
           to->bytes == from->bytes;
}

static rlx_status check_step(const struct plan *p, int32_t at, struct diag *d)
{
    const struct steps *s = p->steps;
    const struct step *st = &s->step[at];

    for (uint32_t i = st->first; i < st->first + st->count; i++) {
        const struct operand *a = &s->operand[i];
        const struct value *va = &s->value[a->value];
        if (at < va->birth || at > va->death)
            FAIL("plan: step %d (%s) uses value %d, which lives in [%d, %d]", at,
                 st->name ? st->name : "?", a->value, va->birth, va->death);
        if (a->role != ROLE_WRITE)
            continue;
        for (uint32_t j = st->first; j < st->first + st->count; j++) {
            const struct operand *b = &s->operand[j];
            const struct value *vb = &s->value[b->value];
            if (i == j || !overlap(va, vb))
                continue;
            if (b->role == ROLE_READ && b->in_place &&
                ((va->shares >= 0 && va->shares == vb->root) || updates_state(va, vb)))
                continue;
            FAIL("plan: step %d (%s) writes value %d over value %d", at, st->name ? st->name : "?",
                 a->value, b->value);
        }
    }
    return RLX_OK;
}

/* ---- roots against each other ---- */

/* b took the place of a: both live at the step that did it, and only there. */
static bool handed_over(const struct steps *s, int32_t a, int32_t b)
{
    return s->value[b].shares == a && s->value[a].death == s->value[b].birth;
}

static bool same_given_place(const struct value *a, const struct value *b)
{
    return (a->flags & VALUE_FIXED) && (b->flags & VALUE_FIXED) && a->offset == b->offset;
}

struct birth {
    int32_t position, value;
};

static int by_birth(const void *a, const void *b)
{
    const struct birth *x = a, *y = b;
    if (x->position != y->position)
        return x->position < y->position ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

static rlx_status check_pairs(const struct plan *p, struct arena *scratch, struct diag *d)
{
    const struct steps *s = p->steps;
    struct birth *root = arena_array(scratch, struct birth, s->value_count);
    int32_t *alive = arena_array(scratch, int32_t, s->value_count);
    size_t count = 0, living = 0;

    if (!root || !alive)
        return diag_no_memory(d, s->value_count * sizeof *root);
    for (size_t i = 0; i < s->value_count; i++)
        if (s->value[i].root == (int32_t)i && s->value[i].bytes > 0)
            root[count++] = (struct birth){s->value[i].birth, (int32_t)i};
    qsort(root, count, sizeof *root, by_birth);
    for (size_t i = 0; i < count; i++) {
        int32_t b = root[i].value;
        size_t kept = 0;
        for (size_t j = 0; j < living; j++) {
            int32_t a = alive[j];
            const struct value *va = &s->value[a], *vb = &s->value[b];
            if (va->death < vb->birth)
                continue;
            alive[kept++] = a;
            if (overlap(va, vb) && !handed_over(s, a, b) && !handed_over(s, b, a) &&
                !same_given_place(va, vb))
                FAIL("plan: values %d and %d share bytes: [%" PRIu64 ", %" PRIu64
                     ") alive in [%d, %d] and [%" PRIu64 ", %" PRIu64 ") alive in [%d, %d]",
                     a, b, va->offset, va->offset + va->bytes, va->birth, va->death, vb->offset,
                     vb->offset + vb->bytes, vb->birth, vb->death);
        }
        living = kept;
        alive[living++] = b;
    }
    return RLX_OK;
}

rlx_status plan_check(const struct plan *p, struct arena *scratch, struct diag *d)
{
    const struct steps *s = p->steps;

    for (size_t i = 0; i < s->value_count; i++)
        TRY(check_value(p, (int32_t)i, d));
    for (size_t i = 0; i < s->value_count; i++)
        TRY(check_life(p, (int32_t)i, d));
    for (size_t i = 0; i < s->step_count; i++)
        TRY(check_step(p, (int32_t)i, d));
    return check_pairs(p, scratch, d);
}
