/* lower_coop.h: products with cooperative matrices (kernels/coop_matmul). */
#ifndef LOWER_COOP_H
#define LOWER_COOP_H

#include "lower/gpu/gemm/lower_matmul.h"

/* Shapes of tiles, as numbers. */
enum gpu_coop_tile { GPU_COOP_64, GPU_COOP_128, GPU_COOP_WIDE, GPU_COOP_TALL, GPU_COOP_TILES };

/* f16 or bf16, in lines of whole vectors of eight, on a device that has such matrices. */
bool gpu_coop_fits(const struct gpu_call *c, const struct gpu_matmul *p);
/* In the units of gpu_tiling. */
double gpu_coop_cost(const struct gpu_matmul *p, uint32_t tile);
void gpu_coop_launch(struct gpu_call *c, const struct gpu_matmul *p, uint32_t tile);

#endif
