/* rate.h: how fast this machine can go at best, for kernels to be compared with. */
#ifndef BASE_RATE_H
#define BASE_RATE_H

#include "base/pool.h"

/* f32 multiply-adds and copied bytes (read and written both counted) per second, all threads of the
 * pool together; the best of a few tries, in about a third of a second. */
struct rate {
    double flops, copy;
};
rlx_status rate_measure(struct pool *pool, const rlx_allocator *mem, struct rate *out,
                        struct diag *d);

#endif
