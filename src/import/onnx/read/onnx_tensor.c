/* onnx_tensor.c: the elements of a tensor in an ONNX file: raw bytes in the file, numbers in one of
 * five fields, or bytes in a file beside it. */
#include <string.h>

#include "base/str.h"
#include "import/onnx/read/onnx_model.h"

#define MAX_DECODED ((uint64_t)4 << 30) /* ops-special.md 2: of a tensor that is converted */

static const struct {
    const char *name;
    rlx_dtype dtype;
    int bits;
} dtypes[] = {
#define X(number, text, type, bits) [number] = {#text, RLX_DTYPE_##type, bits},
    ONNX_DTYPE_MAP(X)
#undef X
};
#define DTYPE_COUNT ((int64_t)(sizeof dtypes / sizeof dtypes[0]))

const char *onnx_dtype_name(int64_t data_type)
{
    return data_type > 0 && data_type < DTYPE_COUNT ? dtypes[data_type].name : "?";
}

bool onnx_is_small_float(int64_t data_type)
{
    return (data_type >= ONNX_FLOAT8E4M3FN && data_type <= ONNX_FLOAT8E5M2FNUZ) ||
           data_type == ONNX_FLOAT4E2M1 || data_type == ONNX_FLOAT8E8M0 ||
           data_type == ONNX_FLOAT6E2M3 || data_type == ONNX_FLOAT6E3M2;
}

bool onnx_dtype(int64_t data_type, rlx_dtype *out)
{
    return !onnx_is_small_float(data_type) && onnx_element_dtype(data_type, out);
}

bool onnx_element_dtype(int64_t data_type, rlx_dtype *out)
{
    if (data_type <= 0 || data_type >= DTYPE_COUNT || dtypes[data_type].dtype == RLX_DTYPE_count)
        return false;
    *out = dtypes[data_type].dtype;
    return true;
}

int onnx_dtype_bits(int64_t data_type)
{
    return data_type > 0 && data_type < DTYPE_COUNT ? dtypes[data_type].bits : 0;
}

int64_t onnx_narrow_type(int64_t data_type)
{
    return onnx_dtype_bits(data_type) < 8 || onnx_is_small_float(data_type) ? data_type : 0;
}

bool onnx_dtype_range(int64_t data_type, double *least, double *greatest)
{
    rlx_dtype t;
    int bits = onnx_dtype_bits(data_type);

    if (!onnx_dtype(data_type, &t) || !dtype_is(t, CLASS_INT) || bits > 16)
        return false;
    *least = dtype_is(t, CLASS_I) ? -(double)(1 << (bits - 1)) : 0;
    *greatest = *least + (double)(1 << bits) - 1;
    return true;
}

int64_t onnx_dtype_number(rlx_dtype t)
{
    for (int64_t i = 1; i < DTYPE_COUNT; i++)
        if (dtypes[i].dtype == t)
            return i;
    return 0;
}

void onnx_files_close(struct onnx_files *f)
{
    for (size_t i = 0; i < f->file.len; i++)
        file_close(&f->file.at[i].file);
    vec_free(f->mem, &f->file);
}

static rlx_status tensor_type(const struct onnx_tensor *t, struct ir_type *type, uint64_t *bytes,
                              struct diag *d)
{
    if (!onnx_element_dtype(t->data_type, &type->dtype))
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "tensor \"%.*s\" has elements of type %s (%lld)",
                         STR_ARG(t->name), onnx_dtype_name(t->data_type), (long long)t->data_type);
    if (t->dims.count > RLX_MAX_RANK)
        return diag_fail(d, RLX_ERROR_LIMIT, "tensor \"%.*s\" has %zu axes, more than %d",
                         STR_ARG(t->name), t->dims.count, RLX_MAX_RANK);
    type->rank = (int32_t)t->dims.count;
    *bytes = rlx_dtype_size(type->dtype);
    for (size_t i = 0; i < t->dims.count; i++) {
        type->dim[i] = t->dims.at[i];
        if (t->dims.at[i] < 0 || __builtin_mul_overflow(*bytes, (uint64_t)t->dims.at[i], bytes) ||
            *bytes > INT64_MAX)
            return diag_fail(d, RLX_ERROR_FORMAT, "tensor \"%.*s\" has impossible dims",
                             STR_ARG(t->name));
    }
    return RLX_OK;
}

/* ---- in another file ---- */

static rlx_status open_external(struct onnx_files *files, rlx_str name, const struct file **out,
                                struct diag *d)
{
    struct onnx_external *e;

    for (size_t i = 0; i < files->file.len; i++)
        if (str_eq(files->file.at[i].name, name)) {
            *out = &files->file.at[i].file;
            return RLX_OK;
        }
    if (!vec_room(files->mem, &files->file))
        return diag_no_memory(d, sizeof *e);
    e = &files->file.at[files->file.len];
    TRY(file_open_beside(&e->file, files->model, name, files->mode, files->mem, d));
    e->name = name;
    files->file.len++;
    *out = &e->file;
    return RLX_OK;
}

static rlx_status external_number(const struct onnx_tensor *t, const struct onnx_entry *e,
                                  uint64_t *out, struct diag *d)
{
    int64_t n;

    if (!str_to_i64(e->value, &n) || n < 0)
        return diag_fail(d, RLX_ERROR_FORMAT, "tensor \"%.*s\": %.*s is not a number: \"%.*s\"",
                         STR_ARG(t->name), STR_ARG(e->key), STR_ARG(e->value));
    *out = (uint64_t)n;
    return RLX_OK;
}

static rlx_status external_data(const struct onnx_tensor *t, uint64_t bytes,
                                struct onnx_files *files, const void **data, struct diag *d)
{
    rlx_str name = {NULL, 0};
    uint64_t offset = 0, length = bytes;
    const struct file *f;

    for (size_t i = 0; i < t->external.count; i++) {
        const struct onnx_entry *e = &t->external.at[i];
        if (str_eq(e->key, STR("location")))
            name = e->value;
        else if (str_eq(e->key, STR("offset")))
            TRY(external_number(t, e, &offset, d));
        else if (str_eq(e->key, STR("length")))
            TRY(external_number(t, e, &length, d));
    }
    if (!files || !files->model)
        return diag_fail(d, RLX_ERROR_FORMAT, "tensor \"%.*s\" lies in another file",
                         STR_ARG(t->name));
    if (length != bytes)
        return diag_fail(d, RLX_ERROR_FORMAT, "tensor \"%.*s\" takes %llu bytes, not %llu",
                         STR_ARG(t->name), (unsigned long long)bytes, (unsigned long long)length);
    TRY(open_external(files, name, &f, d));
    if (offset > f->size || bytes > f->size - offset)
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "tensor \"%.*s\": bytes %llu to %llu of \"%.*s\", which has %zu",
                         STR_ARG(t->name), (unsigned long long)offset,
                         (unsigned long long)(offset + bytes), STR_ARG(name), f->size);
    *data = f->data + offset;
    return RLX_OK;
}

/* ---- as numbers ---- */

/* The low bytes of each: 16-bit floats are stored as their bits. */
static void narrow_numbers(const wire_i64s *from, void *to, size_t size)
{
    for (size_t i = 0; i < from->count; i++)
        memcpy((char *)to + i * size, &from->at[i], size);
}

static rlx_status typed_data(const struct onnx_tensor *t, rlx_dtype dtype, uint64_t bytes,
                             struct arena *arena, const void **data, struct diag *d)
{
    const wire_i64s *numbers = dtype == RLX_DTYPE_i64                             ? &t->int64_data
                               : dtype == RLX_DTYPE_u64 || dtype == RLX_DTYPE_u32 ? &t->uint64_data
                                                                                  : &t->int32_data;
    bool plain = dtype == RLX_DTYPE_f32 || dtype == RLX_DTYPE_c64;
    size_t size = plain ? sizeof(float) : rlx_dtype_size(dtype);
    size_t have = plain                    ? t->float_data.count
                  : dtype == RLX_DTYPE_f64 ? t->double_data.count
                                           : numbers->count;

    if (bytes > MAX_DECODED || have * size != bytes)
        return diag_fail(d, RLX_ERROR_FORMAT, "tensor \"%.*s\" takes %llu bytes, it holds %zu",
                         STR_ARG(t->name), (unsigned long long)bytes, have * size);
    if (plain)
        *data = t->float_data.at;
    else if (dtype == RLX_DTYPE_f64)
        *data = t->double_data.at;
    else {
        void *own = arena_alloc(arena, (size_t)bytes, 16);
        if (!own)
            return diag_no_memory(d, (size_t)bytes);
        narrow_numbers(numbers, own, size);
        *data = own;
    }
    return RLX_OK;
}

/* ---- packed: a stream of bits, the first element in the lowest ---- */

/* Where the bytes are; NULL: as many as each has room for are in the numbers of int32_data. */
static rlx_status find_packed(const struct onnx_tensor *t, uint64_t count, unsigned bits,
                              struct onnx_files *files, const void **out, struct diag *d)
{
    bool in_numbers = !t->has_raw && t->location != 1;
    uint64_t each = in_numbers ? 8 / bits : 1, have = in_numbers ? t->int32_data.count : t->raw.len;
    uint64_t want = in_numbers ? (count + each - 1) / each : (count * bits + 7) / 8;

    *out = in_numbers ? NULL : t->raw.len ? t->raw.ptr : "";
    if (t->location == 1)
        return external_data(t, want, files, out, d);
    if (have != want)
        return diag_fail(d, RLX_ERROR_FORMAT, "tensor \"%.*s\" takes %llu packed bytes, not %llu",
                         STR_ARG(t->name), (unsigned long long)want, (unsigned long long)have);
    return RLX_OK;
}

/* Element i in the low bits. */
static unsigned packed_at(const struct onnx_tensor *t, const uint8_t *bytes, unsigned bits,
                          uint64_t i)
{
    unsigned each = 8 / bits, from = (unsigned)(i * bits % 8);

    if (!bytes)
        return (unsigned)t->int32_data.at[i / each] >> (i % each * bits);
    bytes += i * bits / 8;
    return (bytes[0] | (from + bits > 8 ? (unsigned)bytes[1] << 8 : 0)) >> from;
}

static rlx_status packed_data(const struct onnx_tensor *t, rlx_dtype dtype, uint64_t count,
                              struct onnx_files *files, struct arena *arena, const void **data,
                              struct diag *d)
{
    unsigned bits = (unsigned)onnx_dtype_bits(t->data_type);
    const void *bytes;

    if (count > MAX_DECODED)
        return diag_fail(d, RLX_ERROR_LIMIT, "tensor \"%.*s\" has %llu packed elements",
                         STR_ARG(t->name), (unsigned long long)count);
    TRY(find_packed(t, count, bits, files, &bytes, d));
    uint8_t *own = arena_alloc(arena, (size_t)count, 16);
    if (!own)
        return diag_no_memory(d, (size_t)count);
    for (uint64_t i = 0; i < count; i++) {
        unsigned v = packed_at(t, bytes, bits, i) & ((1u << bits) - 1);
        if (dtype == RLX_DTYPE_i8 && v >> (bits - 1))
            v |= 0xffu << bits;
        own[i] = (uint8_t)v;
    }
    *data = own;
    return RLX_OK;
}

rlx_status onnx_tensor_data(const struct onnx_tensor *t, struct onnx_files *files,
                            struct arena *arena, struct ir_type *type, const void **data,
                            struct diag *d)
{
    uint64_t bytes;

    TRY(tensor_type(t, type, &bytes, d));
    if (onnx_dtype_bits(t->data_type) < 8)
        return packed_data(t, type->dtype, bytes, files, arena, data, d);
    if (t->location == 1)
        TRY(external_data(t, bytes, files, data, d));
    else if (t->has_raw && t->raw.len != bytes)
        return diag_fail(d, RLX_ERROR_FORMAT, "tensor \"%.*s\" takes %llu bytes, it holds %zu",
                         STR_ARG(t->name), (unsigned long long)bytes, t->raw.len);
    else if (t->has_raw)
        *data = t->raw.ptr;
    else
        TRY(typed_data(t, type->dtype, bytes, arena, data, d));
    if (!*data)
        *data = ""; /* of an empty tensor */
    for (uint64_t i = 0; type->dtype == RLX_DTYPE_bool && i < bytes; i++)
        if (((const uint8_t *)*data)[i] > 1)
            return diag_fail(d, RLX_ERROR_FORMAT, "tensor \"%.*s\" holds a bool of %d",
                             STR_ARG(t->name), ((const uint8_t *)*data)[i]);
    return RLX_OK;
}
