/* mem.c: memory through one callback: zeroed, aligned, and growing arrays of it. */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *default_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

const rlx_allocator *mem_default(void)
{
    static const rlx_allocator malloc_and_friends = {.resize = default_resize, .user = NULL};

    return &malloc_and_friends;
}

/* ---- with a bound ---- */

static bool take(struct mem_bound *b, size_t bytes)
{
    size_t used = atomic_fetch_add(&b->used, bytes);

    if (used <= b->most && bytes <= b->most - used)
        return true;
    atomic_fetch_sub(&b->used, bytes);
    atomic_store(&b->refused, true);
    return false;
}

static void *bounded_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct mem_bound *b = user;

    if (new_size && !take(b, new_size))
        return NULL;
    void *now = b->from->resize(b->from->user, ptr, old_size, new_size);
    atomic_fetch_sub(&b->used, now || new_size == 0 ? old_size : new_size);
    return now;
}

rlx_allocator mem_bounded(struct mem_bound *b, const rlx_allocator *from, size_t most)
{
    b->from = from;
    b->most = most;
    atomic_init(&b->used, 0);
    atomic_init(&b->refused, false);
    return (rlx_allocator){.resize = bounded_resize, .user = b};
}

/* ---- memory ---- */

void *mem_alloc(const rlx_allocator *a, size_t bytes)
{
    if (bytes == 0)
        return NULL;
    if (a->resize == default_resize)
        return calloc(1, bytes); /* fresh pages are zero already: large blocks stay untouched */

    void *ptr = NULL;
    if (a->resize == bounded_resize) {
        struct mem_bound *b = a->user;
        bool taken = take(b, bytes);
        ptr = taken ? mem_alloc(b->from, bytes) : NULL;
        if (taken && !ptr)
            atomic_fetch_sub(&b->used, bytes);
        return ptr;
    }
    ptr = a->resize(a->user, NULL, 0, bytes);
    if (ptr)
        memset(ptr, 0, bytes);
    return ptr;
}

void *mem_resize(const rlx_allocator *a, void *ptr, size_t old_bytes, size_t bytes)
{
    if (!ptr)
        return mem_alloc(a, bytes);
    if (bytes == 0) {
        mem_free(a, ptr, old_bytes);
        return NULL;
    }

    void *now = a->resize(a->user, ptr, old_bytes, bytes);
    if (now && bytes > old_bytes)
        memset((char *)now + old_bytes, 0, bytes - old_bytes);
    return now;
}

void mem_free(const rlx_allocator *a, void *ptr, size_t bytes)
{
    if (ptr)
        a->resize(a->user, ptr, bytes, 0);
}

/* What the callback returns, and where in it the caller's part begins:
 *
 *     raw ... padding ... | raw | the caller's bytes ... | rest of the padding
 *                               ^ aligned
 *
 * The total follows from bytes and align alone, so freeing passes the same size as allocating
 * did. */
static bool aligned_total(size_t bytes, size_t align, size_t *total)
{
    bool power_of_two = align != 0 && (align & (align - 1)) == 0;

    return bytes != 0 && power_of_two && size_add(bytes, sizeof(void *), total) &&
           size_add(*total, align - 1, total);
}

/* Large blocks come from the system and go back to it when they are freed: malloc would keep some
 * of them for later, and weights that were dropped would stay in memory. */
static bool is_mapped(const rlx_allocator *a, size_t align)
{
    return a->resize == default_resize && align >= MEM_HUGE_PAGE;
}

static char *take_raw(const rlx_allocator *a, size_t total, size_t align)
{
    if (!is_mapped(a, align))
        return a->resize == default_resize ? calloc(1, total) : a->resize(a->user, NULL, 0, total);
    void *at = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void ask_for_huge_pages(void *ptr, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    (void)madvise(ptr, bytes / MEM_HUGE_PAGE * MEM_HUGE_PAGE, MADV_HUGEPAGE);
#else
    (void)ptr, (void)bytes; /* the system does as it likes */
#endif
}

/* A page keeps the size it had when it was first touched, so memory is zeroed after the request for
 * huge pages. */
void *mem_alloc_aligned(const rlx_allocator *a, size_t bytes, size_t align)
{
    bool zero = a->resize == default_resize; /* as in mem_alloc */
    size_t total;
    if (!aligned_total(bytes, align, &total))
        return NULL;
    char *raw = take_raw(a, total, align);
    if (!raw)
        return NULL;

    uintptr_t from = (uintptr_t)raw + sizeof raw;
    uintptr_t mask = (uintptr_t)align - 1;
    char *ptr = raw + sizeof raw + (size_t)(((from + mask) & ~mask) - from);
    memcpy(ptr - sizeof raw, &raw, sizeof raw);
    if (align >= MEM_HUGE_PAGE)
        ask_for_huge_pages(ptr, bytes);
    if (!zero)
        memset(ptr, 0, bytes);
    return ptr;
}

void mem_free_aligned(const rlx_allocator *a, void *ptr, size_t bytes, size_t align)
{
    size_t total;
    char *raw;
    if (!ptr || !aligned_total(bytes, align, &total))
        return;
    memcpy(&raw, (char *)ptr - sizeof raw, sizeof raw);
    if (is_mapped(a, align))
        (void)munmap(raw, total);
    else
        mem_free(a, raw, total);
}

bool vec_grow(const rlx_allocator *a, void *at, size_t *cap, size_t len, size_t extra, size_t elem)
{
    enum { FIRST = 8 };
    size_t need, bytes;
    void *old;

    if (!size_add(len, extra, &need))
        return false;
    if (need <= *cap)
        return true;

    size_t want = FIRST;
    if (*cap > FIRST / 2 && !size_add(*cap, *cap, &want))
        want = need;
    if (want < need)
        want = need;
    if (!size_mul(want, elem, &bytes))
        return false;

    /* *at is a T *, seen here as bytes: a void * may not stand in for it. */
    memcpy(&old, at, sizeof old);
    void *now = mem_resize(a, old, *cap * elem, bytes);
    if (!now)
        return false;
    memcpy(at, &now, sizeof now);
    *cap = want;
    return true;
}
