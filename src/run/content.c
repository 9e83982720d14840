/* content.c: two hashes of an input's bytes. */
#include "run/content.h"

#include <string.h>

/* The word at byte i, zeros where the data ends. */
static uint64_t word_at(const uint8_t *data, size_t bytes, size_t i)
{
    uint8_t w[8] = {0};
    uint64_t v = 0;

    memcpy(w, data + i, bytes - i < 8 ? bytes - i : 8);
    for (int k = 7; k >= 0; k--)
        v = v << 8 | w[k];
    return v;
}

uint64_t content_hash(const void *data, size_t bytes, uint64_t count)
{
    const uint64_t prime = UINT64_C(0x100000001b3);
    uint64_t h = (UINT64_C(0xcbf29ce484222325) ^ count) * prime;

    for (size_t i = 0; i < bytes; i += 8)
        h = (h ^ word_at(data, bytes, i)) * prime;
    return h;
}

/* Rotating and an odd multiplier spread every bit over the word; the length comes last. */
uint64_t content_hash_2(const void *data, size_t bytes)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t h = odd;

    for (size_t i = 0; i < bytes; i += 8) {
        h = (h ^ word_at(data, bytes, i)) * odd;
        h = h << 29 | h >> 35;
    }
    h = (h ^ bytes) * odd;
    return h ^ h >> 32;
}
