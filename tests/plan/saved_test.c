/* saved_test.c: offsets of an earlier plan: taken over for the same steps, refused for all else. */
#include <string.h>

#include "build.h"
#include "test.h"

/* x -> a -> b (in place) -> c, a view of c, scratch, a constant: something of everything. */
static void make(struct build *b)
{
    build_init(b);
    int32_t x = add_value(b, 400, VALUE_INPUT), a = add_value(b, 400, 0), y = add_value(b, 400, 0);
    int32_t c = add_value(b, 1000, VALUE_OUTPUT), view = add_view(b, c, 128, 64);
    int32_t k = add_in(b, REGION_CONSTS, 100, VALUE_PINNED);
    int32_t last = add_value(b, 64, VALUE_OUTPUT), scratch = add_value(b, 4096, VALUE_SCRATCH);

    add_binary(b, "add", x, k, a, false);
    add_unary(b, "neg", a, y, true);
    add_unary(b, "exp", y, c, false);
    add_operand(b, scratch, ROLE_WRITE, false);
    add_unary(b, "sin", view, last, false);
}

struct kept {
    struct build from; /* what was planned */
    struct plan_saved saved;
    struct arena arena;
};

static bool keep(struct test *t, struct kept *k, const struct plan_options *o)
{
    struct plan *p;

    arena_init(&k->arena, mem_default());
    make(&k->from);
    if (!expect_ok(t, plan_build(&k->from.steps, o, &k->arena, &p, NULL)))
        return false;
    k->saved = (struct plan_saved){.steps = &k->from.steps, .align = p->align};
    memcpy(k->saved.size, p->size, sizeof p->size);
    return true;
}

static struct plan *again(struct test *t, struct kept *k, struct build *b, struct plan_options o)
{
    struct plan *p = NULL;

    make(b);
    o.saved = &k->saved;
    o.check_plan = true;
    expect_ok(t, plan_build(&b->steps, &o, &k->arena, &p, NULL));
    return p;
}

TEST(plan_saved, the_same_steps_get_the_same_offsets)
{
    static struct kept k;
    static struct build b;
    struct plan *fresh, *p;

    if (!keep(t, &k, NULL))
        return;
    make(&b);
    require_ok(t, plan_build(&b.steps, NULL, &k.arena, &fresh, NULL));
    p = again(t, &k, &b, (struct plan_options){0});
    require(t, p);
    expect(t, p->restored);
    expect_str(t, p->misfit, "");
    expect_str(t, p->method, "saved");
    for (size_t i = 0; i < b.steps.value_count; i++)
        expect_eq_u64(t, b.value[i].offset, k.from.value[i].offset);
    expect_eq_u64(t, p->size[REGION_ACTS], fresh->size[REGION_ACTS]);
    expect_eq_u64(t, p->lower_bound, fresh->lower_bound);
    expect_eq_u64(t, p->unshared, fresh->unshared);
    expect_eq(t, p->peak, fresh->peak);
    expect_eq(t, p->in_place, fresh->in_place);
    expect(t, !fresh->restored);
    arena_free(&k.arena);
}

/* An unusual but sound plan is taken as it is: the offsets are really the saved ones. */
TEST(plan_saved, an_unshared_plan_is_kept)
{
    static struct kept k;
    static struct build b;

    if (!keep(t, &k, &(struct plan_options){.no_reuse = true}))
        return;
    struct plan *p = again(t, &k, &b, (struct plan_options){.no_reuse = true});
    require(t, p);
    expect(t, p->restored);
    expect_eq_u64(t, p->size[REGION_ACTS], p->unshared);
    arena_free(&k.arena);
}

/* Every single field of it, changed: either it was refused and planned anew, or nothing could be
 * distinguished, because the plan passed its check. */
TEST(plan_saved, whatever_is_off_is_planned_anew)
{
    static struct kept k;
    static struct build b;
    struct plan *p;

    if (!keep(t, &k, NULL))
        return;
    p = again(t, &k, &b, (struct plan_options){.align = 256});
    require(t, p);
    expect(t, !p->restored);
    expect_contains(t, p->misfit, "256");

#define OFF(field, value)                               \
    do {                                                \
        __typeof__(field) before = (field);             \
        (field) = (value);                              \
        test_note(t, "%s", #field);                     \
        p = again(t, &k, &b, (struct plan_options){0}); \
        expect(t, p && !p->restored && p->misfit[0]);   \
        (field) = before;                               \
    } while (0)
    OFF(k.from.value[1].node, 7);
    OFF(k.from.value[1].root, 0);
    OFF(k.from.value[1].region, REGION_CONSTS);
    OFF(k.from.value[1].flags, VALUE_OUTPUT);
    OFF(k.from.value[1].bytes, 401);
    OFF(k.from.value[1].offset, k.from.value[1].offset + 64); /* not where its heir is */
    OFF(k.from.value[3].offset, k.from.value[0].offset);      /* over an input */
    OFF(k.from.value[3].offset, UINT64_MAX - 10);
    OFF(k.from.value[3].offset, k.from.value[3].offset + 1);
    OFF(k.from.value[5].offset, 64); /* a constant */
    OFF(k.from.step[0].name, "sub");
    OFF(k.from.step[0].name, NULL);
    OFF(k.from.step[0].node, 3);
    OFF(k.from.step[0].first, 1);
    OFF(k.from.step[0].count, 2);
    OFF(k.from.operand[0].value, 2);
    OFF(k.from.operand[0].role, ROLE_UPDATE);
    OFF(k.from.operand[0].in_place, true);
    OFF(k.saved.size[REGION_ACTS], k.saved.size[REGION_ACTS] + 64);
    OFF(k.saved.size[REGION_CONSTS], 0);
    OFF(k.from.steps.value_count, 7);
    OFF(k.from.steps.step_count, 3);
    OFF(k.from.steps.operand_count, 3);
#undef OFF
    test_note(t, "%s", "as it was");
    p = again(t, &k, &b, (struct plan_options){0});
    expect(t, p && p->restored);
    arena_free(&k.arena);
}
