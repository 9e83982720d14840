/* hazards_test.c: where a barrier must be between two launches. No GPU is needed. */
#include "../../test.h"
#include "backend/gpu/gpu_run.h"

static int slots[2]; /* stand for device memory */
#define SLOT(i) ((struct buffer *)(void *)&slots[i])

struct hazard_row {
    struct gpu_touch touch;
    bool barrier;
};

static void check_hazards(struct test *t, const struct hazard_row *row, size_t count)
{
    struct gpu_hazards h = {.mem = mem_default()};
    struct diag d;

    diag_init(&d, "test");
    for (size_t i = 0; i < count; i++) {
        bool barrier = !row[i].barrier;
        test_note(t, "touch %zu", i);
        expect_ok(t, gpu_touch(&h, &row[i].touch, 1, &barrier, &d));
        expect_eq(t, barrier, row[i].barrier);
    }
    vec_free(h.mem, &h.touched);
}

TEST(gpu_hazards, only_bytes_that_are_written_wait)
{
    static const struct hazard_row rows[] = {
        {{{SLOT(0), 0, 64}, false}, false}, {{{SLOT(0), 0, 64}, false}, false}, /* read, read */
        {{{SLOT(1), 0, 64}, true}, false},                                      /* another buffer */
        {{{SLOT(0), 64, 64}, true}, false},                                     /* right after */
        {{{SLOT(0), 0, 0}, true}, false},  /* no bytes at all */
        {{{SLOT(0), 63, 1}, true}, true},  /* write after read */
        {{{SLOT(0), 0, 64}, false}, true}, /* read after write */
        {{{SLOT(1), 0, 64}, true}, false}, /* what was before the barrier is done */
        {{{SLOT(1), 60, 8}, true}, true},  /* write after write */
        {{{SLOT(1), 0, 60}, false}, false},
    };

    check_hazards(t, rows, sizeof rows / sizeof rows[0]);
}

/* A launch does not wait for itself: an operand that it overwrites is read and written. */
TEST(gpu_hazards, one_launch_is_in_place)
{
    const struct gpu_touch both[] = {{{SLOT(0), 0, 64}, false}, {{SLOT(0), 0, 64}, true}};
    struct gpu_hazards h = {.mem = mem_default()};
    struct diag d;
    bool barrier;

    diag_init(&d, "test");
    for (int i = 0; i < 3; i++) {
        expect_ok(t, gpu_touch(&h, both, 2, &barrier, &d));
        expect_eq(t, barrier, i > 0);
    }
    vec_free(h.mem, &h.touched);
}
