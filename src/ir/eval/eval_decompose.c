/* eval_decompose.c: singular values, QR factors and eigenvectors of one matrix at a time, by Jacobi
 * rotations and Gram-Schmidt (ops-core.md 21).
 *
 * Matrices are row-major arrays of doubles; a vector is a column. Every result column of U, of Q
 * and of the eigenvectors has its largest entry positive, and V and R follow. A matrix that holds a
 * NaN or an infinity has no factors: all of them are NaN. */
#include <math.h>

#include "ir/eval/eval.h"

#define MOST_SWEEPS 60 /* a handful suffices; this ends the rest */

struct matrix {
    int64_t rows, columns;
    double *at;
};

static rlx_status matrix_new(struct eval_call *c, int64_t rows, int64_t columns, struct matrix *out)
{
    double *at = arena_alloc_array(c->arena, (size_t)rows, (size_t)columns * sizeof(double),
                                   _Alignof(double)); /* which checks the product */

    if (!at)
        return diag_no_memory(c->diag, (size_t)columns * sizeof *at);
    *out = (struct matrix){rows, columns, at};
    return RLX_OK;
}

static void set_identity(struct matrix *m)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->columns; j++)
            m->at[i * m->columns + j] = i == j;
}

static double column_dot(const struct matrix *m, int64_t a, int64_t b)
{
    double sum = 0;

    for (int64_t i = 0; i < m->rows; i++)
        sum += m->at[i * m->columns + a] * m->at[i * m->columns + b];
    return sum;
}

static double column_norm(const struct matrix *m, int64_t j)
{
    return sqrt(column_dot(m, j, j));
}

static void scale_column(struct matrix *m, int64_t j, double by)
{
    for (int64_t i = 0; i < m->rows; i++)
        m->at[i * m->columns + j] *= by;
}

/* p' = cos p - sin q, q' = sin p + cos q. */
static void turn_columns(struct matrix *m, int64_t p, int64_t q, double cosine, double sine)
{
    for (int64_t i = 0; i < m->rows; i++) {
        double *row = m->at + i * m->columns, was = row[p];
        row[p] = cosine * was - sine * row[q];
        row[q] = sine * was + cosine * row[q];
    }
}

/* The rotation that makes [[a,g],[g,b]] diagonal, g not 0, by the smaller of the two angles. */
static void rotation(double a, double b, double g, double *cosine, double *sine)
{
    double zeta = (b - a) / (2 * g);
    double t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + sqrt(1 + zeta * zeta));

    *cosine = 1 / sqrt(1 + t * t);
    *sine = *cosine * t;
}

/* Is the largest entry of the column negative? Of equals the first decides; what is equal on paper
 * is only nearly so after rounding. */
static bool points_down(const struct matrix *m, int64_t j)
{
    double top = 0;

    for (int64_t i = 0; i < m->rows; i++)
        top = fmax(top, fabs(m->at[i * m->columns + j]));
    for (int64_t i = 0; i < m->rows; i++)
        if (fabs(m->at[i * m->columns + j]) >= top * (1 - 1e-10))
            return m->at[i * m->columns + j] < 0;
    return false;
}

/* Raise *top to the largest magnitude, by which all is divided lest squares overflow. false: not
 * all are finite. */
static bool measure(const struct eval_cell *a, int64_t count, double *top)
{
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(a[i].f))
            return false;
        *top = fmax(*top, fabs(a[i].f));
    }
    return true;
}

static rlx_status fill_nan(struct eval_cell *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i].f = NAN;
    return RLX_OK;
}

/* ---- right angles -------------------------------------------------------------------------- */

/* Take out of column j what lies along those before it. Once leaves rounding errors; twice does
 * not. */
static void project_out(struct matrix *q, int64_t j)
{
    for (int pass = 0; pass < 2; pass++)
        for (int64_t k = 0; k < j; k++) {
            double along = column_dot(q, k, j);
            for (int64_t i = 0; i < q->rows; i++)
                q->at[i * q->columns + j] -= along * q->at[i * q->columns + k];
        }
}

/* Make column j a unit vector at right angles to those before it. Where less than `least` of it is
 * left, the axis that is farthest from them takes its place. */
static void orthonormal_column(struct matrix *q, int64_t j, double least)
{
    double before = column_norm(q, j);

    project_out(q, j);
    if (!(column_norm(q, j) > least * before)) {
        int64_t axis = 0;
        double closest = INFINITY;
        for (int64_t i = 0; i < q->rows; i++) {
            double covered = 0;
            for (int64_t k = 0; k < j; k++)
                covered += q->at[i * q->columns + k] * q->at[i * q->columns + k];
            if (covered < closest) {
                closest = covered;
                axis = i;
            }
        }
        for (int64_t i = 0; i < q->rows; i++)
            q->at[i * q->columns + j] = i == axis;
        project_out(q, j);
    }
    scale_column(q, j, 1 / column_norm(q, j));
}

/* ---- qr ------------------------------------------------------------------------------------ */

rlx_status eval_qr(struct eval_call *c)
{
    const struct eval_cell *a = c->in[0]->at;
    int64_t m = c->in[0]->type.dim[0], n = c->in[0]->type.dim[1], t = m < n ? m : n;
    double scale = 0;
    struct matrix q;

    if (c->out->count == 0)
        return RLX_OK;
    if (!measure(a, c->in[0]->count, &scale))
        return fill_nan(c->out->at, c->out->count);
    scale = scale > 0 ? scale : 1;
    TRY(matrix_new(c, m, t, &q));
    for (int64_t j = 0; j < t; j++) {
        for (int64_t i = 0; i < m; i++)
            q.at[i * t + j] = a[i * n + j].f / scale;
        orthonormal_column(&q, j, 1e-13);
        if (points_down(&q, j))
            scale_column(&q, j, -1);
    }
    for (int64_t k = 0; k < c->out->count; k++) {
        if (c->attr->qr.part == RLX_QR_PART_q) {
            c->out->at[k].f = q.at[k];
            continue;
        }
        for (int64_t i = 0; k / n <= k % n && i < m; i++) /* R = Q^T A, zero below the diagonal */
            c->out->at[k].f += q.at[i * t + k / n] * a[i * n + k % n].f;
    }
    return RLX_OK;
}

/* ---- svd ----------------------------------------------------------------------------------- */

/* Turn pairs of columns of w until all are at right angles; v follows. */
static void turn_until_orthogonal(struct matrix *w, struct matrix *v)
{
    bool turned = true;

    for (int sweep = 0; turned && sweep < MOST_SWEEPS; sweep++) {
        turned = false;
        for (int64_t p = 0; p < w->columns; p++)
            for (int64_t q = p + 1; q < w->columns; q++) {
                double a = column_dot(w, p, p), b = column_dot(w, q, q), g = column_dot(w, p, q);
                double cosine, sine;
                if (!(fabs(g) > 1e-15 * sqrt(a) * sqrt(b)))
                    continue;
                rotation(a, b, g, &cosine, &sine);
                turn_columns(w, p, q, cosine, sine);
                turn_columns(v, p, q, cosine, sine);
                turned = true;
            }
    }
}

static void swap_columns(struct matrix *m, int64_t a, int64_t b)
{
    for (int64_t i = 0; i < m->rows; i++) {
        double was = m->at[i * m->columns + a];
        m->at[i * m->columns + a] = m->at[i * m->columns + b];
        m->at[i * m->columns + b] = was;
    }
}

/* Put the largest (or smallest) value first; the vectors go along. */
static void order_values(double *value, int64_t n, bool descending, struct matrix *a,
                         struct matrix *b)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t best = i;
        for (int64_t j = i + 1; j < n; j++)
            if (descending ? value[j] > value[best] : value[j] < value[best])
                best = j;
        double was = value[i];
        value[i] = value[best];
        value[best] = was;
        swap_columns(a, i, best);
        if (b)
            swap_columns(b, i, best);
    }
}

/* A tall matrix w = U diag(s) V^T: w becomes U. */
static void decompose(struct matrix *w, struct matrix *v, double *s)
{
    set_identity(v);
    turn_until_orthogonal(w, v);
    for (int64_t j = 0; j < w->columns; j++)
        s[j] = column_norm(w, j);
    order_values(s, w->columns, true, w, v);
    for (int64_t j = 0; j < w->columns; j++) {
        if (s[j] > 0)
            scale_column(w, j, 1 / s[j]);
        orthonormal_column(w, j, 0.5); /* only where s is 0 is there anything to do */
    }
}

rlx_status eval_svd(struct eval_call *c)
{
    const struct eval_cell *a = c->in[0]->at;
    int64_t m = c->in[0]->type.dim[0], n = c->in[0]->type.dim[1], t = m < n ? m : n;
    bool wide = m < n; /* then of the transpose: U and V change places */
    double scale = 0;
    struct matrix w, v, s;

    if (c->out->count == 0)
        return RLX_OK;
    if (!measure(a, c->in[0]->count, &scale))
        return fill_nan(c->out->at, c->out->count);
    scale = scale > 0 ? scale : 1;
    TRY(matrix_new(c, wide ? n : m, t, &w));
    TRY(matrix_new(c, t, t, &v));
    TRY(matrix_new(c, 1, t, &s));
    for (int64_t k = 0; k < m * n; k++)
        w.at[wide ? k % n * t + k / n : k] = a[k].f / scale;
    decompose(&w, &v, s.at);
    const struct matrix *left = wide ? &v : &w, *right = wide ? &w : &v;
    for (int64_t j = 0; j < t; j++) {
        double sign = points_down(left, j) ? -1 : 1;
        if (c->attr->svd.part == RLX_SVD_PART_s)
            c->out->at[j].f = s.at[j] * scale;
        for (int64_t i = 0; c->attr->svd.part == RLX_SVD_PART_u && i < m; i++)
            c->out->at[i * t + j].f = sign * left->at[i * t + j];
        for (int64_t i = 0; c->attr->svd.part == RLX_SVD_PART_vt && i < n; i++)
            c->out->at[j * n + i].f = sign * right->at[i * t + j];
    }
    return RLX_OK;
}

/* ---- eigh ---------------------------------------------------------------------------------- */

/* J^T A J for the rotation of axes p and q. */
static void turn_both_ways(struct matrix *a, int64_t p, int64_t q, double cosine, double sine)
{
    double *rp = a->at + p * a->columns, *rq = a->at + q * a->columns;

    turn_columns(a, p, q, cosine, sine);
    for (int64_t j = 0; j < a->columns; j++) {
        double was = rp[j];
        rp[j] = cosine * was - sine * rq[j];
        rq[j] = sine * was + cosine * rq[j];
    }
    rp[q] = rq[p] = 0; /* which is what the angle was for */
}

/* Turn pairs of axes until a is diagonal; v gathers the turns. Elements of a are at most 1. */
static void turn_until_diagonal(struct matrix *a, struct matrix *v)
{
    int64_t n = a->rows;
    bool turned = true;

    for (int sweep = 0; turned && sweep < MOST_SWEEPS; sweep++) {
        turned = false;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                double g = a->at[p * n + q], cosine, sine;
                if (!(fabs(g) > 1e-18))
                    continue;
                rotation(a->at[p * n + p], a->at[q * n + q], g, &cosine, &sine);
                turn_both_ways(a, p, q, cosine, sine);
                turn_columns(v, p, q, cosine, sine);
                turned = true;
            }
    }
}

/* [n,n] -> n values and n n entries of vectors. Only the lower triangle is read. */
static void eigen(const struct eval_cell *from, struct matrix *a, struct matrix *v, double *value,
                  struct eval_cell *to)
{
    int64_t n = a->rows;
    double scale = 0;

    for (int64_t i = 0; i < n; i++)
        if (!measure(from + i * n, i + 1, &scale)) {
            fill_nan(to, n + n * n);
            return;
        }
    scale = scale > 0 ? scale : 1;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            a->at[i * n + j] = a->at[j * n + i] = from[i * n + j].f / scale;
    set_identity(v);
    turn_until_diagonal(a, v);
    for (int64_t j = 0; j < n; j++)
        value[j] = a->at[j * n + j];
    order_values(value, n, false, v, NULL);
    for (int64_t j = 0; j < n; j++) {
        double sign = points_down(v, j) ? -1 : 1;
        to[j].f = value[j] * scale;
        for (int64_t i = 0; i < n; i++)
            to[n + i * n + j].f = sign * v->at[i * n + j];
    }
}

rlx_status eval_eigh(struct eval_call *c)
{
    const struct eval_tensor *from = c->in[0];
    int64_t n = from->type.dim[from->type.rank - 1];
    struct matrix a, v, value;

    if (from->count == 0)
        return RLX_OK;
    TRY(matrix_new(c, n, n, &a));
    TRY(matrix_new(c, n, n, &v));
    TRY(matrix_new(c, 1, n, &value));
    for (int64_t i = 0; i < from->count / (n * n); i++)
        eigen(from->at + i * n * n, &a, &v, value.at, c->out->at + i * (n + n * n));
    return RLX_OK;
}
