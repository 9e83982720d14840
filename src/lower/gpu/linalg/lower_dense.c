/* lower_dense.c: how large a matrix is, which its factors are scaled by. */
#include "lower/gpu/linalg/lower_dense.h"

enum { MEASURED = 4096 }; /* as in the kernel */

struct gpu_arg dense_measure(struct gpu_call *c)
{
    struct gpu_arg top = gpu_temp(c, 4);
    uint64_t count = gpu_count(&c->in[0]);

    gpu_kernel(c, "dense", "clear");
    gpu_bind(c, top);
    gpu_groups(c, 1);
    gpu_kernel(c, "dense", "measure");
    gpu_type(c, "T", c->in[0].dtype);
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, top);
    gpu_u32(c, "count", count);
    gpu_groups(c, gpu_ceil(count, MEASURED));
    return top;
}
