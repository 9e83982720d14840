/* dataset_convert.c: elements of an array in the type that an input takes: NumPy's labels are i64
 * where a model wants i32, its pictures u8 where one wants f32. */
#include <string.h>

#include "base/half.h"
#include "train/dataset.h"

enum class { FLOAT, SIGNED, UNSIGNED, BOOLEAN, OTHER };

static enum class class_of(rlx_dtype d) {
#define F FLOAT
#define I SIGNED
#define U UNSIGNED
#define B BOOLEAN
#define C OTHER
#define X(name, number, bytes, cls, text) [number] = cls,
    static const enum class of[RLX_DTYPE_count] = {RLX_DTYPE_MAP(X)};
#undef X
#undef F
#undef I
#undef U
#undef B
#undef C
    return (unsigned)d < RLX_DTYPE_count ? of[d] : OTHER;
}

bool convert_fits(rlx_dtype from, rlx_dtype to)
{
    enum class a = class_of(from), b = class_of(to);

    if (from == to)
        return true;
    if (a == OTHER || b == OTHER || b == BOOLEAN)
        return false;
    return to == RLX_DTYPE_f32 || (a != FLOAT && b != FLOAT);
}

/* An integer of up to 64 bits; u64 that are larger than i64 are told by *large. */
static int64_t read_integer(rlx_dtype d, const unsigned char *at, bool *large)
{
    size_t width = rlx_dtype_size(d);
    uint64_t v = 0;

    *large = false;
    if (width == 0) /* no type at all */
        return 0;
    for (size_t i = 0; i < width; i++)
        v |= (uint64_t)at[i] << (8 * i);
    if (class_of(d) == SIGNED && width < 8 && v >> (8 * width - 1))
        v |= UINT64_MAX << (8 * width);
    *large = d == RLX_DTYPE_u64 && v > INT64_MAX;
    return (int64_t)v;
}

static bool fits(rlx_dtype to, int64_t v, bool large)
{
    int bits = 8 * (int)rlx_dtype_size(to);

    if (class_of(to) == SIGNED)
        return !large &&
               (bits == 64 || (v >= -((int64_t)1 << (bits - 1)) && v < (int64_t)1 << (bits - 1)));
    return large ? bits == 64 : v >= 0 && (bits == 64 || v < (int64_t)1 << bits);
}

static float read_float(rlx_dtype d, const unsigned char *at)
{
    uint16_t half;
    double wide;
    bool large;

    switch (d) {
    case RLX_DTYPE_f64: memcpy(&wide, at, sizeof wide); return (float)wide;
    case RLX_DTYPE_f16: memcpy(&half, at, sizeof half); return f16_to_f32(half);
    case RLX_DTYPE_bf16: memcpy(&half, at, sizeof half); return bf16_to_f32(half);
    default: break;
    }
    int64_t v = read_integer(d, at, &large);
    return large ? (float)(uint64_t)v : (float)v;
}

bool convert_elements(rlx_dtype to, void *out, rlx_dtype from, const void *in, size_t count,
                      size_t *at)
{
    size_t step = rlx_dtype_size(from), width = rlx_dtype_size(to);
    const unsigned char *x = in;
    unsigned char *y = out;

    if (count == 0)
        return true;
    if (from == to) {
        memcpy(out, in, count * step);
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        if (to == RLX_DTYPE_f32) {
            float v = read_float(from, x + i * step);
            memcpy(y + i * width, &v, width);
            continue;
        }
        bool large;
        int64_t v = read_integer(from, x + i * step, &large);
        *at = i;
        if (!fits(to, v, large))
            return false;
        for (size_t k = 0; k < width; k++)
            y[i * width + k] = (unsigned char)((uint64_t)v >> (8 * k));
    }
    return true;
}
