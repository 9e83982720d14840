/* sized.h: any model at any sizes. Inputs and params are made up from their shapes, so that two
 * sessions of one graph, however they came about, get the same ones; outputs are kept to be
 * compared bit by bit. */
#ifndef TESTS_API_SIZED_H
#define TESTS_API_SIZED_H

#include "required.h"

enum { SIZED_OUTPUTS = 3, SIZED_INPUTS = 8, SIZED_ROOM = 4096 };

struct sized {
    rlx_status status;
    const uint64_t *calls; /* if given, of an allocator: the run's own are counted */
    uint64_t asked;
    size_t outputs;
    rlx_tensor shape[SIZED_OUTPUTS];
    float y[SIZED_OUTPUTS][SIZED_ROOM];
};

static inline size_t sized_count(const rlx_tensor *t)
{
    size_t n = 1;

    for (int32_t i = 0; i < t->rank; i++)
        n *= (size_t)t->dim[i];
    return n;
}

/* Numbers that look random, between -2 and 2; as indices, 0 to 2. */
static inline void sized_fill(float *x, size_t n, size_t seed, bool whole)
{
    for (size_t i = 0; i < n; i++) {
        size_t r = (i * 7919 + seed * 104729 + 13) % 101;
        x[i] = whole ? (float)(r % 3) : (float)((double)r / 25.0 - 2.0);
    }
}

static inline bool sized_is_whole(rlx_dtype d)
{
    return d != RLX_DTYPE_f32 && d != RLX_DTYPE_f16 && d != RLX_DTYPE_bf16 && d != RLX_DTYPE_f64;
}

/* Values for all params, by their numbers. */
static inline bool sized_params(struct test *t, struct place *p)
{
    static _Thread_local float room[SIZED_ROOM];

    for (size_t i = 0; i < rlx_model_io_count(p->model, RLX_IO_PARAM); i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        char name[32];
        rlx_model_io(p->model, RLX_IO_PARAM, i, &info, NULL);
        rlx_tensor v = {.dtype = RLX_DTYPE_f32, .rank = info.rank, .data = room};
        memcpy(v.dim, info.dim, sizeof v.dim);
        snprintf(name, sizeof name, "%.*s", (int)info.name.len, info.name.ptr);
        size_t n = sized_count(&v);
        v.bytes = n * sizeof room[0];
        sized_fill(room, n, 50 + i, sized_is_whole(info.dtype));
        for (size_t k = 0; k < n; k++)
            room[k] *= 0.25f; /* so that deep products stay small */
        if (!expect(t, n <= SIZED_ROOM) ||
            !expect_ok(t, rlx_session_set_param(p->session, name, &v, &p->err)))
            return false;
    }
    return true;
}

/* One run at these sizes; every output in f32. */
static inline void sized_run(struct place *p, const rlx_dim_size *dims, size_t dim_count,
                             struct sized *r)
{
    static _Thread_local float room[SIZED_INPUTS][SIZED_ROOM];
    static const char *const outs[SIZED_OUTPUTS] = {"out0", "out1", "out2"};
    rlx_binding in[SIZED_INPUTS], out[SIZED_OUTPUTS];
    char name[SIZED_INPUTS][32];
    size_t inputs = rlx_model_io_count(p->model, RLX_IO_INPUT);

    r->status = RLX_ERROR_INTERNAL;
    r->outputs = rlx_model_io_count(p->model, RLX_IO_OUTPUT);
    for (size_t i = 0; i < inputs && i < SIZED_INPUTS; i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_model_io(p->model, RLX_IO_INPUT, i, &info, NULL);
        snprintf(name[i], sizeof name[i], "%.*s", (int)info.name.len, info.name.ptr);
        in[i].name = name[i];
        r->status = rlx_model_input_shape(p->model, i, dims, dim_count, &in[i].tensor, &p->err);
        if (r->status != RLX_OK)
            return;
        size_t n = sized_count(&in[i].tensor);
        sized_fill(room[i], n < SIZED_ROOM ? n : 0, i, sized_is_whole(in[i].tensor.dtype));
        in[i].tensor.dtype = RLX_DTYPE_f32;
        in[i].tensor.data = room[i];
        in[i].tensor.bytes = n * sizeof room[i][0];
    }
    for (size_t i = 0; i < r->outputs && i < SIZED_OUTPUTS; i++) {
        memset(r->y[i], 0x7f, sizeof r->y[i]);
        out[i] = (rlx_binding){outs[i],
                               {.dtype = RLX_DTYPE_f32, .data = r->y[i], .bytes = sizeof r->y[i]}};
    }
    memset(&p->err, 0, sizeof p->err);
    uint64_t before = r->calls ? *r->calls : 0;
    r->status = rlx_session_run(
        p->session,
        &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, inputs, out, r->outputs, dims, dim_count},
        &p->err);
    r->asked = r->calls ? *r->calls - before : 0;
    for (size_t i = 0; i < r->outputs; i++)
        r->shape[i] = out[i].tensor;
}

/* The same status; if that is a success, the same shapes and bits. */
static inline bool sized_same(struct test *t, const struct sized *a, const struct sized *b)
{
    if (!expect_status(t, a->status, b->status))
        return false;
    for (size_t k = 0; k < a->outputs && a->status == RLX_OK; k++) {
        if (!expect_eq(t, a->shape[k].rank, b->shape[k].rank))
            return false;
        for (int32_t i = 0; i < a->shape[k].rank; i++)
            if (!expect_eq(t, a->shape[k].dim[i], b->shape[k].dim[i]))
                return false;
        if (!expect(t, memcmp(a->y[k], b->y[k], sized_count(&a->shape[k]) * sizeof(float)) == 0))
            return false;
    }
    return true;
}

#endif
