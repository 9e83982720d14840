/* vk_debug.c: the validation layer, when RLX_GPU_VALIDATION asks for it. What it says is logged;
 * its errors are ours, and fail the next wait. */
#include <stdio.h>
#include <string.h>

#include "backend/vulkan/vulkan.h"

const char vk_validation_layer[] = "VK_LAYER_KHRONOS_validation";

bool vk_has_validation(struct vk_device *dev)
{
    VkLayerProperties layer[64];
    uint32_t count = 64;

    if (!dev->vk.EnumerateInstanceLayerProperties ||
        dev->vk.EnumerateInstanceLayerProperties(&count, layer) < 0)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(layer[i].layerName, vk_validation_layer) == 0)
            return true;
    return false;
}

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data,
                                                 void *user)
{
    struct vk_device *dev = user;
    bool error = severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;

    (void)types;
    gpu_log(&dev->gpu, error ? 0 : 1, "vulkan: %s", data->pMessage);
    if (error && atomic_fetch_add(&dev->complaints, 1) == 0)
        snprintf(dev->complaint, sizeof dev->complaint, "%s", data->pMessage);
    return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT vk_messenger_info(struct vk_device *dev)
{
    return (VkDebugUtilsMessengerCreateInfoEXT){
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = on_message,
        .pUserData = dev};
}

rlx_status vk_open_messenger(struct vk_device *dev, struct diag *d)
{
    const VkDebugUtilsMessengerCreateInfoEXT info = vk_messenger_info(dev);

    if (!dev->vk.CreateDebugUtilsMessengerEXT)
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "the validation layer has no debug messenger");
    VK_TRY(dev, dev->vk.CreateDebugUtilsMessengerEXT(dev->instance, &info, NULL, &dev->messenger),
           d);
    return RLX_OK;
}

rlx_status vk_check_complaints(struct gpu_device *g, struct diag *d)
{
    struct vk_device *dev = vk_of(g);
    unsigned count = atomic_exchange(&dev->complaints, 0);

    if (!count)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_INTERNAL, "the validation layer found %u mistakes; the first: %s",
                     count, dev->complaint);
}
