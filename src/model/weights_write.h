/* weights_write.h: a file of tensors that is being written. */
#ifndef MODEL_WEIGHTS_WRITE_H
#define MODEL_WEIGHTS_WRITE_H

#include "base/diag.h"
#include "rlx/weights.h"

rlx_status weights_writer_begin(rlx_context *ctx, const char *path,
                                const rlx_weights_content *content, struct rlx_weights_writer **out,
                                struct diag *d);
bool weights_writer_next(const struct rlx_weights_writer *w, size_t *i, uint64_t *left);
rlx_status weights_writer_write(struct rlx_weights_writer *w, const void *data, size_t bytes,
                                struct diag *d);
rlx_status weights_writer_write_f32(struct rlx_weights_writer *w, const float *x, uint64_t count,
                                    struct diag *d);
void weights_writer_make_durable(struct rlx_weights_writer *w); /* see file_writer.durable */
rlx_status weights_writer_finish(struct rlx_weights_writer *w, struct diag *d); /* w is gone */
void weights_writer_abandon(struct rlx_weights_writer *w);                      /* NULL is fine */

#endif
