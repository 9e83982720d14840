/* scan.h: what numbers a value holds: how many are NaN, Inf or zero, and how large the rest are. */
#ifndef RUN_SCAN_H
#define RUN_SCAN_H

#include "ir/type.h"

struct scan {
    uint64_t count, nan, inf, nonzero; /* elements; a complex one is NaN or Inf if a part is */
    int64_t first_bad;                 /* the first NaN or Inf; -1: none */
    double min, max, max_abs;          /* of the finite ones, parts of complex ones singly */
};

void scan_begin(struct scan *s);
/* The next n elements. */
void scan_add(struct scan *s, rlx_dtype dtype, const void *data, size_t n);
static inline bool scan_is_finite(const struct scan *s)
{
    return s->nan + s->inf == 0;
}

#endif
