/* zip.c: the members of a zip archive.
 *
 *     local header, name, bytes     for each member, gaps allowed
 *     central directory             46 bytes, name, extra fields, comment each
 *     end of the 64-bit directory   only in large archives, followed by a locator
 *     end of central directory      22 bytes, comment
 *
 * The central directory is what counts; each local header must agree with it. */
#include "import/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "import/bytes.h"

enum {
    LOCAL_BYTES = 30,
    CENTRAL_BYTES = 46,
    END_BYTES = 22,
    END_64_BYTES = 56,
    LOCATOR_BYTES = 20,
    MOST_COMMENT = 65535,
    ENCRYPTED = 1, /* flags */
    SIZES_AFTER = 8,
};

struct zip {
    const uint8_t *bytes;
    size_t size;
    uint64_t directory, directory_size, count;
    struct diag *d;
};

static rlx_status bad(const struct zip *z, uint64_t at, const char *what)
{
    return diag_fail(z->d, RLX_ERROR_FORMAT, "zip: byte %" PRIu64 ": %s", at, what);
}

/* A number of a header that is known to be complete. */
static uint64_t number(const uint8_t *header, size_t at, size_t width)
{
    struct bytes b = {header, at + width, at};
    uint64_t v = 0;

    bytes_number(&b, width, &v);
    return v;
}

/* ---- where the directory is ---- */

static bool find_end(const struct zip *z, size_t *out)
{
    if (z->size < END_BYTES)
        return false;
    size_t last = z->size - END_BYTES, first = last > MOST_COMMENT ? last - MOST_COMMENT : 0;
    for (size_t at = last + 1; at-- > first;) {
        if (number(z->bytes + at, 0, 4) == ZIP_END && number(z->bytes + at, 20, 2) == last - at) {
            *out = at;
            return true;
        }
    }
    return false;
}

/* The numbers of a large archive, where the short ones have no room. */
static rlx_status find_end_64(struct zip *z, size_t end, uint64_t *before)
{
    if (end < LOCATOR_BYTES + END_64_BYTES ||
        number(z->bytes + end - LOCATOR_BYTES, 0, 4) != ZIP_LOCATOR_64)
        return bad(z, end, "a large archive without its 64-bit directory");
    uint64_t at = number(z->bytes + end - LOCATOR_BYTES, 8, 8);
    if (at > end - LOCATOR_BYTES - END_64_BYTES)
        return bad(z, end, "the 64-bit directory lies outside of the file");
    const uint8_t *header = z->bytes + at;
    if (number(header, 0, 4) != ZIP_END_64 || number(header, 24, 8) != number(header, 32, 8))
        return bad(z, at, "the 64-bit directory is damaged");
    z->count = number(header, 32, 8);
    z->directory_size = number(header, 40, 8);
    z->directory = number(header, 48, 8);
    *before = at;
    return RLX_OK;
}

static rlx_status find_directory(struct zip *z)
{
    size_t end = 0;

    if (!find_end(z, &end))
        return diag_fail(z->d, RLX_ERROR_FORMAT, "zip: the file has no directory at its end");
    const uint8_t *header = z->bytes + end;
    uint64_t before = end;
    z->count = number(header, 10, 2);
    z->directory_size = number(header, 12, 4);
    z->directory = number(header, 16, 4);
    if (number(header, 4, 2) || number(header, 6, 2) || number(header, 8, 2) != z->count)
        return bad(z, end, "archives in several volumes are not supported");
    if (z->count == UINT16_MAX || z->directory_size == UINT32_MAX || z->directory == UINT32_MAX)
        TRY(find_end_64(z, end, &before));
    if (z->directory > before || z->directory_size > before - z->directory)
        return bad(z, end, "the directory lies outside of the file");
    if (z->count > z->directory_size / CENTRAL_BYTES)
        return bad(z, end, "more members than the directory can hold");
    return RLX_OK;
}

/* ---- members ---- */

static bool is_good_name(rlx_str name)
{
    if (name.len == 0 || name.ptr[0] == '/' || !str_is_utf8(name) || memchr(name.ptr, 0, name.len))
        return false;
    for (size_t i = 0; i + 1 < name.len; i++)
        if (name.ptr[i] == '.' && name.ptr[i + 1] == '.')
            return false;
    return true;
}

/* What of the sizes and the offset is in the extra field instead, because it is large; false: the
 * field is damaged. */
static bool take_large(const uint8_t *extra, size_t len, uint64_t *value[], size_t count)
{
    struct bytes in = {extra, len, 0};
    uint16_t id = 0, size = 0;
    size_t wanted = 0;

    for (size_t i = 0; i < count; i++)
        wanted += *value[i] == UINT32_MAX;
    while (wanted && bytes_u16(&in, &id) && bytes_u16(&in, &size)) {
        if (size > bytes_left(&in))
            return false;
        if (id != ZIP_LARGE) {
            in.pos += size;
            continue;
        }
        struct bytes field = {in.at + in.pos, size, 0};
        for (size_t i = 0; i < count; i++)
            if (*value[i] == UINT32_MAX && !bytes_number(&field, 8, value[i]))
                return false;
        return true;
    }
    return wanted == 0;
}

/* One entry of the directory at in->pos; *local: where its local header is. */
static rlx_status get_central(const struct zip *z, struct bytes *in, struct arena *arena,
                              struct zip_member *m, uint64_t *local)
{
    uint64_t at = z->directory + in->pos;

    if (bytes_left(in) < CENTRAL_BYTES)
        return bad(z, at, "the directory ends here");
    const uint8_t *header = in->at + in->pos;
    size_t name = (size_t)number(header, 28, 2), extra = (size_t)number(header, 30, 2);
    size_t comment = (size_t)number(header, 32, 2);
    uint64_t flags = number(header, 8, 2), method = number(header, 10, 2);
    if (number(header, 0, 4) != ZIP_CENTRAL)
        return bad(z, at, "an entry of the directory is damaged");
    if (name + extra + comment > bytes_left(in) - CENTRAL_BYTES)
        return bad(z, at, "an entry is longer than the directory");
    m->name = arena_str(arena, (rlx_str){(const char *)header + CENTRAL_BYTES, name});
    if (!m->name.ptr)
        return diag_no_memory(z->d, name);
    if (!is_good_name(m->name))
        return bad(z, at, "a member's name is empty, absolute, not UTF-8, or holds \"..\"");
    if (flags & ENCRYPTED)
        return bad(z, at, "a member is encrypted");
    if (method != ZIP_STORED && method != ZIP_DEFLATED)
        return bad(z, at, "a member is neither stored nor deflated");
    m->deflated = method == ZIP_DEFLATED;
    m->crc = (uint32_t)number(header, 16, 4);
    m->packed = number(header, 20, 4);
    m->size = number(header, 24, 4);
    *local = number(header, 42, 4);
    if (!take_large(header + CENTRAL_BYTES + name, extra,
                    (uint64_t *[]){&m->size, &m->packed, local}, 3))
        return bad(z, at, "the sizes of a large member are damaged");
    in->pos += CENTRAL_BYTES + name + extra + comment;
    return RLX_OK;
}

static rlx_status check_local(const struct zip *z, struct zip_member *m, uint64_t at)
{
    if (at > z->directory || z->directory - at < LOCAL_BYTES)
        return bad(z, at, "a member lies outside of the file");
    const uint8_t *header = z->bytes + at;
    uint64_t room = z->directory - at - LOCAL_BYTES, flags = number(header, 6, 2);
    size_t name = (size_t)number(header, 26, 2), extra = (size_t)number(header, 28, 2);
    uint64_t crc = number(header, 14, 4), packed = number(header, 18, 4);
    uint64_t size = number(header, 22, 4), method = number(header, 8, 2);
    if (number(header, 0, 4) != ZIP_LOCAL || name + extra > room)
        return bad(z, at, "the header of a member is damaged");
    if (!take_large(header + LOCAL_BYTES + name, extra, (uint64_t *[]){&size, &packed}, 2))
        return bad(z, at, "the sizes of a large member are damaged");
    bool after = (flags & SIZES_AFTER) && !crc && !packed && !size;
    bool same = crc == m->crc && packed == m->packed && size == m->size;
    if ((flags & ENCRYPTED) || (method == ZIP_DEFLATED) != m->deflated ||
        !str_eq((rlx_str){(const char *)header + LOCAL_BYTES, name}, m->name) || (!same && !after))
        return bad(z, at, "the header of a member differs from its entry in the directory");
    if (m->packed > room - name - extra)
        return bad(z, at, "a member lies outside of the file");
    if (!m->deflated && m->packed != m->size)
        return bad(z, at, "a stored member has two sizes");
    m->at = header + LOCAL_BYTES + name + extra;
    m->begins = at;
    m->ends = at + LOCAL_BYTES + name + extra + m->packed;
    return RLX_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct zip_member *x = *(const struct zip_member *const *)a;
    const struct zip_member *y = *(const struct zip_member *const *)b;

    return (x->begins > y->begins) - (x->begins < y->begins);
}

static rlx_status check_overlaps(const struct zip *z, const struct zip_member *member, size_t count,
                                 struct arena *arena)
{
    const struct zip_member **sorted = arena_array(arena, const struct zip_member *, count);

    if (!sorted)
        return diag_no_memory(z->d, count * sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &member[i];
    qsort(sorted, count, sizeof *sorted, by_place);
    for (size_t i = 1; i < count; i++)
        if (sorted[i]->begins < sorted[i - 1]->ends)
            return diag_fail(z->d, RLX_ERROR_FORMAT, "zip: members \"%.*s\" and \"%.*s\" overlap",
                             STR_ARG(sorted[i - 1]->name), STR_ARG(sorted[i]->name));
    return RLX_OK;
}

rlx_status zip_read(const uint8_t *bytes, size_t size, struct arena *arena,
                    struct zip_member **member, size_t *count, struct diag *d)
{
    struct zip z = {.bytes = bytes, .size = size, .d = d};

    TRY(find_directory(&z));
    rlx_str copy =
        arena_str(arena, (rlx_str){(const char *)bytes + z.directory, (size_t)z.directory_size});
    struct zip_member *list = arena_array(arena, struct zip_member, (size_t)z.count);
    if (!copy.ptr || !list)
        return diag_no_memory(d, (size_t)z.directory_size);
    struct bytes in = {(const uint8_t *)copy.ptr, copy.len, 0};
    for (size_t i = 0; i < z.count; i++) {
        uint64_t local = 0;
        TRY(get_central(&z, &in, arena, &list[i], &local));
        TRY(check_local(&z, &list[i], local));
    }
    TRY(check_overlaps(&z, list, (size_t)z.count, arena));
    *member = list;
    *count = (size_t)z.count;
    return RLX_OK;
}
