/* meta.c: single values of metadata, asked for as the type they are wanted in. */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "import/weight_file.h"

size_t meta_type_size(rlx_meta_type t)
{
    switch (t) {
#define X(name, id, bytes) \
    case id: return bytes;
        RLX_META_TYPE_MAP(X)
#undef X
    }
    return 0;
}

const char *rlx_meta_type_name(rlx_meta_type t)
{
    switch (t) {
#define X(name, id, bytes) \
    case id: return #name;
        RLX_META_TYPE_MAP(X)
#undef X
    }
    return "?";
}

static rlx_status wrong_type(const rlx_meta *m, const char *wanted, struct diag *d)
{
    return diag_fail(d, RLX_ERROR_DTYPE, "metadata \"%.*s\" is %s%s, not %s", STR_ARG(m->key),
                     m->is_array ? "an array of " : "", rlx_meta_type_name(m->type), wanted);
}

/* Sign and magnitude of any integer; false: it is something else. */
static bool get_integer(const rlx_meta *m, bool *negative, uint64_t *magnitude)
{
    int64_t v = 0;

    if (m->is_array)
        return false;
    switch (m->type) {
    case RLX_META_u8: v = *(const uint8_t *)m->data; break;
    case RLX_META_i8: v = *(const int8_t *)m->data; break;
    case RLX_META_u16: v = *(const uint16_t *)m->data; break;
    case RLX_META_i16: v = *(const int16_t *)m->data; break;
    case RLX_META_u32: v = *(const uint32_t *)m->data; break;
    case RLX_META_i32: v = *(const int32_t *)m->data; break;
    case RLX_META_i64: v = *(const int64_t *)m->data; break;
    case RLX_META_u64:
        *negative = false;
        *magnitude = *(const uint64_t *)m->data;
        return true;
    default: return false;
    }
    *negative = v < 0;
    *magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    return true;
}

rlx_status meta_get_u64(const struct weights *w, rlx_str key, uint64_t most, uint64_t *out,
                        bool *found, struct diag *d)
{
    const rlx_meta *m = weights_meta(w, key);
    uint64_t v = 0;
    bool negative = false;

    *found = m != NULL;
    if (!m)
        return RLX_OK;
    if (!get_integer(m, &negative, &v))
        return wrong_type(m, "an integer", d);
    if (negative || v > most)
        return diag_fail(d, RLX_ERROR_DTYPE,
                         "metadata \"%.*s\" is %s%" PRIu64 ", which is not from 0 to %" PRIu64,
                         STR_ARG(key), negative ? "-" : "", v, most);
    *out = v;
    return RLX_OK;
}

rlx_status meta_get_f32(const struct weights *w, rlx_str key, float *out, struct diag *d)
{
    const rlx_meta *m = weights_meta(w, key);
    bool negative = false;
    uint64_t v = 0;

    if (!m)
        return RLX_OK;
    if (!m->is_array && m->type == RLX_META_f32)
        *out = *(const float *)m->data;
    else if (!m->is_array && m->type == RLX_META_f64)
        *out = (float)*(const double *)m->data;
    else if (get_integer(m, &negative, &v))
        *out = negative ? -(float)v : (float)v;
    else
        return wrong_type(m, "a number", d);
    return RLX_OK;
}

rlx_status meta_get_bool(const struct weights *w, rlx_str key, bool *out, struct diag *d)
{
    const rlx_meta *m = weights_meta(w, key);

    if (!m)
        return RLX_OK;
    if (m->is_array || m->type != RLX_META_bool)
        return wrong_type(m, "a bool", d);
    *out = *(const uint8_t *)m->data != 0;
    return RLX_OK;
}

rlx_status meta_get_str(const struct weights *w, rlx_str key, rlx_str *out, struct diag *d)
{
    const rlx_meta *m = weights_meta(w, key);

    if (!m)
        return RLX_OK;
    if (m->is_array || m->type != RLX_META_string)
        return wrong_type(m, "a string", d);
    *out = *(const rlx_str *)m->data;
    return RLX_OK;
}
