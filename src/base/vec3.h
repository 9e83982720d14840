/* vec3.h: vectors of three doubles, for geometry. */
#ifndef BASE_VEC3_H
#define BASE_VEC3_H

#include <math.h>

struct v3 {
    double x, y, z;
};

static inline struct v3 v3_add(struct v3 a, struct v3 b)
{
    return (struct v3){a.x + b.x, a.y + b.y, a.z + b.z};
}

static inline struct v3 v3_sub(struct v3 a, struct v3 b)
{
    return (struct v3){a.x - b.x, a.y - b.y, a.z - b.z};
}

static inline struct v3 v3_mul(struct v3 a, struct v3 b) /* elementwise */
{
    return (struct v3){a.x * b.x, a.y * b.y, a.z * b.z};
}

static inline struct v3 v3_scale(struct v3 a, double by)
{
    return (struct v3){a.x * by, a.y * by, a.z * by};
}

static inline double v3_dot(struct v3 a, struct v3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline double v3_length(struct v3 a)
{
    return sqrt(v3_dot(a, a));
}

static inline struct v3 v3_cross(struct v3 a, struct v3 b)
{
    return (struct v3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

#endif
