/* lower_welch_peaks.c: the powers of all bins, then the strongest of them. */
#include "lower/gpu.h"

/* Comparing every bin with every other takes time that grows with their square, and finding one
 * peak after the other keeps few invocations busy. */
static bool is_ranked(uint64_t bins, uint64_t k)
{
    return bins <= 8192 || k * 64 >= bins;
}

void gpu_lower_welch_peaks(struct gpu_call *c)
{
    const struct attr_welch_peaks *a = &c->attr->welch_peaks;
    uint64_t n_fft = (uint64_t)c->in[0].dim[1] / 2, bins = n_fft / 2 + 1, k = (uint64_t)a->k;
    uint64_t signals = gpu_count(c->out) / (2 * k), blocks = gpu_ceil(bins, GPU_GROUP);
    struct gpu_arg key;

    if (signals == 0)
        return;
    key = gpu_temp(c, signals * bins * sizeof(uint32_t));
    gpu_kernel(c, "welch_peaks", "powers");
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, key);
    gpu_u32(c, "n_fft", n_fft);
    gpu_u32(c, "bins", bins);
    gpu_u32(c, "segments", (uint64_t)a->n_segments);
    gpu_u32(c, "count", signals * bins);
    gpu_f32(c, "share", 1 / (double)a->n_segments);
    gpu_invocations(c, signals * bins, GPU_GROUP);

    gpu_kernel(c, "welch_peaks", is_ranked(bins, k) ? "rank" : "choose");
    gpu_bind(c, key);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "bins", bins);
    gpu_u32(c, "k", k);
    if (is_ranked(bins, k))
        gpu_u32(c, "blocks", blocks);
    gpu_u32(c, "tasks", is_ranked(bins, k) ? signals * blocks : signals);
    gpu_groups(c, is_ranked(bins, k) ? signals * blocks : signals);
}
