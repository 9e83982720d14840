/* vk_device.c: opening a device, and what it says of itself. */
#include <stdio.h>
#include <string.h>

#include "backend/vulkan/vk_features.h"
#include "base/str.h"

#define MOST_GROUPS 65535
#define NOTHING_BYTES 256

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
        return diag_fail(d, RLX_ERROR_MEMORY, "%s: the host has no room to see the memory", name);
    case VK_ERROR_DEVICE_LOST:
        dev->lost = true;
        return diag_fail(d, RLX_ERROR_DEVICE_LOST, "%s: the device is lost", name);
    default: return diag_fail(d, RLX_ERROR_INTERNAL, "%s failed with %d", name, (int)r);
    }
}

/* ---- opening ---- */

static void read_options(const struct flags *f, struct vk_options *o)
{
    if (!f)
        return;
    o->validation = f->at[FLAG_GPU_VALIDATION].on;
    o->no_coop = f->at[FLAG_GPU_NO_COOP].on;
    o->full_barrier = f->at[FLAG_GPU_FULLBARRIER].on;
    o->no_cache = f->at[FLAG_GPU_NOCACHE].on;
    o->mode = (enum vk_memory_mode)f->at[FLAG_GPU_MEMORY].number;
    o->max_binding = (uint64_t)f->at[FLAG_GPU_MAX_BINDING].number;
    o->max_groups = (uint64_t)f->at[FLAG_GPU_MAX_GROUPS].number;
    o->max_memory = (uint64_t)f->at[FLAG_GPU_MAX_MEMORY].number;
    o->lose_after = (uint64_t)f->at[FLAG_GPU_LOSE_AFTER].number;
}

static rlx_status choose_device(struct vk_device *dev, rlx_str variant, struct diag *d)
{
    VkPhysicalDevice found[VK_MOST_DEVICES];
    uint32_t count = vk_physical_devices(dev, found);
    int64_t wanted = 0;

    if (variant.len && (!str_to_i64(variant, &wanted) || wanted < 0))
        return diag_fail(d, RLX_ERROR_NO_DEVICE,
                         "\"vulkan:%.*s\": a number stands behind the colon", STR_ARG(variant));
    if (count == 0)
        return diag_fail(d, RLX_ERROR_NO_DEVICE,
                         "no driver has a device of Vulkan 1.2 or newer (Debian's "
                         "mesa-vulkan-drivers has some, and one for the CPU)");
    if (wanted >= (int64_t)count)
        return diag_fail(d, RLX_ERROR_NO_DEVICE,
                         "there are %u Vulkan devices, from vulkan:0 on, and no number %lld", count,
                         (long long)wanted);
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
            dev->timestamp_bits = family[i].timestampValidBits;
            return true;
        }
    return false;
}

static rlx_status make_device(struct vk_device *dev, struct diag *d)
{
    const float priority = 1;
    struct vk_features features;

    vk_look_at(dev);
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

static rlx_status make_kernels(struct vk_device *dev, struct diag *d)
{
    const VkPhysicalDeviceLimits *l = &dev->properties.limits;
    uint64_t groups = MOST_GROUPS, bindings = l->maxPerStageDescriptorStorageBuffers;

    bindings = least(bindings, l->maxDescriptorSetStorageBuffers);
    bindings = least(bindings, l->maxPerStageResources);
    for (size_t i = 0; i < 3; i++)
        groups = least(groups, l->maxComputeWorkGroupCount[i]);
    dev->kernels.target = (struct gpu_target){
        .backend = &dev->base,
        .features = dev->features,
        .max_groups = (uint32_t)least(groups, dev->options.max_groups),
        .max_binding = least(l->maxStorageBufferRange, dev->options.max_binding),
        .max_bindings = (uint32_t)bindings - 1 /* words may be one */};
    return gpu_kernels_open(&dev->kernels, &vk_pipelines, d);
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
    dev->programs.no_times = dev->timestamp_bits == 0;
    TRY(vk_open_transfers(dev, d));
    TRY(vk_make_buffer(dev, VK_FOR_WORK, NOTHING_BYTES, &dev->nothing, d));
    return make_kernels(dev, d);
}

static void vk_close(struct backend *b)
{
    struct vk_device *dev = vk_device_of(b);

    if (dev->device && dev->vk.QueueSubmit) {
        dev->vk.DeviceWaitIdle(dev->device);
        gpu_drop_programs(&dev->programs);
        vec_free(b->mem, &dev->recording.touched);
        gpu_kernels_close(&dev->kernels);
        vk_close_transfers(dev);
        vk_drop_buffer(dev, &dev->nothing);
        vk_cache_save(dev);
        dev->vk.DestroyPipelineCache(dev->device, dev->cache, NULL);
        dev->vk.DestroySemaphore(dev->device, dev->timeline, NULL);
        dev->vk.DestroyCommandPool(dev->device, dev->pool, NULL);
    }
    if (dev->device && dev->vk.DestroyDevice)
        dev->vk.DestroyDevice(dev->device, NULL);
    vk_cache_forget(dev);
    vk_close_instance(dev);
    pthread_mutex_destroy(&dev->lock);
    mem_free(b->mem, dev, sizeof *dev);
}

static rlx_status open_all(struct vk_device *dev, const struct device_desc *desc, struct diag *d)
{
    bool clock = true;

    TRY(vk_open_instance(dev, d));
    TRY(choose_device(dev, desc->variant, d));
    TRY(make_device(dev, d));
    TRY(gpu_leave_out(desc->flags, &dev->features, &clock, d));
    if (!clock)
        dev->timestamp_bits = 0;
    TRY(make_objects(dev, d));
    vk_cache_choose(dev, desc);
    vk_cache_load(dev);
    return vk_check_complaints(dev, d);
}

static rlx_status vk_open(const struct device_desc *desc, struct backend **out, struct diag *d)
{
    struct vk_device *dev = mem_alloc(desc->mem, sizeof *dev);

    if (!dev)
        return diag_no_memory(d, sizeof *dev);
    dev->base = (struct backend){&vulkan_backend, desc->mem};
    dev->log = desc->log;
    dev->log_user = desc->log_user;
    read_options(desc->flags, &dev->options);
    if (pthread_mutex_init(&dev->lock, NULL) != 0) {
        mem_free(desc->mem, dev, sizeof *dev);
        return diag_fail(d, RLX_ERROR_MEMORY, "no lock could be made");
    }
    dev->programs = (struct gpu_programs){.backend = &dev->base,
                                          .queue = &vk_programs_queue,
                                          .lock = &dev->lock,
                                          .lost = &dev->lost,
                                          .lose_after = dev->options.lose_after,
                                          .no_cache = dev->options.no_cache};
    rlx_status s = open_all(dev, desc, d);
    if (s != RLX_OK) {
        vk_close(&dev->base);
        return s;
    }
    *out = &dev->base;
    return RLX_OK;
}

/* ---- the table ---- */

static void vk_describe(const struct backend *b, struct target *out)
{
    *out =
        (struct target){.backend = "vulkan", .alignment = GPU_ALIGN, .least_alignment = GPU_ALIGN};
    gpu_describe(out);
    if (b)
        vk_describe_device((const struct vk_device *)b, out);
}

static rlx_status vk_select(struct backend *b, struct select_call *c)
{
    return gpu_select(&vk_device_of(b)->kernels.target, c);
}

static bool vk_joins(struct backend *b, enum joint kind, const struct ir_graph *g, ir_value v)
{
    return gpu_joins(&vk_device_of(b)->kernels.target, kind, g, v);
}

static rlx_status vk_load(struct backend *b, struct command *c, struct diag *d)
{
    return gpu_load(&vk_device_of(b)->kernels.target, c, d);
}

static rlx_status vk_prepare(struct backend *b, struct command *c, struct diag *d)
{
    return gpu_prepare(&vk_device_of(b)->kernels.target, c, d);
}

static rlx_status vk_pack(struct backend *b, struct command *c, int32_t operand, struct span source,
                          struct diag *d)
{
    (void)operand;
    return gpu_pack(&vk_device_of(b)->kernels, c, source, d);
}

static struct gpu_kernels *vk_gpu(struct backend *b)
{
    return &vk_device_of(b)->kernels;
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
    .joins = vk_joins,
    .load = vk_load,
    .prepare = vk_prepare,
    .pack = vk_pack,
    .unload = vk_unload,
    .submit = vk_submit,
    .poll = vk_poll,
    .wait = vk_wait,
    .gpu = vk_gpu,
    .list = vk_list,
};
