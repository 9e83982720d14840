/* peers_impl.h: what the files that speak to a peer share. A call has a side's user pointer; all of
 * them are in a list and end with the peers. */
#ifndef BENCH_PEERS_IMPL_H
#define BENCH_PEERS_IMPL_H

#include "peers.h"

struct peer_call {
    struct peer_call *next;
    void (*close)(struct peer_call *c); /* gives back what it holds, and itself */
};

struct onednn;
struct fftw;
struct peers {
    struct peer_call *calls;
    void *openblas;
    struct onednn *onednn;
    struct fftw *fftw;
    char openblas_name[64], openblas_missing[160], onednn_name[64], onednn_missing[160];
    char fftw_missing[160];
};

/* A call's room; the first bytes are its struct peer_call. */
void *peer_call_new(struct peers *p, size_t size, void (*close)(struct peer_call *c));
float *peer_values(int64_t count); /* small numbers; free() */

void openblas_open(struct peers *p, int threads);
void onednn_open(struct peers *p);
void onednn_close(struct peers *p);
void fftw_open(struct peers *p, int threads);
void fftw_close(struct peers *p);

#endif
