/* conv_store.h: how vectors of finished sums reach an f32 output, with bias, residual and relu on
 * the way. All else goes through conv_store_row. */
#ifndef BACKEND_CONV_STORE_H
#define BACKEND_CONV_STORE_H

#include "backend/cpu/kernels/conv/conv_tiles_core.h"

typedef vec_f32 loose_f32 __attribute__((aligned(4), may_alias));

static inline bool conv_stores_plain(const struct conv *v)
{
    return v->out->dtype == RLX_DTYPE_f32 && (v->act == RLX_OP_none || v->act == RLX_OP_relu);
}

/* Of output channel co; x + -0 is x. */
static inline float conv_plain_bias(const struct conv *v, int64_t co)
{
    return v->bias ? ((const float *)v->bias->data)[co] : -0.0f;
}

/* The first n elements of a vector, 1 to VEC_LANES. */
static inline vec_f32 load_some(const float *from, int64_t n)
{
#if defined(__AVX512F__)
    return _mm512_maskz_loadu_ps((__mmask16)(0xffffu >> (VEC_LANES - n)), from);
#else
    float each[VEC_LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        each[i] = from[i];
    return *(const loose_f32 *)each;
#endif
}

static inline void store_some(float *to, vec_f32 x, int64_t n)
{
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, (__mmask16)(0xffffu >> (VEC_LANES - n)), x);
#else
    for (int64_t i = 0; i < n; i++)
        to[i] = x[i];
#endif
}

static inline vec_f32 relu(vec_f32 x)
{
    typedef int32_t vec_i32 __attribute__((vector_size(GEMM_VEC)));
    return (vec_f32)((vec_i32)x & ~(vec_i32)(x < 0)); /* NaN and -0 stay */
}

/* n sums of one channel, to element `to` of the output on. */
static inline void conv_store_vec(const struct conv *v, vec_f32 sum, float bias, int64_t to,
                                  int64_t n)
{
    float *out = (float *)v->out->data + to;
    const float *add = v->residual ? (const float *)v->residual->data + to : NULL;
    bool whole = n >= VEC_LANES;

    sum += bias;
    if (add)
        sum += whole ? (vec_f32) * (const loose_f32 *)add : load_some(add, n);
    if (v->act == RLX_OP_relu)
        sum = relu(sum);
    if (whole)
        *(loose_f32 *)out = sum;
    else
        store_some(out, sum, n);
}

#endif
