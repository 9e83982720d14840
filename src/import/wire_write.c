/* wire_write.c: see wire_write.h. The length of a message comes before it, so each is measured
 * before it is written; measuring is the same walk without a sink. */
#include "import/wire_write.h"

#include <string.h>

struct out {
    const struct wire_sink *sink; /* NULL: bytes are only counted */
    uint64_t count;
    int depth;
    rlx_status status; /* the first failure; after it nothing happens */
    struct diag *diag;
};

static void put_bytes(struct out *o, const void *bytes, size_t count)
{
    o->count += count;
    if (o->sink && count && o->status == RLX_OK)
        o->status = o->sink->put(o->sink->user, bytes, count, o->diag);
}

static void put_varint(struct out *o, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;

    do {
        bytes[n] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
        n++;
    } while (v);
    put_bytes(o, bytes, n);
}

enum { TYPE_VARINT = 0, TYPE_FIXED_64 = 1, TYPE_BYTES = 2, TYPE_FIXED_32 = 5 };

static void put_key(struct out *o, const struct wire_row *r, uint32_t type)
{
    put_varint(o, (uint64_t)r->number << 3 | type);
}

/* ---- fields ---- */

static void put_rows(struct out *o, const struct wire_message *m, const void *in);

static void put_number(struct out *o, const struct wire_row *r, const void *at)
{
    int64_t v;

    memcpy(&v, at, sizeof v);
    put_key(o, r, TYPE_VARINT);
    put_varint(o, (uint64_t)v);
}

static void put_fixed(struct out *o, const struct wire_row *r, const void *at, size_t size)
{
    put_key(o, r, size == 8 ? TYPE_FIXED_64 : TYPE_FIXED_32);
    put_bytes(o, at, size); /* little-endian, as we are */
}

static void put_str(struct out *o, const struct wire_row *r, const void *at)
{
    rlx_str s;

    memcpy(&s, at, sizeof s);
    put_key(o, r, TYPE_BYTES);
    put_varint(o, s.len);
    put_bytes(o, s.ptr, s.len);
}

static void put_message(struct out *o, const struct wire_row *r, const void *at)
{
    struct out measure = {.depth = o->depth + 1};

    if (measure.depth > WIRE_MAX_DEPTH) {
        o->status = RLX_ERROR_LIMIT;
        return;
    }
    put_rows(&measure, r->sub, at);
    if (measure.status != RLX_OK) {
        o->status = measure.status;
        return;
    }
    put_key(o, r, TYPE_BYTES);
    put_varint(o, measure.count);
    if (!o->sink) {
        o->count += measure.count;
        return;
    }
    o->depth++;
    put_rows(o, r->sub, at);
    o->depth--;
}

struct list {
    const char *at;
    size_t count;
};

static void put_list(struct out *o, const struct wire_row *r, const void *field)
{
    struct list l;

    memcpy(&l, field, sizeof l);
    for (size_t i = 0; i < l.count && o->status == RLX_OK; i++) {
        switch (r->kind) {
        case WIRE_I64S: put_number(o, r, l.at + i * sizeof(int64_t)); break;
        case WIRE_F32S: put_fixed(o, r, l.at + i * sizeof(float), sizeof(float)); break;
        case WIRE_F64S: put_fixed(o, r, l.at + i * sizeof(double), sizeof(double)); break;
        case WIRE_STRS: put_str(o, r, l.at + i * sizeof(rlx_str)); break;
        default: put_message(o, r, l.at + i * r->sub->size); break;
        }
    }
}

/* Is there a field to write: by the row that says so, or by its own value? */
static bool is_there(const struct wire_message *m, const struct wire_row *r, const void *in)
{
    const char *at = (const char *)in + r->offset;
    rlx_str s;
    int64_t v;
    uint32_t bits;

    for (size_t i = 0; i < m->rows; i++)
        if (m->row[i].number == r->number && m->row[i].kind == WIRE_SEEN)
            return *(const bool *)((const char *)in + m->row[i].offset);
    switch (r->kind) {
    case WIRE_I64: memcpy(&v, at, sizeof v); return v != 0;
    case WIRE_F32: memcpy(&bits, at, sizeof bits); return bits != 0;
    case WIRE_STR: memcpy(&s, at, sizeof s); return s.len != 0;
    default: return true;
    }
}

static void put_row(struct out *o, const struct wire_row *r, const void *in)
{
    const char *at = (const char *)in + r->offset;
    const void *sub;

    switch (r->kind) {
    case WIRE_SEEN: break;
    case WIRE_I64: put_number(o, r, at); break;
    case WIRE_F32: put_fixed(o, r, at, sizeof(float)); break;
    case WIRE_STR: put_str(o, r, at); break;
    case WIRE_MESSAGE:
        memcpy(&sub, at, sizeof sub);
        if (sub)
            put_message(o, r, sub);
        break;
    default: put_list(o, r, at); break;
    }
}

static void put_rows(struct out *o, const struct wire_message *m, const void *in)
{
    for (size_t i = 0; i < m->rows && o->status == RLX_OK; i++)
        if (is_there(m, &m->row[i], in))
            put_row(o, &m->row[i], in);
}

uint64_t wire_size(const struct wire_message *m, const void *in)
{
    struct out o = {.sink = NULL};

    put_rows(&o, m, in);
    return o.status == RLX_OK ? o.count : UINT64_MAX;
}

rlx_status wire_write(const struct wire_message *m, const void *in, const struct wire_sink *sink,
                      struct diag *d)
{
    struct out o = {.sink = sink, .diag = d};

    if (wire_size(m, in) == UINT64_MAX)
        return diag_fail(d, RLX_ERROR_LIMIT, "%s: messages nest deeper than %d", m->name,
                         WIRE_MAX_DEPTH);
    put_rows(&o, m, in);
    return o.status;
}
