/* vk_device.c: opening a device, and what it says of itself. */
#include <stdio.h>
#include <string.h>

#include "backend/vulkan/vk_features.h"

extern const struct backend_ops vulkan_backend;

rlx_status vk_fail(struct vk_device *dev, VkResult r, const char *call, struct diag *d)
{
    char name[64];
    size_t n = strcspn(call, "(");
    const char *from = call;

    for (const char *p = call; p < call + n; p++) /* "dev->vk.QueueSubmit" */
        if (*p == '.' || *p == '>')
            from = p + 1;
    snprintf(name, sizeof name, "vk%.*s", (int)(call + n - from), from);
    switch (r) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
        return diag_fail(d, RLX_ERROR_MEMORY, "%s: the device has no more memory", name);
    case VK_ERROR_MEMORY_MAP_FAILED:
        return diag_fail(d, RLX_ERROR_MEMORY, "%s: the host cannot map the memory", name);
    case VK_ERROR_DEVICE_LOST:
        dev->gpu.lost = true;
        return diag_fail(d, RLX_ERROR_DEVICE_LOST, "%s: the device is lost", name);
    default: return diag_fail(d, RLX_ERROR_INTERNAL, "%s failed with %d", name, (int)r);
    }
}

/* ---- opening ---- */

static rlx_status choose_device(struct vk_device *dev, rlx_str variant, struct diag *d)
{
    VkPhysicalDevice found[VK_MOST_DEVICES];
    uint32_t count = vk_physical_devices(dev, found), at;

    if (count == 0)
        return diag_fail(d, RLX_ERROR_NO_DEVICE,
                         "no driver has a device of Vulkan 1.2 or newer (Debian's "
                         "mesa-vulkan-drivers has some, and one for the CPU)");
    TRY(gpu_choose("vulkan", variant, count, &at, d));
    dev->physical = found[at];
    return RLX_OK;
}

static rlx_status make_device(struct vk_device *dev, struct diag *d)
{
    const float priority = 1;
    struct vk_features features;

    vk_look_at(dev);
    vk_find_features(dev, &features);
    if (!vk_find_queue(dev) || !features.v12.timelineSemaphore)
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "%s has no compute queue or timeline semaphores",
                         dev->properties.deviceName);
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = dev->queue_family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &features.core,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = features.extensions,
                                     .ppEnabledExtensionNames = features.extension};
    VkResult r = dev->vk.CreateDevice(dev->physical, &info, NULL, &dev->device);
    if (r < 0) {
        dev->device = VK_NULL_HANDLE;
        return vk_fail(dev, r, "CreateDevice", d);
    }
    if (!vk_load_device(&dev->vk, dev->device))
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "the driver of %s lacks functions of Vulkan 1.2",
                         dev->properties.deviceName);
    dev->vk.GetDeviceQueue(dev->device, dev->queue_family, 0, &dev->queue);
    return RLX_OK;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return b && b < a ? b : a;
}

static void note_limits(struct vk_device *dev)
{
    const VkPhysicalDeviceLimits *l = &dev->properties.limits;
    uint64_t groups = UINT32_MAX, bindings = l->maxPerStageDescriptorStorageBuffers;

    bindings = least(bindings, l->maxDescriptorSetStorageBuffers);
    bindings = least(bindings, l->maxPerStageResources);
    for (size_t i = 0; i < 3; i++)
        groups = least(groups, l->maxComputeWorkGroupCount[i]);
    dev->gpu.max_groups = (uint32_t)groups;
    dev->gpu.max_binding = l->maxStorageBufferRange;
    dev->gpu.max_bindings = (uint32_t)bindings - 1; /* words may be one */
    dev->gpu.align = l->minStorageBufferOffsetAlignment;
}

static rlx_status make_objects(struct vk_device *dev, struct diag *d)
{
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex = dev->queue_family};
    const VkSemaphoreTypeCreateInfo timeline = {.sType =
                                                    VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                                .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                             .pNext = &timeline};

    VK_TRY(dev, dev->vk.CreateCommandPool(dev->device, &pool, NULL, &dev->pool), d);
    VK_TRY(dev, dev->vk.CreateSemaphore(dev->device, &semaphore, NULL, &dev->timeline), d);
    return RLX_OK;
}

static void vk_close(struct gpu_device *g)
{
    struct vk_device *dev = vk_of(g);

    if (dev->device && dev->vk.QueueSubmit) {
        dev->vk.DeviceWaitIdle(dev->device);
        vk_cache_save(dev);
        dev->vk.DestroyPipelineCache(dev->device, dev->cache, NULL);
        dev->vk.DestroySemaphore(dev->device, dev->timeline, NULL);
        dev->vk.DestroyCommandPool(dev->device, dev->pool, NULL);
    }
    if (dev->device && dev->vk.DestroyDevice)
        dev->vk.DestroyDevice(dev->device, NULL);
    vk_cache_forget(dev);
    vk_close_instance(dev);
}

static rlx_status vk_open(struct gpu_device *g, const struct device_desc *desc, struct diag *d)
{
    struct vk_device *dev = vk_of(g);

    TRY(vk_open_instance(dev, d));
    TRY(choose_device(dev, desc->variant, d));
    TRY(make_device(dev, d));
    note_limits(dev);
    TRY(gpu_disable_features(desc->flags, &g->features, &g->clock, d));
    TRY(make_objects(dev, d));
    vk_cache_choose(dev, desc);
    vk_cache_load(dev);
    return RLX_OK;
}

/* ---- the tables ---- */

static const struct gpu_driver driver = {
    .device_bytes = sizeof(struct vk_device),
    .recording_bytes = sizeof(struct vk_recording),
    .push_bytes = VK_PUSH_BYTES,
    .transfers = &gpu_batched,
    .pipelines = {vk_make_pipeline, vk_drop_pipeline},
    .open = vk_open,
    .close = vk_close,
    .check = vk_check_complaints,
    .make_buffer = vk_make_buffer,
    .drop_buffer = vk_drop_buffer,
    .flush = vk_flush,
    .invalidate = vk_invalidate,
    .submit = vk_submit,
    .done = vk_done,
    .wait = vk_wait,
    .new_commands = vk_new_commands,
    .begin = vk_begin,
    .end = vk_end,
    .barrier = vk_barrier,
    .copy = vk_copy,
    .fill = vk_fill,
    .prepare = vk_prepare,
    .launch = vk_launch,
    .time = vk_time,
    .read_times = vk_read_times,
    .drop = vk_drop_recording,
};

static rlx_status open_vulkan(const struct device_desc *desc, struct backend **out, struct diag *d)
{
    return gpu_open(&driver, &vulkan_backend, desc, out, d);
}

const struct backend_ops vulkan_backend = {
    .name = "vulkan",
    .open = open_vulkan,
    .describe = vk_describe,
    .list = vk_list,
    GPU_BACKEND_OPS,
};
