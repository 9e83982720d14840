/* safetensors.c: safetensors files (ops-special.md 2.2).
 *
 *     u64      length of the header
 *     header   {"name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}, ...}
 *     data     the tensors, one after the other without a gap
 *
 * The header is copied first, and parsed from the copy. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/str.h"
#include "import/bytes.h"
#include "import/weight_file.h"

enum { MAX_DEPTH = 8 };
#define MAX_DIM ((uint64_t)1 << 40)

struct safetensors {
    struct json_in json;
    const uint8_t *data;
    uint64_t size; /* of the data */
    struct weights *w;
    struct diag *d;
};

static rlx_status get_shape(struct safetensors *s, struct weight *t)
{
    TRY(json_read_open(&s->json, '['));
    for (t->rank = 0;; t->rank++) {
        uint64_t dim = 0;
        bool more = false;
        TRY(json_read_more(&s->json, ']', t->rank == 0, &more));
        if (!more)
            return RLX_OK;
        TRY(json_read_u64(&s->json, &dim));
        if (dim > MAX_DIM)
            return json_read_bad(&s->json, "a dim is above 2^40");
        if (t->rank == RLX_WEIGHT_MAX_RANK)
            return json_read_bad(&s->json, "a tensor has more than 16 dims");
        t->dim[t->rank] = (int64_t)dim;
    }
}

static rlx_status get_offsets(struct safetensors *s, uint64_t offset[2])
{
    bool more = false;

    TRY(json_read_open(&s->json, '['));
    for (int i = 0; i < 2; i++) {
        TRY(json_read_more(&s->json, ']', i == 0, &more));
        if (!more)
            return json_read_bad(&s->json, "data_offsets are two numbers");
        TRY(json_read_u64(&s->json, &offset[i]));
    }
    TRY(json_read_more(&s->json, ']', false, &more));
    return more ? json_read_bad(&s->json, "data_offsets are two numbers") : RLX_OK;
}

static rlx_status get_member(struct safetensors *s, struct weight *t, uint64_t offset[2],
                             unsigned *seen)
{
    static const char *const names[] = {"dtype", "shape", "data_offsets"};
    rlx_str key, word;
    unsigned i = 0;

    TRY(json_read_key(&s->json, &key));
    while (i < 3 && !str_eq(key, rlx_cstr(names[i])))
        i++;
    if (i == 3)
        return json_read_bad(&s->json, "a tensor has an unknown member");
    if (*seen & 1u << i)
        return json_read_bad(&s->json, "a member is given twice");
    *seen |= 1u << i;
    if (i == 1)
        return get_shape(s, t);
    if (i == 2)
        return get_offsets(s, offset);
    TRY(json_read_string(&s->json, &word));
    if (!weight_type_of_safetensors(word, &t->type))
        return diag_fail(s->d, RLX_ERROR_FORMAT, "safetensors: tensor \"%.*s\": no dtype \"%.*s\"",
                         STR_ARG(t->name), STR_ARG(word));
    return RLX_OK;
}

static rlx_status check_tensor(struct safetensors *s, struct weight *t, const uint64_t offset[2])
{
    uint64_t elements;

    if (!weight_bytes(t->type, t->dim, t->rank, &elements, &t->bytes))
        return diag_fail(
            s->d, RLX_ERROR_FORMAT,
            "safetensors: tensor \"%.*s\": its shape overflows, or is not a whole number "
            "of bytes of %s",
            STR_ARG(t->name), weight_type(t->type)->name);
    if (offset[0] > offset[1] || offset[1] > s->size)
        return diag_fail(s->d, RLX_ERROR_FORMAT,
                         "safetensors: tensor \"%.*s\": %" PRIu64 " to %" PRIu64
                         " does not lie in the data of %" PRIu64 " bytes",
                         STR_ARG(t->name), offset[0], offset[1], s->size);
    if (offset[1] - offset[0] != t->bytes)
        return diag_fail(s->d, RLX_ERROR_FORMAT,
                         "safetensors: tensor \"%.*s\": its shape takes %" PRIu64
                         " bytes, its place has %" PRIu64,
                         STR_ARG(t->name), t->bytes, offset[1] - offset[0]);
    t->at = s->data + offset[0];
    return RLX_OK;
}

static rlx_status get_tensor(struct safetensors *s, rlx_str name)
{
    struct weight t = {.name = name};
    uint64_t offset[2] = {0, 0};
    unsigned seen = 0;
    bool more = false;

    TRY(json_read_open(&s->json, '{'));
    for (bool first = true;; first = false) {
        TRY(json_read_more(&s->json, '}', first, &more));
        if (!more)
            break;
        TRY(get_member(s, &t, offset, &seen));
    }
    if (seen != 7)
        return json_read_bad(&s->json, "a tensor needs dtype, shape and data_offsets");
    TRY(check_tensor(s, &t, offset));
    return weights_add(s->w, &t, s->d);
}

static rlx_status get_metadata(struct safetensors *s)
{
    bool more = false;

    TRY(json_read_open(&s->json, '{'));
    for (bool first = true;; first = false) {
        rlx_meta m = {.type = RLX_META_string, .count = 1};
        rlx_str *value = arena_new(&s->w->arena, rlx_str);
        TRY(json_read_more(&s->json, '}', first, &more));
        if (!more)
            return RLX_OK;
        if (!value)
            return diag_no_memory(s->d, sizeof *value);
        TRY(json_read_key(&s->json, &m.key));
        TRY(json_read_string(&s->json, value));
        m.data = value;
        TRY(weights_add_meta(s->w, &m, s->d));
    }
}

static rlx_status get_header(struct safetensors *s)
{
    bool has_metadata = false, more = false;
    rlx_str name;

    TRY(json_read_open(&s->json, '{'));
    for (bool first = true;; first = false) {
        TRY(json_read_more(&s->json, '}', first, &more));
        if (!more)
            break;
        TRY(json_read_key(&s->json, &name));
        if (!str_eq(name, STR("__metadata__"))) {
            TRY(get_tensor(s, name));
            continue;
        }
        if (has_metadata)
            return json_read_bad(&s->json, "__metadata__ is given twice");
        has_metadata = true;
        TRY(get_metadata(s));
    }
    for (; s->json.pos < s->json.text.len; s->json.pos++)
        if (s->json.text.ptr[s->json.pos] != ' ')
            return json_read_bad(&s->json, "there is text after the header's object");
    return RLX_OK;
}

/* ---- no gaps, no overlaps ---- */

static int by_place(const void *a, const void *b)
{
    const struct weight *x = *(const struct weight *const *)a,
                        *y = *(const struct weight *const *)b;

    if (x->at != y->at)
        return x->at > y->at ? 1 : -1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* empty ones first */
}

static rlx_status check_tiling(struct safetensors *s, size_t before)
{
    size_t count = s->w->tensor.len - before;
    const struct weight **sorted = arena_array(&s->w->arena, const struct weight *, count);
    const uint8_t *end = s->data;

    if (!sorted)
        return diag_no_memory(s->d, count * sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &s->w->tensor.at[before + i];
    qsort(sorted, count, sizeof *sorted, by_place);
    for (size_t i = 0; i < count; i++) {
        if (sorted[i]->at != end)
            return diag_fail(s->d, RLX_ERROR_FORMAT,
                             "safetensors: tensor \"%.*s\" begins %s the one before it ends",
                             STR_ARG(sorted[i]->name), sorted[i]->at < end ? "before" : "after");
        end = sorted[i]->at + sorted[i]->bytes;
    }
    if (end != s->data + s->size)
        return diag_fail(s->d, RLX_ERROR_FORMAT, "safetensors: %zu bytes belong to no tensor",
                         (size_t)(s->data + s->size - end));
    return RLX_OK;
}

rlx_status safetensors_read(struct weights *w, const uint8_t *bytes, size_t size, struct diag *d)
{
    struct bytes in = {bytes, size, 0};
    size_t before = w->tensor.len;
    uint64_t len = 0;

    if (!bytes_number(&in, 8, &len))
        return diag_fail(d, RLX_ERROR_FORMAT, "safetensors: byte 0: the file ends in its length");
    if (len < 2 || len > SAFETENSORS_MAX_HEADER || len > bytes_left(&in))
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "safetensors: byte 0: a header of %" PRIu64 " bytes does not fit", len);
    rlx_str text = arena_str(&w->arena, (rlx_str){(const char *)bytes + 8, (size_t)len});
    if (!text.ptr)
        return diag_no_memory(d, (size_t)len);
    if (!str_is_utf8(text) || text.ptr[0] != '{')
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "safetensors: byte 8: the header is not UTF-8 that begins with {");
    struct safetensors s = {
        .json = {text, 0, 8, 0, MAX_DEPTH, "safetensors", &w->arena, d},
        .data = bytes + 8 + len,
        .size = size - 8 - len,
        .w = w,
        .d = d,
    };
    TRY(get_header(&s));
    return check_tiling(&s, before);
}
