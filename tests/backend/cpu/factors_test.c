/* factors_test.c: the CPU kernels of svd, qr and eigh on matrices too large for the definition:
 * factors that multiply back, vectors at right angles, the same bits with any number of threads. */
#include "../../ops/device_run.h"

#include "backend/cpu/cpu_kernel.h"

#include <math.h>

/* A matrix %a, in text; the random ones are f32 numbers in [-1, 1). */
#define RANDOM(m, n) \
    "%x = rng_uniform shape=[" #m "," #n "] low=-1 high=1 seed=" #m #n " %a = cast %x to=f64 "
#define OF_RANK_3(m, n)                                                            \
    "%x = rng_uniform shape=[" #m ",3] low=-1 high=1 seed=3 %xx = cast %x to=f64 " \
    "%z = rng_uniform shape=[3," #n "] low=-1 high=1 seed=4 %zz = cast %z to=f64 " \
    "%a = matmul %xx, %zz "
#define SYMMETRIC(n) RANDOM(n, n) "%at = transpose %a perm=[1,0] %a2 = add %a, %at "
#define EYE(n)                                                                               \
    "%one = const f64[] {1} %ones = expand %one shape=[" #n "," #n "] %upper = trilu %ones " \
    "upper=true %eye = trilu %upper upper=false "
#define LARGEST(of)                                                          \
    "%gap" of " = sub %p" of ", %q" of " %size" of " = abs %gap" of " %m" of \
    " = reduce_max %size" of " axes=[0,1] "

/* |A - U S V^T|, |U^T U - I|, |V^T V - I|, t being the smaller of m and n */
#define SVD(t)                                                                                   \
    EYE(t)                                                                                       \
    "%u = svd %a part=u %s = svd %a part=s %v = svd %a part=vt %us = mul %u, %s "                \
    "%p0 = matmul %us, %v %q0 = add %a, %zero %p1 = matmul %u, %u transpose_a=true "             \
    "%q1 = add %eye, %zero %p2 = matmul %v, %v transpose_b=true %q2 = add %eye, %zero " LARGEST( \
        "0") LARGEST("1") LARGEST("2") "return %m0, %m1, %m2"
/* |A - Q R|, |Q^T Q - I|, and what R has below the diagonal */
#define QR(t)                                                                               \
    EYE(t)                                                                                  \
    "%u = qr %a part=q %r = qr %a part=r %p0 = matmul %u, %r %q0 = add %a, %zero "          \
    "%p1 = matmul %u, %u transpose_a=true %q1 = add %eye, %zero %p2 = trilu %r upper=true " \
    "%q2 = add %r, %zero " LARGEST("0") LARGEST("1") LARGEST("2") "return %m0, %m1, %m2"
/* |A V - V D|, |V^T V - I|, and by how much a value is larger than the next */
#define EIGH(n, nn)                                                                             \
    EYE(n)                                                                                      \
    "%e = eigh %a2 %d = narrow %e axis=0 start=0 len=" #n " %w = narrow %e axis=0 start=" #n    \
    " len=" #nn " %v = reshape %w shape=[" #n "," #n "] %p0 = matmul %a2, %v %q0 = mul %v, %d " \
    "%p1 = matmul %v, %v transpose_a=true %q1 = add %eye, %zero "                               \
    "%sorted = sort %d %p2 = reshape %sorted shape=[1," #n "] "                                 \
    "%q2 = reshape %d shape=[1," #n "] " LARGEST("0") LARGEST("1")                              \
        LARGEST("2") "return %m0, %m1, %m2"

struct factors {
    const char *what, *body;
    double tol;
};

static void all_small(struct test *t, const struct factors *list, size_t count)
{
    struct device_run r;

    if (!device_open(t, &r, "cpu"))
        return;
    for (size_t i = 0; i < count; i++)
        for (size_t out = 0; out < 3; out++) {
            char body[4096];
            double got = 1;
            test_note(t, "%s: output %zu", list[i].what, out);
            snprintf(body, sizeof body, "%%zero = const f64[] {0} %s", list[i].body);
            if (device_numbers(t, &r, body, out, &got, 1) == 1)
                expect_near(t, got, 0, list[i].tol);
        }
    device_close(&r);
}
#define ALL_SMALL(list) all_small(t, list, sizeof list / sizeof list[0])

TEST(factors, multiply_back)
{
    static const struct factors list[] = {
        {"svd, square", RANDOM(129, 129) SVD(129), 1e-12},
        {"svd, tall", RANDOM(300, 70) SVD(70), 1e-12},
        {"svd, wide", RANDOM(70, 300) SVD(70), 1e-12},
        {"svd, of low rank", OF_RANK_3(200, 150) SVD(150), 1e-12},
        {"qr, square", RANDOM(129, 129) QR(129), 1e-12},
        {"qr, tall", RANDOM(300, 70) QR(70), 1e-12},
        {"qr, wide", RANDOM(70, 300) QR(70), 1e-12},
        {"qr, of low rank", OF_RANK_3(200, 150) QR(150), 1e-12},
        {"eigh", SYMMETRIC(140) EIGH(140, 19600), 1e-11},
        {"eigh, one", SYMMETRIC(1) EIGH(1, 1), 1e-12},
        {"eigh, two", SYMMETRIC(2) EIGH(2, 4), 1e-12},
    };
    ALL_SMALL(list);
}

TEST_SLOW(factors, multiply_back_when_large)
{
    static const struct factors list[] = {
        {"svd", RANDOM(512, 512) SVD(512), 1e-11},
        {"qr", RANDOM(512, 512) QR(512), 1e-11},
        {"eigh", SYMMETRIC(512) EIGH(512, 262144), 1e-10},
    };
    ALL_SMALL(list);
}

TEST(factors, of_sizes_that_squares_do_not_reach)
{
    struct device_run r;

    if (!device_open(t, &r, "cpu"))
        return;
    device_gives(t, &r, "%a = const f64[2,2] {3e300 0 0 4e-300} %s = svd %a return %s",
                 "3e300 4e-300", 1e-14);
    device_gives(t, &r, "%a = const f64[2,2] {3e-310 0 4e-310 0} %q = qr %a return %q",
                 "0.6 0.8 0.8 -0.6", 1e-12);
    device_gives(t, &r, "%a = const f64[3,1] {0 3e-170 4e-170} %u = svd %a part=u return %u",
                 "0 0.6 0.8", 1e-12);
    device_gives(t, &r, "%a = const f64[2,2] {0 1e300 1e300 0} %e = eigh %a return %e",
                 "-1e300 1e300 0.70710678118654752 0.70710678118654752 -0.70710678118654752 "
                 "0.70710678118654752",
                 1e-12);
    device_close(&r);
}

/* ---- threads ------------------------------------------------------------------------------- */

extern const struct cpu_kernel cpu_svd_baseline, cpu_qr_baseline, cpu_eigh_baseline;

enum { M = 150, N = 131 };

static void run_kernel(struct test *t, const struct cpu_kernel *k, struct cpu_call c, int threads)
{
    struct diag d;
    struct pool *pool = NULL;

    diag_init(&d, NULL);
    require_ok(t, pool_create(&pool, threads, mem_default(), &d));
    c.pool = pool;
    size_t bytes = (size_t)k->scratch(&c);
    c.scratch = mem_alloc_aligned(mem_default(), bytes, 64);
    if (expect(t, c.scratch != NULL))
        k->run(&c);
    mem_free_aligned(mem_default(), c.scratch, bytes, 64);
    pool_destroy(pool);
}

/* With one thread and with three. */
static void same_bits(struct test *t, const struct cpu_kernel *k, struct cpu_call c, int64_t count)
{
    static double a[M * M], first[M + M * M], again[M + M * M];
    uint32_t state = 7;

    for (int64_t i = 0; i < M * M; i++) {
        state = state * 1664525u + 1013904223u;
        a[i] = (double)(state >> 8) * 0x1p-23 - 1;
    }
    struct cpu_tensor in = *c.in, out = {.dtype = RLX_DTYPE_f64, .rank = 1, .count = count};
    in.data = a;
    out.dim[0] = count;
    c.in = &in;
    c.out = &out;
    out.data = first;
    run_kernel(t, k, c, 1);
    out.data = again;
    run_kernel(t, k, c, 3);
    expect_bytes(t, again, first, (size_t)count * sizeof(double));
    for (int64_t i = 0; i < count; i++)
        require(t, isfinite(first[i]));
}

TEST(factors, threads_do_not_show)
{
    struct cpu_tensor a = {.dtype = RLX_DTYPE_f64, .rank = 2, .dim = {M, N}, .count = M * N};
    struct cpu_tensor square = {.dtype = RLX_DTYPE_f64, .rank = 2, .dim = {M, M}, .count = M * M};
    struct cpu_tensor batch = {
        .dtype = RLX_DTYPE_f64, .rank = 3, .dim = {40, 7, 7}, .count = 40 * 49};
    union ir_attr attr;
    struct cpu_call c = {.op = RLX_OP_svd, .attr = &attr, .in_count = 1, .in = &a};

    memset(&attr, 0, sizeof attr);
    attr.svd.part = RLX_SVD_PART_u;
    same_bits(t, &cpu_svd_baseline, c, M * N);
    attr.svd.part = RLX_SVD_PART_s;
    same_bits(t, &cpu_svd_baseline, c, N);
    attr.svd.part = RLX_SVD_PART_vt;
    same_bits(t, &cpu_svd_baseline, c, N * N);
    c.op = RLX_OP_qr;
    attr.qr.part = RLX_QR_PART_q;
    same_bits(t, &cpu_qr_baseline, c, M * N);
    c.op = RLX_OP_eigh;
    c.in = &square;
    same_bits(t, &cpu_eigh_baseline, c, M + M * M);
    c.op = RLX_OP_eigh_batch;
    c.in = &batch;
    same_bits(t, &cpu_eigh_baseline, c, 40 * 56);
}

/* ---- not finite ---------------------------------------------------------------------------- */

TEST(factors, of_what_is_not_finite_are_nan)
{
    static const char *const list[] = {"svd %a part=u", "svd %a part=s", "svd %a part=vt",
                                       "qr %a part=q",  "qr %a part=r",  "eigh %a"};
    static const char *const bad[] = {"nan", "inf", "-inf"};
    struct device_run r;
    static double got[200 * 201];

    if (!device_open(t, &r, "cpu"))
        return;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        for (size_t b = 0; b < 3; b++) {
            char body[512];
            long nan = 0, count;
            test_note(t, "%s of %s", list[i], bad[b]);
            snprintf(body, sizeof body,
                     "%%x = rng_uniform shape=[200,199] seed=1 %%b = const f32[1,1] {%s} "
                     "%%c = expand %%b shape=[200,1] %%a = concat %%c, %%x axis=1 %%y = %s "
                     "return %%y",
                     bad[b], list[i]);
            count = device_numbers(t, &r, body, 0, got, sizeof got / sizeof *got);
            for (long k = 0; k < count; k++)
                nan += isnan(got[k]) != 0;
            expect(t, count > 0);
            expect_eq(t, nan, count);
        }
    device_close(&r);
}
