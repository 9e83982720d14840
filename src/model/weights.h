/* weights.h: an open file of tensors: counted, since models keep those they read from. */
#ifndef MODEL_WEIGHTS_H
#define MODEL_WEIGHTS_H

#include "import/weight_file.h"
#include "model/store.h"
#include "rlx/weights.h"

struct rlx_weights {
    struct rlx_context *ctx;
    atomic_int refs;
    pthread_mutex_t lock; /* of what weights_data makes */
    struct weights set;
    size_t memory_bytes; /* of a file that is the caller's memory */
};

rlx_status shared_weights_open(rlx_context *ctx, const char *path, const rlx_load_desc *desc,
                               struct rlx_weights **out, struct diag *d);
/* Of a file in memory, which must outlive it. */
rlx_status shared_weights_parse(rlx_context *ctx, const void *bytes, size_t size,
                                struct rlx_weights **out, struct diag *d);
void shared_weights_retain(struct rlx_weights *w);
void shared_weights_release(struct rlx_weights *w); /* NULL is fine */
rlx_status shared_weights_data(struct rlx_weights *w, size_t i, const uint8_t **out,
                               struct diag *d);
/* Numbers of tensor i, from first on: whole blocks. */
rlx_status shared_weights_read_f32(struct rlx_weights *w, size_t i, uint64_t first, uint64_t count,
                                   float *out, struct diag *d);
/* count elements from first on, whole blocks; data: of the whole tensor. */
rlx_status weights_to_f32(const struct weight *t, const uint8_t *data, uint64_t first,
                          uint64_t count, float *out, struct diag *d);

/* model_weights.c: params that have tensors of these names. */
rlx_status model_load_weights(struct rlx_model *m, struct rlx_weights *w, rlx_weights_use *use,
                              struct diag *d);

#endif
