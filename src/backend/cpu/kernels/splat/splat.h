/* splat.h: what the kernels of Gaussian splatting share (ops-special.md 7).
 *
 *     operands -> splat_project -> prepared scene, footprints     splat_project.c  per splat, per
 * ray
 *              -> splat_list    -> ids by tile, nearest first     splat_tiles.c
 *              -> splat_draw    -> image                          splat_draw.c     per tile
 *              -> gradients                                       splat_backward.c per tile, per
 * splat
 *
 * A prepared scene is a row of f32, what gaussian_splat_prepare gives. Rendering makes one in
 * scratch and draws from that, so drawing at once and in two steps are the same bits. Geometry is
 * computed in f64 and rounded when it is written there; so is what a ray meets of a splat, as the
 * nearest point on a ray to a small splat far away is a small difference of large numbers. Colours
 * and what is left of the light are f32.
 *
 * Nothing of this is shared with the definitions in ir/eval_splat*.c, so that each checks the
 * other. */
#ifndef BACKEND_SPLAT_H
#define BACKEND_SPLAT_H

#include "backend/cpu/kernels/common.h"
#include "base/vec3.h"

#define SPLAT_SH0 0.28209479177387814 /* spherical harmonics: the constant band */
#define SPLAT_SH1 0.4886025119029199  /* and the linear one */

enum { SPLAT_META_FOV = 9, SPLAT_META_FAR = 11, SPLAT_META_BACKGROUND = 12, SPLAT_PARAMS = 11 };

/* Sizes and limits, from attributes and shapes. */
struct splat_canvas {
    int64_t width, height, tile; /* pixels */
    int64_t across, down, tiles; /* tiles */
    int64_t count;               /* splats */
    int64_t list;                /* ids that a prepared scene has room for */
    int64_t most;                /* of them that can be in use */
    int64_t coeffs;              /* per splat and channel; only where the operands are given */
    float radius_scale, cutoff, threshold;
};

/* A prepared scene's parts (7.9). */
struct splat_scene {
    float *colour;  /* [n][4] rgb, opacity as given */
    float *valid;   /* [n] */
    float *local;   /* [n][3] from the splat to the camera, in its axes and support radii */
    float *inverse; /* [n][3] one over the support radii */
    float *turn;    /* [n][4] quaternion */
    float *list;    /* ids by tile */
    float *range;   /* [tiles][2] where a tile's ids begin and end */
    float *ray;     /* [pixels][3] */
    float *params;
};

/* What a splat covers on the screen: (s-m)^T [[a,b],[b,c]] (s-m) <= 1. */
struct splat_footprint {
    double mx, my, a, b, c;
    bool whole; /* the whole screen */
};

/* A splat as seen along a ray: b = axes ray, and the nearest point on the ray is local + t b. */
struct splat_shape {
    double axes[9]; /* the world to the splat's axes, in support radii */
    double local[3];
    double far;  /* beyond this squared distance it cannot be seen */
    double flat; /* rays whose squared length is not above this meet nothing */
    float opacity, rgb[3];
};

/* A quaternion as the operands and the scene have it. */
struct splat_turn {
    double w;
    struct v3 v;
};

#define splat_canvas_of CPU_NAME(splat_canvas_of)
#define splat_scene_at CPU_NAME(splat_scene_at)
#define splat_scene_floats CPU_NAME(splat_scene_floats)
#define splat_project CPU_NAME(splat_project)
#define splat_check CPU_NAME(splat_check)
#define splat_plain CPU_NAME(splat_plain)
#define splat_list CPU_NAME(splat_list)
#define splat_list_bytes CPU_NAME(splat_list_bytes)
#define splat_shapes CPU_NAME(splat_shapes)
#define splat_draw CPU_NAME(splat_draw)
#define splat_make CPU_NAME(splat_make)
#define splat_make_bytes CPU_NAME(splat_make_bytes)

/* ---- splat.c ---- */

void splat_canvas_of(const struct cpu_call *c, struct splat_canvas *s);
int64_t splat_scene_floats(const struct splat_canvas *s);
void splat_scene_at(const struct splat_canvas *s, float *at, struct splat_scene *out);
/* All of a prepared scene, from the operands; room: splat_make_bytes of them. */
void splat_make(const struct cpu_call *c, const struct splat_canvas *s,
                const struct splat_scene *to, void *room);
uint64_t splat_make_bytes(const struct splat_canvas *s);

/* ---- splat_project.c ---- */

/* Refuses a field of view that is none. */
rlx_status splat_check(const struct cpu_call *c, struct diag *d);
/* Whether the colors operand gives the colours (7.3). */
bool splat_plain(const struct cpu_call *c, const struct splat_canvas *s);
/* Everything of a prepared scene but list and range; footprints of the valid ones, distances of
 * all. */
void splat_project(const struct cpu_call *c, const struct splat_canvas *s,
                   const struct splat_scene *to, struct splat_footprint *footprint,
                   double *distance);

/* ---- splat_tiles.c ---- */

uint64_t splat_list_bytes(const struct splat_canvas *s);
/* list and range; room: splat_list_bytes of them. */
void splat_list(struct pool *pool, const struct splat_canvas *s,
                const struct splat_footprint *footprint, const double *distance, void *room,
                const struct splat_scene *to);

/* ---- splat_draw.c ---- */

void splat_shapes(struct pool *pool, const struct splat_canvas *s, const struct splat_scene *from,
                  struct splat_shape *shape);
/* The image [height][width][4]. Ids and ranges that are none are reported, and not followed. */
void splat_draw(const struct cpu_call *c, const struct splat_canvas *s,
                const struct splat_scene *from, const struct splat_shape *shape,
                const float *background, float *image);

/* ---- everywhere ---- */

static inline struct v3 splat_v3(const float *p)
{
    return (struct v3){(double)p[0], (double)p[1], (double)p[2]};
}

static inline void splat_put(float *p, struct v3 v)
{
    p[0] = (float)v.x;
    p[1] = (float)v.y;
    p[2] = (float)v.z;
}

static inline struct splat_turn splat_turn_at(const float *q)
{
    return (struct splat_turn){(double)q[0], splat_v3(q + 1)};
}

/* M(q) v = v + 2 ((v x qv + w v) x qv): for a unit quaternion, the world to the splat's axes. */
static inline struct v3 splat_to_axes(struct splat_turn q, struct v3 v)
{
    struct v3 inner = v3_add(v3_cross(v, q.v), v3_scale(v, q.w));

    return v3_add(v, v3_scale(v3_cross(inner, q.v), 2));
}

static inline double splat_clamp(double v, double low, double high) /* NaN stays */
{
    return v < low ? low : v > high ? high : v;
}

/* The square of the deviations that a splat reaches before alpha is the cutoff; 0: it has none. */
static inline double splat_reach(double opacity, double cutoff)
{
    double square = -2 * log(cutoff / splat_clamp(opacity, 0, 1));

    return square > 1e-20 ? square : 0;
}

/* Pixels of a tile that are in the image. */
struct splat_tile {
    int64_t x, y, width, height, pixels;
};

static inline struct splat_tile splat_tile_at(const struct splat_canvas *s, int64_t tile)
{
    struct splat_tile t = {.x = tile % s->across * s->tile, .y = tile / s->across * s->tile};

    t.width = cpu_min_i64(s->tile, s->width - t.x);
    t.height = cpu_min_i64(s->tile, s->height - t.y);
    t.pixels = t.width * t.height;
    return t;
}

/* Which pixel of the image a tile's pixel k is. */
static inline int64_t splat_pixel(const struct splat_canvas *s, const struct splat_tile *t,
                                  int64_t k)
{
    return (t->y + k / t->width) * s->width + t->x + k % t->width;
}

/* Part of a room: `bytes` of it are taken, and the rest follows. base NULL: only counted. */
static inline void *splat_take(char *base, uint64_t *at, uint64_t bytes)
{
    void *p = base ? base + *at : NULL;

    *at += (bytes + 63) / 64 * 64;
    return p;
}

#endif
