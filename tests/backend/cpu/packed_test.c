/* packed_test.c: products with a weight packed beforehand, at every ISA level that this CPU runs.
 *
 * Operands are small integers, so every order of summation gives the same bits, and the result
 * must be the definition's, packed or not, with any number of threads. */
#include "test.h"

#include "backend/cpu/cpu.h"
#include "base/half.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16 }; /* elements of the largest tensor here */

static _Alignas(64) unsigned char a_data[MOST * 8], b_data[MOST * 8], y_data[MOST * 8];
static double a_value[MOST], b_value[MOST];

struct shape {
    int64_t m, n, k;
    bool turned; /* b is stored [n, k] */
};

static void put(rlx_dtype dtype, void *at, int64_t i, double v)
{
    switch (dtype) {
    case RLX_DTYPE_f64: ((double *)at)[i] = v; break;
    case RLX_DTYPE_f16: ((uint16_t *)at)[i] = f32_to_f16((float)v); break;
    case RLX_DTYPE_bf16: ((uint16_t *)at)[i] = f32_to_bf16((float)v); break;
    default: ((float *)at)[i] = (float)v; break;
    }
}

static double get(rlx_dtype dtype, const void *at, int64_t i)
{
    switch (dtype) {
    case RLX_DTYPE_f64: return ((const double *)at)[i];
    case RLX_DTYPE_f16: return (double)f16_to_f32(((const uint16_t *)at)[i]);
    case RLX_DTYPE_bf16: return (double)bf16_to_f32(((const uint16_t *)at)[i]);
    default: return (double)((const float *)at)[i];
    }
}

static void fill(rlx_dtype dtype, void *at, double *value, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        value[i] = (double)(seed >> 28) - 8;
        put(dtype, at, i, value[i]);
    }
}

/* The i-th level that this CPU runs; NULL: there are no more. */
static const struct cpu_kernels *level_at(int i)
{
    char names[64];
    const char *at = names;

    cpu_level_names(names, sizeof names);
    for (; i > 0 && at; i--)
        at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL;
    return at ? cpu_level((rlx_str){at, strcspn(at, " ")}) : NULL;
}

struct call {
    struct cpu_call c;
    union ir_attr attr;
    struct cpu_tensor in[3], out;
};

static void describe(struct call *call, rlx_dtype dtype, const struct shape *s)
{
    *call = (struct call){.attr = {.matmul = {.transpose_b = s->turned}}};
    call->in[0] = (struct cpu_tensor){a_data, dtype, 2, {s->m, s->k}, s->m * s->k, NULL};
    call->in[1] = (struct cpu_tensor){b_data, dtype, 2, {s->k, s->n}, s->k * s->n, NULL};
    if (s->turned)
        call->in[1].dim[0] = s->n, call->in[1].dim[1] = s->k;
    call->out = (struct cpu_tensor){y_data, dtype, 2, {s->m, s->n}, s->m * s->n, NULL};
    call->c = (struct cpu_call){
        .op = RLX_OP_matmul, .attr = &call->attr, .in_count = 2, .in = call->in, .out = &call->out};
}

static uint64_t scratch_of(const struct cpu_kernel *k, struct call *call)
{
    struct cpu_tensor in[3];
    struct cpu_call ask = call->c;
    struct cpu_tensor out = call->out;

    memcpy(in, call->in, sizeof in);
    for (int i = 0; i < 3; i++)
        in[i].data = NULL;
    out.data = NULL;
    ask.in = in;
    ask.out = &out;
    return k->scratch ? k->scratch(&ask) : 0;
}

/* Scratch ends where a guard begins, which must stay as it is. */
static void run(struct test *t, const struct cpu_kernel *k, struct call *call, struct pool *pool)
{
    const size_t guard = 64;

    call->c.pool = pool;
    size_t bytes = (size_t)scratch_of(k, call);
    unsigned char *scratch = mem_alloc_aligned(mem_default(), bytes + guard, 64);
    require(t, scratch);
    memset(scratch, 0xcd, bytes + guard); /* NaN, if it were used */
    call->c.scratch = scratch;
    if (call->out.count > 0)
        memset(call->out.data, 0xa5, (size_t)call->out.count * rlx_dtype_size(call->out.dtype));
    k->run(&call->c);
    for (size_t i = 0; i < guard; i++)
        if (!expect(t, scratch[bytes + i] == 0xcd))
            break;
    mem_free_aligned(mem_default(), scratch, bytes + guard, 64);
}

/* The packed copy of operand 1, or NULL; *bytes is what to free. */
static void *pack(struct test *t, const struct cpu_kernel *k, struct call *call, size_t *bytes)
{
    struct cpu_pack want = k->pack_size ? k->pack_size(&call->c, 1) : (struct cpu_pack){0};

    *bytes = (size_t)want.bytes + 64;
    if (want.bytes == 0)
        return NULL;
    unsigned char *to = mem_alloc_aligned(mem_default(), *bytes, 64);
    if (!expect(t, to))
        return NULL;
    memset(to, 0xcd, *bytes);
    k->pack(&call->c, 1, to);
    for (size_t i = 0; i < 64; i++)
        if (!expect(t, to[want.bytes + i] == 0xcd))
            break;
    return to;
}

static double defined(const struct shape *s, int64_t i, int64_t j)
{
    double sum = 0;

    for (int64_t k = 0; k < s->k; k++)
        sum += a_value[i * s->k + k] * b_value[s->turned ? j * s->k + k : k * s->n + j];
    return sum;
}

static void expect_defined(struct test *t, rlx_dtype dtype, const struct shape *s)
{
    for (int64_t i = 0; i < s->m * s->n; i++) {
        unsigned char want[8];
        put(dtype, want, 0, defined(s, i / s->n, i % s->n));
        if (!expect_near(t, get(dtype, y_data, i), get(dtype, want, 0), 0)) {
            test_note(t, "row %d, column %d", (int)(i / s->n), (int)(i % s->n));
            return;
        }
    }
}

static void check(struct test *t, const struct cpu_kernels *level, rlx_dtype dtype,
                  const struct shape *s, struct pool *pool)
{
    const struct cpu_kernel *k = level->family[FAMILY_matmul];
    struct call call;
    size_t bytes;

    require(t, s->m * s->k <= MOST && s->k * s->n <= MOST && s->m * s->n <= MOST);
    test_note(t, "%s %s: %d x %d x %d%s", level->isa, rlx_dtype_name(dtype), (int)s->m, (int)s->n,
              (int)s->k, s->turned ? " turned" : "");
    describe(&call, dtype, s);
    fill(dtype, a_data, a_value, s->m * s->k, 1);
    fill(dtype, b_data, b_value, s->k * s->n, 2);
    run(t, k, &call, NULL);
    expect_defined(t, dtype, s);

    void *packed = pack(t, k, &call, &bytes);
    call.in[1].packed = packed;
    if (packed)
        call.in[1].data = NULL; /* nothing may look at it any more */
    run(t, k, &call, NULL);
    expect_defined(t, dtype, s);
    run(t, k, &call, pool);
    expect_defined(t, dtype, s);
    mem_free_aligned(mem_default(), packed, bytes, 64);
}

static const rlx_dtype dtypes[] = {RLX_DTYPE_f32, RLX_DTYPE_f64, RLX_DTYPE_f16, RLX_DTYPE_bf16};

static void check_all(struct test *t, const struct shape *s, size_t count)
{
    struct diag d;
    struct pool *pool;

    diag_init(&d, NULL);
    require_ok(t, pool_create(&pool, 3, mem_default(), &d));
    for (int l = 0; level_at(l); l++)
        for (size_t i = 0; i < count; i++)
            for (size_t j = 0; j < sizeof dtypes / sizeof *dtypes; j++)
                check(t, level_at(l), dtypes[j], &s[i], pool);
    pool_destroy(pool);
}

TEST(packed, any_number_of_rows)
{
    for (int64_t m = 0; m <= 40; m++) {
        const struct shape s[] = {{m, 33, 19, false}, {m, 47, 40, true}};
        check_all(t, s, 2);
    }
}

TEST(packed, odd_sizes)
{
    static const struct shape s[] = {
        {3, 1, 5, false},    {70, 1, 9, true},     {5, 17, 1, false},    {13, 32, 2, false},
        {2, 31, 3, true},    {7, 40, 0, false},    {1, 600, 70, true},   {65, 130, 257, false},
        {9, 33, 513, true},  {100, 97, 31, false}, {1, 64, 1000, false}, {200, 20, 33, false},
        {33, 16, 65, false}, {31, 200, 255, true}, {1, 65536, 1, false},
    };
    check_all(t, s, sizeof s / sizeof *s);
}

/* Few sums, and so long a k that it is cut into parts. */
TEST(packed, long_sums)
{
    static const struct shape s[] = {{1, 20, 3000, false}, {5, 18, 2100, true}};
    check_all(t, s, 2);
}

/* NaN and Inf must reach exactly the sums that the definition says. */
TEST(packed, special_values)
{
    const struct shape s = {21, 45, 70, false};

    for (int l = 0; level_at(l); l++)
        for (size_t j = 0; j < sizeof dtypes / sizeof *dtypes; j++) {
            const struct cpu_kernel *k = level_at(l)->family[FAMILY_matmul];
            rlx_dtype dtype = dtypes[j];
            struct call call;
            size_t bytes;

            test_note(t, "%s %s", level_at(l)->isa, rlx_dtype_name(dtype));
            describe(&call, dtype, &s);
            fill(dtype, a_data, a_value, s.m * s.k, 3);
            fill(dtype, b_data, b_value, s.k * s.n, 4);
            put(dtype, a_data, 3 * s.k + 69, a_value[3 * s.k + 69] = INFINITY);
            put(dtype, a_data, 20 * s.k, a_value[20 * s.k] = (double)NAN);
            put(dtype, b_data, 69 * s.n + 44, b_value[69 * s.n + 44] = -INFINITY);
            put(dtype, b_data, 5 * s.n + 1, b_value[5 * s.n + 1] = (double)NAN);
            void *packed = pack(t, k, &call, &bytes);
            call.in[1].packed = packed;
            expect(t, packed);
            run(t, k, &call, NULL);
            expect_defined(t, dtype, &s);
            mem_free_aligned(mem_default(), packed, bytes, 64);
        }
}

/* What was planned for the largest sizes must do for all smaller ones. */
TEST(packed, smaller_products_need_no_more_scratch)
{
    static const int64_t size[] = {1, 8, 9, 31, 48, 49, 200, 512, 513, 3000, 30000};
    enum { SIZES = sizeof size / sizeof *size };
    struct diag d;
    struct pool *pool;

    diag_init(&d, NULL);
    require_ok(t, pool_create(&pool, 3, mem_default(), &d));
    for (int at = 0; at < SIZES * SIZES * SIZES * 4; at++) {
        const struct cpu_kernel *k = level_at(0)->family[FAMILY_matmul];
        int way[3] = {at / 4 % SIZES, at / 4 / SIZES % SIZES, at / 4 / SIZES / SIZES};
        bool packed = at & 1;
        rlx_dtype dtype = at & 2 ? RLX_DTYPE_f32 : RLX_DTYPE_bf16;
        struct call call;

        struct shape s = {size[way[0]], size[way[1]], size[way[2]], false};
        describe(&call, dtype, &s);
        call.c.pool = pool;
        call.in[1].packed = packed ? t : NULL;
        uint64_t all = scratch_of(k, &call);
        for (int i = 0; i < 3; i++) {
            int less[3] = {way[0], way[1], way[2]};
            if (less[i]-- == 0 || (packed && i > 0)) /* a packed weight keeps its n and k */
                continue;
            struct shape small = {size[less[0]], size[less[1]], size[less[2]], false};
            describe(&call, dtype, &small);
            call.c.pool = pool;
            call.in[1].packed = packed ? t : NULL;
            if (!expect(t, scratch_of(k, &call) <= all))
                test_note(t, "%d x %d x %d, then %d x %d x %d", (int)s.m, (int)s.n, (int)s.k,
                          (int)small.m, (int)small.n, (int)small.k);
        }
    }
    pool_destroy(pool);
}

/* ---- 8-bit integers ------------------------------------------------------------------------ */

static int8_t round_to_i8(const struct attr_qmatmul *q, int32_t sum)
{
    double v = rint((double)q->mult * (double)sum) + (double)q->out_zp;

    return (int8_t)(v < -128 ? -128 : v > 127 ? 127 : v);
}

static void expect_quantised(struct test *t, const struct attr_qmatmul *q, const struct shape *s,
                             const int32_t *bias)
{
    const int8_t *x = (const int8_t *)a_data, *w = (const int8_t *)b_data;

    for (int64_t i = 0; i < s->m * s->n; i++) {
        int32_t sum = bias[i % s->n];
        for (int64_t k = 0; k < s->k; k++)
            sum +=
                (int32_t)((x[i / s->n * s->k + k] - q->x_zp) * (w[k * s->n + i % s->n] - q->w_zp));
        if (!expect_eq(t, ((const int8_t *)y_data)[i], round_to_i8(q, sum)))
            return;
    }
}

static void check_quantised(struct test *t, const struct cpu_kernels *level, const struct shape *s,
                            int64_t x_zp, int64_t w_zp, struct pool *pool)
{
    static int32_t bias[MOST];
    const struct cpu_kernel *k = level->family[FAMILY_qmatmul];
    struct call call;
    size_t bytes;

    test_note(t, "%s i8: %d x %d x %d, zero points %d %d", level->isa, (int)s->m, (int)s->n,
              (int)s->k, (int)x_zp, (int)w_zp);
    describe(&call, RLX_DTYPE_i8, s);
    call.c.op = RLX_OP_qmatmul;
    call.c.in_count = 3;
    call.in[2] = (struct cpu_tensor){bias, RLX_DTYPE_i32, 1, {s->n}, s->n, NULL};
    call.attr.qmatmul = (struct attr_qmatmul){x_zp, w_zp, -3, 0x1p-8f};
    for (int64_t i = 0; i < MOST; i++) {
        ((int8_t *)a_data)[i] = (int8_t)(i * 37 + i / 7);
        ((int8_t *)b_data)[i] = (int8_t)(i * 91 + i / 11);
        bias[i] = (int32_t)(i * 1001);
    }
    run(t, k, &call, NULL);
    expect_quantised(t, &call.attr.qmatmul, s, bias);
    void *packed = pack(t, k, &call, &bytes);
    call.in[1].packed = packed;
    if (packed)
        call.in[1].data = NULL;
    run(t, k, &call, NULL);
    expect_quantised(t, &call.attr.qmatmul, s, bias);
    run(t, k, &call, pool);
    expect_quantised(t, &call.attr.qmatmul, s, bias);
    mem_free_aligned(mem_default(), packed, bytes, 64);
}

TEST(packed, bytes_with_zero_points)
{
    static const struct shape s[] = {
        {1, 40, 7, false},  {3, 17, 64, false},    {33, 45, 65, false},
        {32, 64, 4, false}, {13, 100, 259, false}, {2, 18, 3000, false},
        {50, 33, 1, false}, {5, 20, 0, false},     {0, 20, 3, false}};
    static const int64_t zero[][2] = {{0, 0}, {-128, 127}, {127, -128}, {5, 0}, {0, -7}};
    struct diag d;
    struct pool *pool;

    diag_init(&d, NULL);
    require_ok(t, pool_create(&pool, 3, mem_default(), &d));
    for (int l = 0; level_at(l); l++)
        for (size_t i = 0; i < sizeof s / sizeof *s; i++)
            for (size_t z = 0; z < sizeof zero / sizeof *zero; z++)
                check_quantised(t, level_at(l), &s[i], zero[z][0], zero[z][1], pool);
    pool_destroy(pool);
}

/* ---- experts ------------------------------------------------------------------------------- */

/* Five experts, one of which nobody asks for, and one row with none. */
static void check_grouped(struct test *t, const struct cpu_kernels *level, rlx_dtype dtype,
                          const struct shape *s, struct pool *pool)
{
    enum { EXPERTS = 5 };
    static int32_t expert[MOST];
    const struct cpu_kernel *k = level->family[FAMILY_grouped_matmul];
    struct call call;
    size_t bytes;

    test_note(t, "%s %s, experts: %d x %d x %d", level->isa, rlx_dtype_name(dtype), (int)s->m,
              (int)s->n, (int)s->k);
    describe(&call, dtype, s);
    call.c.op = RLX_OP_grouped_matmul;
    call.c.in_count = 3;
    call.in[1] =
        (struct cpu_tensor){b_data, dtype, 3, {EXPERTS, s->k, s->n}, EXPERTS * s->k * s->n, NULL};
    call.in[2] = (struct cpu_tensor){expert, RLX_DTYPE_i32, 1, {s->m}, s->m, NULL};
    require(t, call.in[1].count <= MOST);
    for (int64_t i = 0; i < s->m; i++)
        expert[i] = i == 3 ? EXPERTS : (int32_t)(i * i % 3 + (i & 1));
    fill(dtype, a_data, a_value, s->m * s->k, 5);
    fill(dtype, b_data, b_value, EXPERTS * s->k * s->n, 6);
    void *packed = pack(t, k, &call, &bytes);
    expect(t, packed);
    call.in[1].packed = packed;
    run(t, k, &call, pool);
    for (int64_t i = 0; i < s->m * s->n; i++) {
        double sum = 0;
        unsigned char want[8];
        for (int64_t j = 0; j < s->k && expert[i / s->n] < EXPERTS; j++)
            sum += a_value[i / s->n * s->k + j] *
                   b_value[(expert[i / s->n] * s->k + j) * s->n + i % s->n];
        put(dtype, want, 0, sum);
        if (!expect_near(t, get(dtype, y_data, i), get(dtype, want, 0), 0))
            break;
    }
    mem_free_aligned(mem_default(), packed, bytes, 64);
}

TEST(packed, every_expert_has_its_panels)
{
    static const struct shape s[] = {{1, 17, 9, false}, {7, 40, 33, false}, {90, 33, 300, false}};
    struct diag d;
    struct pool *pool;

    diag_init(&d, NULL);
    require_ok(t, pool_create(&pool, 3, mem_default(), &d));
    for (int l = 0; level_at(l); l++)
        for (size_t i = 0; i < sizeof s / sizeof *s; i++)
            for (size_t j = 0; j < sizeof dtypes / sizeof *dtypes; j++)
                check_grouped(t, level_at(l), dtypes[j], &s[i], pool);
    pool_destroy(pool);
}
