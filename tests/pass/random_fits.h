/* random_fits.h: which values of a random graph may be an operand. */
#ifndef TESTS_PASS_RANDOM_FITS_H
#define TESTS_PASS_RANDOM_FITS_H

#include "random_maker.h"

static inline bool is_exact(const struct maker *k, ir_value v)
{
    return k->info[v].err == 0;
}

static inline bool fits_float(const struct maker *k, ir_value v, ir_value beside)
{
    (void)beside;
    return maker_is_float(k, v);
}

static inline bool fits_exact_float(const struct maker *k, ir_value v, ir_value beside)
{
    (void)beside;
    return maker_is_float(k, v) && is_exact(k, v);
}

static inline bool fits_any(const struct maker *k, ir_value v, ir_value beside)
{
    (void)k, (void)v, (void)beside;
    return true;
}

static inline bool fits_ranked(const struct maker *k, ir_value v, ir_value beside)
{
    (void)beside;
    return maker_type(k, v)->rank > 0;
}

static inline bool fits_ranked_float(const struct maker *k, ir_value v, ir_value beside)
{
    return fits_ranked(k, v, beside) && maker_is_float(k, v);
}

static inline bool fits_bool(const struct maker *k, ir_value v, ir_value beside)
{
    (void)beside;
    return maker_type(k, v)->dtype == RLX_DTYPE_bool;
}

static inline bool fits_int(const struct maker *k, ir_value v, ir_value beside)
{
    (void)beside;
    return maker_type(k, v)->dtype == RLX_DTYPE_i32;
}

/* Of the same element type, and broadcasting with it for certain. */
static inline bool fits_beside(const struct maker *k, ir_value v, ir_value beside)
{
    const struct ir_type *a = maker_type(k, v), *b = maker_type(k, beside);

    if (a->dtype != b->dtype)
        return false;
    for (int32_t i = 1; i <= a->rank && i <= b->rank; i++) {
        ir_dim x = a->dim[a->rank - i], y = b->dim[b->rank - i];
        if (x != y && x != 1 && y != 1)
            return false;
    }
    return true;
}

static inline bool fits_exact_beside(const struct maker *k, ir_value v, ir_value beside)
{
    return is_exact(k, v) && fits_beside(k, v, beside);
}

/* Divides well. */
static inline bool fits_divisor(const struct maker *k, ir_value v, ir_value beside)
{
    return k->info[v].lo >= 0.25 && fits_beside(k, v, beside);
}

static inline bool fits_rows(const struct maker *k, ir_value v, ir_value beside)
{
    const struct ir_type *t = maker_type(k, v);

    (void)beside;
    return maker_is_float(k, v) && t->rank >= 2 && dim_is_static(t->dim[t->rank - 1]);
}

#endif
