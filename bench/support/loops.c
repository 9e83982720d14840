/* loops.c: see loops.h. On x86-64 with vectors of 512 or 256 bits and AMX; elsewhere reading only.
 */
#include "loops.h"

#include <stdint.h>

/* What a loop computed, so that it is not optimised away. */
static void keep(const void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

void loop_read(const void *memory, size_t bytes)
{
    typedef uint64_t wide __attribute__((vector_size(16))); /* what every processor has */
    const wide *p = memory;
    wide sum[8] = {{0}};

    for (size_t at = 0; at < bytes / sizeof *p; at += 8)
#pragma GCC unroll 8
        for (size_t i = 0; i < 8; i++)
            sum[i] ^= p[at + i];
    keep(sum);
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- multiply-add ---- */

enum { CHAINS = 20, FMA_STEPS = 200000 }; /* chains enough to hide 4 cycles on 2 ports twice */

__attribute__((target("avx512f"))) static void fma_512(void)
{
    __m512 sum[CHAINS], a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(1);

    for (int i = 0; i < CHAINS; i++)
        sum[i] = _mm512_set1_ps((float)i);
    for (int step = 0; step < FMA_STEPS; step++)
#pragma GCC unroll 20
        for (int i = 0; i < CHAINS; i++)
            sum[i] = _mm512_fmadd_ps(sum[i], a, b);
    keep(sum);
}

__attribute__((target("avx2,fma"))) static void fma_256(void)
{
    enum { CHAINS_256 = CHAINS / 2 };
    __m256 sum[CHAINS_256], a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(1);

    for (int i = 0; i < CHAINS_256; i++)
        sum[i] = _mm256_set1_ps((float)i);
    for (int step = 0; step < FMA_STEPS; step++)
#pragma GCC unroll 10
        for (int i = 0; i < CHAINS_256; i++)
            sum[i] = _mm256_fmadd_ps(sum[i], a, b);
    keep(sum);
}

static bool has_512(void)
{
    return __builtin_cpu_supports("avx512f");
}

const char *loop_fma_missing(void)
{
    if (has_512() || (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))
        return NULL;
    return "the processor has no fused multiply-add";
}

double loop_fma_f32_flops(void)
{
    return 2.0 * FMA_STEPS * (has_512() ? CHAINS * 16 : CHAINS / 2 * 8);
}

void loop_fma_f32(void)
{
    if (has_512())
        fma_512();
    else
        fma_256();
}

const char *loop_vnni_missing(void)
{
    if (has_512() && __builtin_cpu_supports("avx512vnni"))
        return NULL;
    return "the processor has no AVX-512 VNNI";
}

double loop_vnni_i8_ops(void)
{
    return 2.0 * FMA_STEPS * CHAINS * 64;
}

__attribute__((target("avx512f,avx512vnni"))) void loop_vnni_i8(void)
{
    __m512i sum[CHAINS], a = _mm512_set1_epi8(1), b = _mm512_set1_epi8(2);

    for (int i = 0; i < CHAINS; i++)
        sum[i] = _mm512_set1_epi32(i);
    for (int step = 0; step < FMA_STEPS; step++)
#pragma GCC unroll 20
        for (int i = 0; i < CHAINS; i++)
            sum[i] = _mm512_dpbusd_epi32(sum[i], a, b);
    keep(sum);
}

/* ---- copies ---- */

const char *loop_stream_missing(void)
{
    return NULL;
}

void loop_copy_stream(void *to, const void *from, size_t bytes)
{
    __m128i *y = to;
    const __m128i *x = from;

    for (size_t i = 0; i < bytes / sizeof *y; i += 4)
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++)
            _mm_stream_si128(y + i + k, _mm_load_si128(x + i + k));
    _mm_sfence();
}

/* ---- AMX ---- */

/* In assembly throughout: gcc 12 takes the configuration for 8 bytes and may drop the rest. */

#define TILE_BYTES 1024 /* 16 rows of 64 bytes */
enum { AMX_STEPS = 8, AMX_PASSES = 4000 };

struct tile_config {
    uint8_t palette, start_row, unused[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

const char *loop_amx_missing(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    unsigned a, b, c, d;

    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & 1u << 22) || !(d & 1u << 24) ||
        !(d & 1u << 25))
        return "the processor has no AMX with bf16 and int8";
    if (syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) != 0)
        return "the system does not grant AMX";
    return NULL;
}

double loop_amx_bf16_flops(void)
{
    return (double)AMX_PASSES * AMX_STEPS * 4 * (2.0 * 16 * 16 * 32);
}

double loop_amx_i8_ops(void)
{
    return 2 * loop_amx_bf16_flops();
}

#define TILE_DOT(sum, a, b) "tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum "\n\t"
#define TILE_I8(sum, a, b) "tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #sum "\n\t"
#define TILE_LOAD(tile, pointer) "tileloadd (%" #pointer ",%1,1), %%tmm" #tile "\n\t"
#define TILE_ZERO(tile) "tilezero %%tmm" #tile "\n\t"
#define TILE_DOTS TILE_DOT(0, 4, 6) TILE_DOT(1, 4, 7) TILE_DOT(2, 5, 6) TILE_DOT(3, 5, 7)
#define TILE_I8S TILE_I8(0, 4, 6) TILE_I8(1, 4, 7) TILE_I8(2, 5, 6) TILE_I8(3, 5, 7)
#define TILE_LOADS TILE_LOAD(4, 0) TILE_LOAD(6, 2) TILE_LOAD(7, 3) TILE_LOAD(5, 4)

static void tiles_begin(void)
{
    struct tile_config c = {.palette = 1};

    for (int i = 0; i < 8; i++)
        c.row_bytes[i] = 64, c.rows[i] = 16;
    __asm__ volatile("ldtilecfg %0\n\t" TILE_ZERO(0) TILE_ZERO(1) TILE_ZERO(2) TILE_ZERO(3)
                         TILE_ZERO(4) TILE_ZERO(5) TILE_ZERO(6) TILE_ZERO(7)
                     :
                     : "m"(c)
                     : "memory");
}

void loop_amx_bf16(const void *panel, bool loads)
{
    const unsigned char *p = panel;
    const size_t row = 64;

    tiles_begin();
    for (int pass = 0; pass < AMX_PASSES; pass++) {
        for (int step = 0; step < AMX_STEPS; step++) {
            const unsigned char *at = p + (size_t)step * 4 * TILE_BYTES;
            if (loads)
                __asm__ volatile(TILE_LOADS TILE_DOTS
                                 :
                                 : "r"(at), "r"(row), "r"(at + TILE_BYTES),
                                   "r"(at + 2 * TILE_BYTES), "r"(at + 3 * TILE_BYTES)
                                 : "memory");
            else
                __asm__ volatile(TILE_DOTS : : : "memory");
        }
    }
    __asm__ volatile("tilerelease" : : : "memory");
}

void loop_amx_i8(const void *panel)
{
    const unsigned char *p = panel;
    const size_t row = 64;

    tiles_begin();
    for (int pass = 0; pass < AMX_PASSES; pass++)
        for (int step = 0; step < AMX_STEPS; step++) {
            const unsigned char *at = p + (size_t)step * 4 * TILE_BYTES;
            __asm__ volatile(TILE_LOADS TILE_I8S
                             :
                             : "r"(at), "r"(row), "r"(at + TILE_BYTES), "r"(at + 2 * TILE_BYTES),
                               "r"(at + 3 * TILE_BYTES)
                             : "memory");
        }
    __asm__ volatile("tilerelease" : : : "memory");
}

#else

static const char *const not_here = "there is no such loop for this processor";

const char *loop_fma_missing(void)
{
    return not_here;
}

double loop_fma_f32_flops(void)
{
    return 1;
}

void loop_fma_f32(void)
{
}

const char *loop_stream_missing(void)
{
    return not_here;
}

void loop_copy_stream(void *to, const void *from, size_t bytes)
{
    (void)to, (void)from, (void)bytes;
}

const char *loop_amx_missing(void)
{
    return not_here;
}

double loop_amx_bf16_flops(void)
{
    return 1;
}

void loop_amx_bf16(const void *panel, bool loads)
{
    (void)panel, (void)loads;
}

double loop_amx_i8_ops(void)
{
    return 1;
}

void loop_amx_i8(const void *panel)
{
    (void)panel;
}

const char *loop_vnni_missing(void)
{
    return not_here;
}

double loop_vnni_i8_ops(void)
{
    return 1;
}

void loop_vnni_i8(void)
{
}
#endif
