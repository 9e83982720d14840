/* lower_fft.c: Fourier transforms along the last axis: which passes a length takes.
 *
 *     a short row               one pass in shared memory
 *     a long one                a pass per factor, each read and written once
 *     with primes above 13      a convolution with a chirp, by transforms of 2^k points */
#include <math.h>

#include "lower/gpu.h"

enum {
    STAGES = 7,      /* radices of a pass, at most: of 2 3^6 points */
    PASSES = 16,     /* of a row */
    PASS_MOST = 256, /* points of one pass of several */
    ROW_BYTES = 8192 /* of real parts in shared memory, as many of imaginary ones */
};
enum load { LOAD_ROW, LOAD_CHIRPED, LOAD_CHIRP };
enum store { STORE_SCALED, STORE_PRODUCT, STORE_CHIRPED };
static const uint64_t POINTS_MOST = UINT64_C(1)
                                    << 29; /* kernels count eighths of turns in a word */

/* Where rows begin or end up: points as pairs, with the parts exchanged if re is 1; or numbers, all
 * real parts of a row from re on and all imaginary ones from im on. */
struct end {
    struct gpu_arg arg;
    bool pairs;
    uint64_t row, re, im; /* row: points of a pair, or numbers */
};

/* Some rows on their way. Passes but the last write to work[0] and work[1] in turn, the last of
 * them to work[0] or, if `other`, to work[1]. */
struct rows {
    rlx_dtype dtype; /* f32 or f64 */
    uint64_t rows, points;
    struct end from, to, work[2];
    bool other;
    enum load load;
    enum store store;
    struct gpu_arg spectrum;
    uint64_t n; /* points of the chirp */
    uint64_t div;
    bool root;
};

/* ---- factors ---- */

/* The next radix of n, or 0: n has a larger prime. */
static uint64_t next_radix(uint64_t n)
{
    static const uint64_t primes[] = {13, 11, 7, 5, 3};

    for (int i = 0; i < 5; i++)
        if (n % primes[i] == 0)
            return primes[i];
    if (n == 16)
        return 4; /* two of them rather than 8 and 2 */
    return n % 8 == 0 ? 8 : n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 0;
}

static bool is_smooth(uint64_t n)
{
    for (uint64_t r; n > 1; n /= r)
        if (!(r = next_radix(n)))
            return false;
    return true;
}

/* The least divisor of n from root on, at most PASS_MOST; 0: there is none. */
static uint64_t divisor_from(uint64_t n, double root)
{
    for (uint64_t d = 2; d <= PASS_MOST; d++)
        if (n % d == 0 && (double)d >= root * (1 - 1e-9))
            return d;
    return 0;
}

/* Cuts n into `count` factors of about the same size. */
static bool cut(uint64_t n, uint32_t count, uint64_t *factor)
{
    for (uint32_t i = 0; i + 1 < count; i++) {
        factor[i] = divisor_from(n, pow((double)n, 1.0 / (count - i)));
        if (!factor[i])
            return false;
        n /= factor[i];
    }
    factor[count - 1] = n;
    return count == 1 || n <= PASS_MOST;
}

static uint64_t row_most(rlx_dtype t)
{
    return ROW_BYTES / rlx_dtype_size(t);
}

/* Of a row whose primes are small: any such number has enough divisors for some count. */
static uint32_t passes_of(uint64_t points, rlx_dtype t, uint64_t *factor)
{
    uint32_t count = 1;

    factor[0] = points;
    if (points > row_most(t))
        for (count = 2; count < PASSES && !cut(points, count, factor);)
            count++;
    return count;
}

/* ---- launches ---- */

static uint64_t power_to(uint64_t n, uint64_t most)
{
    uint64_t p = 1;

    while (p * 2 <= n && p * 2 <= most)
        p *= 2;
    return p;
}

static void set_radices(struct gpu_call *c, uint64_t points)
{
    static const char *const name[STAGES] = {"R0", "R1", "R2", "R3", "R4", "R5", "R6"};
    int count = 0;

    for (; points > 1 && count < STAGES; count++) {
        uint64_t r = next_radix(points);
        gpu_const(c, name[count], (int64_t)r);
        points /= r;
    }
    gpu_const(c, "STAGES", count ? count : 1);
}

static void put_end(struct gpu_call *c, const char *const name[3], const struct end *e)
{
    gpu_u32(c, name[0], e->row);
    gpu_u32(c, name[1], e->re);
    gpu_u32(c, name[2], e->im);
}

/* One pass of `points`, after which transforms of done * points points are done. */
static void pass(struct gpu_call *c, const struct rows *r, uint64_t points, uint64_t done,
                 const struct end *from, const struct end *to)
{
    uint64_t span = r->points / points, units = r->rows * span, most = row_most(r->dtype);
    uint64_t side = points > most / 2 ? 1 : power_to(most / 2 / points, 32);
    bool first = done == 1, last = done * points == r->points;
    uint64_t div = last ? r->div : 1;

    gpu_kernel(c, "fft", "fft");
    gpu_type(c, "A", r->dtype);
    gpu_type(c, "X", from->pairs ? RLX_DTYPE_c64 : r->dtype);
    gpu_type(c, "Y", to->pairs ? RLX_DTYPE_c64 : r->dtype);
    gpu_flag(c, "X_PAIRS", from->pairs);
    gpu_flag(c, "Y_PAIRS", to->pairs);
    gpu_const(c, "R", (int64_t)points);
    gpu_const(c, "C", (int64_t)side);
    gpu_const(c, "WG",
              (int64_t)(side * points > 256 ? power_to(side * points / 8, GPU_GROUP) : 32));
    gpu_flag(c, "ALONE", span == 1);
    gpu_flag(c, "FIRST", first);
    gpu_const(c, "LOAD", first ? r->load : LOAD_ROW);
    gpu_const(c, "STORE", last ? r->store : STORE_SCALED);
    gpu_flag(c, "LONG", r->n > UINT16_MAX);
    gpu_flag(c, "ROOT", last && r->root);
    set_radices(c, points);
    gpu_bind(c, from->arg);
    gpu_bind(c, to->arg);
    gpu_bind(c, last && r->store == STORE_PRODUCT ? r->spectrum : from->arg);
    gpu_u32(c, "units", units);
    gpu_u32(c, "span", span);
    gpu_u32(c, "done", done);
    gpu_u32(c, "n", r->n);
    put_end(c, (const char *const[]){"x_row", "x_re", "x_im"}, from);
    put_end(c, (const char *const[]){"y_row", "y_re", "y_im"}, to);
    gpu_u32(c, "div", div);
    gpu_groups(c, gpu_ceil(units, side));
}

static void transform(struct gpu_call *c, const struct rows *r)
{
    uint64_t factor[PASSES], done = 1;
    uint32_t passes = passes_of(r->points, r->dtype, factor);
    const struct end *from = &r->from;

    for (uint32_t i = 0; i < passes; i++) {
        bool last = i + 1 == passes;
        const struct end *to = last ? &r->to : &r->work[((passes - i) % 2 == 0) == r->other];
        pass(c, r, factor[i], done, from, to);
        done *= factor[i];
        from = to;
    }
}

/* ---- whole ops ---- */

/* A tensor's rows; with the parts exchanged for the inverse. */
static struct end end_of(struct gpu_arg a, rlx_dtype t, uint64_t n, bool exchanged)
{
    bool pairs = t == RLX_DTYPE_c64;
    uint64_t im = pairs ? 1 : n;

    return (struct end){a, pairs, pairs ? n : 2 * n, exchanged ? im : 0, exchanged ? 0 : im};
}

/* Rows of our own: f64 has no pairs. */
static struct end rows_in(struct gpu_arg a, const struct rows *r)
{
    bool pairs = r->dtype == RLX_DTYPE_f32;

    return end_of(a, pairs ? RLX_DTYPE_c64 : r->dtype, r->points, false);
}

static struct end scratch_rows(struct gpu_call *c, const struct rows *r, uint64_t rows)
{
    return rows_in(gpu_temp(c, rows * r->points * 2 * rlx_dtype_size(r->dtype)), r);
}

/* y[k] = chirp[k] sum over j of (x[j] chirp[j]) / chirp[k - j], a cyclic convolution of m points.
 */
static void transform_by_chirp(struct gpu_call *c, struct rows r)
{
    struct rows chirp;
    struct end here, there, out = r.to;
    uint64_t factor[PASSES];

    r.n = r.points;
    for (r.points = 1; r.points < 2 * r.n - 1;)
        r.points *= 2;
    uint32_t passes = passes_of(r.points, r.dtype, factor);
    here = scratch_rows(c, &r, r.rows);
    there = passes > 1 ? scratch_rows(c, &r, r.rows) : here;

    chirp = r;
    chirp.rows = 1;
    chirp.load = LOAD_CHIRP;
    chirp.to = scratch_rows(c, &r, 1);
    chirp.work[0] = there;
    chirp.work[1] = here;
    chirp.div = 1;
    chirp.root = false;
    transform(c, &chirp);

    r.load = LOAD_CHIRPED;
    r.store = STORE_PRODUCT;
    r.spectrum = chirp.to.arg;
    r.to = here;
    r.to.re = here.im; /* exchanged, for the inverse */
    r.to.im = here.re;
    r.work[0] = there;
    r.work[1] = here;
    transform(c, &r);

    r.from = here;
    r.to = out;
    r.load = LOAD_ROW;
    r.store = STORE_CHIRPED;
    r.other = passes % 2 != 0; /* its first pass must not write where it reads */
    transform(c, &r);
}

/* Any smaller number of points may turn out to need a chirp, of less than 4 times as many. */
static void reserve_for_less(struct gpu_call *c, const struct rows *r)
{
    uint64_t row = 2 * 4 * r->points * rlx_dtype_size(r->dtype);
    uint64_t most = (2 * r->rows + 1) * row + 3 * GPU_ALIGN;

    if (c->symbolic && !dim_is_static(c->symbolic->dim[c->symbolic->rank - 1]) && c->scratch < most)
        gpu_temp(c, most - c->scratch);
}

static void transform_smooth(struct gpu_call *c, struct rows r)
{
    uint64_t factor[PASSES];

    /* Of three passes the first may use the result's own bytes. */
    if (passes_of(r.points, r.dtype, factor) > 1)
        r.work[0] = scratch_rows(c, &r, r.rows);
    r.work[1] = rows_in(gpu_out(c), &r);
    transform(c, &r);
}

void gpu_lower_fft(struct gpu_call *c)
{
    const struct attr_fft *a = &c->attr->fft;
    rlx_dtype t = c->out->dtype;
    uint64_t extent = (uint64_t)c->out->dim[c->out->rank - 1], count = gpu_count(c->out);
    uint64_t n = t == RLX_DTYPE_c64 ? extent : extent / 2;
    struct rows r = {.dtype = t == RLX_DTYPE_f64 ? t : RLX_DTYPE_f32,
                     .points = n,
                     .from = end_of(gpu_in(c, 0), t, n, a->inverse),
                     .to = end_of(gpu_out(c), t, n, a->inverse),
                     .n = 1,
                     .div = 1,
                     .root = a->norm == RLX_FFT_NORM_ortho};

    if (count == 0)
        return;
    if (n > POINTS_MOST) {
        gpu_refuse(c, RLX_ERROR_LIMIT, "fft of %llu points: at most %llu", (unsigned long long)n,
                   (unsigned long long)POINTS_MOST);
        return;
    }
    r.rows = count / extent;
    if (r.root || (a->norm == RLX_FFT_NORM_forward && a->inverse))
        r.div = n;
    if (is_smooth(n))
        transform_smooth(c, r);
    else
        transform_by_chirp(c, r);
    reserve_for_less(c, &r);
}
