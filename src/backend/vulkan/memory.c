/* memory.c: buffers in memory that the host sees. */
#include <string.h>

#include "backend/vulkan/vulkan.h"

#define LEAST_BYTES 16

static bool find_type(const struct vk_device *dev, uint32_t allowed, VkMemoryPropertyFlags want,
                      uint32_t *out)
{
    for (uint32_t i = 0; i < dev->memory.memoryTypeCount; i++)
        if ((allowed >> i & 1) && (dev->memory.memoryTypes[i].propertyFlags & want) == want) {
            *out = i;
            return true;
        }
    return false;
}

static rlx_status take_memory(struct vk_device *dev, struct buffer *buf, struct diag *d)
{
    const VkMemoryPropertyFlags seen =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryRequirements need;
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};

    dev->vk.GetBufferMemoryRequirements(dev->device, buf->handle, &need);
    info.allocationSize = need.size;
    if (!find_type(dev, need.memoryTypeBits, seen | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                   &info.memoryTypeIndex) &&
        !find_type(dev, need.memoryTypeBits, seen, &info.memoryTypeIndex))
        return diag_fail(d, RLX_ERROR_MEMORY, "the device has no memory that the host sees");
    VK_TRY(dev->vk.AllocateMemory(dev->device, &info, NULL, &buf->memory), d);
    VK_TRY(dev->vk.BindBufferMemory(dev->device, buf->handle, buf->memory, 0), d);
    VK_TRY(dev->vk.MapMemory(dev->device, buf->memory, 0, VK_WHOLE_SIZE, 0, (void **)&buf->mapped),
           d);
    memset(buf->mapped, 0, (size_t)buf->bytes);
    return RLX_OK;
}

static rlx_status fill_buffer(struct vk_device *dev, struct buffer *buf, struct diag *d)
{
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = buf->bytes,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT};

    VK_TRY(dev->vk.CreateBuffer(dev->device, &info, NULL, &buf->handle), d);
    return take_memory(dev, buf, d);
}

rlx_status vk_alloc(struct backend *b, uint64_t bytes, struct buffer **out, struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);
    struct buffer *buf = mem_alloc(b->mem, sizeof *buf);

    if (!buf)
        return diag_no_memory(d, sizeof *buf);
    buf->bytes = bytes < LEAST_BYTES ? LEAST_BYTES : (bytes + 3) / 4 * 4;
    rlx_status s = fill_buffer(dev, buf, d);
    if (s != RLX_OK) {
        vk_release(b, buf);
        return s;
    }
    *out = buf;
    return RLX_OK;
}

void vk_release(struct backend *b, struct buffer *buf)
{
    struct vk_device *dev = vk_device_of(b);

    if (!buf)
        return;
    dev->released++;
    dev->vk.DestroyBuffer(dev->device, buf->handle, NULL);
    dev->vk.FreeMemory(dev->device, buf->memory, NULL);
    mem_free(b->mem, buf, sizeof *buf);
}

static rlx_status check_span(struct span s, struct diag *d)
{
    if (s.buffer && s.offset <= s.buffer->bytes && s.bytes <= s.buffer->bytes - s.offset)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_INTERNAL, "bytes %llu+%llu lie outside their buffer",
                     (unsigned long long)s.offset, (unsigned long long)s.bytes);
}

rlx_status vk_write(struct backend *b, struct span dst, const void *src, struct diag *d)
{
    (void)b;
    TRY(check_span(dst, d));
    if (dst.bytes)
        memcpy(dst.buffer->mapped + dst.offset, src, (size_t)dst.bytes);
    return RLX_OK;
}

rlx_status vk_read(struct backend *b, struct span src, void *dst, struct diag *d)
{
    (void)b;
    TRY(check_span(src, d));
    if (src.bytes)
        memcpy(dst, src.buffer->mapped + src.offset, (size_t)src.bytes);
    return RLX_OK;
}

rlx_status vk_copy(struct backend *b, struct span dst, struct span src, struct diag *d)
{
    (void)b;
    TRY(check_span(dst, d));
    TRY(check_span(src, d));
    if (dst.bytes != src.bytes)
        return diag_fail(d, RLX_ERROR_INTERNAL, "a copy's two sides differ in size");
    memmove(dst.buffer->mapped + dst.offset, src.buffer->mapped + src.offset, (size_t)dst.bytes);
    return RLX_OK;
}

rlx_status vk_fill(struct backend *b, struct span dst, uint8_t byte, struct diag *d)
{
    (void)b;
    TRY(check_span(dst, d));
    memset(dst.buffer->mapped + dst.offset, byte, (size_t)dst.bytes);
    return RLX_OK;
}
