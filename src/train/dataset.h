/* dataset.h: batches of examples (rlx/trainer.h), each a function of its number.
 *
 *     dataset.c          made, asked
 *     dataset_fit.c      does it fit a model's inputs?
 *     dataset_order.c    which examples are in batch i
 *     dataset_convert.c  elements in the type of the input
 */
#ifndef TRAIN_DATASET_H
#define TRAIN_DATASET_H

#include "base/diag.h"
#include "base/str.h"
#include "context/context.h"
#include "rlx/trainer.h"

/* One array, and its part of the batch. */
struct dataset_array {
    char *name;
    size_t name_bytes;
    rlx_tensor all;  /* the caller's, examples along the first axis */
    size_t elements; /* of an example */
    rlx_dtype dtype; /* of the batch */
};

struct rlx_dataset {
    struct rlx_context *ctx;
    struct dataset_array *array; /* of tokens: the input, then the target */
    size_t count;
    rlx_binding *out;      /* the batch, in memory of its own once it is fitted */
    size_t out_room;       /* bytes of each, all alike: the largest */
    int64_t batch, wanted; /* examples; as the desc says */
    uint64_t seed;
    uint32_t *order;        /* of the examples: those held out are the last */
    uint32_t *epoch_order;  /* of the training set, for that epoch */
    uint64_t epoch;         /* UINT64_MAX: none yet */
    int64_t examples, held; /* to train on; held out */
    const int32_t *tokens;  /* NULL: arrays */
    int64_t token_count, token_held, context;
};

/* dataset_order.c: numbers 0 to n - 1 in an order drawn from the seed and a number. */
void order_shuffle(uint32_t *order, uint32_t n, uint64_t seed, uint64_t which);
/* One of n, likewise, for each i. */
uint64_t order_pick(uint64_t n, uint64_t seed, uint64_t i);

/* dataset_convert.c: may elements of one type become those of the other? */
bool convert_fits(rlx_dtype from, rlx_dtype to);
/* false: element *at does not fit; neither is aligned. */
bool convert_elements(rlx_dtype to, void *out, rlx_dtype from, const void *in, size_t count,
                      size_t *at);

#endif
