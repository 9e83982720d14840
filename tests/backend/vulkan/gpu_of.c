/* gpu_of.c: what gpu/world.h needs to know of this driver's device. */
#include "../gpu/world.h"
#include "backend/vulkan/vulkan.h"

struct gpu_device *vulkan_gpu_of(struct backend *b)
{
    return vk_device_of(b)->gpu;
}
