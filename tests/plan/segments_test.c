/* segments_test.c: regions that are cut into several buffers. */
#include "plan/segments.h"

#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "test.h"

struct fixture {
    struct build b;
    struct arena arena;
    struct diag diag;
    struct plan *plan;
    struct plan_options options;
};

static struct fixture *begin(uint64_t max_buffer)
{
    struct fixture *f = calloc(1, sizeof *f);
    build_init(&f->b);
    arena_init(&f->arena, mem_default());
    diag_init(&f->diag, "plan");
    f->options = (struct plan_options){.check_plan = true, .max_buffer = max_buffer};
    return f;
}

static rlx_status build(struct fixture *f)
{
    return plan_build(&f->b.steps, &f->options, &f->arena, &f->plan, &f->diag);
}

static void end(struct fixture *f)
{
    arena_free(&f->arena);
    free(f);
}

/* A chain of steps that each read the two values before. */
static void add_chain(struct build *b, size_t count, uint64_t (*bytes)(size_t i))
{
    int32_t x = add_value(b, bytes(0), VALUE_INPUT), y = x;

    for (size_t i = 1; i < count; i++) {
        int32_t z = add_value(b, bytes(i), i + 1 == count ? VALUE_OUTPUT : 0);
        add_binary(b, "add", x, y, z, true);
        x = y;
        y = z;
    }
}

static uint64_t hash(size_t i)
{
    return (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) >> 40;
}

static uint64_t mixed(size_t i)
{
    return 1 + hash(i) % 4096;
}

static uint64_t gigabytes(size_t i)
{
    return (UINT64_C(2) << 30) + i;
}

TEST(plan_segments, appending_skips_what_would_cross)
{
    uint64_t at, stop = 0;

    expect(t, segment_append(1024, 64, 600, &stop, &at) && at == 0 && stop == 600);
    expect(t, segment_append(1024, 64, 384, &stop, &at) && at == 640 && stop == 1024);
    expect(t, segment_append(1024, 64, 1024, &stop, &at) && at == 1024 && stop == 2048);
    expect(t, segment_append(1024, 64, 1, &stop, &at) && at == 2048 && stop == 2049);
    expect(t, segment_append(1024, 64, 961, &stop, &at) && at == 3072);
    expect(t, segment_append(0, 64, 1 << 20, &stop, &at) && at == 4096);
    stop = UINT64_MAX - 100;
    expect(t, !segment_append(1024, 64, 90, &stop, &at));
}

TEST(plan_segments, the_tightest_piece_of_a_gap)
{
    static const struct {
        uint64_t from, to, size, at, room;
    } row[] = {
        {100, 300, 200, 100, 200},  /* no cut in it */
        {100, 300, 201, 0, 0},      /* too small */
        {900, 1200, 100, 900, 100}, /* 100 before the cut at 1000, 200 after it */
        {900, 1200, 101, 1000, 200},    {900, 1200, 201, 0, 0}, /* 300, but in two pieces */
        {900, 3100, 60, 900, 100},      {950, 3100, 60, 3000, 100},
        {900, 3100, 500, 1000, 1000}, /* a whole one between */
        {1000, 2000, 1000, 1000, 1000}, {500, 500, 1, 0, 0},
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct segment_gap g = {.from = row[i].from, .to = row[i].to};
        bool fits = segment_fit(1000, row[i].size, &g);
        expect_eq(t, fits, row[i].room != 0);
        if (fits)
            expect(t, g.at == row[i].at && g.room == row[i].room);
    }
    expect_eq_u64(t, segment_above(1000, 100, 900), 900);
    expect_eq_u64(t, segment_above(1000, 101, 900), 1000);
    expect_eq_u64(t, segment_above(1000, 1000, 1000), 1000);
}

TEST(plan_segments, nothing_lies_across_a_cut)
{
    static const uint64_t limit[] = {4096, 5000, 8192, 20000};

    for (size_t i = 0; i < 4; i++) {
        struct fixture *f = begin(limit[i]);
        uint64_t *bytes, sum = 0;
        size_t count;
        add_chain(&f->b, 300, mixed);
        for (int k = 0; k < 20; k++)
            add_in(&f->b, REGION_CONSTS, mixed((size_t)k), VALUE_PINNED);
        require_ok(t, build(f)); /* which checks it */
        expect_eq_u64(t, f->plan->segment, limit[i] / 64 * 64);
        for (int r = REGION_CONSTS; r <= REGION_ACTS; r++) {
            require_ok(t,
                       segment_bytes(f->plan, (enum region)r, &f->arena, &bytes, &count, &f->diag));
            expect_eq_u64(t, count, (f->plan->size[r] - 1) / f->plan->segment + 1);
            for (size_t k = 0; k < count; k++)
                expect(t, bytes[k] > 0 && bytes[k] <= limit[i]);
        }
        require_ok(t, segment_bytes(f->plan, REGION_ACTS, &f->arena, &bytes, &count, &f->diag));
        for (size_t k = 0; k < count; k++)
            sum += bytes[k];
        expect(t, sum >= f->plan->lower_bound && sum < 2 * f->plan->lower_bound);
        end(f);
    }
}

TEST(plan_segments, what_fits_in_one_buffer_is_planned_as_ever)
{
    struct fixture *free_of_it = begin(0), *bound;

    add_chain(&free_of_it->b, 100, mixed);
    require_ok(t, build(free_of_it));
    bound = begin(free_of_it->plan->size[REGION_ACTS]);
    add_chain(&bound->b, 100, mixed);
    require_ok(t, build(bound));
    for (size_t i = 0; i < 100; i++)
        expect_eq_u64(t, bound->b.value[i].offset, free_of_it->b.value[i].offset);
    expect_eq_u64(t, segment_count(bound->plan->segment, bound->plan->size[REGION_ACTS]), 1);
    end(bound);
    end(free_of_it);
}

TEST(plan_segments, no_reuse_is_cut_as_well)
{
    struct fixture *f = begin(4096);

    f->options.no_reuse = true;
    add_chain(&f->b, 100, mixed);
    require_ok(t, build(f));
    expect(t, f->plan->size[REGION_ACTS] > f->plan->unshared / 2);
    end(f);
}

TEST(plan_segments, offsets_above_four_gigabytes)
{
    struct fixture *f = begin(0);

    add_chain(&f->b, 12, gigabytes);
    require_ok(t, build(f));
    expect(t, f->plan->size[REGION_ACTS] > UINT64_C(6) << 30);
    expect(t, f->plan->size[REGION_ACTS] >= f->plan->lower_bound);
    end(f);

    f = begin(UINT64_C(5) << 29); /* one of them fits in a buffer, two do not */
    add_chain(&f->b, 12, gigabytes);
    require_ok(t, build(f));
    uint64_t highest = 0;
    for (size_t i = 0; i < 12; i++) {
        expect_eq_u64(t, f->b.value[i].offset % f->plan->segment, 0);
        highest = f->b.value[i].offset > highest ? f->b.value[i].offset : highest;
    }
    expect(t, highest > UINT64_C(4) << 30);
    end(f);
}

TEST(plan_segments, one_value_too_large_is_a_limit)
{
    struct fixture *f = begin(4096);

    add_value(&f->b, 4096, VALUE_INPUT);
    add_value(&f->b, 4097, VALUE_INPUT);
    expect_eq(t, build(f), RLX_ERROR_LIMIT);
    expect_str(t, f->diag.first.message, "value 1 (node 1) takes 4097 bytes; a buffer holds 4096");
    end(f);

    f = begin(63);
    expect_eq(t, build(f), RLX_ERROR_LIMIT);
    end(f);

    const struct plan_item item = {4097, 0, 1};
    const struct plan_problem problem = {.item = &item, .count = 1, .align = 1, .segment = 4096};
    struct plan_fit fit;
    f = begin(0);
    expect_eq(t, plan_assign(&problem, &f->arena, &fit, &f->diag), RLX_ERROR_LIMIT);
    end(f);
}

TEST(plan_segments, the_check_finds_what_lies_across)
{
    struct fixture *f = begin(4096);

    add_chain(&f->b, 10, mixed);
    require_ok(t, build(f));
    f->plan->segment = 64;
    expect_eq(t, plan_check(f->plan, &f->arena, &f->diag), RLX_ERROR_INTERNAL);
    expect(t, strstr(f->diag.first.message, "lies across the end of a buffer"));
    end(f);
}

/* ---- plans out of files ---- */

static struct plan *restore(struct test *t, struct fixture *from, struct fixture *to)
{
    struct plan_saved saved = {.steps = &from->b.steps,
                               .align = from->plan->align,
                               .max_buffer = from->options.max_buffer};

    memcpy(saved.size, from->plan->size, sizeof saved.size);
    add_chain(&to->b, 100, mixed);
    to->options.saved = &saved;
    expect_ok(t, build(to));
    to->options.saved = NULL;
    return to->plan;
}

TEST(plan_segments, saved_offsets_are_for_the_same_buffers)
{
    static const struct {
        uint64_t from, to;
        bool restored;
    } row[] = {
        {5000, 5000, true},  {0, 5000, false},   {5000, 0, false},
        {5000, 6000, false}, {0, 1 << 20, true}, {1 << 20, 0, true},
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct fixture *from = begin(row[i].from), *to = begin(row[i].to);
        add_chain(&from->b, 100, mixed);
        require_ok(t, build(from));
        const struct plan *p = restore(t, from, to);
        expect_eq(t, p->restored, row[i].restored);
        if (row[i].restored)
            expect_str(t, p->misfit, "");
        else
            expect(t, strstr(p->misfit, "planned for buffers of"));
        end(from);
        end(to);
    }
}

/* Offsets that would want more buffers than there are values. */
TEST(plan_segments, saved_offsets_far_away_are_refused)
{
    struct fixture *from = begin(5000), *to = begin(5000);

    add_chain(&from->b, 100, mixed);
    require_ok(t, build(from));
    from->b.value[99].offset = from->plan->segment << 30;
    from->plan->size[REGION_ACTS] = (from->plan->segment << 30) + (mixed(99) + 63) / 64 * 64;
    const struct plan *p = restore(t, from, to);
    expect(t, !p->restored && strstr(p->misfit, "with nothing shared"));
    end(from);
    end(to);
}
