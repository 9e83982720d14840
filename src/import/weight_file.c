/* weight_file.c: a file of tensors, whatever its format: what was found in it, and how its parts
 * become one. */
#include "import/weight_file.h"

#include <string.h>

#include "base/str.h"
#include "import/detect.h"
#include "import/inflate.h"
#include "import/npy.h"

/* A row here takes more memory than its entry in a file: so their number is limited. */
enum { MOST_ROWS = 1 << 20 };

void weights_init(struct weights *w, const rlx_allocator *mem)
{
    *w = (struct weights){.mem = mem};
    arena_init(&w->arena, mem);
    map_init(&w->tensor_by_name, mem);
    map_init(&w->meta_by_key, mem);
}

void weights_free(struct weights *w)
{
    for (size_t i = 0; i < w->tensor.len; i++)
        if (w->tensor.at[i].made)
            mem_free(w->mem, (void *)w->tensor.at[i].made, (size_t)w->tensor.at[i].bytes);
    for (size_t i = 0; i < w->file.len; i++)
        file_close(&w->file.at[i]);
    vec_free(w->mem, &w->tensor);
    vec_free(w->mem, &w->meta);
    vec_free(w->mem, &w->file);
    map_free(&w->tensor_by_name);
    map_free(&w->meta_by_key);
    arena_free(&w->arena);
}

/* ---- names ---- */

static bool same_name(const void *owner, uint32_t value, const void *key)
{
    const struct weights *w = owner;

    return str_eq(w->tensor.at[value].name, *(const rlx_str *)key);
}

static bool same_key(const void *owner, uint32_t value, const void *key)
{
    const struct weights *w = owner;

    return str_eq(w->meta.at[value].key, *(const rlx_str *)key);
}

bool weights_find(const struct weights *w, rlx_str name, size_t *i)
{
    uint32_t found;

    if (!map_find(&w->tensor_by_name, hash_bytes(name.ptr, name.len), same_name, w, &name, &found))
        return false;
    *i = found;
    return true;
}

const rlx_meta *weights_meta(const struct weights *w, rlx_str key)
{
    uint32_t i;

    return map_find(&w->meta_by_key, hash_bytes(key.ptr, key.len), same_key, w, &key, &i)
               ? &w->meta.at[i]
               : NULL;
}

rlx_status weights_add(struct weights *w, const struct weight *t, struct diag *d)
{
    size_t other;

    if (weights_find(w, t->name, &other))
        return diag_fail(d, RLX_ERROR_FORMAT, "there are two tensors \"%.*s\"", STR_ARG(t->name));
    if (w->tensor.len == MOST_ROWS)
        return diag_fail(d, RLX_ERROR_LIMIT, "there are more than %d tensors", MOST_ROWS);
    rlx_str name = arena_str(&w->arena, t->name);
    if (!name.ptr || !vec_room(w->mem, &w->tensor))
        return diag_no_memory(d, sizeof *t);
    if (!map_add(&w->tensor_by_name, hash_bytes(name.ptr, name.len), (uint32_t)w->tensor.len))
        return diag_no_memory(d, sizeof *t);
    w->tensor.at[w->tensor.len] = *t;
    w->tensor.at[w->tensor.len++].name = name;
    return RLX_OK;
}

rlx_status weights_add_meta(struct weights *w, const rlx_meta *m, struct diag *d)
{
    if (weights_meta(w, m->key))
        return diag_fail(d, RLX_ERROR_FORMAT, "there are two keys \"%.*s\"", STR_ARG(m->key));
    if (w->meta.len == MOST_ROWS)
        return diag_fail(d, RLX_ERROR_LIMIT, "there are more than %d keys", MOST_ROWS);
    if (!vec_room(w->mem, &w->meta) ||
        !map_add(&w->meta_by_key, hash_bytes(m->key.ptr, m->key.len), (uint32_t)w->meta.len))
        return diag_no_memory(d, sizeof *m);
    w->meta.at[w->meta.len++] = *m;
    return RLX_OK;
}

/* ---- reading ---- */

rlx_status weight_take_layout(struct weight *t, const struct npy_layout *l, struct diag *d)
{
    if (!weight_type_of_dtype(l->type.dtype, &t->type))
        return diag_fail(d, RLX_ERROR_INTERNAL, "npy: %s is not a type of tensors in files",
                         rlx_dtype_name(l->type.dtype));
    t->rank = l->type.rank;
    memcpy(t->dim, l->type.dim, sizeof l->type.dim);
    t->bytes = l->need;
    return RLX_OK;
}

static rlx_status read_npy(struct weights *w, const uint8_t *bytes, size_t size, rlx_str name,
                           struct diag *d)
{
    struct npy_layout l = {.need = 0};
    struct weight t = {.name = name};

    TRY(npy_parse(bytes, size, w->mem, &l, d));
    if (l.need > size - l.data)
        return diag_fail(d, RLX_ERROR_FORMAT, "npy: %llu bytes of data needed, %zu there",
                         (unsigned long long)l.need, size - l.data);
    TRY(weight_take_layout(&t, &l, d));
    t.at = bytes + l.data;
    t.recipe = (struct weight_recipe){.swap = l.swap, .columns = l.columns};
    return weights_add(w, &t, d);
}

rlx_status weights_read(struct weights *w, const uint8_t *bytes, size_t size, rlx_str name,
                        struct diag *d)
{
    static const char wanted[] = "a file of tensors (.gguf, .safetensors, .npz or .npy)";

    w->kind = detect_kind(bytes, size);
    if (detect_is_foreign(bytes, size, name))
        return detect_refuse(bytes, size, name, wanted, d);
    switch (w->kind) {
    case RLX_FILE_gguf: return gguf_read(w, bytes, size, d);
    case RLX_FILE_safetensors: return safetensors_read(w, bytes, size, d);
    case RLX_FILE_npz: return npz_read(w, bytes, size, d);
    case RLX_FILE_npy: return read_npy(w, bytes, size, name, d);
    default: return detect_refuse(bytes, size, name, wanted, d);
    }
}

/* ---- bytes that have to be made ---- */

static rlx_status check_crc(const struct weight *t, const uint8_t *whole, struct diag *d)
{
    if (crc32_of(0, whole, (size_t)t->recipe.whole) == t->recipe.crc)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_FORMAT, "npz: \"%.*s\" is damaged: its checksum differs",
                     STR_ARG(t->name));
}

static void arrange(const struct weight *t, const uint8_t *data, uint8_t *out)
{
    struct npy_layout l = {.columns = t->recipe.columns, .swap = t->recipe.swap, .need = t->bytes};

    l.type = (struct ir_type){.dtype = weight_type(t->type)->dtype, .rank = t->rank};
    memcpy(l.type.dim, t->dim, sizeof l.type.dim);
    npy_arrange(&l, data, out);
}

static rlx_status inflate_member(const struct weights *w, const struct weight *t, uint8_t *out,
                                 struct diag *d)
{
    const struct weight_recipe *m = &t->recipe;
    uint8_t *whole = mem_alloc(w->mem, (size_t)m->whole);

    if (!whole)
        return diag_no_memory(d, (size_t)m->whole);
    rlx_status s = inflate_whole(t->at, (size_t)m->packed, whole, (size_t)m->whole, w->mem, d);
    if (s == RLX_OK)
        s = check_crc(t, whole, d);
    if (s == RLX_OK)
        arrange(t, whole + m->skip, out);
    mem_free(w->mem, whole, (size_t)m->whole);
    return s;
}

static rlx_status make(struct weights *w, struct weight *t, struct diag *d)
{
    if (t->bytes > WEIGHTS_MAKE_MOST || t->recipe.whole > WEIGHTS_MAKE_MOST)
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "\"%.*s\" has to be converted, but takes %llu bytes; %llu are the most",
                         STR_ARG(t->name), (unsigned long long)t->bytes,
                         (unsigned long long)WEIGHTS_MAKE_MOST);
    uint8_t *own = mem_alloc(w->mem, (size_t)t->bytes);
    if (!own)
        return diag_no_memory(d, (size_t)t->bytes);
    rlx_status s = RLX_OK;
    if (t->recipe.deflated)
        s = inflate_member(w, t, own, d);
    else
        arrange(t, t->at, own);
    if (s != RLX_OK) {
        mem_free(w->mem, own, (size_t)t->bytes);
        return s;
    }
    t->made = own;
    return RLX_OK;
}

rlx_status weights_data(struct weights *w, size_t i, const uint8_t **out, struct diag *d)
{
    struct weight *t = &w->tensor.at[i];
    struct weight_recipe *m = &t->recipe;

    if (m->check && !m->deflated) {
        TRY(check_crc(t, t->at - m->skip, d));
        m->check = false;
    }
    if (!t->made && t->bytes && (m->deflated || m->swap || m->columns))
        TRY(make(w, t, d));
    *out = t->made ? t->made : t->at;
    return RLX_OK;
}
