/* attr.c: attributes by kind: defaults, equality and hash all follow from what ops.def says. */
#include "ir/op.h"

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/str.h"

size_t attr_element_size(enum attr_kind kind)
{
    switch (kind) {
    case ATTR_FLOATS: return sizeof(float);
    case ATTR_CHAIN: return sizeof(rlx_chain_step);
    default: return 1;
    }
}

static bool is_marker(const char *text) /* REQUIRED, ABSENT, EMPTY: there is no default value */
{
    return strcmp(text, "REQUIRED") == 0 || strcmp(text, "ABSENT") == 0 ||
           strcmp(text, "EMPTY") == 0;
}

static double number_of(const char *text)
{
    rlx_str s = rlx_cstr(text);
    double v = 0;

    if (strcmp(text, "INFINITY") == 0)
        return (double)INFINITY;
    if (strcmp(text, "-INFINITY") == 0)
        return -(double)INFINITY;
    if (s.len > 0 && s.ptr[s.len - 1] == 'f')
        s.len--;
    str_to_f64(s, &v);
    return v;
}

static void set_default(const struct attr_info *a, void *at)
{
    const char *text = a->default_text;
    bool none = is_marker(text);

    switch (a->kind) {
    case ATTR_BOOL: *(attr_BOOL *)at = strcmp(text, "true") == 0; break;
    case ATTR_I64: *(attr_I64 *)at = none ? RLX_ABSENT : (int64_t)number_of(text); break;
    case ATTR_U64: *(attr_U64 *)at = none ? 0 : (uint64_t)number_of(text); break;
    case ATTR_F32: *(attr_F32 *)at = none ? NAN : (float)number_of(text); break;
    case ATTR_F64: *(attr_F64 *)at = none ? (double)NAN : number_of(text); break;
    case ATTR_ENUM:
        *(attr_ENUM *)at = -1;
        enum_from_word(a->words, rlx_cstr(text), at);
        break;
    case ATTR_DTYPE:
        *(attr_DTYPE *)at = RLX_ABSENT_DTYPE;
        dtype_from_name(rlx_cstr(text), at);
        break;
    case ATTR_DIM: *(attr_DIM *)at = none ? RLX_DIM_FAILED : (ir_dim)number_of(text); break;
    case ATTR_AXES:
    case ATTR_INTS:
    case ATTR_DIMS: memset(at, 0, sizeof(rlx_list)); break;
    case ATTR_FLOATS:
    case ATTR_BYTES:
    case ATTR_STRING:
    case ATTR_CHAIN: *(struct ir_blob *)at = (struct ir_blob){NULL, 0}; break;
    case ATTR_GRAPH: *(attr_GRAPH *)at = -1; break;
    case ATTR_UNARY:
        *(attr_UNARY *)at = RLX_OP_none;
        if (!none)
            op_from_name(rlx_cstr(text), at);
        break;
    }
}

void attr_defaults(rlx_op op, union ir_attr *out)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < count; i++)
        set_default(&a[i], (char *)out + a[i].offset);
}

static size_t size_of_kind(enum attr_kind kind)
{
    switch (kind) {
#define SIZE_OF(k) \
    case ATTR_##k: return sizeof(attr_##k);
        /* clang-format off */
        SIZE_OF(BOOL) SIZE_OF(I64) SIZE_OF(U64) SIZE_OF(F32) SIZE_OF(F64)
        SIZE_OF(ENUM) SIZE_OF(DTYPE) SIZE_OF(DIM) SIZE_OF(AXES) SIZE_OF(INTS) SIZE_OF(DIMS)
        SIZE_OF(FLOATS) SIZE_OF(BYTES) SIZE_OF(STRING) SIZE_OF(GRAPH) SIZE_OF(CHAIN) SIZE_OF(UNARY)
        /* clang-format on */
#undef SIZE_OF
    }
    return 0;
}

static bool value_same(enum attr_kind kind, const void *a, const void *b)
{
    switch (kind) {
    case ATTR_F32: { /* 0 and -0 differ, NaN equals NaN */
        float x = *(const float *)a, y = *(const float *)b;
        return (isnan(x) && isnan(y)) || (x == y && !signbit(x) == !signbit(y));
    }
    case ATTR_F64: {
        double x = *(const double *)a, y = *(const double *)b;
        return (isnan(x) && isnan(y)) || (x == y && !signbit(x) == !signbit(y));
    }
    case ATTR_AXES:
    case ATTR_INTS:
    case ATTR_DIMS: {
        const rlx_list *x = a, *y = b;
        return x->count == y->count &&
               memcmp(x->at, y->at, (size_t)x->count * sizeof x->at[0]) == 0;
    }
    case ATTR_FLOATS:
    case ATTR_BYTES:
    case ATTR_STRING:
    case ATTR_CHAIN: {
        const struct ir_blob *x = a, *y = b;
        return x->len == y->len && (x->ptr == y->ptr || x->len == 0 ||
                                    memcmp(x->ptr, y->ptr, x->len * attr_element_size(kind)) == 0);
    }
    default: return memcmp(a, b, size_of_kind(kind)) == 0;
    }
}

static uint64_t value_hash(enum attr_kind kind, const void *a)
{
    switch (kind) {
    case ATTR_F32: return isnan(*(const float *)a) ? 1 : hash_bytes(a, sizeof(float));
    case ATTR_F64: return isnan(*(const double *)a) ? 1 : hash_bytes(a, sizeof(double));
    case ATTR_AXES:
    case ATTR_INTS:
    case ATTR_DIMS: {
        const rlx_list *x = a;
        return hash_bytes(x->at, (size_t)x->count * sizeof x->at[0]);
    }
    case ATTR_FLOATS:
    case ATTR_BYTES:
    case ATTR_STRING:
    case ATTR_CHAIN: {
        const struct ir_blob *x = a;
        return hash_bytes(x->ptr, x->len * attr_element_size(kind));
    }
    default: return hash_bytes(a, size_of_kind(kind));
    }
}

bool attr_is_default(const struct attr_info *a, const union ir_attr *v)
{
    union ir_attr def;

    if (strcmp(a->default_text, "REQUIRED") == 0)
        return false;
    set_default(a, (char *)&def + a->offset);
    return value_same(a->kind, (const char *)v + a->offset, (const char *)&def + a->offset);
}

int64_t attr_integer(rlx_op op, const union ir_attr *v, const char *name, int64_t otherwise)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);

    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)v + a[i].offset;
        if (strcmp(a[i].name, name) != 0)
            continue;
        switch (a[i].kind) {
        case ATTR_BOOL: return *(const bool *)at;
        case ATTR_I64: return *(const int64_t *)at;
        case ATTR_ENUM: return *(const int32_t *)at;
        default: return otherwise;
        }
    }
    return otherwise;
}

bool attr_same(rlx_op op, const union ir_attr *x, const union ir_attr *y)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);

    for (size_t i = 0; i < count; i++)
        if (!value_same(a[i].kind, (const char *)x + a[i].offset, (const char *)y + a[i].offset))
            return false;
    return true;
}

uint64_t attr_hash(rlx_op op, const union ir_attr *v)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);
    uint64_t h = 0;

    for (size_t i = 0; i < count; i++)
        h = hash_mix(h, value_hash(a[i].kind, (const char *)v + a[i].offset));
    return h;
}
