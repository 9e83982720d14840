/* order.c: keys, a stable radix sort over them, and a heap for the first k. */
#include "backend/cpu/kernels/order/order.h"

/* ---- keys ---------------------------------------------------------------------------------- */

/* Signed integers in the order of the floats. The bits of negative floats are inverted; -0 counts
 * as 0. The largest and the smallest integer represent no float except NaN. */
static inline int32_t key_f32(uint32_t bits, int32_t flip, int32_t nan)
{
    int32_t s = (int32_t)bits;
    int32_t key = s ^ ((s >> 31) & INT32_MAX);
    uint32_t magnitude = bits & 0x7fffffffu;

    key = magnitude == 0 ? 0 : key;
    return magnitude > 0x7f800000u ? nan : key ^ flip;
}

static inline int64_t key_f64(uint64_t bits, int64_t flip, int64_t nan)
{
    int64_t s = (int64_t)bits;
    int64_t key = s ^ ((s >> 63) & INT64_MAX);
    uint64_t magnitude = bits & INT64_MAX;

    key = magnitude == 0 ? 0 : key;
    return magnitude > 0x7ff0000000000000u ? nan : key ^ flip;
}

#define KEYS(type, key)                   \
    do {                                  \
        const type *p = src;              \
        for (int64_t i = 0; i < n; i++) { \
            type v = p[i];                \
            dst[i] = (key);               \
        }                                 \
    } while (0)

void order_keys32(rlx_dtype d, enum order o, const void *src, int64_t n, int32_t *dst)
{
    int32_t flip = o == ORDER_DOWN ? -1 : 0, nan = o == ORDER_UP ? INT32_MAX : INT32_MIN;

    switch (d) {
    case RLX_DTYPE_f32: KEYS(float, key_f32(half_f32_bits(v), flip, nan)); break;
    case RLX_DTYPE_f16: KEYS(uint16_t, key_f32(half_f32_bits(f16_to_f32(v)), flip, nan)); break;
    case RLX_DTYPE_bf16: KEYS(uint16_t, key_f32((uint32_t)v << 16, flip, nan)); break;
    case RLX_DTYPE_i8: KEYS(int8_t, v ^ flip); break;
    case RLX_DTYPE_u8: KEYS(uint8_t, v ^ flip); break;
    case RLX_DTYPE_i16: KEYS(int16_t, v ^ flip); break;
    case RLX_DTYPE_u16: KEYS(uint16_t, v ^ flip); break;
    case RLX_DTYPE_i32: KEYS(int32_t, v ^ flip); break;
    case RLX_DTYPE_u32: KEYS(uint32_t, (int32_t)(v ^ 0x80000000u) ^ flip); break;
    case RLX_DTYPE_bool: KEYS(uint8_t, (v != 0) ^ flip); break;
    default: break;
    }
}

void order_keys64(rlx_dtype d, enum order o, const void *src, int64_t n, int64_t *dst)
{
    int64_t flip = o == ORDER_DOWN ? -1 : 0, nan = o == ORDER_UP ? INT64_MAX : INT64_MIN;
    uint64_t bits;
    CPU_TILE_OF(int32_t, narrow);

    switch (d) {
    case RLX_DTYPE_f64: KEYS(double, (memcpy(&bits, &v, 8), key_f64(bits, flip, nan))); break;
    case RLX_DTYPE_i64: KEYS(int64_t, v ^ flip); break;
    case RLX_DTYPE_u64: KEYS(uint64_t, (int64_t)(v ^ (uint64_t)INT64_MIN) ^ flip); break;
    default:
        for (int64_t done = 0; done < n; done += CPU_TILE) {
            int64_t part = cpu_min_i64(n - done, CPU_TILE);
            order_keys32(d, o, (const char *)src + done * (int64_t)cpu_size(d), part, narrow);
            for (int64_t i = 0; i < part; i++)
                dst[done + i] = narrow[i];
        }
        break;
    }
}

/* ---- items --------------------------------------------------------------------------------- */

/* n <= CPU_TILE elements of a row side by side, where they lie or in buffer. */
static const void *row_part(const struct order_row *r, int64_t from, int64_t n, void *buffer)
{
    const void *src = cpu_at(r->x, r->at + from * r->stride);

    if (r->stride == 1)
        return src;
    cpu_copy_strided(buffer, src, (int32_t)cpu_size(r->x->dtype), n, r->stride);
    return buffer;
}

void order_packed(const struct order_row *r, enum order o, int64_t from, int64_t n, uint64_t *dst)
{
    CPU_TILE_ANY(buffer);
    CPU_TILE_OF(int32_t, key);

    for (int64_t end = from + n; from < end; from += CPU_TILE, dst += CPU_TILE) {
        int64_t part = cpu_min_i64(end - from, CPU_TILE);
        order_keys32(r->x->dtype, o, row_part(r, from, part, buffer), part, key);
        for (int64_t i = 0; i < part; i++)
            dst[i] = order_pack(key[i], from + i);
    }
}

void order_pairs(const struct order_row *r, enum order o, int64_t from, int64_t n,
                 struct order_pair *dst)
{
    CPU_TILE_ANY(buffer);
    CPU_TILE_OF(int64_t, key);

    for (int64_t end = from + n; from < end; from += CPU_TILE, dst += CPU_TILE) {
        int64_t part = cpu_min_i64(end - from, CPU_TILE);
        order_keys64(r->x->dtype, o, row_part(r, from, part, buffer), part, key);
        for (int64_t i = 0; i < part; i++)
            dst[i] = (struct order_pair){(uint64_t)key[i] ^ (uint64_t)INT64_MIN, from + i};
    }
}

/* ---- sorting ------------------------------------------------------------------------------- */

/* Few items are sorted by insertion. More are dealt out by one byte of the key after the other, the
 * lowest first; a byte that is the same everywhere is skipped.
 *
 * The heap has the largest of the k smallest at its top, where a new item has to beat it. */
enum { FEW = 48 };

#define PACKED_KEY(v) ((v) >> 32)
#define PACKED_LESS(a, b) ((a) < (b))
#define PAIR_KEY(v) ((v).key)
#define PAIR_LESS(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).index < (b).index))

#define ORDER_FUNCTIONS(name, type, KEY, LESS, bytes)                                           \
    static void insert_##name(type *item, int64_t n)                                            \
    {                                                                                           \
        for (int64_t i = 1; i < n; i++) {                                                       \
            type v = item[i];                                                                   \
            int64_t at = i;                                                                     \
            for (; at > 0 && LESS(v, item[at - 1]); at--)                                       \
                item[at] = item[at - 1];                                                        \
            item[at] = v;                                                                       \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void deal_##name(type *restrict to, const type *restrict from, int64_t n, int shift) \
    {                                                                                           \
        int64_t place[256] = {0};                                                               \
                                                                                                \
        for (int64_t i = 0; i < n; i++)                                                         \
            place[KEY(from[i]) >> shift & 255]++;                                               \
        for (int64_t i = 0, sum = 0; i < 256; i++) {                                            \
            int64_t count = place[i];                                                           \
            place[i] = sum;                                                                     \
            sum += count;                                                                       \
        }                                                                                       \
        for (int64_t i = 0; i < n; i++)                                                         \
            to[place[KEY(from[i]) >> shift & 255]++] = from[i];                                 \
    }                                                                                           \
                                                                                                \
    static void radix_##name(type *item, type *other, int64_t n)                                \
    {                                                                                           \
        type *from = item, *to = other;                                                         \
        uint64_t differs = 0;                                                                   \
                                                                                                \
        for (int64_t i = 1; i < n; i++)                                                         \
            differs |= KEY(item[i]) ^ KEY(item[0]);                                             \
        for (int shift = 0; shift < 8 * (bytes); shift += 8) {                                  \
            if ((differs >> shift & 255) == 0)                                                  \
                continue;                                                                       \
            deal_##name(to, from, n, shift);                                                    \
            type *swap = from;                                                                  \
            from = to;                                                                          \
            to = swap;                                                                          \
        }                                                                                       \
        if (from != item)                                                                       \
            memcpy(item, from, (size_t)n * sizeof *item);                                       \
    }                                                                                           \
                                                                                                \
    void order_sort_##name(type *item, type *other, int64_t n)                                  \
    {                                                                                           \
        if (n <= FEW)                                                                           \
            insert_##name(item, n);                                                             \
        else                                                                                    \
            radix_##name(item, other, n);                                                       \
    }                                                                                           \
                                                                                                \
    /* Put v into the hole at `at` of a heap of n, moving larger ones up. */                    \
    static void sink_##name(type *heap, int64_t n, int64_t at, type v)                          \
    {                                                                                           \
        for (int64_t child; (child = 2 * at + 1) < n; at = child) {                             \
            if (child + 1 < n && LESS(heap[child], heap[child + 1]))                            \
                child++;                                                                        \
            if (!LESS(v, heap[child]))                                                          \
                break;                                                                          \
            heap[at] = heap[child];                                                             \
        }                                                                                       \
        heap[at] = v;                                                                           \
    }                                                                                           \
                                                                                                \
    int64_t order_top_##name(type *top, int64_t k, int64_t have, const type *item, int64_t n)   \
    {                                                                                           \
        int64_t i = 0;                                                                          \
                                                                                                \
        if (have < k) {                                                                         \
            i = cpu_min_i64(n, k - have);                                                       \
            memcpy(top + have, item, (size_t)i * sizeof *item);                                 \
            have += i;                                                                          \
            for (int64_t at = have == k ? k / 2 - 1 : -1; at >= 0; at--)                        \
                sink_##name(top, k, at, top[at]);                                               \
        }                                                                                       \
        for (; i < n; i++)                                                                      \
            if (LESS(item[i], top[0]))                                                          \
                sink_##name(top, k, 0, item[i]);                                                \
        return have;                                                                            \
    }                                                                                           \
                                                                                                \
    void order_finish_##name(type *top, int64_t have)                                           \
    {                                                                                           \
        for (int64_t at = have / 2 - 1; at >= 0; at--)                                          \
            sink_##name(top, have, at, top[at]);                                                \
        for (int64_t n = have - 1; n > 0; n--) {                                                \
            type largest = top[0];                                                              \
            sink_##name(top, n, 0, top[n]);                                                     \
            top[n] = largest;                                                                   \
        }                                                                                       \
    }

ORDER_FUNCTIONS(packed, uint64_t, PACKED_KEY, PACKED_LESS, 4)
ORDER_FUNCTIONS(pairs, struct order_pair, PAIR_KEY, PAIR_LESS, 8)
