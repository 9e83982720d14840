/* tensor_text.h: tensors as text. */
#ifndef CLI_TENSOR_TEXT_H
#define CLI_TENSOR_TEXT_H

#include "rlx/rlx.h"

/* Element i as a number; NaN for a complex one. */
double tensor_element(const rlx_tensor *t, size_t i);
#define SHAPE_TEXT 352 /* bytes: room for every rank */
/* "[2,3]" */
const char *shape_text(int32_t rank, const int64_t *dim, char out[SHAPE_TEXT]);

#endif
