/* inflate.h: deflated bytes back to what they were, by zlib, and checksums of zip archives. */
#ifndef IMPORT_INFLATE_H
#define IMPORT_INFLATE_H

#include "base/diag.h"
#include "base/mem.h"

/* zlib is looked for when something is deflated; UNSUPPORTED, with what to install, without it.
 *
 * A raw stream that becomes exactly out_size bytes; FORMAT if it is broken, or becomes fewer or
 * more. Nothing is written past out_size. */
rlx_status inflate_whole(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size,
                         const rlx_allocator *mem, struct diag *d);
/* Its first bytes, out_size of them or, where it has fewer, *got. */
rlx_status inflate_front(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size,
                         size_t *got, const rlx_allocator *mem, struct diag *d);

/* The CRC-32 of zip; crc: of the bytes before these, 0 at the beginning. */
uint32_t crc32_of(uint32_t crc, const uint8_t *bytes, size_t size);

#endif
