/* save_onnx.h: a model as ONNX's structs, before they are bytes. */
#ifndef MODEL_SAVE_ONNX_H
#define MODEL_SAVE_ONNX_H

#include "import/onnx/write/onnx_write.h"
#include "model/store.h"

struct model_as_onnx {
    struct ir_module *mod; /* what was written: a copy, without what ONNX lacks */
    struct onnx_written written;
};
/* Free it in either case. m must outlive it. */
rlx_status onnx_of_model(const rlx_model *m, struct model_as_onnx *out, struct diag *d);
void model_as_onnx_free(struct model_as_onnx *a);

/* The model that a reader makes of what is written. */
rlx_status model_through_onnx(const rlx_model *m, rlx_model **out, struct diag *d);

rlx_status model_save_onnx(const rlx_model *m, const char *path, bool external, struct diag *d);

#endif
