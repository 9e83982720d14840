/* mem.h: every byte rlx owns comes through these, so that a caller's hooks see all of it. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlx/rlx.h"

/* All of these give NULL when there is no memory, and NULL for zero bytes. Memory is zeroed. */
void *mem_alloc(const rlx_allocator *a, size_t bytes);
void *mem_resize(const rlx_allocator *a, void *ptr, size_t old_bytes, size_t bytes);
void mem_free(const rlx_allocator *a, void *ptr, size_t bytes); /* NULL is fine */

/* For alignments above that of max_align_t (a power of two); freed with the same numbers. Memory
 * that begins where a huge page may is asked for in such pages. */
#define MEM_HUGE_PAGE ((size_t)2 << 20)
void *mem_alloc_aligned(const rlx_allocator *a, size_t bytes, size_t align);
void mem_free_aligned(const rlx_allocator *a, void *ptr, size_t bytes, size_t align);

const rlx_allocator *mem_default(void); /* malloc and friends */

/* An allocator with a limit on the bytes that are allocated at any one time. They come from `from`,
 * which must outlive it, as must b. */
struct mem_bound {
    const rlx_allocator *from;
    size_t most;
    _Atomic size_t used;
    _Atomic bool refused; /* at least once since it was made */
};
rlx_allocator mem_bounded(struct mem_bound *b, const rlx_allocator *from, size_t most);

/* false, and *out untouched, when the result does not fit. */
static inline bool size_mul(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool size_add(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

/* A growing array: VEC(struct thing) things = {0}. Grows through one allocator, given each time. */
#define VEC(T)      \
    struct {        \
        T *at;      \
        size_t len; \
        size_t cap; \
    }
/* true if there is room for one more; v->at[v->len++] = x may follow. */
#define vec_room(a, v) vec_grow((a), &(v)->at, &(v)->cap, (v)->len, 1, sizeof *(v)->at)
#define vec_room_for(a, v, n) vec_grow((a), &(v)->at, &(v)->cap, (v)->len, (n), sizeof *(v)->at)
#define vec_free(a, v)                                   \
    (mem_free((a), (v)->at, (v)->cap * sizeof *(v)->at), \
     (void)((v)->at = NULL, (v)->len = (v)->cap = 0))
/* What those macros call. at: the address of the array's pointer. false: no memory or too large,
 * unchanged. */
bool vec_grow(const rlx_allocator *a, void *at, size_t *cap, size_t len, size_t extra, size_t elem);

#endif
