/* matmul.c: matmul and fused_matmul_bias_act (ops-core.md 10.1, 15).
 *
 *     [batch.., m, k] x [batch.., k, n], batch axes broadcast, either side stored transposed
 *
 * Innermost batch axes that b does not have are rows of a like any others: [16, 8, k] x [k, n] is a
 * product of 128 rows. What remains of the batch are items. Products with few rows, or few columns,
 * read the other operand where it lies (gemm_few.c), unless b is a weight whose panels were made
 * beforehand; all others go through packed panels (gemm.c). A product that is stored in thirds is
 * computed as a whole, so that its sums are the same. */
#include "backend/cpu/kernels/elementwise/row.h"
#include "backend/cpu/kernels/gemm/gemm_amx.h"

struct product {
    enum gemm_kind kind;
    rlx_dtype sum_dtype; /* what sums are, as elements: f32 for f16 and bf16 */
    const struct cpu_tensor *out;
    int64_t items, m, n, k;
    int64_t part;          /* columns that are stored together: n, or a third of them */
    struct gemm_view a, b; /* of item 0 */
    const void *ready;     /* b's panels, the same for all items; NULL: there are none */

    /* The batch that remains, outermost axis first; strides in elements of the operand. */
    int32_t rank;
    int64_t dim[RLX_MAX_RANK], a_stride[RLX_MAX_RANK], b_stride[RLX_MAX_RANK];

    const struct cpu_tensor *bias_in; /* NULL: none */
    struct cpu_view bias;             /* broadcast to out */
    rlx_op act;                       /* RLX_OP_none */
};

/* ---- shapes -------------------------------------------------------------------------------- */

/* Size of the batch axis that is `from_end` axes away from the matrices; 1 where there is none. */
static int64_t batch_dim(const struct cpu_tensor *t, int32_t from_end)
{
    int32_t axis = t->rank - 3 - from_end;
    return axis < 0 ? 1 : t->dim[axis];
}

/* How many innermost batch axes are rows: those where a is full and b has nothing to say. */
static int32_t fold_rows(struct product *p, const struct cpu_tensor *a, const struct cpu_tensor *b,
                         bool transpose_a)
{
    int32_t batch = p->out->rank - 2, fold = 0;

    for (; fold < batch && !transpose_a; fold++) {
        int64_t d = batch_dim(p->out, fold);
        if (batch_dim(b, fold) != 1 || batch_dim(a, fold) != d)
            break;
        p->m *= d;
    }
    return fold;
}

/* The remaining axes, and where along them each operand moves. */
static void batch_strides(struct product *p, const struct cpu_tensor *a, const struct cpu_tensor *b,
                          int32_t fold)
{
    int64_t a_step = p->m * p->k, b_step = p->k * p->n;

    p->rank = p->out->rank - 2 - fold;
    p->items = 1;
    for (int32_t i = p->rank - 1; i >= 0; i--) {
        int32_t from_end = p->out->rank - 3 - i;
        int64_t da = batch_dim(a, from_end), db = batch_dim(b, from_end);
        p->dim[i] = p->out->dim[i];
        p->items *= p->dim[i];
        p->a_stride[i] = da == 1 ? 0 : a_step;
        p->b_stride[i] = db == 1 ? 0 : b_step;
        a_step *= da;
        b_step *= db;
    }
}

/* amx: the CPU has it. */
static void describe(const struct cpu_call *c, bool amx, struct product *p)
{
    const struct cpu_tensor *a = &c->in[0], *b = &c->in[1];
    bool fused = c->op == RLX_OP_fused_matmul_bias_act;
    const struct attr_fused_matmul_bias_act *f = &c->attr->fused_matmul_bias_act;
    bool at = fused ? f->transpose_a : c->attr->matmul.transpose_a;
    bool bt = fused ? f->transpose_b : c->attr->matmul.transpose_b;
    rlx_dtype dtype = c->out->dtype;

    *p = (struct product){.out = c->out, .kind = gemm_kind_of(dtype), .act = RLX_OP_none};
    if (amx && dtype == RLX_DTYPE_bf16)
        p->kind = GEMM_BF16;
    p->sum_dtype = cpu_is_half(dtype) ? RLX_DTYPE_f32 : dtype;
    p->m = c->out->dim[c->out->rank - 2];
    p->n = c->out->dim[c->out->rank - 1];
    p->k = a->dim[a->rank - (at ? 2 : 1)];
    p->a = (struct gemm_view){a->data, a->dtype, at ? 1 : p->k, at ? p->m : 1};
    p->b = (struct gemm_view){b->data, b->dtype, bt ? p->k : 1, bt ? 1 : p->n};
    p->ready = b->packed;
    batch_strides(p, a, b, fold_rows(p, a, b, at));
    p->part = c->thirds && p->m > 1 ? p->n / 3 : p->n; /* a single row lies the same in thirds */
    if (fused) {
        p->bias_in = &c->in[2];
        p->act = f->activation;
        if (c->out->data) /* otherwise only sizes are asked for */
            cpu_view_broadcast(&p->bias, p->bias_in, c->out);
    }
}

/* v as it is for one item. */
static struct gemm_view item_view(const struct product *p, const struct gemm_view *v,
                                  const int64_t *stride, int64_t item)
{
    struct gemm_view r = *v;
    int64_t at = 0;

    for (int32_t i = p->rank - 1; i >= 0; i--) {
        at += item % p->dim[i] * stride[i];
        item /= p->dim[i];
    }
    r.data = (const char *)v->data + at * (int64_t)cpu_size(v->dtype);
    return r;
}

/* ---- packing and storing ------------------------------------------------------------------- */

/* The kinds that the CPU at hand has. */
static void pack_view(enum gemm_kind kind, bool is_a, const struct gemm_view *v,
                      const struct gemm_part *part)
{
#ifdef GEMM_AMX
    if (kind == GEMM_BF16) {
        is_a ? amx_pack_bf16_a(v, part) : amx_pack_bf16_b(v, part);
        return;
    }
#endif
    (void)kind;
    if (v->dtype == RLX_DTYPE_c64)
        is_a ? gemm_pack_c64_a(v, part) : gemm_pack_c64_b(v, part);
    else
        gemm_pack_view(v, part);
}

static void pack_a(const void *ctx, const struct gemm_part *part)
{
    const struct product *p = ctx;
    struct gemm_view v = item_view(p, &p->a, p->a_stride, part->item);

    pack_view(p->kind, true, &v, part);
}

static void pack_b(const void *ctx, const struct gemm_part *part)
{
    const struct product *p = ctx;
    struct gemm_view v = item_view(p, &p->b, p->b_stride, part->item);

    pack_view(p->kind, false, &v, part);
}

/* Bias and activation, on n sums that belong to elements pos .. of the product. They go to `to`,
 * which may be where the sums are. */
static void finish(const struct product *p, const char *sum, int64_t pos, int64_t n, char *to)
{
    CPU_TILE_ANY(buffer);
    CPU_TILE_OF(float, wide);
    int64_t size = (int64_t)cpu_size(p->sum_dtype);

    for (int64_t at = 0; at < n && p->bias_in; at += CPU_TILE) {
        int64_t part = cpu_min_i64(CPU_TILE, n - at);
        int step;
        const void *bias = cpu_view_read(&p->bias, pos + at, part, buffer, &step);
        if (p->sum_dtype == RLX_DTYPE_f32)
            bias = cpu_as_f32(p->bias_in->dtype, bias, wide, step ? part : 1);
        cpu_row_binary(RLX_OP_add, p->sum_dtype, sum + at * size, 1, bias, step, to + at * size,
                       part);
    }
    if (p->act != RLX_OP_none)
        cpu_row_unary(p->act, p->sum_dtype, p->bias_in ? to : sum, to, n);
    else if (!p->bias_in && to != sum)
        memcpy(to, sum, (size_t)(n * size));
}

/* n sums of a row of an item, from column col on, all in one part. The parts of an item's columns
 * are matrices of m rows that follow one another. */
static void store_row(const struct product *p, int64_t item, int64_t row, int64_t col, int64_t n,
                      char *sum)
{
    int64_t pos = (item * p->m + row) * p->n + col;
    int64_t before = item * p->m * p->n + col / p->part * p->m * p->part;
    char *to = cpu_at(p->out, before + row * p->part + col % p->part);
    bool half = cpu_is_half(p->out->dtype);

    finish(p, sum, pos, n, half ? sum : to);
    if (half)
        cpu_store_f32(p->out->dtype, (const float *)(const void *)sum, to, n);
}

/* Sums of c64 come as pairs of f32, so there are twice the columns. */
static void store(const void *ctx, const struct gemm_block *b)
{
    const struct product *p = ctx;
    int64_t per = p->sum_dtype == RLX_DTYPE_c64 ? 2 : 1, end = (b->col + b->cols) / per;
    int64_t size = (int64_t)cpu_size(p->sum_dtype);

    for (int64_t r = 0; r < b->rows; r++) {
        char *sum = (char *)b->sum + r * b->ld / per * size;
        for (int64_t col = b->col / per, n; col < end; col += n, sum += n * size) {
            n = cpu_min_i64(end - col, p->part - col % p->part);
            store_row(p, b->item, b->row + r, col, n, sum);
        }
    }
}

/* ---- few rows, or few columns -------------------------------------------------------------- */

static bool is_few(const struct product *p)
{
    return !p->ready && cpu_is_float(p->out->dtype) && cpu_min_i64(p->m, p->n) <= GEMM_FEW;
}

struct few_job {
    const struct product *p;
    bool swapped;        /* the few are columns of b, and a's rows are the many */
    int64_t few, many;   /* lines */
    int64_t cols, parts; /* of the many: per part, and parts per item */
};

/* Sums of a swapped product are transposed. */
#define TURN(T)                                         \
    do {                                                \
        const T *from_ = sum;                           \
        T *to_ = (T *)(void *)turned;                   \
        for (int64_t i = 0; i < many; i++)              \
            for (int64_t j = 0; j < few; j++)           \
                to_[i * few + j] = from_[j * many + i]; \
    } while (0)

static void store_few(const struct few_job *job, int64_t item, int64_t first, int64_t many,
                      void *sum)
{
    _Alignas(64) unsigned char turned[GEMM_FEW_SUMS * sizeof(double)];
    struct gemm_block b = {.item = item, .sum = sum};
    int64_t few = job->few;

    if (!job->swapped) {
        b.rows = few, b.col = first, b.cols = many, b.ld = many;
        store(job->p, &b);
        return;
    }
    if (job->p->kind == GEMM_F64)
        TURN(double);
    else
        TURN(float);
    b.sum = turned;
    b.row = first, b.rows = many, b.cols = few, b.ld = few;
    store(job->p, &b);
}

static void run_few(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct few_job *job = ctx;
    const struct product *p = job->p;
    _Alignas(64) unsigned char sum[GEMM_FEW_SUMS * sizeof(double)];

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        int64_t item = t / job->parts, first = t % job->parts * job->cols;
        struct gemm_view a = item_view(p, &p->a, p->a_stride, item);
        struct gemm_view b = item_view(p, &p->b, p->b_stride, item);
        struct gemm_view few = job->swapped ? b : a, many = job->swapped ? a : b;
        struct gemm_few f = {.a_dtype = few.dtype,
                             .a_k = few.k,
                             .rows = job->few,
                             .b = many,
                             .cols = cpu_min_i64(job->cols, job->many - first),
                             .k = p->k};
        for (int64_t r = 0; r < f.rows; r++)
            f.row[r] = (const char *)few.data + r * few.line * (int64_t)cpu_size(few.dtype);
        f.b.data = (const char *)many.data + first * many.line * (int64_t)cpu_size(many.dtype);
        gemm_few_run(&f, sum);
        store_few(job, item, first, f.cols, sum);
    }
}

/* ---- weights ------------------------------------------------------------------------------- */

static const void *ready_b(const void *ctx, int64_t item)
{
    const struct product *p = ctx;

    (void)item;
    return p->ready;
}

/* ---- the kernels --------------------------------------------------------------------------- */

static void describe_gemm(const struct product *p, struct gemm *g)
{
    int64_t per = p->sum_dtype == RLX_DTYPE_c64 ? 2 : 1;
    bool apart = cpu_is_half(p->out->dtype) || p->part < p->n; /* sums are not where they go */

    *g = (struct gemm){.kind = p->kind,
                       .items = p->items,
                       .m = p->m,
                       .n = p->n * per,
                       .k = p->k * per,
                       .pack_a = pack_a,
                       .pack_b = pack_b,
                       .in_scratch = apart,
                       .c = apart ? NULL : p->out->data,
                       .ctx = p};
    if (apart || p->bias_in || p->act != RLX_OP_none)
        g->store = store;
    if (p->ready)
        g->ready_b = ready_b;
    if (p->kind == GEMM_F32)
        g->ready_dtype = p->b.dtype; /* f16 and bf16 take half the room as they are */
}

static uint64_t scratch_on(const struct cpu_call *c, bool amx)
{
    struct product p;
    struct gemm g;

    if (c->out->count == 0)
        return 0;
    describe(c, amx, &p);
    if (is_few(&p))
        return 0;
    describe_gemm(&p, &g);
    return gemm_scratch(&g, c->pool);
}

static void run_on(const struct cpu_call *c, bool amx)
{
    struct product p;
    struct gemm g;

    if (c->out->count == 0)
        return;
    describe(c, amx, &p);
    if (!is_few(&p)) {
        describe_gemm(&p, &g);
        gemm_run(&g, c->pool, c->scratch);
        return;
    }
    struct few_job job = {.p = &p, .swapped = p.n < p.m};
    job.few = job.swapped ? p.n : p.m;
    job.many = job.swapped ? p.m : p.n;
    job.cols = gemm_few_cols(job.few, job.many);
    job.parts = (job.many + job.cols - 1) / job.cols;
    int64_t grain = 32768 / (cpu_min_i64(job.cols, job.many) * job.few) / (p.k + 1);
    cpu_for(c->pool, p.items * job.parts, cpu_max_i64(1, grain), run_few, &job);
}

/* b as a weight: one matrix for all items. Below half a panel there is little to gain, and much
 * memory to lose. */
static struct cpu_pack pack_size_on(const struct cpu_call *c, int32_t i, bool amx)
{
    const uint64_t layout = (uint64_t)0x67656d6d << 32; /* unlike other kernels' */
    struct product p;
    struct gemm g;

    if (i != 1 || c->in[1].count == 0 || !cpu_is_float(c->in[1].dtype))
        return (struct cpu_pack){0};
    describe(c, amx, &p);
    if (c->in[1].count != p.k * p.n || p.n <= GEMM_READY_COLUMNS)
        return (struct cpu_pack){0};
    describe_gemm(&p, &g);
    return (struct cpu_pack){.bytes = gemm_ready_bytes(&g),
                             .layout = layout | (uint64_t)g.kind << 1 | (p.b.k == 1),
                             .alone = true,
                             .whole = g.kind == GEMM_F32 || g.kind == GEMM_F64};
}

/* b again. */
static void unpack(const struct cpu_tensor *like, uint64_t layout, const void *packed,
                   struct pool *pool)
{
    bool turned = layout & 1; /* b is [n, k] */
    int64_t rows = like->dim[like->rank - 2], cols = like->dim[like->rank - 1];
    const struct gemm_view to = {.data = like->data,
                                 .dtype = like->dtype,
                                 .line = turned ? cols : 1,
                                 .k = turned ? 1 : cols};
    struct gemm g = {.kind = (enum gemm_kind)(layout >> 1 & 0xff),
                     .n = turned ? rows : cols,
                     .k = turned ? cols : rows};

    if (g.kind == GEMM_F32)
        g.ready_dtype = like->dtype;
    gemm_from_ready(&g, &to, pool, packed);
}

static void pack_weight(const void *ctx, const struct gemm_part *part)
{
    const struct product *p = ctx;

    if (p->kind == GEMM_F32 && cpu_is_half(p->b.dtype))
        gemm_pack_half(&p->b, part);
    else
        pack_view(p->kind, false, &p->b, part);
}

static void pack_on(const struct cpu_call *c, void *to, bool amx)
{
    struct product p;
    struct gemm g;

    describe(c, amx, &p);
    describe_gemm(&p, &g);
    g.pack_b = pack_weight;
    gemm_make_ready(&g, 0, c->pool, to);
}

static uint64_t scratch(const struct cpu_call *c)
{
    return scratch_on(c, false);
}

static void run(const struct cpu_call *c)
{
    run_on(c, false);
}

static struct cpu_pack pack_size(const struct cpu_call *c, int32_t i)
{
    return pack_size_on(c, i, false);
}

static void pack(const struct cpu_call *c, int32_t i, void *to)
{
    (void)i;
    pack_on(c, to, false);
}

extern const struct cpu_kernel CPU_NAME(cpu_matmul);
extern const struct cpu_kernel CPU_NAME(cpu_fused_matmul_bias_act);
const struct cpu_kernel CPU_NAME(cpu_matmul) = {
    .run = run, .scratch = scratch, .pack_size = pack_size, .pack = pack, .unpack = unpack};
const struct cpu_kernel CPU_NAME(cpu_fused_matmul_bias_act) = {
    .run = run, .scratch = scratch, .pack_size = pack_size, .pack = pack, .unpack = unpack};

#ifdef GEMM_AMX
static uint64_t scratch_amx(const struct cpu_call *c)
{
    return scratch_on(c, true);
}

static void run_amx(const struct cpu_call *c)
{
    run_on(c, true);
}

static struct cpu_pack pack_size_amx(const struct cpu_call *c, int32_t i)
{
    return pack_size_on(c, i, true);
}

static void pack_amx(const struct cpu_call *c, int32_t i, void *to)
{
    (void)i;
    pack_on(c, to, true);
}

extern const struct cpu_kernel cpu_matmul_amx, cpu_fused_matmul_bias_act_amx;
const struct cpu_kernel cpu_matmul_amx = {.run = run_amx,
                                          .scratch = scratch_amx,
                                          .pack_size = pack_size_amx,
                                          .pack = pack_amx,
                                          .unpack = unpack};
const struct cpu_kernel cpu_fused_matmul_bias_act_amx = {.run = run_amx,
                                                         .scratch = scratch_amx,
                                                         .pack_size = pack_size_amx,
                                                         .pack = pack_amx,
                                                         .unpack = unpack};
#endif
