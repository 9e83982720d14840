/* decompose.h: what decompositions are made of: reflections and rotations of f64 matrices,
 * row-major (reflect.c, turns.c), and what they have in common.
 *
 * A reflection I - tau v v^T maps a given vector to a multiple of the first axis. All of a
 * factorisation's vectors are kept, as rows, so that they can be applied many at a time later:
 *
 *     row 0    1 x x x x          Q = H0 H1 H2 ..
 *     row 1    0 1 x x x
 *     row 2    0 0 1 x x
 *
 * Everything is cut into blocks by sizes alone, and no sum crosses a block: the results do not
 * depend on the number of threads. */
#ifndef BACKEND_DECOMPOSE_H
#define BACKEND_DECOMPOSE_H

#include "backend/cpu/kernels/common.h"

#define decompose_dot CPU_NAME(decompose_dot)
#define decompose_exponent CPU_NAME(decompose_exponent)
#define decompose_points_down CPU_NAME(decompose_points_down)
#define decompose_order CPU_NAME(decompose_order)
#define reflect_make CPU_NAME(reflect_make)
#define reflect_block CPU_NAME(reflect_block)
#define reflect_all CPU_NAME(reflect_all)
#define turns_add CPU_NAME(turns_add)
#define turns_end CPU_NAME(turns_end)

/* ---- in common (reflect.c) ----------------------------------------------------------------- */

double decompose_dot(const double *a, const double *b, int64_t n);

/* Such that 2^-exponent brings the largest magnitude of x close to 1, where squares neither
 * overflow nor vanish. false: not all of x are finite. */
bool decompose_exponent(const double *x, int64_t n, int *exponent);

/* Is the largest entry of x[0], x[step], .. negative? The first of equals decides; what is equal on
 * paper is only nearly so here (ops-core.md 21). */
bool decompose_points_down(const double *x, int64_t n, int64_t step);

/* order[i]: the place of the i-th smallest (or largest) value; equal ones keep their order. */
void decompose_order(const double *value, int64_t n, bool descending, int64_t *order);

/* The length of (a, b) without overflow; cosine and sine turn it onto the first axis. */
static inline double decompose_turn(double a, double b, double *cosine, double *sine)
{
    double r = b == 0 ? a : a == 0 ? b : hypot(a, b);

    *cosine = r != 0 ? a / r : 1;
    *sine = r != 0 ? b / r : 0;
    return r;
}

/* ---- reflections (reflect.c) --------------------------------------------------------------- */

enum { REFLECT_BLOCK = 32 }; /* vectors applied together */

struct reflections {
    double *v; /* [count, n], rows ld apart; row j begins at entry j, and those before it are zero
                  back to the start of its block */
    int64_t ld;
    double *tau; /* [count]; 0: the identity */
    int64_t count, n;
};

/* x[0 .. n-1] becomes v with v[0] = 1, *tau its factor; returns what the reflection makes of x[0];
 * all other elements become 0. */
double reflect_make(double *x, int64_t n, double *tau);

/* x [n, columns], rows ld apart: becomes H_k H_(k+1) .. x, or the transpose of that product times
 * x, for the `count` <= REFLECT_BLOCK vectors from k on. Rows of x before k stay as they are. */
void reflect_block(const struct reflections *q, int64_t k, int64_t count, bool transpose, double *x,
                   int64_t ld, int64_t columns, struct pool *pool);

/* x [n, columns] becomes Q x. identity: x is zero but for ones on its diagonal, which saves work.
 */
void reflect_all(const struct reflections *q, double *x, int64_t ld, int64_t columns, bool identity,
                 struct pool *pool);

/* ---- rotations (turns.c) ------------------------------------------------------------------- */

/* Sweeps of rotations of neighbouring rows: the i-th of a sweep turns rows first + i and the next
 *
 *     x' = cosine x + sine y     y' = cosine y - sine x
 *
 * They are collected, and applied to a block of columns at a time, which stays in the cache. */
enum { TURNS_SWEEPS = 32 };

struct turns {
    double *x;      /* [n, n], which is turned; NULL: nothing is, and nothing collected */
    int64_t n;      /* >= 1 */
    double *angle;  /* room for TURNS_SWEEPS * 2 n: cosine and sine of each */
    int64_t sweeps; /* collected so far */
    int64_t first[TURNS_SWEEPS], count[TURNS_SWEEPS];
    struct pool *pool;
};

/* Where the cosines and sines of a sweep of `count` < n rotations are to be written; NULL if
 * nothing is collected. */
double *turns_add(struct turns *t, int64_t first, int64_t count);
void turns_end(struct turns *t); /* apply what is left */

#endif
