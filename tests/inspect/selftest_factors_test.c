/* selftest_factors_test.c: that the judge of factors takes every right set and no wrong one. */
#include <math.h>
#include <string.h>

#include "inspect/selftest/selftest.h"
#include "test.h"

enum { N = 3 };

/* Values 3, 2, 2: any turn of the last two vectors is right. */
static const double turned[N * N] = {1, 0, 0, 0, 0.6, 0.8, 0, 0.8, -0.6};
static const double plain[N * N] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
static const double skewed[N * N] = {1, 0, 0, 0, 1, 0.6, 0, 0, 0.8};
static const double mixed[N * N] = {0.6, 0.8, 0, 0.8, -0.6, 0, 0, 0, 1};
static const double down[N * N] = {-1, 0, 0, 0, 1, 0, 0, 0, 1};

static void tensor(struct eval_tensor *t, struct eval_cell *cell, const double *x, int64_t rows,
                   int64_t columns)
{
    *t = (struct eval_tensor){.type = {.dtype = RLX_DTYPE_f32, .rank = 2, .dim = {rows, columns}},
                              .count = rows * columns,
                              .at = cell};
    memset(cell, 0, (size_t)t->count * sizeof *cell);
    for (int64_t i = 0; i < t->count; i++)
        cell[i].f = x[i];
}

/* Is got right for the matrix with these numbers on its diagonal? want: any right answer. */
static bool judged(struct test *t, const struct ir_node *n, const double *diagonal,
                   const double *want, const double *got, int64_t count)
{
    double a[N * N] = {0};
    struct eval_cell cells[3][N + N * N];
    struct eval_tensor x, w, g;
    struct comparison c = {.worst = INFINITY, .ok = false};
    struct arena arena;
    struct diag d;

    for (int i = 0; i < N; i++)
        a[i * N + i] = diagonal[i];
    tensor(&x, cells[0], a, N, N);
    tensor(&w, cells[1], want, count / N, N);
    tensor(&g, cells[2], got, count / N, N);
    arena_init(&arena, mem_default());
    diag_init(&d, NULL);
    expect_ok(t, selftest_compare_factors(n, &x, &w, &g, &arena, &d, &c));
    arena_free(&arena);
    return c.ok;
}

TEST(selftest_factors, svd)
{
    static const double diagonal[N] = {3, 2, 2};
    static const int part[] = {RLX_SVD_PART_u, RLX_SVD_PART_vt};

    for (int i = 0; i < 2; i++) {
        struct ir_node n = {.op = RLX_OP_svd};
        n.attr.svd.part = part[i];
        test_note(t, "part %d", part[i]);
        expect(t, judged(t, &n, diagonal, plain, plain, N * N));
        expect(t, judged(t, &n, diagonal, plain, turned, N * N));
        expect(t, !judged(t, &n, diagonal, plain, skewed, N * N));
        expect(t, !judged(t, &n, diagonal, plain, mixed, N * N));
        expect(t, !judged(t, &n, diagonal, plain, down, N * N));
    }
}

/* Vectors of the right set in the wrong order. */
TEST(selftest_factors, order_counts)
{
    static const double diagonal[N] = {1, 2, 3};
    struct ir_node n = {.op = RLX_OP_svd};

    n.attr.svd.part = RLX_SVD_PART_u;
    expect(t, !judged(t, &n, diagonal, plain, plain, N * N));
}

TEST(selftest_factors, qr_of_low_rank)
{
    static const double diagonal[N] = {1, 0, 0}, r[N * N] = {1}, other[N * N] = {0.5};
    struct ir_node n = {.op = RLX_OP_qr};

    n.attr.qr.part = RLX_QR_PART_q;
    expect(t, judged(t, &n, diagonal, plain, turned, N * N));
    expect(t, !judged(t, &n, diagonal, plain, skewed, N * N));
    expect(t, !judged(t, &n, diagonal, plain, mixed, N * N));
    expect(t, !judged(t, &n, diagonal, plain, down, N * N));
    n.attr.qr.part = RLX_QR_PART_r;
    expect(t, judged(t, &n, diagonal, r, r, N * N));
    expect(t, !judged(t, &n, diagonal, r, other, N * N));
}

/* Where R is unique, its signs count. */
TEST(selftest_factors, r_of_full_rank)
{
    static const double diagonal[N] = {1, 1, 1};
    struct ir_node n = {.op = RLX_OP_qr};

    n.attr.qr.part = RLX_QR_PART_r;
    expect(t, judged(t, &n, diagonal, plain, plain, N * N));
    expect(t, !judged(t, &n, diagonal, plain, down, N * N));
}

TEST(selftest_factors, eigh)
{
    static const double diagonal[N] = {-5, 2, 2};
    double got[N + N * N];
    struct ir_node n = {.op = RLX_OP_eigh};
    static const struct {
        const double *vectors;
        bool right;
    } rows[] = {{plain, true}, {turned, true}, {skewed, false}, {mixed, false}, {down, false}};

    memcpy(got, diagonal, sizeof diagonal);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_note(t, "row %zu", i);
        memcpy(got + N, rows[i].vectors, N * N * sizeof *got);
        expect_eq(t, judged(t, &n, diagonal, got, got, N + N * N), rows[i].right);
    }
}

TEST(selftest_factors, other_ops_are_left_alone)
{
    static const double diagonal[N] = {1, 1, 1};
    struct ir_node n = {.op = RLX_OP_cholesky};

    expect(t, !judged(t, &n, diagonal, plain, plain, N * N));
}
