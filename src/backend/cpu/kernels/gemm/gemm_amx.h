/* gemm_amx.h: products in the tile registers of AMX, of bf16 and of 8-bit integers.
 *
 * Only x86 has them, and only its AVX-512 level is compiled with them. Which CPU has them is known
 * at run time: the level "amx" is that level with these loops for some kernels. */
#ifndef BACKEND_GEMM_AMX_H
#define BACKEND_GEMM_AMX_H

#include "backend/cpu/kernels/gemm/gemm.h"

#if defined(__x86_64__) && defined(__AVX512VNNI__) && defined(__linux__)
#define GEMM_AMX 1

enum { AMX_LINES = 32, AMX_TILE = 16 }; /* lines of a panel; rows of a tile of 64 bytes each */

#define amx_enter CPU_NAME(amx_enter)
#define amx_leave CPU_NAME(amx_leave)
#define amx_micro_bf16 CPU_NAME(amx_micro_bf16)
#define amx_micro_u8_i8 CPU_NAME(amx_micro_u8_i8)
#define amx_pack_bf16_a CPU_NAME(amx_pack_bf16_a)
#define amx_pack_bf16_b CPU_NAME(amx_pack_bf16_b)

/* A thread's tiles, before and after it uses them. */
void amx_enter(void);
void amx_leave(void);

/* See gemm_micro_fn. A lane is 64 bytes of k. Panels:
 *
 *     a   lane 0: line 0, 1, .. 31, each 64 bytes of k; lane 1: ..
 *     b   k as 4-byte groups: group 0 of columns 0, 1, .. 31; group 1 of ..; 16 groups a lane */
void amx_micro_bf16(int64_t lanes, const void *a, int64_t width, const void *b, void *c, int64_t ld,
                    bool add, int64_t m, int64_t n);
void amx_micro_u8_i8(int64_t lanes, const void *a, int64_t width, const void *b, void *c,
                     int64_t ld, bool add, int64_t m, int64_t n);

/* The part p of a matrix of bf16; p->item is not looked at. */
void amx_pack_bf16_a(const struct gemm_view *v, const struct gemm_part *p);
void amx_pack_bf16_b(const struct gemm_view *v, const struct gemm_part *p);
#endif

#endif
