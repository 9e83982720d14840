/* arena.c: blocks of memory, each twice the one before, cut from front to back.
 *
 *     last -> [ header | used ........ | free ] -> [ header | used | rest ] -> ... -> NULL
 *
 * Blocks are zeroed when they are allocated and never reused, so every piece is zero. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_FIRST = 4 << 10, BLOCK_MOST = 1 << 20 };

struct arena_block {
    struct arena_block *before;
    size_t size; /* of the whole block, this header included */
    size_t used; /* likewise */
};

void arena_init(struct arena *a, const rlx_allocator *mem)
{
    *a = (struct arena){.mem = mem};
}

void arena_free(struct arena *a)
{
    struct arena_block *b = a->last;

    while (b) {
        struct arena_block *before = b->before;
        mem_free(a->mem, b, b->size);
        b = before;
    }
    a->last = NULL;
}

/* The next piece of the block; NULL if it does not fit. */
static void *cut(struct arena_block *b, size_t bytes, size_t align)
{
    uintptr_t end = (uintptr_t)b + b->used;
    size_t skip = (size_t)(-end & (uintptr_t)(align - 1));
    size_t room = b->size - b->used;

    if (skip > room || bytes > room - skip)
        return NULL;
    char *piece = (char *)b + b->used + skip;
    b->used += skip + bytes;
    return piece;
}

static struct arena_block *add_block(struct arena *a, size_t need)
{
    size_t size = BLOCK_FIRST;
    if (a->last)
        size = a->last->size < BLOCK_MOST / 2 ? a->last->size * 2 : BLOCK_MOST;
    bool oversize = need > size;
    if (oversize)
        size = need;

    struct arena_block *b = mem_alloc(a->mem, size);
    if (!b)
        return NULL;
    b->size = size;
    b->used = sizeof *b;
    if (oversize && a->last) { /* the new block will be full: keep cutting from the current one */
        b->before = a->last->before;
        a->last->before = b;
    } else {
        b->before = a->last;
        a->last = b;
    }
    return b;
}

void *arena_alloc(struct arena *a, size_t bytes, size_t align)
{
    size_t need;
    if (bytes == 0)
        bytes = 1; /* so that the pointer is its own */
    if (a->last) {
        void *piece = cut(a->last, bytes, align);
        if (piece)
            return piece;
    }
    if (!size_add(bytes, sizeof(struct arena_block), &need) || !size_add(need, align - 1, &need))
        return NULL;
    struct arena_block *b = add_block(a, need);
    return b ? cut(b, bytes, align) : NULL;
}

void *arena_alloc_array(struct arena *a, size_t count, size_t bytes, size_t align)
{
    size_t total;

    return size_mul(count, bytes, &total) ? arena_alloc(a, total, align) : NULL;
}

rlx_str arena_str(struct arena *a, rlx_str s)
{
    size_t bytes;
    char *copy = size_add(s.len, 1, &bytes) ? arena_alloc(a, bytes, 1) : NULL;

    if (!copy)
        return (rlx_str){NULL, 0};
    if (s.len)
        memcpy(copy, s.ptr, s.len);
    return (rlx_str){copy, s.len};
}

const char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args, again;
    char *out = NULL;

    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    if (len >= 0)
        out = arena_alloc(a, (size_t)len + 1, 1);
    if (out)
        vsnprintf(out, (size_t)len + 1, fmt, again);
    va_end(again);
    va_end(args);
    return out;
}
