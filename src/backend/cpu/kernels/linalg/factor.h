/* factor.h: triangular factors of a dense matrix, and solving with them. In f64 throughout,
 * row-major, in place. Rows are shared out to the pool where a matrix is large; results do not
 * depend on it. */
#ifndef BACKEND_FACTOR_H
#define BACKEND_FACTOR_H

#include "backend/cpu/kernels/common.h"

#define factor_lu CPU_NAME(factor_lu)
#define factor_eliminate CPU_NAME(factor_eliminate)
#define factor_all_finite CPU_NAME(factor_all_finite)
#define factor_cholesky CPU_NAME(factor_cholesky)
#define factor_swap CPU_NAME(factor_swap)
#define factor_solve CPU_NAME(factor_solve)

/* A row-swapped a becomes L (below the diagonal, which is 1) and U, by partial pivoting. Step i
 * exchanged rows i and swap[i] >= i. A column without a pivot keeps a 0 on the diagonal. */
void factor_lu(double *a, int64_t n, int64_t *swap, struct pool *pool);

/* The same as plain elimination, one column at a time: a becomes U, and b [n, r] (NULL: none) takes
 * part. A row that has a 0 already is left alone, so that an infinity or a NaN elsewhere does not
 * reach it: for these, factor_lu is not good enough. */
void factor_eliminate(double *a, int64_t n, double *b, int64_t r, int64_t *swap);
bool factor_all_finite(const double *x, int64_t n);

/* The lower triangle becomes L with a = L L^T; what is above the diagonal is neither read nor
 * changed. Where a is not positive definite, this and everything that follows from it is NaN. */
void factor_cholesky(double *a, int64_t n, struct pool *pool);

/* b [n, r]: exchange rows as factor_lu did. */
void factor_swap(double *b, int64_t r, const int64_t *swap, int64_t n);

/* b [n, r] becomes x with T x = b, T the lower or upper triangle of a; unit: with 1 on the diagonal
 * whatever a has there. */
void factor_solve(const double *a, int64_t n, bool lower, bool unit, double *b, int64_t r,
                  struct pool *pool);

#endif
