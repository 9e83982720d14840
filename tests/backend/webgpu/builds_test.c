/* builds_test.c: no run waits for a compiler. */
#include "../../lower/gpu/builds.h"
#include "backend/webgpu/webgpu.h"

static struct gpu_device *gpu_of(struct backend *b)
{
    return wg_device_of(b)->gpu;
}

TEST_SLOW(webgpu_builds, no_run_waits_for_a_compiler)
{
    builds_check(t, "webgpu", gpu_of);
}
