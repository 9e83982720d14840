/* quant.h: weights in few bits: what dequant_matmul and its kin read (rlx/ops.h).
 *
 * In blocks: rows of n weights, k numbers each, in blocks of 32 or 256 that hold their own scales,
 * the formats of GGUF files, q4_0 to tq2_0. With scales beside them: a matrix [k,n] of codes and
 * tensors of scales: int8, int4, FP8, NVFP4.
 *
 * Numbers that are not finite are refused (NUMERIC), and so are those too large for a format's
 * scales (LIMIT). What was written before a refusal is not to be used. */
#ifndef RLX_QUANT_H
#define RLX_QUANT_H

#ifndef RLX_UNSTABLE
#error "rlx/quant.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- blocks ---- */

/* Bytes of a packed row of k numbers. ATTRIBUTE: no block format; SHAPE: k is not a whole number of
 * blocks. */
RLX_API rlx_status rlx_quant_row_bytes(rlx_quant_scheme scheme, int64_t k, size_t *out,
                                       rlx_error *err);
/* x [rows,k] as packed rows, one after another. out_bytes: exactly as many as they take, else SIZE.
 * q8_1 is only ever read: UNSUPPORTED. */
RLX_API rlx_status rlx_quantize_rows(rlx_quant_scheme scheme, const float *x, int64_t rows,
                                     int64_t k, void *out, size_t out_bytes, rlx_error *err);
RLX_API bool rlx_quant_has_encoder(rlx_quant_scheme scheme); /* can rlx_quantize_rows make it? */
/* And back. Any bytes are numbers, though not always finite ones. */
RLX_API rlx_status rlx_dequantize_rows(rlx_quant_scheme scheme, const void *packed,
                                       size_t packed_bytes, int64_t rows, int64_t k, float *out,
                                       rlx_error *err);

/* ---- scales beside the weight ---- */

/* A matrix [k,n] in parts, each with its bytes; a part that the scheme does not have is NULL and 0.
 * They are the operands w, scale and zp of dequant_matmul. */
typedef struct rlx_quant_weight {
    rlx_quant_scheme scheme;
    int64_t block_size; /* int8_block, int8_block_asym, int4_block: numbers along k per scale */
    int64_t k, n;
    void *code; /* u8 [k,n]; int4_block, nvfp4_block: two to a byte */
    size_t code_bytes;
    /* f32 [groups,n]; nvfp4_block: u8 [groups,n]; FP8: f32 [1], or [1,n], or nothing, as you like
     */
    void *scale;
    size_t scale_bytes;
    float *zero_point; /* int8_block_asym: f32 [groups,n]; nvfp4_block: f32 [1], the scale of all */
    size_t zero_point_bytes;
} rlx_quant_weight;
/* Fills in the bytes of each part, from scheme, block_size, k and n; of FP8's scale, none. */
RLX_API rlx_status rlx_quant_weight_sizes(rlx_quant_weight *w, rlx_error *err);
/* x [k,n] into the parts. SIZE: bytes that do not match the sizes. */
RLX_API rlx_status rlx_quantize_weight(const rlx_quant_weight *w, const float *x, rlx_error *err);
/* And back, out [k,n]. */
RLX_API rlx_status rlx_dequantize_weight(const rlx_quant_weight *w, float *out, rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
