/* eval_solve.c: dense linear algebra on one matrix at a time (ops-core.md 10.4). */
#include <math.h>
#include <stdlib.h>

#include "ir/eval/eval.h"

static double *copy_of(struct eval_call *c, const struct eval_cell *from, int64_t count)
{
    double *to = arena_array(c->arena, double, (size_t)count);

    for (int64_t i = 0; to && i < count; i++)
        to[i] = from[i].f;
    if (!to)
        diag_no_memory(c->diag, (size_t)count * sizeof *to);
    return to;
}

static void swap_rows(double *a, int64_t columns, int64_t i, int64_t j)
{
    for (int64_t k = 0; k < columns; k++) {
        double t = a[i * columns + k];
        a[i * columns + k] = a[j * columns + k];
        a[j * columns + k] = t;
    }
}

/* Gaussian elimination with partial pivoting, in place: a becomes upper triangular, b follows.
 * Returns the sign of the row exchanges. */
static double eliminate(double *a, double *b, int64_t n, int64_t columns)
{
    double sign = 1;

    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k]))
                pivot = i;
        if (pivot != k) {
            swap_rows(a, n, k, pivot);
            swap_rows(b, columns, k, pivot);
            sign = -sign;
        }
        for (int64_t i = k + 1; i < n; i++) {
            double f = a[i * n + k] / a[k * n + k];
            if (a[i * n + k] == 0)
                continue;
            for (int64_t j = k; j < n; j++)
                a[i * n + j] -= f * a[k * n + j];
            for (int64_t j = 0; j < columns; j++)
                b[i * columns + j] -= f * b[k * columns + j];
        }
    }
    return sign;
}

static rlx_status solve(struct eval_call *c, const struct eval_cell *a, const struct eval_cell *b,
                        int64_t n, int64_t columns, struct eval_cell *x)
{
    double *u = copy_of(c, a, n * n), *y = copy_of(c, b, n * columns);

    if (!u || !y)
        return RLX_ERROR_MEMORY;
    eliminate(u, y, n, columns);
    for (int64_t i = n; i-- > 0;)
        for (int64_t j = 0; j < columns; j++) {
            double v = y[i * columns + j];
            for (int64_t k = i + 1; k < n; k++)
                v -= u[i * n + k] * x[k * columns + j].f;
            x[i * columns + j].f = v / u[i * n + i];
        }
    return RLX_OK;
}

rlx_status eval_dense_solve(struct eval_call *c)
{
    const struct eval_tensor *a = c->in[0], *b = c->in[1];
    int64_t n = a->type.dim[a->type.rank - 1], items = n ? a->count / (n * n) : 0;
    int64_t columns = items && n ? b->count / (items * n) : 0;

    for (int64_t i = 0; i < items; i++)
        TRY(solve(c, a->at + i * n * n, b->at + i * n * columns, n, columns,
                  c->out->at + i * n * columns));
    return RLX_OK;
}

rlx_status eval_cholesky(struct eval_call *c)
{
    const struct eval_cell *a = c->in[0]->at;
    struct eval_cell *l = c->out->at;
    int64_t n = c->in[0]->type.dim[0];

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double v = a[i * n + j].f;
            for (int64_t k = 0; k < j; k++)
                v -= l[i * n + k].f * l[j * n + k].f;
            l[i * n + j].f = i == j ? (v > 0 ? sqrt(v) : (double)NAN) : v / l[j * n + j].f;
        }
    return RLX_OK;
}

rlx_status eval_triangular_solve(struct eval_call *c)
{
    const struct eval_tensor *a = c->in[0], *b = c->in[1];
    bool transpose = c->attr->triangular_solve.transpose;
    bool lower = c->attr->triangular_solve.lower != transpose; /* of op(a) */
    int64_t n = a->type.dim[0], columns = n ? b->count / n : 0;

    for (int64_t s = 0; s < n; s++) {
        int64_t i = lower ? s : n - 1 - s;
        for (int64_t j = 0; j < columns; j++) {
            double v = b->at[i * columns + j].f;
            for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); k++)
                v -= a->at[transpose ? k * n + i : i * n + k].f * c->out->at[k * columns + j].f;
            c->out->at[i * columns + j].f = v / a->at[i * n + i].f;
        }
    }
    return RLX_OK;
}

rlx_status eval_det(struct eval_call *c)
{
    int64_t n = c->in[0]->type.dim[0];
    double *u = copy_of(c, c->in[0]->at, n * n), sign, product = 1, logs = 0;

    if (!u)
        return RLX_ERROR_MEMORY;
    sign = eliminate(u, NULL, n, 0);
    for (int64_t i = 0; i < n; i++) {
        product *= u[i * n + i];
        logs += log(fabs(u[i * n + i]));
    }
    c->out->at[0].f = c->op == RLX_OP_det ? sign * product : logs;
    return RLX_OK;
}
