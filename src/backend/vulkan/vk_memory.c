/* vk_memory.c: buffers, each with memory of its own, of the kind that suits its use. */
#include <string.h>

#include "backend/vulkan/vulkan.h"

#define LEAST_BYTES 16

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
enum vk_memory_mode vk_best_mode(const struct vk_device *dev)
{
    uint64_t local = heap_with(dev, LOCAL), both = heap_with(dev, LOCAL | SEEN);

    if (dev->options.mode != VK_MODE_AUTO)
        return dev->options.mode;
    if (dev->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU)
        return both && both >= local / 5 * 4 ? VK_MODE_BAR : VK_MODE_STAGING;
    return both ? VK_MODE_MAPPED : VK_MODE_STAGING;
}

/* Sets of properties to look for, the best first. */
struct wanted {
    VkMemoryPropertyFlags has, lacks;
};
#define MOST_WANTED 4

static const struct wanted *wanted_for(const struct vk_device *dev, enum vk_use use)
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

    if (use == VK_FOR_UPLOAD)
        return upload;
    if (use == VK_FOR_READBACK)
        return readback;
    return dev->mode == VK_MODE_MAPPED ? seen : dev->mode == VK_MODE_BAR ? over_a_bus : unseen;
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

static rlx_status no_memory(struct vk_device *dev, uint64_t bytes, uint32_t type, struct diag *d)
{
    uint64_t left = bytes_free(dev, type), limit = dev->options.max_memory, held = dev->held;

    if (limit)
        left = limit > held ? limit - held : 0;
    if (left || limit)
        return diag_fail(d, RLX_ERROR_MEMORY,
                         "%s has no %llu bytes of memory: %llu are held by rlx, %llu are free",
                         dev->properties.deviceName, (unsigned long long)bytes,
                         (unsigned long long)held, (unsigned long long)left);
    return diag_fail(d, RLX_ERROR_MEMORY, "%s has no %llu bytes of memory besides %llu held by rlx",
                     dev->properties.deviceName, (unsigned long long)bytes,
                     (unsigned long long)held);
}

static VkResult try_type(struct vk_device *dev, enum vk_use use, uint32_t type, uint64_t bytes,
                         VkDeviceMemory *out)
{
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .allocationSize = bytes,
                                       .memoryTypeIndex = type};

    if (use == VK_FOR_WORK && dev->options.max_memory &&
        dev->held + bytes > dev->options.max_memory)
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    return dev->vk.AllocateMemory(dev->device, &info, NULL, out);
}

/* Other types are tried before it fails. */
static rlx_status take_memory(struct vk_device *dev, enum vk_use use,
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
            VkResult r = try_type(dev, use, i, need->size, &buf->memory);
            if (r == VK_SUCCESS)
                return RLX_OK;
            buf->memory = VK_NULL_HANDLE;
            if (r != VK_ERROR_OUT_OF_DEVICE_MEMORY && r != VK_ERROR_OUT_OF_HOST_MEMORY)
                return vk_fail(dev, r, "AllocateMemory", d);
        }
    if (!tried)
        return diag_fail(d, RLX_ERROR_LIMIT, "%s has no memory of the kind that is needed",
                         dev->properties.deviceName);
    return no_memory(dev, need->size, last, d);
}

static rlx_status fill_buffer(struct vk_device *dev, enum vk_use use, struct buffer *buf,
                              struct diag *d)
{
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = buf->bytes,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VkMemoryRequirements need;
    uint32_t type = 0;

    VK_TRY(dev, dev->vk.CreateBuffer(dev->device, &info, NULL, &buf->handle), d);
    dev->vk.GetBufferMemoryRequirements(dev->device, buf->handle, &need);
    TRY(take_memory(dev, use, &need, buf, &type, d));
    buf->taken = need.size;
    buf->counted = use == VK_FOR_WORK ? need.size : 0;
    dev->held += buf->counted;
    VK_TRY(dev, dev->vk.BindBufferMemory(dev->device, buf->handle, buf->memory, 0), d);
    VkMemoryPropertyFlags has = dev->memory.memoryTypes[type].propertyFlags;
    if (!(has & SEEN) || (use == VK_FOR_WORK && dev->mode == VK_MODE_STAGING))
        return RLX_OK;
    buf->coherent = has & COHERENT;
    VK_TRY(dev,
           dev->vk.MapMemory(dev->device, buf->memory, 0, VK_WHOLE_SIZE, 0, (void **)&buf->mapped),
           d);
    return RLX_OK;
}

rlx_status vk_make_buffer(struct vk_device *dev, enum vk_use use, uint64_t bytes,
                          struct buffer *out, struct diag *d)
{
    if (bytes > dev->max_allocation)
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "%llu bytes are wanted in one buffer, and %s has at most %llu",
                         (unsigned long long)bytes, dev->properties.deviceName,
                         (unsigned long long)dev->max_allocation);
    *out = (struct buffer){.bytes = bytes < LEAST_BYTES ? LEAST_BYTES : (bytes + 3) / 4 * 4};
    rlx_status s = fill_buffer(dev, use, out, d);
    if (s != RLX_OK)
        vk_drop_buffer(dev, out);
    return s;
}

void vk_drop_buffer(struct vk_device *dev, struct buffer *buf)
{
    if (dev->device) {
        dev->vk.DestroyBuffer(dev->device, buf->handle, NULL);
        dev->vk.FreeMemory(dev->device, buf->memory, NULL);
    }
    dev->held -= buf->counted;
    *buf = (struct buffer){0};
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

void vk_flush(struct vk_device *dev, const struct buffer *buf, uint64_t offset, uint64_t bytes)
{
    const VkMappedMemoryRange r = range_of(dev, buf, offset, bytes);

    if (!buf->coherent)
        dev->vk.FlushMappedMemoryRanges(dev->device, 1, &r);
}

void vk_invalidate(struct vk_device *dev, const struct buffer *buf, uint64_t offset, uint64_t bytes)
{
    const VkMappedMemoryRange r = range_of(dev, buf, offset, bytes);

    if (!buf->coherent)
        dev->vk.InvalidateMappedMemoryRanges(dev->device, 1, &r);
}

/* ---- for the runtime ---- */

/* The host does it where it writes fast; else the device, and it is waited for, so that the host
 * can write to the buffer directly from then on. */
static rlx_status clear(struct vk_device *dev, struct buffer *buf, struct diag *d)
{
    if (dev->mode == VK_MODE_MAPPED && buf->mapped) {
        memset(buf->mapped, 0, (size_t)buf->bytes);
        vk_flush(dev, buf, 0, buf->bytes);
        return RLX_OK;
    }
    pthread_mutex_lock(&dev->lock);
    rlx_status s = vk_zero(dev, (struct span){buf, 0, buf->bytes}, d);
    if (s == RLX_OK)
        s = vk_submit_transfers(dev, d);
    uint64_t ticket = dev->tickets;
    pthread_mutex_unlock(&dev->lock);
    return s == RLX_OK && buf->mapped ? vk_await(dev, ticket, d) : s;
}

rlx_status vk_alloc(struct backend *b, uint64_t bytes, struct buffer **out, struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);

    TRY(vk_check(dev, d));
    struct buffer *buf = mem_alloc(b->mem, sizeof *buf);
    if (!buf)
        return diag_no_memory(d, sizeof *buf);
    rlx_status s = vk_make_buffer(dev, VK_FOR_WORK, bytes, buf, d);
    if (s == RLX_OK)
        s = clear(dev, buf, d);
    if (s != RLX_OK) {
        vk_release(b, buf);
        return s;
    }
    *out = buf;
    return RLX_OK;
}

/* Whatever was to be done with it is done first. */
void vk_release(struct backend *b, struct buffer *buf)
{
    struct vk_device *dev = vk_device_of(b);
    struct diag quiet;

    if (!buf)
        return;
    diag_init(&quiet, "release");
    pthread_mutex_lock(&dev->lock);
    if (buf->used > dev->tickets)
        vk_submit_transfers(dev, &quiet);
    uint64_t ticket = buf->used;
    dev->programs.released++;
    pthread_mutex_unlock(&dev->lock);
    vk_await(dev, ticket, &quiet);
    vk_drop_buffer(dev, buf);
    mem_free(b->mem, buf, sizeof *buf);
}
