/* fft_test.c: transforms at every instruction set of this CPU, against sums in long double, within
 * the bounds of ops-special.md 5.1; with one thread and three; and what memory they ask for. */
#include "levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI_L 3.14159265358979323846264338327950288L

struct number {
    long double re, im;
};

/* ---- what it should be ---------------------------------------------------------------------- */

/* y[k] = sum of x[j * step] e^(sign 2 pi i j k / n), by halves while n is even. */
static void reference(const struct number *x, int64_t step, int64_t n, int sign, struct number *y,
                      struct number *room)
{
    if (n % 2 == 0 && n > 2) {
        reference(x, 2 * step, n / 2, sign, room, y);
        reference(x + step, 2 * step, n / 2, sign, room + n / 2, y);
        for (int64_t k = 0; k < n / 2; k++) {
            long double a = 2 * PI_L * (long double)k / (long double)n, c = cosl(a);
            long double s = sign * sinl(a);
            struct number e = room[k], o = room[n / 2 + k];
            struct number t = {o.re * c - o.im * s, o.re * s + o.im * c};
            y[k] = (struct number){e.re + t.re, e.im + t.im};
            y[k + n / 2] = (struct number){e.re - t.re, e.im - t.im};
        }
        return;
    }
    struct number *root = malloc((size_t)n * sizeof *root);
    for (int64_t j = 0; root && j < n; j++) {
        long double a = 2 * PI_L * (long double)j / (long double)n;
        root[j] = (struct number){cosl(a), sign * sinl(a)};
    }
    for (int64_t k = 0; root && k < n; k++) {
        y[k] = (struct number){0, 0};
        for (int64_t j = 0, at = 0; j < n; j++, at = (at + k) % n) {
            struct number v = x[j * step], w = root[at];
            y[k].re += v.re * w.re - v.im * w.im;
            y[k].im += v.re * w.im + v.im * w.re;
        }
    }
    free(root);
}

/* ---- running -------------------------------------------------------------------------------- */

static double random_one(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (double)((float)(*seed >> 8) * 0x1p-24f - 0.5f);
}

struct transform {
    rlx_dtype dtype;
    int64_t n, rows;
    bool inverse;
    rlx_fft_norm norm;
};

static size_t bytes_of(const struct transform *f)
{
    return (size_t)(f->n * f->rows) * (f->dtype == RLX_DTYPE_f64 ? 16 : 8);
}

/* Where point j of a row's n is, counting real numbers. */
static int64_t place(const struct transform *f, int64_t j, bool im)
{
    return f->dtype == RLX_DTYPE_c64 ? 2 * j + im : j + im * f->n;
}

static double get(const struct transform *f, const void *x, int64_t row, int64_t j, bool im)
{
    int64_t k = 2 * row * f->n + place(f, j, im);
    return f->dtype == RLX_DTYPE_f64 ? ((const double *)x)[k] : (double)((const float *)x)[k];
}

static void set(const struct transform *f, void *x, int64_t row, int64_t j, bool im, double v)
{
    int64_t k = 2 * row * f->n + place(f, j, im);

    if (f->dtype == RLX_DTYPE_f64)
        ((double *)x)[k] = v;
    else
        ((float *)x)[k] = (float)v;
}

static struct cpu_tensor tensor(const struct transform *f, void *data)
{
    int64_t extent = f->dtype == RLX_DTYPE_c64 ? f->n : 2 * f->n;

    return (struct cpu_tensor){.data = data,
                               .dtype = f->dtype,
                               .rank = 2,
                               .dim = {f->rows, extent},
                               .count = f->rows * extent};
}

static void run(struct test *t, const struct cpu_kernel *k, const struct transform *f, void *x,
                void *y, struct pool *pool)
{
    union ir_attr attr = {.fft = {.inverse = f->inverse, .norm = (int32_t)f->norm}};
    struct cpu_tensor in = tensor(f, x), out = tensor(f, y);
    struct cpu_call c = {.op = RLX_OP_fft, .attr = &attr, .in_count = 1, .in = &in, .out = &out};

    c.pool = pool;
    size_t scratch = (size_t)k->scratch(&c), table = (size_t)k->table_size(&c);
    c.scratch = mem_alloc_aligned(mem_default(), scratch, 64);
    c.table = mem_alloc_aligned(mem_default(), table, 64);
    if (expect(t, (!scratch || c.scratch) && (!table || c.table))) {
        k->make_table(&c, c.table);
        k->run(&c);
    }
    mem_free_aligned(mem_default(), c.scratch, scratch, 64);
    mem_free_aligned(mem_default(), c.table, table, 64);
}

/* Relative, over a row's numbers. */
static double distance(const struct transform *f, const void *y, int64_t row,
                       const struct number *want, long double scale)
{
    long double sum = 0, all = 0;

    for (int64_t j = 0; j < f->n; j++) {
        long double re = (long double)get(f, y, row, j, false) - scale * want[j].re;
        long double im = (long double)get(f, y, row, j, true) - scale * want[j].im;
        sum += re * re + im * im;
        all += scale * scale * (want[j].re * want[j].re + want[j].im * want[j].im);
    }
    return (double)sqrtl(sum / all);
}

static double bound(const struct transform *f)
{
    bool power = (f->n & (f->n - 1)) == 0, wide = f->dtype == RLX_DTYPE_f64;

    return (4 + log2((double)f->n)) * (power ? (wide ? 1e-15 : 3e-7) : (wide ? 1e-14 : 2e-6));
}

static long double scale_of(const struct transform *f)
{
    if (f->norm == RLX_FFT_NORM_ortho)
        return 1 / sqrtl((long double)f->n);
    return f->norm == RLX_FFT_NORM_forward && f->inverse ? 1 / (long double)f->n : 1;
}

/* All rows hold the same numbers but for a factor, a row's number or so. */
static void check_at(struct test *t, const struct cpu_kernels *l, struct transform f,
                     const struct number *x, const struct number *want)
{
    void *in = malloc(bytes_of(&f)), *out = malloc(bytes_of(&f));

    require(t, in && out);
    for (int64_t r = 0; r < f.rows; r++)
        for (int64_t j = 0; j < f.n; j++) {
            set(&f, in, r, j, false, (double)x[j].re * (double)(r % 7 + 1));
            set(&f, in, r, j, true, (double)x[j].im * (double)(r % 7 + 1));
        }
    run(t, l->family[FAMILY_fft], &f, in, out, NULL);
    for (int64_t r = 0; r<f.rows; r += f.rows> 8 ? 11 : 1) {
        double far = distance(&f, out, r, want, scale_of(&f) * (r % 7 + 1));
        if (!(far <= bound(&f)))
            fail(t, "%s, %s, %d points, row %d of %d: %g from what it should be, %g is allowed",
                 l->isa, rlx_dtype_name(f.dtype), (int)f.n, (int)r, (int)f.rows, far, bound(&f));
    }
    expect(t, true);
    free(in);
    free(out);
}

static void check(struct test *t, int64_t n, int64_t rows, bool inverse, rlx_fft_norm norm)
{
    static const rlx_dtype dtypes[] = {RLX_DTYPE_f32, RLX_DTYPE_f64, RLX_DTYPE_c64};
    struct number *x = malloc((size_t)n * sizeof *x), *want = malloc((size_t)n * sizeof *x);
    struct number *room = malloc((size_t)n * sizeof *x);
    uint32_t seed = (uint32_t)n;

    require(t, x && want && room);
    for (int64_t j = 0; j < n; j++)
        x[j] = (struct number){random_one(&seed), random_one(&seed)};
    reference(x, 1, n, inverse ? 1 : -1, want, room);
    for (int i = 0; i < LEVELS; i++)
        for (int k = 0; level(i) && k < 3; k++)
            check_at(t, level(i), (struct transform){dtypes[k], n, rows, inverse, norm}, x, want);
    free(x);
    free(want);
    free(room);
}

TEST(cpu_fft, every_length_keeps_its_bound)
{
    static const int64_t n[] = {1,   2,   3,   4,   5,   6,   7,    8,    9,    11,   12,  13, 14,
                                15,  16,  17,  25,  31,  32,  49,   60,   64,   72,   77,  97, 121,
                                128, 169, 210, 256, 360, 500, 1000, 1001, 1024, 2187, 4096};

    for (size_t i = 0; i < sizeof n / sizeof n[0]; i++) {
        check(t, n[i], 1, i % 2, (rlx_fft_norm)(i % 3));
        check(t, n[i], n[i] > 1000 ? 3 : 70, i % 2 == 0, (rlx_fft_norm)((i + 1) % 3));
    }
}

TEST_SLOW(cpu_fft, long_ones_keep_their_bound)
{
    check(t, 4097, 1, false, RLX_FFT_NORM_backward);
    check(t, 65536, 1, true, RLX_FFT_NORM_forward);
    check(t, 1 << 18, 2, false, RLX_FFT_NORM_ortho);
    check(t, 2 * 3 * 5 * 7 * 11 * 13, 1, true, RLX_FFT_NORM_ortho);
    check(t, 8194, 130, false, RLX_FFT_NORM_backward);
    check(t, 72 * 1000, 1, false, RLX_FFT_NORM_backward);
}

/* One thread and three give the same bits. */
TEST(cpu_fft, threads_do_not_show)
{
    static const struct transform f[] = {
        {RLX_DTYPE_c64, 1 << 17, 1, false, RLX_FFT_NORM_backward},
        {RLX_DTYPE_f32, 1000, 5, true, RLX_FFT_NORM_ortho},
        {RLX_DTYPE_f32, 48, 300, true, RLX_FFT_NORM_ortho},
        {RLX_DTYPE_f64, 40009, 1, false, RLX_FFT_NORM_forward},
        {RLX_DTYPE_f64, 211, 130, false, RLX_FFT_NORM_forward},
        {RLX_DTYPE_c64, 211, 5, true, RLX_FFT_NORM_forward},
    };
    struct pool *pool;
    struct diag d;

    diag_init(&d, NULL);
    require_ok(t, pool_create(&pool, 3, mem_default(), &d));
    for (size_t i = 0; i < sizeof f / sizeof f[0]; i++) {
        size_t bytes = bytes_of(&f[i]);
        char *x = malloc(bytes), *one = malloc(bytes), *three = malloc(bytes);
        uint32_t seed = 1;
        require(t, x && one && three);
        for (int64_t r = 0; r < f[i].rows; r++)
            for (int64_t j = 0; j < 2 * f[i].n; j++)
                set(&f[i], x, r, j / 2, j % 2, random_one(&seed));
        for (int l = 0; l < LEVELS; l++) {
            if (!level(l))
                continue;
            run(t, level(l)->family[FAMILY_fft], &f[i], x, one, NULL);
            run(t, level(l)->family[FAMILY_fft], &f[i], x, three, pool);
            expect_bytes(t, three, one, bytes);
        }
        free(x);
        free(one);
        free(three);
    }
    pool_destroy(pool);
}

/* What is not finite spoils all points of its row, in one part or both, and no other row. */
TEST(cpu_fft, nan_stays_in_its_row)
{
    static const struct transform f[] = {
        {RLX_DTYPE_f32, 24, 70, false, RLX_FFT_NORM_backward},
        {RLX_DTYPE_c64, 17, 70, true, RLX_FFT_NORM_ortho},
        {RLX_DTYPE_f64, 1024, 3, false, RLX_FFT_NORM_backward},
    };

    for (size_t i = 0; i < sizeof f / sizeof f[0]; i++)
        for (int l = 0; l < LEVELS; l++) {
            int bad = 0, good = 0;
            void *x = calloc(1, bytes_of(&f[i])), *y = malloc(bytes_of(&f[i]));
            require(t, x && y);
            if (level(l)) {
                set(&f[i], x, 1, f[i].n / 2, false, (double)NAN);
                set(&f[i], x, 2, f[i].n / 2, true, (double)INFINITY);
                run(t, level(l)->family[FAMILY_fft], &f[i], x, y, NULL);
                for (int64_t r = 0; r < f[i].rows; r++)
                    for (int64_t j = 0; j < f[i].n; j++) {
                        double re = get(&f[i], y, r, j, false), im = get(&f[i], y, r, j, true);
                        bool finite = isfinite(re) && isfinite(im);
                        bad += finite && (r == 1 || r == 2);
                        good += (re != 0 || im != 0) && r != 1 && r != 2;
                    }
            }
            expect_eq(t, bad, 0);
            expect_eq(t, good, 0);
            free(x);
            free(y);
        }
}

/* A plan for at most n points holds what any smaller number of them needs. */
static void check_bytes(struct test *t, const struct cpu_kernel *k, rlx_dtype dtype,
                        struct pool *pool)
{
    static const int64_t rows[] = {1, 5, 31, 64, 200};
    uint64_t (*const fns[])(const struct cpu_call *) = {k->scratch, k->table_size};

    for (int i = 0; i < 2; i++)
        for (int r = 0; r < 5; r++) {
            uint64_t last = 0;
            for (int64_t n = 1; n < 200000; n += n < 5000 ? 1 : n / 301) {
                struct transform f = {dtype, n, rows[r], false, RLX_FFT_NORM_backward};
                struct cpu_tensor x = tensor(&f, NULL);
                struct cpu_call c = {.op = RLX_OP_fft, .in = &x, .out = &x, .pool = pool};
                uint64_t exact = fns[i](&c);
                c.bounded = true;
                uint64_t most = fns[i](&c);
                if (exact > most || most < last)
                    fail(t, "%d points, %d rows, bytes %d: %llu exactly, %llu at most, %llu before",
                         (int)n, (int)rows[r], i, (unsigned long long)exact,
                         (unsigned long long)most, (unsigned long long)last);
                last = most;
            }
        }
    expect(t, true);
}

TEST(cpu_fft, bounds_hold_all_smaller_sizes)
{
    struct pool *pool;
    struct diag d;

    diag_init(&d, NULL);
    require_ok(t, pool_create(&pool, 3, mem_default(), &d));
    for (int l = 0; l < LEVELS; l++) {
        if (!level(l))
            continue;
        check_bytes(t, level(l)->family[FAMILY_fft], RLX_DTYPE_f32, NULL);
        check_bytes(t, level(l)->family[FAMILY_fft], RLX_DTYPE_f64, pool);
        check_bytes(t, level(l)->family[FAMILY_fft], RLX_DTYPE_c64, pool);
    }
    pool_destroy(pool);
}
