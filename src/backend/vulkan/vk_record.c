/* vk_record.c: a program's launches as a command buffer, recorded once and submitted again and
 * again.
 *
 *     [zero the fault]  { [barrier] bind, push, dispatch }...  [copy the fault]  barrier
 *
 * Between launches there is a barrier where they touch the same bytes and one of them writes. A
 * recording keeps its objects when it is recorded anew. */
#include <string.h>

#include "backend/vulkan/vulkan.h"

#define FAULT_BYTES 64
#define MOST_WORDS 256   /* of one launch */
#define MOST_TOUCHES 256 /* noted since the last barrier */
#define LEAST_SETS 16
#define PART_ALIGN 256 /* of parameters in their buffer */

/* ---- what there will be ---- */

struct needs {
    uint32_t launches, buffers;
    uint64_t words; /* bytes, each launch's aligned */
    bool faults;
};

static const struct vk_pipeline *pipeline_of(const struct gpu_launch *l)
{
    return l->kernel->pipeline;
}

static uint64_t word_room(const struct gpu_launch *l)
{
    uint64_t bytes = (l->kernel->words + GPU_BUFFERS) * sizeof(uint32_t);

    return (bytes + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
}

static void count_needs(const struct gpu_piece *piece, struct needs *n)
{
    for (size_t i = 0; i < piece->count; i++) {
        const struct gpu_work *w = piece->list[i].work;
        uint32_t k, end;
        for (gpu_piece_launches(piece, i, &k, &end); k < end; k++) {
            const struct vk_pipeline *p = pipeline_of(&w->launch[k]);
            n->launches++;
            n->buffers += p->buffers + p->words_in_buffer;
            n->words += p->words_in_buffer ? word_room(&w->launch[k]) : 0;
            for (uint32_t a = 0; a < w->launch[k].kernel->buffers; a++)
                n->faults |= w->launch[k].arg[a].operand == GPU_FAULT;
        }
    }
}

/* ---- room ---- */

static uint32_t grown(uint32_t had, uint32_t need)
{
    uint32_t room = had ? had : LEAST_SETS;

    while (room < need)
        room *= 2;
    return room;
}

static rlx_status make_sets(struct vk_device *dev, struct vk_recording *r, const struct needs *n,
                            struct diag *d)
{
    if (r->sets && r->room_sets >= n->launches && r->room_buffers >= n->buffers) {
        VK_TRY(dev, dev->vk.ResetDescriptorPool(dev->device, r->sets, 0), d);
        return RLX_OK;
    }
    dev->vk.DestroyDescriptorPool(dev->device, r->sets, NULL);
    r->sets = VK_NULL_HANDLE;
    r->room_sets = grown(r->room_sets, n->launches);
    r->room_buffers = grown(r->room_buffers, n->buffers);
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, r->room_buffers};
    const VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = r->room_sets,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    VK_TRY(dev, dev->vk.CreateDescriptorPool(dev->device, &pool, NULL, &r->sets), d);
    return RLX_OK;
}

static rlx_status make_times(struct vk_device *dev, struct vk_recording *r, size_t count,
                             struct diag *d)
{
    if (!r->base.timed || r->room_times >= 2 * count)
        return RLX_OK;
    dev->vk.DestroyQueryPool(dev->device, r->times, NULL);
    r->times = VK_NULL_HANDLE;
    r->room_times = grown(r->room_times, (uint32_t)(2 * count));
    const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                        .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                        .queryCount = r->room_times};
    VK_TRY(dev, dev->vk.CreateQueryPool(dev->device, &info, NULL, &r->times), d);
    return RLX_OK;
}

static rlx_status make_buffer(struct vk_device *dev, enum vk_use use, uint64_t bytes,
                              struct buffer *buf, struct diag *d)
{
    if (buf->bytes >= bytes)
        return RLX_OK;
    if (buf->used > dev->tickets) /* of a recording that failed */
        TRY(vk_submit_transfers(dev, d));
    TRY(vk_await(dev, buf->used, d));
    vk_drop_buffer(dev, buf);
    return vk_make_buffer(dev, use, bytes, buf, d);
}

static rlx_status make_room(struct vk_device *dev, struct vk_recording *r, const struct needs *n,
                            size_t count, struct diag *d)
{
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = dev->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};

    if (!r->commands)
        VK_TRY(dev, dev->vk.AllocateCommandBuffers(dev->device, &commands, &r->commands), d);
    TRY(make_sets(dev, r, n, d));
    TRY(make_times(dev, r, count, d));
    TRY(make_buffer(dev, VK_FOR_WORK, n->words, &r->words, d));
    r->base.faults = n->faults;
    if (!r->base.faults)
        return RLX_OK;
    TRY(make_buffer(dev, VK_FOR_WORK, FAULT_BYTES, &r->fault, d));
    return make_buffer(dev, VK_FOR_READBACK, FAULT_BYTES, &r->fault_seen, d);
}

void vk_drop_recording(struct backend *b, struct gpu_recording *base)
{
    struct vk_device *dev = vk_device_of(b);
    struct vk_recording *r = vk_recording_of(base);

    dev->vk.DestroyDescriptorPool(dev->device, r->sets, NULL);
    dev->vk.DestroyQueryPool(dev->device, r->times, NULL);
    if (r->commands)
        dev->vk.FreeCommandBuffers(dev->device, dev->pool, 1, &r->commands);
    vk_drop_buffer(dev, &r->words);
    vk_drop_buffer(dev, &r->fault);
    vk_drop_buffer(dev, &r->fault_seen);
    *r = (struct vk_recording){0};
}

/* ---- commands ---- */

struct recorder {
    struct vk_device *dev;
    struct vk_recording *r;
    uint64_t words_at;
    bool any; /* a launch was recorded */
    struct diag *diag;
};

static void barrier(struct recorder *c, VkPipelineStageFlags from, VkAccessFlags wrote,
                    VkPipelineStageFlags to, VkAccessFlags touches)
{
    const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                 .srcAccessMask = wrote,
                                 .dstAccessMask = touches};

    c->dev->vk.CmdPipelineBarrier(c->r->commands, from, to, 0, 1, &all, 0, NULL, 0, NULL);
}

static void between_launches(struct recorder *c)
{
    barrier(c, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
}

/* So that a submission knows what it makes busy. */
static void note_buffer(struct vk_recording *r, struct buffer *buf)
{
    for (uint32_t i = 0; i < r->touches && i < VK_TOUCHED; i++)
        if (r->touched[i] == buf)
            return;
    if (r->touches < VK_TOUCHED)
        r->touched[r->touches] = buf;
    if (r->touches <= VK_TOUCHED)
        r->touches++;
}

static rlx_status note_hazards(struct recorder *c, const struct gpu_bound *bound)
{
    struct gpu_hazards *h = &c->dev->recording;
    struct gpu_touch touch[GPU_BINDINGS];
    bool wait,
        full = c->dev->options.full_barrier || h->touched.len + bound->bindings > MOST_TOUCHES;

    for (uint32_t i = 0; i < bound->bindings; i++) {
        touch[i] = (struct gpu_touch){bound->span[i], bound->writes[i]};
        if (bound->span[i].buffer && bound->span[i].buffer != &c->r->fault)
            note_buffer(c->r, bound->span[i].buffer);
    }
    if (full)
        h->touched.len = 0;
    TRY(gpu_touch(h, touch, bound->bindings, &wait, c->diag));
    if (c->any && (wait || full))
        between_launches(c);
    c->any = true;
    return RLX_OK;
}

static rlx_status bind_set(struct recorder *c, const struct vk_pipeline *p,
                           const struct gpu_bound *bound, struct span words)
{
    VkDescriptorBufferInfo info[GPU_BINDINGS + 1];
    VkWriteDescriptorSet write[GPU_BINDINGS + 1];
    uint32_t count = p->buffers + p->words_in_buffer;
    VkDescriptorSet set;
    const VkDescriptorSetAllocateInfo alloc = {.sType =
                                                   VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                               .descriptorPool = c->r->sets,
                                               .descriptorSetCount = 1,
                                               .pSetLayouts = &p->set};

    VK_TRY(c->dev, c->dev->vk.AllocateDescriptorSets(c->dev->device, &alloc, &set), c->diag);
    for (uint32_t i = 0; i < count; i++) {
        struct span s = i < p->buffers ? bound->span[i] : words;
        if (s.bytes == 0) /* nobody looks, but something must be there */
            s = (struct span){&c->dev->nothing, 0, c->dev->nothing.bytes};
        uint64_t bytes = (s.bytes + 3) / 4 * 4;
        info[i] = (VkDescriptorBufferInfo){s.buffer->handle, s.offset, bytes};
        write[i] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                          .dstSet = set,
                                          .dstBinding = i,
                                          .descriptorCount = 1,
                                          .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                          .pBufferInfo = &info[i]};
    }
    c->dev->vk.UpdateDescriptorSets(c->dev->device, count, write, 0, NULL);
    c->dev->vk.CmdBindDescriptorSets(c->r->commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->layout, 0,
                                     1, &set, 0, NULL);
    return RLX_OK;
}

static rlx_status record_launch(struct recorder *c, const struct command *cmd,
                                const struct gpu_launch *l)
{
    const struct vk_pipeline *p = pipeline_of(l);
    struct vk_functions *vk = &c->dev->vk;
    struct span fault = {&c->r->fault, 0, FAULT_BYTES}, words = {0};
    uint32_t word[MOST_WORDS + GPU_BUFFERS] = {0};
    struct gpu_bound bound;

    if (l->kernel->words > MOST_WORDS)
        return diag_fail(c->diag, RLX_ERROR_INTERNAL, "kernel %s has %u words", l->kernel->key,
                         l->kernel->words);
    TRY(gpu_bind_launch(cmd->work, l, cmd, fault,
                        c->dev->properties.limits.minStorageBufferOffsetAlignment, word, &bound,
                        c->diag));
    TRY(note_hazards(c, &bound));
    if (p->words_in_buffer) {
        words = (struct span){&c->r->words, c->words_at, bound.words * sizeof *word};
        TRY(vk_put(c->dev, words, word, c->diag));
        c->words_at += word_room(l);
    }
    vk->CmdBindPipeline(c->r->commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->handle);
    TRY(bind_set(c, p, &bound, words));
    if (p->push_bytes)
        vk->CmdPushConstants(c->r->commands, p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                             p->push_bytes, word);
    vk->CmdDispatch(c->r->commands, l->grid[0], l->grid[1], l->grid[2]);
    return RLX_OK;
}

static void begin_faults(struct recorder *c)
{
    if (!c->r->base.faults)
        return;
    c->dev->vk.CmdFillBuffer(c->r->commands, c->r->fault.handle, 0, FAULT_BYTES, 0);
    barrier(c, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
}

static void end_faults(struct recorder *c)
{
    const VkBufferCopy all = {0, 0, FAULT_BYTES};

    if (!c->r->base.faults)
        return;
    barrier(c, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
            VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
    c->dev->vk.CmdCopyBuffer(c->r->commands, c->r->fault.handle, c->r->fault_seen.handle, 1, &all);
}

/* The results are for the host, and for whatever is submitted next. */
static void end_all(struct recorder *c)
{
    end_faults(c);
    barrier(c, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_HOST_READ_BIT | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
}

/* A time is taken when all before it is done: what a step takes is its own then. */
static void note_time(struct recorder *c, size_t i, bool end)
{
    if (!c->r->base.timed)
        return;
    if (!end)
        between_launches(c);
    c->dev->vk.CmdWriteTimestamp(c->r->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, c->r->times,
                                 (uint32_t)(2 * i + end));
}

static rlx_status record_all(struct recorder *c, const struct gpu_piece *p)
{
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};

    VK_TRY(c->dev, c->dev->vk.BeginCommandBuffer(c->r->commands, &begin), c->diag);
    if (c->r->base.timed && p->count)
        c->dev->vk.CmdResetQueryPool(c->r->commands, c->r->times, 0, (uint32_t)(2 * p->count));
    begin_faults(c);
    for (size_t i = 0; i < p->count; i++) {
        const struct gpu_work *w = p->list[i].work;
        uint32_t k, end;
        note_time(c, i, false);
        for (gpu_piece_launches(p, i, &k, &end); k < end; k++)
            TRY(record_launch(c, &p->list[i], &w->launch[k]));
        note_time(c, i, true);
    }
    end_all(c);
    VK_TRY(c->dev, c->dev->vk.EndCommandBuffer(c->r->commands), c->diag);
    return RLX_OK;
}

rlx_status vk_record(struct backend *b, struct gpu_recording *base, const struct gpu_piece *p,
                     struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);
    struct vk_recording *r = vk_recording_of(base);
    struct recorder c = {.dev = dev, .r = r, .diag = d};
    struct needs needs = {0};

    r->base.valid = false;
    r->touches = 0;
    dev->recording.touched.len = 0;
    if (!vec_room_for(dev->base.mem, &dev->recording.touched, MOST_TOUCHES + GPU_BINDINGS))
        return diag_no_memory(d, MOST_TOUCHES * sizeof(struct gpu_touch));
    count_needs(p, &needs);
    TRY(make_room(dev, r, &needs, p->count, d));
    TRY(record_all(&c, p));
    r->base.valid = true;
    return RLX_OK;
}

/* ---- what it left ---- */

bool vk_read_times(struct backend *b, struct gpu_recording *r, size_t i, uint64_t out[2])
{
    const struct vk_device *dev = vk_device_of(b);
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

rlx_status vk_read_fault(struct backend *b, struct gpu_recording *r, uint32_t *word, uint32_t words,
                         struct diag *d)
{
    const struct buffer *seen = &vk_recording_of(r)->fault_seen;

    (void)d;
    vk_invalidate(vk_device_of(b), seen, 0, words * sizeof *word);
    memcpy(word, seen->mapped, words * sizeof *word);
    return RLX_OK;
}
