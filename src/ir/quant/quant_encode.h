/* quant_encode.h: numbers as packed blocks, by the rules of ops-special.md 1.5: weights for files
 * and tools, and how act=q8 sees its activations (1.6). */
#ifndef IR_QUANT_ENCODE_H
#define IR_QUANT_ENCODE_H

#include <stdbool.h>
#include <stdint.h>

/* 32 numbers as a block of Q8_0, 256 as one of Q8_K. false: one of them is not finite, and nothing
 * is written. */
bool quant_encode_q8_0(const float *x, uint8_t *block);
bool quant_encode_q8_k(const float *x, uint8_t *block);

/* Does a scheme have blocks, and rules that make them? Q8_1 is only ever read. */
bool quant_has_encoder(int32_t scheme);
/* block_elems finite numbers as a block of such a scheme. false: they are too large for its scales,
 * and what the block holds is not to be used. */
bool quant_encode_block(int32_t scheme, const float *x, uint8_t *block);

/* Where the first number is that is not finite; -1: nowhere. */
int64_t quant_first_not_finite(const float *x, int64_t n);

#endif
