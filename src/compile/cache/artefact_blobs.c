/* artefact_blobs.c: the bytes of constants, beside the texts that name them.
 *
 *     %c = const f32[1000,8] npy "3"        number 3 of the constant index
 *
 * Equal constants of several graphs are one blob. Small ones stay in the text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "compile/cache/artefact.h"
#include "ir/text/text.h"

enum { SMALL = 64 }; /* bytes */

/* ---- writing ---- */

void blobs_init(struct blob_writer *w, const rlx_allocator *mem)
{
    *w = (struct blob_writer){.mem = mem};
    map_init(&w->map, mem);
}

void blobs_free(struct blob_writer *w)
{
    vec_free(w->mem, &w->node);
    map_free(&w->map);
}

static bool same_constant(const void *owner, uint32_t value, const void *key)
{
    const struct blob_writer *w = owner;
    const struct ir_node *a = w->node.at[value], *b = key;

    return type_same(&a->type, &b->type) && attr_same(RLX_OP_const, &a->attr, &b->attr);
}

static bool place_blob(void *user, const struct ir_node *n, char name[32])
{
    struct blob_writer *w = user;
    const struct ir_blob *data = &n->attr.const_.data;
    uint32_t number;

    if (data->len <= SMALL)
        return false;
    uint64_t hash = hash_bytes(data->ptr, data->len);
    if (!map_find(&w->map, hash, same_constant, w, n, &number)) {
        number = (uint32_t)w->node.len;
        if (!vec_room(w->mem, &w->node) || !map_add(&w->map, hash, number)) {
            w->no_memory = true;
            return false;
        }
        w->node.at[w->node.len++] = n;
    }
    snprintf(name, 32, "%" PRIu32, number);
    return true;
}

rlx_status blobs_print(struct blob_writer *w, const struct ir_module *m, struct text *out,
                       struct diag *d)
{
    struct text_print_options o = {.elsewhere = place_blob, .user = w};

    TRY(ir_print(m, &o, out, d));
    return w->no_memory ? diag_no_memory(d, sizeof(struct ir_node *)) : RLX_OK;
}

rlx_status blobs_write(struct blob_writer *w, struct artefact_writer *to, struct diag *d)
{
    struct text index;
    rlx_status s = RLX_OK;

    text_init(&index, w->mem);
    put_u32(&index, (uint32_t)w->node.len);
    s = artefact_begin_pieces(to, SECTION_BLOBS, d);
    for (size_t i = 0; i < w->node.len && s == RLX_OK; i++) {
        const struct ir_type *t = &w->node.at[i]->type;
        const struct ir_blob *data = &w->node.at[i]->attr.const_.data;
        uint64_t offset = 0;
        s = artefact_add_piece(to, data->ptr, data->len, &offset, d);
        put_u64(&index, offset);
        put_u64(&index, data->len);
        put_u64(&index, artefact_checksum(data->ptr, data->len));
        put_u32(&index, (uint32_t)t->dtype);
        put_u32(&index, (uint32_t)t->rank);
        for (int32_t k = 0; k < t->rank; k++)
            put_u64(&index, (uint64_t)t->dim[k]);
    }
    if (s == RLX_OK)
        s = artefact_add(to, SECTION_BLOB_INDEX, 0, &index, d);
    text_free(&index);
    return s;
}

/* ---- reading ---- */

static void get_blob(struct reader *r, struct blob *b)
{
    uint64_t bytes = 0;

    b->piece.offset = get_u64(r);
    b->piece.size = get_u64(r);
    b->piece.checksum = get_u64(r);
    uint32_t dtype = get_u32(r), rank = get_u32(r);
    if (dtype >= RLX_DTYPE_count || rank > RLX_MAX_RANK) {
        reader_fail(r, "holds a type that does not exist");
        return;
    }
    b->type = (struct ir_type){.dtype = (rlx_dtype)dtype, .rank = (int32_t)rank};
    for (uint32_t i = 0; i < rank; i++)
        b->type.dim[i] = (ir_dim)get_u64(r);
    if (!type_bytes(&b->type, &bytes) || bytes != b->piece.size)
        reader_fail(r, "holds a type that takes another number of bytes");
}

rlx_status blobs_read(struct blobs *b, const struct artefact_file *a, struct arena *arena,
                      struct diag *d)
{
    enum { LEAST = 32 }; /* bytes a row takes */
    struct reader r;

    *b = (struct blobs){.file = a};
    TRY(artefact_need(a, SECTION_BLOB_INDEX, 0, &r, d));
    size_t count = get_count(&r, LEAST);
    b->at = arena_array(arena, struct blob, count);
    if (!b->at)
        return diag_no_memory(d, count * sizeof *b->at);
    for (size_t i = 0; i < count; i++)
        get_blob(&r, &b->at[i]);
    TRY(reader_end(&r, artefact_kind_name(SECTION_BLOB_INDEX), 0, d));
    b->count = count;
    TRY(artefact_check_pieces(a, SECTION_BLOBS, &b->at[0].piece, count, sizeof *b->at, d));
    for (size_t i = 0; i < count; i++) /* once: several graphs may have one blob */
        TRY(artefact_check_piece(a->file.data, &b->at[i].piece, a->check_sums, "constants", d));
    return RLX_OK;
}

struct finder {
    const struct blobs *blobs;
    bool copy;
};

/* What the parser takes for a file's name is a number of the index. */
static rlx_status find_blob(void *user, rlx_str name, struct arena *arena, struct ir_type *type,
                            const void **data, struct diag *d)
{
    const struct finder *f = user;
    int64_t i;

    if (!str_to_i64(name, &i) || i < 0 || (uint64_t)i >= f->blobs->count)
        return diag_fail(d, RLX_ERROR_FORMAT, "there is no constant \"%.*s\" of %zu", STR_ARG(name),
                         f->blobs->count);
    const struct blob *b = &f->blobs->at[i];
    const uint8_t *at = f->blobs->file->file.data + b->piece.offset;
    for (uint64_t k = 0; b->type.dtype == RLX_DTYPE_bool && k < b->piece.size; k++)
        if (at[k] > 1)
            return diag_fail(d, RLX_ERROR_FORMAT, "constant %" PRId64 " holds a bool of %d", i,
                             at[k]);
    if (f->copy) {
        void *own = arena_alloc(arena, (size_t)b->piece.size, 16);
        if (!own)
            return diag_no_memory(d, (size_t)b->piece.size);
        memcpy(own, at, (size_t)b->piece.size);
        at = own;
    }
    *type = b->type;
    *data = at;
    return RLX_OK;
}

rlx_status blobs_parse(const struct blobs *b, struct reader text, bool copy, rlx_context *ctx,
                       struct ir_module **out, struct diag *d)
{
    struct finder f = {b, copy};
    struct text_parse_options o = {find_blob, &f, &ctx->customs};
    struct ir_module *m;

    TRY(ir_parse((rlx_str){(const char *)text.at, text.left}, &o, &ctx->mem, &m, d));
    rlx_status s = ir_verify(m, d);
    if (s == RLX_OK)
        s = ir_check_unfolded(m, d);
    if (s != RLX_OK) {
        ir_module_destroy(m);
        return s;
    }
    *out = m;
    return RLX_OK;
}
