/* content_test.c: inputs that differ have hashes that differ, wherever and however they do. */
#include "run/content.h"

#include <stdlib.h>
#include <string.h>

#include "../test.h"

enum { MOST = 200 }; /* several blocks, and a tail of every length */

static void fill(uint8_t *data, size_t n, uint64_t seed)
{
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        data[i] = (uint8_t)(x >> 24);
    }
}

/* Both words differ, not only the pair. */
static bool far_apart(struct content x, struct content y)
{
    return x.a != y.a && x.b != y.b;
}

TEST(content, equal_bytes_are_equal_at_any_address)
{
    uint8_t data[MOST], moved[MOST + 8];

    fill(data, sizeof data, 1);
    for (size_t n = 0; n <= MOST; n++) {
        memcpy(moved + n % 8, data, n);
        expect(t, content_same(content_of(data, n), content_of(moved + n % 8, n)));
    }
    expect(t, content_same(content_of(NULL, 0), content_of(data, 0)));
}

/* At every position of every length; for numbers of all sorts, and for nothing but zeros. */
TEST(content, every_bit_counts)
{
    uint8_t data[MOST];

    for (size_t n = 1; n <= MOST; n++) {
        fill(data, n, n);
        if (n % 3 == 0)
            memset(data, 0, n);
        struct content whole = content_of(data, n);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (!expect(t, far_apart(whole, content_of(data, n))))
                return;
            data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

TEST(content, length_and_order_count)
{
    uint8_t data[MOST] = {0}, swapped[MOST];

    for (size_t n = 1; n <= MOST; n++)
        for (size_t m = 0; m < n; m++)
            require(t, far_apart(content_of(data, n), content_of(data, m)));
    fill(data, sizeof data, 2);
    for (size_t i = 0; i + 8 <= MOST; i += 8)
        for (size_t k = i + 8; k + 8 <= MOST; k += 8) {
            memcpy(swapped, data, sizeof data);
            memcpy(swapped + i, data + k, 8);
            memcpy(swapped + k, data + i, 8);
            require(t, far_apart(content_of(data, MOST), content_of(swapped, MOST)));
        }
}

/* Two changes: in any two bits of several blocks, and in floats that trade their signs. */
TEST(content, two_changes_do_not_cancel)
{
    uint8_t data[160];

    fill(data, sizeof data, 3);
    struct content whole = content_of(data, sizeof data);
    for (size_t i = 0; i < 8 * sizeof data; i++)
        for (size_t k = i + 1; k < 8 * sizeof data; k += 1 + i % 5) {
            data[i / 8] ^= (uint8_t)(1u << i % 8);
            data[k / 8] ^= (uint8_t)(1u << k % 8);
            require(t, far_apart(whole, content_of(data, sizeof data)));
            data[i / 8] ^= (uint8_t)(1u << i % 8);
            data[k / 8] ^= (uint8_t)(1u << k % 8);
        }
}

/* How often each bit of the result turned over with bit `at` of the data, in `rounds` tries. */
static void count_flips(size_t bytes, size_t at, int rounds, int flips[128])
{
    uint8_t data[MOST];

    memset(flips, 0, 128 * sizeof flips[0]);
    for (int r = 0; r < rounds; r++) {
        fill(data, bytes, (uint64_t)r + 77);
        struct content x = content_of(data, bytes);
        data[at / 8] ^= (uint8_t)(1u << at % 8);
        struct content y = content_of(data, bytes);
        for (int b = 0; b < 64; b++) {
            flips[b] += (int)((x.a ^ y.a) >> b & 1);
            flips[64 + b] += (int)((x.b ^ y.b) >> b & 1);
        }
    }
}

/* Of 1024 tries 512 +- 16 turn a bit over; 6 standard deviations leave 1 in 5e8 to chance. */
TEST(content, any_bit_turns_half_of_the_result_over)
{
    static const size_t lengths[] = {3, 7, 8, 31, 32, 33, 64, 191};
    int flips[128];

    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
        for (size_t at = 0; at<8 * lengths[l]; at += lengths[l]> 8 ? 61 : 1) {
            count_flips(lengths[l], at, 1024, flips);
            for (int b = 0; b < 128; b++)
                if (flips[b] < 512 - 96 || flips[b] > 512 + 96)
                    fail(t, "%zu bytes, bit %zu: bit %d turned over %d times of 1024", lengths[l],
                         at, b, flips[b]);
        }
    expect(t, true);
}
