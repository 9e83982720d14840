/* eval_splat.h: what the four Gaussian splat ops share (ops-special.md 7): a scene as the camera
 * sees it, splats sorted into tiles, and the hits of a pixel's ray. */
#ifndef IR_EVAL_SPLAT_H
#define IR_EVAL_SPLAT_H

#include "base/vec3.h"
#include "ir/eval/eval.h"

/* Spherical harmonics: the constant band, the linear one. */
#define SPLAT_SH0 0.28209479177387814
#define SPLAT_SH1 0.4886025119029199

/* ---- vectors ------------------------------------------------------------------------------- */

static inline struct v3 v3_at(const struct eval_cell *c)
{
    return (struct v3){c[0].f, c[1].f, c[2].f};
}

static inline void v3_put(struct eval_cell *c, struct v3 v)
{
    c[0].f = v.x;
    c[1].f = v.y;
    c[2].f = v.z;
}

/* ---- the scene ----------------------------------------------------------------------------- */

struct splat_quat {
    double w;
    struct v3 v;
};

struct splat {
    struct v3 rgb;
    double opacity; /* as given */
    bool visible;
    struct v3 local;   /* from the splat to the camera, in its own axes and support radii */
    struct v3 inverse; /* one over the support radii */
    struct splat_quat turn;
    /* Only where the scene was made from its operands: */
    struct v3 to_camera, direction; /* from the splat to the camera, and that as a unit vector */
    struct v3 grows;                /* 1 per axis; 0 where the radius is held at its least */
};

struct splat_range {
    int64_t start, end; /* of list; empty: end <= start */
};

struct splat_scene {
    int64_t width, height, tile_size, across, down; /* pixels, then tiles */
    double cutoff, threshold;                       /* of alpha, of transmittance */
    struct v3 background;                           /* as given */
    int64_t count;
    struct splat *splat;
    struct splat_range *range; /* per tile, row by row */
    int64_t *list, entries;    /* splats by tile, nearest first; entries of them are in use */
    struct v3 *ray;            /* per pixel, row by row */
    /* Only where the scene was made from its operands: */
    int64_t coeffs; /* per splat and channel */
    bool plain;     /* colours come from the colors operand */
};

/* Room for a scene of that many splats, with what the attributes tell; nothing else is set. */
rlx_status splat_scene_new(struct eval_call *c, int64_t count, int64_t list, struct splat_scene *s);
/* From the seven operands of render: ATTRIBUTE if the camera's field of view is not one. */
rlx_status splat_scene_make(struct eval_call *c, struct splat_scene *s);

/* What a splat covers on the screen: (p-m)^T A (p-m) <= 1. */
struct splat_footprint {
    double mx, my;
    double a, b, c; /* A = [[a,b],[b,c]] */
    bool whole;     /* the whole screen */
};
/* Fill the lists, given what each visible splat covers and the distance of all. */
rlx_status splat_sort(struct eval_call *c, struct splat_scene *s,
                      const struct splat_footprint *footprint, const struct eval_cell *distance,
                      int64_t most);

/* World to a splat's axes, for a unit quaternion; and the transpose of that map. */
struct v3 splat_to_local(struct splat_quat q, struct v3 v);
struct v3 splat_from_local(struct splat_quat q, struct v3 v);
/* How many standard deviations a splat of this opacity reaches before the cutoff; 0: not at all. */
double splat_reach(double opacity, double cutoff);
double splat_clamp(double v, double lo, double hi); /* NaN stays */
double splat_gamma(double v);                       /* max(v,0)^2.2 */

struct splat_hit {
    int64_t splat;
    double alpha, before; /* what it covers; the transmittance in front of it */
};
/* The hits of pixel (x,y), front to back, at most `most` (0: all); *left is the transmittance
 * behind them. hit has room for the longest list. */
int64_t splat_trace(const struct splat_scene *s, int64_t x, int64_t y, int64_t most,
                    struct splat_hit *hit, double *left);
const struct splat_range *splat_range_of(const struct splat_scene *s, int64_t x, int64_t y);
rlx_status splat_hits_new(struct eval_call *c, const struct splat_scene *s, struct splat_hit **out);

#endif
