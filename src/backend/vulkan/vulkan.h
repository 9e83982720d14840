/* vulkan.h: the backend's own structs. Everything belongs to a device; nothing to the process.
 *
 *     instance, physical device    vk_instance.c, vk_debug.c: who is there, and the layer that
 *                                  checks us
 *     device, features             vk_device.c, vk_features.c
 *     buffers                      vk_memory.c
 *     kernels                      vk_pipeline.c, vk_cache.c
 *     commands, the queue          vk_record.c, vk_submit.c */
#ifndef BACKEND_VULKAN_VULKAN_H
#define BACKEND_VULKAN_VULKAN_H

#include <stdatomic.h>
#define VK_NO_PROTOTYPES
#include "backend/vulkan/vk_coop.h"

#include "backend/gpu/gpu_driver.h"

/* The functions that are called; the loader and the driver are found at run time. */
struct vk_functions {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr; /* finds all others */
#define VK_GLOBAL(name) PFN_vk##name name;
#define VK_INSTANCE(name) PFN_vk##name name;
#define VK_OPTIONAL(name) PFN_vk##name name;
#define VK_DEVICE(name) PFN_vk##name name;
#include "backend/vulkan/vk_functions.def"
};

struct vk_device {
    struct gpu_device gpu;
    char *cache_path; /* of the pipeline cache; NULL: it is not kept */

    struct vk_functions vk;
    VkInstance instance;
    uint32_t api; /* what both the loader and the device know */
    VkDebugUtilsMessengerEXT messenger;
    atomic_uint complaints; /* errors of the validation layer not reported yet */
    char complaint[200];    /* the first of them */

    VkPhysicalDevice physical;
    VkDevice device;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    char driver[48]; /* its name and version */
    uint8_t uuid[VK_UUID_SIZE];
    uint64_t max_allocation;
    uint32_t required_subgroup; /* pipelines must ask for it; 0: there is only one size */
    bool has_budget;            /* VK_EXT_memory_budget */

    uint32_t queue_family, timestamp_bits;
    VkQueue queue;
    VkCommandPool pool;
    VkPipelineCache cache;
    uint64_t cache_hash;  /* of what it was filled with from disk */
    atomic_uint built;    /* pipelines */
    VkSemaphore timeline; /* its value is the last ticket that is done */
};

static inline struct vk_device *vk_device_of(struct backend *b)
{
    return (struct vk_device *)b;
}
static inline struct vk_device *vk_of(struct gpu_device *g)
{
    return (struct vk_device *)g;
}

/* A failed call as an error: MEMORY, DEVICE_LOST, ... A device that is lost stays so. */
rlx_status vk_fail(struct vk_device *dev, VkResult r, const char *call, struct diag *d);
#define VK_TRY(dev, call, d)                            \
    do {                                                \
        VkResult vk_try_ = (call);                      \
        if (vk_try_ < 0)                                \
            return vk_fail((dev), vk_try_, #call, (d)); \
    } while (0)
/* vk_loader.c */
rlx_status vk_load_library(struct vk_functions *vk, struct diag *d);
bool vk_load_instance(struct vk_functions *vk, VkInstance instance); /* false: some are missing */
bool vk_load_device(struct vk_functions *vk, VkDevice device);

/* vk_instance.c: what there is. Of dev, its options and its log must be set. */
#define VK_LEAST VK_API_VERSION_1_2
#define VK_MOST_DEVICES 16
rlx_status vk_open_instance(struct vk_device *dev, struct diag *d);
void vk_close_instance(struct vk_device *dev);
/* The devices that can be used, the fastest kind first. */
uint32_t vk_physical_devices(struct vk_device *dev, VkPhysicalDevice out[VK_MOST_DEVICES]);
/* dev->physical is set: what it is and can do, without opening it. */
void vk_look_at(struct vk_device *dev);
bool vk_find_queue(struct vk_device *dev); /* false: there is none */
void vk_describe(const struct backend *b, struct target *out);
void vk_list(const struct device_desc *desc, device_row_fn each, void *user);

/* vk_debug.c: the validation layer. */
extern const char vk_validation_layer[];
bool vk_has_validation(struct vk_device *dev);
VkDebugUtilsMessengerCreateInfoEXT vk_messenger_info(struct vk_device *dev);
rlx_status vk_open_messenger(struct vk_device *dev, struct diag *d);
/* INTERNAL, with what the layer said, if it had something to say since it was last asked. */
rlx_status vk_check_complaints(struct gpu_device *g, struct diag *d);

/* vk_memory.c */
enum gpu_memory_mode vk_best_mode(const struct vk_device *dev);
rlx_status vk_make_buffer(struct gpu_device *g, enum gpu_use use, struct buffer *buf,
                          struct diag *d);
void vk_drop_buffer(struct gpu_device *g, struct buffer *buf);
void vk_flush(struct gpu_device *g, const struct buffer *buf, uint64_t offset, uint64_t bytes);
void vk_invalidate(struct gpu_device *g, const struct buffer *buf, uint64_t offset, uint64_t bytes);

/* vk_pipeline.c */
struct vk_pipeline {
    VkPipeline handle;
    VkPipelineLayout layout;
    VkDescriptorSetLayout set;
    VkShaderModule module;
    uint32_t buffers, push_bytes;
    bool words_in_buffer; /* parameters are a buffer after the others */
};
#define VK_PUSH_BYTES 128 /* what kc_emit_spirv puts into push constants at most */
rlx_status vk_make_pipeline(struct backend *b, const struct kir *k, const struct kc_emit *how,
                            const char *key, void **pipeline, struct diag *d);
void vk_drop_pipeline(struct backend *b, void *pipeline);

/* vk_cache.c: pipelines on disk. Trouble is logged, and fails nothing. */
void vk_cache_choose(struct vk_device *dev, const struct device_desc *desc);
void vk_cache_load(struct vk_device *dev);
void vk_cache_save(struct vk_device *dev);
void vk_cache_forget(struct vk_device *dev); /* the path */

/* vk_record.c: commands, and recordings of launches. */
struct vk_recording {
    struct gpu_recording base; /* its commands are a command buffer */
    VkDescriptorPool sets;
    uint32_t room_sets, room_buffers;
    VkQueryPool times;
    uint32_t room_times;
};
static inline struct vk_recording *vk_recording_of(struct gpu_recording *r)
{
    return (struct vk_recording *)(void *)r;
}
rlx_status vk_new_commands(struct gpu_device *g, void **out, struct diag *d);
rlx_status vk_begin(struct gpu_device *g, void *commands, bool once, struct diag *d);
rlx_status vk_end(struct gpu_device *g, void *commands, struct diag *d);
void vk_barrier(struct gpu_device *g, void *commands, int from, int to);
void vk_copy(struct gpu_device *g, void *commands, struct span dst, struct span src);
void vk_fill(struct gpu_device *g, void *commands, struct span dst, uint32_t word);
rlx_status vk_prepare(struct gpu_device *g, struct gpu_recording *base,
                      const struct gpu_needs *needs, struct diag *d);
rlx_status vk_launch(struct gpu_device *g, struct gpu_recording *base, const struct gpu_dispatch *l,
                     struct diag *d);
void vk_time(struct gpu_device *g, struct gpu_recording *base, uint32_t at);
bool vk_read_times(struct gpu_device *g, struct gpu_recording *r, size_t i, uint64_t out[2]);
void vk_drop_recording(struct gpu_device *g, struct gpu_recording *base);

/* vk_submit.c */
rlx_status vk_submit(struct gpu_device *g, void *const *commands, uint32_t count, uint64_t ticket,
                     struct diag *d);
uint64_t vk_done(struct gpu_device *g);
rlx_status vk_wait(struct gpu_device *g, uint64_t ticket, uint64_t ns, struct diag *d);

#endif
