/* webgpu.h: the backend's own structs. Everything belongs to a device; nothing to the process.
 *
 *     library, adapters     wgpu_loader.c
 *     device, errors        wgpu_device.c
 *     limits, features      wgpu_features.c
 *     buffers, transfers    wgpu_memory.c, wgpu_transfer.c, wgpu_readback.c
 *     kernels               wgpu_pipeline.c
 *     programs              wgpu_record.c, wgpu_submit.c, wgpu_times.c: launches with their bind
 *                           groups, tickets
 *
 * WebGPU does its work in the order it is given, and keeps what that needs alive; so there are no
 * barriers here, and nothing is waited for before it is released. */
#ifndef BACKEND_WEBGPU_WEBGPU_H
#define BACKEND_WEBGPU_WEBGPU_H

#include <pthread.h>
#include <stdatomic.h>
#define WGPU_SKIP_DECLARATIONS
#include <webgpu.h>

#include "backend/gpu/gpu_driver.h"

/* The functions that are called; the library is found at run time. */
struct wg_functions {
#define WG_FUNCTION(name) WGPUProc##name name;
#include "backend/webgpu/wgpu_functions.def"
    /* wgpu-native's own */
    uint32_t (*GetVersion)(void);
    WGPUBool (*DevicePoll)(WGPUDevice device, WGPUBool wait, const uint64_t *submission);
    size_t (*InstanceEnumerateAdapters)(WGPUInstance instance, const void *options,
                                        WGPUAdapter *adapters);
    float (*QueueGetTimestampPeriod)(WGPUQueue queue);
    WGPUShaderModule (*DeviceCreateShaderModuleTrusted)(WGPUDevice device,
                                                        const WGPUShaderModuleDescriptor *module,
                                                        uint64_t checks);
};

/* A buffer that the host can map, or is waiting for. */
struct wg_staging {
    WGPUBuffer handle;
    uint64_t bytes, mapped; /* mapped: of them */
    const uint8_t *at;
    /* Four times the number of the mapping, and what has become of it, together: the answer may
     * come to a thread that waits for something else, and one to an earlier mapping is not heard.
     */
    atomic_uintptr_t stage;
};
enum { WG_UNMAPPED, WG_MAPPING, WG_MAPPED, WG_MAP_FAILED };

struct wg_fetched {
    struct span span; /* begins with a word */
    uint64_t start;   /* in the staging buffer */
};

struct wg_device {
    struct gpu_device gpu;
    struct wg_functions wg;
    WGPUInstance instance;
    WGPUAdapter adapter;
    WGPUDevice device;
    WGPUQueue queue;
    uint32_t max_group, max_shared; /* invocations, bytes of a group */
    double tick_ns;                 /* of its clock */
    bool plain_subgroups;           /* kernels use them without saying so */

    pthread_mutex_t errors; /* of the two that follow; callbacks come from any thread */
    bool has_errors;        /* that lock was made */
    WGPUErrorType error;    /* the first not reported yet; 0: none */
    char message[400];

    /* under the device's lock */
    struct wg_staging tiny, staging; /* what the host reads comes through them */
    VEC(struct wg_fetched) fetched;  /* lies in `staging`; none: nothing does */
    WGPUBuffer between;              /* copies within a buffer go by it */
    uint64_t between_bytes;
};

static inline struct wg_device *wg_device_of(struct backend *b)
{
    return (struct wg_device *)b;
}
static inline struct wg_device *wg_of(struct gpu_device *g)
{
    return (struct wg_device *)g;
}

static inline WGPUStringView wg_text(const char *text, size_t len)
{
    return (WGPUStringView){text, len};
}

/* What a callback said, as far as it fits. */
void wg_copy_text(char *out, size_t size, WGPUStringView text);
/* DEVICE_LOST, if it is; else what the library complained of since it was last asked. */
rlx_status wg_check(struct wg_device *dev, struct diag *d);
void wg_note_error(struct wg_device *dev, WGPUErrorType type, WGPUStringView text);

/* wgpu_loader.c. flags may be NULL. */
rlx_status wg_load(struct wg_functions *wg, const struct flags *flags, struct diag *d);
#define WG_MOST_ADAPTERS 16
/* The adapters that can be used, the fastest kind first; the caller releases them. */
uint32_t wg_adapters(struct wg_device *dev, WGPUAdapter out[WG_MOST_ADAPTERS]);
/* dev->adapter is set: what it is and can do. */
void wg_look_at(struct wg_device *dev);

/* wgpu_device.c */
extern const struct backend_ops webgpu_backend;
/* Let callbacks come; wait: until something is done. */
void wg_turn(struct wg_device *dev, bool wait);
/* How many adapters there are; NO_DEVICE: none, or no library. */
rlx_status wg_count_adapters(const struct device_desc *desc, uint32_t *count, struct diag *d);

/* wgpu_features.c. What a device is opened with, and what is then known of it. */
struct wg_wish {
    WGPULimits limits;
    WGPUFeatureName feature[4];
    size_t features;
};
rlx_status wg_choose(struct wg_device *dev, const struct flags *flags, struct wg_wish *wish,
                     struct diag *d);
/* It is open: what had to be tried. */
void wg_try(struct wg_device *dev);
void wg_describe(const struct backend *b, struct target *out);
void wg_list(const struct device_desc *desc, device_row_fn each, void *user);

/* wgpu_memory.c */
rlx_status wg_make_buffer(struct gpu_device *g, enum gpu_use use, struct buffer *buf,
                          struct diag *d);
void wg_drop_buffer(struct gpu_device *g, struct buffer *buf);

/* wgpu_transfer.c */
extern const struct gpu_transfers wg_transfers;
void wg_close_transfers(struct wg_device *dev);

/* wgpu_readback.c. Anything that is about to change makes what was fetched stale. */
rlx_status wg_get(struct gpu_device *g, struct span src, void *dst, struct diag *d);
rlx_status wg_fetch(struct gpu_device *g, const struct span *src, size_t count, struct diag *d);
void wg_forget_fetched(struct gpu_device *g);
void wg_close_readback(struct wg_device *dev);
/* How large a staging buffer is for so many bytes. */
uint64_t wg_staging_bytes(uint64_t need);
/* Where so many bytes lie after the `total` of others; total becomes that of all. */
uint64_t wg_staging_add(uint64_t *total, uint64_t bytes);

/* wgpu_pipeline.c */
struct wg_pipeline {
    WGPUComputePipeline handle;
    WGPUBindGroupLayout layout;
    uint32_t buffers, words; /* words: with those of offsets */
};
rlx_status wg_make_kernel(struct backend *b, const struct kir *k, const struct kc_emit *how,
                          const char *key, void **pipeline, struct diag *d);
void wg_drop_kernel(struct backend *b, void *pipeline);
/* The kernel of a source, called key in messages; buffers and words are set. What was made
 * before an error is dropped by the caller. */
rlx_status wg_make_pipeline(struct wg_device *dev, rlx_str source, const char *key,
                            struct wg_pipeline *p, struct diag *d);
void wg_drop_pipeline(struct wg_device *dev, struct wg_pipeline *p);

/* wgpu_record.c: a program's launches, with all that they need but an encoder. */
struct wg_launch {
    WGPUComputePipeline pipeline;
    WGPUBindGroup group;
    uint32_t grid[3];
    uint32_t command; /* whose it is, by its place in the piece */
};
struct wg_times { /* of each command two: when it began, when it ended */
    VEC(WGPUQuerySet) set;
    struct buffer buffer;
    VEC(uint64_t) tick; /* on the host */
    bool known;         /* tick holds those of the last run */
};
struct wg_recording {
    struct gpu_recording base; /* its commands are itself */
    VEC(struct wg_launch) launch;
    struct wg_times times; /* where it is timed */
};
static inline struct wg_recording *wg_recording_of(struct gpu_recording *r)
{
    return (struct wg_recording *)(void *)r;
}
rlx_status wg_reserve(struct gpu_device *g, struct gpu_recording *base, uint64_t launches,
                      struct diag *d);
rlx_status wg_prepare(struct gpu_device *g, struct gpu_recording *base,
                      const struct gpu_needs *needs, struct diag *d);
rlx_status wg_launch_one(struct gpu_device *g, struct gpu_recording *base,
                         const struct gpu_dispatch *l, struct diag *d);
void wg_drop_recording(struct gpu_device *g, struct gpu_recording *base);
/* All of them, for one run. */
WGPUCommandEncoder wg_encode(struct wg_device *dev, struct wg_recording *r);
void wg_encode_launch(struct wg_device *dev, WGPUComputePassEncoder pass,
                      const struct wg_launch *l);

/* wgpu_times.c: room for the times of so many commands; all launches, a pass for each command; what
 * was measured. */
rlx_status wg_make_times(struct wg_device *dev, struct wg_times *t, size_t count, struct diag *d);
void wg_encode_timed(struct wg_device *dev, struct wg_recording *r, size_t count,
                     WGPUCommandEncoder e);
bool wg_read_times(struct gpu_device *g, struct gpu_recording *r, size_t i, uint64_t out[2]);
void wg_close_times(struct wg_device *dev, struct wg_times *t);

/* wgpu_submit.c */
rlx_status wg_submit(struct gpu_device *g, void *const *commands, uint32_t count, uint64_t ticket,
                     struct diag *d);
uint64_t wg_done(struct gpu_device *g);
rlx_status wg_wait(struct gpu_device *g, uint64_t ticket, uint64_t ns, struct diag *d);
void wg_look(struct gpu_device *g);
/* Hand the encoder's commands to the queue; the ticket is the next. The lock is held. */
rlx_status wg_queue(struct wg_device *dev, WGPUCommandEncoder encoder, struct diag *d);

#endif
