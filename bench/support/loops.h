/* loops.h: the inner loops of the ceilings, for the processor at hand. A missing function answers
 * why its loop cannot run here, NULL if it can. */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H

#include <stdbool.h>
#include <stddef.h>

#define LOOP_PANEL_BYTES ((size_t)32 << 10)

/* Multiply-adds on registers alone. */
const char *loop_fma_missing(void);
double loop_fma_f32_flops(void); /* of a call */
void loop_fma_f32(void);

/* Four bytes and four bytes per lane, on registers alone. */
const char *loop_vnni_missing(void);
double loop_vnni_i8_ops(void);
void loop_vnni_i8(void);

/* Four tiles of sums; the operands come from the panel, or, loads false, stay where they are. */
const char *loop_amx_missing(void); /* also asks the system for the tiles */
double loop_amx_bf16_flops(void);
void loop_amx_bf16(const void *panel, bool loads);
double loop_amx_i8_ops(void);
void loop_amx_i8(const void *panel);

void loop_read(const void *memory, size_t bytes); /* memory: aligned; bytes: a multiple of 128 */

/* A copy whose stores go past the caches. All of it aligned, bytes a multiple of 64. */
const char *loop_stream_missing(void);
void loop_copy_stream(void *to, const void *from, size_t bytes);

#endif
