/* dequant_q8_tiles.c: sixteen rows of x times sixteen columns of w, from panels of codes, by
 * AVX-512 (dequant_q8.h).
 *
 * Sums of products of codes are integers, for one group of k at a time; then they are scaled and
 * added to those of the groups before, which stay in registers. */
#include "backend/cpu/kernels/dequant/dequant_q8.h"

#ifdef Q8_VNNI

#include "backend/cpu/kernels/gemm/gemm_vec.h"

#define INLINE static inline __attribute__((always_inline))

/* What comes after the codes of a group. */
INLINE const float *x_scales(const char *x, int64_t group)
{
    return (const float *)(const void *)(x + Q8_LINES * group);
}

/* sum[r] += mins * sums of x in row r. */
INLINE void add_mins(const char *w, const float *x_scale, int64_t group, __m512 *sum)
{
    __m512 min = _mm512_load_ps(w + Q8_LINES * (group + 4));

    GEMM_UNROLL
    for (int r = 0; r < Q8_LINES; r++)
        sum[r] = _mm512_fmadd_ps(min, _mm512_set1_ps(x_scale[Q8_LINES + r]), sum[r]);
}

INLINE void open_sums(__m512 *sum)
{
    GEMM_UNROLL
    for (int r = 0; r < Q8_LINES; r++)
        sum[r] = _mm512_setzero_ps();
}

INLINE void close_sums(const __m512 *sum, float *to)
{
    GEMM_UNROLL
    for (int r = 0; r < Q8_LINES; r++)
        _mm512_store_ps(to + Q8_LINES * r, sum[r]);
}

/* Rows `from` to `from` + 8. Eight sums grow side by side: one after the other, they would wait for
 * themselves. */
INLINE void eight_vnni(const char *x, const char *w, int64_t group, int from, __m512 *sum)
{
    const float *x_scale = x_scales(x, group) + from;
    const int32_t *offset = (const int32_t *)(const void *)(x_scale + 2 * Q8_LINES);
    __m512 scale = _mm512_load_ps(w + Q8_LINES * group);
    __m512i dot[8];

    GEMM_UNROLL
    for (int r = 0; r < 8; r++)
        dot[r] = _mm512_set1_epi32(offset[r]);
    GEMM_UNROLL
    for (int64_t k = 0; k < group / 4; k++) {
        __m512i codes = _mm512_load_si512(w + 64 * k);
        GEMM_UNROLL
        for (int r = 0; r < 8; r++) {
            int32_t four;
            memcpy(&four, x + (from + r) * group + 4 * k, sizeof four);
            dot[r] = _mm512_dpbusd_epi32(dot[r], codes, _mm512_set1_epi32(four));
        }
    }
    GEMM_UNROLL
    for (int r = 0; r < 8; r++)
        sum[from + r] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(dot[r]), scale),
                                        _mm512_set1_ps(x_scale[r]), sum[from + r]);
}

INLINE void tile_vnni(const struct q8_tile *t, int64_t group, bool with_min)
{
    const char *x = t->x, *w = t->w;
    __m512 sum[Q8_LINES];

    open_sums(sum);
    for (int64_t g = 0; g < t->groups; g++, x += q8_x_step(group), w += q8_w_step(group)) {
        eight_vnni(x, w, group, 0, sum);
        eight_vnni(x, w, group, 8, sum);
        if (with_min)
            add_mins(w, x_scales(x, group), group, sum);
    }
    close_sums(sum, t->sum);
}

void q8_tile_run(const struct q8_tile *t)
{
    if (t->group == 32 && !t->with_min)
        tile_vnni(t, 32, false);
    else if (t->group == 32)
        tile_vnni(t, 32, true);
    else if (!t->with_min)
        tile_vnni(t, 16, false);
    else
        tile_vnni(t, 16, true);
}

#else
typedef int dequant_q8_tiles_are_not_here; /* a file must declare something */
#endif
