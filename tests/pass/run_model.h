/* run_model.h: a model run on the CPU with made-up values: what tests of passes compare. */
#ifndef TESTS_PASS_RUN_MODEL_H
#define TESTS_PASS_RUN_MODEL_H

#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "base/half.h"
#include "base/rng.h"
#include "rlx/graph.h"
#include "rlx/tools.h"

enum { RUN_MOST_LEAVES = 64, RUN_MOST_OUTPUTS = 16 };

/* Integers are 0 .. INDICES-1, so that they may be indices; floats -1 .. 1, f32 or narrower. */
enum { RUN_INDICES = 3 };

struct ran {
    rlx_tensor out[RUN_MOST_OUTPUTS]; /* in the declared types */
    size_t count;
};

static inline void ran_free(struct ran *r)
{
    for (size_t i = 0; i < r->count; i++)
        free(r->out[i].data);
    *r = (struct ran){0};
}

static inline double ran_element(const rlx_tensor *t, size_t i)
{
    switch (t->dtype) {
    case RLX_DTYPE_f32: return (double)((const float *)t->data)[i];
    case RLX_DTYPE_f64: return ((const double *)t->data)[i];
    case RLX_DTYPE_f16: return (double)f16_to_f32(((const uint16_t *)t->data)[i]);
    case RLX_DTYPE_bf16: return (double)bf16_to_f32(((const uint16_t *)t->data)[i]);
    case RLX_DTYPE_i64: return (double)((const int64_t *)t->data)[i];
    case RLX_DTYPE_i32: return ((const int32_t *)t->data)[i];
    case RLX_DTYPE_i8: return ((const int8_t *)t->data)[i];
    default: return ((const uint8_t *)t->data)[i];
    }
}

struct run_leaf {
    char name[64];
    rlx_tensor value;
};

/* Values that depend on the leaf's name, so that a pass may drop or reorder leaves. */
static inline bool run_fill(struct run_leaf *l, const rlx_io_info *io, uint64_t seed)
{
    struct rng_philox rng;
    size_t count = 1;

    memcpy(l->name, io->name.ptr, io->name.len);
    l->name[io->name.len] = 0;
    for (size_t i = 0; i < io->name.len; i++)
        seed = seed * 131 + (unsigned char)io->name.ptr[i];
    for (int32_t a = 0; a < l->value.rank; a++)
        count *= (size_t)l->value.dim[a];
    float *x = malloc(count * sizeof *x + 1);
    rng_philox_init(&rng, seed);
    for (size_t k = 0; x && k < count; k++) {
        uint32_t word = rng_philox_next(&rng);
        bool real = io->dtype == RLX_DTYPE_f32 || io->dtype == RLX_DTYPE_f16 ||
                    io->dtype == RLX_DTYPE_bf16 || io->dtype == RLX_DTYPE_f64;
        x[k] = real                          ? rng_uniform(word) * 2 - 1
               : io->dtype == RLX_DTYPE_bool ? (float)(word & 1)
                                             : (float)(word % RUN_INDICES);
    }
    l->value.data = x;
    l->value.dtype = RLX_DTYPE_f32;
    l->value.bytes = count * sizeof *x;
    return x != NULL;
}

/* A param whose value is given, not made up. */
struct run_given {
    rlx_str name;
    const rlx_tensor *value;
};

static inline rlx_status run_params(const rlx_model *m, rlx_session *s, uint64_t seed,
                                    const struct run_given *given, size_t given_count,
                                    rlx_error *err)
{
    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_PARAM); i++) {
        rlx_io_info io = {RLX_SIZED(rlx_io_info)};
        struct run_leaf l = {0};
        rlx_status status = rlx_model_io(m, RLX_IO_PARAM, i, &io, err);
        if (status != RLX_OK)
            return status;
        l.value.rank = io.rank;
        memcpy(l.value.dim, io.dim, sizeof io.dim);
        if (!run_fill(&l, &io, seed))
            return RLX_ERROR_MEMORY;
        const rlx_tensor *value = &l.value;
        for (size_t k = 0; k < given_count; k++)
            if (given[k].name.len == io.name.len &&
                memcmp(given[k].name.ptr, io.name.ptr, io.name.len) == 0)
                value = given[k].value;
        status = rlx_session_set_param(s, l.name, value, err);
        free(l.value.data);
        if (status != RLX_OK)
            return status;
    }
    return RLX_OK;
}

static inline rlx_status run_outputs(const rlx_model *m, rlx_session *s, rlx_binding *to,
                                     struct ran *out, rlx_error *err)
{
    static char names[RUN_MOST_OUTPUTS][64];

    out->count = rlx_model_io_count(m, RLX_IO_OUTPUT);
    for (size_t i = 0; i < out->count; i++) {
        rlx_io_info io = {RLX_SIZED(rlx_io_info)};
        rlx_status status = rlx_model_io(m, RLX_IO_OUTPUT, i, &io, err);
        if (status == RLX_OK)
            status = rlx_session_output_shape(s, i, &out->out[i], err);
        if (status != RLX_OK)
            return status;
        memcpy(names[i], io.name.ptr, io.name.len);
        names[i][io.name.len] = 0;
        out->out[i].data = calloc(1, out->out[i].bytes + 1);
        to[i] = (rlx_binding){names[i], out->out[i]};
    }
    return RLX_OK;
}

/* Every symbol is `size`. Free with ran_free, whatever is returned. */
static inline rlx_status run_model_given(const rlx_model *m, rlx_device *dev,
                                         const rlx_session_desc *desc, const char *symbol,
                                         int64_t size, uint64_t seed, const struct run_given *given,
                                         size_t given_count, struct ran *out, rlx_error *err)
{
    const rlx_dim_size dim = {symbol, size};
    struct run_leaf leaf[RUN_MOST_LEAVES] = {0};
    rlx_binding in[RUN_MOST_LEAVES] = {0}, to[RUN_MOST_OUTPUTS] = {0};
    size_t inputs = rlx_model_io_count(m, RLX_IO_INPUT);
    rlx_session *s = NULL;
    rlx_io_info io = {RLX_SIZED(rlx_io_info)};

    *out = (struct ran){0};
    rlx_status status = rlx_session_create((rlx_model *)(uintptr_t)m, dev, desc, &s, err);
    for (size_t i = 0; status == RLX_OK && i < inputs; i++) {
        status = rlx_model_io(m, RLX_IO_INPUT, i, &io, err);
        if (status == RLX_OK)
            status = rlx_model_input_shape(m, i, &dim, symbol ? 1 : 0, &leaf[i].value, err);
        if (status == RLX_OK && !run_fill(&leaf[i], &io, seed))
            status = RLX_ERROR_MEMORY;
        in[i] = (rlx_binding){leaf[i].name, leaf[i].value};
    }
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), in, inputs, to, 0, &dim, symbol ? 1 : 0};
    if (status == RLX_OK)
        status = run_params(m, s, seed, given, given_count, err);
    if (status == RLX_OK)
        status = rlx_session_prepare(s, &run, err);
    if (status == RLX_OK)
        status = run_outputs(m, s, to, out, err);
    run.output_count = out->count;
    if (status == RLX_OK)
        status = rlx_session_run(s, &run, err);
    for (size_t i = 0; i < inputs && i < RUN_MOST_LEAVES; i++)
        free(leaf[i].value.data);
    rlx_session_destroy(s);
    return status;
}

static inline rlx_status run_model(const rlx_model *m, rlx_device *dev,
                                   const rlx_session_desc *desc, const char *symbol, int64_t size,
                                   uint64_t seed, struct ran *out, rlx_error *err)
{
    return run_model_given(m, dev, desc, symbol, size, seed, NULL, 0, out, err);
}

#endif
