/* vulkan_driver.c: a driver of Vulkan without devices. As some do, it keeps memory in a global for
 * as long as it is loaded, and never gives it back: once it is unloaded that memory is a leak. */
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan_core.h>

static void *kept;

static VkResult create_instance(const VkInstanceCreateInfo *info,
                                const VkAllocationCallbacks *memory, VkInstance *out)
{
    static uintptr_t loader_data[8]; /* the loader writes to the front of what a handle points to */

    (void)info, (void)memory;
    if (!kept)
        kept = malloc(1000);
    *out = (VkInstance)loader_data;
    loader_data[0] = 0x01CDC0DE; /* what the loader looks for there */
    return kept ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY;
}

static VkResult no_devices(VkInstance instance, uint32_t *count, VkPhysicalDevice *out)
{
    (void)instance, (void)out;
    *count = 0;
    return VK_SUCCESS;
}

static VkResult no_extensions(const char *layer, uint32_t *count, VkExtensionProperties *out)
{
    (void)layer, (void)out;
    *count = 0;
    return VK_SUCCESS;
}

static VkResult version(uint32_t *out)
{
    *out = VK_API_VERSION_1_3;
    return VK_SUCCESS;
}

static VkResult nothing(void)
{
    return VK_SUCCESS;
}

PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char *name);
VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *wanted);

PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char *name)
{
    (void)instance;
    if (strcmp(name, "vkCreateInstance") == 0)
        return (PFN_vkVoidFunction)create_instance;
    if (strcmp(name, "vkEnumeratePhysicalDevices") == 0)
        return (PFN_vkVoidFunction)no_devices;
    if (strcmp(name, "vkEnumerateInstanceExtensionProperties") == 0)
        return (PFN_vkVoidFunction)no_extensions;
    if (strcmp(name, "vkEnumerateInstanceVersion") == 0)
        return (PFN_vkVoidFunction)version;
    return (PFN_vkVoidFunction)nothing;
}

VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *wanted)
{
    *wanted = 5;
    return VK_SUCCESS;
}
