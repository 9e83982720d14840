/* api_quant.c: rlx/quant.h: weights in few bits. */
#include "ir/quant/quant_encode.h"
#include "model/quantise_weight.h"

rlx_status rlx_quant_row_bytes(rlx_quant_scheme scheme, int64_t k, size_t *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "quantise");
    if (!out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "quant_row_bytes: out is NULL");
    else
        quantise_row_bytes(scheme, k, out, &d);
    return diag_report(&d, err);
}

bool rlx_quant_has_encoder(rlx_quant_scheme scheme)
{
    return quant_has_encoder((int32_t)scheme);
}

rlx_status rlx_quantize_rows(rlx_quant_scheme scheme, const float *x, int64_t rows, int64_t k,
                             void *out, size_t out_bytes, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "quantise");
    quantise_rows(scheme, x, rows, k, out, out_bytes, &d);
    return diag_report(&d, err);
}

rlx_status rlx_dequantize_rows(rlx_quant_scheme scheme, const void *packed, size_t packed_bytes,
                               int64_t rows, int64_t k, float *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "quantise");
    dequantise_rows(scheme, packed, packed_bytes, rows, k, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_quant_weight_sizes(rlx_quant_weight *w, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "quantise");
    quantise_sizes(w, &d);
    return diag_report(&d, err);
}

rlx_status rlx_quantize_weight(const rlx_quant_weight *w, const float *x, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "quantise");
    quantise_weight(w, x, &d);
    return diag_report(&d, err);
}

rlx_status rlx_dequantize_weight(const rlx_quant_weight *w, float *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "quantise");
    dequantise_weight(w, out, &d);
    return diag_report(&d, err);
}
