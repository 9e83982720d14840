/* gguf_write.c: GGUF files, version 3: see gguf.c for the layout. */
#include <inttypes.h>
#include <string.h>

#include "import/gguf.h"
#include "import/weight_file.h"
#include "import/weight_writer.h"

enum { VERSION = 3 };

static rlx_status check_tensor(struct weight_writer *w, const rlx_weight *t)
{
    const struct weight_type *type = weight_type(t->type);

    if (type->gguf < 0)
        return writer_refuse(w, t, RLX_ERROR_DTYPE, "GGUF has no such type");
    if (t->name.len > GGUF_MAX_NAME)
        return writer_refuse(w, t, RLX_ERROR_NAME, "the name has more than 1023 bytes");
    if (t->rank > GGUF_MAX_RANK)
        return writer_refuse(w, t, RLX_ERROR_SHAPE, "GGUF has 4 dims at most");
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dim[i] == 0 || t->dim[i] > GGUF_MAX_DIM)
            return writer_refuse(w, t, RLX_ERROR_SHAPE, "GGUF has no dims of 0, or above 2^40");
    if ((t->rank ? t->dim[t->rank - 1] : 1) % type->elems)
        return writer_refuse(w, t, RLX_ERROR_SHAPE, "its rows are not a whole number of blocks");
    return RLX_OK;
}

static rlx_status check_strings(struct weight_writer *w, const rlx_meta *m)
{
    bool any_bytes = m->is_array && str_starts(m->key, STR(GGUF_TOKENIZER_KEYS));
    const rlx_str *text = m->data;

    for (size_t i = 0; i < m->count; i++)
        if (text[i].len > GGUF_MAX_STRING || (!any_bytes && !str_is_utf8(text[i])))
            return diag_fail(w->d, RLX_ERROR_ARGUMENT,
                             "gguf: key \"%.*s\": string %zu is too long, or not UTF-8",
                             STR_ARG(m->key), i);
    return RLX_OK;
}

static rlx_status check(struct weight_writer *w, const rlx_weights_content *content)
{
    uint32_t align = w->alignment ? w->alignment : GGUF_DEFAULT_ALIGN;

    if (align < GGUF_MIN_ALIGN || align > GGUF_MAX_ALIGN || (align & (align - 1)))
        return diag_fail(w->d, RLX_ERROR_ARGUMENT,
                         "gguf: an alignment of %" PRIu32 " is not a power of two from %d to %d",
                         align, GGUF_MIN_ALIGN, GGUF_MAX_ALIGN);
    w->alignment = align;
    for (size_t i = 0; i < w->count; i++)
        TRY(check_tensor(w, &w->tensor[i]));
    for (size_t i = 0; i < content->meta_count; i++) {
        const rlx_meta *m = &content->meta[i];
        if (m->key.len > GGUF_MAX_KEY)
            return diag_fail(w->d, RLX_ERROR_NAME, "gguf: a key has more than %d bytes",
                             GGUF_MAX_KEY);
        if (m->type == RLX_META_string)
            TRY(check_strings(w, m));
    }
    return RLX_OK;
}

/* ---- the header ---- */

static void put_string(struct text *out, rlx_str s)
{
    put_number(out, s.len, 8);
    text_add(out, s);
}

static void put_meta(struct text *out, const rlx_meta *m)
{
    put_string(out, m->key);
    if (m->is_array)
        put_number(out, GGUF_ARRAY, 4);
    put_number(out, (uint64_t)m->type, 4);
    if (m->is_array)
        put_number(out, m->count, 8);
    if (m->type == RLX_META_string)
        for (size_t i = 0; i < m->count; i++)
            put_string(out, ((const rlx_str *)m->data)[i]);
    else
        text_add(out, (rlx_str){m->data, m->count * meta_type_size(m->type)});
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static void put_tensor(struct text *out, const rlx_weight *t, uint64_t offset)
{
    put_string(out, t->name);
    put_number(out, (uint64_t)t->rank, 4);
    for (int32_t i = t->rank; i-- > 0;)
        put_number(out, (uint64_t)t->dim[i], 8);
    put_number(out, (uint64_t)weight_type(t->type)->gguf, 4);
    put_number(out, offset, 8);
}

static void put_header(struct weight_writer *w, const rlx_weights_content *content,
                       struct text *out)
{
    bool own_key = w->alignment != GGUF_DEFAULT_ALIGN;
    uint64_t keys = own_key, offset = 0;

    for (size_t i = 0; i < content->meta_count; i++)
        keys += !str_eq(content->meta[i].key, STR(GGUF_ALIGNMENT_KEY));
    text_add(out, STR("GGUF"));
    put_number(out, VERSION, 4);
    put_number(out, w->count, 8);
    put_number(out, keys, 8);
    for (size_t i = 0; i < content->meta_count; i++)
        if (!str_eq(content->meta[i].key, STR(GGUF_ALIGNMENT_KEY)))
            put_meta(out, &content->meta[i]);
    if (own_key)
        put_meta(out, &(rlx_meta){STR(GGUF_ALIGNMENT_KEY), RLX_META_u32, false, 1, &w->alignment});
    for (size_t i = 0; i < w->count; i++) {
        put_tensor(out, &w->tensor[i], offset);
        offset += round_up(w->tensor[i].bytes, w->alignment);
    }
}

static rlx_status fill_up(struct weight_writer *w)
{
    return writer_fill(w, (size_t)(round_up(w->file.size, w->alignment) - w->file.size));
}

static rlx_status begin(struct weight_writer *w, const rlx_weights_content *content)
{
    struct text header;

    text_init(&header, w->mem);
    put_header(w, content, &header);
    rlx_status s = writer_add(w, &header);
    text_free(&header);
    TRY(s);
    return w->count ? fill_up(w) : RLX_OK;
}

static rlx_status after(struct weight_writer *w, size_t i)
{
    (void)i;
    return fill_up(w);
}

const struct weight_format gguf_format = {
    .kind = RLX_FILE_gguf, .check = check, .begin = begin, .after = after};
