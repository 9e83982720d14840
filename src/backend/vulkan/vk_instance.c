/* vk_instance.c: the Vulkan devices of this machine. An instance belongs to one open device, or to
 * one look at the list. */
#include <stdio.h>
#include <string.h>

#include "backend/vulkan/vk_features.h"

#define ALIGNMENT 256 /* no device asks for more of a buffer's offset */
#define NEWEST VK_API_VERSION_1_3

rlx_status vk_open_instance(struct vk_device *dev, struct diag *d)
{
    const char *const layer[] = {vk_validation_layer};
    const char *const extension[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
    const VkDebugUtilsMessengerCreateInfoEXT messenger = vk_messenger_info(dev);
    bool checked = dev->gpu.options.validation;

    TRY(vk_load_library(&dev->vk, d));
    if (checked && !vk_has_validation(dev))
        return diag_fail(d, RLX_ERROR_NO_DEVICE,
                         "RLX_GPU_VALIDATION is set, and there is no %s (Debian: "
                         "vulkan-validationlayers)",
                         vk_validation_layer);
    if (!dev->vk.EnumerateInstanceVersion || dev->vk.EnumerateInstanceVersion(&dev->api) < 0 ||
        dev->api < VK_LEAST)
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "the Vulkan loader is older than Vulkan 1.2");
    dev->api = dev->api < NEWEST ? dev->api : NEWEST;
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .pApplicationName = "rlx",
                                   .apiVersion = dev->api};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pNext = checked ? &messenger : NULL,
                                       .pApplicationInfo = &app,
                                       .enabledLayerCount = checked,
                                       .ppEnabledLayerNames = layer,
                                       .enabledExtensionCount = checked,
                                       .ppEnabledExtensionNames = extension};
    if (!dev->vk.CreateInstance ||
        dev->vk.CreateInstance(&info, NULL, &dev->instance) != VK_SUCCESS) {
        dev->instance = VK_NULL_HANDLE;
        return diag_fail(d, RLX_ERROR_NO_DEVICE,
                         "no Vulkan driver works: install the GPU's (Debian: mesa-vulkan-drivers "
                         "has some, and one for the CPU)");
    }
    if (!vk_load_instance(&dev->vk, dev->instance))
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "the Vulkan loader lacks functions of 1.2");
    return checked ? vk_open_messenger(dev, d) : RLX_OK;
}

void vk_close_instance(struct vk_device *dev)
{
    if (dev->messenger)
        dev->vk.DestroyDebugUtilsMessengerEXT(dev->instance, dev->messenger, NULL);
    if (dev->instance && dev->vk.DestroyInstance)
        dev->vk.DestroyInstance(dev->instance, NULL);
    dev->messenger = VK_NULL_HANDLE;
    dev->instance = VK_NULL_HANDLE;
}

/* ---- what there is ---- */

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

/* Kernels count on as much; every device that computes has it. */
static bool is_enough(const VkPhysicalDeviceProperties *p)
{
    const VkPhysicalDeviceLimits *l = &p->limits;

    return p->apiVersion >= VK_LEAST && l->maxComputeWorkGroupInvocations >= GPU_GROUP &&
           l->maxComputeWorkGroupSize[0] >= GPU_GROUP &&
           l->maxPerStageDescriptorStorageBuffers > GPU_BUFFERS &&
           l->minStorageBufferOffsetAlignment <= ALIGNMENT;
}

uint32_t vk_physical_devices(struct vk_device *dev, VkPhysicalDevice out[VK_MOST_DEVICES])
{
    VkPhysicalDevice found[VK_MOST_DEVICES];
    uint32_t count = VK_MOST_DEVICES, kept = 0;

    if (dev->vk.EnumeratePhysicalDevices(dev->instance, &count, found) < 0)
        return 0;
    for (int rank = 0; rank < 4; rank++)
        for (uint32_t i = 0; i < count; i++) {
            VkPhysicalDeviceProperties p;
            dev->vk.GetPhysicalDeviceProperties(found[i], &p);
            if (rank_of(&p) == rank && is_enough(&p))
                out[kept++] = found[i];
        }
    return kept;
}

/* ---- what it says of itself ---- */

static uint64_t largest_heap(const VkPhysicalDeviceMemoryProperties *m)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < m->memoryHeapCount; i++)
        if (m->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT &&
            m->memoryHeaps[i].size > most)
            most = m->memoryHeaps[i].size;
    return most;
}

void vk_describe(const struct backend *b, struct target *out)
{
    gpu_describe_device("vulkan", b, out);
}

/* One that computes, and times it. */
bool vk_find_queue(struct vk_device *dev)
{
    VkQueueFamilyProperties family[32];
    uint32_t count = 32;

    dev->vk.GetPhysicalDeviceQueueFamilyProperties(dev->physical, &count, family);
    for (uint32_t i = 0; i < count; i++)
        if (family[i].queueFlags & VK_QUEUE_COMPUTE_BIT) {
            dev->queue_family = i;
            dev->timestamp_bits = family[i].timestampValidBits;
            return true;
        }
    return false;
}

void vk_look_at(struct vk_device *dev)
{
    const VkPhysicalDeviceProperties *p = &dev->properties;
    struct gpu_device *g = &dev->gpu;
    struct vk_features ignored;

    vk_find_features(dev, &ignored);
    dev->vk.GetPhysicalDeviceMemoryProperties(dev->physical, &dev->memory);
    g->mode = vk_best_mode(dev);
    g->clock = vk_find_queue(dev) && dev->timestamp_bits > 0;
    g->memory = largest_heap(&dev->memory);
    g->max_buffer = dev->max_allocation;
    g->is_cpu = p->deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    snprintf(g->name, sizeof g->name, "%.119s", p->deviceName);
    snprintf(g->description, sizeof g->description, "%.60s (Vulkan %u.%u.%u, %.36s)", p->deviceName,
             VK_API_VERSION_MAJOR(p->apiVersion), VK_API_VERSION_MINOR(p->apiVersion),
             VK_API_VERSION_PATCH(p->apiVersion), dev->driver);
}

void vk_list(const struct device_desc *desc, device_row_fn each, void *user)
{
    struct vk_device dev = {.gpu.base.mem = desc->mem};
    VkPhysicalDevice found[VK_MOST_DEVICES];
    struct diag d;
    uint32_t count = 0;

    diag_init(&d, "devices");
    if (vk_open_instance(&dev, &d) == RLX_OK)
        count = vk_physical_devices(&dev, found);
    uint32_t api = dev.api;
    for (uint32_t i = 0; i < count; i++) {
        struct target t;
        char variant[16];
        dev.physical = found[i];
        dev.api = api;
        vk_look_at(&dev);
        vk_describe(&dev.gpu.base, &t);
        snprintf(variant, sizeof variant, "%u", i);
        each(user, variant, &t, NULL);
    }
    if (count == 0)
        each(user, "", NULL,
             d.count ? d.first.message
                     : "no driver has a device of Vulkan 1.2 (Debian: mesa-vulkan-drivers)");
    vk_close_instance(&dev);
}
