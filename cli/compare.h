/* compare.h: is a tensor as expected, by the rules of ONNX's own test runner? */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "rlx/rlx.h"

/* Types and shapes are the same. false: why says how they differ. */
bool compare_types(const rlx_tensor *have, const rlx_tensor *want, char *why, size_t size);
/* The same, and each element is within 1e-7 + 1e-3 |want| (bf16: 2^-6 |want|); NaN equals NaN.
 * false: why describes the first difference. */
bool compare_tensors(const rlx_tensor *have, const rlx_tensor *want, char *why, size_t size);

#endif
