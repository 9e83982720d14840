/* api_weights.c: rlx/weights.h: files of tensors, read and written. */
#include <string.h>

#include "base/desc.h"
#include "base/file.h"
#include "import/detect.h"
#include "model/weights.h"
#include "model/weights_write.h"

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

rlx_status rlx_weights_open(rlx_context *ctx, const char *path, const rlx_load_desc *desc,
                            rlx_weights **out, rlx_error *err)
{
    rlx_load_desc own = {RLX_SIZED(rlx_load_desc)};
    struct diag d;

    diag_init(&d, "load");
    if (!ctx || !path || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !path ? "path" : "out");
    else if (DESC_READ(rlx_load_desc, &own, desc, &d) == RLX_OK)
        shared_weights_open(ctx, path, &own, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_weights_parse(rlx_context *ctx, const void *bytes, size_t size, rlx_weights **out,
                             rlx_error *err)
{
    struct diag d;

    diag_init(&d, "load");
    if (!ctx || !bytes || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !bytes ? "bytes" : "out");
    else
        shared_weights_parse(ctx, bytes, size, out, &d);
    return diag_report(&d, err);
}

void rlx_weights_close(rlx_weights *w)
{
    shared_weights_release(w);
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

rlx_status rlx_weights_data(rlx_weights *w, size_t i, const void **out, rlx_error *err)
{
    const uint8_t *at;
    struct diag d;

    diag_init(&d, "load");
    if (!w || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", w ? "out" : "w");
    else if (shared_weights_data(w, i, &at, &d) == RLX_OK)
        *out = at;
    return diag_report(&d, err);
}

rlx_status rlx_weights_read_f32(rlx_weights *w, size_t i, uint64_t first, uint64_t count,
                                float *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "load");
    if (!w || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", w ? "out" : "w");
    else
        shared_weights_read_f32(w, i, first, count, out, &d);
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

static bool check_lookup(const rlx_weights *w, rlx_str key, const void *out, struct diag *d)
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

    if (check_lookup(w, key, out, &d))
        meta_get_u64(&w->set, key, UINT64_MAX, out, &found, &d);
    return diag_report(&d, err);
}

rlx_status rlx_weights_get_u32(const rlx_weights *w, rlx_str key, uint32_t *out, rlx_error *err)
{
    struct diag d;
    uint64_t v;
    bool found;

    if (check_lookup(w, key, out, &d) &&
        meta_get_u64(&w->set, key, UINT32_MAX, &v, &found, &d) == RLX_OK && found)
        *out = (uint32_t)v;
    return diag_report(&d, err);
}

rlx_status rlx_weights_get_f32(const rlx_weights *w, rlx_str key, float *out, rlx_error *err)
{
    struct diag d;

    if (check_lookup(w, key, out, &d))
        meta_get_f32(&w->set, key, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_weights_get_bool(const rlx_weights *w, rlx_str key, bool *out, rlx_error *err)
{
    struct diag d;

    if (check_lookup(w, key, out, &d))
        meta_get_bool(&w->set, key, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_weights_get_str(const rlx_weights *w, rlx_str key, rlx_str *out, rlx_error *err)
{
    struct diag d;

    if (check_lookup(w, key, out, &d))
        meta_get_str(&w->set, key, out, &d);
    return diag_report(&d, err);
}

/* ---- writing ---- */

rlx_status rlx_weights_begin(rlx_context *ctx, const char *path, const rlx_weights_content *content,
                             rlx_weights_writer **out, rlx_error *err)
{
    rlx_weights_content own = {RLX_SIZED(rlx_weights_content)};
    struct diag d;

    diag_init(&d, "save");
    if (!ctx || !path || !content || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL",
                  !ctx       ? "ctx"
                  : !path    ? "path"
                  : !content ? "content"
                             : "out");
    else if (DESC_READ(rlx_weights_content, &own, content, &d) == RLX_OK)
        weights_writer_begin(ctx, path, &own, out, &d);
    return diag_report(&d, err);
}

bool rlx_weights_next(const rlx_weights_writer *w, size_t *i, uint64_t *left)
{
    return w && i && left && weights_writer_next(w, i, left);
}

rlx_status rlx_weights_write(rlx_weights_writer *w, const void *data, size_t bytes, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "save");
    if (!w || (!data && bytes))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", w ? "data" : "w");
    else
        weights_writer_write(w, data, bytes, &d);
    return diag_report(&d, err);
}

rlx_status rlx_weights_write_f32(rlx_weights_writer *w, const float *x, uint64_t count,
                                 rlx_error *err)
{
    struct diag d;

    diag_init(&d, "save");
    if (!w || (!x && count))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", w ? "x" : "w");
    else
        weights_writer_write_f32(w, x, count, &d);
    return diag_report(&d, err);
}

void rlx_weights_make_durable(rlx_weights_writer *w)
{
    if (w)
        weights_writer_make_durable(w);
}

rlx_status rlx_weights_finish(rlx_weights_writer *w, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "save");
    if (w)
        weights_writer_finish(w, &d);
    else
        diag_fail(&d, RLX_ERROR_ARGUMENT, "w is NULL");
    return diag_report(&d, err);
}

void rlx_weights_abandon(rlx_weights_writer *w)
{
    weights_writer_abandon(w);
}
