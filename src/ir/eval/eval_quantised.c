/* eval_quantised.c: products with packed weights, and their rows as numbers
 * (ops-special.md 1.2, 1.6).
 *
 * Block formats keep their scales in the rows: [..., n, row], a row being k elements of one column
 * of the weight. The others have codes [k,n] and scales beside them. */
#include <math.h>

#include "ir/eval/eval.h"
#include "ir/quant/quant_decode.h"
#include "ir/quant/quant_encode.h"
#include "ir/quant/quant_scheme.h"

/* ---- packed rows --------------------------------------------------------------------------- */

/* An operand of packed rows, and room for one of them. */
struct packed {
    const struct eval_tensor *from;
    int32_t scheme;
    int64_t k, bytes; /* of a row */
    uint8_t *row;
    float *value;
};

static rlx_status packed_open(struct eval_call *c, const struct eval_tensor *from, int32_t scheme,
                              int64_t k, struct packed *out)
{
    int64_t bytes = from->type.dim[from->type.rank - 1];

    *out = (struct packed){.from = from, .scheme = scheme, .k = k, .bytes = bytes};
    out->row = arena_array(c->arena, uint8_t, (size_t)bytes);
    out->value = arena_array(c->arena, float, (size_t)k);
    if (!out->row || !out->value)
        return diag_no_memory(c->diag, (size_t)k * sizeof *out->value);
    return RLX_OK;
}

/* Row r as k numbers, until the next one. */
static const float *packed_row(struct packed *p, int64_t r)
{
    for (int64_t i = 0; i < p->bytes; i++)
        p->row[i] = (uint8_t)p->from->at[r * p->bytes + i].i;
    quant_decode_row(p->scheme, p->row, p->k, p->value);
    return p->value;
}

/* ---- activations --------------------------------------------------------------------------- */

/* One run of x through eight bits and back. A run with a NaN or an infinity has no codes, and so is
 * NaN throughout. */
static void through_q8(const struct eval_cell *x, int32_t run, double *out)
{
    float v[QUANT_BLOCK_ELEMS] = {0};
    uint8_t block[QUANT_BLOCK_BYTES];
    bool large = run == QUANT_BLOCK_ELEMS;

    for (int32_t i = 0; i < run; i++)
        v[i] = (float)x[i].f;
    bool coded = large ? quant_encode_q8_k(v, block) : quant_encode_q8_0(v, block);
    if (coded)
        quant_decode_block(large ? RLX_QUANT_SCHEME_q8_k : RLX_QUANT_SCHEME_q8_0, block, v);
    for (int32_t i = 0; i < run; i++)
        out[i] = coded ? (double)v[i] : (double)NAN;
}

/* x as the product sees it. Its rows are whole numbers of blocks. */
static rlx_status activations(struct eval_call *c, int32_t scheme, int32_t act, double **out)
{
    const struct eval_tensor *x = c->in[0];
    bool large = quant_scheme(scheme)->block_elems == QUANT_BLOCK_ELEMS;
    int32_t run = large ? QUANT_BLOCK_ELEMS : 32;
    double *v = arena_array(c->arena, double, (size_t)x->count);

    if (!v)
        return diag_no_memory(c->diag, (size_t)x->count * sizeof *v);
    for (int64_t i = 0; i < x->count; i++)
        v[i] = x->at[i].f;
    for (int64_t i = 0; act == RLX_ACT_PRECISION_q8 && i < x->count; i += run)
        through_q8(x->at + i, run, v + i);
    *out = v;
    return RLX_OK;
}

static double product(const struct eval_call *c, const double *x, const float *w, int64_t k)
{
    double sum = 0;

    for (int64_t j = 0; j < k; j++)
        sum += c->sizes ? fabs(x[j] * (double)w[j]) : x[j] * (double)w[j];
    return sum;
}

/* ---- weights with scales beside them ------------------------------------------------------- */

/* The code of element e: a byte, or the low half of one for even e and the high half for odd. */
static uint8_t code_at(const struct eval_tensor *w, const struct quant_scheme *s, int64_t e)
{
    if (!s->nibbles)
        return (uint8_t)w->at[e].i;
    return (uint8_t)(w->at[e / 2].i >> 4 * (e % 2) & 15);
}

static double signed_code(uint8_t code, int bits)
{
    int half = 1 << (bits - 1);

    return code < half ? code : code - 2 * half;
}

/* Of FP8: for all, per column, or none. */
static double fp8_scale(const struct eval_tensor *scale, int64_t n)
{
    if (scale->count == 0)
        return 1;
    return scale->at[scale->type.rank == 2 ? n : 0].f;
}

/* W[j,n]. */
static double weight(const struct eval_call *c, int64_t j, int64_t n, int64_t columns)
{
    const struct attr_dequant_matmul *attr = &c->attr->dequant_matmul;
    const struct quant_scheme *s = quant_scheme(attr->scheme);
    const struct eval_tensor *scale = c->in[2], *zero = c->in[3];
    uint8_t q = code_at(c->in[1], s, j * columns + n);
    int64_t g = j / (s->group ? s->group : attr->block_size) * columns + n;

    switch (attr->scheme) {
    case RLX_QUANT_SCHEME_int8_block: return signed_code(q, 8) * scale->at[g].f;
    case RLX_QUANT_SCHEME_int8_block_asym:
        if (c->sizes)
            return (fabs(signed_code(q, 8)) + fabs(zero->at[g].f)) * scale->at[g].f;
        return (signed_code(q, 8) - zero->at[g].f) * scale->at[g].f;
    case RLX_QUANT_SCHEME_int4_block: return signed_code(q, 4) * scale->at[g].f;
    case RLX_QUANT_SCHEME_fp8_e4m3: return (double)quant_e4m3(q) * fp8_scale(scale, n);
    case RLX_QUANT_SCHEME_fp8_e5m2: return (double)quant_e5m2(q) * fp8_scale(scale, n);
    default: /* nvfp4_block, whose zero is the scale of all */
        return (double)quant_e2m1(q) * (double)quant_e4m3((uint8_t)scale->at[g].i) * zero->at[0].f;
    }
}

static void beside(struct eval_call *c, int64_t k, int64_t columns)
{
    for (int64_t i = 0; i < c->out->count; i++) {
        const struct eval_cell *x = c->in[0]->at + i / columns * k;
        for (int64_t j = 0; j < k; j++) {
            double term = x[j].f * weight(c, j, i % columns, columns);
            c->out->at[i].f += c->sizes ? fabs(term) : term;
        }
    }
}

/* ---- the ops ------------------------------------------------------------------------------- */

rlx_status eval_dequant_matmul(struct eval_call *c)
{
    const struct attr_dequant_matmul *attr = &c->attr->dequant_matmul;
    int64_t columns = c->out->type.dim[c->out->type.rank - 1];
    struct packed w;
    double *x;

    if (c->out->count == 0)
        return RLX_OK;
    if (!quant_scheme(attr->scheme)->is_gguf) {
        beside(c, attr->k, columns);
        return RLX_OK;
    }
    TRY(packed_open(c, c->in[1], attr->scheme, attr->k, &w));
    TRY(activations(c, attr->scheme, attr->act, &x));
    for (int64_t n = 0; n < columns; n++) {
        const float *b = packed_row(&w, n);
        for (int64_t m = 0; m < c->out->count / columns; m++)
            c->out->at[m * columns + n].f = product(c, x + m * attr->k, b, attr->k);
    }
    return RLX_OK;
}

rlx_status eval_dequant_grouped_matmul(struct eval_call *c)
{
    const struct attr_dequant_grouped_matmul *attr = &c->attr->dequant_grouped_matmul;
    int64_t experts = c->in[1]->type.dim[0], columns = c->in[1]->type.dim[1];
    struct packed w;
    double *x;

    if (c->out->count == 0)
        return RLX_OK;
    TRY(packed_open(c, c->in[1], attr->scheme, attr->k, &w));
    TRY(activations(c, attr->scheme, attr->act, &x));
    for (int64_t m = 0; m < c->in[0]->type.dim[0]; m++) {
        int64_t e = eval_index(c->in[2], m);
        if (e < 0 || e >= experts)
            return diag_fail(c->diag, RLX_ERROR_INDEX,
                             "dequant_grouped_matmul: row %lld names expert %lld of %lld",
                             (long long)m, (long long)e, (long long)experts);
        for (int64_t n = 0; n < columns; n++)
            c->out->at[m * columns + n].f =
                product(c, x + m * attr->k, packed_row(&w, e * columns + n), attr->k);
    }
    return RLX_OK;
}

/* [e,n,row] -> [e,k,n]. */
rlx_status eval_dequant_moe_weights(struct eval_call *c)
{
    const struct attr_dequant_moe_weights *attr = &c->attr->dequant_moe_weights;
    int64_t experts = c->in[0]->type.dim[0], columns = c->in[0]->type.dim[1];
    struct packed w;

    if (c->out->count == 0)
        return RLX_OK;
    TRY(packed_open(c, c->in[0], attr->scheme, attr->k, &w));
    for (int64_t r = 0; r < experts * columns; r++) {
        const float *b = packed_row(&w, r);
        struct eval_cell *to = c->out->at + r / columns * attr->k * columns + r % columns;
        for (int64_t j = 0; j < attr->k; j++)
            to[j * columns].f = (double)b[j];
    }
    return RLX_OK;
}

rlx_status eval_dequant_gather(struct eval_call *c)
{
    const struct attr_dequant_gather *attr = &c->attr->dequant_gather;
    int64_t entries = c->in[0]->type.dim[0];
    struct packed table;

    if (c->out->count == 0)
        return RLX_OK;
    TRY(packed_open(c, c->in[0], attr->scheme, attr->k, &table));
    for (int64_t i = 0; i < c->in[1]->count; i++) {
        int64_t r = eval_clamp_index(eval_index(c->in[1], i), entries);
        const float *b = packed_row(&table, r);
        for (int64_t j = 0; j < attr->k; j++)
            c->out->at[i * attr->k + j].f = (double)b[j];
    }
    return RLX_OK;
}
