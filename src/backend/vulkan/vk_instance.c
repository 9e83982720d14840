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
    const VkDebugUtilsMessengerCreateInfoEXT hear = vk_messenger_info(dev);
    bool checked = dev->options.validation;

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
                                       .pNext = checked ? &hear : NULL,
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

static void name_features(const struct vk_device *dev, char *out, size_t size)
{
    const struct kc_features *f = &dev->features;
    static const char *const modes[] = {"", "mapped", "bar", "staging"};
    size_t len = 0;
    const struct {
        bool on;
        const char *word;
    } words[] = {{f->f16, "f16"},
                 {f->f64, "f64"},
                 {f->int64, "int64"},
                 {f->storage16, "storage16"},
                 {f->storage8, "storage8"},
                 {f->dot8, "dot8"},
                 {f->small_preserve, "denormals"},
                 {f->coop, "coop"},
                 {f->coop_group, "coop-group"},
                 {f->coop_rows, "coop-rows"}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i].on)
            len += (size_t)snprintf(out + len, size - len, "%s ", words[i].word);
    if (f->subgroups)
        len += (size_t)snprintf(out + len, size - len, "subgroups=%u ", f->subgroup_size);
    snprintf(out + len, size - len, "group=%u shared=%u memory=%s", f->max_group, f->shared_bytes,
             modes[dev->mode]);
}

void vk_describe_device(const struct vk_device *dev, struct target *out)
{
    const VkPhysicalDeviceProperties *p = &dev->properties;

    snprintf(out->description, sizeof out->description, "%.60s (Vulkan %u.%u.%u, %.36s)",
             p->deviceName, VK_API_VERSION_MAJOR(p->apiVersion),
             VK_API_VERSION_MINOR(p->apiVersion), VK_API_VERSION_PATCH(p->apiVersion), dev->driver);
    name_features(dev, out->features, sizeof out->features);
    out->memory = largest_heap(&dev->memory);
    out->max_buffer = dev->max_allocation; /* kernels see less of it, in parts if need be */
    out->alignment = ALIGNMENT;
    out->slow_uploads = dev->mode != VK_MODE_MAPPED;
    out->flushes_small = p->deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU;
}

void vk_look_at(struct vk_device *dev)
{
    struct vk_features ignored;

    vk_find_features(dev, &ignored);
    dev->vk.GetPhysicalDeviceMemoryProperties(dev->physical, &dev->memory);
    dev->mode = vk_best_mode(dev);
}

void vk_list(const struct device_desc *desc, device_row_fn each, void *user)
{
    struct vk_device dev = {.base.mem = desc->mem};
    VkPhysicalDevice found[VK_MOST_DEVICES];
    struct diag d;
    uint32_t count = 0;

    diag_init(&d, "devices");
    if (vk_open_instance(&dev, &d) == RLX_OK)
        count = vk_physical_devices(&dev, found);
    uint32_t api = dev.api;
    for (uint32_t i = 0; i < count; i++) {
        struct target t = {.backend = "vulkan"};
        char variant[16];
        dev.physical = found[i];
        dev.api = api;
        vk_look_at(&dev);
        vk_describe_device(&dev, &t);
        snprintf(variant, sizeof variant, "%u", i);
        each(user, variant, &t, NULL);
    }
    if (count == 0)
        each(user, "", NULL,
             d.count ? d.first.message
                     : "no driver has a device of Vulkan 1.2 (Debian: mesa-vulkan-drivers)");
    vk_close_instance(&dev);
}
