/* api_model.c: models: made, loaded, asked what is in them, given params, turned into others. */
#include "base/desc.h"
#include "base/str.h"
#include "compile/load_model.h"
#include "graph/builder.h"
#include "inspect/inspect.h"
#include "ir/text/text.h"
#include "model/dims.h"
#include "model/quantise_weight.h"
#include "model/save_onnx.h"
#include "model/weights.h"
#include "rlx/onnx.h"
#include "rlx/quant.h"
#include "session/session.h"

rlx_status rlx_model_create(rlx_graph *g, rlx_model **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "build");
    if (!g || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", g ? "out" : "g");
    else
        model_create(g, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_model_parse(rlx_context *ctx, rlx_str text, rlx_model **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "parse");
    if (!ctx || !out || !text.ptr)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !out ? "out" : "text");
    else
        model_parse(ctx, text, &(struct text_parse_options){.customs = &ctx->customs}, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_model_load(rlx_context *ctx, const char *path, const rlx_load_desc *desc,
                          rlx_model **out, rlx_error *err)
{
    rlx_load_desc own = {RLX_SIZED(rlx_load_desc)};
    struct diag d;

    diag_init(&d, "load");
    if (!ctx || !out || !path)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !out ? "out" : "path");
    else if (DESC_READ(rlx_load_desc, &own, desc, &d) == RLX_OK)
        load_model(ctx, path, &own, out, &d);
    return diag_report(&d, err);
}

void rlx_model_destroy(rlx_model *m)
{
    model_release(m);
}

/* ---- what is in it ---- */

size_t rlx_model_io_count(const rlx_model *m, rlx_io_kind kind)
{
    return m ? model_io_count(m, kind) : 0;
}

rlx_status rlx_model_io(const rlx_model *m, rlx_io_kind kind, size_t i, rlx_io_info *out,
                        rlx_error *err)
{
    rlx_io_info own = {RLX_SIZED(rlx_io_info)};
    struct diag d;

    diag_init(&d, "model");
    if (!m)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "m is NULL");
    else if (model_io(m, kind, i, &own, &d) == RLX_OK)
        INFO_WRITE(rlx_io_info, &own, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_model_input_shape(const rlx_model *m, size_t i, const rlx_dim_size *dims,
                                 size_t dim_count, rlx_tensor *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "model");
    if (!m || !out || (dim_count && !dims))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !out ? "out" : "dims");
    else
        model_input_shape(m, i, dims, dim_count, out, &d);
    return diag_report(&d, err);
}

const char *rlx_model_io_type(const rlx_model *m, rlx_io_kind kind, size_t i, char *out,
                              size_t size)
{
    if (!out || !size)
        return "";
    out[0] = 0;
    if (m)
        model_io_type(m, kind, i, out, size);
    return out;
}

size_t rlx_model_dim_count(const rlx_model *m)
{
    return m ? model_dim_count(m) : 0;
}

rlx_status rlx_model_dims(const rlx_model *m, const rlx_run_desc *run, rlx_model_dim *out,
                          rlx_error *err)
{
    rlx_run_desc own = {RLX_SIZED(rlx_run_desc)};
    struct diag d;

    diag_init(&d, "model");
    if (!m || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "out" : "m");
    else if (DESC_READ(rlx_run_desc, &own, run, &d) == RLX_OK)
        binding_of_model(m, &own, out, &d);
    return diag_report(&d, err);
}

/* ---- params ---- */

rlx_status rlx_model_set_param(rlx_model *m, const char *name, const rlx_tensor *value,
                               rlx_error *err)
{
    struct diag d;

    diag_init(&d, "params");
    if (!m || !name || !value)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !name ? "name" : "value");
    else
        model_set_param(m, name, value, &d);
    return diag_report(&d, err);
}

rlx_status rlx_model_get_param(rlx_model *m, const char *name, rlx_tensor *value, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "params");
    if (!m || !name || !value)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !name ? "name" : "value");
    else
        model_get_param(m, name, value, &d);
    return diag_report(&d, err);
}

rlx_status rlx_model_load_weights(rlx_model *m, rlx_weights *w, rlx_weights_use *out,
                                  rlx_error *err)
{
    rlx_weights_use use = {RLX_SIZED(rlx_weights_use)};
    struct diag d;

    diag_init(&d, "params");
    if (!m || !w)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "w" : "m");
    else if ((!out || INFO_CHECK(rlx_weights_use, out, &d) == RLX_OK) &&
             model_load_weights(m, w, &use, &d) == RLX_OK && out)
        INFO_WRITE(rlx_weights_use, &use, out, &d);
    return diag_report(&d, err);
}

bool rlx_model_has_param(const rlx_model *m, rlx_str name)
{
    return m && model_has_param(m, name);
}

/* ---- models from models ---- */

rlx_status rlx_model_insert_qdq(const rlx_model *m, const rlx_qdq_record *records, size_t count,
                                rlx_model **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "quantise");
    if (!m || !out || (count && !records))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !out ? "out" : "records");
    else
        model_insert_qdq(m, records, count, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_model_save_onnx(const rlx_model *m, const char *path, const rlx_onnx_desc *desc,
                               rlx_error *err)
{
    rlx_onnx_desc own = {RLX_SIZED(rlx_onnx_desc)};
    struct diag d;

    diag_init(&d, "save");
    if (!m || !path || !*path)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is %s", !m ? "m" : "path",
                  m && path ? "empty" : "NULL");
    else if (DESC_READ(rlx_onnx_desc, &own, desc, &d) == RLX_OK)
        model_save_onnx(m, path, own.external, &d);
    return diag_report(&d, err);
}

rlx_status rlx_model_transform(const rlx_model *m, const char *passes, rlx_device *dev,
                               rlx_model **out, rlx_error *err)
{
    return rlx_model_transform_for(m, passes, dev, NULL, out, err);
}

rlx_status rlx_model_transform_for(const rlx_model *m, const char *passes, rlx_device *dev,
                                   const rlx_session_desc *desc, rlx_model **out, rlx_error *err)
{
    rlx_session_desc own = {RLX_SIZED(rlx_session_desc)};
    struct diag d;

    diag_init(&d, "pass");
    if (!m || !passes || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !passes ? "passes" : "out");
    else if (DESC_READ(rlx_session_desc, &own, desc, &d) == RLX_OK)
        model_transform(m, passes, dev, &own, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_model_after(const rlx_model *m, const char *pass, rlx_device *dev, rlx_model **out,
                           rlx_error *err)
{
    struct diag d;

    diag_init(&d, "passes");
    if (!m || !pass || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !pass ? "pass" : "out");
    else
        model_after_pass(m, pass, dev, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_model_promote_params(const rlx_model *m, const char *const *names, size_t count,
                                    rlx_model **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "promote");
    if (!m || !out || (count && !names))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !out ? "out" : "names");
    else
        model_promote_params(m, names, count, out, &d);
    return diag_report(&d, err);
}
