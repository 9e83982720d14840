/* check_test.c: every rule of plan_check, broken one at a time. */
#include <stdlib.h>

#include "build.h"
#include "test.h"

/* 0 x input, 1 a, 2 its view, 3 b in place of a, 4 y output, 5 scratch, 6 w fixed, 7 v fixed */
enum { X, A, VIEW, B, Y, SCRATCH, W, V, VALUES };

struct broken {
    struct build b;
    struct arena arena;
    struct diag diag;
    struct plan *plan;
};

static struct broken *sound_plan(struct test *t)
{
    struct broken *k = calloc(1, sizeof *k);
    struct plan_options o = {.align = 64, .check_plan = true};
    struct build *b = &k->b;

    build_init(b);
    add_value(b, 64, VALUE_INPUT);
    add_value(b, 256, 0);
    add_view(b, A, 64, 64);
    add_value(b, 256, 0);
    add_value(b, 64, VALUE_OUTPUT);
    add_value(b, 128, VALUE_SCRATCH);
    add_in(b, REGION_WEIGHTS, 64, VALUE_PINNED | VALUE_FIXED);
    add_in(b, REGION_WEIGHTS, 64, VALUE_PINNED | VALUE_FIXED);
    b->value[W].offset = 0;
    b->value[V].offset = 64;
    add_binary(b, "make", X, W, A, false);
    add_operand(b, SCRATCH, ROLE_WRITE, false);
    begin_step(b, "peek");
    add_operand(b, VIEW, ROLE_READ, false);
    add_unary(b, "relu", A, B, true);
    add_unary(b, "sum", B, Y, false);
    arena_init(&k->arena, mem_default());
    diag_init(&k->diag, "plan");
    expect_ok(t, plan_build(&b->steps, &o, &k->arena, &k->plan, &k->diag));
    expect_eq(t, b->value[B].shares, A);
    return k;
}

/* The plan now breaks a rule, and the message says so. */
static void broken(struct test *t, struct broken *k, const char *part)
{
    expect_status(t, plan_check(k->plan, &k->arena, &k->diag), RLX_ERROR_INTERNAL);
    expect_error(t, RLX_ERROR_INTERNAL, part, &k->diag.first);
    arena_free(&k->arena);
    free(k);
}

TEST(plan_check, a_sound_plan_passes)
{
    struct broken *k = sound_plan(t);
    expect_ok(t, plan_check(k->plan, &k->arena, &k->diag));
    k->b.value[V].offset = k->b.value[W].offset; /* given so: tied weights */
    expect_ok(t, plan_check(k->plan, &k->arena, &k->diag));
    arena_free(&k->arena);
    free(k);
}

/* A weight store is laid out before anyone knows what a session wants slots aligned to. */
TEST(plan_check, a_given_place_need_not_be_aligned)
{
    struct broken *k = sound_plan(t);

    k->b.value[V].offset = 32;
    k->b.value[V].bytes = 16;
    k->b.value[W].bytes = 32;
    expect_ok(t, plan_check(k->plan, &k->arena, &k->diag));
    arena_free(&k->arena);
    free(k);
}

TEST(plan_check, offsets_are_aligned)
{
    struct broken *k = sound_plan(t);
    k->b.value[Y].offset += 4;
    k->plan->size[REGION_ACTS] += 64;
    broken(t, k, "value 4 at");
}

TEST(plan_check, slots_are_inside_their_region)
{
    struct broken *k = sound_plan(t);
    k->plan->size[REGION_ACTS] -= 1;
    broken(t, k, "leaves region acts");

    k = sound_plan(t);
    k->b.value[X].offset = UINT64_MAX - 63; /* the end wraps */
    broken(t, k, "value 0");

    k = sound_plan(t);
    k->plan->size[REGION_WEIGHTS] = 64;
    broken(t, k, "leaves region weights");
}

TEST(plan_check, views_are_inside_their_root)
{
    struct broken *k = sound_plan(t);
    k->b.value[VIEW].offset += 1;
    broken(t, k, "view 2");

    k = sound_plan(t);
    k->b.value[VIEW].bytes = 193;
    broken(t, k, "view 2");

    k = sound_plan(t);
    k->b.value[VIEW].region = REGION_STATE;
    broken(t, k, "different regions");

    k = sound_plan(t);
    k->b.value[VIEW].root = VIEW + 900;
    broken(t, k, "not a root");
}

TEST(plan_check, nothing_is_used_before_birth_or_after_death)
{
    struct broken *k = sound_plan(t);
    k->b.value[A].death = k->b.value[VIEW].death = 1;
    broken(t, k, "step 2 (relu) uses value 1, which lives in [0, 1]");

    k = sound_plan(t);
    k->b.value[B].birth = 3;
    broken(t, k, "step 2 (relu) uses value 3");

    k = sound_plan(t);
    k->b.value[VIEW].death = 1;
    broken(t, k, "its root 1");
}

TEST(plan_check, what_outlives_the_run_is_alive_at_its_ends)
{
    struct broken *k = sound_plan(t);
    k->b.value[X].birth = 1;
    broken(t, k, "before the first step");

    k = sound_plan(t);
    k->b.value[Y].death = 3;
    broken(t, k, "value 4 is needed after the last step but dies at 3");
}

TEST(plan_check, no_two_alive_at_once_share_bytes)
{
    struct broken *k = sound_plan(t);
    k->b.value[Y].offset = k->b.value[X].offset;
    broken(t, k, "values 0 and 4 share bytes");

    k = sound_plan(t);
    k->b.value[V].flags = VALUE_PINNED; /* no longer given */
    k->b.value[V].offset = 0;
    broken(t, k, "values 6 and 7 share bytes");
}

TEST(plan_check, an_output_over_an_input_must_be_declared)
{
    struct broken *k = sound_plan(t);
    k->b.value[B].shares = -1;
    broken(t, k, "step 2 (relu) writes value 3 over value 1");

    k = sound_plan(t); /* declared, but the operand does not allow it */
    k->b.operand[k->b.step[2].first].in_place = false;
    broken(t, k, "writes value 3 over value 1");

    k = sound_plan(t); /* in place of one that lives on */
    k->b.value[A].death = k->b.value[VIEW].death = 3;
    broken(t, k, "values 1 and 3 share bytes");
}

/* A step that reads a state and computes all of it anew: 0 x, 1 the state, 2 its new content. */
static struct broken *stored(struct test *t, bool in_place)
{
    struct broken *k = calloc(1, sizeof *k);
    struct plan_options o = {.align = 64};
    struct build *b = &k->b;

    build_init(b);
    add_value(b, 64, VALUE_INPUT);
    add_in(b, REGION_STATE, 64, VALUE_PINNED | VALUE_FIXED);
    b->value[1].offset = 0;
    add_view(b, 1, 0, 64);
    b->value[2].flags = VALUE_STORED;
    begin_step(b, "add");
    add_operand(b, 0, ROLE_READ, false);
    add_operand(b, 1, ROLE_READ, in_place);
    add_operand(b, 2, ROLE_WRITE, false);
    arena_init(&k->arena, mem_default());
    diag_init(&k->diag, "plan");
    expect_ok(t, plan_build(&b->steps, &o, &k->arena, &k->plan, &k->diag));
    return k;
}

TEST(plan_check, a_state_is_written_over_what_is_read_only_in_place)
{
    struct broken *k = stored(t, true);
    expect_ok(t, plan_check(k->plan, &k->arena, &k->diag));
    k->b.value[2].flags = 0;
    broken(t, k, "writes value 2 over value 1");

    broken(t, stored(t, false), "writes value 2 over value 1");

    k = stored(t, true);
    k->b.value[2].bytes = 32; /* not all of it */
    broken(t, k, "writes value 2 over value 1");
}
