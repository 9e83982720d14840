/* job.c: a graph on the CPU, filled with values. */
#include "job.h"

#include <stdlib.h>
#include <string.h>

#include "models.h"

void check(rlx_status s, const rlx_error *err)
{
    if (s != RLX_OK)
        give_up("%s", err->message);
}

static void *counted(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)old_size;
    __atomic_fetch_add((long long *)user, 1, __ATOMIC_RELAXED);
    if (new_size > 0)
        return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

rlx_graph *job_begin(struct job *j, int threads)
{
    return job_begin_on(j, threads, "cpu");
}

rlx_graph *job_begin_on(struct job *j, int threads, const char *device)
{
    rlx_error err;
    rlx_graph *g;

    *j = (struct job){.allocator = {.resize = counted}};
    j->allocator.user = &j->allocations;
    rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &j->allocator,
                             .threads = threads};
    check(rlx_context_create(RLX_VERSION, &desc, &j->ctx, &err), &err);
    check(rlx_device_open(j->ctx, device, &j->dev, &err), &err);
    check(rlx_graph_create(j->ctx, &g, &err), &err);
    return g;
}

/* ---- values ---- */

/* A tensor of the model in f32, filled; its name goes to name. */
static rlx_tensor filled(const struct job *j, rlx_io_kind kind, size_t i, char name[64])
{
    rlx_error err;
    rlx_io_info io = {RLX_SIZED(rlx_io_info)};
    rlx_tensor t = {.dtype = RLX_DTYPE_f32};

    check(rlx_model_io(j->model, kind, i, &io, &err), &err);
    if (io.name.len >= 64)
        give_up("the name %.*s is too long", (int)io.name.len, io.name.ptr);
    memcpy(name, io.name.ptr, io.name.len);
    name[io.name.len] = 0;
    t.rank = io.rank;
    memcpy(t.dim, io.dim, sizeof t.dim);
    t.bytes = (size_t)values_count(&t) * sizeof(float);
    t.data = malloc(t.bytes);
    if (!t.data)
        give_up("out of memory");
    values_fill(name, &t, t.data);
    return t;
}

static void set_params(struct job *j)
{
    rlx_error err;
    char name[64];

    for (size_t i = 0; i < rlx_model_io_count(j->model, RLX_IO_PARAM); i++) {
        rlx_tensor t = filled(j, RLX_IO_PARAM, i, name);
        check(rlx_model_set_param(j->model, name, &t, &err), &err);
        free(t.data);
    }
}

static void set_states(struct job *j)
{
    rlx_error err;
    char name[64];

    for (size_t i = 0; i < rlx_model_io_count(j->model, RLX_IO_STATE); i++) {
        rlx_tensor t = filled(j, RLX_IO_STATE, i, name);
        check(rlx_session_set_state(j->session, name, &t, &err), &err);
        free(t.data);
    }
}

/* ---- sessions ---- */

void job_open(struct job *j, rlx_graph *g)
{
    rlx_error err;

    check(rlx_model_create(g, &j->model, &err), &err);
    set_params(j);
    job_open_filled(j);
}

void job_open_filled(struct job *j)
{
    rlx_error err;

    double start = now();
    check(rlx_session_create(j->model, j->dev, NULL, &j->session, &err), &err);
    j->compile = now() - start;
    set_states(j);
}

void job_open_network(struct job *j, rlx_graph *g)
{
    char name[64];

    job_open(j, g);
    j->input = (rlx_binding){"x", filled(j, RLX_IO_INPUT, 0, name)};
    j->output = (rlx_binding){"out0", filled(j, RLX_IO_OUTPUT, 0, name)};
}

void job_call(void *job)
{
    struct job *j = job;
    rlx_error err;
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc),
                        &j->input,
                        j->input.name ? 1 : 0,
                        &j->output,
                        j->output.name ? 1 : 0,
                        NULL,
                        0};

    check(rlx_session_run(j->session, &run, &err), &err);
}

struct side job_side(struct job *j)
{
    return (struct side){.name = "rlx", .call = job_call, .user = j};
}

void job_close(struct job *j)
{
    rlx_session_destroy(j->session);
    rlx_model_destroy(j->model);
    rlx_device_close(j->dev);
    rlx_context_destroy(j->ctx);
    free(j->input.tensor.data);
    free(j->output.tensor.data);
}
