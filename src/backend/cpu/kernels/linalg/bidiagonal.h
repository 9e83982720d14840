/* bidiagonal.h: the singular value decomposition of a bidiagonal matrix, which svd brings every
 * other one to. */
#ifndef BACKEND_BIDIAGONAL_H
#define BACKEND_BIDIAGONAL_H

#include "backend/cpu/kernels/linalg/decompose.h"

#define bidiagonal_decompose CPU_NAME(bidiagonal_decompose)

/* B = U S V^T, with d on the diagonal of B and e above it, none much larger than 1. */
struct bidiagonal {
    int64_t n;       /* >= 1 */
    double *d;       /* [n]; the singular values in the end, in no order */
    double *e;       /* [n - 1]; zeros in the end */
    double *ut, *vt; /* [n, n]: row j the vector of value j; NULL: not wanted */
    double *angle;   /* room for 4 TURNS_SWEEPS n, if either is wanted */
    struct pool *pool;
};

/* false: it did not end, which no finite matrix is known to do. */
bool bidiagonal_decompose(struct bidiagonal *b);

#endif
