/* npz_write.c: NumPy's files: one array as npy, several in a zip archive as npz, stored as they
 * are. See zip.c for the layout; what is large has its sizes in an extra field. */
#include <string.h>

#include "import/inflate.h"
#include "import/npy.h"
#include "import/weight_writer.h"
#include "import/zip.h"

enum {
    VERSION = 20,
    VERSION_64 = 45,
    UTF8_NAMES = 1 << 11,
    DAY = 1 << 5 | 1, /* the first of January 1980: the same file each time */
    MAX_NAME = 60000,
};

/* What the directory says of a member. */
struct zip_row {
    uint64_t begins, size;
    uint32_t crc;
};

static void type_of(const rlx_weight *t, struct ir_type *out)
{
    *out = (struct ir_type){.dtype = weight_type(t->type)->dtype, .rank = t->rank};
    memcpy(out->dim, t->dim, (size_t)t->rank * sizeof t->dim[0]);
}

static rlx_status check(struct weight_writer *w, const rlx_weights_content *content)
{
    if (content->meta_count)
        return diag_fail(w->d, RLX_ERROR_ARGUMENT, "%s: the format has no metadata",
                         rlx_file_kind_name(w->format->kind));
    for (size_t i = 0; i < w->count; i++) {
        const rlx_weight *t = &w->tensor[i];
        if (!*weight_type(t->type)->npy)
            return writer_refuse(w, t, RLX_ERROR_DTYPE, "NumPy has no such type");
        if (t->rank > RLX_MAX_RANK)
            return writer_refuse(w, t, RLX_ERROR_SHAPE, "arrays of more than 8 dims are not read");
        bool up = strstr(t->name.ptr, "..") != NULL || t->name.ptr[0] == '/';
        if (w->format == &npz_format && (t->name.len > MAX_NAME || up))
            return writer_refuse(w, t, RLX_ERROR_NAME,
                                 "a member's name is short, relative, and without \"..\"");
    }
    return RLX_OK;
}

/* ---- npy ---- */

static rlx_status check_one(struct weight_writer *w, const rlx_weights_content *content)
{
    if (w->count != 1)
        return diag_fail(w->d, RLX_ERROR_ARGUMENT, "npy: a file holds one array, not %zu",
                         w->count);
    return check(w, content);
}

static rlx_status begin_one(struct weight_writer *w, const rlx_weights_content *content)
{
    struct ir_type type;
    struct text header;

    (void)content;
    type_of(&w->tensor[0], &type);
    text_init(&header, w->mem);
    rlx_status s = npy_header(&type, &header, w->d);
    if (s == RLX_OK)
        s = writer_add(w, &header);
    text_free(&header);
    return s;
}

const struct weight_format npy_format = {
    .kind = RLX_FILE_npy, .check = check_one, .begin = begin_one};

/* ---- npz ---- */

static rlx_status begin(struct weight_writer *w, const rlx_weights_content *content)
{
    (void)content;
    w->row = arena_array(&w->arena, struct zip_row, w->count);
    return w->row ? RLX_OK : diag_no_memory(w->d, w->count * sizeof *w->row);
}

static bool is_large(uint64_t n)
{
    return n >= UINT32_MAX;
}

/* The fields that both headers of a member have: from the version on, up to its sizes. */
static void put_common(struct text *out, const struct zip_row *r, bool large)
{
    put_number(out, large ? VERSION_64 : VERSION, 2);
    put_number(out, UTF8_NAMES, 2);
    put_number(out, ZIP_STORED, 2);
    put_number(out, 0, 2); /* midnight */
    put_number(out, DAY, 2);
    put_number(out, r->crc, 4);
    put_number(out, is_large(r->size) ? UINT32_MAX : r->size, 4);
    put_number(out, is_large(r->size) ? UINT32_MAX : r->size, 4);
}

static void put_local(struct text *out, const rlx_weight *t, const struct zip_row *r)
{
    bool large = is_large(r->size);

    put_number(out, ZIP_LOCAL, 4);
    put_common(out, r, large);
    put_number(out, t->name.len + 4, 2);
    put_number(out, large ? 20 : 0, 2);
    text_add(out, t->name);
    text_add(out, STR(".npy"));
    if (!large)
        return;
    put_number(out, ZIP_LARGE, 2);
    put_number(out, 16, 2);
    put_number(out, r->size, 8);
    put_number(out, r->size, 8);
}

static rlx_status before(struct weight_writer *w, size_t i)
{
    struct zip_row *r = &w->row[i];
    struct text local, npy;
    struct ir_type type;

    type_of(&w->tensor[i], &type);
    text_init(&local, w->mem);
    text_init(&npy, w->mem);
    rlx_status s = npy_header(&type, &npy, w->d);
    if (s == RLX_OK) {
        *r = (struct zip_row){.begins = w->file.size, .size = npy.len + w->tensor[i].bytes};
        w->crc = crc32_of(0, (const uint8_t *)npy.at, npy.len);
        put_local(&local, &w->tensor[i], r);
        s = writer_add(w, &local);
    }
    if (s == RLX_OK)
        s = writer_add(w, &npy);
    text_free(&npy);
    text_free(&local);
    return s;
}

static void pass(struct weight_writer *w, const void *data, size_t bytes)
{
    w->crc = crc32_of(w->crc, data, bytes);
}

/* The checksum is known only now. */
static rlx_status after(struct weight_writer *w, size_t i)
{
    enum { CRC_AT = 14 };
    uint32_t crc = w->row[i].crc = w->crc;
    uint8_t bytes[4] = {(uint8_t)crc, (uint8_t)(crc >> 8), (uint8_t)(crc >> 16),
                        (uint8_t)(crc >> 24)};

    return file_patch(&w->file, w->row[i].begins + CRC_AT, bytes, sizeof bytes, w->d);
}

static void put_central(struct text *out, const rlx_weight *t, const struct zip_row *r)
{
    bool size = is_large(r->size), begins = is_large(r->begins);
    uint64_t extra = (size ? 16u : 0u) + (begins ? 8u : 0u);

    put_number(out, ZIP_CENTRAL, 4);
    put_number(out, VERSION_64, 2);
    put_common(out, r, extra > 0);
    put_number(out, t->name.len + 4, 2);
    put_number(out, extra ? extra + 4 : 0, 2);
    put_number(out, 0, 6); /* no comment, volume 0, no attributes inside */
    put_number(out, 0, 4); /* nor outside */
    put_number(out, begins ? UINT32_MAX : r->begins, 4);
    text_add(out, t->name);
    text_add(out, STR(".npy"));
    if (!extra)
        return;
    put_number(out, ZIP_LARGE, 2);
    put_number(out, extra, 2);
    if (size) {
        put_number(out, r->size, 8);
        put_number(out, r->size, 8);
    }
    if (begins)
        put_number(out, r->begins, 8);
}

static void put_end(struct text *out, uint64_t count, uint64_t directory, uint64_t size)
{
    bool large = count >= UINT16_MAX || is_large(directory) || is_large(size);

    if (large) {
        put_number(out, ZIP_END_64, 4);
        put_number(out, 44, 8); /* bytes that follow */
        put_number(out, VERSION_64, 2);
        put_number(out, VERSION_64, 2);
        put_number(out, 0, 8); /* volumes */
        put_number(out, count, 8);
        put_number(out, count, 8);
        put_number(out, size, 8);
        put_number(out, directory, 8);
        put_number(out, ZIP_LOCATOR_64, 4);
        put_number(out, 0, 4);
        put_number(out, directory + size, 8);
        put_number(out, 1, 4);
    }
    put_number(out, ZIP_END, 4);
    put_number(out, 0, 4); /* volumes */
    put_number(out, large ? UINT16_MAX : count, 2);
    put_number(out, large ? UINT16_MAX : count, 2);
    put_number(out, large ? UINT32_MAX : size, 4);
    put_number(out, large ? UINT32_MAX : directory, 4);
    put_number(out, 0, 2); /* no comment */
}

static rlx_status end(struct weight_writer *w)
{
    uint64_t directory = w->file.size;
    struct text out;

    text_init(&out, w->mem);
    for (size_t i = 0; i < w->count; i++)
        put_central(&out, &w->tensor[i], &w->row[i]);
    put_end(&out, w->count, directory, out.len);
    rlx_status s = writer_add(w, &out);
    text_free(&out);
    return s;
}

const struct weight_format npz_format = {.kind = RLX_FILE_npz,
                                         .check = check,
                                         .begin = begin,
                                         .pass = pass,
                                         .before = before,
                                         .after = after,
                                         .end = end};
