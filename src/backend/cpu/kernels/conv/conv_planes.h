/* conv_planes.h: images laid out so that each tap of a convolution is a fixed distance away.
 *
 * An image with its padding around it, and with every s-th element apart where the stride is s, is
 * a few planes of equal size: element g of plane r is element g * s + r of the padded image. What
 * tap t of position p reads,
 *
 *     padded[p * s + t * d]  is  plane (t * d) mod s, at p + t * d / s
 *
 * and if positions are counted along the rows of a plane, those past the end of an output row
 * included, neighbours in that count are neighbours in memory for every tap:
 *
 *     out row 0   . . . . x x         position  0 1 2 3 (4 5)
 *     out row 1   . . . . x x                   6 7 8 9 (10 11)      x: computed, and dropped
 *
 * So a product over windows needs no matrix of windows: its inner loop reads planes. Large images
 * are laid out a band at a time, small ones several together; floats become f32. A convolution
 * whose taps are single elements at stride 1 reads an f32 image where it lies. */
#ifndef BACKEND_CONV_PLANES_H
#define BACKEND_CONV_PLANES_H

#include "backend/cpu/kernels/conv/conv_core.h"

/* Elements past the last plane that may be read; they are zeros. */
enum { CONV_PLANES_SLACK = 256 };

struct conv_planes {
    bool in_place;       /* the image itself serves */
    int64_t every[3];    /* planes along each axis; tap t reads plane t % every */
    int64_t extra[3];    /* how far the last tap reaches, in a plane */
    int band_axis;       /* the axis that is cut into bands */
    int64_t band, bands; /* outputs along it of each band but the last; how many bands */
    int64_t images;      /* laid out together; more than one only if there is one band */
};

/* Part of a convolution that is laid out together. */
struct conv_band {
    int64_t image, images;
    int64_t first[3], out[3]; /* outputs: from, how many */
    int64_t grid[3];          /* of a plane */
    int64_t plane;            /* elements of one plane */
    int64_t channel;          /* elements from a channel to the next: all its planes */
    int64_t positions;        /* of one image, up to the last that is an output */
};

#define conv_planes_make CPU_NAME(conv_planes_make)
#define conv_planes_size CPU_NAME(conv_planes_size)
#define conv_planes_fill CPU_NAME(conv_planes_fill)
#define conv_band_at CPU_NAME(conv_band_at)

/* How v is laid out; false: too much of it would be computed and dropped, or it is not a forward
 * convolution of f32, f16 or bf16. */
bool conv_planes_make(const struct conv *v, struct conv_planes *p);

/* Parts are done one after the other; part number `at` of them. */
static inline int64_t conv_planes_parts(const struct conv *v, const struct conv_planes *p)
{
    return p->bands * ((v->images + p->images - 1) / p->images);
}
struct conv_band conv_band_at(const struct conv *v, const struct conv_planes *p, int64_t at);

/* Elements that a part takes at most, slack included; 0: images are read in place. */
int64_t conv_planes_size(const struct conv *v, const struct conv_planes *p);
void conv_planes_fill(const struct conv *v, const struct conv_planes *p, const struct conv_band *b,
                      struct pool *pool, float *to);

/* How far tap (t0, t1, t2) is from the position's own place. */
static inline int64_t conv_tap_offset(const struct conv *v, const struct conv_planes *p,
                                      const struct conv_band *b, const int64_t *t)
{
    int64_t slot = 0, at = 0;

    for (int i = 0; i < 3; i++) {
        slot = slot * p->every[i] + t[i] % p->every[i];
        at = at * b->grid[i] + t[i] * v->dilation[i] / v->stride[i];
    }
    return slot * b->plane + at;
}

#endif
