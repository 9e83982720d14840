/* svd.c: the thin singular value decomposition of a matrix, one part (ops-core.md 21).
 *
 * Reflections from both sides make a tall matrix bidiagonal, A = Ql B Qr^T; rotations from both
 * sides make that diagonal (bidiagonal.c), B = X S Y^T; then U = Ql X and V = Qr Y. A wide matrix
 * is transposed first, and U and V change places. In f64 throughout, on a multiple of the matrix
 * whose largest entry is near 1.
 *
 * The signs of V follow those of U, so vt needs both; s needs neither. */
#include "backend/cpu/kernels/linalg/bidiagonal.h"

enum { STRIP = 64, COLUMN_WORK = 16384, ROW_WORK = 16384 };

struct svd {
    const struct cpu_call *c;
    int64_t m, n; /* of the tall matrix, m >= n */
    bool wide, wants_u, wants_v;
    double *a;          /* [m, n] */
    double *left, *tau; /* vectors of the reflections from the left, [n, m], and factors */
    double *right, *tau_right;
    struct bidiagonal b;
    double *u, *v; /* [m, n] and [n, n]: columns are the vectors */
    int64_t *order;
};

/* The sizes, and where everything is in scratch; returns how many doubles that takes. */
static uint64_t lay_out(struct svd *s, const struct cpu_call *c)
{
    int64_t rows = c->in[0].dim[0], columns = c->in[0].dim[1];
    bool wide = rows < columns, vt = c->attr->svd.part == RLX_SVD_PART_vt;
    bool left = c->attr->svd.part == RLX_SVD_PART_u || vt; /* of what was given */
    double *p = c->scratch;
    uint64_t at = 0;

    *s = (struct svd){.c = c, .m = wide ? columns : rows, .n = wide ? rows : columns, .wide = wide};
    s->wants_u = wide ? vt : left;
    s->wants_v = wide ? left : vt;
    s->b = (struct bidiagonal){.n = s->n, .pool = c->pool};
    int64_t m = s->m, n = s->n;
    struct part {
        double **to;
        int64_t count;
    } parts[] = {
        {&s->a, m * n},
        {&s->left, s->wants_u ? m * n : m},
        {&s->right, s->wants_v ? n * n : n},
        {&s->tau, n},
        {&s->tau_right, n},
        {&s->b.d, n},
        {&s->b.e, n},
        {&s->b.ut, s->wants_u ? n * n : 0},
        {&s->b.vt, s->wants_v ? n * n : 0},
        {&s->b.angle, s->wants_u || s->wants_v ? 4 * TURNS_SWEEPS * n : 0},
        {&s->v, s->wants_v ? n * n : 0},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (p && parts[i].count)
            *parts[i].to = p + at;
        at += (uint64_t)parts[i].count;
    }
    if (p)
        s->order = (int64_t *)(void *)(p + at);
    s->u = s->a; /* which is free once it is bidiagonal */
    return at + (uint64_t)n;
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct cpu_call ask = *c;
    struct svd s;

    ask.scratch = NULL;
    return lay_out(&s, &ask) * sizeof(double);
}

/* ---- to bidiagonal ------------------------------------------------------------------------- */

/* The part of the matrix from row and column on, and the reflection that acts on it. */
struct part_job {
    double *a;
    int64_t ld, rows, columns;
    const double *v;
    double tau;
};

/* A -= tau v (v^T A), a strip of columns at a time. */
static void reflect_columns(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct part_job *j = ctx;
    double along[STRIP];

    (void)worker;
    for (int64_t from = begin; from < end; from += STRIP) {
        int64_t n = cpu_min_i64(end - from, STRIP);
        memset(along, 0, sizeof along);
        for (int64_t i = 0; i < j->rows; i++) {
            const double *row = j->a + i * j->ld + from;
            for (int64_t k = 0; k < n; k++)
                along[k] += j->v[i] * row[k];
        }
        for (int64_t i = 0; i < j->rows; i++) {
            double *row = j->a + i * j->ld + from, f = j->tau * j->v[i];
            for (int64_t k = 0; k < n; k++)
                row[k] -= f * along[k];
        }
    }
}

/* A -= tau (A v) v^T */
static void reflect_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct part_job *j = ctx;
    const double *restrict v = j->v;

    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        double *restrict row = j->a + i * j->ld;
        double f = j->tau * decompose_dot(row, v, j->columns);
        for (int64_t k = 0; k < j->columns; k++)
            row[k] -= f * v[k];
    }
}

/* Column j from the diagonal down. */
static void reduce_column(struct svd *s, int64_t j)
{
    int64_t n = s->n, rows = s->m - j, columns = n - j - 1;
    double *v = s->left + (s->wants_u ? j * s->m : 0);
    struct part_job job = {.ld = n, .rows = rows, .columns = columns, .v = v + j};

    for (int64_t i = 0; i < s->m; i++)
        v[i] = i < j ? 0 : s->a[i * n + j];
    s->b.d[j] = reflect_make(v + j, rows, &s->tau[j]);
    job.a = s->a + j * n + j + 1;
    job.tau = s->tau[j];
    if (job.tau != 0)
        cpu_for(s->c->pool, columns, cpu_max_i64(STRIP, COLUMN_WORK / rows), reflect_columns, &job);
}

/* Row j, right of the diagonal. */
static void reduce_row(struct svd *s, int64_t j)
{
    int64_t n = s->n, rows = s->m - j - 1, columns = n - j - 1;
    double *v = s->right + (s->wants_v ? j * n : 0);
    struct part_job job = {.ld = n, .rows = rows, .columns = columns, .v = v + j + 1};

    if (columns == 0)
        return;
    for (int64_t i = 0; i < n; i++)
        v[i] = i <= j ? 0 : s->a[j * n + i];
    s->b.e[j] = reflect_make(v + j + 1, columns, &s->tau_right[j]);
    job.a = s->a + (j + 1) * n + j + 1;
    job.tau = s->tau_right[j];
    if (job.tau != 0)
        cpu_for(s->c->pool, rows, cpu_max_i64(1, ROW_WORK / columns), reflect_rows, &job);
}

/* ---- vectors ------------------------------------------------------------------------------- */

/* to [rows, n] = Q [X; 0], X being the transpose of xt in the order of the values. */
static void make_vectors(const struct svd *s, double *to, int64_t rows, const double *xt,
                         const struct reflections *q, int64_t first)
{
    int64_t n = s->n;

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            to[i * n + j] = xt[s->order[j] * n + i];
    memset(to + n * n, 0, (size_t)((rows - n) * n) * sizeof *to);
    reflect_all(q, to + first * n, n, n, false, s->c->pool);
}

static bool decompose(struct svd *s)
{
    int64_t m = s->m, n = s->n;
    struct reflections left = {.v = s->left, .ld = m, .tau = s->tau, .count = n, .n = m};
    struct reflections right = {
        .v = s->right + 1, .ld = n, .tau = s->tau_right, .count = n - 1, .n = n - 1};

    for (int64_t j = 0; j < n; j++) {
        reduce_column(s, j);
        reduce_row(s, j);
    }
    if (!bidiagonal_decompose(&s->b))
        return false;
    decompose_order(s->b.d, n, true, s->order);
    if (s->wants_u)
        make_vectors(s, s->u, m, s->b.ut, &left, 0);
    if (s->wants_v)
        make_vectors(s, s->v, n, s->b.vt, &right, 1);
    return true;
}

/* ---- in and out ---------------------------------------------------------------------------- */

/* false: not finite. */
static bool load(const struct svd *s, int *exponent)
{
    const struct cpu_tensor *from = &s->c->in[0];
    int64_t count = s->m * s->n;

    if (!s->wide) {
        cpu_load_f64(from->dtype, from->data, s->a, count);
    } else {
        CPU_TILE_OF(double, tile);
        for (int64_t i = 0; i < s->n; i++)
            for (int64_t j = 0; j < s->m; j += CPU_TILE) {
                int64_t part = cpu_min_i64(CPU_TILE, s->m - j);
                cpu_load_f64(from->dtype, cpu_at(from, i * s->m + j), tile, part);
                for (int64_t k = 0; k < part; k++)
                    s->a[(j + k) * s->n + i] = tile[k];
            }
    }
    if (!decompose_exponent(s->a, count, exponent))
        return false;
    for (int64_t i = 0; i < count; i++)
        s->a[i] = ldexp(s->a[i], -*exponent);
    return true;
}

static void store_values(const struct svd *s, int exponent)
{
    for (int64_t j = 0; j < s->n; j++)
        cpu_set_f64(s->c->out->dtype, s->c->out->data, j, ldexp(s->b.d[s->order[j]], exponent));
}

/* The columns of U, or those of V as rows. */
static void store_vectors(const struct svd *s)
{
    const struct cpu_tensor *out = s->c->out;
    bool transpose = s->c->attr->svd.part == RLX_SVD_PART_vt;
    const double *left = s->wide ? s->v : s->u, *right = s->wide ? s->u : s->v;
    int64_t n = s->n, left_rows = s->wide ? n : s->m, right_rows = s->wide ? s->m : n;

    for (int64_t j = 0; j < n; j++) {
        double sign = decompose_points_down(left + j, left_rows, n) ? -1 : 1;
        for (int64_t i = 0; i < left_rows && !transpose; i++)
            cpu_set_f64(out->dtype, out->data, i * n + j, sign * left[i * n + j]);
        for (int64_t i = 0; i < right_rows && transpose; i++)
            cpu_set_f64(out->dtype, out->data, j * right_rows + i, sign * right[i * n + j]);
    }
}

static void run(const struct cpu_call *c)
{
    struct svd s;
    int exponent;

    if (c->out->count == 0)
        return;
    lay_out(&s, c);
    if (!load(&s, &exponent) || !decompose(&s)) {
        for (int64_t i = 0; i < c->out->count; i++)
            cpu_set_f64(c->out->dtype, c->out->data, i, (double)NAN);
    } else if (c->attr->svd.part == RLX_SVD_PART_s) {
        store_values(&s, exponent);
    } else {
        store_vectors(&s);
    }
}

extern const struct cpu_kernel CPU_NAME(cpu_svd);
const struct cpu_kernel CPU_NAME(cpu_svd) = {.run = run, .scratch = scratch};
