/* quant_side.h: weights W[k,n] with their scales beside them (ops-special.md 1.2): how large their
 * parts are, numbers into codes, and codes into numbers, one element at a time. */
#ifndef IR_QUANT_SIDE_H
#define IR_QUANT_SIDE_H

#include "ir/quant/quant_scheme.h"

struct quant_side_weight {
    int32_t scheme; /* not a GGUF one */
    int64_t block_size;
    int64_t k, n;
    uint8_t *code;
    float *scale;        /* f32 [groups,n]; FP8: scale_count numbers */
    uint8_t *scale_code; /* nvfp4: E4M3 [groups,n] */
    float *zero;         /* int8_block_asym: [groups,n] */
    float *all;          /* nvfp4: one */
    int64_t scale_count; /* FP8: 0, 1, or n */
};

/* Elements along k that share a scale, and how many such groups there are. */
int64_t quant_side_group(const struct quant_side_weight *w);
int64_t quant_side_groups(const struct quant_side_weight *w);
/* Bytes of code, and elements of [groups,n]. false: too large. */
bool quant_side_code_bytes(const struct quant_side_weight *w, int64_t *out);
bool quant_side_group_count(const struct quant_side_weight *w, int64_t *out);

/* All of x [k,n], finite, into the parts that the scheme has. */
void quant_side_encode(const struct quant_side_weight *w, const float *x);
/* Element [j,i], from the parts, in f32. */
float quant_side_value(const struct quant_side_weight *w, int64_t j, int64_t i);

/* The nearest code, ties to even, beyond the largest the largest; NaN is E4M3's and E5M2's NaN, and
 * E2M1's zero. */
uint8_t quant_to_e4m3(float v);
uint8_t quant_to_e5m2(float v);
uint8_t quant_to_e2m1(float v);

#endif
