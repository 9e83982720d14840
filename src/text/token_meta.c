/* token_meta.c: the metadata that a tokenizer is built of: kept, and asked for by key. */
#include <stdio.h>
#include <string.h>

#include "text/tokenizer.h"

#define PREFIX "tokenizer."

const rlx_meta *tok_meta(const struct rlx_tokenizer *t, const char *key)
{
    for (size_t i = 0; i < t->meta.len; i++) {
        rlx_str k = t->meta.at[i].key;
        k.ptr += strlen(PREFIX);
        k.len -= strlen(PREFIX);
        if (str_eq(k, rlx_cstr(key)))
            return &t->meta.at[i];
    }
    return NULL;
}

static rlx_status wrong(const rlx_meta *m, const char *wanted, struct diag *d)
{
    return diag_fail(d, RLX_ERROR_DTYPE, "%.*s is %s of type %s, not %s", STR_ARG(m->key),
                     m->is_array ? "an array" : "one value", rlx_meta_type_name(m->type), wanted);
}

static bool integer(const rlx_meta *m, int64_t *out)
{
    switch (m->type) {
    case RLX_META_u8: *out = *(const uint8_t *)m->data; return true;
    case RLX_META_i8: *out = *(const int8_t *)m->data; return true;
    case RLX_META_u16: *out = *(const uint16_t *)m->data; return true;
    case RLX_META_i16: *out = *(const int16_t *)m->data; return true;
    case RLX_META_u32: *out = *(const uint32_t *)m->data; return true;
    case RLX_META_i32: *out = *(const int32_t *)m->data; return true;
    case RLX_META_i64: *out = *(const int64_t *)m->data; return true;
    case RLX_META_u64: {
        uint64_t v = *(const uint64_t *)m->data;
        *out = v > INT64_MAX ? INT64_MAX : (int64_t)v;
        return true;
    }
    default: return false;
    }
}

rlx_status tok_meta_bool(const struct rlx_tokenizer *t, const char *key, bool *out, struct diag *d)
{
    const rlx_meta *m = tok_meta(t, key);

    if (m && (m->is_array || m->type != RLX_META_bool))
        return wrong(m, "a bool", d);
    if (m)
        *out = *(const uint8_t *)m->data != 0;
    return RLX_OK;
}

rlx_status tok_meta_id(const struct rlx_tokenizer *t, const char *key, int32_t *out, struct diag *d)
{
    const rlx_meta *m = tok_meta(t, key);
    int64_t id;

    if (!m)
        return RLX_OK;
    if (m->is_array || !integer(m, &id))
        return wrong(m, "a token id", d);
    if (m->type == RLX_META_u32 && id == UINT32_MAX)
        id = -1; /* how some writers say that there is none */
    if (id != -1 && (id < 0 || id >= (int64_t)t->vocab))
        return diag_fail(d, RLX_ERROR_FORMAT, "%.*s is %lld, but the vocabulary has %u tokens",
                         STR_ARG(m->key), (long long)id, t->vocab);
    *out = (int32_t)id;
    return RLX_OK;
}

rlx_status tok_meta_str(const struct rlx_tokenizer *t, const char *key, rlx_str *out,
                        struct diag *d)
{
    const rlx_meta *m = tok_meta(t, key);

    if (m && (m->is_array || m->type != RLX_META_string))
        return wrong(m, "a string", d);
    if (m)
        *out = *(const rlx_str *)m->data;
    return RLX_OK;
}

rlx_status tok_meta_array(const struct rlx_tokenizer *t, const char *key, rlx_meta_type type,
                          const rlx_meta **out, struct diag *d)
{
    const rlx_meta *m = tok_meta(t, key);
    char wanted[64];

    *out = m;
    if (!m || (m->is_array && m->type == type))
        return RLX_OK;
    snprintf(wanted, sizeof wanted, "an array of %s", rlx_meta_type_name(type));
    return wrong(m, wanted, d);
}

/* ---- keeping ----------------------------------------------------------------------------- */

static rlx_status copy_strings(struct arena *a, rlx_meta *m, struct diag *d)
{
    const rlx_str *from = m->data;
    rlx_str *to = arena_array(a, rlx_str, m->count);
    size_t total = 0;

    if (!to)
        return diag_no_memory(d, m->count * sizeof *to);
    for (size_t i = 0; i < m->count; i++)
        if (!size_add(total, from[i].len, &total))
            return diag_no_memory(d, SIZE_MAX);
    char *bytes = arena_alloc(a, total, 1);
    if (!bytes)
        return diag_no_memory(d, total);
    for (size_t i = 0; i < m->count; i++) {
        if (from[i].len)
            memcpy(bytes, from[i].ptr, from[i].len);
        to[i] = (rlx_str){bytes, from[i].len};
        bytes += from[i].len;
    }
    m->data = to;
    return RLX_OK;
}

static rlx_status copy(struct arena *a, rlx_meta *m, struct diag *d)
{
    size_t bytes = 0;

    m->key = arena_str(a, m->key);
    if (!m->key.ptr)
        return diag_no_memory(d, m->key.len);
    if (m->type == RLX_META_string)
        return copy_strings(a, m, d);
    if (!size_mul(m->count, meta_type_size(m->type), &bytes))
        return diag_no_memory(d, SIZE_MAX);
    void *data = arena_alloc(a, bytes, sizeof(uint64_t));
    if (!data)
        return diag_no_memory(d, bytes);
    if (bytes)
        memcpy(data, m->data, bytes);
    m->data = data;
    return RLX_OK;
}

rlx_status tok_meta_keep(struct rlx_tokenizer *t, const rlx_meta *meta, size_t count,
                         struct diag *d)
{
    for (size_t i = 0; i < count; i++) {
        rlx_meta m = meta[i];
        if (!str_starts(m.key, STR(PREFIX)))
            continue;
        if (!vec_room(t->mem, &t->meta))
            return diag_no_memory(d, sizeof m);
        TRY(copy(&t->arena, &m, d));
        t->meta.at[t->meta.len++] = m;
    }
    return RLX_OK;
}
