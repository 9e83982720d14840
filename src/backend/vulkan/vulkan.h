/* vulkan.h: the backend's own structs. Everything belongs to a device; nothing to the process. */
#ifndef BACKEND_VULKAN_VULKAN_H
#define BACKEND_VULKAN_VULKAN_H

#include <pthread.h>
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "lower/gpu.h"

/* The functions that are called; the loader and the driver are found at run time. */
struct vk_functions {
#define VK_GLOBAL(name) PFN_vk##name name;
#define VK_INSTANCE(name) PFN_vk##name name;
#define VK_DEVICE(name) PFN_vk##name name;
#include "backend/vulkan/functions.def"
};

struct buffer {
    VkBuffer handle;
    VkDeviceMemory memory;
    uint64_t bytes;
    uint8_t *mapped; /* NULL: the host does not see it */
};

struct vk_recording; /* record.c */

struct vk_device {
    struct backend base;
    struct vk_loader *loader;
    struct vk_functions vk;
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t queue_family;
    VkQueue queue;
    VkCommandPool pool;
    VkPipelineCache cache;
    VkSemaphore timeline; /* its value is the last ticket that is done */
    uint64_t tickets;     /* given out */
    struct gpu_device *gpu;
    struct kc_features features;
    pthread_mutex_t lock; /* the queue, the command pool, the recordings */
    struct vk_recording *recordings;
    _Atomic uint64_t released; /* buffers that are gone: a recording from before may name one */
};

static inline struct vk_device *vk_device_of(struct backend *b)
{
    return (struct vk_device *)b;
}

/* A failed call as an error: MEMORY, DEVICE_LOST, ... */
rlx_status vk_fail(VkResult r, const char *call, struct diag *d);
#define VK_TRY(call, d)                          \
    do {                                         \
        VkResult vk_try_ = (call);               \
        if (vk_try_ != VK_SUCCESS)               \
            return vk_fail(vk_try_, #call, (d)); \
    } while (0)

/* loader.c */
rlx_status vk_loader_open(const rlx_allocator *mem, struct vk_functions *vk, struct vk_loader **out,
                          struct diag *d);
void vk_loader_close(struct vk_loader *l);
bool vk_load_instance(struct vk_loader *l, struct vk_functions *vk, VkInstance instance);
bool vk_load_device(struct vk_functions *vk, VkDevice device);

/* features.c: what the compiler may use; the chain that asks the driver for it. */
struct vk_features {
    VkPhysicalDeviceFeatures2 core;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
};
void vk_find_features(struct vk_device *dev, struct vk_features *out);

/* memory.c */
rlx_status vk_alloc(struct backend *b, uint64_t bytes, struct buffer **out, struct diag *d);
void vk_release(struct backend *b, struct buffer *buf);
rlx_status vk_write(struct backend *b, struct span dst, const void *src, struct diag *d);
rlx_status vk_read(struct backend *b, struct span src, void *dst, struct diag *d);
rlx_status vk_copy(struct backend *b, struct span dst, struct span src, struct diag *d);
rlx_status vk_fill(struct backend *b, struct span dst, uint8_t byte, struct diag *d);

/* pipeline.c */
struct vk_pipeline {
    VkPipeline handle;
    VkPipelineLayout layout;
    VkDescriptorSetLayout set;
    VkShaderModule module;
    uint32_t buffers, push_bytes;
    bool words_in_buffer; /* parameters are a buffer behind the others */
};
extern const struct gpu_driver vk_driver;

/* record.c: a program's commands as a command buffer, made once for its launches. */
rlx_status vk_submit(struct backend *b, const struct command *list, size_t count,
                     const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                     struct diag *d);
rlx_status vk_poll(struct backend *b, uint64_t ticket, bool *done, struct diag *d);
rlx_status vk_wait(struct backend *b, uint64_t ticket, struct diag *d);
void vk_unload(struct backend *b, const struct command *list);
void vk_drop_recordings(struct vk_device *dev);

#endif
