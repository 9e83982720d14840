/* record.c: a program's launches as a command buffer, recorded once and submitted again and again.
 *
 * A recording is found by the list of commands it is of and by the stamps of their works. */
#include <string.h>

#include "backend/vulkan/vulkan.h"
#include "base/map.h"

#define FAULT_BYTES 64
#define MOST_WORDS 256 /* of one launch */
#define KEPT 8         /* recordings of one program */

struct vk_recording {
    struct vk_recording *next;
    const struct command *list;
    uint64_t key;
    VkCommandBuffer commands;
    VkDescriptorPool sets;
    struct buffer *words; /* parameters that are too many to push; may be NULL */
    struct buffer *fault;
    uint64_t ticket; /* of its last submission */
    uint64_t used;
};

/* ---- what there will be ---- */

struct needs {
    uint32_t launches, buffers;
    uint64_t words; /* bytes, each launch's aligned */
};

static const struct vk_pipeline *pipeline_of(const struct gpu_launch *l)
{
    return l->kernel->pipeline;
}

static uint64_t word_room(const struct gpu_launch *l)
{
    uint64_t bytes = (l->kernel->words + GPU_BUFFERS) * sizeof(uint32_t);

    return (bytes + GPU_ALIGN - 1) / GPU_ALIGN * GPU_ALIGN;
}

static void count_needs(const struct command *list, size_t count, struct needs *n)
{
    for (size_t i = 0; i < count; i++) {
        const struct gpu_work *w = list[i].work;
        for (uint32_t k = 0; !list[i].idle && k < w->launches; k++) {
            const struct vk_pipeline *p = pipeline_of(&w->launch[k]);
            n->launches++;
            n->buffers += p->buffers + p->words_in_buffer;
            n->words += p->words_in_buffer ? word_room(&w->launch[k]) : 0;
        }
    }
}

/* ---- recording ---- */

struct recorder {
    struct vk_device *dev;
    struct vk_recording *r;
    struct gpu_hazards hazards;
    uint64_t words_at;
    struct diag *diag;
};

static void barrier(struct recorder *c)
{
    const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                 .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                 .dstAccessMask =
                                     VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};

    c->dev->vk.CmdPipelineBarrier(c->r->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                  VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &all, 0, NULL, 0,
                                  NULL);
}

static rlx_status bind_set(struct recorder *c, const struct vk_pipeline *p,
                           const struct gpu_bound *bound, struct span words)
{
    VkDescriptorBufferInfo info[GPU_BUFFERS + 1];
    VkWriteDescriptorSet write[GPU_BUFFERS + 1];
    uint32_t count = p->buffers + p->words_in_buffer;
    VkDescriptorSet set;
    const VkDescriptorSetAllocateInfo alloc = {.sType =
                                                   VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                               .descriptorPool = c->r->sets,
                                               .descriptorSetCount = 1,
                                               .pSetLayouts = &p->set};

    VK_TRY(c->dev->vk.AllocateDescriptorSets(c->dev->device, &alloc, &set), c->diag);
    for (uint32_t i = 0; i < count; i++) {
        struct span s = i < p->buffers ? bound->span[i] : words;
        if (s.bytes == 0) /* nobody looks, but something must be there */
            s = (struct span){c->r->fault, 0, FAULT_BYTES};
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

static rlx_status note_hazards(struct recorder *c, const struct gpu_kernel *k,
                               const struct gpu_bound *bound)
{
    struct gpu_touch touch[GPU_BUFFERS];
    bool wait;

    for (uint32_t i = 0; i < k->buffers; i++)
        touch[i] = (struct gpu_touch){bound->span[i], (k->mode[i] & KIR_OUT) != 0};
    TRY(gpu_touch(&c->hazards, touch, k->buffers, &wait, c->diag));
    if (wait)
        barrier(c);
    return RLX_OK;
}

static rlx_status record_launch(struct recorder *c, const struct command *cmd,
                                const struct gpu_launch *l)
{
    const struct vk_pipeline *p = pipeline_of(l);
    struct vk_functions *vk = &c->dev->vk;
    struct span fault = {c->r->fault, 0, FAULT_BYTES}, words = {0};
    uint32_t word[MOST_WORDS + GPU_BUFFERS];
    struct gpu_bound bound;

    if (l->kernel->words > MOST_WORDS)
        return diag_fail(c->diag, RLX_ERROR_INTERNAL, "kernel %s has %u words", l->kernel->key,
                         l->kernel->words);
    TRY(gpu_bind_launch(cmd->work, l, cmd, fault,
                        c->dev->properties.limits.minStorageBufferOffsetAlignment, word, &bound,
                        c->diag));
    TRY(note_hazards(c, l->kernel, &bound));
    if (p->words_in_buffer) {
        words = (struct span){c->r->words, c->words_at, word_room(l)};
        memcpy(c->r->words->mapped + c->words_at, word, bound.words * sizeof *word);
        c->words_at += words.bytes;
    }
    vk->CmdBindPipeline(c->r->commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->handle);
    TRY(bind_set(c, p, &bound, words));
    if (p->push_bytes)
        vk->CmdPushConstants(c->r->commands, p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                             p->push_bytes, word);
    vk->CmdDispatch(c->r->commands, l->grid[0], l->grid[1], l->grid[2]);
    return RLX_OK;
}

/* The results are for the host, and for whatever is submitted next. */
static void final_barrier(struct recorder *c)
{
    const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                 .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                 .dstAccessMask =
                                     VK_ACCESS_HOST_READ_BIT | VK_ACCESS_SHADER_READ_BIT |
                                     VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT};

    c->dev->vk.CmdPipelineBarrier(c->r->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                  VK_PIPELINE_STAGE_HOST_BIT |
                                      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                                      VK_PIPELINE_STAGE_TRANSFER_BIT,
                                  0, 1, &all, 0, NULL, 0, NULL);
}

static rlx_status record_all(struct recorder *c, const struct command *list, size_t count)
{
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};

    VK_TRY(c->dev->vk.BeginCommandBuffer(c->r->commands, &begin), c->diag);
    for (size_t i = 0; i < count; i++) {
        const struct gpu_work *w = list[i].work;
        for (uint32_t k = 0; !list[i].idle && k < w->launches; k++)
            TRY(record_launch(c, &list[i], &w->launch[k]));
    }
    final_barrier(c);
    VK_TRY(c->dev->vk.EndCommandBuffer(c->r->commands), c->diag);
    return RLX_OK;
}

static rlx_status make_room(struct vk_device *dev, struct vk_recording *r, const struct needs *n,
                            struct diag *d)
{
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                       n->buffers ? n->buffers : 1};
    const VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = n->launches ? n->launches : 1,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = dev->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};

    VK_TRY(dev->vk.CreateDescriptorPool(dev->device, &pool, NULL, &r->sets), d);
    VK_TRY(dev->vk.AllocateCommandBuffers(dev->device, &commands, &r->commands), d);
    TRY(vk_alloc(&dev->base, FAULT_BYTES, &r->fault, d));
    return n->words ? vk_alloc(&dev->base, n->words, &r->words, d) : RLX_OK;
}

static void drop_recording(struct vk_device *dev, struct vk_recording *r)
{
    dev->vk.DestroyDescriptorPool(dev->device, r->sets, NULL);
    if (r->commands)
        dev->vk.FreeCommandBuffers(dev->device, dev->pool, 1, &r->commands);
    vk_release(&dev->base, r->fault);
    vk_release(&dev->base, r->words);
    mem_free(dev->base.mem, r, sizeof *r);
}

static rlx_status record(struct vk_device *dev, const struct command *list, size_t count,
                         struct vk_recording *r, struct diag *d)
{
    struct recorder c = {.dev = dev, .r = r, .hazards = {.mem = dev->base.mem}, .diag = d};
    struct needs needs = {0};

    count_needs(list, count, &needs);
    TRY(make_room(dev, r, &needs, d));
    rlx_status s = record_all(&c, list, count);
    vec_free(dev->base.mem, &c.hazards.touched);
    return s;
}

/* ---- finding one ---- */

static uint64_t key_of(const struct vk_device *dev, const struct command *list, size_t count)
{
    uint64_t h = hash_mix(dev->released, count);

    for (size_t i = 0; i < count; i++)
        h = hash_mix(h, list[i].idle ? 0 : ((const struct gpu_work *)list[i].work)->stamp);
    return h;
}

static rlx_status find_recording(struct vk_device *dev, const struct command *list, size_t count,
                                 struct vk_recording **out, struct diag *d)
{
    uint64_t key = key_of(dev, list, count);

    for (struct vk_recording *r = dev->recordings; r; r = r->next)
        if (r->list == list && r->key == key) {
            *out = r;
            return RLX_OK;
        }
    struct vk_recording *r = mem_alloc(dev->base.mem, sizeof *r);
    if (!r)
        return diag_no_memory(d, sizeof *r);
    rlx_status s = record(dev, list, count, r, d);
    if (s != RLX_OK) {
        drop_recording(dev, r);
        return s;
    }
    r->list = list;
    r->key = key;
    r->next = dev->recordings;
    dev->recordings = r;
    *out = r;
    return RLX_OK;
}

/* ---- running ---- */

static rlx_status submit_commands(struct vk_device *dev, VkCommandBuffer commands, uint64_t ticket,
                                  struct diag *d)
{
    const VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &ticket};
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &values,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &commands,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &dev->timeline};

    VK_TRY(dev->vk.QueueSubmit(dev->queue, 1, &info, VK_NULL_HANDLE), d);
    return RLX_OK;
}

static rlx_status submit_locked(struct vk_device *dev, const struct command *list, size_t count,
                                uint64_t *ticket, struct diag *d)
{
    struct vk_recording *r;

    TRY(find_recording(dev, list, count, &r, d));
    TRY(submit_commands(dev, r->commands, dev->tickets + 1, d));
    *ticket = r->ticket = ++dev->tickets;
    return RLX_OK;
}

rlx_status vk_submit(struct backend *b, const struct command *list, size_t count,
                     const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                     struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);

    (void)hooks;
    report->step = -1;
    pthread_mutex_lock(&dev->lock);
    rlx_status s = submit_locked(dev, list, count, ticket, d);
    pthread_mutex_unlock(&dev->lock);
    return s;
}

rlx_status vk_poll(struct backend *b, uint64_t ticket, bool *done, struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);
    uint64_t value = 0;

    VK_TRY(dev->vk.GetSemaphoreCounterValue(dev->device, dev->timeline, &value), d);
    *done = value >= ticket;
    return RLX_OK;
}

rlx_status vk_wait(struct backend *b, uint64_t ticket, struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);
    const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      .semaphoreCount = 1,
                                      .pSemaphores = &dev->timeline,
                                      .pValues = &ticket};

    VK_TRY(dev->vk.WaitSemaphores(dev->device, &info, UINT64_MAX), d);
    return RLX_OK;
}

/* ---- the end ---- */

static void drop_where(struct vk_device *dev, const struct command *list, bool all)
{
    struct vk_recording **at = &dev->recordings;

    while (*at) {
        struct vk_recording *r = *at;
        if (all || r->list == list) {
            *at = r->next;
            drop_recording(dev, r);
        } else {
            at = &r->next;
        }
    }
}

void vk_unload(struct backend *b, const struct command *list)
{
    struct vk_device *dev = vk_device_of(b);
    struct diag quiet;

    diag_init(&quiet, "unload");
    pthread_mutex_lock(&dev->lock);
    vk_wait(b, dev->tickets, &quiet);
    drop_where(dev, list, false);
    pthread_mutex_unlock(&dev->lock);
}

void vk_drop_recordings(struct vk_device *dev)
{
    drop_where(dev, NULL, true);
}
