/* dequant_q8_panels.c: packed rows of w as panels of codes (dequant_q8.h).
 *
 * Sixteen rows become codes in a buffer, some hundred elements at a time; then four elements of one
 * row, of the next row and so on are brought together: a matrix of 16 x 16 words, transposed. */
#include "backend/cpu/kernels/dequant/dequant_q8.h"

#ifdef Q8_VNNI

#include "backend/cpu/kernels/dequant/dequant_q8_transpose.h"

enum { CHUNK = 256, GROUPS = CHUNK / 16 }; /* elements at a time, and groups of them at most */

struct columns {
    _Alignas(64) int8_t code[Q8_LINES][CHUNK];
    float scale[Q8_LINES][GROUPS], min[Q8_LINES][GROUPS];
};

/* Codes of `elems` elements, a multiple of 32, to the panel's groups. */
INLINE void put_codes(const struct columns *c, int64_t elems, int64_t group, __m512i flip, char *to)
{
    for (int64_t k = 0; k < elems; k += 64) {
        __m512i word[16];
        int64_t words = cpu_min_i64(64, elems - k) / 4;
        transpose(&c->code[0][k], CHUNK, word);
        for (int64_t i = 0; i < words; i++) {
            int64_t at = k + 4 * i;
            _mm512_store_si512(to + at / group * q8_w_step(group) + at % group * Q8_LINES,
                               _mm512_xor_si512(word[i], flip));
        }
    }
}

INLINE void put_numbers(const float (*from)[GROUPS], int64_t groups, int64_t step, char *to)
{
    __m512i word[16];

    transpose(from, sizeof *from, word);
    for (int64_t g = 0; g < groups; g++)
        _mm512_store_si512(to + g * step, word[g]);
}

void q8_pack_w(const struct q8_weight *w, int64_t col, int64_t cols, char *to)
{
    q8_codes_fn codes = q8_codes_of(w->scheme);
    const __m512i flip = _mm512_set1_epi8((char)0x80);
    int64_t step = q8_w_step(w->group), most = CHUNK / w->block_elems;
    struct columns c;

    memset(&c, 0, sizeof c); /* columns past the last stay so */
    for (int64_t b = 0, count; b < w->blocks; b += count) {
        count = cpu_min_i64(most, w->blocks - b);
        int64_t elems = count * w->block_elems, groups = elems / w->group;
        for (int64_t i = 0; i < cols; i++)
            codes(q8_row(w, col + i) + b * w->block_bytes, count, c.code[i], c.scale[i], c.min[i]);
        if (w->group == 32)
            put_codes(&c, elems, 32, flip, to);
        else
            put_codes(&c, elems, 16, flip, to);
        put_numbers(c.scale, groups, step, to + Q8_LINES * w->group);
        put_numbers(c.min, groups, step, to + Q8_LINES * (w->group + 4));
        to += groups * step;
    }
}

#else
typedef int dequant_q8_panels_are_not_here; /* a file must declare something */
#endif
