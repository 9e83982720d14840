/* api_kernel.c: rlx/kernel.h: kernels of the user's. */
#include "base/desc.h"
#include "base/str.h"
#include "inspect/user_kernel.h"

/* The desc as this library knows it, with a file. */
static rlx_status read_kernel(const rlx_kernel_desc *theirs, rlx_kernel_desc *out, struct diag *d)
{
    *out = (rlx_kernel_desc){RLX_SIZED(rlx_kernel_desc)};
    TRY(DESC_READ(rlx_kernel_desc, out, theirs, d));
    return out->file ? RLX_OK : diag_fail(d, RLX_ERROR_ARGUMENT, "file is NULL");
}

rlx_status rlx_kernel_compile(rlx_context *ctx, const rlx_kernel_desc *desc,
                              void (*write)(void *user, const char *text, size_t len), void *user,
                              rlx_error *err)
{
    rlx_kernel_desc own;
    struct diag d;
    struct text out;

    diag_init(&d, "kernel");
    if (!ctx || !desc || !write)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !desc ? "desc" : "write");
    else if (read_kernel(desc, &own, &d) == RLX_OK) {
        text_init(&out, &ctx->mem);
        if (user_kernel_compile(ctx, &own, &out, &d) == RLX_OK)
            write(user, out.at ? out.at : "", out.len);
        text_free(&out);
    }
    return diag_report(&d, err);
}

rlx_status rlx_kernel_run(rlx_context *ctx, rlx_device *dev, const rlx_kernel_run_desc *run,
                          rlx_error *err)
{
    rlx_kernel_run_desc own = {RLX_SIZED(rlx_kernel_run_desc)};
    rlx_kernel_desc kernel;
    struct diag d;

    diag_init(&d, "kernel");
    if (!ctx || !dev || !run)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !dev ? "dev" : "run");
    else if (DESC_READ(rlx_kernel_run_desc, &own, run, &d) != RLX_OK)
        ;
    else if (!own.kernel || (own.buffer_count && !own.buffers) || (own.word_count && !own.words))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL",
                  !own.kernel                        ? "kernel"
                  : own.buffer_count && !own.buffers ? "buffers"
                                                     : "words");
    else if (read_kernel(own.kernel, &kernel, &d) == RLX_OK) {
        own.kernel = &kernel;
        user_kernel_run(ctx, dev, &own, &d);
    }
    return diag_report(&d, err);
}
