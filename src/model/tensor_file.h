/* tensor_file.h: tensors of the caller's: in memory, in files, in pictures; and compared. */
#ifndef MODEL_TENSOR_FILE_H
#define MODEL_TENSOR_FILE_H

#include "base/diag.h"
#include "rlx/tools.h"

rlx_status tensor_alloc(rlx_context *ctx, rlx_tensor *t, struct diag *d); /* for its shape */
void tensor_free(rlx_context *ctx, rlx_tensor *t);
rlx_status tensor_load(rlx_context *ctx, const char *path, rlx_tensor *out, struct diag *d);
rlx_status tensor_save(rlx_context *ctx, const char *path, const rlx_tensor *t, struct diag *d);
rlx_status tensor_list_load(rlx_context *ctx, const char *path, rlx_tensor_list *out,
                            struct diag *d);
void tensor_list_free(rlx_context *ctx, rlx_tensor_list *l);
rlx_status image_parse(rlx_context *ctx, const void *bytes, size_t size, rlx_tensor *out,
                       struct diag *d);
rlx_status image_load(rlx_context *ctx, const char *path, rlx_tensor *out, struct diag *d);

/* tensor_compare.c */
rlx_status tensor_compare(const rlx_tensor *got, const rlx_tensor *want, rlx_tolerance preset,
                          rlx_comparison *out, struct diag *d);

#endif
