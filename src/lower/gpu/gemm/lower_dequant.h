/* lower_dequant.h: products with packed weights (kernels/dequant, kernels/dequant_side). */
#ifndef LOWER_DEQUANT_H
#define LOWER_DEQUANT_H

#include "ir/quant/quant_scheme.h"
#include "lower/gpu/gemm/lower_tiles.h"

/* dequant_matmul of a scheme whose scales lie beside the codes; the result is not empty. */
void gpu_lower_dequant_side(struct gpu_call *c);

#endif
