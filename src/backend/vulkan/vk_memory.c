/* vk_memory.c: buffers, each with memory of its own, of the kind that suits its use. */
#include "backend/vulkan/vulkan.h"

enum {
    LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
    SEEN = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
    COHERENT = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT
};

/* ---- which memory ---- */

/* Bytes of the largest heap that has a type with these properties. */
static uint64_t heap_with(const struct vk_device *dev, VkMemoryPropertyFlags want)
{
    const VkPhysicalDeviceMemoryProperties *m = &dev->memory;
    uint64_t most = 0;

    for (uint32_t i = 0; i < m->memoryTypeCount; i++) {
        uint64_t size = m->memoryHeaps[m->memoryTypes[i].heapIndex].size;
        if ((m->memoryTypes[i].propertyFlags & want) == want && size > most)
            most = size;
    }
    return most;
}

/* A window of a few hundred MiB into a discrete GPU's memory is not worth having; all of it is. */
enum gpu_memory_mode vk_best_mode(const struct vk_device *dev)
{
    uint64_t local = heap_with(dev, LOCAL), both = heap_with(dev, LOCAL | SEEN);

    if (dev->gpu.options.mode != GPU_MODE_AUTO)
        return dev->gpu.options.mode;
    if (dev->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU)
        return both && both >= local / 5 * 4 ? GPU_MODE_BAR : GPU_MODE_STAGING;
    return both ? GPU_MODE_MAPPED : GPU_MODE_STAGING;
}

/* Sets of properties to look for, the best first. */
struct wanted {
    VkMemoryPropertyFlags has, lacks;
};
#define MOST_WANTED 4

static const struct wanted *wanted_for(const struct vk_device *dev, enum gpu_use use)
{
    static const struct wanted seen[MOST_WANTED] = {
        {LOCAL | SEEN | COHERENT, 0}, {LOCAL | SEEN, 0}, {SEEN | COHERENT, 0}, {SEEN, 0}};
    static const struct wanted over_a_bus[MOST_WANTED] = {
        {LOCAL | SEEN | COHERENT, 0}, {LOCAL | SEEN, 0}, {LOCAL, 0}, {0, 0}};
    static const struct wanted unseen[MOST_WANTED] = {{LOCAL, SEEN}, {LOCAL, 0}, {0, 0}, {0, 0}};
    static const struct wanted upload[MOST_WANTED] = {{SEEN | COHERENT, LOCAL | CACHED},
                                                      {SEEN | COHERENT, LOCAL},
                                                      {SEEN | COHERENT, 0},
                                                      {SEEN, 0}};
    static const struct wanted readback[MOST_WANTED] = {
        {SEEN | CACHED | COHERENT, 0}, {SEEN | CACHED, 0}, {SEEN | COHERENT, 0}, {SEEN, 0}};

    if (use == GPU_FOR_UPLOAD)
        return upload;
    if (use == GPU_FOR_READBACK)
        return readback;
    return dev->gpu.mode == GPU_MODE_MAPPED ? seen
           : dev->gpu.mode == GPU_MODE_BAR  ? over_a_bus
                                            : unseen;
}

static bool is_wanted(const struct vk_device *dev, uint32_t type, const struct wanted *w)
{
    VkMemoryPropertyFlags has = dev->memory.memoryTypes[type].propertyFlags;

    return (has & w->has) == w->has && !(has & w->lacks);
}

/* ---- taking it ---- */

/* What is left of the heap, where the driver says so; 0: it does not. */
static uint64_t bytes_free(struct vk_device *dev, uint32_t type)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 m = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    uint32_t heap = dev->memory.memoryTypes[type].heapIndex;

    if (!dev->has_budget)
        return 0;
    dev->vk.GetPhysicalDeviceMemoryProperties2(dev->physical, &m);
    return budget.heapBudget[heap] > budget.heapUsage[heap]
               ? budget.heapBudget[heap] - budget.heapUsage[heap]
               : 0;
}

static VkResult try_type(struct vk_device *dev, uint32_t type, uint64_t bytes, VkDeviceMemory *out)
{
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .allocationSize = bytes,
                                       .memoryTypeIndex = type};

    return dev->vk.AllocateMemory(dev->device, &info, NULL, out);
}

/* Other types are tried before it fails. */
static rlx_status take_memory(struct vk_device *dev, enum gpu_use use,
                              const VkMemoryRequirements *need, struct buffer *buf, uint32_t *type,
                              struct diag *d)
{
    const struct wanted *list = wanted_for(dev, use);
    uint32_t tried = 0, last = 0;

    for (size_t w = 0; w < MOST_WANTED; w++)
        for (uint32_t i = 0; i < dev->memory.memoryTypeCount; i++) {
            if (!(need->memoryTypeBits >> i & 1) || (tried >> i & 1) ||
                !is_wanted(dev, i, &list[w]))
                continue;
            tried |= UINT32_C(1) << i;
            last = *type = i;
            VkDeviceMemory memory;
            VkResult r = try_type(dev, i, need->size, &memory);
            if (r == VK_SUCCESS) {
                buf->memory = memory;
                return RLX_OK;
            }
            if (r != VK_ERROR_OUT_OF_DEVICE_MEMORY && r != VK_ERROR_OUT_OF_HOST_MEMORY)
                return vk_fail(dev, r, "AllocateMemory", d);
        }
    if (!tried)
        return diag_fail(d, RLX_ERROR_LIMIT, "%s has no memory of the kind that is needed",
                         dev->properties.deviceName);
    return gpu_no_memory(&dev->gpu, need->size, bytes_free(dev, last), d);
}

static bool is_work(enum gpu_use use)
{
    return use == GPU_FOR_WORK || use == GPU_FOR_WORDS;
}

rlx_status vk_make_buffer(struct gpu_device *g, enum gpu_use use, struct buffer *buf,
                          struct diag *d)
{
    struct vk_device *dev = vk_of(g);
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = buf->bytes,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VkMemoryRequirements need;
    uint32_t type = 0;
    VkBuffer handle;

    VK_TRY(dev, dev->vk.CreateBuffer(dev->device, &info, NULL, &handle), d);
    buf->handle = handle;
    dev->vk.GetBufferMemoryRequirements(dev->device, buf->handle, &need);
    TRY(take_memory(dev, use, &need, buf, &type, d));
    buf->taken = need.size;
    VK_TRY(dev, dev->vk.BindBufferMemory(dev->device, buf->handle, buf->memory, 0), d);
    VkMemoryPropertyFlags has = dev->memory.memoryTypes[type].propertyFlags;
    if (!(has & SEEN) || (is_work(use) && dev->gpu.mode == GPU_MODE_STAGING))
        return RLX_OK;
    buf->coherent = has & COHERENT;
    VK_TRY(dev,
           dev->vk.MapMemory(dev->device, buf->memory, 0, VK_WHOLE_SIZE, 0, (void **)&buf->mapped),
           d);
    return RLX_OK;
}

void vk_drop_buffer(struct gpu_device *g, struct buffer *buf)
{
    struct vk_device *dev = vk_of(g);

    dev->vk.DestroyBuffer(dev->device, buf->handle, NULL);
    dev->vk.FreeMemory(dev->device, buf->memory, NULL);
}

/* ---- memory that is not coherent ---- */

static VkMappedMemoryRange range_of(const struct vk_device *dev, const struct buffer *buf,
                                    uint64_t offset, uint64_t bytes)
{
    uint64_t atom = dev->properties.limits.nonCoherentAtomSize;
    uint64_t from = offset / atom * atom, to = (offset + bytes + atom - 1) / atom * atom;

    return (VkMappedMemoryRange){.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                 .memory = buf->memory,
                                 .offset = from,
                                 .size = to >= buf->taken ? VK_WHOLE_SIZE : to - from};
}

void vk_flush(struct gpu_device *g, const struct buffer *buf, uint64_t offset, uint64_t bytes)
{
    struct vk_device *dev = vk_of(g);
    const VkMappedMemoryRange r = range_of(dev, buf, offset, bytes);

    dev->vk.FlushMappedMemoryRanges(dev->device, 1, &r);
}

void vk_invalidate(struct gpu_device *g, const struct buffer *buf, uint64_t offset, uint64_t bytes)
{
    struct vk_device *dev = vk_of(g);
    const VkMappedMemoryRange r = range_of(dev, buf, offset, bytes);

    dev->vk.InvalidateMappedMemoryRanges(dev->device, 1, &r);
}
