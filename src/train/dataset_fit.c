/* dataset_fit.c: does the data fit a model's inputs? What does not is refused with both shapes. */
#include <stdio.h>

#include "train/dataset.h"

enum { USUAL_BATCH = 32 };

static const char *shape_text(const rlx_tensor *t, int32_t from, char out[160])
{
    size_t len = (size_t)snprintf(out, 160, "%s[", rlx_dtype_name(t->dtype));

    for (int32_t i = from; i < t->rank; i++)
        len += (size_t)snprintf(out + len, 160 - len, "%s%lld", i > from ? "," : "",
                                (long long)t->dim[i]);
    snprintf(out + len, 160 - len, "]");
    return out;
}

static struct dataset_array *find_array(const rlx_dataset *s, rlx_str name)
{
    for (size_t i = 0; i < s->count; i++)
        if (str_eq(rlx_cstr(s->array[i].name), name))
            return &s->array[i];
    return NULL;
}

static rlx_status fit_shape(const struct dataset_array *a, const rlx_io_info *in, const char *type,
                            struct diag *d)
{
    char all[160], one[160];
    bool same = in->rank == a->all.rank;

    for (int32_t k = 1; same && k < in->rank; k++)
        same = in->dim[k] < 0 || in->dim[k] == a->all.dim[k];
    if (!same)
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "\"%s\": the data is %s, so that an example is %s; the input is %s, with "
                         "a batch of examples along its first axis",
                         a->name, shape_text(&a->all, 0, all), shape_text(&a->all, 1, one), type);
    bool real = in->dtype <= RLX_DTYPE_f64; /* f32 is given for those */
    if (!convert_fits(a->all.dtype, real ? RLX_DTYPE_f32 : in->dtype))
        return diag_fail(d, RLX_ERROR_DTYPE, "\"%s\": the data is %s, the input is %s%s", a->name,
                         shape_text(&a->all, 0, all), type,
                         a->all.dtype <= RLX_DTYPE_f64 ? ": floats do not become integers" : "");
    return RLX_OK;
}

/* An input that has a size along its first axis says how large a batch is. */
static rlx_status fit_batch(rlx_dataset *s, const rlx_io_info *in, const char *type, bool *fixed,
                            struct diag *d)
{
    if (in->dim[0] < 0)
        return RLX_OK;
    if (s->wanted && s->wanted != in->dim[0])
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "a batch of %lld examples does not fit the input \"%.*s\", %s",
                         (long long)s->wanted, STR_ARG(in->name), type);
    s->wanted = in->dim[0];
    *fixed = true;
    return RLX_OK;
}

static rlx_status fit_input(rlx_dataset *s, const rlx_model *m, size_t i, bool *fixed,
                            struct diag *d)
{
    rlx_io_info in = {RLX_SIZED(rlx_io_info)};
    char type[256];
    rlx_error err;

    if (rlx_model_io(m, RLX_IO_INPUT, i, &in, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    struct dataset_array *a = find_array(s, in.name);
    rlx_model_io_type(m, RLX_IO_INPUT, i, type, sizeof type);
    if (!a && !in.used)
        return RLX_OK;
    if (!a)
        return diag_fail(d, RLX_ERROR_NAME, "there is no data for the input \"%.*s\", %s",
                         STR_ARG(in.name), type);
    TRY(fit_shape(a, &in, type, d));
    a->dtype = convert_fits(a->all.dtype, in.dtype) ? in.dtype : RLX_DTYPE_f32;
    if (s->tokens && a->dtype != RLX_DTYPE_i32)
        return diag_fail(d, RLX_ERROR_DTYPE, "\"%s\": tokens are i32, the input is %s", a->name,
                         type);
    return fit_batch(s, &in, type, fixed, d);
}

static rlx_status check_used(const rlx_dataset *s, const rlx_model *m, struct diag *d)
{
    char hint[RLX_NEAREST_HINT];

    for (size_t k = 0; k < s->count; k++) {
        rlx_nearest near = {.wanted = rlx_cstr(s->array[k].name)};
        bool found = false;
        for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_INPUT); i++) {
            rlx_io_info in = {RLX_SIZED(rlx_io_info)};
            if (rlx_model_io(m, RLX_IO_INPUT, i, &in, NULL) != RLX_OK)
                continue;
            found |= str_eq(in.name, near.wanted);
            rlx_nearest_offer(&near, in.name);
        }
        if (!found)
            return diag_fail(d, RLX_ERROR_NAME, "the model has no input \"%s\"%s", s->array[k].name,
                             rlx_nearest_hint(&near, hint));
    }
    return RLX_OK;
}

static rlx_status check_sizes(rlx_dataset *s, bool fixed, struct diag *d)
{
    s->batch = s->wanted ? s->wanted : USUAL_BATCH;
    if (!s->wanted && s->examples < s->batch)
        s->batch = s->examples;
    if (!s->tokens && s->examples < s->batch)
        return diag_fail(d, RLX_ERROR_SIZE, "%lld examples do not fill a batch of %lld",
                         (long long)s->examples, (long long)s->batch);
    if (s->held && fixed && s->held < s->batch)
        return diag_fail(d, RLX_ERROR_SIZE,
                         "the %lld examples that are held out do not fill a batch of %lld",
                         (long long)s->held, (long long)s->batch);
    return RLX_OK;
}

static rlx_status make_batch(rlx_dataset *s, struct diag *d)
{
    for (size_t i = 0; i < s->count; i++) {
        size_t bytes = rlx_dtype_size(s->array[i].dtype);
        if (!size_mul(bytes, s->array[i].elements, &bytes) ||
            !size_mul(bytes, (size_t)s->batch, &bytes))
            return diag_fail(d, RLX_ERROR_LIMIT, "a batch of \"%s\" is too large",
                             s->array[i].name);
        s->out_room = bytes > s->out_room ? bytes : s->out_room;
    }
    for (size_t i = 0; i < s->count; i++) {
        s->out[i] = (rlx_binding){s->array[i].name, s->array[i].all};
        s->out[i].tensor.dtype = s->array[i].dtype;
        s->out[i].tensor.data = mem_alloc(&s->ctx->mem, s->out_room);
        if (s->out_room && !s->out[i].tensor.data)
            return diag_no_memory(d, s->out_room);
    }
    return RLX_OK;
}

static rlx_status fit(rlx_dataset *s, const rlx_model *m, struct diag *d)
{
    bool fixed = false;

    if (s->batch)
        return diag_fail(d, RLX_ERROR_STATE, "the dataset was fitted already");
    TRY(check_used(s, m, d));
    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_INPUT); i++)
        TRY(fit_input(s, m, i, &fixed, d));
    int64_t wanted = s->wanted;
    TRY(check_sizes(s, fixed, d));
    rlx_status status = make_batch(s, d);
    if (status != RLX_OK) { /* may be tried again */
        s->batch = 0;
        s->wanted = wanted;
    }
    return status;
}

rlx_status rlx_dataset_fit(rlx_dataset *s, const rlx_model *m, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "data");
    if (!s || !m)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "the model" : "the dataset");
    else
        fit(s, m, &d);
    return diag_report(&d, err);
}
