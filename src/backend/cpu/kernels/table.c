/* table.c: this ISA level's kernels, by family; and the level "amx", which is AVX-512 with other
 * kernels for some. */
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/kernels/gemm/gemm_amx.h"

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

#ifdef GEMM_AMX
#define KERNEL(family)
#define KERNEL_AMX(family) extern const struct cpu_kernel cpu_##family##_amx;
#include "backend/cpu/kernels/kernels.def"
#undef KERNEL

extern const struct cpu_kernels cpu_kernels_amx;
const struct cpu_kernels cpu_kernels_amx = {
    .isa = "amx",
    .family =
        {
#define KERNEL(name) [FAMILY_##name] = &CPU_NAME(cpu_##name),
#define KERNEL_AMX(name) [FAMILY_##name] = &cpu_##name##_amx,
#include "backend/cpu/kernels/kernels.def"
#undef KERNEL
        },
};
#endif
