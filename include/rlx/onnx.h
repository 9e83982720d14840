/* onnx.h: models as ONNX files, for other programs. rlx_model_load reads such files.
 *
 * docs/onnx.md lists how each op is written, and what the file says of symbolic dims. */
#ifndef RLX_ONNX_H
#define RLX_ONNX_H

#ifndef RLX_UNSTABLE
#error "rlx/onnx.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/rlx.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlx_onnx_desc {
    uint32_t size;
    /* Weights of 1 KiB and more go to PATH.data, which the file refers to. They do so anyway where
     * the file would be larger than 2 GiB, which is what readers of ONNX take. */
    bool external;
} rlx_onnx_desc;

/* The model's graph and the params that were set on it, in the default domain's opset 23. Replaces
 * the file in one step. A param without a value becomes an input; a state becomes an input, and an
 * output NAME.next where something writes it. Ops that ONNX does not have are written as simpler
 * ones; UNSUPPORTED where that cannot be, and the log names every such node. */
RLX_API rlx_status rlx_model_save_onnx(const rlx_model *m, const char *path,
                                       const rlx_onnx_desc *desc, rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
