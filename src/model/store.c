/* store.c: the weights of a model on a device: uploaded once, shared by all its sessions there. */
#include <string.h>

#include "base/str.h"
#include "model/store.h"
#include "run/convert.h"

static struct backend *backend_of(const struct store *s)
{
    return s->device->backend;
}

static void destroy(struct store *s)
{
    const rlx_allocator *mem = &s->model->ctx->mem;
    size_t params = s->model->param_count;

    for (size_t i = 0; i < s->copy.len; i++) {
        if (!s->plan_only)
            backend_of(s)->ops->release(backend_of(s), s->copy.at[i]->buffer);
        mem_free(mem, (void *)s->copy.at[i]->needs, params * sizeof(bool));
        mem_free(mem, s->copy.at[i], sizeof *s->copy.at[i]);
    }
    vec_free(mem, &s->copy);
    for (size_t i = 0; s->plain && i < params; i++)
        backend_of(s)->ops->release(backend_of(s), s->plain[i]);
    memory_release(&s->memory);
    device_release(s->device);
    params_free(&s->own, mem);
    mem_free(mem, s->own.param, s->own.count * sizeof *s->own.param);
    mem_free(mem, s->offset, params * sizeof *s->offset);
    mem_free(mem, s->has, params * sizeof *s->has);
    mem_free(mem, s->plain, params * sizeof *s->plain);
    mem_free(mem, s->wraps, params * sizeof *s->wraps);
    mem_free(mem, s->readers, params * sizeof *s->readers);
    mem_free(mem, s, sizeof *s);
}

static struct span span_of(const struct store *s, size_t param)
{
    return memory_span(&s->memory, s->offset[param], s->model->param[param].bytes);
}

static rlx_status upload_one(struct store *s, size_t i, struct diag *d)
{
    const rlx_allocator *mem = &s->model->ctx->mem;
    const struct model_param *p = &s->values->param[i];
    const void *data;

    if (p->bytes == 0)
        return RLX_OK;
    rlx_status status = param_look(p, mem, &data, d);
    if (status == RLX_OK)
        status = backend_of(s)->ops->write(backend_of(s), span_of(s, i), data, d);
    param_looked(p, mem, data);
    return status;
}

/* Values that came since the last time. */
static rlx_status upload(struct store *s, struct diag *d)
{
    if (s->plain)
        return RLX_OK; /* each is looked for where it is read */
    for (size_t i = 0; s->fresh != s->values->version && i < s->values->count; i++) {
        const struct model_param *p = &s->values->param[i];
        if (s->has[i] == p->changed)
            continue;
        TRY(upload_one(s, i, d));
        s->has[i] = p->changed;
    }
    s->fresh = s->values->version;
    return RLX_OK;
}

static rlx_status check_memory(const struct store *s, uint64_t bytes, struct diag *d)
{
    struct target t;

    backend_of(s)->ops->describe(backend_of(s), &t);
    if (!t.memory || bytes <= t.memory)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_MEMORY, "the params take %llu bytes; device %s has %llu",
                     (unsigned long long)bytes, s->device->name, (unsigned long long)t.memory);
}

/* Params one after the other, in as many buffers as it takes. */
static rlx_status lay_out(struct store *s, uint64_t *used, struct diag *d)
{
    const struct rlx_model *m = s->model;
    struct memory_layout l;

    TRY(memory_layout_begin(&l, s->max_buffer, STORE_ALIGNMENT, used, d));
    for (size_t i = 0; i < m->param_count; i++)
        TRY(memory_layout_add(&l, "param", m->param[i].name, m->param[i].bytes, &s->offset[i], d));
    if (s->plan_only) {
        s->memory.bytes = memory_layout_bytes(&l);
        return RLX_OK;
    }
    TRY(check_memory(s, memory_layout_bytes(&l), d));
    if (s->plain)
        return RLX_OK; /* they get buffers of their own when somebody reads them */
    return memory_alloc(backend_of(s), &m->ctx->mem, l.segment, l.used, l.count, &s->memory, d);
}

static rlx_status allocate(struct store *s, struct diag *d)
{
    const rlx_allocator *mem = &s->model->ctx->mem;
    size_t count = s->model->param_count, room = (count + 1) * sizeof(uint64_t);

    if (count) {
        s->offset = mem_alloc(mem, count * sizeof *s->offset);
        s->has = mem_alloc(mem, count * sizeof *s->has);
        if (!s->offset || !s->has)
            return diag_no_memory(d, count * sizeof *s->has);
    }
    if (count && backend_of(s)->ops->wrap) {
        s->plain = mem_alloc(mem, count * sizeof *s->plain);
        s->wraps = mem_alloc(mem, count * sizeof *s->wraps);
        s->readers = mem_alloc(mem, count * sizeof *s->readers);
        if (!s->plain || !s->wraps || !s->readers)
            return diag_no_memory(d, count * sizeof *s->plain);
    }
    uint64_t *used = mem_alloc(mem, room);
    if (!used)
        return diag_no_memory(d, room);
    rlx_status status = lay_out(s, used, d);
    mem_free(mem, used, room);
    return status;
}

/* from: whose values it gets as its own; NULL: it has the model's. */
static rlx_status create(struct rlx_model *m, struct rlx_device *dev, uint64_t max_buffer,
                         const struct param_values *from, bool plan_only, struct store **out,
                         struct diag *d)
{
    const rlx_allocator *mem = &m->ctx->mem;
    struct store *s = mem_alloc(mem, sizeof *s);

    if (!s)
        return diag_no_memory(d, sizeof *s);
    *s = (struct store){
        .model = m, .device = dev, .max_buffer = max_buffer, .plan_only = plan_only, .refs = 1};
    s->values = from ? &s->own : &m->values;
    device_retain(dev);
    rlx_status status = from ? params_copy(from, mem, &s->own, d) : RLX_OK;
    if (status == RLX_OK)
        status = allocate(s, d);
    if (status == RLX_OK && !plan_only)
        status = upload(s, d);
    if (status != RLX_OK) {
        destroy(s);
        return status;
    }
    *out = s;
    return RLX_OK;
}

rlx_status store_open(struct rlx_model *m, struct rlx_device *dev, uint64_t max_buffer,
                      struct store **out, struct diag *d)
{
    rlx_status status = RLX_OK;
    struct store *s = NULL;

    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->store.len && !s; i++)
        if (m->store.at[i]->device == dev && m->store.at[i]->values == &m->values)
            s = m->store.at[i];
    if (s)
        s->refs++;
    else if (!vec_room(&m->ctx->mem, &m->store))
        status = diag_no_memory(d, sizeof s);
    else if ((status = create(m, dev, max_buffer, NULL, false, &s, d)) == RLX_OK)
        m->store.at[m->store.len++] = s;
    if (status == RLX_OK) {
        m->has_session = true;
        *out = s;
    }
    pthread_mutex_unlock(&m->lock);
    return status;
}

rlx_status store_plan(struct rlx_model *m, struct rlx_device *dev, uint64_t max_buffer,
                      struct store **out, struct diag *d)
{
    return create(m, dev, max_buffer, NULL, true, out, d);
}

rlx_status store_clone(struct store *from, struct store **out, struct diag *d)
{
    struct rlx_model *m = from->model;
    struct store *s = NULL;
    rlx_status status = RLX_OK;

    pthread_mutex_lock(&m->lock);
    if (!vec_room(&m->ctx->mem, &m->store))
        status = diag_no_memory(d, sizeof s);
    if (status == RLX_OK)
        status = create(m, from->device, from->max_buffer, from->values, false, &s, d);
    if (status == RLX_OK)
        *out = m->store.at[m->store.len++] = s;
    pthread_mutex_unlock(&m->lock);
    return status;
}

/* Is it all that has the value of a param of the model? Then it stays as long as the model. */
static bool is_home(const struct store *s)
{
    for (size_t i = 0; s->values == &s->model->values && i < s->values->count; i++)
        if (s->values->param[i].packed && s->values->param[i].home == s)
            return true;
    return false;
}

void stores_destroy(struct rlx_model *m)
{
    for (size_t i = 0; i < m->store.len; i++)
        destroy(m->store.at[i]);
    vec_free(&m->ctx->mem, &m->store);
}

void store_close(struct store *s)
{
    struct rlx_model *m = s->model;

    pthread_mutex_lock(&m->lock);
    bool last = --s->refs == 0 && !is_home(s);
    for (size_t i = 0; last && i < m->store.len; i++) {
        if (m->store.at[i] != s)
            continue;
        m->store.at[i] = m->store.at[--m->store.len];
        break;
    }
    pthread_mutex_unlock(&m->lock);
    if (last)
        destroy(s);
}

/* Every param that something reads must have a value. */
static rlx_status check_all_set(const struct store *s, struct diag *d)
{
    char names[256] = "";
    size_t len = 0, missing = 0;

    for (size_t i = 0; i < s->values->count; i++) {
        const struct model_param *p = &s->values->param[i];
        if (p->changed || !s->model->used[p->node] || p->bytes == 0)
            continue;
        missing++;
        if (len + p->name.len + 3 < sizeof names) {
            memcpy(names + len, len ? ", " : "", len ? 2 : 0);
            len += len ? 2 : 0;
            memcpy(names + len, p->name.ptr, p->name.len);
            len += p->name.len;
        }
    }
    if (missing == 0)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_MISSING_INPUT, "%zu params have no value: %s", missing, names);
}

/* ---- copies ---- */

static rlx_status add_copy(struct store *s, const struct weight_copy *like,
                           struct weight_copy **out, struct diag *d)
{
    const rlx_allocator *mem = &s->model->ctx->mem;
    size_t params = s->model->param_count;
    struct weight_copy *c = mem_alloc(mem, sizeof *c);
    bool *needs = params ? mem_alloc(mem, params * sizeof *needs) : NULL;
    rlx_status status = RLX_OK;

    if (!c || (params && !needs) || !vec_room(mem, &s->copy))
        status = diag_no_memory(d, sizeof *c + params);
    if (status == RLX_OK) {
        *c = *like;
        c->needs = needs;
        for (size_t i = 0; i < params; i++)
            needs[i] = like->needs && like->needs[i];
        if (!s->plan_only && !(s->plain && c->computed))
            status = backend_of(s)->ops->alloc(backend_of(s), c->bytes, &c->buffer, d);
    }
    if (status != RLX_OK) {
        mem_free(mem, needs, params * sizeof *needs);
        mem_free(mem, c, sizeof *c);
        return status;
    }
    *out = s->copy.at[s->copy.len++] = c;
    return RLX_OK;
}

rlx_status store_copy_of(struct store *s, const struct weight_copy *like, struct weight_copy **out,
                         struct diag *d)
{
    rlx_status status = RLX_OK;
    struct weight_copy *c = NULL;

    pthread_mutex_lock(&s->model->lock);
    for (size_t i = 0; i < s->copy.len && !c; i++)
        if (s->copy.at[i]->key == like->key && s->copy.at[i]->bytes == like->bytes)
            c = s->copy.at[i];
    if (!c)
        status = add_copy(s, like, &c, d);
    pthread_mutex_unlock(&s->model->lock);
    if (status == RLX_OK)
        *out = c;
    return status;
}

bool store_has_copy(struct store *s, uint64_t key, uint64_t bytes)
{
    bool found = false;

    pthread_mutex_lock(&s->model->lock);
    for (size_t i = 0; i < s->copy.len && !found; i++)
        found = s->copy.at[i]->key == key && s->copy.at[i]->bytes == bytes;
    pthread_mutex_unlock(&s->model->lock);
    return found;
}

uint64_t store_copy_bytes_locked(const struct store *s)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < s->copy.len; i++) {
        const struct weight_copy *c = s->copy.at[i];
        sum += s->plain && c->computed && !c->readers ? 0 : c->bytes;
    }
    return sum;
}

uint64_t store_weight_bytes_locked(const struct store *s)
{
    uint64_t sum = 0;

    if (!s->plain)
        return s->memory.bytes;
    for (size_t i = 0; i < s->values->count; i++)
        sum += s->readers[i] ? s->values->param[i].bytes : 0;
    return sum;
}

uint64_t store_weight_bytes(struct store *s)
{
    pthread_mutex_lock(&s->model->lock);
    uint64_t sum = store_weight_bytes_locked(s);
    pthread_mutex_unlock(&s->model->lock);
    return sum;
}

uint64_t store_copy_bytes(struct store *s)
{
    pthread_mutex_lock(&s->model->lock);
    uint64_t sum = store_copy_bytes_locked(s);
    pthread_mutex_unlock(&s->model->lock);
    return sum;
}

bool store_copy_is_old(const struct store *s, const struct weight_copy *c)
{
    bool old = c->made == 0;

    for (size_t i = 0; i < s->values->count && !old; i++)
        old = c->needs[i] && s->values->param[i].changed > c->made;
    return old;
}

/* ---- runs ---- */

rlx_status store_begin_run(struct store *s, bool params_default_zero,
                           rlx_status (*refresh)(void *user, struct diag *d), void *user,
                           struct diag *d)
{
    pthread_mutex_lock(&s->model->lock);
    rlx_status status = params_default_zero ? RLX_OK : check_all_set(s, d);
    if (status == RLX_OK)
        status = upload(s, d);
    if (status == RLX_OK)
        status = refresh(user, d);
    if (status == RLX_OK)
        s->values->running++;
    pthread_mutex_unlock(&s->model->lock);
    return status;
}

void store_end_run(struct store *s)
{
    pthread_mutex_lock(&s->model->lock);
    s->values->running--;
    pthread_mutex_unlock(&s->model->lock);
}

/* What a device has to do with a new value, before the model takes it: one that is lost leaves the
 * model as it was. */
static rlx_status write_device(struct store *s, size_t i, const rlx_tensor *value, const void *room,
                               struct diag *d)
{
    const struct ir_type *type = ir_type_of(ir_entry(s->model->mod), s->values->param[i].node);
    size_t count = 0;

    tensor_count(value, &count);
    if (s->plain)
        return plain_param_expect(s, i, room, d);
    return span_write(backend_of(s), span_of(s, i), type->dtype, value->dtype, value->data, count,
                      d);
}

static rlx_status write_value(struct store *s, size_t i, const rlx_tensor *value, struct diag *d)
{
    const rlx_allocator *mem = &s->model->ctx->mem;
    const struct model_param *p = &s->values->param[i];
    const struct ir_type *type = ir_type_of(ir_entry(s->model->mod), p->node);
    size_t count = 0;
    void *room;

    tensor_count(value, &count);
    TRY(param_room(p, mem, &room, d));
    rlx_status status = write_device(s, i, value, room, d);
    if (status != RLX_OK) {
        param_drop_room(p, mem, room);
        return status;
    }
    if (count)
        convert(type->dtype, room, value->dtype, value->data, count);
    param_take(s->values, i, room, PARAM_OWN, mem);
    s->has[i] = p->changed;
    return RLX_OK;
}

rlx_status store_write(struct store *s, rlx_str name, const rlx_tensor *value, struct diag *d)
{
    rlx_status status;
    size_t i;

    TRY(model_find_param(s->model, name, &i, d));
    const struct ir_type *type = ir_type_of(ir_entry(s->model->mod), s->values->param[i].node);
    TRY(leaf_check(s->model, value, type, "param", name, d));
    pthread_mutex_lock(&s->model->lock);
    if (s->values->running)
        status = diag_fail(d, RLX_ERROR_STATE, "param \"%.*s\": a session of this model is running",
                           STR_ARG(name));
    else
        status = write_value(s, i, value, d);
    pthread_mutex_unlock(&s->model->lock);
    return status;
}

rlx_status store_read(struct store *s, rlx_str name, rlx_tensor *value, struct diag *d)
{
    size_t i;

    TRY(model_find_param(s->model, name, &i, d));
    const struct model_param *p = &s->values->param[i];
    pthread_mutex_lock(&s->model->lock);
    rlx_status status =
        param_read(p, ir_type_of(ir_entry(s->model->mod), p->node), &s->model->ctx->mem, value, d);
    pthread_mutex_unlock(&s->model->lock);
    return status;
}
