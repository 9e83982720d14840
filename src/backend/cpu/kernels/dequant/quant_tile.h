/* quant_tile.h: what quantising and fake quantising share. Everything is in double tiles. */
#ifndef BACKEND_QUANT_TILE_H
#define BACKEND_QUANT_TILE_H

#include "backend/cpu/kernels/common.h"

enum { QUANT_GRAIN = 16384 }; /* elements per block */
#define QUANT_SCALE_LEAST 1e-12

/* The largest magnitude that this many bits hold: 127, 7, 1. */
static inline double quant_most(int64_t bits)
{
    return bits == 8 ? 127.0 : bits == 4 ? 7.0 : 1.0;
}

/* To the nearest integer, ties to even. Adding 2^52 leaves no room for a fraction. */
static inline double quant_round(double v)
{
    double a = fabs(v);
    double r = (a + 0x1p52) - 0x1p52;
    return copysign(a < 0x1p52 ? r : a, v);
}

static inline void quant_floor(double *s, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        s[i] = s[i] < QUANT_SCALE_LEAST ? QUANT_SCALE_LEAST : s[i];
}

/* n <= CPU_TILE values of a view of this type as a full tile of doubles. */
static inline void quant_read(const struct cpu_view *v, rlx_dtype dtype, int64_t pos, int64_t n,
                              double *out)
{
    int step;
    CPU_TILE_ANY(buffer);
    const void *row = cpu_view_read(v, pos, n, buffer, &step);

    cpu_load_f64(dtype, row, out, step ? n : 1);
    for (int64_t i = 1; i < n && !step; i++)
        out[i] = out[0];
}

#endif
