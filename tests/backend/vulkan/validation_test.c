/* validation_test.c: what the validation layer says of our calls is an error of the call. */
#include "../gpu/world.h"
#include "backend/vulkan/vulkan.h"

TEST(vulkan_validation, mistakes_are_told)
{
    struct world w;
    VkFence fence;
    const VkFenceCreateInfo wrong = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};

    if (!world_open_on(t, &w, "vulkan", NULL, 0))
        return;
    struct vk_device *dev = vk_device_of(w.b);
    if (!dev->gpu.options.validation) {
        world_close(t, &w);
        skip(t, "there is no validation layer");
    }
    PFN_vkCreateFence make =
        (PFN_vkCreateFence)dev->vk.GetDeviceProcAddr(dev->device, "vkCreateFence");
    PFN_vkDestroyFence drop =
        (PFN_vkDestroyFence)dev->vk.GetDeviceProcAddr(dev->device, "vkDestroyFence");
    if (make(dev->device, &wrong, NULL, &fence) == VK_SUCCESS)
        drop(dev->device, fence, NULL);
    expect(t, w.errors > 0);
    expect_status(t, w.b->ops->wait(w.b, 0, &w.diag), RLX_ERROR_INTERNAL);
    expect_contains(t, w.diag.first.message, "validation");
    expect_ok(t, w.b->ops->wait(w.b, 0, &w.diag)); /* it is reported once */
    w.errors = 0;
    world_close(t, &w);
}
