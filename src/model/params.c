/* params.c: the values of params on the host: their one home, whatever devices have copies.
 *
 * A value lies in memory of its own, in memory that another keeps, in a mapped file, or, where a
 * device that works in host memory needs nothing but copies, in a copy alone, of itself or of what
 * it was joined into: then it is made from it whenever somebody asks. */
#include <string.h>

#include "base/file.h"
#include "model/store.h"
#include "model/undo_moves.h"
#include "run/convert.h"

/* At least what buffers of a device that works in host memory have. Larger values are blocks of
 * their own, which leave nothing behind when they go. */
static size_t alignment_of(uint64_t bytes)
{
    return bytes >= MEM_HUGE_PAGE / 2 ? MEM_HUGE_PAGE : 64;
}

static rlx_status make_room(const struct model_param *p, const rlx_allocator *mem, void **out,
                            struct diag *d)
{
    *out = mem_alloc_aligned(mem, (size_t)p->bytes, alignment_of(p->bytes));
    return *out || p->bytes == 0 ? RLX_OK : diag_no_memory(d, (size_t)p->bytes);
}

static void free_room(const struct model_param *p, const rlx_allocator *mem, void *room)
{
    mem_free_aligned(mem, room, (size_t)p->bytes, alignment_of(p->bytes));
}

static bool is_own(const struct model_param *p, const void *data)
{
    return p->kept == PARAM_OWN && p->data == data;
}

rlx_status param_room(const struct model_param *p, const rlx_allocator *mem, void **out,
                      struct diag *d)
{
    *out = p->kept == PARAM_OWN ? p->data : NULL;
    return *out ? RLX_OK : make_room(p, mem, out, d);
}

void param_drop_room(const struct model_param *p, const rlx_allocator *mem, void *room)
{
    if (!is_own(p, room))
        free_room(p, mem, room);
}

static void forget_copy(struct model_param *p)
{
    ir_module_destroy(p->undo);
    p->undo = NULL;
    p->packed = NULL;
}

void param_take(struct param_values *v, size_t i, void *data, enum param_kept kept,
                const rlx_allocator *mem)
{
    struct model_param *p = &v->param[i];

    if (p->kept == PARAM_OWN && p->data != data)
        free_room(p, mem, p->data);
    p->data = data;
    p->kept = kept;
    forget_copy(p);
    p->changed = ++v->version;
}

/* ---- values in copies ---- */

/* What the copy was made from. */
static rlx_status read_copy(const struct store *home, const struct weight_copy *c, void *to,
                            struct diag *d)
{
    struct backend *b = home->device->backend;
    struct span all = {c->buffer, 0, c->bytes};

    if (c->form.whole)
        return b->ops->unpack(b, &c->form, &c->type, all, to, d);
    return b->ops->read(b, all, to, d);
}

static rlx_status unpack(const struct model_param *p, const rlx_allocator *mem, void *to,
                         struct diag *d)
{
    uint64_t bytes = 0;

    if (!p->undo)
        return read_copy(p->home, p->packed, to, d);
    type_bytes(&p->packed->type, &bytes);
    void *joined = mem_alloc_aligned(mem, (size_t)bytes, alignment_of(bytes));
    if (!joined)
        return diag_no_memory(d, (size_t)bytes);
    rlx_status status = read_copy(p->home, p->packed, joined, d);
    if (status == RLX_OK)
        status = undo_moves_run(p->undo, p->home->device->backend, mem, joined, to, d);
    mem_free_aligned(mem, joined, (size_t)bytes, alignment_of(bytes));
    return status;
}

void param_leave_to(struct model_param *p, struct store *home, struct weight_copy *c,
                    struct ir_module *undo, const rlx_allocator *mem)
{
    free_room(p, mem, p->data);
    p->data = NULL;
    p->packed = c;
    p->undo = undo;
    p->home = home;
}

rlx_status param_restore(struct model_param *p, const rlx_allocator *mem, struct diag *d)
{
    void *room;

    if (!p->packed)
        return RLX_OK;
    TRY(make_room(p, mem, &room, d));
    rlx_status status = unpack(p, mem, room, d);
    if (status != RLX_OK) {
        free_room(p, mem, room);
        return status;
    }
    p->data = room;
    forget_copy(p);
    return RLX_OK;
}

rlx_status param_look(const struct model_param *p, const rlx_allocator *mem, const void **out,
                      struct diag *d)
{
    void *room;

    *out = p->data;
    if (!p->packed)
        return RLX_OK;
    TRY(make_room(p, mem, &room, d));
    *out = room;
    return unpack(p, mem, room, d);
}

void param_looked(const struct model_param *p, const rlx_allocator *mem, const void *data)
{
    if (p->packed)
        free_room(p, mem, (void *)data);
    else if (p->kept == PARAM_MAPPED)
        file_forget(p->data, (size_t)p->bytes);
}

rlx_status param_read(const struct model_param *p, const struct ir_type *type,
                      const rlx_allocator *mem, rlx_tensor *value, struct diag *d)
{
    const void *data;
    size_t count = 0;

    if (!p->changed)
        return diag_fail(d, RLX_ERROR_STATE, "param \"%.*s\" was never set", STR_ARG(p->name));
    value->rank = type->rank;
    memcpy(value->dim, type->dim, sizeof value->dim);
    TRY(tensor_check(value, type, "param", p->name, d));
    if (!convert_allowed(value->dtype, type->dtype))
        return diag_fail(d, RLX_ERROR_DTYPE, "param \"%.*s\" is %s, which cannot become %s",
                         STR_ARG(p->name), rlx_dtype_name(type->dtype),
                         rlx_dtype_name(value->dtype));
    tensor_count(value, &count);
    if (count == 0)
        return RLX_OK;
    rlx_status status = param_look(p, mem, &data, d);
    if (status == RLX_OK)
        convert_unaligned(value->dtype, value->data, type->dtype, data, count);
    param_looked(p, mem, data);
    return status;
}

rlx_status model_restore_params(const struct rlx_model *m, struct diag *d)
{
    rlx_status status = RLX_OK;

    pthread_mutex_lock((pthread_mutex_t *)&m->lock);
    for (size_t i = 0; i < m->param_count && status == RLX_OK; i++)
        status = param_restore(&m->param[i], &m->ctx->mem, d);
    pthread_mutex_unlock((pthread_mutex_t *)&m->lock);
    return status;
}

/* ---- all of them ---- */

static rlx_status copy_param(const struct model_param *from, const rlx_allocator *mem,
                             struct model_param *to, struct diag *d)
{
    void *room;

    if (from->kept != PARAM_OWN || !from->changed)
        return RLX_OK;
    TRY(make_room(from, mem, &room, d));
    to->data = room;
    if (from->packed)
        return unpack(from, mem, room, d);
    if (from->bytes)
        memcpy(room, from->data, (size_t)from->bytes);
    return RLX_OK;
}

/* Files are shared; the rest is copied. */
rlx_status params_copy(const struct param_values *from, const rlx_allocator *mem,
                       struct param_values *out, struct diag *d)
{
    size_t bytes = from->count * sizeof *from->param;

    *out = (struct param_values){.version = from->version};
    out->param = mem_alloc(mem, bytes);
    if (!out->param && bytes)
        return diag_no_memory(d, bytes);
    out->count = from->count;
    for (size_t i = 0; i < from->count; i++) {
        out->param[i] = from->param[i];
        out->param[i].data = from->param[i].kept == PARAM_OWN ? NULL : from->param[i].data;
        out->param[i].packed = NULL;
        out->param[i].undo = NULL;
    }
    for (size_t i = 0; i < from->count; i++)
        TRY(copy_param(&from->param[i], mem, &out->param[i], d)); /* what there is goes with out */
    return RLX_OK;
}

void params_free(struct param_values *v, const rlx_allocator *mem)
{
    for (size_t i = 0; i < v->count; i++) {
        if (v->param[i].kept == PARAM_OWN)
            free_room(&v->param[i], mem, v->param[i].data);
        ir_module_destroy(v->param[i].undo);
    }
}
