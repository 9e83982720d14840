/* job.h: the rlx side of a comparison: a graph, opened on the CPU and ready to run.
 *
 * Params are weights, which rlx may prepare beforehand. Operands that are not are best declared as
 * states: they lie in the device's memory, as the operands of a library call do, and a run that
 * asks for no output copies nothing. */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include "measure.h"
#include "rlx/graph.h"
#include "rlx/session.h"

struct job {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    rlx_binding input, output; /* of networks; no name: there is none */
    double compile;            /* seconds */
    long long allocations;     /* so far, and frees and resizes */
    rlx_allocator allocator;
};

/* Ends the program if the status is not RLX_OK. */
void check(rlx_status s, const rlx_error *err);

/* The device, and an empty graph for it. */
rlx_graph *job_begin(struct job *j, int threads);
rlx_graph *job_begin_on(struct job *j, int threads, const char *device); /* "cpu:avx512" */
/* The graph becomes a session, its params and states filled by their names (values_fill). */
void job_open(struct job *j, rlx_graph *g);
/* The same for a job whose params the caller has filled. */
void job_open_filled(struct job *j);
/* job_open with input 0 bound to values of its own, and output 0 wanted. */
void job_open_network(struct job *j, rlx_graph *g);
void job_call(void *job); /* one run */
struct side job_side(struct job *j);
void job_close(struct job *j);

#endif
