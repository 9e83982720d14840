/* device.c: opening a device, and what it says of itself. */
#include <stdio.h>
#include <string.h>

#include "backend/vulkan/vulkan.h"
#include "base/str.h"

#define MAX_DEVICES 16
#define ALIGNMENT 256 /* no device asks for more of a buffer's offset */
#define MOST_GROUPS 65535
#define API VK_API_VERSION_1_2

extern const struct backend_ops vulkan_backend;

rlx_status vk_fail(VkResult r, const char *call, struct diag *d)
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
        return diag_fail(d, RLX_ERROR_MEMORY, "%s: the device has no more memory", name);
    case VK_ERROR_DEVICE_LOST:
        return diag_fail(d, RLX_ERROR_DEVICE_LOST, "%s: the device is lost", name);
    default: return diag_fail(d, RLX_ERROR_INTERNAL, "%s failed with %d", name, (int)r);
    }
}

static rlx_status make_instance(struct vk_device *dev, struct diag *d)
{
    const VkApplicationInfo app = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pApplicationName = "rlx", .apiVersion = API};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &app};

    if (!dev->vk.CreateInstance ||
        dev->vk.CreateInstance(&info, NULL, &dev->instance) != VK_SUCCESS)
        return diag_fail(d, RLX_ERROR_NO_DEVICE,
                         "the Vulkan loader made no instance: no driver is installed, or none that "
                         "works (Debian's mesa-vulkan-drivers has some)");
    if (!vk_load_instance(dev->loader, &dev->vk, dev->instance))
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "the Vulkan loader lacks functions of 1.2");
    return RLX_OK;
}

/* Discrete ones first, software last; the driver's order among equals. */
static int rank_of(const VkPhysicalDeviceProperties *p)
{
    switch (p->deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    default: return 3;
    }
}

static uint32_t list_devices(struct vk_device *dev, VkPhysicalDevice *out)
{
    VkPhysicalDevice found[MAX_DEVICES];
    uint32_t count = MAX_DEVICES, kept = 0;

    if (dev->vk.EnumeratePhysicalDevices(dev->instance, &count, found) < 0)
        return 0;
    for (int rank = 0; rank < 4; rank++)
        for (uint32_t i = 0; i < count; i++) {
            VkPhysicalDeviceProperties p;
            dev->vk.GetPhysicalDeviceProperties(found[i], &p);
            if (rank_of(&p) == rank && p.apiVersion >= API)
                out[kept++] = found[i];
        }
    return kept;
}

static rlx_status choose_device(struct vk_device *dev, rlx_str variant, struct diag *d)
{
    VkPhysicalDevice found[MAX_DEVICES];
    uint32_t count = list_devices(dev, found);
    int64_t wanted = 0;

    if (variant.len && (!str_to_i64(variant, &wanted) || wanted < 0))
        return diag_fail(d, RLX_ERROR_NO_DEVICE,
                         "\"vulkan:%.*s\": a number stands behind the colon", STR_ARG(variant));
    if (count == 0)
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "no driver has a device of Vulkan 1.2 or newer");
    if (wanted >= (int64_t)count)
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "there are %u Vulkan devices, and no number %lld",
                         count, (long long)wanted);
    dev->physical = found[wanted];
    return RLX_OK;
}

static bool find_queue(struct vk_device *dev)
{
    VkQueueFamilyProperties family[32];
    uint32_t count = 32;

    dev->vk.GetPhysicalDeviceQueueFamilyProperties(dev->physical, &count, family);
    for (uint32_t i = 0; i < count; i++)
        if (family[i].queueFlags & VK_QUEUE_COMPUTE_BIT) {
            dev->queue_family = i;
            return true;
        }
    return false;
}

static rlx_status make_device(struct vk_device *dev, struct diag *d)
{
    const float priority = 1;
    struct vk_features features;

    vk_find_features(dev, &features);
    if (!find_queue(dev) || !features.v12.timelineSemaphore)
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "%s has no compute queue or timeline semaphores",
                         dev->properties.deviceName);
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = dev->queue_family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &features.core,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue};
    VK_TRY(dev->vk.CreateDevice(dev->physical, &info, NULL, &dev->device), d);
    if (!vk_load_device(&dev->vk, dev->device))
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "the driver of %s lacks functions of Vulkan 1.2",
                         dev->properties.deviceName);
    dev->vk.GetPhysicalDeviceMemoryProperties(dev->physical, &dev->memory);
    dev->vk.GetDeviceQueue(dev->device, dev->queue_family, 0, &dev->queue);
    return RLX_OK;
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
    const VkPipelineCacheCreateInfo cache = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};

    VK_TRY(dev->vk.CreateCommandPool(dev->device, &pool, NULL, &dev->pool), d);
    VK_TRY(dev->vk.CreateSemaphore(dev->device, &semaphore, NULL, &dev->timeline), d);
    VK_TRY(dev->vk.CreatePipelineCache(dev->device, &cache, NULL, &dev->cache), d);
    return gpu_device_create(
        &(struct gpu_device_desc){.backend = &dev->base,
                                  .driver = &vk_driver,
                                  .features = dev->features,
                                  .max_groups = MOST_GROUPS,
                                  .max_binding = dev->properties.limits.maxStorageBufferRange},
        &dev->gpu, d);
}

static void vk_close(struct backend *b)
{
    struct vk_device *dev = vk_device_of(b);

    if (dev->device) {
        dev->vk.DeviceWaitIdle(dev->device);
        vk_drop_recordings(dev);
        gpu_device_destroy(dev->gpu);
        dev->vk.DestroyPipelineCache(dev->device, dev->cache, NULL);
        dev->vk.DestroySemaphore(dev->device, dev->timeline, NULL);
        dev->vk.DestroyCommandPool(dev->device, dev->pool, NULL);
        dev->vk.DestroyDevice(dev->device, NULL);
    }
    if (dev->instance)
        dev->vk.DestroyInstance(dev->instance, NULL);
    vk_loader_close(dev->loader);
    pthread_mutex_destroy(&dev->lock);
    mem_free(b->mem, dev, sizeof *dev);
}

static rlx_status open_all(struct vk_device *dev, const struct device_desc *desc, struct diag *d)
{
    TRY(vk_loader_open(desc->mem, &dev->vk, &dev->loader, d));
    TRY(make_instance(dev, d));
    TRY(choose_device(dev, desc->variant, d));
    TRY(make_device(dev, d));
    return make_objects(dev, d);
}

static rlx_status vk_open(const struct device_desc *desc, struct backend **out, struct diag *d)
{
    struct vk_device *dev = mem_alloc(desc->mem, sizeof *dev);

    if (!dev)
        return diag_no_memory(d, sizeof *dev);
    dev->base = (struct backend){&vulkan_backend, desc->mem};
    if (pthread_mutex_init(&dev->lock, NULL) != 0) {
        mem_free(desc->mem, dev, sizeof *dev);
        return diag_fail(d, RLX_ERROR_MEMORY, "no lock could be made");
    }
    rlx_status s = open_all(dev, desc, d);
    if (s != RLX_OK) {
        vk_close(&dev->base);
        return s;
    }
    *out = &dev->base;
    return RLX_OK;
}

static void vk_describe(const struct backend *b, struct target *out)
{
    const struct vk_device *dev = (const struct vk_device *)b;

    *out = (struct target){.backend = "vulkan", .alignment = ALIGNMENT, .slow_uploads = true};
    gpu_natives(out->native);
    if (!dev)
        return;
    snprintf(out->description, sizeof out->description, "%.100s", dev->properties.deviceName);
    for (uint32_t i = 0; i < dev->memory.memoryHeapCount; i++)
        if (dev->memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT &&
            dev->memory.memoryHeaps[i].size > out->memory)
            out->memory = dev->memory.memoryHeaps[i].size;
    out->max_buffer = dev->properties.limits.maxStorageBufferRange;
}

static rlx_status vk_select(struct backend *b, struct select_call *c)
{
    return gpu_select(vk_device_of(b)->gpu, c);
}

static rlx_status vk_load(struct backend *b, struct command *c, struct diag *d)
{
    return gpu_load(vk_device_of(b)->gpu, c, d);
}

const struct backend_ops vulkan_backend = {
    .abi = BACKEND_ABI,
    .name = "vulkan",
    .open = vk_open,
    .close = vk_close,
    .describe = vk_describe,
    .alloc = vk_alloc,
    .release = vk_release,
    .write = vk_write,
    .read = vk_read,
    .copy = vk_copy,
    .fill = vk_fill,
    .select = vk_select,
    .load = vk_load,
    .unload = vk_unload,
    .submit = vk_submit,
    .poll = vk_poll,
    .wait = vk_wait,
};
