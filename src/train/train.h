/* train.h: what makes a graph one that learns (rlx/train.h).
 *
 *     train_desc.c     what is asked for, with defaults
 *     train_params.c   which params are trained, and with which optimiser
 *     schedule.c       the rate of an update
 *     optimiser.c      what an update does to one param
 *     train_graph.c    gradients, their length, accumulation, what is written
 */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include "base/diag.h"
#include "base/mem.h"
#include "rlx/train.h"

/* The greatest finite f32. */
#define TRAIN_F32_MAX 3.40282346638528859812e38

/* One param that is trained. */
struct train_param {
    rlx_value leaf;
    rlx_str name;
    rlx_dtype dtype; /* its own; */
    rlx_dtype wide;  /* updates are computed in this: f32, or f64 where it is f64 */
    rlx_list shape;
    rlx_optimiser by;
    bool decays;
    rlx_value grad; /* in the wide type, from when it was computed */
};

/* Numbers that all updates of a run share, each f32[1]. */
struct train_now {
    rlx_value rate, plain_rate; /* of the optimiser, and of AdamW beside Muon */
    rlx_value factor;           /* gradients times this are to be used; RLX_NO_VALUE: as they are */
    rlx_value apply;            /* bool[1]: is there an update? */
    rlx_value unbias1, unbias2; /* 1 - beta^t of update t, counted from 1 */
};

struct train {
    rlx_graph *g;
    const rlx_train_desc *desc; /* with the defaults filled in */
    const rlx_allocator *mem;
    struct train_param *param;
    size_t count, room;
    struct train_now now;
    struct diag *diag;
};

/* train_desc.c: the desc with its defaults in place; ATTRIBUTE where something in it makes no
 * sense. */
rlx_status train_read_desc(const rlx_train_desc *theirs, rlx_train_desc *out, struct diag *d);

/* train_params.c: fills param; freed by train_free_params. */
rlx_status train_find_params(struct train *t, rlx_value loss);
void train_free_params(struct train *t);
/* Does name match the pattern, in which '*' stands for any characters? */
bool train_matches(const char *pattern, rlx_str name);

/* schedule.c: the rate of update number `step` (f32[1], from 0), where the desc's is `rate`. */
rlx_value train_rate(rlx_graph *g, const rlx_train_desc *desc, double rate, rlx_value step);

/* optimiser.c: appends the update of p and what is kept of it. */
rlx_status train_update(struct train *t, const struct train_param *p);

/* train_graph.c: a new state "PREFIX:NAME". */
rlx_value train_state(struct train *t, const char *prefix, const struct train_param *p);
/* The state's new content, all of it. */
void train_write(struct train *t, rlx_value state, rlx_value content);
/* A number of the type of `like`, with one axis of one element, so that it goes with anything. */
rlx_value train_number(rlx_graph *g, rlx_value like, double v);

#endif
