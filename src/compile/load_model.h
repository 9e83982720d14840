/* load_model.h: a file of any kind that holds a model. */
#ifndef COMPILE_LOAD_MODEL_H
#define COMPILE_LOAD_MODEL_H

#include "model/model.h"

rlx_status load_model(rlx_context *ctx, const char *path, const rlx_load_desc *desc,
                      rlx_model **out, struct diag *d);

#endif
