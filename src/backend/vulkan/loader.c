/* loader.c: the Vulkan loader, opened at run time, so that rlx works where there is none. */
#include <dlfcn.h>
#include <stdio.h>

#include "backend/vulkan/vulkan.h"

struct vk_loader {
    const rlx_allocator *mem;
    void *library;
    PFN_vkGetInstanceProcAddr find;
};

/* Function pointers come as void * from dlsym; ISO C has no conversion between the two. */
static PFN_vkGetInstanceProcAddr find_entry(void *library)
{
    PFN_vkGetInstanceProcAddr find;
    void *symbol = dlsym(library, "vkGetInstanceProcAddr");

    _Static_assert(sizeof find == sizeof symbol, "pointers are of one size");
    __builtin_memcpy(&find, &symbol, sizeof find);
    return find;
}

static const char *const names[] = {"libvulkan.so.1", "libvulkan.so", "libvulkan.1.dylib"};

rlx_status vk_loader_open(const rlx_allocator *mem, struct vk_functions *vk, struct vk_loader **out,
                          struct diag *d)
{
    struct vk_loader *l = mem_alloc(mem, sizeof *l);

    if (!l)
        return diag_no_memory(d, sizeof *l);
    l->mem = mem;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !l->library; i++)
        l->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    l->find = l->library ? find_entry(l->library) : NULL;
    if (!l->find) {
        vk_loader_close(l);
        return diag_fail(
            d, RLX_ERROR_NO_DEVICE,
            "no Vulkan loader (%s): on Debian install libvulkan1 and a driver, such as "
            "those of mesa-vulkan-drivers",
            names[0]);
    }
#define VK_GLOBAL(name) vk->name = (PFN_vk##name)l->find(NULL, "vk" #name);
#define VK_INSTANCE(name)
#define VK_OPTIONAL(name)
#define VK_DEVICE(name)
#include "backend/vulkan/functions.def"
    *out = l;
    return RLX_OK;
}

void vk_loader_close(struct vk_loader *l)
{
    if (!l)
        return;
    if (l->library)
        dlclose(l->library);
    mem_free(l->mem, l, sizeof *l);
}

bool vk_load_instance(struct vk_loader *l, struct vk_functions *vk, VkInstance instance)
{
    bool all = true;

#define VK_GLOBAL(name)
#define VK_INSTANCE(name) all &= (vk->name = (PFN_vk##name)l->find(instance, "vk" #name)) != NULL;
#define VK_OPTIONAL(name) vk->name = (PFN_vk##name)l->find(instance, "vk" #name);
#define VK_DEVICE(name)
#include "backend/vulkan/functions.def"
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
#include "backend/vulkan/functions.def"
    return all;
}
