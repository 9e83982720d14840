/* rate.c: see rate.h.
 *
 * The multiply-adds are twelve chains of vector registers, enough to fill the pipelines of any CPU
 * of today; nothing is read from memory. Each thread's time is its own CPU time, so that others on
 * a busy machine do not lower the figure, and the threads are taken to add up. The copy goes over
 * more than the caches hold. */
#include "base/rate.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#else
#include <math.h>
#endif

#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define CHAIN_COUNT 12
/* Within a function that has vec, SET, FMA and ADD: */
#define BEGIN(i) vec a##i = SET((float)(i));
#define STEP(i) a##i = FMA(a##i, x, y);
#define JOIN(i) sum = ADD(sum, a##i);
#define RUN_CHAINS(x_, y_, rounds)              \
    vec x = SET(x_), y = SET(y_), sum = SET(0); \
    CHAINS(BEGIN)                               \
    for (int64_t r = 0; r < (rounds); r++) {    \
        CHAINS(STEP)                            \
    }                                           \
    CHAINS(JOIN)

/* Each gives some number, so that the work cannot be left out, and its lanes. */
struct spin {
    float sum;
    int lanes;
};

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static struct spin spin_avx512(float m, float c, int64_t rounds)
{
    typedef __m512 vec;
#define SET(v) _mm512_set1_ps(v)
#define FMA(a, b, d) _mm512_fmadd_ps(a, b, d)
#define ADD(a, b) _mm512_add_ps(a, b)
    RUN_CHAINS(m, c, rounds)
#undef SET
#undef FMA
#undef ADD
    return (struct spin){_mm512_cvtss_f32(sum), 16};
}

__attribute__((target("avx2,fma"))) static struct spin spin_avx2(float m, float c, int64_t rounds)
{
    typedef __m256 vec;
#define SET(v) _mm256_set1_ps(v)
#define FMA(a, b, d) _mm256_fmadd_ps(a, b, d)
#define ADD(a, b) _mm256_add_ps(a, b)
    RUN_CHAINS(m, c, rounds)
#undef SET
#undef FMA
#undef ADD
    return (struct spin){_mm256_cvtss_f32(sum), 8};
}

static struct spin spin_plain(float m, float c, int64_t rounds)
{
    typedef __m128 vec;
#define SET(v) _mm_set1_ps(v)
#define FMA(a, b, d) _mm_add_ps(_mm_mul_ps(a, b), d)
#define ADD(a, b) _mm_add_ps(a, b)
    RUN_CHAINS(m, c, rounds)
#undef SET
#undef FMA
#undef ADD
    return (struct spin){_mm_cvtss_f32(sum), 4};
}

static struct spin spin(float m, float c, int64_t rounds)
{
    if (__builtin_cpu_supports("avx512f"))
        return spin_avx512(m, c, rounds);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return spin_avx2(m, c, rounds);
    return spin_plain(m, c, rounds);
}
#elif defined(__aarch64__)
static struct spin spin(float m, float c, int64_t rounds)
{
    typedef float32x4_t vec;
#define SET(v) vdupq_n_f32(v)
#define FMA(a, b, d) vfmaq_f32(d, a, b)
#define ADD(a, b) vaddq_f32(a, b)
    RUN_CHAINS(m, c, rounds)
#undef SET
#undef FMA
#undef ADD
    return (struct spin){vgetq_lane_f32(sum, 0), 4};
}
#else
static struct spin spin(float m, float c, int64_t rounds)
{
    typedef float vec;
#define SET(v) (v)
#define FMA(a, b, d) fmaf(a, b, d)
#define ADD(a, b) ((a) + (b))
    RUN_CHAINS(m, c, rounds)
#undef SET
#undef FMA
#undef ADD
    return (struct spin){sum, 1};
}
#endif

static double seconds_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double now(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

/* ---- all threads at once ---- */

#define SECONDS 0.15 /* for each of the two: the best of as many tries as fit */
#define TRIES 5      /* at least */
#define ROUNDS ((int64_t)1 << 19)
#define COPY_BYTES ((size_t)32 << 20) /* by all threads together */

struct job {
    volatile float sink;         /* whatever came out */
    volatile float factor, term; /* unknown to the compiler */
    int lanes;
    _Atomic int64_t least_ns; /* that one thread's multiply-adds took */
    uint8_t *to, *from;
    size_t part;
};

static void spin_block(void *ctx, int64_t block, int worker)
{
    struct job *j = ctx;
    double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    struct spin s = spin(j->factor, j->term, ROUNDS);
    int64_t took = (int64_t)((seconds_of(CLOCK_THREAD_CPUTIME_ID) - start) * 1e9);
    int64_t least = atomic_load(&j->least_ns);

    (void)worker;
    j->sink = s.sum;
    if (block == 0)
        j->lanes = s.lanes;
    while (took < least && !atomic_compare_exchange_weak(&j->least_ns, &least, took))
        ;
}

static void copy_block(void *ctx, int64_t block, int worker)
{
    struct job *j = ctx;
    size_t at = (size_t)block * j->part;

    (void)worker;
    memcpy(j->to + at, j->from + at, j->part);
}

static double best_time(struct pool *pool, pool_fn fn, struct job *j)
{
    double best = 1e30, begin = now();

    for (int i = 0; i < TRIES || now() - begin < SECONDS; i++) {
        double start = now(), took;
        pool_run(pool, pool_threads(pool), fn, j);
        took = now() - start;
        best = took < best ? took : best;
    }
    return best > 1e-9 ? best : 1e-9;
}

rlx_status rate_measure(struct pool *pool, const rlx_allocator *mem, struct rate *out,
                        struct diag *d)
{
    int threads = pool_threads(pool);
    struct job j = {.factor = 0.999f, .term = 0.001f, .part = COPY_BYTES / (size_t)threads};

    j.to = mem_alloc(mem, COPY_BYTES);
    j.from = mem_alloc(mem, COPY_BYTES);
    if (!j.to || !j.from) {
        mem_free(mem, j.to, COPY_BYTES);
        mem_free(mem, j.from, COPY_BYTES);
        return diag_no_memory(d, COPY_BYTES);
    }
    memset(j.to, 1, COPY_BYTES); /* pages are there before the clock runs */
    memset(j.from, 2, COPY_BYTES);
    atomic_init(&j.least_ns, INT64_MAX);
    best_time(pool, spin_block, &j);
    int64_t ns = atomic_load(&j.least_ns);
    out->flops =
        2.0 * CHAIN_COUNT * (double)j.lanes * (double)ROUNDS * threads * 1e9 / (double)(ns + 1);
    out->copy = 2.0 * (double)j.part * threads / best_time(pool, copy_block, &j);
    mem_free(mem, j.to, COPY_BYTES);
    mem_free(mem, j.from, COPY_BYTES);
    return RLX_OK;
}
