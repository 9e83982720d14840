/* handle.c: inputs that stay on the device between runs.
 *
 * A handle's buffer belongs to the session and is laid out with bounded dims at their bounds. A
 * program reads it where it lies if its data is dense there at every size, which is so when only
 * the outermost axis can shrink; otherwise the part that counts is copied into the input's slot
 * first.
 *
 *     layout [4, 8]   held [4, 3]    x x x . . . . .    a row of a batch begins every 8 places,
 *                                    x x x . . . . .    but every 3 places in a run of past = 3
 */
#include "session/handle.h"

#include <string.h>

#include "base/str.h"

static const struct ir_graph *graph_of(const rlx_session *s)
{
    return ir_entry(s->model->mod);
}

rlx_str handle_name(const rlx_session *s, const struct handle *h)
{
    return ir_leaf_name(ir_node(graph_of(s), h->leaf));
}

static struct handle *find(rlx_session *s, rlx_str name)
{
    for (size_t i = 0; i < s->handle_count; i++)
        if (str_eq(handle_name(s, &s->handle[i]), name))
            return &s->handle[i];
    return NULL;
}

struct handle *handle_of(rlx_session *s, rlx_str name)
{
    struct handle *h = find(s, name);

    return h && h->buffer ? h : NULL;
}

bool handle_is_state(const rlx_session *s, const char *name)
{
    ir_value v;

    return ir_find_leaf(graph_of(s), rlx_cstr(name), &v) &&
           ir_node(graph_of(s), v)->op == RLX_OP_state;
}

static rlx_status find_input(rlx_session *s, const char *name, struct handle **out, struct diag *d)
{
    char known[200];

    TRY(session_is_whole(s, "have handles", d));
    *out = find(s, rlx_cstr(name));
    if (*out)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_NAME, "there is no input \"%s\"; there are: %s", name,
                     leaf_names(graph_of(s), RLX_OP_input, known, sizeof known));
}

rlx_status handle_find_bound(rlx_session *s, const char *name, struct handle **out, struct diag *d)
{
    TRY(find_input(s, name, out, d));
    if ((*out)->buffer)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_STATE, "input \"%s\" is not bound as a handle", name);
}

/* ---- moving parts between buffers ---- */

rlx_status handle_move(void *mover, uint64_t to, uint64_t from, uint64_t bytes)
{
    const struct handle_mover *m = mover;

    return m->backend->ops->copy(m->backend, (struct span){m->to, m->to_offset + to, bytes},
                                 (struct span){m->from, m->from_offset + from, bytes}, m->diag);
}

static void common_part(const struct ir_type *a, const struct ir_type *b, int64_t *dim)
{
    for (int32_t i = 0; i < a->rank; i++)
        dim[i] = a->dim[i] < b->dim[i] ? a->dim[i] : b->dim[i];
}

/* ---- memory ---- */

/* The layout for data of this shape. A dim with a bound is at its bound, whatever the data has. */
static rlx_status lay_out(rlx_session *s, struct handle *h, const int64_t *dim, struct diag *d)
{
    const struct ir_type *t = ir_type_of(graph_of(s), h->leaf);
    struct dim_table *dims = s->model->mod->dims;

    h->layout = *t;
    h->direct = true;
    for (int32_t i = 0, outer_one = true; i < t->rank; i++) {
        h->layout.dim[i] = dim[i];
        bool shrinks = false;
        for (size_t y = 0; y < s->symbol_count && !dim_is_static(t->dim[i]); y++)
            shrinks |= s->bound[y] && dim_uses(dims, t->dim[i], y);
        if (shrinks) {
            int64_t upper = session_upper_dim(s, t->dim[i]);
            h->layout.dim[i] = upper >= 0 ? upper : dim[i];
            h->direct &= outer_one;
        }
        outer_one &= t->dim[i] == 1;
        if (dim[i] > h->layout.dim[i] ||
            (!shrinks && dim_is_static(t->dim[i]) && dim[i] != t->dim[i]))
            return diag_fail(d, RLX_ERROR_SHAPE, "handle \"%.*s\": axis %d is %lld, %lld was given",
                             STR_ARG(handle_name(s, h)), i, (long long)h->layout.dim[i],
                             (long long)dim[i]);
    }
    return RLX_OK;
}

/* A zeroed buffer for the layout, in place of the old one, whose readers are loaded again; a handle
 * that had none before changes what programs read, so they are dropped. */
static rlx_status renew(rlx_session *s, struct handle *h, struct diag *d)
{
    struct backend *b = s->device->backend;
    struct buffer *made;
    uint64_t bytes = 0;

    if (!type_bytes(&h->layout, &bytes))
        return diag_fail(d, RLX_ERROR_LIMIT, "handle \"%.*s\" is too large",
                         STR_ARG(handle_name(s, h)));
    TRY(budget_alloc(s, "handle", handle_name(s, h), bytes, &made, d));
    if (!h->buffer)
        session_drop_programs(s);
    else
        session_reload_programs(s);
    b->ops->release(b, h->buffer);
    h->buffer = made;
    h->bytes = bytes;
    return RLX_OK;
}

/* ---- binding ---- */

struct piece {
    struct backend *backend;
    struct buffer *buffer;
    rlx_dtype slot, dtype;
    uint8_t *data;
    bool read;
    struct diag *diag;
};

static rlx_status transfer(void *user, uint64_t device, uint64_t host, uint64_t bytes)
{
    const struct piece *p = user;
    size_t size = rlx_dtype_size(p->slot), count = (size_t)bytes / size;
    uint8_t *data = p->data + host / size * rlx_dtype_size(p->dtype);
    struct span span = {p->buffer, device, bytes};

    return p->read ? span_read(p->backend, span, p->slot, p->dtype, data, count, p->diag)
                   : span_write(p->backend, span, p->slot, p->dtype, data, count, p->diag);
}

/* Data of shape h->held, dense on the host, from or to the handle. */
static rlx_status transfer_all(rlx_session *s, struct handle *h, rlx_dtype dtype, void *data,
                               bool read, struct diag *d)
{
    struct piece p = {s->device->backend, h->buffer, h->layout.dtype, dtype, data, read, d};
    const struct block block = {.rank = h->held.rank,
                                .dim = h->held.dim,
                                .size = rlx_dtype_size(h->layout.dtype),
                                .to = {h->layout.dim, NULL},
                                .from = {h->held.dim, NULL}};

    return block_each(&block, false, transfer, &p);
}

static rlx_status check_value(const rlx_session *s, const struct handle *h, const rlx_tensor *value,
                              struct diag *d)
{
    const struct ir_type *t = ir_type_of(graph_of(s), h->leaf);
    struct ir_type as_given = {.dtype = t->dtype, .rank = value->rank};

    if (value->rank != t->rank)
        return diag_fail(d, RLX_ERROR_SHAPE, "handle \"%.*s\" has rank %d, rank %d was given",
                         STR_ARG(handle_name(s, h)), t->rank, value->rank);
    memcpy(as_given.dim, value->dim, sizeof as_given.dim);
    return tensor_check(value, &as_given, "handle", handle_name(s, h), d);
}

static rlx_status give(rlx_session *s, struct handle *h, const rlx_tensor *value, struct diag *d)
{
    struct handle before = *h;
    struct ir_type old = h->layout;

    TRY(check_value(s, h, value, d));
    rlx_status status = lay_out(s, h, value->dim, d);
    if (status == RLX_OK && (!h->buffer || !type_same(&old, &h->layout)))
        status = renew(s, h, d);
    if (status != RLX_OK) {
        *h = before;
        return status;
    }
    h->held = h->layout;
    memcpy(h->held.dim, value->dim, sizeof h->held.dim);
    if (!type_same(&h->held, &h->layout)) /* the rest is zero */
        TRY(s->device->backend->ops->fill(s->device->backend, (struct span){h->buffer, 0, h->bytes},
                                          0, d));
    return transfer_all(s, h, value->dtype, value->data, false, d);
}

rlx_status handle_replace(rlx_session *s, struct handle *h, const rlx_tensor *value, struct diag *d)
{
    if (h->feed.is_set && !s->desc.reseed_handles)
        return diag_fail(d, RLX_ERROR_STATE,
                         "input \"%.*s\" is given, but it is a handle that is fed in every run",
                         STR_ARG(handle_name(s, h)));
    return give(s, h, value, d);
}

rlx_status handle_bind(struct rlx_session *s, const char *name, const rlx_tensor *value,
                       struct diag *d)
{
    struct handle *h;

    TRY(session_check_idle(s, name, value, d));
    if (handle_is_state(s, name)) {
        diag_stage(d, "state", NULL);
        return session_set_state(s, name, value, d);
    }
    TRY(find_input(s, name, &h, d));
    return give(s, h, value, d);
}

static rlx_status read_handle(rlx_session *s, const char *name, rlx_tensor *value, struct diag *d)
{
    struct handle *h;

    TRY(handle_find_bound(s, name, &h, d));
    rlx_tensor exact = *value;
    size_t count = 0;
    exact.rank = h->held.rank;
    memcpy(exact.dim, h->held.dim, sizeof exact.dim);
    if (tensor_count(&exact, &count) && count <= exact.bytes / rlx_dtype_size(value->dtype))
        exact.bytes = count * rlx_dtype_size(value->dtype); /* more room than that is fine */
    TRY(tensor_check(&exact, &h->held, "handle", rlx_cstr(name), d));
    value->rank = exact.rank;
    memcpy(value->dim, exact.dim, sizeof value->dim);
    return transfer_all(s, h, value->dtype, value->data, true, d);
}

rlx_status handle_read(struct rlx_session *s, const char *name, rlx_tensor *value, struct diag *d)
{
    TRY(session_check_idle(s, name, value, d));
    if (handle_is_state(s, name)) {
        diag_stage(d, "state", NULL);
        return session_get_state(s, name, value, d);
    }
    return read_handle(s, name, value, d);
}

rlx_status handle_unbind(struct rlx_session *s, const char *name, struct diag *d)
{
    struct handle *h;

    TRY(session_check_idle(s, name, name, d));
    TRY(handle_find_bound(s, name, &h, d));
    session_drop_programs(s);
    s->device->backend->ops->release(s->device->backend, h->buffer);
    *h = (struct handle){.leaf = h->leaf};
    return RLX_OK;
}

void handles_release(rlx_session *s)
{
    for (size_t i = 0; i < s->handle_count; i++)
        s->device->backend->ops->release(s->device->backend, s->handle[i].buffer);
}

/* ---- from session to session ---- */

static rlx_status copy_value(rlx_session *to, struct handle *h, const struct handle *from,
                             struct diag *d)
{
    struct handle_mover m = {.backend = to->device->backend, .from = from->buffer, .diag = d};
    int64_t part[RLX_MAX_RANK];

    common_part(&h->layout, &from->held, part);
    const struct block block = {.rank = h->layout.rank,
                                .dim = part,
                                .size = rlx_dtype_size(h->layout.dtype),
                                .to = {h->layout.dim, NULL},
                                .from = {from->layout.dim, NULL}};
    m.to = h->buffer;
    TRY(block_each(&block, false, handle_move, &m));
    h->held = h->layout;
    memcpy(h->held.dim, part, sizeof part);
    return RLX_OK;
}

/* h, which may be unbound, gets a layout of its own that has room for all of the other if the
 * bounds allow, and what the other holds. */
static rlx_status copy_handle(rlx_session *to, struct handle *h, const struct handle *from,
                              struct diag *d)
{
    const struct ir_type *t = ir_type_of(graph_of(to), h->leaf);
    struct handle before = *h;
    int64_t dim[RLX_MAX_RANK];

    if (t->rank != from->layout.rank || t->dtype != from->layout.dtype)
        return diag_fail(d, RLX_ERROR_SHAPE, "the two handles \"%.*s\" differ in rank or dtype",
                         STR_ARG(handle_name(to, h)));
    for (int32_t i = 0; i < t->rank; i++) {
        int64_t upper = session_upper_dim(to, t->dim[i]);
        dim[i] = upper >= 0 && upper < from->held.dim[i] ? upper : from->held.dim[i];
    }
    rlx_status status = lay_out(to, h, dim, d);
    if (status == RLX_OK)
        status = renew(to, h, d);
    if (status != RLX_OK) {
        *h = before;
        return status;
    }
    return copy_value(to, h, from, d);
}

rlx_status handle_copy(struct rlx_session *to, struct rlx_session *from, const char *name,
                       struct diag *d)
{
    struct handle *h, *other;

    TRY(session_check_idle(to, name, from, d));
    TRY(session_check_idle(from, name, to, d));
    if (to->device != from->device)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "the sessions are on different devices");
    TRY(handle_find_bound(from, name, &other, d));
    TRY(find_input(to, name, &h, d));
    return copy_handle(to, h, other, d);
}

rlx_status handles_copy(rlx_session *from, rlx_session *to, struct diag *d)
{
    for (size_t i = 0; i < from->handle_count; i++) {
        struct handle *h = &to->handle[i];
        if (!from->handle[i].buffer)
            continue;
        TRY(copy_handle(to, h, &from->handle[i], d));
        h->feed = from->handle[i].feed;
    }
    return RLX_OK;
}

/* ---- before a run ---- */

/* The handle must have this run's shape; where symbols without a bound changed, it is moved. */
rlx_status handle_fit(rlx_session *s, struct handle *h, const struct ir_type *want, struct diag *d)
{
    struct handle before = *h;
    int64_t part[RLX_MAX_RANK];
    bool fits = true;

    for (int32_t i = 0; i < want->rank; i++)
        fits &= want->dim[i] <= h->layout.dim[i];
    if (fits && (!h->direct || want->rank == 0 ||
                 memcmp(want->dim + 1, h->layout.dim + 1,
                        (size_t)(want->rank - 1) * sizeof want->dim[0]) == 0))
        return RLX_OK;
    common_part(want, &h->held, part);
    h->buffer = NULL;
    rlx_status status = lay_out(s, h, want->dim, d);
    if (status == RLX_OK) {
        struct buffer *made;
        type_bytes(&h->layout, &h->bytes);
        status = budget_alloc(s, "handle", handle_name(s, h), h->bytes, &made, d);
        h->buffer = status == RLX_OK ? made : NULL;
    }
    if (status == RLX_OK)
        status = copy_value(s, h, &before, d);
    if (status != RLX_OK) {
        s->device->backend->ops->release(s->device->backend, h->buffer);
        *h = before;
        return status;
    }
    session_reload_programs(s);
    s->device->backend->ops->release(s->device->backend, before.buffer);
    return RLX_OK;
}

rlx_status handles_attach(rlx_session *s, struct diag *d)
{
    for (size_t i = 0; i < s->handle_count; i++) {
        struct handle *h = &s->handle[i];
        const struct program_slot *slot = &s->current->input[i];
        if (!h->buffer || slot->value < 0)
            continue;
        TRY(handle_fit(s, h, &slot->type, d));
        if (h->direct)
            program_set_outside(s->current, slot->value, h->buffer);
    }
    return RLX_OK;
}

/* The part that counts in this run, into the input's slot. */
static rlx_status stage(rlx_session *s, struct handle *h, const struct program_slot *slot,
                        struct diag *d)
{
    struct span to = program_span(s->current, slot->value);
    struct handle_mover m = {.backend = s->device->backend,
                             .to = to.buffer,
                             .to_offset = to.offset,
                             .from = h->buffer,
                             .diag = d};
    const struct block block = {.rank = slot->type.rank,
                                .dim = slot->type.dim,
                                .size = rlx_dtype_size(slot->type.dtype),
                                .to = {slot->type.dim, NULL},
                                .from = {h->layout.dim, NULL}};
    return block_each(&block, false, handle_move, &m);
}

rlx_status handles_stage(rlx_session *s, struct diag *d)
{
    for (size_t i = 0; i < s->handle_count; i++)
        if (s->handle[i].buffer && !s->handle[i].direct && s->current->input[i].value >= 0)
            TRY(stage(s, &s->handle[i], &s->current->input[i], d));
    return RLX_OK;
}
