/* levels.h: for tests of kernels by themselves: every instruction set of this CPU, and a kernel run
 * with what a program would give it. */
#ifndef TESTS_BACKEND_CPU_LEVELS_H
#define TESTS_BACKEND_CPU_LEVELS_H

#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "test.h"

/* The last one is AVX-512 with other kernels for products. */
enum { LEVELS = 4, LEVELS_AND_AMX };

/* "cpu" is "cpu:baseline": this CPU, or this build (RLX_BASELINE_ONLY), has no other level. */
static inline bool cpu_is_baseline(void)
{
    return cpu_level((rlx_str){NULL, 0}) == cpu_level(rlx_cstr("baseline"));
}

/* NULL: this CPU, or this build, has it not. */
static inline const struct cpu_kernels *level(int i)
{
    static const char *const name[] = {"baseline", "avx2", "avx512", "neon", "amx"};
    return cpu_level(rlx_cstr(name[i]));
}

/* No index may be reported. */
static inline void run_once(struct test *t, const struct cpu_kernel *k, struct cpu_call c,
                            struct pool *pool)
{
    struct cpu_fault fault = {INT64_MAX, 0};

    c.pool = pool;
    c.fault = &fault;
    size_t bytes = k->scratch ? (size_t)k->scratch(&c) : 0;
    c.scratch = mem_alloc_aligned(mem_default(), bytes, 64);
    if (expect(t, bytes == 0 || c.scratch)) {
        if (bytes > 0)
            memset(c.scratch, 0xff, bytes); /* what is not written first is NaN */
        k->run(&c);
    }
    mem_free_aligned(mem_default(), c.scratch, bytes, 64);
    expect_eq(t, fault.position, INT64_MAX);
}

/* One thread and three give the same bits. */
static inline void run_alike(struct test *t, const struct cpu_kernel *k, struct cpu_call c)
{
    size_t bytes = (size_t)c.out->count * rlx_dtype_size(c.out->dtype);
    void *first = malloc(bytes);
    struct pool *pool;
    struct diag d;

    diag_init(&d, NULL);
    require(t, first != NULL);
    require_ok(t, pool_create(&pool, 3, mem_default(), &d));
    run_once(t, k, c, NULL);
    memcpy(first, c.out->data, bytes);
    memset(c.out->data, 0xa5, bytes);
    run_once(t, k, c, pool);
    expect_bytes(t, c.out->data, first, bytes);
    pool_destroy(pool);
    free(first);
}

#endif
