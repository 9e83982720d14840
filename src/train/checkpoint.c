/* checkpoint.c: all that training needs to go on, in a safetensors file, and back. Tensors are the
 * states and those params that were drawn from the seed, each under its name; the metadata:
 *
 *     rlx.checkpoint   the version of this list, "1"
 *     rlx.model        what the model is called
 *     rlx.key          of its graph: equal where the graphs are
 *     rlx.runs         so far
 *     rlx.cursor, rlx.seed, rlx.note   the caller's: see rlx_checkpoint
 *
 * Everything in a file is looked at before any of it is taken. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/desc.h"
#include "train/trainer.h"

#define VERSION "1"

static bool is_kept(const struct trainer_value *v)
{
    return v->kept;
}

/* ---- saving ---- */

static rlx_status write_checkpoint(rlx_trainer *t, const char *path, const rlx_checkpoint *at,
                                   rlx_error *err)
{
    char key[24], runs[24], cursor[24], seed[24];

    snprintf(key, sizeof key, "%016" PRIx64, t->key);
    snprintf(runs, sizeof runs, "%" PRId64, t->runs);
    snprintf(cursor, sizeof cursor, "%" PRIu64, at->cursor);
    snprintf(seed, sizeof seed, "%" PRIu64, at->seed);
    const rlx_str text[] = {STR(VERSION),     rlx_cstr(t->name), rlx_cstr(key),     rlx_cstr(runs),
                            rlx_cstr(cursor), rlx_cstr(seed),    rlx_cstr(at->note)};
    static const char *const name[] = {"rlx.checkpoint", "rlx.model", "rlx.key", "rlx.runs",
                                       "rlx.cursor",     "rlx.seed",  "rlx.note"};
    enum { COUNT = sizeof name / sizeof name[0] };
    rlx_meta meta[COUNT];

    for (size_t i = 0; i < COUNT; i++)
        meta[i] = (rlx_meta){rlx_cstr(name[i]), RLX_META_string, false, 1, &text[i]};
    return trainer_write_file(t, path, RLX_FILE_safetensors, is_kept, meta, COUNT, err);
}

static rlx_status read_desc(const rlx_checkpoint *theirs, rlx_checkpoint *own, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "train");
    DESC_READ(rlx_checkpoint, own, theirs, &d);
    if (d.count == 0 && !memchr(own->note, 0, sizeof own->note))
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "the note does not end");
    return diag_report(&d, err);
}

rlx_status rlx_trainer_save(rlx_trainer *t, const char *path, const rlx_checkpoint *at,
                            rlx_error *err)
{
    rlx_checkpoint own = {RLX_SIZED(rlx_checkpoint), .cursor = 0};
    int32_t bad[2] = {0, 0};

    if (!t || !path)
        return trainer_fail(err, RLX_ERROR_ARGUMENT, "%s is NULL", t ? "the path" : "the trainer");
    TRY(read_desc(at, &own, err));
    TRY(trainer_wait(t, err));
    TRY(trainer_bad(t, bad, err));
    if (bad[0] > 0)
        return trainer_fail(err, RLX_ERROR_NUMERIC,
                            "the loss or the gradients of update %d are not finite: no checkpoint "
                            "is written",
                            bad[1] + 1);
    return write_checkpoint(t, path, &own, err);
}

/* ---- loading ---- */

struct loading {
    rlx_trainer *t;
    const char *path;
    rlx_weights *w;
    rlx_error *err;
};

static rlx_status read_number(const struct loading *l, rlx_str key, int64_t *out)
{
    rlx_str text = {NULL, 0};

    TRY(rlx_weights_get_str(l->w, key, &text, l->err));
    if (!text.ptr || !str_to_i64(text, out) || *out < 0)
        return trainer_fail(l->err, RLX_ERROR_FORMAT, "%s: \"%.*s\" is not a number", l->path,
                            STR_ARG(key));
    return RLX_OK;
}

/* Seeds and cursors have all 64 bits. */
static rlx_status read_u64(const struct loading *l, rlx_str key, uint64_t *out)
{
    rlx_str text = {NULL, 0};
    uint64_t v = 0;
    bool fits;

    TRY(rlx_weights_get_str(l->w, key, &text, l->err));
    fits = text.len > 0;
    for (size_t i = 0; fits && i < text.len; i++)
        fits = text.ptr[i] >= '0' && text.ptr[i] <= '9' && !__builtin_mul_overflow(v, 10u, &v) &&
               !__builtin_add_overflow(v, (uint64_t)(text.ptr[i] - '0'), &v);
    if (!fits)
        return trainer_fail(l->err, RLX_ERROR_FORMAT, "%s: \"%.*s\" is not a number", l->path,
                            STR_ARG(key));
    *out = v;
    return RLX_OK;
}

static rlx_status check_origin(const struct loading *l)
{
    rlx_str version = {NULL, 0}, name = {NULL, 0}, key = {NULL, 0};
    char own[24];

    TRY(rlx_weights_get_str(l->w, STR("rlx.checkpoint"), &version, l->err));
    TRY(rlx_weights_get_str(l->w, STR("rlx.model"), &name, l->err));
    TRY(rlx_weights_get_str(l->w, STR("rlx.key"), &key, l->err));
    if (!version.ptr || !name.ptr || !key.ptr)
        return trainer_fail(l->err, RLX_ERROR_FORMAT, "%s is not a checkpoint", l->path);
    if (!str_eq(version, STR(VERSION)))
        return trainer_fail(l->err, RLX_ERROR_VERSION,
                            "%s is a checkpoint of version \"%.*s\"; this library reads " VERSION,
                            l->path, STR_ARG(version));
    snprintf(own, sizeof own, "%016" PRIx64, l->t->key);
    if (!str_eq(key, rlx_cstr(own)))
        return trainer_fail(l->err, RLX_ERROR_NAME,
                            "%s is a checkpoint of \"%.*s\" (graph %.*s), not of \"%s\" (graph %s)",
                            l->path, STR_ARG(name), STR_ARG(key), l->t->name, own);
    return RLX_OK;
}

static rlx_status check_value(const struct loading *l, const struct trainer_value *v)
{
    rlx_weight found;
    rlx_weight_type_info type = {RLX_SIZED(rlx_weight_type_info), .name = "?"};
    size_t i;

    if (!rlx_weights_find(l->w, v->info.name, &i) || !rlx_weights_at(l->w, i, &found))
        return trainer_fail(l->err, RLX_ERROR_NAME,
                            "%s has no \"%s\": it was written with another optimiser, or other "
                            "params were trained",
                            l->path, v->info.name.ptr);
    rlx_weight_type_describe(found.type, &type, NULL);
    if (found.type != trainer_weight_type(v->info.dtype))
        return trainer_fail(l->err, RLX_ERROR_DTYPE, "%s: \"%s\" is %s and must be %s", l->path,
                            v->info.name.ptr, type.name, rlx_dtype_name(v->info.dtype));
    bool same = found.rank == v->info.rank;
    for (int32_t k = 0; same && k < found.rank; k++)
        same = found.dim[k] == v->info.dim[k];
    if (!same || found.bytes != v->bytes)
        return trainer_fail(l->err, RLX_ERROR_SHAPE,
                            "%s: \"%s\" has another shape there, of %" PRIu64 " bytes and not %zu",
                            l->path, v->info.name.ptr, found.bytes, v->bytes);
    return RLX_OK;
}

static rlx_status check_values(const struct loading *l)
{
    rlx_weights_info info = {RLX_SIZED(rlx_weights_info)};
    size_t kept = 0;

    TRY(rlx_weights_describe(l->w, &info, l->err));
    for (size_t i = 0; i < l->t->count; i++) {
        if (!l->t->value[i].kept)
            continue;
        TRY(check_value(l, &l->t->value[i]));
        kept++;
    }
    if (info.tensor_count != kept)
        return trainer_fail(l->err, RLX_ERROR_NAME,
                            "%s holds %zu params and states, where this training has %zu: it was "
                            "written with another optimiser",
                            l->path, info.tensor_count, kept);
    return RLX_OK;
}

/* A param that is not trained, of both graphs. */
static rlx_status take_param(rlx_trainer *t, const char *name, const rlx_tensor *x, rlx_error *err)
{
    TRY(rlx_session_set_param(t->session, name, x, err));
    if (t->evaluation)
        return rlx_session_set_param(t->evaluation, name, x, err);
    return rlx_model_set_param(t->quiet, name, x, err);
}

/* From a copy: tensors in a file need not be aligned. */
static rlx_status take_value(const struct loading *l, const struct trainer_value *v)
{
    const char *name = v->info.name.ptr;
    const void *data;
    rlx_tensor x;
    size_t i;

    if (!rlx_weights_find(l->w, v->info.name, &i))
        return RLX_ERROR_NAME;
    TRY(rlx_weights_data(l->w, i, &data, l->err));
    TRY(trainer_room(l->t, v, &x, l->err));
    if (v->bytes)
        memcpy(x.data, data, v->bytes);
    rlx_status s = v->info.param && !v->info.trained
                       ? take_param(l->t, name, &x, l->err)
                       : rlx_session_set_state(l->t->session, name, &x, l->err);
    trainer_free_room(l->t, &x);
    return s;
}

static rlx_status take_all(const struct loading *l, rlx_checkpoint *out)
{
    rlx_str note = {NULL, 0};
    int64_t runs = 0;

    TRY(check_origin(l));
    TRY(check_values(l));
    TRY(read_number(l, STR("rlx.runs"), &runs));
    TRY(read_u64(l, STR("rlx.cursor"), &out->cursor));
    TRY(read_u64(l, STR("rlx.seed"), &out->seed));
    TRY(rlx_weights_get_str(l->w, STR("rlx.note"), &note, l->err));
    snprintf(out->note, sizeof out->note, "%.*s", STR_ARG(note));
    for (size_t i = 0; i < l->t->count; i++)
        if (l->t->value[i].kept)
            TRY(take_value(l, &l->t->value[i]));
    l->t->runs = runs;
    l->t->bad_run = l->t->evaluated = -1;
    return RLX_OK;
}

rlx_status rlx_trainer_load(rlx_trainer *t, const char *path, rlx_checkpoint *out, rlx_error *err)
{
    rlx_load_desc whole = {RLX_SIZED(rlx_load_desc), .read_files = true};
    rlx_checkpoint own = {RLX_SIZED(rlx_checkpoint), .cursor = 0};
    struct loading l = {.t = t, .path = path, .err = err};
    struct diag d;

    if (!t || !path)
        return trainer_fail(err, RLX_ERROR_ARGUMENT, "%s is NULL", t ? "the path" : "the trainer");
    diag_init(&d, "train");
    if (out && INFO_CHECK(rlx_checkpoint, out, &d) != RLX_OK)
        return diag_report(&d, err);
    TRY(trainer_wait(t, err));
    TRY(rlx_weights_open(t->ctx, path, &whole, &l.w, err));
    rlx_status s = take_all(&l, &own);
    rlx_weights_close(l.w);
    if (s != RLX_OK || !out)
        return s;
    INFO_WRITE(rlx_checkpoint, &own, out, &d);
    return diag_report(&d, err);
}
