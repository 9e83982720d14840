/* model_run.h: for tests of passes: a model run on made-up inputs, its outputs as bytes, so that
 * two ways to the same result can be compared. */
#ifndef TESTS_PASS_MODEL_RUN_H
#define TESTS_PASS_MODEL_RUN_H

#include <string.h>

#include "../test.h"
#include "rlx/graph.h"
#include "rlx/tools.h"

#define MOST_VALUES 8
#define MOST_BYTES 8192

struct outputs {
    _Alignas(16) uint8_t data[MOST_VALUES][MOST_BYTES];
    size_t bytes[MOST_VALUES], count;
};

/* Numbers between -2 and 2 that differ from one another; whole ones in other types. */
static inline float made_up(size_t input, size_t k)
{
    uint32_t h = (uint32_t)(k + 1 + input * 7919) * 2654435761u;

    return (float)(h >> 8) / 4194304.0f - 2;
}

/* Inputs are given as f32, which converts to what is declared. */
static inline rlx_status run_outputs(rlx_model *m, rlx_device *dev, const rlx_session_desc *desc,
                                     struct outputs *out, rlx_error *err)
{
    static float value[MOST_VALUES][MOST_BYTES / sizeof(float)];
    static char name[2 * MOST_VALUES][64];
    rlx_binding in[MOST_VALUES], to[MOST_VALUES];
    rlx_session *s;
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    size_t inputs = rlx_model_io_count(m, RLX_IO_INPUT);

    out->count = rlx_model_io_count(m, RLX_IO_OUTPUT);
    for (size_t i = 0; i < inputs && i < MOST_VALUES; i++) {
        size_t count = 1;
        rlx_model_io(m, RLX_IO_INPUT, i, &info, NULL);
        memcpy(name[i], info.name.ptr, info.name.len);
        name[i][info.name.len] = 0;
        in[i] = (rlx_binding){name[i], {.dtype = RLX_DTYPE_f32, .rank = info.rank}};
        for (int32_t a = 0; a < info.rank; a++)
            count *= (size_t)(in[i].tensor.dim[a] = info.dim[a]);
        for (size_t k = 0; k < count; k++)
            value[i][k] = made_up(i, k);
        in[i].tensor.data = value[i];
        in[i].tensor.bytes = count * sizeof(float);
    }
    for (size_t i = 0; i < out->count; i++) {
        rlx_model_io(m, RLX_IO_OUTPUT, i, &info, NULL);
        memcpy(name[MOST_VALUES + i], info.name.ptr, info.name.len);
        name[MOST_VALUES + i][info.name.len] = 0;
        to[i] = (rlx_binding){
            name[MOST_VALUES + i],
            {.dtype = info.dtype, .data = out->data[i], .bytes = sizeof out->data[i]}};
        out->bytes[i] = rlx_dtype_size(info.dtype);
        for (int32_t a = 0; a < info.rank; a++)
            out->bytes[i] *= (size_t)info.dim[a];
    }
    rlx_status status = rlx_session_create(m, dev, desc, &s, err);
    if (status != RLX_OK)
        return status;
    status = rlx_session_run(
        s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, inputs, to, out->count, NULL, 0}, err);
    rlx_session_destroy(s);
    return status;
}

/* Both have the same outputs, bit for bit. */
static inline void expect_outputs(struct test *t, const struct outputs *got,
                                  const struct outputs *want)
{
    expect_eq(t, got->count, want->count);
    for (size_t i = 0; i < got->count && i < want->count; i++) {
        expect_eq(t, got->bytes[i], want->bytes[i]);
        if (got->bytes[i] == want->bytes[i])
            expect_bytes(t, got->data[i], want->data[i], got->bytes[i]);
    }
}

#endif
