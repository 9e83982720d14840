/* sample_test.c: that draws follow the filtered softmax (ops-special.md 11.5), stay inside the
 * filter, and are the same for any number of threads. */
#include "test.h"

#include "backend/cpu/cpu_kernel.h"

#include <math.h>
#include <string.h>

extern const struct cpu_kernel cpu_sample_baseline;

enum { V = 12, DRAWS = 100000 };

static const float logits[V] = {1.0f, -0.5f, 2.0f, 0.25f, 1.75f, -3.0f,
                                0.0f, 1.0f,  0.5f, -1.0f, 2.25f, -(float)INFINITY};

struct filter {
    int64_t top_k;
    float top_p, min_p, temperature;
};

static const struct filter filters[] = {
    {0, 1, 0, 1},           {0, 1, 0, 0.5f},          {5, 1, 0, 1},        {0, 0.8f, 0, 1},
    {0, 1, 0.3f, 1},        {0, 0.7f, 0.1f, 1.3f},    {6, 1, 0.25f, 0.8f}, {7, 0.6f, 0, 2},
    {8, 0.9f, 0.05f, 0.9f}, {V + 9, 0.95f, 0.02f, 1},
};

/* The probabilities by the manual's steps, in double: temperature, top_k, min_p, softmax, top_p. */
static void probabilities(const struct filter *f, double *p)
{
    int order[V];
    double z[V], sum = 0, running = 0, kept = 0;
    int64_t k = f->top_k > 0 && f->top_k < V ? f->top_k : V, count;

    for (int i = 0; i < V; i++) {
        int at = i;
        z[i] = (double)logits[i] / (double)f->temperature;
        p[i] = 0;
        for (; at > 0 && z[order[at - 1]] < z[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    while (k > 1 && exp(z[order[k - 1]] - z[order[0]]) < (double)f->min_p)
        k--;
    for (int64_t i = 0; i < k; i++)
        sum += exp(z[order[i]] - z[order[0]]);
    for (count = 0; count < k && (count == 0 || running < (double)f->top_p); count++) {
        p[order[count]] = exp(z[order[count]] - z[order[0]]) / sum;
        running += p[order[count]];
    }
    for (int i = 0; i < V; i++)
        kept += p[i];
    for (int i = 0; i < V; i++)
        p[i] /= kept;
}

static union ir_attr attr_of(const struct filter *f, uint64_t seed)
{
    union ir_attr a;

    memset(&a, 0, sizeof a);
    a.sample.top_k = f->top_k;
    a.sample.top_p = f->top_p;
    a.sample.min_p = f->min_p;
    a.sample.temperature = f->temperature;
    a.sample.seed = seed;
    a.sample.index_dtype = RLX_DTYPE_i32;
    return a;
}

/* Rows of n logits; offset NULL: none. */
static void draw(struct test *t, const union ir_attr *a, const float *from, int64_t rows, int64_t n,
                 uint64_t *offset, struct pool *pool, int32_t *out)
{
    struct cpu_tensor in[2] = {
        {.dtype = RLX_DTYPE_f32, .rank = 2, .dim = {rows, n}, .count = rows * n},
        {.data = offset, .dtype = RLX_DTYPE_u64, .count = 1}};
    struct cpu_tensor y = {
        .data = out, .dtype = RLX_DTYPE_i32, .rank = 1, .dim = {rows}, .count = rows};
    struct cpu_call c = {.op = RLX_OP_sample,
                         .attr = a,
                         .in_count = offset ? 2 : 1,
                         .in = in,
                         .out = &y,
                         .pool = pool};
    size_t bytes = (size_t)cpu_sample_baseline.scratch(&c);

    in[0].data = (void *)(uintptr_t)from;
    c.scratch = mem_alloc_aligned(mem_default(), bytes, 64);
    require(t, bytes == 0 || c.scratch);
    cpu_sample_baseline.run(&c);
    mem_free_aligned(mem_default(), c.scratch, bytes, 64);
}

/* Far beyond what chance explains once in ten thousand times. */
static void expect_chance(struct test *t, const struct filter *f, const int64_t *seen)
{
    double p[V], chi = 0, degrees = -1;

    probabilities(f, p);
    for (int i = 0; i < V; i++) {
        double want = p[i] * DRAWS, gap = (double)seen[i] - want;
        if (p[i] == 0) {
            expect_eq(t, seen[i], 0);
            continue;
        }
        chi += gap * gap / want;
        degrees++;
    }
    expect(t, chi < degrees + 4 * sqrt(2 * degrees) + 8);
}

TEST(sample, follows_the_filtered_softmax_over_seeds)
{
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        int64_t seen[V] = {0};
        test_note(t, "filter %zu", i);
        for (uint64_t seed = 0; seed < DRAWS; seed++) {
            union ir_attr a = attr_of(&filters[i], seed * 0x9e3779b97f4a7c15u);
            int32_t token = -1;
            draw(t, &a, logits, 1, V, NULL, NULL, &token);
            require(t, token >= 0 && token < V);
            seen[token]++;
        }
        expect_chance(t, &filters[i], seen);
    }
}

TEST(sample, follows_the_filtered_softmax_over_offsets)
{
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        union ir_attr a = attr_of(&filters[i], 42);
        int64_t seen[V] = {0};
        test_note(t, "filter %zu", i);
        for (uint64_t offset = 0; offset < DRAWS; offset++) {
            int32_t token = -1;
            draw(t, &a, logits, 1, V, &offset, NULL, &token);
            require(t, token >= 0 && token < V);
            seen[token]++;
        }
        expect_chance(t, &filters[i], seen);
    }
}

/* 70 rows of 3000: past the first ones that are tried, so that whole rows are sorted too. */
TEST(sample, threads_do_not_show)
{
    enum { ROWS = 70, N = 3000 };
    static float x[ROWS * N];
    static int32_t first[ROWS], again[ROWS];
    struct diag d;
    struct pool *pool;
    uint64_t offset = 5;
    uint32_t state = 1;

    for (int i = 0; i < ROWS * N; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-22f; /* 0 to 4, so that top_p needs many */
    }
    diag_init(&d, NULL);
    require_ok(t, pool_create(&pool, 3, mem_default(), &d));
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        union ir_attr a = attr_of(&filters[i], 99);
        test_note(t, "filter %zu", i);
        draw(t, &a, x, ROWS, N, &offset, NULL, first);
        draw(t, &a, x, ROWS, N, &offset, pool, again);
        expect_bytes(t, again, first, sizeof first);
        draw(t, &a, x, ROWS, N, &offset, pool, again); /* equal seed and offset, equal tokens */
        expect_bytes(t, again, first, sizeof first);
    }
    pool_destroy(pool);
}

TEST(sample, min_p_keeps_the_largest_and_its_equals)
{
    static const float x[4] = {1, 3, 3, 2.9f};
    union ir_attr a = attr_of(&(struct filter){0, 1, 1, 1}, 0);

    for (uint64_t seed = 0; seed < 200; seed++) {
        int32_t token = -1;
        a.sample.seed = seed;
        draw(t, &a, x, 1, 4, NULL, NULL, &token);
        expect(t, token == 1 || token == 2);
    }
}
