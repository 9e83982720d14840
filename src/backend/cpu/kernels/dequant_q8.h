/* dequant_q8.h: products with packed rows where x goes through eight bits first: act=q8 of
 * dequant_matmul and dequant_grouped_matmul (ops-special 1.6), by c->op. */
#ifndef CPU_DEQUANT_Q8_H
#define CPU_DEQUANT_Q8_H

#include "backend/cpu/kernel.h"

#define dequant_q8_scratch CPU_NAME(dequant_q8_scratch)
#define dequant_q8_run CPU_NAME(dequant_q8_run)

uint64_t dequant_q8_scratch(const struct cpu_call *c);
void dequant_q8_run(const struct cpu_call *c);

#endif
