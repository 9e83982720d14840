/* order.h: the order that sort, topk, argmax and sample share (ops-core.md 1.6, 8.2 to 8.4).
 *
 * Elements of any real type become integer keys: the smaller key comes first, equal elements (-0
 * and +0 among them) have equal keys, and NaN is where the op wants it. A key goes with its
 * element's index along the row:
 *
 *     types of up to 4 bytes    uint64_t: 32 bits of key, then 32 of index     "packed"
 *     types of 8 bytes          struct order_pair                              "pairs"
 *
 * Rows of 2^32 elements or more use pairs whatever their type. Items of one row are all different,
 * so "the smallest" is never a matter of luck. */
#ifndef BACKEND_ORDER_H
#define BACKEND_ORDER_H

#include "backend/cpu/kernels/move/index.h"

enum order {
    ORDER_UP,     /* ascending, NaN last */
    ORDER_UP_NAN, /* ascending, NaN first */
    ORDER_DOWN    /* descending, NaN first */
};

struct order_pair {
    uint64_t key;
    int64_t index;
};

/* A row of a tensor: n elements, `stride` apart, the first being element `at`. */
struct order_row {
    const struct cpu_tensor *x;
    int64_t at, stride, n;
};

#define order_keys32 CPU_NAME(order_keys32)
#define order_keys64 CPU_NAME(order_keys64)
#define order_packed CPU_NAME(order_packed)
#define order_pairs CPU_NAME(order_pairs)
#define order_sort_packed CPU_NAME(order_sort_packed)
#define order_sort_pairs CPU_NAME(order_sort_pairs)
#define order_top_packed CPU_NAME(order_top_packed)
#define order_top_pairs CPU_NAME(order_top_pairs)
#define order_finish_packed CPU_NAME(order_finish_packed)
#define order_finish_pairs CPU_NAME(order_finish_pairs)

static inline bool order_is_packed(rlx_dtype d, int64_t n)
{
    return cpu_size(d) <= 4 && n <= UINT32_MAX;
}

/* A packed item from a key of order_keys32, and its index. */
static inline uint64_t order_pack(int32_t key, int64_t index)
{
    return (uint64_t)((uint32_t)key ^ 0x80000000u) << 32 | (uint64_t)index;
}

/* Keys of n elements side by side; 32 for types of up to 4 bytes, 64 for all. */
void order_keys32(rlx_dtype d, enum order o, const void *src, int64_t n, int32_t *dst);
void order_keys64(rlx_dtype d, enum order o, const void *src, int64_t n, int64_t *dst);

/* Items of elements from .. from+n-1 of a row. */
void order_packed(const struct order_row *r, enum order o, int64_t from, int64_t n, uint64_t *dst);
void order_pairs(const struct order_row *r, enum order o, int64_t from, int64_t n,
                 struct order_pair *dst);

/* Sort n items that are in the order of their indices; other: room for as many. */
void order_sort_packed(uint64_t *item, uint64_t *other, int64_t n);
void order_sort_pairs(struct order_pair *item, struct order_pair *other, int64_t n);

/* The k smallest of all items seen, any number of calls: top holds `have` of them, and how many it
 * then holds is the result. At the end, finish puts them in order. */
int64_t order_top_packed(uint64_t *top, int64_t k, int64_t have, const uint64_t *item, int64_t n);
int64_t order_top_pairs(struct order_pair *top, int64_t k, int64_t have,
                        const struct order_pair *item, int64_t n);
void order_finish_packed(uint64_t *top, int64_t have);
void order_finish_pairs(struct order_pair *top, int64_t have);

/* Rows of n elements are divided among lanes, each with its own scratch: enough of them to
 * keep many threads busy, few enough to leave some memory, and to have something to do. */
static inline int64_t order_lanes(int64_t rows, int64_t n, uint64_t bytes_per_lane)
{
    const uint64_t most = 64, least = 4, room = (uint64_t)32 << 20;
    uint64_t lanes = room / (bytes_per_lane ? bytes_per_lane : 1);
    int64_t worthwhile = cpu_grain(2048, n);

    lanes = lanes > most ? most : lanes < least ? least : lanes;
    return cpu_min_i64(rows / worthwhile + (rows % worthwhile != 0), (int64_t)lanes);
}

/* a * b, or more than anyone has. */
static inline uint64_t order_bytes(uint64_t a, uint64_t b)
{
    uint64_t bytes;
    return __builtin_mul_overflow(a, b, &bytes) ? UINT64_MAX : bytes;
}

#endif
