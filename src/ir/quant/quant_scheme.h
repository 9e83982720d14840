/* quant_scheme.h: the formats of packed weights, as numbers (ops-special.md 1.1 to 1.3). */
#ifndef IR_QUANT_SCHEME_H
#define IR_QUANT_SCHEME_H

#include <stdbool.h>
#include <stdint.h>

struct quant_scheme {
    const char *display; /* "gguf_q4_0"; int8, int8a and int4 take "/block_size" after it */
    int16_t block_elems; /* of a GGUF block, else 0 */
    int16_t block_bytes; /* likewise */
    int16_t scale_at;    /* in a block: its scale, f16, but f32 in Q8_K; -1: bytes of other kinds */
    int16_t offset_at;   /* what goes along with it, f16: m or dmin; 0: there is none */
    int16_t group;       /* elements along K per scale; 0: the op's block_size; 1: no groups */
    bool is_gguf;        /* scales are in the blocks; rows are N, each of k elements */
    bool nibbles;        /* two elements per byte in a flat weight, N given by the op */
    bool has_scale;      /* a side tensor [G,N] of scales */
    bool has_zero_point; /* and one of zero points */
    bool scale_is_fp8;   /* the scales are E4M3 bytes, and there is a global f32 one */
};

/* Of a word of the enum quant_scheme (RLX_QUANT_SCHEME_...); NULL: there is no such word. */
const struct quant_scheme *quant_scheme(int32_t scheme);

/* Bytes of a packed row of k elements; false: not GGUF, no whole blocks, or too large. */
bool quant_row_bytes(const struct quant_scheme *s, int64_t k, int64_t *out);

#endif
