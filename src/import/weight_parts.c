/* weight_parts.c: files of tensors, opened, with those they name: the parts of a split GGUF file
 * and the files of a safetensors index. All are in the folder of the first one (base/file.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_read.h"
#include "base/str.h"
#include "import/detect.h"
#include "import/weight_file.h"

struct opener {
    struct weights *w;
    const char *path; /* of the first file */
    unsigned mode;    /* enum file_mode, and FILE_FOLLOW */
    struct diag *d;
};

static rlx_str base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return rlx_cstr(slash ? slash + 1 : path);
}

static rlx_status need_room(struct opener *o)
{
    return vec_room(o->w->mem, &o->w->file) ? RLX_OK : diag_no_memory(o->d, sizeof(struct file));
}

/* ---- one file among several ---- */

/* Opens it beside the first and reads it into *part, which the caller frees. The file itself is
 * kept open in o->w. */
static rlx_status read_part(struct opener *o, rlx_str name, rlx_file_kind kind,
                            struct weights *part)
{
    struct file f;

    TRY(need_room(o));
    TRY(file_open_beside(&f, o->path, name, o->mode, o->w->mem, o->d));
    o->w->file.at[o->w->file.len++] = f;
    TRY(weights_read(part, f.data, f.size, name, o->d));
    if (part->kind != kind)
        return diag_fail(o->d, RLX_ERROR_FORMAT, "%.*s is not a %s file as it should be",
                         STR_ARG(name), rlx_file_kind_name(kind));
    return RLX_OK;
}

static rlx_status add_all(struct opener *o, const struct weights *part)
{
    for (size_t i = 0; i < part->tensor.len; i++)
        TRY(weights_add(o->w, &part->tensor.at[i], o->d));
    return RLX_OK;
}

/* ---- split GGUF files ---- */

/* "model-00001-of-00003.gguf" */
#define PART_TAIL "-%05u-of-%05u.gguf"
enum { TAIL_BYTES = 20, MOST_PARTS = 99999 };

static rlx_status get_split(struct opener *o, const struct weights *w, uint64_t *no,
                            uint64_t *count)
{
    bool found;

    TRY(meta_get_u64(w, STR("split.count"), MOST_PARTS, count, &found, o->d));
    return meta_get_u64(w, STR("split.no"), MOST_PARTS, no, &found, o->d);
}

static rlx_status read_gguf_part(struct opener *o, rlx_str first, uint64_t no, uint64_t count)
{
    uint64_t part_no = UINT64_MAX, part_count = 0;
    struct weights part;
    char tail[32];

    snprintf(tail, sizeof tail, PART_TAIL, (unsigned)no + 1, (unsigned)count);
    const char *name =
        arena_printf(&o->w->arena, "%.*s%s", (int)(first.len - TAIL_BYTES), first.ptr, tail);
    if (!name)
        return diag_no_memory(o->d, first.len);
    weights_init(&part, o->w->mem);
    rlx_status s = read_part(o, rlx_cstr(name), RLX_FILE_gguf, &part);
    if (s == RLX_OK)
        s = get_split(o, &part, &part_no, &part_count);
    if (s == RLX_OK && (part_no != no || part_count != count))
        s = diag_fail(o->d, RLX_ERROR_FORMAT,
                      "gguf: %s does not say that it is part %" PRIu64 " of %" PRIu64, name, no + 1,
                      count);
    if (s == RLX_OK)
        s = add_all(o, &part);
    weights_free(&part);
    return s;
}

static rlx_status join_split(struct opener *o)
{
    uint64_t no = 0, count = 1, total = 0;
    rlx_str first = base_name(o->path);
    char tail[32];
    bool counted = false;

    TRY(get_split(o, o->w, &no, &count));
    if (count <= 1)
        return RLX_OK;
    if (no != 0)
        return diag_fail(o->d, RLX_ERROR_FORMAT,
                         "gguf: this is part %" PRIu64 " of %" PRIu64 "; open the first one",
                         no + 1, count);
    snprintf(tail, sizeof tail, PART_TAIL, 1u, (unsigned)count);
    if (!str_ends(first, rlx_cstr(tail)))
        return diag_fail(o->d, RLX_ERROR_FORMAT,
                         "gguf: the first of %" PRIu64 " parts must be called ...%s", count, tail);
    for (no = 1; no < count; no++)
        TRY(read_gguf_part(o, first, no, count));
    TRY(meta_get_u64(o->w, STR("split.tensors.count"), UINT64_MAX, &total, &counted, o->d));
    if (counted && total != o->w->tensor.len)
        return diag_fail(o->d, RLX_ERROR_FORMAT,
                         "gguf: the parts hold %zu tensors, not %" PRIu64 " as the first one says",
                         o->w->tensor.len, total);
    return RLX_OK;
}

/* ---- the index of safetensors files ---- */

struct shard {
    rlx_str file;
    struct weights part; /* once it was read */
};

struct index {
    struct opener *o;
    struct json_in json;
    VEC(struct shard) shard;
    struct map by_file;
};

static bool same_file(const void *owner, uint32_t value, const void *key)
{
    const struct index *x = owner;

    return str_eq(x->shard.at[value].file, *(const rlx_str *)key);
}

static rlx_status find_shard(struct index *x, rlx_str file, size_t *out)
{
    uint64_t hash = hash_bytes(file.ptr, file.len);
    uint32_t found;

    if (map_find(&x->by_file, hash, same_file, x, &file, &found)) {
        *out = found;
        return RLX_OK;
    }
    bool plain = file.len > 0 && !memchr(file.ptr, '/', file.len) &&
                 !memchr(file.ptr, '\\', file.len) && !str_eq(file, STR("..")) &&
                 !str_eq(file, STR("."));
    for (size_t i = 0; i + 1 < file.len; i++)
        plain = plain && !(file.ptr[i] == '.' && file.ptr[i + 1] == '.');
    if (!plain)
        return json_read_bad(&x->json, "the name of a file is not a plain one");
    if (!vec_room(x->o->w->mem, &x->shard) || !map_add(&x->by_file, hash, (uint32_t)x->shard.len))
        return diag_no_memory(x->o->d, sizeof(struct shard));
    struct shard *s = &x->shard.at[x->shard.len];
    *s = (struct shard){.file = file};
    *out = x->shard.len++;
    weights_init(&s->part, x->o->w->mem);
    return read_part(x->o, file, RLX_FILE_safetensors, &s->part);
}

static rlx_status add_listed(struct index *x, rlx_str name, rlx_str file)
{
    size_t shard = 0, i;

    TRY(find_shard(x, file, &shard));
    const struct weights *part = &x->shard.at[shard].part;
    if (!weights_find(part, name, &i))
        return diag_fail(x->o->d, RLX_ERROR_FORMAT,
                         "the index has \"%.*s\" in %.*s, which does not have it", STR_ARG(name),
                         STR_ARG(file));
    return weights_add(x->o->w, &part->tensor.at[i], x->o->d);
}

static rlx_status get_weight_map(struct index *x)
{
    bool more = false;

    TRY(json_read_open(&x->json, '{'));
    for (bool first = true;; first = false) {
        rlx_str name, file;
        TRY(json_read_more(&x->json, '}', first, &more));
        if (!more)
            return RLX_OK;
        TRY(json_read_key(&x->json, &name));
        TRY(json_read_string(&x->json, &file));
        TRY(add_listed(x, name, file));
    }
}

static rlx_status get_index(struct index *x)
{
    bool more = false, found = false;
    rlx_str key;

    TRY(json_read_open(&x->json, '{'));
    for (bool first = true;; first = false) {
        TRY(json_read_more(&x->json, '}', first, &more));
        if (!more)
            break;
        TRY(json_read_key(&x->json, &key));
        if (!str_eq(key, STR("weight_map"))) {
            TRY(json_read_skip(&x->json));
            continue;
        }
        if (found)
            return json_read_bad(&x->json, "weight_map is given twice");
        found = true;
        TRY(get_weight_map(x));
    }
    TRY(json_read_end(&x->json));
    return found ? RLX_OK : json_read_bad(&x->json, "the index has no weight_map");
}

static rlx_status join_shards(struct opener *o, const struct file *f)
{
    enum { MOST = 100000000, MAX_DEPTH = 64 };
    struct index x = {.o = o};

    if (f->size > MOST)
        return diag_fail(o->d, RLX_ERROR_LIMIT, "an index of %zu bytes; %d are the most", f->size,
                         MOST);
    rlx_str text = arena_str(&o->w->arena, (rlx_str){(const char *)f->data, f->size});
    if (!text.ptr)
        return diag_no_memory(o->d, f->size);
    if (!str_is_utf8(text))
        return diag_fail(o->d, RLX_ERROR_FORMAT, "index: it is not UTF-8");
    x.json = (struct json_in){text, 0, 0, 0, MAX_DEPTH, "index", &o->w->arena, o->d};
    map_init(&x.by_file, o->w->mem);
    rlx_status s = get_index(&x);
    for (size_t i = 0; i < x.shard.len; i++)
        weights_free(&x.shard.at[i].part);
    vec_free(o->w->mem, &x.shard);
    map_free(&x.by_file);
    o->w->kind = RLX_FILE_safetensors_index;
    return s;
}

/* ---- the first file ---- */

rlx_status weights_open(struct weights *w, const char *path, const rlx_load_desc *desc,
                        struct diag *d)
{
    struct opener o = {.w = w, .path = path, .d = d};
    rlx_str name = base_name(path);
    struct file f;

    o.mode = desc && desc->read_files ? FILE_READ : FILE_MAP;
    TRY(need_room(&o));
    TRY(file_open(&f, path, (enum file_mode)o.mode, w->mem, d));
    w->file.at[w->file.len++] = f;
    o.mode |= desc && desc->follow_external ? FILE_FOLLOW : 0;
    if (detect_kind(f.data, f.size) == RLX_FILE_safetensors_index)
        return join_shards(&o, &f);
    if (str_ends(name, STR(".npy")))
        name.len -= 4;
    TRY(weights_read(w, f.data, f.size, name, d));
    return w->kind == RLX_FILE_gguf ? join_split(&o) : RLX_OK;
}
