/* selftest_factors.c: whether factors of a matrix are right, where comparing entries does not tell.
 *
 * Values, and entries of R, may be off in proportion to the whole matrix. Singular vectors of equal
 * values, and columns of Q beyond the matrix's rank, may be any of a set: two right answers can
 * differ in every entry. They are judged by what they are for. With E the error that the tolerance
 * allows, |E| <= tol |A|, the parts of A + E = U S V^T obey
 *
 *     u, vt   orthonormal; and the rows of U^T A (the columns of A V) are s_i long, in order, and
 *             at right angles:  |b_i . b_j| <= |E| (s_i + s_j) + |E|^2;  no part of A is lost
 *     q       orthonormal; Q^T A is upper triangular
 *     r       upper triangular; R^T R = A^T A
 *     eigh    orthonormal; A V = V D, in order
 *
 * and the largest entry of a vector is positive (ops-core.md 21). */
#include <math.h>

#include "inspect/selftest/selftest.h"

struct matrix {
    int64_t rows, columns;
    double *at;
};

struct judge {
    struct arena *arena;
    struct diag *diag;
    struct comparison *out;
    double tol, size; /* |A| after it was divided by its largest entry */
};

static rlx_status matrix_new(const struct judge *j, int64_t rows, int64_t columns,
                             struct matrix *out)
{
    double *at = arena_alloc_array(j->arena, (size_t)rows, (size_t)columns * sizeof(double),
                                   _Alignof(double)); /* which checks the product */

    if (!at)
        return diag_no_memory(j->diag, (size_t)columns * sizeof *at);
    *out = (struct matrix){rows, columns, at};
    return RLX_OK;
}

static double column_dot(const struct matrix *a, int64_t i, const struct matrix *b, int64_t j)
{
    double sum = 0;

    for (int64_t k = 0; k < a->rows; k++)
        sum += a->at[k * a->columns + i] * b->at[k * b->columns + j];
    return sum;
}

static rlx_status transpose(const struct judge *j, const struct matrix *a, struct matrix *out)
{
    TRY(matrix_new(j, a->columns, a->rows, out));
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = 0; k < a->columns; k++)
            out->at[k * a->rows + i] = a->at[i * a->columns + k];
    return RLX_OK;
}

/* a^T b */
static rlx_status product(const struct judge *j, const struct matrix *a, const struct matrix *b,
                          struct matrix *out)
{
    TRY(matrix_new(j, a->columns, b->columns, out));
    for (int64_t i = 0; i < a->columns; i++)
        for (int64_t k = 0; k < b->columns; k++)
            out->at[i * b->columns + k] = column_dot(a, i, b, k);
    return RLX_OK;
}

static void note(const struct judge *j, int64_t position, double got, double want, double allowed)
{
    double error = fabs(got - want) / allowed;

    if (isnan(error))
        error = (double)INFINITY;
    if (error > j->out->worst)
        *j->out = (struct comparison){error, position, got, want, error <= 1};
}

/* ---- what vectors have in common ----------------------------------------------------------- */

static void expect_orthonormal(const struct judge *j, const struct matrix *x)
{
    for (int64_t i = 0; i < x->columns; i++)
        for (int64_t k = i; k < x->columns; k++)
            note(j, k, column_dot(x, i, x, k), i == k, j->tol);
}

/* One of the entries that may be the largest is positive. */
static void expect_upright(const struct judge *j, const struct matrix *x, int64_t column,
                           double allowed)
{
    double top = 0, best = -(double)INFINITY;

    for (int64_t i = 0; i < x->rows; i++)
        top = fmax(top, fabs(x->at[i * x->columns + column]));
    for (int64_t i = 0; i < x->rows; i++)
        best = fmax(best, x->at[i * x->columns + column]);
    if (best < top)
        note(j, column, best, top, 2 * allowed);
}

/* Columns of b, descending in length, at right angles, and together as large as the matrix. */
static rlx_status expect_scaled(const struct judge *j, const struct matrix *b)
{
    double e = j->tol * j->size, all = 0;
    struct matrix s;

    TRY(matrix_new(j, 1, b->columns, &s));
    for (int64_t i = 0; i < b->columns; i++) {
        s.at[i] = sqrt(column_dot(b, i, b, i));
        all += s.at[i] * s.at[i];
        if (i > 0 && s.at[i] > s.at[i - 1])
            note(j, i, s.at[i], s.at[i - 1], 2 * e);
        for (int64_t k = 0; k < i; k++)
            note(j, i, column_dot(b, k, b, i), 0, e * (s.at[i] + s.at[k]) + e * e);
    }
    note(j, 0, sqrt(all), j->size, 2 * e);
    return RLX_OK;
}

/* ---- the parts ----------------------------------------------------------------------------- */

static rlx_status judge_u(const struct judge *j, const struct matrix *a, const struct matrix *u)
{
    struct matrix b;

    TRY(product(j, a, u, &b)); /* A^T U */
    expect_orthonormal(j, u);
    for (int64_t i = 0; i < u->columns; i++)
        expect_upright(j, u, i, j->tol);
    return expect_scaled(j, &b);
}

/* A v_i = s_i u_i says which way u_i points, unless s_i is as good as 0. */
static rlx_status judge_vt(const struct judge *j, const struct matrix *a, const struct matrix *vt)
{
    struct matrix v, at, b;

    TRY(transpose(j, vt, &v));
    TRY(transpose(j, a, &at));
    TRY(product(j, &at, &v, &b)); /* A V */
    expect_orthonormal(j, &v);
    for (int64_t i = 0; i < v.columns; i++)
        expect_upright(j, &b, i, j->tol * j->size);
    return expect_scaled(j, &b);
}

static rlx_status judge_q(const struct judge *j, const struct matrix *a, const struct matrix *q)
{
    struct matrix r;

    TRY(product(j, q, a, &r));
    expect_orthonormal(j, q);
    for (int64_t i = 0; i < q->columns; i++) {
        expect_upright(j, q, i, j->tol);
        for (int64_t k = 0; k < i && k < a->columns; k++)
            note(j, i, r.at[i * a->columns + k], 0, j->tol * j->size);
    }
    return RLX_OK;
}

static rlx_status judge_r(const struct judge *j, const struct matrix *a, const struct matrix *r)
{
    struct matrix want, got;

    TRY(product(j, a, a, &want));
    TRY(product(j, r, r, &got));
    for (int64_t i = 0; i < want.rows * want.columns; i++)
        note(j, i, got.at[i], want.at[i], 2 * j->tol * j->size * j->size);
    for (int64_t i = 0; i < r->rows; i++)
        for (int64_t k = 0; k < i && k < r->columns; k++)
            note(j, i * r->columns + k, r->at[i * r->columns + k], 0, j->tol);
    return RLX_OK;
}

/* a: the lower triangle counts. d: the values, already divided as A was. */
static rlx_status judge_eigen(const struct judge *j, const struct matrix *a, const double *d,
                              const struct matrix *v)
{
    struct matrix av;

    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = 0; k < i; k++)
            a->at[k * a->rows + i] = a->at[i * a->rows + k];
    TRY(product(j, a, v, &av));
    expect_orthonormal(j, v);
    for (int64_t i = 0; i < v->columns; i++) {
        expect_upright(j, v, i, j->tol);
        if (i > 0 && d[i] < d[i - 1])
            note(j, i, d[i], d[i - 1], 2 * j->tol * j->size);
        for (int64_t k = 0; k < v->rows; k++)
            note(j, i, av.at[k * v->columns + i], d[i] * v->at[k * v->columns + i],
                 j->tol * j->size);
    }
    return RLX_OK;
}

/* ---- which of them ------------------------------------------------------------------------- */

/* One matrix of the tensor, divided by `by`. */
static rlx_status read_matrix(const struct judge *j, const struct eval_cell *from, int64_t rows,
                              int64_t columns, double by, struct matrix *out)
{
    TRY(matrix_new(j, rows, columns, out));
    for (int64_t i = 0; i < rows * columns; i++)
        out->at[i] = from[i].f / by;
    return RLX_OK;
}

static double largest(const struct eval_cell *at, int64_t count)
{
    double top = 0;

    for (int64_t i = 0; i < count; i++)
        top = fmax(top, fabs(at[i].f));
    return top > 0 ? top : 1;
}

static double length_of(const struct matrix *a)
{
    double sum = 0;

    for (int64_t i = 0; i < a->rows * a->columns; i++)
        sum += a->at[i] * a->at[i];
    return sum > 0 ? sqrt(sum) : 1;
}

static rlx_status judge_eigh(struct judge *j, const struct eval_tensor *a,
                             const struct eval_tensor *got)
{
    int64_t n = a->type.dim[a->type.rank - 1], items = a->count / (n * n);

    for (int64_t i = 0; i < items; i++) {
        const struct eval_cell *from = a->at + i * n * n, *to = got->at + i * (n + n * n);
        double scale = largest(from, n * n);
        struct matrix m, d, v;
        TRY(read_matrix(j, from, n, n, scale, &m));
        TRY(read_matrix(j, to, 1, n, scale, &d));
        TRY(read_matrix(j, to + n, n, n, 1, &v));
        j->size = length_of(&m);
        TRY(judge_eigen(j, &m, d.at, &v));
    }
    return RLX_OK;
}

/* Is R so far from a lower rank that its entries are as certain as those of the matrix? */
static bool has_full_rank(const struct eval_tensor *r)
{
    int64_t n = r->type.dim[1];
    double top = largest(r->at, r->count);

    for (int64_t i = 0; i < r->type.dim[0]; i++)
        if (fabs(r->at[i * n + i].f) < 0.01 * top)
            return false;
    return true;
}

static double tolerance(rlx_dtype t)
{
    switch (t) {
    case RLX_DTYPE_f16: return 0x1p-7;
    case RLX_DTYPE_bf16: return 0x1p-4;
    case RLX_DTYPE_f64: return 0x1p-27 * 2e-5;
    default: return 2e-5;
    }
}

static bool all_finite(const struct eval_tensor *t)
{
    for (int64_t i = 0; i < t->count; i++)
        if (!isfinite(t->at[i].f))
            return false;
    return true;
}

/* Entries in proportion to the matrix; got and want are already divided as it was. */
static void judge_entries(const struct judge *j, const double *got, const double *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        note(j, i, got[i], want[i], j->tol * j->size);
}

static rlx_status judge_factors(struct judge *j, const struct ir_node *n,
                                const struct eval_tensor *a, const struct eval_tensor *want,
                                const struct eval_tensor *got)
{
    bool qr = op_info(n->op)->family == FAMILY_qr, s = !qr && n->attr.svd.part == RLX_SVD_PART_s;
    bool r = qr && n->attr.qr.part == RLX_QR_PART_r;
    double scale = largest(a->at, a->count);
    struct matrix m, x, y;

    TRY(read_matrix(j, a->at, a->type.dim[0], a->type.dim[1], scale, &m));
    TRY(read_matrix(j, got->at, got->type.dim[0], s ? 1 : got->type.dim[1], s || r ? scale : 1,
                    &x));
    j->size = length_of(&m);
    if (s || (r && has_full_rank(want))) {
        TRY(read_matrix(j, want->at, x.rows, x.columns, scale, &y));
        judge_entries(j, x.at, y.at, want->count);
        return RLX_OK;
    }
    if (qr)
        return r ? judge_r(j, &m, &x) : judge_q(j, &m, &x);
    return n->attr.svd.part == RLX_SVD_PART_u ? judge_u(j, &m, &x) : judge_vt(j, &m, &x);
}

rlx_status selftest_compare_factors(const struct ir_node *n, const struct eval_tensor *a,
                                    const struct eval_tensor *want, const struct eval_tensor *got,
                                    struct arena *arena, struct diag *d, struct comparison *out)
{
    enum op_family family = op_info(n->op)->family;
    struct comparison verdict = {.position = -1, .ok = true};
    struct judge j = {.arena = arena, .diag = d, .out = &verdict};

    if ((family != FAMILY_svd && family != FAMILY_qr && family != FAMILY_eigh) || !a ||
        !all_finite(want) || !all_finite(got) || !all_finite(a))
        return RLX_OK;
    j.tol = tolerance(want->type.dtype);
    TRY(family == FAMILY_eigh ? judge_eigh(&j, a, got) : judge_factors(&j, n, a, want, got));
    *out = verdict;
    return RLX_OK;
}
