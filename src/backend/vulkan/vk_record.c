/* vk_record.c: commands, and the launches of a recording: pipeline, descriptor set, words,
 * dispatch. A recording keeps its objects when it is recorded again. */
#include "backend/vulkan/vulkan.h"

#define LEAST_SETS 16

/* ---- commands ---- */

rlx_status vk_new_commands(struct gpu_device *g, void **out, struct diag *d)
{
    struct vk_device *dev = vk_of(g);
    const VkCommandBufferAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = dev->pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
    VkCommandBuffer made;

    VK_TRY(dev, dev->vk.AllocateCommandBuffers(dev->device, &info, &made), d);
    *out = made;
    return RLX_OK;
}

rlx_status vk_begin(struct gpu_device *g, void *commands, bool once, struct diag *d)
{
    struct vk_device *dev = vk_of(g);
    const VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = once ? (VkFlags)VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
                      : (VkFlags)VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};

    VK_TRY(dev, dev->vk.BeginCommandBuffer(commands, &info), d);
    return RLX_OK;
}

rlx_status vk_end(struct gpu_device *g, void *commands, struct diag *d)
{
    struct vk_device *dev = vk_of(g);

    VK_TRY(dev, dev->vk.EndCommandBuffer(commands), d);
    return RLX_OK;
}

static VkPipelineStageFlags stages_of(int who)
{
    return (who & GPU_BY_KERNELS ? (VkFlags)VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT : 0) |
           (who & GPU_BY_COPIES ? (VkFlags)VK_PIPELINE_STAGE_TRANSFER_BIT : 0) |
           (who & GPU_BY_HOST ? (VkFlags)VK_PIPELINE_STAGE_HOST_BIT : 0);
}

static VkAccessFlags reads_of(int who)
{
    return (who & GPU_BY_KERNELS ? (VkFlags)VK_ACCESS_SHADER_READ_BIT : 0) |
           (who & GPU_BY_COPIES ? (VkFlags)VK_ACCESS_TRANSFER_READ_BIT : 0) |
           (who & GPU_BY_HOST ? (VkFlags)VK_ACCESS_HOST_READ_BIT : 0);
}

static VkAccessFlags writes_of(int who)
{
    return (who & GPU_BY_KERNELS ? (VkFlags)VK_ACCESS_SHADER_WRITE_BIT : 0) |
           (who & GPU_BY_COPIES ? (VkFlags)VK_ACCESS_TRANSFER_WRITE_BIT : 0);
}

void vk_barrier(struct gpu_device *g, void *commands, int from, int to)
{
    const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                 .srcAccessMask = writes_of(from),
                                 .dstAccessMask = reads_of(to) | writes_of(to)};

    vk_of(g)->vk.CmdPipelineBarrier(commands, stages_of(from), stages_of(to), 0, 1, &all, 0, NULL,
                                    0, NULL);
}

void vk_copy(struct gpu_device *g, void *commands, struct span dst, struct span src)
{
    const VkBufferCopy part = {src.offset, dst.offset, dst.bytes};

    vk_of(g)->vk.CmdCopyBuffer(commands, src.buffer->handle, dst.buffer->handle, 1, &part);
}

void vk_fill(struct gpu_device *g, void *commands, struct span dst, uint32_t word)
{
    vk_of(g)->vk.CmdFillBuffer(commands, dst.buffer->handle, dst.offset, dst.bytes, word);
}

/* ---- room for a recording ---- */

static uint32_t grown(uint32_t had, uint32_t need)
{
    uint32_t room = had ? had : LEAST_SETS;

    while (room < need)
        room *= 2;
    return room;
}

static rlx_status make_sets(struct vk_device *dev, struct vk_recording *r,
                            const struct gpu_needs *n, struct diag *d)
{
    if (r->sets && r->room_sets >= n->launches && r->room_buffers >= n->bindings) {
        VK_TRY(dev, dev->vk.ResetDescriptorPool(dev->device, r->sets, 0), d);
        return RLX_OK;
    }
    dev->vk.DestroyDescriptorPool(dev->device, r->sets, NULL);
    r->sets = VK_NULL_HANDLE;
    r->room_sets = grown(r->room_sets, n->launches);
    r->room_buffers = grown(r->room_buffers, n->bindings);
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, r->room_buffers};
    const VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = r->room_sets,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    VK_TRY(dev, dev->vk.CreateDescriptorPool(dev->device, &pool, NULL, &r->sets), d);
    return RLX_OK;
}

static rlx_status make_times(struct vk_device *dev, struct vk_recording *r, uint32_t count,
                             struct diag *d)
{
    if (r->room_times >= count)
        return RLX_OK;
    dev->vk.DestroyQueryPool(dev->device, r->times, NULL);
    r->times = VK_NULL_HANDLE;
    r->room_times = grown(r->room_times, count);
    const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                        .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                        .queryCount = r->room_times};
    VK_TRY(dev, dev->vk.CreateQueryPool(dev->device, &info, NULL, &r->times), d);
    return RLX_OK;
}

rlx_status vk_prepare(struct gpu_device *g, struct gpu_recording *base,
                      const struct gpu_needs *needs, struct diag *d)
{
    struct vk_recording *r = vk_recording_of(base);

    if (!base->commands)
        TRY(vk_new_commands(g, &base->commands, d));
    TRY(make_sets(vk_of(g), r, needs, d));
    return make_times(vk_of(g), r, needs->times, d);
}

void vk_drop_recording(struct gpu_device *g, struct gpu_recording *base)
{
    struct vk_device *dev = vk_of(g);
    struct vk_recording *r = vk_recording_of(base);
    VkCommandBuffer commands = base->commands;

    dev->vk.DestroyDescriptorPool(dev->device, r->sets, NULL);
    dev->vk.DestroyQueryPool(dev->device, r->times, NULL);
    if (commands)
        dev->vk.FreeCommandBuffers(dev->device, dev->pool, 1, &commands);
}

/* ---- launches ---- */

static rlx_status bind_set(struct vk_device *dev, struct vk_recording *r,
                           const struct vk_pipeline *p, const struct gpu_dispatch *l,
                           struct diag *d)
{
    VkDescriptorBufferInfo info[GPU_BINDINGS + 1];
    VkWriteDescriptorSet write[GPU_BINDINGS + 1];
    uint32_t count = p->buffers + p->words_in_buffer;
    VkDescriptorSet set;
    const VkDescriptorSetAllocateInfo alloc = {.sType =
                                                   VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                               .descriptorPool = r->sets,
                                               .descriptorSetCount = 1,
                                               .pSetLayouts = &p->set};

    VK_TRY(dev, dev->vk.AllocateDescriptorSets(dev->device, &alloc, &set), d);
    for (uint32_t i = 0; i < count; i++) {
        struct span s = i < p->buffers ? l->span[i] : l->place;
        uint64_t bytes = (s.bytes + 3) / 4 * 4;
        info[i] = (VkDescriptorBufferInfo){s.buffer->handle, s.offset, bytes};
        write[i] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                          .dstSet = set,
                                          .dstBinding = i,
                                          .descriptorCount = 1,
                                          .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                          .pBufferInfo = &info[i]};
    }
    dev->vk.UpdateDescriptorSets(dev->device, count, write, 0, NULL);
    dev->vk.CmdBindDescriptorSets(r->base.commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->layout, 0, 1,
                                  &set, 0, NULL);
    return RLX_OK;
}

rlx_status vk_launch(struct gpu_device *g, struct gpu_recording *base, const struct gpu_dispatch *l,
                     struct diag *d)
{
    struct vk_device *dev = vk_of(g);
    const struct vk_pipeline *p = l->kernel->pipeline;
    VkCommandBuffer commands = base->commands;

    dev->vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->handle);
    TRY(bind_set(dev, vk_recording_of(base), p, l, d));
    if (p->push_bytes)
        dev->vk.CmdPushConstants(commands, p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, p->push_bytes,
                                 l->word);
    dev->vk.CmdDispatch(commands, l->grid[0], l->grid[1], l->grid[2]);
    return RLX_OK;
}

/* ---- times ---- */

void vk_time(struct gpu_device *g, struct gpu_recording *base, uint32_t at)
{
    struct vk_device *dev = vk_of(g);
    struct vk_recording *r = vk_recording_of(base);

    if (at == 0)
        dev->vk.CmdResetQueryPool(base->commands, r->times, 0, 2 * (uint32_t)base->count);
    dev->vk.CmdWriteTimestamp(base->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, r->times, at);
}

bool vk_read_times(struct gpu_device *g, struct gpu_recording *r, size_t i, uint64_t out[2])
{
    const struct vk_device *dev = vk_of(g);
    double period = (double)dev->properties.limits.timestampPeriod;
    uint64_t mask =
        dev->timestamp_bits < 64 ? (UINT64_C(1) << dev->timestamp_bits) - 1 : UINT64_MAX;

    if (dev->vk.GetQueryPoolResults(dev->device, vk_recording_of(r)->times, (uint32_t)(2 * i), 2,
                                    2 * sizeof *out, out, sizeof *out,
                                    VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
        return false;
    for (size_t k = 0; k < 2; k++)
        out[k] = (uint64_t)((double)(out[k] & mask) * period);
    return true;
}
