/* liveness.c: when does each root live, and which outputs can reuse an input's bytes?
 *
 * Positions are the indices of the steps; step_count is the end, after the last of them. A root
 * lives from the first step that touches it to the last, both included, and what is read through a
 * view is read from its root. So the output of a step never has the bytes of its inputs, unless
 *
 *     step p:  y = f(x)      x dies at p, and f reads element i before it writes element i
 *
 * lets y have the slot of x. Chains of these share one slot. */
#include "plan/liveness.h"

#include <limits.h>

rlx_status liveness_check(const struct steps *s, struct diag *d)
{
    if (s->step_count >= INT32_MAX || s->value_count > INT32_MAX)
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "%zu steps and %zu values; the planner takes %d of each", s->step_count,
                         s->value_count, INT32_MAX - 1);
    for (size_t i = 0; i < s->value_count; i++) {
        const struct value *v = &s->value[i];
        if (v->root < 0 || (size_t)v->root >= s->value_count || s->value[v->root].root != v->root ||
            (unsigned)v->region >= REGION_COUNT)
            return diag_fail(d, RLX_ERROR_INTERNAL, "value %zu: its root %d is not a root", i,
                             v->root);
        const struct value *r = &s->value[v->root];
        uint64_t end;
        if (__builtin_add_overflow(v->view_offset, v->bytes, &end) || end > r->bytes)
            return diag_fail(d, RLX_ERROR_INTERNAL,
                             "value %zu: a view of %llu bytes at %llu leaves its root %d of %llu "
                             "bytes",
                             i, (unsigned long long)v->bytes, (unsigned long long)v->view_offset,
                             v->root, (unsigned long long)r->bytes);
        if (v->root == (int32_t)i && v->view_offset != 0)
            return diag_fail(d, RLX_ERROR_INTERNAL, "value %zu: a root with a view offset", i);
        if ((v->flags & VALUE_FIXED) && r->region == REGION_ACTS)
            return diag_fail(d, RLX_ERROR_INTERNAL,
                             "value %zu: a fixed offset among the activations", i);
    }
    for (size_t p = 0; p < s->step_count; p++) {
        const struct step *st = &s->step[p];
        if (st->first > s->operand_count || st->count > s->operand_count - st->first)
            return diag_fail(d, RLX_ERROR_INTERNAL, "step %zu: its operands are out of range", p);
        for (uint32_t i = st->first; i < st->first + st->count; i++)
            if (s->operand[i].value < 0 || (size_t)s->operand[i].value >= s->value_count)
                return diag_fail(d, RLX_ERROR_INTERNAL, "step %zu: value %d does not exist", p,
                                 s->operand[i].value);
    }
    return RLX_OK;
}

/* First and last step that touch each root; birth > death where none does. */
static void find_touches(struct steps *s)
{
    for (size_t i = 0; i < s->value_count; i++) {
        s->value[i].birth = INT32_MAX;
        s->value[i].death = -1;
    }
    for (size_t p = 0; p < s->step_count; p++) {
        const struct step *st = &s->step[p];
        for (uint32_t i = st->first; i < st->first + st->count; i++) {
            struct value *r = &s->value[s->value[s->operand[i].value].root];
            if (r->death < 0)
                r->birth = (int32_t)p;
            r->death = (int32_t)p;
        }
    }
}

rlx_status liveness_find(struct steps *s, struct arena *arena, struct root **out, struct diag *d)
{
    int32_t end = (int32_t)s->step_count;
    struct root *root = arena_array(arena, struct root, s->value_count);

    if (!root)
        return diag_no_memory(d, s->value_count * sizeof *root);
    find_touches(s);
    for (size_t i = 0; i < s->value_count; i++)
        root[s->value[i].root].flags |= s->value[i].flags;
    for (size_t i = 0; i < s->value_count; i++) {
        struct value *v = &s->value[i];
        v->shares = -1;
        if (v->root != (int32_t)i)
            continue;
        bool whole = (root[i].flags & (VALUE_INPUT | VALUE_PINNED)) || v->region != REGION_ACTS;
        if (v->death < 0) /* no step touches it */
            v->birth = v->death = 0;
        if (whole)
            v->birth = 0;
        if (whole || (root[i].flags & VALUE_OUTPUT))
            v->death = end;
        root[i].owner = (int32_t)i;
        root[i].until = v->death;
    }
    for (size_t i = 0; i < s->value_count; i++) {
        struct value *v = &s->value[i];
        v->birth = s->value[v->root].birth;
        v->death = s->value[v->root].death;
    }
    *out = root;
    return RLX_OK;
}

/* The one value the step writes afresh; -1 if there is not exactly one. Scratch does not count. */
static int32_t only_output(const struct steps *s, const struct step *st)
{
    int32_t found = -1;
    for (uint32_t i = st->first; i < st->first + st->count; i++) {
        int32_t v = s->operand[i].value;
        if (s->operand[i].role != ROLE_WRITE || (s->value[v].flags & VALUE_SCRATCH))
            continue;
        if (found >= 0)
            return -1;
        found = v;
    }
    return found;
}

static bool may_take(const struct steps *s, const struct root *root, size_t p, uint32_t operand,
                     int32_t out)
{
    const struct step *st = &s->step[p];
    const struct operand *o = &s->operand[operand];
    const struct value *in = &s->value[o->value], *r = &s->value[in->root];
    uint32_t kept = VALUE_INPUT | VALUE_OUTPUT | VALUE_PINNED | VALUE_FIXED | VALUE_SCRATCH;

    if (o->role != ROLE_READ || !o->in_place)
        return false;
    if (r->region != REGION_ACTS || (root[in->root].flags & kept) || r->death != (int32_t)p)
        return false;
    if (in->bytes != s->value[out].bytes || in->bytes != r->bytes)
        return false; /* exactly the whole root */
    for (uint32_t i = st->first; i < st->first + st->count; i++)
        if (i != operand && s->value[s->operand[i].value].root == in->root)
            return false; /* the step has it twice */
    return true;
}

uint32_t liveness_in_place(struct steps *s, struct root *root)
{
    uint32_t count = 0;

    for (size_t p = 0; p < s->step_count; p++) {
        const struct step *st = &s->step[p];
        int32_t out = only_output(s, st);
        if (out < 0)
            continue;
        struct value *v = &s->value[out];
        uint32_t kept = VALUE_INPUT | VALUE_PINNED | VALUE_FIXED;
        if (v->root != out || v->region != REGION_ACTS || v->bytes == 0 ||
            (root[out].flags & kept) || v->birth != (int32_t)p || v->shares >= 0)
            continue;
        for (uint32_t i = st->first; i < st->first + st->count; i++) {
            if (!may_take(s, root, p, i, out))
                continue;
            v->shares = s->value[s->operand[i].value].root;
            root[out].owner = root[v->shares].owner;
            root[root[out].owner].until = v->death;
            count++;
            break;
        }
    }
    return count;
}
