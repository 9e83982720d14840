/* run_model.h: what is done with any model that could be read: it is compiled for the CPU and,
 * where it is small, run. Symbolic dims are 2. Inputs hold a few small numbers, some of them below
 * zero: as indices they lead outside of what they index as often as not. */
#ifndef FUZZ_RUN_MODEL_H
#define FUZZ_RUN_MODEL_H

#include <string.h>

#include "limits.h"
#include "rlx/debug.h"
#include "rlx/load.h"
#include "rlx/tools.h"

enum {
    FUZZ_MOST_VALUES = 16,       /* inputs, and outputs */
    FUZZ_MOST_RUN_BYTES = 65536, /* of all tensors of a run: it is over in milliseconds */
    FUZZ_LOOP_LIMIT = 64
};

struct fuzz_values {
    rlx_binding at[FUZZ_MOST_VALUES];
    char name[FUZZ_MOST_VALUES][64];
    size_t count;
};

static inline void fuzz_values_free(rlx_context *ctx, struct fuzz_values *v)
{
    for (size_t i = 0; i < v->count; i++)
        rlx_tensor_free(ctx, &v->at[i].tensor);
}

/* Takes a tensor whose dtype and dims are there; false: it is too large, or too long its name. */
static inline bool fuzz_values_add(rlx_context *ctx, struct fuzz_values *v, rlx_str name,
                                   rlx_tensor t)
{
    uint64_t bytes = rlx_dtype_size(t.dtype);

    for (int32_t k = 0; k < t.rank; k++) {
        if (t.dim[k] < 0 || t.dim[k] > FUZZ_MOST_RUN_BYTES)
            return false;
        bytes *= (uint64_t)t.dim[k];
        if (bytes > FUZZ_MOST_RUN_BYTES)
            return false;
    }
    if (v->count == FUZZ_MOST_VALUES || name.len >= sizeof v->name[0] ||
        rlx_tensor_alloc(ctx, &t, NULL) != RLX_OK)
        return false;
    if (name.len)
        memcpy(v->name[v->count], name.ptr, name.len);
    v->at[v->count] = (rlx_binding){v->name[v->count], t};
    v->count++;
    return true;
}

static inline void fuzz_fill(const rlx_tensor *t)
{
    static const int8_t whole[] = {0, 1, 3, -1, 2, 7, -5, 1};
    static const float real[] = {0.5f, -1.25f, 3.0f, 0.0f, -0.0f, 100.0f, 1e-3f, 2.0f};
    size_t size = rlx_dtype_size(t->dtype);
    uint8_t *at = t->data;

    for (size_t i = 0; size && i < t->bytes / size; i++, at += size) {
        int64_t n = whole[i % 8];
        if (t->dtype == RLX_DTYPE_f32 || t->dtype == RLX_DTYPE_c64)
            memcpy(at, &real[i % 8], 4);
        else if (t->dtype == RLX_DTYPE_bool)
            *at = n & 1;
        else if (t->dtype == RLX_DTYPE_f64)
            memcpy(at, &(double){(double)real[i % 8]}, 8);
        else if (t->dtype == RLX_DTYPE_f16 || t->dtype == RLX_DTYPE_bf16)
            memcpy(at, &(uint16_t){(uint16_t)(0x3c00 + 0x8111 * (uint32_t)(n & 7))}, 2);
        else
            memcpy(at, &n, size <= 8 ? size : 8);
    }
}

static inline bool fuzz_inputs(rlx_context *ctx, const rlx_model *m, struct fuzz_values *v)
{
    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_INPUT); i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        if (rlx_model_io(m, RLX_IO_INPUT, i, &info, NULL) != RLX_OK)
            abort();
        rlx_tensor t = {.dtype = info.dtype, .rank = info.rank};
        for (int32_t k = 0; k < t.rank; k++)
            t.dim[k] = info.dim[k] < 0 ? 2 : info.dim[k];
        if (!fuzz_values_add(ctx, v, info.name, t))
            return false;
        fuzz_fill(&v->at[v->count - 1].tensor);
    }
    return true;
}

static inline bool fuzz_outputs(rlx_context *ctx, const rlx_model *m, rlx_session *s,
                                struct fuzz_values *v)
{
    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_OUTPUT); i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_tensor t = {0};
        rlx_error err = {0};
        if (rlx_model_io(m, RLX_IO_OUTPUT, i, &info, NULL) != RLX_OK)
            abort();
        if (rlx_session_output_shape(s, i, &t, &err) != RLX_OK) {
            fuzz_need_reason(&err);
            return false;
        }
        if (!fuzz_values_add(ctx, v, info.name, t))
            return false;
    }
    return true;
}

static inline void fuzz_run_session(rlx_context *ctx, const rlx_model *m, rlx_session *s)
{
    struct fuzz_values in = {.count = 0}, out = {.count = 0};
    rlx_error err = {0};

    if (fuzz_inputs(ctx, m, &in)) {
        rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .inputs = in.at, .input_count = in.count};
        if (rlx_session_prepare(s, &run, &err) != RLX_OK)
            fuzz_need_reason(&err);
        else if (fuzz_outputs(ctx, m, s, &out)) {
            run.outputs = out.at;
            run.output_count = out.count;
            if (rlx_session_run(s, &run, &err) != RLX_OK)
                fuzz_need_reason(&err);
        }
    }
    fuzz_values_free(ctx, &in);
    fuzz_values_free(ctx, &out);
}

static inline void fuzz_run_model(rlx_context *ctx, rlx_model *m)
{
    const rlx_debug_desc checked = {RLX_SIZED(rlx_debug_desc), .check_plan = true};
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .params_default_zero = true,
                                   .debug = &checked, .loop_limit = FUZZ_LOOP_LIMIT,
                                   .memory_limit = FUZZ_MOST_RUN_BYTES};
    rlx_device *dev = NULL;
    rlx_session *s = NULL;
    rlx_error err = {0};

    if (rlx_device_open(ctx, "cpu", &dev, &err) != RLX_OK)
        return;
    if (rlx_session_create(m, dev, &desc, &s, &err) == RLX_OK)
        fuzz_run_session(ctx, m, s);
    else
        fuzz_need_reason(&err);
    rlx_session_destroy(s);
    rlx_device_close(dev);
}

#endif
