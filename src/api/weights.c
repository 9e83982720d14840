/* weights.c: `rlx/weights.h`: files of tensors, opened and asked. */
#include "api/objects.h"
#include "base/file.h"
#include "import/detect.h"

rlx_status rlx_file_detect(rlx_context *ctx, const char *path, rlx_file_kind *out, rlx_error *err)
{
    struct diag d;
    struct file f;

    diag_init(&d, "load");
    if (!ctx || !path || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !path ? "path" : "out");
    else if (file_open(&f, path, FILE_MAP, &ctx->mem, &d) == RLX_OK) {
        *out = detect_kind(f.data, f.size);
        file_close(&f);
    }
    return diag_report(&d, err);
}
