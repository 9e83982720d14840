/* safetensors_write.c: safetensors files: see safetensors.c for the layout. Tensors with the widest
 * elements come first, so that all are aligned, and those of one width by name. */
#include <string.h>

#include "base/json.h"
#include "import/weight_file.h"
#include "import/weight_writer.h"

static int before(const rlx_weight *a, const rlx_weight *b)
{
    const struct weight_type *x = weight_type(a->type), *y = weight_type(b->type);
    int32_t left = x->bytes * y->elems, right = y->bytes * x->elems;

    return left != right ? (left < right) - (left > right) : str_cmp(a->name, b->name);
}

/* Merges order[lo..mid) and order[mid..hi), both sorted. */
static void merge(const struct weight_writer *w, uint32_t *scratch, size_t lo, size_t mid,
                  size_t hi)
{
    size_t a = lo, b = mid;

    for (size_t k = lo; k < hi; k++) {
        bool left =
            b == hi || (a < mid && before(&w->tensor[w->order[a]], &w->tensor[w->order[b]]) <= 0);
        scratch[k] = left ? w->order[a++] : w->order[b++];
    }
    memcpy(w->order + lo, scratch + lo, (hi - lo) * sizeof *scratch);
}

/* By merging: qsort has no room for whose numbers these are. */
static rlx_status sort(struct weight_writer *w)
{
    uint32_t *scratch = arena_array(&w->arena, uint32_t, w->count);

    if (!scratch)
        return diag_no_memory(w->d, w->count * sizeof *scratch);
    for (size_t width = 1; width < w->count; width *= 2)
        for (size_t lo = 0; lo + width < w->count; lo += 2 * width)
            merge(w, scratch, lo, lo + width,
                  lo + 2 * width < w->count ? lo + 2 * width : w->count);
    return RLX_OK;
}

static rlx_status check(struct weight_writer *w, const rlx_weights_content *content)
{
    const int64_t max_dim = (int64_t)1 << 40;

    for (size_t i = 0; i < w->count; i++) {
        const rlx_weight *t = &w->tensor[i];
        if (!*weight_type(t->type)->safetensors)
            return writer_refuse(w, t, RLX_ERROR_DTYPE, "safetensors has no such type");
        for (int32_t k = 0; k < t->rank; k++)
            if (t->dim[k] > max_dim)
                return writer_refuse(w, t, RLX_ERROR_SHAPE, "a dim is above 2^40");
        if (str_eq(t->name, STR("__metadata__")))
            return writer_refuse(w, t, RLX_ERROR_NAME, "that name is the format's own");
    }
    for (size_t i = 0; i < content->meta_count; i++) {
        const rlx_meta *m = &content->meta[i];
        if (m->is_array || m->type != RLX_META_string || !str_is_utf8(*(const rlx_str *)m->data))
            return diag_fail(w->d, RLX_ERROR_DTYPE,
                             "safetensors: key \"%.*s\": metadata are single strings of UTF-8",
                             STR_ARG(m->key));
    }
    return sort(w);
}

/* ---- the header ---- */

/* Keys are copied into the arena by the code that made them, and end with a NUL. */
static void put_tensor(struct json *j, const rlx_weight *t, uint64_t offset)
{
    json_key(j, t->name.ptr);
    json_open(j, '{');
    json_key(j, "dtype");
    json_str(j, rlx_cstr(weight_type(t->type)->safetensors));
    json_key(j, "shape");
    json_open(j, '[');
    for (int32_t i = 0; i < t->rank; i++)
        json_i64(j, t->dim[i]);
    json_close(j, ']');
    json_key(j, "data_offsets");
    json_open(j, '[');
    json_i64(j, (int64_t)offset);
    json_i64(j, (int64_t)(offset + t->bytes));
    json_close(j, ']');
    json_close(j, '}');
}

static rlx_status put_metadata(struct weight_writer *w, struct json *j,
                               const rlx_weights_content *content)
{
    if (content->meta_count == 0)
        return RLX_OK;
    json_key(j, "__metadata__");
    json_open(j, '{');
    for (size_t i = 0; i < content->meta_count; i++) {
        rlx_str key = arena_str(&w->arena, content->meta[i].key);
        if (!key.ptr)
            return diag_no_memory(w->d, content->meta[i].key.len);
        json_key(j, key.ptr);
        json_str(j, *(const rlx_str *)content->meta[i].data);
    }
    json_close(j, '}');
    return RLX_OK;
}

static rlx_status put_header(struct weight_writer *w, const rlx_weights_content *content,
                             struct text *out)
{
    struct json j;
    uint64_t offset = 0;

    json_init(&j, out);
    json_open(&j, '{');
    TRY(put_metadata(w, &j, content));
    for (size_t i = 0; i < w->count; i++) {
        put_tensor(&j, &w->tensor[w->order[i]], offset);
        offset += w->tensor[w->order[i]].bytes;
    }
    json_close(&j, '}');
    while (out->len % 8 && !out->failed)
        text_add(out, STR(" "));
    return RLX_OK;
}

static rlx_status begin(struct weight_writer *w, const rlx_weights_content *content)
{
    struct text header, length;

    text_init(&header, w->mem);
    text_init(&length, w->mem);
    rlx_status s = put_header(w, content, &header);
    if (s == RLX_OK && header.len > SAFETENSORS_MAX_HEADER)
        s = diag_fail(w->d, RLX_ERROR_LIMIT, "safetensors: a header of %zu bytes; %d are the most",
                      header.len, SAFETENSORS_MAX_HEADER);
    put_number(&length, header.len, 8);
    if (s == RLX_OK)
        s = writer_add(w, &length);
    if (s == RLX_OK)
        s = writer_add(w, &header);
    text_free(&length);
    text_free(&header);
    return s;
}

const struct weight_format safetensors_format = {
    .kind = RLX_FILE_safetensors, .check = check, .begin = begin};
