/* wire.c: see wire.h. Every message is read twice: to count its lists, then to fill them.
 */
#include "import/wire.h"

#include <stdio.h>
#include <string.h>

struct cursor {
    const uint8_t *begin, *at, *end; /* begin: of the file, for messages */
    const struct wire_message *m;
    struct arena *arena;
    struct diag *diag;
    int depth;
};

struct field {
    uint32_t number;
    uint32_t type;
    uint64_t value; /* of a varint or fixed field */
    rlx_str bytes;  /* of the others */
};

static rlx_status bad(const struct cursor *c, const char *what)
{
    return diag_fail(c->diag, RLX_ERROR_FORMAT, "%s: byte %zu: %s", c->m->name,
                     (size_t)(c->at - c->begin), what);
}

static rlx_status take_varint(struct cursor *c, uint64_t *out)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (c->at == c->end)
            return bad(c, "it ends within a number");
        uint8_t byte = *c->at++;
        if (shift == 63 && byte > 1)
            return bad(c, "a number of more than 64 bits");
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = v;
            return RLX_OK;
        }
    }
    return bad(c, "a number of more than ten bytes");
}

static rlx_status take_fixed(struct cursor *c, size_t size, uint64_t *out)
{
    if ((size_t)(c->end - c->at) < size)
        return bad(c, "it ends within a number");
    *out = 0;
    memcpy(out, c->at, size); /* little-endian, as we are */
    c->at += size;
    return RLX_OK;
}

static rlx_status take_field(struct cursor *c, struct field *f)
{
    uint64_t key, len;

    TRY(take_varint(c, &key));
    if (key >> 3 == 0 || key >> 3 > (1u << 29) - 1)
        return bad(c, "a field with an impossible number");
    *f = (struct field){.number = (uint32_t)(key >> 3), .type = (uint32_t)(key & 7)};
    switch (f->type) {
    case 0: return take_varint(c, &f->value);
    case 1: return take_fixed(c, 8, &f->value);
    case 5: return take_fixed(c, 4, &f->value);
    case 2: break;
    default: return bad(c, "a field of an unknown type");
    }
    TRY(take_varint(c, &len));
    if (len > (uint64_t)(c->end - c->at))
        return bad(c, "a field is longer than what holds it");
    f->bytes = (rlx_str){(const char *)c->at, (size_t)len};
    c->at += len;
    return RLX_OK;
}

/* ---- lists ---- */

struct list {
    void *at;
    size_t count;
};

static size_t element_size(const struct wire_row *r)
{
    switch (r->kind) {
    case WIRE_I64S: return sizeof(int64_t);
    case WIRE_F32S: return sizeof(float);
    case WIRE_F64S: return sizeof(double);
    case WIRE_STRS: return sizeof(rlx_str);
    case WIRE_MESSAGES: return r->sub->size;
    default: return 0;
    }
}

/* The numbers in a packed field: varints end at bytes below 0x80. */
static rlx_status count_packed(struct cursor *c, const struct wire_row *r, rlx_str bytes,
                               size_t *count)
{
    size_t size = element_size(r), n = 0;

    if (r->kind != WIRE_I64S) {
        if (bytes.len % size)
            return bad(c, "packed numbers that are cut off");
        *count = bytes.len / size;
        return RLX_OK;
    }
    for (size_t i = 0; i < bytes.len; i++)
        n += !((uint8_t)bytes.ptr[i] & 0x80);
    *count = n;
    return RLX_OK;
}

static bool type_fits(const struct wire_row *r, uint32_t type)
{
    switch (r->kind) {
    case WIRE_I64: return type == 0;
    case WIRE_F32: return type == 5;
    case WIRE_I64S: return type == 0 || type == 2;
    case WIRE_F32S: return type == 5 || type == 2;
    case WIRE_F64S: return type == 1 || type == 2;
    case WIRE_SEEN: return true;
    default: return type == 2;
    }
}

static rlx_status check_type(struct cursor *c, const struct wire_row *r, const struct field *f)
{
    char what[64];

    if (type_fits(r, f->type))
        return RLX_OK;
    snprintf(what, sizeof what, "field %u has the wrong type", f->number);
    return bad(c, what);
}

/* How long each list will be: room[i] of row i. */
static rlx_status count_lists(struct cursor c, size_t *room)
{
    struct field f;

    while (c.at < c.end) {
        TRY(take_field(&c, &f));
        for (size_t i = 0; i < c.m->rows; i++) {
            const struct wire_row *r = &c.m->row[i];
            size_t n = 1;
            if (r->number != f.number)
                continue;
            TRY(check_type(&c, r, &f));
            if (!element_size(r))
                continue;
            if (f.type == 2 && r->kind != WIRE_STRS && r->kind != WIRE_MESSAGES)
                TRY(count_packed(&c, r, f.bytes, &n));
            room[i] += n;
        }
    }
    return RLX_OK;
}

static rlx_status make_lists(struct cursor *c, const size_t *room, void *out)
{
    for (size_t i = 0; i < c->m->rows; i++) {
        const struct wire_row *r = &c->m->row[i];
        struct list *l = (struct list *)(void *)((char *)out + r->offset);
        size_t size = element_size(r);
        if (!size || !room[i])
            continue;
        l->at = arena_alloc_array(c->arena, room[i], size, 16);
        if (!l->at)
            return diag_no_memory(c->diag, room[i]);
    }
    return RLX_OK;
}

/* ---- values ---- */

static rlx_status read_message(struct cursor *c, void *out);

/* A mapped file may change between counting and filling; then there is no room. */
static rlx_status need_room(struct cursor *c, const struct list *l, size_t more, size_t room)
{
    return more <= room - l->count ? RLX_OK : bad(c, "the file changed while it was read");
}

static rlx_status fill_packed(struct cursor *c, const struct wire_row *r, rlx_str bytes,
                              struct list *l, size_t room)
{
    size_t size = element_size(r);

    if (r->kind != WIRE_I64S)
        TRY(need_room(c, l, bytes.len / size, room));
    if (r->kind != WIRE_I64S) {
        if (bytes.len)
            memcpy((char *)l->at + l->count * size, bytes.ptr, bytes.len);
        l->count += bytes.len / size;
        return RLX_OK;
    }
    struct cursor in = *c;
    in.at = (const uint8_t *)bytes.ptr;
    in.end = in.at + bytes.len;
    while (in.at < in.end) {
        uint64_t v;
        TRY(need_room(c, l, 1, room));
        TRY(take_varint(&in, &v));
        ((int64_t *)l->at)[l->count++] = (int64_t)v;
    }
    return RLX_OK;
}

static rlx_status read_sub(struct cursor *c, const struct wire_message *m, rlx_str bytes, void *out)
{
    struct cursor in = *c;

    if (c->depth >= WIRE_MAX_DEPTH)
        return diag_fail(c->diag, RLX_ERROR_LIMIT, "%s: byte %zu: messages nest deeper than %d",
                         m->name, (size_t)(c->at - c->begin), WIRE_MAX_DEPTH);
    in.at = (const uint8_t *)bytes.ptr;
    in.end = in.at + bytes.len;
    in.m = m;
    in.depth++;
    return read_message(&in, out);
}

static rlx_status fill_list(struct cursor *c, const struct wire_row *r, const struct field *f,
                            struct list *l, size_t room)
{
    if (f->type == 2 && r->kind != WIRE_MESSAGES && r->kind != WIRE_STRS)
        return fill_packed(c, r, f->bytes, l, room);
    TRY(need_room(c, l, 1, room));
    void *next = (char *)l->at + l->count * element_size(r);
    if (r->kind == WIRE_MESSAGES) {
        l->count++;
        return read_sub(c, r->sub, f->bytes, next);
    }
    if (r->kind == WIRE_STRS) {
        ((rlx_str *)l->at)[l->count++] = f->bytes;
        return RLX_OK;
    }
    memcpy(next, &f->value, element_size(r));
    l->count++;
    return RLX_OK;
}

static rlx_status fill(struct cursor *c, const struct wire_row *r, const struct field *f,
                       size_t room, void *out)
{
    void *to = (char *)out + r->offset;
    void *sub;

    switch (r->kind) {
    case WIRE_I64: memcpy(to, &f->value, sizeof f->value); return RLX_OK;
    case WIRE_F32: memcpy(to, &f->value, sizeof(float)); return RLX_OK;
    case WIRE_STR: memcpy(to, &f->bytes, sizeof f->bytes); return RLX_OK;
    case WIRE_SEEN: *(bool *)to = true; return RLX_OK;
    case WIRE_MESSAGE: break;
    default: return fill_list(c, r, f, to, room);
    }
    sub = arena_alloc(c->arena, r->sub->size, 16);
    if (!sub)
        return diag_no_memory(c->diag, r->sub->size);
    memcpy(to, &sub, sizeof sub);
    return read_sub(c, r->sub, f->bytes, sub);
}

static rlx_status read_message(struct cursor *c, void *out)
{
    size_t room[WIRE_MAX_ROWS] = {0};
    struct field f;

    if (c->m->rows > WIRE_MAX_ROWS)
        return diag_fail(c->diag, RLX_ERROR_INTERNAL, "%s has too many rows", c->m->name);
    TRY(count_lists(*c, room));
    TRY(make_lists(c, room, out));
    while (c->at < c->end) {
        TRY(take_field(c, &f));
        for (size_t i = 0; i < c->m->rows; i++)
            if (c->m->row[i].number == f.number)
                TRY(fill(c, &c->m->row[i], &f, room[i], out));
    }
    return RLX_OK;
}

rlx_status wire_read(const struct wire_message *m, rlx_str bytes, void *out, struct arena *arena,
                     struct diag *d)
{
    const uint8_t *at = (const uint8_t *)bytes.ptr;
    struct cursor c = {at, at, at + bytes.len, m, arena, d, 0};

    memset(out, 0, m->size);
    return read_message(&c, out);
}
