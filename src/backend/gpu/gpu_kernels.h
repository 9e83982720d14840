/* gpu_kernels.h: the kernels that a device has made, each once, by what they were made of. */
#ifndef BACKEND_GPU_KERNELS_H
#define BACKEND_GPU_KERNELS_H

#include "base/arena.h"
#include "base/map.h"
#include "lower/gpu.h"

/* A kernel in the form that an API runs. */
struct gpu_pipelines {
    /* kir => pipeline; key names it in messages. */
    rlx_status (*make)(struct backend *b, const struct kir *k, const struct kc_emit *how,
                       const char *key, void **pipeline, struct diag *d);
    void (*drop)(struct backend *b, void *pipeline);
};

struct gpu_kernels {
    struct gpu_target target; /* what lowering sees of the device: first, as it finds us by it */
    const struct gpu_pipelines *pipelines;
    bool open;
    const rlx_allocator *mem;
    pthread_mutex_t lock; /* of all that follows */
    struct arena arena;   /* the kernels and their keys */
    struct map index;
    VEC(struct gpu_kernel *) kernel;
};
/* The target's backend, features and limits are set. */
rlx_status gpu_kernels_open(struct gpu_kernels *g, const struct gpu_pipelines *pipelines,
                            struct diag *d);
void gpu_kernels_close(struct gpu_kernels *g); /* {0} is fine */

/* The kernel of that key, made if there is none yet; it lives as long as the device. source: of a
 * generated one. bind: how its buffers are bound, which is part of the key. buffers, words: what
 * the caller passes, so that a kernel that wants other ones is found out here. */
rlx_status gpu_kernels_find(struct gpu_kernels *g, const char *key, rlx_str source,
                            const struct kc_binding *bind, uint32_t buffers, uint32_t words,
                            const struct gpu_kernel **out, struct diag *d);
/* A kernel that was compiled elsewhere, for one use; drop it after. No two of its buffers may
 * overlap, and all begin where a buffer can. */
rlx_status gpu_build_kernel(struct gpu_kernels *g, const struct kir *k, const char *key,
                            struct arena *scratch, struct gpu_kernel *out, struct diag *d);
void gpu_drop_kernel(struct gpu_kernels *g, struct gpu_kernel *k);

/* gpu_pack.c: for backend_ops.pack. */
rlx_status gpu_pack(struct gpu_kernels *k, struct command *c, struct span from, struct diag *d);

#endif
