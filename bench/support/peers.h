/* peers.h: other libraries' kernels as sides to compare with. They are looked for when a program
 * starts; one that is not installed is a side that does not take part, and says why. */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include <stdint.h>

#include "measure.h"

struct peers;
/* Sets their variables for this process, then loads what there is. */
struct peers *peers_open(int threads);
void peers_close(struct peers *p);

/* c[m,n] = a[m,k] b[k,n], all f32 and row-major. */
struct matmul_shape {
    int64_t m, n, k;
};
struct side peer_openblas_matmul(struct peers *p, const struct matmul_shape *s);
/* packed: b is brought into the library's own layout beforehand. */
struct side peer_onednn_matmul(struct peers *p, const struct matmul_shape *s, bool packed);

/* A square image and kernel, f32, batch 1, stride 1, padded to keep its size. own_layout: images
 * are laid out as the library likes best, else channel by channel; weights always are. */
struct conv_shape {
    int64_t from, to, kernel, size;
};
struct side peer_onednn_conv(struct peers *p, const struct conv_shape *s, bool own_layout);

/* A forward transform of n complex points in f32, as pairs or with all real parts first. */
struct side peer_fftw(struct peers *p, int64_t n, bool pairs);

#endif
