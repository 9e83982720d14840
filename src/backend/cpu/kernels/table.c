/* table.c: this ISA level's kernels, by family. */
#include "backend/cpu/kernel.h"

#define KERNEL(family) extern const struct cpu_kernel CPU_NAME(cpu_##family);
#include "backend/cpu/kernels/kernels.def"
#undef KERNEL

extern const struct cpu_kernels CPU_NAME(cpu_kernels);

#define CPU_TEXT_(x) #x
#define CPU_TEXT(x) CPU_TEXT_(x)
const struct cpu_kernels CPU_NAME(cpu_kernels) = {
    .isa = CPU_TEXT(CPU_ISA),
    .family =
        {
#define KERNEL(name) [FAMILY_##name] = &CPU_NAME(cpu_##name),
#include "backend/cpu/kernels/kernels.def"
#undef KERNEL
        },
};
