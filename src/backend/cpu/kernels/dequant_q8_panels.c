/* dequant_q8_panels.c: packed rows of w as panels of codes (dequant_q8.h). */
#include "backend/cpu/kernels/dequant_q8.h"

#ifdef Q8_VNNI

/* One block of a column. */
struct column {
    _Alignas(64) int8_t code[256];
    float scale[16], min[16];
};

/* Its groups, into lane `col` of a panel. */
static void put_column(const struct column *from, int64_t col, int64_t elems, int64_t group,
                       uint32_t flip, char *to)
{
    for (int64_t i = 0, g = 0; i < elems; i += group, g++, to += q8_w_step(group)) {
        float *scale = (float *)(void *)(to + Q8_LINES * group);
        for (int64_t k = 0; k < group; k += 4) {
            uint32_t four;
            memcpy(&four, from->code + i + k, sizeof four);
            four ^= flip;
            memcpy(to + k * Q8_LINES + 4 * col, &four, sizeof four);
        }
        scale[col] = from->scale[g];
        scale[Q8_LINES + col] = from->min[g];
    }
}

void q8_pack_w(const struct q8_weight *w, int64_t col, int64_t cols, bool unsigned_, char *to)
{
    q8_codes_fn codes = q8_codes_of(w->scheme);
    int64_t bytes = w->block_elems / w->group * q8_w_step(w->group);
    uint32_t flip = unsigned_ ? 0x80808080u : 0;
    struct column column;

    for (int64_t b = 0; b < w->blocks; b++, to += bytes) {
        for (int64_t i = 0; i < cols; i++) {
            codes(q8_row(w, col + i) + b * w->block_bytes, column.code, column.scale, column.min);
            put_column(&column, i, w->block_elems, w->group, flip, to);
        }
        memset(&column, 0, sizeof column);
        for (int64_t i = cols; i < Q8_LINES; i++)
            put_column(&column, i, w->block_elems, w->group, 0, to);
    }
}

#else
typedef int dequant_q8_panels_are_not_here; /* a file must declare something */
#endif
