/* quantise_weight.c: weights in few bits, made and read. */
#include "model/quantise_weight.h"

#include <inttypes.h>
#include <math.h>

#include "ir/op.h"
#include "ir/quant/quant_decode.h"
#include "ir/quant/quant_encode.h"
#include "ir/quant/quant_side.h"

/* ---- blocks ---- */

static const char *word_of(rlx_quant_scheme scheme)
{
    return enum_word("quant_scheme", (int32_t)scheme);
}

static rlx_status block_format(struct diag *d, const char *call, rlx_quant_scheme scheme,
                               const struct quant_scheme **out)
{
    const struct quant_scheme *s = quant_scheme((int32_t)scheme);

    if (!s)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "%s: there is no scheme number %d", call,
                         (int)scheme);
    if (!s->is_gguf)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "%s: scheme %s is not a block format", call,
                         word_of(scheme));
    *out = s;
    return RLX_OK;
}

static rlx_status row_bytes(struct diag *d, const char *call, rlx_quant_scheme scheme, int64_t k,
                            int64_t *out)
{
    const struct quant_scheme *s;

    TRY(block_format(d, call, scheme, &s));
    if (k < 0 || k % s->block_elems != 0)
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "%s: k %" PRId64 " is not a multiple of the block of %d", call, k,
                         s->block_elems);
    if (!quant_row_bytes(s, k, out))
        return diag_fail(d, RLX_ERROR_LIMIT, "%s: a row of %" PRId64 " elements overflows 64 bits",
                         call, k);
    return RLX_OK;
}

/* Rows that are there, in as many bytes as they take. */
static rlx_status check_rows(struct diag *d, const char *call, rlx_quant_scheme scheme,
                             int64_t rows, int64_t k, const float *x, const void *packed,
                             size_t packed_bytes, int64_t *row)
{
    int64_t all, numbers;

    TRY(row_bytes(d, call, scheme, k, row));
    if (rows < 0)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s: %" PRId64 " rows", call, rows);
    if (__builtin_mul_overflow(rows, *row, &all) || __builtin_mul_overflow(rows, k, &numbers) ||
        __builtin_mul_overflow(numbers, (int64_t)sizeof *x, &numbers))
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "%s: %" PRId64 " rows of %" PRId64 " elements overflow 64 bits", call,
                         rows, k);
    if ((uint64_t)all != packed_bytes)
        return diag_fail(d, RLX_ERROR_SIZE,
                         "%s: %" PRId64 " rows of %" PRId64 " elements take %" PRId64
                         " bytes as %s, not %zu",
                         call, rows, k, all, word_of(scheme), packed_bytes);
    if (all && (!x || !packed))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s: %s is NULL", call,
                         x ? "the packed memory" : "the buffer of numbers");
    return RLX_OK;
}

rlx_status quantise_row_bytes(rlx_quant_scheme scheme, int64_t k, size_t *out, struct diag *d)
{
    int64_t bytes = 0;

    TRY(row_bytes(d, "quant_row_bytes", scheme, k, &bytes));
    *out = (size_t)bytes;
    return RLX_OK;
}

static const char *not_finite_word(float v)
{
    return isnan(v) ? "NaN" : v > 0 ? "Inf" : "-Inf";
}

static rlx_status quantise_row(struct diag *d, rlx_quant_scheme scheme, const float *x, int64_t row,
                               int64_t k, uint8_t *out)
{
    const struct quant_scheme *s = quant_scheme((int32_t)scheme);
    int64_t bad = quant_first_not_finite(x, k);

    if (bad >= 0)
        return diag_fail(d, RLX_ERROR_NUMERIC,
                         "quantize_rows: row %" PRId64 ", element %" PRId64 " is %s", row, bad,
                         not_finite_word(x[bad]));
    for (int64_t b = 0; b < k / s->block_elems; b++)
        if (!quant_encode_block((int32_t)scheme, x + b * s->block_elems, out + b * s->block_bytes))
            return diag_fail(d, RLX_ERROR_LIMIT,
                             "quantize_rows: row %" PRId64 ", elements %" PRId64 " to %" PRId64
                             ": too large for the scales of %s",
                             row, b * s->block_elems, (b + 1) * s->block_elems - 1,
                             word_of(scheme));
    return RLX_OK;
}

rlx_status quantise_rows(rlx_quant_scheme scheme, const float *x, int64_t rows, int64_t k,
                         void *out, size_t out_bytes, struct diag *d)
{
    int64_t row = 0;

    TRY(check_rows(d, "quantize_rows", scheme, rows, k, x, out, out_bytes, &row));
    if (!quant_has_encoder((int32_t)scheme))
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "quantize_rows: %s is only read, never written",
                         word_of(scheme));
    for (int64_t r = 0; row && r < rows; r++)
        TRY(quantise_row(d, scheme, x + r * k, r, k, (uint8_t *)out + r * row));
    return RLX_OK;
}

rlx_status dequantise_rows(rlx_quant_scheme scheme, const void *packed, size_t packed_bytes,
                           int64_t rows, int64_t k, float *out, struct diag *d)
{
    int64_t row = 0;

    TRY(check_rows(d, "dequantize_rows", scheme, rows, k, out, packed, packed_bytes, &row));
    for (int64_t r = 0; row && r < rows; r++)
        quant_decode_row((int32_t)scheme, (const uint8_t *)packed + r * row, k, out + r * k);
    return RLX_OK;
}

/* ---- scales beside the weight ---- */

/* Bytes of the parts; those of FP8's scale are the caller's to say. */
struct part_bytes {
    size_t code, scale, zero;
};

static bool is_fp8(rlx_quant_scheme s)
{
    return s == RLX_QUANT_SCHEME_fp8_e4m3 || s == RLX_QUANT_SCHEME_fp8_e5m2;
}

static rlx_status part_bytes(struct diag *d, const char *call, const rlx_quant_weight *w,
                             struct part_bytes *out)
{
    const struct quant_scheme *s = quant_scheme((int32_t)w->scheme);
    struct quant_side_weight side = {
        .scheme = (int32_t)w->scheme, .block_size = w->block_size, .k = w->k, .n = w->n};
    int64_t code, groups, numbers;

    if (!s || s->is_gguf)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "%s: scheme %s has no scales beside the weight",
                         call, s ? word_of(w->scheme) : "of that number");
    if (s->group == 0 && w->block_size < 1)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE,
                         "%s: block_size is %" PRId64 ", must be at least 1", call, w->block_size);
    if (w->k < 0 || w->n < 0)
        return diag_fail(d, RLX_ERROR_SHAPE, "%s: a matrix of %" PRId64 " by %" PRId64, call, w->k,
                         w->n);
    if (!quant_side_code_bytes(&side, &code) || !quant_side_group_count(&side, &groups) ||
        __builtin_mul_overflow(w->k, w->n, &numbers) ||
        __builtin_mul_overflow(numbers, (int64_t)sizeof(float), &numbers))
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "%s: k %" PRId64 " times n %" PRId64 " overflows 64 bits", call, w->k,
                         w->n);
    *out = (struct part_bytes){.code = (size_t)code};
    if (s->has_scale)
        out->scale = (size_t)groups * (s->scale_is_fp8 ? 1 : sizeof(float));
    if (s->has_zero_point)
        out->zero = (size_t)groups * sizeof(float);
    else if (s->scale_is_fp8)
        out->zero = sizeof(float);
    return RLX_OK;
}

static rlx_status check_part(struct diag *d, const char *call, const char *name, const void *part,
                             size_t bytes, size_t want)
{
    if (bytes != want)
        return diag_fail(d, RLX_ERROR_SIZE, "%s: %s takes %zu bytes, not %zu", call, name, want,
                         bytes);
    if (bytes && !part)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s: %s is NULL", call, name);
    return RLX_OK;
}

static rlx_status check_weight(struct diag *d, const char *call, const rlx_quant_weight *w,
                               const float *x, struct quant_side_weight *out)
{
    struct part_bytes want;

    if (!w)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s: w is NULL", call);
    TRY(part_bytes(d, call, w, &want));
    if (is_fp8(w->scheme) && w->scale_bytes != 0)
        want.scale = sizeof(float) * (w->scale_bytes == sizeof(float) ? 1 : (size_t)w->n);
    TRY(check_part(d, call, "code", w->code, w->code_bytes, want.code));
    TRY(check_part(d, call, "scale", w->scale, w->scale_bytes, want.scale));
    TRY(check_part(d, call, "zero_point", w->zero_point, w->zero_point_bytes, want.zero));
    if (w->k && w->n && !x)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s: the buffer of numbers is NULL", call);
    *out = (struct quant_side_weight){.scheme = (int32_t)w->scheme,
                                      .block_size = w->block_size,
                                      .k = w->k,
                                      .n = w->n,
                                      .code = w->code};
    if (w->scheme == RLX_QUANT_SCHEME_nvfp4_block) {
        out->scale_code = w->scale;
        out->all = w->zero_point;
    } else {
        out->scale = w->scale;
        out->zero = w->zero_point;
    }
    if (is_fp8(w->scheme))
        out->scale_count = (int64_t)(w->scale_bytes / sizeof(float));
    return RLX_OK;
}

rlx_status quantise_sizes(rlx_quant_weight *w, struct diag *d)
{
    struct part_bytes bytes;

    if (!w)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "quant_weight_sizes: w is NULL");
    TRY(part_bytes(d, "quant_weight_sizes", w, &bytes));
    w->code_bytes = bytes.code;
    w->scale_bytes = bytes.scale;
    w->zero_point_bytes = bytes.zero;
    return RLX_OK;
}

rlx_status quantise_weight(const rlx_quant_weight *w, const float *x, struct diag *d)
{
    struct quant_side_weight side;

    TRY(check_weight(d, "quantize_weight", w, x, &side));
    int64_t bad = quant_first_not_finite(x, w->k * w->n);
    if (bad >= 0)
        return diag_fail(d, RLX_ERROR_NUMERIC,
                         "quantize_weight: element %" PRId64 ", %" PRId64 " is %s", bad / w->n,
                         bad % w->n, not_finite_word(x[bad]));
    quant_side_encode(&side, x);
    return RLX_OK;
}

rlx_status dequantise_weight(const rlx_quant_weight *w, float *out, struct diag *d)
{
    struct quant_side_weight side;

    TRY(check_weight(d, "dequantize_weight", w, out, &side));
    for (int64_t e = 0; e < w->k * w->n; e++)
        out[e] = quant_side_value(&side, e / w->n, e % w->n);
    return RLX_OK;
}
