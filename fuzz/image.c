/* image.c: fuzzes the readers of pictures: PNG, PGM and PPM (and JPEG, where its library is).
 *
 * Most turned bytes of a PNG only break a checksum, so those are put right first, as an attacker
 * would. */
#include <string.h>

#include "rlx/tools.h"
#include "targets.h"
#include "weights.h"

static uint32_t crc_of(const uint8_t *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc & 1 ? 0xedb88320u ^ crc >> 1 : crc >> 1;
    }
    return ~crc;
}

static void mend(uint8_t *bytes, size_t size)
{
    for (size_t at = 8; size >= 20 && at <= size - 12;) {
        uint32_t len = (uint32_t)bytes[at] << 24 | (uint32_t)bytes[at + 1] << 16 |
                       (uint32_t)bytes[at + 2] << 8 | bytes[at + 3];
        if (len > size - at - 12)
            return;
        uint32_t crc = crc_of(bytes + at + 4, (size_t)len + 4);
        for (size_t i = 0; i < 4; i++)
            bytes[at + 8 + len + i] = (uint8_t)(crc >> (24 - 8 * i));
        at += (size_t)len + 12;
    }
}

void fuzz_image(const uint8_t *data, size_t size)
{
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .threads = 1};
    rlx_context *ctx = NULL;
    rlx_tensor t = {.rank = 0};
    rlx_error err = {.status = RLX_OK};
    uint8_t *copy = malloc(size + 1);

    need(copy != NULL);
    if (size)
        memcpy(copy, data, size);
    mend(copy, size);
    if (rlx_context_create(RLX_VERSION, &desc, &ctx, &err) == RLX_OK) {
        if (rlx_image_parse(ctx, copy, size, &t, &err) == RLX_OK) {
            need(t.dtype == RLX_DTYPE_u8 && t.rank == 3 && t.dim[0] > 0 && t.dim[1] > 0);
            need(t.dim[2] >= 1 && t.dim[2] <= 4);
            need(t.bytes == (size_t)(t.dim[0] * t.dim[1] * t.dim[2]));
            if (sum_of(t.data, t.bytes) == UINT32_MAX) /* so that every byte was looked at */
                putchar(' ');
            rlx_tensor_free(ctx, &t);
        } else {
            need(err.status != RLX_OK && err.message[0] && !t.data);
        }
    }
    rlx_context_destroy(ctx);
    free(copy);
}
