/* dequant_q8_transpose.h: a matrix of 16 x 16 words, transposed in registers. */
#ifndef BACKEND_DEQUANT_Q8_TRANSPOSE_H
#define BACKEND_DEQUANT_Q8_TRANSPOSE_H

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

/* Rows of 64 bytes, `apart` bytes from one another; out[i] has word i of each. */
INLINE void transpose(const void *rows, int64_t apart, __m512i *out)
{
    const char *from = rows;
    __m512i a[16], b[16];

    for (int i = 0; i < 16; i++)
        a[i] = _mm512_load_si512(from + i * apart);
    for (int i = 0; i < 16; i += 2) { /* pairs of rows: words 0 1, and 2 3, of every four */
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) { /* four rows: words 0, 1, 2, 3 of every four */
        a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
        a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
        a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
        a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
    }
    for (int i = 0; i < 4; i++) { /* eight rows, then all */
        b[i] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0x88);
        b[i + 4] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0xdd);
        b[i + 8] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0x88);
        b[i + 12] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        out[i] = _mm512_shuffle_i32x4(b[i], b[i + 8], 0x88);
        out[i + 8] = _mm512_shuffle_i32x4(b[i], b[i + 8], 0xdd);
        out[i + 4] = _mm512_shuffle_i32x4(b[i + 4], b[i + 12], 0x88);
        out[i + 12] = _mm512_shuffle_i32x4(b[i + 4], b[i + 12], 0xdd);
    }
}

/* A tile of 16 rows of 64 bytes from the transposed of it. */
INLINE void put_tile(const void *rows, int64_t apart, char *to)
{
    __m512i word[16];

    transpose(rows, apart, word);
    for (int i = 0; i < 16; i++)
        _mm512_store_si512(to + 64 * i, word[i]);
}

#endif
