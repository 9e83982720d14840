/* gemm.h: the product of two matrices, many at a time: what matmul and convolution are made of.
 *
 *     c[item, row, col] = sum over k of a[item, row, k] * b[item, k, col]
 *
 * The sums are cut into blocks by shapes alone. For each block and each stretch of k the operands
 * are packed: a function of the caller's fetches them (from strides, from an image, from rows in
 * some order) into panels that the inner loop reads front to back. A line is a row of a or a column
 * of b; a panel holds `width` lines, one k after another:
 *
 *     panel 0                                panel 1
 *     k = 0: line 0, 1, .. width-1           k = 0: line width, ..
 *     k = 1: line 0, 1, .. width-1           k = 1: line width, ..
 *
 * When a block's sums are complete, a function of the caller's takes them while they are still in
 * the cache: it adds a bias, applies an activation, converts, scatters. */
#ifndef BACKEND_GEMM_H
#define BACKEND_GEMM_H

#include "backend/cpu/kernels/common.h"

/* What panels and sums are made of. */
enum gemm_kind {
    GEMM_F32,
    GEMM_F64,
    GEMM_I32,    /* uint32_t: the low half of an i64 sum is the sum of low halves */
    GEMM_I64,    /* uint64_t */
    GEMM_I16,    /* panels of int16_t, two neighbouring k per lane; sums of uint32_t */
    GEMM_I8,     /* panels of uint8_t and int8_t, four neighbouring k per lane (gemm_i8.c) */
    GEMM_I8_AMX, /* the same for the tiles of AMX */
    GEMM_BF16,   /* sums of f32, in the tiles of AMX (gemm_amx.h), where the CPU has them */
    GEMM_KINDS
};

/* Part of one operand, to be packed. Lines past the last one of a panel are to be zero. GEMM_I16: k
 * is even, and an odd ks is followed by zeros. ks is at most 512. */
struct gemm_part {
    int64_t item;
    int64_t line, lines; /* from, how many >= 1 */
    int64_t k, ks;
    int64_t width;
    void *panel;
};
typedef void (*gemm_pack_fn)(const void *ctx, const struct gemm_part *p);

/* Complete sums: rows x cols of them, `ld` apart from row to row. */
struct gemm_block {
    int64_t item;
    int64_t row, rows;
    int64_t col, cols;
    void *sum;
    int64_t ld;
};
typedef void (*gemm_store_fn)(const void *ctx, const struct gemm_block *b);

/* How large one item is, where they differ; none is larger than m, n, k of struct gemm. */
typedef void (*gemm_size_fn)(const void *ctx, int64_t item, int64_t *m, int64_t *n, int64_t *k);

struct gemm {
    enum gemm_kind kind;
    int64_t items, m, n, k; /* k 0: sums are 0 */
    gemm_size_fn size;      /* NULL: all items are m x n x k */
    gemm_pack_fn pack_a, pack_b;
    /* b's panels where they were made beforehand (gemm_make_ready), by item; NULL: pack_b makes
     * them. ready_dtype f16 or bf16: they hold that instead of what the kind says, GEMM_F32. */
    const void *(*ready_b)(const void *ctx, int64_t item);
    rlx_dtype ready_dtype;
    bool in_scratch;     /* sums live in scratch until they are stored; else in c */
    void *c;             /* dense sums [items, m, n] */
    gemm_store_fn store; /* NULL: c is all that is wanted */
    const void *ctx;
};

#define gemm_scratch CPU_NAME(gemm_scratch)
#define gemm_run CPU_NAME(gemm_run)

/* Bytes of scratch, from sizes alone. Fewer items than g->items, or smaller ones, never need more.
 * pool NULL: one thread. */
uint64_t gemm_scratch(const struct gemm *g, const struct pool *pool);
void gemm_run(const struct gemm *g, struct pool *pool, void *scratch);

/* Lines of elements in memory. f16 and bf16 become f32; i32, i64 and f64 stay. */
struct gemm_view {
    const void *data;
    rlx_dtype dtype;
    int64_t line, k; /* strides, in elements */
};

/* ---- weights (gemm_ready.c) ---------------------------------------------------------------- */

#define gemm_ready_bytes CPU_NAME(gemm_ready_bytes)
#define gemm_make_ready CPU_NAME(gemm_make_ready)
#define gemm_from_ready CPU_NAME(gemm_from_ready)

/* All panels of b, of one item, for products of any m: bytes of them, and making them at `to`.
 * From g only kind, n, k, pack_b, ready_dtype and ctx are used. Where
 * ready_dtype is f16 or bf16, pack_b is not to widen. */
enum { GEMM_READY_COLUMNS = 16 }; /* of b, below which no panels are worth their room */
uint64_t gemm_ready_bytes(const struct gemm *g);
void gemm_make_ready(const struct gemm *g, int64_t item, struct pool *pool, void *to);
/* The matrix again, to where the view lies, from panels of elements as they are in it: GEMM_F32, of
 * f32, f16 or bf16, and GEMM_F64. */
void gemm_from_ready(const struct gemm *g, const struct gemm_view *to, struct pool *pool,
                     const void *panels);

/* ---- packing from memory (gemm_pack.c) ----------------------------------------------------- */

#define gemm_pack_view CPU_NAME(gemm_pack_view)
#define gemm_pack_run CPU_NAME(gemm_pack_run)
#define gemm_pack_half CPU_NAME(gemm_pack_half)
#define gemm_pack_c64_a CPU_NAME(gemm_pack_c64_a)
#define gemm_pack_c64_b CPU_NAME(gemm_pack_c64_b)

/* The part p of v; p->item is not looked at. */
void gemm_pack_view(const struct gemm_view *v, const struct gemm_part *p);
/* The same without widening: panels of f16 or bf16. */
void gemm_pack_half(const struct gemm_view *v, const struct gemm_part *p);
/* Only ks of the panel's k, from `at` on in the panel: v begins with what comes there. */
void gemm_pack_run(const struct gemm_view *v, const struct gemm_part *p, int64_t at, int64_t ks);

/* A c64 product is an f32 product of twice the columns and twice the k:
 *
 *     [re im] x [ re im]  =  [re im]
 *               [-im re]
 *
 * p counts in these. a's rows stay rows; b's columns are pairs. */
void gemm_pack_c64_a(const struct gemm_view *v, const struct gemm_part *p);
void gemm_pack_c64_b(const struct gemm_view *v, const struct gemm_part *p);

/* ---- 8-bit integers (gemm_i8.c) ------------------------------------------------------------ */

#if defined(__AVX512VNNI__)
#define GEMM_HAS_I8 1 /* this level has GEMM_I8 */
#endif

#define gemm_pack_u8_a CPU_NAME(gemm_pack_u8_a)
#define gemm_pack_i8_b CPU_NAME(gemm_pack_i8_b)

/* Rows of x, `ld` apart, each byte plus 128; zeros past the last k. group: k of a line that lie
 * together, 4 for GEMM_I8 and 64 for GEMM_I8_AMX. */
void gemm_pack_u8_a(const int8_t *x, int64_t ld, int64_t group, const struct gemm_part *p);
/* Columns of w, whose rows are `ld` apart. step: the kind's k per lane, as above. */
void gemm_pack_i8_b(const int8_t *w, int64_t ld, int64_t step, const struct gemm_part *p);

/* ---- few rows (gemm_few.c) ----------------------------------------------------------------- */

/* Up to this many rows b is read where it lies: packing it would cost more than the product. */
enum { GEMM_FEW = 8, GEMM_FEW_SUMS = 2048 };

/* rows x cols sums in f32 (f64 operands: in f64). One of b's strides is 1. */
struct gemm_few {
    rlx_dtype a_dtype;         /* f64 exactly if b's is */
    const void *row[GEMM_FEW]; /* where each row of a begins */
    int64_t a_k;               /* from one k of a row to the next, in elements */
    int64_t rows;
    struct gemm_view b; /* begins with the first column wanted */
    int64_t cols;       /* rows * cols <= GEMM_FEW_SUMS */
    int64_t k;
};

#define gemm_few_run CPU_NAME(gemm_few_run)

/* sum: [rows, cols]. */
void gemm_few_run(const struct gemm_few *f, void *sum);

/* Columns to give one call, of n in all: enough calls to share, enough work in each. */
static inline int64_t gemm_few_cols(int64_t rows, int64_t n)
{
    int64_t most = cpu_min_i64(GEMM_FEW_SUMS / rows, 1024), part = (n / 16 + 63) / 64 * 64;
    return cpu_min_i64(cpu_max_i64(part, 64), most);
}

/* ---- small things -------------------------------------------------------------------------- */

static inline int64_t gemm_up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

static inline int gemm_workers(const struct pool *pool)
{
    return pool ? pool_threads(pool) : 1;
}

/* The kind in which tensors of a contraction's dtypes are multiplied. c64: as pairs of f32. */
static inline enum gemm_kind gemm_kind_of(rlx_dtype d)
{
    switch (d) {
    case RLX_DTYPE_f64: return GEMM_F64;
    case RLX_DTYPE_i32: return GEMM_I32;
    case RLX_DTYPE_i64: return GEMM_I64;
    default: return GEMM_F32;
    }
}

#endif
