/* png.h: writes a picture as a PNG file that any viewer opens: rows of RGB bytes, not compressed.
 */
#ifndef PNG_H
#define PNG_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline uint8_t *png_u32(uint8_t *p, uint32_t v)
{
    for (int i = 24; i >= 0; i -= 8)
        *p++ = (uint8_t)(v >> i);
    return p;
}

static inline uint32_t png_crc(const uint8_t *p, size_t n)
{
    uint32_t crc = ~0u;

    while (n--) {
        crc ^= *p++;
        for (int i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* A chunk's length and name stand before its n bytes of data, its checksum after them. */
static inline uint8_t *png_chunk(uint8_t *p, const char *name, size_t n)
{
    png_u32(p, (uint32_t)n);
    memcpy(p + 4, name, 4);
    return png_u32(p + 8 + n, png_crc(p + 4, n + 4));
}

/* The rows, each after the byte 0, in stored blocks of at most 65535 bytes. */
static inline uint8_t *png_stored(uint8_t *p, const uint8_t *rows, size_t n)
{
    uint32_t a = 1, b = 0; /* Adler's sums */

    *p++ = 0x78;
    *p++ = 0x01;
    for (size_t at = 0; at < n; at += 65535) {
        size_t part = n - at < 65535 ? n - at : 65535;
        *p++ = at + part == n; /* the last block? */
        *p++ = (uint8_t)part;
        *p++ = (uint8_t)(part >> 8);
        *p++ = (uint8_t)~part;
        *p++ = (uint8_t)(~part >> 8);
        memcpy(p, rows + at, part);
        p += part;
    }
    for (size_t i = 0; i < n; i++) {
        a = (a + rows[i]) % 65521;
        b = (b + a) % 65521;
    }
    return png_u32(p, b << 16 | a);
}

/* rgb: height rows of 3 width bytes. 0: it worked. */
static inline int png_write(const char *path, const uint8_t *rgb, uint32_t width, uint32_t height)
{
    size_t row = 3 * (size_t)width, n = (row + 1) * height, blocks = n / 65535 + 1;
    uint8_t *rows = calloc(n, 1), *file = malloc(n + 5 * blocks + 128), *p = file;
    FILE *f = rows && file ? fopen(path, "wb") : NULL;
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const uint8_t plain[5] = {8, 2, 0, 0, 0}; /* 8 bits, RGB, nothing special */
    int failed = 1;

    if (f) {
        for (uint32_t y = 0; y < height; y++)
            memcpy(rows + y * (row + 1) + 1, rgb + y * row, row);
        memcpy(p, signature, sizeof signature);
        p += 8;
        memcpy(png_u32(png_u32(p + 8, width), height), plain, sizeof plain);
        p = png_chunk(p, "IHDR", 13);
        p = png_chunk(p, "IDAT", (size_t)(png_stored(p + 8, rows, n) - (p + 8)));
        p = png_chunk(p, "IEND", 0);
        failed = fwrite(file, 1, (size_t)(p - file), f) != (size_t)(p - file);
        failed |= fclose(f) != 0;
    }
    free(rows);
    free(file);
    return failed;
}

/* What splats render is linear light; a picture is not. */
static inline uint8_t png_level(float linear)
{
    double v = 255 * pow(linear > 0 ? (double)linear : 0, 1 / 2.2) + 0.5;

    return v < 255 ? (uint8_t)v : 255;
}

#endif
