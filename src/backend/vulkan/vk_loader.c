/* vk_loader.c: the Vulkan loader, opened at run time, so that rlx works where there is none. */
#include "backend/vulkan/vulkan.h"
#include "base/library.h"

static const char *const names[] = {"libvulkan.so.1", "libvulkan.so", "libvulkan.1.dylib"};

rlx_status vk_load_library(struct vk_functions *vk, struct diag *d)
{
    void *library = library_open(names, sizeof names / sizeof names[0]);

    if (!library || !library_find(library, "vkGetInstanceProcAddr", &vk->GetInstanceProcAddr))
        return diag_fail(
            d, RLX_ERROR_NO_DEVICE,
            "no Vulkan loader (%s): on Debian install libvulkan1 and a driver, such as "
            "those of mesa-vulkan-drivers",
            names[0]);
#define VK_GLOBAL(name) vk->name = (PFN_vk##name)vk->GetInstanceProcAddr(NULL, "vk" #name);
#define VK_INSTANCE(name)
#define VK_OPTIONAL(name)
#define VK_DEVICE(name)
#include "backend/vulkan/vk_functions.def"
    return RLX_OK;
}

bool vk_load_instance(struct vk_functions *vk, VkInstance instance)
{
    bool all = true;

    library_keep(LIBRARY_OF_VULKAN);
#define VK_GLOBAL(name)
#define VK_INSTANCE(name) \
    all &= (vk->name = (PFN_vk##name)vk->GetInstanceProcAddr(instance, "vk" #name)) != NULL;
#define VK_OPTIONAL(name) vk->name = (PFN_vk##name)vk->GetInstanceProcAddr(instance, "vk" #name);
#define VK_DEVICE(name)
#include "backend/vulkan/vk_functions.def"
    return all;
}

bool vk_load_device(struct vk_functions *vk, VkDevice device)
{
    bool all = true;

#define VK_GLOBAL(name)
#define VK_INSTANCE(name)
#define VK_OPTIONAL(name)
#define VK_DEVICE(name) \
    all &= (vk->name = (PFN_vk##name)vk->GetDeviceProcAddr(device, "vk" #name)) != NULL;
#include "backend/vulkan/vk_functions.def"
    return all;
}
