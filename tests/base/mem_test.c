/* mem_test.c: zeroed, aligned and growing memory, all of it through the caller's callback. */
#include "base/mem.h"

#include <string.h>

#include "test.h"

static bool all_zero(const void *at, size_t bytes)
{
    const unsigned char *p = at;

    for (size_t i = 0; i < bytes; i++) {
        if (p[i])
            return false;
    }
    return true;
}

TEST(mem, alloc_is_zeroed_and_counted)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);

    unsigned char *p = mem_alloc(&mem, 1000);
    require(t, p != NULL);
    expect(t, all_zero(p, 1000));
    expect_eq(t, count.live_bytes, 1000);
    mem_free(&mem, p, 1000);
    mem_free(&mem, NULL, 7);
    expect_no_leak(t, &count);
}

TEST(mem, zero_bytes_is_null_and_no_call)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);

    expect(t, mem_alloc(&mem, 0) == NULL);
    expect(t, mem_resize(&mem, NULL, 0, 0) == NULL);
    expect(t, mem_alloc_aligned(&mem, 0, 64) == NULL);
    mem_free_aligned(&mem, NULL, 10, 64);
    expect_eq(t, count.calls, 0);
}

TEST(mem, resize_keeps_the_old_and_zeroes_the_new)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    const rlx_allocator *each[] = {&mem, mem_default()};

    for (int i = 0; i < 2; i++) {
        char *p = mem_resize(each[i], NULL, 0, 5);
        require(t, p != NULL);
        memcpy(p, "12345", 5);
        p = mem_resize(each[i], p, 5, 300);
        require(t, p != NULL);
        expect_bytes(t, p, "12345", 5);
        expect(t, all_zero(p + 5, 295));
        p = mem_resize(each[i], p, 300, 3);
        require(t, p != NULL);
        expect_bytes(t, p, "123", 3);
        expect(t, mem_resize(each[i], p, 3, 0) == NULL);
    }
    expect_no_leak(t, &count);
}

TEST(mem, failed_resize_leaves_the_block)
{
    struct test_alloc count = {.fail_at = 2};
    rlx_allocator mem = test_allocator(&count);

    char *p = mem_alloc(&mem, 4);
    require(t, p != NULL);
    memcpy(p, "abcd", 4);
    expect(t, mem_resize(&mem, p, 4, 8) == NULL);
    expect_bytes(t, p, "abcd", 4);
    mem_free(&mem, p, 4);
    expect_no_leak(t, &count);
}

TEST(mem, aligned_blocks_are_aligned_and_zeroed)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);

    for (size_t align = 1; align <= 65536; align *= 2) {
        for (size_t bytes = 1; bytes < 300; bytes += 37) {
            test_note(t, "%zu bytes at %zu", bytes, align);
            char *p = mem_alloc_aligned(&mem, bytes, align);
            require(t, p != NULL);
            expect_eq(t, (uintptr_t)p % align, 0);
            expect(t, all_zero(p, bytes));
            memset(p, 0xff, bytes);
            mem_free_aligned(&mem, p, bytes, align);
        }
    }
    test_note(t, "%s", "");
    expect_no_leak(t, &count);
}

/* The system may have no huge pages to give; the memory is as good without them. */
TEST(mem, blocks_in_huge_pages_are_aligned_and_zeroed)
{
    const size_t bytes = 2 * MEM_HUGE_PAGE + 5;
    struct test_alloc count = {0};
    const rlx_allocator counting = test_allocator(&count);
    const rlx_allocator *each[] = {&counting, mem_default()};

    for (int i = 0; i < 2; i++) {
        char *p = mem_alloc_aligned(each[i], bytes, MEM_HUGE_PAGE);
        require(t, p != NULL);
        expect_eq(t, (uintptr_t)p % MEM_HUGE_PAGE, 0);
        expect(t, all_zero(p, bytes));
        memset(p, 0xff, bytes);
        mem_free_aligned(each[i], p, bytes, MEM_HUGE_PAGE);
    }
    expect_no_leak(t, &count);
}

TEST(mem, aligned_refuses_what_cannot_be)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);

    expect(t, mem_alloc_aligned(&mem, SIZE_MAX, 64) == NULL);
    expect(t, mem_alloc_aligned(&mem, SIZE_MAX - 70, 64) == NULL);
    expect(t, mem_alloc_aligned(&mem, 16, 48) == NULL);
    expect(t, mem_alloc_aligned(&mem, 16, 0) == NULL);
    expect_eq(t, count.calls, 0);

    struct test_alloc none = {.fail_at = 1};
    mem = test_allocator(&none);
    expect(t, mem_alloc_aligned(&mem, 16, 64) == NULL);
    expect_no_leak(t, &none);
}

TEST(mem, sizes_that_overflow)
{
    size_t r = 77;

    expect(t, size_mul(0, SIZE_MAX, &r) && r == 0);
    expect(t, size_mul(SIZE_MAX / 3, 3, &r) && r == SIZE_MAX);
    r = 77;
    expect(t, !size_mul(SIZE_MAX / 2 + 1, 2, &r) && r == 77);
    expect(t, size_add(SIZE_MAX - 1, 1, &r) && r == SIZE_MAX);
    r = 77;
    expect(t, !size_add(SIZE_MAX, 1, &r) && r == 77);
}

/* ---- VEC --------------------------------------------------------------------------------- */

TEST(vec, grows_by_doubling)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    VEC(int64_t) v = {0};

    for (int64_t i = 0; i < 100000; i++) {
        require(t, vec_room(&mem, &v));
        v.at[v.len++] = i * i;
    }
    expect_eq(t, v.len, 100000);
    expect(t, count.calls < 20);
    bool right = true;
    for (int64_t i = 0; i < 100000; i++)
        right &= v.at[i] == i * i;
    expect(t, right);
    vec_free(&mem, &v);
    expect(t, v.at == NULL && v.len == 0 && v.cap == 0);
    expect_no_leak(t, &count);
}

TEST(vec, room_for_many_or_none)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    VEC(char) v = {0};

    expect(t, vec_room_for(&mem, &v, 0));
    expect(t, v.at == NULL);
    require(t, vec_room_for(&mem, &v, 1000));
    expect(t, v.cap >= 1000);
    expect(t, all_zero(v.at, v.cap));
    expect_eq(t, count.calls, 1);
    expect(t, vec_room_for(&mem, &v, v.cap));
    expect_eq(t, count.calls, 1);
    vec_free(&mem, &v);
    vec_free(&mem, &v); /* an empty one is fine */
    expect_no_leak(t, &count);
}

TEST(vec, refuses_sizes_that_overflow)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    VEC(int64_t) v = {0};

    expect(t, !vec_room_for(&mem, &v, SIZE_MAX / 8 + 1));
    expect(t, !vec_room_for(&mem, &v, SIZE_MAX));
    require(t, vec_room(&mem, &v));
    v.at[v.len++] = 5;
    expect(t, !vec_room_for(&mem, &v, SIZE_MAX));
    expect(t, v.len == 1 && v.at[0] == 5);
    vec_free(&mem, &v);
    expect_no_leak(t, &count);
}

static rlx_status fill_vec(struct test *t, const rlx_allocator *mem, void *ctx)
{
    VEC(uint32_t) v = {0};
    rlx_status s = RLX_OK;
    (void)ctx;

    for (uint32_t i = 0; i < 1000 && s == RLX_OK; i++) {
        if (vec_room(mem, &v))
            v.at[v.len++] = i;
        else
            s = RLX_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < v.len; i++) {
        if (v.at[i] != i)
            fail(t, "element %u is %u", i, v.at[i]);
    }
    vec_free(mem, &v);
    return s;
}

TEST(vec, survives_no_memory)
{
    expect_survives_no_memory(t, fill_vec, NULL);
}
