/* api_kernel.c: rlx/kernel.h: kernels of the user's. */
#include "base/str.h"
#include "inspect/user_kernel.h"

rlx_status rlx_kernel_compile(rlx_context *ctx, const rlx_kernel_desc *desc,
                              void (*write)(void *user, const char *text, size_t len), void *user,
                              rlx_error *err)
{
    struct diag d;
    struct text out;

    diag_init(&d, "kernel");
    if (!ctx || !desc || !desc->file || !write) {
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL",
                  !ctx    ? "ctx"
                  : !desc ? "desc"
                  : write ? "file"
                          : "write");
        return diag_report(&d, err);
    }
    text_init(&out, &ctx->mem);
    if (user_kernel_compile(ctx, desc, &out, &d) == RLX_OK)
        write(user, out.at ? out.at : "", out.len);
    text_free(&out);
    return diag_report(&d, err);
}

rlx_status rlx_kernel_run(rlx_context *ctx, rlx_device *dev, const rlx_kernel_run_desc *run,
                          rlx_error *err)
{
    struct diag d;

    diag_init(&d, "kernel");
    if (!ctx || !dev || !run || !run->kernel.file || (run->buffer_count && !run->buffers) ||
        (run->word_count && !run->words))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL",
                  !ctx                                 ? "ctx"
                  : !dev                               ? "dev"
                  : !run                               ? "run"
                  : !run->kernel.file                  ? "file"
                  : run->buffer_count && !run->buffers ? "buffers"
                                                       : "words");
    else
        user_kernel_run(ctx, dev, run, &d);
    return diag_report(&d, err);
}
