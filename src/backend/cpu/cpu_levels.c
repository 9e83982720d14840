/* cpu_levels.c: which of the compiled ISA levels this CPU can run. */
#include <stdio.h>
#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#define HAVE_AMX 1
#endif

#include "backend/cpu/cpu.h"
#include "base/str.h"

extern const struct cpu_kernels cpu_kernels_baseline, cpu_kernels_avx2, cpu_kernels_avx512,
    cpu_kernels_amx, cpu_kernels_neon;

#if defined(RLX_HAVE_AVX2) || defined(RLX_HAVE_AVX512)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
}
#endif

#ifdef RLX_HAVE_AVX512
static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}
#endif

#if defined(RLX_HAVE_AVX512) && defined(HAVE_AMX)
/* Tiles, bf16 and 8-bit integers; and the system lets us: it saves the tiles of no process that has
 * not asked for them. Asking again does no harm. */
static bool has_amx(void)
{
    const unsigned bf16 = 1u << 22, tile = 1u << 24, int8 = 1u << 25, all = bf16 | tile | int8;
    const unsigned long ask = 0x1023, tile_data = 18; /* ARCH_REQ_XCOMP_PERM */
    unsigned a, b, c, d;

    return has_avx512() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & all) == all &&
           syscall(SYS_arch_prctl, ask, tile_data) == 0;
}
#endif

/* The i-th level this CPU runs, best first. */
static const struct cpu_kernels *level_at(int i)
{
#if defined(RLX_HAVE_AVX512) && defined(HAVE_AMX)
    if (has_amx() && i-- == 0)
        return &cpu_kernels_amx;
#endif
#ifdef RLX_HAVE_AVX512
    if (has_avx512() && i-- == 0)
        return &cpu_kernels_avx512;
#endif
#ifdef RLX_HAVE_AVX2
    if (has_avx2() && i-- == 0)
        return &cpu_kernels_avx2;
#endif
#ifdef RLX_HAVE_NEON
    if (i-- == 0)
        return &cpu_kernels_neon;
#endif
    return i == 0 ? &cpu_kernels_baseline : NULL;
}

const struct cpu_kernels *cpu_level(rlx_str name)
{
    const struct cpu_kernels *k;

    if (name.len == 0)
        return level_at(0);
    for (int i = 0; (k = level_at(i)) != NULL; i++)
        if (str_eq(name, rlx_cstr(k->isa)))
            return k;
    return NULL;
}

void cpu_level_names(char *out, size_t size)
{
    const struct cpu_kernels *k;
    size_t len = 0;

    for (int i = 0; (k = level_at(i)) != NULL && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%s", i ? " " : "", k->isa);
}
