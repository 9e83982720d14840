/* gguf.c: GGUF files, versions 1 to 3 (ops-special.md 2.1).
 *
 *     magic      'G' 'G' 'U' 'F'
 *     version    u32
 *     counts     of tensors, of keys            v1: u32, later: u64, here and in all lengths below
 *     keys       string, type u32, value        string: length, bytes
 *     tensors    string, rank u32, dims, type u32, offset u64
 *     padding    to a multiple of the alignment
 *     data       offsets count from here; dims[0] is the fastest
 *
 * Everything up to the data is copied while it is read, each byte once, so that a file which
 * changes meanwhile cannot undo a check. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "import/bytes.h"
#include "import/gguf.h"
#include "import/weight_file.h"

struct gguf {
    struct bytes in;
    size_t length_bytes; /* of a count, length or dim: 4 in version 1, otherwise 8 */
    uint64_t tensors, keys;
    struct weights *w;
    struct diag *d;
};

static rlx_status bad(const struct gguf *g, const char *what)
{
    return diag_fail(g->d, RLX_ERROR_FORMAT, "gguf: byte %zu: %s", g->in.pos, what);
}

static rlx_status cut_short(const struct gguf *g)
{
    return bad(g, "the file ends here");
}

static rlx_status get_u32(struct gguf *g, uint32_t *out)
{
    return bytes_u32(&g->in, out) ? RLX_OK : cut_short(g);
}

static rlx_status get_length(struct gguf *g, uint64_t *out)
{
    return bytes_number(&g->in, g->length_bytes, out) ? RLX_OK : cut_short(g);
}

/* most: bytes that it may have; anything above is a lie, or not for us. */
static rlx_status get_string(struct gguf *g, uint64_t most, rlx_str *out)
{
    uint64_t len = 0;

    TRY(get_length(g, &len));
    if (len > bytes_left(&g->in))
        return bad(g, "a string is longer than the rest of the file");
    if (len > most)
        return bad(g, "a string is longer than is allowed");
    *out = arena_str(&g->w->arena, (rlx_str){(const char *)g->in.at + g->in.pos, (size_t)len});
    if (!out->ptr)
        return diag_no_memory(g->d, (size_t)len);
    g->in.pos += (size_t)len;
    return RLX_OK;
}

static rlx_status get_name(struct gguf *g, uint64_t most, rlx_str *out)
{
    TRY(get_string(g, most, out));
    if (out->len == 0)
        return bad(g, "a name is empty");
    if (!str_is_utf8(*out) || memchr(out->ptr, 0, out->len))
        return bad(g, "a name is not UTF-8, or holds a NUL byte");
    return RLX_OK;
}

/* ---- metadata ---- */

static rlx_status get_strings(struct gguf *g, rlx_meta *m)
{
    bool any_bytes = m->is_array && str_starts(m->key, STR(GGUF_TOKENIZER_KEYS));
    rlx_str *text = arena_array(&g->w->arena, rlx_str, m->count);

    if (!text)
        return diag_no_memory(g->d, m->count * sizeof *text);
    for (size_t i = 0; i < m->count; i++) {
        TRY(get_string(g, GGUF_MAX_STRING, &text[i]));
        if (!any_bytes && !str_is_utf8(text[i]))
            return bad(g, "a string is not UTF-8");
    }
    m->data = text;
    return RLX_OK;
}

static rlx_status get_numbers(struct gguf *g, rlx_meta *m)
{
    size_t width = meta_type_size(m->type);
    uint8_t *to = arena_alloc_array(&g->w->arena, m->count, width, 8);

    if (!to)
        return diag_no_memory(g->d, m->count * width);
    if (!bytes_copy(&g->in, to, m->count * width))
        return cut_short(g);
    for (size_t i = 0; m->type == RLX_META_bool && i < m->count; i++)
        if (to[i] > 1)
            return bad(g, "a bool is neither 0 nor 1");
    m->data = to;
    return RLX_OK;
}

static rlx_status get_value(struct gguf *g, rlx_meta *m)
{
    uint64_t count = 1;
    uint32_t type = 0;

    TRY(get_u32(g, &type));
    m->is_array = type == GGUF_ARRAY;
    if (m->is_array) {
        TRY(get_u32(g, &type));
        TRY(get_length(g, &count));
    }
    if (type == GGUF_ARRAY)
        return bad(g, "an array of arrays");
    m->type = (rlx_meta_type)type;
    size_t least = type == RLX_META_string ? g->length_bytes : meta_type_size(m->type);
    if (least == 0)
        return bad(g, "a value of an unknown type");
    if (count > bytes_left(&g->in) / least)
        return m->is_array ? bad(g, "an array is longer than the rest of the file") : cut_short(g);
    m->count = (size_t)count;
    return type == RLX_META_string ? get_strings(g, m) : get_numbers(g, m);
}

static rlx_status get_keys(struct gguf *g)
{
    for (uint64_t i = 0; i < g->keys; i++) {
        rlx_meta m = {.count = 0};
        TRY(get_name(g, GGUF_MAX_KEY, &m.key));
        TRY(get_value(g, &m));
        TRY(weights_add_meta(g->w, &m, g->d));
    }
    return RLX_OK;
}

static rlx_status find_alignment(struct gguf *g)
{
    const rlx_meta *m = weights_meta(g->w, STR(GGUF_ALIGNMENT_KEY));

    g->w->alignment = GGUF_DEFAULT_ALIGN;
    if (!m)
        return RLX_OK;
    if (m->is_array || m->type != RLX_META_u32)
        return diag_fail(g->d, RLX_ERROR_FORMAT, "gguf: general.alignment is %s%s, not u32",
                         m->is_array ? "an array of " : "", rlx_meta_type_name(m->type));
    uint32_t align = *(const uint32_t *)m->data;
    if (align < GGUF_MIN_ALIGN || align > GGUF_MAX_ALIGN || (align & (align - 1)))
        return diag_fail(g->d, RLX_ERROR_FORMAT,
                         "gguf: general.alignment is %" PRIu32 ", not a power of two from %d to %d",
                         align, GGUF_MIN_ALIGN, GGUF_MAX_ALIGN);
    g->w->alignment = align;
    return RLX_OK;
}

/* ---- tensors ---- */

static rlx_status get_dims(struct gguf *g, struct weight *t)
{
    uint32_t rank = 0;

    TRY(get_u32(g, &rank));
    if (rank > GGUF_MAX_RANK)
        return bad(g, "a tensor has more than 4 dims");
    t->rank = (int32_t)rank;
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t dim = 0;
        TRY(get_length(g, &dim));
        if (dim == 0 || dim > (uint64_t)GGUF_MAX_DIM)
            return bad(g, "a dim is 0, or above 2^40");
        t->dim[rank - 1 - i] = (int64_t)dim; /* the file has the fastest first */
    }
    return RLX_OK;
}

/* *offset: from the beginning of the data. */
static rlx_status get_tensor(struct gguf *g, struct weight *t, uint64_t *offset)
{
    uint64_t elements;
    uint32_t id = 0;

    TRY(get_name(g, GGUF_MAX_NAME, &t->name));
    TRY(get_dims(g, t));
    TRY(get_u32(g, &id));
    if (!weight_type_of_gguf(id, &t->type))
        return diag_fail(g->d, RLX_ERROR_FORMAT,
                         "gguf: byte %zu: tensor \"%.*s\" is of type %" PRIu32
                         ", which does not exist (or no longer does)",
                         g->in.pos, STR_ARG(t->name), id);
    const struct weight_type *type = weight_type(t->type);
    if ((t->rank ? t->dim[t->rank - 1] : 1) % type->elems)
        return diag_fail(g->d, RLX_ERROR_FORMAT,
                         "gguf: byte %zu: tensor \"%.*s\" has rows that are not whole blocks of %s",
                         g->in.pos, STR_ARG(t->name), type->name);
    if (!weight_bytes(t->type, t->dim, t->rank, &elements, &t->bytes))
        return bad(g, "the dims of a tensor overflow 62 bits");
    if (!bytes_number(&g->in, 8, offset))
        return cut_short(g);
    if (*offset % g->w->alignment)
        return bad(g, "the offset of a tensor is not aligned");
    return RLX_OK;
}

static rlx_status get_tensors(struct gguf *g, uint64_t *offset)
{
    for (uint64_t i = 0; i < g->tensors; i++) {
        struct weight t = {.rank = 0};
        TRY(get_tensor(g, &t, &offset[i]));
        TRY(weights_add(g->w, &t, g->d));
    }
    return RLX_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct weight *x = *(const struct weight *const *)a,
                        *y = *(const struct weight *const *)b;

    return (x->at > y->at) - (x->at < y->at);
}

static rlx_status check_overlaps(struct gguf *g, const struct weight *first)
{
    size_t count = (size_t)g->tensors;
    const struct weight **sorted = arena_array(&g->w->arena, const struct weight *, count);

    if (!sorted)
        return diag_no_memory(g->d, count * sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = first + i;
    qsort(sorted, count, sizeof *sorted, by_place);
    for (size_t i = 1; i < count; i++) {
        const struct weight *a = sorted[i - 1], *b = sorted[i];
        if ((uint64_t)(b->at - a->at) < a->bytes)
            return diag_fail(g->d, RLX_ERROR_FORMAT, "gguf: tensors \"%.*s\" and \"%.*s\" overlap",
                             STR_ARG(a->name), STR_ARG(b->name));
    }
    return RLX_OK;
}

static rlx_status place_tensors(struct gguf *g, const uint64_t *offset)
{
    size_t align = (size_t)g->w->alignment;
    size_t pad = (align - g->in.pos % align) % align;

    if (g->tensors == 0)
        return RLX_OK;
    if (pad > bytes_left(&g->in))
        return bad(g, "the file ends before its data");
    const uint8_t *data = g->in.at + g->in.pos + pad;
    uint64_t size = bytes_left(&g->in) - pad;
    struct weight *first = g->w->tensor.at + (g->w->tensor.len - (size_t)g->tensors);
    for (size_t i = 0; i < g->tensors; i++) {
        if (offset[i] > size || first[i].bytes > size - offset[i])
            return diag_fail(g->d, RLX_ERROR_FORMAT,
                             "gguf: tensor \"%.*s\", %" PRIu64 " bytes at %" PRIu64
                             ", does not lie in the data of %" PRIu64 " bytes",
                             STR_ARG(first[i].name), first[i].bytes, offset[i], size);
        first[i].at = data + offset[i];
    }
    return check_overlaps(g, first);
}

/* ---- the whole ---- */

static rlx_status get_version(struct gguf *g)
{
    uint32_t magic = 0, version = 0;

    TRY(get_u32(g, &magic));
    TRY(get_u32(g, &version));
    if (magic != 0x46554747)
        return diag_fail(g->d, RLX_ERROR_FORMAT, "gguf: not a GGUF file");
    if (version && (version & 0xffff) == 0)
        return diag_fail(g->d, RLX_ERROR_FORMAT, "gguf: big-endian GGUF is not supported");
    if (version == 0 || version > 3)
        return diag_fail(g->d, RLX_ERROR_FORMAT, "gguf: version %" PRIu32 " is unknown", version);
    g->w->version = version;
    g->length_bytes = version == 1 ? 4 : 8;
    return RLX_OK;
}

/* The least that a key and a tensor take bound how many there can be. */
static rlx_status get_counts(struct gguf *g)
{
    bool old = g->length_bytes == 4;
    uint64_t least_key = old ? 10 : 14, least_tensor = old ? 21 : 25;

    TRY(get_length(g, &g->tensors));
    TRY(get_length(g, &g->keys));
    if (g->keys > bytes_left(&g->in) / least_key)
        return bad(g, "more keys than the rest of the file can hold");
    if (g->tensors > bytes_left(&g->in) / least_tensor)
        return bad(g, "more tensors than the rest of the file can hold");
    return RLX_OK;
}

rlx_status gguf_read(struct weights *w, const uint8_t *bytes, size_t size, struct diag *d)
{
    struct gguf g = {.in = {bytes, size, 0}, .w = w, .d = d};

    TRY(get_version(&g));
    TRY(get_counts(&g));
    TRY(get_keys(&g));
    TRY(find_alignment(&g));
    if (g.tensors > bytes_left(&g.in)) /* again: the keys took their part */
        return bad(&g, "more tensors than the rest of the file can hold");
    uint64_t *offset = arena_array(&w->arena, uint64_t, (size_t)g.tensors);
    if (!offset)
        return diag_no_memory(d, (size_t)g.tensors * sizeof *offset);
    TRY(get_tensors(&g, offset));
    return place_tensors(&g, offset);
}
