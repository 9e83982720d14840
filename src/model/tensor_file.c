/* tensor_file.c: tensors in host memory, in .npy files, in pictures and in those of ONNX's tests.
 */
#include "model/tensor_file.h"

#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "import/image.h"
#include "import/npy.h"
#include "import/onnx/read/onnx_model.h"
#include "model/store.h"

rlx_status tensor_alloc(rlx_context *ctx, rlx_tensor *t, struct diag *d)
{
    size_t count;

    if (!tensor_count(t, &count))
        return diag_fail(d, RLX_ERROR_SIZE, "the tensor's rank, dims or dtype make no sense");
    size_t bytes = count * rlx_dtype_size(t->dtype);
    void *data = mem_alloc(&ctx->mem, bytes);
    if (!data && bytes)
        return diag_no_memory(d, bytes);
    t->data = data;
    t->bytes = bytes;
    return RLX_OK;
}

void tensor_free(rlx_context *ctx, rlx_tensor *t)
{
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

/* The caller's own copy of bytes that lie in a file. */
static rlx_status copy_out(rlx_context *ctx, const struct ir_type *type, const void *data,
                           rlx_tensor *out, struct diag *d)
{
    rlx_tensor t = {.dtype = type->dtype, .rank = type->rank};

    memcpy(t.dim, type->dim, sizeof t.dim);
    TRY(tensor_alloc(ctx, &t, d));
    if (t.bytes)
        memcpy(t.data, data, t.bytes);
    *out = t;
    return RLX_OK;
}

static rlx_status load(rlx_context *ctx, const char *path, rlx_tensor *out, struct arena *arena,
                       struct diag *d)
{
    struct file f;
    struct ir_type type = {0};
    const void *data;

    TRY(file_open(&f, path, FILE_MAP, &ctx->mem, d));
    rlx_status s = str_ends(rlx_cstr(path), STR(".pb"))
                       ? onnx_read(&f, arena, &type, &data, d)
                       : npy_read(f.data, f.size, arena, &type, &data, d);
    if (s == RLX_OK)
        s = copy_out(ctx, &type, data, out, d);
    file_close(&f);
    return s;
}

rlx_status tensor_load(rlx_context *ctx, const char *path, rlx_tensor *out, struct diag *d)
{
    struct arena arena;

    arena_init(&arena, &ctx->mem);
    rlx_status s = load(ctx, path, out, &arena, d);
    arena_free(&arena);
    return s;
}

/* ---- pictures ---- */

rlx_status image_parse(rlx_context *ctx, const void *bytes, size_t size, rlx_tensor *out,
                       struct diag *d)
{
    struct image i;

    TRY(image_read(bytes, size, &ctx->mem, &i, d));
    *out = (rlx_tensor){.dtype = RLX_DTYPE_u8,
                        .rank = 3,
                        .dim = {i.height, i.width, i.channels},
                        .data = i.data,
                        .bytes = i.bytes};
    return RLX_OK;
}

rlx_status image_load(rlx_context *ctx, const char *path, rlx_tensor *out, struct diag *d)
{
    struct file f;

    TRY(file_open(&f, path, FILE_MAP, &ctx->mem, d));
    rlx_status s = image_parse(ctx, f.data, f.size, out, d);
    file_close(&f);
    return s;
}

/* ---- lists of tensors ---- */

void tensor_list_free(rlx_context *ctx, rlx_tensor_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        tensor_free(ctx, &l->at[i]);
    mem_free(&ctx->mem, l->at, l->count * sizeof *l->at);
    *l = (rlx_tensor_list){0};
}

static rlx_status read_list(rlx_context *ctx, const struct file *f, rlx_tensor_list *out,
                            struct arena *arena, struct diag *d)
{
    struct onnx_list l;

    TRY(onnx_read_list((rlx_str){(const char *)f->data, f->size}, &l, &out->absent, arena, d));
    out->at = mem_alloc(&ctx->mem, l.tensor.count * sizeof *out->at); /* zeros */
    if (!out->at && l.tensor.count)
        return diag_no_memory(d, l.tensor.count * sizeof *out->at);
    out->count = l.tensor.count;
    for (size_t i = 0; i < out->count; i++) {
        struct ir_type type = {0};
        const void *data;
        TRY(onnx_tensor_data(&l.tensor.at[i], NULL, arena, &type, &data, d));
        TRY(copy_out(ctx, &type, data, &out->at[i], d));
    }
    return RLX_OK;
}

rlx_status tensor_list_load(rlx_context *ctx, const char *path, rlx_tensor_list *out,
                            struct diag *d)
{
    rlx_tensor_list l = {0};
    struct arena arena;
    struct file f;

    TRY(file_open(&f, path, FILE_MAP, &ctx->mem, d));
    arena_init(&arena, &ctx->mem);
    rlx_status s = read_list(ctx, &f, &l, &arena, d);
    arena_free(&arena);
    file_close(&f);
    if (s == RLX_OK)
        *out = l;
    else
        tensor_list_free(ctx, &l);
    return s;
}

rlx_status tensor_save(rlx_context *ctx, const char *path, const rlx_tensor *t, struct diag *d)
{
    struct text file;
    struct ir_type type = {.dtype = t->dtype, .rank = t->rank};
    size_t count;

    if (!tensor_count(t, &count) || t->bytes < count * rlx_dtype_size(t->dtype))
        return diag_fail(d, RLX_ERROR_SIZE,
                         "the tensor's rank, dims, dtype or bytes make no sense");
    if (count && !t->data)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "the tensor's data is NULL");
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
