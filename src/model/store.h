/* store.h: the weights of a model on a device, shared by its sessions there. */
#ifndef MODEL_STORE_H
#define MODEL_STORE_H

#include "model/model.h"
#include "run/program.h"

/* The weights of a model on a device, shared by its sessions there. All under the model's lock. */
struct store {
    struct rlx_model *model; /* not counted: sessions count the model */
    struct rlx_device *device;
    struct memory memory;
    uint64_t *offset;            /* by param: where in it */
    uint64_t max_buffer;         /* that it was laid out for */
    struct param_values *values; /* the model's, or own */
    struct param_values own;     /* of one clone: nobody else finds it; else empty */
    uint64_t *has;               /* by param: the version of the value that is here; 0: none */
    uint64_t fresh;              /* the version that all of them are of; 0: not yet */
    struct buffer **plain;       /* by param: a buffer of its own, if it is there; no array: they
                                    are all in memory */
    const void **wraps;          /* by param: whose memory that buffer is; NULL: its own */
    uint32_t *readers;           /* by param: programs that read it as it is */
    VEC(struct weight_copy *) copy;
    bool plan_only; /* of one session: laid out, and memory has bytes but no buffers */
    int refs;
};

#define STORE_ALIGNMENT 256 /* what the strictest device wants of a slot */

/* store.c */
/* max_buffer: how it is laid out if nobody has opened it before. */
rlx_status store_open(struct rlx_model *m, struct rlx_device *dev, uint64_t max_buffer,
                      struct store **out, struct diag *d);
/* Laid out, and nothing else: of a session that is only planned. */
rlx_status store_plan(struct rlx_model *m, struct rlx_device *dev, uint64_t max_buffer,
                      struct store **out, struct diag *d);
/* The same weights, but from now on apart. */
rlx_status store_clone(struct store *from, struct store **out, struct diag *d);
void store_close(struct store *s);
/* The copy of that key, with room of its own where there is none yet; like: what it is to be. */
rlx_status store_copy_of(struct store *s, const struct weight_copy *like, struct weight_copy **out,
                         struct diag *d);
bool store_has_copy(struct store *s, uint64_t key, uint64_t bytes);
void stores_destroy(struct rlx_model *m); /* those that stayed for their values */
/* Of params that are there as they are. */
uint64_t store_weight_bytes(struct store *s);
uint64_t store_weight_bytes_locked(const struct store *s);
uint64_t store_copy_bytes(struct store *s);
uint64_t store_copy_bytes_locked(const struct store *s);
/* Until store_end_run no param can be set. refresh, called with the lock held, brings copies up to
 * date. */
rlx_status store_begin_run(struct store *s, bool params_default_zero,
                           rlx_status (*refresh)(void *user, struct diag *d), void *user,
                           struct diag *d);
void store_end_run(struct store *s);
bool store_copy_is_old(const struct store *s, const struct weight_copy *c);
rlx_status store_write(struct store *s, rlx_str name, const rlx_tensor *value, struct diag *d);
rlx_status store_read(struct store *s, rlx_str name, rlx_tensor *value, struct diag *d);

/* plain_params.c: params as they are, on a device that works in host memory. Under the model's
 * lock. */
/* s->plain[i] is its value, until plain_param_release finds that no program reads it. */
rlx_status plain_param_hold(struct store *s, size_t i, struct diag *d);
/* Its next value will be in that memory: all that can fail about holding it is done now. */
rlx_status plain_param_expect(struct store *s, size_t i, const void *room, struct diag *d);
void plain_param_release(struct store *s, size_t i);
/* A buffer with its value, to make copies from; then what is to become of the value once `c` (NULL:
 * nothing that could stand for it) is made. */
rlx_status plain_param_source(struct store *s, size_t i, struct buffer **out, struct diag *d);
void plain_param_was_packed(struct store *s, size_t i, struct buffer *source,
                            struct weight_copy *c);
/* Is it the model's own memory that holds its value, for nobody but those who make copies? */
bool plain_param_is_spare(const struct store *s, size_t i);

#endif
