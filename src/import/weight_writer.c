/* weight_writer.c: what writing a file of tensors has in common in every format. */
#include "import/weight_writer.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"

static const struct weight_format *const formats[] = {&gguf_format, &safetensors_format,
                                                      &npz_format, &npy_format};

void put_number(struct text *t, uint64_t v, size_t width)
{
    char bytes[8];

    for (size_t i = 0; i < width; i++)
        bytes[i] = (char)(v >> (8 * i));
    text_add(t, (rlx_str){bytes, width});
}

rlx_status writer_refuse(struct weight_writer *w, const rlx_weight *t, rlx_status s,
                         const char *why)
{
    return diag_fail(w->d, s, "%s: tensor \"%.*s\" (%s): %s", rlx_file_kind_name(w->format->kind),
                     STR_ARG(t->name), weight_type(t->type)->name, why);
}

rlx_status writer_add(struct weight_writer *w, const struct text *t)
{
    if (t->failed)
        return diag_no_memory(w->d, t->len);
    return file_add(&w->file, t->at ? t->at : "", t->len, w->d);
}

rlx_status writer_fill(struct weight_writer *w, size_t zeros)
{
    static const uint8_t none[4096];

    while (zeros) {
        size_t n = zeros < sizeof none ? zeros : sizeof none;
        TRY(file_add(&w->file, none, n, w->d));
        zeros -= n;
    }
    return RLX_OK;
}

/* ---- the content ---- */

static bool same_name(const void *owner, uint32_t value, const void *key)
{
    return str_eq(((const rlx_str *)owner)[value], *(const rlx_str *)key);
}

/* Names are UTF-8 without a NUL, and unique. */
static rlx_status check_names(struct weight_writer *w, const rlx_str *name, size_t count,
                              const char *what)
{
    struct map seen;
    rlx_status s = RLX_OK;

    map_init(&seen, w->mem);
    for (size_t i = 0; i < count && s == RLX_OK; i++) {
        uint64_t hash = hash_bytes(name[i].ptr, name[i].len);
        uint32_t other;
        if (name[i].len == 0 || !str_is_utf8(name[i]) || memchr(name[i].ptr, 0, name[i].len))
            s = diag_fail(w->d, RLX_ERROR_NAME,
                          "%s %zu has no proper name: one of UTF-8, without NUL bytes", what, i);
        else if (map_find(&seen, hash, same_name, name, &name[i], &other))
            s = diag_fail(w->d, RLX_ERROR_NAME, "there are two %ss \"%.*s\"", what,
                          STR_ARG(name[i]));
        else if (!map_add(&seen, hash, (uint32_t)i))
            s = diag_no_memory(w->d, sizeof(rlx_str));
    }
    map_free(&seen);
    return s;
}

static rlx_status copy_tensors(struct weight_writer *w, const rlx_weights_content *content)
{
    uint64_t elements;

    w->count = content->tensor_count;
    w->tensor = arena_array(&w->arena, rlx_weight, w->count);
    w->order = arena_array(&w->arena, uint32_t, w->count);
    if (!w->tensor || !w->order || w->count > UINT32_MAX)
        return diag_no_memory(w->d, w->count * sizeof(rlx_weight));
    for (size_t i = 0; i < w->count; i++) {
        rlx_weight *t = &w->tensor[i];
        *t = content->tensor[i];
        w->order[i] = (uint32_t)i;
        if ((unsigned)t->type >= RLX_WEIGHT_TYPE_count)
            return diag_fail(w->d, RLX_ERROR_DTYPE, "tensor %zu: there is no type %d", i,
                             (int)t->type);
        t->name = arena_str(&w->arena, t->name);
        if (!t->name.ptr)
            return diag_no_memory(w->d, content->tensor[i].name.len);
        if (t->rank < 0 || t->rank > RLX_WEIGHT_MAX_RANK ||
            !weight_bytes(t->type, t->dim, t->rank, &elements, &t->bytes))
            return writer_refuse(
                w, t, RLX_ERROR_SHAPE,
                "its rank or dims make no sense, or do not make a whole number of blocks");
    }
    return RLX_OK;
}

static rlx_status check_all_names(struct weight_writer *w, const rlx_weights_content *content)
{
    size_t most = w->count > content->meta_count ? w->count : content->meta_count;
    rlx_str *name = arena_array(&w->arena, rlx_str, most);

    if (!name)
        return diag_no_memory(w->d, most * sizeof *name);
    for (size_t i = 0; i < w->count; i++)
        name[i] = w->tensor[i].name;
    TRY(check_names(w, name, w->count, "tensor"));
    for (size_t i = 0; i < content->meta_count; i++)
        name[i] = content->meta[i].key;
    return check_names(w, name, content->meta_count, "key");
}

static rlx_status check_meta(struct weight_writer *w, const rlx_weights_content *content)
{
    for (size_t i = 0; i < content->meta_count; i++) {
        const rlx_meta *m = &content->meta[i];
        if (strcmp(rlx_meta_type_name(m->type), "?") == 0 || (m->count && !m->data) ||
            (!m->is_array && m->count != 1))
            return diag_fail(w->d, RLX_ERROR_ARGUMENT,
                             "key \"%.*s\" has no value, or one of unknown type", STR_ARG(m->key));
    }
    return RLX_OK;
}

/* ---- writing ---- */

/* Ends tensors that have all their bytes, and begins the next that needs some. */
static rlx_status advance(struct weight_writer *w, bool begun)
{
    while (w->next < w->count) {
        size_t i = w->order[w->next];
        if (!begun && w->format->before)
            TRY(w->format->before(w, i));
        if (w->done < w->tensor[i].bytes)
            return RLX_OK;
        if (w->format->after)
            TRY(w->format->after(w, i));
        w->next++;
        w->done = 0;
        begun = false;
    }
    return RLX_OK;
}

static rlx_status begin(struct weight_writer *w, const char *path,
                        const rlx_weights_content *content)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i]->kind == content->kind)
            w->format = formats[i];
    if (!w->format)
        return diag_fail(w->d, RLX_ERROR_ARGUMENT, "tensors are not written as %s",
                         rlx_file_kind_name(content->kind));
    if ((content->tensor_count && !content->tensor) || (content->meta_count && !content->meta))
        return diag_fail(w->d, RLX_ERROR_ARGUMENT, "%s is NULL",
                         content->tensor ? "meta" : "tensor");
    w->alignment = content->alignment;
    TRY(copy_tensors(w, content));
    TRY(check_meta(w, content));
    TRY(check_all_names(w, content));
    TRY(w->format->check(w, content));
    TRY(file_begin(&w->file, path, FILE_FOR_ALL, w->d));
    TRY(w->format->begin(w, content));
    return advance(w, false);
}

rlx_status writer_begin(struct weight_writer *w, const rlx_allocator *mem, const char *path,
                        const rlx_weights_content *content, struct diag *d)
{
    *w = (struct weight_writer){.mem = mem, .d = d};
    arena_init(&w->arena, mem);
    return begin(w, path, content);
}

bool writer_next(const struct weight_writer *w, size_t *i, uint64_t *left)
{
    if (w->next >= w->count)
        return false;
    *i = w->order[w->next];
    *left = w->tensor[*i].bytes - w->done;
    return true;
}

rlx_status writer_write(struct weight_writer *w, const void *data, size_t bytes, struct diag *d)
{
    uint64_t left = 0;
    size_t i = 0;

    w->d = d;
    if (bytes == 0)
        return RLX_OK;
    if (!writer_next(w, &i, &left) || bytes > left)
        return diag_fail(d, RLX_ERROR_SIZE, "%zu bytes were given, %" PRIu64 " are left", bytes,
                         left);
    if (w->format->pass)
        w->format->pass(w, data, bytes);
    TRY(file_add(&w->file, data, bytes, d));
    w->done += bytes;
    return advance(w, true);
}

rlx_status writer_finish(struct weight_writer *w, struct diag *d)
{
    uint64_t left;
    size_t i;

    w->d = d;
    if (writer_next(w, &i, &left))
        return diag_fail(d, RLX_ERROR_SIZE, "tensor \"%.*s\": %" PRIu64 " of its bytes are missing",
                         STR_ARG(w->tensor[i].name), left);
    if (w->format->end)
        TRY(w->format->end(w));
    return file_commit(&w->file, d);
}

void writer_free(struct weight_writer *w)
{
    file_abandon(&w->file);
    arena_free(&w->arena);
}
