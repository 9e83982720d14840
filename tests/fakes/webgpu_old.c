/* webgpu_old.c: a library of WebGPU, of a version that rlx does not know. */
#include <stdint.h>

uint32_t wgpuGetVersion(void);

uint32_t wgpuGetVersion(void)
{
    return 0x18000301;
}
