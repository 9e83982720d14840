/* arena_test.c: memory that is given back all at once. */
#include "base/arena.h"

#include <string.h>

#include "base/str.h"
#include "test.h"

TEST(arena, empty_allocates_nothing)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    struct arena a;

    arena_init(&a, &mem);
    arena_free(&a);
    arena_free(&a);
    expect_eq(t, count.calls, 0);
}

TEST(arena, pieces_are_zeroed_aligned_and_apart)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    struct arena a;
    unsigned char *piece[500];
    size_t size[500];

    arena_init(&a, &mem);
    for (size_t i = 0; i < 500; i++) {
        size_t align = (size_t)1 << (i * 7 % 10);
        size[i] = i * 31 % 400;
        piece[i] = arena_alloc(&a, size[i], align);
        require(t, piece[i] != NULL);
        expect_eq(t, (uintptr_t)piece[i] % align, 0);
        for (size_t k = 0; k < size[i]; k++)
            require(t, piece[i][k] == 0);
        memset(piece[i], (int)(i & 0xff), size[i]);
    }
    for (size_t i = 0; i < 500; i++) {
        for (size_t k = 0; k < size[i]; k++)
            require(t, piece[i][k] == (i & 0xff));
    }
    arena_free(&a);
    expect_no_leak(t, &count);
}

TEST(arena, zero_bytes_are_valid_and_distinct)
{
    struct arena a;

    arena_init(&a, mem_default());
    void *p = arena_alloc(&a, 0, 1), *q = arena_array(&a, int, 0);
    expect(t, p && q && p != q);
    arena_free(&a);
}

TEST(arena, few_calls_for_many_pieces)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    struct arena a;

    arena_init(&a, &mem);
    for (int i = 0; i < 1000000 / 16; i++)
        require(t, arena_alloc(&a, 16, 16) != NULL);
    expect(t, count.calls <= 9); /* 4 KiB, 8 KiB, ... make a million */
    arena_free(&a);
    expect_no_leak(t, &count);
}

TEST(arena, blocks_stop_growing_at_a_mebibyte)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    struct arena a;

    arena_init(&a, &mem);
    for (int i = 0; i < 16 * 1024; i++)
        require(t, arena_alloc(&a, 1024, 1) != NULL);
    expect(t, count.live_bytes < (16 + 2) << 20);
    arena_free(&a);
    expect_no_leak(t, &count);
}

TEST(arena, a_large_piece_does_not_waste_the_open_block)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    struct arena a;

    arena_init(&a, &mem);
    char *first = arena_alloc(&a, 8, 8);
    char *large = arena_alloc(&a, (size_t)5 << 20, 4096);
    char *second = arena_alloc(&a, 8, 8);
    require(t, first && large && second);
    expect_eq(t, (uintptr_t)large % 4096, 0);
    expect(t, second == first + 8);
    expect_eq(t, count.calls, 2);
    large[((size_t)5 << 20) - 1] = 1;
    arena_free(&a);
    expect_no_leak(t, &count);

    char *again = arena_alloc(&a, (size_t)5 << 20, 1); /* now the first, and used again */
    expect(t, again != NULL);
    arena_free(&a);
    expect_no_leak(t, &count);
}

TEST(arena, refuses_sizes_that_overflow)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    struct arena a;

    arena_init(&a, &mem);
    expect(t, arena_alloc(&a, SIZE_MAX, 1) == NULL);
    expect(t, arena_alloc(&a, SIZE_MAX - 8, 64) == NULL);
    expect(t, arena_array(&a, uint64_t, SIZE_MAX / 4) == NULL);
    expect_eq(t, count.calls, 0);
    require(t, arena_alloc(&a, 1, 1) != NULL);
    expect(t, arena_alloc(&a, SIZE_MAX, 1) == NULL);
    expect(t, arena_str(&a, (rlx_str){"x", SIZE_MAX}).ptr == NULL);
    arena_free(&a);
    expect_no_leak(t, &count);
}

TEST(arena, strings_are_copies_with_a_nul)
{
    struct arena a;
    char from[] = "abc";

    arena_init(&a, mem_default());
    rlx_str s = arena_str(&a, rlx_cstr(from));
    from[0] = 'x';
    require(t, s.ptr != NULL);
    expect_eq(t, s.len, 3);
    expect_str(t, s.ptr, "abc");

    rlx_str none = arena_str(&a, (rlx_str){NULL, 0});
    require(t, none.ptr != NULL);
    expect_str(t, none.ptr, "");
    expect_str(t, arena_printf(&a, "%d and %s", 12, "x"), "12 and x");
    expect_str(t, arena_printf(&a, "%s", ""), "");
    const char *wide = arena_printf(&a, "%10000d", 7);
    require(t, wide != NULL);
    expect_eq(t, strlen(wide), 10000);
    arena_free(&a);
}

static rlx_status fill_arena(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct arena a;
    rlx_status s = RLX_OK;
    (void)t;
    (void)ctx;

    arena_init(&a, mem);
    for (size_t i = 0; i < 200 && s == RLX_OK; i++) {
        bool ok = arena_alloc(&a, i * i, 8) && arena_str(&a, STR("some text")).ptr &&
                  arena_printf(&a, "%zu", i);
        s = ok ? RLX_OK : RLX_ERROR_MEMORY;
    }
    arena_free(&a);
    return s;
}

TEST(arena, survives_no_memory)
{
    expect_survives_no_memory(t, fill_arena, NULL);
}
