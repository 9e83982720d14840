/* dequant_q8_test.c: products with act=q8 of every block format, at every level of this CPU,
 * against the definition: decoded codes of x times decoded rows of w, in double precision, within
 * the tolerance of a sum of k terms (ops-core.md 22). */
#include "base/half.h"
#include "ir/quant/quant_decode.h"
#include "ir/quant/quant_encode.h"
#include "ir/quant/quant_scheme.h"
#include "levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int32_t schemes[] = {
    RLX_QUANT_SCHEME_q4_0,   RLX_QUANT_SCHEME_q4_1,   RLX_QUANT_SCHEME_q5_0,
    RLX_QUANT_SCHEME_q5_1,   RLX_QUANT_SCHEME_q8_0,   RLX_QUANT_SCHEME_q8_1,
    RLX_QUANT_SCHEME_q2_k,   RLX_QUANT_SCHEME_q3_k,   RLX_QUANT_SCHEME_q4_k,
    RLX_QUANT_SCHEME_q5_k,   RLX_QUANT_SCHEME_q6_k,   RLX_QUANT_SCHEME_q8_k,
    RLX_QUANT_SCHEME_iq4_nl, RLX_QUANT_SCHEME_iq4_xs, RLX_QUANT_SCHEME_mxfp4,
    RLX_QUANT_SCHEME_nvfp4,  RLX_QUANT_SCHEME_tq1_0,  RLX_QUANT_SCHEME_tq2_0,
};
enum { SCHEMES = sizeof schemes / sizeof *schemes };

/* rows of x, columns, blocks of a row; experts 0: dequant_matmul */
struct shape {
    int64_t m, n, blocks, experts;
};

static const struct shape shapes[] = {
    {1, 1, 1, 0},    {1, 37, 5, 0},   {2, 16, 4, 0},  {3, 5, 3, 0},   {8, 33, 2, 0},
    {9, 17, 7, 0},   {16, 45, 1, 0},  {17, 16, 1, 0}, {33, 70, 6, 0}, {530, 3, 1, 0},
    {20, 140, 2, 0}, {17, 18, 19, 0}, {4, 19, 2, 3},  {60, 21, 3, 4}, {7, 9, 1, 1000},
};

/* ---- data ---------------------------------------------------------------------------------- */

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* What x and the numbers in the blocks are like. */
enum profile { PLAIN, SPECIAL, TINY, HUGE, PROFILES };

/* Where a scheme's blocks hold an f16. */
static int halves_of(int32_t scheme, int *at)
{
    switch (scheme) {
    case RLX_QUANT_SCHEME_q4_1:
    case RLX_QUANT_SCHEME_q5_1:
    case RLX_QUANT_SCHEME_q8_1:
    case RLX_QUANT_SCHEME_q4_k:
    case RLX_QUANT_SCHEME_q5_k: at[0] = 0, at[1] = 2; return 2;
    case RLX_QUANT_SCHEME_q2_k: at[0] = 80, at[1] = 82; return 2;
    case RLX_QUANT_SCHEME_q3_k: at[0] = 108; return 1;
    case RLX_QUANT_SCHEME_q6_k: at[0] = 208; return 1;
    case RLX_QUANT_SCHEME_tq1_0: at[0] = 52; return 1;
    case RLX_QUANT_SCHEME_tq2_0: at[0] = 64; return 1;
    case RLX_QUANT_SCHEME_mxfp4:
    case RLX_QUANT_SCHEME_nvfp4: return 0;
    default: at[0] = 0; return 1;
    }
}

static void fill_block(int32_t scheme, uint8_t *b, enum profile p, uint32_t *seed)
{
    int at[2], count = halves_of(scheme, at);
    float wide = p == HUGE ? 1e36f : 1e-2f;

    for (int i = 0; i < quant_scheme(scheme)->block_bytes; i++)
        b[i] = (uint8_t)next(seed);
    for (int i = 0; i < count && scheme != RLX_QUANT_SCHEME_q8_k; i++) {
        float v = ((float)(next(seed) % 2001) - 1000) * 1e-5f;
        uint16_t h = p == SPECIAL && next(seed) % 9 == 0 ? (uint16_t)next(seed) : f32_to_f16(v);
        if (p == SPECIAL && next(seed) % 25 == 0)
            h = next(seed) % 2 ? 0x7c00 : 0xfc00;
        memcpy(b + at[i], &h, 2);
    }
    if (scheme == RLX_QUANT_SCHEME_mxfp4 && p != SPECIAL) /* there, any power of two */
        b[0] = (uint8_t)((p == HUGE ? 240 : p == TINY ? 0 : 118) + b[0] % 8);
    if (scheme == RLX_QUANT_SCHEME_q8_k) {
        float d = ((float)(next(seed) % 2001) - 1000) * wide;
        memcpy(b, &d, 4);
    }
}

static float x_value(enum profile p, uint32_t *seed)
{
    static const float special[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f, 0, 9e6f};
    float v = ((float)(next(seed) % 200001) - 100000) * 1e-5f;

    if (p == SPECIAL && next(seed) % 1500 == 0)
        return special[next(seed) % 8];
    return p == TINY ? v * 1e-37f : p == HUGE ? v * 1e7f : v;
}

/* ---- the definition ------------------------------------------------------------------------ */

/* A row of x through its codes; NaN where a run has none. */
static void through_codes(const float *x, int64_t k, int64_t run, float *out)
{
    uint8_t block[QUANT_BLOCK_BYTES];
    bool large = run == 256;

    run = large ? 256 : 32;
    for (int64_t i = 0; i < k; i += run) {
        bool coded = large ? quant_encode_q8_k(x + i, block) : quant_encode_q8_0(x + i, block);
        if (coded)
            quant_decode_block(large ? RLX_QUANT_SCHEME_q8_k : RLX_QUANT_SCHEME_q8_0, block,
                               out + i);
        for (int64_t j = 0; !coded && j < run; j++)
            out[i + j] = NAN;
    }
}

struct data {
    const struct shape *s;
    int32_t scheme;
    int64_t k, row_bytes;
    float *x, *want, *slack, *y, *again;
    uint8_t *w;
    int32_t *id;
};

static void define(struct data *d)
{
    const struct shape *s = d->s;
    float *a = malloc((size_t)d->k * sizeof *a), *b = malloc((size_t)d->k * sizeof *b);

    for (int64_t m = 0; a && b && m < s->m; m++) {
        int64_t e = s->experts ? d->id[m] : 0;
        through_codes(d->x + m * d->k, d->k, quant_scheme(d->scheme)->block_elems, a);
        for (int64_t n = 0; n < s->n; n++) {
            double sum = 0, size = 0;
            quant_decode_row(d->scheme, d->w + (e * s->n + n) * d->row_bytes, d->k, b);
            for (int64_t i = 0; i < d->k; i++) {
                sum += (double)a[i] * (double)b[i];
                size += fabs((double)a[i] * (double)b[i]);
            }
            d->want[m * s->n + n] = (float)sum;
            d->slack[m * s->n + n] = (float)((4 + sqrt((double)d->k)) * 0x1p-22 * size + 2e-45);
        }
    }
    free(a);
    free(b);
}

static bool open_data(struct data *d, const struct shape *s, int32_t scheme, enum profile p)
{
    uint32_t seed = (uint32_t)(scheme * 977 + s->m * 31 + s->n + p);
    const struct quant_scheme *q = quant_scheme(scheme);
    int64_t rows = s->n * (s->experts ? s->experts : 1);
    size_t outs = (size_t)(s->m * s->n) * sizeof(float);

    *d = (struct data){.s = s, .scheme = scheme, .k = s->blocks * q->block_elems};
    d->row_bytes = s->blocks * q->block_bytes;
    d->x = malloc((size_t)(s->m * d->k) * sizeof *d->x);
    d->w = malloc((size_t)(rows * d->row_bytes));
    d->id = malloc((size_t)s->m * sizeof *d->id);
    d->want = malloc(outs);
    d->slack = malloc(outs);
    d->y = malloc(outs);
    d->again = malloc(outs);
    if (!d->x || !d->w || !d->id || !d->want || !d->slack || !d->y || !d->again)
        return false;
    for (int64_t i = 0; i < rows * s->blocks; i++)
        fill_block(scheme, d->w + i * q->block_bytes, p, &seed);
    for (int64_t i = 0; i < s->m * d->k; i++)
        d->x[i] = x_value(p, &seed);
    for (int64_t i = 0; i < s->m; i++)
        d->id[i] = s->experts ? (int32_t)(next(&seed) % (uint32_t)s->experts) : 0;
    define(d);
    return true;
}

static void close_data(struct data *d)
{
    free(d->x);
    free(d->w);
    free(d->id);
    free(d->want);
    free(d->slack);
    free(d->y);
    free(d->again);
}

/* ---- running ------------------------------------------------------------------------------- */

/* Scratch is asked for without data, as a session does. */
static void run(struct test *t, const struct cpu_kernels *kernels, const struct data *d, float *y,
                struct pool *pool)
{
    const struct shape *s = d->s;
    union ir_attr attr = {0};
    struct cpu_tensor out = {.dtype = RLX_DTYPE_f32, .rank = 2, .dim = {s->m, s->n}};
    struct cpu_tensor in[3] = {
        {.dtype = RLX_DTYPE_f32, .rank = 2, .dim = {s->m, d->k}, .count = s->m * d->k},
        {.dtype = RLX_DTYPE_u8, .rank = 2, .dim = {s->n, d->row_bytes}},
        {.dtype = RLX_DTYPE_i32, .rank = 1, .dim = {s->m}, .count = s->m}};
    struct cpu_call c = {.attr = &attr, .in = in, .out = &out, .pool = pool};
    const struct cpu_kernel *k;

    if (s->experts) {
        in[1].rank = 3, in[1].dim[0] = s->experts, in[1].dim[1] = s->n, in[1].dim[2] = d->row_bytes;
        attr.dequant_grouped_matmul.scheme = d->scheme;
        attr.dequant_grouped_matmul.k = d->k;
        attr.dequant_grouped_matmul.act = RLX_ACT_PRECISION_q8;
    } else {
        attr.dequant_matmul.scheme = d->scheme;
        attr.dequant_matmul.k = d->k;
        attr.dequant_matmul.act = RLX_ACT_PRECISION_q8;
    }
    in[1].count = s->n * d->row_bytes * (s->experts ? s->experts : 1);
    out.count = s->m * s->n;
    c.op = s->experts ? RLX_OP_dequant_grouped_matmul : RLX_OP_dequant_matmul;
    c.in_count = s->experts ? 3 : 2;
    k = kernels->family[s->experts ? FAMILY_dequant_grouped_matmul : FAMILY_dequant_matmul];
    size_t bytes = (size_t)k->scratch(&c);
    c.scratch = mem_alloc_aligned(mem_default(), bytes, 64);
    in[0].data = d->x, in[1].data = d->w, in[2].data = d->id, out.data = y;
    if (expect(t, bytes == 0 || c.scratch)) {
        memset(c.scratch, 0xff, bytes); /* what is not written first is NaN */
        k->run(&c);
    }
    mem_free_aligned(mem_default(), c.scratch, bytes, 64);
}

static void compare(struct test *t, const struct data *d)
{
    for (int64_t i = 0; i < d->s->m * d->s->n; i++)
        if (!expect_near(t, d->y[i], d->want[i], isfinite(d->want[i]) ? d->slack[i] : 0)) {
            test_note(t, "at %d", (int)i);
            return;
        }
}

static void try_all(struct test *t, enum profile p, size_t shape_count)
{
    struct pool *pool;
    struct diag diag;

    diag_init(&diag, NULL);
    require_ok(t, pool_create(&pool, 3, mem_default(), &diag));
    for (int i = 0; i < SCHEMES * (int)shape_count; i++) {
        const struct shape *s = &shapes[(size_t)i / SCHEMES];
        struct data d;
        require(t, open_data(&d, s, schemes[i % SCHEMES], p));
        for (int l = 0; l < LEVELS_AND_AMX; l++) {
            if (!level(l))
                continue;
            test_note(t, "%s, %d rows, at %s", quant_scheme(d.scheme)->display, (int)s->m,
                      level(l)->isa);
            run(t, level(l), &d, d.y, NULL);
            compare(t, &d);
            run(t, level(l), &d, d.again, pool);
            expect_bytes(t, d.again, d.y, (size_t)(s->m * s->n) * sizeof *d.y);
        }
        close_data(&d);
    }
    pool_destroy(pool);
}

TEST(dequant_q8, equals_the_definition_at_every_level)
{
    try_all(t, PLAIN, sizeof shapes / sizeof *shapes);
}

/* Scales that are infinite or NaN, runs without codes. */
TEST(dequant_q8, is_finite_where_the_definition_is)
{
    try_all(t, SPECIAL, 8);
}

TEST(dequant_q8, very_small_and_very_large_numbers)
{
    try_all(t, TINY, 6);
    try_all(t, HUGE, 6);
}
