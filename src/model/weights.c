/* weights.c: files of tensors, opened and read, for several owners. */
#include "model/weights.h"

#include <string.h>

#include "base/str.h"
#include "import/detect.h"
#include "ir/quant/quant_decode.h"
#include "run/convert.h"

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

void shared_weights_retain(struct rlx_weights *w)
{
    atomic_fetch_add(&w->refs, 1);
}

void shared_weights_release(struct rlx_weights *w)
{
    if (!w || atomic_fetch_sub(&w->refs, 1) != 1)
        return;
    rlx_context *ctx = w->ctx;
    weights_free(&w->set);
    pthread_mutex_destroy(&w->lock);
    mem_free(&ctx->mem, w, sizeof *w);
    context_release(ctx);
}

static rlx_status opened(struct rlx_weights *w, rlx_status s, struct rlx_weights **out)
{
    if (s == RLX_OK)
        *out = w;
    else
        shared_weights_release(w);
    return s;
}

rlx_status shared_weights_open(rlx_context *ctx, const char *path, const rlx_load_desc *desc,
                               struct rlx_weights **out, struct diag *d)
{
    struct rlx_weights *w = create(ctx, d);

    return w ? opened(w, weights_open(&w->set, path, desc, d), out) : d->first.status;
}

rlx_status shared_weights_parse(rlx_context *ctx, const void *bytes, size_t size,
                                struct rlx_weights **out, struct diag *d)
{
    struct rlx_weights *w = create(ctx, d);
    uint64_t parts = 1;
    bool found;

    if (!w)
        return d->first.status;
    rlx_status s = weights_read(&w->set, bytes, size, STR("array"), d);
    if (s == RLX_OK)
        s = meta_get_u64(&w->set, STR("split.count"), UINT64_MAX, &parts, &found, d);
    if (s == RLX_OK && w->set.kind == RLX_FILE_gguf && parts > 1)
        s = diag_fail(d, RLX_ERROR_FORMAT, "gguf: it is one of several parts");
    w->memory_bytes = size;
    return opened(w, s, out);
}

/* ---- data ---- */

static rlx_status check_number(const struct rlx_weights *w, size_t i, struct diag *d)
{
    if (i >= w->set.tensor.len)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there are %zu tensors, no number %zu",
                         w->set.tensor.len, i);
    return RLX_OK;
}

rlx_status shared_weights_data(struct rlx_weights *w, size_t i, const uint8_t **out, struct diag *d)
{
    TRY(check_number(w, i, d));
    pthread_mutex_lock(&w->lock);
    rlx_status s = weights_data(&w->set, i, out, d);
    pthread_mutex_unlock(&w->lock);
    return s;
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

rlx_status shared_weights_read_f32(struct rlx_weights *w, size_t i, uint64_t first, uint64_t count,
                                   float *out, struct diag *d)
{
    const uint8_t *data;

    TRY(check_number(w, i, d));
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
    TRY(shared_weights_data(w, i, &data, d));
    return weights_to_f32(t, data, first, count, out, d);
}
