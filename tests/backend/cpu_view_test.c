/* Operands read by strides: every element of a broadcast, however it is cut. */
#define CPU_ISA baseline
#include "backend/cpu/kernels/common.h"
#include "test.h"

enum { MOST = 40000 };

/* Where position k of out reads t, from the rule itself (ops-core.md 1.5). */
static int64_t source(const struct cpu_tensor *t, const struct cpu_tensor *out, int64_t k)
{
    int64_t at = 0, step = 1;

    for (int32_t a = 1; a <= out->rank; a++) {
        int64_t n = out->dim[out->rank - a], i = k % n;
        k /= n;
        if (a > t->rank)
            continue;
        if (t->dim[t->rank - a] != 1)
            at += i * step;
        step *= t->dim[t->rank - a];
    }
    return at;
}

static struct cpu_tensor tensor(rlx_dtype dtype, void *data, int32_t rank, const int64_t *dim)
{
    struct cpu_tensor t = {.dtype = dtype, .data = data, .rank = rank, .count = 1};

    for (int32_t a = 0; a < rank; a++) {
        t.dim[a] = dim[a];
        t.count *= dim[a];
    }
    return t;
}

/* How many elements come out wrong when out is read in spans of at most n. */
static int64_t misread(const struct cpu_view *v, const struct cpu_tensor *in,
                       const struct cpu_tensor *out, int64_t n)
{
    int64_t wrong = 0;
    CPU_TILE_ANY(buffer);

    for (int64_t pos = 0; pos < out->count;) {
        int64_t left = out->count - pos;
        int64_t len = cpu_view_span(v, 1, pos, left < n ? left : n);
        int step;
        const void *row = cpu_view_read(v, pos, len, buffer, &step);
        size_t size = cpu_size(in->dtype);

        for (int64_t i = 0; i < len; i++)
            wrong += memcmp((const char *)row + (size_t)(i * step) * size,
                            cpu_at(in, source(in, out, pos + i)), size) != 0;
        if (len < 1)
            return -1;
        pos += len;
    }
    return wrong;
}

struct broadcast {
    int32_t in_rank, out_rank;
    int64_t in[RLX_MAX_RANK], out[RLX_MAX_RANK];
};

static const struct broadcast broadcasts[] = {
    {0, 0, {0}, {0}},
    {0, 3, {0}, {2, 3, 5}},
    {1, 1, {1}, {1000}},
    {1, 2, {3}, {1000, 3}},
    {1, 2, {700}, {9, 700}},
    {2, 2, {9, 1}, {9, 700}},
    {2, 2, {1000, 1}, {1000, 3}},
    {4, 4, {2, 1, 4, 1}, {2, 3, 4, 5}},
    {4, 4, {1, 3, 1, 5}, {2, 3, 4, 5}},
    {3, 5, {3, 1, 130}, {2, 2, 3, 4, 130}},
    {8, 8, {2, 1, 2, 1, 2, 1, 2, 1}, {2, 3, 2, 3, 2, 3, 2, 3}},
    {8, 8, {2, 3, 2, 3, 2, 3, 2, 3}, {2, 3, 2, 3, 2, 3, 2, 3}},
};

TEST(cpu_view, a_broadcast_reads_what_the_rule_says)
{
    static const rlx_dtype types[] = {RLX_DTYPE_u8, RLX_DTYPE_f16, RLX_DTYPE_f32, RLX_DTYPE_c64};
    static const int64_t spans[] = {1, 2, 7, 511, 512, MOST};
    static uint64_t data[MOST];

    for (uint64_t i = 0; i < MOST; i++)
        data[i] = (i + 1) * 0x9e3779b97f4a7c15u;
    for (size_t b = 0; b < sizeof broadcasts / sizeof broadcasts[0]; b++)
        for (size_t d = 0; d < sizeof types / sizeof types[0]; d++)
            for (size_t s = 0; s < sizeof spans / sizeof spans[0]; s++) {
                const struct broadcast *c = &broadcasts[b];
                struct cpu_tensor in = tensor(types[d], data, c->in_rank, c->in);
                struct cpu_tensor out = tensor(types[d], NULL, c->out_rank, c->out);
                struct cpu_view v;

                cpu_view_broadcast(&v, &in, &out);
                test_note(t, "case %zu, %s, spans of %lld", b, rlx_dtype_name(types[d]),
                          (long long)spans[s]);
                expect_eq(t, misread(&v, &in, &out, spans[s]), 0);
            }
}

TEST(cpu_view, axes_that_can_be_walked_as_one_are_joined)
{
    const int64_t dim[4] = {2, 3, 1, 5};
    const int64_t dense[4] = {15, 5, 5, 1}, scalar[4] = {0, 0, 0, 0}, turned[4] = {-15, -5, 0, -1};
    const int64_t row[4] = {0, 0, 0, 1};
    struct cpu_view v;

    cpu_view_make(&v, NULL, RLX_DTYPE_f32, 4, dim, dense);
    expect_eq(t, v.rank, 1);
    expect_eq(t, v.dim[0], 30);
    expect_eq(t, v.stride[0], 1);
    cpu_view_make(&v, NULL, RLX_DTYPE_f32, 4, dim, scalar);
    expect_eq(t, v.rank, 1);
    expect_eq(t, v.stride[0], 0);
    cpu_view_make(&v, NULL, RLX_DTYPE_f32, 4, dim, turned);
    expect_eq(t, v.rank, 1);
    expect_eq(t, v.stride[0], -1);
    cpu_view_make(&v, NULL, RLX_DTYPE_f32, 4, dim, row);
    expect_eq(t, v.rank, 2);
    expect_eq(t, v.dim[0], 6);
    expect_eq(t, v.dim[1], 5);
    cpu_view_make(&v, NULL, RLX_DTYPE_f32, 0, NULL, NULL);
    expect_eq(t, v.rank, 1);
    expect_eq(t, v.dim[0], 1);
}

TEST(cpu_view, a_negative_stride_reads_backwards)
{
    const int64_t dim[1] = {6}, stride[1] = {-1};
    int16_t data[6] = {1, 2, 3, 4, 5, 6};
    struct cpu_view v;
    int step;
    CPU_TILE_ANY(buffer);

    cpu_view_make(&v, data + 5, RLX_DTYPE_i16, 1, dim, stride);
    const int16_t *row = cpu_view_read(&v, 1, 4, buffer, &step);
    expect_eq(t, step, 1);
    for (int i = 0; i < 4; i++)
        expect_eq(t, row[i], 5 - i);
}
