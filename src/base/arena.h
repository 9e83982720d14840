/* arena.h: memory that is given back all at once. One owner each; nothing in it is freed singly. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/mem.h"

struct arena_block; /* in arena.c */
struct arena {
    const rlx_allocator *mem;
    struct arena_block *last;
};

void arena_init(struct arena *a, const rlx_allocator *mem); /* allocates nothing yet */
void arena_free(struct arena *a);                           /* may be used again */

/* Zeroed; NULL when there is no memory or the product overflows. Zero bytes give a valid pointer.
 * align: a power of two. */
void *arena_alloc(struct arena *a, size_t bytes, size_t align);
void *arena_alloc_array(struct arena *a, size_t count, size_t bytes, size_t align);
#define arena_new(a, T) ((T *)arena_alloc((a), sizeof(T), _Alignof(T)))
#define arena_array(a, T, n) ((T *)arena_alloc_array((a), (n), sizeof(T), _Alignof(T)))

/* A copy, followed by a NUL; ptr is NULL when there is no memory. */
rlx_str arena_str(struct arena *a, rlx_str s);
/* Formatted text, NUL-terminated; NULL when there is no memory. */
const char *arena_printf(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
