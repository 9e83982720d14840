/* weights.c: `rlx/weights.h`: files of tensors, opened and asked. */
#include "model/weights.h"
#include "base/desc.h"

#include <string.h>

#include "base/str.h"
#include "import/detect.h"
#include "ir/quant/quant_decode.h"
#include "run/convert.h"

rlx_status rlx_file_detect(rlx_context *ctx, const char *path, rlx_file_kind *out, rlx_error *err)
{
    struct diag d;
    struct file f;

    diag_init(&d, "load");
    if (!ctx || !path || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !path ? "path" : "out");
    else if (file_open(&f, path, FILE_MAP, &ctx->mem, &d) == RLX_OK) {
        *out = detect_kind(f.data, f.size);
        file_close(&f);
    }
    return diag_report(&d, err);
}

/* ---- opening ---- */

static struct rlx_weights *create(rlx_context *ctx, struct diag *d)
{
    struct rlx_weights *w = mem_alloc(&ctx->mem, sizeof *w);

    if (!w) {
        diag_no_memory(d, sizeof *w);
        return NULL;
    }
    w->ctx = context_retain(ctx);
    atomic_init(&w->refs, 1);
    pthread_mutex_init(&w->lock, NULL);
    weights_init(&w->set, &ctx->mem);
    return w;
}

void weights_retain(struct rlx_weights *w)
{
    atomic_fetch_add(&w->refs, 1);
}

void rlx_weights_close(rlx_weights *w)
{
    if (!w || atomic_fetch_sub(&w->refs, 1) != 1)
        return;
    rlx_context *ctx = w->ctx;
    weights_free(&w->set);
    pthread_mutex_destroy(&w->lock);
    mem_free(&ctx->mem, w, sizeof *w);
    rlx_context_destroy(ctx);
}

static void hand_out(struct rlx_weights *w, rlx_status s, rlx_weights **out)
{
    if (s == RLX_OK)
        *out = w;
    else
        rlx_weights_close(w);
}

rlx_status rlx_weights_open(rlx_context *ctx, const char *path, const rlx_load_desc *desc,
                            rlx_weights **out, rlx_error *err)
{
    rlx_load_desc own = {RLX_SIZED(rlx_load_desc)};
    struct rlx_weights *w;
    struct diag d;

    diag_init(&d, "load");
    if (!ctx || !path || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !path ? "path" : "out");
    else if (DESC_READ(rlx_load_desc, &own, desc, &d) == RLX_OK && (w = create(ctx, &d)) != NULL)
        hand_out(w, weights_open(&w->set, path, &own, &d), out);
    return diag_report(&d, err);
}

rlx_status rlx_weights_parse(rlx_context *ctx, const void *bytes, size_t size, rlx_weights **out,
                             rlx_error *err)
{
    struct rlx_weights *w;
    struct diag d;

    diag_init(&d, "load");
    if (!ctx || !bytes || !out) {
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !bytes ? "bytes" : "out");
    } else if ((w = create(ctx, &d)) != NULL) {
        uint64_t parts = 1;
        bool found;
        rlx_status s = weights_read(&w->set, bytes, size, STR("array"), &d);
        if (s == RLX_OK)
            s = meta_get_u64(&w->set, STR("split.count"), UINT64_MAX, &parts, &found, &d);
        if (s == RLX_OK && w->set.kind == RLX_FILE_gguf && parts > 1)
            s = diag_fail(&d, RLX_ERROR_FORMAT, "gguf: it is one of several parts");
        w->memory_bytes = size;
        hand_out(w, s, out);
    }
    return diag_report(&d, err);
}

/* ---- what is in it ---- */

static rlx_weights_info describe(const struct rlx_weights *w)
{
    rlx_weights_info info = {RLX_SIZED(rlx_weights_info),       .kind = w->set.kind,
                             .version = w->set.version,         .files = (uint32_t)w->set.file.len,
                             .bytes = w->memory_bytes,          .alignment = w->set.alignment,
                             .tensor_count = w->set.tensor.len, .meta_count = w->set.meta.len};

    for (size_t i = 0; i < w->set.file.len; i++)
        info.bytes += w->set.file.at[i].size;
    return info;
}

rlx_status rlx_weights_describe(const rlx_weights *w, rlx_weights_info *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "load");
    if (!w)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "w is NULL");
    else {
        const rlx_weights_info own = describe(w);
        INFO_WRITE(rlx_weights_info, &own, out, &d);
    }
    return diag_report(&d, err);
}

bool rlx_weights_at(const rlx_weights *w, size_t i, rlx_weight *out)
{
    if (!w || !out || i >= w->set.tensor.len)
        return false;
    const struct weight *t = &w->set.tensor.at[i];
    *out = (rlx_weight){.name = t->name, .type = t->type, .rank = t->rank, .bytes = t->bytes};
    memcpy(out->dim, t->dim, sizeof out->dim);
    return true;
}

bool rlx_weights_find(const rlx_weights *w, rlx_str name, size_t *i)
{
    return w && i && (name.ptr || !name.len) && weights_find(&w->set, name, i);
}

/* ---- data ---- */

rlx_status weights_locked_data(struct rlx_weights *w, size_t i, const uint8_t **out, struct diag *d)
{
    pthread_mutex_lock(&w->lock);
    rlx_status s = weights_data(&w->set, i, out, d);
    pthread_mutex_unlock(&w->lock);
    return s;
}

static rlx_status check_number(const rlx_weights *w, size_t i, const void *out, struct diag *d)
{
    if (!w || !out)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", w ? "out" : "w");
    if (i >= w->set.tensor.len)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there are %zu tensors, no number %zu",
                         w->set.tensor.len, i);
    return RLX_OK;
}

rlx_status rlx_weights_data(rlx_weights *w, size_t i, const void **out, rlx_error *err)
{
    const uint8_t *at;
    struct diag d;

    diag_init(&d, "load");
    if (check_number(w, i, out, &d) == RLX_OK && weights_locked_data(w, i, &at, &d) == RLX_OK)
        *out = at;
    return diag_report(&d, err);
}

rlx_status weights_to_f32(const struct weight *t, const uint8_t *data, uint64_t first,
                          uint64_t count, float *out, struct diag *d)
{
    const struct weight_type *type = weight_type(t->type);
    uint64_t elems = (uint64_t)type->elems;

    if (type->use == RLX_WEIGHT_BYTES || type->use == RLX_WEIGHT_OPAQUE)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "tensor \"%.*s\": numbers of %s are not read",
                         STR_ARG(t->name), type->name);
    if (!convert_allowed(RLX_DTYPE_f32, type->dtype))
        return diag_fail(d, RLX_ERROR_DTYPE, "tensor \"%.*s\" is %s, which cannot become f32",
                         STR_ARG(t->name), type->name);
    data += first / elems * (uint64_t)type->bytes;
    if (type->use == RLX_WEIGHT_PACKED)
        quant_decode_row((int32_t)type->scheme, data, (int64_t)count, out);
    else
        convert_unaligned(RLX_DTYPE_f32, out, type->dtype, data, (size_t)count);
    return RLX_OK;
}

static rlx_status read_f32(rlx_weights *w, size_t i, uint64_t first, uint64_t count, float *out,
                           struct diag *d)
{
    const uint8_t *data;

    TRY(check_number(w, i, out, d));
    const struct weight *t = &w->set.tensor.at[i];
    const struct weight_type *type = weight_type(t->type);
    uint64_t all = t->bytes / (uint64_t)type->bytes * (uint64_t)type->elems;
    if (first > all || count > all - first)
        return diag_fail(d, RLX_ERROR_ARGUMENT,
                         "tensor \"%.*s\" has %llu elements, not %llu from %llu on",
                         STR_ARG(t->name), (unsigned long long)all, (unsigned long long)count,
                         (unsigned long long)first);
    if (first % (uint64_t)type->elems || count % (uint64_t)type->elems)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "tensor \"%.*s\" is read in blocks of %d elements",
                         STR_ARG(t->name), type->elems);
    TRY(weights_locked_data(w, i, &data, d));
    return weights_to_f32(t, data, first, count, out, d);
}

rlx_status rlx_weights_read_f32(rlx_weights *w, size_t i, uint64_t first, uint64_t count,
                                float *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "load");
    read_f32(w, i, first, count, out, &d);
    return diag_report(&d, err);
}

/* ---- metadata ---- */

bool rlx_weights_meta_at(const rlx_weights *w, size_t i, rlx_meta *out)
{
    if (!w || !out || i >= w->set.meta.len)
        return false;
    *out = w->set.meta.at[i];
    return true;
}

bool rlx_weights_meta(const rlx_weights *w, rlx_str key, rlx_meta *out)
{
    const rlx_meta *m = w && out && key.ptr ? weights_meta(&w->set, key) : NULL;

    if (m)
        *out = *m;
    return m != NULL;
}

static bool may_ask(const rlx_weights *w, rlx_str key, const void *out, struct diag *d)
{
    diag_init(d, "metadata");
    if (!w || !key.ptr || !out)
        diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", !w ? "w" : out ? "key" : "out");
    return d->count == 0;
}

rlx_status rlx_weights_get_u64(const rlx_weights *w, rlx_str key, uint64_t *out, rlx_error *err)
{
    struct diag d;
    bool found;

    if (may_ask(w, key, out, &d))
        meta_get_u64(&w->set, key, UINT64_MAX, out, &found, &d);
    return diag_report(&d, err);
}

rlx_status rlx_weights_get_u32(const rlx_weights *w, rlx_str key, uint32_t *out, rlx_error *err)
{
    struct diag d;
    uint64_t v;
    bool found;

    if (may_ask(w, key, out, &d) &&
        meta_get_u64(&w->set, key, UINT32_MAX, &v, &found, &d) == RLX_OK && found)
        *out = (uint32_t)v;
    return diag_report(&d, err);
}

rlx_status rlx_weights_get_f32(const rlx_weights *w, rlx_str key, float *out, rlx_error *err)
{
    struct diag d;

    if (may_ask(w, key, out, &d))
        meta_get_f32(&w->set, key, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_weights_get_bool(const rlx_weights *w, rlx_str key, bool *out, rlx_error *err)
{
    struct diag d;

    if (may_ask(w, key, out, &d))
        meta_get_bool(&w->set, key, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_weights_get_str(const rlx_weights *w, rlx_str key, rlx_str *out, rlx_error *err)
{
    struct diag d;

    if (may_ask(w, key, out, &d))
        meta_get_str(&w->set, key, out, &d);
    return diag_report(&d, err);
}
