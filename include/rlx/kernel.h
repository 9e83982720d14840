/* kernel.h: the kernel compiler by itself: .rlk source, made for one use, as SPIR-V, WGSL or a
 * listing. docs/kernel-language.md is its manual. */
#ifndef RLX_KERNEL_H
#define RLX_KERNEL_H

#ifndef RLX_UNSTABLE
#error "rlx/kernel.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/rlx.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rlx_kernel_form {
    RLX_KERNEL_TREE = 0,  /* the instructions that are left when all names and types are settled */
    RLX_KERNEL_WGSL = 1,  /* text */
    RLX_KERNEL_SPIRV = 2, /* words in this machine's order */
    RLX_KERNEL_NAMES = 3  /* the kernels of the file, one a line; no constants are needed */
} rlx_kernel_form;

typedef struct rlx_kernel_desc {
    uint32_t size;
    /* A path that ends in .rlk, or the name of a file of the library, such as "lib/math". What it
     * uses is looked for in the library, then beside it. */
    const char *file;
    const char *source;        /* its text; NULL: that of the file. file then only names it */
    const char *kernel;        /* NULL: the first */
    const char *const *define; /* "WG=256", "T=f16": constants that have no default, or another */
    size_t defines;
    rlx_kernel_form form;
    bool plain; /* for a device with none of the optional features */
} rlx_kernel_desc;

/* FORMAT, with file, line, column and the line itself, where the source is wrong. */
RLX_API rlx_status rlx_kernel_compile(rlx_context *ctx, const rlx_kernel_desc *desc,
                                      void (*write)(void *user, const char *text, size_t len),
                                      void *user, rlx_error *err);

/* A buffer of a kernel that is to run. */
typedef struct rlx_kernel_buffer {
    const char *name; /* of the parameter; NULL: the next one that is not named */
    rlx_tensor
        tensor; /* what it holds before and after; one that is only written may hold anything.
                 * Its element type is the parameter's; a vector is so many elements */
} rlx_kernel_buffer;

typedef struct rlx_kernel_run_desc {
    uint32_t size;
    const rlx_kernel_desc *kernel;    /* made for the device; form and plain are ignored */
    const rlx_kernel_buffer *buffers; /* one for each buffer of the kernel */
    size_t buffer_count;
    const char *const *words; /* "n=5", "dims=2,3": one for each other parameter */
    size_t word_count;
    uint32_t groups[3]; /* how many there are along x, y and z; 0 is 1 */
} rlx_kernel_run_desc;

/* Runs a kernel once on a GPU, and waits for it. ARGUMENT or NAME, with a list of the kernel's
 * parameters, where something is missing or does not fit; UNSUPPORTED on a device that is not a
 * GPU. The data of buffers that the kernel writes is its result then. */
RLX_API rlx_status rlx_kernel_run(rlx_context *ctx, rlx_device *dev, const rlx_kernel_run_desc *run,
                                  rlx_error *err);

#ifdef __cplusplus
}
#endif

#endif
