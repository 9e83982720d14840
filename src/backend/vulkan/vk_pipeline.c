/* vk_pipeline.c: a kernel as a compute pipeline. */
#include "backend/vulkan/vulkan.h"

void vk_drop_pipeline(struct backend *b, void *pipeline)
{
    struct vk_device *dev = vk_device_of(b);
    struct vk_pipeline *p = pipeline;

    if (!p)
        return;
    dev->vk.DestroyPipeline(dev->device, p->handle, NULL);
    dev->vk.DestroyPipelineLayout(dev->device, p->layout, NULL);
    dev->vk.DestroyDescriptorSetLayout(dev->device, p->set, NULL);
    dev->vk.DestroyShaderModule(dev->device, p->module, NULL);
    mem_free(b->mem, p, sizeof *p);
}

static rlx_status make_layout(struct vk_device *dev, struct vk_pipeline *p, struct diag *d)
{
    VkDescriptorSetLayoutBinding binding[GPU_BINDINGS + 1];
    uint32_t count = p->buffers + p->words_in_buffer;

    for (uint32_t i = 0; i < count; i++)
        binding[i] =
            (VkDescriptorSetLayoutBinding){.binding = i,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .descriptorCount = 1,
                                           .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = count,
        .pBindings = binding};
    VK_TRY(dev, dev->vk.CreateDescriptorSetLayout(dev->device, &set, NULL, &p->set), d);
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, p->push_bytes};
    const VkPipelineLayoutCreateInfo layout = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = 1,
                                               .pSetLayouts = &p->set,
                                               .pushConstantRangeCount = p->push_bytes > 0,
                                               .pPushConstantRanges = &push};
    VK_TRY(dev, dev->vk.CreatePipelineLayout(dev->device, &layout, NULL, &p->layout), d);
    return RLX_OK;
}

static rlx_status make_pipeline(struct vk_device *dev, struct vk_pipeline *p, const uint32_t *words,
                                size_t count, struct diag *d)
{
    const VkShaderModuleCreateInfo module = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                             .codeSize = count * sizeof *words,
                                             .pCode = words};

    VK_TRY(dev, dev->vk.CreateShaderModule(dev->device, &module, NULL, &p->module), d);
    TRY(make_layout(dev, p, d));
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = dev->required_subgroup};
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = dev->required_subgroup ? &size : NULL,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = p->module,
                  .pName = "main"},
        .layout = p->layout};
    VK_TRY(dev, dev->vk.CreateComputePipelines(dev->device, dev->cache, 1, &info, NULL, &p->handle),
           d);
    return RLX_OK;
}

rlx_status vk_make_pipeline(struct backend *b, const struct kir *k, const struct kc_emit *how,
                            const char *key, void **pipeline, struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);
    struct vk_pipeline *p = mem_alloc(b->mem, sizeof *p);
    uint32_t *words, all = k->param_words;
    size_t count;
    struct arena arena;

    (void)key;
    if (!p)
        return diag_no_memory(d, sizeof *p);
    p->buffers = k->buffers;
    p->words_in_buffer = all * sizeof *words > VK_PUSH_BYTES;
    p->push_bytes = p->words_in_buffer ? 0 : all * (uint32_t)sizeof *words;
    arena_init(&arena, b->mem);
    rlx_status s = kc_emit_spirv(k, how, &arena, &words, &count, d);
    if (s == RLX_OK)
        s = make_pipeline(dev, p, words, count, d);
    dev->built++;
    arena_free(&arena);
    if (s != RLX_OK) {
        vk_drop_pipeline(b, p);
        return s;
    }
    *pipeline = p;
    return RLX_OK;
}
