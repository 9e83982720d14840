/* trainer.h: a model that learns on a device (rlx/trainer.h). It is a program over the public
 * calls: a session of a graph with a training step, whose states are all that learns.
 *
 *     trainer.c             made from a model, taken down
 *     trainer_init.c        what params hold that were given no value
 *     trainer_run.c         steps, reports, the search for a NaN
 *     trainer_evaluate.c    the loss without learning
 *     trainer_values.c      params and states, one by one and in a file of params
 *     checkpoint.c          all of it in a file, and back
 */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "context/context.h"
#include "rlx/trainer.h"
#include "rlx/weights.h"

/* A param of the model, or a state of the graph that learns. */
struct trainer_value {
    rlx_trainer_value info; /* the name ends with a NUL */
    size_t bytes;
    bool kept; /* in checkpoints: it changes, or was drawn from the seed */
};

struct rlx_trainer {
    struct rlx_context *ctx;
    rlx_device *dev;
    struct arena arena; /* of the values and their names */
    struct trainer_value *value;
    size_t count;
    rlx_model *model, *quiet; /* the graph that learns; the one that only gives the loss */
    rlx_session *session;     /* of the first */
    rlx_session *evaluation;  /* of the second; NULL until it is needed */
    rlx_session *probe;       /* of the first, searched for NaN; likewise */
    int64_t evaluated;        /* runs that `evaluation` knows of; -1: none */
    uint64_t key;             /* of the model that it was made from */
    char name[64];            /* of that, in checkpoints */
    uint64_t *ticket;         /* of runs on their way, the oldest first */
    uint32_t flying, in_flight;
    int64_t runs;          /* so far */
    int64_t bad_run;       /* -1: none */
    float grad_norm, rate; /* of the last run */
};

/* Fails as a public call does: err may be NULL. */
rlx_status trainer_fail(rlx_error *err, rlx_status s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* trainer_init.c: fills a param without a value. */
rlx_status trainer_init(const rlx_trainer_desc *desc, const struct trainer_value *v, void *out,
                        rlx_error *err);

/* trainer_run.c: waits for all runs. */
rlx_status trainer_wait(rlx_trainer *t, rlx_error *err);
/* The counters of bad runs: how many, and updates before the first. */
rlx_status trainer_bad(rlx_trainer *t, int32_t bad[2], rlx_error *err);

/* trainer_values.c */
/* Room for a value; data is NULL where there is none. Freed with mem_free of as many bytes. */
rlx_status trainer_room(const rlx_trainer *t, const struct trainer_value *v, rlx_tensor *out,
                        rlx_error *err);
void trainer_free_room(const rlx_trainer *t, rlx_tensor *room);
/* A value of the session; no run is on its way. */
rlx_status trainer_read(rlx_trainer *t, const struct trainer_value *v, rlx_tensor *out,
                        rlx_error *err);
/* All states that `to`, a session of `of`, has too. */
rlx_status trainer_copy_states(rlx_trainer *t, rlx_session *to, const rlx_model *of,
                               rlx_error *err);
/* The type of a file for elements of that dtype. */
rlx_weight_type trainer_weight_type(rlx_dtype dtype);
/* A file of the values that are wanted, durable; no run is on its way. */
rlx_status trainer_write_file(rlx_trainer *t, const char *path, rlx_file_kind kind,
                              bool (*wanted)(const struct trainer_value *v), const rlx_meta *meta,
                              size_t meta_count, rlx_error *err);

#endif
