/* dequant_q8_amx.h: the tile instructions of dequant_q8_amx.c and dequant_q8_wide.c. They are
 * written out: compilers differ in which of their intrinsics read and write memory behind the
 * optimiser's back. */
#ifndef CPU_DEQUANT_Q8_AMX_H
#define CPU_DEQUANT_Q8_AMX_H

#define USES_AMX __attribute__((target("amx-tile,amx-int8,amx-bf16")))
#define UNROLL _Pragma("GCC unroll 16")

/* stride: from one row in memory to the next. */
#define TILE_LOAD_BY(t, from, stride)                                                    \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"(from), "r"((int64_t)(stride)) \
                     : "memor"                                                           \
                       "y")
#define TILE_LOAD(t, from) TILE_LOAD_BY(t, from, 64)
#define TILE_STORE(t, to) \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(to), "r"((int64_t)64) : "memory")
#define TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t ::)
#define TILE_I8(sum, a, b) __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)
#define TILE_BF16(sum, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)

#endif
