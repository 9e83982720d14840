/* vk_submit.c: the queue. The value of a timeline semaphore counts what is done, so a ticket is a
 * number to wait for. */
#include "backend/vulkan/vulkan.h"

#define AT_ONCE 2

rlx_status vk_submit(struct gpu_device *g, void *const *commands, uint32_t count, uint64_t ticket,
                     struct diag *d)
{
    struct vk_device *dev = vk_of(g);
    VkTimelineSemaphoreSubmitInfo values[AT_ONCE];
    VkSubmitInfo info[AT_ONCE];
    VkCommandBuffer given[AT_ONCE];
    uint64_t value[AT_ONCE];

    for (uint32_t i = 0; i < count; i++) {
        value[i] = ticket + i;
        given[i] = commands[i];
        values[i] = (VkTimelineSemaphoreSubmitInfo){
            .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
            .signalSemaphoreValueCount = 1,
            .pSignalSemaphoreValues = &value[i]};
        info[i] = (VkSubmitInfo){.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .pNext = &values[i],
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &given[i],
                                 .signalSemaphoreCount = 1,
                                 .pSignalSemaphores = &dev->timeline};
    }
    VK_TRY(dev, dev->vk.QueueSubmit(dev->queue, count, info, VK_NULL_HANDLE), d);
    return RLX_OK;
}

uint64_t vk_done(struct gpu_device *g)
{
    struct vk_device *dev = vk_of(g);
    uint64_t value = 0;

    if (dev->vk.GetSemaphoreCounterValue(dev->device, dev->timeline, &value) != VK_SUCCESS)
        return 0;
    return value;
}

rlx_status vk_wait(struct gpu_device *g, uint64_t ticket, uint64_t ns, struct diag *d)
{
    struct vk_device *dev = vk_of(g);
    const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      .semaphoreCount = 1,
                                      .pSemaphores = &dev->timeline,
                                      .pValues = &ticket};

    VK_TRY(dev, dev->vk.WaitSemaphores(dev->device, &info, ns), d);
    return RLX_OK;
}
