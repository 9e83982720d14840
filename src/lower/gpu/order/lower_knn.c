/* lower_knn.c: nearest neighbours from a matrix of distances, and the gradient of those. */
#include "lower/gpu/move/lower_move.h"
#include "lower/gpu/order/lower_sort.h"

static struct gpu_order nearest(struct gpu_call *c, uint64_t k)
{
    uint64_t n = (uint64_t)c->in[0].dim[0];
    struct gpu_sort_rows rows = {gpu_in(c, 0), RLX_DTYPE_f32, n, n, 1, false, true};

    return gpu_order_rows(c, &rows, k);
}

static void add_sizes(struct gpu_call *c, uint64_t k, uint64_t m)
{
    uint64_t n = (uint64_t)c->in[0].dim[0];

    gpu_u32(c, "n", n);
    gpu_u32(c, "k", k);
    gpu_u32(c, "m", m);
    gpu_invocations(c, n * k, GPU_GROUP);
}

void gpu_lower_knn(struct gpu_call *c)
{
    uint64_t k = (uint64_t)c->attr->knn.k;
    struct gpu_order order = nearest(c, k);

    gpu_kernel(c, "knn", "neighbours");
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, order.ids);
    gpu_bind(c, gpu_out(c));
    add_sizes(c, k, order.m);
}

void gpu_lower_knn_backward(struct gpu_call *c)
{
    uint64_t k = (uint64_t)c->attr->knn_backward.k;
    struct gpu_order order = nearest(c, k);

    gpu_zero(c, gpu_out(c), RLX_DTYPE_f32);
    gpu_kernel(c, "knn", "give_back");
    gpu_bind(c, order.ids);
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_out(c));
    add_sizes(c, k, order.m);
}
