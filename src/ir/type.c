/* type.c: element types and how two of them meet; sizes of whole types. */
#include "ir/type.h"

#include "base/str.h"

static const struct {
    const char *name;
    enum dtype_class cls;
    uint8_t bytes;
} dtype_table[RLX_DTYPE_count] = {
#define X(n, number, size, c, text) [RLX_DTYPE_##n] = {#n, CLASS_##c, size},
    RLX_DTYPE_MAP(X)
#undef X
};

enum dtype_class dtype_class(rlx_dtype d)
{
    return (unsigned)d < RLX_DTYPE_count ? dtype_table[d].cls : (enum dtype_class)0;
}

bool dtype_from_name(rlx_str name, rlx_dtype *out)
{
    for (int d = 0; d < RLX_DTYPE_count; d++) {
        if (str_eq(name, rlx_cstr(dtype_table[d].name))) {
            *out = (rlx_dtype)d;
            return true;
        }
    }
    return false;
}

static rlx_dtype signed_of_size(int bytes)
{
    switch (bytes) {
    case 1: return RLX_DTYPE_i8;
    case 2: return RLX_DTYPE_i16;
    case 4: return RLX_DTYPE_i32;
    default: return RLX_DTYPE_i64;
    }
}

/* Integers of different signedness: the signed type if it is wider, else the next wider signed. */
static bool promote_mixed_signs(rlx_dtype s, rlx_dtype u, rlx_dtype *out)
{
    if (u == RLX_DTYPE_u64)
        return false;
    int su = dtype_table[u].bytes, ss = dtype_table[s].bytes;
    *out = ss > su ? s : signed_of_size(2 * su);
    return true;
}

bool dtype_promote(rlx_dtype a, rlx_dtype b, rlx_dtype *out)
{
    enum dtype_class ca = dtype_class(a), cb = dtype_class(b);

    if (!ca || !cb)
        return false;
    if (a == b)
        *out = a;
    else if (ca == CLASS_B || cb == CLASS_B)
        *out = ca == CLASS_B ? b : a;
    else if (ca == CLASS_C || cb == CLASS_C)
        *out = RLX_DTYPE_c64;
    else if (ca == CLASS_F && cb == CLASS_F)
        *out = a == RLX_DTYPE_f64 || b == RLX_DTYPE_f64 ? RLX_DTYPE_f64 : RLX_DTYPE_f32;
    else if (ca == CLASS_F || cb == CLASS_F) {
        rlx_dtype f = ca == CLASS_F ? a : b, i = ca == CLASS_F ? b : a;
        *out = f == RLX_DTYPE_f64 || dtype_table[i].bytes == 8 ? RLX_DTYPE_f64 : RLX_DTYPE_f32;
    } else if (ca == cb)
        *out = dtype_table[a].bytes > dtype_table[b].bytes ? a : b;
    else
        return ca == CLASS_I ? promote_mixed_signs(a, b, out) : promote_mixed_signs(b, a, out);
    return true;
}

bool type_is_static(const struct ir_type *t)
{
    for (int32_t i = 0; i < t->rank; i++)
        if (!dim_is_static(t->dim[i]))
            return false;
    return true;
}

bool type_same(const struct ir_type *a, const struct ir_type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

/* A zero anywhere makes the count zero, but the other dims must not overflow on their own either:
 * strides are products of them. */
bool type_count(const struct ir_type *t, int64_t *count)
{
    int64_t n = 1, nonzero = 1;

    for (int32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0)
            return false;
        if (t->dim[i] == 0)
            n = 0;
        else if (__builtin_mul_overflow(nonzero, t->dim[i], &nonzero))
            return false;
    }
    *count = n ? nonzero : 0;
    return true;
}

bool type_bytes(const struct ir_type *t, uint64_t *bytes)
{
    int64_t n;

    if (!type_count(t, &n) || __builtin_mul_overflow(n, (int64_t)rlx_dtype_size(t->dtype), &n))
        return false;
    *bytes = (uint64_t)n;
    return true;
}
