/* splat_block.h: what a block of rays meets of one splat (ops-special.md 7.5). The image and its
 * gradients are computed from the same alphas, bit for bit. */
#ifndef BACKEND_SPLAT_BLOCK_H
#define BACKEND_SPLAT_BLOCK_H

#include "backend/cpu/kernels/math.h"
#include "backend/cpu/kernels/splat/splat.h"

enum { SPLAT_BLOCK = 32 }; /* rays */

/* A ray of zeros meets nothing: so are rays that have no light left, and those that fill up a
 * block. */
struct splat_rays {
    _Alignas(64) double x[SPLAT_BLOCK], y[SPLAT_BLOCK], z[SPLAT_BLOCK];
};

/* Pixels from .. from+n-1 of a tile. */
static inline void splat_rays_of(const struct splat_canvas *s, const struct splat_scene *scene,
                                 const struct splat_tile *t, int64_t from, int64_t n,
                                 struct splat_rays *r)
{
    memset(r, 0, sizeof *r);
    for (int64_t i = 0; i < n; i++) {
        const float *ray = scene->ray + 3 * splat_pixel(s, t, from + i);
        r->x[i] = (double)ray[0];
        r->y[i] = (double)ray[1];
        r->z[i] = (double)ray[2];
    }
}

/* The logarithm of what each ray sees of the splat, but for its opacity; false: none sees it. */
static inline bool splat_powers(const struct splat_shape *p, const struct splat_rays *r,
                                float *power)
{
    const double *m = p->axes;
    double ax = p->local[0], ay = p->local[1], az = p->local[2], flat = p->flat;
    float far = (float)(-4.5 * p->far);
    int32_t seen = 0;

    for (int i = 0; i < SPLAT_BLOCK; i++) {
        double bx = m[0] * r->x[i] + m[1] * r->y[i] + m[2] * r->z[i];
        double by = m[3] * r->x[i] + m[4] * r->y[i] + m[5] * r->z[i];
        double bz = m[6] * r->x[i] + m[7] * r->y[i] + m[8] * r->z[i];
        double bb = bx * bx + by * by + bz * bz, ab = ax * bx + ay * by + az * bz;
        double t = -ab / bb;
        double ex = ax + t * bx, ey = ay + t * by, ez = az + t * bz;
        double square = ex * ex + ey * ey + ez * ez;
        square = t <= 0 ? (double)INFINITY : square;
        square = bb <= flat ? (double)INFINITY : square;
        power[i] = (float)(-4.5 * square);
    }
    for (int i = 0; i < SPLAT_BLOCK; i++)
        seen |= power[i] >= far;
    return seen;
}

/* Powers become alphas; 0 where that is below the cutoff, or NaN. */
static inline void splat_alphas(const struct splat_shape *p, float cutoff, const float *power,
                                float *alpha)
{
    for (int i = 0; i < SPLAT_BLOCK; i++) {
        float a = p->opacity * math_exp(power[i]);
        alpha[i] = a >= cutoff ? a : 0;
    }
}

#endif
