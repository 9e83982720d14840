/* gpu_of.c: what gpu/world.h needs to know of this driver's device. */
#include "../gpu/world.h"
#include "backend/webgpu/webgpu.h"

struct gpu_device *webgpu_gpu_of(struct backend *b)
{
    return wg_device_of(b)->gpu;
}
