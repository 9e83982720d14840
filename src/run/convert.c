/* convert.c: typed conversion between host data and slots, once for all backends. */
#include "run/convert.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

/* An element on its way: floats as double (f32, f16, bf16 and f64 fit exactly), integers as bits.
 */
struct element {
    double f, im;
    uint64_t bits; /* two's complement, sign-extended for signed types */
    enum dtype_class cls;
};

#define LOAD_AS(T, field, kind)      \
    do {                             \
        T v_;                        \
        memcpy(&v_, src, sizeof v_); \
        e.field = v_;                \
        e.cls = kind;                \
    } while (0)

static struct element load(rlx_dtype t, const uint8_t *src)
{
    struct element e = {0};
    uint16_t half;
    int64_t i = 0;

    switch (t) {
    case RLX_DTYPE_f32: LOAD_AS(float, f, CLASS_F); break;
    case RLX_DTYPE_f64: LOAD_AS(double, f, CLASS_F); break;
    case RLX_DTYPE_f16:
        memcpy(&half, src, 2);
        e.f = (double)f16_to_f32(half);
        e.cls = CLASS_F;
        break;
    case RLX_DTYPE_bf16:
        memcpy(&half, src, 2);
        e.f = (double)bf16_to_f32(half);
        e.cls = CLASS_F;
        break;
    case RLX_DTYPE_i8: {
        int8_t v;
        memcpy(&v, src, 1);
        i = v;
        break;
    }
    case RLX_DTYPE_i16: {
        int16_t v;
        memcpy(&v, src, 2);
        i = v;
        break;
    }
    case RLX_DTYPE_i32: {
        int32_t v;
        memcpy(&v, src, 4);
        i = v;
        break;
    }
    case RLX_DTYPE_i64: memcpy(&i, src, 8); break;
    case RLX_DTYPE_u8: LOAD_AS(uint8_t, bits, CLASS_U); break;
    case RLX_DTYPE_u16: LOAD_AS(uint16_t, bits, CLASS_U); break;
    case RLX_DTYPE_u32: LOAD_AS(uint32_t, bits, CLASS_U); break;
    case RLX_DTYPE_u64: LOAD_AS(uint64_t, bits, CLASS_U); break;
    case RLX_DTYPE_bool:
        e.bits = *src != 0;
        e.cls = CLASS_U;
        break;
    case RLX_DTYPE_c64: {
        float v[2];
        memcpy(v, src, 8);
        e.f = (double)v[0];
        e.im = (double)v[1];
        e.cls = CLASS_C;
        break;
    }
    case RLX_DTYPE_count: break;
    }
    if (dtype_is(t, CLASS_I)) {
        e.bits = (uint64_t)i;
        e.cls = CLASS_I;
    }
    return e;
}

static float as_f32(const struct element *e) /* one rounding, also from 64-bit integers */
{
    return e->cls == CLASS_I   ? (float)(int64_t)e->bits
           : e->cls == CLASS_U ? (float)e->bits
                               : (float)e->f;
}

static double as_f64(const struct element *e)
{
    return e->cls == CLASS_I   ? (double)(int64_t)e->bits
           : e->cls == CLASS_U ? (double)e->bits
                               : e->f;
}

/* For a type narrower than double, so that nothing is rounded twice: an
 * integer of more than 53 bits keeps its top ones, the last of them set if anything was lost. */
static double as_sticky_f64(const struct element *e)
{
    bool negative = e->cls == CLASS_I && (int64_t)e->bits < 0;
    uint64_t size = negative ? 0 - e->bits : e->bits;

    if ((e->cls != CLASS_I && e->cls != CLASS_U) || size >> 53 == 0)
        return as_f64(e);
    size = (size >> 11 | ((size & 0x7ff) != 0)) << 11;
    return negative ? -(double)size : (double)size;
}

/* Floats truncate and saturate to [lo, hi], NaN gives 0; integers keep their low bits. */
static uint64_t as_bits(const struct element *e, double lo, double hi, uint64_t lo_bits,
                        uint64_t hi_bits)
{
    if (e->cls == CLASS_I || e->cls == CLASS_U)
        return e->bits;
    if (isnan(e->f))
        return 0;
    if (e->f <= lo)
        return lo_bits;
    if (e->f >= hi)
        return hi_bits;
    return e->f < 0 ? (uint64_t)(int64_t)e->f : (uint64_t)e->f;
}

static uint64_t as_signed(const struct element *e, int bits)
{
    double limit = ldexp(1, bits - 1);
    uint64_t top = (UINT64_C(1) << (bits - 1)) - 1;

    return as_bits(e, -limit, limit, ~top, top);
}

static uint64_t as_unsigned(const struct element *e, int bits)
{
    return as_bits(e, 0, ldexp(1, bits), 0, UINT64_MAX >> (64 - bits));
}

#define STORE(T, value)              \
    do {                             \
        T v_ = (T)(value);           \
        memcpy(dst, &v_, sizeof v_); \
    } while (0)

static void store(rlx_dtype t, uint8_t *dst, const struct element *e)
{
    bool integer = e->cls == CLASS_I || e->cls == CLASS_U;

    switch (t) {
    case RLX_DTYPE_f32: STORE(float, as_f32(e)); break;
    case RLX_DTYPE_f64: STORE(double, as_f64(e)); break;
    case RLX_DTYPE_f16: STORE(uint16_t, f64_to_f16(as_sticky_f64(e))); break;
    case RLX_DTYPE_bf16: STORE(uint16_t, f64_to_bf16(as_sticky_f64(e))); break;
    case RLX_DTYPE_i8: STORE(uint8_t, as_signed(e, 8)); break;
    case RLX_DTYPE_i16: STORE(uint16_t, as_signed(e, 16)); break;
    case RLX_DTYPE_i32: STORE(uint32_t, as_signed(e, 32)); break;
    case RLX_DTYPE_i64: STORE(uint64_t, as_signed(e, 64)); break;
    case RLX_DTYPE_u8: STORE(uint8_t, as_unsigned(e, 8)); break;
    case RLX_DTYPE_u16: STORE(uint16_t, as_unsigned(e, 16)); break;
    case RLX_DTYPE_u32: STORE(uint32_t, as_unsigned(e, 32)); break;
    case RLX_DTYPE_u64: STORE(uint64_t, as_unsigned(e, 64)); break;
    case RLX_DTYPE_bool: STORE(uint8_t, integer ? e->bits != 0 : e->f != 0); break;
    case RLX_DTYPE_c64: {
        float v[2] = {as_f32(e), e->cls == CLASS_C ? (float)e->im : 0};
        memcpy(dst, v, 8);
        break;
    }
    case RLX_DTYPE_count: break;
    }
}

bool convert_allowed(rlx_dtype to, rlx_dtype from)
{
    return (unsigned)to < RLX_DTYPE_count && (unsigned)from < RLX_DTYPE_count &&
           (from != RLX_DTYPE_c64 || to == RLX_DTYPE_c64);
}

void convert(rlx_dtype to, void *dst, rlx_dtype from, const void *src, size_t count)
{
    size_t to_size = rlx_dtype_size(to), from_size = rlx_dtype_size(from);
    uint8_t *out = dst;
    const uint8_t *in = src;

    if (to == from && to != RLX_DTYPE_bool) {
        if (count)
            memcpy(dst, src, count * to_size);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct element e = load(from, in + i * from_size);
        store(to, out + i * to_size, &e);
    }
}

void convert_unaligned(rlx_dtype to, void *dst, rlx_dtype from, const void *src, size_t count)
{
    enum { PIECE = 512 };
    uint64_t buffer[PIECE]; /* room for the widest elements */
    size_t size = rlx_dtype_size(from), size_to = rlx_dtype_size(to);

    for (size_t done = 0; done < count; done += PIECE) {
        size_t n = count - done < PIECE ? count - done : PIECE;
        memcpy(buffer, (const uint8_t *)src + done * size, n * size);
        convert(to, (uint8_t *)dst + done * size_to, from, buffer, n);
    }
}
