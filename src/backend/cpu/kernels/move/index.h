/* index.h: index operands, a tile at a time (ops-core.md 1.9). */
#ifndef BACKEND_INDEX_H
#define BACKEND_INDEX_H

#include "backend/cpu/kernels/move/move.h"

#define index_load CPU_NAME(index_load)
#define index_check CPU_NAME(index_check)
#define index_store CPU_NAME(index_store)

/* Elements k .. k+n-1 as cpu_index gives them; n >= 1. */
void index_load(const struct cpu_tensor *t, int64_t k, int64_t n, int64_t *dst);

/* In checked mode, report what is out of range: element k must be below limit[k % period]. */
void index_check(const struct cpu_call *c, const struct cpu_tensor *t, const int64_t *limit,
                 int64_t period);

/* n indices into an output whose dtype is i32, i64 or f32, `stride` elements apart. */
void index_store(const struct cpu_tensor *out, int64_t at, int64_t stride, const int64_t *src,
                 int64_t n);

#endif
