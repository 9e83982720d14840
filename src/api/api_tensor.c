/* api_tensor.c: tensors in memory and in files. */
#include "context/context.h"
#include "model/tensor_file.h"

rlx_status rlx_tensor_alloc(rlx_context *ctx, rlx_tensor *t, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "tensor");
    if (!ctx || !t)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", ctx ? "t" : "ctx");
    else
        tensor_alloc(ctx, t, &d);
    return diag_report(&d, err);
}

void rlx_tensor_free(rlx_context *ctx, rlx_tensor *t)
{
    if (ctx && t)
        tensor_free(ctx, t);
}

/* ---- files ---- */

rlx_status rlx_tensor_load(rlx_context *ctx, const char *path, rlx_tensor *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "load");
    if (!ctx || !path || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !path ? "path" : "out");
    else
        tensor_load(ctx, path, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_tensor_save(rlx_context *ctx, const char *path, const rlx_tensor *t, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "save");
    if (!ctx || !path || !t)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !path ? "path" : "t");
    else
        tensor_save(ctx, path, t, &d);
    return diag_report(&d, err);
}

rlx_status rlx_tensor_list_load(rlx_context *ctx, const char *path, rlx_tensor_list *out,
                                rlx_error *err)
{
    struct diag d;

    diag_init(&d, "load");
    if (!ctx || !path || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !path ? "path" : "out");
    else
        tensor_list_load(ctx, path, out, &d);
    return diag_report(&d, err);
}

void rlx_tensor_list_free(rlx_context *ctx, rlx_tensor_list *l)
{
    if (ctx && l)
        tensor_list_free(ctx, l);
}

/* ---- pictures ---- */

rlx_status rlx_image_parse(rlx_context *ctx, const void *bytes, size_t size, rlx_tensor *out,
                           rlx_error *err)
{
    struct diag d;

    diag_init(&d, "load");
    if (!ctx || (!bytes && size) || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !out ? "out" : "bytes");
    else
        image_parse(ctx, bytes, size, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_image_load(rlx_context *ctx, const char *path, rlx_tensor *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "load");
    if (!ctx || !path || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !path ? "path" : "out");
    else
        image_load(ctx, path, out, &d);
    return diag_report(&d, err);
}

/* ---- two of them ---- */

rlx_status rlx_compare(const rlx_tensor *got, const rlx_tensor *want, rlx_tolerance preset,
                       rlx_comparison *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "compare");
    if (!got || !want || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !got ? "got" : !want ? "want" : "out");
    else
        tensor_compare(got, want, preset, out, &d);
    return diag_report(&d, err);
}
