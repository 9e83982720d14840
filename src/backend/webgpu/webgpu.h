/* webgpu.h: the backend's own structs. Everything belongs to a device; nothing to the process.
 *
 *     library, adapters     loader.c
 *     device, errors        device.c
 *     limits, features      features.c
 *     buffers, transfers    memory.c, transfer.c, readback.c
 *     kernels               pipeline.c
 *     programs              record.c, submit.c, times.c: launches with their bind groups, tickets
 *
 * WebGPU does its work in the order it is given, and keeps what that needs alive; so there are no
 * barriers here, and nothing is waited for before it is released. */
#ifndef BACKEND_WEBGPU_WEBGPU_H
#define BACKEND_WEBGPU_WEBGPU_H

#include <pthread.h>
#include <stdatomic.h>
#define WGPU_SKIP_DECLARATIONS
#include <webgpu.h>

#include "backend/gpu/gpu_programs.h"

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

struct buffer {
    WGPUBuffer handle;
    uint64_t bytes; /* a multiple of 256 */
    uint64_t asked;
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

/* What the flags of the context ask of a device. */
struct wg_options {
    bool no_cache;
    uint64_t max_binding, max_groups, max_memory, lose_after; /* 0: as it is */
};

struct wg_device {
    struct backend base;
    struct wg_options options;
    struct wg_functions wg;
    WGPUInstance instance;
    WGPUAdapter adapter;
    WGPUDevice device;
    WGPUQueue queue;
    struct kc_features features;
    uint64_t max_binding, max_buffer;
    uint32_t max_bindings;
    uint32_t max_groups, max_group,
        max_shared;          /* of a grid's axis; invocations, bytes of a group */
    char name[120];          /* of the adapter, and who drives it */
    bool is_cpu, timestamps; /* timestamps: it can time its own work, in ticks of tick_ns */
    double tick_ns;
    bool plain_subgroups;       /* kernels use them without saying so */
    atomic_uint_least64_t held; /* bytes of its memory */
    struct gpu_kernels kernels;
    struct buffer nothing; /* bound where a kernel is given no bytes */

    atomic_bool lost;
    pthread_mutex_t errors; /* of the two that follow; callbacks come from any thread */
    WGPUErrorType error;    /* the first that nobody was told of yet; 0: none */
    char message[400];

    pthread_mutex_t lock;            /* of all that follows */
    uint64_t tickets;                /* given out */
    atomic_uint_least64_t done;      /* known to be */
    struct wg_staging tiny, staging; /* what the host reads comes through them */
    VEC(struct wg_fetched) fetched;  /* lies in `staging`; none: nothing does */
    WGPUBuffer between;              /* copies within a buffer go by it */
    uint64_t between_bytes;
    struct gpu_programs programs;
    VEC(uint8_t) words; /* of launches that are recorded, on their way to a buffer */
};

static inline struct wg_device *wg_device_of(struct backend *b)
{
    return (struct wg_device *)b;
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

/* loader.c. flags may be NULL. */
rlx_status wg_load(struct wg_functions *wg, const struct flags *flags, struct diag *d);
#define WG_MOST_ADAPTERS 16
/* The adapters that can be used, the fastest kind first; the caller releases them. */
uint32_t wg_adapters(struct wg_device *dev, WGPUAdapter out[WG_MOST_ADAPTERS]);
/* dev->adapter is set: what it is and can do. */
void wg_look_at(struct wg_device *dev);

/* device.c */
extern const struct backend_ops webgpu_backend;
/* Let callbacks come; wait: until something is done. */
void wg_turn(struct wg_device *dev, bool wait);
/* How many adapters there are; NO_DEVICE: none, or no library. */
rlx_status wg_count_adapters(const struct device_desc *desc, uint32_t *count, struct diag *d);

/* features.c. What a device is opened with, and what is then known of it. */
struct wg_wish {
    WGPULimits limits;
    WGPUFeatureName feature[4];
    size_t features;
};
rlx_status wg_choose(struct wg_device *dev, const struct flags *flags, struct wg_wish *wish,
                     struct diag *d);
/* It is open: what had to be tried. */
void wg_try(struct wg_device *dev);
void wg_describe_device(const struct wg_device *dev, struct target *out);
void wg_list(const struct device_desc *desc, device_row_fn each, void *user);

/* memory.c */
rlx_status wg_make_buffer(struct wg_device *dev, WGPUBufferUsage use, uint64_t bytes,
                          struct buffer *out, struct diag *d);
void wg_drop_buffer(struct wg_device *dev, struct buffer *buf); /* {0} is fine */
#define WG_FOR_WORK (WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst)
rlx_status wg_alloc(struct backend *b, uint64_t bytes, struct buffer **out, struct diag *d);
void wg_release(struct backend *b, struct buffer *buf);
/* INTERNAL, where it is not inside its buffer; DEVICE_LOST. */
rlx_status wg_check_span(struct wg_device *dev, struct span s, struct diag *d);

/* transfer.c */
rlx_status wg_write(struct backend *b, struct span dst, const void *src, struct diag *d);
rlx_status wg_copy(struct backend *b, struct span dst, struct span src, struct diag *d);
rlx_status wg_fill(struct backend *b, struct span dst, uint8_t byte, struct diag *d);
void wg_close_transfers(struct wg_device *dev);

/* readback.c */
rlx_status wg_read(struct backend *b, struct span src, void *dst, struct diag *d);
void wg_fetch(struct backend *b, const struct span *src, size_t count);
/* With the lock held. Anything that is about to change makes what was fetched stale. */
rlx_status wg_get(struct wg_device *dev, struct span src, void *dst, struct diag *d);
void wg_forget_fetched(struct wg_device *dev);
void wg_close_readback(struct wg_device *dev);
/* How large a staging buffer is for so many bytes. */
uint64_t wg_staging_bytes(uint64_t need);
/* Where so many bytes lie behind the `total` of others; total becomes that of all. */
uint64_t wg_staging_add(uint64_t *total, uint64_t bytes);

/* pipeline.c */
struct wg_pipeline {
    WGPUComputePipeline handle;
    WGPUBindGroupLayout layout;
    uint32_t buffers, words; /* words: with those of offsets */
};
extern const struct gpu_pipelines wg_pipelines;
/* The kernel of a source, called key in messages; buffers and words are set. What was made
 * before an error is dropped by the caller. */
rlx_status wg_make_pipeline(struct wg_device *dev, rlx_str source, const char *key,
                            struct wg_pipeline *p, struct diag *d);
void wg_drop_pipeline(struct wg_device *dev, struct wg_pipeline *p);

/* record.c: a program's launches, with all that they need but an encoder. */
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
    struct gpu_recording base;
    VEC(struct wg_launch) launch;
    struct buffer words, fault;
    struct wg_times times; /* where it is timed */
};
static inline struct wg_recording *wg_recording_of(struct gpu_recording *r)
{
    return (struct wg_recording *)(void *)r;
}
/* As struct gpu_queue wants them. */
rlx_status wg_reserve(struct backend *b, struct gpu_recording *r, const struct gpu_piece *p,
                      struct diag *d);
rlx_status wg_record(struct backend *b, struct gpu_recording *r, const struct gpu_piece *p,
                     struct diag *d);
rlx_status wg_run(struct backend *b, struct gpu_recording *r, const struct gpu_piece *p,
                  struct diag *d);
void wg_drop_recording(struct backend *b, struct gpu_recording *r);
/* The kernels that its launches take where buffers overlap. */
rlx_status wg_prepare_launches(struct wg_device *dev, const struct command *c, struct diag *d);
rlx_status wg_read_fault(struct backend *b, struct gpu_recording *r, uint32_t *word, uint32_t words,
                         struct diag *d);
void wg_encode_launch(struct wg_device *dev, WGPUComputePassEncoder pass,
                      const struct wg_launch *l);

/* times.c: room for the times of so many commands; all launches, a pass for each command; what was
 * measured. */
rlx_status wg_make_times(struct wg_device *dev, struct wg_times *t, size_t count, struct diag *d);
void wg_encode_timed(struct wg_device *dev, struct wg_recording *r, size_t count,
                     WGPUCommandEncoder e);
bool wg_read_times(struct backend *b, struct gpu_recording *r, size_t i, uint64_t out[2]);
void wg_close_times(struct wg_device *dev, struct wg_times *t);

/* submit.c */
rlx_status wg_submit(struct backend *b, const struct command *list, size_t count,
                     const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                     struct diag *d);
rlx_status wg_poll(struct backend *b, uint64_t ticket, bool *done, struct diag *d);
rlx_status wg_wait(struct backend *b, uint64_t ticket, struct diag *d);
void wg_unload(struct backend *b, const struct command *list);
extern const struct gpu_queue wg_programs_queue;
/* Hand the encoder's commands to the queue; the ticket is the next. The lock is held. */
rlx_status wg_queue(struct wg_device *dev, WGPUCommandEncoder encoder, struct diag *d);
/* Until it is done; the lock may be held or not. */
rlx_status wg_await(struct wg_device *dev, uint64_t ticket, struct diag *d);

#endif
