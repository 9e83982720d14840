/* compare.h: is a tensor what it should be, as ONNX's own test runner judges? */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "rlx/rlx.h"

/* Types and shapes are the same. false: why says how they differ. */
bool compare_types(const rlx_tensor *have, const rlx_tensor *want, char *why, size_t size);
/* So they are, and each element is within 1e-7 + 1e-3 |want| (bf16: 2^-6 |want|); NaN
 * is NaN. false: why says what differs first. */
bool compare_tensors(const rlx_tensor *have, const rlx_tensor *want, char *why, size_t size);

#endif
