/* weights_write.c: `rlx/weights.h`: files of tensors, written. */
#include "api/objects.h"
#include "import/weight_writer.h"
#include "rlx/quant.h"
#include "run/convert.h"

struct rlx_weights_writer {
    struct rlx_context *ctx;
    struct weight_writer writer;
};

rlx_status rlx_weights_begin(rlx_context *ctx, const char *path, const rlx_weights_content *content,
                             rlx_weights_writer **out, rlx_error *err)
{
    struct rlx_weights_writer *w;
    struct diag d;

    diag_init(&d, "save");
    if (!ctx || !path || !content || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL",
                  !ctx       ? "ctx"
                  : !path    ? "path"
                  : !content ? "content"
                             : "out");
    else if ((w = mem_alloc(&ctx->mem, sizeof *w)) == NULL)
        diag_no_memory(&d, sizeof *w);
    else {
        w->ctx = ctx;
        if (writer_begin(&w->writer, &ctx->mem, path, content, &d) == RLX_OK)
            *out = w;
        else
            rlx_weights_abandon(w);
    }
    return diag_report(&d, err);
}

bool rlx_weights_next(const rlx_weights_writer *w, size_t *i, uint64_t *left)
{
    return w && i && left && writer_next(&w->writer, i, left);
}

rlx_status rlx_weights_write(rlx_weights_writer *w, const void *data, size_t bytes, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "save");
    if (!w || (!data && bytes))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", w ? "data" : "w");
    else
        writer_write(&w->writer, data, bytes, &d);
    return diag_report(&d, err);
}

/* count elements, few enough for the buffer, as bytes of that type. */
static rlx_status encode(const rlx_weight *t, const float *x, size_t count, void *out, size_t bytes,
                         struct diag *d)
{
    const struct weight_type *type = weight_type(t->type);
    rlx_error err;

    if (type->use == RLX_WEIGHT_PACKED) {
        if (rlx_quantize_rows(type->scheme, x, 1, (int64_t)count, out, bytes, &err) == RLX_OK)
            return RLX_OK;
        return diag_fail(d, err.status, "tensor \"%.*s\": %s", STR_ARG(t->name), err.message);
    }
    if (type->use != RLX_WEIGHT_PLAIN || !convert_allowed(type->dtype, RLX_DTYPE_f32))
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "tensor \"%.*s\": %s is not made from numbers",
                         STR_ARG(t->name), type->name);
    convert(type->dtype, out, RLX_DTYPE_f32, x, count);
    return RLX_OK;
}

static rlx_status write_f32(struct weight_writer *w, const float *x, uint64_t count, struct diag *d)
{
    enum { PIECE = 4096 }; /* elements: a multiple of every block */
    uint64_t buffer[PIECE], left;
    size_t i;

    if (count == 0)
        return RLX_OK;
    if (!writer_next(w, &i, &left))
        return diag_fail(d, RLX_ERROR_SIZE, "all tensors have their bytes already");
    const struct weight_type *type = weight_type(w->tensor[i].type);
    uint64_t elems = (uint64_t)type->elems;
    if (count % elems || count / elems > left / (uint64_t)type->bytes)
        return diag_fail(d, RLX_ERROR_SIZE,
                         "tensor \"%.*s\": %llu elements do not fit %llu bytes of %s",
                         STR_ARG(w->tensor[i].name), (unsigned long long)count,
                         (unsigned long long)left, type->name);
    for (uint64_t done = 0; done < count; done += PIECE) {
        size_t n = (size_t)(count - done < PIECE ? count - done : PIECE);
        size_t bytes = n / (size_t)elems * (size_t)type->bytes;
        TRY(encode(&w->tensor[i], x + done, n, buffer, bytes, d));
        TRY(writer_write(w, buffer, bytes, d));
    }
    return RLX_OK;
}

rlx_status rlx_weights_write_f32(rlx_weights_writer *w, const float *x, uint64_t count,
                                 rlx_error *err)
{
    struct diag d;

    diag_init(&d, "save");
    if (!w || (!x && count))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", w ? "x" : "w");
    else
        write_f32(&w->writer, x, count, &d);
    return diag_report(&d, err);
}

rlx_status rlx_weights_finish(rlx_weights_writer *w, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "save");
    if (!w)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "w is NULL");
    else
        writer_finish(&w->writer, &d);
    rlx_weights_abandon(w);
    return diag_report(&d, err);
}

void rlx_weights_abandon(rlx_weights_writer *w)
{
    if (!w)
        return;
    writer_free(&w->writer);
    mem_free(&w->ctx->mem, w, sizeof *w);
}
