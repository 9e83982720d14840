/* image.h: pictures as bytes: PNG, PGM and PPM by readers of our own, JPEG by libturbojpeg.
 *
 *     uint8_t data[height][width][channels]     channels: grey, grey and alpha, RGB, RGBA
 */
#ifndef IMPORT_IMAGE_H
#define IMPORT_IMAGE_H

#include "base/diag.h"
#include "base/mem.h"

struct image {
    int64_t width, height, channels;
    uint8_t *data; /* of mem, which image_free gives it back to */
    size_t bytes;
};

/* A whole file, of whichever kind it is; FORMAT where it is none, or broken. */
rlx_status image_read(const uint8_t *bytes, size_t size, const rlx_allocator *mem,
                      struct image *out, struct diag *d);
void image_free(struct image *i, const rlx_allocator *mem);

/* The readers of each kind, and what they share. */
bool png_is(const uint8_t *bytes, size_t size);
bool jpeg_is(const uint8_t *bytes, size_t size);
rlx_status png_read(const uint8_t *bytes, size_t size, const rlx_allocator *mem, struct image *out,
                    struct diag *d);
rlx_status jpeg_read(const uint8_t *bytes, size_t size, const rlx_allocator *mem, struct image *out,
                     struct diag *d);
/* Room for a picture of that size, with sizes from a file; LIMIT where that is too much to be one.
 */
rlx_status image_make(int64_t width, int64_t height, int64_t channels, const rlx_allocator *mem,
                      struct image *out, struct diag *d);

#endif
