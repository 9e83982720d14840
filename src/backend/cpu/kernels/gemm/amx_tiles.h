/* amx_tiles.h: the instructions of AMX on tile registers. They are written out: compilers differ in
 * which of their intrinsics read and write memory behind the optimiser's back. */
#ifndef BACKEND_AMX_TILES_H
#define BACKEND_AMX_TILES_H

#define USES_AMX __attribute__((target("amx-tile,amx-bf16,amx-int8")))

/* by: from one row in memory to the next, in bytes. */
#define TILE_LOAD(t, from, by) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"(from), "r"((int64_t)(by)) : "memory")
#define TILE_STORE(t, to, by) \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(to), "r"((int64_t)(by)) : "memory")
#define TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t ::)
/* sums += a * b */
#define TILE_BF16(sum, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)
#define TILE_U8_I8(sum, a, b) __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)
#define TILE_I8(sum, a, b) __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)

#endif
