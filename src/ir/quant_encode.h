/* quant_encode.h: numbers as blocks of eight-bit codes: how act=q8 sees its activations
 * (ops-special 1.5, 1.6). */
#ifndef IR_QUANT_ENCODE_H
#define IR_QUANT_ENCODE_H

#include <stdbool.h>
#include <stdint.h>

/* 32 numbers as a block of Q8_0, 256 as one of Q8_K. false: one of them is not finite, and nothing
 * is written. */
bool quant_encode_q8_0(const float *x, uint8_t *block);
bool quant_encode_q8_k(const float *x, uint8_t *block);

#endif
