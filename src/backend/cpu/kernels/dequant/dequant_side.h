/* dequant_side.h: dequant_matmul with scales beside the weight (ops-special.md 1.2, 1.6). */
#ifndef BACKEND_DEQUANT_SIDE_H
#define BACKEND_DEQUANT_SIDE_H

#include "backend/cpu/cpu_kernel.h"

#define dequant_side_scratch CPU_NAME(dequant_side_scratch)
#define dequant_side_run CPU_NAME(dequant_side_run)

uint64_t dequant_side_scratch(const struct cpu_call *c);
void dequant_side_run(const struct cpu_call *c);

#endif
