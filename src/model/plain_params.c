/* plain_params.c: params as the graph has them, for devices that work in host memory.
 *
 * Such a device reads a param where the model keeps it. A mapped file is read into memory of the
 * store's own, which is aligned and in large pages, and the file's pages are given back. A param
 * that no program reads, because all its readers have packed copies, is not held at all: copies are
 * made from the file or from the model's memory, which goes once a copy can stand for it. The same
 * holds for what a static part makes of params. So weights are in memory once, but for those that
 * are being packed. */
#include "base/file.h"
#include "base/str.h"
#include "model/store.h"
#include "pass/static_pack.h"

static struct backend *backend_of(const struct store *s)
{
    return s->device->backend;
}

static const rlx_allocator *mem_of(const struct store *s)
{
    return &s->model->ctx->mem;
}

static void drop(struct store *s, size_t i)
{
    if (s->plain[i])
        backend_of(s)->ops->release(backend_of(s), s->plain[i]);
    s->plain[i] = NULL;
    s->wraps[i] = NULL;
}

static bool is_held(const struct store *s, size_t i)
{
    return s->plain[i] && s->has[i] == s->values->param[i].changed;
}

/* Can kernels read it where it is? */
static bool is_aligned(const struct store *s, const struct model_param *p)
{
    const struct ir_type *type = ir_type_of(ir_entry(s->model->mod), p->node);

    return (uintptr_t)p->data % rlx_dtype_size(type->dtype) == 0;
}

/* One that was never set is zero; whether it may be was asked before. */
static rlx_status make(struct store *s, size_t i, struct diag *d)
{
    struct backend *b = backend_of(s);
    struct model_param *p = &s->values->param[i];

    if (p->changed && p->kept != PARAM_MAPPED && is_aligned(s, p)) {
        s->wraps[i] = p->data;
        return b->ops->wrap(b, p->data, p->bytes, &s->plain[i], d);
    }
    TRY(b->ops->alloc(b, p->bytes, &s->plain[i], d));
    if (!p->changed)
        return RLX_OK;
    TRY(b->ops->write(b, (struct span){s->plain[i], 0, p->bytes}, p->data, d));
    if (p->kept == PARAM_MAPPED)
        file_forget(p->data, (size_t)p->bytes);
    return RLX_OK;
}

rlx_status plain_param_hold(struct store *s, size_t i, struct diag *d)
{
    struct model_param *p = &s->values->param[i];

    if (p->bytes == 0 || is_held(s, i))
        return RLX_OK;
    if (s->wraps[i] && s->wraps[i] == p->data) { /* overwritten */
        s->has[i] = p->changed;
        return RLX_OK;
    }
    drop(s, i);
    TRY(param_restore(p, mem_of(s), d));
    rlx_status status = make(s, i, d);
    if (status == RLX_OK)
        s->has[i] = p->changed;
    else
        drop(s, i);
    return status;
}

rlx_status plain_param_expect(struct store *s, size_t i, const void *room, struct diag *d)
{
    struct buffer *made;

    if (!room)
        return RLX_OK;
    if (s->wraps[i] == room) /* to be overwritten, when whoever copies from it is done */
        return backend_of(s)->ops->write(backend_of(s), (struct span){s->plain[i], 0, 0}, room, d);
    TRY(backend_of(s)->ops->wrap(backend_of(s), room, s->values->param[i].bytes, &made, d));
    drop(s, i);
    s->plain[i] = made;
    s->wraps[i] = room;
    return RLX_OK;
}

void plain_param_release(struct store *s, size_t i)
{
    if (!s->readers[i])
        drop(s, i);
}

rlx_status plain_param_source(struct store *s, size_t i, struct buffer **out, struct diag *d)
{
    struct model_param *p = &s->values->param[i];

    TRY(param_restore(p, mem_of(s), d));
    if (p->changed && !is_held(s, i) && is_aligned(s, p))
        return backend_of(s)->ops->wrap(backend_of(s), p->data, p->bytes, out, d);
    TRY(plain_param_hold(s, i, d));
    *out = s->plain[i];
    return RLX_OK;
}

static bool is_read_elsewhere(const struct store *s, size_t i)
{
    const struct rlx_model *m = s->model;

    for (size_t k = 0; k < m->store.len; k++) {
        const struct store *other = m->store.at[k];
        if (other != s && other->values == s->values && other->plain && other->plain[i])
            return true;
    }
    return false;
}

bool plain_param_is_spare(const struct store *s, size_t i)
{
    const struct model_param *p = &s->values->param[i];

    return !s->readers[i] && p->kept == PARAM_OWN && p->data && !is_read_elsewhere(s, i);
}

void plain_param_was_packed(struct store *s, size_t i, struct buffer *source, struct weight_copy *c)
{
    struct model_param *p = &s->values->param[i];

    if (source != s->plain[i])
        backend_of(s)->ops->release(backend_of(s), source);
    if (s->readers[i])
        return;
    drop(s, i);
    if (p->kept == PARAM_MAPPED)
        file_forget(p->data, (size_t)p->bytes);
    else if (c && c->form.whole && plain_param_is_spare(s, i))
        param_leave_to(p, s, c, NULL, mem_of(s));
}
