/* scan_test.c: counting what a value holds. */
#include "run/scan.h"

#include <math.h>

#include "test.h"

TEST(scan, counts_floats_over_several_pieces)
{
    const float a[4] = {0, -3, 1.5f, 0}, b[4] = {NAN, INFINITY, 2, -INFINITY};
    struct scan s;

    scan_begin(&s);
    scan_add(&s, RLX_DTYPE_f32, a, 4);
    expect(t, scan_is_finite(&s));
    expect_eq(t, s.first_bad, -1);
    scan_add(&s, RLX_DTYPE_f32, b, 4);
    expect(t, !scan_is_finite(&s));
    expect_eq(t, s.count, 8);
    expect_eq(t, s.nan, 1);
    expect_eq(t, s.inf, 2);
    expect_eq(t, s.nonzero, 6);
    expect_eq(t, s.first_bad, 4);
    expect_near(t, s.min, -3, 0);
    expect_near(t, s.max, 2, 0);
    expect_near(t, s.max_abs, 3, 0);
}

TEST(scan, knows_every_element_type)
{
    const uint16_t half[3] = {0x7c00, 0x3c00, 0x7e00}; /* Inf, 1, NaN */
    const double wide[2] = {1e300, -1e301};
    const int8_t whole[3] = {-128, 0, 127};
    const float complex[4] = {1, NAN, 0, 0};
    struct scan s;

    scan_begin(&s);
    scan_add(&s, RLX_DTYPE_f16, half, 3);
    expect_eq(t, s.nan, 1);
    expect_eq(t, s.inf, 1);
    expect_near(t, s.max, 1, 0);
    scan_begin(&s);
    scan_add(&s, RLX_DTYPE_f64, wide, 2);
    expect(t, scan_is_finite(&s));
    expect_near(t, s.max_abs, 1e301, 0);
    scan_begin(&s);
    scan_add(&s, RLX_DTYPE_i8, whole, 3);
    expect_near(t, s.min, -128, 0);
    expect_eq(t, s.nonzero, 2);
    scan_begin(&s);
    scan_add(&s, RLX_DTYPE_c64, complex, 2);
    expect_eq(t, s.count, 2);
    expect_eq(t, s.nan, 1);
    expect_eq(t, s.nonzero, 1);
    expect_eq(t, s.first_bad, 0);
}
