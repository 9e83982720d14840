/* api_context.c: contexts and the devices they have open; flags. */
#include "base/desc.h"
#include "base/version.h"
#include "context/ceiling.h"
#include "context/context.h"
#include "graph/builder.h"
#include "rlx/tools.h"

rlx_status rlx_context_create(uint32_t version, const rlx_context_desc *desc, rlx_context **out,
                              rlx_error *err)
{
    rlx_context_desc own = {RLX_SIZED(rlx_context_desc)};
    struct diag d;

    diag_init(&d, "context");
    if (!out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "out is NULL");
    else if (!version_serves(RLX_VERSION, version))
        diag_fail(&d, RLX_ERROR_VERSION,
                  "the program was compiled with headers of rlx %u.%u.%u, the library is "
                  "%d.%d.%d: compile it again",
                  version / 10000, version / 100 % 100, version % 100, RLX_VERSION / 10000,
                  RLX_VERSION / 100 % 100, RLX_VERSION % 100);
    else if (DESC_READ(rlx_context_desc, &own, desc, &d) == RLX_OK &&
             context_create(&own, out, &d) == RLX_OK)
        (*out)->customs.vjp = custom_vjp;
    return diag_report(&d, err);
}

void rlx_context_destroy(rlx_context *ctx)
{
    context_release(ctx);
}

/* ---- devices ---- */

rlx_status rlx_device_open(rlx_context *ctx, const char *name, rlx_device **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "device");
    if (!ctx || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", ctx ? "out" : "ctx");
    else
        device_open(ctx, rlx_cstr(name), out, &d);
    return diag_report(&d, err);
}

void rlx_device_close(rlx_device *dev)
{
    device_release(dev);
}

rlx_status rlx_device_at(rlx_context *ctx, size_t i, rlx_device_info *out, rlx_error *err)
{
    rlx_device_info own = {RLX_SIZED(rlx_device_info)};
    struct diag d;

    diag_init(&d, "device");
    if (!ctx)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "ctx is NULL");
    else if (!device_at(ctx, i, &own))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "there is no device number %zu", i);
    else
        INFO_WRITE(rlx_device_info, &own, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_ceilings_measure(rlx_device *dev, bool fresh, rlx_ceilings *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "ceilings");
    if (!dev || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", dev ? "out" : "dev");
    else
        ceilings_measure(dev, fresh, out, &d);
    return diag_report(&d, err);
}

/* ---- flags ---- */

bool rlx_flag_at(const rlx_context *ctx, size_t i, rlx_flag_row *out)
{
    static const char *const kinds[] = {"switch", "number", "text", "choice"};
    static const char *const sources[] = {"default", "environment", "override"};

    if (!out || i >= FLAG_count)
        return false;
    const struct flag_info *info = flag_info((enum flag_id)i);
    const struct flag_value *v = ctx ? context_flag(ctx, (enum flag_id)i) : NULL;
    *out = (rlx_flag_row){
        .name = info->name,
        .kind = kinds[info->kind],
        .values = info->values,
        .default_value = info->default_text,
        .stability = info->stability,
        .layer = info->layer,
        .summary = info->summary,
        .value = v ? v->text : info->default_text,
        .source = sources[v ? v->source : FLAG_DEFAULT],
        .option = info->option,
        .on = v && (v->on || v->number > 0 || (info->kind == FLAG_KIND_TEXT && *v->text)),
    };
    return true;
}
