/* dequant_q8.h: products of packed weights with activations in eight bits (act=q8,
 * ops-special.md 1.6).
 *
 * x is coded once per run, by rows; then all is sums of small integers, scaled per group:
 *
 *     y = sum over groups g of  x_scale[g] (scale[g] * sum(q x) + min[g] * sum(x))
 *
 * q, x are codes of one byte. A group is 16 or 32 elements of one block, with one scale.
 *
 *     dequant_q8.c         the kernel: who works on what; results that are not finite
 *     dequant_q8_x.c       x as codes, in the form that the loops want
 *     dequant_q8_codes.c   blocks of any scheme as codes, scales and mins
 *     dequant_q8_rows.c    few rows of x: every row of w is read once, where it lies
 *     dequant_q8_vnni.c    the same for AVX-512
 *     dequant_q8_panels.c  many rows: w as panels of codes, used for all of them
 *     dequant_q8_tiles.c   its inner loops, AVX-512
 *     dequant_q8_amx.c     the same in AMX tiles, blocks of 32
 *     dequant_q8_wide.c    the same in AMX tiles, blocks of 256 */
#ifndef BACKEND_DEQUANT_Q8_H
#define BACKEND_DEQUANT_Q8_H

#include "backend/cpu/kernels/common.h"
#include "backend/cpu/kernels/gemm/gemm_amx.h"

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__F16C__)
#define Q8_VNNI 1
#endif

#define dequant_q8_scratch CPU_NAME(dequant_q8_scratch)
#define dequant_q8_run CPU_NAME(dequant_q8_run)

/* For dequant_matmul and dequant_grouped_matmul with act=q8. */
uint64_t dequant_q8_scratch(const struct cpu_call *c);
void dequant_q8_run(const struct cpu_call *c);
#ifdef GEMM_AMX
#define dequant_q8_run_amx CPU_NAME(dequant_q8_run_amx)
void dequant_q8_run_amx(const struct cpu_call *c); /* with the same scratch */
#endif

/* ---- shapes -------------------------------------------------------------------------------- */

enum { Q8_FEW = 16 }; /* most rows of x that are multiplied with w in place */

/* One matrix of packed rows. */
struct q8_weight {
    int32_t scheme;
    int64_t block_elems, block_bytes;
    int64_t group;             /* elements per scale: 16 or 32 */
    int64_t k, n;              /* n rows of k elements */
    int64_t blocks, row_bytes; /* of a row */
    const uint8_t *data;
};

/* Elements of x that share a scale: 32 or 256. */
static inline int64_t q8_run_of(int64_t block_elems)
{
    return block_elems == 256 ? 256 : 32;
}

static inline const uint8_t *q8_row(const struct q8_weight *w, int64_t row)
{
    return w->data + row * w->row_bytes;
}

/* ---- x as codes (dequant_q8_x.c) ----------------------------------------------------------- */

enum q8_form {
    Q8_LINEAR, /* struct q8_run after struct q8_run: for loops in plain C */
    Q8_FOURS,  /* struct q8_four: AVX-512, blocks of 32 */
    Q8_BLOCKS, /* struct q8_block: AVX-512, blocks of 256 */
};

/* 32 elements. Of a block of 256 there are eight, with the same scale. */
struct q8_run {
    int8_t code[32];
    float scale;
    int16_t sum[2]; /* of 16 codes each */
};

/* Four blocks of 32: the first half of each, then the second half of each. Four lanes belong to a
 * block: each has its scale; the first has its sum.
 *
 * Where w's codes are made unsigned by adding something, the sums of each lane are too large by a
 * known number. It is taken back in that lane: between lanes, it would have to cancel in f32. */
struct q8_four {
    int8_t code[128];
    int32_t offset[16];
    float scale[16];
    float sum[16]; /* times the scale */
};

/* A block of 256, its codes in the order in which w's come out of their bytes. */
struct q8_block {
    int8_t code[256];
    union {
        int16_t pair_offset[128]; /* for sums of two neighbours */
        int32_t lane_offset[32];  /* for sums of what a lane gets; Q8_K: 16 of them */
    };
    int16_t sum_16[16], sum_32[8]; /* of so many elements, in their order */
    float scale;
    char unused[12];
};

/* How a row came out. */
enum q8_row_kind {
    Q8_ROW_PLAIN,
    Q8_ROW_NAN,  /* a run is not finite: so is every result */
    Q8_ROW_TINY, /* a scale so small that its products might vanish */
};

#define q8_form_of CPU_NAME(q8_form_of)
#define q8_form_bytes CPU_NAME(q8_form_bytes)
#define q8_encode_row CPU_NAME(q8_encode_row)
#define q8_encode_32 CPU_NAME(q8_encode_32)
#define q8_encode_256 CPU_NAME(q8_encode_256)

enum q8_form q8_form_of(int32_t scheme, int64_t block_elems); /* of few rows, at this level */
int64_t q8_form_bytes(const struct q8_weight *w);             /* of a row in that form */
enum q8_row_kind q8_encode_row(const struct q8_weight *w, const float *x, void *to);
/* So many codes, their scale, and what they make of a row that was `kind` so far. */
float q8_encode_32(const float *x, int8_t *code, enum q8_row_kind *kind);
float q8_encode_256(const float *x, int8_t *code, enum q8_row_kind *kind);

/* ---- w as codes (dequant_q8_codes.c) ------------------------------------------------------- */

/* Blocks of a row: the codes of their elements, and per group a scale and a min;
 * element = scale * code + min. */
typedef void (*q8_codes_fn)(const uint8_t *b, int64_t blocks, int8_t *code, float *scale,
                            float *min);

/* What scales and mins of a block of 256 are made of: scale = d * scale[g], min = -dmin * min[g].
 */
struct q8_factors {
    float d, dmin;
    int8_t scale[16], min[16];
};

#define q8_uneven CPU_NAME(q8_uneven)
extern const int8_t q8_uneven[16]; /* what the codes of IQ4_NL and IQ4_XS stand for */

#define q8_read_factors CPU_NAME(q8_read_factors)
void q8_read_factors(int32_t scheme, const uint8_t *block, struct q8_factors *f);

#define q8_codes_of CPU_NAME(q8_codes_of)
#define q8_group_of CPU_NAME(q8_group_of)
#define q8_has_min CPU_NAME(q8_has_min)
q8_codes_fn q8_codes_of(int32_t scheme);
int64_t q8_group_of(int32_t scheme);
bool q8_has_min(int32_t scheme);

/* ---- few rows ------------------------------------------------------------------------------ */

/* Columns [begin, end) for rows <= Q8_FEW rows of x; out[r] is where row r's column 0 goes. */
struct q8_few {
    const struct q8_weight *w;
    int64_t rows;
    const void *x[Q8_FEW]; /* coded */
    float *out[Q8_FEW];
};

#define q8_few_run CPU_NAME(q8_few_run)
void q8_few_run(const struct q8_few *f, int64_t begin, int64_t end);

#ifdef Q8_VNNI
#define q8_vnni_run CPU_NAME(q8_vnni_run)
void q8_vnni_run(const struct q8_few *f, int64_t begin, int64_t end);
#endif

/* ---- many rows ----------------------------------------------------------------------------- */

/* Sixteen rows of x, one group of k after another, each:
 *
 *     codes [16 rows][group], scales [16], sums times scales [16], offsets [16]
 *
 * and sixteen columns of w likewise:
 *
 *     codes [group / 4][16 columns][4], scales [16], mins [16]
 *
 * Codes of w are 128 more than they are, which the offsets take back. */
enum { Q8_LINES = 16 };

static inline int64_t q8_x_step(int64_t group)
{
    return Q8_LINES * (group + 12); /* bytes of a group */
}

static inline int64_t q8_w_step(int64_t group)
{
    return Q8_LINES * (group + 8);
}

struct q8_tile {
    int64_t groups, group;
    const char *x, *w;
    bool with_min;
    float *sum; /* [16][16] */
};

#define q8_pack_x CPU_NAME(q8_pack_x)
#define q8_pack_w CPU_NAME(q8_pack_w)
#define q8_tile_run CPU_NAME(q8_tile_run)

/* Up to 16 rows of x, those past the last as zeros; kind: what became of each. */
void q8_pack_x(const struct q8_weight *w, const float *const *row, int64_t rows, char *to,
               uint8_t *kind);
/* Columns [col, col + cols), at most 16. */
void q8_pack_w(const struct q8_weight *w, int64_t col, int64_t cols, char *to);
void q8_tile_run(const struct q8_tile *t);

/* ---- many rows, in AMX tiles --------------------------------------------------------------- */

#ifdef GEMM_AMX
#define q8_amx_enter CPU_NAME(q8_amx_enter)
#define q8_amx_pack_x CPU_NAME(q8_amx_pack_x)
#define q8_amx_pack_w CPU_NAME(q8_amx_pack_w)
#define q8_amx_run CPU_NAME(q8_amx_run)
#define q8_wide_pack_x CPU_NAME(q8_wide_pack_x)
#define q8_wide_pack_w CPU_NAME(q8_wide_pack_w)
#define q8_wide_run CPU_NAME(q8_wide_run)

/* One part of k of all of a task's panels. Here w is the first operand, whose tiles hold its rows
 * as they are; x, the second one, is brought into its order once for all of w. */
struct q8_part {
    const char *x, *w;
    int64_t x_panels, w_panels;
    int64_t x_apart, w_apart; /* bytes from one panel's part to the next panel's */
    int64_t groups;           /* blocks of 32: of the part, a multiple of Q8_AMX_BATCH */
    float *sum;               /* [w_panels][x_panels][16 columns][16 rows], added to */
};

/* Blocks of 32 (dequant_q8_amx.c), between q8_amx_enter and amx_leave: for each of the groups of x
 *
 *     codes [8][16 rows][4], scales [16], sums times scales [16]
 *
 * and of w
 *
 *     codes [16 columns][32], scales [16], mins [16]
 *
 * to a multiple of Q8_AMX_BATCH, with zeros. A part has Q8_AMX_GROUPS at most. */
enum { Q8_AMX_STEP = Q8_LINES * (32 + 8), Q8_AMX_BATCH = 4, Q8_AMX_GROUPS = 16 };
void q8_amx_enter(void);
void q8_amx_pack_x(const struct q8_weight *w, const float *const *row, int64_t rows, char *to,
                   uint8_t *kind);
/* Blocks [first, last) of columns [col, col + cols). */
void q8_amx_pack_w(const struct q8_weight *w, int64_t col, int64_t cols, int64_t first,
                   int64_t last, char *to);
void q8_amx_run(const struct q8_weight *w, const struct q8_part *t);

/* Blocks of 256 (dequant_q8_wide.c), from panels in its own layout. Bytes of a block in them: */
enum { Q8_WIDE_X = 5 * 1024 + 64, Q8_WIDE_W = 9 * 1024 + 128 };
void q8_wide_pack_x(const struct q8_weight *w, const float *const *row, int64_t rows, char *to,
                    uint8_t *kind);
/* Block b of columns [col, col + cols). */
void q8_wide_pack_w(const struct q8_weight *w, int64_t col, int64_t cols, int64_t b, char *to);
void q8_wide_run(const struct q8_weight *w, const struct q8_part *t); /* after amx_enter */
#endif

#endif
