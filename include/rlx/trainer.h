/* trainer.h: what runs training: a model that learns on a device, checkpoints of it, and batches of
 * examples.
 *
 *     rlx_trainer_create(model, device, &desc, &trainer, &err);
 *     rlx_dataset_fit(data, model, &err);
 *     for (uint64_t i = 0; i < steps; i++) {
 *         rlx_dataset_batch(data, RLX_SPLIT_TRAIN, i, &inputs, &count, &err);
 *         rlx_trainer_step(trainer, inputs, count, &err);
 *     }
 *     rlx_trainer_report(trainer, &report, &err);
 *
 * A trainer and a dataset are used by one thread at a time. docs/training.md has the whole story.
 */
#ifndef RLX_TRAINER_H
#define RLX_TRAINER_H

#ifndef RLX_UNSTABLE
#error "rlx/trainer.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/tools.h"
#include "rlx/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a model that learns ------------------------------------------------------------------ */

/* What a param holds that was given no value. Normal numbers are drawn from the seed and the
 * param's name, so that they are the same on every device, whatever other params there are. */
typedef enum rlx_init {
    RLX_INIT_CONSTANT = 0, /* scale */
    RLX_INIT_NORMAL = 1,   /* standard deviation scale */
    RLX_INIT_FAN_IN = 2    /* scale / sqrt(n), of n products that are added up: all axes but the
                            * first of kernels of convolutions (rank 4 and 5), otherwise the last
                            * axis but one */
} rlx_init;
typedef struct rlx_init_rule {
    const char *params; /* names; '*' stands for any characters */
    rlx_init how;
    float scale;
} rlx_init_rule;

typedef struct rlx_trainer_desc {
    uint32_t size;
    const char *loss;            /* the output that is the loss; NULL: the only one there is */
    const rlx_train_desc *train; /* optimiser, schedule, which params; NULL: all defaults */
    /* NULL: all defaults. ARGUMENT: a precision that has elementwise ops in halves, as updates are
     * such ops. */
    const rlx_session_desc *session;
    uint64_t seed; /* of params that the model has no values for */
    /* The first rule that names such a param counts; where none does, names with "norm", "gamma" or
     * "scale" of one axis are 1, other params of one axis or none 0, those with "emb" normal(0.02)
     * and all else FAN_IN with scale 1. */
    const rlx_init_rule *init;
    size_t init_count;
    const char *name; /* what checkpoints call the model; NULL: "model" */
} rlx_trainer_desc;

typedef struct rlx_trainer rlx_trainer;
/* The model's graph with a step of training (rlx_train_graph), open on the device. Params begin as
 * the model has them. The model stays as it is, and yours. NAME: there is no such output. */
RLX_API rlx_status rlx_trainer_create(rlx_model *m, rlx_device *dev, const rlx_trainer_desc *desc,
                                      rlx_trainer **out, rlx_error *err);
RLX_API void rlx_trainer_destroy(rlx_trainer *t);

/* One run on these inputs, which are copied. It returns before the work is done; what happens to
 * the loss is heard of in the next report. Where in_flight runs are on their way, it waits for the
 * oldest. */
RLX_API rlx_status rlx_trainer_step(rlx_trainer *t, const rlx_binding *inputs, size_t count,
                                    rlx_error *err);

typedef struct rlx_train_report {
    uint32_t size;
    int64_t updates; /* since training began, those before a checkpoint that was loaded included */
    int64_t runs;    /* since the last report */
    double loss;     /* their mean; NaN if there were none */
    float grad_norm; /* of the last run; NaN if there was none */
    float rate;      /* likewise */
} rlx_train_report;
/* Waits for all runs. NUMERIC: a loss or gradients were not finite. Params and all else are then
 * still what the last good update made of them, and stay so: rlx_trainer_bad_run says which run it
 * was. */
RLX_API rlx_status rlx_trainer_report(rlx_trainer *t, rlx_train_report *out, rlx_error *err);

/* After a report: of the runs so far, counted from 0 and with those before a checkpoint, the first
 * that was bad; -1: none was. */
RLX_API int64_t rlx_trainer_bad_run(const rlx_trainer *t);
/* Runs these inputs once more on what params and states hold, as the graph was written, and finds
 * the first node that gives a NaN or Inf. Changes nothing. */
RLX_API rlx_status rlx_trainer_find_bad(rlx_trainer *t, const rlx_binding *inputs, size_t count,
                                        rlx_numerics *out, rlx_error *err);

/* The loss of these inputs without learning from them. */
RLX_API rlx_status rlx_trainer_evaluate(rlx_trainer *t, const rlx_binding *inputs, size_t count,
                                        double *loss, rlx_error *err);

/* Runs so far, with those before a checkpoint that was loaded. */
RLX_API int64_t rlx_trainer_runs(const rlx_trainer *t);
/* The session that learns, to look at: its memory, its plan. It stays the trainer's. */
RLX_API rlx_session *rlx_trainer_session(rlx_trainer *t);

/* Param or state number i, by its place in the graph; false: there are no more. */
typedef struct rlx_trainer_value {
    rlx_str name;
    rlx_dtype dtype;
    int32_t rank;
    int64_t dim[RLX_MAX_RANK];
    bool param;   /* of the model; else what training keeps */
    bool trained; /* a param that changes */
} rlx_trainer_value;
RLX_API bool rlx_trainer_value_at(const rlx_trainer *t, size_t i, rlx_trainer_value *out);
/* What it holds now: value->bytes is its size, in value->dtype; dims are filled in. Waits for all
 * runs. */
RLX_API rlx_status rlx_trainer_get(rlx_trainer *t, const char *name, rlx_tensor *value,
                                   rlx_error *err);
/* All params of the model, under their names, into an npz file (where the path ends in .npz) or a
 * safetensors file. */
RLX_API rlx_status rlx_trainer_export(rlx_trainer *t, const char *path, rlx_error *err);

/* ---- checkpoints -------------------------------------------------------------------------- */

/* What a checkpoint says besides params and states. */
typedef struct rlx_checkpoint {
    uint32_t size;
    uint64_t cursor; /* the number of the batch that comes next */
    uint64_t seed;   /* of the batches */
    char note[256];  /* of the caller */
} rlx_checkpoint;
/* Everything that training needs to go on as if it had not stopped, in one safetensors file. A file
 * that is there is replaced once the new one is on the disk as a whole: a failure leaves it as it
 * was. */
RLX_API rlx_status rlx_trainer_save(rlx_trainer *t, const char *path, const rlx_checkpoint *at,
                                    rlx_error *err);
/* Goes on from there. out may be NULL. A checkpoint of another model (NAME) or with other states
 * (NAME, SHAPE, DTYPE), such as those of another optimiser, changes nothing. */
RLX_API rlx_status rlx_trainer_load(rlx_trainer *t, const char *path, rlx_checkpoint *out,
                                    rlx_error *err);

/* ---- batches ------------------------------------------------------------------------------- */

/* Batch number i is the same whenever it is asked for, so that a number is all that has to be
 * remembered to go on. */
typedef struct rlx_dataset rlx_dataset;

typedef struct rlx_dataset_desc {
    uint32_t size;
    int64_t batch;     /* examples; 0: as many as the model's inputs say, or 32 */
    double validation; /* the part of all examples that is held out, below 1 */
    uint64_t seed;
    /* Examples along the first axis of each array, which is named like the input it is for. Every
     * epoch has an order of its own; examples that do not fill a batch are left for the next one.
     * What is held out is drawn from the seed. The data stays yours, and must outlive the dataset.
     * Integers become floats, or other integers in which they fit. */
    const rlx_binding *arrays;
    size_t array_count;
    /* Or: windows of context + 1 tokens from random places. What is held out is the end. */
    const int32_t *tokens; /* likewise yours */
    size_t token_count;
    int64_t context;
    const char *input, *target; /* i32[batch, context]: all but the last, all but the first token.
                                 * NULL: "tokens" and "targets" */
} rlx_dataset_desc;
RLX_API rlx_status rlx_dataset_create(rlx_context *ctx, const rlx_dataset_desc *desc,
                                      rlx_dataset **out, rlx_error *err);
RLX_API void rlx_dataset_destroy(rlx_dataset *d);
/* Batches are to be the model's inputs, in their element types. Once, before the first batch. NAME:
 * an array is for no input, or an input has no array. SHAPE, DTYPE: what it holds does not fit. */
RLX_API rlx_status rlx_dataset_fit(rlx_dataset *d, const rlx_model *m, rlx_error *err);

typedef struct rlx_dataset_info {
    uint32_t size;
    int64_t batch;      /* examples, */
    int64_t tokens;     /* and tokens in a batch; 0: it is not made of tokens */
    int64_t examples;   /* to train on; of tokens: windows that do not overlap */
    int64_t held_out;   /* likewise */
    int64_t epoch;      /* batches to an epoch */
    int64_t validation; /* batches of what is held out */
} rlx_dataset_info;
RLX_API rlx_status rlx_dataset_describe(const rlx_dataset *d, rlx_dataset_info *out,
                                        rlx_error *err);

typedef enum rlx_split { RLX_SPLIT_TRAIN = 0, RLX_SPLIT_VALIDATION = 1 } rlx_split;
/* Of the training set there are batches without end; of the other, as many as the info says. What
 * it gives is good until the next call. INDEX: a label of the data does not fit the input's type.
 */
RLX_API rlx_status rlx_dataset_batch(rlx_dataset *d, rlx_split split, uint64_t i,
                                     const rlx_binding **inputs, size_t *count, rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
