/* bytes.h: a range of untrusted bytes, read from front to back. Every read is checked, and reads
 * its bytes once. */
#ifndef IMPORT_BYTES_H
#define IMPORT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const uint8_t *at; /* of the whole range */
    size_t size, pos;
};

static inline size_t bytes_left(const struct bytes *b)
{
    return b->size - b->pos;
}

/* A number of `width` bytes, little-endian; false: they are not there, and nothing was read. */
static inline bool bytes_number(struct bytes *b, size_t width, uint64_t *out)
{
    uint64_t v = 0;

    if (bytes_left(b) < width)
        return false;
    for (size_t i = 0; i < width; i++)
        v |= (uint64_t)b->at[b->pos + i] << (8 * i);
    b->pos += width;
    *out = v;
    return true;
}

static inline bool bytes_u16(struct bytes *b, uint16_t *out)
{
    uint64_t v;

    if (!bytes_number(b, 2, &v))
        return false;
    *out = (uint16_t)v;
    return true;
}

static inline bool bytes_u32(struct bytes *b, uint32_t *out)
{
    uint64_t v;

    if (!bytes_number(b, 4, &v))
        return false;
    *out = (uint32_t)v;
    return true;
}

static inline bool bytes_copy(struct bytes *b, void *to, size_t size)
{
    if (bytes_left(b) < size)
        return false;
    if (size)
        memcpy(to, b->at + b->pos, size);
    b->pos += size;
    return true;
}

#endif
