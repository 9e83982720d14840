/* artefact_write.c: the container of artefacts, written front to back.
 *
 *     header (64 bytes)   section   section   ...   table
 *
 * Every section begins at a multiple of 64. The header is written last, over zeros: it knows where
 * the table is, and a file without one is not an artefact. */
#include <string.h>

#include "base/map.h"
#include "compile/cache/artefact.h"

uint64_t artefact_checksum(const void *data, size_t size)
{
    static const uint64_t key[2] = {UINT64_C(0x61727465), UINT64_C(0x66616374)};

    return hash_bytes_keyed(key, size ? data : "", size);
}

static void store(uint8_t *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(v >> (8 * i));
}

void put_u32(struct text *out, uint32_t v)
{
    uint8_t b[4];

    store(b, v, 4);
    text_add(out, (rlx_str){(const char *)b, sizeof b});
}

void put_u64(struct text *out, uint64_t v)
{
    uint8_t b[8];

    store(b, v, 8);
    text_add(out, (rlx_str){(const char *)b, sizeof b});
}

void put_str(struct text *out, rlx_str s)
{
    put_u32(out, (uint32_t)s.len);
    text_add(out, s);
}

/* ---- sections ---- */

static rlx_status align(struct artefact_writer *w, struct diag *d)
{
    static const uint8_t zeros[ARTEFACT_ALIGN];

    return file_add(&w->file, zeros, (size_t)(-w->file.size % ARTEFACT_ALIGN), d);
}

static rlx_status add_row(struct artefact_writer *w, const struct artefact_section *row,
                          struct diag *d)
{
    if (!vec_room(w->mem, &w->section))
        return diag_no_memory(d, sizeof *row);
    w->section.at[w->section.len++] = *row;
    return RLX_OK;
}

rlx_status artefact_begin(struct artefact_writer *w, const char *path, enum file_access access,
                          const rlx_allocator *mem, struct diag *d)
{
    static const uint8_t zeros[ARTEFACT_HEADER];

    memset(w, 0, sizeof *w);
    w->mem = mem;
    TRY(file_begin(&w->file, path, access, d));
    return file_add(&w->file, zeros, sizeof zeros, d);
}

rlx_status artefact_add(struct artefact_writer *w, enum artefact_kind kind, uint32_t number,
                        const struct text *bytes, struct diag *d)
{
    if (bytes->failed)
        return diag_no_memory(d, bytes->len);
    TRY(align(w, d));
    struct artefact_section row = {kind, number, w->file.size, bytes->len,
                                   artefact_checksum(bytes->at, bytes->len)};
    TRY(add_row(w, &row, d));
    return file_add(&w->file, bytes->at, bytes->len, d);
}

rlx_status artefact_begin_pieces(struct artefact_writer *w, enum artefact_kind kind, struct diag *d)
{
    TRY(align(w, d));
    struct artefact_section row = {.kind = kind, .offset = w->file.size};
    return add_row(w, &row, d);
}

rlx_status artefact_add_piece(struct artefact_writer *w, const void *data, size_t size,
                              uint64_t *offset, struct diag *d)
{
    struct artefact_section *row = &w->section.at[w->section.len - 1];

    TRY(align(w, d));
    *offset = w->file.size;
    TRY(file_add(&w->file, data, size, d));
    row->size = w->file.size - row->offset;
    return RLX_OK;
}

/* ---- the end ---- */

static void put_table(const struct artefact_writer *w, struct text *out)
{
    for (size_t i = 0; i < w->section.len; i++) {
        const struct artefact_section *s = &w->section.at[i];
        put_u32(out, s->kind);
        put_u32(out, s->number);
        put_u64(out, s->offset);
        put_u64(out, s->size);
        put_u64(out, s->checksum);
    }
}

static void make_header(const struct artefact_writer *w, uint64_t table_offset,
                        const struct text *table, uint8_t header[ARTEFACT_HEADER])
{
    memset(header, 0, ARTEFACT_HEADER);
    memcpy(header, ARTEFACT_MAGIC, 8);
    store(header + 8, ARTEFACT_FORMAT, 4);
    store(header + 12, RLX_VERSION, 4);
    store(header + 16, w->file.size, 8);
    store(header + 24, table_offset, 8);
    store(header + 32, w->section.len, 4);
    store(header + 40, artefact_checksum(table->at, table->len), 8);
    store(header + 56, artefact_checksum(header, 56), 8);
}

rlx_status artefact_commit(struct artefact_writer *w, struct diag *d)
{
    uint8_t header[ARTEFACT_HEADER];
    struct text table;
    rlx_status s;

    TRY(align(w, d));
    uint64_t at = w->file.size;
    text_init(&table, w->mem);
    put_table(w, &table);
    s = table.failed ? diag_no_memory(d, table.len) : file_add(&w->file, table.at, table.len, d);
    make_header(w, at, &table, header);
    text_free(&table);
    TRY(s);
    TRY(file_patch(&w->file, 0, header, sizeof header, d));
    return file_commit(&w->file, d);
}

void artefact_writer_free(struct artefact_writer *w)
{
    file_abandon(&w->file);
    vec_free(w->mem, &w->section);
}
