/* move.h: elements copied from one strided place to another, bit for bit.
 *
 * A move is a list of axes, outermost first, each with its size and its stride on both sides:
 *
 *     transpose [2,3]:   axis (3, to 2, from 1), axis (2, to 1, from 3)
 *     expand [3]->[2,3]: axis (2, to 3, from 0), axis (3, to 1, from 1)
 *
 * Neighbours that one stride serves on both sides are joined as they are added. */
#ifndef BACKEND_MOVE_H
#define BACKEND_MOVE_H

#include "backend/cpu/kernels/common.h"

/* tile needs two axes for each of its input's. */
enum { MOVE_MAX_RANK = 2 * RLX_MAX_RANK };

/* About as many elements as a block of work should copy. */
enum { MOVE_BLOCK = 16384 };

struct move {
    char *dst;
    const char *src; /* the two do not overlap */
    int32_t size;    /* bytes per element: 1, 2, 4 or 8 */
    int32_t rank;
    int64_t dim[MOVE_MAX_RANK];
    int64_t to[MOVE_MAX_RANK], from[MOVE_MAX_RANK]; /* strides in elements */
};

#define move_axis CPU_NAME(move_axis)
#define move_run CPU_NAME(move_run)
#define move_dense CPU_NAME(move_dense)
#define move_zero CPU_NAME(move_zero)

/* A further axis, inside those there are. n >= 1. */
void move_axis(struct move *m, int64_t n, int64_t to, int64_t from);
void move_run(struct pool *pool, const struct move *m);

/* count elements side by side; and the same, of zeros. */
void move_dense(struct pool *pool, void *dst, const void *src, int64_t count, size_t size);
void move_zero(struct pool *pool, void *dst, int64_t count, size_t size);

/* A move from in to out with no axes yet. */
static inline struct move move_between(const struct cpu_tensor *out, const struct cpu_tensor *in)
{
    return (struct move){.dst = out->data, .src = in->data, .size = (int32_t)cpu_size(out->dtype)};
}

/* The product of the sizes from axis `begin` up to `end`. */
static inline int64_t cpu_product(const struct cpu_tensor *t, int64_t begin, int64_t end)
{
    int64_t n = 1;
    for (int64_t i = begin; i < end; i++)
        n *= t->dim[i];
    return n;
}

/* Strides of a dense tensor, in elements. */
static inline void cpu_strides(const struct cpu_tensor *t, int64_t *stride)
{
    int64_t step = 1;
    for (int32_t i = t->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= t->dim[i];
    }
}

/* How many items of `each` elements make a block of about `block` elements. */
static inline int64_t cpu_grain(int64_t block, int64_t each)
{
    return each >= block ? 1 : block / cpu_max_i64(each, 1);
}

/* Elements of any type, moved by their size; alignment does not matter. */
typedef uint8_t move_u8 __attribute__((may_alias));
typedef uint16_t move_u16 __attribute__((may_alias, aligned(1)));
typedef uint32_t move_u32 __attribute__((may_alias, aligned(1)));
typedef uint64_t move_u64 __attribute__((may_alias, aligned(1)));

/* A statement with `move_t` as the type of elements of `size` bytes. */
#define MOVE_BY_SIZE(size, ...)  \
    switch (size) {              \
    case 1: {                    \
        typedef move_u8 move_t;  \
        __VA_ARGS__ break;       \
    }                            \
    case 2: {                    \
        typedef move_u16 move_t; \
        __VA_ARGS__ break;       \
    }                            \
    case 4: {                    \
        typedef move_u32 move_t; \
        __VA_ARGS__ break;       \
    }                            \
    default: {                   \
        typedef move_u64 move_t; \
        __VA_ARGS__ break;       \
    }                            \
    }

#endif
