/* weights.h: an open file of tensors: counted, since models keep those they read from. */
#ifndef MODEL_WEIGHTS_H
#define MODEL_WEIGHTS_H

#include "import/weight_file.h"
#include "model/store.h"

struct rlx_weights {
    struct rlx_context *ctx;
    atomic_int refs;
    pthread_mutex_t lock; /* of what weights_data makes */
    struct weights set;
    size_t memory_bytes; /* of a file that is the caller's memory */
};

void weights_retain(struct rlx_weights *w);
rlx_status weights_locked_data(struct rlx_weights *w, size_t i, const uint8_t **out,
                               struct diag *d);
/* count elements from first on, whole blocks; data: of the whole tensor. */
rlx_status weights_to_f32(const struct weight *t, const uint8_t *data, uint64_t first,
                          uint64_t count, float *out, struct diag *d);

#endif
