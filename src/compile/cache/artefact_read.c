/* artefact_read.c: the container of artefacts, read as if a stranger had written it.
 *
 * Every offset and length is compared with the file's size before it is used. Sections stand one
 * after the other, in the order of the table; what lies between them is zeros, so that no byte of
 * a file means nothing. Checksums find damage; that all of this holds without them is tested. */
#include <inttypes.h>
#include <string.h>

#include "compile/cache/artefact.h"

/* ---- bytes ---- */

static uint64_t load(const uint8_t *at, int bytes)
{
    uint64_t v = 0;

    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)at[i] << (8 * i);
    return v;
}

void reader_fail(struct reader *r, const char *why)
{
    if (!r->why)
        r->why = why;
    r->left = 0;
}

static const uint8_t *take(struct reader *r, size_t bytes)
{
    const uint8_t *at = r->at;

    if (bytes > r->left) {
        reader_fail(r, "ends too early");
        return NULL;
    }
    r->at += bytes;
    r->left -= bytes;
    return at;
}

uint32_t get_u32(struct reader *r)
{
    const uint8_t *at = take(r, 4);

    return at ? (uint32_t)load(at, 4) : 0;
}

uint64_t get_u64(struct reader *r)
{
    const uint8_t *at = take(r, 8);

    return at ? load(at, 8) : 0;
}

rlx_str get_str(struct reader *r)
{
    size_t len = get_u32(r);
    const uint8_t *at = take(r, len);

    if (!at)
        return (rlx_str){"", 0};
    if (memchr(at, 0, len))
        reader_fail(r, "holds a name with a NUL byte");
    return (rlx_str){(const char *)at, len};
}

size_t get_count(struct reader *r, size_t least_bytes)
{
    size_t count = get_u32(r);

    if (count <= r->left / least_bytes)
        return count;
    reader_fail(r, "counts more than it has room for");
    return 0;
}

rlx_status reader_end(const struct reader *r, const char *what, uint32_t number, struct diag *d)
{
    if (r->why)
        return diag_fail(d, RLX_ERROR_FORMAT, "section \"%s\" %u %s", what, number, r->why);
    if (r->left)
        return diag_fail(d, RLX_ERROR_FORMAT, "section \"%s\" %u has %zu bytes too many", what,
                         number, r->left);
    return RLX_OK;
}

/* ---- header and table ---- */

const char *artefact_kind_name(uint32_t kind)
{
    static const char *const name[SECTION_END] = {
        [SECTION_TARGET] = "target",
        [SECTION_MODEL] = "model",
        [SECTION_GRAPH] = "graph",
        [SECTION_PROGRAM] = "program",
        [SECTION_OPTIMISED] = "optimised graph",
        [SECTION_BLOB_INDEX] = "constant index",
        [SECTION_BLOBS] = "constants",
        [SECTION_WEIGHT_INDEX] = "weight index",
        [SECTION_WEIGHTS] = "weights",
        [SECTION_KEY] = "key",
    };
    return kind < SECTION_END ? name[kind] : NULL;
}

bool artefact_has_magic(const struct file *f)
{
    return f->size >= 8 && memcmp(f->data, ARTEFACT_MAGIC, 8) == 0;
}

enum { MOST_SECTIONS = 4096 };

struct header {
    uint64_t table_offset, table_checksum;
    uint32_t count;
};

static rlx_status read_header(struct artefact_file *a, struct header *h, struct diag *d)
{
    const struct file *f = &a->file;
    const uint8_t *at = f->data;

    if (!artefact_has_magic(f))
        return diag_fail(d, RLX_ERROR_FORMAT, "the file is not an rlx artefact");
    if (f->size < ARTEFACT_HEADER)
        return diag_fail(d, RLX_ERROR_FORMAT, "the file ends within the header, at %zu", f->size);
    a->format = (uint32_t)load(at + 8, 4);
    a->library = (uint32_t)load(at + 12, 4);
    if (a->format != ARTEFACT_FORMAT)
        return diag_fail(d, RLX_ERROR_VERSION, "the artefact has format %u; this reads format %d",
                         a->format, ARTEFACT_FORMAT);
    if (a->check_sums && load(at + 56, 8) != artefact_checksum(at, 56))
        return diag_fail(d, RLX_ERROR_FORMAT, "the header is damaged: its checksum differs");
    if (a->library > RLX_VERSION)
        return diag_fail(d, RLX_ERROR_VERSION,
                         "the artefact was written by version %u, this is %d: it may hold ops that "
                         "are not known here",
                         a->library, RLX_VERSION);
    if (load(at + 16, 8) != f->size)
        return diag_fail(d, RLX_ERROR_FORMAT, "the file has %zu bytes, its header says %" PRIu64,
                         f->size, load(at + 16, 8));
    *h = (struct header){load(at + 24, 8), load(at + 40, 8), (uint32_t)load(at + 32, 4)};
    if (load(at + 36, 4) || load(at + 48, 8))
        return diag_fail(d, RLX_ERROR_FORMAT, "the header has bytes set that mean nothing");
    if (h->count > MOST_SECTIONS)
        return diag_fail(d, RLX_ERROR_LIMIT, "the artefact has %u sections; %d are read", h->count,
                         MOST_SECTIONS);
    if (h->table_offset > f->size || h->table_offset % ARTEFACT_ALIGN ||
        (f->size - h->table_offset) != (uint64_t)h->count * ARTEFACT_ROW)
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "a table of %u sections at %" PRIu64 " does not fill the file's end",
                         h->count, h->table_offset);
    if (a->check_sums &&
        h->table_checksum != artefact_checksum(at + h->table_offset, f->size - h->table_offset))
        return diag_fail(d, RLX_ERROR_FORMAT, "the table is damaged: its checksum differs");
    return RLX_OK;
}

static rlx_status check_zeros(const struct file *f, uint64_t from, uint64_t to, struct diag *d)
{
    for (uint64_t i = from; i < to; i++)
        if (f->data[i])
            return diag_fail(d, RLX_ERROR_FORMAT, "byte %" PRIu64 " lies between sections", i);
    return RLX_OK;
}

/* Sections of pieces are checked piece by piece, when somebody wants them. */
static bool is_pieces(uint32_t kind)
{
    return kind == SECTION_BLOBS || kind == SECTION_WEIGHTS;
}

static rlx_status check_section(const struct artefact_file *a, const struct artefact_section *s,
                                uint64_t table, struct diag *d)
{
    const char *name = artefact_kind_name(s->kind);

    if (!name)
        return diag_fail(d, RLX_ERROR_FORMAT, "there is no kind %u of sections", s->kind);
    if (s->offset % ARTEFACT_ALIGN || s->offset > table || s->size > table - s->offset)
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "section \"%s\" %u: %" PRIu64 " bytes at %" PRIu64
                         " do not lie in front of the table",
                         name, s->number, s->size, s->offset);
    if (is_pieces(s->kind)
            ? s->checksum != 0
            : a->check_sums &&
                  s->checksum != artefact_checksum(a->file.data + s->offset, (size_t)s->size))
        return diag_fail(d, RLX_ERROR_FORMAT, "section \"%s\" %u is damaged: its checksum differs",
                         name, s->number);
    return RLX_OK;
}

static rlx_status read_table(struct artefact_file *a, const struct header *h, struct arena *arena,
                             struct diag *d)
{
    const uint8_t *at = a->file.data + h->table_offset;
    uint64_t end = ARTEFACT_HEADER;

    a->section = arena_array(arena, struct artefact_section, h->count);
    if (!a->section)
        return diag_no_memory(d, h->count * sizeof *a->section);
    for (uint32_t i = 0; i < h->count; i++, at += ARTEFACT_ROW) {
        struct artefact_section *s = &a->section[i];
        struct reader twice;
        *s = (struct artefact_section){(uint32_t)load(at, 4), (uint32_t)load(at + 4, 4),
                                       load(at + 8, 8), load(at + 16, 8), load(at + 24, 8)};
        TRY(check_section(a, s, h->table_offset, d));
        if (s->offset < end)
            return diag_fail(d, RLX_ERROR_FORMAT, "section \"%s\" %u overlaps the one before it",
                             artefact_kind_name(s->kind), s->number);
        if (artefact_find(a, s->kind, s->number, &twice))
            return diag_fail(d, RLX_ERROR_FORMAT, "section \"%s\" %u is there twice",
                             artefact_kind_name(s->kind), s->number);
        TRY(check_zeros(&a->file, end, s->offset, d));
        end = s->offset + s->size;
        a->section_count++;
    }
    return check_zeros(&a->file, end, h->table_offset, d);
}

rlx_status artefact_read(struct artefact_file *a, const struct file *f, bool check_sums,
                         struct arena *arena, struct diag *d)
{
    struct header h;

    *a = (struct artefact_file){.file = *f, .check_sums = check_sums};
    TRY(read_header(a, &h, d));
    return read_table(a, &h, arena, d);
}

static const struct artefact_section *find(const struct artefact_file *a, enum artefact_kind kind,
                                           uint32_t number)
{
    for (size_t i = 0; i < a->section_count; i++)
        if (a->section[i].kind == kind && a->section[i].number == number)
            return &a->section[i];
    return NULL;
}

bool artefact_find(const struct artefact_file *a, enum artefact_kind kind, uint32_t number,
                   struct reader *out)
{
    const struct artefact_section *s = find(a, kind, number);

    if (s)
        *out = (struct reader){a->file.data + s->offset, (size_t)s->size, NULL};
    return s != NULL;
}

rlx_status artefact_need(const struct artefact_file *a, enum artefact_kind kind, uint32_t number,
                         struct reader *out, struct diag *d)
{
    if (artefact_find(a, kind, number, out))
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_FORMAT, "the artefact has no section \"%s\" %u",
                     artefact_kind_name(kind), number);
}

/* ---- pieces ---- */

rlx_status artefact_check_pieces(const struct artefact_file *a, enum artefact_kind kind,
                                 const struct piece *piece, size_t count, size_t stride,
                                 struct diag *d)
{
    const struct artefact_section *s = find(a, kind, 0);
    uint64_t end = s ? s->offset : 0, limit = s ? s->offset + s->size : 0;

    for (size_t i = 0; i < count; i++) {
        const struct piece *p = (const void *)((const char *)piece + i * stride);
        if (p->offset < end || p->offset % ARTEFACT_ALIGN || p->offset > limit ||
            p->size > limit - p->offset)
            return diag_fail(d, RLX_ERROR_FORMAT,
                             "piece %zu of section \"%s\", %" PRIu64 " bytes at %" PRIu64
                             ", is not where it may be",
                             i, artefact_kind_name(kind), p->size, p->offset);
        TRY(check_zeros(&a->file, end, p->offset, d));
        end = p->offset + p->size;
    }
    return check_zeros(&a->file, end, limit, d);
}

rlx_status artefact_check_piece(const uint8_t *data, const struct piece *p, bool check_sums,
                                const char *what, struct diag *d)
{
    if (check_sums && p->checksum != artefact_checksum(data + p->offset, (size_t)p->size))
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "the %s at %" PRIu64 " are damaged: their checksum differs", what,
                         p->offset);
    return RLX_OK;
}
