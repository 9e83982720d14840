/* eigh.c: eigenvalues and eigenvectors of symmetric matrices: eigh, eigh_batch (ops-core 21). */
#include "lower/gpu/dense.h"

void gpu_lower_eigh(struct gpu_call *c)
{
    const struct ir_type *a = &c->in[0];
    uint64_t n = (uint64_t)a->dim[a->rank - 1], even = n + n % 2, real = dense_bytes(c);
    uint64_t items = n ? gpu_count(a) / (n * n) : 0;

    if (items == 0)
        return;
    gpu_kernel(c, "eigh", "eigh");
    gpu_type(c, "T", a->dtype);
    gpu_type(c, "R", dense_real(c));
    gpu_const(c, "WG", n <= 8 ? 32 : n <= 24 ? 64 : GPU_GROUP);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_temp(c, items * even * even * real));
    gpu_bind(c, gpu_temp(c, items * even * even * real));
    gpu_bind(c, gpu_temp(c, items * even * real));
    gpu_bind(c, gpu_temp(c, items * n * 4));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, n);
    gpu_u32(c, even);
    gpu_u32(c, items);
    gpu_groups(c, items);
}
