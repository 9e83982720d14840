/* build.h: put steps together by hand, for the tests of plan_build. */
#ifndef TESTS_PLAN_BUILD_H
#define TESTS_PLAN_BUILD_H

#include "plan/plan.h"

enum { BUILD_MAX = 2048 };

struct build {
    struct value value[BUILD_MAX];
    struct operand operand[4 * BUILD_MAX];
    struct step step[BUILD_MAX];
    struct steps steps;
};

static inline void build_init(struct build *b)
{
    b->steps = (struct steps){.value = b->value, .operand = b->operand, .step = b->step};
}

static inline int32_t add_value(struct build *b, uint64_t bytes, uint32_t flags)
{
    int32_t id = (int32_t)b->steps.value_count++;
    b->value[id] = (struct value){.node = flags & VALUE_SCRATCH ? -1 : id,
                                  .root = id,
                                  .region = REGION_ACTS,
                                  .flags = flags,
                                  .bytes = bytes,
                                  .offset = UINT64_MAX,
                                  .birth = -77,
                                  .death = -77,
                                  .shares = -77};
    return id;
}

static inline int32_t add_view(struct build *b, int32_t root, uint64_t at, uint64_t bytes)
{
    int32_t id = add_value(b, bytes, 0);
    b->value[id].root = root;
    b->value[id].region = b->value[root].region;
    b->value[id].view_offset = at;
    return id;
}

static inline int32_t add_in(struct build *b, enum region region, uint64_t bytes, uint32_t flags)
{
    int32_t id = add_value(b, bytes, flags);
    b->value[id].region = region;
    return id;
}

static inline void begin_step(struct build *b, const char *name)
{
    b->step[b->steps.step_count++] =
        (struct step){.name = name, .first = (uint32_t)b->steps.operand_count};
}

static inline void add_operand(struct build *b, int32_t value, enum step_role role, bool in_place)
{
    b->operand[b->steps.operand_count++] =
        (struct operand){.value = value, .role = (uint8_t)role, .in_place = in_place};
    b->step[b->steps.step_count - 1].count++;
}

/* out = name(in), in place if it may be. */
static inline void add_unary(struct build *b, const char *name, int32_t in, int32_t out,
                             bool in_place)
{
    begin_step(b, name);
    add_operand(b, in, ROLE_READ, in_place);
    add_operand(b, out, ROLE_WRITE, false);
}

static inline void add_binary(struct build *b, const char *name, int32_t x, int32_t y, int32_t out,
                              bool in_place)
{
    begin_step(b, name);
    add_operand(b, x, ROLE_READ, in_place);
    add_operand(b, y, ROLE_READ, in_place);
    add_operand(b, out, ROLE_WRITE, false);
}

#endif
