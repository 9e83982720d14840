/* keys.c: what a GGUF file's metadata says, by name. */
#include "llm/keys.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { LARGEST = 1 << 24 }; /* of any size that a file may give */

static bool find(const struct llm_keys *k, const char *name, char full[128], rlx_meta *out)
{
    snprintf(full, 128, "%.*s.%s", STR_ARG(k->arch), name);
    return rlx_weights_meta(k->w, rlx_cstr(full), out);
}

static void missing(const struct llm_keys *k, const char *full)
{
    (diag_fail)(k->d, RLX_ERROR_FORMAT, "the file has no key \"%s\", which its architecture needs",
                full);
}

/* Element i of integers or bools of any width; false: they are neither. */
static bool integer_at(const rlx_meta *m, size_t i, int64_t *out)
{
    const unsigned char *at = m->data;

    switch (m->type) {
#define OF(kind, type)                           \
    case RLX_META_##kind: {                      \
        type v;                                  \
        memcpy(&v, at + i * sizeof v, sizeof v); \
        *out = (int64_t)v;                       \
        return true;                             \
    }
        OF(u8, uint8_t)
        OF(i8, int8_t)
        OF(u16, uint16_t)
        OF(i16, int16_t)
        OF(u32, uint32_t)
        OF(i32, int32_t)
        OF(u64, uint64_t) /* too large: negative, which is refused as well */
        OF(i64, int64_t)
        OF(bool, uint8_t)
#undef OF
    default: return false;
    }
}

int64_t key_int_of(const struct llm_keys *k, const char *name, int64_t layer, int64_t otherwise)
{
    char full[128];
    rlx_meta m;
    int64_t v = 0;

    if (!find(k, name, full, &m)) {
        if (otherwise == KEY_NEEDED)
            missing(k, full);
        return otherwise == KEY_NEEDED ? 0 : otherwise;
    }
    size_t i = m.is_array ? (size_t)layer : 0;
    if (i >= m.count || !integer_at(&m, i, &v))
        (diag_fail)(k->d, RLX_ERROR_FORMAT, "%s has no whole number for layer %lld", full,
                    (long long)layer);
    else if (v < -1 || v > LARGEST)
        (diag_fail)(k->d, RLX_ERROR_FORMAT, "%s is %lld; it must be from 0 to %d", full,
                    (long long)v, LARGEST);
    else
        return v;
    return 0;
}

int64_t key_int(const struct llm_keys *k, const char *name, int64_t otherwise)
{
    return key_int_of(k, name, 0, otherwise);
}

double key_float(const struct llm_keys *k, const char *name, double otherwise)
{
    char full[128];
    rlx_meta m;
    rlx_error err;
    float v = 0;

    if (!find(k, name, full, &m)) {
        if (otherwise == KEY_NEEDED_F)
            missing(k, full);
        return otherwise == KEY_NEEDED_F ? 0 : otherwise;
    }
    if (rlx_weights_get_f32(k->w, rlx_cstr(full), &v, &err) != RLX_OK)
        diag_again(k->d, &err, err.status);
    else if (!isfinite((double)v))
        (diag_fail)(k->d, RLX_ERROR_FORMAT, "%s is not a finite number", full);
    else
        return (double)v;
    return 0;
}

bool key_bool(const struct llm_keys *k, const char *name, bool otherwise)
{
    char full[128];
    rlx_meta m;
    rlx_error err;
    bool v = otherwise;

    if (find(k, name, full, &m) && rlx_weights_get_bool(k->w, rlx_cstr(full), &v, &err) != RLX_OK)
        diag_again(k->d, &err, err.status);
    return v;
}

rlx_str key_text(const struct llm_keys *k, const char *name)
{
    char full[128];
    rlx_meta m;
    rlx_error err;
    rlx_str v = {NULL, 0};

    if (find(k, name, full, &m) && rlx_weights_get_str(k->w, rlx_cstr(full), &v, &err) != RLX_OK)
        diag_again(k->d, &err, err.status);
    return v;
}

bool key_exists(const struct llm_keys *k, const char *name)
{
    char full[128];
    rlx_meta m;

    return find(k, name, full, &m);
}

bool key_is_array(const struct llm_keys *k, const char *name)
{
    char full[128];
    rlx_meta m;

    return find(k, name, full, &m) && m.is_array;
}

bool has_tensor(const struct llm_keys *k, const char *name)
{
    size_t i;

    return rlx_weights_find(k->w, rlx_cstr(name), &i);
}

bool has_layer_tensor(const struct llm_keys *k, int64_t layer, const char *name)
{
    char full[128];

    snprintf(full, sizeof full, "blk.%lld.%s", (long long)layer, name);
    return has_tensor(k, full);
}
