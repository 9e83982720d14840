/* vk_features.h: what a driver is asked for when a device is opened. */
#ifndef BACKEND_VK_FEATURES_H
#define BACKEND_VK_FEATURES_H

#include "backend/vulkan/vulkan.h"

struct vk_features {
    VkPhysicalDeviceFeatures2 core; /* the head of the chain */
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceVulkan13Features v13; /* or, of an older device, the two that are used: */
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot;
    VkPhysicalDeviceSubgroupSizeControlFeatures size_control;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR coop;
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV coop2;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16;
    const char *extension[8];
    uint32_t extensions;
};
/* Those of dev->physical, as far as kernels use them; fills what dev says of the device too. */
void vk_find_features(struct vk_device *dev, struct vk_features *out);

#endif
