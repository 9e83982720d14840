/* user_kernel.h: a kernel of the user's, its text and its constants, for those who compile it and
 * those who run it. */
#ifndef INSPECT_USER_KERNEL_H
#define INSPECT_USER_KERNEL_H

#include "context/context.h"
#include "kernel/kernel.h"
#include "rlx/kernel.h"

#define KERNEL_DEFINES 64

/* The file that was asked for, and those beside it, read when they are first used. */
struct kernel_files {
    rlx_context *ctx;
    const char *file, *source; /* of the first; the source may be NULL */
    const char *path;          /* of the first, where it is not the library's nor given as text */
    struct arena *arena;
    struct diag *diag;
};
/* The sources point to out, and what they find lives in the arena. */
struct kc_sources kernel_files_open(struct kernel_files *out, rlx_context *ctx,
                                    const rlx_kernel_desc *desc, struct arena *arena,
                                    struct diag *d);

/* The kernel that desc names, or the file's first, made for a device with these features. */
rlx_status kernel_make(const struct kc_sources *sources, const rlx_kernel_desc *desc,
                       const struct kc_features *f, struct arena *arena, struct kir *out,
                       struct diag *d);

/* In the form that desc wants. */
rlx_status user_kernel_compile(rlx_context *ctx, const rlx_kernel_desc *desc, struct text *out,
                               struct diag *d);
/* user_kernel_run.c: UNSUPPORTED on a device that is not a GPU. */
rlx_status user_kernel_run(rlx_context *ctx, rlx_device *dev, const rlx_kernel_run_desc *run,
                           struct diag *d);

#endif
