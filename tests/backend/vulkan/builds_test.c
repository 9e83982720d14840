/* builds_test.c: no run waits for a compiler. */
#include "../../lower/gpu/builds.h"
#include "backend/vulkan/vulkan.h"

static struct gpu_device *gpu_of(struct backend *b)
{
    return vk_device_of(b)->gpu;
}

TEST_SLOW(vulkan_builds, no_run_waits_for_a_compiler)
{
    builds_check(t, "vulkan", gpu_of);
}
