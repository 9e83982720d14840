/* onnx_ml.h: what models of ai.onnx.ml share. */
#ifndef IMPORT_ONNX_ML_H
#define IMPORT_ONNX_ML_H

#include "import/onnx/read/onnx_build.h"

/* What is done to scores [N, E] in the end. */
enum onnx_post { ONNX_POST_NONE, ONNX_POST_SOFTMAX, ONNX_POST_LOGISTIC, ONNX_POST_SOFTMAX_ZERO };

/* From the attribute post_transform; a failure where it is another one, or E is 1. */
enum onnx_post onnx_post_of(struct onnx_call *c, int64_t scores);
ir_value onnx_post(struct onnx_call *c, enum onnx_post how, ir_value scores);
/* Of two classes, of which s [N, 1] is the second's: [rest - s, s], or both as LOGISTIC says. */
ir_value onnx_post_pair(struct onnx_call *c, enum onnx_post how, ir_value s, double rest);
/* Numbers of a list, as a tensor of that type with these dims. */
ir_value onnx_list_of(struct onnx_call *c, const double *at, rlx_dtype dtype, rlx_list shape);
/* The class of each item, [N], from its number; a failure where labels are not integers. */
ir_value onnx_label(struct onnx_call *c, const char *name, ir_value number);

#endif
