/* quant_decode.h: packed weights as numbers: the meaning of every block format and of every small
 * float (ops-special.md 0.4, 1.2, 1.4), element by element, read byte by byte. */
#ifndef IR_QUANT_DECODE_H
#define IR_QUANT_DECODE_H

#include <stdint.h>

#define QUANT_BLOCK_ELEMS 256 /* of the largest block */
#define QUANT_BLOCK_BYTES 292 /* likewise */

/* A block of a GGUF scheme (RLX_QUANT_SCHEME_...), block_elems numbers. Any bytes will do. */
void quant_decode_block(int32_t scheme, const uint8_t *block, float *out);
/* A packed row of k elements, k a multiple of block_elems. */
void quant_decode_row(int32_t scheme, const uint8_t *row, int64_t k, float *out);

/* As weights have them: codes for NaN and infinity are 0. */
float quant_e4m3(uint8_t code);
float quant_e5m2(uint8_t code);
float quant_e2m1(uint8_t code); /* its low four bits */

#endif
