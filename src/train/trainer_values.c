/* trainer_values.c: params and states of a trainer, one by one, and its params in a file. */
#include <string.h>

#include "train/trainer.h"

/* ---- room ---- */

rlx_status trainer_room(const rlx_trainer *t, const struct trainer_value *v, rlx_tensor *out,
                        rlx_error *err)
{
    *out = (rlx_tensor){.dtype = v->info.dtype, .rank = v->info.rank, .bytes = v->bytes};
    memcpy(out->dim, v->info.dim, sizeof out->dim);
    out->data = mem_alloc(&t->ctx->mem, v->bytes ? v->bytes : 1);
    if (!out->data)
        return trainer_fail(err, RLX_ERROR_MEMORY, "out of memory for %zu bytes of \"%s\"",
                            v->bytes, v->info.name.ptr);
    return RLX_OK;
}

void trainer_free_room(const rlx_trainer *t, rlx_tensor *room)
{
    mem_free(&t->ctx->mem, room->data, room->bytes ? room->bytes : 1);
}

rlx_status trainer_read(rlx_trainer *t, const struct trainer_value *v, rlx_tensor *out,
                        rlx_error *err)
{
    if (v->info.param && !v->info.trained)
        return rlx_session_get_param(t->session, v->info.name.ptr, out, err);
    return rlx_session_get_state(t->session, v->info.name.ptr, out, err);
}

static bool has_state(const rlx_model *m, rlx_str name)
{
    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_STATE); i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        if (rlx_model_io(m, RLX_IO_STATE, i, &info, NULL) == RLX_OK && str_eq(info.name, name))
            return true;
    }
    return false;
}

rlx_status trainer_copy_states(rlx_trainer *t, rlx_session *to, const rlx_model *of, rlx_error *err)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct trainer_value *v = &t->value[i];
        rlx_tensor x;
        if (!has_state(of, v->info.name))
            continue;
        TRY(trainer_room(t, v, &x, err));
        rlx_status s = trainer_read(t, v, &x, err);
        if (s == RLX_OK)
            s = rlx_session_set_state(to, v->info.name.ptr, &x, err);
        trainer_free_room(t, &x);
        TRY(s);
    }
    return RLX_OK;
}

/* ---- asked for ---- */

bool rlx_trainer_value_at(const rlx_trainer *t, size_t i, rlx_trainer_value *out)
{
    if (!t || !out || i >= t->count)
        return false;
    *out = t->value[i].info;
    return true;
}

rlx_status rlx_trainer_get(rlx_trainer *t, const char *name, rlx_tensor *value, rlx_error *err)
{
    rlx_nearest near = {.wanted = rlx_cstr(name)};
    char hint[RLX_NEAREST_HINT];

    if (!t || !name || !value)
        return trainer_fail(err, RLX_ERROR_ARGUMENT, "%s is NULL",
                            !t      ? "the trainer"
                            : !name ? "the name"
                                    : "the value");
    for (size_t i = 0; i < t->count; i++) {
        if (!str_eq(t->value[i].info.name, near.wanted)) {
            rlx_nearest_offer(&near, t->value[i].info.name);
            continue;
        }
        TRY(trainer_wait(t, err));
        return trainer_read(t, &t->value[i], value, err);
    }
    return trainer_fail(err, RLX_ERROR_NAME, "there is no param or state \"%s\"%s", name,
                        rlx_nearest_hint(&near, hint));
}

/* ---- a file of params ---- */

rlx_weight_type trainer_weight_type(rlx_dtype dtype)
{
    rlx_weight_type_info info = {RLX_SIZED(rlx_weight_type_info)};
    int i = 0;

    while (rlx_weight_type_describe((rlx_weight_type)i, &info, NULL) == RLX_OK &&
           (info.use != RLX_WEIGHT_PLAIN || info.dtype != dtype))
        i++;
    return (rlx_weight_type)i;
}

static rlx_status write_values(rlx_trainer *t, rlx_weights_writer *w,
                               const struct trainer_value *const *value, rlx_error *err)
{
    uint64_t left;
    size_t i;

    while (rlx_weights_next(w, &i, &left)) {
        rlx_tensor x;
        TRY(trainer_room(t, value[i], &x, err));
        rlx_status s = trainer_read(t, value[i], &x, err);
        if (s == RLX_OK)
            s = rlx_weights_write(w, x.data, x.bytes, err);
        trainer_free_room(t, &x);
        TRY(s);
    }
    return RLX_OK;
}

rlx_status trainer_write_file(rlx_trainer *t, const char *path, rlx_file_kind kind,
                              bool (*wanted)(const struct trainer_value *v), const rlx_meta *meta,
                              size_t meta_count, rlx_error *err)
{
    struct arena arena;
    rlx_weights_writer *w;

    arena_init(&arena, &t->ctx->mem);
    rlx_weights_content content = {RLX_SIZED(rlx_weights_content), .kind = kind, .meta = meta,
                                   .meta_count = meta_count};
    rlx_weight *tensor = arena_array(&arena, rlx_weight, t->count);
    const struct trainer_value **value =
        arena_array(&arena, const struct trainer_value *, t->count);
    rlx_status s = tensor && value
                       ? RLX_OK
                       : trainer_fail(err, RLX_ERROR_MEMORY, "out of memory to write %s", path);
    for (size_t i = 0; s == RLX_OK && i < t->count; i++) {
        const rlx_trainer_value *v = &t->value[i].info;
        if (!wanted(&t->value[i]))
            continue;
        rlx_weight *one = &tensor[content.tensor_count];
        *one =
            (rlx_weight){.name = v->name, .type = trainer_weight_type(v->dtype), .rank = v->rank};
        memcpy(one->dim, v->dim, sizeof v->dim);
        value[content.tensor_count++] = &t->value[i];
    }
    content.tensor = tensor;
    if (s == RLX_OK)
        s = rlx_weights_begin(t->ctx, path, &content, &w, err);
    if (s == RLX_OK) {
        rlx_weights_make_durable(w);
        s = write_values(t, w, value, err);
        if (s == RLX_OK)
            s = rlx_weights_finish(w, err);
        else
            rlx_weights_abandon(w);
    }
    arena_free(&arena);
    return s;
}

static bool is_param(const struct trainer_value *v)
{
    return v->info.param;
}

rlx_status rlx_trainer_export(rlx_trainer *t, const char *path, rlx_error *err)
{
    if (!t || !path)
        return trainer_fail(err, RLX_ERROR_ARGUMENT, "%s is NULL", t ? "the path" : "the trainer");
    TRY(trainer_wait(t, err));
    bool npz = str_ends(rlx_cstr(path), STR(".npz"));
    return trainer_write_file(t, path, npz ? RLX_FILE_npz : RLX_FILE_safetensors, is_param, NULL, 0,
                              err);
}
