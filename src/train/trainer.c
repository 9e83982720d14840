/* trainer.c: a trainer, made from a model and taken down.
 *
 *     the model's graph  + a step of training       -> the session that learns
 *     the same           with trained params as states -> what the loss is evaluated with, later
 *
 * Both have the same params, and states of the same names. */
#include "train/trainer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/desc.h"
#include "rlx/artefact.h"
#include "rlx/cache.h"

rlx_status trainer_fail(rlx_error *err, rlx_status s, const char *fmt, ...)
{
    struct diag d;
    char text[sizeof d.first.message];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    diag_init(&d, "train");
    (diag_fail)(&d, s, "%s", text);
    return diag_report(&d, err);
}

/* ---- graphs ---- */

static rlx_status find_loss(const rlx_model *m, const char *name, size_t *out, rlx_error *err)
{
    size_t count = rlx_model_io_count(m, RLX_IO_OUTPUT);
    rlx_nearest near = {.wanted = rlx_cstr(name)};
    char hint[RLX_NEAREST_HINT];

    if (!name && count != 1)
        return trainer_fail(err, RLX_ERROR_NAME,
                            "the model has %zu outputs; which of them is the loss must be said",
                            count);
    *out = 0;
    for (size_t i = 0; name && i < count; i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        TRY(rlx_model_io(m, RLX_IO_OUTPUT, i, &info, err));
        if (str_eq(info.name, near.wanted)) {
            *out = i;
            return RLX_OK;
        }
        rlx_nearest_offer(&near, info.name);
    }
    if (!name)
        return RLX_OK;
    return trainer_fail(err, RLX_ERROR_NAME, "the model has no output \"%s\" to be the loss%s",
                        name, rlx_nearest_hint(&near, hint));
}

/* The model's graph without outputs, and its loss. */
static rlx_status begin_graph(const rlx_model *m, size_t loss, rlx_graph **g, rlx_value *out,
                              rlx_error *err)
{
    TRY(rlx_graph_from_model(m, g, err));
    *out = rlx_graph_output_at(*g, loss);
    rlx_graph_clear_outputs(*g);
    return RLX_OK;
}

static rlx_status end_graph(rlx_graph *g, rlx_status s, rlx_model **out, rlx_error *err)
{
    if (s == RLX_OK)
        s = rlx_model_create(g, out, err);
    if (s != RLX_OK)
        rlx_graph_destroy(g);
    return s;
}

static rlx_status make_learner(rlx_trainer *t, const rlx_model *m, size_t loss,
                               const rlx_train_desc *desc, rlx_error *err)
{
    rlx_graph *g;
    rlx_value v;

    TRY(begin_graph(m, loss, &g, &v, err));
    return end_graph(g, rlx_train_graph(g, v, desc, err), &t->model, err);
}

static bool is_state(const rlx_model *m, rlx_str name)
{
    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_STATE); i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        if (rlx_model_io(m, RLX_IO_STATE, i, &info, NULL) == RLX_OK && str_eq(info.name, name))
            return true;
    }
    return false;
}

static rlx_status add_quiet(rlx_trainer *t, rlx_graph *g, rlx_value loss, rlx_error *err)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->value[i].info.trained)
            TRY(rlx_graph_make_state(g, t->value[i].info.name.ptr, err));
    loss = rlx_reshape(g, rlx_cast(g, loss, RLX_DTYPE_f32), RLX_EMPTY);
    rlx_label(g, loss, "loss");
    rlx_output(g, loss);
    return RLX_OK;
}

static rlx_status make_quiet(rlx_trainer *t, const rlx_model *m, size_t loss, rlx_error *err)
{
    rlx_graph *g;
    rlx_value v;

    TRY(begin_graph(m, loss, &g, &v, err));
    return end_graph(g, add_quiet(t, g, v, err), &t->quiet, err);
}

/* ---- what there is ---- */

static rlx_status add_value(rlx_trainer *t, const rlx_io_info *io, bool param, bool trained,
                            rlx_error *err)
{
    struct trainer_value *v = &t->value[t->count++];

    v->info = (rlx_trainer_value){.name = arena_str(&t->arena, io->name),
                                  .dtype = io->dtype,
                                  .rank = io->rank,
                                  .param = param,
                                  .trained = trained};
    memcpy(v->info.dim, io->dim, sizeof v->info.dim);
    v->kept = !param || trained;
    v->bytes = rlx_dtype_size(io->dtype);
    if (!v->info.name.ptr)
        return trainer_fail(err, RLX_ERROR_MEMORY, "out of memory for the names of params");
    for (int32_t i = 0; i < io->rank; i++)
        if (io->dim[i] < 0 || !size_mul(v->bytes, (size_t)io->dim[i], &v->bytes))
            return trainer_fail(err, RLX_ERROR_SHAPE,
                                "\"%.*s\" has a symbolic size, or is too "
                                "large",
                                STR_ARG(io->name));
    return RLX_OK;
}

static bool is_known(const rlx_trainer *t, rlx_str name)
{
    for (size_t i = 0; i < t->count; i++)
        if (str_eq(t->value[i].info.name, name))
            return true;
    return false;
}

/* The model's params, then all other states. */
static rlx_status list_values(rlx_trainer *t, const rlx_model *m, rlx_error *err)
{
    size_t params = rlx_model_io_count(m, RLX_IO_PARAM);
    size_t states = rlx_model_io_count(t->model, RLX_IO_STATE);

    t->value = arena_array(&t->arena, struct trainer_value, params + states);
    if (!t->value)
        return trainer_fail(err, RLX_ERROR_MEMORY, "out of memory for %zu params", params);
    for (size_t i = 0; i < params; i++) {
        rlx_io_info io = {RLX_SIZED(rlx_io_info)};
        TRY(rlx_model_io(m, RLX_IO_PARAM, i, &io, err));
        TRY(add_value(t, &io, true, is_state(t->model, io.name), err));
    }
    for (size_t i = 0; i < states; i++) {
        rlx_io_info io = {RLX_SIZED(rlx_io_info)};
        TRY(rlx_model_io(t->model, RLX_IO_STATE, i, &io, err));
        if (!is_known(t, io.name))
            TRY(add_value(t, &io, false, false, err));
    }
    return RLX_OK;
}

/* ---- what params hold at first ---- */

static rlx_status first_value(rlx_model *m, const rlx_trainer_desc *desc, struct trainer_value *v,
                              rlx_tensor *out, rlx_error *err)
{
    if (rlx_model_has_param(m, v->info.name))
        return rlx_model_get_param(m, v->info.name.ptr, out, err);
    v->kept = true;
    return trainer_init(desc, v, out->data, err);
}

static rlx_status give_value(rlx_trainer *t, const struct trainer_value *v, const rlx_tensor *x,
                             rlx_error *err)
{
    const char *name = v->info.name.ptr;

    if (v->info.trained)
        return rlx_session_set_state(t->session, name, x, err);
    TRY(rlx_model_set_param(t->quiet, name, x, err));
    return rlx_model_set_param(t->model, name, x, err);
}

/* Those that are trained go to the session, others to the models, which therefore come first. */
static rlx_status give_values(rlx_trainer *t, rlx_model *m, const rlx_trainer_desc *desc,
                              bool trained, rlx_error *err)
{
    for (size_t i = 0; i < t->count; i++) {
        struct trainer_value *v = &t->value[i];
        rlx_tensor x;
        if (!v->info.param || v->info.trained != trained)
            continue;
        TRY(trainer_room(t, v, &x, err));
        rlx_status s = first_value(m, desc, v, &x, err);
        if (s == RLX_OK)
            s = give_value(t, v, &x, err);
        trainer_free_room(t, &x);
        TRY(s);
    }
    return RLX_OK;
}

/* ---- made and taken down ---- */

/* Updates are elementwise: in halves, small ones would be lost. */
static rlx_status check_precision(const rlx_session_desc *theirs, rlx_error *err)
{
    rlx_session_desc own = {RLX_SIZED(rlx_session_desc)};
    struct diag d;

    diag_init(&d, "train");
    DESC_READ(rlx_session_desc, &own, theirs, &d);
    bool f32 =
        own.precision == RLX_PRECISION_AS_DECLARED || own.precision == RLX_PRECISION_F32 ||
        (own.precision == RLX_PRECISION_CUSTOM && own.precision_map.elementwise == RLX_DTYPE_f32);
    if (d.count == 0 && !f32)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT,
                    "this precision would compute updates in halves, in which small ones are lost; "
                    "compute=bf16 (RLX_PRECISION_CUSTOM) has products alone in halves");
    return diag_report(&d, err);
}

static rlx_status open_session(rlx_trainer *t, const rlx_session_desc *desc, rlx_error *err)
{
    t->in_flight = desc && desc->size > offsetof(rlx_session_desc, in_flight) && desc->in_flight
                       ? desc->in_flight
                       : 2;
    TRY(rlx_session_create(t->model, t->dev, desc, &t->session, err));
    t->ticket = mem_alloc(&t->ctx->mem, t->in_flight * sizeof *t->ticket);
    if (!t->ticket)
        return trainer_fail(err, RLX_ERROR_MEMORY, "out of memory for %u tickets", t->in_flight);
    return RLX_OK;
}

static rlx_status fill(rlx_trainer *t, rlx_model *m, const rlx_trainer_desc *desc, rlx_error *err)
{
    size_t loss = 0;

    TRY(check_precision(desc->session, err));
    TRY(find_loss(m, desc->loss, &loss, err));
    TRY(rlx_model_key(m, NULL, &t->key, err));
    TRY(make_learner(t, m, loss, desc->train, err));
    TRY(list_values(t, m, err));
    TRY(make_quiet(t, m, loss, err));
    TRY(give_values(t, m, desc, false, err));
    TRY(open_session(t, desc->session, err));
    return give_values(t, m, desc, true, err);
}

static rlx_status read_desc(const rlx_trainer_desc *theirs, rlx_trainer_desc *own, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "train");
    DESC_READ(rlx_trainer_desc, own, theirs, &d);
    if (d.count == 0 && own->init_count && !own->init)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "init is NULL");
    return diag_report(&d, err);
}

rlx_status rlx_trainer_create(rlx_model *m, rlx_device *dev, const rlx_trainer_desc *desc,
                              rlx_trainer **out, rlx_error *err)
{
    rlx_trainer_desc own = {RLX_SIZED(rlx_trainer_desc)};

    if (!m || !dev || !out)
        return trainer_fail(err, RLX_ERROR_ARGUMENT, "%s is NULL",
                            !m     ? "the model"
                            : !dev ? "the device"
                                   : "out");
    TRY(read_desc(desc, &own, err));
    rlx_trainer *t = mem_alloc(&dev->ctx->mem, sizeof *t);
    if (!t)
        return trainer_fail(err, RLX_ERROR_MEMORY, "out of memory for a trainer");
    t->ctx = context_retain(dev->ctx);
    t->dev = dev;
    device_retain(dev);
    t->bad_run = t->evaluated = -1;
    t->grad_norm = t->rate = __builtin_nanf("");
    arena_init(&t->arena, &t->ctx->mem);
    snprintf(t->name, sizeof t->name, "%s", own.name ? own.name : "model");
    rlx_status s = fill(t, m, &own, err);
    if (s == RLX_OK)
        *out = t;
    else
        rlx_trainer_destroy(t);
    return s;
}

void rlx_trainer_destroy(rlx_trainer *t)
{
    if (!t)
        return;
    struct rlx_context *ctx = t->ctx;
    rlx_session_destroy(t->session);
    rlx_session_destroy(t->evaluation);
    rlx_session_destroy(t->probe);
    rlx_model_destroy(t->model);
    rlx_model_destroy(t->quiet);
    rlx_device_close(t->dev);
    mem_free(&ctx->mem, t->ticket, t->in_flight * sizeof *t->ticket);
    arena_free(&t->arena);
    mem_free(&ctx->mem, t, sizeof *t);
    context_release(ctx);
}
