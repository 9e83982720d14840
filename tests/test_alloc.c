/* test_alloc.c: the counting, failing allocator of test.h, and the loop that fails every request.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "test_impl.h"

/* In front of every block. A power-of-two size no less than max_align_t keeps blocks aligned. */
struct header {
    const struct test_alloc *owner;
    uint64_t size, mark;
    uint64_t spare;
};
_Static_assert(sizeof(struct header) % _Alignof(max_align_t) == 0, "blocks would be misaligned");

static const uint64_t LIVE = 0x6c69766520626c6bu, FREED = 0x6672656564626c6bu;

/* A request above MOST bytes is refused whatever the machine has, so that a test for it is one
 * everywhere. */
static const size_t MOST = SIZE_MAX >> 24, FILLED = 1 << 20;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* NULL if ptr is none of a's live blocks. A freed block is gone: only a sanitizer sees its reuse.
 */
static struct header *find_block(const struct test_alloc *a, void *ptr)
{
    struct header *h = (struct header *)ptr - 1;

    return h->mark == LIVE && h->owner == a ? h : NULL;
}

static void *new_block(struct test_alloc *a, size_t size)
{
    struct header *h;

    a->calls++;
    if (a->fail_at && (a->calls == a->fail_at || (a->sticky && a->calls > a->fail_at))) {
        a->refused++;
        return NULL;
    }
    if (size > MOST || !(h = malloc(sizeof *h + size)))
        return NULL;
    *h = (struct header){.owner = a, .size = size, .mark = LIVE};
    /* So that nothing counts on zeros; large blocks stay untouched past that, and so unpaid for. */
    memset(h + 1, 0xa5, size < FILLED ? size : FILLED);
    a->live_blocks++;
    a->live_bytes += size;
    if (a->live_bytes > a->peak_bytes)
        a->peak_bytes = a->live_bytes;
    return h + 1;
}

static void free_block(struct test_alloc *a, struct header *h)
{
    a->live_blocks--;
    a->live_bytes -= h->size;
    h->mark = FREED;
    free(h);
}

static void *resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct test_alloc *a = user;
    struct header *old = NULL;
    void *made = NULL;

    pthread_mutex_lock(&lock);
    if (!ptr) {
        a->misused += old_size != 0;
    } else if (!(old = find_block(a, ptr))) {
        a->misused++;
        goto done; /* leave what is not ours alone */
    } else {
        a->misused += old->size != old_size;
    }
    if (new_size) {
        made = new_block(a, new_size);
        if (made && old)
            memcpy(made, ptr, old->size < new_size ? old->size : new_size);
    }
    if (old && (made || !new_size))
        free_block(a, old);
done:
    pthread_mutex_unlock(&lock);
    return made;
}

rlx_allocator test_allocator(struct test_alloc *a)
{
    return (rlx_allocator){.resize = resize, .user = a};
}

bool test_expect_no_leak(struct test *t, const char *file, int line, const struct test_alloc *a)
{
    if (a->misused)
        return test_fail(t, file, line, "%" PRIu64 " frees or resizes had a wrong size or pointer",
                         a->misused);
    if (a->live_blocks)
        return test_fail(t, file, line, "%" PRIu64 " blocks, %" PRIu64 " bytes, were not freed",
                         a->live_blocks, a->live_bytes);
    return test_held(t);
}

/* One run with request n refused. *more: some request was, so there may be a later one to try. */
static bool run_refusing(struct test *t, const char *file, int line, test_alloc_fn fn, void *ctx,
                         const char *text, uint64_t n, bool sticky, bool *more)
{
    struct test_alloc a = {.fail_at = n, .sticky = sticky};
    rlx_allocator mem = test_allocator(&a);
    uint64_t failures = t->failures;
    const char *also = sticky ? " and all after it" : "";

    rlx_status got = fn(t, &mem, ctx);
    *more = a.refused != 0;
    if (t->failures != failures)
        return test_fail(t, file, line, "%s: with request %" PRIu64 "%s refused", text, n, also);
    if (!*more)
        return test_expect_status(t, file, line, got, RLX_OK, text) &&
               test_expect_no_leak(t, file, line, &a);
    if (got != RLX_ERROR_MEMORY)
        return test_fail(t, file, line,
                         "%s: request %" PRIu64 "%s was refused, and the status is %d, not %d",
                         text, n, also, (int)got, (int)RLX_ERROR_MEMORY);
    if (!test_expect_no_leak(t, file, line, &a))
        return test_fail(t, file, line, "%s: that was with request %" PRIu64 "%s refused", text, n,
                         also);
    return true;
}

bool test_each_failure(struct test *t, const char *file, int line, test_alloc_fn fn, void *ctx,
                       const char *text)
{
    /* A GPU is opened anew each time, which takes long. */
    const uint64_t some = strcmp(test_device(t), "cpu") == 0 ? 300 : 30;
    const uint64_t all_up_to = test_full() ? UINT64_MAX : some;
    bool more = true;

    for (uint64_t n = 1; more; n += n < all_up_to ? 1 : n / 16) {
        if (!run_refusing(t, file, line, fn, ctx, text, n, false, &more))
            return false;
        if (more && !run_refusing(t, file, line, fn, ctx, text, n, true, &more))
            return false;
    }
    return true;
}
