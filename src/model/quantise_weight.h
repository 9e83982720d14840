/* quantise_weight.h: weights in few bits, and graphs that quantise: what rlx/quant.h promises. */
#ifndef MODEL_QUANTISE_WEIGHT_H
#define MODEL_QUANTISE_WEIGHT_H

#include "base/diag.h"
#include "rlx/quant.h"
#include "rlx/tools.h"

rlx_status quantise_row_bytes(rlx_quant_scheme scheme, int64_t k, size_t *out, struct diag *d);
rlx_status quantise_rows(rlx_quant_scheme scheme, const float *x, int64_t rows, int64_t k,
                         void *out, size_t out_bytes, struct diag *d);
rlx_status dequantise_rows(rlx_quant_scheme scheme, const void *packed, size_t packed_bytes,
                           int64_t rows, int64_t k, float *out, struct diag *d);
/* Fills in the bytes of its parts. */
rlx_status quantise_sizes(rlx_quant_weight *w, struct diag *d);
rlx_status quantise_weight(const rlx_quant_weight *w, const float *x, struct diag *d);
rlx_status dequantise_weight(const rlx_quant_weight *w, float *out, struct diag *d);

/* quantise_graph.c: quantise and dequantise pairs where records say. */
rlx_status model_insert_qdq(const rlx_model *m, const rlx_qdq_record *records, size_t count,
                            rlx_model **out, struct diag *d);

#endif
