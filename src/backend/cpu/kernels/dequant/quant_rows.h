/* quant_rows.h: packed weights as f32, fast: whole blocks of a row (quant_rows.c), and tiles of a
 * matrix that has its scales beside it (quant_side_rows.c). The values are those of
 * ir/quant/quant_decode.h, to the bit. */
#ifndef BACKEND_QUANT_ROWS_H
#define BACKEND_QUANT_ROWS_H

#include "backend/cpu/kernels/common.h"
#include "ir/quant/quant_scheme.h"

enum { QUANT_ROWS_BLOCK = 256 }; /* elements of the largest block; a multiple of all others */

/* ---- block formats: rows of N, each of k elements ------------------------------------------ */

/* Packed rows, one after another. */
struct quant_rows {
    int32_t scheme; /* a GGUF one */
    const uint8_t *data;
    int64_t elems, bytes; /* of a block */
    int64_t row;          /* bytes of a row */
};

static inline struct quant_rows quant_rows_of(int32_t scheme, const void *data, int64_t k)
{
    const struct quant_scheme *s = quant_scheme(scheme);
    int64_t blocks = k / s->block_elems;

    return (struct quant_rows){scheme, data, s->block_elems, s->block_bytes,
                               blocks * s->block_bytes};
}

#define quant_blocks CPU_NAME(quant_blocks)
#define quant_rows_read CPU_NAME(quant_rows_read)

/* Blocks that lie one after another. Any bytes will do. */
void quant_blocks(int32_t scheme, const uint8_t *from, int64_t blocks, float *restrict out);
/* Elements k .. k+n-1 of a row. Where they begin or end within a block, that one is decoded beside
 * and copied. */
void quant_rows_read(const struct quant_rows *r, int64_t row, int64_t k, int64_t n, float *out);

/* ---- scales beside the weight: W[k,n] ------------------------------------------------------ */

struct quant_side {
    int32_t scheme; /* not a GGUF one */
    int64_t n;      /* columns */
    int64_t group;  /* k per scale */
    const uint8_t *code;
    const float *scale;    /* [groups,n]; FP8: [n], or one number, or NULL for none */
    const float *zero;     /* [groups,n], int8_block_asym only */
    const uint8_t *scale8; /* nvfp4: E4M3 [groups,n] */
    float all;             /* nvfp4: for all; FP8: the one number */
};

#define quant_side_tile CPU_NAME(quant_side_tile)

/* Rows k .. k+ks-1, columns n .. n+ns-1, to rows of out that are `ld` apart. */
void quant_side_tile(const struct quant_side *w, int64_t k, int64_t ks, int64_t n, int64_t ns,
                     float *restrict out, int64_t ld);

#endif
