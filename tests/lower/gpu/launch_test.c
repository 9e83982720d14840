/* launch_test.c: what comes between a node's launches and a driver: grids, and where buffers lie.
 * No GPU is needed. */
#include <string.h>

#include "../../test.h"
#include "lower/gpu/gpu_core.h"

/* ---- grids ---- */

/* runtime.md 3.5: one invocation per element, in groups of 64. */
TEST(gpu_grid, vectors)
{
    static const struct {
        uint64_t count;
        uint32_t grid[3];
    } rows[] = {{1, {1, 1, 1}},
                {65, {2, 1, 1}},
                {4194240, {65535, 1, 1}},
                {4194241, {65535, 2, 1}},
                {10000000, {65535, 3, 1}}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t grid[3] = {0};
        test_note(t, "%llu invocations", (unsigned long long)rows[i].count);
        expect(t, gpu_fold_grid(gpu_ceil(rows[i].count, 64), 65535, grid));
        for (int k = 0; k < 3; k++)
            expect_eq_u64(t, grid[k], rows[i].grid[k]);
    }
}

/* All fit, no dimension is longer than allowed, and what is beyond the limit is refused. */
TEST(gpu_grid, three_dimensions)
{
    for (uint32_t limit = 1; limit < 6; limit++)
        for (uint64_t n = 1; n <= 6 * 6 * 6; n++) {
            uint32_t grid[3] = {0};
            uint64_t most = (uint64_t)limit * limit * limit;
            test_note(t, "%llu groups, %u at most", (unsigned long long)n, limit);
            if (!expect_eq(t, gpu_fold_grid(n, limit, grid), n <= most) || n > most)
                continue;
            expect(t, (uint64_t)grid[0] * grid[1] * grid[2] >= n);
            expect(t, grid[0] <= limit && grid[1] <= limit && grid[2] <= limit);
            expect(t, grid[1] == 1 || grid[0] == limit);
            expect(t, grid[2] == 1 || grid[1] == limit);
        }
    uint32_t grid[3];
    expect(t, gpu_fold_grid(UINT64_C(65535) * 65535 * 65535, 65535, grid));
    expect(t, !gpu_fold_grid(UINT64_C(65535) * 65535 * 65535 + 1, 65535, grid));
    expect(t, !gpu_fold_grid(UINT64_MAX, 65535, grid));
}

/* ---- where a launch's buffers lie ---- */

static int slots[4]; /* stand for device memory */
#define SLOT(i) ((struct buffer *)(void *)&slots[i])

/* A buffer that may begin anywhere is bound from the last place where it can be, and the kernel is
 * given how many elements to skip, after its own words. */
TEST(gpu_bind, offsets_become_words)
{
    const struct gpu_kernel kernel = {.key = "k",
                                      .buffers = 3,
                                      .words = 2,
                                      .bindings = 3,
                                      .first = {0, 1, 2},
                                      .windows = {1, 1, 1},
                                      .element = {4, 2, 8},
                                      .begins_at = {true, true, false}};
    uint32_t own[] = {7, 8, 9}, word[2 + GPU_BUFFERS];
    const struct gpu_work work = {.word = own, .words = 3};
    const struct gpu_launch launch = {
        .kernel = &kernel, .arg = {{0, 12, 40}, {1, 0, 6}, {GPU_FAULT, 0, 64}}, .first_word = 1};
    struct span operand[] = {{SLOT(0), 256, 128}, {SLOT(1), 518, 6}};
    const struct command c = {.operand = operand, .operand_count = 2};
    struct gpu_bound b;
    struct diag d;

    diag_init(&d, "test");
    require_ok(
        t, gpu_bind_launch(&work, &launch, &c, (struct span){SLOT(2), 0, 64}, 256, word, &b, &d));
    expect_eq_u64(t, b.words, 4);
    expect(t, word[0] == 8 && word[1] == 9);
    expect(t, word[2] == 3 && word[3] == 3); /* 12 bytes of 4, 6 bytes of 2 */
    expect(t, b.span[0].buffer == SLOT(0) && b.span[0].offset == 256 && b.span[0].bytes == 52);
    expect(t, b.span[1].buffer == SLOT(1) && b.span[1].offset == 512 && b.span[1].bytes == 12);
    expect(t, b.span[2].buffer == SLOT(2) && b.span[2].offset == 0 && b.span[2].bytes == 64);
}

/* Bytes that an operand does not have are never bound, nor an offset that a kernel cannot know. */
TEST(gpu_bind, mistakes_are_found)
{
    const struct gpu_kernel plain = {.key = "k", .buffers = 1, .element = {4}, .windows = {1}},
                            moved = {.key = "k",
                                     .buffers = 1,
                                     .element = {4},
                                     .begins_at = {true},
                                     .windows = {1}};
    static const struct {
        bool moved;
        struct gpu_arg arg;
        uint64_t offset;
        rlx_status status;
    } rows[] = {
        {false, {0, 0, 64}, 256, RLX_OK},
        {false, {0, 0, 65}, 256, RLX_ERROR_INTERNAL}, /* past its end */
        {false, {0, 65, 0}, 256, RLX_ERROR_INTERNAL}, /* begins past its end */
        {false, {0, 60, 8}, 256, RLX_ERROR_INTERNAL},
        {false, {0, 8, UINT64_MAX}, 256, RLX_ERROR_INTERNAL},
        {false, {1, 0, 4}, 256, RLX_ERROR_INTERNAL}, /* there is none */
        {false, {0, 4, 4}, 256, RLX_ERROR_INTERNAL}, /* the kernel takes no offset */
        {true, {0, 4, 4}, 256, RLX_OK},
        {true, {0, 0, 4}, 258, RLX_ERROR_INTERNAL}, /* half an element */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct gpu_work work = {0};
        const struct gpu_launch l = {.kernel = rows[i].moved ? &moved : &plain,
                                     .arg = {rows[i].arg}};
        struct span operand = {SLOT(0), rows[i].offset, 64};
        const struct command c = {.operand = &operand, .operand_count = 1, .step = 5};
        uint32_t word[GPU_BUFFERS];
        struct gpu_bound b;
        struct diag d;
        diag_init(&d, "test");
        test_note(t, "row %zu", i);
        expect_status(t, gpu_bind_launch(&work, &l, &c, (struct span){0}, 256, word, &b, &d),
                      rows[i].status);
        if (rows[i].status)
            expect_contains(t, d.first.message, "step 5");
    }
}
