/* ceilings.h: what this machine can do at most, measured: the limits that kernels are held against.
 *
 * Each is a loop that does one thing only, on every thread at once. It is a side like any other, so
 * it is measured in turn with what it limits. */
#ifndef BENCH_CEILINGS_H
#define BENCH_CEILINGS_H

#include "measure.h"

/* X(name, unit, what it is) */
#define CEILINGS(X)                                                               \
    X(FMA_F32, "GFLOP/s", "f32 multiply-add, operands in registers")              \
    X(AMX_BF16, "GFLOP/s", "bf16 AMX, 2x2 tiles, operands from a panel of 32 KB") \
    X(AMX_BF16_REGISTERS, "GFLOP/s", "bf16 AMX, operands in registers")           \
    X(AMX_I8, "GOP/s", "int8 AMX, 2x2 tiles, operands from a panel of 32 KB")     \
    X(VNNI_I8, "GOP/s", "int8 AVX-512 VNNI, operands in registers")               \
    X(COPY, "GB/s", "memcpy of 64 MB, both ways counted")                         \
    X(COPY_HUGE, "GB/s", "memcpy of 64 MB, huge pages")                           \
    X(COPY_STREAM, "GB/s", "copy of 64 MB past the caches, huge pages")           \
    X(READ, "GB/s", "read of 64 MB per thread")                                   \
    X(READ_HUGE, "GB/s", "read of 64 MB per thread, huge pages")                  \
    X(READ_WEIGHTS, "GB/s", "read of 512 MB, huge pages")

enum ceiling_kind {
#define X(name, unit, what) CEILING_##name,
    CEILINGS(X)
#undef X
        CEILING_COUNT
};

struct ceiling {
    const char *unit, *what, *missing; /* missing: why it cannot be measured here; NULL: it can */
    int threads;
    double work; /* flops or bytes of a call */
    enum ceiling_kind kind;
    struct ceiling_worker *worker; /* one per thread */
};
void ceiling_open(struct ceiling *c, enum ceiling_kind kind, int threads);
void ceiling_call(void *ceiling);
void ceiling_close(struct ceiling *c);
/* As a side; the ceiling must outlive it. */
struct side ceiling_side(struct ceiling *c);

#endif
