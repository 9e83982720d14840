/* vulkan.h: the backend's own structs. Everything belongs to a device; nothing to the process.
 *
 *     instance, physical device    instance.c, debug.c: who is there, and the layer that checks us
 *     device, queue, features      device.c, features.c
 *     buffers, transfers           memory.c, transfer.c: the host's bytes and the device's
 *     kernels                      pipeline.c, cache.c
 *     programs                     record.c, submit.c: launches as command buffers, tickets */
#ifndef BACKEND_VULKAN_VULKAN_H
#define BACKEND_VULKAN_VULKAN_H

#include <pthread.h>
#include <stdatomic.h>
#define VK_NO_PROTOTYPES
#include "backend/vulkan/vk_coop.h"

#include "backend/gpu/gpu_programs.h"

/* The functions that are called; the loader and the driver are found at run time. */
struct vk_functions {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr; /* finds all others */
#define VK_GLOBAL(name) PFN_vk##name name;
#define VK_INSTANCE(name) PFN_vk##name name;
#define VK_OPTIONAL(name) PFN_vk##name name;
#define VK_DEVICE(name) PFN_vk##name name;
#include "backend/vulkan/vk_functions.def"
};

struct buffer {
    VkBuffer handle;
    VkDeviceMemory memory;
    uint64_t bytes, taken; /* as asked for, at least 16; as the driver took */
    uint64_t counted;      /* of taken, what counts as the device's memory */
    uint8_t *mapped;       /* NULL: the host does not see it */
    bool coherent;         /* of mapped */
    uint64_t used;         /* the last ticket that may touch it; under the device's lock */
};

/* How the host reaches the device's memory (runtime.md 3.4). */
enum vk_memory_mode {
    VK_MODE_AUTO,
    VK_MODE_MAPPED, /* it is the host's own: the host reads and writes it */
    VK_MODE_BAR,    /* the host sees it over a bus: it writes there, and reads little */
    VK_MODE_STAGING /* it does not: all goes through buffers of its own */
};

/* What the flags of the context ask of a device. */
struct vk_options {
    bool validation, no_coop, full_barrier, no_cache;
    enum vk_memory_mode mode;
    uint64_t max_binding, max_groups, max_memory, lose_after; /* 0: as it is */
};

/* Copies that wait to be submitted, or were; transfer.c. Each has a part of the upload buffer. */
#define VK_BATCHES 4
struct vk_batch {
    VkCommandBuffer commands;
    uint64_t ticket; /* of its last submission */
    uint64_t used;   /* bytes of its part */
    uint32_t count;  /* of commands */
    bool open;       /* it is being recorded */
};

struct vk_device {
    struct backend base;
    struct vk_options options;
    void (*log)(void *user, int level, const char *line);
    void *log_user;
    char *cache_path; /* of the pipeline cache; NULL: it is not kept */

    struct vk_functions vk;
    VkInstance instance;
    uint32_t api; /* what both the loader and the device know */
    VkDebugUtilsMessengerEXT messenger;
    atomic_uint complaints; /* errors of the validation layer that nobody was told of yet */
    char complaint[200];    /* the first of them */

    VkPhysicalDevice physical;
    VkDevice device;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    struct kc_features features;
    char driver[48]; /* its name and version */
    uint8_t uuid[VK_UUID_SIZE];
    uint64_t max_allocation;
    uint32_t required_subgroup; /* pipelines must ask for it; 0: there is only one size */
    bool has_budget;            /* VK_EXT_memory_budget */
    enum vk_memory_mode mode;
    atomic_uint_least64_t held; /* bytes of its memory */
    atomic_bool lost;

    uint32_t queue_family, timestamp_bits;
    VkQueue queue;
    VkCommandPool pool;
    VkPipelineCache cache;
    uint64_t cache_hash; /* of what it was filled with from disk */
    atomic_uint built;   /* pipelines */
    struct gpu_kernels kernels;
    struct buffer nothing; /* bound where a kernel is given no bytes */

    pthread_mutex_t lock;       /* of the queue, the command pool, and all that follows */
    VkSemaphore timeline;       /* its value is the last ticket that is done */
    uint64_t tickets;           /* given out */
    atomic_uint_least64_t done; /* known to be */
    struct vk_batch batch[VK_BATCHES];
    uint32_t batch_now;
    struct buffer upload, readback; /* made when first needed */
    struct gpu_hazards hazards;     /* of the open batch */
    struct gpu_programs programs;
    struct gpu_hazards recording; /* of the recording under way */
};

static inline struct vk_device *vk_device_of(struct backend *b)
{
    return (struct vk_device *)b;
}

/* A failed call as an error: MEMORY, DEVICE_LOST, ... A device that is lost stays so. */
rlx_status vk_fail(struct vk_device *dev, VkResult r, const char *call, struct diag *d);
#define VK_TRY(dev, call, d)                            \
    do {                                                \
        VkResult vk_try_ = (call);                      \
        if (vk_try_ < 0)                                \
            return vk_fail((dev), vk_try_, #call, (d)); \
    } while (0)
/* DEVICE_LOST, if it is. */
rlx_status vk_check(struct vk_device *dev, struct diag *d);
void vk_log(const struct vk_device *dev, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* loader.c */
rlx_status vk_load_library(struct vk_functions *vk, struct diag *d);
bool vk_load_instance(struct vk_functions *vk, VkInstance instance); /* false: some are missing */
bool vk_load_device(struct vk_functions *vk, VkDevice device);

/* instance.c: what there is. Of dev, its options and its log must be set. */
#define VK_LEAST VK_API_VERSION_1_2
#define VK_MOST_DEVICES 16
rlx_status vk_open_instance(struct vk_device *dev, struct diag *d);
void vk_close_instance(struct vk_device *dev);
/* The devices that can be used, the fastest kind first. */
uint32_t vk_physical_devices(struct vk_device *dev, VkPhysicalDevice out[VK_MOST_DEVICES]);
/* dev->physical is set: what it is and can do, without opening it. */
void vk_look_at(struct vk_device *dev);
void vk_describe_device(const struct vk_device *dev, struct target *out);
void vk_list(const struct device_desc *desc, device_row_fn each, void *user);

/* debug.c: the validation layer. */
extern const char vk_validation_layer[];
bool vk_has_validation(struct vk_device *dev);
VkDebugUtilsMessengerCreateInfoEXT vk_messenger_info(struct vk_device *dev);
rlx_status vk_open_messenger(struct vk_device *dev, struct diag *d);
/* INTERNAL, with what the layer said, if it had something to say since it was last asked. */
rlx_status vk_check_complaints(struct vk_device *dev, struct diag *d);

/* memory.c */
enum vk_use { VK_FOR_WORK, VK_FOR_UPLOAD, VK_FOR_READBACK };
enum vk_memory_mode vk_best_mode(const struct vk_device *dev);
/* A buffer in a struct of the caller's own; what it holds is not known. */
rlx_status vk_make_buffer(struct vk_device *dev, enum vk_use use, uint64_t bytes,
                          struct buffer *out, struct diag *d);
void vk_drop_buffer(struct vk_device *dev, struct buffer *buf); /* nobody uses it; {0} is fine */
rlx_status vk_alloc(struct backend *b, uint64_t bytes, struct buffer **out, struct diag *d);
void vk_release(struct backend *b, struct buffer *buf);
/* What the host wrote is to be seen by the device, and the other way round. */
void vk_flush(struct vk_device *dev, const struct buffer *buf, uint64_t offset, uint64_t bytes);
void vk_invalidate(struct vk_device *dev, const struct buffer *buf, uint64_t offset,
                   uint64_t bytes);

/* transfer.c: the host's bytes in and out, in the order of the queue. */
rlx_status vk_open_transfers(struct vk_device *dev, struct diag *d);
void vk_close_transfers(struct vk_device *dev);
rlx_status vk_write(struct backend *b, struct span dst, const void *src, struct diag *d);
rlx_status vk_read(struct backend *b, struct span src, void *dst, struct diag *d);
rlx_status vk_copy(struct backend *b, struct span dst, struct span src, struct diag *d);
rlx_status vk_fill(struct backend *b, struct span dst, uint8_t byte, struct diag *d);
/* With the lock held. */
rlx_status vk_put(struct vk_device *dev, struct span dst, const void *src, struct diag *d);
rlx_status vk_zero(struct vk_device *dev, struct span dst, struct diag *d); /* whole words */
rlx_status vk_submit_transfers(struct vk_device *dev, struct diag *d);
/* The same, but the caller hands them to the queue, first of all; none: VK_NULL_HANDLE. */
rlx_status vk_end_transfers(struct vk_device *dev, VkCommandBuffer *out, struct diag *d);

/* pipeline.c */
struct vk_pipeline {
    VkPipeline handle;
    VkPipelineLayout layout;
    VkDescriptorSetLayout set;
    VkShaderModule module;
    uint32_t buffers, push_bytes;
    bool words_in_buffer; /* parameters are a buffer behind the others */
};
extern const struct gpu_pipelines vk_pipelines;

/* cache.c: pipelines on disk. Trouble is logged, and fails nothing. */
void vk_cache_choose(struct vk_device *dev, const struct device_desc *desc);
void vk_cache_load(struct vk_device *dev);
void vk_cache_save(struct vk_device *dev);
void vk_cache_forget(struct vk_device *dev); /* the path */

/* record.c: a program's launches as a command buffer. */
#define VK_TOUCHED 32
struct vk_recording {
    struct gpu_recording base;
    VkCommandBuffer commands;
    VkDescriptorPool sets;
    uint32_t room_sets, room_buffers;
    VkQueryPool times; /* two for each command */
    uint32_t room_times;
    struct buffer words;             /* parameters that are too many to push */
    struct buffer fault, fault_seen; /* where kernels tell of bad indices, and its copy */
    struct buffer *touched[VK_TOUCHED];
    uint32_t touches; /* VK_TOUCHED + 1: more than are noted */
};
static inline struct vk_recording *vk_recording_of(struct gpu_recording *r)
{
    return (struct vk_recording *)(void *)r;
}
/* As struct gpu_queue wants them. */
rlx_status vk_record(struct backend *b, struct gpu_recording *r, const struct gpu_piece *p,
                     struct diag *d);
void vk_drop_recording(struct backend *b, struct gpu_recording *r);
bool vk_read_times(struct backend *b, struct gpu_recording *r, size_t i, uint64_t out[2]);
rlx_status vk_read_fault(struct backend *b, struct gpu_recording *r, uint32_t *word, uint32_t words,
                         struct diag *d);

/* submit.c */
rlx_status vk_submit(struct backend *b, const struct command *list, size_t count,
                     const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                     struct diag *d);
rlx_status vk_poll(struct backend *b, uint64_t ticket, bool *done, struct diag *d);
rlx_status vk_wait(struct backend *b, uint64_t ticket, struct diag *d);
void vk_unload(struct backend *b, const struct command *list);
extern const struct gpu_queue vk_programs_queue;
/* Hand commands to the queue, in one call; each has the next ticket. The lock is held. */
#define VK_AT_ONCE 2
rlx_status vk_queue(struct vk_device *dev, const VkCommandBuffer *commands, uint32_t count,
                    struct diag *d);
/* Is that ticket done? Asks the driver when it is not known to be. */
bool vk_is_done(struct vk_device *dev, uint64_t ticket);
/* Until it is; the lock may be held or not. */
rlx_status vk_await(struct vk_device *dev, uint64_t ticket, struct diag *d);

#endif
