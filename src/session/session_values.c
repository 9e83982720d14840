/* session_values.c: params and states of a session, given and asked for. */
#include <string.h>

#include "base/str.h"
#include "model/dims.h"
#include "session/session.h"

/* ---- params ---- */

rlx_status session_set_param(struct rlx_session *s, const char *name, const rlx_tensor *value,
                             struct diag *d)
{
    TRY(session_check_idle(s, name, value, d));
    return s->kind->write_param(s, name, value, d);
}

rlx_status session_get_param(struct rlx_session *s, const char *name, rlx_tensor *value,
                             struct diag *d)
{
    TRY(session_check_idle(s, name, value, d));
    return store_read(s->kind->part_with(s, name)->store, rlx_cstr(name), value, d);
}

rlx_status session_set_param_bytes(struct rlx_session *s, const char *name, const void *data,
                                   size_t bytes, struct diag *d)
{
    size_t i;

    TRY(session_check_idle(s, name, data ? data : (bytes ? NULL : ""), d));
    TRY(model_find_param(s->model, rlx_cstr(name), &i, d));
    const struct ir_type *t = ir_type_of(ir_entry(s->model->mod), s->model->param[i].node);
    if (bytes != s->model->param[i].bytes)
        return diag_fail(d, RLX_ERROR_SIZE, "param \"%s\" has %llu bytes, %zu were given", name,
                         (unsigned long long)s->model->param[i].bytes, bytes);
    rlx_tensor value = {.dtype = t->dtype, .rank = t->rank, .data = (void *)data, .bytes = bytes};
    memcpy(value.dim, t->dim, sizeof value.dim);
    return s->kind->write_param(s, name, &value, d);
}

/* ---- states ---- */

static rlx_status find_state(const rlx_session *s, const char *name, const rlx_tensor *value,
                             ir_value *out, struct span *span, struct diag *d)
{
    char known[200];

    TRY(session_check_idle(s, name, value, d));
    const struct ir_graph *g = ir_entry(s->model->mod);
    if (!ir_find_leaf(g, rlx_cstr(name), out) || ir_node(g, *out)->op != RLX_OP_state)
        return diag_fail(d, RLX_ERROR_NAME, "there is no state \"%s\"; there are: %s", name,
                         leaf_names(g, RLX_OP_state, known, sizeof known));
    uint64_t bytes = 0;
    type_bytes(ir_type_of(g, *out), &bytes);
    *span = memory_span(&s->state, s->state_offset[*out], bytes);
    return RLX_OK;
}

static rlx_status set_state(rlx_session *s, const char *name, const rlx_tensor *value,
                            struct diag *d)
{
    ir_value v;
    size_t count;
    struct span span;

    TRY(find_state(s, name, value, &v, &span, d));
    const struct ir_type *t = ir_type_of(ir_entry(s->model->mod), v);
    TRY(leaf_check(s->model, value, t, "state", rlx_cstr(name), d));
    tensor_count(value, &count);
    return span_write(s->device->backend, span, t->dtype, value->dtype, value->data, count, d);
}

static rlx_status get_state(rlx_session *s, const char *name, rlx_tensor *value, struct diag *d)
{
    ir_value v;
    size_t count;
    struct span span;

    TRY(find_state(s, name, value, &v, &span, d));
    const struct ir_type *t = ir_type_of(ir_entry(s->model->mod), v);
    value->rank = t->rank;
    memcpy(value->dim, t->dim, sizeof value->dim);
    TRY(tensor_check(value, t, "state", rlx_cstr(name), d));
    tensor_count(value, &count);
    return span_read(s->device->backend, span, t->dtype, value->dtype, value->data, count, d);
}

/* Its part with that name; s may be NULL, which is refused where it is used. */
static struct rlx_session *part_of(struct rlx_session *s, const char *name)
{
    return s && name ? s->kind->part_with(s, name) : s;
}

rlx_status session_set_state(struct rlx_session *s, const char *name, const rlx_tensor *value,
                             struct diag *d)
{
    return set_state(part_of(s, name), name, value, d);
}

rlx_status session_get_state(struct rlx_session *s, const char *name, rlx_tensor *value,
                             struct diag *d)
{
    return get_state(part_of(s, name), name, value, d);
}
