/* fft_rows_core.h: rows of points as lanes of vectors and back, and the ways to transform them.
 * Included once per type, after fft_core.h, with FFT_EVEN and FFT_ODD (elements 0, 2, ... and 1,
 * 3, ... of two vectors), FFT_LOW and FFT_HIGH (their first and last halves, zipped). */

typedef FFT_V FFT(loose) __attribute__((aligned(sizeof(FFT_T)), may_alias));

enum { FFT(LANES) = GEMM_VEC / sizeof(FFT_T) };
#define LANES FFT(LANES)

/* How a row's points lie: parts apart, or pairs of which the first is what the transform takes for
 * the real part, or the second. A constant wherever loops are made from it. */
enum FFT(kind) { FFT(APART), FFT(PAIRS), FFT(SWAPPED) };

struct FFT(row) {
    FFT_T *re, *im;
    enum FFT(kind) kind;
};

static struct FFT(row) FFT(row_of)(const struct fft_end *e, int64_t row)
{
    struct FFT(row)
        x = {(FFT_T *)e->re + row * e->stride, (FFT_T *)e->im + row * e->stride, FFT(APART)};

    if (e->step == 2)
        x.kind = x.re < x.im ? FFT(PAIRS) : FFT(SWAPPED);
    return x;
}

FFT_INLINE PAIR FFT(get)(const struct FFT(row) * x, enum FFT(kind) kind, int64_t at)
{
    if (kind == FFT(APART))
        return (PAIR){*(const FFT(loose) *)(x->re + at), *(const FFT(loose) *)(x->im + at)};
    const FFT_T *p = (kind == FFT(PAIRS) ? x->re : x->im) + 2 * at;
    FFT_V a = *(const FFT(loose) *)p, b = *(const FFT(loose) *)(p + LANES);
    FFT_V even = FFT_EVEN(a, b), odd = FFT_ODD(a, b);
    return kind == FFT(PAIRS) ? (PAIR){even, odd} : (PAIR){odd, even};
}

FFT_INLINE void FFT(put)(const struct FFT(row) * x, enum FFT(kind) kind, int64_t at, PAIR v)
{
    if (kind == FFT(APART)) {
        *(FFT(loose) *)(x->re + at) = v.re;
        *(FFT(loose) *)(x->im + at) = v.im;
        return;
    }
    FFT_T *p = (kind == FFT(PAIRS) ? x->re : x->im) + 2 * at;
    FFT_V first = kind == FFT(PAIRS) ? v.re : v.im, second = kind == FFT(PAIRS) ? v.im : v.re;
    *(FFT(loose) *)p = FFT_LOW(first, second);
    *(FFT(loose) *)(p + LANES) = FFT_HIGH(first, second);
}

/* The same for n < LANES points; the other lanes are 0. */
static PAIR FFT(get_few)(const struct FFT(row) * x, int64_t at, int64_t n)
{
    int64_t step = x->kind == FFT(APART) ? 1 : 2;
    PAIR v = {{0}, {0}};

    for (int64_t i = 0; i < n; i++) {
        v.re[i] = x->re[(at + i) * step];
        v.im[i] = x->im[(at + i) * step];
    }
    return v;
}

static void FFT(put_few)(const struct FFT(row) * x, int64_t at, int64_t n, PAIR v)
{
    int64_t step = x->kind == FFT(APART) ? 1 : 2;

    for (int64_t i = 0; i < n; i++) {
        x->re[(at + i) * step] = v.re[i];
        x->im[(at + i) * step] = v.im[i];
    }
}

/* A square, turned around: its halves are zipped as often as LANES can be halved. */
FFT_INLINE void FFT(transpose)(FFT_V *row)
{
    GEMM_UNROLL
    for (int left = LANES; left > 1; left /= 2) {
        FFT_V zipped[LANES];
        GEMM_UNROLL
        for (int i = 0; i < LANES / 2; i++) {
            zipped[2 * i] = FFT_LOW(row[i], row[i + LANES / 2]);
            zipped[2 * i + 1] = FFT_HIGH(row[i], row[i + LANES / 2]);
        }
        GEMM_UNROLL
        for (int i = 0; i < LANES; i++)
            row[i] = zipped[i];
    }
}

FFT_INLINE void FFT(transpose_pairs)(PAIR *x)
{
    FFT_V part[LANES];

    GEMM_UNROLL
    for (int i = 0; i < LANES; i++)
        part[i] = x[i].re;
    FFT(transpose)(part);
    GEMM_UNROLL
    for (int i = 0; i < LANES; i++)
        x[i].re = part[i], part[i] = x[i].im;
    FFT(transpose)(part);
    GEMM_UNROLL
    for (int i = 0; i < LANES; i++)
        x[i].im = part[i];
}

/* ---- a row as a matrix ---------------------------------------------------------------------- */

/* What a worker has for itself: two columns of vectors; and a row's matrix, turned so that lanes
 * are rows: [blocks of n1, n2, lanes]. */
struct FFT(matrix) {
    const struct fft_run *run;
    const FFT_T *table;
    struct FFT(row) in, out;
    FFT_T scale;
    PAIR *column, *turned;
    int64_t longest; /* vectors of a column */
};

FFT_INLINE void FFT(read_columns)(const struct FFT(row) * x, enum FFT(kind) kind, int64_t rows,
                                  int64_t stride, PAIR *to)
{
    for (int64_t i = 0; i < rows; i++)
        to[i] = FFT(get)(x, kind, i * stride);
}

/* Points at, at + stride, ... of the row and the lanes - 1 (or n - 1) right of each. */
static void FFT(read_block)(const struct FFT(row) * x, int64_t at, int64_t n, int64_t rows,
                            int64_t stride, PAIR *to)
{
    int64_t step = x->kind == FFT(APART) ? 1 : 2;
    struct FFT(row) from = {x->re + at * step, x->im + at * step, x->kind};

    if (n < LANES) {
        for (int64_t i = 0; i < rows; i++)
            to[i] = FFT(get_few)(&from, i * stride, n);
    } else if (x->kind == FFT(APART)) {
        FFT(read_columns)(&from, FFT(APART), rows, stride, to);
    } else if (x->kind == FFT(PAIRS)) {
        FFT(read_columns)(&from, FFT(PAIRS), rows, stride, to);
    } else {
        FFT(read_columns)(&from, FFT(SWAPPED), rows, stride, to);
    }
}

FFT_INLINE void FFT(write_columns)(const struct FFT(row) * x, enum FFT(kind) kind, int64_t rows,
                                   int64_t stride, FFT_T scale, const PAIR *from)
{
    FFT_V s = FFT_SPLAT(scale);

    for (int64_t i = 0; i < rows; i++)
        FFT(put)(x, kind, i * stride, (PAIR){from[i].re * s, from[i].im * s});
}

static void FFT(write_block)(const struct FFT(row) * x, int64_t at, int64_t n, int64_t rows,
                             int64_t stride, FFT_T scale, const PAIR *from)
{
    int64_t step = x->kind == FFT(APART) ? 1 : 2;
    struct FFT(row) to = {x->re + at * step, x->im + at * step, x->kind};

    if (n < LANES) {
        for (int64_t i = 0; i < rows; i++)
            FFT(put_few)(&to, i * stride, n, (PAIR){from[i].re * scale, from[i].im * scale});
    } else if (x->kind == FFT(APART)) {
        FFT(write_columns)(&to, FFT(APART), rows, stride, scale, from);
    } else if (x->kind == FFT(PAIRS)) {
        FFT(write_columns)(&to, FFT(PAIRS), rows, stride, scale, from);
    } else {
        FFT(write_columns)(&to, FFT(SWAPPED), rows, stride, scale, from);
    }
}

/* n1 transformed columns of block b: twisted, and turned into rows of the matrix. */
static void FFT(turn_block)(const struct FFT(matrix) * x, int64_t b, int64_t n, const PAIR *from)
{
    const struct fft_plan *p = x->run->plan;
    const FFT_T *block = x->table + p->block_twist + 2 * p->n1 * b;
    const PAIR *lane = (const PAIR *)(const void *)(x->table + p->lane_twist);

    for (int64_t k = 0; k < p->n1; k += LANES) {
        PAIR square[LANES] = {0}, *to = x->turned + k / LANES * p->n2 + b * LANES;
        int64_t rows = cpu_min_i64(LANES, p->n1 - k);
        for (int64_t i = 0; i < rows; i++) {
            PAIR w = FFT(mul)(lane[k + i], FFT_SPLAT(block[2 * (k + i)]),
                              FFT_SPLAT(block[2 * (k + i) + 1]));
            square[i] = FFT(mul)(from[k + i], w.re, w.im);
        }
        FFT(transpose_pairs)(square);
        memcpy(to, square, (size_t)n * sizeof *to);
    }
}

static void FFT(first_half)(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct FFT(matrix) *x = ctx;
    const struct fft_plan *p = x->run->plan;
    PAIR *a = x->column + 2 * worker * x->longest, *b = a + x->longest;

    for (int64_t i = begin; i < end; i++) {
        int64_t n = cpu_min_i64(LANES, p->n2 - i * LANES);
        FFT(read_block)(&x->in, i * LANES, n, p->n1, p->n2, a);
        FFT(columns)(&p->first, x->table, a, b);
        FFT(turn_block)(x, i, n, b);
    }
}

static void FFT(second_half)(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct FFT(matrix) *x = ctx;
    const struct fft_plan *p = x->run->plan;
    PAIR *b = x->column + 2 * worker * x->longest;

    for (int64_t i = begin; i < end; i++) {
        int64_t n = cpu_min_i64(LANES, p->n1 - i * LANES);
        FFT(columns)(&p->second, x->table, x->turned + i * p->n2, b);
        FFT(write_block)(&x->out, i * LANES, n, p->n2, p->n1, x->scale, b);
    }
}

/* m points from x->in to x->out, which may be the same. */
static void FFT(transform_matrix)(struct FFT(matrix) * x, struct pool *pool)
{
    const struct fft_plan *p = x->run->plan;
    int64_t grain1 = cpu_max_i64(1, 4096 / (p->n1 * LANES));
    int64_t grain2 = cpu_max_i64(1, 4096 / (p->n2 * LANES));

    cpu_for(pool, fft_blocks(p->n2, LANES), grain1, FFT(first_half), x);
    cpu_for(pool, fft_blocks(p->n1, LANES), grain2, FFT(second_half), x);
}

/* ---- rows with a chirp ---------------------------------------------------------------------- */

struct FFT(product) {
    struct FFT(row) a, out;
    const FFT_T *w; /* pairs */
    FFT_T scale;
};

/* out = a w, point by point; out may be a. */
static void FFT(multiply)(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct FFT(product) *x = ctx;
    int64_t from = x->a.kind == FFT(APART) ? 1 : 2, to = x->out.kind == FFT(APART) ? 1 : 2;

    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        FFT_T re = x->a.re[i * from], im = x->a.im[i * from];
        FFT_T c = x->w[2 * i], s = x->w[2 * i + 1];
        x->out.re[i * to] = (re * c - im * s) * x->scale;
        x->out.im[i * to] = (re * s + im * c) * x->scale;
    }
}

enum { FFT(GRAIN) = 16384 };

/* One row of n points as a convolution of m. room: m points. */
static void FFT(chirp_row)(struct FFT(matrix) * x, FFT_T *room, struct pool *pool)
{
    const struct fft_plan *p = x->run->plan;
    struct FFT(row) in = x->in, out = x->out, mid = {room, room + p->m, FFT(APART)};
    struct FFT(row) swapped = {mid.im, mid.re, FFT(APART)};
    FFT_T scale = x->scale;

    struct FFT(product) before = {in, mid, x->table + p->chirp, 1};
    cpu_for(pool, p->n, FFT(GRAIN), FFT(multiply), &before);
    memset(mid.re + p->n, 0, (size_t)(p->m - p->n) * sizeof(FFT_T));
    memset(mid.im + p->n, 0, (size_t)(p->m - p->n) * sizeof(FFT_T));
    x->in = x->out = mid;
    x->scale = 1;
    FFT(transform_matrix)(x, pool);
    struct FFT(product) between = {mid, mid, x->table + p->spectrum, 1};
    cpu_for(pool, p->m, FFT(GRAIN), FFT(multiply), &between);
    x->in = x->out = swapped;
    FFT(transform_matrix)(x, pool);
    struct FFT(product) after = {mid, out, x->table + p->chirp, scale};
    cpu_for(pool, p->n, FFT(GRAIN), FFT(multiply), &after);
}

struct FFT(rows) {
    const struct fft_run *run;
    struct pool *pool; /* for what is in a row; NULL: the rows are shared out */
};

static void FFT(matrix_rows)(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct FFT(rows) *rows = ctx;
    const struct fft_run *run = rows->run;
    const struct fft_plan *p = run->plan;
    int64_t longest = cpu_max_i64(p->n1, p->n2), own = rows->pool ? 0 : worker;
    int64_t threads = run->pool ? pool_threads(run->pool) : 1;
    int64_t matrix = fft_blocks(p->n1, LANES) * p->n2;
    int64_t room = p->is_chirp ? fft_blocks(p->m, LANES) : 0;
    PAIR *column = run->scratch;
    struct FFT(matrix) x = {.run = run, .table = run->table, .longest = longest};

    x.column = column + 2 * own * longest;
    x.turned = column + 2 * threads * longest + own * (matrix + room);
    for (int64_t r = begin; r < end; r++) {
        x.in = FFT(row_of)(&run->in, r);
        x.out = FFT(row_of)(&run->out, r);
        x.scale = (FFT_T)run->scale;
        if (p->is_chirp)
            FFT(chirp_row)(&x, (FFT_T *)(void *)(x.turned + matrix), rows->pool);
        else
            FFT(transform_matrix)(&x, rows->pool);
    }
}

/* ---- rows as lanes -------------------------------------------------------------------------- */

/* Rows [first, first + count) of n points, count <= LANES; other lanes repeat the last row. */
FFT_INLINE void FFT(read_square)(const struct FFT(row) * row, enum FFT(kind) kind, int64_t at,
                                 PAIR *to)
{
    PAIR square[LANES];

    GEMM_UNROLL
    for (int i = 0; i < LANES; i++)
        square[i] = FFT(get)(&row[i], kind, at);
    FFT(transpose_pairs)(square);
    GEMM_UNROLL
    for (int i = 0; i < LANES; i++)
        to[i] = square[i];
}

static void FFT(read_rows)(const struct fft_end *e, int64_t first, int64_t count, int64_t n,
                           PAIR *to)
{
    struct FFT(row) row[LANES];
    int64_t at = 0, step = e->step;

    for (int64_t i = 0; i < LANES; i++)
        row[i] = FFT(row_of)(e, first + cpu_min_i64(i, count - 1));
    for (; at + LANES <= n; at += LANES)
        switch (row[0].kind) {
        case FFT(APART): FFT(read_square)(row, FFT(APART), at, to + at); break;
        case FFT(PAIRS): FFT(read_square)(row, FFT(PAIRS), at, to + at); break;
        default: FFT(read_square)(row, FFT(SWAPPED), at, to + at); break;
        }
    for (; at < n; at++)
        for (int64_t i = 0; i < LANES; i++) {
            to[at].re[i] = row[i].re[at * step];
            to[at].im[i] = row[i].im[at * step];
        }
}

static void FFT(write_rows)(const struct fft_end *e, int64_t first, int64_t count, int64_t n,
                            FFT_T scale, const PAIR *from)
{
    struct FFT(row) row[LANES];
    int64_t at = 0, step = e->step;
    FFT_V s = FFT_SPLAT(scale);

    for (int64_t i = 0; i < count; i++)
        row[i] = FFT(row_of)(e, first + i);
    for (; at + LANES <= n; at += LANES) {
        PAIR square[LANES];
        GEMM_UNROLL
        for (int i = 0; i < LANES; i++)
            square[i] = (PAIR){from[at + i].re * s, from[at + i].im * s};
        FFT(transpose_pairs)(square);
        for (int64_t i = 0; i < count; i++)
            switch (row[i].kind) {
            case FFT(APART): FFT(put)(&row[i], FFT(APART), at, square[i]); break;
            case FFT(PAIRS): FFT(put)(&row[i], FFT(PAIRS), at, square[i]); break;
            default: FFT(put)(&row[i], FFT(SWAPPED), at, square[i]); break;
            }
    }
    for (; at < n; at++)
        for (int64_t i = 0; i < count; i++) {
            row[i].re[at * step] = from[at].re[i] * scale;
            row[i].im[at * step] = from[at].im[i] * scale;
        }
}

/* x[i] = x[i] w[i], with the parts swapped afterwards if asked. */
static void FFT(multiply_lanes)(PAIR *x, const FFT_T *w, int64_t n, bool swap)
{
    for (int64_t i = 0; i < n; i++) {
        PAIR y = FFT(mul)(x[i], FFT_SPLAT(w[2 * i]), FFT_SPLAT(w[2 * i + 1]));
        x[i] = swap ? (PAIR){y.im, y.re} : y;
    }
}

/* From a to b, both of m vectors; n of them are points. */
static void FFT(transform_lanes)(const struct fft_plan *p, const FFT_T *table, PAIR *a, PAIR *b)
{
    if (!p->is_chirp) {
        FFT(columns)(&p->first, table, a, b);
        return;
    }
    FFT(multiply_lanes)(a, table + p->chirp, p->n, false);
    memset(a + p->n, 0, (size_t)(p->m - p->n) * sizeof *a);
    FFT(columns)(&p->first, table, a, b);
    FFT(multiply_lanes)(b, table + p->spectrum, p->m, true);
    FFT(columns)(&p->first, table, b, a);
    for (int64_t i = 0; i < p->n; i++)
        b[i] = (PAIR){a[i].im, a[i].re};
    FFT(multiply_lanes)(b, table + p->chirp, p->n, false);
}

static void FFT(lane_rows)(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct FFT(rows) *rows = ctx;
    const struct fft_run *run = rows->run;
    const struct fft_plan *p = run->plan;
    PAIR *a = (PAIR *)run->scratch + 2 * worker * p->m, *b = a + p->m;

    for (int64_t i = begin; i < end; i++) {
        int64_t count = cpu_min_i64(LANES, p->rows - i * LANES);
        FFT(read_rows)(&run->in, i * LANES, count, p->n, a);
        FFT(transform_lanes)(p, run->table, a, b);
        FFT(write_rows)(&run->out, i * LANES, count, p->n, (FFT_T)run->scale, b);
    }
}

void FFT(run)(const struct fft_run *run)
{
    const struct fft_plan *p = run->plan;
    struct FFT(rows) rows = {.run = run};

    if (p->rows_are_lanes) {
        int64_t grain = cpu_max_i64(1, 8192 / (p->m * LANES));
        cpu_for(run->pool, fft_blocks(p->rows, LANES), grain, FFT(lane_rows), &rows);
    } else if (p->rows_apart) {
        cpu_for(run->pool, p->rows, 1, FFT(matrix_rows), &rows);
    } else {
        rows.pool = run->pool;
        FFT(matrix_rows)(&rows, 0, p->rows, 0);
    }
}
