/* lower_cholesky.c: the lower triangular factor of a positive definite matrix (ops-core.md 10.4).
 */
#include "lower/gpu/linalg/lower_dense.h"

static void block_step(struct gpu_call *c, const char *kernel, struct gpu_arg w)
{
    gpu_kernel(c, "cholesky", kernel);
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, w);
}

static void factor(struct gpu_call *c, struct gpu_arg w, uint64_t n)
{
    for (uint64_t first = 0; first < n; first += DENSE_BLOCK) {
        uint64_t last = n - first < DENSE_BLOCK ? n : first + DENSE_BLOCK;
        uint64_t strips = gpu_ceil(n - last, DENSE_BLOCK);
        block_step(c, "factor", w);
        gpu_u32(c, "n", n);
        gpu_u32(c, "first", first);
        gpu_u32(c, "last", last);
        gpu_groups(c, 1);
        if (last == n)
            break;
        block_step(c, "below", w);
        gpu_u32(c, "n", n);
        gpu_u32(c, "last", last);
        gpu_u32(c, "strips", strips);
        gpu_groups(c, strips);
        block_step(c, "trail", w);
        gpu_u32(c, "n", n);
        gpu_u32(c, "last", last);
        gpu_u32(c, "across", strips);
        gpu_groups(c, strips * strips);
    }
}

void gpu_lower_cholesky(struct gpu_call *c)
{
    uint64_t n = (uint64_t)c->out->dim[0], count = n * n;
    struct gpu_arg w;

    if (count == 0)
        return;
    w = gpu_temp(c, count * dense_bytes(c));
    gpu_kernel(c, "cholesky", "widen");
    gpu_type(c, "T", c->in[0].dtype);
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, w);
    gpu_u32(c, "count", count);
    gpu_invocations(c, count, GPU_GROUP);
    factor(c, w, n);
    gpu_kernel(c, "cholesky", "lower");
    gpu_type(c, "R", dense_real(c));
    gpu_type(c, "T", c->out->dtype);
    gpu_bind(c, w);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "n", n);
    gpu_u32(c, "count", count);
    gpu_invocations(c, count, GPU_GROUP);
}
