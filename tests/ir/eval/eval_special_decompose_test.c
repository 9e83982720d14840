/* eval_special_decompose_test.c: factors that multiply back to the matrix, of matrices of all
 * shapes and ranks, with the signs that the manual gives them. */
#include "eval_special.h"

/* ---- by hand ------------------------------------------------------------------------------- */

TEST(decompose, by_hand)
{
    evals(t, 1e-6,
          "%a = const f32[2,2] {0 2 -3 0} %u = svd %a part=u %s = svd %a %v = svd %a part=vt "
          "return %u, %s, %v",
          "0 1 1 0", "3 2", "-1 0 0 1");
    evals(t, 1e-6, "%a = const f32[2,2] {-3 1 -4 2} %q = qr %a %r = qr %a part=r return %q, %r",
          "0.6 0.8 0.8 -0.6", "-5 2.2 0 -0.4");
    /* eigenvectors (1,-1)/sqrt2 and (1,1)/sqrt2, as columns; of equals the first is positive */
    evals(t, 1e-6, "%a = const f32[2,2] {2 1 1 2} %e = eigh %a return %e",
          "1 3 0.70710678 0.70710678 -0.70710678 0.70710678");
    evals(t, 1e-6,
          "%a = const f32[1,1] {-4} %u = svd %a part=u %s = svd %a %e = eigh %a "
          "%q = qr %a %r = qr %a part=r return %u, %s, %e, %q, %r",
          "1", "4", "-4 1", "1", "-4");
}

TEST(decompose, only_the_lower_triangle_counts)
{
    evals(t, 1e-6, "%a = const f32[2,2] {2 nan 1 2} %e = eigh %a return %e",
          "1 3 0.70710678 0.70710678 -0.70710678 0.70710678");
}

TEST(decompose, empty_and_not_finite)
{
    evals(
        t, 0,
        "%a = const f32[0,3] {} %u = svd %a part=u %s = svd %a %v = svd %a part=vt %q = qr %a "
        "%r = qr %a part=r %b = const f32[2,0,0] {} %e = eigh_batch %b return %u, %s, %v, %q, %r, "
        "%e",
        "", "", "", "", "", "");
    evals(
        t, 0,
        "%a = const f32[2,2] {1 inf 0 1} %s = svd %a %q = qr %a %b = const f32[1,2,2] {1 0 nan 1} "
        "%e = eigh_batch %b return %s, %q, %e",
        "nan nan", "nan nan nan nan", "nan nan nan nan nan nan");
    evals(
        t, 0,
        "%a = const f32[2,2] {0 0 0 0} %u = svd %a part=u %s = svd %a %q = qr %a %r = qr %a part=r "
        "%e = eigh %a return %u, %s, %q, %r, %e",
        "1 0 0 1", "0 0", "1 0 0 1", "0 0 0 0", "0 0 1 0 0 1");
}

/* ---- any matrix ---------------------------------------------------------------------------- */

enum kind { RANDOM, LOW_RANK, GRADED, REPEATED };

static void fill_matrix(struct eval_tensor *a, enum kind kind, uint64_t seed)
{
    int64_t n = a->type.dim[1];
    uint64_t state = seed;

    for (int64_t k = 0; k < a->count; k++) {
        double i = (double)(k / n), j = (double)(k % n);
        switch (kind) {
        case LOW_RANK: a->at[k].f = (i + 1) * (j - 2) + (i - 1); break;
        case GRADED: a->at[k].f = real_between(&state, -1, 1) * pow(10, -3 * j); break;
        case REPEATED: a->at[k].f = k / n == k % n ? 2 : 0; break;
        default: a->at[k].f = real_between(&state, -1, 1);
        }
    }
    eval_round(a);
}

/* Column j of [rows, columns] has its largest entry positive, the first of equals. */
static void expect_upright(struct test *t, const struct special *s, size_t output, int64_t from,
                           int64_t rows, int64_t columns, int64_t j)
{
    double top = 0;

    for (int64_t i = 0; i < rows; i++)
        top = fmax(top, fabs(special_out(s, output, from + i * columns + j)));
    for (int64_t i = 0; i < rows; i++) {
        double v = special_out(s, output, from + i * columns + j);
        if (fabs(v) < top * (1 - 1e-6))
            continue;
        expect(t, v > 0);
        return;
    }
}

/* Columns a and b, over all of [rows, columns]. */
static double column_product(const struct special *s, size_t output, int64_t from, int64_t rows,
                             int64_t columns, int64_t a, int64_t b)
{
    double sum = 0;

    for (int64_t i = 0; i < rows; i++)
        sum += special_out(s, output, from + i * columns + a) *
               special_out(s, output, from + i * columns + b);
    return sum;
}

static void check_factors(struct test *t, int m, int n, enum kind kind, const char *dtype,
                          double tol)
{
    char source[512];
    int64_t r = m < n ? m : n;
    struct special s;

    test_note(t, "[%d,%d] kind %d %s", m, n, (int)kind, dtype);
    snprintf(
        source, sizeof source,
        "rlx 1 graph (input %%a: %s[%d,%d]) { %%u = svd %%a part=u %%s = svd %%a "
        "%%v = svd %%a part=vt %%q = qr %%a %%r = qr %%a part=r return %%u, %%s, %%v, %%q, %%r }",
        dtype, m, n);
    if (!special_open(t, &s, source))
        return;
    const struct eval_tensor *a = special_leaf(t, &s, "a");
    fill_matrix(special_leaf(t, &s, "a"), kind, (uint64_t)(m * 31 + n));
    double size = 0;
    for (int64_t k = 0; k < a->count; k++)
        size = fmax(size, fabs(a->at[k].f));
    if (special_run(t, &s)) {
        for (int64_t k = 0; k < a->count; k++) {
            double usv = 0, qr = 0;
            for (int64_t j = 0; j < r; j++) {
                usv += special_out(&s, 0, k / n * r + j) * special_out(&s, 1, j) *
                       special_out(&s, 2, j * n + k % n);
                qr += special_out(&s, 3, k / n * r + j) * special_out(&s, 4, j * n + k % n);
            }
            expect_near(t, usv, a->at[k].f, tol * size);
            expect_near(t, qr, a->at[k].f, tol * size);
        }
        for (int64_t i = 0; i < r; i++) {
            expect(t, special_out(&s, 1, i) >= 0);
            expect(t, i == 0 || special_out(&s, 1, i) <= special_out(&s, 1, i - 1));
            expect_upright(t, &s, 0, 0, m, r, i);
            expect_upright(t, &s, 3, 0, m, r, i);
            for (int64_t j = 0; j < r; j++) {
                double rows = 0; /* of vt */
                for (int64_t k = 0; k < n; k++)
                    rows += special_out(&s, 2, i * n + k) * special_out(&s, 2, j * n + k);
                expect_near(t, rows, i == j, tol);
                expect_near(t, column_product(&s, 0, 0, m, r, i, j), i == j, tol);
                expect_near(t, column_product(&s, 3, 0, m, r, i, j), i == j, tol);
                if (j < i)
                    expect_near(t, special_out(&s, 4, i * n + j), 0, 0);
            }
        }
    }
    special_close(&s);
}

TEST(decompose, factors_multiply_back)
{
    static const int size[][2] = {{1, 1}, {5, 5}, {7, 3}, {3, 7}, {1, 4}, {4, 1}, {17, 16}};

    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
        for (int kind = RANDOM; kind <= REPEATED; kind++) {
            check_factors(t, size[i][0], size[i][1], (enum kind)kind, "f64", 1e-12);
            check_factors(t, size[i][0], size[i][1], (enum kind)kind, "f32", 1e-5);
        }
}

static void check_eigen(struct test *t, int n, enum kind kind)
{
    char source[256];
    struct special s;
    int64_t all = n + n * n;

    test_note(t, "n = %d, kind %d", n, (int)kind);
    snprintf(source, sizeof source,
             "rlx 1 graph (input %%a: f64[%d,%d]) { %%t = transpose %%a perm=[1,0] "
             "%%s = add %%a, %%t %%e = eigh %%s %%w = expand %%s shape=[2,%d,%d] "
             "%%b = eigh_batch %%w return %%s, %%e, %%b }",
             n, n, n, n);
    if (!special_open(t, &s, source))
        return;
    fill_matrix(special_leaf(t, &s, "a"), kind, (uint64_t)n);
    if (special_run(t, &s))
        for (int64_t j = 0; j < n; j++) {
            expect(t, j == 0 || special_out(&s, 1, j) >= special_out(&s, 1, j - 1));
            expect_upright(t, &s, 1, n, n, n, j);
            for (int64_t i = 0; i < n; i++) {
                double av = 0;
                for (int64_t k = 0; k < n; k++)
                    av += special_out(&s, 0, i * n + k) * special_out(&s, 1, n + k * n + j);
                expect_near(t, av, special_out(&s, 1, j) * special_out(&s, 1, n + i * n + j),
                            1e-12 * n * n);
                expect_near(t, column_product(&s, 1, n, n, n, i, j), i == j, 1e-12);
            }
            for (int64_t k = 0; k < all; k++)
                expect_near(t, special_out(&s, 2, all + k), special_out(&s, 1, k), 0);
        }
    special_close(&s);
}

TEST(decompose, eigenvectors_stay_on_their_line)
{
    for (int kind = RANDOM; kind <= REPEATED; kind++) {
        check_eigen(t, 1, (enum kind)kind);
        check_eigen(t, 2, (enum kind)kind);
        check_eigen(t, 13, (enum kind)kind);
    }
}

TEST(decompose, sizes_at_the_ends_of_f64)
{
    evals(t, 1e-12,
          "%a = const f64[2,2] {3e300 0 0 4e300} %s = svd %a %e = eigh %a %r = qr %a part=r "
          "%b = const f64[2,2] {3e-300 0 0 4e-300} %z = svd %b %k = const f64[] {1e300} "
          "%l = mul %z, %k return %s, %e, %r, %l",
          "4e300 3e300", "3e300 4e300 1 0 0 1", "3e300 0 0 4e300", "4 3");
}
