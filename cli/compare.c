/* compare.c: see compare.h. */
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RELATIVE 1e-3
#define RELATIVE_BF16 0x1p-6 /* two steps of its own */
#define ABSOLUTE 1e-7

/* sign, exponent, fraction of an IEEE number that is too narrow for C */
static double small_float(uint16_t bits, int exponent_bits)
{
    int fraction_bits = 15 - exponent_bits, top = (1 << exponent_bits) - 1, bias = top / 2;
    int exponent = bits >> fraction_bits & top;
    int fraction = bits & ((1 << fraction_bits) - 1);
    double v = exponent == top ? (fraction ? (double)NAN : (double)INFINITY)
               : exponent ? ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits)
                          : ldexp(fraction, 1 - bias - fraction_bits);

    return bits >> 15 ? -v : v;
}

static double element(const rlx_tensor *t, size_t i)
{
    const char *at = (const char *)t->data + i * rlx_dtype_size(t->dtype);
    union {
        float f32;
        double f64;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } v;

    memcpy(&v, at, rlx_dtype_size(t->dtype));
    switch (t->dtype) {
    case RLX_DTYPE_f32: return (double)v.f32;
    case RLX_DTYPE_f64: return v.f64;
    case RLX_DTYPE_f16: return small_float(v.u16, 5);
    case RLX_DTYPE_bf16: return small_float(v.u16, 8);
    case RLX_DTYPE_i8: return v.i8;
    case RLX_DTYPE_i16: return v.i16;
    case RLX_DTYPE_i32: return v.i32;
    case RLX_DTYPE_i64: return (double)v.i64;
    case RLX_DTYPE_u16: return v.u16;
    case RLX_DTYPE_u32: return v.u32;
    case RLX_DTYPE_u64: return (double)v.u64;
    default: return v.u8;
    }
}

static void shape_text(const rlx_tensor *t, char *out, size_t size)
{
    size_t len = (size_t)snprintf(out, size, "%s[", rlx_dtype_name(t->dtype));

    for (int32_t i = 0; i < t->rank && len < size; i++)
        len +=
            (size_t)snprintf(out + len, size - len, "%s%lld", i ? "," : "", (long long)t->dim[i]);
    if (len < size)
        snprintf(out + len, size - len, "]");
}

static bool same_type(const rlx_tensor *a, const rlx_tensor *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

static bool is_close(double have, double want, double relative)
{
    if (isnan(want) || isnan(have))
        return isnan(want) && isnan(have);
    if (isinf(want) || isinf(have))
        return have == want;
    return fabs(have - want) <= ABSOLUTE + relative * fabs(want);
}

bool compare_types(const rlx_tensor *have, const rlx_tensor *want, char *why, size_t size)
{
    char have_text[96], want_text[96];

    if (same_type(have, want))
        return true;
    shape_text(have, have_text, sizeof have_text);
    shape_text(want, want_text, sizeof want_text);
    snprintf(why, size, "it is %s, not %s", have_text, want_text);
    return false;
}

bool compare_tensors(const rlx_tensor *have, const rlx_tensor *want, char *why, size_t size)
{
    rlx_tensor a = *have, b = *want;

    if (!compare_types(have, want, why, size))
        return false;
    if (a.dtype == RLX_DTYPE_c64) /* pairs */
        a.dtype = b.dtype = RLX_DTYPE_f32;
    double relative = a.dtype == RLX_DTYPE_bf16 ? RELATIVE_BF16 : RELATIVE;
    size_t count = b.bytes / rlx_dtype_size(b.dtype), apart = 0, first = 0;
    for (size_t i = 0; i < count; i++) {
        bool whole = a.dtype > RLX_DTYPE_f64 && a.dtype < RLX_DTYPE_c64;
        bool same = whole ? memcmp((const char *)a.data + i * rlx_dtype_size(a.dtype),
                                   (const char *)b.data + i * rlx_dtype_size(b.dtype),
                                   rlx_dtype_size(a.dtype)) == 0
                          : is_close(element(&a, i), element(&b, i), relative);
        if (!same && apart++ == 0)
            first = i;
    }
    if (apart)
        snprintf(why, size, "element %zu is %.9g, not %.9g; %zu of %zu differ", first,
                 element(&a, first), element(&b, first), apart, count);
    return apart == 0;
}
