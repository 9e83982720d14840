/* features.c: what a device can do, as the kernel compiler wants to know it. */
#include "backend/vulkan/vulkan.h"

static void link_chain(struct vk_features *f)
{
    f->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    f->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    f->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    f->core.pNext = &f->v11;
    f->v11.pNext = &f->v12;
    f->v12.pNext = NULL;
}

/* Only what kernels use is asked for: some drivers pay for more. */
static void keep_used(struct vk_features *f)
{
    const struct vk_features all = *f;

    *f = (struct vk_features){0};
    link_chain(f);
    f->core.features.shaderFloat64 = all.core.features.shaderFloat64;
    f->core.features.shaderInt64 = all.core.features.shaderInt64;
    f->core.features.shaderInt16 = all.core.features.shaderInt16;
    f->v11.storageBuffer16BitAccess = all.v11.storageBuffer16BitAccess;
    f->v12.storageBuffer8BitAccess = all.v12.storageBuffer8BitAccess;
    f->v12.shaderFloat16 = all.v12.shaderFloat16;
    f->v12.shaderInt8 = all.v12.shaderInt8;
    f->v12.timelineSemaphore = all.v12.timelineSemaphore;
}

void vk_find_features(struct vk_device *dev, struct vk_features *out)
{
    VkPhysicalDeviceVulkan12Properties v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
    VkPhysicalDeviceVulkan11Properties v11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, .pNext = &v12};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &v11};
    const VkSubgroupFeatureFlags used =
        VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
        VK_SUBGROUP_FEATURE_VOTE_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT |
        VK_SUBGROUP_FEATURE_BALLOT_BIT;

    link_chain(out);
    dev->vk.GetPhysicalDeviceFeatures2(dev->physical, &out->core);
    keep_used(out);
    dev->vk.GetPhysicalDeviceProperties2(dev->physical, &all);
    dev->properties = all.properties;
    const VkPhysicalDeviceLimits *l = &dev->properties.limits;
    dev->features = (struct kc_features){
        .f16 = out->v12.shaderFloat16 && out->v11.storageBuffer16BitAccess,
        .f16_rounds = v12.shaderRoundingModeRTEFloat16,
        .nan_preserve = v12.shaderSignedZeroInfNanPreserveFloat32,
        .f64 = out->core.features.shaderFloat64,
        .int64 = out->core.features.shaderInt64,
        .subgroups = (v11.subgroupSupportedOperations & used) == used &&
                     (v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT),
        /* It computes the product and the sum with a rounding each. */
        .fma = v12.driverID != VK_DRIVER_ID_MESA_LLVMPIPE,
        .storage16 = out->v11.storageBuffer16BitAccess && out->core.features.shaderInt16,
        .storage8 = out->v12.storageBuffer8BitAccess && out->v12.shaderInt8,
        .subgroup_size = v11.subgroupSize,
        .max_group = l->maxComputeWorkGroupInvocations,
        .shared_bytes = l->maxComputeSharedMemorySize};
}
