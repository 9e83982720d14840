/* upload.c: a run's inputs go into their slots, or stay where they are if they did not change. */
#include <string.h>

#include "run/block.h"
#include "run/content.h"
#include "session/session.h"

const char rlx_unchanged = 0;

/* What the slot of an input was last filled with. */
struct upload_mark {
    bool valid;
    struct ir_type type;
    rlx_dtype dtype;        /* of the data that came */
    struct content content; /* zeros: not looked at */
};

size_t upload_mark_size(void)
{
    return sizeof(struct upload_mark);
}

void upload_forget(rlx_session *s)
{
    for (size_t i = 0; i < s->handle_count; i++)
        s->mark[i].valid = false;
}

/* ---- data in the shape of the bounds ---- */

struct piece {
    struct backend *backend;
    struct span span;
    rlx_dtype slot, dtype;
    const uint8_t *data;
    size_t size; /* of an element of the slot */
    struct diag *diag;
};

static rlx_status write_piece(void *user, uint64_t to, uint64_t from, uint64_t bytes)
{
    const struct piece *p = user;
    size_t count = (size_t)(bytes / p->size);
    struct span part = {p->span.buffer, p->span.offset + to, bytes};

    return span_write(p->backend, part, p->slot, p->dtype,
                      p->data + from / p->size * rlx_dtype_size(p->dtype), count, p->diag);
}

static rlx_status write_part(rlx_session *s, const struct program_slot *slot, const rlx_tensor *t,
                             struct diag *d)
{
    struct piece p = {.backend = s->device->backend,
                      .span = program_span(s->current, slot->value),
                      .slot = slot->type.dtype,
                      .dtype = t->dtype,
                      .data = t->data,
                      .size = rlx_dtype_size(slot->type.dtype),
                      .diag = d};
    const struct block block = {.rank = slot->type.rank,
                                .dim = slot->type.dim,
                                .size = p.size,
                                .to = {slot->type.dim, NULL},
                                .from = {t->dim, NULL}};

    return block_each(&block, false, write_piece, &p);
}

/* ---- unchanged data ---- */

static bool skips(const rlx_session *s)
{
    if (s->desc.uploads != RLX_UPLOADS_AUTO)
        return s->desc.uploads == RLX_UPLOADS_CHANGED;
    return s->target.slow_uploads;
}

/* Small data is cheaper to upload than to think about. */
enum { LEAST_TO_SKIP = 4096 };

static bool is_there(const rlx_session *s, const struct upload_mark *m, const struct ir_type *type,
                     const rlx_tensor *t, struct content *content)
{
    *content = (struct content){0};
    if (t->bytes < LEAST_TO_SKIP || !skips(s))
        return false;
    *content = content_of(t->data, t->bytes);
    return m->valid && m->dtype == t->dtype && type_same(&m->type, type) &&
           content_same(m->content, *content);
}

static rlx_status keep_previous(const struct program_slot *slot, const struct upload_mark *m,
                                struct diag *d)
{
    if (m->valid && type_same(&m->type, &slot->type))
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_MISSING_INPUT,
                     "input \"%.*s\" is marked as unchanged, but there is no value of that shape "
                     "from the run before",
                     STR_ARG(slot->name));
}

rlx_status upload_input(rlx_session *s, size_t i, const rlx_tensor *t, struct diag *d)
{
    const struct program_slot *slot = &s->current->input[i];
    struct upload_mark *m = &s->mark[i];
    struct content content;
    size_t count = 0;

    if (slot->value < 0)
        return RLX_OK; /* nothing reads it */
    if (t->data == RLX_UNCHANGED)
        return keep_previous(slot, m, d);
    if (is_there(s, m, &slot->type, t, &content))
        return RLX_OK;
    bool whole = memcmp(t->dim, slot->type.dim, (size_t)t->rank * sizeof t->dim[0]) == 0;
    tensor_count(t, &count);
    m->valid = false;
    TRY(whole ? program_write(s->current, slot, t->dtype, t->data, count, d)
              : write_part(s, slot, t, d));
    *m = (struct upload_mark){
        .valid = true, .type = slot->type, .dtype = t->dtype, .content = content};
    return RLX_OK;
}
