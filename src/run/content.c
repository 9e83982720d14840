/* content.c: a hash of 128 bits that reads an input about as fast as copying it would.
 *
 * The data is read in blocks of four words; word i of a block goes to lane i. A lane has two words
 * of state, and takes in a word w as
 *
 *     state = rotate(state ^ w, 29) * ODD      sum = sum + state
 *
 * Lanes do not wait for one another, so four chains of multiplications run side by side. Why it is
 * enough:
 *  - The first step is a bijection of w, and of the state: if a single word of a lane differs, then
 *    its state differs at the end, always.
 *  - Where later words undo the difference, the sum has noticed it: always, if one word undoes what
 *    the word before it did; with all but one of 2^64 inputs in general.
 *  - Lanes start differently, so words cannot trade places; the last block is filled with zeros and
 *    the length goes in last, so zeros at the end count.
 * The result folds the states of all lanes into one word and their sums into the other, each with
 * some of the first, and mixes every bit of them into every other. */
#include "run/content.h"

#include <string.h>

enum { LANES = 4, BLOCK = LANES * 8 };

#define ODD UINT64_C(0xd6e8a3b1c59f7e4d)
#define ODD_2 UINT64_C(0xa24baed4963ee407)

struct lane {
    uint64_t state, sum;
};

static inline uint64_t rotate(uint64_t v, int by)
{
    return v << by | v >> (64 - by);
}

static inline void take_in(struct lane *l, uint64_t word)
{
    l->state = rotate(l->state ^ word, 29) * ODD;
    l->sum += l->state;
}

/* Every bit of v reaches every bit of the result. */
static uint64_t mix(uint64_t v)
{
    v = (v ^ v >> 32) * ODD_2;
    v = (v ^ v >> 29) * ODD;
    return v ^ v >> 32;
}

static struct content fold(const struct lane lane[LANES], uint64_t bytes)
{
    struct content c = {bytes * ODD_2, ~bytes};

    for (int i = 0; i < LANES; i++) {
        c.a = mix(c.a ^ lane[i].state) + rotate(lane[i].sum, 32);
        c.b = mix(c.b ^ lane[i].sum) + lane[i].state;
    }
    return (struct content){mix(c.a + rotate(c.b, 17)), mix(c.b ^ c.a * ODD)};
}

/* In scalars of its own, so that all of it stays in registers. (Vectors have no product of 64 bits
 * before AVX-512, so they would not help.) */
static void take_blocks(struct lane lane[LANES], const uint8_t *at, size_t blocks)
{
    struct lane l0 = lane[0], l1 = lane[1], l2 = lane[2], l3 = lane[3];
    uint64_t word[LANES];

    for (; blocks; blocks--, at += BLOCK) {
        memcpy(word, at, BLOCK);
        take_in(&l0, word[0]);
        take_in(&l1, word[1]);
        take_in(&l2, word[2]);
        take_in(&l3, word[3]);
    }
    lane[0] = l0;
    lane[1] = l1;
    lane[2] = l2;
    lane[3] = l3;
}

struct content content_of(const void *data, size_t bytes)
{
    struct lane lane[LANES] = {{UINT64_C(0x9ae16a3b2f90404f), 0},
                               {UINT64_C(0xc3a5c85c97cb3127), 0},
                               {UINT64_C(0xb492b66fbe98f273), 0},
                               {UINT64_C(0x2d358dccaa6c78a5), 0}};
    const uint8_t *at = data;
    size_t left = bytes % BLOCK;

    take_blocks(lane, at, bytes / BLOCK);
    if (left) {
        uint8_t last[BLOCK] = {0};
        memcpy(last, at + (bytes - left), left);
        take_blocks(lane, last, 1);
    }
    return fold(lane, bytes);
}
