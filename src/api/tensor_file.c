/* tensor_file.c: tensors in host memory and in .npy files. */
#include <string.h>

#include "api/objects.h"
#include "base/file.h"
#include "base/str.h"
#include "import/npy.h"
#include "import/onnx_model.h"
#include "rlx/tools.h"

rlx_status rlx_tensor_alloc(rlx_context *ctx, rlx_tensor *t, rlx_error *err)
{
    struct diag d;
    size_t count, bytes;

    diag_init(&d, "tensor");
    if (!ctx || !t)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", ctx ? "t" : "ctx");
    else if (!tensor_count(t, &count))
        diag_fail(&d, RLX_ERROR_SIZE, "the tensor's rank, dims or dtype make no sense");
    else {
        bytes = count * rlx_dtype_size(t->dtype);
        void *data = mem_alloc(&ctx->mem, bytes);
        if (!data && bytes)
            diag_no_memory(&d, bytes);
        else {
            t->data = data;
            t->bytes = bytes;
        }
    }
    return diag_report(&d, err);
}

void rlx_tensor_free(rlx_context *ctx, rlx_tensor *t)
{
    if (!ctx || !t)
        return;
    mem_free(&ctx->mem, t->data, t->bytes);
    t->data = NULL;
    t->bytes = 0;
}

/* A tensor of an ONNX test: one message, alone in its file. */
static rlx_status onnx_read(const struct file *f, struct arena *arena, struct ir_type *type,
                            const void **data, struct diag *d)
{
    struct onnx_tensor t;

    TRY(onnx_read_tensor((rlx_str){(const char *)f->data, f->size}, &t, arena, d));
    return onnx_tensor_data(&t, NULL, arena, type, data, d);
}

static rlx_status load(rlx_context *ctx, const char *path, rlx_tensor *out, struct arena *arena,
                       struct diag *d)
{
    struct file f;
    struct ir_type type = {0};
    const void *data;
    rlx_error err;

    TRY(file_open(&f, path, FILE_MAP, &ctx->mem, d));
    rlx_status s = str_ends(rlx_cstr(path), STR(".pb"))
                       ? onnx_read(&f, arena, &type, &data, d)
                       : npy_read(f.data, f.size, arena, &type, &data, d);
    rlx_tensor t = {.dtype = type.dtype, .rank = type.rank};
    memcpy(t.dim, type.dim, sizeof t.dim);
    if (s == RLX_OK && rlx_tensor_alloc(ctx, &t, &err) != RLX_OK)
        s = diag_fail(d, err.status, "%s", err.message);
    if (s == RLX_OK && t.bytes)
        memcpy(t.data, data, t.bytes);
    file_close(&f);
    TRY(s);
    *out = t;
    return RLX_OK;
}

rlx_status rlx_tensor_load(rlx_context *ctx, const char *path, rlx_tensor *out, rlx_error *err)
{
    struct diag d;
    struct arena arena;

    diag_init(&d, "load");
    if (!ctx || !path || !out) {
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !path ? "path" : "out");
        return diag_report(&d, err);
    }
    arena_init(&arena, &ctx->mem);
    load(ctx, path, out, &arena, &d);
    arena_free(&arena);
    return diag_report(&d, err);
}

static rlx_status save(rlx_context *ctx, const char *path, const rlx_tensor *t, struct diag *d)
{
    struct text file;
    struct ir_type type = {.dtype = t->dtype, .rank = t->rank};
    size_t count;

    if (!tensor_count(t, &count) || t->bytes < count * rlx_dtype_size(t->dtype))
        return diag_fail(d, RLX_ERROR_SIZE,
                         "the tensor's rank, dims, dtype or bytes make no sense");
    memcpy(type.dim, t->dim, sizeof type.dim);
    text_init(&file, &ctx->mem);
    rlx_status s = npy_header(&type, &file, d);
    if (s == RLX_OK && count)
        text_add(&file, (rlx_str){t->data, count * rlx_dtype_size(t->dtype)});
    if (s == RLX_OK && file.failed)
        s = diag_no_memory(d, count);
    if (s == RLX_OK)
        s = file_write(path, file.at, file.len, d);
    text_free(&file);
    return s;
}

rlx_status rlx_tensor_save(rlx_context *ctx, const char *path, const rlx_tensor *t, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "save");
    if (!ctx || !path || !t)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !path ? "path" : "t");
    else
        save(ctx, path, t, &d);
    return diag_report(&d, err);
}
