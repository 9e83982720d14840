/* vk_features.c: what a device can do, as the kernel compiler wants to know it. */
#include "backend/vulkan/vk_features.h"

#include <stdio.h>
#include <string.h>

#define MOST_EXTENSIONS 512

/* ---- extensions ---- */

struct extensions {
    VkExtensionProperties at[MOST_EXTENSIONS];
    uint32_t count;
};

static bool has(const struct extensions *e, const char *name)
{
    for (uint32_t i = 0; i < e->count; i++)
        if (strcmp(e->at[i].extensionName, name) == 0)
            return true;
    return false;
}

static void want(struct vk_features *f, const char *name)
{
    f->extension[f->extensions++] = name;
}

/* ---- the chain ---- */

static void append(struct vk_features *f, void *next)
{
    VkBaseOutStructure *at = (VkBaseOutStructure *)&f->core;

    while (at->pNext)
        at = at->pNext;
    at->pNext = next;
}

/* Every struct that this device understands. */
static void link_chain(const struct vk_device *dev, const struct extensions *e,
                       struct vk_features *f)
{
    f->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    f->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    f->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    f->v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    f->dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
    f->size_control.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
    f->coop.sType = (VkStructureType)COOP_FEATURES;
    f->coop2.sType = (VkStructureType)COOP2_FEATURES;
    f->bfloat16.sType = (VkStructureType)BFLOAT16_FEATURES;
    append(f, &f->v11);
    append(f, &f->v12);
    if (dev->api >= VK_API_VERSION_1_3) {
        append(f, &f->v13);
    } else {
        if (has(e, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME))
            append(f, &f->dot);
        if (has(e, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME))
            append(f, &f->size_control);
    }
    /* Kernels that use them are SPIR-V 1.6, which comes with 1.3. */
    if (dev->api >= VK_API_VERSION_1_3 && !dev->gpu.options.no_coop) {
        if (has(e, "VK_KHR_cooperative_matrix"))
            append(f, &f->coop);
        if (has(e, "VK_NV_cooperative_matrix2"))
            append(f, &f->coop2);
        if (has(e, "VK_KHR_shader_bfloat16"))
            append(f, &f->bfloat16);
    }
}

/* Only what kernels use is asked for: some drivers pay for more. */
static void keep_used(const struct vk_device *dev, const struct extensions *e,
                      struct vk_features *f)
{
    const struct vk_features all = *f;
    bool coop = all.coop.cooperativeMatrix && all.v12.vulkanMemoryModel;
    bool coop2 = coop && all.coop2.cooperativeMatrixWorkgroupScope &&
                 all.coop2.cooperativeMatrixFlexibleDimensions &&
                 all.coop2.cooperativeMatrixTensorAddressing;
    bool rows = coop && all.coop2.cooperativeMatrixReductions &&
                all.coop2.cooperativeMatrixConversions &&
                all.coop2.cooperativeMatrixPerElementOperations;
    bool bf16 =
        coop && all.bfloat16.shaderBFloat16Type && all.bfloat16.shaderBFloat16CooperativeMatrix;

    *f = (struct vk_features){0};
    link_chain(dev, e, f);
    f->core.features.shaderFloat64 = all.core.features.shaderFloat64;
    f->core.features.shaderInt64 = all.core.features.shaderInt64;
    f->core.features.shaderInt16 = all.core.features.shaderInt16;
    f->v11.storageBuffer16BitAccess = all.v11.storageBuffer16BitAccess;
    f->v12.storageBuffer8BitAccess = all.v12.storageBuffer8BitAccess;
    f->v12.shaderFloat16 = all.v12.shaderFloat16;
    f->v12.shaderInt8 = all.v12.shaderInt8;
    f->v12.timelineSemaphore = all.v12.timelineSemaphore;
    f->v12.vulkanMemoryModel = coop;
    f->v13.shaderIntegerDotProduct = all.v13.shaderIntegerDotProduct;
    f->v13.subgroupSizeControl = all.v13.subgroupSizeControl;
    f->v13.maintenance4 = all.v13.maintenance4; /* and with it local sizes from specialisation */
    f->dot.shaderIntegerDotProduct = all.dot.shaderIntegerDotProduct;
    f->size_control.subgroupSizeControl = all.size_control.subgroupSizeControl;
    f->coop.cooperativeMatrix = coop;
    f->coop2.cooperativeMatrixWorkgroupScope = coop2;
    f->coop2.cooperativeMatrixFlexibleDimensions = coop2;
    f->coop2.cooperativeMatrixTensorAddressing = coop2;
    f->coop2.cooperativeMatrixReductions = rows;
    f->coop2.cooperativeMatrixConversions = rows;
    f->coop2.cooperativeMatrixPerElementOperations = rows;
    f->bfloat16.shaderBFloat16Type = bf16;
    f->bfloat16.shaderBFloat16CooperativeMatrix = bf16;
    if (all.dot.shaderIntegerDotProduct)
        want(f, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
    if (all.size_control.subgroupSizeControl)
        want(f, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    if (coop)
        want(f, "VK_KHR_cooperative_matrix");
    if (coop2 || rows)
        want(f, "VK_NV_cooperative_matrix2");
    if (bf16)
        want(f, "VK_KHR_shader_bfloat16");
}

/* ---- what follows from it ---- */

/* Kernels multiply tiles of f16 with sums in f32, 16 each way: is that what it has? */
static bool has_tiles(const struct vk_device *dev)
{
    VkCooperativeMatrixPropertiesKHR row[128];
    uint32_t count = sizeof row / sizeof row[0];

    for (uint32_t i = 0; i < count; i++)
        row[i] = (VkCooperativeMatrixPropertiesKHR){.sType = (VkStructureType)COOP_PROPERTIES};
    if (!dev->vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR ||
        dev->vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(dev->physical, &count, row) < 0)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (row[i].MSize == 16 && row[i].NSize == 16 && row[i].KSize == 16 &&
            row[i].AType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
            row[i].BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
            row[i].CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
            row[i].ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
            row[i].scope == VK_SCOPE_SUBGROUP_KHR)
            return true;
    return false;
}

struct properties {
    VkPhysicalDeviceProperties2 core;
    VkPhysicalDeviceVulkan11Properties v11;
    VkPhysicalDeviceVulkan12Properties v12;
    VkPhysicalDeviceMaintenance4Properties limits;
    VkPhysicalDeviceSubgroupSizeControlProperties sizes;
};

static void find_properties(const struct vk_device *dev, const struct vk_features *f,
                            struct properties *p)
{
    *p = (struct properties){
        .core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES,
        .v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES,
        .limits.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES,
        .sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    p->core.pNext = &p->v11;
    p->v11.pNext = &p->v12;
    if (f->v13.subgroupSizeControl || f->size_control.subgroupSizeControl) {
        p->sizes.pNext = p->v12.pNext;
        p->v12.pNext = &p->sizes;
    }
    if (f->v13.maintenance4) {
        p->limits.pNext = p->v12.pNext;
        p->v12.pNext = &p->limits;
    }
    dev->vk.GetPhysicalDeviceProperties2(dev->physical, &p->core);
}

/* Where groups could be cut into subgroups of several sizes, pipelines ask for the usual one. */
static void find_subgroups(struct vk_device *dev, const struct properties *p)
{
    const VkSubgroupFeatureFlags used =
        VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
        VK_SUBGROUP_FEATURE_VOTE_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT |
        VK_SUBGROUP_FEATURE_BALLOT_BIT;
    bool varies = p->sizes.minSubgroupSize != p->sizes.maxSubgroupSize;
    bool asks = p->sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT;

    dev->gpu.features.subgroups = (p->v11.subgroupSupportedOperations & used) == used &&
                                  (p->v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT);
    dev->gpu.features.subgroup_size = varies && !asks ? 0 : p->v11.subgroupSize;
    dev->required_subgroup = varies && asks ? p->v11.subgroupSize : 0;
}

static void note_driver(struct vk_device *dev, const struct properties *p)
{
    const char *info = p->v12.driverInfo[0] ? p->v12.driverInfo : p->v12.driverName;

    dev->properties = p->core.properties;
    snprintf(dev->driver, sizeof dev->driver, "%.47s", info);
    memcpy(dev->uuid, p->core.properties.pipelineCacheUUID, sizeof dev->uuid);
    dev->max_allocation = p->v11.maxMemoryAllocationSize;
    if (p->limits.maxBufferSize && p->limits.maxBufferSize < dev->max_allocation)
        dev->max_allocation = p->limits.maxBufferSize;
}

void vk_find_features(struct vk_device *dev, struct vk_features *out)
{
    struct extensions e = {.count = MOST_EXTENSIONS};
    struct properties p;

    dev->vk.GetPhysicalDeviceProperties(dev->physical, &dev->properties);
    if (dev->properties.apiVersion < dev->api)
        dev->api = dev->properties.apiVersion;
    if (dev->vk.EnumerateDeviceExtensionProperties(dev->physical, NULL, &e.count, e.at) < 0)
        e.count = 0;
    dev->has_budget = has(&e, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    *out = (struct vk_features){0};
    link_chain(dev, &e, out);
    dev->vk.GetPhysicalDeviceFeatures2(dev->physical, &out->core);
    keep_used(dev, &e, out);
    if (dev->has_budget)
        want(out, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    find_properties(dev, out, &p);
    note_driver(dev, &p);
    const VkPhysicalDeviceLimits *l = &dev->properties.limits;
    bool coop = out->coop.cooperativeMatrix && has_tiles(dev);
    dev->gpu.features = (struct kc_features){
        .f16 = out->v12.shaderFloat16 && out->v11.storageBuffer16BitAccess,
        .f16_rounds = p.v12.shaderRoundingModeRTEFloat16,
        .nan_preserve = p.v12.shaderSignedZeroInfNanPreserveFloat32,
        .small_preserve =
            p.v12.shaderDenormPreserveFloat32 &&
            p.v12.denormBehaviorIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE,
        .f64 = out->core.features.shaderFloat64,
        .int64 = out->core.features.shaderInt64,
        /* It computes the product and the sum with a rounding each. */
        .fma = p.v12.driverID != VK_DRIVER_ID_MESA_LLVMPIPE,
        .dot8 = out->v13.shaderIntegerDotProduct || out->dot.shaderIntegerDotProduct,
        .coop = coop,
        .coop_group = coop && out->coop2.cooperativeMatrixWorkgroupScope,
        .coop_bf16 = coop && out->bfloat16.shaderBFloat16CooperativeMatrix,
        .coop_rows = coop && out->coop2.cooperativeMatrixReductions,
        .storage16 = out->v11.storageBuffer16BitAccess && out->core.features.shaderInt16,
        .storage8 = out->v12.storageBuffer8BitAccess && out->v12.shaderInt8,
        .max_group = l->maxComputeWorkGroupInvocations,
        .shared_bytes = l->maxComputeSharedMemorySize};
    find_subgroups(dev, &p);
}
