/* weight_type.c: the element types of files, looked up by what each format calls them. */
#include "import/weight_type.h"

#include <ctype.h>
#include <string.h>

#include "base/desc.h"
#include "base/str.h"

static const struct weight_type types[] = {
#define X(name_, number, elems_, bytes_, gguf_, safetensors_, npy_, use_, as)                  \
    [RLX_WEIGHT_##name_] = {.name = #name_,                                                    \
                            .elems = elems_,                                                   \
                            .bytes = bytes_,                                                   \
                            .gguf = gguf_,                                                     \
                            .safetensors = safetensors_,                                       \
                            .npy = npy_,                                                       \
                            .use = RLX_WEIGHT_##use_,                                          \
                            .dtype = RLX_WEIGHT_##use_ == RLX_WEIGHT_PACKED ? RLX_DTYPE_u8     \
                                                                            : (rlx_dtype)(as), \
                            .scheme = (rlx_quant_scheme)(as)},
    RLX_WEIGHT_TYPE_MAP(X)
#undef X
};

const struct weight_type *weight_type(rlx_weight_type t)
{
    return &types[t];
}

bool weight_type_of_gguf(uint32_t id, rlx_weight_type *out)
{
    for (int i = 0; i < RLX_WEIGHT_TYPE_count; i++) {
        if (types[i].gguf >= 0 && (uint32_t)types[i].gguf == id) {
            *out = (rlx_weight_type)i;
            return true;
        }
    }
    return false;
}

bool weight_type_of_safetensors(rlx_str name, rlx_weight_type *out)
{
    for (int i = 0; i < RLX_WEIGHT_TYPE_count && name.len; i++) {
        if (str_eq(rlx_cstr(types[i].safetensors), name)) {
            *out = (rlx_weight_type)i;
            return true;
        }
    }
    return false;
}

bool weight_type_of_dtype(rlx_dtype d, rlx_weight_type *out)
{
    for (int i = 0; i < RLX_WEIGHT_TYPE_count; i++) {
        if (types[i].use == RLX_WEIGHT_PLAIN && types[i].dtype == d) {
            *out = (rlx_weight_type)i;
            return true;
        }
    }
    return false;
}

bool weight_bytes(rlx_weight_type t, const int64_t *dim, int32_t rank, uint64_t *elements,
                  uint64_t *bytes)
{
    const uint64_t most = (uint64_t)1 << 62;
    uint64_t n = 1, all;

    for (int32_t i = 0; i < rank; i++) /* a later 0 does not excuse an overflow before it */
        if (dim[i] < 0 || __builtin_mul_overflow(n, (uint64_t)dim[i], &n) || n > most)
            return false;
    if (n % (uint64_t)types[t].elems ||
        __builtin_mul_overflow(n / (uint64_t)types[t].elems, (uint64_t)types[t].bytes, &all) ||
        all > most)
        return false;
    *elements = n;
    *bytes = all;
    return true;
}

rlx_status rlx_weight_type_describe(rlx_weight_type t, rlx_weight_type_info *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "weights");
    if ((unsigned)t >= RLX_WEIGHT_TYPE_count)
        diag_fail(&d, RLX_ERROR_DTYPE, "there is no type %d", (int)t);
    else {
        const rlx_weight_type_info own = {.name = types[t].name,
                                          .block_elems = types[t].elems,
                                          .block_bytes = types[t].bytes,
                                          .use = types[t].use,
                                          .dtype = types[t].dtype,
                                          .scheme = types[t].scheme};
        INFO_WRITE(rlx_weight_type_info, &own, out, &d);
    }
    return diag_report(&d, err);
}

bool rlx_weight_type_find(const char *text, rlx_weight_type *out)
{
    rlx_str name = rlx_cstr(text);

    for (int i = 0; i < RLX_WEIGHT_TYPE_count && out && name.ptr; i++) {
        const char *known = types[i].name;
        size_t k = 0;
        while (k < name.len && known[k] && toupper((unsigned char)name.ptr[k]) == known[k])
            k++;
        if (k == name.len && known[k] == 0) {
            *out = (rlx_weight_type)i;
            return true;
        }
    }
    return false;
}
